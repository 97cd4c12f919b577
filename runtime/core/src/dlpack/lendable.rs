//! The buffers that can be lent, and where a consumer finds their bytes.

use super::ByteOffset;
use super::place::{Place, Target};
use crate::dlpack::TensorRule;
use crate::mem::{Api, CpuBuf, DevBuf, DevSlice, Handle};
use crate::trace::Site;
use crate::types::platform::same_process;
use crate::types::{Bus, DevAddr, Direction, Error, Result};
use core::{mem, ptr};

/// A buffer that can be lent: a [`CpuBuf`] or a [`DevBuf`].
pub trait Lendable: sealed::Sealed {}

impl Lendable for CpuBuf {}
impl Lendable for DevBuf {}

pub(super) mod sealed {
    use super::{ByteOffset, Owned, Result, Site, Target};

    /// An implementor says where memory is, and keeps all other code from it.
    pub trait Sealed: Sized {
        /// Where a consumer finds it.
        fn target(&self, offset: ByteOffset) -> Result<Target>;

        /// The first `len_bytes` belong to the consumer, which reads, or reads and writes them.
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
        self.will_be_written();
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
        // The consumer waits for nothing, not even for the sync that this began.
        self.settled()
    }

    fn came_back(&self) {
        self.at_rest();
    }

    fn owned(self) -> Owned {
        Owned::Dev(self)
    }
}

/// A buffer whose holder was dropped while its tensor was out: the deleter owns it.
#[derive(Debug)]
pub enum Owned {
    /// The CPU's.
    Cpu(CpuBuf),
    /// A device's.
    Dev(DevBuf),
}

impl Owned {
    /// Returns the bytes to their region. This may drop the region's last handle.
    pub(super) fn end(self) {
        if same_process().is_err() {
            // A child of fork(2) has this table, but none of the memory: the bytes are the
            // parent's.
            return mem::forget(self);
        }
        match self {
            Self::Cpu(buf) => drop(buf),
            Self::Dev(buf) => drop(buf),
        }
    }
}

/// Bytes of an object: its handle, to which nothing can be added, and their offset in it.
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
