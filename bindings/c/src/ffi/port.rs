#![allow(unsafe_code, reason = "functions that C calls")]
//! Ports: how bus masters reach memory.

use super::raw::{self, Versioned, flag};
use crate::fault::{Fault, Misuse};
use crate::handles::{contigo_port, contigo_sim};
use crate::last_error::call;
use crate::object::{PORTS, SIMS, gpu};
use crate::status::contigo_status;
use contigo::{Bus, Port};
use contigo_objects::keep;
use core::ffi::c_char;
use core::mem;

/// A port of the program's own board.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct contigo_port_options {
    /// `sizeof(contigo_port_options)`.
    pub struct_size: usize,
    /// The name that errors print, 1 to `CONTIGO_MAX_NAME_BYTES` bytes. It is copied.
    pub name: *const c_char,
    /// The master adds it: bus address = physical address + `offset`.
    pub offset: u64,
    /// The first bus address that reaches memory.
    pub window_first: u64,
    /// The last bus address that reaches memory.
    pub window_last: u64,
    /// How many address lines the master drives: 1 to 64.
    pub addr_bits: u32,
    /// 1: it snoops the CPU's caches; 0: it does not.
    pub coherent: u32,
    /// The simulated board whose bus it is on; 0: the SoC's.
    pub sim: contigo_sim,
}

// SAFETY: integers and a pointer, `struct_size` first.
unsafe impl Versioned for contigo_port_options {
    const NAME: &'static str = "contigo_port_options";
    const LEAST: usize = mem::offset_of!(Self, sim);
}

/// The port of a known board that is called `name`: `zynq-hp0`, `zynq-acp`, `zynq-dmac`,
/// `cyclone-v-acp`... (`contigo boards` lists them). Close it with `contigo_port_close`.
/// `CONTIGO_E_NOT_FOUND`: no board has one.
///
/// `cuda:0`, `cuda:1`... are the ports of GPUs, and `cuda` is the port of the first one. Such a
/// name loads NVIDIA's driver and takes the GPU's primary context, which the CUDA runtime uses too.
/// Both stay until the program ends. `CONTIGO_E_NO_LIBRARY`: there is no driver.
/// `CONTIGO_E_SETTING`: the driver is too old. `CONTIGO_E_CUDA`: the driver refuses, as where there
/// is no GPU. `CONTIGO_E_ARGUMENT`: there are fewer GPUs.
///
/// `vulkan`, `vulkan:1`, `opencl`, `opencl:1`... are the ports of GPUs through these interfaces,
/// which stay open likewise. `CONTIGO_E_NO_LIBRARY`: there is no loader. `CONTIGO_E_NOT_FOUND`:
/// there is no GPU. `CONTIGO_E_GPU`: the driver refuses.
///
/// # Safety
/// `name` is NUL-terminated; `port` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_port_find(
    name: *const c_char,
    port: *mut contigo_port,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe {
        raw::opened(port, "port", || {
            let name = raw::text(name, "name")?;
            let found = match gpu::port(name)? {
                Some(port) => port,
                None => contigo_boards::port(name).ok_or(Misuse::NoPort)?,
            };
            Ok(PORTS.insert(found)?)
        })
    }
}

/// Makes a port of the program's own, with the numbers of the silicon's manual. Close it with
/// `contigo_port_close`. `CONTIGO_E_TABLE_FULL`: `CONTIGO_MAX_PORTS` are open, or the program has
/// used `CONTIGO_MAX_PORT_NAMES` different names so far, and this is a new one.
///
/// # Safety
/// `options` points to an initialised structure with a NUL-terminated name; `port` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_port_define(
    options: *const contigo_port_options,
    port: *mut contigo_port,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe {
        raw::opened(port, "port", || {
            let options = raw::read(options)?;
            let name = raw::text(options.name, "contigo_port_options.name")?;
            let contigo_port_options { offset, addr_bits, window_first, window_last, .. } = options;
            if !(1..=64).contains(&addr_bits) {
                return Err(Fault::range("addr_bits", addr_bits.into(), 1, 64));
            }
            if window_first > window_last {
                return Err(Fault::value("contigo_port_options.window_last", window_last));
            }
            let coherent = flag(options.coherent, "contigo_port_options.coherent")?;
            let bus = if options.sim == 0 { Bus::Soc } else { SIMS.lease(options.sim)?.bus() };
            let (name, window) = (keep(name)?, (window_first, window_last));
            Ok(PORTS.insert(Port { name, bus, offset, addr_bits, window, coherent })?)
        })
    }
}

/// Closes a port's handle. Each object that uses the port has a copy.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_port_close(port: contigo_port) -> contigo_status {
    call(|| Ok(PORTS.close(port)?))
}
