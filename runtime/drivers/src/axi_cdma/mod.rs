//! AXI CDMA v4.1, AMD's central DMA: it copies memory to memory, or to and from one fixed address.
//!
//! | driver | operand | what | direction |
//! |---|---|---|---|
//! | [`AxiCdma`] | from | the bytes to copy, all of them | to the device |
//! | | to | where they go; at least as many | from the device |
//! | [`AxiCdmaKeyhole`] | bytes | all that is read from the fixed address, or written to it | one of both |
//!
//! **Three ways.** [`AxiCdma::simple`] keeps one copy in registers. [`AxiCdma::sg`] keeps many in
//! descriptors, in memory of its own. [`AxiCdmaKeyhole`] does either, with one side at an address
//! that does not move.
//!
//! **Simple mode in a core with scatter-gather** works only where CDMACR's `SGMode` is 0; with it
//! set, a write of BTT does nothing, and a driver would wait for ever. The bit may change only
//! while the core is idle. This driver resets the core where it is opened, and whenever it is
//! stopped, and so begins with the bit at 0. CDMASR reports a core without scatter-gather, and
//! [`AxiCdma::sg`] refuses it.
//!
//! **Several jobs in flight.** TAILDESC is moved while the core is at work, which only moves the
//! point where it pauses (PG034, "`TAILDESC_PNTR`"). Linux appends only to an idle core, and has a
//! gap after each batch. A copy that is longer than a length register has several descriptors. A
//! core with wide addresses starts with the upper half of TAILDESC. An address register tells
//! whether it is such a one, also where a setting forgot that. While such a core works it is given
//! the lower half alone, because between two writes it may go past its tail.
//!
//! **Lengths.** `length_bits` is 23 unless told otherwise, which every version has; 26 is for v4.1.
//! No register tells the width, and a core with fewer bits drops the upper ones. In simple mode BTT
//! is read back where that could be; in descriptors it would be silent. A core of the lite kind
//! moves one burst a copy, and crosses no 4 KiB; that is checked.
//!
//! **Alignment.** Without the realignment engine (`dre`) both addresses are multiples of a bus
//! word. The reading side fetches whole bus words, and drops the bytes that it was not asked for.
//! The writing side masks them.
//!
//! **A keyhole is one address,** of a FIFO in the fabric. It is no memory: it has no owner, and
//! no operand stands for it. It is a setting, and the caller that gives it promises that no memory
//! is there. The operand is the memory's side alone. AXI4's fixed bursts have at most 16 beats, so
//! `burst_beats` must not be more. A length is whole bus words, since each beat is one access to
//! the FIFO. A read of a FIFO that stays empty never ends; the job's time limit ends it.
//!
//! **Errors halt the core** until it is reset, which stopping does. A register tells which
//! descriptor it was; of a decode error it does not tell which of the two addresses.
//!
//! **Stopping** is a reset. Bursts that were begun end first (PG034, "CDMACR", Reset). The jobs
//! that had ended are told still.
//!
//! **Coherency** is the port's. The descriptors' port, `m_axi_sg`, is another one: where it goes to
//! other memory or past the caches, and `m_axi` does not, wire both alike.
//!
//! **Interrupts.** One line. `irq_threshold` and `irq_delay` coalesce, for a program that sleeps. A
//! line that is not connected costs time only.
//!
//! **No identity.** No register says "this is a CDMA". Opening one compares the bits that read as
//! zero, so that a core that is absent shows as all ones.
//!
//! # References
//! PG034 (v4.1), "Register Space", "Scatter Gather Mode", "Scatter Gather Transfer Descriptor
//! Definition", "CDMA Lite Mode Restrictions", "User Parameters"; Linux'
//! `drivers/dma/xilinx/xilinx_dma.c`; embeddedsw's `axicdma`.

mod complete;
mod config;
mod descriptors;
mod driver;
pub(crate) mod registry;
pub mod regs;

pub use self::{
    config::{AxiCdmaConfig, Keyhole},
    driver::{AxiCdma, AxiCdmaKeyhole},
};
