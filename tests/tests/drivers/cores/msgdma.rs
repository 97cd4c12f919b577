#![allow(unsafe_code, reason = "stop programs are run, and windows are watched")]
//! mSGDMA: refusals, edges, errors, and stops.

mod bursts;
mod packets;
mod responses;
mod stops;

use crate::prelude::*;
use crate::regs::msgdma as regs;
use contigo::drivers::msgdma::{Msgdma, MsgdmaConfig, MsgdmaMode, MsgdmaTransfer};
use contigo::job::Settings;
use contigo::sim::msgdma::{MsgdmaBuild, MsgdmaModel};

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
/// Copies with each way to their ends.
const WAYS: [MsgdmaConfig; 3] = [COPY, MsgdmaConfig { resp_at: Some(0x40), ..COPY }, FETCHED];

/// A board's memory: 24 buffers of 4 KiB, and 4 KiB for descriptors.
fn with(faults: Faults, act: impl FnOnce(&SimBoard, &Pool, CpuBuf) -> Result<()>) {
    let (board, region, pool) = faulty(3, faults, 24, 4096);
    let own = region.pool(1, 4096).unwrap();
    act(&board, &pool, own.take().unwrap()).unwrap();
    clean(&board);
    assert_eq!((pool.taken(), own.taken()), (0, 0));
}

fn core(board: &SimBoard, config: MsgdmaConfig, stream: StreamConfig) -> SimDevice<MsgdmaModel> {
    built(board, MsgdmaBuild { config, stream, ..MsgdmaBuild::default() })
}

fn built(board: &SimBoard, build: MsgdmaBuild) -> SimDevice<MsgdmaModel> {
    SimDevice::<MsgdmaModel>::with_model(board, board.port(), MsgdmaModel::new(build))
}

/// The driver of a device that is built as `config` says, or waits for more than that.
fn driver<D: Device>(device: D, config: MsgdmaConfig, own: CpuBuf) -> Result<Queue<Msgdma<D>>> {
    // SAFETY: every window of these tests is, or wraps, the one of a simulated mSGDMA.
    let driver = unsafe {
        match config.prefetcher_at {
            Some(_) => Msgdma::prefetched(device, config, own)?,
            None => Msgdma::open(device, config)?,
        }
    };
    Ok(Queue::new(driver, 12)?)
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let board = SimBoard::new(1);
    let refused = |config: MsgdmaConfig| {
        let core = core(&board, COPY, StreamConfig::sink());
        core.window().unwrap().driver(config).map(drop).unwrap_err()
    };
    cases! {
        refused(MsgdmaConfig { address_bits: 40, ..COPY })
            => Error::Argument { value: 40, max: 32, .. },
        refused(MsgdmaConfig { data_bits: 24, ..COPY }) => Error::Argument { value: 24, .. },
        refused(MsgdmaConfig { depth: 4, ..COPY }) => Error::Argument { value: 4, min: 8, .. },
        refused(MsgdmaConfig { settle_us: 0, ..COPY })
            => Error::Argument { name: "settle_us", value: 0, .. },
        refused(MsgdmaConfig { desc_at: 0x10, ..COPY }) => Error::Setting { value: 0x10, .. },
        refused(MsgdmaConfig { desc_at: 0x22, ..COPY })
            => Error::Argument { value: 0x22, multiple_of: 4, .. },
        refused(MsgdmaConfig { desc_at: 0xF4, ..COPY })
            => Error::RegisterWindow { need_bytes: 0x104, have_bytes: 0x100, .. },
        refused(MsgdmaConfig { resp_at: None, ..RECEIVE }) => Error::Unsupported { .. },
        refused(FETCHED) => Error::Unsupported { .. },
        // A newer core says that it is built in another way.
        refused(MsgdmaConfig { mode: MsgdmaMode::Send, ..COPY }).kind()
            => contigo::ErrorKind::Device,
        refused(MsgdmaConfig { extended: true, ..COPY }) => Error::WrongDevice { .. },
        // Nothing is there.
        refused(MsgdmaConfig { csr_at: 0x80, ..COPY })
            => Error::WrongDevice { register: "STATUS", found: 0, .. },
    }
    // An older core is believed, and so is the shortest time.
    let older = MsgdmaBuild { tells: false, config: COPY, ..MsgdmaBuild::default() };
    let config = MsgdmaConfig { settle_us: 1, ..COPY };
    assert!(built(&board, older).window().unwrap().driver(config).is_ok());
}

#[test]
fn settings_are_read_as_text() {
    let text = Settings(
        "mode=2,extended=1,depth=16,max_bytes=65536,transfer=2,address_bits=64,resp_at=0x40,prefetcher_at=0,write_responses=1,settle_us=7",
    );
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
    assert_eq!(MsgdmaConfig::from_settings(&text), Ok(expected));
    assert_eq!(MsgdmaConfig::from_settings(&Settings("")), Ok(MsgdmaConfig::default()));
    cases! {
        MsgdmaConfig::from_settings(&Settings("depth=4"))
            => Err(Error::Argument { value: 4, min: 8, .. }),
    }
}

#[test]
fn impossible_jobs_are_refused_early() {
    with(Faults::NONE, |board, pool, _own| {
        let core = core(board, COPY, StreamConfig::sink());
        let transfer = MsgdmaTransfer::FullWords;
        let config = MsgdmaConfig { max_bytes: 1024, transfer, data_bits: 64, ..COPY };
        let mut queue = Queue::new(core.window()?.driver(config)?, 1)?;
        let mut refused = |from: std::ops::Range<usize>, to: std::ops::Range<usize>| {
            queue.refuses(copies(pool, from, to), &[])
        };
        cases! {
            refused(0..1032, 0..2048)
                => Error::OperandTooLong { have_bytes: 1032, max_bytes: 1024, .. },
            refused(0..12, 0..16) => Error::Argument { value: 12, multiple_of: 8, .. },
            refused(4..12, 0..16) => Error::BufferAlign { index: 0, align_bytes: 8, .. },
            refused(0..16, 4..20) => Error::BufferAlign { index: 1, .. },
            refused(0..16, 0..8) => Error::BufferSize { index: 1, need_bytes: 16, have_bytes: 8 },
        }
        Ok(())
    });
}

#[test]
fn memory_for_no_ring_comes_back() {
    with(Faults::NONE, |board, _pool, own| {
        let core = core(board, FETCHED, StreamConfig::sink());
        // One descriptor is never owned, so that there must be two.
        let one = region(board, 4096).alloc(64, Align::PAGE)?;
        let refused =
            |config, memory| core.window().unwrap().prefetched(config, memory).unwrap_err().error;
        cases! {
            refused(FETCHED, one) => Error::BlockSize { len_bytes: 64, need_bytes: 128, .. },
            refused(COPY, own) => Error::Unsupported { .. },
        }
        Ok(())
    });
}

#[test]
fn shallow_fifo_is_an_error() {
    with(HANG, |board, pool, own| {
        let core = core(board, MsgdmaConfig { depth: 8, ..COPY }, StreamConfig::sink());
        let mut queue = driver(core.window()?, COPY, own)?;
        let refused = (0..12).find_map(|_| queue.submit(copies(pool, ..64, ..64), &[]).err());
        cases! {
            refused.unwrap().cause => Error::Setting { name: "depth", value: 128, .. },
        }
        queue.clear()
    });
}

#[test]
fn no_event_file_where_ends_follow_interrupts() {
    with(Faults::NONE, |board, pool, _own| {
        for (write_responses, file) in [(false, None), (true, Some(7))] {
            let config = MsgdmaConfig { write_responses, ..COPY };
            let core = core(board, config, StreamConfig::sink());
            let (window, watch) = (core.window()?, Watch::default());
            watch.file.set(Some(7));
            let queue = driver(Watched::new(&window, &watch), config, pool.take()?)?;
            assert_eq!(queue.driver().arm_irq(), Ok(file));
        }
        Ok(())
    });
}
