//! Bad input, and cores that are not as they should be.

use super::*;
use contigo::job::{Parts, Settings};
use contigo::names::{Attach, DeviceName, row};

#[test]
fn impossible_operands_are_refused() {
    let (board, rings, pool) = ground(Faults::NONE);
    let config = McdmaConfig {
        mm2s_data_bits: 128,
        s2mm_data_bits: 64,
        length_bits: 10,
        ..McdmaConfig::default()
    };
    let device = core(&board, config, StreamConfig::sink());
    let core = device.window().unwrap().core().unwrap();
    let [mut sender, mut receiver] =
        [Way::Mm2s(0), Way::S2mm(0)].map(|way| open(&core, way, &rings));
    cases! {
        sender.refuses(sends(&pool, 8..100), &[])
            => Error::BufferAlign { index: 0, align_bytes: 16, .. },
        sender.refuses(sends(&pool, 0..1024), &[])
            => Error::OperandTooLong { index: 0, have_bytes: 1024, max_bytes: 1023 },
        receiver.refuses(receives(&pool, ..100), &[])
            => Error::Argument { value: 100, min: 8, multiple_of: 8, .. },
        receiver.refuses(receives(&pool, ..1023), &[])
            => Error::OperandTooLong { index: 0, have_bytes: 1023, max_bytes: 1016 },
    }
    // Any length from an aligned address.
    sender.give(sends(&pool, 16..1039));
}

#[test]
fn narrower_length_register_is_found() {
    let (board, rings, pool) = ground(Faults::NONE);
    let device = core(&board, McdmaConfig { length_bits: 10, ..DRE }, StreamConfig::sink());
    let (window, memory) = (device.window().unwrap(), rings.take().unwrap());
    // SAFETY: the window is the model's.
    let channel = unsafe { McdmaChannel::open(window, Way::Mm2s(0), DRE, memory) }.unwrap();
    let mut queue = Queue::new(channel, 4).unwrap();
    queue.give(sends(&pool, ..1030));
    cases! {
        queue.fails::<1>() => Error::Fault { what, .. } if what.contains("length_bits"),
        queue.wait::<1>(LIMIT) => Ok(None), // told once
    }
}

#[test]
fn misfit_channels_and_rings_come_back() {
    let (board, rings, _) = ground(Faults::NONE);
    let device = core(&board, DRE, StreamConfig::sink());
    let core = device.window().unwrap().core().unwrap();
    let error =
        |way| core.channel(way, rings.take().unwrap()).map(drop).map_err(|refused| refused.error);
    let held = open(&core, Way::Mm2s(1), &rings);
    let small = region(&board, 4096).alloc(64, Align::LINE).unwrap();
    cases! {
        error(Way::S2mm(2)) => Err(Error::Unsupported { what: "the core has no such channel", .. }),
        error(Way::Mm2s(16)) => Err(Error::Argument { name: "channel", value: 32, max: 31, .. }),
        error(Way::Mm2s(1)) => Err(Error::HasDriver),
        core.channel(Way::Mm2s(0), small).unwrap_err().error
            => Error::BlockSize { len_bytes: 64, need_bytes: 128, line_bytes: 64 },
    }
    drop(held);
    assert_eq!(error(Way::Mm2s(1)), Ok(()));
    assert_eq!(rings.taken(), 0);
}

/// S2MM's registers begin (PG288, "Register Space").
const S2MM: usize = 0x500;

#[test]
fn a_core_without_a_direction_works_in_the_other() {
    let (board, rings, pool) = ground(Faults::NONE);
    let device = core(&board, DRE, source());
    let half = Bent::new(device.window().unwrap(), |at, value| if at < S2MM { 0 } else { value })
        .writing(|at, value| (at >= S2MM).then_some(value));
    // SAFETY: the model is a core without MM2S.
    let core = unsafe { Mcdma::open(half, DRE) }.unwrap();
    let none = core.channel(Way::Mm2s(0), rings.take().unwrap()).unwrap_err();
    cases! { none.error => Error::Unsupported { .. } }
    let mut queue = open(&core, Way::S2mm(0), &rings);
    queue.give(receives(&pool, ..));
    let _ = queue.end::<1>();
}

#[test]
fn zero_registers_are_no_stopped_channel() {
    for siblings_reset in [false, true] {
        let (board, rings, pool) = ground(Faults::NONE);
        let (device, gone) = (core(&board, DRE, StreamConfig::default()), Cell::new(false));
        let later =
            Bent::new(device.window().unwrap(), |_, value| if gone.get() { 0 } else { value })
                .writing(|_, value| (!gone.get()).then_some(value));
        // SAFETY: the model is a core.
        let core = unsafe { Mcdma::open(later, DRE) }.unwrap();
        let mut queue = open(&core, Way::S2mm(0), &rings);
        queue.give(receives(&pool, ..));
        gone.set(true);
        if siblings_reset {
            core.reset(|| Ok(())).unwrap();
        }
        cases! { queue.stop() => Err(Error::WillNotStop { status: 0, .. }) }
        gone.set(false);
        queue.clear().unwrap();
        assert_eq!(pool.taken(), 0);
    }
}

#[test]
fn what_is_no_core_is_said() {
    let (board, rings, _) = ground(Faults::NONE);
    let port = board.port();
    let shared = |answer| {
        // SAFETY: there is no device.
        unsafe { Mcdma::open(Numbers { port, len_bytes: 0x1000, answer }, DRE) }.map(drop)
    };
    for way in [Way::Mm2s(0), Way::S2mm(0)] {
        let alone = |answer| {
            let (device, own) =
                (Numbers { port, len_bytes: 0x1000, answer }, rings.take().unwrap());
            // SAFETY: there is no device.
            unsafe { McdmaChannel::open(device, way, DRE, own) }.map(drop)
        };
        let both = |answer| [shared(answer), alone(answer)];
        // In reset for ever: its clock is off.
        let stopped = Error::WillNotStop { device: "axi_mcdma", status: 5, waited_us: 1_000 };
        assert_eq!(both(|_| 5), [Err(stopped); 2]);
        for error in both(|_| u32::MAX) {
            cases! { error => Err(Error::Fault { what, .. }) if what.contains("gone") }
        }
        // No registers at all.
        for error in both(|_| 0) {
            cases! { error => Err(Error::WillNotStop { status: 0, .. }) }
        }
    }
    // One that halts for ever is found by the first job, not by the first wait: its status has bits
    // that cannot be.
    cases! { shared(|_| regs::HALTED | regs::IRQS) => Err(Error::WillNotStop { .. }) }
}

#[test]
fn parameters_that_no_core_has_are_refused() {
    let (board, rings, _) = ground(Faults::NONE);
    let device = SimDevice::<McdmaModel>::with_model(&board, board.port(), McdmaModel::default());
    let open = |config| {
        let (window, own) = (device.window().unwrap(), rings.take().unwrap());
        // SAFETY: the window is the model's.
        unsafe { McdmaChannel::open(window, Way::Mm2s(0), config, own) }.map(drop)
    };
    cases! {
        open(McdmaConfig { address_bits: 31, ..DRE }) => Err(Error::Argument { .. }),
        open(McdmaConfig { length_bits: 27, ..DRE }) => Err(Error::Argument { .. }),
        open(McdmaConfig { mm2s_data_bits: 16, ..DRE }) => Err(Error::Argument { .. }),
        open(McdmaConfig { stop_us: 0, ..DRE }) => Err(Error::Argument { .. }),
        open(McdmaConfig { mm2s_data_bits: 48, ..McdmaConfig::default() })
            => Err(Error::NotPowerOfTwo { align_bytes: 6 }),
    }
    let whole = device.window().unwrap().channel(Way::Mm2s(0), rings.take().unwrap()).unwrap();
    assert_eq!((whole.depth(), whole.stop_program().steps().len()), (16, 3));
}

#[test]
fn channels_open_by_name_side_by_side() {
    let device = std::pin::pin!("sim:axi_mcdma".parse::<DeviceName>().unwrap().open().unwrap());
    let region = region(device.board().unwrap(), 1 << 20);
    let take = || region.alloc(4096, Align::LINE).unwrap();
    let open = |settings| {
        let settings = Settings(settings);
        let parts = Parts { device: (), memory: Some(take()), settings, map: None };
        // SAFETY: the model is the core, which no other code drives.
        unsafe {
            device.as_ref().take(row("axi_mcdma")?, settings, None, Attach::default())?.open(parts)
        }
    };
    let mut receiver = Queue::new(open("channel=17,s2mm_dre=1").unwrap(), 2).unwrap();
    let mut sender = Queue::new(open("channel=1,mm2s_dre=1,length_bits=12").unwrap(), 2).unwrap();
    cases! {
        receiver.refuses([take().from_device(..1 << 14)], &[]) => Error::OutOfRange { .. },
        sender.refuses([take().to_device(..4096)], &[])
            => Error::OperandTooLong { index: 0, have_bytes: 4096, max_bytes: 4095 },
    }
    receiver.give([take().from_device(..)]);
    sender.give([take().to_device(1..778)]);
    let _ = sender.end::<1>();
    assert_eq!(receiver.end::<1>().bytes, Some(777));
    assert!(open("channel=40").is_err() && open("channel=3").is_err() && open("depth=3").is_err());
    drop((receiver, sender));
    // Without the setting it is channel 0, alone.
    let alone = Queue::new(open("").unwrap(), 2).unwrap();
    assert_eq!(open("channel=1").map(drop), Err(Error::HasDriver));
    drop(alone);
}
