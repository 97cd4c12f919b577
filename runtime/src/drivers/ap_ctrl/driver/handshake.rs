#![allow(unsafe_code, reason = "AP_START sends the kernel to its operands")]
//! The handshake with a kernel: a job's registers and AP_START, and at its end the results,
//! AP_CONTINUE and the interrupt. Nothing here knows which jobs are in flight.

use super::super::{KernelMap, Protocol, map::MAX_RESULTS, regs};
use crate::{hw::Device, types::DevAddr};

/// The kernel's results as they are now.
pub(super) fn results<D: Device>(device: &D, map: &KernelMap) -> [u32; MAX_RESULTS] {
    let mut words = [0; MAX_RESULTS];
    let registers = map.results().iter().flat_map(|result| [Some(result.register()), result.high_register()]);
    for (word, register) in words.iter_mut().zip(registers.flatten()) {
        *word = register.read(device);
    }
    words
}

/// An end was seen: AP_CONTINUE and the interrupt. The read that follows AP_CONTINUE is answered
/// after it has arrived, so that AP_DONE of this job is not taken for the next one's.
pub(super) fn release<D: Device>(device: &D, map: &KernelMap) {
    let chain = map.protocol() == Protocol::Chain;
    if chain {
        // SAFETY: AP_CONTINUE starts nothing: it lets a job end that was submitted.
        unsafe { regs::CTRL.write(device, regs::AP_CONTINUE) };
    }
    if map.has_interrupt() {
        acknowledge(device);
    } else if chain {
        let _ = regs::ISR.read(device);
    }
}

/// Takes back a raised interrupt; false where there is none. Reading ISR clears it in some kernels,
/// and writing toggles it in the others: only what is still set is written.
pub(super) fn acknowledge<D: Device>(device: &D) -> bool {
    if regs::ISR.read(device) == 0 {
        return false;
    }
    let raised = regs::ISR.read(device);
    if raised != 0 {
        // SAFETY: ISR moves no data.
        unsafe { regs::ISR.write(device, raised) };
    }
    true
}

/// Writes a job's registers, and starts it.
///
/// # Safety
/// As [`Driver::submit`]; and the kernel has taken the job before.
#[inline]
pub(super) unsafe fn start<D: Device>(device: &D, map: &KernelMap, addrs: impl Iterator<Item = DevAddr>, words: &[u32]) {
    // SAFETY: the caller handed the operands over, and `check` compared them with the map's rules;
    // by 2 of `ApCtrl::open` the job that AP_START starts stays inside them.
    unsafe {
        for (pointer, addr) in map.pointers().iter().zip(addrs) {
            if pointer.bits() == u64::BITS {
                pointer.registers().write(device, addr);
            } else {
                #[allow(clippy::cast_possible_truncation, reason = "`addr_bits` is 32 then, and the caller compared")]
                pointer.register().write(device, addr.0 as u32);
            }
        }
        let registers = map.scalars().iter().flat_map(|scalar| [Some(scalar.register()), scalar.high_register()]);
        for (register, word) in registers.flatten().zip(words) {
            register.write(device, *word);
        }
        regs::CTRL.write(device, regs::AP_START);
    }
}
