#![allow(unsafe_code, reason = "an ioctl's argument is a pointer, and its request says to what")]
//! One ioctl of the runtime, read back from its number and its pointer.

use super::abi::{
    self, Alloc, DmaBits, EventFd, Export, Import, Info, Release, SegmentAt, Segments, Step,
    StopSequence, SyncRange, Unmask, WaitFor, code,
};
use nix::libc;
use nix::sys::ioctl::ioctl_num_type;
use std::ffi::c_void;
use std::{ptr, slice};

/// `CONTIGO_MAX_RANGES`, by the fake's own reading of the header.
const MAX_RANGES: u32 = 1024;

/// The requests of the module.
pub(super) enum Request<'a> {
    GetInfo(&'a mut Info),
    SetDmaBits(u32),
    Alloc(&'a mut Alloc),
    Export(&'a mut Export),
    Import(&'a mut Import),
    GetSegments(&'a mut Segments, &'a mut [SegmentAt]),
    Release(u32),
    Sync(&'a [SyncRange]),
    Arm(&'a [Step]),
    Unmask(u32),
    SetEventFd(&'a EventFd),
    Reset,
    Wait(&'a mut WaitFor),
}

impl Request<'_> {
    /// The request of this number.
    ///
    /// # Errors
    /// As the module's: ENOTTY, it knows none of this number; EINVAL, padding that is not zero, or
    /// a sync of nothing; E2BIG, a sync of too many ranges.
    ///
    /// # Safety
    /// `argument` is what the request reads and writes, and lives as long as what is returned.
    pub(super) unsafe fn of(number: ioctl_num_type, argument: *mut c_void) -> Result<Self, i32> {
        // SAFETY: the caller's promise; the structures are those of the header.
        Ok(unsafe {
            match number {
                code::GET_INFO => Self::GetInfo(&mut *argument.cast()),
                code::SET_DMA_BITS => {
                    let &DmaBits { bits, reserved } = &*argument.cast();
                    zero(reserved)?;
                    Self::SetDmaBits(bits)
                }
                code::ALLOC => Self::Alloc(&mut *argument.cast()),
                code::EXPORT => Self::Export(&mut *argument.cast()),
                code::IMPORT => Self::Import(&mut *argument.cast()),
                code::GET_SEGMENTS => {
                    let ask = &mut *argument.cast::<Segments>();
                    let room = array::<SegmentAt>(ask.ptr).cast_mut();
                    let room = slice::from_raw_parts_mut(room, ask.count as usize);
                    Self::GetSegments(ask, room)
                }
                code::RELEASE => {
                    let &Release { handle, reserved } = &*argument.cast();
                    zero(reserved)?;
                    Self::Release(handle)
                }
                code::SYNC => {
                    let sync = &*argument.cast::<abi::Sync>();
                    zero(sync.reserved)?;
                    match sync.count {
                        0 => return Err(libc::EINVAL),
                        1..=MAX_RANGES => {}
                        _ => return Err(libc::E2BIG),
                    }
                    Self::Sync(slice::from_raw_parts(array(sync.ptr), sync.count as usize))
                }
                code::ARM => {
                    let steps = &*argument.cast::<StopSequence>();
                    zero(steps.reserved)?;
                    Self::Arm(slice::from_raw_parts(array(steps.ptr), steps.count as usize))
                }
                code::UNMASK => {
                    let &Unmask { interrupts, reserved } = &*argument.cast();
                    zero(reserved)?;
                    Self::Unmask(interrupts)
                }
                code::SET_EVENTFD => Self::SetEventFd(&*argument.cast()),
                code::RESET => Self::Reset,
                code::WAIT => Self::Wait(&mut *argument.cast()),
                _ => return Err(libc::ENOTTY),
            }
        })
    }

    /// Its name in the runtime's errors.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::GetInfo(_) => "ioctl(CONTIGO_GET_INFO)",
            Self::SetDmaBits(_) => "ioctl(CONTIGO_SET_DMA_BITS)",
            Self::Alloc(_) => "ioctl(CONTIGO_ALLOC)",
            Self::Export(_) => "ioctl(CONTIGO_EXPORT)",
            Self::Import(_) => "ioctl(CONTIGO_IMPORT)",
            Self::GetSegments(..) => "ioctl(CONTIGO_GET_SEGMENTS)",
            Self::Release(_) => "ioctl(CONTIGO_RELEASE)",
            Self::Sync(_) => "ioctl(CONTIGO_SYNC)",
            Self::Arm(_) => "ioctl(CONTIGO_ARM)",
            Self::Unmask(_) => "ioctl(CONTIGO_UNMASK)",
            Self::SetEventFd(_) => "ioctl(CONTIGO_SET_EVENTFD)",
            Self::Reset => "ioctl(CONTIGO_RESET)",
            Self::Wait(_) => "ioctl(CONTIGO_WAIT)",
        }
    }
}

/// Padding must be zero, so that a later module can give it a meaning.
const fn zero(reserved: u32) -> Result<(), i32> {
    if reserved == 0 { Ok(()) } else { Err(libc::EINVAL) }
}

/// An array of the caller's, by its address.
#[allow(clippy::cast_possible_truncation, reason = "a process's address")]
fn array<T>(addr: u64) -> *const T {
    ptr::with_exposed_provenance(addr as usize)
}
