#![allow(unsafe_code, reason = "registers are reached through another window")]
//! The registers of the mSGDMA's four slave ports, and its descriptors. The numbers come from
//! Linux: `drivers/dma/altera-msgdma.c`, `drivers/net/ethernet/altera/altera_msgdmahw.h`, and
//! Altera's driver for the prefetcher, `altera_msgdma_pref.h`. The meanings come from the Embedded
//! Peripherals IP User Guide, chapter "Modular Scatter-Gather DMA Core" (here: the guide).
//!
//! Offsets count from the beginning of each port. Platform Designer decides where the ports lie.

use contigo_core::hw::mmio::{Mmio, ReadClears, ReadOnly, ReadWrite, Register, WriteOneToggles};
use contigo_core::types::Error;

/// The CSR port, with the component's registers.
pub(crate) const CSR_BYTES: usize = 0x20;
/// The descriptor port: 16 bytes of a standard descriptor.
pub(crate) const STANDARD_BYTES: usize = 0x10;
/// The descriptor port: 32 bytes of an extended descriptor.
pub(crate) const EXTENDED_BYTES: usize = 0x20;
/// The response port.
pub(crate) const RESPONSE_BYTES: usize = 0x08;
/// The prefetcher's CSR port.
pub(crate) const PREFETCHER_BYTES: usize = 0x20;

/// CSR 0x00, status. Bits 31:10 read as 0. Writing 1 clears `IRQ`; the others are read only.
pub(crate) const STATUS: Register<WriteOneToggles> = Register::at(0x00);
/// CSR 0x04, control. Read and write; a reset clears it.
pub(crate) const CONTROL: Register<ReadWrite> = Register::at(0x04);
/// CSR 0x0C, how many responses wait, in bits 15:0. The others read as 0.
pub(crate) const RESPONSES: Register<ReadOnly> = Register::at(0x0C);
/// CSR 0x14, the guide's "Component Configuration 1": how newer cores are built.
pub(crate) const COMPONENT_1: Register<ReadOnly> = Register::at(0x14);
/// CSR 0x18, "Component Configuration 2".
pub(crate) const COMPONENT_2: Register<ReadOnly> = Register::at(0x18);
/// CSR 0x1C, "Component Info": [`COMPONENT_TYPE`] in bits 15:8 on newer cores.
pub(crate) const COMPONENT_INFO: Register<ReadOnly> = Register::at(0x1C);

/// STATUS: descriptors wait, or one is at work. It rises two clocks after a descriptor arrives.
pub(crate) const BUSY: u32 = 1 << 0;
/// STATUS: no descriptor waits.
pub(crate) const EMPTY: u32 = 1 << 1;
/// STATUS: another descriptor would stall the bus.
pub(crate) const FULL: u32 = 1 << 2;
/// STATUS: the masters have stopped, or no descriptor is at work and [`STOP_DESCRIPTORS`] lets none
/// begin (`dispatcher.v`: `stop_state = master_stop_state | descriptors_stop_state`). Only a reset
/// guarantees that the core has no access under way.
pub(crate) const STOPPED: u32 = 1 << 5;
/// STATUS: a reset is under way.
pub(crate) const RESETTING: u32 = 1 << 6;
/// STATUS: an interrupt; writing 1 clears it.
pub(crate) const IRQ: u32 = 1 << 9;
/// STATUS: bits that read as 0.
pub(crate) const RESERVED: u32 = !0x3FF;

/// CONTROL: stop the masters, at the end of the access under way.
pub(crate) const STOP: u32 = 1 << 0;
/// CONTROL: reset dispatcher and masters, with all descriptors and responses.
pub(crate) const RESET: u32 = 1 << 1;
/// CONTROL: interrupts.
pub(crate) const IRQ_ENABLE: u32 = 1 << 4;
/// CONTROL: start no further descriptor.
pub(crate) const STOP_DESCRIPTORS: u32 = 1 << 5;

/// `COMPONENT_INFO`: the type, in bits 15:8, with the upper half 0.
pub(crate) const COMPONENT_TYPE: u32 = 0xDA << 8;
/// `COMPONENT_INFO`: the bits of the type.
pub(crate) const COMPONENT_TYPE_BITS: u32 = 0xFFFF_FF00;
/// `COMPONENT_1`: the mode, in bits 17:16.
pub(crate) const COMPONENT_MODE: u32 = 3 << 16;
/// `COMPONENT_1`: extended features.
pub(crate) const COMPONENT_EXTENDED: u32 = 1 << 18;
/// `COMPONENT_2`: a prefetcher.
pub(crate) const COMPONENT_PREFETCHER: u32 = 1 << 17;

/// Descriptor port: the low half of the address that is read.
pub(crate) const READ_ADDR: Register<ReadWrite> = Register::at(0x00);
/// Descriptor port: the low half of the address that is written.
pub(crate) const WRITE_ADDR: Register<ReadWrite> = Register::at(0x04);
/// Descriptor port: how many bytes.
pub(crate) const LENGTH: Register<ReadWrite> = Register::at(0x08);
/// Standard descriptor port: control. Writing it starts the descriptor.
pub(crate) const STANDARD_CONTROL: Register<ReadWrite> = Register::at(0x0C);
/// Extended descriptor port: write burst in bits 31:24, read burst in 23:16, sequence number in
/// 15:0.
pub(crate) const BURST_SEQUENCE: Register<ReadWrite> = Register::at(0x0C);
/// Extended descriptor port: the strides in words, write in bits 31:16, read in 15:0.
pub(crate) const STRIDE: Register<ReadWrite> = Register::at(0x10);
/// Extended descriptor port: the high half of the address that is read.
pub(crate) const READ_ADDR_HIGH: Register<ReadWrite> = Register::at(0x14);
/// Extended descriptor port: the high half of the address that is written.
pub(crate) const WRITE_ADDR_HIGH: Register<ReadWrite> = Register::at(0x18);
/// Extended descriptor port: control. Writing it starts the descriptor.
pub(crate) const EXTENDED_CONTROL: Register<ReadWrite> = Register::at(0x1C);
/// STRIDE: word after word on both sides.
pub(crate) const STRIDE_ONE: u32 = 0x0001_0001;

/// Descriptor's control: mark the first word of a packet.
pub(crate) const GENERATE_SOP: u32 = 1 << 8;
/// Descriptor's control: mark the last word of a packet.
pub(crate) const GENERATE_EOP: u32 = 1 << 9;
/// Descriptor's control: a packet's end ends the descriptor.
pub(crate) const END_ON_EOP: u32 = 1 << 12;
/// Descriptor's control: its end raises an interrupt.
pub(crate) const IRQ_ON_END: u32 = 1 << 14;
/// Descriptor's control: too long a packet raises an interrupt.
pub(crate) const IRQ_ON_EARLY: u32 = 1 << 15;
/// Descriptor's control: errors at the sink raise an interrupt. In a send, these bits are the error
/// that is sent.
pub(crate) const IRQ_ON_ERROR: u32 = 0xFF << 16;
/// Descriptor's control: the guide's "Wait for write responses", if the core has them.
pub(crate) const WAIT_FOR_WRITES: u32 = 1 << 25;
/// Descriptor's control, in memory: it belongs to the prefetcher.
pub(crate) const OWNED: u32 = 1 << 30;
/// Descriptor's control: commits the descriptor.
pub(crate) const GO: u32 = 1 << 31;

/// Response port: how many bytes were written, for a receiver with packets.
pub(crate) const RESPONSE_LENGTH: Register<ReadOnly> = Register::at(0x00);
/// Response port: errors in bits 7:0, and [`EARLY`]. Reading it removes the response.
pub(crate) const RESPONSE_STATUS: Register<ReadClears> = Register::at(0x04);
/// A response's errors.
pub(crate) const ERRORS: u32 = 0xFF;
/// A response: the buffer was full before the packet's end.
pub(crate) const EARLY: u32 = 1 << 8;

/// Prefetcher 0x00, control. Bits 31:5 read as 0.
pub(crate) const FETCH_CONTROL: Register<ReadWrite> = Register::at(0x00);
/// Prefetcher 0x04, the low half of the first descriptor's address.
pub(crate) const FETCH_NEXT: Register<ReadWrite> = Register::at(0x04);
/// Prefetcher 0x08, the high half.
pub(crate) const FETCH_NEXT_HIGH: Register<ReadWrite> = Register::at(0x08);
/// Prefetcher 0x10, status: [`FETCH_IRQ`] alone, which writing 1 clears.
pub(crate) const FETCH_STATUS: Register<WriteOneToggles> = Register::at(0x10);

/// `FETCH_CONTROL`: fetch descriptors until one is not owned; it then clears itself.
pub(crate) const RUN: u32 = 1 << 0;
/// `FETCH_CONTROL`: reset; it clears itself.
pub(crate) const FETCH_RESET: u32 = 1 << 2;
/// `FETCH_CONTROL`: interrupts.
pub(crate) const FETCH_IRQ_ENABLE: u32 = 1 << 3;
/// `FETCH_CONTROL`: bits that read as 0.
pub(crate) const FETCH_RESERVED: u32 = !0x1F;
/// `FETCH_STATUS`: a descriptor was written back.
pub(crate) const FETCH_IRQ: u32 = 1 << 0;

/// A standard descriptor in memory: its size and word offsets.
pub(crate) const STANDARD_WORDS: usize = 8;
/// An extended descriptor in memory.
pub(crate) const EXTENDED_WORDS: usize = 16;
/// In memory: how many bytes were written, then the status, as [`RESPONSE_STATUS`] has it.
pub(crate) const ACTUAL_AT: usize = 0x10;
/// In a standard descriptor: control, its last word.
pub(crate) const STANDARD_CONTROL_AT: usize = 0x1C;
/// In an extended descriptor: control, its last word.
pub(crate) const EXTENDED_CONTROL_AT: usize = 0x3C;

/// A response's error status in words.
#[must_use]
pub(crate) const fn describe(status: u32) -> Option<&'static str> {
    if status & EARLY != 0 {
        Some(
            "early termination: the packet is longer than its buffer, and its rest comes next; \
             give longer buffers, or look why the stream marks no end",
        )
    } else if status & ERRORS != 0 {
        Some(
            "an error of the stream's source, in bits 7:0 of the status: look at the source, \
             whose manual names the bits; the packet is in its buffer",
        )
    } else {
        None
    }
}

/// The message for values that this core's registers never have.
pub(super) const fn gone(status: u32) -> Error {
    let what = "bits that it never sets: its bridge is off, its clock stands, or `csr_at` is \
        wrong; look at the fabric and at the offsets";
    Error::Fault { device: "msgdma", status, what }
}

/// One slave port of the core: the registers of a window from byte `1` on.
pub(super) struct At<'d, D>(pub(super) &'d D, pub(super) usize);

// SAFETY: they are the device's registers, at other offsets.
unsafe impl<D: Mmio> Mmio for At<'_, D> {
    fn len_bytes(&self) -> usize {
        self.0.len_bytes().saturating_sub(self.1)
    }

    #[inline]
    fn read32(&self, offset: usize) -> u32 {
        self.0.read32(self.1.saturating_add(offset))
    }

    #[inline]
    unsafe fn write32(&self, offset: usize, value: u32) {
        // SAFETY: the caller's promise.
        unsafe { self.0.write32(self.1.saturating_add(offset), value) }
    }
}
