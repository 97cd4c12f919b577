#![allow(unsafe_code, reason = "a backend, and an object of the driver over its bytes")]
//! Memory of another backend as a device's of OpenCL.

use super::OpenClGpu;
use super::error::check;
use super::event::{Event, flush};
use super::late::HAND_OVER_LIMIT;
use super::object::{Buffer, Later, SubBuffer};
use crate::Pages;
use cl3::command_queue::{enqueue_map_buffer, enqueue_unmap_mem_object, enqueue_write_buffer};
use cl3::memory::{
    CL_MAP_READ, CL_MEM_READ_WRITE, CL_MEM_USE_HOST_PTR, create_buffer, release_mem_object,
};
use cl3::types::CL_FALSE;
use contigo::hw::poll_until;
use contigo::linux::Spin;
use contigo::mem::{Api, Handle, Holder, Mapping, SyncScope, WrongAccesses};
use contigo::types::{BaseAddr, Refused};
use contigo::{Backend, DevAddr, Direction, Error, Result};
use core::mem::ManuallyDrop;
use core::ops::Range;
use core::ptr::NonNull;
use core::time::Duration;
use core::{fmt, ptr};

/// Memory of another backend, as a device's of OpenCL: one `cl_mem` over its own bytes
/// (`CL_MEM_USE_HOST_PTR`). CPU and device have them in turn, and each hand-over notifies
/// the driver.
///
/// **Owner.** The backend belongs to this value until it is dropped. It is dropped once the driver
/// has said that it has done with the bytes; else it is leaked. That is waited for 100 ms.
/// Memory of [`allocate`](OpenClMemory::allocate) is freed later, when the driver has done with it.
///
/// **Leaks.** It is leaked in a child of fork, and beside a kernel that does not end. So it is
/// while a transfer of its bytes is late, and once a transfer of its device has failed.
///
/// **Alignment.** The bytes begin and end at multiples of [`OpenClGpu::align`], which is a region's
/// line then.
///
/// ```no_run
/// use contigo::Region;
/// use contigo_gpu::opencl::{OpenClGpu, OpenClMemory};
/// let gpu = OpenClGpu::open(0)?;
/// let region = Region::new(OpenClMemory::allocate(gpu, 1 << 20)?)?;
/// let mut frame = region.alloc(4096, gpu.align())?;
/// frame.view_mut::<u8>()?.fill(7);
/// # Ok::<(), contigo::Error>(())
/// ```
///
/// # References
/// OpenCL 3.0: 5.2.1 (`clCreateBuffer`, `clCreateSubBuffer`), 5.2.2 (`clEnqueueWriteBuffer`, its
/// notes), 5.2.4 (`clEnqueueMapBuffer`), 5.5.1 (`clSetMemObjectDestructorCallback`), 5.5.3 (what is
/// mapped).
pub struct OpenClMemory<B: Backend = Pages> {
    gpu: &'static OpenClGpu,
    buffer: Buffer,
    /// The backend's bytes, at the addresses that they have for the device.
    mapping: Mapping,
    backend: ManuallyDrop<B>,
    /// The backend as something that is dropped at any later time; one that may borrow is not.
    at_any_time: Option<fn(B) -> Box<dyn Send>>,
}

/// How long the driver may take to let go of memory that no command uses.
const DROP_LIMIT: Duration = Duration::from_millis(100);

impl OpenClMemory<Pages> {
    /// Allocates `len_bytes`, rounded up to whole pages of 64 KiB, zeroed.
    ///
    /// # Errors
    /// As [`Pages::new`] and [`import`](Self::import).
    pub fn allocate(gpu: &'static OpenClGpu, len_bytes: usize) -> Result<Self> {
        let mut this = Self::import(gpu, Pages::new(len_bytes)?)?;
        this.at_any_time = Some(|pages| Box::new(pages));
        Ok(this)
    }
}

impl<B: Backend> OpenClMemory<B> {
    /// Gives all of `backend`'s block to the device: a dma-buf's pages, huge pages, a board's.
    /// The runtime no longer maintains that backend's caches: that is the work of OpenCL's driver.
    ///
    /// # Errors
    /// The backend comes back with
    /// - [`Error::Misaligned`]: its bytes begin at no multiple of [`OpenClGpu::align`].
    /// - [`Error::BlockSize`]: it has no bytes, or no whole number of such.
    /// - [`Error::Argument`]: it is longer than the device takes.
    /// - [`Error::Gpu`] with `clCreateBuffer`; [`Error::TooMany`]; [`Error::Contended`].
    pub fn import(gpu: &'static OpenClGpu, backend: B) -> Result<Self, Refused<B>> {
        match Self::create(gpu, &backend.mapping()) {
            Ok((buffer, mapping)) => Ok(Self {
                gpu,
                buffer,
                mapping,
                backend: ManuallyDrop::new(backend),
                at_any_time: None,
            }),
            Err(error) => Err(Refused::new(error, backend)),
        }
    }

    /// The object over the bytes of `mapping`, and where the device finds them.
    fn create(gpu: &OpenClGpu, mapping: &Mapping) -> Result<(Buffer, Mapping)> {
        let (align, len_bytes, max) = (gpu.align(), mapping.len_bytes, gpu.facts().max_alloc_bytes);
        let (addr, align_bytes) = (mapping.cpu.addr().get() as u64, align.bytes());
        if !align.divides(addr) {
            return Err(Error::Misaligned { addr, align_bytes });
        }
        if len_bytes == 0 || !align.divides(len_bytes as u64) {
            return Err(Error::BlockSize {
                len_bytes,
                need_bytes: align_bytes,
                line_bytes: align_bytes,
            });
        }
        if len_bytes as u64 > max {
            let (name, value, multiple_of) =
                ("the length of a block", len_bytes as u64, align_bytes as u64);
            return Err(Error::Argument { name, value, min: multiple_of, max, multiple_of });
        }
        let (flags, first) = (CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, mapping.cpu.as_ptr().cast());
        // SAFETY: so many bytes are there until the backend is dropped (`Backend`, 2), which comes
        // after the driver has let go of them: `drop`.
        let raw = check("clCreateBuffer", unsafe {
            create_buffer(gpu.context, flags, len_bytes, first)
        })?;
        match gpu.objects.add(Buffer(raw), len_bytes) {
            Ok(base) => {
                let scope = SyncScope::Range { granule_bytes: align_bytes };
                let (base, bus) = (BaseAddr::Dev(base), gpu.bus());
                Ok((
                    Buffer(raw),
                    Mapping { cpu: mapping.cpu, len_bytes, base, bus, scope, coherent: None },
                ))
            }
            Err(error) => {
                // SAFETY: it is one, released once, and had no command.
                let _ = unsafe { release_mem_object(raw) };
                Err(error)
            }
        }
    }

    /// The part that holds `range`: it begins where a sub-buffer may begin. Commands name the exact
    /// bytes in it.
    fn part(&self, range: &Range<usize>) -> Result<(SubBuffer, usize)> {
        let (align, len_bytes) = (self.gpu.align(), self.mapping.len_bytes);
        let (start, end) = (range.start, range.end);
        if start >= end || end > len_bytes {
            return Err(Error::OutOfRange { start, end, len_bytes });
        }
        let origin = align.round_down(start);
        let until = align.round_up(end).unwrap_or(len_bytes);
        // SAFETY: the buffer is one until `drop`.
        unsafe { SubBuffer::new(self.buffer, origin, until - origin) }
            .map(|part| (part, start - origin))
    }

    /// The CPU's address of byte `offset`, which is in the block.
    fn at(&self, offset: usize) -> NonNull<u8> {
        // SAFETY: `part` has found it inside.
        unsafe { self.mapping.cpu.add(offset) }
    }

    /// Declares the CPU's bytes the latest ones, behind what is in the queue. After an error
    /// nothing was given to the device.
    fn declare(&self, range: &Range<usize>) -> Result<Event> {
        self.gpu.takes_commands()?;
        let (part, skip) = self.part(range)?;
        let (queue, from) = (self.gpu.transfers, self.at(range.start).as_ptr().cast_const().cast());
        // SAFETY: the bytes are there. Nothing changes them before the end of this command: the
        // hand-over waits for it. Where it is late, they stay the device's (`sync_for_device`).
        let written = unsafe {
            enqueue_write_buffer(
                queue,
                part.raw(),
                CL_FALSE,
                skip,
                range.len(),
                from,
                0,
                ptr::null(),
            )
        };
        Event::of("clEnqueueWriteBuffer", written)
    }

    /// Waits for the end of a transfer of `range`, and keeps in mind where it is late. One that
    /// failed, or does not say how it ended, loses the device: its bytes may be in use.
    fn must_end(&self, range: &Range<usize>, event: Event, limit: Duration) -> Result<()> {
        event.must_end(limit).or_else(|error| {
            let known = match error {
                Error::Timeout { .. } => self.gpu.late.add((self.buffer, range.clone()), event),
                _ => Err(error).inspect_err(|error| self.gpu.late.lose_track(error)),
            };
            known.inspect_err(|error| self.gpu.lose(error))?;
            Err(error)
        })
    }

    /// Nothing was given to the device. The error reports it, and the runtime gives all operands of
    /// the job back to the CPU. An operand before this one may have a transfer that is late. While
    /// there is one, the answer is `Ok`, and the device is lost: the job is refused at its launch,
    /// and keeps its operands.
    fn refused(&self, error: Error) -> Result<()> {
        let mut empty = Ok(false);
        let waited = poll_until(&Spin, HAND_OVER_LIMIT, |_| {
            empty = self.gpu.late.is_empty();
            empty != Ok(false)
        });
        if waited.is_ok() && empty == Ok(true) {
            return Err(error);
        }
        self.gpu.lose(&error);
        Ok(())
    }

    /// Waits until the driver says that the bytes can be freed, if that may be waited for. The
    /// answer is something where it has not said so yet.
    fn give_back(&self) -> Result<Option<Later>> {
        // The process first: in a child of fork nothing of the driver is called.
        if self.gpu.keeps_all() || self.gpu.late.uses(self.buffer, 0..self.mapping.len_bytes)? {
            return Err(Error::WillNotStop {
                device: "a command of this device",
                status: 0,
                waited_us: 0,
            });
        }
        self.gpu.objects.remove(DevAddr(self.mapping.base.raw()))?;
        // SAFETY: the buffer is one, and released once, here.
        unsafe { self.buffer.release(DROP_LIMIT) }
    }
}

impl<B: Backend> Drop for OpenClMemory<B> {
    /// Frees the memory; or leaks it, with the backend. So where a command may still use the bytes,
    /// and where the driver does not say that it has let go of them.
    fn drop(&mut self) {
        match (self.give_back(), self.at_any_time) {
            // SAFETY: once, and the driver has let go of the bytes.
            (Ok(None), _) => unsafe { ManuallyDrop::drop(&mut self.backend) },
            (Ok(Some(later)), Some(at_any_time)) => {
                // SAFETY: once; it is dropped when the driver has let go of the bytes.
                let backend = unsafe { ManuallyDrop::take(&mut self.backend) };
                later.free(at_any_time(backend));
            }
            (Ok(Some(_)) | Err(_), _) => {}
        }
    }
}

// SAFETY: 1, 2. The bytes are the backend's, which lives as long as this value or longer; the
// numbers beside them do not change. 3. Every command names the bytes of `range` alone. Nothing
// stays mapped, so that no later command brings other bytes with it. 4. The address is one of the
// context's table, in which no other object has it. 5. The handle is the buffer's, over all of the
// block. 6. `sync_for_cpu` returns `Ok` once its commands have ended, and none is late of these
// bytes. So does `sync_for_device`, or the kernel that the bytes are for waits for the rest
// (`Launches::begin`).
unsafe impl<B: Backend> Backend for OpenClMemory<B> {
    fn name(&self) -> &'static str {
        "opencl"
    }

    fn mapping(&self) -> Mapping {
        self.mapping
    }

    /// Declares the CPU's bytes the latest ones, by a write from where they are: OpenCL allows that
    /// for these very bytes (5.2.2, the notes on `CL_MEM_USE_HOST_PTR`).
    ///
    /// Once the write was given, the answer is `Ok`: after an error the runtime would give the
    /// bytes back to the CPU while the write may use them. A write that is late is waited for by
    /// the kernel. After one that failed no kernel starts.
    unsafe fn sync_for_device(&self, range: Range<usize>, _: Direction) -> Result<()> {
        self.gpu.must_be_ours()?;
        let written = match self.declare(&range) {
            Ok(written) => written,
            Err(error) => return self.refused(error),
        };
        let flushed = flush(self.gpu.transfers);
        // An error is kept in mind.
        let _ = self.must_end(
            &range,
            written,
            if flushed.is_ok() { HAND_OVER_LIMIT } else { Duration::ZERO },
        );
        let _ = flushed.inspect_err(|error| self.gpu.lose(error));
        Ok(())
    }

    /// Maps the range to read it, and unmaps it: between the two the driver brings the latest bytes
    /// (OpenCL 3.0, 5.2.4). An error leaves the bytes with the device.
    unsafe fn sync_for_cpu(&self, range: Range<usize>, _: Direction) -> Result<()> {
        self.gpu.must_be_ours()?;
        let (part, skip) = self.part(&range)?;
        let (queue, expected, mut at) = (self.gpu.transfers, self.at(range.start), ptr::null_mut());
        // SAFETY: the part is one, the bytes are inside, and no device uses them (this function's
        // contract). The pointer is a reference. It does not wait: `CL_FALSE`.
        let mapped = unsafe {
            enqueue_map_buffer(
                queue,
                part.raw(),
                CL_FALSE,
                CL_MAP_READ,
                skip,
                range.len(),
                &mut at,
                0,
                ptr::null(),
            )
        };
        let mapped = Event::of("clEnqueueMapBuffer", mapped)?;
        // SAFETY: the pointer is what the mapping of this part answered with, and is unmapped once.
        let unmapped = unsafe { enqueue_unmap_mem_object(queue, part.raw(), at, 0, ptr::null()) };
        let given = Event::of("clEnqueueUnmapMemObject", unmapped)
            .and_then(|event| flush(queue).map(|()| event));
        // Not these bytes: the driver has a copy of them, which is no buffer of ours.
        let same = at == expected.as_ptr().cast();
        let elsewhere = Error::Unexpected { name: "clEnqueueMapBuffer", value: at.addr() as u64 };
        // A mapping that was not unmapped, or a queue that was not flushed.
        let given = given.inspect_err(|error| self.gpu.lose(error));
        let unmapped = given.map_err(|error| if same { error } else { elsewhere })?;
        let ended = self.must_end(&range, mapped, HAND_OVER_LIMIT);
        let limit = if ended.is_ok() { HAND_OVER_LIMIT } else { Duration::ZERO };
        // Each is looked at: each may be late.
        let unmapped = self.must_end(&range, unmapped, limit);
        ended.and(unmapped)?;
        if !same {
            return Err(elsewhere);
        }
        self.settled(range)
    }

    /// A transfer that is late may still read the bytes, so that no code may change them.
    fn settled(&self, range: Range<usize>) -> Result<()> {
        self.gpu.must_be_ours()?;
        match self.gpu.late.uses(self.buffer, range)? {
            true => Err(Error::Timeout {
                timeout_us: u32::try_from(HAND_OVER_LIMIT.as_micros()).unwrap_or(u32::MAX),
            }),
            false => Ok(()),
        }
    }

    fn handle(&self) -> Option<Handle> {
        Some(Handle {
            api: Api::OpenCl,
            raw: self.buffer.0.addr() as u64,
            device_id: self.gpu.facts().ordinal,
        })
    }

    fn held_by(&self, range: Range<usize>, holder: Holder<'_>) {
        self.backend.held_by(range, holder);
    }

    fn wrong_accesses(&self) -> Result<WrongAccesses> {
        self.backend.wrong_accesses()
    }
}

// SAFETY: the pointers are the backend's, which is `Send`, and the driver's, whose functions may be
// called on any thread.
unsafe impl<B: Backend> Send for OpenClMemory<B> {}
// SAFETY: as for `Send`; the fields do not change.
unsafe impl<B: Backend> Sync for OpenClMemory<B> {}

impl<B: Backend> fmt::Debug for OpenClMemory<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenClMemory")
            .field("mapping", &self.mapping)
            .field("backend", &self.backend.name())
            .finish_non_exhaustive()
    }
}
