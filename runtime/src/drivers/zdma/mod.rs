#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! ZDMA, the general-purpose DMA of Zynq UltraScale+: one channel of GDMA (FPD DMA, 0xFD50_0000) or
//! ADMA (LPD DMA, 0xFFA8_0000). It copies memory to memory.
//!
//! | operand | what | direction |
//! |---|---|---|
//! | from | the bytes to copy, all of them | to the device |
//! | to | where they go; at least as many | from the device |
//!
//! **Two modes.** [`Zdma::simple`] keeps the one transfer in registers: up to 1 GiB - 1 B.
//! [`Zdma::linked`] writes a list of descriptors into memory of its own and lets the channel walk
//! it: up to 4 GiB - 1 B.
//!
//! **Several jobs in flight.** In linked mode the driver takes up to eight. A list that the channel
//! walks is never changed: the channel may have fetched its next descriptor already (UG1085,
//! "Buffer Descriptor Summary"), and writes none back that would tell. So jobs that come meanwhile
//! wait, chained into one list, which starts when the channel is idle. Linux does the same
//! (`zynqmp_dma_tx_submit`, `zynqmp_dma_start_transfer`). A pause at a list's end, continued by
//! CTRL0's CONT, would save only the writes of the start addresses. The jobs of one list end
//! together: only an idle channel says that every write was answered. Linux counts descriptors by
//! IRQ_DST_ACCT instead, and the manuals do not say that their writes are answered in order.
//!
//! **Alignment.** None: a payload may start and end anywhere (UG1085, "DMA Controller Functional
//! Description"). Where a copy's end is no multiple of the bus (16 bytes on GDMA, 8 on ADMA), the
//! channel would read up to the end of the bus word. This driver turns that off, so that no byte of
//! a neighbour is read, and the last bytes are read one by one ("Over Fetch"). So a length that is
//! a multiple of 16 is a little faster.
//!
//! **Coherency.** GDMA's port never snoops: of the masters in the processing system, the FPD DMA is
//! one of the few that cannot be made I/O coherent (UG1085, "I/O Coherency"). ADMA's does where
//! firmware routes it through the CCI and enables its snoops; no register of the channel tells. The
//! driver does what the [`Device`]'s port says: it sets the AXI attributes for it, and a port that
//! claims more than the board does corrupts data.
//!
//! **No identity.** No register says "this is a ZDMA", nor whether it is GDMA or ADMA. Opening one
//! compares the bits that read as zero, and stopping it reads back one register that it wrote;
//! another core with the same gaps would pass. So opening one is unsafe: the program says what the
//! window is.
//!
//! **Clocks.** Linux' own driver turns on the channel's `clk_main` and `clk_apb`
//! (`zynqmp_dma_runtime_resume`); `uio_pdrv_genirq` does not. Something else must, before the
//! registers are touched.
//!
//! # References
//! UG1085, chapter "DMA Controller"; UG1087, module ZDMA; Linux' `drivers/dma/xilinx/zynqmp_dma.c`;
//! embeddedsw's `zdma`.

mod jobs;
mod list;
#[cfg(feature = "sim")]
mod model;
pub mod regs;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub(crate) mod row;
mod setup;
mod stop;
mod walk;

#[cfg(feature = "sim")]
pub use self::model::{SimZdma, ZdmaModel};
use crate::{
    hw::Device,
    job::{Completion, Driver, OperandSpec, StopProgram, exactly},
    mem::{CpuBuf, DevBuf, DevSlice, DriverBuf, Port},
    types::platform::forward_as_fd,
    types::{Error, Refused, Result},
};
use core::time::Duration;
use jobs::Jobs;
use list::{PAIR_BYTES, PAIRS_MIN};
use setup::is_zdma;

/// The driver of one channel. It owns its descriptors' memory; in simple mode there is none.
///
/// ```
/// use contigo::{Align, drivers::{zdma::{SimZdma, Zdma}}, sim::SimBoard, Queue, Region};
/// use core::time::Duration;
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(256 * 1024)?)?;
/// let descriptors = region.alloc(4096, Align::PAGE)?;
/// let pool = region.pool(4, 16384)?;
/// let channel = SimZdma::new(&board, board.port());
/// let mut queue = Queue::new(Zdma::linked_simulated(channel.window()?, descriptors)?, 1)?;
///
/// let (mut from, to) = (pool.take()?, pool.take()?);
/// from.view_mut::<u8>()?.fill(7);
/// let [_from, to] = queue.run([from.to_device(3..10_000), to.from_device(..)], &[], Duration::from_millis(20))?.buffers;
/// assert_eq!(to.view_at::<u8>(..9_997)?, [7; 9_997]);
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Debug)]
pub struct Zdma<D: Device> {
    device: D,
    jobs: Jobs,
    /// The last call was `stop`, or `new`.
    stopped: bool,
}

impl<D: Device> Zdma<D> {
    /// The driver of `device`, a transfer at a time in its registers.
    ///
    /// # Errors
    /// [`Error::RegisterWindow`] where the window is too small; [`Error::WrongDevice`] where bits
    /// are set that read as
    /// zero in a ZDMA: the wrong address.
    ///
    /// # Safety
    /// The window is one ZDMA channel's (UG1087, module ZDMA), and nobody else drives it while this
    /// value lives.
    pub unsafe fn simple(device: D) -> Result<Self> {
        is_zdma(&device)?;
        Ok(Self { device, jobs: Jobs::new(None), stopped: true })
    }

    /// The driver of `device`, with lists of descriptors in `descriptors`: 64 bytes for each piece
    /// of a copy, at least 128. With 256, 512, or 1,024 bytes and more it takes 2, 4, or 8 jobs at
    /// once, each with an equal part of them. More than 32 KiB are not used. A copy is cut at
    /// multiples of 4 KiB of its destination, where an AXI burst ends anyway. Where its part would
    /// be too short, it is cut at larger powers of two. With 128 bytes for a job it has up to 512
    /// MiB, with 576 bytes up to 4 GiB - 1 B.
    ///
    /// The memory belongs to the driver until that is dropped. Dropping it stops the channel and
    /// gives the memory back; where the channel will not stop, the memory is leaked.
    ///
    /// # Errors
    /// The buffer comes back, with what [`simple`](Self::simple) and [`DriverBuf::new`] say,
    /// [`Error::BlockSize`] for less than 128 bytes, and [`Error::Misaligned`] where its bus
    /// address is no multiple of a descriptor's 32 bytes. `device` is dropped.
    ///
    /// # Safety
    /// As [`simple`](Self::simple).
    pub unsafe fn linked(device: D, descriptors: CpuBuf) -> Result<Self, Refused<CpuBuf>> {
        if let Err(error) = is_zdma(&device) {
            return Err(Refused::new(error, descriptors));
        }
        let (len_bytes, need_bytes) = (descriptors.len_bytes(), PAIRS_MIN * PAIR_BYTES);
        if len_bytes < need_bytes {
            return Err(Refused::new(Error::BlockSize { len_bytes, need_bytes, line_bytes: PAIR_BYTES }, descriptors));
        }
        let descriptors = DriverBuf::new(descriptors, device.port(), regs::ADDR_BITS)?;
        let (addr, align_bytes) = (descriptors.addr_at(0).0, regs::DESCRIPTOR_BYTES);
        if !addr.is_multiple_of(align_bytes as u64) {
            // SAFETY: no device was told of it.
            let buf = unsafe { descriptors.release() };
            return Err(Refused::new(Error::Misaligned { addr, align_bytes }, DevBuf::reclaim(buf)));
        }
        Ok(Self { device, jobs: Jobs::new(Some(descriptors)), stopped: true })
    }
}

// SAFETY: 1. UG1085: a channel reads SIZE bytes at the source's address, with over-fetch off no
// others, and writes as many at the destination's; `check` compared SIZE with both operands. In
// linked mode the descriptors say the same for each piece (`list.rs`), and the channel also reads
// the descriptors, which are the driver's own. 2. `poll` and `halt` believe STATUS. A channel that
// ends leaves its busy state only when all data is in the destination's memory ("Channel
// Disabled"). Each write has been answered then ("Total Transferred Bytes Overflow"). Without
// snooping the answer comes from memory, as AWCACHE asks; with it, from the interconnect that
// snoops, behind which every observer sees the write. One that was disabled because it did not end
// is believed by the same register (`halt`). 3. No bytes are told. 4. `check` reads no register. 5.
// The port belongs to the device. 6. The caller of the function that made it promised it. 7. The
// program writes an interrupt mask, and waits for what ends a job: EN, which the channel clears at
// its end, and STATUS. 8. Each poll has a limit. 9. Its fields say no more than registers do.
unsafe impl<D: Device> Driver for Zdma<D> {
    fn name(&self) -> &'static str {
        "zdma"
    }

    fn port(&self) -> &Port {
        self.device.port()
    }

    fn simulated(&self) -> Option<&dyn crate::mem::SimulatedDevice> {
        self.device.simulated()
    }

    fn addr_bits(&self) -> u32 {
        regs::ADDR_BITS
    }

    fn operands(&self) -> &[OperandSpec] {
        const { &[OperandSpec::to_device(), OperandSpec::from_device()] }
    }

    fn depth(&self) -> usize {
        self.jobs.depth()
    }

    fn check(&self, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        let [] = exactly(args)?;
        let [from, to] = exactly(operands)?;
        let (value, max) = (from.len_bytes as u64, self.jobs.longest());
        if to.len_bytes < from.len_bytes {
            return Err(Error::BufferSize { index: 1, need_bytes: value, have_bytes: to.len_bytes });
        }
        if value == 0 || value > max {
            return Err(Error::Argument { name: "bytes to copy", value, min: 1, max, multiple_of: 1 });
        }
        Ok(())
    }

    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        let [from, to] = exactly(operands)?;
        if core::mem::take(&mut self.stopped) {
            self.jobs.begin_anew();
        }
        self.jobs.push(slot, *from, *to, self.device.port().coherent)?;
        self.launch()
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        if let Some(slot) = self.jobs.tell() {
            return Ok(Some(Completion::of(slot)));
        }
        if self.list_ended(timeout)?
            && let Err(error) = self.launch()
        {
            self.jobs.failed(error, 0);
        }
        match (self.jobs.tell(), self.jobs.fault()) {
            (Some(slot), _) => Ok(Some(Completion::of(slot))),
            (None, Some(fault)) => Err(fault),
            (None, None) => Ok(None),
        }
    }

    /// Jobs of a list that had ended before are told still.
    fn stop(&mut self) -> Result<()> {
        // An interrupt's file that fails: the channel is stopped all the same.
        let _ = self.list_ended(Duration::ZERO);
        self.halt()?;
        self.jobs.stopped();
        self.stopped = true;
        self.configure()
    }

    fn arm_irq(&self) -> Result<Option<i32>> {
        self.device.arm_irq()
    }

    fn stop_program(&self) -> StopProgram {
        self.program()
    }
}

forward_as_fd!({D: Device} Zdma<D>, device: D);

impl<D: Device> Drop for Zdma<D> {
    /// Stops the channel. The descriptors' memory goes back only when it has stopped; otherwise it
    /// stays leaked.
    fn drop(&mut self) {
        if self.halt().is_ok() {
            // SAFETY: STATUS says that the channel is disabled, and it fetches descriptors only
            // while it is enabled.
            drop(self.jobs.take_memory().map(|descriptors| unsafe { descriptors.release() }));
        }
    }
}
