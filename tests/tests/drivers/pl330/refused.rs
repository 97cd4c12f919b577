//! Windows that belong to no controller, and copies that cannot be.

use super::*;

/// The error of opening a device whose registers are bent.
fn refusal(spec: Pl330Spec, config: Pl330Config, bend: impl Fn(usize, u32) -> u32) -> Error {
    let board = SimBoard::new(1);
    let memory = Memory::on(&board);
    let programs = memory.programs();
    let device = SimDevice::with_model(&board, board.port(), Pl330Model::new(spec));
    let (error, mut returned) =
        open_with(Bent::new(device.window().unwrap(), bend), programs.take().unwrap(), config)
            .unwrap_err()
            .into_parts();
    returned.view_mut::<u8>().unwrap().fill(1); // the CPU's, as it was
    drop(returned);
    assert_eq!(programs.taken(), 0);
    error
}

#[test]
fn what_is_no_controller_or_not_enough_of_one_is_refused() {
    let (zynq, first) = (Pl330Spec::default(), Pl330Config::default());
    let wrong = |register, expected, found| Error::WrongDevice {
        device: "pl330",
        register,
        expected,
        found,
    };
    assert_eq!(refusal(zynq, first, |_, _| u32::MAX), wrong("periph_id", 0xFFF4_1330, 0xFFFF_FFFF));
    assert_eq!(refusal(zynq, first, |_, _| 0), wrong("periph_id", 0x0004_1330, 0));
    let other_part = |offset, value| if offset == 0xFE0 { 0x31 } else { value };
    assert_eq!(refusal(zynq, first, other_part), wrong("periph_id", 0x0024_1330, 0x0024_1331));
    let other_cell = |offset, value| if offset == 0xFF4 { 0xE0 } else { value };
    assert_eq!(refusal(zynq, first, other_cell), wrong("pcell_id", 0xB105_F00D, 0xB105_E00D));
    let no_width =
        |offset, value: u32| if offset == regs::CRD.offset() { value & !7 } else { value };
    assert_eq!(
        refusal(zynq, first, no_width),
        Error::Unexpected { name: "pl330's CRD register", value: 127 << 20 }
    );

    let as_it_is = |_, value| value;
    let argument = |name, value, max| Error::Argument { name, value, min: 0, max, multiple_of: 1 };
    let four = Pl330Spec { channels: 4, events: 3, ..zynq };
    assert_eq!(
        refusal(four, Pl330Config { channel: 4, event: 0 }, as_it_is),
        argument("channel", 4, 3)
    );
    assert_eq!(
        refusal(four, Pl330Config { channel: 3, event: 3 }, as_it_is),
        argument("event", 3, 2)
    );
    assert_eq!(
        refusal(four, Pl330Config { channel: 255, event: 255 }, as_it_is),
        argument("channel", 255, 3)
    );
    let nonsecure = Pl330Spec { nonsecure: true, nonsecure_events: !1, ..zynq };
    let fix = "take an event whose bit is set, or make the manager Secure";
    assert_eq!(
        refusal(nonsecure, first, as_it_is),
        Error::Setting { name: "pl330's CR3 register", value: 0xFFFF_FFFE, fix }
    );

    let board = SimBoard::new(1);
    let memory = Memory::on(&board);
    let device = SimDevice::<Pl330Model>::new(&board, board.port());
    let open = |len_bytes, program: CpuBuf| {
        let bent = Bent { len_bytes, ..Bent::new(device.window().unwrap(), |_, value| value) };
        open(bent, program).map(drop).map_err(|refused| refused.error)
    };
    let carve = |len_bytes| memory.region.alloc(len_bytes, Align::LINE).unwrap();
    let need_bytes = 0x1000;
    assert_eq!(
        open(0xFFF, carve(PROGRAM_BYTES)),
        Err(Error::RegisterWindow { device: "pl330", need_bytes, have_bytes: 0xFFF })
    );
    let (len_bytes, need_bytes) = (PROGRAM_BYTES - 64, PROGRAM_BYTES);
    assert_eq!(
        open(0x1000, carve(len_bytes)),
        Err(Error::BlockSize { len_bytes, need_bytes, line_bytes: 64 })
    );
    let (_, half) = carve(PROGRAM_BYTES + 32).split_at(32).unwrap();
    assert!(matches!(open(0x1000, half), Err(Error::Misaligned { align_bytes: 64, .. })));
    let elsewhere = SimBoard::new(2);
    let foreign = Memory::on(&elsewhere);
    let foreign = foreign.region.alloc(PROGRAM_BYTES, Align::LINE).unwrap();
    assert_eq!(
        open(0x1000, foreign),
        Err(Error::WrongBus { port: "sim-hp0", memory: elsewhere.bus() })
    );
    assert_eq!(open(0x1000, carve(PROGRAM_BYTES)), Ok(()));
}

#[test]
fn impossible_copies_are_refused_untouched() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(8 << 20).unwrap()).unwrap();
    let carve = |len_bytes| region.alloc(len_bytes, Align::PAGE).unwrap();
    let device = SimDevice::<Pl330Model>::new(&board, board.port());
    let mut queue =
        Queue::new(device.window().unwrap().driver(carve(PROGRAM_BYTES)).unwrap(), 1).unwrap();
    let most = 2 << 20;
    let (mut from, to) = (carve(most + 4096), carve(most + 4096));
    from.view_mut::<u8>().unwrap().fill(3);
    let refused = |refused: JobError<_>| {
        let [from, to]: [contigo::Operand; 2] = refused.buffers.unwrap();
        (refused.error, from.into_buf().unwrap(), to.into_buf().unwrap())
    };
    let (error, from, to) =
        refused(queue.submit([from.to_device(..101), to.from_device(..100)], &[]).unwrap_err());
    assert_eq!(error, Error::BufferSize { index: 1, need_bytes: 101, have_bytes: 100 });
    let (error, from, to) =
        refused(queue.submit([from.to_device(..0), to.from_device(..100)], &[]).unwrap_err());
    assert_eq!(error, Error::BufferSize { index: 0, need_bytes: 1, have_bytes: 0 });
    // At addresses that differ by an odd number, 2 MiB are the most.
    let job = queue.submit([from.to_device(1..1 + most + 1), to.from_device(..most + 1)], &[]);
    let (error, from, to) = refused(job.unwrap_err());
    let (value, max) = (most as u64 + 1, most as u64);
    assert_eq!(
        error,
        Error::Argument { name: "bytes to copy", value, min: 1, max, multiple_of: 1 }
    );
    assert_eq!(queue.counts().pushed, 0);
    assert_eq!(to.view_at::<u8>(..64).unwrap(), [0; 64]);
    // The most, and more at addresses that agree in more bits.
    let [from, to] = queue
        .run([from.to_device(1..=most), to.from_device(..most)], &[], Duration::from_millis(500))
        .unwrap()
        .buffers;
    assert!(to.view_at::<u8>(..most).unwrap().iter().all(|&byte| byte == 3));
    let [_, to] = queue
        .run(
            [from.to_device(..most + 999), to.from_device(..most + 999)],
            &[],
            Duration::from_millis(500),
        )
        .unwrap()
        .buffers;
    assert!(to.view_at::<u8>(..most + 999).unwrap().iter().all(|&byte| byte == 3));

    // The numbers that only a direct call can bring, past the queue's own checks.
    let accelerator = open(
        SimDevice::<Pl330Model>::new(&board, board.port()).window().unwrap(),
        carve(PROGRAM_BYTES),
    )
    .map(drop);
    assert!(accelerator.is_ok());
    let other = SimDevice::<Pl330Model>::new(&board, board.port());
    let driver = other.window().unwrap().driver(carve(PROGRAM_BYTES)).unwrap();
    let slice = |addr, len_bytes| DevSlice { addr: DevAddr(addr), offset_bytes: 0, len_bytes };
    let last = u64::from(u32::MAX);
    let unreachable =
        Error::Unreachable { port: "sim-hp0", addr: 1 << 32, len_bytes: 8, first: 0, last };
    assert_eq!(driver.check(&[slice(1 << 32, 8), slice(0, 8)], &[]), Err(unreachable));
    assert_eq!(driver.check(&[slice(0, 8), slice(1 << 32, 8)], &[]), Err(unreachable));
}
