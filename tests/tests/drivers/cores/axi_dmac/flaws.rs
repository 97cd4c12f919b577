//! Faults that an AXI DMAC was seen to have, and how the driver meets them.

use super::*;

/// Mostly one burst of 64 bytes, in every order with longer ones.
const LENS: [usize; 12] = [8, 60, 64, 200, 3, 1000, 1, 64, 40, 2000, 130, 12];
/// The configuration of a core in which jobs of one burst do no harm.
const SINGLE: DmacConfig = DmacConfig { single_bursts: true, ..CONFIG };

type Job = (usize, Option<DmacRows>);

/// Copies of these lengths or rows, four at once. Each is right when its end is reported, and no
/// byte beside it changes, then or later.
fn copies(build: AxiDmacBuild, config: DmacConfig, lists: bool, jobs: &[Job]) {
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
                let is_there = to[..len] == from[..len];
                assert!(is_there, "{build:?}: a copy of {len} bytes is reported, and is not there");
                let beside = to[len..].iter().all(|byte| *byte == 0xFF);
                assert!(beside, "{build:?}: bytes behind a copy of {len} changed");
            }
            if len > 0 {
                lens.push_back(len);
                let (from, to) = (patterned(pool, number)?, filled(pool, 0xFF));
                let words = rows.map(DmacRows::words);
                let words = words.as_ref().map_or(&[][..], |words| &words[..]);
                queue.submit([from.to_device(..len), to.from_device(..len)], words)?;
            }
        }
        core.run_for(100)
    });
}

/// So many jobs of these lengths, one after the other.
fn of_lens(lens: &[usize], count: usize) -> Vec<Job> {
    lens.iter().cycle().take(count).map(|len| (*len, None)).collect()
}

#[test]
fn copies_of_one_burst_are_right_beside_others() {
    let jobs = of_lens(&LENS, 60);
    // Pieces of 256 bytes, and one burst left.
    let pieces = of_lens(&[257, 256 + 64, 512 + 30, 300, 1025, 4000], 40);
    copies(copier(), CONFIG, false, &jobs);
    copies(copier(), CONFIG, true, &jobs);
    copies(AxiDmacBuild { length_bits: 8, ..copier() }, CONFIG, true, &pieces);
    copies(AxiDmacBuild { single_bursts: false, ..copier() }, SINGLE, false, &jobs);
    // Lengths are multiples of a source's word that is wider. The other way round any will do.
    copies(AxiDmacBuild { words: [32, 8], ..copier() }, CONFIG, false, &of_lens(&[224], 8));
    copies(AxiDmacBuild { words: [8, 32], ..copier() }, CONFIG, false, &of_lens(&[201], 8));
}

/// Packets of a stream, with four buffers in flight.
fn received(build: AxiDmacBuild, config: DmacConfig, packet_bytes: usize, buffer_bytes: usize) {
    with(Faults::NONE, |board, pool, _own| {
        let mut queue = open(&core(board, build), config)?;
        for number in 0..60 {
            while !queue.is_full() {
                queue.give(receives(pool, ..buffer_bytes));
            }
            let done = queue.end::<1>();
            assert_eq!(done.bytes, Some(packet_bytes));
            // Packets for which no buffer is in flight are lost.
            let bytes = done.buffers[0].view_at::<u8>(..packet_bytes)?;
            assert!(
                packet::number(bytes).is_some_and(|number| packet::is(number, bytes)),
                "end {number} of {packet_bytes} bytes"
            );
        }
        queue.clear()
    });
}

/// How many bytes the core writes into four buffers of this length before any look.
fn written(build: AxiDmacBuild, config: DmacConfig, buffer_bytes: usize) -> u64 {
    let mut bytes = 0;
    with(Faults::NONE, |board, pool, _own| {
        let core = core(board, build);
        let mut queue = open(&core, config)?;
        for _ in 0..4 {
            queue.give(receives(pool, ..buffer_bytes));
        }
        core.run_for(20)?;
        bytes = board.counts().bytes_written;
        queue.clear()
    });
    bytes
}

/// Counted in bursts, of which a packet begins the first: with bursts of 64 bytes, 300 bytes end
/// in the fifth, and one byte in the first.
#[test]
fn buffer_that_a_packet_may_end_in_goes_alone() {
    for (packet_bytes, room_bytes) in
        [(300, 7 * 64), (320, 7 * 64), (321, 8 * 64), (4, 3 * 64), (64, 3 * 64)]
    {
        let build = AxiDmacBuild { single_bursts: false, ..receiver(packet_bytes) };
        let deep = DmacConfig { packet_bytes: u32::try_from(packet_bytes).unwrap(), ..SINGLE };
        let found = [room_bytes, room_bytes + 1]
            .map(|bytes| written(build, deep, bytes) / packet_bytes as u64);
        assert_eq!(found, [1, 4], "packets of {packet_bytes} bytes");
        for buffer_bytes in [packet_bytes + 1, room_bytes, room_bytes + 1] {
            received(build, deep, packet_bytes, buffer_bytes);
        }
        // Without that number each buffer is alone, and without mended Verilog as well.
        for config in [SINGLE, DmacConfig { single_bursts: false, ..deep }] {
            received(build, config, packet_bytes, packet_bytes + 1);
        }
    }
}

fn of_rows(row_bytes: u32, rows: u32) -> Job {
    let job = DmacRows { row_bytes, rows, from_stride: row_bytes, to_stride: row_bytes };
    ((row_bytes * rows) as usize, Some(job))
}

/// The driver's answer to a job of rows of contiguous bytes. One that it takes is carried out.
fn rows(build: AxiDmacBuild, config: DmacConfig, row_bytes: u32, rows: u32) -> Result<()> {
    let job @ (len_bytes, words) = of_rows(row_bytes, rows);
    let slice = DevSlice { addr: DevAddr(0), offset_bytes: 0, len_bytes };
    let core = core(&SimBoard::new(5), build);
    open(&core, config)?.driver().check(&[slice, slice], &words.unwrap().words())?;
    copies(build, config, false, &[job; 8]);
    Ok(())
}

#[test]
fn rows_whose_ends_the_core_mixes_up_are_refused() {
    let (build, small) = (copier(), DmacConfig { fifo_bursts: 8, ..CONFIG });
    let mended = AxiDmacBuild { single_bursts: false, ..build };
    let deep = AxiDmacBuild { fifo_bursts: 32, ..build };
    let large = DmacConfig { fifo_bursts: 32, ..CONFIG };
    cases! {
        rows(build, small, 2 * 64, 5) => Err(Error::Setting { name: "fifo_bursts", value: 8, .. }),
        // One burst each.
        rows(build, small, 64, 5) => Err(Error::Setting { name: "fifo_bursts", value: 8, .. }),
        rows(build, small, 64, 2) => Err(Error::Setting { name: "single_bursts", value: 0, .. }),
        rows(mended, DmacConfig { single_bursts: true, ..small }, 64, 4) => Ok(()),
        // Eight bursts' room: 16 are asked for or not yet noted, three rows of five and one burst.
        rows(build, small, 5 * 64, 5) => Err(Error::Setting { name: "fifo_bursts", value: 8, .. }),
        rows(build, small, 6 * 64, 10) => Ok(()),
        rows(build, small, 2 * 64, 4) => Ok(()),
        // Who does not say gets what is right for the largest FIFO.
        rows(deep, CONFIG, 10 * 64, 5)
            => Err(Error::Setting { name: "fifo_bursts", value: 32, .. }),
        rows(build, large, 10 * 64, 5)
            => Err(Error::Setting { name: "fifo_bursts", value: 32, .. }),
    }
    // Nor are jobs of rows and others mixed up.
    let jobs = [
        of_rows(128, 3),
        (64, None),
        of_rows(128, 4),
        of_rows(192, 2),
        (700, None),
        of_rows(128, 3),
        (200, None),
        (300, None),
        of_rows(384, 7),
    ];
    let jobs: Vec<_> = jobs.into_iter().cycle().take(45).collect();
    copies(build, small, false, &jobs);
}
