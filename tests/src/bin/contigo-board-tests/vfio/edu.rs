//! edu behind an IOMMU: what opening shows, random copies with each kind of interrupt, opening
//! again and again, a second time at once, and more memory than is allowed.

use super::{LEN, LIMIT, WIDE, open_edu};
use crate::jobs::{SLOW_JOBS, SLOW_LIMITS};
use crate::verdict::{Seen, Tried, must, others};
use contigo::linux::vfio::{Interrupt, Vfio, VfioDevice};
use contigo::{Align, Error, Port, Queue, Region, Result};
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
    let (Port { bus, window: (first, last), coherent, .. }, resets) = (port, vfio.can_reset());
    let (uid, capabilities) = (line("Uid:"), line("CapEff:"));
    Ok(Seen::from(format!(
        "{way}; {bus:?}, {first:#x}..={last:#x}, coherent {coherent}, resets {resets}; {uid}; \
         {capabilities}"
    )))
}

pub(crate) fn copies<const BITS: u32>(address: &str, interrupt: Interrupt) -> Tried {
    let vfio = Vfio::open(address)?;
    let region = Region::new(vfio.memory(Ground::WHOLE_BYTES + 4096)?)?;
    let mut queue = Queue::new(open_edu::<BITS, _>(&vfio, interrupt, Unwatched)?, 1)?;
    let mut exerciser = Exerciser::new(Ground::new(&region)?, SLOW_LIMITS, 0xED0)?;
    let ended = exerciser.run(&mut queue, Mode::Waiting(LIMIT), Budget::jobs(SLOW_JOBS));
    let Tally { jobs, bytes, mismatches, canary_hits, first_wrong, .. } = exerciser.tally();
    let stopped = ended.err().map(|stopped| stopped.to_string());
    let wrong = first_wrong.map(|first| first.to_string()).or(stopped);
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
        outcome.mismatches += others(to.view_at(..LEN)?, mark);
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
    let device = open_edu::<WIDE, _>(&vfio, Interrupt::Any, Unwatched)?;
    let other = VfioDevice::open(&vfio, 0, Interrupt::Any).map(drop);
    check("second driver", other == Err(Error::HasDriver), format!("{other:?}"));
    drop(device);
    for (what, bar, interrupt, may) in [
        ("BAR 1", 1, Interrupt::Any, false),
        ("MSI-X", 0, Interrupt::MsiX, false),
        ("no reset", 0, Interrupt::Any, vfio.can_reset()),
    ] {
        let opened = VfioDevice::open(&vfio, bar, interrupt).map(drop);
        let is_refused = matches!(opened, Err(Error::Unsupported { .. }));
        check(what, may || is_refused, short(&opened));
    }

    // RLIMIT_MEMLOCK: root has CAP_IPC_LOCK, and no limit.
    let before = must("getrlimit", getrlimit(Resource::RLIMIT_MEMLOCK))?;
    let set = |soft| must("setrlimit", setrlimit(Resource::RLIMIT_MEMLOCK, soft, before.1));
    set(LIMIT_BYTES as _)?;
    let large = vfio.memory(8 << 20).map(drop);
    let expected = if nix::unistd::geteuid().is_root() {
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
    let count = blocks.len();
    let all = count == 64 && matches!(last, Error::TooMany { most: 64, .. });
    check("blocks", all, format!("{count} and then {last:?}"));
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
