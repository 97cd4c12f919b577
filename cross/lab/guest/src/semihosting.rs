#![allow(unsafe_code, reason = "semihosting is one instruction that only assembly can say")]
//! Arm's semihosting: a trap instruction with an operation's number and the address of its
//! arguments, which the emulator answers.
//!
//! # References
//!
//! Arm, *Semihosting for AArch32 and AArch64*, release 2024Q3: SYS_EXIT_EXTENDED (0x20), and the
//! trap instructions of each state.

/// SYS_EXIT_EXTENDED: two words, the reason and the exit status.
#[cfg(any(target_arch = "arm", target_arch = "aarch64"))]
const SYS_EXIT_EXTENDED: usize = 0x20;
/// ADP_Stopped_ApplicationExit: the program ended by itself.
#[cfg(any(target_arch = "arm", target_arch = "aarch64"))]
const APPLICATION_EXIT: usize = 0x2_0026;

/// Ends the emulator. Returns where the emulator does not answer; on silicon the instruction ends
/// the program with a signal.
#[cfg(any(target_arch = "arm", target_arch = "aarch64"))]
pub(crate) fn exit(status: u8) {
    let arguments = [APPLICATION_EXIT, usize::from(status)];
    call(SYS_EXIT_EXTENDED, &arguments);
}

/// Elsewhere there is no such instruction.
#[cfg(not(any(target_arch = "arm", target_arch = "aarch64")))]
pub(crate) fn exit(_status: u8) {}

#[cfg(target_arch = "aarch64")]
fn call(operation: usize, arguments: &[usize; 2]) {
    // SAFETY: HLT #0xF000 is the semihosting trap of A64. The emulator reads the two words at x1,
    // which `arguments` keeps alive for the call, and writes x0 at most, which is declared as
    // clobbered. Without an emulator the kernel ends the process with SIGILL.
    unsafe {
        core::arch::asm!(
            "hlt #0xf000",
            inlateout("x0") operation => _,
            in("x1") arguments.as_ptr(),
            options(nostack)
        );
    }
}

/// In A32, which is what Rust's armv7 target compiles to; the trap of T32 is another instruction.
#[cfg(target_arch = "arm")]
fn call(operation: usize, arguments: &[usize; 2]) {
    // SAFETY: 0xE10F0070 is HLT 0xF000 in A32, the semihosting trap, given as a word because
    // assemblers know it only from ARMv8 on. The emulator reads the two words at r1, which
    // `arguments` keeps alive for the call, and writes r0 at most, which is declared as clobbered.
    // Without an emulator the kernel ends the process with SIGILL.
    unsafe {
        core::arch::asm!(
            ".inst 0xe10f0070",
            inlateout("r0") operation => _,
            in("r1") arguments.as_ptr(),
            options(nostack)
        );
    }
}
