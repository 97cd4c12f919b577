#![allow(unsafe_code, reason = "functions that C calls")]
//! Registers of a device that a program drives itself.

use super::raw::{self, flag};
use crate::fault::Misuse;
use crate::handles::{contigo_device, contigo_port, contigo_registers};
use crate::last_error::call;
use crate::object::device::{Attached, REGISTERS};
use crate::status::contigo_status;
use contigo::hw::poll_until;
use contigo::names::Attach;
use contigo::{Error, Mmio, Wait};
use std::time::Duration;

/// It keeps the bits that are written, and reading changes nothing.
pub const CONTIGO_READ_WRITE: u32 = 0;
/// It is not written.
pub const CONTIGO_READ_ONLY: u32 = 1;
/// Reading clears its bits.
pub const CONTIGO_READ_CLEARS: u32 = 2;
/// A bit that is written as 1 is cleared.
pub const CONTIGO_WRITE_1_CLEARS: u32 = 3;

/// A register of 32 bits, as the device's manual has it: write it down once, as a constant.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct contigo_register {
    /// From the window's first byte; a multiple of 4.
    pub offset_bytes: u32,
    /// `CONTIGO_READ_WRITE`, `CONTIGO_READ_ONLY`...
    pub access: u32,
}

/// Takes the registers and the interrupt of a device, for a program that drives it itself. `window`
/// is the number of the window: a PCI function's BAR, an entry of a contigo device's node's `reg`,
/// and 0 for others. A `polled` of 1 leaves the interrupt out. One engine or one program has them
/// at a time. Close them with `contigo_registers_close`.
///
/// `port` is the device's way to memory where only the program knows it; 0 where the kernel says
/// it, or the simulated board.
///
/// # Safety
/// `registers` is writable. In this bitstream, on this board, the device reaches memory through
/// `port` and no other way, and no other code drives it. The library cannot check that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_device_attach(
    device: contigo_device,
    port: contigo_port,
    window: u32,
    polled: u32,
    registers: *mut contigo_registers,
) -> contigo_status {
    let attach = || {
        let window = raw::window(window, "window")?;
        let how = Attach { window, interrupt: !flag(polled, "polled")? };
        // SAFETY: the caller's promise.
        unsafe { Attached::open(device, port, how) }
    };
    // SAFETY: the caller's promise.
    unsafe { raw::opened(registers, "registers", attach) }
}

/// Reads a register; all ones outside of the window, as an absent device answers.
///
/// # Safety
/// `value` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_registers_read(
    registers: contigo_registers,
    reg: contigo_register,
    value: *mut u32,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe {
        raw::answer(value, "value", || {
            REGISTERS
                .with(registers, |attached| Ok(attached.device.read32(reg.offset_bytes as usize)))
        })
    }
}

/// Writes a register; outside of the window nothing happens. `CONTIGO_E_KIND`: it is read-only.
///
/// # Safety
/// With this value the device touches only memory that was handed to it (`contigo_buf_give`, or a
/// job). An address and a doorbell make it read and write there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_registers_write(
    registers: contigo_registers,
    reg: contigo_register,
    value: u32,
) -> contigo_status {
    call(|| {
        if reg.access == CONTIGO_READ_ONLY {
            return Err(
                Misuse::Register { offset_bytes: reg.offset_bytes, why: "is read-only" }.into()
            );
        }
        REGISTERS.with(registers, |attached| {
            // SAFETY: the caller's promise.
            unsafe { attached.device.write32(reg.offset_bytes as usize, value) };
            Ok(())
        })
    })
}

/// Waits until the bits `mask` of a register are `value`, at most `timeout_us`: by the interrupt
/// where there is one, and by looking. `seen`, which may be NULL, gets the last value of the
/// register. Where reading clears the register, `seen` gets all bits that any look saw, and the
/// call compares these bits.
///
/// `CONTIGO_E_TIMEOUT`: the bits are not `value` yet. Nothing was stopped.
///
/// # Safety
/// `seen` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_registers_wait_until(
    registers: contigo_registers,
    reg: contigo_register,
    mask: u32,
    value: u32,
    timeout_us: u32,
    seen: *mut u32,
) -> contigo_status {
    let mut last = 0;
    let status = call(|| {
        REGISTERS.with(registers, |attached| {
            let met =
                poll_until(&attached.device, Duration::from_micros(timeout_us.into()), |device| {
                    let now = device.read32(reg.offset_bytes as usize);
                    last = if reg.access == CONTIGO_READ_CLEARS { last | now } else { now };
                    last & mask == value
                })?;
            if met { Ok(()) } else { Err(Error::Timeout { timeout_us }.into()) }
        })
    });
    if !seen.is_null() {
        // SAFETY: not null, and the caller's promise.
        unsafe { seen.write_unaligned(last) };
    }
    status
}

/// Waits for the interrupt, at most `timeout_us`; without one it is a short pause. It may end
/// early: look at the device after it.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_registers_wait(
    registers: contigo_registers,
    timeout_us: u32,
) -> contigo_status {
    call(|| {
        REGISTERS.with(registers, |attached| {
            let timeout_us = contigo::types::timeout_us(Duration::from_micros(timeout_us.into()))?;
            Ok(attached.device.wait_at_most(timeout_us)?)
        })
    })
}

/// Gives the registers back; the next program or engine may have them.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_registers_close(registers: contigo_registers) -> contigo_status {
    call(|| Ok(REGISTERS.close(registers)?))
}
