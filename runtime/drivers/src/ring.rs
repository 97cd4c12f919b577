#![allow(unsafe_code, reason = "descriptors are memory that a device fetches")]
//! Memory for a ring of descriptors.

use contigo_core::mem::{CpuBuf, DriverBuf, Port};
use contigo_core::types::{Error, Refused, Result};
use core::mem::ManuallyDrop;

/// The number of words in the longest descriptor.
const DESCRIPTOR_WORDS_MAX: usize = 16;

/// The size and alignment of a core's descriptors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// The bytes of a descriptor that the core reads or writes.
    pub(super) len_bytes: usize,
    /// Alignment of a descriptor's bus address, a power of two.
    pub(super) align_bytes: usize,
    /// The most descriptors to use, however large the memory is.
    pub(super) most: usize,
}

/// A ring of descriptors in the driver's own memory. Each descriptor has its own cache lines,
/// because the device writes a status into it.
///
/// Only [`release`](Self::release) returns the memory. Dropping or forgetting a ring leaks it.
#[derive(Debug)]
pub(super) struct Ring {
    /// Taken by a release, after which nothing uses the ring.
    memory: ManuallyDrop<DriverBuf>,
    /// Bytes from one descriptor to the next.
    stride: usize,
    len: usize,
    /// The words of a descriptor that the device reads or writes.
    words: usize,
}

impl Ring {
    /// A ring of as many descriptors as fit in `memory`, at least `least`.
    ///
    /// # Errors
    /// The memory comes back with the error of [`DriverBuf::new`], [`Error::BlockSize`] if it is
    /// too small, or [`Error::Misaligned`] if its bus address is not a descriptor's.
    pub(super) fn new(
        memory: CpuBuf,
        port: &Port,
        addr_bits: u32,
        layout: Layout,
        least: usize,
    ) -> Result<Self, Refused<CpuBuf>> {
        let memory = DriverBuf::new(memory, port, addr_bits)?;
        let (addr, len_bytes) = (memory.addr_at(0).0, memory.len_bytes());
        let stride = memory
            .stride(layout.len_bytes)
            .checked_next_multiple_of(layout.align_bytes)
            .unwrap_or(usize::MAX);
        let (len, need_bytes) =
            ((len_bytes / stride).min(layout.most), stride.saturating_mul(least.max(1)));
        let error = if len < least.max(1) {
            Error::BlockSize { len_bytes, need_bytes, line_bytes: stride }
        } else if !addr.is_multiple_of(layout.align_bytes as u64) {
            Error::Misaligned { addr, align_bytes: layout.align_bytes }
        } else {
            let memory = ManuallyDrop::new(memory);
            return Ok(Self { memory, stride, len, words: layout.len_bytes / 4 });
        };
        // SAFETY: no device has its address.
        Err(Refused::new(error, unsafe { memory.reclaim() }))
    }

    /// The number of descriptors.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Does the device's port snoop, so that [`read`](Self::read) is no sync?
    #[inline]
    pub(super) fn is_coherent(&self) -> bool {
        self.memory.is_coherent()
    }

    /// The bus address of descriptor `index`. For an `index` out of range, the result is not an
    /// address in this memory.
    #[inline]
    pub(super) fn addr(&self, index: usize) -> u64 {
        self.memory.addr_at(index * self.stride).0
    }

    /// The descriptor `steps` after `index`; `steps` is at most [`len`](Self::len).
    #[inline]
    pub(super) const fn after(&self, index: usize, steps: usize) -> usize {
        let next = index + steps;
        if next >= self.len { next - self.len } else { next }
    }

    /// The same ring, cleared, for a core whose tail keeps its upper half.
    ///
    /// # Errors
    /// The memory comes back with the error of [`clear`](Self::clear), or [`Error::Unsupported`] if
    /// it crosses a multiple of 4 GiB.
    ///
    /// # Safety
    /// The device fetches none of the descriptors, and does not have the address of this memory.
    pub(super) unsafe fn cleared(
        mut self,
        at_bytes: usize,
        done: u32,
    ) -> Result<Self, Refused<CpuBuf>> {
        const CROSSES: Error = Error::Unsupported {
            what: "the descriptors lie on both sides of a multiple of 4 GiB, and the upper half \
                of TAILDESC cannot change while the core runs",
            fix: "give it other memory for them",
        };
        let cleared = if self.addr(0) >> 32 == self.addr(self.len - 1) >> 32 {
            // SAFETY: the caller's promise.
            unsafe { self.clear(at_bytes, done) }
        } else {
            Err(CROSSES)
        };
        match cleared {
            Ok(()) => Ok(self),
            Err(error) => {
                let memory = ManuallyDrop::into_inner(self.memory);
                // SAFETY: as above.
                Err(Refused::new(error, unsafe { memory.reclaim() }))
            }
        }
    }

    /// Writes words to descriptor `index`, starting at its byte `at_bytes`.
    ///
    /// # Errors
    /// As [`DriverBuf::write`].
    ///
    /// # Safety
    /// The device does not fetch this descriptor during the write. A status in it that has not been
    /// read is lost.
    #[inline]
    pub(super) unsafe fn write(
        &mut self,
        index: usize,
        at_bytes: usize,
        words: &[u32],
    ) -> Result<()> {
        // SAFETY: the caller's promise: the descriptor's lines are its own.
        unsafe { self.memory.write(index * self.stride + at_bytes, words) }
    }

    /// Clears each descriptor, and writes `done` at its byte `at_bytes`, which marks it complete. A
    /// core that fetches a descriptor without a job then reports an error, and finds no address
    /// that the memory's previous owner left.
    ///
    /// # Errors
    /// As [`DriverBuf::write`].
    ///
    /// # Safety
    /// The device fetches none of the descriptors.
    unsafe fn clear(&mut self, at_bytes: usize, done: u32) -> Result<()> {
        let mut words = [0; DESCRIPTOR_WORDS_MAX];
        if let Some(word) = words.get_mut(at_bytes / 4) {
            *word = done;
        }
        let (words, _) = words.split_at(self.words.min(DESCRIPTOR_WORDS_MAX));
        // SAFETY: the caller's promise.
        (0..self.len).try_for_each(|index| unsafe { self.write(index, 0, words) })
    }

    /// Reads words of descriptor `index`, starting at its byte `at_bytes`. This is a sync on a port
    /// that does not snoop.
    ///
    /// # Errors
    /// As [`DriverBuf::read`].
    #[inline]
    pub(super) fn read(&mut self, index: usize, at_bytes: usize, words: &mut [u32]) -> Result<()> {
        self.memory.read(index * self.stride + at_bytes, words)
    }

    /// Returns the memory to its pool.
    ///
    /// # Safety
    /// The device has stopped, and fetches nothing from this memory until it gets another address.
    /// Nothing uses the ring after this.
    pub(super) unsafe fn release(&mut self) {
        // SAFETY: the caller's promise: the memory is taken once, and the device does not use it.
        drop(unsafe { ManuallyDrop::take(&mut self.memory).release() });
    }
}
