#![allow(unsafe_code, reason = "functions that C calls")]
//! Simulated boards.

use super::raw::{self, Versioned, flag};
use crate::handles::{contigo_device, contigo_port, contigo_sim};
use crate::last_error::call;
use crate::object::device::on_board;
use crate::object::{PORTS, SIMS};
use crate::status::contigo_status;
use contigo::sim::{Faults, SimBoard};
use core::ffi::c_char;
use core::mem;

/// The seed and the faults of a simulated board. Where all is zero except for `struct_size`,
/// nothing goes wrong.
///
/// Each fault strikes in so many of 1,000 jobs.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct contigo_sim_options {
    /// `sizeof(contigo_sim_options)`.
    pub struct_size: usize,
    /// The seed.
    pub seed: u64,
    /// The interrupt comes up to ten times as late as the result.
    pub late_irq: u16,
    /// The interrupt never comes; the status register is right.
    pub lost_irq: u16,
    /// The device ends with an error bit.
    pub error: u16,
    /// The device says that it is done, and wrote only a part.
    pub short_transfer: u16,
    /// The device hangs until its driver stops it.
    pub hang: u16,
    /// The device hangs and does not stop before `contigo_device_reset`.
    pub stuck: u16,
    /// 1, for a test that provokes it: jobs end well whose device touches bytes that were not
    /// handed over to it, or no memory at all. With 0 such a job ends with
    /// `CONTIGO_E_WRONG_ACCESS`, and its device has been stopped.
    pub allow_wrong_accesses: u32,
}

// SAFETY: integers only, `struct_size` first.
unsafe impl Versioned for contigo_sim_options {
    const NAME: &'static str = "contigo_sim_options";
    const LEAST: usize = mem::offset_of!(Self, late_irq);
}

/// Makes a simulated board. Close it with `contigo_sim_close`.
///
/// # Safety
/// `options` points to an initialised structure; `sim` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_sim_open(
    options: *const contigo_sim_options,
    sim: *mut contigo_sim,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe {
        raw::opened(sim, "sim", || {
            let contigo_sim_options {
                seed,
                late_irq,
                lost_irq,
                error,
                short_transfer,
                hang,
                stuck,
                allow_wrong_accesses,
                ..
            } = raw::read(options)?;
            let allow = flag(allow_wrong_accesses, "allow_wrong_accesses")?;
            let faults = Faults { late_irq, lost_irq, error, short: short_transfer, hang, stuck };
            let board = SimBoard::try_with(seed, faults)?;
            board.allow_wrong_accesses(allow)?;
            Ok(SIMS.insert(board)?)
        })
    }
}

/// Closes a simulated board. `CONTIGO_E_STILL_USED` while it has regions or devices.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_sim_close(sim: contigo_sim) -> contigo_status {
    call(|| Ok(SIMS.close(sim)?))
}

/// Answers a port of a simulated board, with 32 address bits and no offset. With `coherent` 0 it
/// does not snoop the CPU's caches, like Zynq's HP0; with 1 it does, like Zynq's ACP. Close it with
/// `contigo_port_close`.
///
/// # Safety
/// `port` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_sim_port(
    sim: contigo_sim,
    coherent: u32,
    port: *mut contigo_port,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe {
        raw::opened(port, "port", || {
            let (board, coherent) = (SIMS.lease(sim)?, flag(coherent, "coherent")?);
            Ok(PORTS.insert(if coherent { board.coherent_port() } else { board.port() })?)
        })
    }
}

/// Puts a device on the board: the model of the hardware that `driver` drives. Where no other port
/// is named, the device is at port 0, which does not snoop. Close it with `contigo_device_close`.
///
/// `CONTIGO_E_NOT_FOUND`: there is no such driver, or it has no model.
///
/// # Safety
/// `driver` is NUL-terminated; `device` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_sim_device(
    sim: contigo_sim,
    driver: *const c_char,
    device: *mut contigo_device,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe { raw::opened(device, "device", || on_board(sim, raw::text(driver, "driver")?)) }
}
