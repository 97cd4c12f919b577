#![allow(unsafe_code, reason = "memory that says to be elsewhere")]
//! The memory that the device must not reach: refused before the doorbell.

use super::{
    LEN, Seen, WIDE, fault_log, open_edu,
    raw_address::{self, RawAddress},
};
use contigo::{
    Align, Bus, DevAddr, Error, Queue, Region, Result,
    linux::vfio::{Interrupt, Vfio},
    types::BaseAddr,
};
use contigo_testkit::edu::{FaultLog, Unwatched};
use std::fs;

/// Neither what was there (0x11) nor what is sent (0x99).
pub(super) const CANARY: u8 = 0x5A;

pub(super) fn opened(address: &str) -> Result<Seen> {
    let vfio = Vfio::open(address)?;
    let port = vfio.port();
    let way =
        if vfio.by_iommufd() { "device file and iommufd" } else { "group and type1 container" };
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = |name: &str| {
        status.lines().find(|line| line.starts_with(name)).unwrap_or(name).replace('\t', " ")
    };
    Ok(Seen::shown(format!(
        "{way}; {:?}, {:#x}..={:#x}, coherent {}, resets {}; {}; {}",
        port.bus,
        port.window.0,
        port.window.1,
        port.coherent,
        vfio.can_reset(),
        line("Uid:"),
        line("CapEff:")
    )))
}

/// Memory with a physical address, and memory of another address space, are refused before the
/// doorbell.
pub(super) fn another_bus(address: &str) -> Result<Seen> {
    let vfio = Vfio::open(address)?;
    let own = Region::new(vfio.memory(raw_address::BYTES)?)?.pool(2, raw_address::BYTES / 2)?;
    let mut queue = Queue::new(open_edu::<WIDE, _>(&vfio, Interrupt::Msi, Unwatched)?, 1)?;
    let Bus::Iommu(number) = queue.port().bus else {
        return Ok(Seen::failed("the port is on no bus of an IOMMU"));
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
            other => return Ok(Seen::failed(format!("{bus:?}: {other:?}"))),
        }
    }
    let started = queue.counts().pushed;
    Ok(Seen {
        failed: refused != 2 || started != 0,
        ..Seen::shown(format!("{refused} refused, {started} doorbells"))
    })
}

/// How long a transfer that is refused is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// One access, which the kernel reports: it prints ten reports in five seconds at most
    /// (`DEFAULT_RATELIMIT_BURST`), and QEMU makes one access, and one report, of every 4 bytes.
    One,
    /// As much as the device can: what becomes of the memory.
    Many,
}

impl Refused {
    pub(super) const fn len(self) -> usize {
        match self {
            Self::One => 4,
            Self::Many => LEN,
        }
    }

    /// The kernel's log, where a report is expected there and this user may read it.
    pub(super) fn log(self, address: &str) -> Option<FaultLog> {
        if self == Self::One { fault_log(address) } else { None }
    }
}
