//! Each error, and each refusal before anything is lost.

use super::{DIRECT, SOON, WITH_SG, alone, core, ring};
use contigo::{
    Align, Device, Driver, Error, PhysAddr, Port, Queue, Region, Result, Wait,
    drivers::axi_dma::{AxiDma, AxiDmaConfig, Side, StatusStream},
    job::{Parts, Settings},
    names::{Attach, DeviceName, row},
    sim::{
        SimBoard, SimDevice, SimSpec,
        axi_dma::{AxiDmaModel, CoreSpec},
        stream::{SourceConfig, StreamConfig},
    },
    types::BaseAddr,
};

/// A job of `len_bytes` on a channel of a core like `spec`, by a driver that takes it for `config`.
fn fails(spec: CoreSpec, config: AxiDmaConfig, side: Side, len_bytes: usize) -> Error {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(128 * 1024).unwrap()).unwrap();
    let pool = region.pool(2, 32 * 1024).unwrap();
    let device = core(&board, spec);
    let driver = device.window().unwrap().channel(side, config, Some(ring(&region))).unwrap();
    let mut queue = Queue::new(driver, 1).unwrap();
    let buf = pool.take().unwrap();
    let operand =
        if side == Side::Mm2s { buf.to_device(..len_bytes) } else { buf.from_device(..len_bytes) };
    let failed = queue.run([operand], &[], SOON).unwrap_err().error;
    assert_eq!((pool.taken(), board.counts().unowned_accesses), (0, 0), "{failed}");
    failed
}

fn what(error: &Error) -> &'static str {
    match error {
        Error::Fault { what, .. } | Error::FaultAt { what, .. } => what,
        other => panic!("{other}"),
    }
}

#[test]
fn a_length_register_that_is_narrower_than_was_said() {
    let cut = |device, need_bytes, done_bytes| Error::LengthCut {
        device,
        length_bits: 20,
        need_bytes,
        done_bytes,
    };
    for spec in [DIRECT, WITH_SG] {
        let core = CoreSpec { stream: StreamConfig::sink(), ..spec };
        let config = AxiDmaConfig { length_bits: 20, ..AxiDmaConfig::default() };
        // With scatter-gather nothing tells of a part that is cut off a packet that is sent.
        if !spec.sg {
            assert_eq!(
                fails(core, config, Side::Mm2s, 20_000),
                cut("axi_dma mm2s", 20_000, 20_000 - (1 << 14))
            );
        }
        // Where all of it is cut off, direct register mode starts nothing.
        assert_eq!(fails(core, config, Side::Mm2s, 1 << 14), cut("axi_dma mm2s", 1 << 14, 0));
        let source = SourceConfig { packet_bytes: 1000, ..SourceConfig::default() };
        let core = CoreSpec { stream: StreamConfig::source(source, 2048), ..spec };
        assert_eq!(fails(core, config, Side::S2mm, 1 << 14), cut("axi_dma s2mm", 1 << 14, 0));
    }
    let error = fails(DIRECT, AxiDmaConfig::default(), Side::Mm2s, 1 << 14);
    assert_eq!(
        error,
        Error::OperandTooLong { index: 0, have_bytes: 1 << 14, max_bytes: (1 << 14) - 1 }
    );
}

/// Its first piece would count as full, and the packet's rest lie behind the bytes that are told.
#[test]
fn narrow_length_register_with_pieces() {
    let source = SourceConfig { packet_bytes: 288, ..SourceConfig::default() };
    let spec = CoreSpec { stream: StreamConfig::source(source, 2048), length_bits: 8, ..WITH_SG };
    let error =
        fails(spec, AxiDmaConfig { depth: Some(2), ..AxiDmaConfig::default() }, Side::S2mm, 20_000);
    let piece = 16_383 / 128 * 128;
    assert_eq!(
        error,
        Error::LengthCut {
            device: "axi_dma s2mm",
            length_bits: 14,
            need_bytes: piece,
            done_bytes: piece % 256
        }
    );
}

/// The end of a job lies in memory, where it stays.
#[test]
fn a_fault_in_memory_is_told_once() {
    let source = SourceConfig { packet_bytes: 288, ..SourceConfig::default() };
    let spec = CoreSpec { stream: StreamConfig::source(source, 2048), length_bits: 8, ..WITH_SG };
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(128 * 1024).unwrap()).unwrap();
    let pool = region.pool(2, 32 * 1024).unwrap();
    let device = core(&board, spec);
    let config = AxiDmaConfig { depth: Some(4), ..AxiDmaConfig::default() };
    let driver = device.window().unwrap().channel(Side::S2mm, config, Some(ring(&region))).unwrap();
    let mut queue = Queue::new(driver, 4).unwrap();
    for _ in 0..2 {
        queue.submit([pool.take().unwrap().from_device(..20_000)], &[]).unwrap();
    }
    assert!(matches!(queue.wait::<1>(SOON).unwrap_err().error, Error::LengthCut { .. }));
    for _ in 0..2 {
        assert!(queue.wait::<1>(SOON).unwrap().is_none());
    }
    assert_eq!(std::iter::from_fn(|| queue.take_back::<1>().unwrap()).count(), 2);
}

#[test]
fn a_packet_that_is_longer_than_its_operand_or_never_ends() {
    let source = SourceConfig { packet_bytes: 1000, ..SourceConfig::default() };
    let spec = CoreSpec { stream: StreamConfig::source(source, 2048), ..DIRECT };
    let error = fails(spec, AxiDmaConfig::default(), Side::S2mm, 512);
    assert!(what(&error).starts_with("DMAIntErr: a packet is longer than its operand"), "{error}");
    let endless = SourceConfig { marks_last: false, ..source };
    let error = fails(
        CoreSpec { stream: StreamConfig::source(endless, 2048), ..DIRECT },
        AxiDmaConfig::default(),
        Side::S2mm,
        4096,
    );
    assert!(what(&error).contains("or never ends") && what(&error).contains("TLAST"), "{error}");
}

#[test]
fn packet_ends_before_its_last_descriptor() {
    let source = SourceConfig { packet_bytes: 100, ..SourceConfig::default() };
    let spec = CoreSpec { stream: StreamConfig::source(source, 2048), length_bits: 8, ..WITH_SG };
    let config = AxiDmaConfig { length_bits: 8, depth: Some(4), ..AxiDmaConfig::default() };
    let error = fails(spec, config, Side::S2mm, 1024);
    assert!(what(&error).starts_with("a packet ended before the last descriptor"), "{error}");
}

#[test]
fn an_address_that_is_not_memory_on_the_port() {
    // The core has 32 address bits, and the driver and the port say 40: the upper half is lost.
    for spec in [DIRECT, WITH_SG] {
        let board = SimBoard::new(1);
        let far = SimSpec {
            len_bytes: 64 * 1024,
            base: Some(BaseAddr::Phys(PhysAddr(0x9_0000_0000))),
            ..SimSpec::default()
        };
        let region = Region::new(board.memory_with(far).unwrap()).unwrap();
        let pool = region.pool(1, 4096).unwrap();
        let near = Region::new(board.memory(4096).unwrap()).unwrap();
        let port = Port { addr_bits: 40, window: (0, (1 << 40) - 1), ..board.port() };
        let device = SimDevice::with_model(
            &board,
            port,
            AxiDmaModel::new(CoreSpec { stream: StreamConfig::sink(), ..spec }),
        );
        let config = AxiDmaConfig { address_bits: 40, ..AxiDmaConfig::default() };
        let driver =
            device.window().unwrap().channel(Side::Mm2s, config, Some(ring(&near))).unwrap();
        let mut queue = Queue::new(driver, 1).unwrap();
        let failed = queue.run([pool.take().unwrap().to_device(..64)], &[], SOON).unwrap_err();
        let Error::FaultAt { addr, what, .. } = failed.error else { panic!("{}", failed.error) };
        assert!(
            addr == 0x9_0000_0000
                && what.starts_with(
                    "DMADecErr: the buffer's address is not memory that this port reaches"
                ),
            "{what}"
        );
    }
}

#[test]
fn misaligned_operand_needs_a_realigning_core() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let pool = region.pool(4, 4096).unwrap();
    let device = core(&board, DIRECT);
    let with =
        |config| Queue::new(device.window().unwrap().driver(config, None).unwrap(), 1).unwrap();
    let start = |config| {
        let operands =
            [pool.take().unwrap().to_device(3..1003), pool.take().unwrap().from_device(1..1001)];
        with(config).run(operands, &[], SOON).map_err(|failed| failed.error).map(|done| done.bytes)
    };
    let wide = AxiDmaConfig { mm2s_data_bits: 64, ..AxiDmaConfig::default() };
    assert!(matches!(start(wide), Err(Error::BufferAlign { index: 0, align_bytes: 8, .. })));
    let half = AxiDmaConfig { mm2s_dre: true, ..wide };
    assert!(matches!(start(half), Err(Error::BufferAlign { index: 1, align_bytes: 4, .. })));
    assert_eq!(start(AxiDmaConfig { s2mm_dre: true, ..half }), Ok(Some(1000)));
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_started() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let device = core(&board, WITH_SG);
    let open =
        |config, memory| device.window().unwrap().channel(Side::S2mm, config, memory).unwrap_err();
    let was = AxiDmaConfig::default();
    assert!(matches!(
        open(was, None),
        Error::Unsupported {
            what: "this AXI DMA has scatter-gather, and needs memory for its descriptors",
            ..
        }
    ));
    for config in [
        AxiDmaConfig { length_bits: 27, ..was },
        AxiDmaConfig { address_bits: 31, ..was },
        AxiDmaConfig { s2mm_data_bits: 48, ..was },
    ] {
        assert!(matches!(open(config, None), Error::Argument { .. }));
    }
    let small = region.alloc(128, Align::LINE).unwrap();
    let error = open(AxiDmaConfig { depth: Some(3), ..was }, Some(small));
    assert_eq!(error, Error::BlockSize { len_bytes: 128, need_bytes: 192, line_bytes: 64 });
    assert_eq!(region.free_bytes(), 64 * 1024, "it came back");
    // Memory of a core without scatter-gather goes back at once.
    let direct = core(&board, DIRECT);
    let pool = region.pool(1, 4096).unwrap();
    let _driver = alone(&direct, Side::Mm2s, Some(pool.take().unwrap()));
    assert_eq!(pool.taken(), 0);
}

/// Only settings tell of these, which a `.hwh` gives.
#[test]
fn micro_dma_and_status_streams_are_refused() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(256 * 1024).unwrap()).unwrap();
    let refused = |spec, side, config| {
        let device = core(&board, spec);
        match device.window().unwrap().channel(side, config, spec.sg.then(|| ring(&region))) {
            Ok(_) => "",
            Err(Error::Unsupported { what, .. }) => what,
            Err(error) => panic!("{error}"),
        }
    };
    let was = AxiDmaConfig::default();
    for spec in [DIRECT, WITH_SG] {
        for side in [Side::Mm2s, Side::S2mm] {
            assert!(
                refused(spec, side, AxiDmaConfig { micro_dma: true, ..was })
                    .contains("Micro DMA moves one burst")
            );
            let stream = |status_stream| refused(spec, side, AxiDmaConfig { status_stream, ..was });
            let receives = spec.sg && side == Side::S2mm;
            assert_eq!(stream(StatusStream::On).contains("ends no packet without it"), receives);
            assert_eq!(
                stream(StatusStream::GivesLength).contains("counts 0 bytes received"),
                receives
            );
            assert_eq!((stream(StatusStream::Driven), stream(StatusStream::Off)), ("", ""));
        }
    }
    let sim = "sim:axi_dma".parse::<DeviceName>().unwrap().open().unwrap();
    let own = Region::new(sim.board().unwrap().memory(64 * 1024).unwrap()).unwrap();
    let by_settings = |settings| {
        let (settings, memory) = (Settings(settings), Some(own.alloc(4096, Align::PAGE).unwrap()));
        // By its function: by its name the model, which has no status stream, refuses it first.
        let device = sim.attach(Attach::default())?;
        // SAFETY: the model is the core, which this driver alone drives.
        unsafe {
            (row("axi_dma")?.open)(Parts { device, memory, settings, map: None })
                .map(|driver| driver.depth())
        }
    };
    assert!(by_settings("channel=1,status_stream=1,status_driven=1").is_ok());
    assert!(matches!(by_settings("channel=1,status_stream=1"), Err(Error::Unsupported { fix, .. })
            if fix.contains("status_driven=1")));
    assert!(matches!(
        by_settings("channel=1,status_stream=1,status_driven=1,status_length=1"),
        Err(Error::Unsupported { .. })
    ));
    assert!(matches!(by_settings("channel=0,micro_dma=1"), Err(Error::Unsupported { .. })));
}

/// A window in which every register reads the same.
#[derive(Debug)]
struct Dead(u32, Port);

// SAFETY: it is no device.
unsafe impl contigo::Mmio for Dead {
    fn len_bytes(&self) -> usize {
        0x60
    }
    fn read32(&self, _: usize) -> u32 {
        self.0
    }
    unsafe fn write32(&self, _: usize, _: u32) {}
}
impl Wait for Dead {
    fn now_us(&self) -> u64 {
        0
    }
    fn wait_at_most(&self, _: u32) -> Result<()> {
        Ok(())
    }
}
// SAFETY: as above.
unsafe impl Device for Dead {
    fn port(&self) -> &Port {
        &self.1
    }
}

#[test]
fn a_core_that_is_not_there_or_never_leaves_its_reset() {
    let port = SimBoard::new(1).port();
    let open = |value| {
        // SAFETY: nothing is there.
        unsafe { AxiDma::open(Dead(value, port), AxiDmaConfig::default(), None) }.unwrap_err()
    };
    assert!(matches!(
        open(u32::MAX),
        Error::WrongDevice { device: "axi_dma", register: "DMASR", found: u32::MAX, .. }
    ));
    assert!(matches!(open(0), Error::Unsupported { what: "this AXI DMA has no MM2S channel", .. }));
    assert!(matches!(open(1 << 2), Error::WrongDevice { .. }));
    // Held in reset: DMACR.Reset is DMASR's reserved bit here, so a plain halted core that never
    // clears anything is one that runs for ever.
    assert!(matches!(
        open(1 << 1),
        Error::WillNotStop { device: "axi_dma mm2s", waited_us: 2_000, .. }
    ));
}
