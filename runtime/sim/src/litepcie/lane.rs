//! A lane: a reader or a writer, with its table of descriptors.

use super::manual as litepcie;
use crate::SimBus;
use crate::stream::SimStream;
use contigo_core::types::DevAddr;
use heapless::Deque;

/// The number of descriptors in a table: `table_depth`.
const TABLE: usize = 256;
/// The longest request, and its time on the link: 1 GB/s.
const REQUEST_BYTES: usize = 512;
const REQUEST_NS: u64 = 512;
/// The most requests that are not answered: `max_pending_requests`.
const PENDING: usize = 4;
/// From a request to its answer; for a write, until its bytes are in memory.
const ANSWER_NS: u64 = 1_500;

#[derive(Clone, Copy, Debug)]
struct Descriptor {
    addr: u64,
    len: usize,
}

/// A request that the lane has sent.
#[derive(Debug)]
struct Request {
    /// When it is answered, or when its bytes are in memory.
    at_ns: u64,
    addr: u64,
    len: usize,
    /// The request ends a descriptor.
    over: bool,
    /// The bytes, if a writer sent it.
    bytes: [u8; REQUEST_BYTES],
}

#[derive(Debug, Default)]
pub(super) struct Lane {
    reads: bool,
    /// A writer counts a descriptor only when its bytes are in memory.
    ordered: bool,
    enabled: bool,
    loop_prog_n: u32,
    value: [u32; 2],
    table: Deque<Descriptor, TABLE>,
    /// Bytes of the descriptor at the head that have been requested.
    moved: usize,
    count: u32,
    not_before_ns: u64,
    /// Requests under way.
    pending: Deque<Request, PENDING>,
    hangs: bool,
    stuck: bool,
    drawn: bool,
}

impl Request {
    /// Writes the bytes to memory. A write that memory refuses vanishes.
    fn write(&self, bus: &mut SimBus<'_>) {
        let _ = bus.write(DevAddr(self.addr), self.bytes.get(..self.len).unwrap_or_default());
    }
}

impl Lane {
    pub(super) fn new(reads: bool, ordered: bool) -> Self {
        Self { reads, ordered, ..Self::default() }
    }

    pub(super) const fn runs(&self) -> bool {
        self.enabled
    }

    /// When the lane's next step is due.
    pub(super) fn due_ns(&self, now_ns: u64, stream: &SimStream) -> Option<u64> {
        let answer = self.pending.front().map(|request| request.at_ns);
        let request = match self.table.front() {
            Some(_) if self.hangs || !self.enabled && !self.stuck => None,
            Some(descriptor) if self.reads => {
                // A request is sent when there is room for its answer.
                let asked: usize = self.pending.iter().map(|request| request.len).sum();
                let want = (descriptor.len - self.moved).min(REQUEST_BYTES);
                (!self.pending.is_full() && stream.room_bytes() >= asked + want)
                    .then_some(self.not_before_ns)
            }
            Some(descriptor) => {
                let want = (descriptor.len - self.moved).min(REQUEST_BYTES);
                stream.ready_at_ns(now_ns, want).map(|at_ns| at_ns.max(self.not_before_ns))
            }
            None => None,
        };
        [answer, request].into_iter().flatten().min()
    }

    /// Does a step that is due. Returns true if a descriptor is complete.
    pub(super) fn step(
        &mut self,
        now_ns: u64,
        stream: &mut SimStream,
        bus: &mut SimBus<'_>,
    ) -> bool {
        if self.pending.front().is_some_and(|request| request.at_ns <= now_ns) {
            self.arrived(stream, bus);
            return false;
        }
        self.not_before_ns = now_ns + REQUEST_NS;
        let Some(descriptor) = self.table.front().copied() else { return false };
        if !core::mem::replace(&mut self.drawn, true) {
            self.hangs = bus.strikes(bus.faults().hang) || bus.strikes(bus.faults().error);
            if self.hangs {
                return false;
            }
        }
        let (addr, want) =
            (descriptor.addr + self.moved as u64, (descriptor.len - self.moved).min(REQUEST_BYTES));
        let mut bytes = [0; REQUEST_BYTES];
        let len = if self.reads {
            want
        } else {
            stream.take(now_ns, bytes.get_mut(..want).unwrap_or_default()).bytes
        };
        self.moved += len;
        let request = Request {
            at_ns: now_ns + ANSWER_NS,
            addr,
            len,
            over: self.moved == descriptor.len,
            bytes,
        };
        if self.reads || !self.ordered {
            // There is room: `due_ns` checked, and a write arrives before the fourth one is sent.
            let _ = self.pending.push_back(request);
        } else {
            request.write(bus);
        }
        if self.moved < descriptor.len {
            return false;
        }
        self.table.pop_front();
        (self.moved, self.count, self.drawn) = (0, self.count.wrapping_add(1), false);
        true
    }

    fn arrived(&mut self, stream: &mut SimStream, bus: &mut SimBus<'_>) {
        let Some(mut request) = self.pending.pop_front() else { return };
        if !self.reads {
            return request.write(bus);
        }
        let bytes = request.bytes.get_mut(..request.len).unwrap_or_default();
        if bus.read(DevAddr(request.addr), bytes).is_err() {
            self.hangs = true;
        } else if self.enabled {
            stream.give(bytes, request.over);
        }
    }

    pub(super) fn read(&self, at: usize) -> u32 {
        match at {
            0 => {
                u32::from(self.enabled)
                    | if self.stuck || self.enabled && !self.table.is_empty() { 0 } else { 2 }
            }
            litepcie::LOOP_PROG_N => self.loop_prog_n,
            litepcie::LOOP_STATUS => self.count,
            litepcie::LEVEL => u32::try_from(self.table.len()).unwrap_or(u32::MAX),
            _ => 0,
        }
    }

    pub(super) fn write(&mut self, at: usize, value: u32, bus: &mut SimBus<'_>) {
        match at {
            0 => {
                let enabled = value & 1 != 0;
                if self.enabled && !enabled {
                    self.stuck |= !self.table.is_empty() && bus.strikes(bus.faults().stuck);
                    (self.moved, self.hangs, self.drawn) = (0, false, false);
                }
                self.enabled = enabled;
                self.not_before_ns = self.not_before_ns.max(bus.now_ns() + REQUEST_NS);
            }
            litepcie::VALUE => self.value[0] = value,
            _ if at == litepcie::VALUE + 4 => self.value[1] = value,
            litepcie::WE => {
                let [control, low] = self.value;
                let len = usize::try_from(control & litepcie::LENGTH).unwrap_or(0);
                // A full table loses the descriptor.
                let _ = self
                    .table
                    .push_back(Descriptor { addr: u64::from(value) << 32 | u64::from(low), len });
            }
            litepcie::LOOP_PROG_N => self.loop_prog_n = value,
            litepcie::FLUSH if !self.stuck => {
                self.table.clear();
                (self.moved, self.count, self.drawn) = (0, 0, false);
            }
            _ => {}
        }
    }
}
