#![allow(
    unsafe_code,
    reason = "a driver writes here beside its jobs, when it knows that the device does not look"
)]
//! A buffer that a driver keeps: microcode, descriptors.

use super::{CpuBuf, DevBuf};
use crate::mem::Port;
use crate::trace::Site;
use crate::types::{DevAddr, Direction, Error, Refused, barrier};
use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

/// Memory that a driver shares with its device, beside the operands of its jobs: a PL330's
/// microcode, a DMA engine's descriptors and the status that it writes into them. It belongs to the
/// driver from [`new`](Self::new) on, for all of its jobs, and is never allocated again.
///
/// It has no view. [`write`](Self::write) writes whole words and makes them visible to the device,
/// [`addr_at`](Self::addr_at) says where the device finds them, and [`read`](Self::read) reads the
/// device's words. All words are little-endian, as every device here reads them.
///
/// **Bytes that the device writes have whole cache lines to themselves**, at least one for each
/// descriptor, even if a manual allows 32 bytes. Put descriptor `i` at `i * stride(32)`
/// ([`stride`](Self::stride)). If two share a line, cleaning one writes the cached copy of the
/// other over the status that the device wrote there. The simulated board does so too, and counts
/// it (`SimCounts::lost_writes`). Bytes that the device only reads may share lines.
///
/// Dropping it leaks the bytes: a device that still fetches would execute what their next owner
/// writes. A driver that has stopped its device gives them back with [`release`](Self::release).
///
/// ```
/// use contigo::{Align, Region, mem::DriverBuf, sim::SimBoard};
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let mut descriptors = DriverBuf::new(region.alloc(256, Align::LINE)?, &board.port(), 32)?;
/// let second = descriptors.stride(32);
/// // SAFETY: no device knows the address yet.
/// unsafe { descriptors.write(second, &[0x1000_0000, 4096, 0])? };
/// assert_eq!(descriptors.addr_at(second).0 % 64, 0);
/// let mut status = [0];
/// descriptors.read(second + 8, &mut status)?; // when a register says that there is something to see
/// assert_eq!(status, [0]);
/// # Ok::<(), contigo::Error>(())
/// ```
#[must_use = "dropping it leaks its memory"]
pub struct DriverBuf {
    buf: ManuallyDrop<DevBuf>,
    /// INVARIANT: the CPU's address of the buffer's first byte.
    cpu: NonNull<u8>,
}

// SAFETY: `DevBuf` is `Send`, and `cpu` is an address inside it, used only by its methods.
unsafe impl Send for DriverBuf {}
// SAFETY: `&DriverBuf` gives numbers only.
unsafe impl Sync for DriverBuf {}

impl DriverBuf {
    /// Takes all of `buf`, for a device on `port` whose address register has `addr_bits` bits. It
    /// must be whole cache lines: the driver writes it while the device writes other buffers.
    ///
    /// # Errors
    /// The buffer comes back with the errors of an operand that does not suit a port
    /// ([`Queue::submit`](crate::Queue::submit)):
    ///
    /// [`Error::WrongBus`], [`Error::CoherencyMismatch`], [`Error::CannotSync`],
    /// [`Error::WholeBlock`], [`Error::SharedLine`], [`Error::Unreachable`], [`Error::BufferSize`]
    /// for no bytes, or the error of the backend's sync. [`Error::Misaligned`] if it does not begin
    /// at a line.
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn new(buf: CpuBuf, port: &Port, addr_bits: u32) -> Result<Self, Refused<CpuBuf>> {
        let (start, line) = (buf.span().start, buf.chunk().line());
        if !line.divides(start as u64) {
            return Err(Refused::new(
                Error::Misaligned { addr: start as u64, align_bytes: line.bytes() },
                buf,
            ));
        }
        // SAFETY: the buffer is dropped or comes back only by `release`, whose caller guarantees
        // that the device has stopped.
        let buf = unsafe { buf.hand_over(port, addr_bits, .., Direction::Bidirectional)? };
        Ok(Self { cpu: buf.cpu_ptr(), buf: ManuallyDrop::new(buf) })
    }

    /// Does its port snoop? Then [`read`](Self::read) is no sync, and costs less than a register.
    /// Memory that is not cached behind another port needs no sync either, but a word of it takes
    /// some 100 to 200 ns, as a register does: so a driver still reads the register first, which
    /// shows the ends of several descriptors at once.
    #[must_use]
    #[inline]
    pub fn is_coherent(&self) -> bool {
        self.buf.is_coherent()
    }

    /// Where the device finds the byte at `offset_bytes`. A plain number: past the end it is no
    /// address of this buffer.
    #[must_use]
    #[inline]
    pub fn addr_at(&self, offset_bytes: usize) -> DevAddr {
        DevAddr(self.buf.slice().addr.0.wrapping_add(offset_bytes as u64))
    }

    /// How many bytes there are.
    #[must_use]
    #[inline]
    pub fn len_bytes(&self) -> usize {
        self.buf.handed_over_bytes()
    }

    /// How far apart descriptors of `descriptor_bytes` lie, so that each has its cache lines to
    /// itself: rounded up to the line of the memory's machine, 64 bytes mostly, and 32 to 128
    /// elsewhere. `usize::MAX` if there is no such number.
    #[must_use]
    pub fn stride(&self, descriptor_bytes: usize) -> usize {
        self.buf.chunk().line().round_up(descriptor_bytes.max(1)).unwrap_or(usize::MAX)
    }

    /// Writes `words` at `offset_bytes`, a multiple of 4, and makes them visible to the device:
    /// cleans them if its port does not snoop, and orders them before the next register write.
    /// ([`Queue::submit`](crate::Queue::submit) has its barrier before it calls the driver.)
    ///
    /// It cleans the whole lines around them: what the device wrote there since the last
    /// [`read`](Self::read) is lost.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if they do not fit, [`Error::Misaligned`] if `offset_bytes` is no
    /// multiple of 4, or the error of [`DevBuf::settled`]: nothing was written. The error of the
    /// backend's sync: they were written, and the device may not see them.
    ///
    /// # Safety
    /// The device does not fetch these bytes now: it is stopped, or works elsewhere in the buffer.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub unsafe fn write(&mut self, offset_bytes: usize, words: &[u32]) -> Result<(), Error> {
        self.check(offset_bytes, words.len())?;
        // Something that the last call began may still read them.
        self.buf.settled()?;
        let to = self.cpu;
        for (index, word) in words.iter().enumerate() {
            // SAFETY: `check` found the word inside the buffer, which is mapped and writable while
            // this handle is alive, and of which this is the only handle: no reference to it
            // exists. It begins at a line (`new`), so the word is aligned. One volatile store of a
            // word is allowed in every kind of mapping, device memory included.
            unsafe {
                to.byte_add(offset_bytes + 4 * index).cast::<u32>().write_volatile(word.to_le())
            };
        }
        self.buf.publish(offset_bytes, 4 * words.len(), Site::here())?;
        barrier::before_doorbell();
        #[cfg(target_arch = "arm")]
        self.read_back(offset_bytes, words.len());
        Ok(())
    }

    /// Drains the store buffer of an outer cache, as Cortex-A9 has (L2C-310), from what the CPU
    /// wrote to memory that it does not cache, behind a port that does not snoop. `dsb` ends before
    /// it: the kernel's `wmb` also calls `outer_sync` (arch/arm/mm/flush.c, `arm_heavy_mb`), which
    /// no program may. A read of the same line waits for the write. Of memory that it caches, this
    /// reads lines that the sync has cleaned. QEMU has no such buffer: this was not seen to matter.
    #[cfg(target_arch = "arm")]
    fn read_back(&self, offset_bytes: usize, words: usize) {
        /// Words in a line of the outer cache.
        const LINE: usize = 8;
        if self.is_coherent() || words == 0 {
            return;
        }
        for index in (0..words).step_by(LINE).chain([words - 1]) {
            // SAFETY: as in `write`, which has just written it.
            unsafe { self.cpu.byte_add(offset_bytes + 4 * index).cast::<u32>().read_volatile() };
        }
        barrier::after_completion();
    }

    /// Reads words that the device wrote at `offset_bytes`, a multiple of 4: a descriptor's status.
    /// No load comes before what precedes this call, such as the poll of a register; if the port
    /// does not snoop, the lines are invalidated first. Each word is loaded once. The loads of one
    /// call have no order, but two calls do: read the flag that says "written" first, the rest
    /// after it.
    ///
    /// On a port that does not snoop each call is a sync: a driver polls a register first, and
    /// reads a descriptor when there is something to see.
    ///
    /// Do not trust the device's words: compare them with what was handed over, and use none as an
    /// index or an address.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::Misaligned`], or the error of the backend's sync: nothing
    /// was read.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn read(&mut self, offset_bytes: usize, words: &mut [u32]) -> Result<(), Error> {
        self.check(offset_bytes, words.len())?;
        barrier::after_completion();
        self.buf.look_again(offset_bytes, 4 * words.len(), Site::here())?;
        for (index, word) in words.iter_mut().enumerate() {
            // SAFETY: as in `write`. The device may write it meanwhile: no reference to it exists,
            // and one aligned volatile load of a word returns its value from before or after that.
            *word = u32::from_le(unsafe {
                self.cpu.byte_add(offset_bytes + 4 * index).cast::<u32>().read_volatile()
            });
        }
        Ok(())
    }

    /// Do `words` words fit at `offset_bytes`?
    #[inline]
    fn check(&self, offset_bytes: usize, words: usize) -> Result<(), Error> {
        let len_bytes = self.len_bytes();
        let fits = offset_bytes <= len_bytes && words <= (len_bytes - offset_bytes) / 4;
        if fits && offset_bytes.is_multiple_of(4) {
            return Ok(());
        }
        Err(Self::refusal(offset_bytes, words, len_bytes))
    }

    #[cold]
    fn refusal(offset_bytes: usize, words: usize, len_bytes: usize) -> Error {
        let end = offset_bytes.saturating_add(words.saturating_mul(4));
        if end > len_bytes {
            Error::OutOfRange { start: offset_bytes, end, len_bytes }
        } else {
            Error::Misaligned { addr: offset_bytes as u64, align_bytes: 4 }
        }
    }

    /// The buffer, for its next owner.
    ///
    /// # Safety
    /// The device fetches none of it any more, and will not until the driver gives it other memory.
    pub unsafe fn release(self) -> DevBuf {
        self.buf.at_rest();
        ManuallyDrop::into_inner(self.buf)
    }

    /// The buffer, if no device has its address yet: for a driver that is refused.
    ///
    /// # Safety
    /// No device was given an address of it.
    pub unsafe fn reclaim(self) -> CpuBuf {
        // SAFETY: the caller's promise.
        unsafe { self.release() }.reclaim()
    }
}

impl fmt::Debug for DriverBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverBuf")
            .field("addr", &self.addr_at(0))
            .field("len_bytes", &self.len_bytes())
            .finish()
    }
}
