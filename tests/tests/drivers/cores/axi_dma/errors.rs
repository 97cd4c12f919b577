//! Each error, and each refusal before anything is lost.

use super::*;
use crate::regs::axi_dma as regs;
use contigo::drivers::axi_dma::StatusStream;
use contigo::job::{Parts, Settings};
use contigo::names::{Attach, DeviceName, row};

/// A job of `len_bytes` on a channel of a core like `spec`, by a driver that takes it for `config`.
fn fails(spec: CoreSpec, config: AxiDmaConfig, side: Side, len_bytes: usize) -> Error {
    let (board, region, pool) = bench(1, 2, 32 * 1024);
    let mut queue = alone(&core(&board, spec), &region, side, config);
    let operand =
        if side == Side::Mm2s { sends(&pool, ..len_bytes) } else { receives(&pool, ..len_bytes) };
    let failed = queue.run(operand, &[], LIMIT).unwrap_err().error;
    assert_eq!((pool.taken(), board.counts().unowned_accesses), (0, 0), "{failed}");
    failed
}

#[test]
fn a_narrow_length_register_is_found() {
    let was = AxiDmaConfig::default();
    let config = AxiDmaConfig { length_bits: 20, ..was };
    // The first of its pieces would count as full, and the packet's rest lie behind the bytes that
    // are told.
    let piece = 16_383 / 128 * 128;
    let pieces = CoreSpec { length_bits: 8, ..receiver(288, WITH_SG) };
    let sink = |spec| CoreSpec { stream: StreamConfig::sink(), ..spec };
    let cut = 20_000 - (1 << 14);
    for (spec, config, side, given, need_bytes, done_bytes) in [
        // With scatter-gather nothing tells of a part that is cut off a packet that is sent.
        (sink(DIRECT), config, Side::Mm2s, 20_000, 20_000, cut),
        // Where all of it is cut off, direct register mode starts nothing.
        (sink(DIRECT), config, Side::Mm2s, 1 << 14, 1 << 14, 0),
        (sink(WITH_SG), config, Side::Mm2s, 1 << 14, 1 << 14, 0),
        (receiver(1000, DIRECT), config, Side::S2mm, 1 << 14, 1 << 14, 0),
        (receiver(1000, WITH_SG), config, Side::S2mm, 1 << 14, 1 << 14, 0),
        (pieces, AxiDmaConfig { depth: Some(2), ..was }, Side::S2mm, 20_000, piece, piece % 256),
    ] {
        let device = if side == Side::Mm2s { "axi_dma mm2s" } else { "axi_dma s2mm" };
        let (length_bits, sg) = (config.length_bits, spec.sg);
        assert_eq!(
            fails(spec, config, side, given),
            Error::LengthCut { device, length_bits, need_bytes, done_bytes },
            "{given} bytes, scatter-gather {sg}"
        );
    }
    let too_long = Error::OperandTooLong { index: 0, have_bytes: 1 << 14, max_bytes: 16_383 };
    assert_eq!(fails(DIRECT, was, Side::Mm2s, 1 << 14), too_long);
}

/// The end of a job lies in memory, where it stays.
#[test]
fn a_fault_in_memory_is_told_once() {
    let (board, region, pool) = bench(1, 2, 32 * 1024);
    let device = core(&board, CoreSpec { length_bits: 8, ..receiver(288, WITH_SG) });
    let config = AxiDmaConfig { depth: Some(4), ..AxiDmaConfig::default() };
    let mut queue = alone(&device, &region, Side::S2mm, config);
    for _ in 0..2 {
        queue.give(receives(&pool, ..20_000));
    }
    cases! { queue.fails::<1>() => Error::LengthCut { .. } }
    assert_eq!(queue.drain::<1>(), 2);
}

/// A descriptor's error bit comes before DMASR's.
#[test]
fn error_that_only_a_descriptor_shows_has_its_text() {
    let (board, region, pool) = bench(15, 2, 256);
    let model = AxiDmaModel::new(CoreSpec { error_at: Some(0), ..receiver(256, WITH_SG) });
    let device = SimDevice::with_model(&board, board.coherent_port(), model);
    let is_early = Cell::new(false);
    let early = |offset, value| match offset {
        0x34 if is_early.get() => value & !(regs::ERRORS | regs::HALTED | regs::IRQS),
        _ => value,
    };
    let window = Bent::new(device.window().unwrap(), early);
    let config = AxiDmaConfig::default();
    // SAFETY: the model is built so.
    let channel =
        unsafe { AxiDmaChannel::alone(window, Side::S2mm, config, Some(ring(&region))) }.unwrap();
    let mut queue = Queue::new(channel, 2).unwrap();
    for _ in 0..2 {
        queue.give(receives(&pool, ..));
    }
    device.run_for(20).unwrap();
    is_early.set(true);
    let error = queue.wait::<1>(Duration::ZERO).unwrap_err().cause;
    cases! { error => Error::FaultAt { what, .. } if what.starts_with("DMASlvErr") }
}

#[test]
fn packets_that_do_not_fit_are_errors() {
    let was = AxiDmaConfig::default();
    let source = SourceConfig { packet_bytes: 1000, marks_last: false, ..SourceConfig::default() };
    let endless = CoreSpec { stream: StreamConfig::source(source, 2048), ..DIRECT };
    let short = CoreSpec { length_bits: 8, ..receiver(100, WITH_SG) };
    let pieces = AxiDmaConfig { length_bits: 8, depth: Some(4), ..was };
    for (spec, config, room, begins, has) in [
        (receiver(1000, DIRECT), was, 512, "DMAIntErr: a packet is longer than its operand", ""),
        (endless, was, 4096, "DMAIntErr", "or never ends"),
        (endless, was, 4096, "DMAIntErr", "TLAST"),
        (short, pieces, 1024, "a packet ended before the last descriptor", ""),
    ] {
        cases! {
            fails(spec, config, Side::S2mm, room)
                => Error::Fault { what, .. } | Error::FaultAt { what, .. }
                if what.starts_with(begins) && what.contains(has),
        }
    }
}

#[test]
fn an_address_that_is_not_memory_on_the_port() {
    // The core has 32 address bits, and the driver and the port say 40: the upper half is lost.
    for spec in [DIRECT, WITH_SG] {
        let (board, near, _) = bench(1, 1, 64);
        let base = Some(BaseAddr::Phys(PhysAddr(0x9_0000_0000)));
        let far = SimSpec { len_bytes: 4096, base, ..SimSpec::default() };
        let far = Region::new(board.memory_with(far).unwrap()).unwrap();
        let port = Port { addr_bits: 40, window: (0, (1 << 40) - 1), ..board.port() };
        let model = AxiDmaModel::new(CoreSpec { stream: StreamConfig::sink(), ..spec });
        let device = SimDevice::<AxiDmaModel>::with_model(&board, port, model);
        let config = AxiDmaConfig { address_bits: 40, ..AxiDmaConfig::default() };
        let mut queue = alone(&device, &near, Side::Mm2s, config);
        let failed = queue.run([ring(&far).to_device(..64)], &[], LIMIT).unwrap_err();
        let begin = "DMADecErr: the buffer's address is not memory that this port reaches";
        cases! {
            failed.error => Error::FaultAt { addr: 0x9_0000_0000, what, .. }
                if what.starts_with(begin),
        }
    }
}

#[test]
fn misaligned_operand_needs_a_realigning_core() {
    let (board, _, pool) = bench(1, 4, 4096);
    let device = core(&board, DIRECT);
    let start = |config| {
        let driver = device.window().unwrap().driver(config, None).unwrap();
        let operands = copies(&pool, 3..1003, 1..1001);
        let ran = Queue::new(driver, 1).unwrap().run(operands, &[], LIMIT);
        ran.map_err(|failed| failed.error).map(|done| done.bytes)
    };
    let wide = AxiDmaConfig { mm2s_data_bits: 64, ..AxiDmaConfig::default() };
    let half = AxiDmaConfig { mm2s_dre: true, ..wide };
    cases! {
        start(wide) => Err(Error::BufferAlign { index: 0, align_bytes: 8, .. }),
        start(half) => Err(Error::BufferAlign { index: 1, align_bytes: 4, .. }),
        start(AxiDmaConfig { s2mm_dre: true, ..half }) => Ok(Some(1000)),
    }
}

#[test]
fn impossible_setup_is_refused_before_start() {
    let (board, region, _) = bench(1, 1, 64);
    let free_bytes = region.free_bytes();
    let device = core(&board, WITH_SG);
    let open = |config, memory| device.window().unwrap().channel(Side::S2mm, config, memory);
    let was = AxiDmaConfig::default();
    let small = || Some(region.alloc(128, Align::LINE).unwrap());
    cases! {
        open(was, None) => Err(Error::Unsupported { what, .. }) if what.contains("needs memory"),
        open(AxiDmaConfig { length_bits: 27, ..was }, None) => Err(Error::Argument { .. }),
        open(AxiDmaConfig { address_bits: 31, ..was }, None) => Err(Error::Argument { .. }),
        open(AxiDmaConfig { s2mm_data_bits: 48, ..was }, None) => Err(Error::Argument { .. }),
        open(AxiDmaConfig { depth: Some(3), ..was }, small())
            => Err(Error::BlockSize { len_bytes: 128, need_bytes: 192, line_bytes: 64 }),
    }
    // Memory of a core without scatter-gather goes back at once.
    let _direct = alone(&core(&board, DIRECT), &region, Side::Mm2s, was);
    assert_eq!(region.free_bytes(), free_bytes, "all of it came back");
}

/// Only settings tell of these, which a `.hwh` gives.
#[test]
fn micro_dma_and_status_streams_are_refused() {
    let (board, region, _) = bench(1, 1, 64);
    let refused = |spec, side, config| match core(&board, spec).window().unwrap().channel(
        side,
        config,
        Some(ring(&region)),
    ) {
        Ok(_) => "",
        Err(Error::Unsupported { what, .. }) => what,
        Err(error) => panic!("{error}"),
    };
    let was = AxiDmaConfig::default();
    for spec in [DIRECT, WITH_SG] {
        for side in [Side::Mm2s, Side::S2mm] {
            let micro = refused(spec, side, AxiDmaConfig { micro_dma: true, ..was });
            assert!(micro.contains("Micro DMA moves one burst"), "{micro}");
            let stream = |status_stream| refused(spec, side, AxiDmaConfig { status_stream, ..was });
            let receives = spec.sg && side == Side::S2mm;
            let (on, gives) = (stream(StatusStream::On), stream(StatusStream::GivesLength));
            assert_eq!(on.contains("ends no packet without it"), receives, "{on}");
            assert_eq!(gives.contains("counts 0 bytes received"), receives, "{gives}");
            assert_eq!((stream(StatusStream::Driven), stream(StatusStream::Off)), ("", ""));
        }
    }
    let sim = "sim:axi_dma".parse::<DeviceName>().unwrap().open().unwrap();
    let own = region_of(&sim);
    let by_settings = |settings| {
        let (settings, memory) = (Settings(settings), Some(ring(&own)));
        // By its function: by its name the model, which has no status stream, refuses it first.
        let device = sim.attach(Attach::default())?;
        let parts = Parts { device, memory, settings, map: None };
        // SAFETY: the model is the core, which this driver alone drives.
        unsafe { (row("axi_dma")?.open)(parts).map(|driver| driver.depth()) }
    };
    cases! {
        by_settings("channel=1,status_stream=1,status_driven=1") => Ok(_),
        by_settings("channel=1,status_stream=1")
            => Err(Error::Unsupported { fix, .. }) if fix.contains("status_driven=1"),
        by_settings("channel=1,status_stream=1,status_driven=1,status_length=1")
            => Err(Error::Unsupported { .. }),
        by_settings("channel=0,micro_dma=1") => Err(Error::Unsupported { .. }),
    }
}

fn region_of(device: &contigo::names::OpenDevice) -> Region {
    super::region(device.board().unwrap(), 64 * 1024)
}

#[test]
fn absent_core_or_endless_reset_is_refused() {
    let port = SimBoard::new(1).port();
    let open = |answer| {
        // SAFETY: nothing is there.
        unsafe {
            AxiDma::open(Numbers { port, len_bytes: 0x60, answer }, AxiDmaConfig::default(), None)
        }
        .map(drop)
    };
    cases! {
        open(|_| u32::MAX)
            => Err(Error::WrongDevice { register: "DMASR", found: u32::MAX, .. }),
        open(|_| 0) => Err(Error::Unsupported { what: "this AXI DMA has no MM2S channel", .. }),
        open(|_| 1 << 2) => Err(Error::WrongDevice { .. }),
        // Held in reset: DMACR.Reset is DMASR's reserved bit here, so a plain halted core that
        // never clears anything is one that runs for ever.
        open(|_| 1 << 1)
            => Err(Error::WillNotStop { device: "axi_dma mm2s", waited_us: 2_000, .. }),
    }
}
