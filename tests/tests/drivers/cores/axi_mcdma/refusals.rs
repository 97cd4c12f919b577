#![allow(unsafe_code, reason = "models, and drivers that are opened over them, are promises")]
//! Bad input, and cores that are not as they should be.

use super::*;
use contigo::{
    Align, Driver, Error, Queue,
    job::{Parts, Settings},
    names::{Attach, DeviceName, row},
    sim::{Model, SimBus, SimDevice},
    types::Refused,
};
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn impossible_operands_are_refused() {
    let board = SimBoard::new(1);
    ground!(board, rings, pool);
    let config = McdmaConfig {
        mm2s_data_bits: 128,
        s2mm_data_bits: 64,
        length_bits: 10,
        ..McdmaConfig::default()
    };
    let spec = McdmaSpec { config, streams: [StreamConfig::sink(); 2] };
    let device = SimDevice::with_model(&board, board.port(), McdmaModel::new(spec));
    let core = device.window().unwrap().core().unwrap();
    let mut sender =
        Queue::new(core.channel(Way::Mm2s(0), rings.take().unwrap()).unwrap(), 4).unwrap();
    let mut receiver =
        Queue::new(core.channel(Way::S2mm(0), rings.take().unwrap()).unwrap(), 4).unwrap();
    let mut sent = |range: std::ops::Range<usize>| {
        sender
            .submit([pool.take().unwrap().to_device(range)], &[])
            .map_err(|refused| refused.error)
            .err()
    };
    assert!(matches!(sent(8..100), Some(Error::BufferAlign { index: 0, align_bytes: 16, .. })));
    assert_eq!(
        sent(0..1024),
        Some(Error::OperandTooLong { index: 0, have_bytes: 1024, max_bytes: 1023 })
    );
    assert_eq!(sent(16..1039), None, "any length from an aligned address");
    let got = receiver
        .submit([pool.take().unwrap().from_device(..100)], &[])
        .map_err(|refused| refused.error)
        .err();
    assert!(
        matches!(got, Some(Error::Argument { value: 100, min: 8, multiple_of: 8, .. })),
        "{got:?}"
    );
    let got = receiver
        .submit([pool.take().unwrap().from_device(..1023)], &[])
        .map_err(|refused| refused.error)
        .err();
    assert_eq!(got, Some(Error::OperandTooLong { index: 0, have_bytes: 1023, max_bytes: 1016 }));
}

#[test]
fn a_length_register_that_is_narrower_than_said_is_found() {
    let board = SimBoard::new(1);
    ground!(board, rings, pool);
    let spec = McdmaSpec {
        config: McdmaConfig { length_bits: 10, ..dre() },
        streams: [StreamConfig::sink(); 2],
    };
    let device = SimDevice::with_model(&board, board.port(), McdmaModel::new(spec));
    // SAFETY: the window is the model's.
    let channel = unsafe {
        McdmaChannel::open(device.window().unwrap(), Way::Mm2s(0), dre(), rings.take().unwrap())
    }
    .unwrap();
    let mut queue = Queue::new(channel, 4).unwrap();
    queue.submit([pool.take().unwrap().to_device(..1030)], &[]).unwrap();
    let error = queue.wait::<1>(LIMIT).map(|done| done.is_some()).map_err(|failed| failed.error);
    assert!(
        matches!(error, Err(Error::Fault { what, .. }) if what.contains("length_bits")),
        "{error:?}"
    );
    assert!(queue.wait::<1>(LIMIT).unwrap().is_none(), "told once");
}

#[test]
fn channels_and_descriptors_that_do_not_suit_come_back() {
    let board = SimBoard::new(1);
    ground!(board, rings, _pool);
    let device = SimDevice::with_model(&board, board.port(), model(StreamConfig::sink()));
    let core = device.window().unwrap().core().unwrap();
    let error = |way| {
        core.channel(way, rings.take().unwrap())
            .map(drop)
            .map_err(|refused: Refused<_>| refused.error)
    };
    assert!(matches!(
        error(Way::S2mm(2)),
        Err(Error::Unsupported { what: "the core has no such channel", .. })
    ));
    assert!(matches!(
        error(Way::Mm2s(16)),
        Err(Error::Argument { name: "channel", value: 32, max: 31, .. })
    ));
    let held = core.channel(Way::Mm2s(1), rings.take().unwrap()).unwrap();
    assert_eq!(error(Way::Mm2s(1)), Err(Error::HasDriver));
    drop(held);
    assert_eq!(error(Way::Mm2s(1)), Ok(()));
    let region = Region::new(board.memory(4096).unwrap()).unwrap();
    let small = region.alloc(64, Align::LINE).unwrap();
    let refused = core.channel(Way::Mm2s(0), small).unwrap_err();
    assert_eq!(refused.error, Error::BlockSize { len_bytes: 64, need_bytes: 128, line_bytes: 64 });
    assert_eq!(rings.taken(), 0);
}

#[test]
fn a_core_without_a_direction_works_in_the_other() {
    let board = SimBoard::new(1);
    ground!(board, rings, pool);
    let device = SimDevice::with_model(&board, board.port(), Half(model(source())));
    // SAFETY: the model is a core without MM2S.
    let core = unsafe { Mcdma::open(device.window().unwrap(), dre()) }.unwrap();
    let none = core
        .channel(Way::Mm2s(0), rings.take().unwrap())
        .map(drop)
        .map_err(|refused| refused.error);
    assert!(matches!(none, Err(Error::Unsupported { .. })), "{none:?}");
    let mut queue =
        Queue::new(core.channel(Way::S2mm(0), rings.take().unwrap()).unwrap(), 4).unwrap();
    queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
    assert!(queue.wait::<1>(LIMIT).unwrap().is_some());
}

/// Registers that all read the same, a core without MM2S, or one whose registers all read 0 later.
struct Same(u32);
struct Half(McdmaModel);
struct Later(McdmaModel, AtomicBool);

// SAFETY: it touches no memory.
unsafe impl Model for Same {
    const WINDOW_BYTES: usize = 0x1000;
    fn advance(&mut self, _: &mut SimBus<'_>) {}
    fn read32(&mut self, _: usize, _: &mut SimBus<'_>) -> u32 {
        self.0
    }
    fn write32(&mut self, _: usize, _: u32, _: &mut SimBus<'_>) {}
    fn irq_at_ns(&self) -> Option<u64> {
        None
    }
    fn reset(&mut self) {}
}

/// S2MM's registers begin (PG288, "Register Space").
const S2MM: usize = 0x500;

// SAFETY: it is the core's model.
unsafe impl Model for Half {
    const WINDOW_BYTES: usize = McdmaModel::WINDOW_BYTES;
    fn advance(&mut self, bus: &mut SimBus<'_>) {
        self.0.advance(bus);
    }
    fn read32(&mut self, offset: usize, bus: &mut SimBus<'_>) -> u32 {
        if offset < S2MM { 0 } else { self.0.read32(offset, bus) }
    }
    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        if offset >= S2MM {
            self.0.write32(offset, value, bus);
        }
    }
    fn irq_at_ns(&self) -> Option<u64> {
        self.0.irq_at_ns()
    }
    fn reset(&mut self) {
        self.0.reset();
    }
}

// SAFETY: it is the core's model.
unsafe impl Model for Later {
    const WINDOW_BYTES: usize = McdmaModel::WINDOW_BYTES;
    fn advance(&mut self, bus: &mut SimBus<'_>) {
        self.0.advance(bus);
    }
    fn read32(&mut self, offset: usize, bus: &mut SimBus<'_>) -> u32 {
        if self.1.load(Ordering::Relaxed) { 0 } else { self.0.read32(offset, bus) }
    }
    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        if !self.1.load(Ordering::Relaxed) {
            self.0.write32(offset, value, bus);
        }
    }
    fn irq_at_ns(&self) -> Option<u64> {
        self.0.irq_at_ns()
    }
    fn reset(&mut self) {
        self.0.reset();
    }
}

#[test]
fn registers_that_read_zero_are_no_stopped_channel() {
    for siblings_reset in [false, true] {
        let board = SimBoard::new(1);
        ground!(board, rings, pool);
        let device = SimDevice::with_model(
            &board,
            board.port(),
            Later(model(StreamConfig::default()), AtomicBool::new(false)),
        );
        // SAFETY: the model is a core.
        let core = unsafe { Mcdma::open(device.window().unwrap(), dre()) }.unwrap();
        let mut queue =
            Queue::new(core.channel(Way::S2mm(0), rings.take().unwrap()).unwrap(), 4).unwrap();
        queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
        device.model(|model| model.1.store(true, Ordering::Relaxed)).unwrap();
        if siblings_reset {
            core.reset(|| Ok(())).unwrap();
        }
        let stopped = queue.stop();
        assert!(matches!(stopped, Err(Error::WillNotStop { status: 0, .. })), "{stopped:?}");
        device.model(|model| model.1.store(false, Ordering::Relaxed)).unwrap();
        queue.clear().unwrap();
        assert_eq!(pool.taken(), 0);
    }
}

#[test]
fn what_is_no_core_is_said() {
    let board = SimBoard::new(1);
    ground!(board, rings, _pool);
    let open = |value, way| {
        let device = SimDevice::with_model(&board, board.port(), Same(value));
        // SAFETY: the model touches no memory.
        let shared = unsafe { Mcdma::open(device.window().unwrap(), dre()) }.map(drop);
        // SAFETY: as above.
        let alone = unsafe {
            McdmaChannel::open(device.window().unwrap(), way, dre(), rings.take().unwrap())
        }
        .map(drop);
        (shared, alone)
    };
    for way in [Way::Mm2s(0), Way::S2mm(0)] {
        let (shared, alone) = open(u32::MAX, way);
        assert!(
            matches!(shared, Err(Error::Fault { what, .. }) if what.contains("gone")),
            "{shared:?}"
        );
        assert_eq!(shared, alone);
        // In reset for ever: its clock is off.
        let stopped = Err(Error::WillNotStop { device: "axi_mcdma", status: 5, waited_us: 1_000 });
        assert_eq!(open(5, way), (stopped, stopped));
        // No registers at all.
        let (shared, alone) = open(0, way);
        assert!(matches!(
            (shared, alone),
            (Err(Error::WillNotStop { status: 0, .. }), Err(Error::WillNotStop { .. }))
        ));
    }
    // One that halts for ever is found by the first job, not by the first wait.
    let device = SimDevice::with_model(&board, board.port(), Same(regs::HALTED | regs::IRQS));
    // SAFETY: the model touches no memory.
    let core = unsafe { Mcdma::open(device.window().unwrap(), dre()) };
    assert!(matches!(core, Err(Error::WillNotStop { .. })), "its status has bits that cannot be");
}

#[test]
fn parameters_that_no_core_has_are_refused() {
    let board = SimBoard::new(1);
    ground!(board, rings, _pool);
    let device = SimDevice::with_model(&board, board.port(), McdmaModel::default());
    for bad in [
        McdmaConfig { address_bits: 31, ..dre() },
        McdmaConfig { length_bits: 27, ..dre() },
        McdmaConfig { mm2s_data_bits: 16, ..dre() },
        McdmaConfig { stop_us: 0, ..dre() },
        McdmaConfig { mm2s_data_bits: 48, ..McdmaConfig::default() },
    ] {
        // SAFETY: the window is the model's.
        let refused = unsafe {
            McdmaChannel::open(device.window().unwrap(), Way::Mm2s(0), bad, rings.take().unwrap())
        };
        assert!(
            matches!(
                refused,
                Err(Error::Argument { .. } | Error::NotPowerOfTwo { align_bytes: 6 })
            ),
            "{bad:?}: {refused:?}"
        );
    }
    let whole = device.window().unwrap().channel(Way::Mm2s(0), rings.take().unwrap()).unwrap();
    assert_eq!((whole.depth(), whole.stop_program().steps().len()), (16, 3));
}

#[test]
fn channels_open_by_name_side_by_side() {
    let device = std::pin::pin!("sim:axi_mcdma".parse::<DeviceName>().unwrap().open().unwrap());
    let region = Region::new(device.board().unwrap().memory(1 << 20).unwrap()).unwrap();
    let take = || region.alloc(4096, Align::LINE).unwrap();
    let open = |settings| {
        let settings = Settings(settings);
        // SAFETY: the model is the core, which no other code drives.
        unsafe {
            let taken =
                device.as_ref().take(row("axi_mcdma")?, settings, None, Attach::default())?;
            taken.open(Parts { device: (), memory: Some(take()), settings, map: None })
        }
    };
    let mut receiver = Queue::new(open("channel=17,s2mm_dre=1").unwrap(), 2).unwrap();
    let mut sender = Queue::new(open("channel=1,mm2s_dre=1,length_bits=12").unwrap(), 2).unwrap();
    let long = receiver
        .submit([take().from_device(..1 << 14)], &[])
        .map_err(|refused| refused.error)
        .err();
    assert!(matches!(long, Some(Error::OutOfRange { .. })), "{long:?}");
    receiver.submit([take().from_device(..)], &[]).unwrap();
    let long =
        sender.submit([take().to_device(..4096)], &[]).map_err(|refused| refused.error).err();
    assert_eq!(long, Some(Error::OperandTooLong { index: 0, have_bytes: 4096, max_bytes: 4095 }));
    sender.submit([take().to_device(1..778)], &[]).unwrap();
    assert!(sender.wait::<1>(LIMIT).unwrap().is_some());
    assert_eq!(receiver.wait::<1>(LIMIT).unwrap().unwrap().bytes, Some(777));
    assert!(open("channel=40").is_err() && open("channel=3").is_err() && open("depth=3").is_err());
    drop((receiver, sender));
    // Without the setting it is channel 0, alone.
    let alone = Queue::new(open("").unwrap(), 2).unwrap();
    assert_eq!(open("channel=1").map(drop), Err(Error::HasDriver));
    drop(alone);
}
