#![allow(
    unsafe_code,
    reason = "structures that foreign code reads, and the deleters that it calls"
)]
//! One slot of the table: the tensor that is out, and the deleters that its consumer calls.

use super::TensorSpec;
use super::abi::{
    DataType, DlDevice, DlManagedTensor, DlManagedTensorVersioned, DlTensor, DlVersion, MAJOR,
    MINOR, READ_ONLY,
};
use super::lendable::Owned;
use super::place::Target;
use super::shape::MAX_DIMS;
use super::slot::{Deleted, FREE, Slot, TURNS};
use crate::dlpack::TensorRule;
use crate::trace::{self, Event, Site};
use crate::types::atomic::{AtomicUsize, Ordering};
use crate::types::{Error, Result};
use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr;
use core::ptr::NonNull;

/// One tensor at a time, of [`TURNS`] that are used in turn. The holder owns the fields while the
/// slot is held; the consumer reads them while the tensor is out.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) slot: Slot,
    /// Deleter calls for a tensor that was not out.
    pub(super) misuses: AtomicUsize,
    fields: UnsafeCell<Fields>,
}

// The turn is in the low bits of an entry's address.
const _: () = assert!(TURNS.is_power_of_two() && TURNS <= align_of::<Entry>());

#[derive(Debug)]
struct Fields {
    versioned: [DlManagedTensorVersioned; TURNS],
    legacy: [DlManagedTensor; TURNS],
    /// The tensor that is given out next.
    next: DlTensor,
    flags: u64,
    shape: [i64; MAX_DIMS],
    strides: [i64; MAX_DIMS],
    /// The buffer of a holder that was dropped, for the deleter; `None` where it is leaked. The
    /// holder writes it before it is dropped, and the deleter that finds that reads it.
    left: MaybeUninit<Option<Owned>>,
}

// SAFETY: the fields belong to one thread at a time. `Slot` gives them to its holder from `claim`
// (Acquire) to `give_out` (Release), and again from the deleter's call on (`deleted`, AcqRel, and
// `is_out` and `next_turn`, Acquire). While the tensor is out they are only read, except for
// `left`, which the holder writes and the last deleter reads; a buffer in it may go to any thread.
// A deleter that is called once too often reads two fields, which are written once
// (`give_versioned`). Their pointers lead to the same entry, or are numbers here.
unsafe impl Sync for Entry {}

const NOTHING: DlTensor = DlTensor {
    data: ptr::null_mut(),
    device: DlDevice { device_type: 0, device_id: 0 },
    ndim: 0,
    dtype: DataType { code: 0, bits: 0, lanes: 0 },
    shape: ptr::null_mut(),
    strides: ptr::null_mut(),
    byte_offset: 0,
};

impl Entry {
    pub(super) const fn new() -> Self {
        const LEGACY: DlManagedTensor =
            DlManagedTensor { tensor: NOTHING, manager_ctx: ptr::null_mut(), deleter: None };
        // All zeroes, so that a table takes no room in a program's file.
        const VERSIONED: DlManagedTensorVersioned = DlManagedTensorVersioned {
            version: DlVersion { major: 0, minor: 0 },
            manager_ctx: ptr::null_mut(),
            deleter: None,
            flags: 0,
            tensor: NOTHING,
        };
        let fields = Fields {
            versioned: [VERSIONED; TURNS],
            legacy: [LEGACY; TURNS],
            next: NOTHING,
            flags: 0,
            shape: [0; MAX_DIMS],
            strides: [0; MAX_DIMS],
            left: MaybeUninit::uninit(),
        };
        Self {
            slot: Slot(AtomicUsize::new(FREE)),
            misuses: AtomicUsize::new(0),
            fields: UnsafeCell::new(fields),
        }
    }

    /// Writes the next tensor of a slot that is held.
    pub(super) fn describe(&'static self, spec: &TensorSpec, target: &Target) {
        let fields = self.fields.get();
        let (shape, count) = (spec.shape, spec.shape.dims().len());
        // SAFETY: the slot was claimed and not given out: no other code reads or writes these
        // fields. The projections stay inside them.
        unsafe {
            let dims = (&raw mut (*fields).shape).cast::<i64>();
            let strides = (&raw mut (*fields).strides).cast::<i64>();
            dims.copy_from_nonoverlapping(shape.dims().as_ptr(), count);
            strides.copy_from_nonoverlapping(shape.strides().as_ptr(), count);
            (&raw mut (*fields).next).write(DlTensor {
                // dlpack.h: a tensor of no elements has no data.
                data: if shape.elements() == 0 { ptr::null_mut() } else { target.data },
                device: DlDevice {
                    device_type: target.place.device_type_i32(),
                    device_id: target.device_id,
                },
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_possible_wrap,
                    reason = "at most MAX_DIMS"
                )]
                ndim: count as i32,
                dtype: spec.dtype,
                shape: dims,
                strides,
                byte_offset: if shape.elements() == 0 { 0 } else { target.byte_offset },
            });
            (&raw mut (*fields).flags).write(if spec.read_only { READ_ONLY } else { 0 });
        }
    }

    /// Gives the tensor to a consumer.
    pub(super) fn give_versioned(&'static self) -> Result<NonNull<DlManagedTensorVersioned>> {
        let turn = self.slot.next_turn().ok_or(Error::TensorOut)?;
        let fields = self.fields.get();
        // SAFETY: `turn` is below TURNS, so `given` is inside the array, which is always there. Its
        // fields belong to the caller, who holds the slot. But a deleter that is called once too
        // often may read `manager_ctx`, and its caller `deleter`. So these two are written before
        // the first tensor of this turn is out, and never again.
        let given = unsafe {
            let given = (&raw mut (*fields).versioned).cast::<DlManagedTensorVersioned>().add(turn);
            if (&raw const (*given).manager_ctx).read().is_null() {
                (&raw mut (*given).version).write(DlVersion { major: MAJOR, minor: MINOR });
                (&raw mut (*given).manager_ctx).write(self.context(turn));
                (&raw mut (*given).deleter).write(Some(delete_versioned));
            }
            (&raw mut (*given).flags).write((&raw const (*fields).flags).read());
            (&raw mut (*given).tensor).write((&raw const (*fields).next).read());
            NonNull::new_unchecked(given)
        };
        self.slot.give_out(turn);
        Ok(given)
    }

    /// The same in the form before DLPack 1.0, which has no flags.
    pub(super) fn give_legacy(&'static self) -> Result<NonNull<DlManagedTensor>> {
        let fields = self.fields.get();
        // SAFETY: held by the caller, or out; the flags are written before either.
        let flags = unsafe { (&raw const (*fields).flags).read() };
        if flags & READ_ONLY != 0 {
            return Err(Error::Tensor { rule: TensorRule::Flags, found: flags, need: 0 });
        }
        let turn = self.slot.next_turn().ok_or(Error::TensorOut)?;
        // SAFETY: as in `give_versioned`.
        let given = unsafe {
            let given = (&raw mut (*fields).legacy).cast::<DlManagedTensor>().add(turn);
            if (&raw const (*given).manager_ctx).read().is_null() {
                (&raw mut (*given).manager_ctx).write(self.context(turn));
                (&raw mut (*given).deleter).write(Some(delete_legacy));
            }
            (&raw mut (*given).tensor).write((&raw const (*fields).next).read());
            NonNull::new_unchecked(given)
        };
        self.slot.give_out(turn);
        Ok(given)
    }

    /// This entry's address, and in its low bits, which are 0, the turn.
    fn context(&'static self, turn: usize) -> *mut c_void {
        ptr::from_ref(self).map_addr(|addr| addr | turn).cast_mut().cast()
    }

    /// Drops the holder, and leaves `buf` to the deleter.
    ///
    /// # Errors
    /// The buffer comes back, and the holder stays: its tensor is not out, or came back meanwhile.
    pub(super) fn abandon(&self, buf: Option<Owned>) -> Result<(), Option<Owned>> {
        let left = place_of_left(&self.fields);
        // SAFETY: the field is the holder's while the slot is held or out, and the caller is the
        // holder.
        unsafe { left.write(MaybeUninit::new(buf)) };
        if self.slot.abandon() {
            return Ok(());
        }
        // SAFETY: as above, still; it was written just now.
        Err(unsafe { left.read().assume_init() })
    }

    fn deleted(&self, turn: usize) {
        let left = match self.slot.deleted(turn) {
            Deleted::Back => None,
            Deleted::Last => {
                // SAFETY: the holder wrote it before it was dropped (`abandon`), and the slot is
                // this thread's until it is freed.
                let left = unsafe { place_of_left(&self.fields).read().assume_init() };
                self.slot.free();
                left
            }
            Deleted::Twice => {
                self.misuses.fetch_add(1, Ordering::Relaxed);
                return;
            }
        };
        trace::happened(Event::Return, Site::NONE);
        if let Some(buf) = left {
            buf.end();
        }
    }
}

/// Where a holder leaves its buffer.
fn place_of_left(fields: &UnsafeCell<Fields>) -> *mut MaybeUninit<Option<Owned>> {
    // SAFETY: a place inside the cell; nothing is read.
    unsafe { &raw mut (*fields.get()).left }
}

/// `DLManagedTensorVersioned::deleter`.
unsafe extern "C" fn delete_versioned(tensor: *mut DlManagedTensorVersioned) {
    // SAFETY: a consumer calls it with the tensor that it was given, which lies in a `static`
    // table, as does what its context leads to. The context is written once, before that. For null,
    // nothing is done.
    unsafe {
        if !tensor.is_null() {
            deleted((&raw const (*tensor).manager_ctx).read());
        }
    }
}

/// `DLManagedTensor::deleter`.
unsafe extern "C" fn delete_legacy(tensor: *mut DlManagedTensor) {
    // SAFETY: as in `delete_versioned`.
    unsafe {
        if !tensor.is_null() {
            deleted((&raw const (*tensor).manager_ctx).read());
        }
    }
}

/// # Safety
/// `manager_ctx` is of a tensor of a table.
unsafe fn deleted(manager_ctx: *mut c_void) {
    let turn = manager_ctx.addr() & (TURNS - 1);
    // SAFETY: `context` made it of the entry's own address, and entries are never moved nor
    // dropped.
    let entry = unsafe { &*manager_ctx.map_addr(|addr| addr - turn).cast::<Entry>() };
    entry.deleted(turn);
}
