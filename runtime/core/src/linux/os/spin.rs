#![allow(
    unsafe_code,
    reason = "the vector that the kernel gives a program is read by a function of the C library"
)]
//! A wait with no interrupt.

use crate::hw::Wait;
use crate::types::Error;
use nix::libc;
use nix::time::{ClockId, clock_gettime};

/// Waits without an interrupt: a pause between polls, and no system call, because the vDSO answers
/// `clock_gettime`. On 32-bit Arm cores without the architected timer it does not (Cortex-A9:
/// Zynq-7000, Cyclone V). There the clock is first read after 1,000 polls, so that a short job
/// makes no system call there either. Those polls may make a wait exceed its limit: by some 0.2 ms,
/// counting 32 pauses and one register read for each. A slower read makes that longer.
///
/// Its `wait` is one pause of about a microsecond, whatever time it is given, even 0, and never
/// longer. [`poll_until`](crate::hw::poll_until) reads the clock between two pauses, so that a wait
/// ends one pause and one poll after its limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spin;

impl Wait for Spin {
    fn now_us(&self) -> u64 {
        // CLOCK_MONOTONIC exists on every Linux (man 2 clock_gettime); without it, time is over at
        // once.
        clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(u64::MAX, |now| {
            let seconds = u64::try_from(now.tv_sec()).unwrap_or(0);
            seconds
                .saturating_mul(1_000_000)
                .saturating_add(u64::try_from(now.tv_nsec()).unwrap_or(0) / 1_000)
        })
    }

    fn looks_before_clock(&self) -> u32 {
        /// Longer than the jobs for which a program polls at all.
        const LOOKS: u32 = 1_000;
        if cfg!(target_arch = "arm") && !has_shared_clock() { LOOKS } else { 0 }
    }

    fn wait_at_most(&self, _timeout_us: u32) -> Result<(), Error> {
        /// About 1 µs on the processors here: shorter than any doorbell takes to answer.
        const PAUSES: u32 = 32;
        for _ in 0..PAUSES {
            core::hint::spin_loop();
        }
        Ok(())
    }
}

/// Returns whether a 32-bit Arm kernel answers the clock from its vDSO: it has one, and the
/// processor has the architected timer, whose event stream the kernel announces (Linux
/// `arch/arm/include/asm/arch_timer.h`). A kernel without that stream counts as one without a
/// clock. Even with both, a system call answers if the timer has an erratum, the firmware left it
/// unset, or the user chose another clock: as on any processor.
fn has_shared_clock() -> bool {
    /// `HWCAP_EVTSTRM` of Linux `arch/arm/include/uapi/asm/hwcap.h`.
    const EVENT_STREAM: libc::c_ulong = 1 << 21;
    // SAFETY: reads what the kernel gave the program at its start; an unknown number gives 0.
    let given = |kind| unsafe { libc::getauxval(kind) };
    given(libc::AT_HWCAP) & EVENT_STREAM != 0 && given(libc::AT_SYSINFO_EHDR) != 0
}
