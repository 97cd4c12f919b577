//! Streams and events: what was queued happens in order, and only when a query or a synchronise
//! lets it.

use crate::kernels::Kernel;
use crate::memory::{DEVICEMAP, Found, Memory, overlap, write_host};
use crate::state::{Answer, Handle, Needs, State, lock};
use crate::{Code, Function, code};
use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) context: Handle,
    /// Its handle is none any more; its queue still happens.
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
    Record,
}

impl Stream {
    pub(crate) const fn new(context: Handle) -> Self {
        Self { context, destroyed: false, queue: VecDeque::new() }
    }
}

impl Work {
    /// The device addresses that it uses.
    fn device_ranges(&self) -> Vec<(u64, u64)> {
        match self {
            Self::Kernel { kernel, .. } => kernel.blocks().iter().copied().collect(),
            Self::Within { dst, src, len } => vec![(*dst, *len), (*src, *len)],
            Self::Record => Vec::new(),
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
        if let Work::Kernel { .. } = &work {
            self.counters.launches += 1;
            let (launch, late) = (self.counters.launches, self.config.late_error);
            hangs = launch == u64::from(self.config.hang_launch);
            if launch == u64::from(late.launch) {
                fails = Some(late.code);
                // Another call may report it first.
                if let Ok(context) = self.contexts.alive(context) {
                    context.late.get_or_insert((late.code, late.after_calls));
                }
            }
        }
        let polls_left = if takes_time { self.config.kernel_polls } else { 0 };
        let lasts = Duration::from_micros(if takes_time { self.config.kernel_us } else { 0 });
        let op = Op { seq, work, polls_left, lasts, started: None, hangs, fails };
        let goes_on = matches!(&op.work, Work::Kernel { kernel, .. } if kernel.waits());
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
            return self
                .contexts
                .get(current)
                .map(|context| context.null)
                .ok_or(code::INVALID_CONTEXT);
        }
        let known = self
            .streams
            .get(&handle)
            .is_some_and(|stream| !stream.destroyed && stream.context == current);
        if known && !self.contexts.nulls().any(|null| null == handle) {
            Ok(handle)
        } else {
            Err(code::INVALID_HANDLE)
        }
    }

    /// Lets the stream go on, up to and with operation `until`: as far as one query does, or as far
    /// as time allows. Whether all of it has happened.
    pub(crate) fn advance(&mut self, stream: Handle, until: u64, polled: bool) -> Answer<bool> {
        loop {
            let Some(own) = self.streams.get(&stream) else { return Ok(true) };
            let context = own.context;
            if own.queue.front().is_none_or(|op| op.seq > until) {
                return Ok(true);
            }
            let Some(op) = self.streams.get_mut(&stream).and_then(|own| own.queue.front_mut())
            else {
                return Ok(true);
            };
            let started = *op.started.get_or_insert_with(Instant::now);
            let waits = polled && op.polls_left > 0;
            if waits {
                op.polls_left -= 1;
            }
            if waits || op.hangs || started.elapsed() < op.lasts {
                return Ok(false);
            }
            let Some(mut op) = self.streams.get_mut(&stream).and_then(|own| own.queue.pop_front())
            else {
                return Ok(true);
            };
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

    /// Whether it is done: a kernel that is to go on later is not.
    fn perform(&mut self, context: Handle, work: &mut Work) -> Answer<bool> {
        match work {
            Work::Kernel { kernel, .. } => return kernel.run(self, context),
            Work::Within { dst, src, len } => {
                self.write(context, *dst, &self.read(context, *src, *len)?)?
            }
            Work::Record => {}
        }
        Ok(true)
    }

    /// The block that has all `len` bytes from this device address, where this context reaches it:
    /// its own memory, and by unified addressing every context's pinned memory.
    fn find(&self, context: Handle, addr: u64, len: u64) -> Option<Found<'_>> {
        let reached = |found: &Found<'_>| match found {
            Found::Device(_, block) => block.context == context,
            Found::Host(block) => {
                block.flags & DEVICEMAP != 0
                    && self.device_of(context).is_ok_and(|device| device.can_map_host_memory)
            }
        };
        self.memory.find(addr, len).filter(reached)
    }

    /// The first address of the block that a device address is in, and its length.
    pub(crate) fn block(&self, context: Handle, addr: u64) -> Option<(u64, u64)> {
        self.find(context, addr, 1).map(Found::range)
    }

    /// Whether a device address and all `len` bytes behind it are memory of this context's.
    pub(crate) fn check_range(&self, context: Handle, addr: u64, len: u64) -> bool {
        len == 0 || self.find(context, addr, len).is_some()
    }

    pub(crate) fn read(&self, context: Handle, addr: u64, len: u64) -> Answer<Vec<u8>> {
        if len == 0 {
            return Ok(Vec::new());
        }
        let found = self.find(context, addr, len).ok_or(code::ILLEGAL_ADDRESS)?;
        Ok(Memory::read(found, addr, usize::try_from(len).map_err(|_| code::ILLEGAL_ADDRESS)?))
    }

    pub(crate) fn write(&mut self, context: Handle, addr: u64, bytes: &[u8]) -> Answer {
        if bytes.is_empty() {
            return Ok(());
        }
        let found = self.find(context, addr, bytes.len() as u64).ok_or(code::ILLEGAL_ADDRESS)?;
        let at = usize::try_from(addr - found.range().0).unwrap_or(usize::MAX);
        match found {
            Found::Host(block) => write_host(block.base + at, bytes),
            Found::Device(base, _) => self.memory.write_device(base, at, bytes),
        }
        Ok(())
    }

    /// Whether something queued uses these device addresses. It is counted.
    pub(crate) fn frees_under_a_kernel(&mut self, addr: u64, len: u64) -> bool {
        let ops = self.streams.values().flat_map(|stream| &stream.queue);
        let used = ops
            .flat_map(|op| op.work.device_ranges())
            .any(|(of, of_len)| overlap(of, of_len, addr, len));
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

/// How long a synchronise blocks at most. A driver would block for ever; the fake then answers
/// LAUNCH_TIMEOUT, which does not stay.
const WAIT_BOUND: Duration = Duration::from_secs(1);
/// So long a kernel goes on by itself: longer than any test waits for one.
const BY_ITSELF_MAX: Duration = Duration::from_secs(60);

/// A kernel that may wait for the CPU goes on without a call of the program, because the CPU may
/// wait for its writes. It is operation `seq` of the stream, once it is the first there.
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
    let awaited = match state
        .enter(function, Needs::Context)
        .and_then(|context| begin(&mut state, context))
    {
        Ok(awaited) => awaited,
        Err(code) => return state.leave(function, Err(code)),
    };
    loop {
        match step(&mut state, &awaited) {
            Ok(true) => return state.leave(function, Ok(())),
            Ok(false) => {}
            Err(code) => return state.leave(function, Err(code)),
        }
        if since.elapsed() >= WAIT_BOUND {
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
pub(crate) fn step(
    state: &mut State,
    (context, stream, until): &(Handle, Handle, u64),
) -> Answer<bool> {
    let alive = state.contexts.alive(*context)?;
    if let Some(code) = alive.error {
        return Err(code);
    }
    if !state.streams.contains_key(stream) {
        return Err(code::CONTEXT_IS_DESTROYED);
    }
    state.advance(*stream, *until, false)
}
