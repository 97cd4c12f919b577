//! Cores that are not there or were built otherwise, jobs that no core takes, and the stop program.

use super::*;

#[test]
fn windows_that_no_cdma_has() {
    let port = SimBoard::new(1).port();
    let open = |len_bytes, answer| {
        let device = Numbers { port, len_bytes, answer };
        // SAFETY: the device touches no memory.
        unsafe { AxiCdma::simple(device, DEFAULT) }.map(drop).unwrap_err()
    };
    let wrong = |register, expected, found| Error::WrongDevice {
        device: "axi_cdma",
        register,
        expected,
        found,
    };
    let (need_bytes, have_bytes) = (regs::WINDOW_BYTES, 0x28);
    let small = Error::RegisterWindow { device: "axi_cdma", need_bytes, have_bytes };
    assert_eq!(open(0x28, |_| 0), small);
    let no_device = wrong("CDMASR", !regs::CDMASR_ZEROES, u32::MAX);
    assert_eq!(open(0x1000, |_| u32::MAX), no_device);
    // An AXI DMA that is halted: bit 0 of its status.
    let dma = open(0x1000, |offset| if offset == 4 { 0x0001_0009 } else { 0x0001_0002 });
    assert_eq!(dma, wrong("CDMASR", 0x0001_0008, 0x0001_0009));
    let control = open(0x1000, |offset| if offset == 0 { 0x0001_0003 } else { 2 });
    assert_eq!(control, wrong("CDMACR", 0x0001_0002, 0x0001_0003));
    // A core whose clock stands: it answers zeroes, and is never idle.
    let stands = Error::WillNotStop { device: "axi_cdma", status: 0, waited_us: 10_000 };
    assert_eq!(open(0x1000, |_| 0), stands);
}

#[test]
fn scatter_gather_and_its_memory_are_refused() {
    let (board, region, _) = bench(1, 1, 64);
    let refused = |spec, config, len_bytes| {
        let memory = region.alloc(len_bytes, Align::LINE).unwrap();
        let refused = core(&board, spec).window().unwrap().sg(config, memory).unwrap_err();
        let error = refused.error;
        assert_eq!(refused.into_returned().len_bytes(), len_bytes, "the memory is back");
        error
    };
    let (all, none) = (AxiCdmaSpec::default(), AxiCdmaSpec { sg: false, ..AxiCdmaSpec::default() });
    cases! {
        refused(none, DEFAULT, 4096) => Error::Unsupported { what, fix }
            if what.contains("SGIncld") && fix.contains("block design"),
        refused(all, AxiCdmaConfig { lite: true, ..DEFAULT }, 4096)
            => Error::Unsupported { what, .. } if what.contains("lite"),
        refused(all, DEFAULT, 64)
            => Error::BlockSize { len_bytes: 64, need_bytes: 128, line_bytes: 64 },
        refused(all, AxiCdmaConfig { depth: Some(8), ..DEFAULT }, 512)
            => Error::BlockSize { len_bytes: 512, need_bytes: 576, line_bytes: 64 },
    }
}

#[test]
fn configurations_that_no_core_has() {
    let board = SimBoard::new(1);
    let device = core(&board, AxiCdmaSpec::default());
    let open = |config| device.window().unwrap().simple(config).map(drop);
    for config in [
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
    ] {
        assert!(matches!(open(config), Err(Error::Argument { .. })), "{config:?}");
    }
    let keyhole = |config, keyhole| {
        device.window().unwrap().keyhole(config, keyhole, None).map(drop).unwrap_err().error
    };
    let beats = AxiCdmaConfig { burst_beats: 32, ..DEFAULT };
    const ODD: u64 = FIFO_ADDR + 2;
    const HIGH: u64 = 1 << 32;
    cases! {
        open(AxiCdmaConfig { lite: true, dre: true, ..DEFAULT }) => Err(Error::Unsupported { .. }),
        keyhole(beats, Keyhole::Reads(FIFO_ADDR)) => Error::Argument { value: 32, max: 16, .. },
        keyhole(DEFAULT, Keyhole::Writes(ODD)) => Error::Misaligned { addr: ODD, align_bytes: 4 },
        keyhole(DEFAULT, Keyhole::Writes(HIGH)) => Error::TooHigh { last: HIGH, addr_bits: 32 },
    }
}

#[test]
fn jobs_that_no_core_takes() {
    let (board, region, pool) = bench(1, 2, 4096);
    let device = core(&board, AxiCdmaSpec::default());
    let config = AxiCdmaConfig { length_bits: 10, ..DEFAULT };
    let mut queue = Queue::new(device.window().unwrap().simple(config).unwrap(), 1).unwrap();
    let mut start = |from: core::ops::Range<usize>, to: core::ops::Range<usize>| {
        queue.refuses(copies(&pool, from, to), &[])
    };
    cases! {
        start(0..1024, 0..1024)
            => Error::OperandTooLong { index: 0, have_bytes: 1024, max_bytes: 1023 },
        start(0..100, 0..99) => Error::BufferSize { index: 1, need_bytes: 100, have_bytes: 99 },
        start(1..100, 0..200) => Error::BufferAlign { index: 0, align_bytes: 4, .. },
        start(0..100, 2..200) => Error::BufferAlign { index: 1, align_bytes: 4, .. },
    }
    drop(queue);
    // Two jobs share seven of eight descriptors, so that each has three.
    let config = AxiCdmaConfig { length_bits: 8, depth: Some(2), ..DRE };
    let own = region.alloc(512, Align::LINE).unwrap();
    let cdma = device.window().unwrap().sg(config, own).unwrap();
    assert_eq!((cdma.depth(), cdma.operands()[0].max_bytes), (2, 3 * 252));
}

#[test]
fn a_lite_core_crosses_no_boundary() {
    let (board, _, pool) = bench(1, 2, 8192);
    let spec =
        AxiCdmaSpec { sg: false, dre: false, lite_beats: Some(16), ..AxiCdmaSpec::default() };
    let device = core(&board, spec);
    let config = AxiCdmaConfig { lite: true, ..DEFAULT };
    let mut queue = Queue::new(device.window().unwrap().simple(config).unwrap(), 1).unwrap();
    let mut start = |from: core::ops::Range<usize>, to: core::ops::Range<usize>| {
        queue.run(copies(&pool, from, to), &[], LIMIT).map(drop).map_err(|failed| failed.error)
    };
    cases! {
        start(0..65, 0..65)
            => Err(Error::OperandTooLong { index: 0, have_bytes: 65, max_bytes: 64 }),
        start(4060..4120, 0..64)
            => Err(Error::Argument { name, value: 60, max: 36, .. }) if name.contains("operand 0"),
        start(0..64, 4064..4128)
            => Err(Error::Argument { name, value: 64, max: 32, .. })
            if name.contains("last operand"),
        start(4032..4096, 4096..4160) => Ok(()),
    }
}

/// Version 4.0 had 23 bits: the others are dropped without a word, and BTT tells.
#[test]
fn a_length_that_btt_cuts_is_an_error() {
    let (board, _, pool) = bench(1, 2, (8 << 20) + 64);
    let device = core(&board, AxiCdmaSpec { length_bits: 23, ..AxiCdmaSpec::default() });
    let config = AxiCdmaConfig { length_bits: 26, ..DEFAULT };
    let mut queue = Queue::new(device.window().unwrap().simple(config).unwrap(), 1).unwrap();
    let failed = queue.submit(copies(&pool, .., ..), &[]).unwrap_err();
    cases! { failed.error => Error::Unsupported { fix: "set length_bits=23", .. } }
    assert!(failed.buffers.is_some(), "the buffers are back");
    clean(&board);
}

/// The steps for the kernel stop what the driver started.
#[test]
fn the_stop_program_resets_the_core() {
    let (board, region, pool) = faulty(1, HANG, 2, 64);
    let device = core(&board, AxiCdmaSpec::default());
    let window = device.window().unwrap();
    // SAFETY: the model is built so.
    let cdma = unsafe { AxiCdma::sg(Lent::new(&window), DRE, ring(&region)) }.unwrap();
    let mut queue = Queue::new(cdma, 1).unwrap();
    queue.give(copies(&pool, .., ..));
    let program = queue.driver().stop_program();
    assert_eq!(program.steps().len(), 3);
    let is_idle = || window.read32(0x04) & regs::IDLE != 0;
    assert!(!is_idle());
    // SAFETY: the steps start nothing.
    assert_eq!(unsafe { program.run(&window, 10) }, Ok(()));
    // CDMACR is as after power-on.
    assert_eq!((window.read32(0x00), is_idle()), (0x0001_0002, true));
}
