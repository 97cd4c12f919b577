//! edu behind an IOMMU: what opening shows, random copies with each kind of interrupt, opening
//! again and again, a second time at once, and more memory than is allowed.

use super::{LEN, LIMIT, WIDE, open_edu};
use crate::jobs::{SLOW_JOBS, SLOW_LIMITS};
use crate::verdict::{Seen, Tried};
use contigo::linux::vfio::{Interrupt, Vfio, VfioDevice};
use contigo::{Align, Error, Queue, Region, Result};
use contigo_exerciser::{Budget, Exerciser, Ground, Mode, Tally};
use contigo_testkit::edu::Unwatched;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::fs;

pub(crate) fn opened(address: &str) -> Tried {
    let vfio = Vfio::open(address)?;
    let port = vfio.port();
    let way =
        if vfio.by_iommufd() { "device file and iommufd" } else { "group and type1 container" };
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = |name: &str| {
        status.lines().find(|line| line.starts_with(name)).unwrap_or(name).replace('\t', " ")
    };
    Ok(Seen::from(format!(
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

pub(crate) fn copies<const BITS: u32>(address: &str, interrupt: Interrupt) -> Tried {
    let vfio = Vfio::open(address)?;
    let region = Region::new(vfio.memory(Ground::WHOLE_BYTES + 4096)?)?;
    let mut queue = Queue::new(open_edu::<BITS, _>(&vfio, interrupt, Unwatched)?, 1)?;
    let mut exerciser = Exerciser::new(Ground::new(&region)?, SLOW_LIMITS, 0xED0)?;
    let ended = exerciser.run(&mut queue, Mode::Waiting(LIMIT), Budget::jobs(SLOW_JOBS));
    let Tally { jobs, bytes, mismatches, canary_hits, first_wrong, .. } = exerciser.tally();
    let wrong = first_wrong
        .map(|first| first.to_string())
        .or(ended.err().map(|stopped| stopped.to_string()));
    let detail =
        format!("{interrupt:?}, {BITS} address bits, memory at {:#x}", region.base().raw());
    let detail = wrong.iter().fold(detail, |detail, wrong| format!("{detail}; {wrong}"));
    Ok(Seen { jobs, bytes, mismatches, canary_hits, failed: wrong.is_some(), ..Seen::from(detail) })
}

const TIMES: u64 = 5;

pub(crate) fn opened_again(address: &str) -> Tried {
    let before = pinned();
    let mut outcome = Seen::default();
    let mut most = before.clone();
    for round in 0..TIMES {
        let vfio = Vfio::open(address)?;
        let region = Region::new(vfio.memory(1 << 20)?)?;
        most = pinned();
        let (mut from, to) = (region.alloc(4096, Align::PAGE)?, region.alloc(4096, Align::PAGE)?);
        let mark = 0x30 + u8::try_from(round).unwrap_or(0);
        from.view_mut::<u8>()?.fill(mark);
        let mut queue = Queue::new(open_edu::<WIDE, _>(&vfio, Interrupt::Any, Unwatched)?, 1)?;
        let [_, to] =
            queue.run([from.to_device(..LEN), to.from_device(..LEN)], &[], LIMIT)?.buffers;
        outcome.mismatches +=
            to.view_at::<u8>(..LEN)?.iter().filter(|byte| **byte != mark).count() as u64;
        outcome.jobs += 1;
        outcome.bytes += LEN as u64;
        drop((queue, to));
        outcome.failed |= vfio.leaked_bytes()? != 0;
    }
    let after = pinned();
    outcome.failed |= before != after;
    outcome.detail = format!("pinned before {before}, with it {most}, after {after}");
    Ok(outcome)
}

/// The memory that the kernel counts as locked and as pinned. (iommufd counts by user, and shows it
/// nowhere.)
fn pinned() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let value = |name: &str| {
        status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("?").trim().to_owned()
    };
    format!("VmLck {} VmPin {}", value("VmLck:"), value("VmPin:"))
}

pub(crate) fn limits(address: &str) -> Tried {
    const LIMIT_BYTES: u64 = 1 << 20;
    let mut seen = Vec::new();
    let mut outcome = Seen::default();
    let mut check = |what: &str, holds: bool, found: String| {
        outcome.failed |= !holds;
        seen.push(format!("{what}: {found}"));
    };
    let vfio = Vfio::open(address)?;
    let second = Vfio::open(address).map(drop);
    check("second open", matches!(second, Err(Error::InUse { .. })), format!("{second:?}"));
    {
        let device = open_edu::<WIDE, _>(&vfio, Interrupt::Any, Unwatched)?;
        let other = VfioDevice::open(&vfio, 0, Interrupt::Any).map(drop);
        check("second driver", other == Err(Error::HasDriver), format!("{other:?}"));
        drop(device);
    }
    let no_bar = VfioDevice::open(&vfio, 1, Interrupt::Any).map(drop);
    check("BAR 1", matches!(no_bar, Err(Error::Unsupported { .. })), short(&no_bar));
    let no_msix = VfioDevice::open(&vfio, 0, Interrupt::MsiX).map(drop);
    check("MSI-X", matches!(no_msix, Err(Error::Unsupported { .. })), short(&no_msix));
    let unreset = VfioDevice::open(&vfio, 0, Interrupt::Any).map(drop);
    check(
        "no reset",
        vfio.can_reset() || matches!(unreset, Err(Error::Unsupported { .. })),
        short(&unreset),
    );

    // RLIMIT_MEMLOCK: root has CAP_IPC_LOCK, and no limit.
    let before = getrlimit(Resource::RLIMIT_MEMLOCK)
        .map_err(|errno| Error::Os { call: "getrlimit", errno: errno as i32 })?;
    let set = |soft| {
        setrlimit(Resource::RLIMIT_MEMLOCK, soft, before.1)
            .map_err(|errno| Error::Os { call: "setrlimit", errno: errno as i32 })
    };
    set(LIMIT_BYTES as _)?;
    let root = nix::unistd::geteuid().is_root();
    let large = vfio.memory(8 << 20).map(drop);
    let expected = if root {
        Ok(())
    } else {
        Err(Error::PinLimit { need_bytes: 8 << 20, limit_bytes: LIMIT_BYTES })
    };
    check("8 MiB with a limit of 1 MiB", large == expected, format!("{large:?}"));
    let small = vfio.memory(256 << 10).map(drop);
    check("256 KiB after that", small.is_ok(), format!("{small:?}"));
    set(before.0)?;

    // More blocks than there is room for, and all of it back.
    let mut blocks = Vec::new();
    let last = loop {
        match vfio.memory(4096) {
            Ok(block) => blocks.push(block),
            Err(error) => break error,
        }
    };
    check(
        "blocks",
        matches!(last, Error::TooMany { most: 64, .. }) && blocks.len() == 64,
        format!("{} and then {last:?}", blocks.len()),
    );
    drop(blocks);
    let again = vfio.memory(4096).map(drop);
    check("after them", again.is_ok() && vfio.leaked_bytes() == Ok(0), format!("{again:?}"));
    outcome.detail = seen.join("; ");
    Ok(outcome)
}

fn short(result: &Result<()>) -> String {
    match result {
        Ok(()) => "Ok".to_owned(),
        Err(Error::Unsupported { what, .. }) => format!("Unsupported {{ {what} }}"),
        Err(error) => format!("{error:?}"),
    }
}
