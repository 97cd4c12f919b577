//! AMD's AXI MCDMA 1.1: many channels over one core, by lists of descriptors. Up to 16 send memory
//! as packets of a stream (MM2S), and up to 16 receive packets into memory (S2MM). A packet's TDEST
//! is the number of its channel.
//!
//! [`Mcdma`] is the core, and gives out its channels; each [`McdmaChannel`] is a driver of its own,
//! in any thread. By name, `axi_mcdma` with the setting `channel` is one of them: 0 to 15
//! send, 16 to 31 receive. Without the setting it is channel 0, and has the core alone.
//!
//! A job has one operand:
//!
//! | channel | operand | bytes | direction |
//! |---|---|---|---|
//! | MM2S | a packet, all of it | 1 to 2^`length_bits` - 1 | to the device |
//! | S2MM | room for a packet | as many; without DRE a multiple of the data width | from the device |
//!
//! Without DRE an operand begins at a multiple of the data width. No register tells a core's
//! parameters: see [`McdmaConfig`]. A channel has as many jobs in flight as it has descriptors,
//! which lie in memory that the caller gives. A job's end tells how many bytes came, and whether
//! they begin and end a packet. A packet that is longer than its buffer goes on in the next job's.
//!
//! # Traps, and how the driver meets them
//! - **A packet that finds no descriptor is dropped** (S2MM), as is one for a channel that is not
//!   enabled: the core never lets a stream wait. Give buffers before the stream starts.
//!   [`McdmaChannel::dropped`] counts, and so does
//!   [`Driver::ran_dry`](contigo_core::Driver::ran_dry).
//! - **One reset for all**, in both directions. No register says that one channel has stopped: what
//!   it fetched it carries out when a packet comes. So `stop` takes the channel's RS away and waits
//!   until its descriptors are done, and else resets the core; siblings answer
//!   [`Error::EndedByReset`](contigo_core::Error::EndedByReset). The packet under way is cut, and
//!   its rest may come first next time: [`PacketReport`] says that the first packet is maybe torn.
//! - **An error halts a whole direction.** The channel that failed says why. The others say that
//!   another one failed; each is stopped, and started again by its next job.
//! - A packet that is sent has ended when its buffer was read. The core may have its last beats,
//!   which a reset drops.
//! - CURDESC is fetched ahead and tells nothing of what is done. The driver looks at the channel's
//!   status register, and at a descriptor only where that shows a possible end or error.
//! - The core interrupts at the end of a packet. A stream without TLAST interrupts never: its
//!   buffers are reported when all are full, or when the program polls.
//! - Each channel has an interrupt of its own, unless the core is built with a single one. A
//!   program gets one line of a node (`uio_pdrv_genirq`): build it with a single one, or OR them.
//! - The MM2S scheduler is left as a reset leaves it (register 14h).
//!
//! Descriptors lie on the port of the device. Where that does not snoop, each look at one is a
//! sync. Both clocks, `s_axi_lite_aclk` and `s_axi_aclk`, run before the core is opened. A core
//! whose clock is off never leaves its reset.
//!
//! # References
//! AMD PG288, AXI Multichannel Direct Memory Access v1.1. AMD embeddedsw
//! `XilinxProcessorIPLib/drivers/mcdma`. Linux `drivers/dma/xilinx/xilinx_dma.c`.

mod channel;
mod complete;
mod config;
pub(crate) mod registry;
pub mod regs;
mod submit;

pub use self::channel::{Mcdma, McdmaChannel, PacketReport};
pub use self::config::{McdmaConfig, Way};
