//! Windows that belong to no controller, and copies that cannot be.

use super::*;

/// The error of opening a device whose registers are bent.
fn refusal(spec: Pl330Spec, (channel, event): (u8, u8), bend: fn(usize, u32) -> u32) -> Error {
    let ground = ground(1, Faults::NONE);
    let bent = Bent::new(ground.device(spec).window().unwrap(), bend);
    let refused = open_with(bent, ground.program(), Pl330Config { channel, event }).unwrap_err();
    let (error, mut returned) = refused.into_parts();
    returned.view_mut::<u8>().unwrap().fill(1); // the CPU's, as it was
    drop(returned);
    ground.is_clean();
    error
}

#[test]
fn incapable_controller_is_refused() {
    let zynq = Pl330Spec::default();
    let wrong = |register, expected, found| Error::WrongDevice {
        device: "pl330",
        register,
        expected,
        found,
    };
    let argument = |name, value, max| Error::Argument { name, value, min: 0, max, multiple_of: 1 };
    let four = Pl330Spec { channels: 4, events: 3, ..zynq };
    let nonsecure = Pl330Spec { nonsecure: true, nonsecure_events: !1, ..zynq };
    let no_width = |at, value| if at == regs::CRD.offset() { value & !7 } else { value };
    for (spec, config, bend, error) in [
        (zynq, (0, 0), (|_, _| u32::MAX) as fn(_, _) -> _, wrong("periph_id", 0xFFF4_1330, !0)),
        (zynq, (0, 0), |_, _| 0, wrong("periph_id", 0x0004_1330, 0)),
        (
            zynq,
            (0, 0),
            |at, value| if at == 0xFE0 { 0x31 } else { value },
            wrong("periph_id", 0x0024_1330, 0x0024_1331),
        ),
        (
            zynq,
            (0, 0),
            |at, value| if at == 0xFF4 { 0xE0 } else { value },
            wrong("pcell_id", 0xB105_F00D, 0xB105_E00D),
        ),
        (
            zynq,
            (0, 0),
            no_width,
            Error::Unexpected { name: "pl330's CRD register", value: 127 << 20 },
        ),
        (four, (4, 0), |_, value| value, argument("channel", 4, 3)),
        (four, (3, 3), |_, value| value, argument("event", 3, 2)),
        (four, (255, 255), |_, value| value, argument("channel", 255, 3)),
        (
            nonsecure,
            (0, 0),
            |_, value| value,
            Error::Setting {
                name: "pl330's CR3 register",
                value: 0xFFFF_FFFE,
                fix: "take an event whose bit is set, or make the manager Secure",
            },
        ),
    ] {
        assert_eq!(refusal(spec, config, bend), error);
    }
}

#[test]
fn windows_and_programs_memory_that_do_not_suit() {
    let (ground, elsewhere) = (ground(1, Faults::NONE), ground(2, Faults::NONE));
    let device = ground.device(Pl330Spec::default());
    let open = |len_bytes, program: CpuBuf| {
        let bent = Bent { len_bytes, ..Bent::new(device.window().unwrap(), |_, value| value) };
        open(bent, program).map(drop).map_err(|refused| refused.error)
    };
    let carve = |len_bytes| ground.region.alloc(len_bytes, Align::LINE).unwrap();
    let (_, half) = carve(PROGRAM_BYTES + 32).split_at(32).unwrap();
    const SHORT: usize = PROGRAM_BYTES - 64;
    cases! {
        open(0xFFF, ground.program()) => Err(Error::RegisterWindow {
            device: "pl330", need_bytes: 0x1000, have_bytes: 0xFFF,
        }),
        open(0x1000, carve(SHORT)) => Err(Error::BlockSize {
            len_bytes: SHORT, need_bytes: PROGRAM_BYTES, line_bytes: 64,
        }),
        open(0x1000, half) => Err(Error::Misaligned { align_bytes: 64, .. }),
        open(0x1000, elsewhere.program()) => Err(Error::WrongBus { port: "sim-hp0", memory })
            if memory == elsewhere.board.bus(),
        open(0x1000, ground.program()) => Ok(()),
    }
}

#[test]
fn impossible_copies_are_refused_untouched() {
    const MOST: usize = 2 << 20;
    let board = SimBoard::new(1);
    let region = region(&board, 8 << 20);
    let programs = region.pool(1, PROGRAM_BYTES).unwrap();
    let data = region.pool(2, MOST + 4096).unwrap();
    let device = SimDevice::<Pl330Model>::new(&board, board.port());
    let driver = device.window().unwrap().driver(programs.take().unwrap()).unwrap();

    // The numbers that only a direct call can bring, past the queue's own checks.
    let slice = |addr, len_bytes| DevSlice { addr: DevAddr(addr), offset_bytes: 0, len_bytes };
    let last = u64::from(u32::MAX);
    let unreachable =
        Error::Unreachable { port: "sim-hp0", addr: 1 << 32, len_bytes: 8, first: 0, last };
    assert_eq!(driver.check(&[slice(1 << 32, 8), slice(0, 8)], &[]), Err(unreachable));
    assert_eq!(driver.check(&[slice(0, 8), slice(1 << 32, 8)], &[]), Err(unreachable));

    let mut queue = Queue::new(driver, 1).unwrap();
    let before = board.counts();
    cases! {
        queue.refuses(copies(&data, ..101, ..100), &[])
            => Error::BufferSize { index: 1, need_bytes: 101, have_bytes: 100 },
        queue.refuses(copies(&data, ..0, ..100), &[])
            => Error::BufferSize { index: 0, need_bytes: 1, have_bytes: 0 },
        // At addresses that differ by an odd number, 2 MiB are the most.
        queue.refuses(copies(&data, 1..MOST + 2, ..=MOST), &[])
            => Error::Argument { name: "bytes to copy", value: 0x20_0001, max: 0x20_0000, .. },
    }
    assert_eq!((queue.counts().pushed, board.counts()), (0, before));
    // The most, and more at addresses that agree in more bits.
    for (at, len) in [(1, MOST), (0, MOST + 999)] {
        let operands =
            [filled(&data, 3).to_device(at..at + len), filled(&data, 0).from_device(..len)];
        let [_, to] = queue.run(operands, &[], Duration::from_millis(500)).unwrap().buffers;
        assert!(to.view_at::<u8>(..len).unwrap().iter().all(|&byte| byte == 3), "{len}");
    }
}
