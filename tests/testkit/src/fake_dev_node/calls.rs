//! The system calls on the files of the fake module, with its checks.

use super::*;

pub(super) fn refused(state: &State, call: &str) -> Result<(), i32> {
    match state.refuse {
        Some((refused, errno)) if refused == call => Err(errno),
        _ if state.taken_away => Err(libc::ENODEV),
        _ => Ok(()),
    }
}

// SAFETY: 1. The fake's device reads and writes the file at exactly the addresses that were said,
// until the release. 2. It has no caches: nothing is to be done. 3. The registers are a file of
// this fake's.
unsafe impl SystemCalls for FakeDevNode {
    fn open(&self, path: &CStr, flags: c_int) -> Result<Fd, i32> {
        let path = path.to_str().map_err(|_| libc::ENOENT)?;
        if path == "/sys/class/contigo" {
            check_flags(flags, libc::O_RDONLY | libc::O_DIRECTORY)?;
            return self.class();
        }
        let name = path.strip_prefix("/dev/contigo/").ok_or(libc::ENOENT)?;
        let mut state = self.lock();
        refused(&state, "open(/dev/contigo/)")?;
        if name != self.config.name {
            return Err(libc::ENOENT);
        }
        // A read of interrupts must not block an event loop; the module itself asks for O_RDWR
        // alone.
        check_flags(flags, libc::O_RDWR | libc::O_NONBLOCK)?;
        if std::mem::replace(&mut state.open, true) {
            return Err(libc::EBUSY);
        }
        let (bell, kernels) = UnixStream::pair().unwrap();
        bell.set_nonblocking(true).unwrap();
        (state.bell, state.masked) = (Some(kernels), u32::MAX);
        (state.pending, state.came, state.waited) = (0, 0, 0);
        let file = DevNodeFile { dev_node: self.clone(), bell };
        // SAFETY: the file has its descriptor until it is dropped.
        Ok(unsafe { Fd::owned_by(file.bell.as_raw_fd(), file) })
    }

    fn duplicate(&self, raw: c_int) -> Result<Fd, i32> {
        refused(&self.lock(), "fcntl(F_DUPFD_CLOEXEC)")?;
        Running.duplicate(raw)
    }

    /// No writer is under way; where ETIMEDOUT is refused, one is, and the time is over at once.
    /// That is no errno of ppoll(2).
    fn wait_readable(&self, _: &Fd, _: u32) -> Result<bool, i32> {
        match refused(&self.lock(), "ppoll(dma-buf)") {
            Err(libc::ETIMEDOUT) => Ok(false),
            answer => answer.map(|()| true),
        }
    }

    /// The registers, and each buffer at its own place, as the module has them.
    fn map(
        &self,
        file: &Fd,
        offset_bytes: u64,
        len_bytes: usize,
        call: &'static str,
    ) -> Result<MmapRaw, Error> {
        if file.owner::<DevNodeFile>().is_none() {
            return Running.map(file, offset_bytes, len_bytes, call);
        }
        let os = |errno| Error::Os { call, errno };
        let state = self.lock();
        refused(&state, call).map_err(os)?;
        let Ok(handle @ 1..) = u32::try_from(offset_bytes / HANDLE_STEP) else {
            self.window(offset_bytes, len_bytes as u64).map_err(os)?;
            let registers = duplicated(&self.registers).map_err(os)?;
            return Running.map(&registers, offset_bytes, len_bytes, call);
        };
        let own = state.buffer(handle).map_err(|_| os(libc::EINVAL))?;
        let inside = offset_bytes.is_multiple_of(HANDLE_STEP) && len_bytes as u64 <= own.len_bytes;
        if own.whose == Whose::Imported || !inside {
            return Err(os(libc::EINVAL));
        }
        Running.map(&duplicated(&own.file).map_err(os)?, 0, len_bytes, call)
    }

    unsafe fn ioctl(
        &self,
        file: &Fd,
        request: ioctl_num_type,
        argument: *mut c_void,
    ) -> Result<c_int, i32> {
        assert!(file.owner::<DevNodeFile>().is_some(), "a contigo device's call");
        // SAFETY: the caller's promise.
        let request = unsafe { Request::of(request, argument) }?;
        if let Request::Wait(wait) = request {
            wait.interrupts = self.wait(file, wait.interrupts, wait.timeout_us)?;
            return Ok(0);
        }
        while matches!(request, Request::SetEventFd(_)) && self.held.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut state = self.lock();
        refused(&state, request.name())?;
        match request {
            Request::GetInfo(info) => {
                if info.argsz < 40 {
                    return Err(libc::EINVAL);
                }
                *info = self.info(&state);
            }
            Request::SetDmaBits(bits) => {
                if !state.imports.is_empty() {
                    return Err(libc::EBUSY);
                }
                if !(32..=64).contains(&bits) {
                    return Err(libc::EINVAL);
                }
                state.log.push(Event::DmaBits(bits));
            }
            Request::Alloc(alloc) => self.alloc(&mut state, alloc)?,
            Request::Export(export) => {
                let own = state.buffer(export.handle)?;
                match own.whose {
                    Whose::Imported => return Err(libc::EINVAL),
                    Whose::Allocated { coherent: true } => return Err(libc::EOPNOTSUPP),
                    Whose::Allocated { coherent: false } => {
                        export.fd = borrowed(own.file.as_raw_fd())?.into_raw_fd();
                    }
                }
                state.log.push(Event::Exported(export.handle));
            }
            Request::Import(import) => {
                if import.flags != 0 {
                    return Err(libc::EINVAL);
                }
                let file = borrowed(import.fd)?;
                let facts = file.metadata().unwrap();
                let is_it = |held: &&Imported| held.file.metadata().unwrap().ino() == facts.ino();
                if let Some(held) = state.imports.iter().chain(&state.kept).find(is_it) {
                    let is_import = held.whose == Whose::Imported;
                    return Err(if is_import { libc::EBUSY } else { libc::EINVAL });
                }
                let len_bytes = facts.len();
                let (handle, addr) = self.room(&mut state, len_bytes)?;
                let imported = Imported { whose: Whose::Imported, handle, addr, len_bytes, file };
                (import.handle, import.addr, import.len_bytes) = (handle, addr, len_bytes);
                import.segments = self.runs(&imported).len().try_into().map_err(|_| libc::E2BIG)?;
                state.imports.push(imported);
                state.log.push(Event::Imported { handle, addr, len_bytes });
            }
            Request::GetSegments(ask, room) => {
                let (mut start, mut some) = (0, 0);
                for SegmentAt { addr, len_bytes } in self.runs(state.buffer(ask.handle)?) {
                    let into = ask.offset_bytes.wrapping_sub(start);
                    if into < len_bytes {
                        room[0] = SegmentAt { addr: addr + into, len_bytes: len_bytes - into };
                        some = 1;
                        break;
                    }
                    start += len_bytes;
                }
                ask.count = self.config.more_segments.wrapping_add(some);
            }
            Request::Release(handle) => {
                state.buffer(handle)?;
                state.imports.retain(|import| import.handle != handle);
                state.log.push(Event::Released(handle));
            }
            Request::Sync(ranges) => {
                state.sync_calls += 1;
                let events: Result<Vec<_>, _> =
                    ranges.iter().map(|range| synced(&state, range)).collect();
                state.log.extend(events?);
            }
            Request::Arm(steps) => {
                armable(steps, self.config.windows)?;
                state.armed = steps.to_vec();
                state.log.push(Event::Armed(steps.to_vec()));
            }
            Request::Unmask(interrupts) => {
                if interrupts >> self.config.interrupts != 0 {
                    return Err(libc::EINVAL);
                }
                state.masked &= !interrupts;
                state.log.push(Event::Unmasked(interrupts));
                state.ring();
            }
            Request::SetEventFd(&EventFd { interrupt, fd }) => {
                if interrupt >= self.config.interrupts {
                    return Err(libc::EINVAL);
                }
                // It takes the place of the one before.
                state.events.retain(|(of, _)| *of != interrupt);
                state.events.push((interrupt, borrowed(fd)?));
            }
            Request::Reset => {
                if !self.config.can_reset {
                    return Err(libc::EOPNOTSUPP);
                }
                state.kept.clear();
                state.log.push(Event::Reset);
            }
            Request::Wait(_) => return Err(libc::ENOTTY),
        }
        Ok(0)
    }
}

impl FakeDevNode {
    /// `contigo_registers_mmap`'s checks: a mapping is inside one window, which can be mapped.
    fn window(&self, offset_bytes: u64, len_bytes: u64) -> Result<(), i32> {
        let (number, start) = (offset_bytes / WINDOW_STEP, offset_bytes % WINDOW_STEP);
        let end = start.checked_add(len_bytes).ok_or(libc::EINVAL)?;
        // A mapping is of whole pages, and so is its bound.
        let is_inside = end <= WINDOW_BYTES.next_multiple_of(page_bytes());
        if number >= self.config.windows.into() || !is_inside {
            return Err(libc::EINVAL);
        }
        if self.config.hidden >> number & 1 == 0 { Ok(()) } else { Err(libc::EACCES) }
    }

    /// The folder that lists the module's devices.
    fn class(&self) -> Result<Fd, i32> {
        let folder = tempfile::tempdir().map_err(|_| libc::ENOENT)?;
        File::create(folder.path().join(self.config.name)).map_err(|_| libc::ENOENT)?;
        let file = File::open(folder.path()).map_err(|_| libc::ENOENT)?;
        // SAFETY: the file has its descriptor until it is dropped.
        Ok(unsafe { Fd::owned_by(file.as_raw_fd(), (file, folder)) })
    }

    /// A handle for one more buffer of so many bytes, and its address.
    fn room(&self, state: &mut State, len_bytes: u64) -> Result<(u32, u64), i32> {
        let held = || state.imports.iter().chain(&state.kept);
        if held().count() == MAX_BUFFERS as usize {
            return Err(libc::ENOSPC);
        }
        if held().map(|import| import.len_bytes).sum::<u64>() + len_bytes > self.config.max_bytes {
            return Err(libc::EDQUOT);
        }
        let offset = if self.config.translated { OFFSET } else { 0 };
        let addr = FIRST_ADDR + u64::from(state.imported) * STEP + offset;
        state.imported += 1;
        Ok((state.imported, addr))
    }

    fn alloc(&self, state: &mut State, alloc: &mut Alloc) -> Result<(), i32> {
        let len_bytes = alloc.len_bytes;
        if alloc.flags & !ALLOC_COHERENT != 0
            || len_bytes == 0
            || !len_bytes.is_multiple_of(page_bytes())
        {
            return Err(libc::EINVAL);
        }
        let (handle, addr) = self.room(state, len_bytes)?;
        let file = File::from(memfd_create("contigo-memory", MFdFlags::MFD_CLOEXEC).unwrap());
        file.set_len(len_bytes).map_err(|_| libc::ENOMEM)?;
        let coherent = alloc.flags & ALLOC_COHERENT != 0;
        (alloc.handle, alloc.addr) = (handle, addr);
        alloc.mmap_offset = u64::from(handle) * HANDLE_STEP + self.config.more_offset;
        let whose = Whose::Allocated { coherent };
        state.imports.push(Imported { whose, handle, addr, len_bytes, file });
        state.log.push(Event::Allocated { handle, addr, len_bytes, coherent });
        Ok(())
    }

    fn info(&self, state: &State) -> Info {
        let DevNodeConfig { coherent, translated, can_reset, .. } = self.config;
        let armed = !state.armed.is_empty();
        let flags = [
            (coherent, INFO_COHERENT),
            (translated, INFO_TRANSLATED),
            (can_reset, INFO_RESET),
            (armed, INFO_ARMED),
        ];
        let count = |list: &[Imported]| u32::try_from(list.len()).unwrap_or(u32::MAX);
        let mut info = Info {
            argsz: self.config.argsz,
            flags: flags.into_iter().filter(|(on, _)| *on).map(|(_, flag)| flag).sum(),
            dma_bits: 32,
            buffers: count(&state.imports),
            quarantined: count(&state.kept),
            interrupts: self.config.interrupts,
            granule_bytes: self.config.granule_bytes,
            quarantined_bytes: state.kept.iter().map(|import| import.len_bytes).sum(),
            ..Info::default()
        };
        for (number, window) in (0..self.config.windows).zip(&mut info.window) {
            let mmap = if self.config.hidden & 1 << number == 0 { WINDOW_MMAP } else { 0 };
            let mmap_offset = if self.config.overlapping { 0 } else { at(number) };
            let flags = WINDOW_STOP | mmap;
            *window = Window { len_bytes: WINDOW_BYTES, mmap_offset, flags, reserved: 0 };
        }
        info
    }
}

/// The file of a test's descriptor.
fn borrowed(fd: i32) -> Result<File, i32> {
    // SAFETY: it is open while the runtime calls; a wrong one is refused by the kernel.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    fd.try_clone_to_owned().map(File::from).map_err(|_| libc::EBADF)
}

/// One more descriptor of `file`.
fn duplicated(file: &File) -> Result<Fd, i32> {
    let file = file.try_clone().map_err(|error| error.raw_os_error().unwrap_or(libc::EMFILE))?;
    // SAFETY: the file has its descriptor until it is dropped.
    Ok(unsafe { Fd::owned_by(file.as_raw_fd(), file) })
}

/// `contigo_sync`'s checks.
fn synced(state: &State, range: &SyncRange) -> Result<Event, i32> {
    let import = state.buffer(range.handle)?;
    let end = range.offset_bytes.checked_add(range.len_bytes).ok_or(libc::EINVAL)?;
    if range.len_bytes == 0 || end > import.len_bytes || ![1, 2].contains(&range.flags) {
        return Err(libc::EINVAL);
    }
    let (handle, start) = (range.handle, range.offset_bytes);
    Ok(Event::Synced { handle, for_cpu: range.flags == 1, start, end })
}

/// `contigo_stop_check`'s checks, for windows of 4 KiB.
fn armable(steps: &[Step], windows: u32) -> Result<(), i32> {
    if steps.len() > MAX_STEPS {
        return Err(libc::E2BIG);
    }
    let (mut after_else, mut after_write) = (true, false);
    for step in steps {
        let is_poll = [STEP_POLL, STEP_POLL_NOT].contains(&step.kind);
        let is_else = *step == Step { kind: STEP_ELSE, ..Step::default() };
        let well_made = if is_else {
            !after_else && !after_write
        } else {
            (is_poll || step.kind == STEP_WRITE && step.timeout_us == 0)
                && step.mask != 0
                && step.value & !step.mask == 0
        };
        if !well_made {
            return Err(libc::EINVAL);
        }
        let is_there = step.window < windows
            && u64::from(step.offset_bytes) < WINDOW_BYTES
            && step.offset_bytes.is_multiple_of(4);
        if !is_else && !is_there {
            return Err(libc::ENXIO);
        }
        (after_else, after_write) = (is_else, step.kind == STEP_WRITE);
    }
    let polled: u64 = steps.iter().map(|step| u64::from(step.timeout_us)).sum();
    let unended = (after_else || after_write) && !steps.is_empty();
    if polled > MAX_POLL_US || unended { Err(libc::EINVAL) } else { Ok(()) }
}
