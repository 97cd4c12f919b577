//! Channels that share a core: claims, the lock, the interrupt and the reset, on a core of two
//! channels that is as unpleasant as such cores are.

mod bell;
mod channels;

use crate::prelude::*;
use contigo::OperandSpec;
use contigo::hw::mmio::{ReadOnly, ReadWrite, Register};
use contigo::hw::{poll_every, poll_until};
use contigo::job::{Core, CoreChannel, exactly};
use std::thread;

const WAIT: Duration = Duration::from_millis(50);

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

// SAFETY: a channel touches what its registers say, and only while its status reports it at work.
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
            (index @ 0..2, 3) => {
                u32::from(self.ends_at_ns[index].is_some()) | u32::from(self.raised[index]) << 1
            }
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
                self.ends_at_ns[index] =
                    Some(bus.now_ns() + 1_000 + u64::from(self.registers[index][2]));
            }
            (_, 2) => *self = Self { wrong: self.wrong, ..Self::default() },
            _ => {}
        }
    }

    fn irq_at_ns(&self) -> Option<u64> {
        if self.raised != [false; 2] {
            Some(0)
        } else {
            self.ends_at_ns.into_iter().flatten().min()
        }
    }

    fn reset(&mut self) {
        *self = Self::default();
    }
}

/// One channel's driver, by the rules of [`Core`].
struct Copier<D: Device> {
    channel: CoreChannel<D>,
    epoch: u32,
}

/// # Safety
/// The core is a [`Twin`], and only drivers of this kind drive its channels.
unsafe fn copier<D: Device>(core: &Core<D>, index: usize) -> Result<Copier<D>> {
    // SAFETY: the registers of a channel, which no other code writes; the others are written under
    // the lock.
    Ok(Copier { channel: unsafe { core.channel(index, WINDOW[index].clone())? }, epoch: 0 })
}

// SAFETY: a channel reads `LEN` bytes and writes as many, which `check` found to fit, and is not at
// work when all of them have arrived.
unsafe impl<D: Device> Driver for Copier<D> {
    fn name(&self) -> &'static str {
        "twin"
    }
    contigo::forward!(|this| this.channel => port, simulated);
    fn addr_bits(&self) -> u32 {
        32
    }
    fn operands(&self) -> &[OperandSpec] {
        const { &[OperandSpec::to_device(), OperandSpec::from_device()] }
    }
    fn check(&self, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        let [from, to] = exactly(operands)?;
        assert_eq!(from.len_bytes, to.len_bytes);
        Ok(())
    }
    unsafe fn submit(&mut self, _slot: usize, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        let [from, to] = exactly(operands)?;
        self.epoch = self.channel.reset_epoch();
        // SAFETY: both operands were handed over.
        unsafe {
            SRC.write(&self.channel, from.addr.0 as u32);
            DST.write(&self.channel, to.addr.0 as u32);
            LEN.write(&self.channel, from.len_bytes as u32);
            let _lock = self.channel.lock()?;
            let both = self.channel.core().device();
            SELECT.write(both, self.channel.index() as u32);
            thread::yield_now(); // here a sibling's would come, if it could
            GO.write(both, 1);
        }
        Ok(())
    }
    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
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
        let idle = poll_every(&self.channel, 50, Duration::from_millis(10), |channel| {
            STATUS.read(channel) & 1 == 0
        })?;
        // SAFETY: it moves no data.
        unsafe { STATUS.write(&self.channel, 2) };
        if idle {
            Ok(())
        } else {
            Err(Error::WillNotStop { device: "twin", status: 1, waited_us: 10_000 })
        }
    }
}

/// A core of a board.
fn core(board: &SimBoard) -> Core<SimWindow<Twin>> {
    let device = SimDevice::with_model(board, board.port(), Twin::default());
    Core::new(device.window().unwrap()).unwrap()
}

/// One channel's driver of a simulated core.
fn on(core: &Core<SimWindow<Twin>>, index: usize) -> Copier<SimWindow<Twin>> {
    // SAFETY: the window belongs to a `Twin`, and this file has no other driver of it.
    unsafe { copier(core, index) }.unwrap()
}

/// `count` copies; each byte is compared.
fn right<D: Device>(driver: Copier<D>, pool: &Pool, count: u64) {
    let index = driver.channel.index() as u8;
    let mut queue = Queue::new(driver, 1).unwrap();
    for job in 0..count {
        let byte = job as u8 ^ index << 7;
        let operands = [filled(pool, byte).to_device(..100), filled(pool, 0).from_device(..100)];
        let [_, to] = queue.run(operands, &[], WAIT).unwrap().buffers;
        let seen = to.view_at::<u8>(..100).unwrap();
        assert_eq!(seen, [byte; 100], "job {job} of channel {index}");
    }
}
