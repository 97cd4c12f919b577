#![allow(unsafe_code, reason = "a library is loaded, and its functions are called")]
//! NVIDIA's driver library.

use super::abi::{Api, CuResult, api, code_name};
use crate::types::{Error, Result};
use core::ffi::{CStr, c_int};
use core::fmt;
use libloading::Library;

/// NVIDIA's driver: `libcuda.so.1`, loaded and initialised. It stays loaded until the program ends,
/// because it may have threads. So a handle holds only the addresses of its functions, and a clone
/// is as good as the original.
#[derive(Clone)]
pub struct Cuda {
    pub(super) api: Api,
    version: u32,
}

impl Cuda {
    /// The oldest driver that is accepted: CUDA 10.2, as in `JetPack` 4, for Jetson Nano and TX2.
    pub(crate) const OLDEST: u32 = 10_020;

    /// Loads the machine's driver.
    ///
    /// # Errors
    /// - [`Error::NoLibrary`]: there is no driver, or it is not where the loader looks.
    /// - [`Error::Setting`]: it is older than CUDA 10.2. [`Error::Unsupported`]: it lacks a
    ///   function.
    /// - [`Error::Cuda`] with `cuInit`: 100, there is no GPU; 803, the kernel's part of the driver
    ///   is of another version.
    pub fn load() -> Result<Self> {
        // SAFETY: the name is that of NVIDIA's driver, which the loader finds where the system's
        // owner installed it.
        unsafe { Self::load_from(c"libcuda.so.1") }
    }

    /// As [`load`](Self::load), but from a file, by its name or path.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    ///
    /// # Safety
    /// The file is NVIDIA's driver, or behaves as its reference says; and it is the only one in
    /// this program, because GPUs are identified by number.
    pub unsafe fn load_from(file: &CStr) -> Result<Self> {
        const UPDATE: &str = "update NVIDIA's driver, which lacks this function";
        // SAFETY: the caller's promise.
        let library =
            unsafe { open(file) }.map_err(|fix| Error::NoLibrary { name: "libcuda.so.1", fix })?;
        let symbols = Symbols(&library);
        let api = api!(|names: &[&'static CStr]| symbols
            .find(names)
            .ok_or(Error::Unsupported { what: first(names), fix: UPDATE }));
        core::mem::forget(library);
        let mut version: c_int = 0;
        // SAFETY: the pointer comes from a reference; this is allowed before `cuInit`.
        check("cuDriverGetVersion", unsafe { (api.driver_version)(&raw mut version) })?;
        let version = u32::try_from(version).unwrap_or(0);
        if version < Self::OLDEST {
            let fix =
                "CUDA 10.2 (10020) is the oldest driver that is taken: update NVIDIA's driver";
            return Err(Error::Setting { name: "cuDriverGetVersion", value: version.into(), fix });
        }
        // SAFETY: flags must be 0; any thread may call it, any number of times.
        check("cuInit", unsafe { (api.init)(0) })?;
        Ok(Self { api, version })
    }

    /// Returns the newest CUDA version that the driver supports: 12040 is 12.4.
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// Returns the number of GPUs.
    ///
    /// # Errors
    /// [`Error::Cuda`].
    pub fn gpus(&self) -> Result<u32> {
        let mut count: c_int = 0;
        // SAFETY: the pointer comes from a reference.
        check("cuDeviceGetCount", unsafe { (self.api.device_count)(&raw mut count) })?;
        Ok(u32::try_from(count).unwrap_or(0))
    }
}

/// Loads a library, or returns advice on what to do.
///
/// # Safety
/// Loading it runs its initialisers.
#[cfg(not(target_feature = "crt-static"))]
unsafe fn open(file: &CStr) -> Result<Library, &'static str> {
    // With its NUL, the name is not copied.
    let name = core::str::from_utf8(file.to_bytes_with_nul())
        .map_err(|_| "its path is no UTF-8: give it another one")?;
    // SAFETY: the caller's promise.
    unsafe { Library::new(name) }.map_err(|_| {
        "install NVIDIA's driver (on a Jetson it is part of JetPack), and see that \
         ldconfig -p lists it"
    })
}

/// A static program cannot load it: its C library would need the shared twin of itself.
#[cfg(target_feature = "crt-static")]
unsafe fn open(_file: &CStr) -> Result<Library, &'static str> {
    Err("this program has its C library inside and loads no other: build it without crt-static")
}

/// A library's functions, by name.
struct Symbols<'l>(&'l Library);

impl Symbols<'_> {
    /// Finds the first of `names` that exists. `F` is the function's type, by `abi.rs`.
    fn find<F: Copy>(&self, names: &[&'static CStr]) -> Option<F> {
        // SAFETY: `F` is the function's type in `cuda.h`, which `functions!` repeats, and the
        // library is never unloaded.
        names.iter().find_map(|name| unsafe { self.0.get::<F>(*name) }.ok().map(|symbol| *symbol))
    }
}

fn first(names: &[&'static CStr]) -> &'static str {
    names.first().and_then(|name| name.to_str().ok()).unwrap_or("")
}

/// The driver's error, with the names of the call and of the code.
pub(super) const fn error(call: &'static str, code: CuResult) -> Error {
    Error::Cuda { call, code, name: code_name(code) }
}

/// Converts a result to an error with the call's name.
#[inline]
pub(super) const fn check(call: &'static str, code: CuResult) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(error(call, code)) }
}

impl fmt::Debug for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cuda").field("version", &self.version).finish_non_exhaustive()
    }
}
