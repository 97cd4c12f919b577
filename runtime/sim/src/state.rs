//! The state that a board's handles share: the blocks on the bus, the clock, the random numbers,
//! and the devices' wrong accesses.

use super::block::{Mark, SimBlock};
use super::faults::Struck;
use contigo_core::mem::{Holder, Port, WrongAccesses};
use contigo_core::types::{BaseAddr, DevAddr, Result};
use core::ops::Range;
use fastrand::Rng;
use heapless::Vec;

/// How many ports the board tells apart when it looks up a byte's holder. Further ports count as
/// any port; boards have fewer.
const MAX_PORTS: usize = 30;
/// How many blocks a board has at once, at most: more than any board has memories.
pub(super) const MAX_BLOCKS: usize = 32;
/// How many devices have wrong accesses of their own: as many as a board has. Those of further
/// devices count for every device.
const MAX_ASTRAY: usize = 32;
/// Virtual time that one register access takes: what an uncached read across an SoC's AXI costs.
const ACCESS_NS: u64 = 100;
/// Where the first block lies: above where Zynq and Cyclone V have their DDR's first megabyte,
/// below 4 GiB.
const FIRST_BASE: u64 = 0x1000_0000;
/// Blocks begin at multiples of this, with a hole after each, so that running past one is seen.
pub(super) const BASE_STEP: u64 = 0x0010_0000;

/// What the handles of a board share.
pub(super) struct BoardState {
    pub(super) rng: Rng,
    pub(super) now_ns: u64,
    pub(super) blocks: Vec<SimBlock, MAX_BLOCKS>,
    /// The ports through which memory was handed over.
    ports: Vec<Port, MAX_PORTS>,
    pub(super) next_base: u64,
    pub(super) next_id: u32,
    pub(super) counts: SimCounts,
    /// The program provokes wrong accesses: no job fails because of them.
    pub(super) allows_wrong: bool,
    pub(super) astray: Vec<Astray, MAX_ASTRAY>,
    /// Wrong accesses of devices for which `astray` has no room.
    pub(super) others: WrongAccesses,
}

/// A device that has touched what was not handed over to it.
pub(super) struct Astray {
    pub(super) device: u32,
    pub(super) count: WrongAccesses,
}

/// The counts of a board.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimCounts {
    /// Accesses by a device to addresses without memory: each would be a bus error, or reach
    /// another owner's memory.
    pub stray_accesses: u64,
    /// Accesses by a device to memory that was not handed over to a device behind its port, and
    /// writes to memory that was handed over only for reading. Ports that snoop are included, and
    /// so is the driver's own memory: hand-overs count here, not syncs. Where a model reads whole
    /// words ([`SimBus::read_words`](super::SimBus::read_words)), the rest of an operand's first
    /// and last word does not count. A job fails if its device makes such an access during it
    /// ([`Error::WrongAccess`](contigo_core::Error::WrongAccess)).
    pub unowned_accesses: u64,
    /// Dirty lines that were evicted over what a device had written: each is a missing sync.
    pub evictions: u64,
    /// Lines of a driver's own memory ([`DriverBuf`](contigo_core::mem::DriverBuf)) that were
    /// cleaned over what a device had written beside the words meant: each is a status that the
    /// driver misses.
    pub lost_writes: u64,
    /// Bytes that devices read.
    pub bytes_read: u64,
    /// Bytes beside those, in the same words of the bus: read, and dropped.
    pub bytes_beside: u64,
    /// Bytes that devices wrote.
    pub bytes_written: u64,
    /// How often each of the board's faults struck a model: how often
    /// [`SimBus::strikes`](super::SimBus::strikes) returned true for its rate. Two kinds with the
    /// same rate count together: a test that gives each its own rate knows which it has seen.
    pub struck: Struck,
}

impl SimCounts {
    pub(super) const UNKNOWN: Self = Self {
        stray_accesses: u64::MAX,
        unowned_accesses: u64::MAX,
        evictions: u64::MAX,
        lost_writes: u64::MAX,
        bytes_read: u64::MAX,
        bytes_beside: u64::MAX,
        bytes_written: u64::MAX,
        struck: Struck::UNKNOWN,
    };
}

/// No memory answers at that address: AXI's DECERR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusError {
    /// The first byte's address.
    pub addr: DevAddr,
}

/// A device as the board sees it.
#[derive(Clone, Copy)]
pub(super) struct Master<'s> {
    pub(super) port: &'s Port,
    /// [`Device::simulated`](contigo_core::Device::simulated).
    pub(super) device: u32,
}

impl BoardState {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            rng: Rng::with_seed(seed),
            now_ns: 0,
            blocks: Vec::new(),
            ports: Vec::new(),
            next_base: FIRST_BASE,
            next_id: 1,
            counts: SimCounts::default(),
            allows_wrong: false,
            astray: Vec::new(),
            others: WrongAccesses::default(),
        }
    }

    /// Advances the clock by one register access.
    pub(super) const fn tick(&mut self) {
        self.now_ns = self.now_ns.saturating_add(ACCESS_NS);
    }

    pub(super) fn read(
        &mut self,
        master: Master<'_>,
        addr: DevAddr,
        to: &mut [u8],
        beat: bool,
    ) -> Result<(), BusError> {
        let (block, offset) = self.access(master, addr, to.len())?;
        let (range, port) = (offset..offset + to.len(), self.number(master.port));
        let held = if beat {
            block.is_partly_held(range, port)
        } else {
            block.is_held(range, port, false)
        };
        self.look_who_holds(held, master);
        block.device_read(offset, to, master.port.coherent);
        self.counts.bytes_read += to.len() as u64;
        Ok(())
    }

    pub(super) fn read_beside(
        &mut self,
        master: Master<'_>,
        addr: DevAddr,
        len: usize,
    ) -> Result<(), BusError> {
        self.access(master, addr, len)?;
        self.counts.bytes_beside += len as u64;
        Ok(())
    }

    pub(super) fn probe(
        &mut self,
        port: &Port,
        addr: DevAddr,
        to: &mut [u8],
    ) -> Result<(), BusError> {
        let (block, offset) = self.find(port, addr, to.len()).ok_or(BusError { addr })?;
        block.device_read(offset, to, port.coherent);
        Ok(())
    }

    pub(super) fn write(
        &mut self,
        master: Master<'_>,
        addr: DevAddr,
        from: &[u8],
    ) -> Result<(), BusError> {
        let (block, offset) = self.access(master, addr, from.len())?;
        self.look_who_holds(
            block.is_held(offset..offset + from.len(), self.number(master.port), true),
            master,
        );
        block.device_write(offset, from, master.port.coherent);
        self.counts.bytes_written += from.len() as u64;
        Ok(())
    }

    /// Records that `holder` holds `range` of a block from now on.
    pub(super) fn hold(&mut self, block: &SimBlock, range: Range<usize>, holder: Holder<'_>) {
        let mark = match holder {
            Holder::None => Mark::NONE,
            Holder::Device { port, writes } => {
                if let Some(port) = port
                    && !self.ports.contains(port)
                {
                    // A full table makes it any port: fewer errors are noticed, and none wrongly.
                    let _ = self.ports.push(*port);
                }
                Mark::device(port.and_then(|port| self.number(port)), writes)
            }
        };
        block.mark(range, mark);
    }

    fn number(&self, port: &Port) -> Option<usize> {
        self.ports.iter().position(|known| known == port)
    }

    fn look_who_holds(&mut self, held: bool, master: Master<'_>) {
        if !held {
            self.counts.unowned_accesses += 1;
            self.astray(master.device, WrongAccesses { unowned: 1, ..WrongAccesses::default() });
        }
    }

    /// Finds the memory of a device's access, and counts a stray one.
    fn access(
        &mut self,
        master: Master<'_>,
        addr: DevAddr,
        len: usize,
    ) -> Result<(SimBlock, usize), BusError> {
        self.find(master.port, addr, len).ok_or_else(|| {
            self.counts.stray_accesses += 1;
            self.astray(master.device, WrongAccesses { stray: 1, ..WrongAccesses::default() });
            BusError { addr }
        })
    }

    /// How many bytes from `addr` on `master` may read, or write.
    pub(super) fn held_bytes(&self, master: Master<'_>, addr: DevAddr, writes: bool) -> usize {
        let found = self.find(master.port, addr, 1);
        found.map_or(0, |(block, at)| block.held_bytes(at, self.number(master.port), writes))
    }

    /// Records that the function of a simulated kernel did not compute a job.
    pub(super) fn did_not_compute(&mut self, master: Master<'_>, by_wrong_access: bool) {
        if !(by_wrong_access && self.allows_wrong) {
            self.astray(master.device, WrongAccesses { uncomputed: 1, ..WrongAccesses::default() });
        }
    }

    /// Records what a device did wrongly; the job layer asks at a job's end.
    #[cold]
    fn astray(&mut self, device: u32, wrong: WrongAccesses) {
        if self.allows_wrong && wrong.uncomputed == 0 {
            return;
        }
        let known = self.astray.iter().position(|astray| astray.device == device);
        let at = known.or_else(|| {
            let new = Astray { device, count: WrongAccesses::default() };
            self.astray.push(new).ok().map(|()| self.astray.len() - 1)
        });
        let count = match at.and_then(|at| self.astray.get_mut(at)) {
            Some(astray) => &mut astray.count,
            None => &mut self.others,
        };
        count.unowned += wrong.unowned;
        count.stray += wrong.stray;
        count.uncomputed += wrong.uncomputed;
    }

    fn find(&self, port: &Port, addr: DevAddr, len: usize) -> Option<(SimBlock, usize)> {
        let mut found = self.blocks.iter().filter_map(|block| {
            block.find(addr.0, len, port.offset).map(|offset| (*block, offset))
        });
        // If two blocks have the address, neither answers: it could be the wrong one.
        match (found.next(), found.next()) {
            (Some(only), None) if port.dev_addr(BaseAddr::Dev(addr), len).is_ok() => Some(only),
            _ => None,
        }
    }
}
