//! Streams and events: what was queued happens in order, and only when a query or a synchronise
//! lets it.

use crate::{
    Function,
    codes::{Code, code},
    kernels::Kernel,
    memory::{Found, Memory, overlap, read_host, write_host},
    state::{Answer, Handle, Needs, State, lock},
};
use std::{
    collections::VecDeque,
    thread,
    time::{Duration, Instant},
};

/// What a kernel leaves in its output before it is done.
const SCRIBBLED: [u8; 16] = [0xEE; 16];

#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) context: Handle,
    /// Whether it waits for the NULL stream and the NULL stream for it.
    pub(crate) blocking: bool,
    /// Its handle is none any more; what was queued still happens.
    pub(crate) destroyed: bool,
    pub(crate) queue: VecDeque<Op>,
}

#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) context: Handle,
    /// The stream of its last record, and which record it is.
    pub(crate) recorded: Option<(Handle, u64)>,
}

/// Something queued.
#[derive(Debug)]
pub(crate) struct Op {
    /// Its place among all streams' operations.
    seq: u64,
    pub(crate) work: Work,
    polls_left: u32,
    lasts: Duration,
    started: Option<Instant>,
    hangs: bool,
    fails: Option<Code>,
}

#[derive(Debug)]
pub(crate) enum Work {
    Kernel {
        kernel: Kernel,
        module: Handle,
    },
    /// From one address of the context's to another.
    Within {
        dst: u64,
        src: u64,
        len: u64,
    },
    /// From pinned host memory, read when it happens.
    FromHost {
        dst: u64,
        src: usize,
        len: usize,
    },
    /// From bytes that were taken when it was queued.
    FromBytes {
        dst: u64,
        bytes: Vec<u8>,
    },
    ToHost {
        dst: usize,
        src: u64,
        len: usize,
        pinned: bool,
    },
    Fill {
        dst: u64,
        value: u8,
        len: u64,
    },
    Record,
}

impl Stream {
    pub(crate) const fn new(context: Handle, blocking: bool) -> Self {
        Self { context, blocking, destroyed: false, queue: VecDeque::new() }
    }
}

impl Work {
    /// The device addresses that it uses.
    fn device_ranges(&self) -> Vec<(u64, u64)> {
        match self {
            Self::Kernel { kernel, .. } => kernel.operands().iter().map(|operand| (operand.addr, operand.len)).collect(),
            Self::FromHost { dst, len, .. } => vec![(*dst, *len as u64)],
            Self::Within { dst, src, len } => vec![(*dst, *len), (*src, *len)],
            Self::FromBytes { dst, bytes } => vec![(*dst, bytes.len() as u64)],
            Self::ToHost { src, len, .. } => vec![(*src, *len as u64)],
            Self::Fill { dst, len, .. } => vec![(*dst, *len)],
            Self::Record => Vec::new(),
        }
    }

    /// The host addresses that it uses.
    const fn host_range(&self) -> Option<(usize, usize)> {
        match self {
            Self::FromHost { src, len, .. } => Some((*src, *len)),
            Self::ToHost { dst, len, .. } => Some((*dst, *len)),
            _ => None,
        }
    }
}

impl State {
    /// Queues `work` at the end of a stream that is alive.
    pub(crate) fn push(&mut self, stream: Handle, work: Work) -> Answer<u64> {
        self.next_seq += 1;
        let seq = self.next_seq;
        let takes_time = !matches!(work, Work::Record);
        let (mut hangs, mut fails) = (false, None);
        let context = self.streams.get(&stream).ok_or(code::INVALID_HANDLE)?.context;
        if let Work::Kernel { kernel, .. } = &work {
            self.counters.launches += 1;
            let (launch, late) = (self.counters.launches, self.config.late_error);
            hangs = launch == u64::from(self.config.hang_launch);
            if launch == u64::from(late.launch) {
                fails = Some(late.code);
            }
            // What it is going to fail with, without the rest: another call may report it first.
            let doomed = fails.or_else(|| kernel.check(self, context).err());
            if let Some(code) = doomed
                && let Ok(context) = self.contexts.alive(context)
            {
                context.late.get_or_insert((code, late.after_calls));
            }
        }
        let polls_left = if takes_time { self.config.kernel_polls } else { 0 };
        let lasts = Duration::from_micros(if takes_time { self.config.kernel_us } else { 0 });
        let op = Op { seq, work, polls_left, lasts, started: None, hangs, fails };
        let goes_on = matches!(&op.work, Work::Kernel { kernel, .. } if !kernel.is_known());
        self.streams.get_mut(&stream).ok_or(code::INVALID_HANDLE)?.queue.push_back(op);
        if goes_on {
            let epoch = self.epoch;
            thread::spawn(move || by_itself(epoch, stream, seq));
        }
        Ok(seq)
    }

    /// The stream that a caller means, which is one of the current context's: NULL and
    /// CU_STREAM_LEGACY are its own.
    pub(crate) fn stream(&self, handle: Handle, current: Handle) -> Answer<Handle> {
        if handle <= 1 {
            return self.contexts.get(current).map(|context| context.null).ok_or(code::INVALID_CONTEXT);
        }
        let known = self.streams.get(&handle).is_some_and(|stream| !stream.destroyed && stream.context == current);
        if known && !self.contexts.nulls().any(|null| null == handle) { Ok(handle) } else { Err(code::INVALID_HANDLE) }
    }

    /// Lets the stream go on, up to and with operation `until`: as far as one query does, or as far
    /// as time allows. Whether all of it has happened.
    pub(crate) fn advance(&mut self, stream: Handle, until: u64, polled: bool) -> Answer<bool> {
        loop {
            let Some(own) = self.streams.get(&stream) else { return Ok(true) };
            let (context, blocking) = (own.context, own.blocking);
            let Some(seq) = own.queue.front().map(|op| op.seq).filter(|seq| *seq <= until) else { return Ok(true) };
            if blocking {
                for other in self.before(stream, context, seq) {
                    if !self.advance(other, seq, polled)? {
                        return Ok(false);
                    }
                }
            }
            let Some(op) = self.streams.get_mut(&stream).and_then(|own| own.queue.front_mut()) else { return Ok(true) };
            let started = *op.started.get_or_insert_with(Instant::now);
            let waits = polled && op.polls_left > 0;
            if waits {
                op.polls_left -= 1;
            }
            if waits || op.hangs || started.elapsed() < op.lasts {
                self.scribble(stream, context);
                return Ok(false);
            }
            let Some(mut op) = self.streams.get_mut(&stream).and_then(|own| own.queue.pop_front()) else { return Ok(true) };
            match op.fails.map_or_else(|| self.perform(context, &mut op.work), Err) {
                Ok(true) => {}
                Ok(false) => {
                    if let Some(own) = self.streams.get_mut(&stream) {
                        own.queue.push_front(op);
                    }
                    return Ok(false);
                }
                Err(code) => {
                    self.fail(context, code);
                    return Err(code);
                }
            }
            if matches!(op.work, Work::Kernel { .. }) {
                self.counters.kernels_done += 1;
            }
        }
    }

    /// What a kernel that is not done writes meanwhile.
    fn scribble(&mut self, stream: Handle, context: Handle) {
        let head = self.streams.get(&stream).and_then(|own| own.queue.front()).map(|op| &op.work);
        if let Some(Work::Kernel { kernel, .. }) = head
            && self.config.garbage_meanwhile
            && let Some(output) = kernel.output()
        {
            let len = usize::try_from(output.len).unwrap_or(usize::MAX).min(SCRIBBLED.len());
            // Out of its memory it fails when it is done.
            let _ = self.write(context, output.addr, SCRIBBLED.get(..len).unwrap_or_default());
        }
    }

    /// Everything queued happens, and nobody is told.
    pub(crate) fn let_time_pass(&mut self) {
        let streams: Vec<_> = self.streams.keys().copied().collect();
        for stream in streams {
            // An error stays in its context, for the next call there.
            let _ = self.advance(stream, u64::MAX, false);
        }
    }

    /// The streams whose earlier operations come before operation `seq` of a blocking stream: the
    /// NULL stream's for every other, and every other's for the NULL stream.
    fn before(&self, stream: Handle, context: Handle, seq: u64) -> Vec<Handle> {
        let null = self.contexts.get(context).map(|context| context.null);
        let earlier = |own: &Stream| own.queue.front().is_some_and(|op| op.seq < seq);
        let others =
            self.streams.iter().filter(|(handle, own)| own.context == context && own.blocking && **handle != stream && earlier(own));
        others.map(|(handle, _)| *handle).filter(|handle| (Some(stream) == null) != (Some(*handle) == null)).collect()
    }

    /// Whether it is done: a kernel that is to go on later is not.
    fn perform(&mut self, context: Handle, work: &mut Work) -> Answer<bool> {
        match work {
            Work::Kernel { kernel, .. } => return kernel.run(self, context),
            Work::FromHost { dst, src, len } => {
                self.memory.host_block(*src, *len).ok_or(code::ILLEGAL_ADDRESS)?;
                self.write(context, *dst, &read_host(*src, *len))?;
            }
            Work::Within { dst, src, len } => self.write(context, *dst, &self.read(context, *src, *len)?)?,
            Work::FromBytes { dst, bytes } => self.write(context, *dst, bytes)?,
            Work::ToHost { dst, src, len, pinned } => {
                if *pinned {
                    self.memory.host_block(*dst, *len).ok_or(code::ILLEGAL_ADDRESS)?;
                }
                write_host(*dst, &self.read(context, *src, *len as u64)?);
            }
            Work::Fill { dst, value, len } => self.fill(context, *dst, *value, *len)?,
            Work::Record => {}
        }
        Ok(true)
    }

    /// Whether pinned memory of this context is reached from that one.
    fn reaches(&self, context: Handle) -> impl Fn(&crate::memory::HostBlock) -> bool + use<> {
        let unified = self.device_of(context).is_ok_and(|device| device.unified_addressing);
        let mapped = self.device_of(context).is_ok_and(|device| device.can_map_host_memory);
        let flag_needed = self.config.mapped_flag_needed || !unified;
        move |block| {
            mapped
                && (!flag_needed || block.flags & crate::memory::DEVICEMAP != 0)
                && (unified || block.context == context || block.flags & crate::memory::PORTABLE != 0)
        }
    }

    /// The block that a device address is in, of those that this context reaches: its first
    /// address, and its length.
    pub(crate) fn block(&self, context: Handle, addr: u64) -> Option<(u64, u64)> {
        self.memory.find(addr, 1, context, &self.reaches(context)).map(Found::range)
    }

    /// Whether a device address and all `len` bytes behind it are memory of this context's.
    pub(crate) fn check_range(&self, context: Handle, addr: u64, len: u64) -> bool {
        len == 0 || self.memory.find(addr, len, context, &self.reaches(context)).is_some()
    }

    pub(crate) fn read(&self, context: Handle, addr: u64, len: u64) -> Answer<Vec<u8>> {
        if len == 0 {
            return Ok(Vec::new());
        }
        let found = self.memory.find(addr, len, context, &self.reaches(context)).ok_or(code::ILLEGAL_ADDRESS)?;
        Ok(Memory::read(found, addr, usize::try_from(len).map_err(|_| code::ILLEGAL_ADDRESS)?))
    }

    pub(crate) fn write(&mut self, context: Handle, addr: u64, bytes: &[u8]) -> Answer {
        let reaches = self.reaches(context);
        if bytes.is_empty() { Ok(()) } else { self.memory.write(addr, bytes, context, &reaches) }
    }

    pub(crate) fn fill(&mut self, context: Handle, addr: u64, value: u8, len: u64) -> Answer {
        if !self.check_range(context, addr, len) {
            return Err(code::ILLEGAL_ADDRESS);
        }
        self.write(context, addr, &vec![value; usize::try_from(len).map_err(|_| code::ILLEGAL_ADDRESS)?])
    }

    /// Whether something queued uses the device addresses, or the host addresses where there are
    /// any. It is counted.
    pub(crate) fn frees_under_a_kernel(&mut self, device: (u64, u64), host: Option<(usize, usize)>) -> bool {
        let ops = self.streams.values().flat_map(|stream| &stream.queue);
        let used = ops.map(|op| &op.work).any(|work| {
            let by_device = work.device_ranges().iter().any(|(addr, len)| overlap(*addr, *len, device.0, device.1));
            let by_host = work
                .host_range()
                .zip(host)
                .is_some_and(|((addr, len), (base, block_len))| overlap(addr as u64, len as u64, base as u64, block_len as u64));
            by_device || by_host
        });
        self.counters.freed_under_a_kernel += u64::from(used);
        used
    }

    /// Whether a kernel of the module is queued. It is counted.
    pub(crate) fn unloads_under_a_kernel(&mut self, module: Handle) {
        let mut ops = self.streams.values().flat_map(|stream| &stream.queue);
        let used = ops.any(|op| matches!(op.work, Work::Kernel { module: of, .. } if of == module));
        self.counters.freed_under_a_kernel += u64::from(used);
    }
}

/// So long a kernel goes on by itself: longer than any test waits for one.
const BY_ITSELF_MAX: Duration = Duration::from_secs(60);

/// A kernel that may wait for the CPU goes on although nobody asks for it, because the CPU may wait
/// for what it writes: operation `seq` of the stream, once it is the first there.
fn by_itself(epoch: u64, stream: Handle, seq: u64) {
    let since = Instant::now();
    while since.elapsed() < BY_ITSELF_MAX {
        thread::sleep(Duration::from_millis(1));
        let mut state = lock();
        let first = state.streams.get(&stream).and_then(|own| own.queue.front()).map(|op| op.seq);
        if state.epoch != epoch || first.is_none_or(|first| first > seq) {
            return;
        }
        if first == Some(seq) {
            // An error stays in its context, for the next call there.
            let _ = state.advance(stream, seq, false);
        }
    }
}

/// Blocks until `step` says that all has happened, without the lock between two steps, so that
/// other threads go on. `begin` is done once and says what to wait for.
pub(crate) fn wait<T>(
    function: Function,
    begin: impl FnOnce(&mut State, Handle) -> Answer<T>,
    step: impl Fn(&mut State, &T) -> Answer<bool>,
) -> Code {
    let since = Instant::now();
    let mut state = lock();
    let epoch = state.epoch;
    let awaited = match state.enter(function, Needs::Context).and_then(|context| begin(&mut state, context)) {
        Ok(awaited) => awaited,
        Err(code) => return state.leave(function, Err(code)),
    };
    loop {
        match step(&mut state, &awaited) {
            Ok(true) => return state.leave(function, Ok(())),
            Ok(false) => {}
            Err(code) => return state.leave(function, Err(code)),
        }
        if since.elapsed() >= Duration::from_micros(state.config.wait_bound_us) {
            state.counters.unended_waits += 1;
            return state.leave(function, Err(code::LAUNCH_TIMEOUT));
        }
        drop(state);
        thread::sleep(Duration::from_micros(50));
        state = lock();
        if state.epoch != epoch {
            return code::CONTEXT_IS_DESTROYED;
        }
    }
}

/// One step of a wait for a stream, up to and with `until`.
pub(crate) fn step(state: &mut State, (context, stream, until): &(Handle, Handle, u64)) -> Answer<bool> {
    let alive = state.contexts.alive(*context)?;
    if let Some(code) = alive.error {
        return Err(code);
    }
    if !state.streams.contains_key(stream) {
        return Err(code::CONTEXT_IS_DESTROYED);
    }
    state.advance(*stream, *until, false)
}
