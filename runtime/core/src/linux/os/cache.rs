//! Cache maintenance by address, from user space, for memory whose kernel driver does none.
//!
//! | architecture | who maintains the caches of [`HugeTlb`](crate::linux::memory::HugeTlb) and [`DmaHeap`](crate::linux::memory::DmaHeap) memory |
//! |---|---|
//! | x86, x86-64 | no code needs to: every bus master of a PC snoops |
//! | aarch64 | this file: Linux lets EL0 run `dc cvac` and `dc civac` (a mapping begins and ends at a page, so no line of it is outside) |
//! | others | no code can: armv7 has no such instruction outside the kernel, so the memory is refused on a non-coherent port |
//!
//! # References
//! - Arm Architecture Reference Manual for A-profile (DDI 0487): `DC CVAC`, `DC CIVAC`, `DC IVAC`,
//!   `CTR_EL0`, `SCTLR_EL1` (fields UCI and UCT), and "Ordering and completion of data and
//!   instruction cache instructions".
//! - Linux `arch/arm64/include/asm/sysreg.h`: `INIT_SCTLR_EL1_MMU_ON` holds `SCTLR_EL1_UCI` and
//!   `SCTLR_EL1_UCT`; `arch/arm64/mm/dma-mapping.c`: what the kernel's own DMA API does.
#![cfg_attr(
    target_arch = "aarch64",
    allow(
        unsafe_code,
        reason = "dc cvac, dc civac, dsb and mrs ctr_el0 are instructions that no safe function has"
    )
)]

use super::map;
use crate::mem::backend::{MAX_SYNC_RANGES, Mapping, SyncRange, SyncScope};
use crate::types::{Align, BaseAddr, Bus, Error, PhysAddr};
use core::ops::Range;
use memmap2::MmapRaw;

/// The advice where user space cannot maintain the caches.
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
const INSTALL: &str =
    "use u-dma-buf, whose module maintains the caches that user space cannot on this CPU";

/// The bytes that one sync call covers, for memory that only this file maintains. Ask once and keep
/// the answer.
pub(crate) fn scope() -> SyncScope {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    return SyncScope::Coherent;
    #[cfg(target_arch = "aarch64")]
    return SyncScope::Range { granule_bytes: granule().bytes() };
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
    return SyncScope::None { install: INSTALL };
}

/// The number of bytes that two owners must not share on this machine, whether this file or the
/// kernel maintains the caches. On aarch64 it is the largest run that a core may write back
/// (`CTR_EL0.CWG`), never less than [`Align::LINE`].
///
/// Elsewhere it is [`Align::LINE`]: a PC snoops, and the lines of the armv7 cores here have 32 or
/// 64 bytes (Cortex-A7, A9, A15). A 32-bit program on arm64 cannot read the register: run a 64-bit
/// one where the granule is larger.
pub(crate) fn granule() -> Align {
    #[cfg(target_arch = "aarch64")]
    return lines::granule(el0::cache_type());
    #[cfg(not(target_arch = "aarch64"))]
    return Align::LINE;
}

/// The error for a list longer than [`MAX_SYNC_RANGES`], which no caller makes.
pub(crate) const TOO_MANY_RANGES: Error =
    Error::TooMany { what: "ranges of one sync", most: MAX_SYNC_RANGES as u64 };

/// The memory's coherency, as far as it is known without asking a kernel driver. On a PC all memory
/// is coherent. On ARM that is a property of the port, and nothing is known of the memory.
pub(crate) const COHERENT: Option<bool> =
    if cfg!(any(target_arch = "x86", target_arch = "x86_64")) { Some(true) } else { None };

/// Memory by its physical address, whose caches this file maintains where that is needed.
pub(crate) fn mapping(map: &MmapRaw, base: PhysAddr, scope: SyncScope) -> Mapping {
    Mapping {
        cpu: map::start(map),
        len_bytes: map.len(),
        base: BaseAddr::Phys(base),
        bus: Bus::Soc,
        scope,
        coherent: COHERENT,
    }
}

/// Hands bytes `ranges` of `map` to a device that does not snoop: cleans the lines to the point of
/// coherency, and waits once for all of them.
///
/// Clean is right for every direction, and the kernel does the same (`arch_sync_dma_for_device`).
/// The device reads the bytes that the CPU wrote, and no dirty line is left that could be evicted
/// over the device's output. [`for_cpu`] deals with lines that stay behind clean and stale. A line
/// that a neighbour shares is written back as it is: no byte changes.
///
/// # Errors
/// [`Error::OutOfRange`]; [`Error::CannotSync`] on an architecture where user space cannot.
pub(crate) fn for_device(map: &MmapRaw, ranges: &[SyncRange]) -> Result<(), Error> {
    check(map, ranges)?;
    #[cfg(target_arch = "aarch64")]
    el0::clean(map, ranges.iter().map(|each| each.range.clone()));
    possible()
}

/// Takes bytes `ranges` of `map` back: the CPU's next read fetches what the device wrote. Does
/// nothing where the device only read.
///
/// EL0 has no pure invalidate (`dc ivac` traps, it could throw away the kernel's data), so this is
/// `dc civac`, clean and invalidate. That is right here because every line that the CPU holds is
/// clean: [`for_device`] cleaned it, and since then no code wrote through the CPU, for device-owned
/// memory has no view. Lines that the CPU may have fetched meanwhile, speculatively, are clean too.
/// So the clean half writes back nothing, and the device's bytes survive.
///
/// # Errors
/// As [`for_device`].
pub(crate) fn for_cpu(map: &MmapRaw, ranges: &[SyncRange]) -> Result<(), Error> {
    check(map, ranges)?;
    #[cfg(target_arch = "aarch64")]
    if ranges.iter().any(|each| each.direction.device_writes()) {
        let written = ranges.iter().filter(|each| each.direction.device_writes());
        el0::clean_invalidate(map, written.map(|each| each.range.clone()));
    }
    possible()
}

/// Only bytes of the mapping: what lies after it may be unmapped, and then the instruction faults.
fn check(map: &MmapRaw, ranges: &[SyncRange]) -> Result<(), Error> {
    let len_bytes = map.len();
    let is_inside = |range: &Range<usize>| range.start <= range.end && range.end <= len_bytes;
    match ranges.iter().map(|each| &each.range).find(|range| !is_inside(range)) {
        None => Ok(()),
        Some(range) => Err(Error::OutOfRange { start: range.start, end: range.end, len_bytes }),
    }
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64"))]
#[allow(clippy::unnecessary_wraps, reason = "the other architectures refuse here")]
const fn possible() -> Result<(), Error> {
    Ok(())
}

/// A region does not ask for a sync under [`SyncScope::None`]. A caller who asks all the same must
/// not believe that it was done.
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
const fn possible() -> Result<(), Error> {
    Err(Error::CannotSync { port: "(any that does not snoop)", install: INSTALL })
}

/// The arithmetic: numbers only, so that any machine can test it.
#[cfg(any(target_arch = "aarch64", test))]
mod lines {
    use crate::types::Align;
    use core::ops::Range;

    /// Where a core reports no granule, DDI 0487 says to assume 2 KiB, or the largest line of the
    /// Cache Size ID registers, which EL0 cannot read. This is Linux's answer
    /// (`cache_line_size_of_cpu` in `arch/arm64/include/asm/cache.h`: `ARCH_DMA_MINALIGN`).
    const UNKNOWN_GRANULE_BYTES: usize = 128;

    /// The smallest line of any data cache: CTR_EL0.DminLine, bits 19:16, is log2 of its words of 4
    /// bytes.
    pub(crate) fn line_bytes(ctr_el0: u64) -> usize {
        4 << ((ctr_el0 >> 16) & 0xF)
    }

    /// The bytes that two owners may not share: the cache write-back granule CTR_EL0.CWG, bits
    /// 27:24, in the same unit; 0 says nothing.
    pub(crate) fn granule(ctr_el0: u64) -> Align {
        let granule_bytes = match (ctr_el0 >> 24) & 0xF {
            0 => UNKNOWN_GRANULE_BYTES,
            words_log2 => 4 << words_log2,
        };
        // Both are powers of two, so `new` refuses neither.
        Align::new(granule_bytes.max(line_bytes(ctr_el0)))
            .map_or(Align::LINE, |granule| granule.max(Align::LINE))
    }

    /// The first byte of every line that holds a byte of `range`, counted from address `cpu`.
    pub(crate) fn of(
        cpu: usize,
        range: Range<usize>,
        line_bytes: usize,
    ) -> impl Iterator<Item = usize> {
        let first = cpu.wrapping_add(range.start) & !(line_bytes - 1);
        let end = if range.is_empty() { first } else { cpu.wrapping_add(range.end) };
        (first..end).step_by(line_bytes)
    }

    #[cfg(test)]
    mod tests {
        #[test]
        fn every_line_that_holds_a_byte_and_no_other() {
            for line_bytes in [16, 64, 128] {
                for start in 0..300 {
                    for end in start..300 {
                        let mut lines = super::of(0x4000, start..end, line_bytes);
                        for line in (0x4000..0x4200).step_by(line_bytes) {
                            if start < end
                                && line < 0x4000 + end
                                && 0x4000 + start < line + line_bytes
                            {
                                assert_eq!(
                                    lines.next(),
                                    Some(line),
                                    "{start}..{end} in lines of {line_bytes}"
                                );
                            }
                        }
                        assert_eq!(lines.next(), None, "{start}..{end} in lines of {line_bytes}");
                    }
                }
            }
        }

        #[test]
        fn granule_covers_what_a_core_writes_back() {
            for (ctr_el0, line_bytes, granule_bytes) in [
                (0x8444_8004, 64, 64),   // Cortex-A53 (DDI 0500, "Cache Type Register")
                (0x8444_C004, 64, 64),   // Cortex-A57 and A72
                (0x8544_8004, 64, 128),  // a larger granule
                (0x8045_8004, 128, 128), // a larger line, and no granule
                (0x8044_8004, 64, 128),  // no granule
                (0x8333_8003, 32, 64),   // small lines
                (0x8644_C004, 64, 256),
                (0x8944_C004, 64, 2048), // the largest that is defined
            ] {
                assert_eq!(
                    (super::line_bytes(ctr_el0), super::granule(ctr_el0).bytes()),
                    (line_bytes, granule_bytes),
                    "{ctr_el0:#x}"
                );
            }
        }
    }
}

/// The instructions.
#[cfg(target_arch = "aarch64")]
mod el0 {
    use super::lines;
    use core::arch::asm;
    use core::ops::Range;
    use memmap2::MmapRaw;

    /// `CTR_EL0`, the cache type register (DDI 0487).
    pub(crate) fn cache_type() -> u64 {
        let value;
        // SAFETY: 1. EL0 may read CTR_EL0: Linux sets SCTLR_EL1.UCT. Where an erratum or unlike
        // cores forbid that, it traps the read and answers with the value that is safe on every
        // core (`ctr_read_handler`).
        // 2. Reading it changes nothing.
        unsafe {
            asm!("mrs {}, ctr_el0", out(reg) value, options(nomem, nostack, preserves_flags))
        };
        value
    }

    /// Every line of `map` that holds a byte of `ranges`.
    fn all_lines(
        map: &MmapRaw,
        ranges: impl Iterator<Item = Range<usize>>,
    ) -> impl Iterator<Item = usize> {
        let (cpu, line_bytes) = (map.as_ptr().addr(), lines::line_bytes(cache_type()));
        ranges.flat_map(move |range| lines::of(cpu, range, line_bytes))
    }

    /// `dc cvac` on every line of `ranges`; returns when memory has the bytes. The caller has
    /// checked `ranges`.
    pub(crate) fn clean(map: &MmapRaw, ranges: impl Iterator<Item = Range<usize>>) {
        for line in all_lines(map, ranges) {
            // SAFETY: 1. EL0 may run `dc cvac`: Linux sets SCTLR_EL1.UCI, and where an erratum of
            // the Cortex-A53 forbids that, it traps and runs `dc civac` instead
            // (`user_cache_maint_handler`).
            // 2. `line` holds a byte of `map`, which is mapped readable and writable while it is
            //    borrowed: no fault.
            // 3. A clean changes no byte that the CPU can see. Not `nomem`: no earlier store may
            //    move below it.
            unsafe { asm!("dc cvac, {}", in(reg) line, options(nostack, preserves_flags)) };
        }
        barrier();
    }

    /// `dc civac` on every line of `ranges`; returns when no cache holds any of them. The caller
    /// has checked `ranges`.
    pub(crate) fn clean_invalidate(map: &MmapRaw, ranges: impl Iterator<Item = Range<usize>>) {
        // A load told the CPU that the device is done, and a `dc` may overtake it (DDI 0487,
        // "Ordering and completion").
        barrier();
        for line in all_lines(map, ranges) {
            // SAFETY: 1. and 2. as in `clean`; `dc civac` is under SCTLR_EL1.UCI as well.
            // 3. It writes back before it throws away: no store is lost. Not `nomem`: no later load
            //    may move above it.
            unsafe { asm!("dc civac, {}", in(reg) line, options(nostack, preserves_flags)) };
        }
        barrier();
    }

    /// Waits for the maintenance to be done, for every master: `dsb sy`.
    fn barrier() {
        // SAFETY: a barrier touches no memory and no register. Not `nomem`: accesses stay on their
        // side of it.
        unsafe { asm!("dsb sy", options(nostack, preserves_flags)) };
    }
}
