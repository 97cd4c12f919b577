#![allow(unsafe_code, reason = "an accelerator that lies can write anywhere: implementing it is a promise")]
//! All that a driver author writes.

use super::QuiesceProgram;
use crate::{
    mem::{DevSlice, Port},
    types::{Direction, Error, Timeout},
};

/// The registers of one accelerator whose jobs have `BUFFERS` operands, 1 to 16. This is all that a
/// driver author writes. The engine handles ownership, caches, reach, time limits and recovery.
///
/// A driver and a model of the core that it drives, on one page: an engine that copies `len` bytes and XORs them with a key.
///
/// ```
/// # #[cfg(all(feature = "sim", feature = "linux"))] {
/// use contigo::{Accelerator, Align, DevAddr, DevSlice, Device, Direction, Engine, Error, Pool, Port, Region, Result, Timeout, poll_until};
/// use contigo::mmio::{Pointer, ReadClears, ReadWrite, Register};
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
///     /// The window is this core's, and nobody else drives it while this value lives.
///     unsafe fn open(device: D) -> Self { Self(device) }
/// }
/// impl<'d> Xor<SimWindow<'d, Core>> {
///     /// As `open`, and safe: the type of the window says what is behind it.
///     fn open_simulated(window: SimWindow<'d, Core>) -> Self {
///         // SAFETY: the model is this core, and has one window at a time.
///         unsafe { Self::open(window) }
///     }
/// }
///
/// // SAFETY: the core reads `LEN` bytes at `SRC`, writes as many at `DST`, and nothing else; it is done and idle after its last
/// // write was answered. The port is the device's.
/// unsafe impl<D: Device> Accelerator<2> for Xor<D> {
///     type Args = u8; // the key
///     const NAME: &'static str = "xor";
///     const ADDR_BITS: u32 = 64;
///     const DIRECTIONS: [Direction; 2] = [Direction::ToDevice, Direction::FromDevice];
///     fn port(&self) -> &Port { self.0.port() }
///     fn check(&self, [from, to]: &[DevSlice; 2], _key: &u8) -> Result<()> {
///         let (need_bytes, have_bytes) = (from.len_bytes as u64, to.len_bytes);
///         if to.len_bytes < from.len_bytes { Err(Error::BufferSize { index: 1, need_bytes, have_bytes }) } else { Ok(()) }
///     }
///     unsafe fn start(&mut self, [from, to]: &[DevSlice; 2], key: &u8) -> Result<()> {
///         // SAFETY: both operands were handed over, and `check` found the second large enough.
///         unsafe {
///             SRC.write(&self.0, from.addr);
///             DST.write(&self.0, to.addr);
///             LEN.write(&self.0, from.len_bytes as u32);
///             KEY.write(&self.0, u32::from(*key));
///             CTRL.write(&self.0, 1);
///         }
///         Ok(())
///     }
///     fn poll(&mut self, timeout: Timeout) -> Result<bool> {
///         // All ones is what a device that is gone answers.
///         poll_until(&mut self.0, timeout, |core| matches!(CTRL.read_and_clear(core), ctrl if ctrl & 2 != 0 && ctrl != u32::MAX))
///     }
///     fn quiesce(&mut self) -> Result<()> {
///         let mut status = 0; // this core cannot be aborted: wait for its end
///         let idle = poll_until(&mut self.0, Timeout::ms(1), |core| {
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
/// // SAFETY: it touches `len` bytes at `src` and `dst` while a job runs, and says so.
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
/// let pool = Pool::<4>::new(region.carve(4 * 1024, Align::LINE)?, 1024)?;
/// let core = SimDevice::with_model(&board, board.port(), Core::default());
/// let mut engine = Engine::new(Xor::open_simulated(core.window()?))?;
/// let mut input = pool.take()?;
/// input.view_mut::<u8>()?.fill(0x0F);
/// let [_, output] = engine.start([input.to_device(..100), pool.take()?.from_device(..100)], &0xFF)?.wait(Timeout::ms(5))?;
/// assert_eq!(output.view_at::<u8>(..100)?, [0xF0; 100]);
/// # Ok(()) }
/// # main().unwrap();
/// # }
/// ```
///
/// `examples/gemm8` is one in a crate of its own: four operands, an abort, and a device that
/// reports errors.
///
/// # Safety
/// Every method but [`start`](Self::start) is safe to call, in any order.
///
/// # Implementation safety
/// 1. After `start` the device touches no bytes but those of the operands, and writes only those whose direction says so.
/// 2. After `poll` has returned `Ok(true)`, or `quiesce` has returned `Ok(())`, it touches none of them, until the next
///    `start`. A write that is still under way in the interconnect counts as touching.
/// 3. `check` touches no register that starts anything.
/// 4. The device reaches memory through `port`, and no other way.
/// 5. The device is the one that this driver is for, and nobody else drives it while this value
///    lives. No register proves that, and [`Device`](crate::Device) does not say it. So a function
///    that makes a driver of any `Device` is unsafe and asks for it. A driver of a simulated device
///    is made safely, because the type of the window names the model.
/// 6. The steps of `quiesce_program` start nothing, whenever they are run; and where all of them are met, 2 holds.
pub unsafe trait Accelerator<const BUFFERS: usize> {
    /// What a job needs to know beside its operands.
    type Args;

    /// For messages.
    const NAME: &'static str;

    /// How many bits the narrowest register that holds a bus address has.
    const ADDR_BITS: u32;

    /// What the device does with each operand.
    const DIRECTIONS: [Direction; BUFFERS];

    /// The port that the device's bus master is wired to: usually what its [`Device`](crate::Device) says.
    fn port(&self) -> &Port;

    /// Are these operands and arguments what the hardware takes? Sizes, alignments, limits; no register is written.
    ///
    /// # Errors
    /// [`Error::BufferSize`], [`Error::BufferAlign`], [`Error::Argument`].
    fn check(&self, buffers: &[DevSlice; BUFFERS], args: &Self::Args) -> Result<(), Error>;

    /// Writes the registers and rings the doorbell.
    ///
    /// # Errors
    /// What keeps the device from starting; the engine stops it before anything is given back.
    ///
    /// # Safety
    /// `check` has passed for the same operands and arguments. The operands' bytes belong to the device alone from now until
    /// `poll` returns `Ok(true)` or `quiesce` returns `Ok(())`: they are mapped at their addresses on this device's port, and nobody
    /// holds a reference to them.
    unsafe fn start(&mut self, buffers: &[DevSlice; BUFFERS], args: &Self::Args) -> Result<(), Error>;

    /// Is the job done? Looks at least once, and waits at most for `timeout`. [`Timeout::NOW`] makes no system call.
    ///
    /// The engine asks between `start` and the first `Ok(true)`, error or
    /// [`quiesce`](Self::quiesce). Without a job, before the first and after the end of each, the
    /// answer means nothing: it may be `Ok(false)` after the whole timeout, `Ok(true)` or an error.
    /// It starts nothing then, and waits no longer than otherwise.
    ///
    /// # Errors
    /// [`Error::Fault`], [`Error::ShortTransfer`], or what the interrupt's file says. The engine stops the device then.
    fn poll(&mut self, timeout: Timeout) -> Result<bool, Error>;

    /// Stops the device, in bounded time, whatever it was doing.
    ///
    /// # Errors
    /// [`Error::WillNotStop`]: it may still touch the operands of its last job.
    fn quiesce(&mut self) -> Result<(), Error>;

    /// How to stop the device where nobody is left to call [`quiesce`](Self::quiesce): the same registers, as data, for
    /// `Engine::arm`. The default has no steps.
    fn quiesce_program(&self) -> QuiesceProgram {
        QuiesceProgram::NONE
    }
}
