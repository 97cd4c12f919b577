#![allow(unsafe_code, reason = "barrier instructions have no safe name on Arm")]
//! The two barriers of a job. They stay where cache maintenance is skipped: a coherent port snoops
//! caches, not store buffers. `linux/barrier_tests.rs` counts the first barrier on every path to a
//! device, and the second on every path back.

use core::sync::atomic::{Ordering, fence};

/// Orders everything that the CPU wrote, for every observer of the system, before what follows: the
/// doorbell.
#[inline]
pub(crate) fn before_doorbell() {
    fence(Ordering::SeqCst);
    system();
    #[cfg(test)]
    count::DOORBELLS.set(count::DOORBELLS.get() + 1);
}

/// Orders everything that follows, such as a read of the device's output, after what precedes: the
/// read of the device's status.
#[inline]
pub(crate) fn after_completion() {
    system();
    fence(Ordering::SeqCst);
    #[cfg(test)]
    count::COMPLETIONS.set(count::COMPLETIONS.get() + 1);
}

/// On Arm, `dmb` orders only between observers of one shareability domain; a bus master outside of
/// it needs `dsb` (Arm DDI 0487, B2.3; Arm DDI 0406, A3.8.3). On x86-64, writes to ordinary memory
/// and to uncached registers are ordered already (Intel SDM 3A, 9.2.2); the fence above orders
/// writes to write-combined memory.
#[inline]
fn system() {
    #[cfg(all(any(target_arch = "aarch64", target_arch = "arm"), not(miri)))]
    // SAFETY: `dsb sy` takes no operand, uses no register, and is allowed at every exception level.
    unsafe {
        core::arch::asm!("dsb sy", options(nostack, preserves_flags));
    }
}

/// How many barriers this thread has passed: now, when a device was started, and when its end was
/// seen.
#[cfg(test)]
pub(crate) mod count {
    use core::cell::Cell;

    std::thread_local! {
        pub(crate) static DOORBELLS: Cell<u32> = const { Cell::new(0) };
        pub(crate) static AT_THE_START: Cell<u32> = const { Cell::new(0) };
        pub(crate) static COMPLETIONS: Cell<u32> = const { Cell::new(0) };
        pub(crate) static AT_THE_END: Cell<u32> = const { Cell::new(0) };
    }
}
