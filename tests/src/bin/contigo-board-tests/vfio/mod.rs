#![allow(
    unsafe_code,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose; raw addresses are forced into a device to see them refused"
)]
//! Board tests of VFIO: `edu` behind an SMMU, LitePCIe's card and gemm8 behind virtio-iommu. They
//! run in a guest, as root or as any user who may open the device's files; each is a row of the
//! lab's table.
//!
//! A test that needs the kernel's log (`/dev/kmsg`) or physical addresses (`/proc/self/pagemap`)
//! says that it was skipped where this user may not read them.

mod confined;
mod copies;
mod forced;
pub(crate) mod gemm8;
mod killed;
mod limits;
pub(crate) mod litepcie;
mod pages;
mod raw_address;
mod revoked;
mod row;

pub(crate) use self::row::Seen;
use crate::row::{Name, Row, Status};

use contigo::{
    Error, Mmio as _, Result,
    hw::wait::poll_every,
    linux::vfio::{Interrupt, Vfio, VfioDevice},
};
use contigo_testkit::edu::{Edu, FaultLog, FaultWatch, regs};
use std::time::Duration;

/// Enough for two transfers of 100 ms on a busy emulator.
const LIMIT: Duration = Duration::from_secs(2);

/// The longest copy.
const LEN: usize = regs::TRANSFER_BYTES as usize;

/// The address lines of edu in the lab: `dma_mask` is wider there, and its registers take 32 bits.
const WIDE: u32 = 32;
/// The address lines of edu with QEMU's default `dma_mask`.
const NARROW: u32 = 28;

/// An edu on VFIO.
type VfioEdu<const BITS: u32, W> = Edu<VfioDevice, BITS, W>;

/// One test: its name, and what it does with the device at an address.
pub(crate) type Test = (&'static str, fn(&str) -> Result<Seen>);

/// Every test of edu, in the order in which they must run.
pub(crate) const TESTS: &[Test] = &[
    ("opened", confined::opened),
    // The first ones of which the kernel reports something: it reports ten accesses in five
    // seconds.
    ("raw-address-faults", forced::raw_address),
    ("physical-address-faults", forced::physical_address),
    ("revoked-while-it-reads", revoked::revoked_while_reading),
    ("revoked-while-it-writes", revoked::revoked_while_writing),
    ("physical-address-faults-many", forced::physical_address_many),
    ("revoked-while-it-reads-many", revoked::revoked_while_reading_many),
    ("revoked-while-it-writes-many", revoked::revoked_while_writing_many),
    ("closed-while-it-runs", revoked::closed_while_running),
    ("memory-of-another-bus-is-refused", confined::another_bus),
    ("copies-msi", copies::msi),
    ("copies-intx", copies::intx),
    ("copies-polled", copies::polled),
    ("copies-28-bits", copies::narrow),
    ("opened-again", limits::opened_again),
    ("limits", limits::limits),
];

/// Test `number` of `tests`, on the PCI function at `address`.
pub(crate) fn row(name: &Name, tests: &[Test], number: usize, address: &str) -> Row {
    match tests.get(number) {
        Some((_, test)) => seen(name, test(address)),
        None => Row::new(name, Status::Failed, "there is no such test"),
    }
}

/// The row of what a test saw.
pub(crate) fn seen(name: &Name, outcome: Result<Seen>) -> Row {
    match outcome {
        Ok(outcome) => {
            let wrong = outcome.failed || outcome.mismatches + outcome.canary_hits > 0;
            let status = match (wrong, outcome.skipped) {
                (true, _) => Status::Failed,
                (false, true) => Status::Skipped,
                (false, false) => Status::Passed,
            };
            Row {
                jobs: outcome.jobs,
                bytes: outcome.bytes,
                mismatches: outcome.mismatches,
                canary_hits: outcome.canary_hits,
                ..Row::new(name, status, outcome.detail)
            }
        }
        Err(error) => Row::new(name, Status::Failed, error.to_string()),
    }
}

/// edu at rest: it cannot be reset, but a transfer ends, and with bus mastering off it ends without
/// touching memory.
fn quiesce(device: &mut VfioDevice) -> Result<()> {
    let idle = |device: &VfioDevice| regs::COMMAND.read(device) & regs::RUN == 0;
    if poll_every(device, 1_000, Duration::from_millis(400), idle)? {
        return Ok(());
    }
    Err(Error::WillNotStop {
        device: "edu",
        status: regs::COMMAND.read(device),
        waited_us: 400_000,
    })
}

/// BAR 0 of the edu in `vfio`.
///
/// # Errors
/// As `VfioDevice::open`; [`Error::WillNotStop`] where it is busy and does not end.
pub(crate) fn open_device(vfio: &Vfio, interrupt: Interrupt) -> Result<VfioDevice> {
    if vfio.can_reset() {
        return VfioDevice::open(vfio, 0, interrupt);
    }
    // SAFETY: edu moves data only in a transfer, and a transfer is one event at the end of its 100
    // ms (hw/misc/edu.c): after `quiesce` none is pending.
    let device = unsafe { VfioDevice::open_unreset(vfio, 0, interrupt, quiesce) }?;
    assert_eq!(device.len_bytes(), 1 << 20, "edu.rst: PCI region 0 has 1 MiB");
    Ok(device)
}

fn open_edu<const BITS: u32, W: FaultWatch>(
    vfio: &Vfio,
    interrupt: Interrupt,
    watch: W,
) -> Result<VfioEdu<BITS, W>> {
    // SAFETY: `vfio` is the lab's edu, whose mask is wider than any of these.
    unsafe { Edu::watched(open_device(vfio, interrupt)?, watch) }
}

/// The kernel's log for the function at `address`, `0000:00:01.0`, where this user may read it.
fn fault_log(address: &str) -> Option<FaultLog> {
    let (bus, rest) = address.get(5..)?.split_once(':')?;
    let (device, function) = rest.split_once('.')?;
    let [bus, device, function] =
        [bus, device, function].map(|digits| u32::from_str_radix(digits, 16).ok());
    FaultLog::open(bus? << 8 | device? << 3 | function?).ok()
}
