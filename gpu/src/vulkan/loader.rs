#![allow(unsafe_code, reason = "a library is loaded, and its functions are called")]
//! The loader, its one instance in this program, and the devices that were opened.

use super::{VulkanFacts, VulkanGpu, error::error, facts};
use ash::vk;
use contigo::{Error, Result, linux::same_process};
use spin::{Mutex, MutexGuard};
use std::{sync::OnceLock, thread, time::Duration};

/// Vulkan's library and this program's instance of it. Neither ever ends: the devices that it
/// opened stay open.
pub(super) struct Library {
    pub(super) instance: ash::Instance,
    /// The instance's functions are in it.
    _entry: ash::Entry,
}

/// How many devices are open at once: far more than a machine has.
const MOST: usize = 16;

static LIBRARY: OnceLock<Library> = OnceLock::new();
static OPEN: [OnceLock<VulkanGpu>; MOST] = [const { OnceLock::new() }; MOST];

/// Held while the library is loaded, and while devices are looked for and opened.
static OPENING: Mutex<()> = Mutex::new(());

/// How often the lock is tried, a millisecond apart: 30 seconds. A driver that is opened
/// compiles, and reads caches from disk.
const TRIES: u32 = 30_000;

/// # Errors
/// [`Error::Forked`]: a child's copy of the lock may be locked for ever, and a driver's threads
/// are the parent's. [`Error::Contended`].
fn opening() -> Result<MutexGuard<'static, ()>> {
    same_process()?;
    for _ in 0..TRIES {
        if let Some(guard) = OPENING.try_lock() {
            return Ok(guard);
        }
        thread::sleep(Duration::from_millis(1));
    }
    Err(Error::Contended { tries: TRIES })
}

impl Library {
    /// This program's, loaded at the first call. The caller holds [`OPENING`].
    fn get() -> Result<&'static Self> {
        if let Some(library) = LIBRARY.get() {
            return Ok(library);
        }
        const MISSING: Error = Error::NoLibrary {
            name: "libvulkan.so.1",
            fix: "install Vulkan's loader (libvulkan1) and the GPU's driver",
        };
        // SAFETY: the loader is the system's, and initialises itself; it is never unloaded, because
        // a static holds it.
        let entry = unsafe { ash::Entry::load() }.map_err(|_| MISSING)?;
        // SAFETY: the function takes nothing of ours.
        let version = unsafe { entry.try_enumerate_instance_version() };
        let version = version
            .map_err(|result| error("vkEnumerateInstanceVersion", result))?
            .unwrap_or(vk::API_VERSION_1_0);
        if version < vk::API_VERSION_1_1 {
            let (what, fix) =
                ("this loader has Vulkan 1.0", "install a loader that has Vulkan 1.1");
            return Err(Error::Unsupported { what, fix });
        }
        // The newest version whose functions and structures are used here.
        let application =
            vk::ApplicationInfo::default().engine_name(c"contigo").api_version(vk::API_VERSION_1_2);
        let create = vk::InstanceCreateInfo::default().application_info(&application);
        // SAFETY: the structures are whole, and live until the call returns.
        let instance = unsafe { entry.create_instance(&create, None) };
        let instance = instance.map_err(|result| error("vkCreateInstance", result))?;
        Ok(LIBRARY.get_or_init(|| Self { instance, _entry: entry }))
    }

    /// Its devices, in its order.
    fn devices(&self) -> Result<Vec<vk::PhysicalDevice>> {
        // SAFETY: the instance is never destroyed.
        unsafe { self.instance.enumerate_physical_devices() }
            .map_err(|result| error("vkEnumeratePhysicalDevices", result))
    }
}

/// How many devices there are.
pub(super) fn count() -> Result<u32> {
    let _opening = opening()?;
    let devices = Library::get()?.devices()?;
    Ok(u32::try_from(devices.len()).unwrap_or(u32::MAX))
}

/// The facts of each.
pub(super) fn list() -> Result<Vec<VulkanFacts>> {
    let _opening = opening()?;
    let library = Library::get()?;
    (0..)
        .zip(library.devices()?)
        .map(|(ordinal, device)| facts::ask(&library.instance, device, ordinal))
        .collect()
}

/// Device number `ordinal`, opened at the first call, and the same one at each later call.
pub(super) fn open(ordinal: u32) -> Result<&'static VulkanGpu> {
    let _opening = opening()?;
    let slot = usize::try_from(ordinal).ok().and_then(|slot| OPEN.get(slot));
    if let Some(known) = slot.and_then(OnceLock::get) {
        return Ok(known);
    }
    let library = Library::get()?;
    let devices = library.devices()?;
    let Some(max) = devices.len().checked_sub(1) else {
        return Err(Error::NotFound { what: "Vulkan device", among: 0.into() });
    };
    let (value, max) = (ordinal.into(), max as u64);
    let wrong = Error::Argument { name: "the GPU's ordinal", value, min: 0, max, multiple_of: 1 };
    let physical = usize::try_from(ordinal).ok().and_then(|at| devices.get(at)).ok_or(wrong)?;
    let facts = facts::ask(&library.instance, *physical, ordinal)?;
    let slot = slot.ok_or(Error::TooMany { what: "devices of Vulkan", most: MOST as u64 })?;
    let gpu = VulkanGpu::new(library, *physical, facts)?;
    Ok(slot.get_or_init(|| gpu))
}
