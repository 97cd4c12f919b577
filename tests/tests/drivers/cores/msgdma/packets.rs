//! What comes through a prefetcher: packets that are received, and descriptors that are late.

use super::*;

fn source(packet_bytes: usize, marks_last: bool) -> StreamConfig {
    StreamConfig::source(SourceConfig { packet_bytes, marks_last, ..SourceConfig::default() }, 4096)
}

/// Receives `count` packets into buffers of `len_bytes`: what each completion said.
fn receive(
    stream: StreamConfig,
    faults: Faults,
    len_bytes: usize,
    count: usize,
) -> Vec<(Option<usize>, u32, Option<&'static str>)> {
    let mut seen = vec![];
    with(faults, |board, pool, own| {
        let config = MsgdmaConfig { prefetcher_at: Some(0x60), ..RECEIVE };
        let core = core(board, config, stream);
        let mut queue = driver(core.window()?, config, own)?;
        while seen.len() < count {
            while !queue.is_full() {
                queue.give(receives(pool, ..len_bytes));
            }
            let ended = queue.wait_each(LIMIT, |_, _, buf| drop(buf));
            let (_, end) = ended.map_err(|failed| failed.error)?.unwrap();
            seen.push((end.bytes, end.status, end.failed));
        }
        queue.clear()
    });
    seen
}

#[test]
fn long_packet_fails_alone() {
    let is_early = |failed: Option<&str>| failed.is_some_and(|it| it.starts_with("early termin"));
    let seen = receive(source(1000, true), Faults::NONE, 600, 4);
    let said: Vec<_> =
        seen.iter().map(|&(bytes, status, it)| (bytes, status, is_early(it))).collect();
    let both = [(Some(600), regs::EARLY, true), (Some(400), 0, false)];
    assert_eq!(said, [both, both].concat());
    // A stream that marks no end fills buffers, and that is reported.
    for (bytes, status, failed) in receive(source(1000, false), Faults::NONE, 512, 3) {
        assert_eq!((bytes, status, failed.is_some()), (Some(512), regs::EARLY, true));
    }
}

#[test]
fn error_bits_of_a_packet_are_its_own() {
    let seen = receive(source(256, true), Faults { error: 500, ..Faults::NONE }, 256, 40);
    let has = |status: u32| status & regs::ERRORS != 0;
    assert!((5..35).contains(&seen.iter().filter(|end| has(end.1)).count()), "{seen:?}");
    for (bytes, status, failed) in seen {
        assert_eq!((bytes, failed.is_some()), (Some(256), has(status)), "{status:#x}");
    }
}

/// The interrupt comes before the descriptor is written back, and is acknowledged.
#[test]
fn late_write_back_is_found_at_a_waits_end() {
    with(Faults::NONE, |board, pool, own| {
        let late_write_back_ns = 100_000;
        let build = MsgdmaBuild {
            config: FETCHED,
            stream: StreamConfig::sink(),
            late_write_back_ns,
            ..MsgdmaBuild::default()
        };
        let core = built(board, build);
        let mut queue = driver(core.window()?, FETCHED, own)?;
        for _ in 0..3 {
            queue.give(copies(pool, ..64, ..64));
            // Waits that are short enough to see the interrupt before the descriptor.
            let mut short = || queue.wait::<2>(Duration::from_micros(20));
            assert!((0..50).any(|_| short().is_ok_and(|done| done.is_some())), "no wait found it");
        }
        Ok(())
    });
}

/// Descriptors that the core does not own are not written again after a stop.
#[test]
fn a_job_after_a_stop_writes_few_descriptors() {
    let (board, _, pool) = bench(3, 6, 64);
    let own = region(&board, 4096);
    let core = core(&board, FETCHED, StreamConfig::sink());
    let mut queue = driver(core.window().unwrap(), FETCHED, ring(&own)).unwrap();
    for (jobs, most) in [(3, 80), (1, 10), (1, 10)] {
        let before = own.stats().syncs;
        for _ in 0..jobs {
            queue.give(copies(&pool, .., ..));
        }
        let syncs = own.stats().syncs - before;
        assert!(syncs <= most, "{syncs} syncs of descriptors for {jobs} jobs after a stop");
        queue.clear().unwrap();
    }
    clean(&board);
}
