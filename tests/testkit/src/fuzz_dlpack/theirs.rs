#![allow(unsafe_code, reason = "a framework is raw pointers")]
//! The framework: its structures, and a deleter that frees and counts.

use super::{Case, switch};
use contigo::Result;
use contigo::dlpack::Foreign;
use contigo::dlpack::abi::{DlManagedTensor, DlManagedTensorVersioned, DlTensor, MAJOR};
use std::alloc::{Layout, alloc, dealloc};
use std::ffi::c_void;
use std::mem::offset_of;
use std::ptr;

/// A tensor as the case says. Its arrays have no entry too many, and of another major version there
/// is nothing behind `flags`, so that the sanitizer and Miri see a look too far.
pub(super) struct Theirs {
    managed: Managed,
    owner: *mut Owner,
}

enum Managed {
    Null { legacy: bool },
    Versioned(*mut DlManagedTensorVersioned, Layout),
    Legacy(*mut DlManagedTensor),
}

/// The object behind `manager_ctx`. It outlives the tensor, for a deleter that is called twice.
struct Owner {
    deleted: usize,
    shape: *mut [i64],
    strides: *mut [i64],
}

impl Theirs {
    pub(super) fn new(case: &Case, data: *mut u8) -> Self {
        let (shape, strides) = (
            Box::into_raw(case.shape.clone().into_boxed_slice()),
            Box::into_raw(case.strides.clone().into_boxed_slice()),
        );
        let owner = Box::into_raw(Box::new(Owner { deleted: 0, shape, strides }));
        let or_null = |is_null: bool, entries: *mut [i64]| {
            if is_null { ptr::null_mut() } else { entries.cast::<i64>() }
        };
        let tensor = DlTensor {
            data: data.cast(),
            device: case.device,
            ndim: case.ndim,
            dtype: case.dtype,
            shape: or_null(case.is(switch::NULL_SHAPE), shape),
            strides: or_null(case.is(switch::NULL_STRIDES), strides),
            byte_offset: case.byte_offset,
        };
        let (manager_ctx, has_deleter) = (owner.cast::<c_void>(), !case.is(switch::NO_DELETER));
        let managed = if case.is(switch::NULL_TENSOR) {
            Managed::Null { legacy: case.is(switch::LEGACY) }
        } else if case.is(switch::LEGACY) {
            let deleter = has_deleter.then_some(delete_legacy as unsafe extern "C" fn(_));
            Managed::Legacy(Box::into_raw(Box::new(DlManagedTensor {
                tensor,
                manager_ctx,
                deleter,
            })))
        } else {
            let whole = Layout::new::<DlManagedTensorVersioned>();
            let known = if case.version.major == MAJOR {
                whole.size()
            } else {
                offset_of!(DlManagedTensorVersioned, tensor)
            };
            let layout = Layout::from_size_align(known, whole.align()).unwrap();
            let deleter = has_deleter.then_some(delete_versioned as unsafe extern "C" fn(_));
            // SAFETY: the layout has a size; the writes lie in it, see above.
            unsafe {
                let managed = alloc(layout).cast::<DlManagedTensorVersioned>();
                assert!(!managed.is_null());
                (&raw mut (*managed).version).write(case.version);
                (&raw mut (*managed).manager_ctx).write(manager_ctx);
                (&raw mut (*managed).deleter).write(deleter);
                (&raw mut (*managed).flags).write(case.flags);
                if case.version.major == MAJOR {
                    (&raw mut (*managed).tensor).write(tensor);
                }
                Managed::Versioned(managed, layout)
            }
        };
        Self { managed, owner }
    }

    /// The tensor, given away. Once.
    pub(super) fn give(&self) -> Result<Foreign> {
        // SAFETY: null, or this value's, which outlives the consumer. Shape and strides have `ndim`
        // entries where that is at most 9, and what is more is refused unread.
        unsafe {
            match self.managed {
                Managed::Null { legacy: false } => Foreign::from_versioned(ptr::null_mut()),
                Managed::Null { legacy: true } => Foreign::from_legacy(ptr::null_mut()),
                Managed::Versioned(managed, _) => Foreign::from_versioned(managed),
                Managed::Legacy(managed) => Foreign::from_legacy(managed),
            }
        }
    }

    /// How often its deleter was called.
    pub(super) fn deleted(&self) -> usize {
        // SAFETY: this value's own, and no call of the deleter is under way.
        unsafe { (*self.owner).deleted }
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        // SAFETY: `new` made them, and no consumer has the tensor any more. The arrays are freed by
        // the first call of the deleter, or here.
        unsafe {
            match self.managed {
                Managed::Null { .. } => {}
                Managed::Versioned(managed, layout) => dealloc(managed.cast(), layout),
                Managed::Legacy(managed) => drop(Box::from_raw(managed)),
            }
            if self.deleted() == 0 {
                free(self.owner);
            }
            drop(Box::from_raw(self.owner));
        }
    }
}

/// # Safety
/// `owner` is an `Owner` whose arrays were not freed.
unsafe fn free(owner: *mut Owner) {
    // SAFETY: `new` made them from boxes; the caller's promise.
    unsafe { drop((Box::from_raw((*owner).shape), Box::from_raw((*owner).strides))) };
}

/// # Safety
/// `owner` is an `Owner`.
unsafe fn delete(owner: *mut c_void) {
    let owner = owner.cast::<Owner>();
    // SAFETY: the caller's promise; freed at the first call only.
    unsafe {
        (*owner).deleted += 1;
        if (*owner).deleted == 1 {
            free(owner);
        }
    }
}

unsafe extern "C" fn delete_versioned(tensor: *mut DlManagedTensorVersioned) {
    // SAFETY: the tensor of a `Theirs`, which is there still. Who looks at it from now on finds
    // another version.
    unsafe {
        delete((&raw const (*tensor).manager_ctx).read());
        (&raw mut (*tensor).version.major).write(u32::MAX);
    }
}

unsafe extern "C" fn delete_legacy(tensor: *mut DlManagedTensor) {
    // SAFETY: as above.
    unsafe {
        delete((*tensor).manager_ctx);
        (*tensor).tensor.ndim = -1;
    }
}
