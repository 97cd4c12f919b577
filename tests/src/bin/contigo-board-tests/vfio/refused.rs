#![allow(
    unsafe_code,
    reason = "a backend and a port that lie, and memory that is read through a raw pointer"
)]
//! Addresses that the device must not reach: refused before the doorbell, and, where they are
//! forced into the device, by the IOMMU.

use super::{LEN, LIMIT, WIDE, fault_log, open_device, open_edu};
use crate::setup::{VIRT_PCIE, given_back};
use crate::verdict::{Seen, Tried, fail, others, skip};
use contigo::hw::Wired;
use contigo::job::AnyDriver;
use contigo::linux::Spin;
use contigo::linux::memory::HugeTlb;
use contigo::linux::vfio::{Interrupt, Vfio};
use contigo::mem::{Mapping, SyncScope};
use contigo::types::BaseAddr;
use contigo::{
    Align, Backend, Bus, CpuBuf, DevAddr, Direction, Error, Operand, Port, Queue, Region, Result,
};
use contigo_testkit::edu::{Edu, FaultLog, Unwatched};
use std::ops::Range;
use std::ptr::NonNull;

/// Neither what was there (0x11) nor what is sent (0x99).
pub(crate) const CANARY: u8 = 0x5A;

/// Memory with a physical address, and memory of another address space, are refused before the
/// doorbell.
pub(crate) fn another_bus(address: &str) -> Tried {
    let vfio = Vfio::open(address)?;
    let own = Region::new(vfio.memory(BYTES)?)?.pool(2, BYTES / 2)?;
    let mut queue = Queue::new(open_edu::<WIDE, _>(&vfio, Interrupt::Msi, Unwatched)?, 1)?;
    let Bus::Iommu(number) = queue.port().bus else {
        return fail("the port is on no bus of an IOMMU");
    };
    let mut refused = 0;
    for bus in [Bus::Soc, Bus::Iommu(number + 1)] {
        // SAFETY: the queue refuses it; were it not to, the address is not mapped in this address
        // space.
        let other =
            Region::new(unsafe { RawAddress::new(BaseAddr::Dev(DevAddr(0x4000_0000)), bus) })?;
        let other = other.alloc(4096, Align::PAGE)?;
        match queue.submit([own.take()?.to_device(..64), other.from_device(..64)], &[]) {
            Err(error)
                if error.error == (Error::WrongBus { port: "vfio", memory: bus })
                    && error.operand == Some(1) =>
            {
                refused += 1
            }
            other => return fail(format!("{bus:?}: {other:?}")),
        }
    }
    let started = queue.counts().pushed;
    Ok(Seen {
        failed: refused != 2 || started != 0,
        ..format!("{refused} refused, {started} doorbells").into()
    })
}

/// How long a transfer that is refused is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// One access, which the kernel reports: it prints ten reports in five seconds at most
    /// (`DEFAULT_RATELIMIT_BURST`), and QEMU makes one access, and one report, of every 4 bytes.
    One,
    /// As much as the device can: what becomes of the memory.
    Many,
}

impl Refused {
    pub(crate) const fn len(self) -> usize {
        match self {
            Self::One => 4,
            Self::Many => LEN,
        }
    }

    /// The kernel's log, where a report is expected there and this user may read it.
    pub(crate) fn log(self, address: &str) -> Option<FaultLog> {
        if self == Self::One { fault_log(address) } else { None }
    }
}

/// A raw address, forced into the device: nothing is mapped there, so both transfers fault.
pub(crate) fn raw(address: &str) -> Tried {
    // edu has no error bit, and behind a raw address are no bytes to look at.
    if fault_log(address).is_none() {
        return skip("this user may not read /dev/kmsg, which reports what the IOMMU refused");
    }
    // Memory of the board `virt`, above everything that is mapped for the device.
    const RAW: u64 = 0x5000_0000;
    // SAFETY: the port on which this is used is a claim as well. The device is behind the IOMMU,
    // and nothing is mapped at RAW in its address space, which is new and has one block below 16
    // MiB.
    let memory = || unsafe { RawAddress::new(BaseAddr::Dev(DevAddr(RAW)), Bus::Soc) };
    forced(address, Refused::One, &|| Region::new(memory()).map_err(Into::into), "raw")
}

/// The same with the physical address of a huge page, whose bytes are looked at.
pub(crate) fn physical(address: &str, refused: Refused) -> Tried {
    match HugeTlb::new(HugeTlb::PAGE_BYTES) {
        Ok(_) => {
            let page = || -> Result<_> { Ok(Region::new(HugeTlb::new(HugeTlb::PAGE_BYTES)?)?) };
            forced(address, refused, &page, "hugetlb")
        }
        Err(error) => skip(format!("no huge page with its address for this user: {error}")),
    }
}

/// Jobs with memory that the device does not reach, first to read and then to write, through a port
/// that claims that it does; then a good job.
fn forced(
    address: &str,
    refused: Refused,
    memory: &dyn Fn() -> Result<Region>,
    what: &str,
) -> Tried {
    let vfio = Vfio::open(address)?;
    let own = Region::new(vfio.memory(BYTES)?)?;
    // The own block under the claimed bus, so that one queue takes both: an address is an address.
    // SAFETY: this block is mapped for the device at exactly this address, has as many bytes, and
    // nothing else uses it by now.
    let alias = Region::new(unsafe { RawAddress::new(own.base(), Bus::Soc) })?;
    let raw = memory()?;
    // The bytes of the device land here.
    let brought = own.host_ptr_of(&vfio.port(), DevAddr(own.base().raw()))?;
    let mut good_buf = alias.alloc(4096, Align::PAGE)?;
    let mut raw_buf = raw.alloc(4096, Align::PAGE)?;
    let device = open_device(&vfio, Interrupt::Polled)?;
    // The claim of a program that ignores the IOMMU: one port for both kinds of memory.
    let claimed = Port { name: "a claim", ..VIRT_PCIE };
    // SAFETY: it is not true, and the test is what the IOMMU makes of it: at most the block of this
    // `Vfio` is reached.
    let device = unsafe { Wired::new(device, Spin, claimed) };
    // A driver that hears of refused accesses, or one that does not.
    let (sees, driver) = match refused.log(address) {
        // SAFETY: `vfio` is the lab's edu, whose mask is wider.
        None => (false, AnyDriver::new(unsafe { Edu::<_, WIDE>::open(device)? })?),
        // SAFETY: as above.
        Some(log) => (true, AnyDriver::new(unsafe { Edu::<_, WIDE, _>::watched(device, log)? })?),
    };
    let mut queue = Queue::new(driver, 1)?;
    let (mut outcome, mut reports) = (Seen::default(), Vec::new());
    for writes in [false, true] {
        raw_buf.view_mut::<u8>()?.fill(CANARY);
        let operands = if writes {
            [good_buf.to_device(..refused.len()), raw_buf.from_device(..refused.len())]
        } else {
            [raw_buf.to_device(..refused.len()), good_buf.from_device(..refused.len())]
        };
        let (error, [first, second]) = match run(&mut queue, operands) {
            Ok(buffers) => (None, buffers),
            Err((error, Some(buffers))) => (Some(error), buffers),
            Err((error, None)) => return Err(error.into()),
        };
        (good_buf, raw_buf) = if writes { (first, second) } else { (second, first) };
        outcome.canary_hits += others(raw_buf.view()?, CANARY);
        outcome.jobs += 1;
        if !writes {
            // A read that was refused gives edu zeros (QEMU), and those it wrote into the own
            // block. SAFETY: `own` is alive and nothing of it was taken yet; the device has
            // stopped.
            let stolen = |index: &usize| unsafe { brought.add(*index).read_volatile() } == CANARY;
            outcome.canary_hits += (0..refused.len()).filter(stolen).count() as u64;
        }
        let expected =
            if writes { "a write that the IOMMU refused" } else { "a read that the IOMMU refused" };
        match (sees, error) {
            (true, Some(Error::Fault { device: "edu", status: 0x10, what }))
                if what == expected =>
            {
                reports.push(format!("Error::Fault {{ status: 0x10, {what} }}"));
            }
            (false, None) => reports.push("done, says edu, which has no error bit".to_owned()),
            (_, error) => {
                outcome.failed = true;
                reports.push(format!("watched: {sees}, and {error:?}"));
            }
        }
    }
    drop(queue);
    // The next job works.
    let (mut from, mut to) = (own.alloc(4096, Align::PAGE)?, own.alloc(4096, Align::PAGE)?);
    from.view_mut::<u8>()?.fill(0x99);
    to.view_mut::<u8>()?.fill(0x11);
    let mut queue = Queue::new(open_edu::<WIDE, _>(&vfio, Interrupt::Msi, Unwatched)?, 1)?;
    let [_, to] = queue.run([from.to_device(..LEN), to.from_device(..LEN)], &[], LIMIT)?.buffers;
    outcome.mismatches += others(to.view_at(..LEN)?, 0x99);
    outcome.jobs += 1;
    outcome.bytes += LEN as u64;
    outcome.detail = format!(
        "{} bytes of {what} memory at {:#x}: {}; the next job was right",
        refused.len(),
        raw.base().raw(),
        reports.join("; ")
    );
    Ok(outcome)
}

type Ended = Result<[CpuBuf; 2], (Error, Option<[CpuBuf; 2]>)>;

fn run(queue: &mut Queue<AnyDriver>, operands: [Operand; 2]) -> Ended {
    let job = queue.run(operands, &[], LIMIT);
    job.map(|done| done.buffers).map_err(|failed| (failed.error, given_back(failed.buffers)))
}

/// One page of this process's, which the device does not reach at all.
#[derive(Debug)]
pub(crate) struct RawAddress {
    page: NonNull<u8>,
    base: BaseAddr,
    bus: Bus,
}

pub(crate) const BYTES: usize = 8192;

impl RawAddress {
    /// A page for this process; for devices on `bus`, whatever lies at `base`. It is never freed.
    ///
    /// # Safety
    /// Behind this address on that bus is no memory that a device may reach: its accesses are
    /// refused.
    pub(crate) unsafe fn new(base: BaseAddr, bus: Bus) -> Self {
        #[repr(align(4096))]
        struct Page([u8; BYTES]);
        let page = Box::leak(Box::new(Page([0; BYTES])));
        Self { page: NonNull::from(&mut page.0).cast(), base, bus }
    }
}

// SAFETY: the page is leaked and named nowhere else.
unsafe impl Send for RawAddress {}
// SAFETY: as for `Send`.
unsafe impl Sync for RawAddress {}

// SAFETY: 1. to 3. One leaked page, and no sync. 4. does not hold, and that is the point: `new`'s
// caller knows that no access to that address gets anywhere. 5. Nothing is ever out of step with
// what no device reaches.
unsafe impl Backend for RawAddress {
    fn name(&self) -> &'static str {
        "raw address"
    }
    fn mapping(&self) -> Mapping {
        let (cpu, base, bus) = (self.page, self.base, self.bus);
        let (scope, coherent) = (SyncScope::Coherent, Some(true));
        Mapping { cpu, len_bytes: BYTES, base, bus, scope, coherent }
    }
    unsafe fn sync_for_device(&self, _: Range<usize>, _: Direction) -> Result<()> {
        Ok(())
    }
    unsafe fn sync_for_cpu(&self, _: Range<usize>, _: Direction) -> Result<()> {
        Ok(())
    }
}
