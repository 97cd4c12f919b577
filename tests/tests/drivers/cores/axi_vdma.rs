//! AXI VDMA: frames of both channels, their shape, errors, refusals, resets, and its registers.
#![allow(
    unsafe_code,
    reason = "registers without a driver, and configurations that no register tells"
)]

mod starts;

use crate::regs::axi_vdma as regs;
use contigo::{
    Align, Driver, Error, Mmio, Queue, Region,
    drivers::axi_vdma::{AxiVdmaChannel, AxiVdmaConfig, Side},
    sim::{
        SimBoard, SimDevice,
        axi_vdma::{AxiVdmaModel, AxiVdmaSpec},
        stream::{SourceConfig, StreamConfig, packet},
    },
};
use std::time::Duration;

const LIMIT: Duration = Duration::from_millis(20);
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
    let source = SourceConfig { packet_bytes, gap_ns, ..SourceConfig::default() };
    let spec = AxiVdmaSpec { stream: StreamConfig::source(source, 4096), ..AxiVdmaSpec::default() };
    SimDevice::with_model(board, board.port(), AxiVdmaModel::new(spec))
}

/// Back to back, the frames that begin in a gap are lost, and no frame is torn.
#[test]
fn a_source_without_blanking_loses_frames_and_tears_none() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let device = camera(&board, 1024, 0);
    let channel = device.window().unwrap().channel(Side::S2mm, CONFIG).unwrap();
    let mut queue = Queue::new(channel, 1).unwrap();
    let (mut last, mut good, mut torn) = (None, 0, 0);
    let mut frame = region.alloc(1024, Align::LINE).unwrap();
    for _ in 0..60 {
        device.run_for(7).unwrap();
        match queue.run([frame.from_device(..)], &[], LIMIT) {
            Ok(done) => [frame] = done.buffers,
            Err(failed) => {
                let [back] = failed.buffers.unwrap();
                (frame, torn) = (back.into_cpu().unwrap().whole(), torn + 1);
                continue;
            }
        }
        let number = packet::number(frame.view::<u8>().unwrap()).unwrap();
        assert!(packet::is(number, frame.view::<u8>().unwrap()) && last < Some(number));
        (last, good) = (Some(number), good + 1);
    }
    let counts = device.model(|model| model.stream.counts()).unwrap();
    assert!(good > 20 && counts.lost > 10, "{good} {torn} {counts:?}");
}

#[test]
fn lines_lie_a_stride_apart() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let device = camera(&board, 1024, 50_000);
    let config = AxiVdmaConfig { stride_bytes: 128, ..CONFIG };
    assert_eq!(config.frame_bytes(), 15 * 128 + 64);
    let mut queue =
        Queue::new(device.window().unwrap().channel(Side::S2mm, config).unwrap(), 1).unwrap();
    let mut frame = region.alloc(2048, Align::LINE).unwrap();
    frame.view_mut::<u8>().unwrap().fill(0xAA);
    let done = queue.run([frame.from_device(..)], &[], LIMIT).unwrap();
    assert_eq!(done.bytes, Some(config.frame_bytes()));
    let [frame] = done.buffers;
    let lines: Vec<u8> =
        frame.view::<u8>().unwrap().chunks(128).flat_map(|line| &line[..64]).copied().collect();
    assert!(packet::is(0, &lines));
    assert!(frame.view::<u8>().unwrap().chunks(128).all(|line| line[64..] == [0xAA; 64]));
}

/// A frame that MM2S sends comes back by S2MM, each in a driver of its own over one core.
#[test]
fn both_channels_of_one_core() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let device = SimDevice::<AxiVdmaModel>::new(&board, board.port());
    let core = device.window().unwrap().core().unwrap();
    // SAFETY: the model is built as the configuration says.
    let (send, receive) = unsafe {
        (core.channel(Side::Mm2s, CONFIG).unwrap(), core.channel(Side::S2mm, CONFIG).unwrap())
    };
    // SAFETY: as above.
    let again = unsafe { core.channel(Side::Mm2s, CONFIG) }.map(drop);
    assert_eq!(again, Err(Error::HasDriver));
    let (mut send, mut receive) = (Queue::new(send, 1).unwrap(), Queue::new(receive, 1).unwrap());
    for byte in 0..5 {
        let mut frame = region.alloc(1024, Align::LINE).unwrap();
        frame.view_mut::<u8>().unwrap().fill(byte);
        receive.submit([region.alloc(1024, Align::LINE).unwrap().from_device(..)], &[]).unwrap();
        drop(send.run([frame.to_device(..)], &[], LIMIT).unwrap());
        let [frame] = receive.wait(LIMIT).unwrap().unwrap().buffers;
        assert_eq!(frame.view::<u8>().unwrap(), [byte; 1024]);
    }
    // A reset from outside ends the job in flight, whose error reports the reset.
    receive.submit([region.alloc(1024, Align::LINE).unwrap().from_device(..)], &[]).unwrap();
    core.reset(|| device.reset()).unwrap();
    let failed = receive.wait::<1>(LIMIT).unwrap_err();
    assert_eq!(
        (failed.error, receive.is_stopped()),
        (Error::EndedByReset { device: "axi_vdma s2mm" }, true)
    );
}

#[test]
fn a_frame_of_another_shape_fails_alone_and_says_how() {
    for (packet_bytes, name) in [(512, "SOFEarlyErr"), (544, "EOLEarlyErr"), (2048, "SOFLateErr")] {
        let board = SimBoard::new(1);
        let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
        let device = camera(&board, packet_bytes, 50_000);
        let mut queue =
            Queue::new(device.window().unwrap().channel(Side::S2mm, CONFIG).unwrap(), 1).unwrap();
        for _ in 0..3 {
            let frame = region.alloc(1024, Align::LINE).unwrap();
            let failed = queue.run([frame.from_device(..)], &[], LIMIT).unwrap_err();
            assert!(
                matches!(failed.error, Error::Fault { what, .. } if what.starts_with(name))
                    && failed.buffers.is_some(),
                "{failed}"
            );
        }
    }
}

#[test]
fn frames_and_cores_that_there_are_not() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let device = SimDevice::<AxiVdmaModel>::new(&board, board.port());
    let open = |config| device.window().unwrap().channel(Side::S2mm, config).map(drop);
    let wrong = [
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
    ];
    for config in wrong {
        assert!(matches!(open(config), Err(Error::Argument { .. })), "{config:?}");
    }
    let mut queue =
        Queue::new(device.window().unwrap().channel(Side::S2mm, CONFIG).unwrap(), 1).unwrap();
    let frame = || region.alloc(2048, Align::LINE).unwrap();
    let failed = queue.submit([frame().from_device(..1000)], &[]).unwrap_err();
    assert_eq!(failed.error, Error::BufferSize { index: 0, need_bytes: 1024, have_bytes: 1000 });
    let failed = queue.submit([frame().from_device(4..1100)], &[]).unwrap_err();
    assert!(matches!(failed.error, Error::BufferAlign { index: 0, align_bytes: 8, .. }));
    // Another core: an AXI DMA has no version there.
    let dma = SimDevice::<contigo::sim::axi_dma::AxiDmaModel>::new(&board, board.port());
    // SAFETY: no job is given to it.
    let refused = unsafe { AxiVdmaChannel::alone(dma.window().unwrap(), Side::S2mm, CONFIG) }
        .map(drop)
        .unwrap_err();
    assert!(
        matches!(
            refused,
            Error::RegisterWindow { device: "axi_vdma", .. }
                | Error::WrongDevice { device: "axi_vdma", .. }
        ),
        "{refused}"
    );
}

/// Halted is read for a while after RS was set, and FrmCnt_Irq before the channel has halted.
#[test]
fn registers_at_their_edges() {
    let board = SimBoard::new(1);
    let device = SimDevice::<AxiVdmaModel>::new(&board, board.port());
    let window = device.window().unwrap();
    let write = |offset, value| {
        // SAFETY: no memory of the board was handed to anybody, and none is in use.
        unsafe { window.write32(offset, value) }
    };
    assert_eq!((window.read32(0x34) & 1, window.read32(0x2C) >> 28), (1, 6));
    write(0xA0, 16);
    assert_eq!(window.read32(0x34) & 1, 1, "VSIZE does nothing while it is halted");
    write(0x30, regs::RUN | regs::CIRCULAR | regs::FRAME_COUNT);
    assert!(!regs::is_over(window.read32(0x34)));
    device.run_for(1).unwrap();
    assert_eq!(window.read32(0x34) & 1, 0);
    // HSIZE is 0.
    write(0xA0, 16);
    assert_eq!(window.read32(0x34) & (regs::FATAL | regs::HALTED), regs::INTERNAL | regs::HALTED);
    write(0x30, regs::RESET);
    device.run_for(1).unwrap();
    assert_eq!((window.read32(0x34) & regs::FATAL, window.read32(0x30) & regs::RESET), (0, 0));
    assert_eq!(window.read32(0x00) & regs::RUN, 0, "the other channel has a reset of its own");
}

#[test]
fn the_stop_program_resets_the_channel() {
    let board = SimBoard::new(1);
    let device = SimDevice::<AxiVdmaModel>::new(&board, board.port());
    let channel = device.window().unwrap().channel(Side::S2mm, CONFIG).unwrap();
    let program = channel.stop_program();
    drop(channel);
    let window = device.window().unwrap();
    // SAFETY: the steps start nothing.
    assert_eq!(unsafe { program.run(&window, 10) }, Ok(()));
}
