#![allow(unsafe_code, reason = "a hand-over to a device is the C program's promise")]
//! Buffers: who owns the bytes, who looks at them, and where they go when they are released.

use super::{
    pool::Pool,
    region::{REGIONS, Region},
};
use crate::{
    fault::{Fault, Misuse},
    handle::Kind,
    limits,
    table::{Lease, Locked, Object, Table},
};
use contigo::{Align, CpuBuf, DevBuf, Direction, Error, Port, dlpack::Lent};
use core::mem;

/// Buffers. The pools' free slots have entries too, which are kept for them.
pub(crate) static BUFS: Table<Buf, { limits::BUFS }> = Table::new();

impl Object for Buf {
    const KIND: Kind = Kind::Buf;
}

/// One buffer.
pub(crate) struct Buf {
    pub(super) owner: Owner,
    views: Views,
    origin: Origin,
}

/// Who has the bytes.
pub(crate) enum Owner {
    Cpu(CpuBuf),
    Dev(DevBuf),
    /// A framework has its tensor, or had it.
    LentCpu(Lent<CpuBuf>),
    /// The same of a device's.
    LentDev(Lent<DevBuf>),
    /// A job has them; or a call, and it puts them back before it ends.
    InUse,
}

/// What a buffer is of, and is not closed while the buffer is there.
pub(super) enum Origin {
    /// A slot, or a part of one. Is it in the slot's own entry?
    Slot {
        pool: Lease<Pool>,
        has_entry: bool,
    },
    Region(Lease<Region>),
}

impl Origin {
    /// That of a part that is cut off.
    fn of_rest(&self) -> Result<Self, Misuse> {
        Ok(match self {
            Self::Slot { pool, .. } => Self::Slot { pool: pool.again(Kind::Pool)?, has_entry: false },
            Self::Region(region) => Self::Region(region.again(Kind::Region)?),
        })
    }
}

/// The pointers into it that the program has asked for and not given up: in Rust they are borrows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Views {
    Readers(u32),
    Writer,
}

impl Views {
    const NONE: Self = Self::Readers(0);
}

/// The use of a view.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

impl Buf {
    pub(super) const fn new(buf: CpuBuf, origin: Origin) -> Self {
        Self { owner: Owner::Cpu(buf), views: Views::NONE, origin }
    }

    /// Allocates one buffer.
    pub(crate) fn carve(region: u64, len_bytes: usize, align: Align) -> Result<u64, Fault> {
        let region = REGIONS.lease(region)?;
        let mut claimed = BUFS.claim()?;
        let buf = region.memory().alloc(len_bytes, align)?;
        claimed.locked.put(Self::new(buf, Origin::Region(region)));
        Ok(claimed.raw())
    }

    /// Gives the buffer back to its pool, or for good. Refused while it is mapped or a device's.
    #[inline]
    pub(crate) fn release(raw: u64) -> Result<(), Fault> {
        let mut locked = BUFS.lock(raw)?;
        let Some(buf) = locked.value() else { return Err(Misuse::Stale { kind: Kind::Buf }.into()) };
        buf.unmapped()?;
        buf.cpu()?;
        let has_entry = matches!(buf.origin, Origin::Slot { has_entry: true, .. });
        // Dropped after that: whoever gets the slot next finds its entry kept. The pool may be
        // closed at once.
        drop(if has_entry { locked.keep() } else { locked.take() });
        Ok(())
    }

    /// Cuts a buffer at byte `at_bytes`: it keeps what is before, and what is
    /// behind gets the handle that is returned. Where it is refused, the buffer is as it was.
    pub(crate) fn split(raw: u64, at_bytes: usize) -> Result<u64, Fault> {
        let mut locked = BUFS.lock(raw)?;
        let Some(buf) = locked.value() else { return Err(Misuse::Stale { kind: Kind::Buf }.into()) };
        // Before anything is cut: a full table leaves the buffer as it is.
        let mut rest = BUFS.claim()?;
        let origin = buf.origin.of_rest()?;
        match buf.take_cpu()?.split_at(at_bytes) {
            Ok((before, behind)) => {
                buf.owner = Owner::Cpu(before);
                rest.locked.put(Self::new(behind, origin));
                Ok(rest.raw())
            }
            Err(refused) => {
                let (error, returned) = refused.into_parts();
                buf.owner = Owner::Cpu(returned);
                Err(error.into())
            }
        }
    }

    /// Takes out a buffer that the CPU owns and nobody looks at, to be put somewhere else. The
    /// caller puts something back.
    fn take_cpu(&mut self) -> Result<CpuBuf, Fault> {
        self.unmapped()?;
        match mem::replace(&mut self.owner, Owner::InUse) {
            Owner::Cpu(buf) => Ok(buf),
            other => {
                let refusal = other.not_the_cpus();
                self.owner = other;
                Err(refusal)
            }
        }
    }

    /// Takes the buffer out for a job, and answers the result of `cpus` or `devs`. Refused where
    /// somebody looks at the buffer, or it is not there. The caller puts something back.
    #[inline]
    pub(crate) fn leave<R>(&mut self, cpus: impl FnOnce(CpuBuf) -> R, devs: impl FnOnce(DevBuf) -> R) -> Result<R, Fault> {
        match self.owner {
            Owner::Cpu(_) | Owner::Dev(_) => self.unmapped()?,
            ref other => return Err(other.not_the_cpus()),
        }
        match mem::replace(&mut self.owner, Owner::InUse) {
            Owner::Cpu(buf) => Ok(cpus(buf)),
            Owner::Dev(buf) => Ok(devs(buf)),
            Owner::LentCpu(_) | Owner::LentDev(_) | Owner::InUse => Err(Misuse::DeviceOwned.into()),
        }
    }

    /// What comes back.
    #[inline]
    pub(crate) fn put(&mut self, owner: Owner) {
        let before = mem::replace(&mut self.owner, owner);
        if matches!(before, Owner::InUse) {
            // Nothing is there to drop, and no look at it is needed.
            mem::forget(before);
        }
    }

    pub(super) const fn unmapped(&self) -> Result<(), Misuse> {
        match self.views {
            Views::NONE => Ok(()),
            Views::Readers(views) => Err(Misuse::Mapped { views }),
            Views::Writer => Err(Misuse::Mapped { views: 1 }),
        }
    }

    pub(crate) fn cpu(&self) -> Result<&CpuBuf, Fault> {
        match &self.owner {
            Owner::Cpu(buf) => Ok(buf),
            other => Err(other.not_the_cpus()),
        }
    }

    pub(super) fn cpu_mut(&mut self) -> Result<&mut CpuBuf, Fault> {
        match &mut self.owner {
            Owner::Cpu(buf) => Ok(buf),
            other => Err(other.not_the_cpus()),
        }
    }

    pub(crate) fn dev(&self) -> Result<&DevBuf, Fault> {
        match &self.owner {
            Owner::Dev(buf) => Ok(buf),
            Owner::Cpu(_) => Err(Misuse::CpuOwned.into()),
            other => Err(other.not_the_cpus()),
        }
    }

    /// The CPU's address of the buffer, for as long as `unmap` is not called.
    pub(crate) fn map(&mut self, access: Access) -> Result<(*mut u8, usize), Fault> {
        let views = match (self.views, access) {
            (Views::Readers(views), Access::Read) => Views::Readers(views.checked_add(1).ok_or(Misuse::Mapped { views })?),
            (Views::NONE, Access::Write) => Views::Writer,
            (Views::Readers(views), Access::Write) => return Err(Misuse::Mapped { views }.into()),
            (Views::Writer, _) => return Err(Misuse::Mapped { views: 1 }.into()),
        };
        let (ptr, len) = match access {
            // Readers may be many, so the pointer comes from a shared borrow; nothing is written
            // through it (contigo.h).
            Access::Read => {
                let bytes = self.cpu()?.view::<u8>()?;
                (bytes.as_ptr().cast_mut(), bytes.len())
            }
            Access::Write => {
                let bytes = self.cpu_mut()?.view_mut::<u8>()?;
                (bytes.as_mut_ptr(), bytes.len())
            }
        };
        self.views = views;
        Ok((ptr, len))
    }

    /// One view less.
    pub(crate) const fn unmap(&mut self) -> Result<(), Misuse> {
        self.views = match self.views {
            Views::Writer => Views::NONE,
            Views::Readers(views) => match views.checked_sub(1) {
                Some(left) => Views::Readers(left),
                None => return Err(Misuse::NotMapped),
            },
        };
        Ok(())
    }

    /// Do `len_bytes` bytes fit, and is none of those at `addr` one of the buffer's?
    pub(crate) fn may_take(&self, addr: usize, len_bytes: usize) -> Result<(), Fault> {
        self.unmapped()?;
        let shown = self.cpu()?.view::<u8>()?;
        if len_bytes > shown.len() {
            return Err(Error::OutOfRange { start: 0, end: len_bytes, len_bytes: shown.len() }.into());
        }
        let shown = shown.as_ptr_range();
        let apart = addr >= shown.end.addr() || addr.saturating_add(len_bytes) <= shown.start.addr();
        if apart { Ok(()) } else { Err(Misuse::Overlap.into()) }
    }

    /// Copies `source` to the beginning of the buffer.
    pub(crate) fn copy_from(&mut self, source: &[u8]) -> Result<(), Fault> {
        Ok(self.cpu_mut()?.copy_from_slice(source)?)
    }

    /// Makes a part of it a device's, and says where the device finds it.
    ///
    /// # Safety
    /// As `CpuBuf::hand_over`.
    pub(crate) unsafe fn hand_to_device(
        &mut self,
        port: &Port,
        offset_bytes: usize,
        len_bytes: usize,
        direction: Direction,
    ) -> Result<u64, Fault> {
        // A sum past the end of all memory is past the end of the buffer, which is checked.
        let range = offset_bytes..offset_bytes.saturating_add(len_bytes);
        // SAFETY: the caller's promise. Who drops a device's buffer here has it from `take_back`,
        // or a job.
        match unsafe { self.take_cpu()?.hand_over(port, 64, range, direction) } {
            Ok(buf) => {
                let addr = buf.slice().addr.0;
                self.owner = Owner::Dev(buf);
                Ok(addr)
            }
            Err(refused) => {
                let (error, returned) = refused.into_parts();
                self.owner = Owner::Cpu(returned);
                Err(error.into())
            }
        }
    }

    /// Makes it the CPU's again, where it is a device's.
    #[inline]
    pub(crate) fn back_to_cpu(&mut self) -> Result<(), Fault> {
        if matches!(self.owner, Owner::Cpu(_)) { Ok(()) } else { self.take_back() }
    }

    /// Makes a device's the CPU's again.
    pub(crate) fn take_back(&mut self) -> Result<(), Fault> {
        let (owner, result) = match mem::replace(&mut self.owner, Owner::InUse) {
            Owner::Dev(buf) => match buf.into_cpu() {
                Ok(buf) => (Owner::Cpu(buf), Ok(())),
                Err(refused) => {
                    let (error, buf) = refused.into_parts();
                    (Owner::Dev(buf), Err(error.into()))
                }
            },
            Owner::Cpu(buf) => (Owner::Cpu(buf), Err(Misuse::CpuOwned.into())),
            other => {
                let refusal = other.not_the_cpus();
                (other, Err(refusal))
            }
        };
        self.owner = owner;
        result
    }
}

impl Owner {
    /// Why the CPU does not have it.
    pub(super) fn not_the_cpus(&self) -> Fault {
        match self {
            Self::LentCpu(_) | Self::LentDev(_) => Error::TensorOut.into(),
            Self::Cpu(_) | Self::Dev(_) | Self::InUse => Misuse::DeviceOwned.into(),
        }
    }
}

/// Does something with the buffer of a handle, in one call alone.
pub(crate) fn with<R>(raw: u64, act: impl FnOnce(&mut Buf) -> Result<R, Fault>) -> Result<R, Fault> {
    let mut locked: Locked<Buf> = BUFS.lock(raw)?;
    act(locked.value().ok_or(Misuse::Stale { kind: Kind::Buf })?)
}
