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
    let ground = ground(1, Faults::NONE);
    let device = ground.device(spec);
    let mut driver = open_with(device.window().unwrap(), ground.program(), config).unwrap();
    let BaseAddr::Phys(PhysAddr(base)) = ground.region.base() else { panic!("it is physical") };
    let code = code(u32::try_from(base).unwrap());
    let before_us = ground.board.now_ns() / 1_000;
    // SAFETY: these programs stay inside the slots of `data`, of which none is taken, or outside
    // all memory.
    unsafe { driver.run_program(&code).unwrap() };
    let outcome = driver.poll(Duration::from_millis(200));
    let took_us = ground.board.now_ns() / 1_000 - before_us;
    if outcome.is_err() {
        assert!(took_us < 2_500, "a fault is found soon, not when the time is over: {took_us} us");
        // SAFETY: as above.
        let again = unsafe { driver.run_program(&code) };
        assert_eq!(again, Err(Error::Busy), "a channel that faults is not stopped");
    }
    driver.stop().unwrap();
    ground.works(&mut Queue::new(driver, 1).unwrap());
    outcome
}

#[test]
fn every_program_fault_is_decoded() {
    let (zynq, first) = (Pl330Spec::default(), Pl330Config::default());
    let nonsecure = Pl330Spec { nonsecure: true, nonsecure_events: 1, ..zynq };
    // 16 beats of 4 bytes, where the buffer has 8 words.
    let small = Pl330Spec { bus_bytes: 4, buffer_words: 8, ..zynq };
    type Code = fn(u32) -> Vec<u8>;
    let faults: [(Pl330Spec, u32, &str, &[Code]); 10] = [
        (
            zynq,
            1,
            "an undefined instruction in its program",
            &[
                |_| vec![0xFF],
                |_| vec![0x01],
                |_| vec![0x54],
                |_| vec![0x0C],
                |_| vec![0x25],
                |_| vec![0xA0],
                |_| vec![0xA5],
            ],
        ),
        (
            zynq,
            1 << 1,
            "an operand in its program that this controller does not have",
            &[
                |_| vec![0x34, 16 << 3],
                |_| vec![0x34, 1],
                |_| vec![0x36, 31 << 3],
                |_| mov(3, 0),
                |_| mov(1, BYTE | 1 << 28),
            ],
        ),
        (
            nonsecure,
            1 << 5,
            "that its channel is Non-secure and the event Secure",
            &[|_| vec![0x34, 1 << 3], |_| vec![0x36, 1 << 3]],
        ),
        (
            nonsecure,
            1 << 7,
            "that its channel is Non-secure and its program asks for Secure accesses",
            &[|_| mov(1, BYTE), |_| mov(1, BYTE | 1 << 9), |_| mov(1, BYTE | 1 << 23)],
        ),
        // No memory is at address 0.
        (zynq, 1 << 18, "a bus error while reading", &[|base| one_byte(0, base, BYTE)]),
        (zynq, 1 << 17, "a bus error while writing", &[|base| one_byte(base, 0, BYTE)]),
        // A jump to before the beginning of memory: the program buffer is the first thing in it.
        (zynq, 1 << 16, "a bus error while fetching its program", &[|_| vec![0x28, 255]]),
        (
            zynq,
            1 << 13,
            "a store for which nothing was loaded",
            &[|base| [mov(2, base), mov(1, BYTE), vec![STORE]].concat()],
        ),
        (
            small,
            1 << 12,
            "a burst that is larger than its data buffer",
            &[|base| [mov(0, base), mov(1, BYTE | 2 << 1 | 15 << 4), vec![LOAD]].concat()],
        ),
        (
            small,
            1 << 31,
            "that its channel locked up: its data buffer is full, or never empty",
            &[|base| [mov(0, base), mov(1, BYTE | 2 << 1 | 4 << 4), vec![LOAD, LOAD]].concat()],
        ),
    ];
    for (spec, status, what, codes) in faults {
        for (index, code) in codes.iter().enumerate() {
            let fault = Err(Error::Fault { device: "pl330", status, what });
            assert_eq!(outcome(spec, first, code), fault, "program {index}");
        }
    }

    let done = Ok(Some(Completion::of(0)));
    let ends: [(Pl330Spec, Code, _, &str); 7] = [
        (zynq, |_| WAIT_FOR_EVER.to_vec(), Ok(None), "it waits"),
        (zynq, |_| vec![END], Ok(None), "an end without the event"),
        (zynq, |_| vec![0x34, 1 << 3, END], Ok(None), "another event"),
        (zynq, |_| [[0x34, 0], WAIT_FOR_EVER].concat(), Ok(None), "the event before the end"),
        (zynq, |_| vec![0x34, 0, END], done, "the event, and the end"),
        (zynq, |base| one_byte(base, base, BYTE), done, "a copy"),
        (nonsecure, |base| one_byte(base, base, BYTE | 1 << 9 | 1 << 23), done, "Non-secure"),
    ];
    for (spec, code, ended, what) in ends {
        assert_eq!(outcome(spec, first, code), ended, "{what}");
    }
}

#[test]
fn a_manager_that_faults_is_decoded_and_killed() {
    let ground = ground(1, Faults::NONE);
    // The manager is Non-secure, and DSR lies about it while the driver is opened: DMAGO asks for a
    // Secure channel.
    let spec = Pl330Spec { nonsecure: true, nonsecure_events: u32::MAX, ..Pl330Spec::default() };
    let device = ground.device(spec);
    let lies = |offset, value: u32| if offset == 0 { value & !regs::DSR_NONSECURE } else { value };
    let mut queue = ground.queue(Bent::new(device.window().unwrap(), lies));
    let what = "that its manager is Non-secure and may not start a Secure channel";
    for _ in 0..2 {
        let failed = queue.run(copies(&ground.data, ..9, ..9), &[], WAIT).unwrap_err().error;
        assert_eq!(failed, Error::Fault { device: "pl330", status: 1 << 30 | 1 << 4, what });
        // The manager was killed, so it faults no more.
        assert_eq!((ground.data.taken(), queue.is_empty()), (0, true));
    }
    drop(queue);
    ground.works(&mut ground.queue(device.window().unwrap()));
}

#[test]
fn program_too_long_or_too_early_is_refused() {
    let ground = ground(1, Faults::NONE);
    let device = ground.device(Pl330Spec::default());
    let mut driver = open(device.window().unwrap(), ground.program()).unwrap();
    // SAFETY: none of them touches memory.
    let run = |driver: &mut Pl330<_>, code: &[u8]| unsafe { driver.run_program(code) };
    let (end, len_bytes) = (PROGRAM_BYTES + 4, PROGRAM_BYTES);
    let too_long = Err(Error::OutOfRange { start: 0, end, len_bytes });
    assert_eq!(run(&mut driver, &[0x18; PROGRAM_BYTES + 1]), too_long);
    // The longest, in pieces of which the last is odd.
    let mut code = vec![0x18; PROGRAM_BYTES - 1];
    code[PROGRAM_BYTES - 4..].copy_from_slice(&[0x34, 0, END]);
    run(&mut driver, &code).unwrap();
    let early = run(&mut driver, &WAIT_FOR_EVER);
    assert_eq!(early, Err(Error::Busy), "the channel is stopped still, and about to fetch");
    assert_eq!(driver.poll(WAIT), Ok(Some(Completion::of(0))));
    assert_eq!(driver.poll(WAIT), Ok(None), "its event was taken back");
    run(&mut driver, &WAIT_FOR_EVER).unwrap();
    assert_eq!(driver.poll(Duration::from_micros(50)), Ok(None));
    assert_eq!(run(&mut driver, &code), Err(Error::Busy));
    driver.stop().unwrap();
    run(&mut driver, &code).unwrap();
    assert_eq!(driver.poll(WAIT), Ok(Some(Completion::of(0))));
}
