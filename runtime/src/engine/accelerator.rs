#![allow(unsafe_code, reason = "an accelerator that lies can write anywhere: implementing it is a promise")]
//! All that a driver author writes.

use crate::{DevSlice, Direction, Error, Port, Timeout};

/// The registers of one accelerator whose jobs have `BUFFERS` operands. This is all that a driver author writes: ownership,
/// caches, reach, time limits and recovery are the engine's.
///
/// The driver of [`gemm8`](crate::accel::gemm8) is an example with four operands.
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
/// 5. Nobody else drives the device while this value lives.
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
    /// # Errors
    /// [`Error::Fault`], [`Error::ShortTransfer`], or what the interrupt's file says. The engine stops the device then.
    fn poll(&mut self, timeout: Timeout) -> Result<bool, Error>;

    /// Stops the device, in bounded time, whatever it was doing.
    ///
    /// # Errors
    /// [`Error::WillNotStop`]: it may still touch the operands of its last job.
    fn quiesce(&mut self) -> Result<(), Error>;
}
