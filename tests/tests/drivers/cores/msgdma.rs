//! mSGDMA: refusals, edges, errors, and stops.
#![allow(unsafe_code, reason = "a stop program is run")]

mod responses;

use crate::regs::msgdma as regs;
use contigo::{
    Align, CpuBuf, Driver, Error, Mmio, Pool, Queue, Region, Result,
    drivers::msgdma::{Msgdma, MsgdmaConfig, MsgdmaMode, MsgdmaTransfer},
    job::{Settings, StopProgram},
    sim::{
        Faults, SimBoard, SimConfig, SimDevice,
        msgdma::{MsgdmaBuild, MsgdmaModel},
        stream::{SourceConfig, StreamConfig},
    },
};
use contigo_testkit::lent::Lent;
use std::time::Duration;

const LIMIT: Duration = Duration::from_millis(5);
const COPY: MsgdmaConfig = MsgdmaConfig {
    mode: MsgdmaMode::Copy,
    extended: false,
    depth: 128,
    max_bytes: 4096,
    data_bits: 32,
    transfer: MsgdmaTransfer::Aligned,
    address_bits: 32,
    csr_at: 0,
    desc_at: 0x20,
    resp_at: None,
    prefetcher_at: None,
    write_responses: false,
    settle_us: 100,
    stop_us: 1_000,
};
const RECEIVE: MsgdmaConfig =
    MsgdmaConfig { mode: MsgdmaMode::Receive, resp_at: Some(0x40), ..COPY };
const FETCHED: MsgdmaConfig = MsgdmaConfig { prefetcher_at: Some(0x60), ..COPY };

/// A board's memory: 24 buffers of 4 KiB, and 4 KiB for descriptors.
fn with(faults: Faults, act: impl FnOnce(&SimBoard, &Pool, CpuBuf) -> Result<()>) {
    let board = SimBoard::with(SimConfig { seed: 3, faults });
    let region: Region = Region::new(board.memory(28 * 4096).unwrap()).unwrap();
    let own = region.pool(1, 4096).unwrap();
    let pool = region.pool(24, 4096).unwrap();
    act(&board, &pool, own.take().unwrap()).unwrap();
    let counts = board.counts();
    assert_eq!(
        (counts.unowned_accesses, counts.lost_writes, pool.taken(), own.taken()),
        (0, 0, 0, 0),
        "{counts:?}"
    );
}

fn core(board: &SimBoard, config: MsgdmaConfig, stream: StreamConfig) -> SimDevice<MsgdmaModel> {
    SimDevice::with_model(
        board,
        board.port(),
        MsgdmaModel::new(MsgdmaBuild { config, stream, ..MsgdmaBuild::default() }),
    )
}

fn source(packet_bytes: usize, marks_last: bool) -> StreamConfig {
    StreamConfig::source(SourceConfig { packet_bytes, marks_last, ..SourceConfig::default() }, 4096)
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let refused = |config: MsgdmaConfig| {
        let board = SimBoard::new(1);
        let core = core(&board, COPY, StreamConfig::sink());
        core.window().unwrap().driver(config).map(drop).unwrap_err()
    };
    assert!(matches!(
        refused(MsgdmaConfig { address_bits: 40, ..COPY }),
        Error::Argument { value: 40, max: 32, .. }
    ));
    assert!(matches!(
        refused(MsgdmaConfig { data_bits: 24, ..COPY }),
        Error::Argument { value: 24, .. }
    ));
    assert!(matches!(
        refused(MsgdmaConfig { depth: 4, ..COPY }),
        Error::Argument { value: 4, min: 8, .. }
    ));
    assert!(matches!(
        refused(MsgdmaConfig { desc_at: 0x10, ..COPY }),
        Error::Setting { value: 0x10, .. }
    ));
    assert!(matches!(
        refused(MsgdmaConfig { desc_at: 0x22, ..COPY }),
        Error::Argument { value: 0x22, multiple_of: 4, .. }
    ));
    assert!(matches!(
        refused(MsgdmaConfig { desc_at: 0xF4, ..COPY }),
        Error::RegisterWindow { need_bytes: 0x104, have_bytes: 0x100, .. }
    ));
    assert!(matches!(
        refused(MsgdmaConfig { resp_at: None, ..RECEIVE }),
        Error::Unsupported { .. }
    ));
    assert!(matches!(refused(FETCHED), Error::Unsupported { .. }));
    // A newer core says that it is built in another way.
    let other = refused(MsgdmaConfig { mode: MsgdmaMode::Send, ..COPY });
    assert_eq!(other.kind(), contigo::ErrorKind::Device, "{other}");
    assert!(matches!(refused(MsgdmaConfig { extended: true, ..COPY }), Error::WrongDevice { .. }));
    // Nothing is there.
    assert!(matches!(
        refused(MsgdmaConfig { csr_at: 0x80, ..COPY }),
        Error::WrongDevice { register: "STATUS", found: 0, .. }
    ));
}

#[test]
fn an_older_core_is_believed() {
    let board = SimBoard::new(1);
    let model = MsgdmaModel::new(MsgdmaBuild {
        config: COPY,
        stream: StreamConfig::sink(),
        tells: false,
        ..MsgdmaBuild::default()
    });
    let core = SimDevice::with_model(&board, board.port(), model);
    assert!(core.window().unwrap().driver(COPY).is_ok());
}

#[test]
fn settings_are_read_as_text() {
    let text = Settings(
        "mode=2,extended=1,depth=16,max_bytes=65536,transfer=2,address_bits=64,resp_at=0x40,prefetcher_at=0,write_responses=1,settle_us=7",
    );
    let config = MsgdmaConfig::from_settings(&text).unwrap();
    let expected = MsgdmaConfig {
        mode: MsgdmaMode::Receive,
        extended: true,
        depth: 16,
        max_bytes: 65_536,
        transfer: MsgdmaTransfer::Unaligned,
        address_bits: 64,
        resp_at: Some(0x40),
        write_responses: true,
        settle_us: 7,
        ..MsgdmaConfig::default()
    };
    assert_eq!(config, expected);
    assert_eq!(MsgdmaConfig::from_settings(&Settings("")).unwrap(), MsgdmaConfig::default());
    assert!(matches!(
        MsgdmaConfig::from_settings(&Settings("depth=4")),
        Err(Error::Argument { value: 4, min: 8, .. })
    ));
}

#[test]
fn jobs_that_the_core_cannot_take_are_refused_before() {
    with(Faults::NONE, |board, pool, _own| {
        let core = core(board, COPY, StreamConfig::sink());
        let config = MsgdmaConfig {
            max_bytes: 1024,
            transfer: MsgdmaTransfer::FullWords,
            data_bits: 64,
            ..COPY
        };
        let mut queue = Queue::new(core.window()?.driver(config)?, 1)?;
        let mut refused = |from: std::ops::Range<usize>, to: std::ops::Range<usize>| {
            let operands =
                [pool.take().unwrap().to_device(from), pool.take().unwrap().from_device(to)];
            queue.submit(operands, &[]).unwrap_err().error
        };
        assert!(matches!(
            refused(0..1032, 0..2048),
            Error::OperandTooLong { have_bytes: 1032, max_bytes: 1024, .. }
        ));
        assert!(matches!(refused(0..12, 0..16), Error::Argument { value: 12, multiple_of: 8, .. }));
        assert!(matches!(
            refused(4..12, 0..16),
            Error::BufferAlign { index: 0, align_bytes: 8, .. }
        ));
        assert!(matches!(refused(0..16, 4..20), Error::BufferAlign { index: 1, .. }));
        assert!(matches!(
            refused(0..16, 0..8),
            Error::BufferSize { index: 1, need_bytes: 16, have_bytes: 8 }
        ));
        Ok(())
    });
}

#[test]
fn a_ring_that_is_too_small_comes_back() {
    with(Faults::NONE, |board, pool, own| {
        let core = core(board, FETCHED, StreamConfig::sink());
        drop(own);
        let small = pool.take()?;
        // One descriptor is never owned, so that there must be two.
        let region = Region::new(board.memory(4096)?)?;
        let one = region.alloc(64, Align::PAGE)?;
        let refused = core.window()?.prefetched(FETCHED, one).map(drop).unwrap_err();
        assert!(
            matches!(refused.error, Error::BlockSize { len_bytes: 64, need_bytes: 128, .. }),
            "{}",
            refused.error
        );
        let refused = core.window()?.prefetched(COPY, small).map(drop).unwrap_err();
        assert!(matches!(refused.error, Error::Unsupported { .. }));
        Ok(())
    });
}

#[test]
fn shallow_fifo_is_an_error() {
    with(Faults { hang: 1000, ..Faults::NONE }, |board, pool, _own| {
        let core = core(board, MsgdmaConfig { depth: 8, ..COPY }, StreamConfig::sink());
        let mut queue = Queue::new(core.window()?.driver(COPY)?, 16)?;
        let mut last = None;
        for _ in 0..12 {
            match queue.submit([pool.take()?.to_device(..64), pool.take()?.from_device(..64)], &[])
            {
                Ok(_) => {}
                Err(failed) => {
                    last = Some(failed.cause);
                    break;
                }
            }
        }
        assert!(matches!(last, Some(Error::Setting { name: "depth", value: 128, .. })), "{last:?}");
        queue.stop()?;
        while queue.take_back::<2>().unwrap().is_some() {}
        Ok(())
    });
}

/// It waits for room in the dispatcher's FIFO, and sees its reset only behind that.
#[test]
fn prefetcher_stops_with_a_shallow_fifo() {
    for by_program in [false, true] {
        with(Faults { hang: 1000, ..Faults::NONE }, |board, pool, own| {
            let core = core(board, MsgdmaConfig { depth: 8, ..FETCHED }, StreamConfig::sink());
            let window = core.window()?;
            // SAFETY: the model is built so, with fewer places.
            let driver = unsafe { Msgdma::prefetched(Lent::new(&window), FETCHED, own)? };
            let mut queue = Queue::new(driver, 12)?;
            for _ in 0..12 {
                queue
                    .submit([pool.take()?.to_device(..64), pool.take()?.from_device(..64)], &[])?;
            }
            // The first one alone was launched; a look launches the others.
            core.run_for(100)?;
            assert!(queue.wait::<2>(Duration::from_micros(100))?.is_none());
            if by_program {
                // SAFETY: the steps stop.
                assert_eq!(unsafe { queue.driver().stop_program().run(&window, 5) }, Ok(()));
            }
            queue.stop()?;
            let mut back = 0;
            while queue.take_back::<2>().unwrap().is_some() {
                back += 1;
            }
            assert_eq!(back, 12);
            Ok(())
        });
    }
}

/// The interrupt comes before the descriptor is written back, and is acknowledged.
#[test]
fn late_write_back_is_found_at_a_waits_end() {
    with(Faults::NONE, |board, pool, own| {
        let build = MsgdmaBuild {
            config: FETCHED,
            stream: StreamConfig::sink(),
            late_write_back_ns: 100_000,
            ..MsgdmaBuild::default()
        };
        let core = SimDevice::with_model(board, board.port(), MsgdmaModel::new(build));
        let mut queue = Queue::new(core.window()?.prefetched(FETCHED, own)?, 4)?;
        for _ in 0..3 {
            queue.submit([pool.take()?.to_device(..64), pool.take()?.from_device(..64)], &[])?;
            // Waits that are short enough to see the interrupt before the descriptor.
            let found = (0..50).any(|_| {
                queue.wait::<2>(Duration::from_micros(20)).is_ok_and(|done| done.is_some())
            });
            assert!(found, "no wait found it");
        }
        Ok(())
    });
}

/// Descriptors that the core does not own are not written again after a stop.
#[test]
fn a_job_after_a_stop_writes_few_descriptors() {
    let board = SimBoard::new(3);
    let region = Region::new(board.memory(8 * 4096).unwrap()).unwrap();
    let own = Region::new(board.memory(4096).unwrap()).unwrap();
    let core = core(&board, FETCHED, StreamConfig::sink());
    let memory = own.alloc(4096, Align::PAGE).unwrap();
    let mut queue =
        Queue::new(core.window().unwrap().prefetched(FETCHED, memory).unwrap(), 4).unwrap();
    let take = || region.alloc(64, Align::LINE).unwrap();
    for (jobs, most) in [(3, 80), (1, 10), (1, 10)] {
        let before = own.stats().syncs;
        for _ in 0..jobs {
            queue.submit([take().to_device(..), take().from_device(..)], &[]).unwrap();
        }
        let syncs = own.stats().syncs - before;
        assert!(syncs <= most, "{syncs} syncs of descriptors for {jobs} jobs after a stop");
        queue.stop().unwrap();
        while queue.take_back::<2>().unwrap().is_some() {}
    }
    assert_eq!(board.counts().unowned_accesses, 0);
}

/// Receives `count` packets into buffers of `len_bytes`: what each completion said.
fn receive(
    stream: StreamConfig,
    faults: Faults,
    len_bytes: usize,
    count: usize,
) -> Vec<(usize, u32, Option<&'static str>)> {
    let mut seen = vec![];
    with(faults, |board, pool, own| {
        let config = MsgdmaConfig { prefetcher_at: Some(0x60), ..RECEIVE };
        let core = core(board, config, stream);
        let mut queue = Queue::new(core.window()?.prefetched(config, own)?, 4)?;
        while seen.len() < count {
            while !queue.is_full() {
                queue.submit([pool.take()?.from_device(..len_bytes)], &[])?;
            }
            let (_, completion) = queue
                .wait_each(LIMIT, |_, _, buf| drop(buf))
                .map_err(|failed| failed.error)?
                .unwrap();
            seen.push((
                completion.bytes.unwrap_or(usize::MAX),
                completion.status,
                completion.failed,
            ));
        }
        queue.stop()?;
        while queue.take_back::<1>().unwrap().is_some() {}
        Ok(())
    });
    seen
}

#[test]
fn long_packet_fails_alone() {
    let seen = receive(source(1000, true), Faults::NONE, 600, 4);
    let early =
        |index: usize| seen[index].2.is_some_and(|what| what.starts_with("early termination"));
    assert_eq!((seen[0].0, seen[0].1, early(0)), (600, regs::EARLY, true), "{seen:?}");
    assert_eq!((seen[1].0, seen[1].1, early(1)), (400, 0, false), "{seen:?}");
    assert!(early(2) && !early(3));
}

#[test]
fn a_stream_that_marks_no_end_fills_buffers_and_says_so() {
    let seen = receive(source(1000, false), Faults::NONE, 512, 3);
    assert!(
        seen.iter().all(|(bytes, status, failed)| *bytes == 512
            && *status == regs::EARLY
            && failed.is_some()),
        "{seen:?}"
    );
}

#[test]
fn error_bits_of_a_packet_are_its_own() {
    let seen = receive(source(256, true), Faults { error: 500, ..Faults::NONE }, 256, 40);
    let failed = seen.iter().filter(|(_, status, _)| status & regs::ERRORS != 0).count();
    assert!((5..35).contains(&failed), "{seen:?}");
    assert!(
        seen.iter().all(|(bytes, status, failed)| *bytes == 256
            && failed.is_some() == (status & regs::ERRORS != 0)),
        "{seen:?}"
    );
}

#[test]
fn the_stop_program_stops_and_nothing_is_touched_after_it() {
    for config in [COPY, RECEIVE, FETCHED] {
        with(Faults::NONE, |board, pool, own| {
            let core = core(board, config, source(700, true));
            let program: StopProgram;
            {
                let window = core.window()?;
                let mut driver = match config.prefetcher_at {
                    Some(_) => window.prefetched(config, own)?,
                    None => window.driver(config)?,
                };
                program = driver.stop_program();
                assert!(program.steps().len() >= 3);
                driver.stop()?;
            }
            let window = core.window()?;
            // SAFETY: the steps stop.
            assert_eq!(unsafe { program.run(&window, 5) }, Ok(()));
            assert_eq!(
                window.read32(config.csr_at + regs::STATUS.offset())
                    & (regs::BUSY | regs::RESETTING | regs::EMPTY),
                regs::EMPTY
            );
            drop(pool.take()?);
            Ok(())
        });
    }
}
