//! A core whose registers still tell the job before, its end or its error: none of that is the next
//! job's. A row for each driver and mode.

use super::{See, each_driver, pl330};
use contigo::sim::{Faults, SimBoard, SimDevice};
use contigo::{Align, Driver, Error, Pool, Queue, Region, Result};
use contigo_testkit::suite::{Kind, SLOT_BYTES, Subject, Way};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_millis(20);
/// All jobs but those that hang have ended or failed by then.
const LONG_US: u32 = 5_000;
/// It has no jobs of its own: it stands before another core.
const NO_JOBS: &str = "axi_gate";

/// What became of the job before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// It was told, and the core was not stopped.
    Told,
    /// It was told, and then the core was stopped.
    ToldAndStopped,
    /// It ended, and the core was stopped before any look.
    Unseen,
    /// The core was stopped in the middle.
    Cut,
    /// It failed, and was told so.
    Failed,
    /// It failed, and the core was stopped before any look.
    FailedUnseen,
}

const ALL: [Before; 6] = [
    Before::Told,
    Before::ToldAndStopped,
    Before::Unseen,
    Before::Cut,
    Before::Failed,
    Before::FailedUnseen,
];

type Jobs<'r, 'd> = Queue<&'r mut (dyn Driver + 'd)>;

/// Gives it one job, as long as it can be.
fn push(subject: &impl Subject, pool: &Pool, queue: &mut Jobs<'_, '_>) -> Result<()> {
    let (limits, kind) = (subject.limits(), subject.kind());
    let unit = limits.len_align_bytes.max(1);
    let len = match kind {
        Kind::Receive => subject.packet_bytes().next_multiple_of(unit).min(SLOT_BYTES),
        Kind::Copy | Kind::Send => limits.len_max_bytes.min(SLOT_BYTES) / unit * unit,
    };
    let from =
        (kind != Kind::Receive).then(|| pool.take().map(|buf| buf.to_device(..len))).transpose()?;
    let to =
        (kind != Kind::Send).then(|| pool.take().map(|buf| buf.from_device(..len))).transpose()?;
    let mut operands = from.into_iter().chain(to).collect::<heapless::Vec<_, 2>>();
    queue
        .submit_list(&mut operands, &subject.words(len), 0)
        .map(drop)
        .map_err(|failed| failed.cause)
}

/// Stops it, by a reset from outside where it will not, and takes all jobs back.
fn stop<S: Subject>(device: &SimDevice<S::Model>, queue: &mut Jobs<'_, '_>) -> Result<()> {
    if let Err(Error::WillNotStop { .. }) = queue.stop() {
        device.reset()?;
        queue.stop()?;
    }
    while let Ok(Some(_)) = queue.wait_each(Duration::ZERO, |_, _, _| ()) {}
    while queue.take_back_each(|_, _, _| ()).is_some() {}
    Ok(())
}

/// The first look at a job behind another one, at the moment when it is given. `Err`: what it takes
/// for the job's end.
fn look<S: Subject>(subject: &S, before: Before) -> Result<(), String> {
    let fails = matches!(before, Before::Failed | Before::FailedUnseen);
    let faults = Faults { error: if fails { 1000 } else { 0 }, ..Faults::NONE };
    let board = SimBoard::with(7, faults);
    let own_bytes = subject.memory_bytes().max(64).next_multiple_of(4096);
    let region = Region::new(board.memory(7 * SLOT_BYTES + own_bytes).unwrap()).unwrap();
    let pool = region.pool(6, SLOT_BYTES).unwrap();
    let device = SimDevice::with_model(&board, Way::Plain.port(&board), subject.model());
    let memory =
        (subject.memory_bytes() > 0).then(|| region.alloc(own_bytes, Align::PAGE).unwrap());
    let seen = subject.open(device.window().unwrap(), memory, |driver| {
        let mut queue: Jobs<'_, '_> = Queue::new(driver, 8).unwrap();
        let first = push(subject, &pool, &mut queue);
        assert!(fails || first.is_ok(), "{}: {first:?}", subject.name());
        match before {
            Before::Told | Before::ToldAndStopped => {
                let told = queue.wait_each(LIMIT, |_, _, _| ()).unwrap();
                assert!(told.is_some(), "{}: it never ends", subject.name());
            }
            Before::Cut => device.run_for(1).unwrap(),
            Before::Unseen | Before::FailedUnseen => device.run_for(LONG_US).unwrap(),
            Before::Failed => {
                let told = queue.wait_each(LIMIT, |_, _, _| ());
                let well = matches!(told, Ok(Some((_, completion))) if completion.failed.is_none());
                let fails = first.is_err() || !well || !subject.tells_failures();
                assert!(fails, "{}: it does not fail", subject.name());
            }
        }
        if before != Before::Told {
            stop::<S>(&device, &mut queue).unwrap();
        }
        let seen = match push(subject, &pool, &mut queue) {
            Ok(()) => queue.wait_each(Duration::ZERO, |_, _, _| ()).map_err(|failed| failed.cause),
            Err(error) => Err(error),
        };
        let _ = queue.wait_each(LIMIT, |_, _, _| ());
        stop::<S>(&device, &mut queue).unwrap();
        seen
    });
    let counts = board.counts();
    match seen.unwrap() {
        Ok(None) if counts.unowned_accesses == 0 => Ok(()),
        // Its registers are gone since this job began.
        Err(Error::Fault { status: u32::MAX, .. }) if fails => Ok(()),
        seen => Err(format!("{}, {before:?}: {seen:?}, {counts:?}", subject.name())),
    }
}

#[derive(Default)]
struct Rows {
    drivers: BTreeSet<String>,
    wrong: Vec<String>,
}

impl See for Rows {
    fn see(&mut self, subject: &impl Subject) {
        // Its two protocols are named.
        let name = subject
            .name()
            .split([',', ' '])
            .next()
            .map_or("", |name| if name.starts_with("ap_ctrl") { "ap_ctrl" } else { name });
        self.drivers.insert(name.to_owned());
        self.wrong.extend(ALL.into_iter().filter_map(|before| look(subject, before).err()));
    }
}

#[test]
fn stale_registers_end_no_job() {
    let mut rows = Rows::default();
    each_driver(&mut rows);
    rows.see(&pl330::Dma330);
    assert!(rows.wrong.is_empty(), "{:#?}", rows.wrong);
    let drivers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/drivers/src");
    let drivers = fs::read_dir(drivers).unwrap().map(Result::unwrap);
    let drivers: BTreeSet<_> = drivers
        .filter(|entry| entry.path().is_dir() && entry.file_name() != NO_JOBS)
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    assert_eq!(rows.drivers, drivers, "each driver has a row");
}
