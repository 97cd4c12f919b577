//! How a frame is started.
#![allow(unsafe_code, reason = "registers without a driver")]

use super::{CONFIG, LIMIT, camera};
use crate::regs::axi_vdma as regs;
use contigo::{
    Align, Error, Mmio, Queue, Region,
    drivers::axi_vdma::{AxiVdmaChannel, AxiVdmaConfig, Side},
    sim::{
        SimBoard, SimDevice,
        axi_vdma::{AxiVdmaModel, AxiVdmaSpec},
        stream::{SourceConfig, StreamConfig, packet},
    },
};
use contigo_testkit::lent::Lent;

/// S2MM's status.
const STATUS: usize = 0x34;

/// The core drops a VSIZE that comes before it has left Halted.
#[test]
fn vsize_does_nothing_before_the_channel_has_left_halted() {
    let board = SimBoard::new(1);
    let device = SimDevice::<AxiVdmaModel>::new(&board, board.port());
    let window = device.window().unwrap();
    let write = |offset, value| {
        // SAFETY: HSIZE is 0: a frame that begins ends with an error, and nothing is moved.
        unsafe { window.write32(offset, value) }
    };
    write(0x30, regs::RUN | regs::CIRCULAR | regs::FRAME_COUNT);
    write(0xA0, 16);
    device.run_for(10).unwrap();
    assert_eq!(window.read32(0x34) & (regs::HALTED | regs::FATAL), 0, "no frame began");
    write(0xA0, 16);
    assert_eq!(
        window.read32(0x34) & (regs::HALTED | regs::FATAL),
        regs::HALTED | regs::INTERNAL,
        "one began"
    );
}

#[test]
fn opening_resets_a_channel_that_was_left_running() {
    let board = SimBoard::new(1);
    let device = camera(&board, 1024, 50_000);
    let window = device.window().unwrap();
    // SAFETY: RS alone starts no frame.
    unsafe { window.write32(0x30, regs::RUN) };
    device.run_for(1).unwrap();
    assert_eq!(window.read32(0x34) & regs::HALTED, 0);
    // SAFETY: the model is built so.
    let channel = unsafe { AxiVdmaChannel::alone(Lent::new(&window), Side::S2mm, CONFIG) }.unwrap();
    assert_eq!(
        (window.read32(0x30) & regs::RUN, window.read32(0x34) & regs::HALTED),
        (0, regs::HALTED)
    );
    drop(channel);
    // One that does not end its reset is refused.
    // SAFETY: as above.
    let refused = unsafe {
        AxiVdmaChannel::alone(Lent::with_bits(&window, STATUS, regs::RESERVED), Side::S2mm, CONFIG)
    }
    .map(drop);
    assert!(
        matches!(refused, Err(Error::WillNotStop { device: "axi_vdma s2mm", .. })),
        "{refused:?}"
    );
}

/// A channel that stays halted, as one whose clock has stopped.
#[test]
fn channel_that_stays_halted_is_a_fault() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let device = camera(&board, 1024, 50_000);
    let window = device.window().unwrap();
    // SAFETY: the model is built so.
    let mut queue = Queue::new(
        unsafe {
            AxiVdmaChannel::alone(
                Lent::with_bits(&window, STATUS, regs::HALTED),
                Side::S2mm,
                CONFIG,
            )
        }
        .unwrap(),
        1,
    )
    .unwrap();
    let frame = region.alloc(1024, Align::LINE).unwrap();
    let failed = queue.submit([frame.from_device(..)], &[]).unwrap_err();
    assert!(
        matches!(failed.error, Error::Fault { what, .. } if what.starts_with("Halted stayed")),
        "{}",
        failed.error
    );
}

/// Every store is the job's frame, however many there are, and whether or not the configuration
/// states their number.
#[test]
fn no_frame_goes_to_the_frame_of_an_earlier_job() {
    for (address_bits, frame_stores) in
        [(32, 1), (32, 3), (32, 16), (32, 17), (32, 32), (40, 1), (40, 8), (40, 9), (40, 16)]
    {
        for said in [0, frame_stores] {
            let board = SimBoard::new(1);
            let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
            let source =
                SourceConfig { packet_bytes: 1024, gap_ns: 50_000, ..SourceConfig::default() };
            let spec = AxiVdmaSpec {
                address_bits,
                frame_stores,
                stream: StreamConfig::source(source, 4096),
                ..AxiVdmaSpec::default()
            };
            let device = SimDevice::with_model(&board, board.port(), AxiVdmaModel::new(spec));
            let config = AxiVdmaConfig { address_bits, frame_stores: said, ..CONFIG };
            let mut queue =
                Queue::new(device.window().unwrap().channel(Side::S2mm, config).unwrap(), 1)
                    .unwrap();
            for number in 0..33 {
                let frame = region.alloc(1024, Align::LINE).unwrap();
                let [frame] = queue.run([frame.from_device(..)], &[], LIMIT).unwrap().buffers;
                assert!(
                    packet::is(number, frame.view::<u8>().unwrap()),
                    "{address_bits} bits, {frame_stores} stores, frame {number}"
                );
            }
            assert_eq!(board.counts().unowned_accesses, 0);
        }
    }
    assert_eq!(AxiVdmaConfig::default().frame_stores, 0);
}
