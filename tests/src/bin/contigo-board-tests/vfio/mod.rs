#![allow(
    unsafe_code,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose; memory is read through raw \
              pointers that a device may still write"
)]
//! Board tests of VFIO: `edu` behind an SMMU, and LitePCIe's card behind virtio-iommu; gemm8's are
//! in `gemm8/`. They run in a guest, as root or as any user who may open the device's files; each
//! is a row of the lab's table.
//!
//! A test that needs the kernel's log (`/dev/kmsg`) or physical addresses (`/proc/self/pagemap`)
//! is skipped where this user may not read them.

pub(crate) mod edu;
pub(crate) mod litepcie;
mod refused;
mod revoked;

use crate::verdict::{Tried, others};
use contigo::hw::wait::poll_every;
use contigo::linux::vfio::{Interrupt, Vfio, VfioDevice};
use contigo::{Backend as _, Error, Mmio as _, Result};
use contigo_testkit::edu::{Edu, FaultLog, FaultWatch, regs};
use refused::Refused;
use std::thread::sleep;
use std::time::Duration;

/// Enough for two transfers of 100 ms on a busy emulator.
const LIMIT: Duration = Duration::from_secs(2);

const LEN: usize = regs::TRANSFER_BYTES as usize;

/// The address lines of edu in the lab: `dma_mask` is wider there, and its registers take 32 bits.
const WIDE: u32 = 32;
/// The address lines of edu with QEMU's default `dma_mask`.
const NARROW: u32 = 28;

type VfioEdu<const BITS: u32, W> = Edu<VfioDevice, BITS, W>;

/// One test: its name, and what it does with the device at an address.
pub(crate) type Test = (&'static str, fn(&str) -> Tried);

/// Every test of edu, in the order in which they must run.
pub(crate) const TESTS: &[Test] = &[
    ("opened", edu::opened),
    // The first ones of which the kernel reports something: it reports ten accesses in five
    // seconds.
    ("raw-address-faults", refused::raw),
    ("physical-address-faults", |address| refused::physical(address, Refused::One)),
    ("revoked-while-it-reads", |address| revoked::revoked(address, Refused::One, false)),
    ("revoked-while-it-writes", |address| revoked::revoked(address, Refused::One, true)),
    ("physical-address-faults-many", |address| refused::physical(address, Refused::Many)),
    ("revoked-while-it-reads-many", |address| revoked::revoked(address, Refused::Many, false)),
    ("revoked-while-it-writes-many", |address| revoked::revoked(address, Refused::Many, true)),
    ("closed-while-it-runs", revoked::closed_while_running),
    ("memory-of-another-bus-is-refused", refused::another_bus),
    ("copies-msi", |address| edu::copies::<WIDE>(address, Interrupt::Msi)),
    ("copies-intx", |address| edu::copies::<WIDE>(address, Interrupt::Intx)),
    ("copies-polled", |address| edu::copies::<WIDE>(address, Interrupt::Polled)),
    // With 28 address lines edu reaches nothing of `virt`'s memory, which begins at 1 GiB: the
    // IOMMU places it lower.
    ("copies-28-bits", |address| edu::copies::<NARROW>(address, Interrupt::Msi)),
    ("opened-again", edu::opened_again),
    ("limits", edu::limits),
];

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

/// The most memory of a process that is killed. The next owner's covers its addresses, wherever in
/// the first 2 MiB of the address space each begins.
pub(crate) const KILLED_BYTES: usize = 4 << 20;
const NEXT_BYTES: usize = 8 << 20;
/// In which a device that could write would have.
const A_WHILE: Duration = Duration::from_millis(50);
/// No process that is killed writes this byte.
pub(crate) const CANARY: u8 = 0x5A;
pub(crate) fn next_owner(address: &str) -> Result<u64> {
    let vfio = Vfio::open(address)?;
    let memory = vfio.memory(NEXT_BYTES)?;
    let words = memory.mapping().cpu.cast::<u64>();
    let canary = u64::from_ne_bytes([CANARY; 8]);
    let indices = 0..NEXT_BYTES / 8;
    for index in indices.clone() {
        // SAFETY: `index` is below the mapping's length, which begins at a page, and the memory is
        // alive. No view of it exists: a device that writes it all the same is what is looked for.
        unsafe { words.add(index).write_volatile(canary) };
    }
    // SAFETY: no job of this process runs; whether one of another does, is the question.
    let device = unsafe { VfioDevice::open_unreset(&vfio, 0, Interrupt::Polled, |_| Ok(())) }?;
    sleep(A_WHILE);
    // SAFETY: as above.
    let found = indices.map(|index| unsafe { words.add(index).read_volatile() });
    let written = found.map(|word| others(&word.to_ne_bytes(), CANARY)).sum();
    drop(device);
    Ok(written)
}
