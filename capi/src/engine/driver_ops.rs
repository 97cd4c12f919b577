#![allow(unsafe_code, reason = "a driver's promises are the C program's")]
//! A driver whose methods are C functions.

use crate::{ffi::contigo_completion, ffi::contigo_dev_slice, status::contigo_status};
use contigo::{Completion, Driver, Error, OperandSpec, Port, Result, mem::DevSlice};
use core::{ffi::c_void, mem};
use heapless::Vec;
use std::time::Duration;

/// Operands of one job at most.
pub(crate) const MAX_OPERANDS: usize = contigo::job::MAX_OPERANDS;

/// The functions.
#[derive(Clone, Copy)]
pub(crate) struct Functions {
    pub(crate) check: Option<unsafe extern "C" fn(*mut c_void, *const contigo_dev_slice, usize, *const u32, usize) -> contigo_status>,
    pub(crate) submit: unsafe extern "C" fn(*mut c_void, u32, *const contigo_dev_slice, usize, *const u32, usize) -> contigo_status,
    pub(crate) poll: unsafe extern "C" fn(*mut c_void, u32, *mut contigo_completion, *mut u32) -> contigo_status,
    pub(crate) stop: unsafe extern "C" fn(*mut c_void) -> contigo_status,
}

/// A driver in C, and what it says of itself.
pub(crate) struct DriverOps {
    pub(crate) name: &'static str,
    pub(crate) port: Port,
    pub(crate) addr_bits: u32,
    pub(crate) depth: usize,
    pub(crate) in_order: bool,
    pub(crate) operands: Vec<OperandSpec, MAX_OPERANDS>,
    pub(crate) functions: Functions,
    pub(crate) context: *mut c_void,
}

// SAFETY: the C program says that its functions may be called from any thread, one at a time
// (contigo.h, `contigo_driver_ops`).
unsafe impl Send for DriverOps {}

impl DriverOps {
    /// The C function's answer, as the runtime's result.
    fn answered(&self, status: contigo_status, what: &'static str) -> Result<()> {
        match status {
            0 => Ok(()),
            status => Err(Error::Fault { device: self.name, status: status.cast_unsigned(), what }),
        }
    }
}

/// The same slices as C has them.
fn slices(operands: &[DevSlice]) -> Vec<contigo_dev_slice, MAX_OPERANDS> {
    operands.iter().map(|slice| contigo_dev_slice { addr: slice.addr.0, len_bytes: slice.len_bytes }).take(MAX_OPERANDS).collect()
}

// SAFETY: the C program says that its functions keep the rules of a driver (contigo.h,
// `contigo_engine_open_driver`).
unsafe impl Driver for DriverOps {
    fn name(&self) -> &'static str {
        self.name
    }
    fn port(&self) -> &Port {
        &self.port
    }
    fn addr_bits(&self) -> u32 {
        self.addr_bits
    }
    fn operands(&self) -> &[OperandSpec] {
        &self.operands
    }
    fn depth(&self) -> usize {
        self.depth
    }
    fn in_order(&self) -> bool {
        self.in_order
    }

    fn check(&self, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        let Some(check) = self.functions.check else { return Ok(()) };
        let slices = slices(operands);
        // SAFETY: the pointers are to so many values, and the rest is the C program's promise.
        match unsafe { check(self.context, slices.as_ptr(), slices.len(), args.as_ptr(), args.len()) } {
            0 => Ok(()),
            status => {
                let value = status.unsigned_abs().into();
                Err(Error::Argument { name: "the number by which the driver's check refused", value, min: 0, max: 0, multiple_of: 1 })
            }
        }
    }

    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        let slices = slices(operands);
        let slot = u32::try_from(slot).unwrap_or(u32::MAX);
        // SAFETY: as in `check`; the caller's promise of the operands is handed on.
        let status = unsafe { (self.functions.submit)(self.context, slot, slices.as_ptr(), slices.len(), args.as_ptr(), args.len()) };
        self.answered(status, "its driver's submit refused the job")
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        let timeout_us = contigo::types::timeout_us(timeout)?;
        let mut done = contigo_completion { struct_size: mem::size_of::<contigo_completion>(), ..contigo_completion::default() };
        let mut ended = 0;
        // SAFETY: as in `check`.
        let status = unsafe { (self.functions.poll)(self.context, timeout_us, &raw mut done, &raw mut ended) };
        self.answered(status, "its driver's poll says so")?;
        Ok((ended != 0).then(|| Completion {
            slot: done.slot as usize,
            bytes: (done.has_bytes != 0).then_some(done.bytes),
            status: done.status,
            words: done.words,
            failed: (done.failed != 0).then_some("its driver says that this job failed"),
            last: None,
        }))
    }

    fn stop(&mut self) -> Result<()> {
        // SAFETY: as in `check`.
        match unsafe { (self.functions.stop)(self.context) } {
            0 => Ok(()),
            status => Err(Error::WillNotStop { device: self.name, status: status.cast_unsigned(), waited_us: 0 }),
        }
    }
}
