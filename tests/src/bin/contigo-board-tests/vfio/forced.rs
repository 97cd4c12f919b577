#![allow(
    unsafe_code,
    reason = "a port is claimed that is not the device's, and memory is read through a raw pointer"
)]
//! Addresses that the device must not reach, forced into it: the IOMMU refuses them.

use super::{
    LEN, LIMIT, Seen, WIDE,
    confined::{CANARY, Refused},
    fault_log, open_device, open_edu,
    raw_address::{self, RawAddress},
};
use contigo::{
    Align, Bus, CpuBuf, DevAddr, Error, Operand, Port, Queue, Region, Result,
    hw::Wired,
    job::AnyDriver,
    linux::{
        Spin,
        memory::HugeTlb,
        vfio::{Interrupt, Vfio},
    },
    types::BaseAddr,
};
use contigo_testkit::edu::{Edu, Unwatched};

pub(super) fn raw_address(address: &str) -> Result<Seen> {
    // edu has no error bit, and behind a raw address are no bytes to look at.
    match fault_log(address) {
        Some(_) => raw(address),
        None => Ok(Seen::skipped(
            "this user may not read /dev/kmsg, which reports what the IOMMU refused",
        )),
    }
}

pub(super) fn physical_address(address: &str) -> Result<Seen> {
    physical(address, Refused::One)
}

pub(super) fn physical_address_many(address: &str) -> Result<Seen> {
    physical(address, Refused::Many)
}

/// A raw address, forced into the device: nothing is mapped there, so both transfers fault.
fn raw(address: &str) -> Result<Seen> {
    // Memory of the board `virt`, above everything that is mapped for the device.
    const RAW: u64 = 0x5000_0000;
    // SAFETY: the port on which this is used is a claim as well. The device is behind the IOMMU,
    // and nothing is mapped at RAW in its address space, which is new and has one block below 16
    // MiB.
    let memory = || unsafe { RawAddress::new(BaseAddr::Dev(DevAddr(RAW)), Bus::Soc) };
    forced(address, Refused::One, &|| Region::new(memory()).map_err(Into::into), "raw")
}

/// The same with the physical address of a huge page, whose bytes are looked at.
fn physical(address: &str, refused: Refused) -> Result<Seen> {
    match HugeTlb::new(HugeTlb::PAGE_BYTES) {
        Ok(_) => forced(
            address,
            refused,
            &|| Region::new(HugeTlb::new(HugeTlb::PAGE_BYTES)?).map_err(Into::into),
            "hugetlb",
        ),
        Err(error) => {
            Ok(Seen::skipped(format!("no huge page with its address for this user: {error}")))
        }
    }
}

/// Jobs with memory that the device does not reach, first to read and then to write, through a port
/// that claims that it does; then a good job.
fn forced(
    address: &str,
    refused: Refused,
    memory: &dyn Fn() -> Result<Region>,
    what: &str,
) -> Result<Seen> {
    let vfio = Vfio::open(address)?;
    let own = Region::new(vfio.memory(raw_address::BYTES)?)?;
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
    let claimed = Port {
        name: "a claim",
        bus: Bus::Soc,
        offset: 0,
        addr_bits: 64,
        window: (0, u64::MAX),
        coherent: true,
    };
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
            Err((error, None)) => return Err(error),
        };
        (good_buf, raw_buf) = if writes { (first, second) } else { (second, first) };
        outcome.canary_hits +=
            raw_buf.view::<u8>()?.iter().filter(|byte| **byte != CANARY).count() as u64;
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
    outcome.mismatches +=
        to.view_at::<u8>(..LEN)?.iter().filter(|byte| **byte != 0x99).count() as u64;
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
    queue.run(operands, &[], LIMIT).map(|done| done.buffers).map_err(|failed| {
        let back = failed.buffers.map(|buffers| buffers.map(Operand::into_cpu));
        match back {
            Some([Ok(first), Ok(second)]) => (failed.error, Some([first, second])),
            _ => (failed.error, None),
        }
    })
}
