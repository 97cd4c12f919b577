//! The meaning of the fault registers.

use super::regs;
use crate::types::Error;

/// The name of this device in errors.
pub(super) const DEVICE: &str = "pl330";

/// A channel's fault, by its FTRn (Arm DDI 0424C, 3.3.10): the most important bit in words. Several
/// can be set, because bus errors and lock-ups come later than the instruction that they belong to.
pub(super) fn of_channel(ftr: u32) -> Error {
    let has = |bits: u32| ftr & bits != 0;
    let what = if ftr == u32::MAX {
        "that it is gone (all ones)"
    } else if has(regs::FAULT_WRITE) {
        "a bus error while writing"
    } else if has(regs::FAULT_READ) {
        "a bus error while reading"
    } else if has(regs::FAULT_FETCH) {
        "a bus error while fetching its program"
    } else if has(regs::FAULT_UNDEFINED) {
        "an undefined instruction in its program"
    } else if has(regs::FAULT_OPERAND) {
        "an operand in its program that this controller does not have"
    } else if has(regs::FAULT_EVENT) {
        "that its channel is Non-secure and the event Secure"
    } else if has(regs::FAULT_PERIPHERAL) {
        "that its channel is Non-secure and the peripheral Secure"
    } else if has(regs::FAULT_CCR) {
        "that its channel is Non-secure and its program asks for Secure accesses"
    } else if has(regs::FAULT_BUFFER) {
        "a burst that is larger than its data buffer"
    } else if has(regs::FAULT_NO_DATA) {
        "a store for which nothing was loaded"
    } else if has(regs::FAULT_LOCKUP) {
        "that its channel locked up: its data buffer is full, or never empty"
    } else {
        "unknown bits"
    };
    Error::Fault { device: DEVICE, status: ftr, what }
}

/// The manager's fault, by FTRD (Arm DDI 0424C, 3.3.9).
pub(super) fn of_manager(ftrd: u32) -> Error {
    let has = |bits: u32| ftrd & bits != 0;
    let what = if ftrd == u32::MAX {
        "that it is gone (all ones)"
    } else if has(regs::FAULT_DMAGO) {
        "that its manager is Non-secure and may not start a Secure channel"
    } else if has(regs::FAULT_FETCH) {
        "a bus error while its manager fetched an instruction"
    } else if has(regs::FAULT_UNDEFINED) {
        "that its manager was given an undefined instruction"
    } else if has(regs::FAULT_OPERAND) {
        "that its manager was given an operand that this controller does not have"
    } else if has(regs::FAULT_EVENT) {
        "that its manager is Non-secure and the event Secure"
    } else {
        "unknown bits of its manager"
    };
    Error::Fault { device: DEVICE, status: ftrd, what }
}

/// A debug interface that takes no instruction: nothing can be started or stopped.
pub(super) fn of_debug_interface(dbgstatus: u32) -> Error {
    let what = if dbgstatus == u32::MAX { "that it is gone (all ones)" } else { "that its debug interface stays busy" };
    Error::Fault { device: DEVICE, status: dbgstatus, what }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn what(error: Error) -> &'static str {
        match error {
            Error::Fault { device: "pl330", what, .. } => what,
            _ => "",
        }
    }

    /// The bits that the manual names, and no other.
    const CHANNEL: u32 = 0xC007_30E3;
    const MANAGER: u32 = 0x4001_0033;

    #[test]
    fn every_bit_has_its_own_words() {
        let words = |decode: fn(u32) -> Error, known: u32| -> BTreeSet<&str> {
            (0..32).filter(|bit| known >> bit & 1 == 1).map(|bit| what(decode(1 << bit))).collect()
        };
        // The bit that says where the instruction came from says no more than that.
        let (channel, manager) = (words(of_channel, CHANNEL), words(of_manager, MANAGER));
        assert_eq!(channel.len(), CHANNEL.count_ones() as usize);
        assert_eq!(manager.len(), MANAGER.count_ones() as usize);
        for (words, unknown) in [(&channel, "unknown bits"), (&manager, "unknown bits of its manager")] {
            assert!(words.contains(unknown) && words.iter().all(|word| !word.is_empty()));
        }
        for bit in (0..32).filter(|bit| CHANNEL >> bit & 1 == 0) {
            assert_eq!(what(of_channel(1 << bit)), "unknown bits", "bit {bit}");
        }
        assert_eq!(what(of_channel(u32::MAX)), what(of_manager(u32::MAX)));
    }

    #[test]
    fn a_bus_error_is_more_than_the_lock_up_that_follows_it() {
        assert_eq!(what(of_channel(regs::FAULT_LOCKUP | regs::FAULT_READ)), "a bus error while reading");
        assert_eq!(of_channel(1 << 31), Error::Fault { device: "pl330", status: 1 << 31, what: what(of_channel(1 << 31)) });
    }
}
