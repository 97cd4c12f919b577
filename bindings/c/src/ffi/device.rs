#![allow(unsafe_code, reason = "functions that C calls")]
//! Devices by their names: opening, reset, the list of this machine, and facts.

use super::raw::{self, Versioned};
use super::region;
use crate::fault::Fault;
use crate::handles::{contigo_device, contigo_port, contigo_region};
use crate::last_error::call;
use crate::object::device::{self, DEVICES};
use crate::object::region::contigo_region_options;
use crate::object::{PORTS, gpu, port_of};
use crate::status::contigo_status;
use contigo::names::{self, Entry, Inventory, NO_PORT};
use core::ffi::c_char;
use core::fmt::{self, Write as _};
use core::mem::{self, MaybeUninit};
use core::slice;

/// Opens a device by its name: `uio:axi_dma@40400000`, `contigo:f8003000`, `contigo:gemm8`,
/// `pci:0000:01:00.0`, `vfio:0000:01:00.0`, `sim:zdma`; a GPU for its memory: `vulkan`,
/// `opencl:1`. Close it with `contigo_device_close`.
///
/// `CONTIGO_E_BAD_NAME`: as `contigo_region_open`.
///
/// # Safety
/// `name` is NUL-terminated; `device` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_device_open(
    name: *const c_char,
    device: *mut contigo_device,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe { raw::opened(device, "device", || device::open(raw::text(name, "name")?.parse()?)) }
}

/// Closes a device. `CONTIGO_E_STILL_USED` while memory of it, its registers or an engine on it is
/// open.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_device_close(device: contigo_device) -> contigo_status {
    call(|| Ok(DEVICES.close(device)?))
}

/// Opens `len_bytes` of memory for a device: memory that belongs to it (`contigo`, `vfio:…`), a
/// dma-heap's block through its device node, or memory that belongs to no device. It is
/// `contigo_region_open_with` with `device`. Close it with `contigo_region_close`.
///
/// `CONTIGO_E_NEEDS_DEVICE`: the memory belongs to another device.
///
/// # Safety
/// `name` is NUL-terminated; `region` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_device_memory(
    device: contigo_device,
    name: *const c_char,
    len_bytes: usize,
    region: *mut contigo_region,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe {
        raw::opened(region, "region", || {
            // 0 is no device here.
            DEVICES.lease(device)?;
            region::open(
                raw::text(name, "name")?,
                &contigo_region_options { len_bytes, device, ..contigo_region_options::default() },
            )
        })
    }
}

/// Answers the device's way to memory: `port` as the kernel describes this device. With a `port` of
/// 0 the kernel or the simulated board must know it alone (`vfio:…`, `sim:…`, `cuda:…`). Close
/// `seen` with `contigo_port_close`.
///
/// `CONTIGO_E_UNSUPPORTED`: neither of them knows it; name the port.
///
/// # Safety
/// `seen` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_device_port(
    device: contigo_device,
    port: contigo_port,
    seen: *mut contigo_port,
) -> contigo_status {
    let find = || {
        let device = DEVICES.lease(device)?;
        let port = if port == 0 {
            device.port().ok_or(NO_PORT)?
        } else {
            device.seen_through(port_of(port)?)
        };
        Ok(PORTS.insert(port)?)
    };
    // SAFETY: the caller's promise.
    unsafe { raw::opened(seen, "seen", find) }
}

/// Resets a device from outside, also while an engine has it: the only thing that stops one that is
/// stuck. Then `contigo_queue_stop`, and the engine goes on. A contigo device does so by its reset
/// lines (`contigo:…`), VFIO by the function's reset, a simulated board by its own. A PCI function
/// masters the bus as before.
///
/// `CONTIGO_E_UNSUPPORTED`, or `CONTIGO_E_OS` with `EOPNOTSUPP`: the kernel has no way to.
///
/// # Safety
/// No thread calls an engine of it meanwhile, to start a job, to wait for one, or to look: some
/// drivers start jobs while they wait, and a thread that the reset holds between a job's addresses
/// and its start would start a job with cleared addresses. The library cannot check that. Engines
/// that share the device (the setting `channel`) may go on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_device_reset(device: contigo_device) -> contigo_status {
    call(|| {
        // SAFETY: the caller's promise.
        unsafe { DEVICES.lease(device)?.reset()? };
        Ok(())
    })
}

/// Lets a PCI function reach memory, once the program has stopped it; other devices may already.
/// One that the module has and that cannot be reset needs `contigo_engine_arm` before:
/// `CONTIGO_E_OS` with `EBUSY`.
///
/// # Safety
/// The device was stopped or reset since other code drove it. The library cannot check that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_device_enable_bus_master(
    device: contigo_device,
) -> contigo_status {
    call(|| {
        // SAFETY: the caller's promise.
        unsafe { DEVICES.lease(device)?.enable_bus_master()? };
        Ok(())
    })
}

/// Lists the memory and the devices of this machine, and the drivers of this library, one a line,
/// and says why the rest is missing. It reads files under `/sys` and opens no device.
///
/// A line has four fields with a tab between them. The first is `memory`, `device` or `driver`. The
/// second is the name, or the kind where there is no name. The third is `ready`, `blocked` or
/// `absent`. The last says why, and what to do about it; of a driver it says what the driver does.
///
/// `text` gets at most `capacity_bytes` bytes, the NUL at the end included. `len_bytes` gets the
/// length of the whole list without the NUL. Where that is `capacity_bytes` or more, the list in
/// `text` was cut.
///
/// # Safety
/// `text` points to `capacity_bytes` writable bytes, or is NULL with a capacity of 0; `len_bytes`
/// is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_inventory(
    text: *mut c_char,
    capacity_bytes: usize,
    len_bytes: *mut usize,
) -> contigo_status {
    let list = || {
        let room = match (text.is_null(), isize::try_from(capacity_bytes)) {
            (_, Ok(0)) => &mut [],
            (true, _) => return Err(Fault::null("text")),
            (false, Err(_)) => return Err(Fault::value("capacity_bytes", capacity_bytes as u64)),
            // SAFETY: not null, no larger than an object can be, and the caller's promise. The
            // caller's bytes are writable, and it need not have written them before.
            (false, Ok(_)) => unsafe {
                slice::from_raw_parts_mut(text.cast::<MaybeUninit<u8>>(), capacity_bytes)
            },
        };
        let mut lines = Lines { room, len_bytes: 0 };
        gpu::bring()?;
        let inventory = Inventory::here();
        inventory.memories().for_each(|entry| lines.entry("memory", &entry));
        inventory.devices().for_each(|entry| lines.entry("device", &entry));
        names::each_row(|row| {
            let _ = writeln!(lines, "driver\t{}\tready\t{}", row.name, row.help);
        });
        // The NUL.
        let at = lines.len_bytes.min(lines.room.len().saturating_sub(1));
        if let Some(last) = lines.room.get_mut(at) {
            last.write(0);
        }
        Ok(lines.len_bytes)
    };
    // SAFETY: the caller's promise.
    unsafe { raw::answer(len_bytes, "len_bytes", list) }
}

/// Text in a caller's room, as much as fits.
struct Lines<'t> {
    room: &'t mut [MaybeUninit<u8>],
    len_bytes: usize,
}

impl Lines<'_> {
    fn entry<N: fmt::Display>(&mut self, what: &str, entry: &Entry<N>) {
        let why = entry.why.unwrap_or("");
        // It never fails.
        let _ = match &entry.name {
            Some(name) => writeln!(
                self,
                "{what}\t{name}\t{}\t{why}",
                if why.is_empty() { "ready" } else { "blocked" }
            ),
            None => writeln!(self, "{what}\t{}\tabsent\t{why}", entry.kind),
        };
    }
}

impl fmt::Write for Lines<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if let Some(place) = self.room.get_mut(self.len_bytes) {
                place.write(byte);
            }
            self.len_bytes += 1;
        }
        Ok(())
    }
}

/// Facts about an opened device. Yes is 1, no 0. Where `is_contigo_device` is 0 the kernel module
/// says nothing of the device, and every fact up to `window_len_bytes` is 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct contigo_device_info {
    /// `sizeof(contigo_device_info)`.
    pub struct_size: usize,
    /// It was opened as `contigo:…`: the kernel module stops it when the program ends.
    pub is_contigo_device: u32,
    /// The device snoops the CPU's caches.
    pub is_coherent: u32,
    /// Its bus addresses are not physical ones.
    pub is_translated: u32,
    /// It reaches memory that was imported for it, and nothing else: an IOMMU that forgets an
    /// address at once stands before this device alone.
    pub is_confined: u32,
    /// The kernel can reset it (`contigo_device_reset`), and does so when the program ends.
    pub can_reset: u32,
    /// The kernel has a program that stops it (`contigo_engine_arm`).
    pub is_armed: u32,
    /// How many interrupts it has.
    pub interrupts: u32,
    /// Blocks that this opening has allocated or imported.
    pub buffers: u32,
    /// Blocks in quarantine, because nothing has stopped the device.
    pub quarantined: u32,
    /// Always 0.
    pub reserved: u32,
    /// How long those are, in bytes.
    pub quarantined_bytes: u64,
    /// How many bytes each window of registers has; 0: there is none.
    pub window_len_bytes: [u64; 6],
    /// The name that a GPU's driver gives it, such as "llvmpipe (LLVM 15.0.6, 256 bits)", with a
    /// NUL, cut to fit; empty where the device is no GPU. On a machine with drivers for the CPU
    /// beside a GPU's it says which one `vulkan` or `opencl:1` means.
    pub gpu_name: [c_char; 128],
}

// SAFETY: integers only, `struct_size` first.
unsafe impl Versioned for contigo_device_info {
    const NAME: &'static str = "contigo_device_info";
    const LEAST: usize = mem::size_of::<Self>();
}

impl Default for contigo_device_info {
    fn default() -> Self {
        // SAFETY: integers only.
        unsafe { mem::zeroed() }
    }
}

/// Fills `info` with facts about a device. `CONTIGO_E_OS`: the kernel module does not answer.
///
/// # Safety
/// `info` points to a structure whose `struct_size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_device_get_info(
    device: contigo_device,
    info: *mut contigo_device_info,
) -> contigo_status {
    call(|| {
        let device = DEVICES.lease(device)?;
        let mut value = contigo_device_info::default();
        if let Some(dev_node) = device.dev_node() {
            let found = dev_node.info()?;
            value = contigo_device_info {
                is_contigo_device: 1,
                is_coherent: found.coherent.into(),
                is_translated: found.translated.into(),
                is_confined: found.confined.into(),
                can_reset: found.can_reset.into(),
                is_armed: found.armed.into(),
                interrupts: found.interrupts,
                buffers: found.buffers,
                quarantined: found.quarantined,
                quarantined_bytes: found.quarantined_bytes,
                window_len_bytes: found.window_len_bytes,
                ..value
            };
        }
        raw::put_text(&mut value.gpu_name, device.gpu_name().unwrap_or(""));
        // SAFETY: the caller's promise.
        unsafe { raw::fill(info, &value) }
    })
}
