//! A job whose simulated device touches what was not handed over has failed, in every way of
//! running jobs, and only that device's jobs have.

use crate::gemm::{LIMIT, region};
use contigo::design::kernel::{KernelMap, Protocol};
use contigo::drivers::ap_ctrl::ApCtrl;
use contigo::hw::mmio::{ReadOnly, ReadWrite, Register};
use contigo::hw::poll_until;
use contigo::job::Core;
use contigo::mem::{DevSlice, SimulatedDevice};
use contigo::names::{Attach, DeviceName};
use contigo::sim::ap_ctrl::ApCtrlModel;
use contigo::sim::{Model, SimBoard, SimBus, SimDevice, SimWindow};
use contigo::{
    Completion, DevAddr, Device, Driver, Error, Operand, OperandSpec, Pool, Port, Queue, Result,
    Stream,
};
use contigo_gemm8::{Gemm8, SimGemm8};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};
use std::{hint, thread};

const SLOT: usize = 256;
const DEPTH: usize = 4;

/// The ways of a job: its second argument.
const WRITES: u32 = 0;
const READS_BYTES: u32 = 1;
const READS_A_BEAT: u32 = 2;

const LEN: Register<ReadWrite> = Register::at(0x00);
const WAY: Register<ReadWrite> = Register::at(0x04);
const GO: Register<ReadWrite> = Register::at(0x08);
const STOP: Register<ReadWrite> = Register::at(0x0C);
const DONE: Register<ReadOnly> = Register::at(0x10);

/// A core that writes or reads as many bytes as its registers say, a microsecond a job.
#[derive(Default)]
struct Filler {
    len: u32,
    way: u32,
    done: u32,
    jobs: VecDeque<Ordered>,
    /// A stop says that it has stopped, and the jobs go on.
    stubborn: bool,
}

struct Ordered {
    addr: DevAddr,
    len: usize,
    way: u32,
    ends_at_ns: u64,
}

// SAFETY: it touches what it was told to; where that is too much, a test wants it, and the bytes
// are its region's.
unsafe impl Model for Filler {
    const WINDOW_BYTES: usize = 0x20;

    fn advance(&mut self, bus: &mut SimBus<'_>) {
        while self.jobs.front().is_some_and(|job| job.ends_at_ns <= bus.now_ns()) {
            let Some(job) = self.jobs.pop_front() else { break };
            let mut bytes = vec![7; job.len];
            let _ = match job.way {
                WRITES => bus.write(job.addr, &bytes),
                READS_BYTES => bus.read(job.addr, &mut bytes),
                _ => bus.read_beat(job.addr, &mut bytes),
            };
            self.done += 1;
        }
    }

    fn read32(&mut self, _: usize, _: &mut SimBus<'_>) -> u32 {
        self.done
    }

    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        match offset {
            0x00 => self.len = value,
            0x04 => self.way = value,
            0x08 => {
                let begins_at_ns = self.jobs.back().map_or(bus.now_ns(), |last| last.ends_at_ns);
                self.jobs.push_back(Ordered {
                    addr: DevAddr(value.into()),
                    len: self.len as usize,
                    way: self.way,
                    ends_at_ns: begins_at_ns + 1_000,
                });
            }
            _ if self.stubborn => {}
            _ => self.jobs.clear(),
        }
    }

    fn irq_at_ns(&self) -> Option<u64> {
        self.jobs.front().map(|job| job.ends_at_ns)
    }

    fn reset(&mut self) {
        *self = Self::default();
    }
}

/// Its driver, which believes its argument.
struct Fills<D> {
    device: D,
    /// It passes its device's number on.
    numbered: bool,
    /// In place of its device's.
    port: Option<Port>,
    told: u32,
    oldest: usize,
}

impl<D: Device> Fills<D> {
    fn new(device: D) -> Self {
        Self { device, numbered: true, port: None, told: 0, oldest: 0 }
    }
}

// SAFETY: it touches operands, and more where a test wants that.
unsafe impl<D: Device> Driver for Fills<D> {
    fn name(&self) -> &'static str {
        "filler"
    }
    fn port(&self) -> &Port {
        self.port.as_ref().unwrap_or_else(|| self.device.port())
    }
    fn simulated(&self) -> Option<&dyn SimulatedDevice> {
        self.device.simulated().filter(|_| self.numbered)
    }
    fn addr_bits(&self) -> u32 {
        32
    }
    fn operands(&self) -> &[OperandSpec] {
        const { &[OperandSpec::from_device()] }
    }
    fn depth(&self) -> usize {
        DEPTH
    }
    fn check(&self, _: &[DevSlice], _: &[u32]) -> Result<()> {
        Ok(())
    }
    unsafe fn submit(&mut self, _: usize, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        // SAFETY: as `Driver`.
        unsafe {
            LEN.write(&self.device, args[0]);
            WAY.write(&self.device, args[1]);
            GO.write(&self.device, (operands[0].addr.0 as u32).wrapping_add(args[2]));
        }
        Ok(())
    }
    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        let told = self.told;
        if !poll_until(&self.device, timeout, |device| DONE.read(device) != told)? {
            return Ok(None);
        }
        let slot = self.oldest;
        (self.told, self.oldest) = (self.told + 1, (slot + 1) % DEPTH);
        Ok(Some(Completion::of(slot)))
    }
    fn stop(&mut self) -> Result<()> {
        // SAFETY: it starts nothing.
        unsafe { STOP.write(&self.device, 1) };
        (self.told, self.oldest) = (DONE.read(&self.device), 0);
        Ok(())
    }
}

/// A board, and buffers of 256 bytes with as many free ones between them.
fn with_board<R>(act: impl FnOnce(&SimBoard, &Pool) -> R) -> R {
    let board = SimBoard::new(1);
    let pool = region(&board, 64 * 1024).pool(8, 2 * SLOT).unwrap();
    let answer = act(&board, &pool);
    assert_eq!(pool.taken(), 0, "no buffer is lost");
    answer
}

fn filler(board: &SimBoard) -> SimDevice<Filler> {
    SimDevice::new(board, board.port())
}

fn queue(device: &SimDevice<Filler>, jobs: usize) -> Queue<Fills<SimWindow<Filler>>> {
    Queue::new(Fills::new(device.window().unwrap()), jobs).unwrap()
}

fn one(pool: &Pool) -> [Operand; 1] {
    [pool.take().unwrap().from_device(..SLOT)]
}

/// One job, from beginning to end.
fn run(queue: &mut Queue<impl Driver>, pool: &Pool, args: [u32; 3]) -> Result<()> {
    queue.run(one(pool), &args, LIMIT).map(drop).map_err(|failed| {
        assert!(failed.buffers.is_some() && queue.is_empty(), "they come back: {failed}");
        assert_eq!(failed.error, failed.cause);
        failed.error
    })
}

const RIGHT: [u32; 3] = [256, 0, 0];
/// A line more than the operand.
const TOO_LONG: [u32; 3] = [320, 0, 0];
/// Where no memory is.
const ASTRAY: [u32; 3] = [256, 0, 0x4000_0000];

fn wrong(unowned: u64, stray: u64) -> Error {
    Error::WrongAccess { device: "filler", unowned, stray }
}

#[test]
fn a_run_fails_and_the_next_one_does_not() {
    with_board(|board, pool| {
        let mut queue = queue(&filler(board), 1);
        let mut run = |args| run(&mut queue, pool, args);
        assert_eq!(run(RIGHT), Ok(()));
        assert_eq!(run(TOO_LONG), Err(wrong(1, 0)));
        assert_eq!(run(RIGHT), Ok(()), "it is blamed once");
        assert_eq!(run(ASTRAY), Err(wrong(0, 1)));
        assert_eq!(run(RIGHT), Ok(()));
        board.allow_wrong_accesses(true).unwrap();
        assert_eq!(run(TOO_LONG), Ok(()), "a test provokes it");
        board.allow_wrong_accesses(false).unwrap();
        assert_eq!(run(RIGHT), Ok(()), "what was allowed is not counted later");
        let counts = board.counts();
        assert_eq!((counts.unowned_accesses, counts.stray_accesses), (2, 1), "all of them");
    });
}

#[test]
fn queue_stops_at_the_wrong_job() {
    with_board(|board, pool| {
        let device = filler(board);
        let mut queue = queue(&device, DEPTH);
        for args in [RIGHT, RIGHT, TOO_LONG, RIGHT] {
            queue.submit(one(pool), &args).unwrap();
        }
        for _ in 0..2 {
            assert!(queue.wait::<1>(LIMIT).unwrap().is_some(), "it ended before");
        }
        let failed = queue.wait::<1>(LIMIT).unwrap_err();
        assert_eq!((failed.error, failed.buffers.is_some()), (wrong(1, 0), false));
        let mut back = || queue.take_back::<1>().unwrap().map(|job| job.job);
        assert_eq!([back(), back(), back()], [Some(2), Some(3), None]);
        queue.submit(one(pool), &RIGHT).unwrap();
        assert!(queue.wait::<1>(LIMIT).unwrap().is_some(), "it goes on");
        // Looked at too late to know which of two it was: neither is believed.
        for args in [RIGHT, TOO_LONG] {
            queue.submit(one(pool), &args).unwrap();
        }
        device.run_for(100).unwrap();
        assert_eq!(queue.wait::<1>(LIMIT).unwrap_err().error, wrong(1, 0));
        assert!(queue.wait::<1>(LIMIT).unwrap().is_none());
        let mut back = || queue.take_back::<1>().unwrap().is_some();
        assert_eq!([back(), back(), back()], [true, true, false]);
    });
}

#[test]
fn a_stream_stops_at_a_frame_that_is_too_long() {
    with_board(|board, pool| {
        let device = filler(board);
        let stream = |args: &[u32; 3]| {
            let driver = Fills::new(device.window().unwrap());
            let mut stream = Stream::new(driver, pool.clone(), DEPTH, args).unwrap();
            stream.start().unwrap();
            stream
        };
        drop(stream(&RIGHT).next(LIMIT).unwrap().unwrap());
        let only = [(); 7].map(|()| pool.take().unwrap());
        let mut stream = stream(&[2 * SLOT as u32 + 64, 0, 0]);
        assert_eq!(stream.next(LIMIT).unwrap_err(), wrong(1, 0));
        drop(only);
    });
}

/// Two devices behind one port of a board: each answers for itself. Where their drivers do not pass
/// the number on, both are suspects.
#[test]
fn only_the_wrong_device_is_blamed() {
    let both = |numbered| {
        with_board(|board, pool| {
            let [mut right, mut wrong] = [(); 2].map(|()| {
                let driver = Fills { numbered, ..Fills::new(filler(board).window().unwrap()) };
                Queue::new(driver, 1).unwrap()
            });
            right.submit(one(pool), &RIGHT).unwrap();
            wrong.submit(one(pool), &TOO_LONG).unwrap();
            let [wrong, right] = [&mut wrong, &mut right]
                .map(|queue| queue.wait::<1>(LIMIT).err().map(|failed| failed.error));
            [right, wrong]
        })
    };
    assert_eq!(both(true), [None, Some(wrong(1, 0))]);
    assert_eq!(both(false), [Some(wrong(1, 0)); 2]);
}

/// A driver that passes no number on and names another port than its device's, as one in C can, is
/// counted with every device of the board.
#[test]
fn driver_with_own_port_does_not_escape() {
    with_board(|board, pool| {
        let device = filler(board);
        let port = Port { name: "mine", ..board.port() };
        let window = device.window().unwrap();
        let driver = Fills { port: Some(port), numbered: false, ..Fills::new(window) };
        let mut queue = Queue::new(driver, 1).unwrap();
        // No byte was given to its device's port.
        assert_eq!(run(&mut queue, pool, RIGHT), Err(wrong(1, 0)));
    });
}

/// A kernel of numbers gets two of them that another kernel takes for addresses.
#[test]
fn a_job_without_operands_fails_too() {
    let map = KernelMap::named("add", Protocol::Hs)
        .interrupt(true)
        .scalar("a", 0x18, 64)
        .scalar("b", 0x24, 64)
        .scalar("n", 0x30, 32);
    let map = map.build().unwrap();
    with_board(|board, _| {
        let device = SimDevice::with_model(board, board.port(), ApCtrlModel::copier_hs());
        // SAFETY: the map is another kernel's, and what the model touches is its region's.
        let driver = unsafe { ApCtrl::open(device.window().unwrap(), map) }.unwrap();
        let mut queue = Queue::new(driver, DEPTH).unwrap();
        for _ in 0..2 {
            queue.submit([], &[1, 0, 2, 0, 3]).unwrap();
            let failed = queue.wait_each(Duration::from_secs(1), |_, _, _| {}).unwrap_err();
            assert!(
                matches!(
                    failed.error,
                    Error::WrongAccess { device: "ap_ctrl", unowned: 0, stray: 1.. }
                ),
                "{failed}"
            );
            while queue.take_back_each(|_, _, _| {}).is_some() {}
        }
    });
}

/// A core of two channels.
#[derive(Default)]
struct Pair([Filler; 2]);

// SAFETY: as for `Filler`.
unsafe impl Model for Pair {
    const WINDOW_BYTES: usize = 2 * Filler::WINDOW_BYTES;
    fn advance(&mut self, bus: &mut SimBus<'_>) {
        self.0.iter_mut().for_each(|channel| channel.advance(bus));
    }
    fn read32(&mut self, offset: usize, bus: &mut SimBus<'_>) -> u32 {
        self.0[offset / Filler::WINDOW_BYTES].read32(offset % Filler::WINDOW_BYTES, bus)
    }
    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        self.0[offset / Filler::WINDOW_BYTES].write32(offset % Filler::WINDOW_BYTES, value, bus);
    }
    fn irq_at_ns(&self) -> Option<u64> {
        self.0.iter().filter_map(Model::irq_at_ns).min()
    }
    fn reset(&mut self) {
        self.0.iter_mut().for_each(Model::reset);
    }
}

/// The board cannot tell which channel was wrong: the jobs in flight of both fail, and none later.
#[test]
fn channel_fails_with_sibling_no_later_job() {
    with_board(|board, pool| {
        let device = SimDevice::<Pair>::new(board, board.port());
        let core = Core::new(device.window().unwrap()).unwrap();
        let mut queues = [0, 1].map(|n| {
            let from = n * Filler::WINDOW_BYTES;
            // SAFETY: the channels share no register.
            let channel = unsafe { core.channel(n, from..from + Filler::WINDOW_BYTES) }.unwrap();
            Queue::new(Fills::new(channel), DEPTH).unwrap()
        });
        for (queue, args) in queues.iter_mut().zip([RIGHT, TOO_LONG]) {
            queue.submit(one(pool), &args).unwrap();
        }
        device.run_for(100).unwrap();
        for queue in &mut queues {
            assert_eq!(queue.wait::<1>(LIMIT).map(drop).unwrap_err().error, wrong(1, 0));
            while queue.take_back::<1>().unwrap().is_some() {}
        }
        // One after the other: what a sibling did before a job began is not its own.
        for (n, args) in [(0, RIGHT), (1, RIGHT), (0, RIGHT), (1, TOO_LONG), (0, RIGHT), (1, RIGHT)]
        {
            queues[n].submit(one(pool), &args).unwrap();
            let ended = queues[n].wait::<1>(LIMIT).map(|done| done.is_some());
            let expected = if args == RIGHT { Ok(true) } else { Err(wrong(1, 0)) };
            assert_eq!(ended.map_err(|failed| failed.error), expected);
            while queues[n].take_back::<1>().unwrap().is_some() {}
        }
        assert_eq!(board.counts().unowned_accesses, 2);
    });
}

/// What a thread does with the board while a job ends.
static BUSY: AtomicU8 = AtomicU8::new(0);
const FREE: u8 = 0;
const WANTED: u8 = 1;
const HELD: u8 = 2;

/// Waits, and not longer than a test may.
fn wait_for(state: u8) {
    let begun = Instant::now();
    while BUSY.load(Ordering::Acquire) != state && begun.elapsed() < Duration::from_secs(20) {
        hint::spin_loop();
    }
}

/// A core whose work takes as long as the test wants, with the board held.
struct Holds;

// SAFETY: it touches no memory.
unsafe impl Model for Holds {
    const WINDOW_BYTES: usize = 4;
    fn advance(&mut self, _: &mut SimBus<'_>) {
        BUSY.store(HELD, Ordering::Release);
        wait_for(FREE);
    }
    fn read32(&mut self, _: usize, _: &mut SimBus<'_>) -> u32 {
        0
    }
    fn write32(&mut self, _: usize, _: u32, _: &mut SimBus<'_>) {}
    fn irq_at_ns(&self) -> Option<u64> {
        None
    }
    fn reset(&mut self) {}
}

/// Its poll has an end, and then the board belongs to another thread until the device is stopped.
struct Slow<D>(Fills<D>);

// SAFETY: every method is the driver's own.
unsafe impl<D: Device> Driver for Slow<D> {
    contigo::forward!(|this| this.0 => name, port, simulated, addr_bits, operands, depth, check,
        submit);
    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        let end = self.0.poll(timeout)?;
        if end.is_some() {
            BUSY.store(WANTED, Ordering::Release);
            wait_for(HELD);
        }
        Ok(end)
    }
    fn stop(&mut self) -> Result<()> {
        BUSY.store(FREE, Ordering::Release);
        self.0.stop()
    }
}

/// The board cannot say then whether the job is right.
#[test]
fn job_ending_while_the_board_is_held_fails() {
    with_board(|board, pool| {
        let holds = SimDevice::with_model(board, board.port(), Holds);
        let slow = Slow(Fills::new(filler(board).window().unwrap()));
        let mut queue = Queue::new(slow, 1).unwrap();
        thread::scope(|threads| {
            threads.spawn(|| {
                wait_for(WANTED);
                holds.run_for(1).unwrap();
            });
            let ended = run(&mut queue, pool, TOO_LONG);
            BUSY.store(FREE, Ordering::Release);
            assert!(matches!(ended, Err(Error::Contended { .. })), "{ended:?}");
        });
    });
    // A port that snoops: nothing but the hand-over needs the board.
    with_board(|board, pool| {
        let device = SimDevice::<Filler>::new(board, board.coherent_port());
        let mut queue = queue(&device, 1);
        queue.submit(one(pool), &RIGHT).unwrap();
        let [buf] = queue.wait_device(LIMIT).unwrap().unwrap().buffers;
        while_held(board, || {
            assert_eq!(board.counts().unowned_accesses, u64::MAX, "no number of accesses");
            drop(buf);
        });
        let ended = run(&mut queue, pool, RIGHT);
        // The board did not hear that no device has them.
        assert!(matches!(ended, Err(Error::Contended { .. })), "{ended:?}");
        assert_eq!(run(&mut queue, pool, RIGHT), Ok(()));
    });
    // One that does not: cache maintenance that has to wait too long is not done.
    with_board(|board, pool| {
        let mut queue = queue(&filler(board), 1);
        let operands = one(pool);
        let failed = while_held(board, || queue.submit(operands, &RIGHT).unwrap_err());
        assert!(matches!(failed.error, Error::Contended { tries: 1000.. }), "{failed}");
        drop(queue.run(failed.buffers.unwrap(), &RIGHT, LIMIT).unwrap());
    });
}

/// What `act` does while another thread has the board.
fn while_held<R>(board: &SimBoard, act: impl FnOnce() -> R) -> R {
    let holds = SimDevice::with_model(board, board.port(), Holds);
    BUSY.store(WANTED, Ordering::Release);
    thread::scope(|threads| {
        threads.spawn(|| holds.run_for(1).unwrap());
        wait_for(HELD);
        let done = act();
        BUSY.store(FREE, Ordering::Release);
        done
    })
}

#[test]
fn late_access_is_not_next_jobs_fault() {
    with_board(|board, pool| {
        let model = Filler { stubborn: true, ..Filler::default() };
        let device = SimDevice::with_model(board, board.port(), model);
        let mut queue = queue(&device, 1);
        queue.submit(one(pool), &RIGHT).unwrap();
        queue.clear().unwrap();
        device.run_for(100).unwrap();
        assert_eq!(board.counts().unowned_accesses, 1, "it said that it had stopped");
        queue.stop().unwrap();
        assert_eq!(run(&mut queue, pool, RIGHT), Ok(()));
    });
}

/// A length that is too long by any number of bytes is seen, also within the bus word of the last
/// byte: a master says which bytes it uses, or that it does not say.
#[test]
fn a_length_that_is_a_byte_too_long_is_wrong() {
    let run = |handed_over: usize, args: [u32; 3]| {
        with_board(|board, pool| {
            let operand = [pool.take().unwrap().from_device(..handed_over)];
            let ended = queue(&filler(board), 1).run(operand, &args, LIMIT).map(drop);
            let ended = ended.map_err(|failed| failed.error);
            (ended, board.counts().unowned_accesses)
        })
    };
    for handed_over in [32, 33] {
        let exact = u32::try_from(handed_over).unwrap();
        for way in [WRITES, READS_BYTES] {
            let wrong = (Err(wrong(1, 0)), 1);
            assert_eq!(run(handed_over, [exact, way, 0]), (Ok(()), 0));
            for more in 1..=16 {
                assert_eq!(run(handed_over, [exact + more, way, 0]), wrong, "{more} bytes, {way}");
                assert_eq!(run(handed_over, [more, way, exact]), wrong, "{more} alone, {way}");
            }
        }
    }
    assert_eq!(run(33, [16, READS_A_BEAT, 32]), (Ok(()), 0), "a beat with a byte of the operand");
    assert_eq!(run(32, [16, READS_A_BEAT, 32]), (Err(wrong(1, 0)), 1), "a beat with none");
}

/// Where a driver does not, its jobs fail for what another device did.
#[test]
fn drivers_pass_their_devices_number_on() {
    let board = SimBoard::new(1);
    let gemm8 = SimGemm8::new(&board, board.port());
    let driver = Gemm8::open_simulated(gemm8.window().unwrap()).unwrap();
    assert_eq!(driver.simulated().map(SimulatedDevice::number), Some(gemm8.number()));
}

/// A device by name has a number too, and so has a channel of it.
#[test]
fn a_device_by_name_answers_for_itself() {
    let [one, two] = [(); 2].map(|()| "sim:zdma".parse::<DeviceName>().unwrap().open().unwrap());
    let numbers = [&one, &two].map(|opening| {
        let device = opening.attach(Attach::default()).unwrap();
        let number = device.simulated().unwrap().number();
        let core = Core::new(device).unwrap();
        assert_eq!(
            // SAFETY: no code drives it.
            unsafe { core.channel(0, 0..4) }.unwrap().simulated().map(SimulatedDevice::number),
            Some(number)
        );
        number
    });
    assert_ne!(numbers[0], numbers[1]);
}
