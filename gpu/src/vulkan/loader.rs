#![allow(unsafe_code, reason = "a library is loaded, and its functions are called")]
//! The loader, its one instance in this program, and the devices that were opened.

use super::error::error;
use super::{VulkanFacts, VulkanGpu, facts};
use crate::common::Opened;
use ash::vk;
use contigo::linux::same_process;
use contigo::{Error, Result};
use spin::MutexGuard;
use std::sync::OnceLock;

/// Vulkan's library and this program's instance of it. Neither ever ends: the devices that it
/// opened stay open.
struct Library {
    instance: ash::Instance,
    /// The instance's functions are in it.
    _entry: ash::Entry,
}

static LIBRARY: OnceLock<Library> = OnceLock::new();
static OPENED: Opened<VulkanGpu> = Opened::none("devices of Vulkan");

/// The lock under which the library is loaded, and devices are listed and opened.
fn opening() -> Result<MutexGuard<'static, ()>> {
    same_process()?;
    OPENED.lock()
}

impl Library {
    /// This program's, loaded at the first call. The caller holds the lock of [`opening`].
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

impl VulkanGpu {
    /// Device number `ordinal`, in the loader's order. It is opened at the first call; later calls
    /// give the same one.
    ///
    /// # Errors
    /// - [`Error::NoLibrary`]: Vulkan's loader is not installed.
    /// - [`Error::NotFound`]: there is no device. [`Error::Argument`]: there are fewer.
    /// - [`Error::Unsupported`]: it has no queue that computes, or does not take the CPU's memory.
    /// - [`Error::Forked`]: this is a child of the process that opened one.
    /// - [`Error::Gpu`]: what the driver says. [`Error::TooMany`]. [`Error::Contended`]: another
    ///   thread has been opening one for 30 seconds.
    pub fn open(ordinal: u32) -> Result<&'static Self> {
        same_process()?;
        let find = || {
            let library = Library::get()?;
            let devices = library.devices()?;
            let Some(max) = devices.len().checked_sub(1) else {
                return Err(Error::NotFound { what: "Vulkan device", among: 0.into() });
            };
            let (name, value, max) = ("the GPU's ordinal", ordinal.into(), max as u64);
            let wrong = Error::Argument { name, value, min: 0, max, multiple_of: 1 };
            let at = usize::try_from(ordinal).ok();
            let physical = *at.and_then(|at| devices.get(at)).ok_or(wrong)?;
            Ok((library, physical, facts::ask(&library.instance, physical, ordinal)?))
        };
        OPENED.get_or_open(ordinal, find, |(library, physical, facts)| {
            Self::new(&library.instance, physical, facts)
        })
    }

    /// How many Vulkan devices there are. Those that cannot share memory count too.
    ///
    /// # Errors
    /// - [`Error::NoLibrary`]: the loader is not installed.
    /// - [`Error::Gpu`] with `vkCreateInstance` and -9, `VK_ERROR_INCOMPATIBLE_DRIVER`: no driver
    ///   is.
    /// - [`Error::Unsupported`]: the loader is older than Vulkan 1.1.
    /// - [`Error::Forked`]: this is a child of the process that loaded it.
    /// - [`Error::Contended`]: another thread has been opening a device for 30 seconds.
    pub fn count() -> Result<u32> {
        let _opening = opening()?;
        let devices = Library::get()?.devices()?;
        Ok(u32::try_from(devices.len()).unwrap_or(u32::MAX))
    }

    /// The facts of each device, by its number. None is opened: one whose
    /// [`refusal`](VulkanFacts::refusal) is something cannot be.
    ///
    /// # Errors
    /// As [`count`](Self::count).
    pub fn list() -> Result<Vec<VulkanFacts>> {
        let _opening = opening()?;
        let library = Library::get()?;
        (0..)
            .zip(library.devices()?)
            .map(|(ordinal, device)| facts::ask(&library.instance, device, ordinal))
            .collect()
    }
}
