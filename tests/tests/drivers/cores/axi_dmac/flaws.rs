//! Faults that an AXI DMAC was seen to have, and how the driver meets them.

use super::{CONFIG, LIMIT, copier, core, pattern, receiver, with};
use contigo::{
    DevAddr, Driver, Error, Queue, Result,
    drivers::axi_dmac::{DmacConfig, DmacRows},
    job::Settings,
    mem::DevSlice,
    sim::{
        Faults,
        axi_dmac::{AxiDmacBuild, AxiDmacFlaws},
        stream::packet,
    },
};

/// Mostly one burst of 64 bytes, in every order with longer ones.
const LENS: [usize; 12] = [8, 60, 64, 200, 3, 1000, 1, 64, 40, 2000, 130, 12];
const ROUNDS: usize = 5;

/// Copies of these lengths or rows, four at once. Each is right when its end is reported, and no
/// byte beside it changes, then or later.
fn copies(
    build: AxiDmacBuild,
    config: DmacConfig,
    lists: bool,
    jobs: &[(usize, Option<DmacRows>)],
) {
    with(Faults::NONE, |board, pool, own| {
        let core = core(board, build);
        let window = core.window()?;
        let driver = if lists { window.listed(config, own)? } else { window.driver(config)? };
        let mut queue = Queue::new(driver, 4)?;
        let mut lens = std::collections::VecDeque::new();
        for (number, &(len, rows)) in jobs.iter().chain(&[(0, None); 4]).enumerate() {
            if queue.is_full() || len == 0 && !queue.is_empty() {
                let done = queue
                    .wait::<2>(LIMIT)?
                    .unwrap_or_else(|| panic!("{build:?}: job {number} of {jobs:?} never ends"));
                let ([from, to], len): (_, usize) = (done.buffers, lens.pop_front().unwrap());
                let (from, to) = (from.whole(), to.whole());
                let (from, to) = (from.view::<u8>()?, to.view::<u8>()?);
                assert_eq!(
                    &to[..len],
                    &from[..len],
                    "{build:?}: a copy of {len} bytes is reported, and is not there"
                );
                assert!(
                    to[len..].iter().all(|byte| *byte == 0xFF),
                    "{build:?}: bytes behind a copy of {len} changed"
                );
            }
            if len > 0 {
                let (mut from, mut to) = (pool.take()?, pool.take()?);
                from.view_mut::<u8>()?
                    .iter_mut()
                    .enumerate()
                    .for_each(|(index, byte)| *byte = pattern(index + number));
                to.view_mut::<u8>()?.fill(0xFF);
                lens.push_back(len);
                let words = rows.map(DmacRows::words);
                queue.submit(
                    [from.to_device(..len), to.from_device(..len)],
                    words.as_ref().map_or(&[], |words| &words[..]),
                )?;
            }
        }
        core.run_for(100)
    });
}

#[test]
fn copies_of_one_burst_are_right_beside_others() {
    let jobs: Vec<_> =
        LENS.iter().cycle().take(LENS.len() * ROUNDS).map(|len| (*len, None)).collect();
    copies(copier(), CONFIG, false, &jobs);
    copies(copier(), CONFIG, true, &jobs);
    // Pieces of 256 bytes, and one burst left.
    let pieces: Vec<_> = [257, 256 + 64, 512 + 30, 300, 1025, 4000]
        .iter()
        .cycle()
        .take(40)
        .map(|len| (*len, None))
        .collect();
    copies(AxiDmacBuild { length_bits: 8, ..copier() }, CONFIG, true, &pieces);
    // A core in which they do no harm is not held back.
    let flaws = AxiDmacFlaws { single_bursts: false, ..AxiDmacFlaws::ALL };
    copies(
        AxiDmacBuild { flaws, ..copier() },
        DmacConfig { single_bursts: true, ..CONFIG },
        false,
        &jobs,
    );
}

/// Packets of a stream, with four buffers in flight.
fn received(build: AxiDmacBuild, config: DmacConfig, packet_bytes: usize, buffer_bytes: usize) {
    with(Faults::NONE, |board, pool, _own| {
        let core = core(board, build);
        let mut queue = Queue::new(core.window()?.driver(config)?, 4)?;
        for number in 0..60 {
            while !queue.is_full() {
                queue.submit([pool.take()?.from_device(..buffer_bytes)], &[])?;
            }
            let done = queue
                .wait::<1>(LIMIT)?
                .unwrap_or_else(|| panic!("packet {number} of {packet_bytes} bytes never comes"));
            assert_eq!(done.bytes, Some(packet_bytes));
            let [buf] = done.buffers;
            // Packets for which no buffer is in flight are lost.
            let bytes = buf.view_at::<u8>(..packet_bytes)?;
            assert!(
                packet::number(bytes).is_some_and(|number| packet::is(number, bytes)),
                "end {number} of {packet_bytes} bytes"
            );
        }
        queue.stop()?;
        while queue.take_back::<1>().unwrap().is_some() {}
        Ok(())
    });
}

/// How many bytes the core writes into four buffers of this length before any look.
fn written(build: AxiDmacBuild, config: DmacConfig, buffer_bytes: usize) -> u64 {
    let mut bytes = 0;
    with(Faults::NONE, |board, pool, _own| {
        let core = core(board, build);
        let mut queue = Queue::new(core.window()?.driver(config)?, 4)?;
        for _ in 0..4 {
            queue.submit([pool.take()?.from_device(..buffer_bytes)], &[])?;
        }
        core.run_for(20)?;
        bytes = board.counts().bytes_written;
        queue.stop()?;
        while queue.take_back::<1>().unwrap().is_some() {}
        Ok(())
    });
    bytes
}

/// Counted in bursts, of which a packet begins the first: with bursts of 64 bytes, 300 bytes end
/// in the fifth, and one byte in the first.
#[test]
fn buffer_that_a_packet_may_end_in_goes_alone() {
    let flaws = AxiDmacFlaws { single_bursts: false, ..AxiDmacFlaws::ALL };
    for (packet_bytes, room_bytes) in
        [(300, 7 * 64), (320, 7 * 64), (321, 8 * 64), (4, 3 * 64), (64, 3 * 64)]
    {
        let build = AxiDmacBuild { flaws, ..receiver(packet_bytes) };
        let deep = DmacConfig {
            single_bursts: true,
            packet_bytes: u32::try_from(packet_bytes).unwrap(),
            ..CONFIG
        };
        let found = [room_bytes, room_bytes + 1]
            .map(|bytes| written(build, deep, bytes) / packet_bytes as u64);
        assert_eq!(found, [1, 4], "packets of {packet_bytes} bytes");
        for buffer_bytes in [packet_bytes + 1, room_bytes, room_bytes + 1] {
            received(build, deep, packet_bytes, buffer_bytes);
        }
        // Without that number each buffer is alone, and without mended Verilog as well.
        received(build, DmacConfig { packet_bytes: 0, ..deep }, packet_bytes, packet_bytes + 1);
        received(
            build,
            DmacConfig { single_bursts: false, ..deep },
            packet_bytes,
            packet_bytes + 1,
        );
    }
}

#[test]
fn buffer_below_the_longest_packet_is_refused() {
    with(Faults::NONE, |board, pool, _own| {
        let core = core(board, receiver(300));
        let driver = core.window()?.driver(DmacConfig { packet_bytes: 300, ..CONFIG })?;
        let mut queue = Queue::new(driver, 4)?;
        let refused = queue.submit([pool.take()?.from_device(..299)], &[]).unwrap_err();
        assert!(
            matches!(
                refused.error,
                Error::BufferSize { index: 0, need_bytes: 300, have_bytes: 299 }
            ),
            "{refused}"
        );
        queue.submit([pool.take()?.from_device(..300)], &[])?;
        assert_eq!(queue.wait::<1>(LIMIT)?.unwrap().bytes, None, "the whole buffer");
        Ok(())
    });
}

/// The driver's answer to a job of these rows of contiguous bytes. One that it takes is carried
/// out.
fn rows(build: AxiDmacBuild, config: DmacConfig, row_bytes: u32, rows: u32) -> Result<()> {
    let job = DmacRows { row_bytes, rows, from_stride: row_bytes, to_stride: row_bytes };
    let mut refused = Ok(());
    with(Faults::NONE, |board, _pool, _own| {
        let core = core(board, build);
        let slice =
            DevSlice { addr: DevAddr(0), offset_bytes: 0, len_bytes: (row_bytes * rows) as usize };
        refused = core.window()?.driver(config)?.check(&[slice, slice], &job.words());
        Ok(())
    });
    if refused.is_ok() {
        copies(build, config, false, &vec![((row_bytes * rows) as usize, Some(job)); 8]);
    }
    refused
}

#[test]
fn rows_whose_ends_the_core_mixes_up_are_refused() {
    let (build, small) = (copier(), DmacConfig { fifo_bursts: 8, ..CONFIG });
    let is_refused = |result, setting, value: u64| match result {
        Err(Error::Setting { name, value: found, .. }) => (name, found) == (setting, value),
        _ => false,
    };
    assert!(is_refused(rows(build, small, 2 * 64, 5), "fifo_bursts", 8));
    // One burst each.
    assert!(is_refused(rows(build, small, 64, 5), "fifo_bursts", 8));
    assert!(is_refused(rows(build, small, 64, 2), "single_bursts", 0));
    let mended =
        AxiDmacBuild { flaws: AxiDmacFlaws { single_bursts: false, ..AxiDmacFlaws::ALL }, ..build };
    assert_eq!(rows(mended, DmacConfig { single_bursts: true, ..small }, 64, 4), Ok(()));
    // Eight bursts' room: 16 are asked for or not yet noted, three rows of five and one burst.
    assert!(is_refused(rows(build, small, 5 * 64, 5), "fifo_bursts", 8));
    assert_eq!(rows(build, small, 6 * 64, 10), Ok(()));
    assert_eq!(rows(build, small, 2 * 64, 4), Ok(()));
    // Who does not say gets what is right for the largest FIFO.
    assert!(is_refused(
        rows(AxiDmacBuild { fifo_bursts: 32, ..build }, CONFIG, 10 * 64, 5),
        "fifo_bursts",
        32
    ));
    assert!(is_refused(
        rows(build, DmacConfig { fifo_bursts: 32, ..CONFIG }, 10 * 64, 5),
        "fifo_bursts",
        32
    ));
}

#[test]
fn jobs_of_rows_and_others_are_not_mixed_up() {
    let of = |row_bytes, rows| {
        (
            (row_bytes * rows) as usize,
            Some(DmacRows { row_bytes, rows, from_stride: row_bytes, to_stride: row_bytes }),
        )
    };
    let jobs: Vec<_> = [
        of(128, 3),
        (64, None),
        of(128, 4),
        of(192, 2),
        (700, None),
        of(128, 3),
        (200, None),
        (300, None),
        of(384, 7),
    ]
    .into_iter()
    .cycle()
    .take(45)
    .collect();
    copies(copier(), DmacConfig { fifo_bursts: 8, ..CONFIG }, false, &jobs);
}

#[test]
fn lengths_are_multiples_of_a_source_s_word_that_is_wider() {
    with(Faults::NONE, |board, pool, _own| {
        let core = core(board, AxiDmacBuild { words: [32, 8], ..copier() });
        let driver = core.window()?.driver(CONFIG)?;
        assert_eq!(driver.found().length_align, 32);
        let mut queue = Queue::new(driver, 4)?;
        let refused =
            queue.submit([pool.take()?.to_device(..200), pool.take()?.from_device(..200)], &[]);
        let refused = refused.unwrap_err();
        assert!(
            matches!(refused.error, Error::Argument { value: 200, multiple_of: 32, .. }),
            "{refused}"
        );
        Ok(())
    });
    let build = AxiDmacBuild { words: [32, 8], ..copier() };
    copies(build, CONFIG, false, &[(224, None); 8]);
    // The other way round any length will do.
    copies(AxiDmacBuild { words: [8, 32], ..build }, CONFIG, false, &[(201, None); 8]);
}

#[test]
fn settings_are_read_as_text() {
    let text = Settings("burst_bytes=256,fifo_bursts=16,single_bursts=1,packet_bytes=1500");
    let expected = DmacConfig {
        burst_bytes: 256,
        fifo_bursts: 16,
        single_bursts: true,
        packet_bytes: 1500,
        ..DmacConfig::default()
    };
    assert_eq!(DmacConfig::from_settings(&text), Ok(expected));
    assert_eq!(DmacConfig::from_settings(&Settings("")), Ok(DmacConfig::default()));
    for (text, name, value) in
        [("fifo_bursts=12", "fifo_bursts", 12), ("burst_bytes=96", "burst_bytes", 96)]
    {
        let refused = DmacConfig::from_settings(&Settings(text)).unwrap_err();
        assert!(
            matches!(refused, Error::Setting { name: found, value: had, .. }
                if (found, had) == (name, value)),
            "{refused}"
        );
    }
    let refused = DmacConfig::from_settings(&Settings("fifo_bursts=64"));
    assert!(
        matches!(refused, Err(Error::Argument { value: 64, min: 2, max: 32, .. })),
        "{refused:?}"
    );
}
