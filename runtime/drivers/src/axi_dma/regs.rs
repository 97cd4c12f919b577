#![allow(unsafe_code, reason = "registers are passed on")]
//! A channel's registers, a descriptor, and what a status means: AMD PG021 (AXI DMA v7.1),
//! "Register Space" and "Scatter Gather Descriptor", by the names of its tables.
//!
//! Both channels have the same registers, S2MM's at 30h after MM2S's. So an offset here counts from
//! the beginning of its channel's registers. Linux `drivers/dma/xilinx/xilinx_dma.c` has the same
//! numbers (`XILINX_DMA_REG_…`, `XILINX_DMA_DMACR_…`, `XILINX_DMA_DMASR_…`, `struct
//! xilinx_axidma_desc_hw`).

use contigo_core::forward;
use contigo_core::hw::mmio::{Pointer, ReadOnly, ReadWrite, Register, WriteOneToggles};
use contigo_core::hw::{Device, Mmio, Siblings, Wait};
use contigo_core::types::atomic::{AtomicU32, Ordering};
use contigo_core::types::{DevAddr, Error, Result};

/// The registers of one channel: MM2S 00h to 2Fh, S2MM 30h to 5Fh.
pub(crate) const CHANNEL_BYTES: usize = 0x30;

/// DMACR, 00h and 30h, read and write: control.
pub(crate) const DMACR: Register<ReadWrite> = Register::at(0x00);
/// DMACR, read-only.
pub(crate) const CONTROL: Register<ReadOnly> = Register::at(0x00);
/// DMASR, 04h and 34h: status. Its interrupts' bits are cleared by writing 1 (access R/WC); the
/// others can only be read.
pub(crate) const DMASR: Register<WriteOneToggles> = Register::at(0x04);
/// CURDESC, 08h and 38h, with CURDESC_MSB: the descriptor under way. It is written while the
/// channel is halted, and can only be read otherwise.
pub(crate) const CURDESC: Pointer = Pointer::at(0x08);
/// CURDESC to read: the lower half.
pub(crate) const CURDESC_LOW: Register<ReadWrite> = Register::at(0x08);
/// CURDESC to read: the upper half, if the core has more than 32 address bits.
pub(crate) const CURDESC_HIGH: Register<ReadWrite> = Register::at(0x0C);
/// TAILDESC, 10h and 40h, read and write: the last descriptor. Writing it is the doorbell. With
/// more than 32 address bits, writing TAILDESC_MSB is, and comes last.
pub(crate) const TAILDESC: Register<ReadWrite> = Register::at(0x10);
/// TAILDESC_MSB, 14h and 44h.
pub(crate) const TAILDESC_HIGH: Register<ReadWrite> = Register::at(0x14);
/// SA, 18h, and DA, 48h, read and write: the address of a transfer in direct register mode.
pub(crate) const ADDRESS: Register<ReadWrite> = Register::at(0x18);
/// SA_MSB and DA_MSB, 1Ch and 4Ch.
pub(crate) const ADDRESS_HIGH: Register<ReadWrite> = Register::at(0x1C);
/// LENGTH, 28h and 58h, read and write: writing it is the doorbell in direct register mode. S2MM's
/// then reads as the number of bytes received.
pub(crate) const LENGTH: Register<ReadWrite> = Register::at(0x28);
/// "Width of Buffer Length Register": no core has fewer bits.
pub(crate) const LENGTH_BITS_LEAST: u32 = 8;

/// DMACR, bit 0, RS: run.
pub(crate) const RUN: u32 = 1 << 0;
/// DMACR, bit 2, Reset: a soft reset of the whole core, by either channel's register. It clears
/// itself at its end.
pub(crate) const RESET: u32 = 1 << 2;
/// DMACR, bits 12, 13 and 14, IOC_IrqEn, Dly_IrqEn and Err_IrqEn.
pub(crate) const IRQ_ENABLE: u32 = IRQS;
/// DMACR, bits 23:16, IRQThreshold: the number of packets that raise an interrupt. Writing 0 sets 1
/// (`axi_dma_register.vhd`, `DMACR_THRESH`).
pub(crate) const THRESHOLD_SHIFT: u32 = 16;
/// DMACR, bits 31:24, IRQDelay: the time without a packet after which an interrupt reports packets
/// below the threshold. 0: never.
pub(crate) const DELAY_SHIFT: u32 = 24;

/// DMASR, bit 0, Halted: the channel has stopped.
pub(crate) const HALTED: u32 = 1 << 0;
/// DMASR, bit 1, Idle: the descriptor in TAILDESC is done; in direct register mode, the transfer.
pub(crate) const IDLE: u32 = 1 << 1;
/// DMASR, bit 3, SGIncld: the core is built with scatter-gather.
pub(crate) const SG_INCLUDED: u32 = 1 << 3;
/// DMASR, bits 2, 7, 11 and 15, reserved, which read as zero: they reveal a device that is gone.
pub(crate) const RESERVED: u32 = 1 << 2 | 1 << 7 | 1 << 11 | 1 << 15;
/// DMASR, bit 4, DMAIntErr.
pub(crate) const INTERNAL_ERROR: u32 = 1 << 4;
/// DMASR, bit 5, DMASlvErr.
pub(crate) const SLAVE_ERROR: u32 = 1 << 5;
/// DMASR, bit 6, DMADecErr.
pub(crate) const DECODE_ERROR: u32 = 1 << 6;
/// DMASR, bit 8, SGIntErr.
pub(crate) const SG_INTERNAL_ERROR: u32 = 1 << 8;
/// DMASR, bit 9, SGSlvErr.
pub(crate) const SG_SLAVE_ERROR: u32 = 1 << 9;
/// DMASR, bit 10, SGDecErr.
pub(crate) const SG_DECODE_ERROR: u32 = 1 << 10;
/// All of them.
pub(crate) const ERRORS: u32 = 0b111 << 4 | 0b111 << 8;
/// DMASR, bits 12, 13 and 14, IOC_Irq, Dly_Irq and Err_Irq.
pub(crate) const IRQS: u32 = 0b111 << 12;
/// IOC_Irq and Dly_Irq: packets ended.
pub(crate) const END_IRQS: u32 = 0b011 << 12;

/// The bits by which a job may have ended.
pub(crate) const TOLD: u32 = IDLE | HALTED | ERRORS | IRQS;

/// A descriptor's address is a multiple of this: 16 words.
pub(crate) const DESCRIPTOR_ALIGN_BYTES: usize = 64;
/// A descriptor: 13 words, of which five are the user's.
pub(crate) const DESCRIPTOR_BYTES: usize = 0x34;
/// BUFFER_ADDRESS, 08h in a descriptor, in two words.
pub(crate) const BUFFER_AT: usize = 0x08;
/// CONTROL, 18h in a descriptor.
pub(crate) const CONTROL_AT: usize = 0x18;
/// STATUS, 1Ch in a descriptor.
pub(crate) const STATUS_AT: usize = 0x1C;
/// CONTROL and STATUS, bits 25:0: buffer length and transferred bytes, of which a core has 8 to 26.
pub(crate) const BYTES_MASK: u32 = (1 << 26) - 1;
/// MM2S CONTROL, bit 27, TXSOF: a packet begins in this buffer.
pub(crate) const TX_FIRST: u32 = 1 << 27;
/// MM2S CONTROL, bit 26, TXEOF: a packet ends in it.
pub(crate) const TX_LAST: u32 = 1 << 26;
/// S2MM STATUS, bit 27, RXSOF: a packet begins in this buffer.
pub(crate) const FIRST: u32 = 1 << 27;
/// S2MM STATUS, bit 26, RXEOF: a packet ends in it.
pub(crate) const LAST: u32 = 1 << 26;
/// STATUS, bit 31, Cmplt: the core is done with it.
pub(crate) const COMPLETE: u32 = 1 << 31;
/// STATUS, bits 30:28, DMADecErr, DMASlvErr and DMAIntErr.
pub(crate) const FAILED: u32 = 0b111 << 28;

/// A descriptor's words up to its status.
#[must_use]
#[allow(clippy::cast_possible_truncation, reason = "the halves of an address")]
pub(crate) const fn descriptor(next: u64, buffer: DevAddr, control: u32) -> [u32; 8] {
    [next as u32, (next >> 32) as u32, buffer.0 as u32, (buffer.0 >> 32) as u32, 0, 0, control, 0]
}

/// A direction of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// From memory to the stream: it sends. Channel 0.
    Mm2s,
    /// From the stream to memory: it receives. Channel 1.
    S2mm,
}

impl Side {
    pub(super) const fn index(self) -> usize {
        match self {
            Self::Mm2s => 0,
            Self::S2mm => 1,
        }
    }

    /// Its sibling.
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Mm2s => Self::S2mm,
            Self::S2mm => Self::Mm2s,
        }
    }

    /// Where its registers begin.
    pub(super) const fn base(self) -> usize {
        self.index() * CHANNEL_BYTES
    }

    /// Its name in messages.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Mm2s => "axi_dma mm2s",
            Self::S2mm => "axi_dma s2mm",
        }
    }

    /// Its registers in the window of `device`.
    pub(super) const fn at<D>(self, device: &D) -> At<'_, D> {
        At { device, base: self.base() }
    }
}

/// One channel's registers: those of the core from byte `base` on, and its clock.
#[derive(Debug)]
pub(super) struct At<'d, D> {
    device: &'d D,
    base: usize,
}

// SAFETY: the device's registers, of one channel, whose driver makes this for one call.
unsafe impl<D: Mmio> Mmio for At<'_, D> {
    fn len_bytes(&self) -> usize {
        self.device.len_bytes().saturating_sub(self.base)
    }

    #[inline]
    fn read32(&self, offset: usize) -> u32 {
        self.device.read32(self.base + offset)
    }

    #[inline]
    unsafe fn write32(&self, offset: usize, value: u32) {
        // SAFETY: the caller's promise.
        unsafe { self.device.write32(self.base + offset, value) }
    }
}

impl<D: Wait> Wait for At<'_, D> {
    forward!(|this| *this.device => now_us, looks_before_clock);

    fn wait_at_most(&self, timeout_us: u32) -> Result<()> {
        self.device.wait_at_most(timeout_us)
    }
}

/// Records whether `side` has jobs. For a channel that is alone nothing is recorded.
pub(super) fn set_busy(device: &impl Device, side: Side, busy: bool) {
    let Some(siblings) = device.siblings() else { return };
    let bit = 1 << side.index();
    if busy {
        marks(siblings).fetch_or(bit, Ordering::AcqRel);
    } else {
        marks(siblings).fetch_and(!bit, Ordering::AcqRel);
    }
}

/// Returns whether the other channel has jobs.
pub(super) fn is_busy_beside(device: &impl Device, side: Side) -> bool {
    device
        .siblings()
        .is_some_and(|siblings| marks(siblings).load(Ordering::Acquire) & !(1 << side.index()) != 0)
}

/// The other channel's DMASR, where it has a driver; 0 where the window ends before it.
pub(super) fn status_beside(device: &impl Device, side: Side) -> Option<u32> {
    device.siblings()?;
    let at = side.other().at(device);
    Some(if at.len_bytes() < CHANNEL_BYTES { 0 } else { DMASR.read(&at) })
}

/// The channels with jobs, one bit each.
fn marks(siblings: &Siblings) -> &AtomicU32 {
    // SAFETY: a channel changes its own bit alone.
    unsafe { siblings.marks() }
}

/// DMASR says Halted, and no error.
const HALTED_ALONE: &str = "the channel halted by itself; does other code drive this core?";
/// RS was set, and Halted stays.
const NO_START: &str =
    "no start: the channel stays halted; is its clock on, and is it out of reset?";

/// A channel's error, or its sibling's: a channel that fails halts both, and the core holds the
/// other's RS at 0 until its reset (`axi_dma_register.vhd`, `run_stop_clr` and `error_in`). Then
/// only the sibling's DMASR, `status`, shows the error.
pub(super) fn or_siblings(error: Error, sibling: Side, status: u32) -> Error {
    match error {
        Error::Fault { what: HALTED_ALONE | NO_START, .. } if has_failed(status) => {
            decode(sibling, status, None, None)
        }
        _ => error,
    }
}

/// Halted, and not all ones.
pub(super) const fn is_halted(status: u32) -> bool {
    status & (HALTED | RESERVED) == HALTED
}

/// Done with all its jobs; all ones are no status.
pub(super) const fn is_idle(status: u32) -> bool {
    status & (IDLE | RESERVED) == IDLE
}

/// The errors of a descriptor's STATUS as DMASR's bits, which have the same order.
pub(super) const fn errors_of(descriptor: u32) -> u32 {
    (descriptor & FAILED) >> 24
}

/// An error's bit is set; all ones are no status.
pub(super) const fn has_failed(status: u32) -> bool {
    status & ERRORS != 0 && status & RESERVED == 0
}

/// RS was set, and nothing runs.
pub(super) fn no_start(side: Side, status: u32) -> Error {
    if status == u32::MAX || status & ERRORS != 0 {
        return decode(side, status, None, None);
    }
    Error::Fault { device: side.name(), status, what: NO_START }
}

/// DMASR's error bits in words and, if they concern an address, which address.
pub(super) fn decode(
    side: Side,
    status: u32,
    buffer: Option<u64>,
    descriptor: Option<u64>,
) -> Error {
    let device = side.name();
    let plain = |what| Error::Fault { device, status, what };
    let at = |addr: Option<u64>, what| {
        addr.map_or(plain(what), |addr| Error::FaultAt { device, status, what, addr })
    };
    match status {
        u32::MAX => plain("all ones: the core is gone, or its clock is off"),
        _ if status & SG_DECODE_ERROR != 0 => at(
            descriptor,
            "SGDecErr: the descriptor's address is not memory that the port of the descriptors \
             reaches; wire M_AXI_SG to it, and check the address map",
        ),
        _ if status & SG_SLAVE_ERROR != 0 => at(
            descriptor,
            "SGSlvErr: memory answered a descriptor's fetch or its status with an error; check \
             the port of the descriptors",
        ),
        _ if status & SG_INTERNAL_ERROR != 0 => at(
            descriptor,
            "SGIntErr: a descriptor was fetched that is complete already; no other code may drive \
             this core or write its descriptors",
        ),
        _ if status & DECODE_ERROR != 0 => at(
            buffer,
            "DMADecErr: the buffer's address is not memory that this port reaches; check the \
             port's offset and the block design's address map",
        ),
        _ if status & SLAVE_ERROR != 0 => at(
            buffer,
            "DMASlvErr: memory answered with an error; check that this address is memory, and \
             that its port is enabled",
        ),
        _ if status & INTERNAL_ERROR != 0 => plain(match side {
            Side::Mm2s => {
                "DMAIntErr: a length of 0 in the core; compare length_bits with the width of its \
                 length register"
            }
            Side::S2mm => {
                "DMAIntErr: a packet is longer than its operand, or never ends; give a longer \
                 operand, or TLAST, or compare length_bits with the core"
            }
        }),
        _ => plain(HALTED_ALONE),
    }
}

/// The packet ended early: the operand's other descriptors would take the next packet.
pub(super) const fn early_end(status: u32) -> Error {
    let what = "a packet ended before the last descriptor of its operand, whose rest would take \
        the next packet; give an operand of one descriptor";
    Error::Fault { device: Side::S2mm.name(), status, what }
}
