#![allow(unsafe_code, reason = "code for a device is loaded")]
//! How [`contigo::names`] opens a device by its name, and what it takes of it.

use super::{Log, OpenClGpu, OpenClKernel, OpenClMemory, OpenClModule};
use crate::Pages;
use contigo::job::{AnyDriver, Signature};
use contigo::names::{AnyMemory, AnyModule, GpuDevice, GpuKind, GpuModule};
use contigo::{Error, Port, Result};
use core::ffi::CStr;
use core::fmt;

/// The names `opencl`, `opencl:1` and so on, for [`contigo::names::provide`].
pub static KIND: GpuKind =
    GpuKind { kind: "opencl", open: |ordinal| Ok(OpenClGpu::open(ordinal)?) };

impl GpuDevice for OpenClGpu {
    fn name(&self) -> &str {
        &self.facts().name
    }

    fn port(&self) -> Port {
        Self::port(self)
    }

    fn memory(&'static self, len_bytes: usize) -> Result<AnyMemory> {
        AnyMemory::new(OpenClMemory::<Pages>::allocate(self, len_bytes)?)
    }

    unsafe fn load(&'static self, code: &[u8], log: &mut dyn fmt::Write) -> Result<AnyModule> {
        let source = str::from_utf8(code).map(|text| text.trim_end_matches('\0'));
        let source = source.map_err(|wrong| {
            let (value, max) = (wrong.valid_up_to() as u64, code.len() as u64);
            Error::Argument {
                name: "the count of the source's first bytes that are UTF-8",
                value,
                min: max,
                max,
                multiple_of: 1,
            }
        })?;
        let mut said = Log::new();
        // SAFETY: the caller's promise.
        let module = unsafe { OpenClModule::build(self, source, c"", &mut said) };
        // A log that is full is cut.
        AnyModule::new(module.inspect_err(|_| _ = log.write_str(&said))?)
    }
}

impl GpuModule for OpenClModule {
    unsafe fn kernel(&self, entry: &CStr, signature: Signature) -> Result<AnyDriver> {
        // SAFETY: the caller's promise.
        AnyDriver::new(unsafe { OpenClKernel::new(self, entry, signature)? })
    }
}
