#![allow(
    unsafe_code,
    reason = "a hand-over to a device is the promise of a program in another language"
)]
//! The owner of a buffer's bytes.
//!
//! ```text
//!                 open_view, close           operand            submit
//!              ┌─ the CPU's, n views ─┐  ┌───────────────► a job's ──┐
//!              └──────────▲───────────┘  │                           │ put
//!   take_back  ┌──────────┼──────────────┤                           ▼
//!              │          │ unlend       │ give        the CPU's, or a device's where the
//!              │        lent ◄── lend ───┤             binding wants that, or the caches
//!              │                         ▼             could not be maintained
//!              └──────────────── a device's, n views of a framework's
//! ```
//!
//! `free` ends it, from the CPU's side and with no view.

use crate::{Access, Refusal, Views};
use contigo::dlpack::{Lendable, Lent, TensorSpec, TensorTable};
use contigo::types::Refused;
use contigo::{CpuBuf, DevBuf, Direction, Error, Operand, Port};
use core::ffi::c_void;
use core::mem;
use core::ops::Range;
use core::sync::atomic::AtomicU32;

/// The owner of a buffer's bytes: exactly one of these at a time.
#[derive(Debug)]
enum Owner {
    Cpu(CpuBuf),
    Device(DevBuf),
    /// A framework has the CPU buffer's tensor, or had it.
    LentCpu(Lent<CpuBuf>),
    /// A framework has the device buffer's tensor, or had it.
    LentDevice(Lent<DevBuf>),
    /// A job has the buffer, or one call has it and puts it back before it returns.
    Job,
    Freed,
}

/// A buffer of a program in another language: it knows its owner, and what each call may do.
///
/// The binding locks it for each call, and keeps its [`Views`] beside it. A refused call changes
/// nothing, except that a refused job gives its buffer another hand-over number. Dropping the
/// buffer while a device has it leaks its memory, because nothing proved that the device stopped.
#[derive(Debug)]
pub struct Buffer {
    owner: Owner,
    /// Counts the hand-overs to a device, so that an ended hand-over is not taken for the next one.
    hand_overs: u64,
}

impl Views {
    /// No views.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }
}

impl Buffer {
    /// A buffer that the CPU has.
    #[must_use]
    #[inline]
    pub const fn new(buf: CpuBuf) -> Self {
        Self { owner: Owner::Cpu(buf), hand_overs: 0 }
    }

    /// The buffer, where the CPU has it.
    ///
    /// # Errors
    /// The current owner.
    #[inline]
    pub fn cpu(&self) -> Result<&CpuBuf, Refusal> {
        match &self.owner {
            Owner::Cpu(buf) => Ok(buf),
            other => Err(other.refusal()),
        }
    }

    /// The buffer, to write, where the CPU has it.
    ///
    /// # Errors
    /// The current owner.
    pub fn cpu_mut(&mut self) -> Result<&mut CpuBuf, Refusal> {
        match &mut self.owner {
            Owner::Cpu(buf) => Ok(buf),
            other => Err(other.refusal()),
        }
    }

    /// The buffer, where a device has it outside of a job.
    ///
    /// # Errors
    /// The current owner.
    pub fn device(&self) -> Result<&DevBuf, Refusal> {
        match &self.owner {
            Owner::Device(buf) => Ok(buf),
            other => Err(other.refusal()),
        }
    }

    /// The owner, as a word. A buffer in a job counts as a device's.
    #[must_use]
    pub const fn owner(&self) -> &'static str {
        match self.owner {
            Owner::Cpu(_) => "cpu",
            Owner::Device(_) | Owner::Job => "device",
            Owner::LentCpu(_) | Owner::LentDevice(_) => "lent",
            Owner::Freed => "gone",
        }
    }

    /// The number of the current hand-over, where a device has the buffer.
    #[must_use]
    pub const fn hand_over(&self) -> Option<u64> {
        if let Owner::Device(_) = self.owner { Some(self.hand_overs) } else { None }
    }

    /// Opens another view, while the CPU has the buffer: [`Views::close`] ends it.
    ///
    /// # Errors
    /// The current owner; [`Refusal::Viewed`] where one of the views writes.
    pub fn open_view(&mut self, views: &Views, access: Access) -> Result<(), Refusal> {
        let buf = self.cpu_mut()?;
        if access == Access::Write {
            // The view may write by an address from before the last job.
            let _ = buf.as_mut_ptr();
        }
        views.open(access)
    }

    /// Opens another view for a framework that works on the device, as long as this hand-over has
    /// not ended.
    ///
    /// # Errors
    /// [`Refusal::HandOverEnded`]; those of `DevBuf::settled`.
    pub fn open_device_view(&mut self, views: &Views, hand_over: u64) -> Result<(), Refusal> {
        let buf = self.device().map_err(|_| Refusal::HandOverEnded)?;
        if hand_over != self.hand_overs {
            return Err(Refusal::HandOverEnded);
        }
        // The consumer does not wait for anything that the hand-over began.
        buf.settled()?;
        views.open(Access::Read)
    }

    /// Gives the buffer to a job, as the returned operand. [`put`](Self::put) ends that.
    ///
    /// # Errors
    /// The current owner; [`Refusal::Viewed`].
    #[inline]
    pub fn operand(
        &mut self,
        views: &Views,
        bytes: Range<usize>,
        direction: Direction,
    ) -> Result<Operand, Refusal> {
        if !matches!(self.owner, Owner::Cpu(_) | Owner::Device(_)) {
            return Err(self.owner.refusal());
        }
        views.none()?;
        Ok(match (mem::replace(&mut self.owner, Owner::Job), direction) {
            (Owner::Cpu(buf), Direction::ToDevice) => buf.to_device(bytes),
            (Owner::Cpu(buf), Direction::FromDevice) => buf.from_device(bytes),
            (Owner::Cpu(buf), Direction::Bidirectional) => buf.in_out(bytes),
            (Owner::Device(buf), Direction::ToDevice) => buf.to_device(bytes),
            (Owner::Device(buf), Direction::FromDevice) => buf.from_device(bytes),
            (Owner::Device(buf), Direction::Bidirectional) => buf.in_out(bytes),
            (other, _) => return Err(other.refusal()),
        })
    }

    /// Puts the buffer back after a job: the CPU has it, or a device still has it.
    #[inline]
    pub fn put(&mut self, buf: Result<CpuBuf, DevBuf>) {
        let owner = match buf {
            Ok(buf) => Owner::Cpu(buf),
            Err(buf) => {
                self.hand_overs += 1;
                Owner::Device(buf)
            }
        };
        let before = mem::replace(&mut self.owner, owner);
        if matches!(before, Owner::Job | Owner::Device(_)) {
            // The old value has nothing to drop, or has memory that a device may use: it is leaked.
            mem::forget(before);
        }
    }

    /// Hands a part of it over to a device that the program drives itself.
    ///
    /// # Errors
    /// The current owner; [`Refusal::Viewed`]; those of `CpuBuf::hand_over`.
    ///
    /// # Safety
    /// As `CpuBuf::hand_over`: the device has stopped before [`take_back`](Self::take_back), or
    /// before a job or a tensor has the buffer.
    pub unsafe fn give(
        &mut self,
        views: &Views,
        port: &Port,
        bytes: Range<usize>,
        direction: Direction,
    ) -> Result<&DevBuf, Refusal> {
        self.is_idle(views)?;
        self.change(|owner| match owner {
            // SAFETY: the caller's promise. Nothing else drops the buffer: see `Drop`.
            Owner::Cpu(buf) => match unsafe { buf.hand_over(port, 64, bytes, direction) } {
                Ok(buf) => (Owner::Device(buf), Ok(())),
                Err(refused) => kept(refused, Owner::Cpu),
            },
            other => other.refused(),
        })?;
        self.hand_overs += 1;
        self.device()
    }

    /// Takes the buffer back from a device to the CPU; `by` limits that to one hand-over.
    ///
    /// # Errors
    /// The current owner; [`Refusal::Viewed`], [`Refusal::HandOverEnded`]; as `DevBuf::into_cpu`.
    pub fn take_back(&mut self, views: &Views, by: Option<u64>) -> Result<(), Refusal> {
        self.device()?;
        if by.is_some_and(|by| by != self.hand_overs) {
            return Err(Refusal::HandOverEnded);
        }
        views.none()?;
        self.change(|owner| match owner {
            Owner::Device(buf) => match buf.into_cpu() {
                Ok(buf) => (Owner::Cpu(buf), Ok(())),
                Err(refused) => kept(refused, Owner::Device),
            },
            other => other.refused(),
        })
    }

    /// Lends the CPU's or a device's buffer as a tensor, and returns the tensor. `legacy`: in the
    /// form before DLPack 1.0.
    ///
    /// # Errors
    /// The current owner; [`Refusal::Viewed`]; those of `TensorTable::lend` and `Lent::tensor`.
    pub fn lend<const N: usize>(
        &mut self,
        views: &Views,
        table: &'static TensorTable<N>,
        spec: &TensorSpec,
        legacy: bool,
    ) -> Result<*mut c_void, Refusal> {
        views.none()?;
        self.change(|owner| match owner {
            Owner::Cpu(buf) => lend(table.lend(buf, spec), legacy, Owner::LentCpu, Owner::Cpu),
            Owner::Device(buf) => {
                lend(table.lend(buf, spec), legacy, Owner::LentDevice, Owner::Device)
            }
            other => other.refused(),
        })
    }

    /// Takes a lent buffer back.
    ///
    /// # Errors
    /// The current owner; [`Error::TensorOut`] while the framework has the tensor.
    pub fn unlend(&mut self) -> Result<(), Refusal> {
        self.change(|owner| match owner {
            Owner::LentCpu(lent) => back(lent, Owner::LentCpu, Owner::Cpu),
            Owner::LentDevice(lent) => back(lent, Owner::LentDevice, Owner::Device),
            other => other.refused(),
        })
    }

    /// Splits it at byte `at_bytes`: it keeps the bytes before, and the bytes after are returned.
    ///
    /// # Errors
    /// The current owner; [`Refusal::Viewed`]; those of `CpuBuf::split_at`.
    pub fn split(&mut self, views: &Views, at_bytes: usize) -> Result<CpuBuf, Refusal> {
        self.is_idle(views)?;
        self.change(|owner| match owner {
            Owner::Cpu(buf) => match buf.split_at(at_bytes) {
                Ok((before, behind)) => (Owner::Cpu(before), Ok(behind)),
                Err(refused) => kept(refused, Owner::Cpu),
            },
            other => other.refused(),
        })
    }

    /// Checks that the CPU has it with no view. Dropping it then gives the memory back.
    ///
    /// # Errors
    /// The current owner; [`Refusal::Viewed`].
    #[inline]
    pub fn is_idle(&self, views: &Views) -> Result<(), Refusal> {
        self.cpu()?;
        views.none()
    }

    /// Takes the CPU's buffer for good: dropping the returned buffer gives the memory back.
    ///
    /// # Errors
    /// As [`is_idle`](Self::is_idle).
    pub fn free(&mut self, views: &Views) -> Result<CpuBuf, Refusal> {
        self.is_idle(views)?;
        self.change(|owner| match owner {
            Owner::Cpu(buf) => (Owner::Freed, Ok(buf)),
            other => other.refused(),
        })
    }

    /// Replaces the owner, and returns the result. If `how` panics, the bytes are lost with it, and
    /// the owner stays a job.
    #[inline]
    fn change<R>(
        &mut self,
        how: impl FnOnce(Owner) -> (Owner, Result<R, Refusal>),
    ) -> Result<R, Refusal> {
        let (owner, result) = how(mem::replace(&mut self.owner, Owner::Job));
        mem::forget(mem::replace(&mut self.owner, owner));
        result
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Owner::Device(_) = self.owner {
            mem::forget(mem::replace(&mut self.owner, Owner::Freed));
        }
    }
}

impl Owner {
    /// The reason why a call that needs another owner is refused.
    #[cold]
    const fn refusal(&self) -> Refusal {
        match self {
            Self::Cpu(_) => Refusal::OnCpu,
            Self::Device(_) => Refusal::OnDevice,
            Self::LentCpu(_) | Self::LentDevice(_) => Refusal::Runtime(Error::TensorOut),
            Self::Job => Refusal::InJob,
            Self::Freed => Refusal::Freed,
        }
    }

    /// The same reason, with the unchanged owner.
    fn refused<R>(self) -> (Self, Result<R, Refusal>) {
        let refusal = self.refusal();
        (self, Err(refusal))
    }
}

/// Keeps the owner after a refusal of the runtime.
fn kept<B, R>(refused: Refused<B>, owner: fn(B) -> Owner) -> (Owner, Result<R, Refusal>) {
    let (error, buf) = refused.into_parts();
    (owner(buf), Err(error.into()))
}

/// Returns the new owner after an attempt to lend a buffer, and the tensor.
fn lend<B: Lendable>(
    lent: Result<Lent<B>, Refused<B>>,
    legacy: bool,
    lent_as: fn(Lent<B>) -> Owner,
    kept_as: fn(B) -> Owner,
) -> (Owner, Result<*mut c_void, Refusal>) {
    let mut lent = match lent {
        Ok(lent) => lent,
        Err(refused) => return kept(refused, kept_as),
    };
    let tensor = if legacy {
        lent.legacy_tensor().map(|tensor| tensor.as_ptr().cast())
    } else {
        lent.tensor().map(|tensor| tensor.as_ptr().cast())
    };
    match tensor {
        Ok(tensor) => (lent_as(lent), Ok(tensor)),
        // No tensor is out, so the buffer can be taken back.
        Err(error) => (back(lent, lent_as, kept_as).0, Err(error.into())),
    }
}

/// Takes `lent` back, or keeps it lent.
fn back<B: Lendable>(
    lent: Lent<B>,
    lent_as: fn(Lent<B>) -> Owner,
    kept_as: fn(B) -> Owner,
) -> (Owner, Result<(), Refusal>) {
    match lent.take_back() {
        Ok(buf) => (kept_as(buf), Ok(())),
        Err(refused) => kept(refused, lent_as),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_do_not_overflow_into_the_flags() {
        let views = Views(AtomicU32::new((1 << 30) - 2));
        assert_eq!(views.open(Access::Read), Ok(()));
        let full = Refusal::Viewed { views: (1 << 30) - 1 };
        assert_eq!(views.open(Access::Read), Err(full));
    }
}
