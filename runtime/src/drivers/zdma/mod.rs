#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! ZDMA, the general-purpose DMA of Zynq UltraScale+: one channel of GDMA (FPD DMA, 0xFD50_0000) or ADMA (LPD DMA, 0xFFA8_0000). It
//! copies memory to memory.
//!
//! | operand | what | direction |
//! |---|---|---|
//! | from | the bytes to copy, all of them | to the device |
//! | to | where they go; at least as many | from the device |
//!
//! **Two modes.** [`Zdma::simple`] keeps the one transfer in registers: up to 1 GiB - 1 B. [`Zdma::linked`] writes a list of
//! descriptors into memory of its own and lets the channel walk it: up to 4 GiB - 1 B.
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
//! **Alignment.** None: a payload may start and end anywhere (UG1085, "DMA Controller Functional Description"). Where a copy's end is
//! no multiple of the bus (16 bytes on GDMA, 8 on ADMA), the channel would read up to the end of the bus word; this driver
//! turns that off, so that no byte of a neighbour is read, and the last bytes are read one by one ("Over Fetch"). So a length
//! that is a multiple of 16 is a little faster.
//!
//! **Coherency.** GDMA's port never snoops: of the masters in the processing system, the FPD DMA is one of the few that cannot be
//! made I/O coherent (UG1085, "I/O Coherency"). ADMA's does where firmware routes it through the CCI and enables its snoops; no
//! register of the channel tells. The driver does what the [`Device`]'s port says: it sets the AXI attributes for it, and a port that
//! claims more than the board does corrupts data.
//!
//! **No identity.** No register says "this is a ZDMA", nor whether it is GDMA or ADMA. Opening one compares the bits that
//! read as zero, and stopping it reads back one register that it wrote; another core with the same
//! gaps would pass. So opening one is unsafe: the program says what the window is.
//!
//! **Clocks.** Linux' own driver turns on the channel's `clk_main` and `clk_apb` (`zynqmp_dma_runtime_resume`); `uio_pdrv_genirq`
//! does not. Something else must, before the registers are touched.
//!
//! # References
//! UG1085, chapter "DMA Controller"; UG1087, module ZDMA; Linux' `drivers/dma/xilinx/zynqmp_dma.c`; embeddedsw's `zdma`.

mod jobs;
mod list;
#[cfg(feature = "sim")]
mod model;
pub mod regs;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub(crate) mod row;

#[cfg(feature = "sim")]
pub use self::model::{SimZdma, ZdmaModel};
use crate::{
    hw::{
        Device,
        irq::{poll_every, poll_until},
    },
    job::{Completion, Driver, OperandSpec, StopProgram, StopStep, TypedDriver, fixed},
    mem::{CpuBuf, DevBuf, DevSlice, DriverBuf, Port},
    types::platform::forward_as_fd,
    types::{DevAddr, Error, Refused, Result, Timeout},
};
use jobs::{Jobs, Launch};
use list::{PAIR_BYTES, PAIRS_MIN};

/// How long stopping waits for a channel's end, beside its copy, and once more after EN was cleared: 4 KiB, all that the channels' common
/// buffer holds, take 5 µs at 1 GB/s; a thousand times that and more, for an interconnect that others congest.
const STOP_US: u32 = 10_000;
/// How long the kernel waits for the copy's end, where this program is gone: nearly all that its polls may wait together (a second).
const PROGRAM_US: u32 = 900_000;
/// So many bytes of the last copy take a microsecond: 100 MB/s, an eighth of what 64 bits carry at 100 MHz.
const STOP_BYTES_PER_US: u32 = 100;
/// Between two looks while it waits: no interrupt announces the end of a stop.
const STOP_STEP_US: u32 = 50;
/// Looks in a row that must find the channel idle: one right after a doorbell could come before STATUS knows of it.
const IDLE_LOOKS: u32 = 2;

/// The driver of one channel. `'p` is how long its descriptors' memory lives; in simple mode there are none.
///
/// ```
/// use contigo::{Align, Engine, Pool, Region, Timeout, drivers::{zdma::{SimZdma, Zdma}}, sim::SimBoard};
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(256 * 1024)?)?;
/// let descriptors = region.carve(4096, Align::PAGE)?.into_buf();
/// let pool = Pool::<4>::new(region.carve(4 * 16384, Align::LINE)?, 16384)?;
/// let channel = SimZdma::new(&board, board.port());
/// let mut engine = Engine::new(Zdma::linked_simulated(channel.window()?, descriptors)?)?;
///
/// let (mut from, to) = (pool.take()?, pool.take()?);
/// from.view_mut::<u8>()?.fill(7);
/// let [_from, to] = engine.start([from.to_device(3..10_000), to.from_device(..)], &())?.wait(Timeout::ms(20))?.buffers;
/// assert_eq!(to.view_at::<u8>(..9_997)?, [7; 9_997]);
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Debug)]
pub struct Zdma<'p, D: Device> {
    device: D,
    jobs: Jobs<'p>,
    /// The last call was `stop`, or `new`.
    stopped: bool,
}

impl<'p, D: Device> Zdma<'p, D> {
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

    /// The driver of `device`, with lists of descriptors in `descriptors`: 64 bytes for each piece of a copy, at least
    /// 128. With 256, 512, or 1,024 bytes and more it takes 2, 4, or 8 jobs at once, each with an
    ///      equal part of them; more than 32 KiB are not used. A copy is cut at multiples of 4 KiB
    ///      of its destination, where an AXI burst ends anyway, and at larger powers of two where
    ///      its part would be too short: with 128 bytes for a job it has up to 512 MiB, with 576
    ///      bytes up to 4 GiB - 1 B.
    ///
    /// The memory is the driver's until it is dropped. Dropping it stops the channel and gives the memory back; where the
    /// channel will not stop, the memory is leaked.
    ///
    /// # Errors
    /// The buffer comes back, with what [`simple`](Self::simple) and [`DriverBuf::new`] say, [`Error::BlockSize`] for less than 128
    /// bytes, and [`Error::Misaligned`] where its bus address is no multiple of a descriptor's 32 bytes. `device` is dropped.
    ///
    /// # Safety
    /// As [`simple`](Self::simple).
    pub unsafe fn linked(device: D, descriptors: CpuBuf<'p>) -> Result<Self, Refused<CpuBuf<'p>>> {
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

    /// Waits for the end of the list at work, and keeps what came of it. `false`: there is none, or
    /// it goes on.
    fn list_ended(&mut self, timeout: Timeout) -> Result<bool> {
        if !self.jobs.are_running() {
            return Ok(false);
        }
        let (mut isr, mut status) = (0, regs::STATE_BUSY);
        // An error ends the waiting at once, and the engine stops the channel. DMA_DONE is not
        // enough: STATUS must agree.
        let ended = poll_until(&self.device, timeout, |device| {
            isr = regs::ISR.read(device);
            if isr == u32::MAX || isr & (regs::INT_DONE | regs::INT_FATAL) == 0 {
                return false;
            }
            status = regs::STATUS.read(device);
            isr & regs::INT_FATAL != 0 || regs::is_idle(status)
        })?;
        if ended {
            // SAFETY: acknowledging moves no data.
            unsafe { regs::ISR.write(&self.device, isr & regs::INT_ALL) };
            match self.verdict(isr, status) {
                Ok(()) => self.jobs.all_ended(),
                Err(fault) => self.jobs.failed(fault, self.done_for_certain(isr, status)),
            }
        }
        Ok(ended)
    }

    /// How many bytes at the beginning of a list that failed are where they belong. TOTAL_BYTE
    /// counts also after an error, and in no order that a manual tells. Only where the error was at
    /// the reading side is all that it counts the beginning; and only an idle channel has come to
    /// its end.
    fn done_for_certain(&self, isr: u32, status: u32) -> u32 {
        let of_reading = regs::INT_READ | regs::INT_SRC_DESCRIPTOR;
        let certain = regs::is_idle(status) && isr & of_reading != 0 && isr & regs::INT_FATAL & !of_reading == 0;
        if certain { regs::TOTAL_BYTE.read(&self.device) } else { 0 }
    }

    /// Starts the jobs that wait, where the channel is idle.
    fn launch(&mut self) -> Result<()> {
        let coherent = self.device.port().coherent;
        let Some(Launch { from, to, bytes, list }) = self.jobs.launch(coherent)? else { return Ok(()) };
        let device = &self.device;
        let word3 = if coherent { regs::WORD3_COHERENT } else { 0 };
        // SAFETY: the operands of every job that waits were handed over (`submit`), and `check`
        // found the second one of each large enough for all of the first; so the transfers that EN
        // starts stay inside them, whether the registers describe one or the list does.
        unsafe {
            regs::ISR.write(device, regs::INT_ALL);
            // Whatever it counted so far. Writing 1 clears a bit (UG1087), as AMD's own driver does
            // it.
            regs::TOTAL_BYTE.write(device, regs::TOTAL_BYTE.read(device));
            if let Some(DevAddr(list)) = list {
                regs::CTRL0.write(device, regs::POINT_TYPE_MEMORY);
                regs::SRC_START.write(device, DevAddr(list));
                regs::DST_START.write(device, DevAddr(list.wrapping_add(regs::DESCRIPTOR_BYTES as u64)));
            } else {
                regs::CTRL0.write(device, 0);
                regs::SRC_ADDR.write(device, from);
                regs::SRC_SIZE.write(device, bytes);
                regs::SRC_WORD3.write(device, word3);
                regs::DST_ADDR.write(device, to);
                regs::DST_SIZE.write(device, bytes);
                regs::DST_WORD3.write(device, word3);
            }
            regs::CTRL2.write(device, regs::ENABLE);
        }
        Ok(())
    }

    /// What the finished list says of itself. Registers of a device are distrusted: they are
    /// compared, not used.
    fn verdict(&self, isr: u32, status: u32) -> Result<()> {
        if isr & regs::INT_FATAL != 0 || status & regs::STATE == regs::STATE_FAILED {
            return Err(Error::Fault { device: "zdma", status: isr, what: regs::describe(isr) });
        }
        let done_bytes = regs::TOTAL_BYTE.read(&self.device);
        let need_bytes = self.jobs.running_bytes();
        if done_bytes != need_bytes {
            return Err(Error::ShortTransfer { need_bytes: u64::from(need_bytes), done_bytes: u64::from(done_bytes) });
        }
        Ok(())
    }

    /// Waits for the channel's end, and only where none comes clears EN under it; with its interrupts masked.
    ///
    /// A copy ends by itself, and at its end STATUS is known to be true. What a channel at work does when EN is cleared no source says,
    /// only that it can be disabled at any time and that a paused one then leaves its state (UG1085, "DMA Controller Functional
    /// Description", "Channel Disabled"): so that comes last, when the copy should have ended long ago.
    fn halt(&mut self) -> Result<()> {
        // SAFETY: masking moves no data.
        unsafe { regs::IDS.write(&self.device, regs::INT_ALL) };
        let copy_us = STOP_US + self.jobs.running_bytes() / STOP_BYTES_PER_US;
        let mut left_over = self.not_idle(copy_us);
        // SAFETY: clearing EN starts nothing; CONT with EN at 0 leads from the paused state to the disabled one.
        unsafe {
            regs::CTRL2.write(&self.device, 0);
            if left_over == Some(regs::STATE_PAUSED) {
                regs::CTRL0.write(&self.device, regs::CTRL0.read(&self.device) | regs::CONTINUE);
            }
        }
        if left_over.is_some() {
            left_over = self.not_idle(STOP_US);
        }
        if let Some(status) = left_over {
            return Err(Error::WillNotStop { device: "zdma", status, waited_us: copy_us + STOP_US });
        }
        // SAFETY: acknowledging moves no data.
        unsafe { regs::ISR.write(&self.device, regs::INT_ALL) };
        Ok(())
    }

    /// Waits until the channel is idle, at most for `limit_us`: `None`, or what STATUS said last.
    fn not_idle(&mut self, limit_us: u32) -> Option<u32> {
        let (mut status, mut idle_looks) = (regs::STATE_BUSY, 0);
        // An interrupt's file that fails only ends the waiting: what counts is what STATUS says.
        let _ = poll_every(&self.device, STOP_STEP_US, Timeout::us(limit_us), |device| {
            status = regs::STATUS.read(device);
            idle_looks = if regs::is_idle(status) { idle_looks + 1 } else { 0 };
            idle_looks >= IDLE_LOOKS
        });
        (idle_looks < IDLE_LOOKS).then_some(status)
    }

    /// The registers that no job changes, also after a reset from outside. The channel is stopped: while it is enabled they must not
    /// change.
    fn configure(&self) -> Result<()> {
        let device = &self.device;
        let (data, descriptors) = match device.port().coherent {
            true => (regs::DATA_COHERENT, regs::DSCR_COHERENT),
            false => (regs::DATA_PLAIN, regs::DSCR_PLAIN),
        };
        // SAFETY: attributes, limits and interrupt masks move no data.
        unsafe {
            regs::CTRL1.write(device, regs::ISSUE_MOST);
            regs::FCI.write(device, 0);
            regs::DATA_ATTR.write(device, data);
            regs::DSCR_ATTR.write(device, descriptors);
            regs::IEN.write(device, regs::INT_DONE | regs::INT_FATAL);
        }
        match regs::DATA_ATTR.read(device) {
            holds if holds == data => Ok(()),
            found => Err(Error::WrongDevice { device: "zdma", register: "ZDMA_CH_DATA_ATTR", expected: data, found }),
        }
    }
}

/// Is this window large enough for a ZDMA, and zero where a ZDMA is?
fn is_zdma(device: &impl Device) -> Result<()> {
    let (need_bytes, have_bytes) = (regs::WINDOW_BYTES, device.len_bytes());
    if have_bytes < need_bytes {
        return Err(Error::RegisterWindow { device: "zdma", need_bytes, have_bytes });
    }
    for (name, register, zeroes) in regs::ZEROES {
        let found = register.read(device);
        if found & zeroes != 0 {
            return Err(Error::WrongDevice { device: "zdma", register: name, expected: found & !zeroes, found });
        }
    }
    Ok(())
}

// SAFETY: 1. UG1085: a channel reads SIZE bytes at the source's address, with over-fetch off no
// others, and writes as many at the destination's; `check` compared SIZE with both operands. In
// linked mode the descriptors say the same for each piece (`list.rs`), and the channel also reads
// the descriptors, which are the driver's own. 2. `poll` and `halt` believe STATUS: a channel that
// ends leaves its busy state only when all data is in the destination's memory ("Channel
// Disabled"), and each write has been answered then ("Total Transferred Bytes Overflow"). Without
// snooping the answer comes from memory, as AWCACHE asks; with it, from the interconnect that
// snoops, behind which every observer sees the write. One that was disabled because it did not end
// is believed by the same register (`halt`). 3. No bytes are told. 4. `check` reads no register. 5.
// The port is the device's. 6. What made it promised it. 7. The program writes an interrupt mask,
// and waits for what ends a job: EN, which the channel clears at its end, and STATUS. 8. Each poll
// has a limit. 9. Its fields say no more than registers do.
unsafe impl<D: Device> Driver for Zdma<'_, D> {
    fn name(&self) -> &'static str {
        "zdma"
    }

    fn port(&self) -> &Port {
        self.device.port()
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

    fn check(&self, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        let [from, to] = fixed(operands)?;
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
        let [from, to] = fixed(operands)?;
        if core::mem::take(&mut self.stopped) {
            self.jobs.begin_anew();
        }
        self.jobs.push(slot, *from, *to, self.device.port().coherent)?;
        self.launch()
    }

    fn poll(&mut self, timeout: Timeout) -> Result<Option<Completion>> {
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
        let _ = self.list_ended(Timeout::NOW);
        self.halt()?;
        self.jobs.stopped();
        self.stopped = true;
        self.configure()
    }

    fn arm_irq(&self) -> Result<Option<i32>> {
        self.device.arm_irq()
    }

    /// Waits for the copy's end, with the interrupts masked: what a channel at work does when it is disabled no source says. EN is set from
    /// the doorbell on, also while the channel pauses, and in what a device reads as that is gone.
    fn stop_program(&self) -> StopProgram {
        StopProgram::new(&[
            StopStep::write(regs::IDS.offset(), u32::MAX, regs::INT_ALL),
            StopStep::poll_until(regs::CTRL2.offset(), regs::ENABLE, 0, PROGRAM_US),
            StopStep::poll_while(regs::STATUS.offset(), regs::STATE, regs::STATE_BUSY, STOP_US),
        ])
        .unwrap_or_default()
    }
}

impl<D: Device> TypedDriver<2> for Zdma<'_, D> {
    type Args = ();
    type Words = [u32; 0];
    type Report = ();
    fn words((): &()) -> [u32; 0] {
        []
    }
    fn report(&self, _: &Completion) {}
}

forward_as_fd!({'p, D: Device} Zdma<'p, D>, device: D);

impl<D: Device> Drop for Zdma<'_, D> {
    /// Stops the channel. The descriptors' memory goes back only when it has stopped; otherwise it stays leaked.
    fn drop(&mut self) {
        if self.halt().is_ok() {
            // SAFETY: STATUS says that the channel is disabled, and it fetches descriptors only while it is enabled.
            drop(self.jobs.take_memory().map(|descriptors| unsafe { descriptors.release() }));
        }
    }
}
