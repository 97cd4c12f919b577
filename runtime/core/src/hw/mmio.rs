#![allow(
    unsafe_code,
    reason = "a register window is reached by volatile access, here and nowhere else"
)]
//! Registers: typed constants over a window that is real or simulated.
//!
//! A driver names each register once, with its manual, table and access kind, and never adds
//! offsets:
//!
//! ```
//! use contigo::hw::mmio::{Mmio, ReadOnly, ReadWrite, Register};
//! /// UG585, table B.4: control. Read and write.
//! const CTRL: Register<ReadWrite> = Register::at(0x00);
//! /// UG585, table B.5: status. Read only: `STATUS.write(…)` does not compile.
//! const STATUS: Register<ReadOnly> = Register::at(0x04);
//! fn start(window: &impl Mmio) -> bool {
//!     // SAFETY: CTRL's bit 0 starts the self-test, which touches no memory.
//!     unsafe { CTRL.write(window, 1) };
//!     STATUS.read(window) & 1 == 1
//! }
//! ```

use crate::types::DevAddr;
use core::marker::PhantomData;
use core::ptr::NonNull;

/// A window of 32-bit registers: real ([`MmioWindow`]) or simulated (`sim::SimWindow`). A driver is
/// the same code on both.
///
/// # Safety
/// Reading is safe. Writing is not: see [`write32`](Self::write32).
///
/// # Implementation safety
/// 1. The registers are those of one device, and reads return what that device says: a driver gives
///    memory back because a register says that the device has finished. If the device is gone, it
///    touches nothing, and reads return all ones, or the value last written there or at the same
///    place of another page. So a driver trusts a register that it does not write, with a bit in it
///    that the device never sets.
/// 2. No other code writes them as long as this value lives. (Drivers that share a window share a
///    [`Core`](crate::job::Core), which gives each of them a value of its own.)
pub unsafe trait Mmio {
    /// How many bytes of registers there are. A driver checks it once, when it is opened.
    fn len_bytes(&self) -> usize;

    /// Reads the register at `offset` bytes. Returns all ones, as an absent PCI device does, if
    /// `offset` is outside the window or no multiple of 4.
    fn read32(&self, offset: usize) -> u32;

    /// Writes the register at `offset` bytes. Does nothing if `offset` is outside the window or no
    /// multiple of 4.
    ///
    /// # Safety
    /// Whatever the device does with the value, it touches only memory that was handed to it. An
    /// address and a doorbell make it read and write there.
    unsafe fn write32(&self, offset: usize, value: u32);
}

/// Access kind: reading changes nothing; not writable.
#[derive(Clone, Copy, Debug)]
pub struct ReadOnly;
/// Access kind: reading changes nothing; writable.
#[derive(Clone, Copy, Debug)]
pub struct ReadWrite;
/// Access kind: reading clears some bits, so the reader must use the value read.
#[derive(Clone, Copy, Debug)]
pub struct ReadClears;
/// Access kind: writing 1 to a bit flips or clears it.
#[derive(Clone, Copy, Debug)]
pub struct WriteOneToggles;

/// One 32-bit register at a fixed offset, with its access kind.
#[derive(Clone, Copy, Debug)]
pub struct Register<Access> {
    offset: usize,
    access: PhantomData<Access>,
}

impl<Access> Register<Access> {
    /// The register at `offset` bytes from the beginning of the window.
    ///
    /// # Panics
    /// In a constant, at compile time, if `offset` is no multiple of 4.
    #[must_use]
    pub const fn at(offset: usize) -> Self {
        assert!(offset.is_multiple_of(4), "a 32-bit register lies at a multiple of 4");
        Self { offset, access: PhantomData }
    }

    /// The register's offset in bytes.
    #[must_use]
    pub const fn offset(self) -> usize {
        self.offset
    }
}

mod sealed {
    pub trait Access {}
    impl Access for super::ReadOnly {}
    impl Access for super::ReadWrite {}
    impl Access for super::ReadClears {}
    impl Access for super::WriteOneToggles {}
}

/// The access kinds whose reads change nothing.
pub trait Readable: sealed::Access {}
impl Readable for ReadOnly {}
impl Readable for ReadWrite {}
impl Readable for WriteOneToggles {}

/// The access kinds that can be written.
pub trait Writable: sealed::Access {}
impl Writable for ReadWrite {}
impl Writable for WriteOneToggles {}
impl Writable for ReadClears {}

impl<Access: Readable> Register<Access> {
    /// Reads the register.
    #[inline]
    pub fn read(self, window: &impl Mmio) -> u32 {
        window.read32(self.offset)
    }
}

impl<Access: Writable> Register<Access> {
    /// Writes the register.
    ///
    /// # Safety
    /// As [`Mmio::write32`].
    #[inline]
    pub unsafe fn write(self, window: &impl Mmio, value: u32) {
        // SAFETY: the caller's promise.
        unsafe { window.write32(self.offset, value) }
    }
}

impl Register<ReadClears> {
    /// Reads the register, which clears some of its bits: use the value returned.
    #[inline]
    #[must_use = "the bits read are cleared in the device"]
    pub fn read_and_clear(self, window: &impl Mmio) -> u32 {
        window.read32(self.offset)
    }
}

/// A 64-bit bus address in two registers, the low word first, as Vitis HLS lays out a pointer
/// argument.
#[derive(Clone, Copy, Debug)]
pub struct Pointer {
    low: Register<ReadWrite>,
    high: Register<ReadWrite>,
}

impl Pointer {
    /// The pointer whose low word is at `offset` bytes, its high word 4 bytes further.
    #[must_use]
    pub const fn at(offset: usize) -> Self {
        Self { low: Register::at(offset), high: Register::at(offset + 4) }
    }

    /// The offset of the low word; the high word follows.
    #[must_use]
    pub const fn offset(self) -> usize {
        self.low.offset()
    }

    /// Writes both words.
    ///
    /// # Safety
    /// As [`Mmio::write32`].
    #[allow(clippy::cast_possible_truncation, reason = "the low word is the low 32 bits")]
    pub unsafe fn write(self, window: &impl Mmio, addr: DevAddr) {
        // SAFETY: the caller's promise.
        unsafe {
            self.low.write(window, addr.0 as u32);
            self.high.write(window, (addr.0 >> 32) as u32);
        }
    }
}

/// A real register window. It does not own the mapping: the code that made it (UIO, `/dev/mem`)
/// does.
#[derive(Debug)]
pub struct MmioWindow {
    base: NonNull<u32>,
    len_bytes: usize,
}

impl MmioWindow {
    /// # Safety
    /// `base` is aligned to 4. As long as this value lives, `len_bytes` bytes from it are mapped,
    /// readable and writable, as the registers of one device. In that time no other code writes
    /// them, and no Rust reference to them exists.
    #[must_use]
    pub const unsafe fn new(base: NonNull<u32>, len_bytes: usize) -> Self {
        Self { base, len_bytes }
    }

    fn register(&self, offset: usize) -> Option<NonNull<u32>> {
        let fits = offset.is_multiple_of(4)
            && offset.checked_add(4).is_some_and(|end| end <= self.len_bytes);
        // SAFETY: `fits` puts all 4 bytes of the register inside the window that `new` was
        // promised.
        fits.then(|| unsafe { self.base.byte_add(offset) })
    }
}

// SAFETY: the window is plain device memory, reached only by single loads and stores, which any
// thread may do. A driver sees to it that two threads do not disturb one device: `Driver`'s methods
// take `&mut self`.
unsafe impl Send for MmioWindow {}
// SAFETY: as for `Send`.
unsafe impl Sync for MmioWindow {}

/// One load of 32 bits from a device.
///
/// On arm64 this is an explicit `ldr` without write-back. The compiler may turn a volatile read
/// into an `ldr` that also moves the pointer on. A hypervisor that emulates the device cannot carry
/// that out, because the processor does not tell it which register is loaded. (Arm DDI 0487, "ISS
/// encoding for an exception from a Data Abort", ISV; rust-lang/rust#131894.)
///
/// # Safety
/// `register` is a register of 32 bits of a mapped device, aligned to 4.
#[inline]
unsafe fn load(register: NonNull<u32>) -> u32 {
    #[cfg(all(target_arch = "aarch64", target_pointer_width = "64", not(miri)))]
    {
        let value;
        // SAFETY: the caller's promise. It uses no stack and no flags.
        unsafe {
            core::arch::asm!(
                "ldr {value:w}, [{at}]",
                value = out(reg) value,
                at = in(reg) register.as_ptr(),
                options(nostack, preserves_flags)
            )
        };
        value
    }
    #[cfg(not(all(target_arch = "aarch64", target_pointer_width = "64", not(miri))))]
    // SAFETY: the caller's promise.
    unsafe {
        register.read_volatile()
    }
}

/// One store of 32 bits to a device, as [`load`].
///
/// # Safety
/// As [`load`]; and as [`Mmio::write32`].
#[inline]
unsafe fn store(register: NonNull<u32>, value: u32) {
    #[cfg(all(target_arch = "aarch64", target_pointer_width = "64", not(miri)))]
    // SAFETY: the caller's promise. It uses no stack and no flags.
    unsafe {
        core::arch::asm!(
            "str {value:w}, [{at}]",
            value = in(reg) value,
            at = in(reg) register.as_ptr(),
            options(nostack, preserves_flags)
        );
    }
    #[cfg(not(all(target_arch = "aarch64", target_pointer_width = "64", not(miri))))]
    // SAFETY: the caller's promise.
    unsafe {
        register.write_volatile(value);
    }
}

// SAFETY: `new`'s caller promised that these are a device's registers; every access is one load or
// store of one of them.
unsafe impl Mmio for MmioWindow {
    fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    #[inline]
    fn read32(&self, offset: usize) -> u32 {
        // SAFETY: `register` returned a register of the window, aligned to 4, which `new`'s caller
        // keeps mapped.
        self.register(offset).map_or(u32::MAX, |register| unsafe { load(register) })
    }

    #[inline]
    unsafe fn write32(&self, offset: usize, value: u32) {
        if let Some(register) = self.register(offset) {
            // SAFETY: as in `read32`, and the caller's promise.
            unsafe { store(register, value) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_is_one_register_inside_window() {
        let mut words = [0x1111_1111, 0x8000_0001, 0xFFFF_FFFE, 7_u32];
        let base = NonNull::from(&mut words).cast();
        // SAFETY: three of the array's four words, reached through the window alone while it lives;
        // no device is behind them.
        let window = unsafe { MmioWindow::new(base, 12) };
        assert_eq!(
            [0, 4, 8].map(|offset| window.read32(offset)),
            [0x1111_1111, 0x8000_0001, 0xFFFF_FFFE]
        );
        assert_eq!(
            [12, 2, usize::MAX - 3].map(|offset| window.read32(offset)),
            [u32::MAX; 3],
            "outside, or odd"
        );
        for (offset, value) in [(4, 0xDEAD_BEEF), (8, 0), (12, 1), (6, 1), (usize::MAX - 3, 1)] {
            // SAFETY: no device.
            unsafe { window.write32(offset, value) };
        }
        assert_eq!([0, 4, 8].map(|offset| window.read32(offset)), [0x1111_1111, 0xDEAD_BEEF, 0]);
        let _ = window;
        assert_eq!(words, [0x1111_1111, 0xDEAD_BEEF, 0, 7]);
    }
}
