//! The registers of Arm's DMA-330, first called PL330: Arm DDI 0424C, chapter 3. Section numbers
//! are given where known; the other sections have the register's name.

use contigo_core::hw::mmio::{ReadOnly, ReadWrite, Register, WriteOneToggles};
use contigo_core::types::Error;

/// The name of this device in errors.
pub(super) const DEVICE: &str = "pl330";

/// The window: one 4 KiB page.
pub(crate) const WINDOW_BYTES: usize = 0x1000;
/// The most channels a controller can have: CR0's field has 3 bits.
pub(crate) const CHANNELS_MAX: usize = 8;

/// 3.3.1, DSR: the DMA manager's status. [`STATUS`], [`DSR_NONSECURE`].
pub(crate) const DSR: Register<ReadOnly> = Register::at(0x000);
/// 3.3.3, INTEN: bit N is 1 if DMASEV of event N raises interrupt N, and 0 if it wakes waiting
/// threads.
pub(crate) const INTEN: Register<ReadWrite> = Register::at(0x020);
/// 3.3.4, INT_EVENT_RIS: bit N is 1 while event N is active or interrupt N is high.
pub(crate) const INT_EVENT_RIS: Register<ReadOnly> = Register::at(0x024);
/// 3.3.6, INTCLR: writing 1 to bit N clears interrupt N, if INTEN makes event N one.
pub(crate) const INTCLR: Register<WriteOneToggles> = Register::at(0x02C);
/// 3.3.7, FSRD: bit 0 is 1 while the manager is faulting.
pub(crate) const FSRD: Register<ReadOnly> = Register::at(0x030);
/// 3.3.9, FTRD: why the manager faulted.
pub(crate) const FTRD: Register<ReadOnly> = Register::at(0x038);
/// 3.3.18, DBGSTATUS: bit 0 is 1 while the debug interface is busy with an instruction.
pub(crate) const DBGSTATUS: Register<ReadOnly> = Register::at(0xD00);
/// 3.3.19, DBGCMD: writing 0 executes what [`DBGINST0`] and [`DBGINST1`] hold.
pub(crate) const DBGCMD: Register<ReadWrite> = Register::at(0xD04);
/// 3.3.20, DBGINST0: bit 0 thread (0: the manager, 1: a channel), bits 10..8 channel, bits 31..16
/// instruction bytes 1 and 0.
pub(crate) const DBGINST0: Register<ReadWrite> = Register::at(0xD08);
/// 3.3.21, DBGINST1: instruction bytes 5 to 2.
pub(crate) const DBGINST1: Register<ReadWrite> = Register::at(0xD0C);
/// CR0: how many channels there are, 1 to 8, less one in bits 6..4; how many events and interrupts,
/// 1 to 32, less one in bits 21..17.
pub(crate) const CR0: Register<ReadOnly> = Register::at(0xE00);
/// CR3: bit N is 1 if event N may be used in the Non-secure state.
pub(crate) const CR3: Register<ReadOnly> = Register::at(0xE0C);
/// CRD: the width of the AXI master, 1 << N bytes, in bits 2..0, of which 2 to 4 are not reserved;
/// how many words of that width the data buffer (MFIFO) holds, less one in bits 29..20.
pub(crate) const CRD: Register<ReadOnly> = Register::at(0xE14);
/// periph_id_0 to periph_id_3, a byte each, the lowest first.
pub(crate) const PERIPH_ID: [Register<ReadOnly>; 4] =
    [Register::at(0xFE0), Register::at(0xFE4), Register::at(0xFE8), Register::at(0xFEC)];
/// pcell_id_0 to pcell_id_3, a byte each, the lowest first.
pub(crate) const PCELL_ID: [Register<ReadOnly>; 4] =
    [Register::at(0xFF0), Register::at(0xFF4), Register::at(0xFF8), Register::at(0xFFC)];

/// The registers of one channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channel {
    /// 3.3.10, FTRn: why it faulted.
    pub(crate) ftr: Register<ReadOnly>,
    /// 3.3.11, CSRn: its status. [`STATUS`].
    pub(crate) csr: Register<ReadOnly>,
}

impl Channel {
    const fn at(index: usize) -> Self {
        Self { ftr: Register::at(0x040 + 4 * index), csr: Register::at(0x100 + 8 * index) }
    }
}

/// The channels' registers.
pub(crate) const CHANNELS: [Channel; CHANNELS_MAX] = [
    Channel::at(0),
    Channel::at(1),
    Channel::at(2),
    Channel::at(3),
    Channel::at(4),
    Channel::at(5),
    Channel::at(6),
    Channel::at(7),
];

/// DSR, CSRn: the bits with a thread's state.
pub(crate) const STATUS: u32 = 0xF;
/// STATUS: stopped, with no transfer under way.
pub(crate) const STOPPED: u32 = 0;
/// STATUS: it was killed, and waits for its transfers.
pub(crate) const KILLING: u32 = 8;
/// STATUS: its program has ended, and it waits for its transfers.
pub(crate) const COMPLETING: u32 = 9;
/// STATUS: it faulted, and waits for its transfers.
pub(crate) const FAULTING_COMPLETING: u32 = 14;
/// STATUS: it faulted.
pub(crate) const FAULTING: u32 = 15;

/// DSR: the manager is in the Non-secure state, and so are the channels that it starts.
pub(crate) const DSR_NONSECURE: u32 = 1 << 9;
/// DBGSTATUS: busy.
pub(crate) const DBG_BUSY: u32 = 1 << 0;
/// FSRD: the manager is faulting.
pub(crate) const FSRD_MANAGER: u32 = 1 << 0;

/// FTRn, FTRD: an undefined instruction.
pub(crate) const FAULT_UNDEFINED: u32 = 1 << 0;
/// FTRn, FTRD: an operand that this controller lacks, such as a channel or an event number that is
/// too high.
pub(crate) const FAULT_OPERAND: u32 = 1 << 1;
/// FTRD: the Non-secure manager tried to start a channel in the Secure state.
pub(crate) const FAULT_DMAGO: u32 = 1 << 4;
/// FTRn, FTRD: a Non-secure thread used a Secure event.
pub(crate) const FAULT_EVENT: u32 = 1 << 5;
/// FTRn: a Non-secure thread used a Secure peripheral.
pub(crate) const FAULT_PERIPHERAL: u32 = 1 << 6;
/// FTRn: a Non-secure thread tried to access memory as a Secure one.
pub(crate) const FAULT_CCR: u32 = 1 << 7;
/// FTRn: a burst that is larger than the data buffer.
pub(crate) const FAULT_BUFFER: u32 = 1 << 12;
/// FTRn: a DMAST for which nothing was loaded.
pub(crate) const FAULT_NO_DATA: u32 = 1 << 13;
/// FTRn, FTRD: a bus error while fetching an instruction.
pub(crate) const FAULT_FETCH: u32 = 1 << 16;
/// FTRn: a bus error while writing.
pub(crate) const FAULT_WRITE: u32 = 1 << 17;
/// FTRn: a bus error while reading.
pub(crate) const FAULT_READ: u32 = 1 << 18;
/// FTRn: the channel had locked up for want of resources.
pub(crate) const FAULT_LOCKUP: u32 = 1 << 31;

/// The part number and the designer (Arm) in [`PERIPH_ID`]: the same mask and value as Linux
/// `drivers/dma/pl330.c`, `pl330_ids`.
pub(crate) const PERIPH_ID_VALUE: u32 = 0x0004_1330;
/// Which bits of [`PERIPH_ID`] those are; bits 23..20 are the revision: 0 r0p0, 1 r1p0, 2 r1p1
/// (Linux `drivers/dma/pl330.c`, `PERIPH_REV_R0P0` and on).
pub(crate) const PERIPH_ID_MASK: u32 = 0x000F_FFFF;
/// [`PCELL_ID`] of every PrimeCell.
pub(crate) const PCELL_ID_VALUE: u32 = 0xB105_F00D;

/// A channel's fault, by its FTRn (Arm DDI 0424C, 3.3.10): the most important bit in words. Several
/// can be set, because bus errors and lock-ups come later than the instruction that caused them.
pub(super) fn fault_of_channel(ftr: u32) -> Error {
    let has = |bits: u32| ftr & bits != 0;
    let what = if ftr == u32::MAX {
        "that it is gone (all ones)"
    } else if has(FAULT_WRITE) {
        "a bus error while writing"
    } else if has(FAULT_READ) {
        "a bus error while reading"
    } else if has(FAULT_FETCH) {
        "a bus error while fetching its program"
    } else if has(FAULT_UNDEFINED) {
        "an undefined instruction in its program"
    } else if has(FAULT_OPERAND) {
        "an operand in its program that this controller does not have"
    } else if has(FAULT_EVENT) {
        "that its channel is Non-secure and the event Secure"
    } else if has(FAULT_PERIPHERAL) {
        "that its channel is Non-secure and the peripheral Secure"
    } else if has(FAULT_CCR) {
        "that its channel is Non-secure and its program asks for Secure accesses"
    } else if has(FAULT_BUFFER) {
        "a burst that is larger than its data buffer"
    } else if has(FAULT_NO_DATA) {
        "a store for which nothing was loaded"
    } else if has(FAULT_LOCKUP) {
        "that its channel locked up: its data buffer is full, or never empty"
    } else {
        "unknown bits"
    };
    Error::Fault { device: DEVICE, status: ftr, what }
}

/// The manager's fault, by FTRD (Arm DDI 0424C, 3.3.9).
pub(super) fn fault_of_manager(ftrd: u32) -> Error {
    let has = |bits: u32| ftrd & bits != 0;
    let what = if ftrd == u32::MAX {
        "that it is gone (all ones)"
    } else if has(FAULT_DMAGO) {
        "that its manager is Non-secure and may not start a Secure channel"
    } else if has(FAULT_FETCH) {
        "a bus error while its manager fetched an instruction"
    } else if has(FAULT_UNDEFINED) {
        "that its manager was given an undefined instruction"
    } else if has(FAULT_OPERAND) {
        "that its manager was given an operand that this controller does not have"
    } else if has(FAULT_EVENT) {
        "that its manager is Non-secure and the event Secure"
    } else {
        "unknown bits of its manager"
    };
    Error::Fault { device: DEVICE, status: ftrd, what }
}

/// The error of a debug interface that takes no instruction: nothing can be started or stopped.
pub(super) fn fault_of_debug_interface(dbgstatus: u32) -> Error {
    let what = if dbgstatus == u32::MAX {
        "that it is gone (all ones)"
    } else {
        "that its debug interface stays busy"
    };
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

    /// Only the bits that the manual names.
    const CHANNEL: u32 = 0xC007_30E3;
    const MANAGER: u32 = 0x4001_0033;

    #[test]
    fn every_bit_has_its_own_words() {
        let words = |decode: fn(u32) -> Error, known: u32| -> BTreeSet<&str> {
            (0..32).filter(|bit| known >> bit & 1 == 1).map(|bit| what(decode(1 << bit))).collect()
        };
        // This bit only shows where the instruction came from.
        let (channel, manager) =
            (words(fault_of_channel, CHANNEL), words(fault_of_manager, MANAGER));
        assert_eq!(channel.len(), CHANNEL.count_ones() as usize);
        assert_eq!(manager.len(), MANAGER.count_ones() as usize);
        for (words, unknown) in
            [(&channel, "unknown bits"), (&manager, "unknown bits of its manager")]
        {
            assert!(words.contains(unknown) && words.iter().all(|word| !word.is_empty()));
        }
        for bit in (0..32).filter(|bit| CHANNEL >> bit & 1 == 0) {
            assert_eq!(what(fault_of_channel(1 << bit)), "unknown bits", "bit {bit}");
        }
        assert_eq!(what(fault_of_channel(u32::MAX)), what(fault_of_manager(u32::MAX)));
    }

    #[test]
    fn bus_error_outranks_the_lockup_after_it() {
        assert_eq!(what(fault_of_channel(FAULT_LOCKUP | FAULT_READ)), "a bus error while reading");
        assert_eq!(
            fault_of_channel(1 << 31),
            Error::Fault {
                device: "pl330",
                status: 1 << 31,
                what: what(fault_of_channel(1 << 31))
            }
        );
    }
}
