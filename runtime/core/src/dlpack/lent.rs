//! A buffer whose tensor a consumer has, or may get.

use super::abi::{DlManagedTensor, DlManagedTensorVersioned};
use super::entry::Entry;
use super::lendable::Lendable;
use crate::mem::CpuBuf;
use crate::mem::block::Block;
use crate::mem::span::Span;
use crate::trace::{self, Event, Site};
use crate::types::platform::same_process;
use crate::types::{Error, Refused, Result};
use core::ptr::NonNull;
use core::{fmt, mem};

/// A buffer that is lent as a tensor. While the tensor is out the buffer belongs to the consumer:
/// it has no view here, and no job. Once the consumer has called the deleter, the buffer can be
/// taken back, or its tensor given out again.
///
/// If it is dropped while the tensor is out, it leaves the buffer to the deleter: until that is
/// called, the tensor keeps the region's memory. The deleter returns the bytes on the consumer's
/// thread, and unmaps the memory if nothing else keeps it.
///
/// ```
/// use contigo::{Align, Error, Region, sim::SimBoard};
/// use contigo::dlpack::{Contract, DataType, Shape, TensorSpec, TensorTable};
/// static TENSORS: TensorTable<4> = TensorTable::new();
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let buf = region.alloc(4096, Align::DLPACK)?;
/// let spec = TensorSpec { contract: Contract::TVM, ..TensorSpec::new(DataType::F32, Shape::new(&[32, 32])?) };
/// let mut lent = TENSORS.lend(buf, &spec)?;
/// let tensor = lent.tensor()?;                     // to a framework: `from_dlpack` of its C or Python API
/// let Err(refused) = lent.take_back() else { panic!() };
/// assert_eq!(refused.error, Error::TensorOut);     // until the framework calls the deleter
/// # let delete = unsafe { tensor.as_ref() }.deleter.unwrap();
/// unsafe { delete(tensor.as_ptr()) };              // which it does when it is done
/// let buf = refused.into_returned().take_back()?;
/// assert_eq!(buf.len_bytes(), 4096);
/// # Ok::<(), Error>(())
/// ```
///
/// The buffer cannot be given to a device meanwhile:
/// ```compile_fail,E0382
/// # use contigo::{dlpack::{TensorSpec, TensorTable}, CpuBuf};
/// fn race(table: &'static TensorTable<4>, buf: CpuBuf, spec: &TensorSpec) {
///     let lent = table.lend(buf, spec).unwrap();
///     buf.to_device(..); // error: `buf` was moved
/// }
/// ```
#[must_use = "dropping it while the tensor is out leaves the buffer to the deleter"]
pub struct Lent<B: Lendable> {
    entry: &'static Entry,
    /// `None` once it was taken back.
    buf: Option<B>,
}

impl<B: Lendable> Lent<B> {
    pub(super) const fn new(entry: &'static Entry, buf: B) -> Self {
        Self { entry, buf: Some(buf) }
    }

    /// The tensor, for one consumer, which owns it until it calls the deleter, once, on any thread.
    /// A program that gives it to a consumer makes sure that nothing uses the elements after that
    /// call. For memory that a GPU sees, the consumer's streams must be done with it
    /// (`cudaStreamSynchronize`). A framework that merely drops its tensor does not wait for that.
    ///
    /// # Errors
    /// [`Error::TensorOut`]: a consumer has it already.
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn tensor(&mut self) -> Result<NonNull<DlManagedTensorVersioned>> {
        let tensor = self.entry.give_versioned()?;
        trace::happened(Event::Lend, Site::here());
        Ok(tensor)
    }

    /// The same in the form before DLPack 1.0, for a consumer that knows no other.
    ///
    /// # Errors
    /// [`Error::TensorOut`]. [`Error::Tensor`] with
    /// [`TensorRule::Flags`](crate::dlpack::TensorRule::Flags): this form cannot forbid writing.
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn legacy_tensor(&mut self) -> Result<NonNull<DlManagedTensor>> {
        let tensor = self.entry.give_legacy()?;
        trace::happened(Event::Lend, Site::here());
        Ok(tensor)
    }

    /// Returns whether a consumer has the tensor.
    #[must_use]
    pub fn is_out(&self) -> bool {
        self.entry.slot.is_out()
    }

    /// Returns the buffer, if no consumer has its tensor.
    ///
    /// # Errors
    /// [`Error::TensorOut`]; everything stays as it was.
    pub fn take_back(mut self) -> Result<B, Refused<Self>> {
        if !self.is_out()
            && let Some(buf) = self.buf.take()
        {
            // `drop` frees the slot.
            buf.came_back();
            return Ok(buf);
        }
        Err(Refused::new(Error::TensorOut, self))
    }
}

impl Lent<CpuBuf> {
    /// The bytes that the buffer shows, if it is of this block.
    pub(super) fn span(&self, block: &dyn Block) -> Option<Span> {
        self.buf.as_ref()?.span_in(block)
    }
}

impl<B: Lendable> Drop for Lent<B> {
    fn drop(&mut self) {
        let Some(buf) = self.buf.take().filter(|_| self.is_out()) else {
            return self.entry.slot.free();
        };
        // Called here, so that a child that is forked later knows that it is one.
        let left = if same_process().is_ok() {
            Some(buf.owned())
        } else {
            trace::happened(Event::Leak { len_bytes: 0 }, Site::NONE);
            mem::forget(buf);
            None
        };
        if let Err(left) = self.entry.abandon(left) {
            // It came back meanwhile.
            self.entry.slot.free();
            drop(left);
        }
    }
}

impl<B: Lendable> fmt::Debug for Lent<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent").field("is_out", &self.is_out()).finish_non_exhaustive()
    }
}
