//! The registers of Arm's DMA-330, which its first revision called PL330: Arm DDI 0424C, chapter 3.
//! Sections are numbered where the number is known; the others are that chapter's sections of the
//! register's name.

use crate::hw::mmio::{ReadOnly, ReadWrite, Register, WriteOneToggles};

/// The window: one 4 KiB page.
pub(crate) const WINDOW_BYTES: usize = 0x1000;
/// The most channels a controller can have: CR0's field has 3 bits.
pub(crate) const CHANNELS_MAX: usize = 8;

/// 3.3.1, DSR: the DMA manager's status. [`STATUS`], [`DSR_NONSECURE`].
pub(crate) const DSR: Register<ReadOnly> = Register::at(0x000);
/// 3.3.3, INTEN: bit N is 1 where DMASEV of event N raises interrupt N, and 0 where it wakes
/// waiting threads.
pub const INTEN: Register<ReadWrite> = Register::at(0x020);
/// 3.3.4, INT_EVENT_RIS: bit N is 1 while event N is active or interrupt N is high.
pub const INT_EVENT_RIS: Register<ReadOnly> = Register::at(0x024);
/// 3.3.5, INTMIS: bit N is 1 while interrupt N is high.
pub const INTMIS: Register<ReadOnly> = Register::at(0x028);
/// 3.3.6, INTCLR: writing 1 to bit N takes interrupt N back, where INTEN makes it one.
pub(crate) const INTCLR: Register<WriteOneToggles> = Register::at(0x02C);
/// 3.3.7, FSRD: bit 0 is 1 while the manager is faulting.
pub(crate) const FSRD: Register<ReadOnly> = Register::at(0x030);
/// 3.3.8, FSRC: bit N is 1 while channel N is faulting, or completing because of a fault.
pub const FSRC: Register<ReadOnly> = Register::at(0x034);
/// 3.3.9, FTRD: why the manager faulted.
pub(crate) const FTRD: Register<ReadOnly> = Register::at(0x038);
/// 3.3.18, DBGSTATUS: bit 0 is 1 while the debug interface is busy with an instruction.
pub const DBGSTATUS: Register<ReadOnly> = Register::at(0xD00);
/// 3.3.19, DBGCMD: writing 0 executes what [`DBGINST0`] and [`DBGINST1`] hold.
pub const DBGCMD: Register<ReadWrite> = Register::at(0xD04);
/// 3.3.20, DBGINST0: bit 0 thread (0: the manager, 1: a channel), bits 10..8 channel, bits 31..16
/// instruction bytes 1 and 0.
pub const DBGINST0: Register<ReadWrite> = Register::at(0xD08);
/// 3.3.21, DBGINST1: instruction bytes 5 to 2.
pub const DBGINST1: Register<ReadWrite> = Register::at(0xD0C);
/// CR0: how many channels and events there are.
pub(crate) const CR0: Register<ReadOnly> = Register::at(0xE00);
/// CR3: bit N is 1 where event N may be used in the Non-secure state.
pub(crate) const CR3: Register<ReadOnly> = Register::at(0xE0C);
/// CRD: the width of the AXI master, and the depth of its data buffer.
pub const CRD: Register<ReadOnly> = Register::at(0xE14);
/// periph_id_0 to periph_id_3, a byte each, the lowest first.
pub(crate) const PERIPH_ID: [Register<ReadOnly>; 4] = [Register::at(0xFE0), Register::at(0xFE4), Register::at(0xFE8), Register::at(0xFEC)];
/// pcell_id_0 to pcell_id_3, a byte each, the lowest first.
pub(crate) const PCELL_ID: [Register<ReadOnly>; 4] = [Register::at(0xFF0), Register::at(0xFF4), Register::at(0xFF8), Register::at(0xFFC)];

/// The registers of one channel.
#[derive(Clone, Copy, Debug)]
pub struct Channel {
    /// 3.3.10, FTRn: why it faulted.
    pub ftr: Register<ReadOnly>,
    /// 3.3.11, CSRn: its status. [`STATUS`].
    pub csr: Register<ReadOnly>,
    /// 3.3.12, CPCn: its program counter.
    pub cpc: Register<ReadOnly>,
    /// 3.3.13, SARn: where it reads next.
    pub sar: Register<ReadOnly>,
    /// 3.3.14, DARn: where it writes next.
    pub dar: Register<ReadOnly>,
    /// 3.3.15, CCRn: how it reads and writes.
    pub ccr: Register<ReadOnly>,
    /// 3.3.16, LC0_n: its inner loop counter.
    pub lc0: Register<ReadOnly>,
    /// 3.3.17, LC1_n: its outer loop counter.
    pub lc1: Register<ReadOnly>,
}

impl Channel {
    /// Three groups of registers, each with its own distance from one channel to the next.
    const fn at(index: usize) -> Self {
        let (fault, status, control) = (0x040 + 4 * index, 0x100 + 8 * index, 0x400 + 0x20 * index);
        Self {
            ftr: Register::at(fault),
            csr: Register::at(status),
            cpc: Register::at(status + 4),
            sar: Register::at(control),
            dar: Register::at(control + 4),
            ccr: Register::at(control + 8),
            lc0: Register::at(control + 0xC),
            lc1: Register::at(control + 0x10),
        }
    }
}

/// The channels' registers.
pub const CHANNELS: [Channel; CHANNELS_MAX] =
    [Channel::at(0), Channel::at(1), Channel::at(2), Channel::at(3), Channel::at(4), Channel::at(5), Channel::at(6), Channel::at(7)];

/// DSR, CSRn: the bits that say what a thread does.
pub const STATUS: u32 = 0xF;
/// STATUS: it does nothing, and none of its transfers is under way.
pub const STOPPED: u32 = 0;
/// STATUS: it executes its program.
pub const EXECUTING: u32 = 1;
/// STATUS: it waits for an event (DMAWFE).
pub const WAITING_FOR_EVENT: u32 = 4;
/// STATUS: it waits for its transfers at a DMARMB or DMAWMB.
pub const AT_BARRIER: u32 = 5;
/// STATUS: it was killed, and waits for its transfers.
pub const KILLING: u32 = 8;
/// STATUS: its program has ended, and it waits for its transfers.
pub(crate) const COMPLETING: u32 = 9;
/// STATUS: it faulted, and waits for its transfers.
pub const FAULTING_COMPLETING: u32 = 14;
/// STATUS: it faulted.
pub(crate) const FAULTING: u32 = 15;

/// DSR: the manager is in the Non-secure state, and so are the channels that it starts.
pub const DSR_NONSECURE: u32 = 1 << 9;
/// DBGSTATUS: busy.
pub(crate) const DBG_BUSY: u32 = 1 << 0;
/// FSRD: the manager is faulting.
pub(crate) const FSRD_MANAGER: u32 = 1 << 0;

/// FTRn, FTRD: an undefined instruction.
pub(crate) const FAULT_UNDEFINED: u32 = 1 << 0;
/// FTRn, FTRD: an operand that this controller does not have, such as a channel or an event with
/// too high a number.
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
/// FTRn, FTRD: the instruction came from the debug interface.
pub const FAULT_DEBUG: u32 = 1 << 30;
/// FTRn: the channel had locked up for want of resources.
pub(crate) const FAULT_LOCKUP: u32 = 1 << 31;

/// The part number and the designer (Arm) in [`PERIPH_ID`]: the same mask and value as Linux
/// `drivers/dma/pl330.c`, `pl330_ids`.
pub(crate) const PERIPH_ID_VALUE: u32 = 0x0004_1330;
/// Which bits of [`PERIPH_ID`] those are; bits 23..20 are the revision, see [`revision`].
pub(crate) const PERIPH_ID_MASK: u32 = 0x000F_FFFF;
/// [`PCELL_ID`] of every PrimeCell.
pub(crate) const PCELL_ID_VALUE: u32 = 0xB105_F00D;

/// The bytes of four ID registers as one word.
pub(crate) fn id(registers: [Register<ReadOnly>; 4], window: &impl crate::hw::Mmio) -> u32 {
    registers.into_iter().rev().fold(0, |word, register| word << 8 | register.read(window) & 0xFF)
}

/// The revision in a peripheral ID: 0 r0p0, 1 r1p0, 2 r1p1 (Linux `drivers/dma/pl330.c`,
/// `PERIPH_REV_R0P0` and on).
#[must_use]
pub(crate) const fn revision(periph_id: u32) -> u32 {
    periph_id >> 20 & 0xF
}

/// CR0: how many channels there are, 1 to 8.
#[must_use]
pub(crate) const fn channels(cr0: u32) -> u32 {
    (cr0 >> 4 & 7) + 1
}

/// CR0: how many events and interrupts there are, 1 to 32.
#[must_use]
pub(crate) const fn events(cr0: u32) -> u32 {
    (cr0 >> 17 & 0x1F) + 1
}

/// CRD: the width of the AXI master in bytes; `None` for a reserved value.
#[must_use]
pub(crate) const fn bus_bytes(crd: u32) -> Option<u32> {
    match crd & 7 {
        width @ 2..=4 => Some(1 << width),
        _ => None,
    }
}

/// CRD: how many words of that width the data buffer (MFIFO) holds.
#[must_use]
pub(crate) const fn buffer_words(crd: u32) -> u32 {
    (crd >> 20 & 0x3FF) + 1
}
