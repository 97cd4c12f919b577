//! Channels that share a core: claims, the lock, the interrupt and the reset, on a core of two
//! channels that is as unpleasant as such cores are.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test that panics has failed, which is its purpose; a model and its driver are promises"
)]

use contigo::{
    Align, Completion, Core, CoreChannel, DevAddr, DevSlice, Device, Driver, Engine, Error, Irq, Mmio, OperandSpec, Pool, Port, Queue,
    Region, Result, Timeout, TypedDriver, fixed, forward,
    mmio::{ReadOnly, ReadWrite, Register},
    poll_every, poll_until,
    sim::{Model, SimBoard, SimBus, SimDevice, SimWindow},
};
use contigo_testkit::emulated;
use std::{
    sync::{
        Barrier, Condvar, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

const WAIT: Timeout = Timeout::ms(50);

/// One channel's registers, in 16 bytes.
const SRC: Register<ReadWrite> = Register::at(0x0);
const DST: Register<ReadWrite> = Register::at(0x4);
const LEN: Register<ReadWrite> = Register::at(0x8);
/// Bit 0: at work. Bit 1: its interrupt; writing 1 takes it back.
const STATUS: Register<ReadWrite> = Register::at(0xC);
/// Of both: which channel [`GO`] starts.
const SELECT: Register<ReadWrite> = Register::at(0x20);
const GO: Register<ReadWrite> = Register::at(0x24);
/// Both channels forget their jobs, and say that they are not at work.
const RESET: Register<ReadWrite> = Register::at(0x28);
/// How often a channel was started by another thread than the one that selected it.
const WRONG: Register<ReadOnly> = Register::at(0x2C);
const WINDOW: [std::ops::Range<usize>; 2] = [0x00..0x10, 0x10..0x20];

/// Two channels that copy, one by one started through registers that they share.
#[derive(Default)]
struct Twin {
    registers: [[u32; 3]; 2],
    ends_at_ns: [Option<u64>; 2],
    raised: [bool; 2],
    select: usize,
    by: Option<thread::ThreadId>,
    wrong: u32,
}

// SAFETY: a channel touches what its registers say while it is at work, and says so.
unsafe impl Model for Twin {
    const WINDOW_BYTES: usize = 0x30;

    fn advance(&mut self, bus: &mut SimBus<'_>) {
        for index in 0..2 {
            if self.ends_at_ns[index].is_some_and(|at| at <= bus.now_ns()) {
                let [src, dst, len] = self.registers[index].map(u64::from);
                for at in 0..len {
                    let mut byte = [0];
                    bus.read(DevAddr(src + at), &mut byte).unwrap();
                    bus.write(DevAddr(dst + at), &byte).unwrap();
                }
                (self.ends_at_ns[index], self.raised[index]) = (None, true);
            }
        }
    }

    fn read32(&mut self, offset: usize, _bus: &mut SimBus<'_>) -> u32 {
        match (offset / 0x10, offset % 0x10 / 4) {
            (index @ 0..2, 3) => u32::from(self.ends_at_ns[index].is_some()) | u32::from(self.raised[index]) << 1,
            (index @ 0..2, register) => self.registers[index][register],
            (_, 3) => self.wrong,
            _ => 0,
        }
    }

    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        match (offset / 0x10, offset % 0x10 / 4) {
            (index @ 0..2, 3) => self.raised[index] &= value & 2 == 0,
            (index @ 0..2, register) => self.registers[index][register] = value,
            (_, 0) => (self.select, self.by) = (value as usize & 1, Some(thread::current().id())),
            (_, 1) => {
                let index = self.select;
                self.wrong += u32::from(self.by.take() != Some(thread::current().id()));
                self.ends_at_ns[index] = Some(bus.now_ns() + 1_000 + u64::from(self.registers[index][2]));
            }
            (_, 2) => *self = Self { wrong: self.wrong, ..Self::default() },
            _ => {}
        }
    }

    fn irq_at_ns(&self) -> Option<u64> {
        if self.raised != [false; 2] { Some(0) } else { self.ends_at_ns.into_iter().flatten().min() }
    }

    fn reset(&mut self) {
        *self = Self::default();
    }
}

/// One channel's driver, by the rules of [`Core`].
struct Copier<'c, D: Device> {
    channel: CoreChannel<'c, D>,
    epoch: u32,
}

/// # Safety
/// The core is a [`Twin`], and only drivers of this kind drive its channels.
unsafe fn copier<D: Device>(core: &Core<D>, index: usize) -> Result<Copier<'_, D>> {
    // SAFETY: the registers of a channel, which nobody else writes; the others are written under
    // the lock.
    Ok(Copier { channel: unsafe { core.channel(index, WINDOW[index].clone())? }, epoch: 0 })
}

// SAFETY: a channel reads `LEN` bytes and writes as many, which `check` found to fit, and is not at
// work when all of them have arrived.
unsafe impl<D: Device> Driver for Copier<'_, D> {
    fn name(&self) -> &'static str {
        "twin"
    }
    fn port(&self) -> &Port {
        self.channel.port()
    }
    fn addr_bits(&self) -> u32 {
        32
    }
    fn operands(&self) -> &[OperandSpec] {
        const { &[OperandSpec::to_device(), OperandSpec::from_device()] }
    }
    fn check(&self, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        let [from, to] = fixed(operands)?;
        assert_eq!(from.len_bytes, to.len_bytes);
        Ok(())
    }
    unsafe fn submit(&mut self, _slot: usize, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        let [from, to] = fixed(operands)?;
        self.epoch = self.channel.reset_epoch();
        // SAFETY: both operands were handed over.
        unsafe {
            SRC.write(&self.channel, from.addr.0 as u32);
            DST.write(&self.channel, to.addr.0 as u32);
            LEN.write(&self.channel, from.len_bytes as u32);
            let both = self.channel.lock()?;
            SELECT.write(&*both, self.channel.index() as u32);
            thread::yield_now(); // here a sibling's would come, if it could
            GO.write(&*both, 1);
        }
        Ok(())
    }
    fn poll(&mut self, timeout: Timeout) -> Result<Option<Completion>> {
        let (mut done, mut epoch) = (false, self.epoch);
        // Not at work: also what a reset leaves behind, so the epoch is read after it.
        poll_until(&self.channel, timeout, |channel| {
            done = STATUS.read(channel) & 1 == 0;
            epoch = channel.reset_epoch();
            done || epoch != self.epoch
        })?;
        if epoch != self.epoch {
            return Err(Error::EndedByReset { device: "twin" });
        }
        if done {
            // SAFETY: it moves no data.
            unsafe { STATUS.write(&self.channel, 2) };
        }
        Ok(done.then_some(Completion::of(0)))
    }
    fn stop(&mut self) -> Result<()> {
        let idle = poll_every(&self.channel, 50, Timeout::ms(10), |channel| STATUS.read(channel) & 1 == 0)?;
        // SAFETY: it moves no data.
        unsafe { STATUS.write(&self.channel, 2) };
        if idle { Ok(()) } else { Err(Error::WillNotStop { device: "twin", status: 1, waited_us: 10_000 }) }
    }
}

impl<D: Device> TypedDriver<2> for Copier<'_, D> {
    type Args = ();
    type Words = [u32; 0];
    type Report = ();
    fn words((): &()) -> [u32; 0] {
        []
    }
    fn report(&self, _: &Completion) {}
}

/// A core over the model's window.
fn core<'d>(device: &'d SimDevice<'d, Twin>) -> Core<SimWindow<'d, Twin>> {
    Core::new(device.window().unwrap())
}

/// One channel's driver of a simulated core.
fn on<'c, 'd>(core: &'c Core<SimWindow<'d, Twin>>, index: usize) -> Copier<'c, SimWindow<'d, Twin>> {
    // SAFETY: the window is a `Twin`'s, and this file has no other driver of it.
    unsafe { copier(core, index) }.unwrap()
}

/// `count` copies; each byte is compared.
fn copies<D: Device>(driver: Copier<'_, D>, pool: &Pool<'_, 8>, count: u64) {
    let index = driver.channel.index() as u8;
    let mut engine = Engine::new(driver).unwrap();
    for job in 0..count {
        let (mut from, to) = (pool.take().unwrap(), pool.take().unwrap());
        let byte = job as u8 ^ index << 7;
        from.view_mut::<u8>().unwrap().fill(byte);
        let done = engine.start([from.to_device(..100), to.from_device(..100)], &()).unwrap().wait(WAIT).unwrap();
        assert_eq!(done.buffers[1].view_at::<u8>(..100).unwrap(), [byte; 100], "job {job} of channel {index}");
    }
}

#[test]
fn a_channel_is_claimed_once_and_given_back() {
    fn may_go_anywhere<T: Send>(_: &T) {}
    let board = SimBoard::new(1);
    let device = SimDevice::with_model(&board, board.port(), Twin::default());
    let core = core(&device);
    // SAFETY: nothing is driven here.
    let claim = |index, window| unsafe { core.channel(index, window) };
    let first = claim(0, 0x10..0x20).unwrap();
    may_go_anywhere(&first);
    assert_eq!((first.index(), first.len_bytes(), first.port()), (0, 0x10, core.device().port()));
    assert_eq!(claim(0, 0..4).map(drop), Err(Error::Busy));
    let end = claim(31, 0x2C..0x30).unwrap();
    assert_eq!(claim(32, 0..4).map(drop), Err(Error::Argument { name: "channel", value: 32, min: 0, max: 31, multiple_of: 1 }));
    let outside = |need_bytes| Err(Error::RegisterWindow { device: "the channel", need_bytes, have_bytes: 0x30 });
    assert_eq!(claim(1, 0x20..0x34).map(drop), outside(0x34));
    #[allow(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    let reversed = 8..4;
    assert_eq!(claim(1, reversed).map(drop), outside(8));
    // Its registers begin at 0, and nothing is behind them.
    // SAFETY: a length moves nothing.
    unsafe { [0, 8, 0xC, 0x10, usize::MAX - 3].into_iter().for_each(|offset| first.write32(offset, 7)) };
    assert_eq!([0x00, 0x10, 0x18, 0x20].map(|offset| core.device().read32(offset)), [0, 7, 7, 0]);
    assert_eq!([0, 0x10, usize::MAX - 3].map(|offset| first.read32(offset)), [7, u32::MAX, u32::MAX]);
    assert_eq!([0, 4].map(|offset| end.read32(offset)), [0, u32::MAX]);
    drop(first);
    assert!(claim(0, 0..4).is_ok());
}

#[test]
fn two_threads_share_the_registers_and_the_interrupt() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 << 10).unwrap()).unwrap();
    let pool = Pool::<8>::new(region.carve(8 * 128, Align::LINE).unwrap(), 128).unwrap();
    let device = SimDevice::with_model(&board, board.port(), Twin::default());
    let core = core(&device);
    let both = Barrier::new(2);
    thread::scope(|scope| {
        for index in 0..2 {
            let (driver, pool, both) = (on(&core, index), &pool, &both);
            scope.spawn(move || {
                both.wait();
                copies(driver, pool, emulated::fewer(2_000));
            });
        }
    });
    assert_eq!(WRONG.read(core.device()), 0, "each started its own channel");
    assert_eq!((board.counts().stray_accesses, board.counts().unowned_accesses, pool.taken()), (0, 0, 0));
}

#[test]
fn a_siblings_reset_ends_a_job_and_says_so() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 << 10).unwrap()).unwrap();
    let pool = Pool::<8>::new(region.carve(8 * 128, Align::LINE).unwrap(), 128).unwrap();
    let device = SimDevice::with_model(&board, board.port(), Twin::default());
    let core = core(&device);
    let mut queue: Queue<'_, _, 4, 2> = Queue::new(on(&core, 0)).unwrap();
    let buffers = || (pool.take().unwrap(), pool.take().unwrap());
    let (from, to) = buffers();
    queue.push([from.to_device(..100), to.from_device(..100)], &()).unwrap();
    assert!(queue.next(Timeout::NOW).unwrap().is_none());
    // The sibling's trouble, whatever it was.
    let reset = core.reset(|whole| {
        // SAFETY: RESET moves no data.
        unsafe { RESET.write(whole, 1) };
        Ok(())
    });
    assert_eq!(reset, Ok(()));
    // The channel says that it is not at work, as after a job.
    assert_eq!(STATUS.read(core.device()), 0);
    let failed = queue.next(WAIT).unwrap_err();
    assert_eq!((failed.error, failed.buffers.is_none()), (Error::EndedByReset { device: "twin" }, true));
    assert!(queue.take_back().is_some());
    // One that had no job does not mind.
    copies(on(&core, 1), &pool, 3);
    drop(queue);
    copies(on(&core, 0), &pool, 3);
    // A reset that fails has happened.
    let (from, to) = buffers();
    let mut engine = Engine::new(on(&core, 1)).unwrap();
    let job = engine.start([from.to_device(..100), to.from_device(..100)], &()).unwrap();
    assert_eq!(core.reset(|_| Err::<(), _>(Error::Busy)), Err(Error::Busy));
    assert_eq!(job.wait(WAIT).unwrap_err().error, Error::EndedByReset { device: "twin" });
    assert_eq!((board.counts().unowned_accesses, pool.taken()), (0, 0));
}

#[test]
fn the_lock_has_a_bound() {
    let board = SimBoard::new(1);
    let device = SimDevice::with_model(&board, board.port(), Twin::default());
    let core = core(&device);
    let held = core.lock().unwrap();
    assert!(matches!(core.lock().map(drop), Err(Error::Contended { .. })));
    drop(held);
    assert!(core.lock().is_ok());
}

// ---- Real time.

/// A device with nothing but an interrupt, in real time.
struct Bell {
    rings: Mutex<u32>,
    rang: Condvar,
    /// How many threads are in `wait`.
    inside: AtomicU32,
    port: Port,
}

// SAFETY: there are no registers.
unsafe impl Mmio for &Bell {
    fn len_bytes(&self) -> usize {
        0x40
    }
    fn read32(&self, _offset: usize) -> u32 {
        0
    }
    unsafe fn write32(&self, _offset: usize, _value: u32) {}
}

impl Irq for &Bell {
    forward!(|_this| contigo::Spin => now_us);
    fn wait(&self, timeout_us: u32) -> Result<()> {
        assert_eq!(self.inside.fetch_add(1, Ordering::SeqCst), 0, "one thread at a time");
        let rings = self.rings.lock().unwrap();
        let (mut rings, _) = self.rang.wait_timeout_while(rings, Duration::from_micros(timeout_us.into()), |rings| *rings == 0).unwrap();
        *rings = rings.saturating_sub(1);
        self.inside.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }
}

// SAFETY: it puts no address on any bus.
unsafe impl Device for &Bell {
    fn port(&self) -> &Port {
        &self.port
    }
}

#[test]
fn who_takes_the_interrupt_wakes_the_others_and_who_leaves_passes_it_on() {
    const LONG_US: u32 = 60_000_000;
    let port = SimBoard::new(1).port();
    let bell = Bell { rings: Mutex::new(0), rang: Condvar::new(), inside: AtomicU32::new(0), port };
    let core = Core::new(&bell);
    // SAFETY: there are no registers.
    let channels = &[0, 1, 2].map(|index| unsafe { core.channel(index, 0..0x40) }.unwrap());
    let ended = &[0; 3].map(AtomicU32::new);
    let begin = Instant::now();
    let ring = |index: usize| {
        ended[index].store(1, Ordering::SeqCst);
        *bell.rings.lock().unwrap() += 1;
        bell.rang.notify_all();
    };
    thread::scope(|scope| {
        for (channel, ended) in channels.iter().zip(ended) {
            scope.spawn(move || {
                let done = |_: &CoreChannel<'_, _>| ended.load(Ordering::SeqCst) == 1;
                assert_eq!(poll_until(channel, Timeout::us(LONG_US), done), Ok(true));
            });
        }
        while bell.inside.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        for index in [1, 0, 2] {
            thread::sleep(Duration::from_millis(20));
            ring(index);
        }
    });
    assert!(begin.elapsed() < Duration::from_secs(30), "nobody waited to the end: {:?}", begin.elapsed());
    // With nobody else there, a wait ends on time.
    let begin = Instant::now();
    assert_eq!(poll_until(&channels[0], Timeout::ms(20), |_| false), Ok(false));
    assert!((Duration::from_millis(20)..Duration::from_secs(10)).contains(&begin.elapsed()));
    // So it does while a sibling has the interrupt for longer.
    ended[1].store(0, Ordering::SeqCst);
    thread::scope(|scope| {
        let done = |_: &CoreChannel<'_, _>| ended[1].load(Ordering::SeqCst) == 1;
        let long = scope.spawn(move || poll_until(&channels[1], Timeout::us(LONG_US), done));
        while bell.inside.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        let begin = Instant::now();
        assert_eq!(poll_until(&channels[0], Timeout::ms(20), |_| false), Ok(false));
        assert!((Duration::from_millis(20)..Duration::from_secs(10)).contains(&begin.elapsed()));
        // A reset wakes who sleeps beside the interrupt.
        let beside = scope.spawn(|| {
            let begin = Instant::now();
            let epoch = channels[2].reset_epoch();
            assert_eq!(poll_until(&channels[2], Timeout::us(LONG_US), |channel| channel.reset_epoch() != epoch), Ok(true));
            begin.elapsed()
        });
        thread::sleep(Duration::from_millis(20));
        core.reset(|_| Ok(())).unwrap();
        assert!(beside.join().unwrap() < Duration::from_secs(30));
        ring(1);
        assert_eq!(long.join().unwrap(), Ok(true));
    });
}
