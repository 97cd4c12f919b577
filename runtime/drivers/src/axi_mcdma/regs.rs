//! The core's registers and descriptors, and the errors of their bits: AMD PG288 (AXI MCDMA v1.1),
//! "Register Space" and "Scatter Gather Buffer Descriptor", by the names of its tables. A
//! direction's registers begin at 000h (MM2S) and 500h (S2MM); its channels follow at offset 40h,
//! 40h each.
//!
//! AMD embeddedsw `drivers/mcdma/src/xmcdma_hw.h` has the same numbers, and Linux
//! `drivers/dma/xilinx/xilinx_dma.c` those that it uses (`XILINX_MCDMA_…`).

use contigo_core::hw::mmio::{ReadClears, ReadOnly, ReadWrite, Register, WriteOneToggles};
use contigo_core::types::Error;

/// The window: S2MM's channel 15 ends there. Vivado gives the core 4 KiB and more.
pub(crate) const WINDOW_BYTES: usize = 0x940;
/// The most channels of a direction.
pub(crate) const CHANNELS_MAX: usize = 16;

/// The registers that the channels of one direction share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Common {
    /// Common Control Register, 00h.
    pub(crate) control: Register<ReadWrite>,
    /// Common Status Register, 04h.
    pub(crate) status: Register<ReadOnly>,
    /// Channel Enable/Disable Register, 08h: a bit a channel. An S2MM packet for a channel that is
    /// disabled is dropped.
    pub(crate) enable: Register<ReadWrite>,
    /// Error Register, 10h.
    pub(crate) error: Register<ReadOnly>,
}

/// The registers of one channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channel {
    /// Channel Control Register, 40h.
    pub(crate) control: Register<ReadWrite>,
    /// Channel Status Register, 44h; writing 1 clears an interrupt.
    pub(crate) status: Register<WriteOneToggles>,
    /// Current Descriptor, 48h, and its upper half at 4Ch. Written only while CHANNEL.RS is 0.
    pub(crate) current: [Register<ReadWrite>; 2],
    /// Tail Descriptor, 50h, and its upper half at 54h: the doorbell, which is the upper half in a
    /// core with more than 32 address bits.
    pub(crate) tail: [Register<ReadWrite>; 2],
    /// Packet Drop Count, 58h of S2MM; MM2S counts its sent packets here. Bits 15:0.
    pub(crate) dropped: Register<ReadClears>,
}

/// S2MM Packet Drop Count, 514h: of all channels.
pub(crate) const ALL_DROPPED: Register<ReadOnly> = Register::at(0x514);

/// MM2S, then S2MM.
pub(crate) const COMMON: [Common; 2] = [common(0), common(S2MM)];

/// The channels of MM2S, then those of S2MM.
#[allow(clippy::indexing_slicing, reason = "in a constant the compiler sees it")]
pub(crate) const CHANNELS: [Channel; 2 * CHANNELS_MAX] = {
    let mut channels = [channel(0x40); 2 * CHANNELS_MAX];
    let mut index = 0;
    while index < CHANNELS_MAX {
        channels[index] = channel(0x40 * (index + 1));
        channels[CHANNELS_MAX + index] = channel(S2MM + 0x40 * (index + 1));
        index += 1;
    }
    channels
};

/// Where S2MM's registers begin.
const S2MM: usize = 0x500;

const fn common(base: usize) -> Common {
    Common {
        control: Register::at(base),
        status: Register::at(base + 0x04),
        enable: Register::at(base + 0x08),
        error: Register::at(base + 0x10),
    }
}

const fn channel(base: usize) -> Channel {
    Channel {
        control: Register::at(base),
        status: Register::at(base + 0x04),
        current: [Register::at(base + 0x08), Register::at(base + 0x0C)],
        tail: [Register::at(base + 0x10), Register::at(base + 0x14)],
        dropped: Register::at(base + 0x18),
    }
}

/// Common and channel control, bit 0, RS: run.
pub(crate) const RUN: u32 = 1 << 0;
/// Common control, bit 2, Reset: soft reset of the whole core, both directions; clears itself when
/// it is done.
pub(crate) const RESET: u32 = 1 << 2;

/// Common status, bit 0, Halted: the direction has stopped.
pub(crate) const HALTED: u32 = 1 << 0;
/// Common status, reserved bits 31:2: they reveal an absent device.
pub(crate) const COMMON_RESERVED: u32 = !0b11;

/// Channel control and status, bit 3: an error on another channel (`Err_on_other_ch`).
pub(crate) const OTHER_ERROR: u32 = 1 << 3;
/// Channel control and status, bit 5, IOC_Irq: a packet's last descriptor is done.
pub(crate) const IOC: u32 = 1 << 5;
/// Channel control and status, bit 7, Err_Irq: an error on this channel.
pub(crate) const ERROR: u32 = 1 << 7;
/// Channel control: those three as interrupts. They read back, which reveals a reset.
pub(crate) const IRQS: u32 = OTHER_ERROR | IOC | ERROR;
/// Channel control, bits 23:16, IRQThreshold: the number of packets per interrupt.
pub(crate) const THRESHOLD_1: u32 = 1 << 16;

/// Channel status, bit 0, Idle: all descriptors up to the tail are done. The core drops a packet
/// that comes then.
pub(crate) const IDLE: u32 = 1 << 0;
/// Channel status, bit 1, BD ShortFall: a packet is longer than the available descriptors.
pub(crate) const SHORT_FALL: u32 = 1 << 1;
/// Channel status, reserved bit 2: it reveals an absent device.
pub(crate) const CHANNEL_RESERVED: u32 = 1 << 2;

/// A descriptor's address is a multiple of this (16 words).
pub(crate) const DESCRIPTOR_BYTES: usize = 64;
/// The most bytes that a descriptor's length holds: bits 25:0. A core may be built with fewer.
pub(crate) const LENGTH_BITS_MAX: u8 = 26;
/// CONTROL, bit 31, TXSOF: a packet begins here.
pub(crate) const SOF: u32 = 1 << 31;
/// CONTROL, bit 30, TXEOF: a packet ends here.
pub(crate) const EOF: u32 = 1 << 30;
/// STATUS is at 1Ch of an MM2S descriptor, and at 18h of an S2MM descriptor, followed by the
/// sideband's status.
pub(crate) const STATUS_AT: [usize; 2] = [0x1C, 0x18];
/// The sideband's status of an S2MM descriptor, 1Ch: TID in 31:24, TDEST in 19:16, TUSER in 15:0.
pub(crate) const SIDEBAND_AT: usize = 0x1C;
/// STATUS, bits 25:0, transferred bytes.
pub(crate) const BYTES: u32 = (1 << 26) - 1;
/// STATUS, bit 26, RXEOF: the packet's last byte is here.
pub(crate) const LAST: u32 = 1 << 26;
/// STATUS, bit 27, RXSOF: the packet's first byte is here.
pub(crate) const FIRST: u32 = 1 << 27;
/// STATUS, bits 30:28: an error of the data mover (decode, slave, internal).
pub(crate) const FAILED: u32 = 0b111 << 28;
/// STATUS, bit 31, Completed: the core is done with it.
pub(crate) const COMPLETE: u32 = 1 << 31;

/// A descriptor's words: the next one's address, the buffer's, a reserved word, CONTROL; then
/// statuses or the sideband, and five words of the user's.
#[must_use]
#[allow(clippy::cast_possible_truncation, reason = "the halves of an address")]
pub(crate) const fn descriptor(next: u64, buffer: u64, control: u32) -> [u32; 13] {
    [
        next as u32,
        (next >> 32) as u32,
        buffer as u32,
        (buffer >> 32) as u32,
        0,
        control,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
    ]
}

/// Where a descriptor has CONTROL; both status offsets follow it.
pub(crate) const CONTROL_AT: usize = 0x14;
/// Where a descriptor has its buffer's address.
pub(crate) const BUFFER_AT: usize = 0x08;

/// For messages.
pub(super) const DEVICE: &str = "axi_mcdma";

/// The Error Register's most important bit (PG288, MM2S and S2MM Error Register). `buffer` and
/// `descriptor` are the channel's current ones.
pub(super) const fn core_fault(status: u32, buffer: u64, descriptor: u64) -> Error {
    let device = DEVICE;
    let (what, addr) = match status {
        0 => ("an error of this channel whose cause it does not tell", descriptor),
        _ if status & 1 << 6 != 0 => (
            "SGDecErr, that no memory is where it fetches a descriptor: is its port m_axi_sg \
             wired to this memory?",
            descriptor,
        ),
        _ if status & 1 << 5 != 0 => {
            ("SGSlvErr, that memory answered a descriptor's fetch with an error", descriptor)
        }
        _ if status & 1 << 4 != 0 => (
            "SGIntErr, that it fetched a descriptor which is complete already: does other code \
             drive this core?",
            descriptor,
        ),
        _ if status & 1 << 2 != 0 => {
            ("DMADecErr, that no memory answers at a buffer's address on its data port", buffer)
        }
        _ if status & 1 << 1 != 0 => {
            ("DMASlvErr, that memory answered its data port with an error", buffer)
        }
        _ if status & 1 << 0 != 0 => (
            "DMAIntErr, a length of 0, or a stream that ended otherwise than its status stream \
             said: compare length_bits",
            buffer,
        ),
        _ => ("an error that PG288 does not know: is this core an AXI MCDMA 1.1?", descriptor),
    };
    Error::FaultAt { device, status, what, addr }
}

/// A descriptor's own error bits.
pub(super) const fn descriptor_fault(status: u32, buffer: u64) -> Error {
    let core = status >> 28 & 0b111;
    // Internal, slave and decode error are in the same order in both.
    match core_fault(core, buffer, buffer) {
        Error::FaultAt { device, what, addr, .. } => Error::FaultAt { device, status, what, addr },
        other => other,
    }
}

/// Another channel of this direction failed. The whole direction halts then.
pub(super) const fn fault_elsewhere(status: u32) -> Error {
    let what = "an error on another channel, which halts all channels of this direction: start \
        the jobs again";
    Error::Fault { device: DEVICE, status, what }
}

/// The error of a send shorter than its descriptor.
pub(super) const fn cut_length(status: u32) -> Error {
    let what = "fewer bytes sent than were given: its length register is narrower than \
        length_bits says; take its width from the block design";
    Error::Fault { device: DEVICE, status, what }
}

/// The error of a device that reads all ones.
pub(super) const fn gone() -> Error {
    Error::Fault {
        device: DEVICE,
        status: u32::MAX,
        what: "nothing: it is gone, or its registers are not at this address",
    }
}

/// The error of a direction that stays halted.
pub(super) const fn not_running(status: u32) -> Error {
    Error::Fault {
        device: DEVICE,
        status,
        what: "that it is halted and does not start: are s_axi_aclk and s_axi_lite_aclk on?",
    }
}

#[cfg(test)]
#[allow(clippy::panic, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;

    #[test]
    fn each_error_bit_has_its_name_and_its_address() {
        let names = ["DMAIntErr", "DMASlvErr", "DMADecErr", "", "SGIntErr", "SGSlvErr", "SGDecErr"];
        for (bit, name) in (0..).zip(names).filter(|(_, name)| !name.is_empty()) {
            let Error::FaultAt { status, what, addr, .. } = core_fault(1 << bit, 7, 64) else {
                panic!("{name}")
            };
            assert!(
                what.starts_with(name)
                    && status == 1 << bit
                    && addr == if bit < 4 { 7 } else { 64 },
                "{what}"
            );
        }
        // In a descriptor these three are bits 28 to 30.
        for (bit, name) in (28..).zip(["DMAIntErr", "DMASlvErr", "DMADecErr"]) {
            let Error::FaultAt { status, what, addr, .. } =
                descriptor_fault(1 << 31 | 1 << bit | 5, 7)
            else {
                panic!("{name}")
            };
            assert!(
                what.starts_with(name) && status == 1 << 31 | 1 << bit | 5 && addr == 7,
                "{what}"
            );
        }
    }
}
