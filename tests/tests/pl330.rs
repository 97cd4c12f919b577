//! The driver of Arm's DMA-330 on the simulated board: copies at any address and length, every error provoked, and what is
//! left after each. The model fetches its programs through the bus, so that one which was not synchronised is not the one that runs.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose; programs and windows are promises"
)]

#[path = "pl330/channels.rs"]
mod channels;
#[path = "pl330/named.rs"]
mod named;

use contigo::{
    Align, Attempt, BaseAddr, Completion, CpuBuf, DevAddr, DevSlice, Device, Done, Driver, Engine, Error, Irq, JobError, Mmio, PhysAddr,
    Pool, Refused, Region, Result, Timeout,
    drivers::pl330::{PROGRAM_BYTES, Pl330, Pl330Config, Pl330Spec, SimPl330, regs},
    forward,
    sim::{Faults, Sim, SimBoard, SimConfig, SimCounts},
};
use contigo_testkit::emulated;
use fastrand::Rng;
use std::{cell::Cell, mem::forget};

const WAIT: Timeout = Timeout::ms(50);
const SLOT: usize = 8192;

/// The driver of a model, whatever a test bends in what its window says.
fn open<'p, D: Device>(device: D, program: CpuBuf<'p>) -> Result<Pl330<'p, D>, Refused<CpuBuf<'p>>> {
    open_with(device, program, Pl330Config::default())
}

/// The same, by a channel and an event.
fn open_with<'p, D: Device>(device: D, program: CpuBuf<'p>, config: Pl330Config) -> Result<Pl330<'p, D>, Refused<CpuBuf<'p>>> {
    // SAFETY: every window of this file is, or wraps, the one of a simulated PL330.
    unsafe { Pl330::open_with(device, program, config) }
}

/// Memory for programs and for data, on one board.
struct Memory<'b> {
    region: Region<Sim<'b>>,
}

impl<'b> Memory<'b> {
    fn on(board: &'b SimBoard) -> Self {
        Self { region: Region::new(board.memory(1 << 20).unwrap()).unwrap() }
    }

    fn programs(&self) -> Pool<'_, 2> {
        Pool::new(self.region.carve(2 * PROGRAM_BYTES, Align::LINE).unwrap(), PROGRAM_BYTES).unwrap()
    }

    fn data(&self) -> Pool<'_, 4> {
        Pool::new(self.region.carve(4 * SLOT, Align::LINE).unwrap(), SLOT).unwrap()
    }

    fn base(&self) -> u32 {
        let BaseAddr::Phys(PhysAddr(base)) = self.region.base() else { panic!("the board's memory has physical addresses") };
        u32::try_from(base).unwrap()
    }
}

/// Random bytes, into a buffer and beside it.
fn scribble(rng: &mut Rng, buf: &mut CpuBuf<'_>) -> Vec<u8> {
    let mut bytes = vec![0; buf.len_bytes()];
    rng.fill(&mut bytes);
    buf.view_mut::<u8>().unwrap().copy_from_slice(&bytes);
    bytes
}

/// A random copy: where from, where to, how much. Short ones are as frequent as long ones, and equal offsets as different ones.
fn copy(rng: &mut Rng, longest: usize) -> (usize, usize, usize) {
    let len = match rng.u8(..3) {
        0 => rng.usize(1..=32),
        1 => rng.usize(1..=300),
        _ => rng.usize(1..=longest),
    };
    let from = rng.usize(..=SLOT - len);
    let to = rng.usize(..=SLOT - len);
    let to = if rng.bool() { (to & !127 | from & 127).min(SLOT - len) } else { to };
    (from, to, len)
}

/// `count` random copies; every byte of the destination's slot is compared after each.
fn copies<D: Device>(engine: &mut Engine<Pl330<'_, D>, 2>, data: &Pool<'_, 4>, rng: &mut Rng, count: usize, longest: usize) {
    let (mut source, mut target) = (data.take().unwrap(), data.take().unwrap());
    for job in 0..count {
        let bytes = scribble(rng, &mut source);
        let mut expected = scribble(rng, &mut target);
        let (from, to, len) = copy(rng, longest);
        let running = engine.start([source.to_device(from..from + len), target.from_device(to..to + len)], &()).unwrap();
        [source, target] = running.wait(WAIT).unwrap().buffers;
        expected[to..to + len].copy_from_slice(&bytes[from..from + len]);
        assert!(target.view::<u8>().unwrap() == expected, "job {job}: {len} bytes from {from} to {to}");
        assert!(source.view::<u8>().unwrap() == bytes, "job {job}: the source changed");
    }
}

#[test]
fn ten_thousand_copies_at_any_address_and_length() {
    for (seed, port) in [SimBoard::port, SimBoard::coherent_port].into_iter().enumerate() {
        let board = SimBoard::new(seed as u64);
        let memory = Memory::on(&board);
        let (programs, data) = (memory.programs(), memory.data());
        let device = SimPl330::new(&board, port(&board));
        let mut engine = Engine::new(Pl330::open_simulated(device.window().unwrap(), programs.take().unwrap()).unwrap()).unwrap();
        let jobs = emulated::fewer(5_000);
        copies(&mut engine, &data, &mut Rng::with_seed(seed as u64), usize::try_from(jobs).unwrap(), 1000);
        assert_eq!((engine.jobs().completed, engine.jobs().stopped), (jobs, 0));
        drop(engine);
        assert_eq!((programs.taken(), data.taken()), (0, 0), "everything is given back");
        let SimCounts { stray_accesses, unowned_accesses, evictions, .. } = board.counts();
        assert_eq!((stray_accesses, unowned_accesses, evictions), (0, 0, 0));
    }
}

#[test]
fn every_kind_of_controller_copies() {
    let zynq = Pl330Spec::default();
    let nonsecure = Pl330Spec { nonsecure: true, nonsecure_events: 1 << 5, ..zynq };
    let specs = [
        (Pl330Spec { bus_bytes: 4, buffer_words: 1, ..zynq }, Pl330Config::default()),
        (Pl330Spec { bus_bytes: 4, buffer_words: 31, revision: 0, ..zynq }, Pl330Config { channel: 7, event: 15 }),
        (Pl330Spec { bus_bytes: 16, buffer_words: 1024, ..zynq }, Pl330Config { channel: 1, event: 2 }),
        (Pl330Spec { channels: 1, events: 1, revision: 0, ..zynq }, Pl330Config::default()),
        (Pl330Spec { events: 32, ..zynq }, Pl330Config { channel: 0, event: 31 }),
        (nonsecure, Pl330Config { channel: 3, event: 5 }),
        (Pl330Spec { nonsecure_events: u32::MAX, ..nonsecure }, Pl330Config::default()),
    ];
    for (seed, (spec, config)) in specs.into_iter().enumerate() {
        let board = SimBoard::new(seed as u64);
        let memory = Memory::on(&board);
        let (programs, data) = (memory.programs(), memory.data());
        let device = SimPl330::with_spec(&board, board.port(), spec);
        let driver = open_with(device.window().unwrap(), programs.take().unwrap(), config).unwrap();
        assert_eq!(driver.config(), config);
        copies(&mut Engine::new(driver).unwrap(), &data, &mut Rng::with_seed(9), 200, 3000);
        assert_eq!((board.counts().stray_accesses, board.counts().unowned_accesses), (0, 0), "{spec:?}");
    }
}

#[test]
fn the_same_seed_takes_the_same_time() {
    let run = |seed| {
        let board = SimBoard::with(SimConfig { seed, faults: Faults { late_irq: 300, lost_irq: 300, ..Faults::NONE } });
        let memory = Memory::on(&board);
        let (programs, data) = (memory.programs(), memory.data());
        let device = SimPl330::new(&board, board.port());
        let mut engine = Engine::new(Pl330::open_simulated(device.window().unwrap(), programs.take().unwrap()).unwrap()).unwrap();
        copies(&mut engine, &data, &mut Rng::with_seed(1), 50, 500);
        board.now_ns()
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

/// One copy of 100 bytes, as a check that all is well; the buffers come from the pool and go back to it.
fn works<D: Device>(engine: &mut Engine<Pl330<'_, D>, 2>, data: &Pool<'_, 4>) {
    let (mut from, to) = (data.take().unwrap(), data.take().unwrap());
    from.view_mut::<u8>().unwrap().fill(0x5A);
    let [_, to] = engine.start([from.to_device(3..103), to.from_device(10..110)], &()).unwrap().wait(WAIT).unwrap().buffers;
    assert_eq!(to.view_at::<u8>(10..110).unwrap(), [0x5A; 100]);
}

// ---- Devices that are not what they should be.

/// A device whose registers do not all say what the model says.
struct Bent<D, F> {
    inner: D,
    len_bytes: usize,
    bend: F,
}

impl<D: Device, F: Fn(usize, u32) -> u32> Bent<D, F> {
    fn new(inner: D, bend: F) -> Self {
        Self { inner, len_bytes: 0x1000, bend }
    }
}

// SAFETY: the registers are `inner`'s; a test that bends what they say about being finished gives no memory back.
unsafe impl<D: Device, F: Fn(usize, u32) -> u32> Mmio for Bent<D, F> {
    forward!(|this| this.inner => write32);
    fn len_bytes(&self) -> usize {
        self.len_bytes
    }
    fn read32(&self, offset: usize) -> u32 {
        (self.bend)(offset, self.inner.read32(offset))
    }
}

impl<D: Device, F> Irq for Bent<D, F> {
    forward!(|this| this.inner => now_us, wait);
}

// SAFETY: `inner`'s.
unsafe impl<D: Device, F: Fn(usize, u32) -> u32> Device for Bent<D, F> {
    forward!(|this| this.inner => port);
}

/// What opening a device says whose registers are bent.
fn refusal(spec: Pl330Spec, config: Pl330Config, bend: impl Fn(usize, u32) -> u32) -> Error {
    let board = SimBoard::new(1);
    let memory = Memory::on(&board);
    let programs = memory.programs();
    let device = SimPl330::with_spec(&board, board.port(), spec);
    let Refused { error, mut returned, .. } =
        open_with(Bent::new(device.window().unwrap(), bend), programs.take().unwrap(), config).unwrap_err();
    returned.view_mut::<u8>().unwrap().fill(1); // the CPU's, as it was
    drop(returned);
    assert_eq!(programs.taken(), 0);
    error
}

#[test]
fn what_is_no_controller_or_not_enough_of_one_is_refused() {
    let (zynq, first) = (Pl330Spec::default(), Pl330Config::default());
    let wrong = |register, expected, found| Error::WrongDevice { device: "pl330", register, expected, found };
    assert_eq!(refusal(zynq, first, |_, _| u32::MAX), wrong("periph_id", 0xFFF4_1330, 0xFFFF_FFFF));
    assert_eq!(refusal(zynq, first, |_, _| 0), wrong("periph_id", 0x0004_1330, 0));
    let other_part = |offset, value| if offset == 0xFE0 { 0x31 } else { value };
    assert_eq!(refusal(zynq, first, other_part), wrong("periph_id", 0x0024_1330, 0x0024_1331));
    let other_cell = |offset, value| if offset == 0xFF4 { 0xE0 } else { value };
    assert_eq!(refusal(zynq, first, other_cell), wrong("pcell_id", 0xB105_F00D, 0xB105_E00D));
    let no_width = |offset, value: u32| if offset == regs::CRD.offset() { value & !7 } else { value };
    assert_eq!(refusal(zynq, first, no_width), Error::AttributeNonsense { name: "pl330's CRD register", value: 127 << 20 });

    let as_it_is = |_, value| value;
    let argument = |name, value, max| Error::Argument { name, value, min: 0, max, multiple_of: 1 };
    let four = Pl330Spec { channels: 4, events: 3, ..zynq };
    assert_eq!(refusal(four, Pl330Config { channel: 4, event: 0 }, as_it_is), argument("channel", 4, 3));
    assert_eq!(refusal(four, Pl330Config { channel: 3, event: 3 }, as_it_is), argument("event", 3, 2));
    assert_eq!(refusal(four, Pl330Config { channel: 255, event: 255 }, as_it_is), argument("channel", 255, 3));
    let nonsecure = Pl330Spec { nonsecure: true, nonsecure_events: !1, ..zynq };
    let fix = "take an event whose bit is set, or make the manager Secure";
    assert_eq!(refusal(nonsecure, first, as_it_is), Error::Unsuitable { name: "pl330's CR3 register", value: 0xFFFF_FFFE, fix });

    let board = SimBoard::new(1);
    let memory = Memory::on(&board);
    let device = SimPl330::new(&board, board.port());
    let open = |len_bytes, program: CpuBuf<'_>| {
        let bent = Bent { len_bytes, ..Bent::new(device.window().unwrap(), |_, value| value) };
        open(bent, program).map(drop).map_err(|refused| refused.error)
    };
    let carve = |len_bytes| memory.region.carve(len_bytes, Align::LINE).unwrap().into_buf();
    let need_bytes = 0x1000;
    assert_eq!(open(0xFFF, carve(PROGRAM_BYTES)), Err(Error::RegisterWindow { device: "pl330", need_bytes, have_bytes: 0xFFF }));
    let (len_bytes, need_bytes) = (PROGRAM_BYTES - 64, PROGRAM_BYTES);
    assert_eq!(open(0x1000, carve(len_bytes)), Err(Error::BlockSize { len_bytes, need_bytes, line_bytes: 64 }));
    let (_, half) = carve(PROGRAM_BYTES + 32).split_at(32).unwrap();
    assert!(matches!(open(0x1000, half), Err(Error::Misaligned { align_bytes: 64, .. })));
    let elsewhere = SimBoard::new(2);
    let foreign = Memory::on(&elsewhere);
    let foreign = foreign.region.carve(PROGRAM_BYTES, Align::LINE).unwrap().into_buf();
    assert_eq!(open(0x1000, foreign), Err(Error::WrongBus { port: "sim-hp0", memory: elsewhere.bus() }));
    assert_eq!(open(0x1000, carve(PROGRAM_BYTES)), Ok(()));
}

#[test]
fn what_cannot_be_copied_is_refused_before_anything_is_touched() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(8 << 20).unwrap()).unwrap();
    let carve = |len_bytes| region.carve(len_bytes, Align::PAGE).unwrap().into_buf();
    let device = SimPl330::new(&board, board.port());
    let mut engine = Engine::new(Pl330::open_simulated(device.window().unwrap(), carve(PROGRAM_BYTES)).unwrap()).unwrap();
    let most = 2 << 20;
    let (mut from, to) = (carve(most + 4096), carve(most + 4096));
    from.view_mut::<u8>().unwrap().fill(3);
    let refused = |refused: JobError<_>| {
        let [from, to]: [contigo::Operand<'_>; 2] = refused.buffers.unwrap();
        (refused.error, from.into_buf().unwrap(), to.into_buf().unwrap())
    };
    let (error, from, to) = refused(engine.start([from.to_device(..101), to.from_device(..100)], &()).unwrap_err());
    assert_eq!(error, Error::BufferSize { index: 1, need_bytes: 101, have_bytes: 100 });
    let (error, from, to) = refused(engine.start([from.to_device(..0), to.from_device(..100)], &()).unwrap_err());
    assert_eq!(error, Error::BufferSize { index: 0, need_bytes: 1, have_bytes: 0 });
    // At addresses that differ by an odd number, 2 MiB are the most.
    let job = engine.start([from.to_device(1..1 + most + 1), to.from_device(..most + 1)], &());
    let (error, from, to) = refused(job.unwrap_err());
    let (value, max) = (most as u64 + 1, most as u64);
    assert_eq!(error, Error::Argument { name: "bytes to copy", value, min: 1, max, multiple_of: 1 });
    assert_eq!(engine.jobs().started, 0);
    assert_eq!(to.view_at::<u8>(..64).unwrap(), [0; 64]);
    // The most, and more at addresses that agree in more bits.
    let [from, to] = engine.start([from.to_device(1..=most), to.from_device(..most)], &()).unwrap().wait(Timeout::ms(500)).unwrap().buffers;
    assert!(to.view_at::<u8>(..most).unwrap().iter().all(|&byte| byte == 3));
    let [_, to] =
        engine.start([from.to_device(..most + 999), to.from_device(..most + 999)], &()).unwrap().wait(Timeout::ms(500)).unwrap().buffers;
    assert!(to.view_at::<u8>(..most + 999).unwrap().iter().all(|&byte| byte == 3));

    // The numbers that only a direct call can bring, past the engine's own checks.
    let accelerator = open(SimPl330::new(&board, board.port()).window().unwrap(), carve(PROGRAM_BYTES)).map(drop);
    assert!(accelerator.is_ok());
    let other = SimPl330::new(&board, board.port());
    let driver = Pl330::open_simulated(other.window().unwrap(), carve(PROGRAM_BYTES)).unwrap();
    let slice = |addr, len_bytes| DevSlice { addr: DevAddr(addr), offset_bytes: 0, len_bytes };
    let last = u64::from(u32::MAX);
    let unreachable = Error::Unreachable { port: "sim-hp0", addr: 1 << 32, len_bytes: 8, first: 0, last };
    assert_eq!(driver.check(&[slice(1 << 32, 8), slice(0, 8)], &[]), Err(unreachable));
    assert_eq!(driver.check(&[slice(0, 8), slice(1 << 32, 8)], &[]), Err(unreachable));
}

// ---- Programs of one's own, and what goes wrong in them.

const END: u8 = 0x00;
const LOAD: u8 = 0x04;
const STORE: u8 = 0x08;
/// DMAWFE of event 9, which nobody raises.
const WAIT_FOR_EVER: [u8; 2] = [0x36, 9 << 3];
/// CCR: one byte from and to addresses that count up.
const BYTE: u32 = 1 | 1 << 14;

fn mov(register: u8, value: u32) -> Vec<u8> {
    [vec![0xBC, register], value.to_le_bytes().to_vec()].concat()
}

/// A copy of one byte, with CCR as given.
fn one_byte(from: u32, to: u32, ccr: u32) -> Vec<u8> {
    [mov(0, from), mov(2, to), mov(1, ccr), vec![LOAD, STORE, 0x13, 0x34, 0, END]].concat()
}

/// What `code` comes to on a controller as `spec` says; then the driver stops it, and copies as if nothing had been.
fn outcome(spec: Pl330Spec, config: Pl330Config, code: impl Fn(u32) -> Vec<u8>) -> Result<Option<Completion>> {
    let board = SimBoard::new(1);
    let memory = Memory::on(&board);
    let (programs, data) = (memory.programs(), memory.data());
    let device = SimPl330::with_spec(&board, board.port(), spec);
    let mut driver = open_with(device.window().unwrap(), programs.take().unwrap(), config).unwrap();
    let code = code(memory.base());
    let before_us = board.now_ns() / 1_000;
    // SAFETY: these programs stay inside the slots of `data`, of which nobody has taken one, or outside all memory.
    unsafe { driver.run_program(&code).unwrap() };
    let outcome = driver.poll(Timeout::ms(200));
    let took_us = board.now_ns() / 1_000 - before_us;
    if outcome.is_err() {
        assert!(took_us < 2_500, "a fault is found soon, not when the time is over: {took_us} us");
        // SAFETY: as above.
        assert_eq!(unsafe { driver.run_program(&code) }, Err(Error::Busy), "a channel that faults is not stopped");
    }
    driver.stop().unwrap();
    works(&mut Engine::new(driver).unwrap(), &data);
    outcome
}

#[test]
fn every_fault_of_a_program_is_decoded_and_the_next_job_works() {
    let (zynq, first) = (Pl330Spec::default(), Pl330Config::default());
    let nonsecure = Pl330Spec { nonsecure: true, nonsecure_events: 1, ..zynq };
    let fault = |status, what| Err(Error::Fault { device: "pl330", status, what });
    let undefined = "an undefined instruction in its program";
    for code in [0xFF_u8, 0x01, 0x54, 0x0C, 0x25, 0xA0, 0xA5] {
        assert_eq!(outcome(zynq, first, |_| vec![code]), fault(1, undefined), "{code:#x}");
    }
    let operand = "an operand in its program that this controller does not have";
    for code in [vec![0x34, 16 << 3], vec![0x34, 1], vec![0x36, 31 << 3], mov(3, 0), mov(1, BYTE | 1 << 28)] {
        assert_eq!(outcome(zynq, first, |_| code.clone()), fault(2, operand), "{code:x?}");
    }
    let event = "that its channel is Non-secure and the event Secure";
    assert_eq!(outcome(nonsecure, first, |_| vec![0x34, 1 << 3]), fault(1 << 5, event));
    assert_eq!(outcome(nonsecure, first, |_| vec![0x36, 1 << 3]), fault(1 << 5, event));
    let ccr = "that its channel is Non-secure and its program asks for Secure accesses";
    for half in [BYTE, BYTE | 1 << 9, BYTE | 1 << 23] {
        assert_eq!(outcome(nonsecure, first, |_| mov(1, half)), fault(1 << 7, ccr));
    }
    assert_eq!(outcome(nonsecure, first, |base| one_byte(base, base, BYTE | 1 << 9 | 1 << 23)), Ok(Some(Completion::of(0))));

    // No memory is at address 0.
    let reading = "a bus error while reading";
    assert_eq!(outcome(zynq, first, |base| one_byte(0, base, BYTE)), fault(1 << 18, reading));
    let writing = "a bus error while writing";
    assert_eq!(outcome(zynq, first, |base| one_byte(base, 0, BYTE)), fault(1 << 17, writing));
    // A jump to before the beginning of memory: the program buffer is the first thing in it.
    let fetching = "a bus error while fetching its program";
    assert_eq!(outcome(zynq, first, |_| vec![0x28, 255]), fault(1 << 16, fetching));

    let no_data = "a store for which nothing was loaded";
    assert_eq!(outcome(zynq, first, |base| [mov(2, base), mov(1, BYTE), vec![STORE]].concat()), fault(1 << 13, no_data));
    // 16 beats of 4 bytes, where the buffer has 8 words.
    let small = Pl330Spec { bus_bytes: 4, buffer_words: 8, ..zynq };
    let wide = |base| [mov(0, base), mov(1, BYTE | 2 << 1 | 15 << 4), vec![LOAD]].concat();
    assert_eq!(outcome(small, first, wide), fault(1 << 12, "a burst that is larger than its data buffer"));
    let full = |base| [mov(0, base), mov(1, BYTE | 2 << 1 | 4 << 4), vec![LOAD, LOAD]].concat();
    let locked_up = "that its channel locked up: its data buffer is full, or never empty";
    assert_eq!(outcome(small, first, full), fault(1 << 31, locked_up));

    assert_eq!(outcome(zynq, first, |_| WAIT_FOR_EVER.to_vec()), Ok(None));
    assert_eq!(outcome(zynq, first, |_| vec![END]), Ok(None), "an end without the event");
    assert_eq!(outcome(zynq, first, |_| vec![0x34, 1 << 3, END]), Ok(None), "another event");
    let raised_and_waits = [[0x34, 0], WAIT_FOR_EVER].concat();
    assert_eq!(outcome(zynq, first, |_| raised_and_waits.clone()), Ok(None), "the event before the end");
    assert_eq!(outcome(zynq, first, |_| vec![0x34, 0, END]), Ok(Some(Completion::of(0))));
    assert_eq!(outcome(zynq, first, |base| one_byte(base, base, BYTE)), Ok(Some(Completion::of(0))));
}

#[test]
fn a_manager_that_faults_is_decoded_and_killed() {
    let board = SimBoard::new(1);
    let memory = Memory::on(&board);
    let (programs, data) = (memory.programs(), memory.data());
    // The manager is Non-secure, and DSR lies about it while the driver is opened: DMAGO asks for a Secure channel.
    let spec = Pl330Spec { nonsecure: true, nonsecure_events: u32::MAX, ..Pl330Spec::default() };
    let device = SimPl330::with_spec(&board, board.port(), spec);
    let lies = |offset, value: u32| if offset == 0 { value & !regs::DSR_NONSECURE } else { value };
    let bent = Bent::new(device.window().unwrap(), lies);
    let mut engine = Engine::new(open(bent, programs.take().unwrap()).unwrap()).unwrap();
    for _ in 0..2 {
        let job = engine.start([data.take().unwrap().to_device(..9), data.take().unwrap().from_device(..9)], &()).unwrap();
        let failed = job.wait(WAIT).unwrap_err();
        let what = "that its manager is Non-secure and may not start a Secure channel";
        assert_eq!(failed.error, Error::Fault { device: "pl330", status: 1 << 30 | 1 << 4, what });
        drop(failed);
        assert_eq!((data.taken(), engine.is_busy()), (0, false), "the manager was killed, so it faults no more");
    }
    drop(engine);
    works(&mut Engine::new(Pl330::open_simulated(device.window().unwrap(), programs.take().unwrap()).unwrap()).unwrap(), &data);
}

#[test]
fn a_program_that_does_not_fit_or_comes_too_early_is_refused() {
    let board = SimBoard::new(1);
    let memory = Memory::on(&board);
    let programs = memory.programs();
    let device = SimPl330::new(&board, board.port());
    let mut driver = Pl330::open_simulated(device.window().unwrap(), programs.take().unwrap()).unwrap();
    // SAFETY: it touches no memory, and is refused.
    let too_long = unsafe { driver.run_program(&[0x18; PROGRAM_BYTES + 1]) };
    let end = PROGRAM_BYTES + 4;
    assert_eq!(too_long, Err(Error::OutOfRange { start: 0, end, len_bytes: PROGRAM_BYTES }));
    // The longest, in pieces of which the last is odd.
    let mut code = vec![0x18; PROGRAM_BYTES - 1];
    code[PROGRAM_BYTES - 4..].copy_from_slice(&[0x34, 0, END]);
    // SAFETY: it touches no memory.
    unsafe { driver.run_program(&code).unwrap() };
    // SAFETY: as above.
    assert_eq!(unsafe { driver.run_program(&WAIT_FOR_EVER) }, Err(Error::Busy), "the channel is stopped still, and about to fetch");
    assert_eq!(driver.poll(WAIT), Ok(Some(Completion::of(0))));
    assert_eq!(driver.poll(WAIT), Ok(None), "its event was taken back");
    // SAFETY: as above.
    unsafe { driver.run_program(&WAIT_FOR_EVER).unwrap() };
    assert_eq!(driver.poll(Timeout::us(50)), Ok(None));
    // SAFETY: as above.
    assert_eq!(unsafe { driver.run_program(&code) }, Err(Error::Busy));
    driver.stop().unwrap();
    // SAFETY: as above.
    unsafe { driver.run_program(&code).unwrap() };
    assert_eq!(driver.poll(WAIT), Ok(Some(Completion::of(0))));
}

/// Between the two registers that a look reads, anything may happen: here the channel starts and raises its event, and runs on.
#[test]
fn an_event_between_two_reads_is_not_the_end() {
    let board = SimBoard::new(1);
    let memory = Memory::on(&board);
    let (programs, data) = (memory.programs(), memory.data());
    let device = SimPl330::new(&board, board.port());
    let slow = Cell::new(true);
    let bend = |_, value| {
        if slow.get() {
            device.run_for(1_000_000).unwrap();
        }
        value
    };
    let mut driver = open(Bent::new(device.window().unwrap(), bend), programs.take().unwrap()).unwrap();
    slow.set(false);
    // SAFETY: it touches no memory.
    unsafe { driver.run_program(&[&[0x34, 0], &WAIT_FOR_EVER[..]].concat()).unwrap() };
    slow.set(true);
    for _ in 0..3 {
        assert_eq!(driver.poll(Timeout::NOW), Ok(None), "it runs for ever");
    }
    slow.set(false);
    driver.stop().unwrap();
    works(&mut Engine::new(driver).unwrap(), &data);
}

// ---- Controllers that hang, are stuck, or are gone.

#[test]
fn faults_strike_often_and_every_job_ends_well_or_with_its_error() {
    for (seed, port) in [SimBoard::port, SimBoard::coherent_port].into_iter().enumerate() {
        let board = SimBoard::with(SimConfig { seed: seed as u64, faults: Faults::OFTEN });
        let memory = Memory::on(&board);
        let (programs, data) = (memory.programs(), memory.data());
        let device = SimPl330::new(&board, port(&board));
        let mut engine = Engine::new(Pl330::open_simulated(device.window().unwrap(), programs.take().unwrap()).unwrap()).unwrap();
        let (mut rng, mut good, mut faults, mut timeouts) = (Rng::with_seed(seed as u64), 0, 0, 0);
        for job in 0..1_000 {
            let (mut source, mut target) = (data.take().unwrap(), data.take().unwrap());
            let (bytes, mut expected) = (scribble(&mut rng, &mut source), scribble(&mut rng, &mut target));
            let (from, to, len) = copy(&mut rng, 1000);
            let range = to..to + len;
            let running = engine.start([source.to_device(from..from + len), target.from_device(range.clone())], &()).unwrap();
            let target = match running.wait(Timeout::ms(5)) {
                Ok(Done { buffers: [_, target], .. }) => {
                    expected[range.clone()].copy_from_slice(&bytes[from..from + len]);
                    good += 1;
                    target
                }
                Err(failed) => {
                    match failed.error {
                        Error::Fault { device: "pl330", status, what: "a bus error while reading" } if status == 1 << 18 => faults += 1,
                        Error::Timeout { timeout_us: 5_000 } => timeouts += 1,
                        other => panic!("job {job}: {other}"),
                    }
                    let [_, target] = failed.buffers.unwrap();
                    let target = target.into_cpu().unwrap();
                    // As much of it as was written: the rest is as it was.
                    let written = target.view_at::<u8>(range.clone()).unwrap();
                    let new = &bytes[from..from + len];
                    let done = written.iter().zip(new).zip(&expected[range.clone()]).all(|((now, new), old)| now == new || now == old);
                    assert!(done, "job {job}");
                    expected[range.clone()].copy_from_slice(written);
                    target
                }
            };
            assert!(target.view::<u8>().unwrap() == expected, "job {job}: {len} bytes from {from} to {to}");
        }
        assert!(good > 700 && faults > 50 && timeouts > 50, "{good} good, {faults} faults, {timeouts} timeouts");
        assert_eq!(engine.jobs().completed, good);
        assert_eq!((data.taken(), board.counts().stray_accesses, board.counts().unowned_accesses), (0, 0, 0));
    }
}

#[test]
fn a_job_that_hangs_times_out_and_the_next_one_works() {
    let board = SimBoard::with(SimConfig { seed: 2, faults: Faults { hang: 500, ..Faults::NONE } });
    let memory = Memory::on(&board);
    let (programs, data) = (memory.programs(), memory.data());
    let device = SimPl330::new(&board, board.port());
    let mut engine = Engine::new(Pl330::open_simulated(device.window().unwrap(), programs.take().unwrap()).unwrap()).unwrap();
    let (mut hung, mut after_one) = (0, 0);
    let mut last_hung = false;
    for _ in 0..200 {
        let (from, to) = (data.take().unwrap(), data.take().unwrap());
        match engine.start([from.to_device(..700), to.from_device(1..701)], &()).unwrap().wait(Timeout::ms(3)) {
            Ok(_) => {
                after_one += u32::from(last_hung);
                last_hung = false;
            }
            Err(failed) => {
                assert_eq!((failed.error, failed.buffers.is_some()), (Error::Timeout { timeout_us: 3_000 }, true));
                (hung, last_hung) = (hung + 1, true);
            }
        }
        assert_eq!((data.taken(), engine.is_busy()), (0, false));
    }
    assert!(hung > 50 && after_one > 20, "{hung} hung, {after_one} worked right after one");
}

#[test]
fn a_stuck_controller_leaks_what_it_may_write_and_works_after_a_reset() {
    let board = SimBoard::with(SimConfig { seed: 3, faults: Faults { stuck: 300, ..Faults::NONE } });
    let memory = Memory::on(&board);
    let programs = memory.programs();
    let data = Pool::<64>::new(memory.region.carve(64 * 1024, Align::LINE).unwrap(), 1024).unwrap();
    let device = SimPl330::new(&board, board.port());
    let mut engine = Engine::new(Pl330::open_simulated(device.window().unwrap(), programs.take().unwrap()).unwrap()).unwrap();
    let (mut stuck, mut good) = (0, 0);
    while stuck < 8 || good < 8 {
        let (mut from, to) = (data.take().unwrap(), data.take().unwrap());
        from.view_mut::<u8>().unwrap().fill(7);
        match engine.start([from.to_device(..900), to.from_device(..900)], &()).unwrap().wait(Timeout::ms(3)) {
            Ok(Done { buffers: [_, to], .. }) => {
                assert_eq!(to.view_at::<u8>(..900).unwrap(), [7; 900]);
                good += 1;
            }
            Err(failed) => {
                stuck += 1;
                let killing = Error::WillNotStop { device: "pl330", status: regs::KILLING, waited_us: 10_000 };
                assert_eq!((failed.error, failed.cause), (killing, Error::Timeout { timeout_us: 3_000 }));
                assert!(failed.buffers.is_none(), "leaked, not freed");
                assert_eq!(engine.recover(), Err(killing), "it is still stuck");
                let busy = engine.start([data.take().unwrap().to_device(..9), data.take().unwrap().from_device(..9)], &());
                assert_eq!(busy.unwrap_err().error, Error::Busy);
                device.reset().unwrap();
                engine.recover().unwrap();
            }
        }
        assert_eq!((data.taken(), engine.is_busy()), (2 * stuck, false));
    }
}

#[test]
fn a_driver_gives_its_program_back_only_if_its_controller_stopped() {
    let board = SimBoard::with(SimConfig { seed: 3, faults: Faults { stuck: 1000, ..Faults::NONE } });
    let memory = Memory::on(&board);
    let (programs, data) = (memory.programs(), memory.data());
    let device = SimPl330::new(&board, board.port());
    let open = || Pl330::open_simulated(device.window().unwrap(), programs.take().unwrap()).unwrap();
    drop(open());
    drop(Engine::new(open()).unwrap());
    assert_eq!(programs.taken(), 0);

    // A program that waits for ever, and is killed by the drop: it stores nothing, so it never gets stuck.
    let mut driver = open();
    // SAFETY: it touches no memory.
    unsafe { driver.run_program(&WAIT_FOR_EVER).unwrap() };
    assert_eq!(driver.poll(Timeout::us(100)), Ok(None));
    drop(driver);
    assert_eq!(programs.taken(), 0);

    let mut engine = Engine::new(open()).unwrap();
    forget(engine.start([data.take().unwrap().to_device(..99), data.take().unwrap().from_device(..99)], &()).unwrap());
    drop(engine);
    assert_eq!((programs.taken(), data.taken()), (1, 2), "it may still fetch, and write");
}

#[test]
fn a_program_that_waits_for_ever_is_killed_by_whoever_comes_next() {
    let board = SimBoard::new(4);
    let memory = Memory::on(&board);
    let (programs, data) = (memory.programs(), memory.data());
    let device = SimPl330::new(&board, board.port());
    let gone = Cell::new(false);
    let crashed = Revoked { inner: device.window().unwrap(), gone: &gone };
    let mut crashed = open_with(crashed, programs.take().unwrap(), Pl330Config { channel: 2, event: 7 }).unwrap();
    // SAFETY: it touches no memory.
    unsafe { crashed.run_program(&WAIT_FOR_EVER).unwrap() };
    assert_eq!(crashed.poll(Timeout::us(100)), Ok(None));
    // Its process dies: nothing that it does reaches the controller any more.
    gone.set(true);
    drop(crashed);
    assert_eq!(programs.taken(), 1);
    let csr = regs::CHANNELS[2].csr;
    assert_eq!(csr.read(&device.window().unwrap()) & regs::STATUS, regs::WAITING_FOR_EVENT);

    // The next process: its driver stops everything before its first job.
    let seen = Cell::new(0);
    let watched = Bent::new(device.window().unwrap(), |offset, value| {
        if offset == csr.offset() {
            seen.set(value & regs::STATUS);
        }
        value
    });
    let mut engine = Engine::new(open(watched, programs.take().unwrap()).unwrap()).unwrap();
    assert_eq!(seen.get(), regs::STOPPED);
    works(&mut engine, &data);
}

#[test]
fn a_job_that_is_dropped_before_its_channel_has_started_never_starts() {
    for after_ns in 0..12 {
        let board = SimBoard::new(after_ns);
        let memory = Memory::on(&board);
        let (programs, data) = (memory.programs(), memory.data());
        let device = SimPl330::new(&board, board.coherent_port());
        let mut engine = Engine::new(Pl330::open_simulated(device.window().unwrap(), programs.take().unwrap()).unwrap()).unwrap();
        let (mut from, mut to) = (data.take().unwrap(), data.take().unwrap());
        from.view_mut::<u8>().unwrap().fill(1);
        to.view_mut::<u8>().unwrap().fill(2);
        let before_bytes = board.counts().bytes_written;
        let job = engine.start([from.to_device(..4000), to.from_device(1..4001)], &()).unwrap();
        // Some looks, each of which takes 100 ns: the debug interface is busy, or idle and the channel not started, or it runs.
        let mut job = Some(job);
        for _ in 0..after_ns {
            let Attempt::Pending(pending) = job.take().unwrap().try_wait().unwrap() else { panic!("4,000 bytes take longer") };
            job = Some(pending);
        }
        drop(job);
        let written = board.counts().bytes_written;
        device.run_for(1_000_000).unwrap();
        assert_eq!(board.counts().bytes_written, written, "after {after_ns} looks: it runs on behind everybody's back");
        assert!(written - before_bytes < 100, "it was stopped early: {}", written - before_bytes);
        works(&mut engine, &data);
    }
}

#[test]
fn a_lost_interrupt_costs_a_millisecond_and_a_late_one_its_lateness() {
    let took_us = |faults, timeout| {
        let board = SimBoard::with(SimConfig { seed: 5, faults });
        let memory = Memory::on(&board);
        let (programs, data) = (memory.programs(), memory.data());
        let device = SimPl330::new(&board, board.port());
        let mut engine = Engine::new(Pl330::open_simulated(device.window().unwrap(), programs.take().unwrap()).unwrap()).unwrap();
        let mut longest = 0;
        for _ in 0..50 {
            let before_ns = board.now_ns();
            let job = engine.start([data.take().unwrap().to_device(..1000), data.take().unwrap().from_device(..1000)], &()).unwrap();
            drop(job.wait(timeout).unwrap());
            longest = longest.max((board.now_ns() - before_ns) / 1_000);
        }
        longest
    };
    let in_time = took_us(Faults::NONE, WAIT);
    let late = took_us(Faults { late_irq: 1000, ..Faults::NONE }, WAIT);
    let lost = took_us(Faults { lost_irq: 1000, ..Faults::NONE }, WAIT);
    assert!(in_time < 10, "{in_time} us");
    assert!((50..200).contains(&late), "{late} us");
    assert!((1_000..1_100).contains(&lost), "{lost} us");
}

/// A window that a process loses when it dies.
struct Revoked<'c, D> {
    inner: D,
    gone: &'c Cell<bool>,
}

// SAFETY: the registers are `inner`'s; what is gone answers all ones.
unsafe impl<D: Device> Mmio for Revoked<'_, D> {
    forward!(|this| this.inner => len_bytes);
    fn read32(&self, offset: usize) -> u32 {
        if self.gone.get() { u32::MAX } else { self.inner.read32(offset) }
    }
    unsafe fn write32(&self, offset: usize, value: u32) {
        if !self.gone.get() {
            // SAFETY: the caller's promise.
            unsafe { self.inner.write32(offset, value) }
        }
    }
}

impl<D: Device> Irq for Revoked<'_, D> {
    forward!(|this| this.inner => now_us, wait);
}

// SAFETY: `inner`'s.
unsafe impl<D: Device> Device for Revoked<'_, D> {
    forward!(|this| this.inner => port);
}

#[test]
fn a_controller_that_vanishes_ends_the_job_and_keeps_the_buffers() {
    let board = SimBoard::new(1);
    let memory = Memory::on(&board);
    let (programs, data) = (memory.programs(), memory.data());
    let (device, gone) = (SimPl330::new(&board, board.port()), Cell::new(false));
    let window = Revoked { inner: device.window().unwrap(), gone: &gone };
    let mut engine = Engine::new(open(window, programs.take().unwrap()).unwrap()).unwrap();
    let buffers = || (data.take().unwrap(), data.take().unwrap());
    let (from, to) = buffers();
    let job = engine.start([from.to_device(..900), to.from_device(..900)], &()).unwrap();
    gone.set(true);
    let failed = job.wait(WAIT).unwrap_err();
    let what = "that it is gone (all ones)";
    assert_eq!(failed.cause, Error::Fault { device: "pl330", status: u32::MAX, what });
    assert_eq!(failed.error, Error::WillNotStop { device: "pl330", status: u32::MAX, waited_us: 10_000 });
    assert!(failed.buffers.is_none());
    gone.set(false);
    engine.recover().unwrap();
    // And one that vanishes before the doorbell.
    let (from, to) = buffers();
    gone.set(true);
    let failed = engine.start([from.to_device(..900), to.from_device(..900)], &()).unwrap_err();
    assert_eq!(failed.cause, Error::Fault { device: "pl330", status: u32::MAX, what });
    assert!(matches!(failed.error, Error::WillNotStop { status: u32::MAX, .. }) && failed.buffers.is_none());
}

#[test]
fn a_debug_interface_that_stays_busy_ends_everything_in_bounded_time() {
    let board = SimBoard::new(1);
    let memory = Memory::on(&board);
    let (programs, data) = (memory.programs(), memory.data());
    let (device, busy) = (SimPl330::new(&board, board.port()), Cell::new(false));
    let bend = |offset, value: u32| value | u32::from(offset == regs::DBGSTATUS.offset() && busy.get());
    let mut engine = Engine::new(open(Bent::new(device.window().unwrap(), bend), programs.take().unwrap()).unwrap()).unwrap();
    busy.set(true);
    let before_us = board.now_ns() / 1_000;
    let failed = engine.start([data.take().unwrap().to_device(..9), data.take().unwrap().from_device(..9)], &()).unwrap_err();
    let took_us = board.now_ns() / 1_000 - before_us;
    assert_eq!(failed.cause, Error::Fault { device: "pl330", status: 1, what: "that its debug interface stays busy" });
    let will_not = Error::WillNotStop { device: "pl330", status: 1, waited_us: 10_000 };
    assert_eq!((failed.error, failed.buffers.is_none()), (will_not, true));
    assert!((15_000..16_000).contains(&took_us), "{took_us} us");
    drop(engine);
    assert_eq!(programs.taken(), 1, "a DMAGO may be in there: the program is leaked");
    let driver = open(Bent::new(device.window().unwrap(), bend), programs.take().unwrap()).unwrap();
    let refused = Engine::new(driver).unwrap_err();
    assert_eq!(refused.error, will_not);
    busy.set(false);
    works(&mut Engine::new(refused.returned).unwrap(), &data);
}
