//! Cores that are not there or were built otherwise, jobs that no core takes, and the stop program.

use super::{DEFAULT, DRE, carve};
use crate::regs::axi_cdma as regs;
use contigo::{
    Align, Device, Driver, Error, Mmio, Port, Queue, Region, Result, Wait,
    drivers::axi_cdma::{AxiCdma, AxiCdmaConfig, Keyhole},
    sim::{
        Faults, SimBoard, SimConfig, SimDevice,
        axi_cdma::{AxiCdmaModel, AxiCdmaSpec, FIFO_ADDR},
    },
};

/// Registers that answer numbers.
struct Numbers {
    port: Port,
    len_bytes: usize,
    answer: fn(usize) -> u32,
}

// SAFETY: nothing happens to any memory.
unsafe impl Mmio for Numbers {
    fn len_bytes(&self) -> usize {
        self.len_bytes
    }
    fn read32(&self, offset: usize) -> u32 {
        (self.answer)(offset)
    }
    unsafe fn write32(&self, _: usize, _: u32) {}
}
impl Wait for Numbers {
    fn now_us(&self) -> u64 {
        0
    }
    fn wait_at_most(&self, _: u32) -> Result<()> {
        Ok(())
    }
}
// SAFETY: it puts no address on any bus.
unsafe impl Device for Numbers {
    fn port(&self) -> &Port {
        &self.port
    }
}

#[test]
fn windows_that_no_cdma_has() {
    let board = SimBoard::new(1);
    let open = |len_bytes, answer| {
        let device = Numbers { port: board.port(), len_bytes, answer };
        // SAFETY: the device touches no memory.
        unsafe { AxiCdma::simple(device, DEFAULT) }.map(drop).unwrap_err()
    };
    let small = open(0x28, |_| 0);
    assert_eq!(
        small,
        Error::RegisterWindow {
            device: "axi_cdma",
            need_bytes: regs::WINDOW_BYTES,
            have_bytes: 0x28
        }
    );
    let expected = !regs::CDMASR_ZEROES;
    assert_eq!(
        open(0x1000, |_| u32::MAX),
        Error::WrongDevice { device: "axi_cdma", register: "CDMASR", expected, found: u32::MAX }
    );
    // An AXI DMA that is halted: bit 0 of its status.
    let dma = open(0x1000, |offset| if offset == 4 { 0x0001_0009 } else { 0x0001_0002 });
    assert_eq!(
        dma,
        Error::WrongDevice {
            device: "axi_cdma",
            register: "CDMASR",
            expected: 0x0001_0008,
            found: 0x0001_0009
        }
    );
    let control = open(0x1000, |offset| if offset == 0 { 0x0001_0003 } else { 2 });
    assert_eq!(
        control,
        Error::WrongDevice {
            device: "axi_cdma",
            register: "CDMACR",
            expected: 0x0001_0002,
            found: 0x0001_0003
        }
    );
}

/// A core whose clock stands: it answers zeroes, and is never idle.
#[test]
fn a_core_that_is_never_idle_does_not_stop() {
    let board = SimBoard::new(1);
    let device = Numbers { port: board.port(), len_bytes: 0x1000, answer: |_| 0 };
    // SAFETY: the device touches no memory.
    let refused = unsafe { AxiCdma::simple(device, DEFAULT) }.map(drop);
    assert_eq!(
        refused,
        Err(Error::WillNotStop { device: "axi_cdma", status: 0, waited_us: 10_000 })
    );
}

#[test]
fn scatter_gather_that_is_not_built_in() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let device = SimDevice::with_model(
        &board,
        board.port(),
        AxiCdmaModel::new(AxiCdmaSpec { sg: false, ..AxiCdmaSpec::default() }),
    );
    let refused = device.window().unwrap().sg(DEFAULT, carve!(region)(4096)).unwrap_err();
    assert!(matches!(refused.error, Error::Unsupported { what, fix }
            if what.contains("SGIncld") && fix.contains("block design")));
    let memory = refused.into_returned();
    assert_eq!(memory.len_bytes(), 4096, "the memory is back");
    let lite = AxiCdmaConfig { lite: true, ..DEFAULT };
    let refused = device.window().unwrap().sg(lite, memory).unwrap_err();
    assert!(matches!(refused.error, Error::Unsupported { what, .. } if what.contains("lite")));
}

#[test]
fn configurations_that_no_core_has() {
    let board = SimBoard::new(1);
    let device = SimDevice::<AxiCdmaModel>::new(&board, board.port());
    let open = |config| device.window().unwrap().simple(config).map(drop);
    let wrong = [
        AxiCdmaConfig { length_bits: 7, ..DEFAULT },
        AxiCdmaConfig { length_bits: 27, ..DEFAULT },
        AxiCdmaConfig { address_bits: 31, ..DEFAULT },
        AxiCdmaConfig { address_bits: 65, ..DEFAULT },
        AxiCdmaConfig { data_bits: 16, ..DEFAULT },
        AxiCdmaConfig { data_bits: 96, ..DEFAULT },
        AxiCdmaConfig { data_bits: 2048, ..DEFAULT },
        AxiCdmaConfig { burst_beats: 1, ..DEFAULT },
        AxiCdmaConfig { depth: Some(0), ..DEFAULT },
        AxiCdmaConfig { depth: Some(65), ..DEFAULT },
        AxiCdmaConfig { irq_threshold: 0, ..DEFAULT },
        AxiCdmaConfig { irq_threshold: 256, irq_delay: 1, ..DEFAULT },
        AxiCdmaConfig { irq_threshold: 2, ..DEFAULT },
        AxiCdmaConfig { stop_us: 0, ..DEFAULT },
    ];
    for config in wrong {
        assert!(matches!(open(config), Err(Error::Argument { .. })), "{config:?}");
    }
    assert!(matches!(
        open(AxiCdmaConfig { lite: true, dre: true, ..DEFAULT }),
        Err(Error::Unsupported { .. })
    ));
    let keyhole = |config, keyhole| {
        device.window().unwrap().keyhole(config, keyhole, None).map(drop).unwrap_err().error
    };
    let beats = AxiCdmaConfig { burst_beats: 32, ..DEFAULT };
    assert!(matches!(
        keyhole(beats, Keyhole::Reads(FIFO_ADDR)),
        Error::Argument { value: 32, max: 16, .. }
    ));
    assert_eq!(
        keyhole(DEFAULT, Keyhole::Writes(FIFO_ADDR + 2)),
        Error::Misaligned { addr: FIFO_ADDR + 2, align_bytes: 4 }
    );
    assert_eq!(
        keyhole(DEFAULT, Keyhole::Writes(1 << 32)),
        Error::TooHigh { last: 1 << 32, addr_bits: 32 }
    );
}

#[test]
fn rings_that_are_too_small_or_lie_wrong() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let device = SimDevice::<AxiCdmaModel>::new(&board, board.port());
    let small = region.alloc(64, Align::LINE).unwrap();
    let refused = device.window().unwrap().sg(DEFAULT, small).unwrap_err();
    assert_eq!(refused.error, Error::BlockSize { len_bytes: 64, need_bytes: 128, line_bytes: 64 });
    let small = region.alloc(512, Align::LINE).unwrap();
    let config = AxiCdmaConfig { depth: Some(8), ..DEFAULT };
    let refused = device.window().unwrap().sg(config, small).unwrap_err();
    assert_eq!(refused.error, Error::BlockSize { len_bytes: 512, need_bytes: 576, line_bytes: 64 });
}

#[test]
fn jobs_that_no_core_takes() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(256 * 1024).unwrap()).unwrap();
    let device = SimDevice::<AxiCdmaModel>::new(&board, board.port());
    let config = AxiCdmaConfig { length_bits: 10, ..DEFAULT };
    let mut queue = Queue::new(device.window().unwrap().simple(config).unwrap(), 1).unwrap();
    let mut start = |from: core::ops::Range<usize>, to: core::ops::Range<usize>| {
        let operands = [carve!(region)(4096).to_device(from), carve!(region)(4096).from_device(to)];
        queue.submit(operands, &[]).unwrap_err().error
    };
    assert_eq!(
        start(0..1024, 0..1024),
        Error::OperandTooLong { index: 0, have_bytes: 1024, max_bytes: 1023 }
    );
    assert_eq!(
        start(0..100, 0..99),
        Error::BufferSize { index: 1, need_bytes: 100, have_bytes: 99 }
    );
    assert!(matches!(start(1..100, 0..200), Error::BufferAlign { index: 0, align_bytes: 4, .. }));
    assert!(matches!(start(0..100, 2..200), Error::BufferAlign { index: 1, align_bytes: 4, .. }));
    drop(queue);
    // Two jobs share seven of eight descriptors, so that each has three.
    let config = AxiCdmaConfig { length_bits: 8, depth: Some(2), ..DRE };
    let cdma = device.window().unwrap().sg(config, carve!(region)(512)).unwrap();
    assert_eq!((cdma.depth(), cdma.operands()[0].max_bytes), (2, 3 * 252));
}

#[test]
fn a_lite_core_crosses_no_boundary() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(256 * 1024).unwrap()).unwrap();
    let spec =
        AxiCdmaSpec { sg: false, dre: false, lite_beats: Some(16), ..AxiCdmaSpec::default() };
    let device = SimDevice::with_model(&board, board.port(), AxiCdmaModel::new(spec));
    let config = AxiCdmaConfig { lite: true, ..DEFAULT };
    let mut queue = Queue::new(device.window().unwrap().simple(config).unwrap(), 1).unwrap();
    let mut start = |from: core::ops::Range<usize>, to: core::ops::Range<usize>| {
        let operands = [carve!(region)(8192).to_device(from), carve!(region)(8192).from_device(to)];
        queue.run(operands, &[], super::LIMIT).map(drop).map_err(|failed| failed.error)
    };
    assert_eq!(
        start(0..65, 0..65),
        Err(Error::OperandTooLong { index: 0, have_bytes: 65, max_bytes: 64 })
    );
    let crosses = start(4060..4120, 0..64);
    assert!(
        matches!(crosses, Err(Error::Argument { name, value: 60, max: 36, .. })
            if name.contains("operand 0")),
        "{crosses:?}"
    );
    let crosses = start(0..64, 4064..4128);
    assert!(
        matches!(crosses, Err(Error::Argument { name, value: 64, max: 32, .. })
            if name.contains("last operand")),
        "{crosses:?}"
    );
    assert_eq!(start(4032..4096, 4096..4160), Ok(()));
}

/// Version 4.0 had 23 bits: the others are dropped without a word, and BTT tells.
#[test]
fn a_length_that_btt_cuts_is_an_error() {
    let board = SimBoard::new(1);
    let len = (8 << 20) + 64;
    let region = Region::new(board.memory(2 * (len + 4096)).unwrap()).unwrap();
    let device = SimDevice::with_model(
        &board,
        board.port(),
        AxiCdmaModel::new(AxiCdmaSpec { length_bits: 23, ..AxiCdmaSpec::default() }),
    );
    let config = AxiCdmaConfig { length_bits: 26, ..DEFAULT };
    let mut queue = Queue::new(device.window().unwrap().simple(config).unwrap(), 1).unwrap();
    let failed = queue
        .submit([carve!(region)(len).to_device(..), carve!(region)(len).from_device(..)], &[])
        .unwrap_err();
    assert!(
        matches!(failed.error, Error::Unsupported { fix: "set length_bits=23", .. }),
        "{failed}"
    );
    assert!(failed.buffers.is_some(), "the buffers are back");
    assert_eq!(board.counts().unowned_accesses, 0);
}

/// The steps for the kernel stop what the driver started.
#[test]
fn the_stop_program_resets_the_core() {
    let board =
        SimBoard::with(SimConfig { seed: 1, faults: Faults { hang: 1000, ..Faults::NONE } });
    let region = Region::new(board.memory(256 * 1024).unwrap()).unwrap();
    let device = SimDevice::<AxiCdmaModel>::new(&board, board.port());
    let cdma = device.window().unwrap().sg(DRE, carve!(region)(4096)).unwrap();
    let program = cdma.stop_program();
    assert_eq!(program.steps().len(), 3);
    drop(cdma);
    let window = device.window().unwrap();
    // SAFETY: the steps start nothing.
    let ran = unsafe { program.run(&window, 10) };
    assert_eq!(ran, Ok(()));
}
