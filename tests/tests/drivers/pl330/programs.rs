//! Programs that fault, decoded, and what comes after them.

use super::*;

fn mov(register: u8, value: u32) -> Vec<u8> {
    [vec![0xBC, register], value.to_le_bytes().to_vec()].concat()
}

/// A copy of one byte, with CCR as given.
fn one_byte(from: u32, to: u32, ccr: u32) -> Vec<u8> {
    [mov(0, from), mov(2, to), mov(1, ccr), vec![LOAD, STORE, 0x13, 0x34, 0, END]].concat()
}

/// The result of `code` on a controller as `spec` says. Then the driver stops it, and copies as if
/// nothing had been.
fn outcome(
    spec: Pl330Spec,
    config: Pl330Config,
    code: impl Fn(u32) -> Vec<u8>,
) -> Result<Option<Completion>> {
    let board = SimBoard::new(1);
    let memory = Memory::on(&board);
    let (programs, data) = (memory.programs(), memory.data());
    let device = SimDevice::with_model(&board, board.port(), Pl330Model::new(spec));
    let mut driver = open_with(device.window().unwrap(), programs.take().unwrap(), config).unwrap();
    let code = code(memory.base());
    let before_us = board.now_ns() / 1_000;
    // SAFETY: these programs stay inside the slots of `data`, of which none is taken, or outside
    // all memory.
    unsafe { driver.run_program(&code).unwrap() };
    let outcome = driver.poll(Duration::from_millis(200));
    let took_us = board.now_ns() / 1_000 - before_us;
    if outcome.is_err() {
        assert!(took_us < 2_500, "a fault is found soon, not when the time is over: {took_us} us");
        assert_eq!(
            // SAFETY: as above.
            unsafe { driver.run_program(&code) },
            Err(Error::Busy),
            "a channel that faults is not stopped"
        );
    }
    driver.stop().unwrap();
    works(&mut Queue::new(driver, 1).unwrap(), &data);
    outcome
}

#[test]
fn every_program_fault_is_decoded() {
    let (zynq, first) = (Pl330Spec::default(), Pl330Config::default());
    let nonsecure = Pl330Spec { nonsecure: true, nonsecure_events: 1, ..zynq };
    let fault = |status, what| Err(Error::Fault { device: "pl330", status, what });
    let undefined = "an undefined instruction in its program";
    for code in [0xFF_u8, 0x01, 0x54, 0x0C, 0x25, 0xA0, 0xA5] {
        assert_eq!(outcome(zynq, first, |_| vec![code]), fault(1, undefined), "{code:#x}");
    }
    let operand = "an operand in its program that this controller does not have";
    for code in
        [vec![0x34, 16 << 3], vec![0x34, 1], vec![0x36, 31 << 3], mov(3, 0), mov(1, BYTE | 1 << 28)]
    {
        assert_eq!(outcome(zynq, first, |_| code.clone()), fault(2, operand), "{code:x?}");
    }
    let event = "that its channel is Non-secure and the event Secure";
    assert_eq!(outcome(nonsecure, first, |_| vec![0x34, 1 << 3]), fault(1 << 5, event));
    assert_eq!(outcome(nonsecure, first, |_| vec![0x36, 1 << 3]), fault(1 << 5, event));
    let ccr = "that its channel is Non-secure and its program asks for Secure accesses";
    for half in [BYTE, BYTE | 1 << 9, BYTE | 1 << 23] {
        assert_eq!(outcome(nonsecure, first, |_| mov(1, half)), fault(1 << 7, ccr));
    }
    assert_eq!(
        outcome(nonsecure, first, |base| one_byte(base, base, BYTE | 1 << 9 | 1 << 23)),
        Ok(Some(Completion::of(0)))
    );

    // No memory is at address 0.
    let reading = "a bus error while reading";
    assert_eq!(outcome(zynq, first, |base| one_byte(0, base, BYTE)), fault(1 << 18, reading));
    let writing = "a bus error while writing";
    assert_eq!(outcome(zynq, first, |base| one_byte(base, 0, BYTE)), fault(1 << 17, writing));
    // A jump to before the beginning of memory: the program buffer is the first thing in it.
    let fetching = "a bus error while fetching its program";
    assert_eq!(outcome(zynq, first, |_| vec![0x28, 255]), fault(1 << 16, fetching));

    let no_data = "a store for which nothing was loaded";
    assert_eq!(
        outcome(zynq, first, |base| [mov(2, base), mov(1, BYTE), vec![STORE]].concat()),
        fault(1 << 13, no_data)
    );
    // 16 beats of 4 bytes, where the buffer has 8 words.
    let small = Pl330Spec { bus_bytes: 4, buffer_words: 8, ..zynq };
    let wide = |base| [mov(0, base), mov(1, BYTE | 2 << 1 | 15 << 4), vec![LOAD]].concat();
    assert_eq!(
        outcome(small, first, wide),
        fault(1 << 12, "a burst that is larger than its data buffer")
    );
    let full = |base| [mov(0, base), mov(1, BYTE | 2 << 1 | 4 << 4), vec![LOAD, LOAD]].concat();
    let locked_up = "that its channel locked up: its data buffer is full, or never empty";
    assert_eq!(outcome(small, first, full), fault(1 << 31, locked_up));

    assert_eq!(outcome(zynq, first, |_| WAIT_FOR_EVER.to_vec()), Ok(None));
    assert_eq!(outcome(zynq, first, |_| vec![END]), Ok(None), "an end without the event");
    assert_eq!(outcome(zynq, first, |_| vec![0x34, 1 << 3, END]), Ok(None), "another event");
    let raised_and_waits = [[0x34, 0], WAIT_FOR_EVER].concat();
    assert_eq!(
        outcome(zynq, first, |_| raised_and_waits.clone()),
        Ok(None),
        "the event before the end"
    );
    assert_eq!(outcome(zynq, first, |_| vec![0x34, 0, END]), Ok(Some(Completion::of(0))));
    assert_eq!(
        outcome(zynq, first, |base| one_byte(base, base, BYTE)),
        Ok(Some(Completion::of(0)))
    );
}

#[test]
fn a_manager_that_faults_is_decoded_and_killed() {
    let board = SimBoard::new(1);
    let memory = Memory::on(&board);
    let (programs, data) = (memory.programs(), memory.data());
    // The manager is Non-secure, and DSR lies about it while the driver is opened: DMAGO asks for a
    // Secure channel.
    let spec = Pl330Spec { nonsecure: true, nonsecure_events: u32::MAX, ..Pl330Spec::default() };
    let device = SimDevice::with_model(&board, board.port(), Pl330Model::new(spec));
    let lies = |offset, value: u32| if offset == 0 { value & !regs::DSR_NONSECURE } else { value };
    let bent = Bent::new(device.window().unwrap(), lies);
    let mut queue = Queue::new(open(bent, programs.take().unwrap()).unwrap(), 1).unwrap();
    for _ in 0..2 {
        let failed = queue
            .run(
                [data.take().unwrap().to_device(..9), data.take().unwrap().from_device(..9)],
                &[],
                WAIT,
            )
            .unwrap_err();
        let what = "that its manager is Non-secure and may not start a Secure channel";
        assert_eq!(failed.error, Error::Fault { device: "pl330", status: 1 << 30 | 1 << 4, what });
        drop(failed);
        assert_eq!(
            (data.taken(), !queue.is_empty()),
            (0, false),
            "the manager was killed, so it faults no more"
        );
    }
    drop(queue);
    works(
        &mut Queue::new(device.window().unwrap().driver(programs.take().unwrap()).unwrap(), 1)
            .unwrap(),
        &data,
    );
}

#[test]
fn program_too_long_or_too_early_is_refused() {
    let board = SimBoard::new(1);
    let memory = Memory::on(&board);
    let programs = memory.programs();
    let device = SimDevice::<Pl330Model>::new(&board, board.port());
    let mut driver = device.window().unwrap().driver(programs.take().unwrap()).unwrap();
    // SAFETY: it touches no memory, and is refused.
    let too_long = unsafe { driver.run_program(&[0x18; PROGRAM_BYTES + 1]) };
    let end = PROGRAM_BYTES + 4;
    assert_eq!(too_long, Err(Error::OutOfRange { start: 0, end, len_bytes: PROGRAM_BYTES }));
    // The longest, in pieces of which the last is odd.
    let mut code = vec![0x18; PROGRAM_BYTES - 1];
    code[PROGRAM_BYTES - 4..].copy_from_slice(&[0x34, 0, END]);
    // SAFETY: it touches no memory.
    unsafe { driver.run_program(&code).unwrap() };
    assert_eq!(
        // SAFETY: as above.
        unsafe { driver.run_program(&WAIT_FOR_EVER) },
        Err(Error::Busy),
        "the channel is stopped still, and about to fetch"
    );
    assert_eq!(driver.poll(WAIT), Ok(Some(Completion::of(0))));
    assert_eq!(driver.poll(WAIT), Ok(None), "its event was taken back");
    // SAFETY: as above.
    unsafe { driver.run_program(&WAIT_FOR_EVER).unwrap() };
    assert_eq!(driver.poll(Duration::from_micros(50)), Ok(None));
    // SAFETY: as above.
    assert_eq!(unsafe { driver.run_program(&code) }, Err(Error::Busy));
    driver.stop().unwrap();
    // SAFETY: as above.
    unsafe { driver.run_program(&code).unwrap() };
    assert_eq!(driver.poll(WAIT), Ok(Some(Completion::of(0))));
}
