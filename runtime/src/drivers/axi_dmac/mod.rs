#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! AXI DMAC, the DMA controller of Analog Devices' designs: from memory to memory, from memory to a
//! stream or ADI's FIFO, or from one of these to memory.
//!
//! | kind | operand | what | direction |
//! |---|---|---|---|
//! | copy | from | the bytes to copy, all of them | to the device |
//! | | to | where they go; at least as many | from the device |
//! | send | packet | one packet, all of it | to the device |
//! | receive | packet | one packet, from its beginning; longer than the longest that comes | from the device |
//!
//! **The kind is the core's own.** `INTERFACE_DESCRIPTION_1` tells the types of its two sides, and
//! what more is built in is tried: registers that are not there hold nothing ([`DmacFound`]).
//!
//! **Two ways.** [`AxiDmac::open`] writes each job into registers. [`AxiDmac::listed`] writes lists
//! of descriptors into memory of its own, where the core has them, from version 4.5 on. They are
//! for copies and packets out that are longer than a length register holds.
//!
//! **Rows.** A job with four argument words is a 2D transfer: bytes of a row, rows, and the bytes
//! from row to row at the source and at the destination ([`DmacRows`]). Without words it is one
//! row. A receiver from a stream takes one row alone: see [`DmacRows`].
//!
//! **Several jobs in flight:** up to four, which are the core's IDs. The driver holds those back
//! that the core must not have together: see the traps.
//!
//! **Alignment.** An address is a multiple of a burst, `MAX_BYTES_PER_BURST`, so that no burst
//! crosses 4 KiB; 4.5 tells it, and before the setting `burst_bytes` does. A length is a multiple
//! of what the low bits of `X_LENGTH` say. Where a copy's source is wider than its destination it
//! is a multiple of the source's word. Any other length ends a burst before its AWLEN says, and an
//! interconnect may wait for the rest. (ADI's page, "Transfer Length Alignment", asks for the
//! widest word of both, and then relaxes it.)
//!
//! **Reach.** Vivado builds as many address bits as the segments behind the core's masters need: 29
//! where a board has 512 MiB. The core drops what is above, so the driver tries how many there are.
//!
//! **Coherency.** The masters drive AXCACHE as the core was built. A port that is said to snoop,
//! with a core that is built without `CACHE_COHERENT`, is refused.
//!
//! **Clocks.** Three at most: of the registers, of the source, of the destination. One that stands
//! leaves the core in its start or its stop, which is a timeout, then [`Error::WillNotStop`].
//!
//! # The traps
//! - The DONE bit of an ID stays from four jobs ago until the new one is in the queue: SUBMIT must
//!   have read as 0 before.
//! - A received packet's length is in a report of its own, beside DONE, and reading the ID takes
//!   the report away. Four wait at most; a fifth stops the core.
//! - A packet that fills its buffer has no report. One that is longer looks the same, and its rest
//!   comes next: give buffers that are longer than the longest packet.
//! - Where a packet ends in one of the last three bursts of its buffer, the buffer that is queued
//!   behind may hang. So a buffer goes alone, unless it has three bursts more than the longest
//!   packet, which the setting `packet_bytes` says.
//! - A job of one burst that is queued behind another may get its successor's length: wrong bytes,
//!   also behind its buffer, or no end (`address_generator.v`, `bl_ready`).
//!   The driver lets it go alone, and a receiver's jobs one by one, whose packets may be so short.
//!   It cuts lists so that no last piece is one burst. `single_bursts` says that the core has been
//!   mended.
//! - The core tells four rows apart (`dmac_2d_transfer.v`, `last_req`). With more under way it
//!   tells ends too early, and then writes into buffers that were given back. So more than four
//!   rows are refused, unless they are so long that `fifo_bursts` has no room for four: see
//!   [`DmacConfig`]. A job of shorter rows is alone in the core.
//! - ENABLE at 0 does not end accesses under way, and no documented register tells their end. The
//!   debug word at 0x43C does, and a core without it (`DISABLE_DEBUG_REGISTERS`) is refused.
//! - A burst of one word, of the wider side, has an extra beat behind each ("Known Issues"): it is
//!   refused.
//! - HWDESC at 0 together with ENABLE makes the core forget the read of a descriptor under way. Its
//!   answer goes into the next list, so a stop leaves HWDESC as it is.
//! - AXI errors are not reported: a transfer to where no memory is ends well. The queue gives no
//!   such address.
//! - Cyclic transfers are not used: they never end.
//! - A stop in the middle of a packet leaves its rest in the stream, and no end says so. Throw the
//!   first packet after a stop away.
//! - A packet that is sent has ended when its buffer was read. The core may have its last beats.
//!
//! # References
//! Analog Devices' HDL documentation, "AXI DMAC", and `docs/regmap/adi_regmap_dmac.txt`; Linux'
//! `drivers/dma/dma-axi-dmac.c`; the Verilog in `library/axi_dmac`.

mod found;
mod jobs;
mod lists;
#[cfg(feature = "sim")]
mod model;
pub mod regs;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub(crate) mod row;
mod rows;
mod stop;
mod together;

pub use self::found::{DmacFound, DmacKind};
#[cfg(feature = "sim")]
pub use self::model::{AxiDmacBuild, AxiDmacFlaws, AxiDmacModel, SimAxiDmac};
pub use self::rows::{DmacConfig, DmacRows};
use crate::{
    hw::{Device, wait::poll_until},
    job::{Completion, Driver, OperandSpec, StopProgram},
    mem::{CpuBuf, DevSlice, Port},
    types::platform::forward_as_fd,
    types::{Error, Refused, Result},
};
use core::time::Duration;
use jobs::{Job, Jobs};
use lists::Lists;
use together::Together;

/// The driver of one core. It owns the memory of its descriptors; in registers there is none.
///
/// ```
/// use contigo::{Align, drivers::axi_dmac::{AxiDmac, DmacConfig, SimAxiDmac}, sim::SimBoard, Queue, Region};
/// use core::time::Duration;
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let pool = region.pool(4, 4096)?;
/// let core = SimAxiDmac::new(&board, board.port());
/// let mut queue = Queue::new(AxiDmac::open_simulated(core.window()?, DmacConfig::default())?, 1)?;
///
/// let (mut from, to) = (pool.take()?, pool.take()?);
/// from.view_mut::<u8>()?.fill(7);
/// let [_, to] = queue.run([from.to_device(..1000), to.from_device(..)], &[], Duration::from_millis(20))?.buffers;
/// assert_eq!(to.view_at::<u8>(..1000)?, [7; 1000]);
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Debug)]
pub struct AxiDmac<D: Device> {
    device: D,
    config: DmacConfig,
    found: DmacFound,
    operands: [OperandSpec; 2],
    jobs: Jobs,
    lists: Option<Lists>,
    /// The last call was `stop`, or `open`.
    stopped: bool,
}

impl<D: Device> AxiDmac<D> {
    /// The driver of `device`, a job at a time in its registers.
    ///
    /// # Errors
    /// - [`Error::RegisterWindow`], [`Error::WrongDevice`]: another core.
    /// - [`Error::Setting`]: a version before 4.3, a setting or a burst that no core works with, or
    ///   a port that snoops with a core that is not built for it.
    /// - [`Error::Unsupported`]: a core without memory, or without its debug registers.
    /// - [`Error::Unexpected`]: registers contradict each other.
    /// - [`Error::WillNotStop`]: it does not end what another program left.
    ///
    /// # Safety
    /// The window's registers are one AXI DMAC's, and nobody else drives it while this value lives.
    pub unsafe fn open(device: D, config: DmacConfig) -> Result<Self> {
        config.check()?;
        found::identify(&device)?;
        stop::can_be_seen(&device)?;
        // A transfer that another program left outside of the queue would take what is tried.
        stop::halt(&device, config.stop_us)?;
        let found = found::look(&device, config.burst_bytes)?;
        let jobs = Jobs::new(found.kind, Together::new(&found, &config), None);
        Ok(Self { device, config, found, operands: found.operands(found.max_bytes), jobs, lists: None, stopped: true })
    }

    /// The driver of `device`, with lists of descriptors in `descriptors`: 64 bytes for each piece
    /// of a job, in cache lines of their own. The four jobs have equal parts, of 64 pieces at most.
    ///
    /// The memory belongs to the driver until that is dropped. Dropping it stops the core and gives
    /// the memory back; where the core will not stop, the memory is leaked.
    ///
    /// # Errors
    /// The memory comes back with what [`open`](Self::open) says, [`Error::Unsupported`] where the
    /// core has no descriptors, or receives; [`Error::BlockSize`] for less than four descriptors,
    /// or what [`DriverBuf::new`](crate::mem::DriverBuf::new) says. `device` is dropped.
    ///
    /// # Safety
    /// As [`open`](Self::open). No program before cleared HWDESC while the core read a descriptor:
    /// the core forgets the read, and no register tells.
    pub unsafe fn listed(device: D, config: DmacConfig, descriptors: CpuBuf) -> Result<Self, Refused<CpuBuf>> {
        // SAFETY: the caller's promise.
        match unsafe { Self::open(device, config) } {
            Ok(driver) => driver.with_lists(descriptors),
            Err(error) => Err(Refused::new(error, descriptors)),
        }
    }

    /// Can its jobs be lists of descriptors?
    const fn takes_lists(&self) -> bool {
        self.found.lists && !matches!(self.found.kind, DmacKind::Receive)
    }

    /// The same, whose jobs are lists.
    fn with_lists(mut self, descriptors: CpuBuf) -> Result<Self, Refused<CpuBuf>> {
        if !self.takes_lists() {
            let (what, fix) = if self.found.lists {
                ("a list of descriptors has no report of a packet's length", "give no memory: a receiver takes jobs in registers")
            } else {
                ("this AXI DMAC has no descriptors", "build it with DMA_SG_TRANSFER = 1, or give no memory")
            };
            return Err(Refused::new(Error::Unsupported { what, fix }, descriptors));
        }
        let lists = Lists::new(descriptors, self.device.port(), &self.found)?;
        self.operands = self.found.operands(lists.longest());
        self.jobs = Jobs::new(self.found.kind, Together::new(&self.found, &self.config), Some(lists.firsts()));
        self.lists = Some(lists);
        Ok(self)
    }

    /// How the core is built, as its registers told.
    pub const fn found(&self) -> &DmacFound {
        &self.found
    }

    /// The job, where the core takes it.
    fn job(&self, operands: &[DevSlice], args: &[u32]) -> Result<Job> {
        let longest = self.lists.as_ref().map_or(self.found.max_bytes, Lists::longest);
        let job = rows::job(&self.found, longest, operands, args)?;
        self.jobs.together().check(&job)?;
        Ok(job)
    }

    /// Enables the core, which was disabled and reset.
    fn begin_anew(&mut self) -> Result<()> {
        self.jobs.begin_anew();
        let lists = if self.lists.is_some() { regs::HWDESC } else { 0 };
        // SAFETY: no transfer was submitted since the reset.
        unsafe {
            regs::IRQ_PENDING.write(&self.device, regs::IRQ_QUEUED | regs::IRQ_ENDED);
            regs::IRQ_MASK.write(&self.device, regs::IRQ_QUEUED);
            regs::CONTROL.write(&self.device, regs::ENABLE | lists);
        }
        match regs::TRANSFER_ID.read(&self.device) {
            0 => Ok(()),
            id => Err(Error::Unexpected { name: "TRANSFER_ID of a core that was reset", value: id.into() }),
        }
    }
}

// SAFETY: 1. The address registers hold `addr_bits` bits, which were tried; a descriptor's fields
// are as wide. ADI's page: a transfer reads or writes rows of X_LENGTH + 1 bytes, Y_LENGTH + 1 of
// them, a stride apart, from the addresses that were written. `check` compared their last byte
// with the operands. Reads take the rest of the first and last bus word too, as `word_bytes` says.
// A stream that ends a packet ends the transfer before. Lists say the same, and
// are the driver's own. 2. The response of a transfer comes after that of its last write
// ("TRANSFER_COMPLETED"; `dest_axi_mm.v`), and sets DONE, which counts only for IDs in the queue.
// Where several jobs or rows would break that, `Together` refuses them or holds them back.
// Disabled, the core completes all accesses under way, and only then resets itself
// (`axi_dmac_reset_manager.v`), which the debug word tells. Of these accesses the read of a
// descriptor counts only where HWDESC is set, and a stop leaves it. 3. A report counts the bytes
// of all rows, so `check` refuses a second row where there are reports: they count from the
// operand's first byte on. 4. `check` reads no register; `poll` launches submitted jobs only. 5.
// The port belongs to the device. 6. The caller of `open` promised it. 7. The program disables,
// and leaves HWDESC as well. 8. Each wait has a limit. 9. Its fields count jobs; ends come from
// registers.
unsafe impl<D: Device> Driver for AxiDmac<D> {
    fn name(&self) -> &'static str {
        "axi_dmac"
    }

    fn port(&self) -> &Port {
        self.device.port()
    }

    fn simulated(&self) -> Option<&dyn crate::mem::SimulatedDevice> {
        self.device.simulated()
    }

    fn addr_bits(&self) -> u32 {
        self.found.address_bits
    }

    fn operands(&self) -> &[OperandSpec] {
        match self.found.kind {
            DmacKind::Copy => &self.operands,
            DmacKind::Send | DmacKind::Receive => &self.operands[..1],
        }
    }

    fn depth(&self) -> usize {
        regs::IDS
    }

    fn check(&self, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        self.job(operands, args).map(|_| ())
    }

    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        if core::mem::take(&mut self.stopped) {
            self.begin_anew()?;
        }
        let job = self.job(operands, args)?;
        if let Some(lists) = &mut self.lists {
            // SAFETY: no job is in flight in this slot, whose descriptors these are.
            unsafe { lists.write(slot % regs::IDS, &job)? };
        }
        // SAFETY: the caller's promise.
        unsafe { self.jobs.push(&self.device, &self.found, job) }
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        let Self { device, jobs, found, stopped, .. } = self;
        let told = jobs.tell();
        if told.is_some() || *stopped {
            return Ok(told);
        }
        let mut ended = Ok(None);
        poll_until(device, timeout, |device| {
            ended = jobs.look(device, found).map(|()| jobs.tell());
            !matches!(ended, Ok(None))
        })?;
        ended
    }

    /// Jobs that had ended before are told still.
    fn stop(&mut self) -> Result<()> {
        if !self.stopped {
            // Registers that say what cannot be: the core is stopped all the same.
            let _ = self.jobs.look_for_ends(&self.device);
        }
        self.halt()?;
        self.jobs.stopped();
        self.stopped = true;
        Ok(())
    }

    fn arm_irq(&self) -> Result<Option<i32>> {
        self.device.arm_irq()
    }

    fn stop_program(&self) -> StopProgram {
        stop::program()
    }
}

forward_as_fd!({D: Device} AxiDmac<D>, device: D);

impl<D: Device> Drop for AxiDmac<D> {
    /// Stops the core. The descriptors' memory goes back only when it has stopped; otherwise it
    /// stays leaked.
    fn drop(&mut self) {
        if self.halt().is_ok()
            && let Some(lists) = &mut self.lists
        {
            // SAFETY: the core was reset, after the read of a descriptor that was under way, and
            // fetches nothing before it is enabled.
            unsafe { lists.release() };
        }
    }
}
