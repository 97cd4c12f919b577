#![allow(unsafe_code, reason = "descriptors are memory that a device fetches")]
//! Memory for a circle of descriptors, each of which follows the one before.

use contigo_core::{
    mem::{CpuBuf, DriverBuf, Port},
    types::{Error, Refused, Result},
};

/// The words of the longest descriptor.
const DESCRIPTOR_WORDS_MAX: usize = 16;

/// The descriptors of a core: so many bytes each, at such addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// How many bytes of a descriptor the core reads or writes.
    pub(super) len_bytes: usize,
    /// Its bus address is a multiple of this, a power of two.
    pub(super) align_bytes: usize,
    /// The most descriptors that are used, however large the memory is.
    pub(super) most: usize,
}

/// A circle of descriptors in memory of the driver's own. Each has its cache lines to itself,
/// because the device writes statuses into them.
///
/// The memory comes back only by [`release`](Self::release). A circle that is dropped, or
/// forgotten, leaks it.
#[derive(Debug)]
pub(super) struct Ring {
    /// `None`: it was released.
    memory: Option<DriverBuf>,
    /// From one descriptor to the next.
    stride: usize,
    len: usize,
    /// How many words of a descriptor the device reads or writes.
    words: usize,
}

impl Ring {
    /// A circle of as many descriptors as `memory` has room for, at least `least`.
    ///
    /// # Errors
    /// The memory comes back with the error of [`DriverBuf::new`], [`Error::BlockSize`] where it is
    /// too small, or [`Error::Misaligned`] where its bus address suits no descriptor.
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
            return Ok(Self { memory: Some(memory), stride, len, words: layout.len_bytes / 4 });
        };
        // SAFETY: no device was told of it.
        Err(Refused::new(error, unsafe { memory.reclaim() }))
    }

    /// How many descriptors there are.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// The bus address of descriptor `index`. It is a number: of one that is not there, it is no
    /// address of this memory.
    pub(super) fn addr(&self, index: usize) -> u64 {
        self.memory
            .as_ref()
            .map_or(u64::MAX, |memory| memory.addr_at(index.saturating_mul(self.stride)).0)
    }

    /// The descriptor that follows `index`, by `steps` of at most [`len`](Self::len).
    pub(super) const fn after(&self, index: usize, steps: usize) -> usize {
        let next = index + steps;
        if next >= self.len { next - self.len } else { next }
    }

    /// The same circle, cleared, of a core whose tail's upper half stays as it is.
    ///
    /// # Errors
    /// The memory comes back with the error of [`clear`](Self::clear), or [`Error::Unsupported`]
    /// where it lies on both sides of a multiple of 4 GiB.
    ///
    /// # Safety
    /// The device fetches none of them, and was not told of this memory.
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
        match (cleared.err(), self.memory.take()) {
            // SAFETY: as above.
            (Some(error), Some(memory)) => Err(Refused::new(error, unsafe { memory.reclaim() })),
            (_, memory) => Ok(Self { memory, ..self }),
        }
    }

    /// Writes words into descriptor `index`, from its byte `at_bytes` on.
    ///
    /// # Errors
    /// As [`DriverBuf::write`].
    ///
    /// # Safety
    /// The device does not fetch this descriptor now, and a status of it that was not read is of no
    /// use.
    pub(super) unsafe fn write(
        &mut self,
        index: usize,
        at_bytes: usize,
        words: &[u32],
    ) -> Result<()> {
        let Some(memory) = &mut self.memory else { return Err(Error::Busy) };
        // SAFETY: the caller's promise: the descriptor's lines are its own.
        unsafe { memory.write(index.saturating_mul(self.stride).saturating_add(at_bytes), words) }
    }

    /// Writes each descriptor: zeros, with `done` at its byte `at_bytes`, which says that it is
    /// complete. So a core that fetches one that it was never given finds an error there, and no
    /// address that the memory's owner before left.
    ///
    /// # Errors
    /// As [`DriverBuf::write`].
    ///
    /// # Safety
    /// The device fetches none of them.
    unsafe fn clear(&mut self, at_bytes: usize, done: u32) -> Result<()> {
        let mut words = [0; DESCRIPTOR_WORDS_MAX];
        if let Some(word) = words.get_mut(at_bytes / 4) {
            *word = done;
        }
        let (words, _) = words.split_at(self.words.min(DESCRIPTOR_WORDS_MAX));
        // SAFETY: the caller's promise.
        (0..self.len).try_for_each(|index| unsafe { self.write(index, 0, words) })
    }

    /// Reads words of descriptor `index`, from its byte `at_bytes` on. It is a sync, on a port that
    /// does not snoop.
    ///
    /// # Errors
    /// As [`DriverBuf::read`].
    pub(super) fn read(&mut self, index: usize, at_bytes: usize, words: &mut [u32]) -> Result<()> {
        let Some(memory) = &mut self.memory else { return Err(Error::Busy) };
        memory.read(index.saturating_mul(self.stride).saturating_add(at_bytes), words)
    }

    /// Gives the memory back to its pool.
    ///
    /// # Safety
    /// The device has stopped, and fetches none of it before it gets the address of other memory.
    pub(super) unsafe fn release(&mut self) {
        // SAFETY: the caller's promise.
        drop(self.memory.take().map(|memory| unsafe { memory.release() }));
    }
}
