#![allow(
    unsafe_code,
    reason = "a driver that lies can write anywhere: implementing it is a promise"
)]
//! The trait that a driver author implements.

use super::{Completion, OperandSpec, StopProgram};
use crate::mem::{DevSlice, Port};
use crate::types::{Error, Result};
use core::time::Duration;

/// One channel of one device, as data and registers. This is all that a driver author writes.
///
/// A driver says what its jobs look like ([`operands`](Self::operands), [`depth`](Self::depth)),
/// starts one ([`submit`](Self::submit)), reports one that ended ([`poll`](Self::poll)), and stops
/// the device. A [`Queue`](crate::Queue) runs its jobs, and handles ownership, caches, reach, time
/// limits and recovery. The trait has no types of its own, so C and Python can drive any
/// `&mut dyn Driver`.
///
/// A driver and a model of the core that it drives, on one page: a core that copies `len` bytes and
/// XORs them with a key.
///
/// ```
/// # #[cfg(feature = "linux")] {
/// use contigo::{Completion, DevAddr, Device, Driver, Error, OperandSpec, Queue, Region, Result, forward};
/// use contigo::{hw::poll_until, job::exactly, mem::DevSlice};
/// use core::time::Duration;
/// use contigo::hw::mmio::{Pointer, ReadClears, ReadWrite, Register};
/// use contigo::sim::{Model, SimBoard, SimBus, SimDevice, SimWindow};
///
/// // The register map, by UG1399: start is bit 0, done bit 1 (clears when read), idle bit 2.
/// const CTRL: Register<ReadClears> = Register::at(0x00);
/// const SRC: Pointer = Pointer::at(0x10);
/// const DST: Pointer = Pointer::at(0x1C);
/// const LEN: Register<ReadWrite> = Register::at(0x28);
/// const KEY: Register<ReadWrite> = Register::at(0x30);
///
/// struct Xor<D>(D);
///
/// impl<D: Device> Xor<D> {
///     /// # Safety
///     /// The window is this core's, and no other code drives it while this value lives.
///     unsafe fn open(device: D) -> Self { Self(device) }
/// }
/// impl<'d> Xor<SimWindow<Core>> {
///     /// As `open`, and safe: the type of the window says what is behind it.
///     fn open_simulated(window: SimWindow<Core>) -> Self {
///         // SAFETY: the model is this core, and has one window at a time.
///         unsafe { Self::open(window) }
///     }
/// }
///
/// // SAFETY: the core reads `LEN` bytes at `SRC`, writes as many at `DST`, and nothing else; it is done and idle after its last
/// // write was answered. The port is the device's.
/// unsafe impl<D: Device> Driver for Xor<D> {
///     fn name(&self) -> &'static str { "xor" }
///     forward!(|this| this.0 => port, simulated);
///     fn addr_bits(&self) -> u32 { 64 }
///     fn operands(&self) -> &[OperandSpec] { const { &[OperandSpec::to_device(), OperandSpec::from_device()] } }
///     fn check(&self, operands: &[DevSlice], _key: &[u32]) -> Result<()> {
///         let [from, to] = exactly(operands)?;
///         let (need_bytes, have_bytes) = (from.len_bytes as u64, to.len_bytes);
///         if to.len_bytes < from.len_bytes { Err(Error::BufferSize { index: 1, need_bytes, have_bytes }) } else { Ok(()) }
///     }
///     unsafe fn submit(&mut self, _slot: usize, operands: &[DevSlice], key: &[u32]) -> Result<()> {
///         let ([from, to], [key]) = (exactly(operands)?, exactly(key)?);
///         // SAFETY: both operands were handed over, and `check` found the second large enough.
///         unsafe {
///             SRC.write(&self.0, from.addr);
///             DST.write(&self.0, to.addr);
///             LEN.write(&self.0, from.len_bytes as u32);
///             KEY.write(&self.0, *key);
///             CTRL.write(&self.0, 1);
///         }
///         Ok(())
///     }
///     fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
///         // All ones is what a device that is gone answers.
///         let done = poll_until(&self.0, timeout, |core| matches!(CTRL.read_and_clear(core), ctrl if ctrl & 2 != 0 && ctrl != u32::MAX))?;
///         Ok(done.then_some(Completion::of(0)))
///     }
///     fn stop(&mut self) -> Result<()> {
///         let mut status = 0; // this core cannot be aborted: wait for its end
///         let idle = poll_until(&self.0, Duration::from_millis(1), |core| {
///             status = CTRL.read_and_clear(core);
///             status & 4 != 0 && status != u32::MAX
///         })?;
///         if idle { Ok(()) } else { Err(Error::WillNotStop { device: "xor", status, waited_us: 1_000 }) }
///     }
/// }
///
/// // The model, to run the driver before there is a bitstream.
/// #[derive(Default)]
/// struct Core { src: u64, dst: u64, len: u32, key: u8, ends_at_ns: Option<u64>, done: bool }
///
/// // SAFETY: it touches `len` bytes at `src` and `dst` while a job runs, and register 0 shows it.
/// unsafe impl Model for Core {
///     const WINDOW_BYTES: usize = 0x40;
///     fn advance(&mut self, bus: &mut SimBus<'_>) {
///         if self.ends_at_ns.is_some_and(|at| at <= bus.now_ns()) {
///             for i in 0..u64::from(self.len) {
///                 let mut byte = [0];
///                 let _ = bus.read(DevAddr(self.src + i), &mut byte);
///                 let _ = bus.write(DevAddr(self.dst + i), &[byte[0] ^ self.key]);
///             }
///             (self.ends_at_ns, self.done) = (None, true);
///         }
///     }
///     fn read32(&mut self, offset: usize, _: &mut SimBus<'_>) -> u32 {
///         if offset != 0 { return 0 }
///         u32::from(core::mem::take(&mut self.done)) << 1 | u32::from(self.ends_at_ns.is_none()) << 2
///     }
///     fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
///         let value64 = u64::from(value);
///         match offset {
///             0x00 => self.ends_at_ns = Some(bus.now_ns() + 1_000 + u64::from(self.len)),
///             0x10 => self.src = self.src >> 32 << 32 | value64,
///             0x14 => self.src = self.src & 0xFFFF_FFFF | value64 << 32,
///             0x1C => self.dst = self.dst >> 32 << 32 | value64,
///             0x20 => self.dst = self.dst & 0xFFFF_FFFF | value64 << 32,
///             0x28 => self.len = value,
///             0x30 => self.key = value as u8,
///             _ => {}
///         }
///     }
///     fn irq_at_ns(&self) -> Option<u64> { self.ends_at_ns }
///     fn reset(&mut self) { *self = Self::default() }
/// }
///
/// # fn main() -> Result<()> {
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let pool = region.pool(4, 1024)?;
/// let core = SimDevice::with_model(&board, board.port(), Core::default());
/// let mut queue = Queue::new(Xor::open_simulated(core.window()?), 1)?;
/// let mut input = pool.take()?;
/// input.view_mut::<u8>()?.fill(0x0F);
/// let operands = [input.to_device(..100), pool.take()?.from_device(..100)];
/// let [_, output] = queue.run(operands, &[0xFF], Duration::from_millis(5))?.buffers;
/// assert_eq!(output.view_at::<u8>(..100)?, [0xF0; 100]);
/// # Ok(()) }
/// # main().unwrap();
/// # }
/// ```
///
/// `runtime/drivers/src/axi_dma` has descriptors and several jobs in flight; `examples/gemm8` is a
/// driver in a crate of its own.
///
/// # Safety
/// For callers. Every method except [`submit`](Self::submit) and
/// [`submit_more`](Self::submit_more) is safe to call, at any time and in any order.
///
/// # Implementation safety
/// A job is in flight from `submit` or `submit_more` until `poll` reports its end, or `stop`
/// returns `Ok(())`.
/// 1. The device touches the bytes of jobs in flight and the driver's own memory, and nothing else.
///    It writes only operands whose [`OperandSpec`] declares it. A read may extend to the ends of
///    the bus words of an operand's first and last byte, as `word_bytes` there says.
/// 2. Once `poll` has returned a [`Completion`], the device touches none of that slot's bytes.
///    After `stop` has returned `Ok(())` it touches no bytes of any job, until the next `submit` or
///    `submit_more`: a `doorbell` starts nothing then. A write that is still under way in the
///    interconnect counts as touching. A completion is of the job submitted last in its slot:
///    submitting one discards an end that was not reported.
/// 3. If a completion has `bytes`, the device wrote no byte of that operand beyond them.
/// 4. `check` starts nothing. `poll` starts no job except those that were submitted and that the
///    device could not take yet.
/// 5. The device reaches memory through `port`, and no other way. Port, address width, operands and
///    depth never change.
/// 6. The device is the one that this driver is for, and no other code drives this channel while
///    this value lives. No register proves that, and [`Device`](crate::Device) does not promise it.
///    So a function that makes a driver of any `Device` is unsafe and requires it of its caller. A
///    driver of a simulated device is made safely, because the type of the window names the model.
/// 7. The steps of `stop_program` start nothing, whenever they run. If all of them are met, rule 2
///    holds.
/// 8. Every method ends in bounded time. `poll` ends soon after its timeout.
/// 9. Rules 1 to 3 hold also after a method has panicked.
///
/// Results depend on the rules below, but no safety rests on them; the caller defends itself if
/// they are broken:
/// 10. Each job's end is reported once. If [`in_order`](Self::in_order) returns true, the oldest
///     comes first.
/// 11. Jobs that ended before a fault are reported first, then `poll` returns the error.
/// 12. After `stop`, `poll` reports the jobs that had ended before it, and then none. The next
///     `submit` or `submit_more` names slot 0 and starts the device anew.
pub unsafe trait Driver {
    /// The core's name, for messages.
    fn name(&self) -> &'static str;

    /// The port that the device's bus master is wired to: usually that of its
    /// [`Device`](crate::Device).
    fn port(&self) -> &Port;

    /// The number of bits of the narrowest register that holds a bus address.
    fn addr_bits(&self) -> u32;

    /// The specification of each operand of a job, in their order: at most 16
    /// ([`MAX_OPERANDS`](crate::job::MAX_OPERANDS)). A driver's jobs may have none.
    fn operands(&self) -> &[OperandSpec];

    /// How many jobs the device takes at once, at least 1. Slots are `0..depth`. The default: 1.
    fn depth(&self) -> usize {
        1
    }

    /// Do jobs end in the order in which they were submitted? The default: yes.
    fn in_order(&self) -> bool {
        true
    }

    /// Checks whether the hardware takes these operands and argument words. It writes no register.
    /// The caller has compared the operands with [`operands`](Self::operands): count, direction,
    /// alignment and length.
    ///
    /// # Errors
    /// [`Error::BufferSize`], [`Error::BufferAlign`], [`Error::Argument`].
    fn check(&self, operands: &[DevSlice], args: &[u32]) -> Result<()>;

    /// Gives the device one job: writes registers or a descriptor, and rings the doorbell. Starts
    /// the device if it is stopped.
    ///
    /// # Errors
    /// Why the device does not take the job. The caller stops the device before it gives anything
    /// back.
    ///
    /// # Safety
    /// For callers:
    /// 1. `check` has passed for the same operands and arguments.
    /// 2. No job is in flight in `slot`, which is less than `depth`. If jobs end in order, slots go
    ///    in a circle of `depth`, and the first one after a `stop` is 0: a ring's descriptors
    ///    follow each other.
    /// 3. The operands' bytes belong to the device alone from now until `poll` reports this slot's
    ///    end or `stop` returns `Ok(())`: for ever, if neither happens. They are mapped at their
    ///    addresses on this device's port, and no reference to them exists.
    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], args: &[u32]) -> Result<()>;

    /// As [`submit`](Self::submit), for a job that others follow at once: the device may see it as
    /// late as at the next [`doorbell`](Self::doorbell) or `submit`. One of them comes before the
    /// next poll, unless [`stop`](Self::stop) comes first, also one that fails, or a method panics.
    /// The default submits it.
    ///
    /// # Errors
    /// As `submit`.
    ///
    /// # Safety
    /// As `submit`.
    unsafe fn submit_more(
        &mut self,
        slot: usize,
        operands: &[DevSlice],
        args: &[u32],
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.submit(slot, operands, args) }
    }

    /// Rings the doorbell for the jobs of [`submit_more`](Self::submit_more). If there are none, or
    /// the device was stopped since, it does nothing, as the default does.
    ///
    /// # Errors
    /// Why the device does not take them. The caller stops the device.
    fn doorbell(&mut self) -> Result<()> {
        Ok(())
    }

    /// Does [`submit_more`](Self::submit_more) leave a job's operands alone until the doorbell, and
    /// return them untouched if the device is stopped before? A queue then cleans the caches of a
    /// burst at the doorbell, by one call. A driver that forwards this forwards `submit_more` too.
    /// The default: no.
    fn waits_for_doorbell(&self) -> bool {
        false
    }

    /// Polls for the end of a job at least once, and waits at most for `timeout`: an hour, or less.
    /// A `timeout` of zero makes no system call. `None`: no job has ended, and all of them go on.
    ///
    /// With jobs in flight a poll that returns `None` accesses a register, because the time of a
    /// simulated board passes by accesses. A driver that reports an end some time after it saw it
    /// acknowledges a level interrupt at once: otherwise each wait for the rest of the time returns
    /// immediately. After a poll that returned `None`, or the end of the last job in flight, no
    /// interrupt of an end stays asserted: a program may sleep, and nothing polls an empty queue.
    ///
    /// If no job is in flight, it returns `None`, at once or after the timeout.
    ///
    /// # Errors
    /// The channel as a whole cannot go on: [`Error::Fault`], or the error of the interrupt's file.
    /// The caller then stops the device. A job that failed alone is a [`Completion`] whose `failed`
    /// says why. A longer `timeout` is [`Error::Argument`]; a queue refuses it first.
    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>>;

    /// Another end, after a `poll` that returned one, if the driver can see it without a register:
    /// in a descriptor. A queue behind a port that does not snoop asks for all of them, and makes
    /// their buffers ready for the CPU by one call. The rules for `poll` hold for it, too. The
    /// default: none.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    fn poll_again(&mut self) -> Result<Option<Completion>> {
        Ok(None)
    }

    /// Stops the device, in bounded time, whatever it was doing.
    ///
    /// # Errors
    /// [`Error::WillNotStop`]: it may still touch the operands of its jobs.
    fn stop(&mut self) -> Result<()>;

    /// How the kernel stops the device when the program that could call [`stop`](Self::stop) is
    /// gone: the same registers, as data, for `Queue::arm`. The default has no steps.
    fn stop_program(&self) -> StopProgram {
        StopProgram::NONE
    }

    /// Discards an interrupt that came before, enables the next one, and returns the file
    /// descriptor that poll(2) finds readable then: for an event loop. `None`, the default: this
    /// device has none, and a program must poll.
    ///
    /// # Errors
    /// The error of the interrupt's file.
    fn arm_irq(&self) -> Result<Option<i32>> {
        Ok(None)
    }

    /// How often the device found no job after it had been given one, an underrun: a stream's loss.
    /// `None`: the hardware does not tell, and a queue counts how often it saw itself empty.
    fn underruns(&self) -> Option<u64> {
        None
    }

    /// [`Device::simulated`](crate::Device::simulated) of its device, so that a simulated board
    /// blames the right job for accesses to memory that was not handed over. The default counts all
    /// devices of the operands' board together, and none for a job without operands.
    fn simulated(&self) -> Option<&dyn crate::mem::SimulatedDevice> {
        None
    }
}

/// Converts operands or argument words into an array of exactly `N`:
/// `let [from, to] = exactly(operands)?;`.
///
/// # Errors
/// [`Error::Argument`]: there are more or fewer.
#[inline]
pub fn exactly<T, const N: usize>(given: &[T]) -> Result<&[T; N]> {
    let (value, n) = (given.len() as u64, N as u64);
    given.try_into().map_err(|_| Error::Argument {
        name: "the count of operands, or of argument words,",
        value,
        min: n,
        max: n,
        multiple_of: 1,
    })
}

// SAFETY: every method forwards to the driver's own.
unsafe impl<D: Driver + ?Sized> Driver for &mut D {
    crate::types::forward::forward!(|this| **this =>
        name, port, simulated, addr_bits, operands, depth, in_order, check, submit,
        submit_more, waits_for_doorbell, doorbell, poll, poll_again, stop, stop_program, arm_irq,
        underruns
    );
}
