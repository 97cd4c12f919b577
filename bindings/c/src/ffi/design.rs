#![allow(unsafe_code, reason = "functions that C calls")]
//! A block design from its `.hwh`: the names, drivers and ports of its cores.

use super::raw::{self, Versioned};
use crate::fault::{ArgumentError, Fault};
use crate::handles::contigo_port;
use crate::last_error::call;
use crate::object::PORTS;
use crate::status::contigo_status;
use contigo::design::{Core, Design, Reaches, Wired};
use core::ffi::c_char;
use core::fmt::Write as _;
use core::mem;

/// How many interrupts of a core `contigo_core_info` has room for.
pub const CONTIGO_CORE_INTERRUPTS: usize = 16;

/// A core of a block design. Its texts end with NUL, and are empty where there is nothing to say.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct contigo_core_info {
    /// `sizeof(contigo_core_info)`.
    pub struct_size: usize,
    /// Where its first window of registers is; 0 where the processor sees none.
    pub address: u64,
    /// How many bytes that window has.
    pub window_bytes: u64,
    /// How many bytes of memory its driver needs for itself.
    pub memory_bytes: u64,
    /// How many bits of data the port to memory has that its first master uses; 0: none.
    pub port_bits: u32,
    /// How many interrupts it has; of more than `CONTIGO_CORE_INTERRUPTS` a core is refused.
    pub interrupts: u32,
    /// The number of each in a device tree (a shared interrupt of the GIC); 0: it does not reach
    /// the processor, or through a controller in the fabric.
    pub interrupt: [u32; CONTIGO_CORE_INTERRUPTS],
    /// Its name in the hierarchy: `video/axi_vdma`.
    pub name: [c_char; 128],
    /// Its driver, for `contigo_engine_options`.
    pub driver: [c_char; 32],
    /// Its device, for `contigo_device_open`, where `contigo overlay` wrote its node.
    pub device: [c_char; 64],
    /// Its driver's settings, from the design.
    pub settings: [c_char; 256],
}

// SAFETY: integers only, `struct_size` first.
unsafe impl Versioned for contigo_core_info {
    const NAME: &'static str = "contigo_core_info";
    const LEAST: usize = mem::size_of::<Self>();
}

/// Fills `info` with the core called `name` of a block design: the bytes of Vivado's `.hwh`, which
/// are not kept. In a hierarchy its name has `_` or `/`. `CONTIGO_E_BAD_MAP`: the file is none, or
/// at odds with itself, and the text has the line; or it has no such core.
///
/// # Safety
/// `hwh` points to `hwh_bytes` bytes; `name` is NUL-terminated; `info` points to a structure whose
/// `struct_size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_design_core(
    hwh: *const u8,
    hwh_bytes: usize,
    name: *const c_char,
    info: *mut contigo_core_info,
) -> contigo_status {
    call(|| {
        // SAFETY: the caller's promise.
        let (design, name) = unsafe { (read(hwh, hwh_bytes)?, raw::text(name, "name")?) };
        let value = described(&design.core(name)?)?;
        // SAFETY: the caller's promise.
        unsafe { raw::fill(info, &value) }
    })
}

/// The port that the core called `name` reaches memory by, with what it reaches there and whether
/// it snoops for this core. Close it with `contigo_port_close`. `CONTIGO_E_BAD_MAP`: the core
/// reaches no memory, or the file does not tell whether the port snoops.
///
/// # Safety
/// As `contigo_design_core`; `port` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_design_port(
    hwh: *const u8,
    hwh_bytes: usize,
    name: *const c_char,
    port: *mut contigo_port,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe {
        raw::opened(port, "port", || {
            let (design, name) = (read(hwh, hwh_bytes)?, raw::text(name, "name")?);
            Ok(PORTS.insert(design.core(name)?.port()?)?)
        })
    }
}

/// The design in a `.hwh`.
///
/// # Safety
/// As `raw::bytes`.
unsafe fn read<'a>(hwh: *const u8, hwh_bytes: usize) -> Result<Design<'a>, Fault> {
    // SAFETY: the caller's promise.
    Ok(Design::read(unsafe { raw::bytes(hwh, hwh_bytes, "hwh")? })?)
}

fn described(core: &Core<'_, '_>) -> Result<contigo_core_info, Fault> {
    let (windows, interrupts) = (core.windows()?, core.interrupts()?);
    let port_bits = core.masters()?.iter().find_map(|master| match master.reaches {
        Reaches::Memory { data_bits, .. } => Some(data_bits),
        _ => None,
    });
    let (first, driver) = (windows.first(), contigo::names::driver_of(core));
    let mut info = contigo_core_info {
        struct_size: 0,
        address: first.map_or(0, |window| window.address),
        window_bytes: first.map_or(0, |window| window.len_bytes),
        memory_bytes: driver.map_or(0, |row| row.memory_bytes as u64),
        port_bits: port_bits.unwrap_or(0),
        interrupts: u32::try_from(interrupts.len()).unwrap_or(u32::MAX),
        interrupt: [0; CONTIGO_CORE_INTERRUPTS],
        name: [0; 128],
        driver: [0; 32],
        device: [0; 64],
        settings: [0; 256],
    };
    for (place, interrupt) in info.interrupt.iter_mut().zip(&interrupts) {
        if let Wired::Processor { line } = interrupt.wired {
            *place = core.soc().shared_interrupt(line).unwrap_or(0).into();
        }
    }
    keep(&mut info.name, core.path(), "the core's name")?;
    keep(&mut info.driver, driver.map_or("", |row| row.name), "the driver's name")?;
    keep(&mut info.settings, &contigo::names::settings_of(core)?, "the settings")?;
    if let Ok(device) = contigo::names::device_of(core) {
        let mut text = heapless::String::<63>::new();
        let refusal = ArgumentError::Text { what: "the device's name", max_bytes: 63 };
        write!(text, "{device}").map_err(|_| refusal)?;
        keep(&mut info.device, &text, "the device's name")?;
    }
    Ok(info)
}

/// A text with a NUL behind it.
fn keep(room: &mut [c_char], text: &str, what: &'static str) -> Result<(), ArgumentError> {
    if text.len() >= room.len() {
        return Err(ArgumentError::Text { what, max_bytes: room.len() - 1 });
    }
    raw::put_text(room, text);
    Ok(())
}
