//! The AXI DMAC: its versions, refusals, rows, lists, reports, and stops.

mod flaws;
mod jobs;
mod stops;

use crate::prelude::*;
use contigo::drivers::axi_dmac::{AxiDmac, DmacConfig, DmacKind, DmacRows};
use contigo::job::Settings;
use contigo::sim::axi_dmac::{AxiDmacBuild, AxiDmacModel, Side};

const CONFIG: DmacConfig = DmacConfig {
    burst_bytes: 128,
    fifo_bursts: 32,
    single_bursts: false,
    packet_bytes: 0,
    stop_us: 1_000,
};

/// A board's memory: 12 buffers of 4 KiB, and 4 KiB for descriptors.
fn with(faults: Faults, act: impl FnOnce(&SimBoard, &Pool, CpuBuf) -> Result<()>) {
    let (board, region, pool) = faulty(5, faults, 12, 4096);
    let own = region.pool(1, 4096).unwrap();
    act(&board, &pool, own.take().unwrap()).unwrap();
    clean(&board);
    assert_eq!((pool.taken(), own.taken()), (0, 0));
}

fn core(board: &SimBoard, build: AxiDmacBuild) -> SimDevice<AxiDmacModel> {
    SimDevice::with_model(board, board.port(), AxiDmacModel::new(build))
}

fn open(
    core: &SimDevice<AxiDmacModel>,
    config: DmacConfig,
) -> Result<Queue<AxiDmac<SimWindow<AxiDmacModel>>>> {
    Ok(Queue::new(core.window()?.driver(config)?, 4)?)
}

fn copier() -> AxiDmacBuild {
    AxiDmacBuild { stream: StreamConfig::sink(), ..AxiDmacBuild::default() }
}

fn receiver(packet_bytes: usize) -> AxiDmacBuild {
    let source = SourceConfig { packet_bytes, ..SourceConfig::default() };
    AxiDmacBuild {
        sides: [Side::Stream, Side::Memory],
        stream: StreamConfig::source(source, 4096),
        ..AxiDmacBuild::default()
    }
}

/// The byte at a place.
fn pattern(index: usize) -> u8 {
    u8::try_from(index % 251).unwrap()
}

/// A buffer with the bytes of their places, from `first` on.
fn patterned(pool: &Pool, first: usize) -> Result<CpuBuf> {
    let mut buf = pool.take()?;
    for (index, byte) in buf.view_mut::<u8>()?.iter_mut().enumerate() {
        *byte = pattern(index + first);
    }
    Ok(buf)
}

#[test]
fn the_core_says_how_it_is_built() {
    let found = |build| {
        let queue = open(&core(&SimBoard::new(1), build), CONFIG).unwrap();
        *queue.driver().found()
    };
    let all = found(copier());
    assert_eq!(
        (all.kind, all.words, all.max_bytes, all.length_align),
        (DmacKind::Copy, [8, 8], 1 << 24, 1)
    );
    assert_eq!(
        (all.address_align, all.rows, all.lists, all.address_bits, all.reports),
        (64, true, true, 32, false)
    );
    let less = found(AxiDmacBuild {
        version: 0x0004_0361,
        sides: [Side::Memory, Side::Fifo],
        words: [8, 16],
        length_bits: 14,
        length_align: 16,
        address_bits: 36,
        rows: false,
        lists: false,
        ..copier()
    });
    assert_eq!(
        (less.kind, less.words, less.max_bytes, less.length_align),
        (DmacKind::Send, [8, 16], 1 << 14, 16)
    );
    // 4.3 does not tell its bursts: the setting does.
    assert_eq!(
        (less.address_align, less.rows, less.lists, less.address_bits),
        (128, false, false, 36)
    );
    // A core without descriptors has no reset of their reader, and is at rest all the same.
    assert!(!found(AxiDmacBuild { lists: false, ..copier() }).lists);
    assert!(found(receiver(64)).reports);
    assert!(!found(AxiDmacBuild { sides: [Side::Fifo, Side::Memory], ..receiver(64) }).reports);
}

#[test]
fn cores_that_cannot_be_driven_are_refused() {
    let board = SimBoard::new(1);
    let refused = |build, port, config| {
        let core = SimDevice::<AxiDmacModel>::with_model(&board, port, AxiDmacModel::new(build));
        core.window().unwrap().driver(config).map(drop)
    };
    let (plain, coherent) = (board.port(), board.coherent_port());
    let built = |build| refused(build, plain, CONFIG);
    let old = AxiDmacBuild { version: 0x0004_0361, ..copier() };
    let streams = AxiDmacBuild { sides: [Side::Stream, Side::Stream], ..copier() };
    let incoherent = AxiDmacBuild { coherent: false, ..copier() };
    let set = |config| refused(copier(), plain, config);
    let few = DmacConfig { fifo_bursts: 16, ..CONFIG };
    cases! {
        built(AxiDmacBuild { version: 0x0004_0261, ..copier() })
            => Err(Error::Setting { value: 0x0004_0261, .. }),
        built(AxiDmacBuild { version: 0x0005_0000, ..copier() }) => Err(Error::Setting { .. }),
        built(AxiDmacBuild { debug: false, ..copier() }) => Err(Error::Unsupported { .. }),
        built(streams) => Err(Error::Unsupported { .. }),
        refused(incoherent, coherent, CONFIG)
            => Err(Error::Setting { name: "CACHE_COHERENT", .. }),
        // 4.3 had no such parameter.
        refused(old, coherent, CONFIG) => Err(Error::Setting { .. }),
        set(DmacConfig { fifo_bursts: 12, ..CONFIG })
            => Err(Error::Setting { name: "fifo_bursts", value: 12, .. }),
        set(DmacConfig { fifo_bursts: 0, ..CONFIG })
            => Err(Error::Setting { name: "fifo_bursts", value: 0, .. }),
        set(DmacConfig { fifo_bursts: 64, ..CONFIG })
            => Err(Error::Setting { name: "fifo_bursts", value: 64, .. }),
        set(DmacConfig { burst_bytes: 96, ..CONFIG })
            => Err(Error::Setting { name: "burst_bytes", value: 96, .. }),
        set(DmacConfig { burst_bytes: 8192, ..CONFIG })
            => Err(Error::Setting { name: "burst_bytes", value: 8192, .. }),
        // One beat of the wider side.
        built(AxiDmacBuild { words: [8, 64], ..copier() })
            => Err(Error::Setting { name: "MAX_BYTES_PER_BURST", value: 64, .. }),
        built(AxiDmacBuild { words: [64, 8], ..copier() })
            => Err(Error::Setting { name: "MAX_BYTES_PER_BURST", value: 64, .. }),
        built(AxiDmacBuild { words: [8, 128], ..old })
            => Err(Error::Setting { name: "MAX_BYTES_PER_BURST", value: 128, .. }),
        refused(AxiDmacBuild { words: [8, 32], ..copier() }, plain, few) => Ok(()),
        built(AxiDmacBuild { words: [8, 64], ..old }) => Ok(()),
    }
}

#[test]
fn few_address_bits_are_found_and_kept() {
    let memory = [Side::Memory; 2];
    let (send, receive) = ([Side::Memory, Side::Stream], [Side::Stream, Side::Memory]);
    for (sides, address_bits) in [
        (memory, 29),
        (send, 29),
        (receive, 29),
        (memory, 16),
        (memory, 31),
        (send, 33),
        (receive, 64),
    ] {
        let build = AxiDmacBuild { sides, address_bits, ..copier() };
        let queue = open(&core(&SimBoard::new(1), build), CONFIG).unwrap();
        let bits = (queue.driver().found().address_bits, queue.driver().addr_bits());
        assert_eq!(bits, (address_bits, address_bits), "{sides:?}");
    }
    // The board's memory begins at 256 MiB, which 28 bits do not reach.
    with(Faults::NONE, |board, pool, _own| {
        let mut queue = open(&core(board, AxiDmacBuild { address_bits: 28, ..copier() }), CONFIG)?;
        let refused = queue.refuses(copies(pool, ..64, ..64), &[]);
        cases! { refused => Error::Unreachable { last: 0x0FFF_FFFF, .. } }
        Ok(())
    });
}

#[test]
fn settings_are_read_as_text() {
    let read = |text| DmacConfig::from_settings(&Settings(text));
    let expected = DmacConfig {
        burst_bytes: 256,
        fifo_bursts: 16,
        single_bursts: true,
        packet_bytes: 1500,
        ..DmacConfig::default()
    };
    let text = "burst_bytes=256,fifo_bursts=16,single_bursts=1,packet_bytes=1500";
    assert_eq!((read(text), read("")), (Ok(expected), Ok(DmacConfig::default())));
    cases! {
        read("fifo_bursts=12") => Err(Error::Setting { name: "fifo_bursts", value: 12, .. }),
        read("burst_bytes=96") => Err(Error::Setting { name: "burst_bytes", value: 96, .. }),
        read("fifo_bursts=64") => Err(Error::Argument { value: 64, min: 2, max: 32, .. }),
    }
}
