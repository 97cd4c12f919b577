#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! The driver of a core, with jobs in registers or in lists. To stop the core, the driver disables
//! it: it completes its accesses, and resets itself.

use super::config::{self, DmacConfig, DmacFound, DmacKind};
use super::job::{Job, Together, job};
use super::jobs::{Jobs, Lists, State};
use super::regs;
use crate::checks::stops;
use contigo_core::forward;
use contigo_core::hw::Device;
use contigo_core::hw::wait::poll_until;
use contigo_core::job::{Completion, Driver, OperandSpec, StopProgram, StopStep};
use contigo_core::mem::{CpuBuf, DevSlice};
use contigo_core::types::platform::forward_as_fd;
use contigo_core::types::{Error, Refused, Result};
use core::time::Duration;

/// The time between polls of a wait: no interrupt announces the end of a stop.
const STOP_STEP_US: u32 = 5;
/// How long the stop program waits, which the kernel runs if this process has died.
const PROGRAM_US: u32 = 500_000;

/// The driver of one core. It owns its descriptors' memory; with registers there is none.
///
/// ```
/// use contigo::{Align, Queue, Region, drivers::axi_dmac::DmacConfig};
/// use contigo::sim::{SimDevice, axi_dmac::AxiDmacModel, SimBoard};
/// use core::time::Duration;
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let pool = region.pool(4, 4096)?;
/// let core = SimDevice::<AxiDmacModel>::new(&board, board.port());
/// let mut queue = Queue::new(core.window()?.driver(DmacConfig::default())?, 1)?;
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
}

impl<D: Device> AxiDmac<D> {
    /// The driver of `device`, with each job in registers.
    ///
    /// # Errors
    /// - [`Error::RegisterWindow`], [`Error::WrongDevice`]: another core.
    /// - [`Error::Setting`]: a version before 4.3, a setting or a burst that no core works with, or
    ///   a port that snoops with a core that is not built for it.
    /// - [`Error::Unsupported`]: a core without memory, or without its debug registers.
    /// - [`Error::Unexpected`]: registers contradict each other.
    /// - [`Error::WillNotStop`]: it does not end what another program left running.
    ///
    /// # Safety
    /// The window's registers are one AXI DMAC's, and no other code drives it while this value
    /// lives.
    pub unsafe fn open(device: D, config: DmacConfig) -> Result<Self> {
        config.check()?;
        config::identify(&device)?;
        config::tells_stops(&device)?;
        // A transfer that another program left outside of the queue would use the values written
        // here.
        halt(&device, config.stop_us)?;
        let found = config::look(&device, config.burst_bytes)?;
        let jobs = Jobs::new(found.kind, Together::new(&found, &config), None);
        Ok(Self {
            device,
            config,
            found,
            operands: found.operands(found.max_bytes),
            jobs,
            lists: None,
        })
    }

    /// The driver of `device`, with lists of descriptors in `descriptors`: 64 bytes for each piece
    /// of a job, in cache lines of their own. The four jobs have equal shares, of 64 pieces at
    /// most.
    ///
    /// The driver owns the memory. Dropping the driver stops the core and returns the memory; if
    /// the core will not stop, the memory is leaked.
    ///
    /// # Errors
    /// The memory comes back with an error of [`open`](Self::open), [`Error::Unsupported`] if the
    /// core has no descriptors, or receives; [`Error::BlockSize`] for less than four descriptors,
    /// or an error of [`DriverBuf::new`](contigo_core::mem::DriverBuf::new). `device` is dropped.
    ///
    /// # Safety
    /// As [`open`](Self::open). No earlier program cleared HWDESC while the core read a descriptor:
    /// the core forgets the read, and no register shows it.
    pub unsafe fn listed(
        device: D,
        config: DmacConfig,
        descriptors: CpuBuf,
    ) -> Result<Self, Refused<CpuBuf>> {
        // SAFETY: the caller's promise.
        match unsafe { Self::open(device, config) } {
            Ok(driver) => driver.with_lists(descriptors),
            Err(error) => Err(Refused::new(error, descriptors)),
        }
    }

    /// Checks that its jobs can be lists of descriptors.
    pub(super) const fn takes_lists(&self) -> bool {
        self.found.lists && !matches!(self.found.kind, DmacKind::Receive)
    }

    /// The same, with lists for jobs.
    pub(super) fn with_lists(mut self, descriptors: CpuBuf) -> Result<Self, Refused<CpuBuf>> {
        if !self.takes_lists() {
            let (what, fix) = if self.found.lists {
                (
                    "a list of descriptors has no report of a packet's length",
                    "give no memory: a receiver takes jobs in registers",
                )
            } else {
                (
                    "this AXI DMAC has no descriptors",
                    "build it with DMA_SG_TRANSFER = 1, or give no memory",
                )
            };
            return Err(Refused::new(Error::Unsupported { what, fix }, descriptors));
        }
        let lists = Lists::new(descriptors, self.device.port(), &self.found)?;
        self.operands = self.found.operands(lists.longest());
        self.jobs = Jobs::new(
            self.found.kind,
            Together::new(&self.found, &self.config),
            Some(lists.firsts()),
        );
        self.lists = Some(lists);
        Ok(self)
    }

    /// The core's parameters, as its registers show them.
    pub const fn found(&self) -> &DmacFound {
        &self.found
    }

    /// The job, if the core takes it.
    fn job(&self, operands: &[DevSlice], args: &[u32]) -> Result<Job> {
        let longest = self.lists.as_ref().map_or(self.found.max_bytes, Lists::longest);
        let job = job(&self.found, longest, operands, args)?;
        self.jobs.together.check(&job)?;
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
            id => Err(Error::Unexpected {
                name: "TRANSFER_ID of a core that was reset",
                value: id.into(),
            }),
        }
    }
}

/// Disables the core behind `device`, and waits until it has reset itself.
///
/// HWDESC stays as it is: the core waits for the read of a descriptor only while it is set
/// (`axi_dmac_reset_manager.v`, `disabled_all`). Otherwise the reset comes before the read's
/// answer, which the next list would take for its own descriptor.
fn halt(device: &impl Device, stop_us: u32) -> Result<()> {
    let lists = regs::CONTROL.read(device) & regs::HWDESC;
    // SAFETY: a core that is disabled starts nothing.
    unsafe {
        regs::IRQ_MASK.write(device, regs::IRQ_QUEUED | regs::IRQ_ENDED);
        regs::CONTROL.write(device, lists);
    }
    stops(device, "axi_dmac", STOP_STEP_US, stop_us, |device| {
        let state = regs::STATE.read(device);
        (state & (regs::STATE_BITS | regs::STATE_RESERVED) == regs::STATE_RESET, state)
    })
}

// SAFETY: 1. The address registers hold `addr_bits` bits, as tried at open; a descriptor's fields
// are as wide. ADI's page: a transfer reads or writes rows of X_LENGTH + 1 bytes, Y_LENGTH + 1 of
// them, a stride apart, from the addresses that were written. `check` compared their last byte with
// the operands. Reads take the rest of the first and last bus word too, as `word_bytes` says. A
// stream that ends a packet ends the transfer before. Lists describe the same, and are the driver's
// own. 2. The response of a transfer comes after that of its last write ("TRANSFER_COMPLETED";
// `dest_axi_mm.v`), and sets DONE, which counts only for IDs in the queue. If several jobs or rows
// would break that, `Together` refuses them or holds them back. Disabled, the core completes all
// accesses under way, and only then resets itself (`axi_dmac_reset_manager.v`), which the debug
// word shows. It waits for the read of a descriptor only while HWDESC is set, and a stop leaves it.
// 3. A report counts the bytes of all rows, so `check` refuses a second row if there are reports:
// they count from the operand's first byte on. 4. `check` reads no register; `poll` launches
// submitted jobs only. 5. The port belongs to the device. 6. The caller of `open` guarantees it. 7.
// The program disables, and leaves HWDESC as well. 8. Each wait has a limit. 9. Its fields count
// jobs; ends come from registers.
unsafe impl<D: Device> Driver for AxiDmac<D> {
    forward!(|this| this.device => port, simulated, arm_irq);

    fn name(&self) -> &'static str {
        "axi_dmac"
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
        if self.jobs.state == State::Stopped {
            self.begin_anew()?;
        }
        let job = self.job(operands, args)?;
        if let Some(lists) = &mut self.lists {
            // SAFETY: these descriptors are this slot's, in which no job is in flight.
            unsafe { lists.write(slot % regs::IDS, &job)? };
        }
        // SAFETY: the caller's promise.
        unsafe { self.jobs.push(&self.device, &self.found, job) }
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        let Self { device, jobs, found, .. } = self;
        let told = jobs.tell();
        if told.is_some() || jobs.state == State::Stopped {
            return Ok(told);
        }
        let mut ended = Ok(None);
        poll_until(device, timeout, |device| {
            ended = jobs.look(device, found).map(|()| jobs.tell());
            !matches!(ended, Ok(None))
        })?;
        ended
    }

    /// Jobs that ended before the stop are still reported.
    fn stop(&mut self) -> Result<()> {
        if self.jobs.state != State::Stopped {
            // Even if registers have impossible values, the core is stopped.
            let _ = self.jobs.look_for_ends(&self.device);
        }
        halt(&self.device, self.config.stop_us)?;
        self.jobs.stopped();
        Ok(())
    }

    /// As a stop does; HWDESC stays here too.
    fn stop_program(&self) -> StopProgram {
        StopProgram::new(&[
            StopStep::write(regs::CONTROL.offset(), !regs::HWDESC, 0),
            StopStep::poll_until(
                regs::STATE.offset(),
                regs::STATE_BITS | regs::STATE_RESERVED,
                regs::STATE_RESET,
                PROGRAM_US,
            ),
        ])
        .unwrap_or_default()
    }
}

forward_as_fd!({D: Device} AxiDmac<D>, device: D);

impl<D: Device> Drop for AxiDmac<D> {
    /// Stops the core. Returns the descriptors' memory only if it has stopped; otherwise leaks it.
    fn drop(&mut self) {
        if halt(&self.device, self.config.stop_us).is_ok()
            && let Some(lists) = &mut self.lists
        {
            // SAFETY: the core was reset, after any read of a descriptor had ended, and fetches
            // nothing before it is enabled.
            unsafe { lists.release() };
        }
    }
}
