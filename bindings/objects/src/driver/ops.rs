#![allow(unsafe_code, reason = "a driver's promises are those of the functions' author")]
//! A driver whose methods are C functions.

use super::abi::{contigo_completion, contigo_dev_slice, contigo_driver_ops, contigo_status};
use super::device::LibraryDevice;
use crate::{ArgumentError, Refusal};
use contigo::job::MAX_OPERANDS;
use contigo::linux::Spin;
use contigo::mem::DevSlice;
use contigo::{Completion, Driver, Error, OperandSpec, Port, Result, Wait as _};
use core::ffi::c_void;
use core::{fmt, mem, slice};
use heapless::Vec;
use std::time::Duration;

/// A driver in C, and its description of itself.
pub struct DriverOps {
    name: &'static str,
    port: Port,
    /// Checked: `submit`, `poll` and `stop` are not NULL.
    ops: contigo_driver_ops,
    /// Copied from `ops`.
    operands: Vec<OperandSpec, MAX_OPERANDS>,
    context: *mut c_void,
    /// The device of a driver in a file.
    device: Option<LibraryDevice>,
}

// SAFETY: the functions' author guarantees that any thread may call them, one at a time
// (contigo.h, `contigo_driver_ops`).
unsafe impl Send for DriverOps {}

impl DriverOps {
    /// Makes a driver of these functions, for a device behind `port` that is not known here.
    ///
    /// # Errors
    /// [`ArgumentError`]; the error of a wrong alignment.
    ///
    /// # Safety
    /// `ops` was read from a structure with `n_operands` operands. Otherwise as
    /// `contigo_engine_open_driver` requires.
    pub unsafe fn new(
        ops: &contigo_driver_ops,
        context: *mut c_void,
        name: &'static str,
        port: Port,
    ) -> core::result::Result<Self, Refusal> {
        let null = |what| Err(ArgumentError::Null { what }.into());
        let value = |what, value| Err(ArgumentError::Value { what, value }.into());
        if ops.submit.is_none() || ops.poll.is_none() || ops.stop.is_none() {
            return null("contigo_driver_ops.submit, poll or stop");
        }
        if ops.operands.is_null() {
            return null("contigo_driver_ops.operands");
        }
        let count = ops.n_operands as usize;
        if !(1..=MAX_OPERANDS).contains(&count) {
            return value("contigo_driver_ops.n_operands", count as u64);
        }
        let mut operands = Vec::new();
        for at in 0..count {
            // SAFETY: the caller's promise.
            let given = unsafe { ops.operands.add(at).read_unaligned() };
            let _ = operands.push(OperandSpec::try_from(&given)?);
        }
        if ops.out_of_order > 1 {
            return value("contigo_driver_ops.out_of_order", ops.out_of_order.into());
        }
        Ok(Self { name, port, ops: *ops, operands, context, device: None })
    }

    /// The same driver, with the device that its functions use.
    pub(super) fn with(mut self, device: LibraryDevice) -> Self {
        self.device = Some(device);
        self
    }

    /// Converts the C function's status. If the function passed on the status of one of the
    /// device's functions, the result is that function's error.
    fn answered(
        &self,
        answer: contigo_status,
        error: impl FnOnce(&'static str) -> Error,
        otherwise: &'static str,
    ) -> Result<()> {
        // Also after a 0, because an old reason must not be reported with a later refusal.
        let (refused, why) =
            self.device.as_ref().map_or((None, None), |device| device.refused(answer));
        if answer == 0 {
            Ok(())
        } else {
            Err(refused.unwrap_or_else(|| error(why.unwrap_or(otherwise))))
        }
    }
}

/// Room for a completion, also for that of a newer library, which may be larger (contigo.h).
const ROOM_BYTES: usize = 256;
#[repr(C)]
struct Room([u64; ROOM_BYTES / 8]);

/// The slices in C's form.
fn slices(operands: &[DevSlice]) -> Vec<contigo_dev_slice, MAX_OPERANDS> {
    operands
        .iter()
        .map(|slice| contigo_dev_slice { addr: slice.addr.0, len_bytes: slice.len_bytes })
        .take(MAX_OPERANDS)
        .collect()
}

/// The operands and the argument words of a call from C.
///
/// # Safety
/// The pointers have so many values, as [`slices`] made them.
pub(super) unsafe fn of_c<'a>(
    operands: *const contigo_dev_slice,
    n: usize,
    args: *const u32,
    words: usize,
) -> (Vec<DevSlice, MAX_OPERANDS>, &'a [u32]) {
    // SAFETY: the caller's promise.
    let (given, args) =
        unsafe { (slice::from_raw_parts(operands, n), slice::from_raw_parts(args, words)) };
    let operands = given.iter().map(|slice| DevSlice {
        addr: contigo::DevAddr(slice.addr),
        len_bytes: slice.len_bytes,
        offset_bytes: 0,
    });
    (operands.take(MAX_OPERANDS).collect(), args)
}

// SAFETY: the author of the functions guarantees that they keep the rules of a driver (contigo.h,
// `contigo_engine_open_driver`).
unsafe impl Driver for DriverOps {
    fn name(&self) -> &'static str {
        self.name
    }
    fn port(&self) -> &Port {
        &self.port
    }
    fn simulated(&self) -> Option<&dyn contigo::mem::SimulatedDevice> {
        self.device.as_ref().and_then(LibraryDevice::simulated)
    }
    fn addr_bits(&self) -> u32 {
        if self.ops.addr_bits == 0 { 64 } else { self.ops.addr_bits }
    }
    fn operands(&self) -> &[OperandSpec] {
        &self.operands
    }
    fn depth(&self) -> usize {
        self.ops.depth.max(1) as usize
    }
    fn in_order(&self) -> bool {
        self.ops.out_of_order == 0
    }
    fn arm_irq(&self) -> Result<Option<i32>> {
        self.device.as_ref().map_or(Ok(None), LibraryDevice::arm_irq)
    }

    fn check(&self, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        let Some(check) = self.ops.check else { return Ok(()) };
        let slices = slices(operands);
        // SAFETY: the pointers have so many values, and the author guarantees the rest.
        let answer = unsafe {
            check(self.context, slices.as_ptr(), slices.len(), args.as_ptr(), args.len())
        };
        self.answered(
            answer,
            |why| Error::DriverCheck { driver: self.name, why, answer },
            "it does not say why",
        )
    }

    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        let (slices, Some(submit)) = (slices(operands), self.ops.submit) else {
            return Err(Error::Busy);
        };
        let slot = u32::try_from(slot).unwrap_or(u32::MAX);
        if let Some(device) = &mut self.device {
            device.is_at_rest = false;
        }
        // SAFETY: as in `check`; the caller's promise about the operands is passed on.
        let answer = unsafe {
            submit(self.context, slot, slices.as_ptr(), slices.len(), args.as_ptr(), args.len())
        };
        self.answered(
            answer,
            |why| Error::Driver { driver: self.name, why, answer },
            "its submit refused the job",
        )
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        let timeout_us = contigo::types::timeout_us(timeout)?;
        let Some(poll) = self.ops.poll else { return Err(Error::Busy) };
        let mut room = Room([0; ROOM_BYTES / 8]);
        let to = (&raw mut room).cast::<contigo_completion>();
        let mut ended = 0;
        // SAFETY: the room is aligned, large enough and zeroed, and zeroes are a valid structure.
        // The rest as in `check`.
        let (answer, done) = unsafe {
            (*to).struct_size = mem::size_of::<contigo_completion>();
            (poll(self.context, timeout_us, to, &raw mut ended), to.read())
        };
        self.answered(
            answer,
            |why| Error::Driver { driver: self.name, why, answer },
            "its poll says that the channel cannot go on",
        )?;
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
        let Some(stop) = self.ops.stop else { return Err(Error::Busy) };
        let now_us =
            |this: &Self| this.device.as_ref().map_or_else(|| Spin.now_us(), LibraryDevice::now_us);
        let began_us = now_us(self);
        // SAFETY: as in `check`.
        let answer = unsafe { stop(self.context) };
        let waited_us = u32::try_from(now_us(self).saturating_sub(began_us)).unwrap_or(u32::MAX);
        if let Some(device) = &mut self.device {
            // Drops an error on the way: only the status of `stop` counts.
            let _ = device.refused(0);
            if answer == 0 {
                device.is_at_rest = true;
            }
        }
        match answer {
            0 => Ok(()),
            answer => Err(Error::WillNotStop {
                device: self.name,
                status: answer.cast_unsigned(),
                waited_us,
            }),
        }
    }
}

impl fmt::Debug for DriverOps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverOps").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Drop for DriverOps {
    fn drop(&mut self) {
        if let Some(device) = &mut self.device {
            // SAFETY: no other function is called after this.
            unsafe { device.close(self.context) };
        }
    }
}
