//! Numbers that belong together, and their ranges.

use crate::report::{
    Counts, EndedBy, Energy, Kind, Latency, Mode, Part, Report, Row, Soak, Status,
};

/// A board's clock and this machine's may differ by so much.
const CLOCKS_DIFFER_S: u64 = 300;
/// The folders of boards that are no board.
const NO_BOARDS: [&str; 3] = ["sim", "virt", "virt-armv7"];
/// A soak ends so long after its time at most: the round under way is finished first.
const OVER_TIME_S: u64 = 600;
/// A row takes less: four months.
const ROW_MAX_S: f64 = 1e7;

/// Everything that makes no sense.
pub(crate) fn wrong(report: &Report, now_unix_s: u64) -> Vec<String> {
    let mut wrong = Vec::new();
    let taken = report.taken_unix_s;
    if taken > now_unix_s.saturating_add(CLOCKS_DIFFER_S) {
        wrong.push(format!(
            "taken_unix_s: {taken} is in the future, now is {now_unix_s}: set the board's clock"
        ));
    }
    wrong.extend(report.board.name.as_ref().and_then(|name| unknown_board(name)));
    let of = |status| report.rows.iter().filter(|row| row.status == status).count();
    let counted = Counts {
        passed: of(Status::Passed),
        failed: of(Status::Failed),
        skipped: of(Status::Skipped),
    };
    if counted != report.counts {
        wrong.push(format!("counts: {:?}, but the rows are {counted:?}", report.counts));
    }
    wrong.extend(report.rows.iter().filter_map(of_row));
    wrong.extend(report.latency.iter().flat_map(|latency| of_latency(latency, &report.rows)));
    wrong.extend(report.energy.iter().filter_map(|energy| of_energy(energy, &report.rows)));
    if let Some(test) = report
        .cyclictest
        .as_ref()
        .filter(|test| test.min_us > test.mean_us || test.mean_us > test.max_us)
    {
        wrong.push(format!(
            "cyclictest: {} <= {} <= {} does not hold",
            test.min_us, test.mean_us, test.max_us
        ));
    }
    wrong.extend(report.soak.iter().flat_map(of_soak));
    for (name, is_there) in [
        (Part::Latency, !report.latency.is_empty()),
        (Part::Cyclictest, report.cyclictest.is_some()),
        (Part::Energy, !report.energy.is_empty()),
        (Part::Soak, report.soak.is_some()),
    ] {
        match (is_there, report.missing.contains_key(&name)) {
            (true, true) => {
                wrong.push(format!("missing: {name:?} is there, and has a reason why it is not"))
            }
            (false, false) => {
                wrong.push(format!("missing: {name:?} is not there, and nothing says why"))
            }
            _ => {}
        }
    }
    wrong
}

fn unknown_board(name: &str) -> Option<String> {
    let known =
        contigo_boards::ALL.iter().any(|board| board.name == name) && !NO_BOARDS.contains(&name);
    (!known).then(|| format!("board.name: there is no board in boards/{name}"))
}

fn of_row(row: &Row) -> Option<String> {
    let Row { kind, name, mode, jobs, mismatches, canary_hits, reason, seconds, .. } = row;
    let is_check = *kind == Kind::Check;
    let said = |what: &str| Some(format!("rows, {name}: {what}"));
    match row.status {
        _ if !(0.0..=ROW_MAX_S).contains(seconds) => said(&format!("it took {seconds} s")),
        Status::Passed if mismatches + canary_hits > 0 => {
            said(&format!("passed with {mismatches} mismatches and {canary_hits} canary hits"))
        }
        Status::Passed if !is_check && *jobs == 0 => said("passed without a job"),
        Status::Failed | Status::Skipped if reason.is_empty() => {
            said("it did not pass, and has no reason")
        }
        _ if is_check != (*mode == Mode::None) => said(&format!("its mode is {mode:?}")),
        _ => None,
    }
}

fn named<'r>(rows: &'r [Row], kind: Kind, engine: &str, memory: &str) -> Option<&'r Row> {
    rows.iter().find(|row| {
        row.kind == kind
            && row.engine == engine
            && row.memory == memory
            && row.status == Status::Passed
    })
}

fn of_latency(latency: &Latency, rows: &[Row]) -> Vec<String> {
    let Latency {
        memory,
        engine,
        mode,
        n,
        without_interrupt,
        resolution_ns,
        min_ns,
        p50_ns,
        p99_ns,
        max_ns,
        ..
    } = latency;
    let said = |what: String| format!("latency, {engine} {mode:?}: {what}");
    let mut wrong = Vec::new();
    if ![min_ns, p50_ns, p99_ns, max_ns].is_sorted() {
        wrong.push(said(format!("{min_ns} <= {p50_ns} <= {p99_ns} <= {max_ns} does not hold")));
    }
    if *min_ns < resolution_ns.get() {
        wrong
            .push(said(format!("{min_ns} ns is less than the clock resolves, {resolution_ns} ns")));
    }
    if *mode == Mode::Polled && *without_interrupt > 0 {
        wrong.push(said(format!("{without_interrupt} polled jobs had no interrupt")));
    }
    let row = rows.iter().find(|row| {
        row.kind == Kind::Latency
            && row.engine == *engine
            && row.memory == *memory
            && row.mode == *mode
    });
    match row {
        None => wrong.push(said("no row has it".into())),
        Some(row) if row.jobs != n.get().saturating_add(*without_interrupt) => {
            wrong.push(said(format!(
                "{n} and {without_interrupt} jobs, but the row has {}",
                row.jobs
            )));
        }
        Some(_) => {}
    }
    wrong
}

fn of_energy(energy: &Energy, rows: &[Row]) -> Option<String> {
    let Energy { rail, memory, engine, jobs, microjoules, nanojoules_per_job, .. } = energy;
    let each = microjoules.saturating_mul(1000) / *jobs;
    if each != *nanojoules_per_job {
        return Some(format!(
            "energy, {rail}: {microjoules} µJ of {jobs} jobs are {each} nJ each, not \
             {nanojoules_per_job}"
        ));
    }
    named(rows, Kind::Energy, engine, memory)
        .is_none()
        .then(|| format!("energy, {rail}: no row has it"))
}

fn of_soak(soak: &Soak) -> Vec<String> {
    let mut wrong = Vec::new();
    let Soak {
        planned_s,
        seconds,
        ended_by,
        jobs,
        bytes,
        rss_first_kib,
        rss_last_kib,
        rss_max_kib,
        rss_bound_kib,
        engines,
        ..
    } = soak;
    let sum: u64 = engines
        .iter()
        .map(|engine| engine.polled.saturating_add(engine.interrupt).saturating_add(engine.queued))
        .fold(0, u64::saturating_add);
    if sum != *jobs {
        wrong.push(format!("soak: {jobs} jobs, but those of its engines are {sum}"));
    }
    if bytes < jobs {
        wrong.push(format!("soak: {jobs} jobs copied {bytes} bytes, and each copies one at least"));
    }
    if rss_first_kib > rss_max_kib || rss_last_kib > rss_max_kib {
        wrong.push(format!(
            "soak: its memory was {rss_first_kib} and {rss_last_kib} KiB, with a \
            maximum of {rss_max_kib}"
        ));
    }
    if rss_max_kib > rss_bound_kib && soak.faults_unexpected == 0 {
        wrong.push(format!(
            "soak: its memory was {rss_max_kib} KiB, above {rss_bound_kib}, and no \
            fault explains it"
        ));
    }
    if *ended_by == EndedBy::Time
        && !(*planned_s..=planned_s.saturating_add(OVER_TIME_S)).contains(seconds)
    {
        wrong.push(format!("soak: it ended by time after {seconds} s of {planned_s}"));
    }
    if (*ended_by == EndedBy::Fault) != (soak.faults_unexpected > 0) {
        wrong.push(format!(
            "soak: it ended by {ended_by:?} with {} unexpected faults",
            soak.faults_unexpected
        ));
    }
    wrong
}
