//! A buffer whose tensor a consumer has, or may get.

use super::{
    ByteOffset, Place,
    abi::{DlManagedTensor, DlManagedTensorVersioned},
    table::{Entry, Target},
};
use crate::{
    dlpack::TensorRule,
    mem::{Api, CpuBuf, DevBuf, DevSlice, Handle, block::Block, span::Span},
    trace::{self, Event, Site},
    types::{Bus, DevAddr, Direction, Error, Refused, Result, platform::same_process},
};
use core::{fmt, mem, ptr, ptr::NonNull};

/// A buffer that can be lent: a [`CpuBuf`] or a [`DevBuf`].
pub trait Lendable: sealed::Sealed {}

impl Lendable for CpuBuf {}
impl Lendable for DevBuf {}

pub(super) mod sealed {
    use super::{ByteOffset, Owned, Result, Site, Target};

    /// Who implements it says where memory is, and keeps everybody else from it.
    pub trait Sealed: Sized {
        /// Where a consumer finds it.
        fn target(&self, offset: ByteOffset) -> Result<Target>;

        /// Its first `len_bytes` belong to the consumer, who reads, or reads and writes.
        fn hand_over(&mut self, len_bytes: usize, read_only: bool, site: Site) -> Result<()>;

        /// The consumer is done with it.
        fn came_back(&self);

        /// The buffer without its type.
        fn owned(self) -> Owned;
    }
}

impl sealed::Sealed for CpuBuf {
    fn target(&self, offset: ByteOffset) -> Result<Target> {
        let (first, block) = (self.start(), self.block_start());
        // Pinned memory belongs to no GPU: its producers say 0.
        let place = if matches!(self.bus(), Bus::Gpu(_)) { Place::CudaHost } else { Place::Cpu };
        let (data, byte_offset) = match offset {
            ByteOffset::Folded => (first, 0),
            ByteOffset::Kept => (block, self.offset_bytes() as u64),
        };
        let addr = first.addr().get() as u64;
        Ok(Target {
            data: data.as_ptr().cast(),
            byte_offset,
            addr,
            len_bytes: self.len_bytes(),
            place,
            device_id: 0,
        })
    }

    /// The consumer is the CPU, on the same side of the caches.
    fn hand_over(&mut self, _: usize, _: bool, _: Site) -> Result<()> {
        Ok(())
    }

    fn came_back(&self) {}

    fn owned(self) -> Owned {
        Owned::Cpu(self)
    }
}

impl sealed::Sealed for DevBuf {
    fn target(&self, offset: ByteOffset) -> Result<Target> {
        let DevSlice { addr: DevAddr(addr), len_bytes, .. } = self.slice();
        if let Some(handle) = self.handle() {
            return in_object(handle, addr, self.offset_bytes(), len_bytes, offset);
        }
        let (place, device_id) = match self.bus() {
            Bus::Gpu(ordinal) => (Place::Cuda, i32::try_from(ordinal).unwrap_or(i32::MAX)),
            _ => (Place::BusAddress, 0),
        };
        let byte_offset = match offset {
            ByteOffset::Folded => 0,
            ByteOffset::Kept => self.offset_bytes() as u64,
        };
        // On 32 bits a bus address may not fit a pointer.
        let data = usize::try_from(addr.wrapping_sub(byte_offset));
        let data = data.map_err(|_| Error::Tensor {
            rule: TensorRule::Address,
            found: addr,
            need: usize::MAX as u64,
        })?;
        Ok(Target {
            data: ptr::without_provenance_mut(data),
            byte_offset,
            addr,
            len_bytes,
            place,
            device_id,
        })
    }

    fn hand_over(&mut self, len_bytes: usize, read_only: bool, site: Site) -> Result<()> {
        // A tensor of no elements has no bytes to hand over.
        if len_bytes == 0 {
            return Ok(());
        }
        self.hand_on(
            len_bytes,
            if read_only { Direction::ToDevice } else { Direction::Bidirectional },
            site,
        )?;
        // The consumer waits for nothing, also not for what this began.
        self.settled()
    }

    fn came_back(&self) {
        self.at_rest();
    }

    fn owned(self) -> Owned {
        Owned::Dev(self)
    }
}

/// A buffer whose holder has gone while its tensor was out: the deleter's, wherever that is called.
#[derive(Debug)]
pub enum Owned {
    /// The CPU's.
    Cpu(CpuBuf),
    /// A device's.
    Dev(DevBuf),
}

impl Owned {
    /// Gives the bytes back. It may be the last that keeps their region.
    pub(super) fn end(self) {
        if same_process().is_err() {
            // A child of fork(2) has this table, and none of the memory: the bytes are the
            // parent's.
            return mem::forget(self);
        }
        match self {
            Self::Cpu(buf) => drop(buf),
            Self::Dev(buf) => drop(buf),
        }
    }
}

/// Bytes of an object: its handle, to which nothing is added, and where they begin in it.
fn in_object(
    handle: Handle,
    addr: u64,
    offset_bytes: usize,
    len_bytes: usize,
    offset: ByteOffset,
) -> Result<Target> {
    if offset == ByteOffset::Folded && offset_bytes != 0 {
        return Err(Error::Tensor {
            rule: TensorRule::Handle,
            found: offset_bytes as u64,
            need: 0,
        });
    }
    let place = match handle.api {
        Api::OpenCl => Place::OpenCl,
        Api::Vulkan => Place::Vulkan,
    };
    // On 32 bits Vulkan's handles may not fit a pointer.
    let need = usize::MAX as u64;
    let data = usize::try_from(handle.raw).map_err(|_| Error::Tensor {
        rule: TensorRule::Address,
        found: handle.raw,
        need,
    })?;
    let device_id = i32::try_from(handle.device_id).unwrap_or(i32::MAX);
    Ok(Target {
        data: ptr::without_provenance_mut(data),
        byte_offset: offset_bytes as u64,
        addr,
        len_bytes,
        place,
        device_id,
    })
}

/// A buffer that is lent as a tensor. While the tensor is out the buffer belongs to the consumer:
/// it has no view here, and no job. Once the consumer has called the deleter, it can be taken back,
/// or its tensor given out anew.
///
/// Dropped while the tensor is out, it leaves the buffer to the deleter: until that is called, the
/// tensor keeps the region's memory. The deleter gives the bytes back on the consumer's thread, and
/// unmaps the memory where it was the last to keep it.
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
    /// Not there any more once it was taken back.
    buf: Option<B>,
}

impl<B: Lendable> Lent<B> {
    pub(super) const fn new(entry: &'static Entry, buf: B) -> Self {
        Self { entry, buf: Some(buf) }
    }

    /// The tensor, for one consumer. It owns it until it calls the deleter, once, on any
    /// thread. A program that gives it to a consumer makes sure that nothing uses the elements
    /// after that call. For memory that a GPU sees, the consumer's streams must be done with it
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
    /// [`Error::TensorOut`]. [`Error::Tensor`] with [`TensorRule::Flags`]: this form cannot say
    /// that nothing may be written.
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn legacy_tensor(&mut self) -> Result<NonNull<DlManagedTensor>> {
        let tensor = self.entry.give_legacy()?;
        trace::happened(Event::Lend, Site::here());
        Ok(tensor)
    }

    /// Does a consumer have the tensor?
    #[must_use]
    pub fn is_out(&self) -> bool {
        self.entry.slot().is_out()
    }

    /// The buffer again, when no consumer has its tensor.
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
    /// The bytes that the buffer shows, where it is of this block.
    pub(super) fn span(&self, block: &dyn Block) -> Option<Span> {
        self.buf.as_ref()?.span_in(block)
    }
}

impl<B: Lendable> Drop for Lent<B> {
    fn drop(&mut self) {
        let Some(buf) = self.buf.take().filter(|_| self.is_out()) else {
            return self.entry.slot().free();
        };
        // Asked here, so that a child that is made later knows that it is one.
        let left = if same_process().is_ok() {
            Some(buf.owned())
        } else {
            trace::happened(Event::Leak { len_bytes: 0 }, Site::NONE);
            mem::forget(buf);
            None
        };
        if let Err(left) = self.entry.abandon(left) {
            // It came back meanwhile.
            self.entry.slot().free();
            drop(left);
        }
    }
}

impl<B: Lendable> fmt::Debug for Lent<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent").field("is_out", &self.is_out()).finish_non_exhaustive()
    }
}
