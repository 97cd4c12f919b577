//! AXI VDMA: frames of both channels, their shape, errors, refusals, resets, and its registers.
#![allow(
    unsafe_code,
    reason = "registers without a driver, and configurations that no register tells"
)]

mod starts;

use crate::prelude::*;
use crate::regs::axi_vdma as regs;
use contigo::drivers::axi_vdma::{AxiVdmaChannel, AxiVdmaConfig, Side};
use contigo::sim::axi_vdma::{AxiVdmaModel, AxiVdmaSpec};

/// 16 lines of 64 bytes.
const CONFIG: AxiVdmaConfig = AxiVdmaConfig {
    hsize_bytes: 64,
    vsize_lines: 16,
    stride_bytes: 0,
    frame_stores: 3,
    address_bits: 32,
    data_bits: 64,
    dre: false,
    stop_us: 1_000,
};

/// A core with a source of packets of `packet_bytes`.
fn camera(board: &SimBoard, packet_bytes: usize, gap_ns: u64) -> SimDevice<AxiVdmaModel> {
    built(board, packet_bytes, gap_ns, AxiVdmaSpec::default())
}

fn built(
    board: &SimBoard,
    packet_bytes: usize,
    gap_ns: u64,
    spec: AxiVdmaSpec,
) -> SimDevice<AxiVdmaModel> {
    let source = SourceConfig { packet_bytes, gap_ns, ..SourceConfig::default() };
    let spec = AxiVdmaSpec { stream: StreamConfig::source(source, 4096), ..spec };
    SimDevice::with_model(board, board.port(), AxiVdmaModel::new(spec))
}

/// The channel that receives.
fn open(
    device: &SimDevice<AxiVdmaModel>,
    config: AxiVdmaConfig,
) -> Queue<AxiVdmaChannel<SimWindow<AxiVdmaModel>>> {
    Queue::new(device.window().unwrap().channel(Side::S2mm, config).unwrap(), 1).unwrap()
}

/// Back to back, the frames that begin in a gap are lost, and no frame is torn.
#[test]
fn gapless_source_loses_frames_gives_whole() {
    let (board, _, pool) = bench(1, 1, 1024);
    let device = camera(&board, 1024, 0);
    let mut queue = open(&device, CONFIG);
    let (mut last, mut good, mut torn) = (None, 0, 0);
    for _ in 0..60 {
        device.run_for(7).unwrap();
        let Ok(done) = queue.run(receives(&pool, ..), &[], LIMIT) else {
            torn += 1;
            continue;
        };
        let frame = done.buffers[0].view::<u8>().unwrap();
        let number = packet::number(frame).unwrap();
        assert!(packet::is(number, frame) && last < Some(number));
        (last, good) = (Some(number), good + 1);
    }
    let counts = device.model(|model| model.stream.counts).unwrap();
    assert!(good > 20 && counts.lost > 10, "{good} {torn} {counts:?}");
}

#[test]
fn lines_lie_a_stride_apart() {
    let (board, _, pool) = bench(1, 1, 2048);
    let config = AxiVdmaConfig { stride_bytes: 128, ..CONFIG };
    assert_eq!(config.frame_bytes(), 15 * 128 + 64);
    let mut queue = open(&camera(&board, 1024, 50_000), config);
    let done = queue.run([filled(&pool, 0xAA).from_device(..)], &[], LIMIT).unwrap();
    assert_eq!(done.bytes, Some(config.frame_bytes()));
    let frame = done.buffers[0].view::<u8>().unwrap();
    let lines: Vec<u8> = frame.chunks(128).flat_map(|line| &line[..64]).copied().collect();
    assert!(packet::is(0, &lines));
    assert!(frame.chunks(128).all(|line| line[64..] == [0xAA; 64]));
}

/// A frame that MM2S sends comes back by S2MM, each in a driver of its own over one core.
#[test]
fn both_channels_of_one_core() {
    let (board, _, pool) = bench(1, 2, 1024);
    let device = SimDevice::<AxiVdmaModel>::new(&board, board.port());
    let core = device.window().unwrap().core().unwrap();
    // SAFETY: the model is built as the configuration says.
    let open = |side| unsafe { core.channel(side, CONFIG) };
    let (send, receive) = (open(Side::Mm2s).unwrap(), open(Side::S2mm).unwrap());
    assert_eq!(open(Side::Mm2s).map(drop), Err(Error::HasDriver));
    let (mut send, mut receive) = (Queue::new(send, 1).unwrap(), Queue::new(receive, 1).unwrap());
    for byte in 0..5 {
        receive.give(receives(&pool, ..));
        drop(send.run([filled(&pool, byte).to_device(..)], &[], LIMIT).unwrap());
        assert_eq!(receive.end::<1>().buffers[0].view::<u8>().unwrap(), [byte; 1024]);
    }
    // A reset from outside ends the job in flight, whose error reports the reset.
    receive.give(receives(&pool, ..));
    core.reset(|| device.reset()).unwrap();
    assert_eq!(receive.fails::<1>(), Error::EndedByReset { device: "axi_vdma s2mm" });
    assert!(receive.is_stopped());
}

#[test]
fn misshapen_frame_fails_alone_and_says_how() {
    for (packet_bytes, name) in [(512, "SOFEarlyErr"), (544, "EOLEarlyErr"), (2048, "SOFLateErr")] {
        let (board, _, pool) = bench(1, 1, 1024);
        let mut queue = open(&camera(&board, packet_bytes, 50_000), CONFIG);
        for _ in 0..3 {
            let failed = queue.run(receives(&pool, ..), &[], LIMIT).unwrap_err();
            assert!(failed.buffers.is_some());
            cases! { failed.error => Error::Fault { what, .. } if what.starts_with(name) }
        }
    }
}

#[test]
fn frames_and_cores_that_there_are_not() {
    let (board, _, pool) = bench(1, 1, 2048);
    let device = SimDevice::<AxiVdmaModel>::new(&board, board.port());
    for config in [
        AxiVdmaConfig::default(),
        AxiVdmaConfig { hsize_bytes: 0x1_0000, ..CONFIG },
        AxiVdmaConfig { hsize_bytes: 60, ..CONFIG },
        AxiVdmaConfig { vsize_lines: 0, ..CONFIG },
        AxiVdmaConfig { vsize_lines: 8192, ..CONFIG },
        AxiVdmaConfig { stride_bytes: 56, ..CONFIG },
        AxiVdmaConfig { stride_bytes: 68, ..CONFIG },
        AxiVdmaConfig { frame_stores: 33, ..CONFIG },
        AxiVdmaConfig { frame_stores: 17, address_bits: 40, ..CONFIG },
        AxiVdmaConfig { data_bits: 48, ..CONFIG },
    ] {
        let refused = device.window().unwrap().channel(Side::S2mm, config).map(drop);
        assert!(matches!(refused, Err(Error::Argument { .. })), "{config:?}");
    }
    let mut queue = open(&device, CONFIG);
    // Another core: an AXI DMA has no version there.
    let dma = SimDevice::<contigo::sim::axi_dma::AxiDmaModel>::new(&board, board.port());
    // SAFETY: no job is given to it.
    let other = unsafe { AxiVdmaChannel::alone(dma.window().unwrap(), Side::S2mm, CONFIG) };
    cases! {
        queue.refuses(receives(&pool, ..1000), &[])
            => Error::BufferSize { index: 0, need_bytes: 1024, have_bytes: 1000 },
        queue.refuses(receives(&pool, 4..1100), &[])
            => Error::BufferAlign { index: 0, align_bytes: 8, .. },
        other.map(drop) => Err(
            Error::RegisterWindow { device: "axi_vdma", .. }
            | Error::WrongDevice { device: "axi_vdma", .. }
        ),
    }
}

/// Halted is read for a while after RS was set, and FrmCnt_Irq before the channel has halted. The
/// core drops a VSIZE that comes before it has left Halted.
#[test]
fn registers_at_their_edges() {
    let board = SimBoard::new(1);
    let device = SimDevice::<AxiVdmaModel>::new(&board, board.port());
    let window = device.window().unwrap();
    let write = |offset, value| {
        // SAFETY: HSIZE is 0: a frame that begins ends with an error, and nothing is moved.
        unsafe { window.write32(offset, value) }
    };
    let state = || window.read32(0x34) & (regs::FATAL | regs::HALTED);
    assert_eq!((state(), window.read32(0x2C) >> 28), (regs::HALTED, 6));
    write(0xA0, 16);
    assert_eq!(state(), regs::HALTED, "VSIZE does nothing while it is halted");
    write(0x30, regs::RUN | regs::CIRCULAR | regs::FRAME_COUNT);
    write(0xA0, 16);
    assert!(!regs::is_over(window.read32(0x34)));
    device.run_for(10).unwrap();
    assert_eq!(state(), 0, "no frame began");
    write(0xA0, 16);
    assert_eq!(state(), regs::INTERNAL | regs::HALTED, "one began");
    write(0x30, regs::RESET);
    device.run_for(1).unwrap();
    assert_eq!((window.read32(0x34) & regs::FATAL, window.read32(0x30) & regs::RESET), (0, 0));
    assert_eq!(window.read32(0x00) & regs::RUN, 0, "the other channel has a reset of its own");
}
