#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! The driver of a core, with descriptors in its port or in memory.

use super::config::{MsgdmaConfig, MsgdmaMode, MsgdmaTransfer, is_msgdma};
use super::regs::{self, At};
use super::ring::Prefetch;
use super::submit::Slave;
use crate::checks::holds;
use crate::settle::Settle;
use contigo_core::forward;
use contigo_core::hw::Device;
use contigo_core::hw::wait::{Settling, poll_settling};
use contigo_core::job::{Completion, Driver, OperandSpec, StopProgram, exactly};
use contigo_core::mem::{CpuBuf, DevSlice};
use contigo_core::types::platform::forward_as_fd;
use contigo_core::types::{Error, Refused, Result};
use core::time::Duration;

/// The driver of one core. It owns its descriptors' memory; with the descriptor port there is none.
///
/// ```
/// use contigo::{Align, Queue, Region, drivers::msgdma::MsgdmaConfig};
/// use contigo::sim::{SimDevice, msgdma::MsgdmaModel, SimBoard};
/// use core::time::Duration;
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let pool = region.pool(4, 1024)?;
/// let core = SimDevice::<MsgdmaModel>::new(&board, board.port());
/// let mut queue = Queue::new(core.window()?.driver(MsgdmaConfig::default())?, 1)?;
///
/// let (mut from, to) = (pool.take()?, pool.take()?);
/// from.view_mut::<u8>()?.fill(7);
/// let [_, to] = queue.run([from.to_device(..900), to.from_device(..)], &[], Duration::from_millis(20))?.buffers;
/// assert_eq!(to.view_at::<u8>(..900)?, [7; 900]);
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Debug)]
pub struct Msgdma<D: Device> {
    pub(super) device: D,
    pub(super) config: MsgdmaConfig,
    operands: [OperandSpec; 2],
    pub(super) way: Way,
    /// The last call was `stop`, or `open`.
    stopped: bool,
    pub(super) spoilt: Spoilt,
}

/// Whether a stop cut a copy, after which the core runs no other job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spoilt {
    No,
    /// It did, and CONTROL does not show it yet: the stop has not ended.
    Cut,
    /// It did, and CONTROL has STOP to mark it, which an external reset clears.
    Marked,
}

/// How descriptors reach the core.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is no heap, and one lives in each driver")]
pub(super) enum Way {
    Slave(Slave),
    Prefetch(Prefetch),
}

impl Way {
    const fn settle(&self) -> &Settle {
        match self {
            Self::Slave(slave) => &slave.settle,
            Self::Prefetch(prefetch) => &prefetch.settle,
        }
    }
}

impl<D: Device> Msgdma<D> {
    /// The driver of `device`, whose descriptors go through the descriptor port.
    ///
    /// # Errors
    /// [`Error::RegisterWindow`] if a port lies outside of the window. [`Error::Argument`],
    /// [`Error::Setting`] or [`Error::Unsupported`] for an impossible configuration.
    /// [`Error::WrongDevice`] if the registers are another device's.
    ///
    /// # Safety
    /// The window's registers are one mSGDMA's, at the offsets of `config` and built as it says,
    /// and no other code drives it while this value lives. If `config` has `write_responses`, the
    /// core is built with "Enable Write Response", and a write is answered when it is in memory.
    /// Otherwise a write is in memory `settle_us` after the interconnect accepted it.
    pub unsafe fn open(device: D, config: MsgdmaConfig) -> Result<Self> {
        if config.prefetcher_at.is_some() {
            return Err(Error::Unsupported {
                what: "a core with a prefetcher has no descriptor port",
                fix: "open it with memory for descriptors",
            });
        }
        is_msgdma(&device, &config)?;
        Ok(Self::with(device, config, Way::Slave(Slave::new(config))))
    }

    /// The driver of `device`, whose prefetcher fetches descriptors from `descriptors`. A
    /// descriptor has 32 bytes, or 64 where it is extended, in cache lines of its own. There is one
    /// more than jobs in flight, so 4 KiB allow up to 63 jobs. At most 128 are used.
    ///
    /// The driver owns the memory. Dropping the driver stops the core and returns the memory; if
    /// the core will not stop, the memory is leaked.
    ///
    /// # Errors
    /// The memory comes back with an error of [`open`](Self::open), [`Error::Unsupported`] if
    /// `config` has no prefetcher, [`Error::BlockSize`] if it holds less than two descriptors,
    /// [`Error::Misaligned`], or an error of [`DriverBuf::new`](contigo_core::mem::DriverBuf::new).
    /// `device` is dropped.
    ///
    /// # Safety
    /// As [`open`](Self::open). The interconnect answers the prefetcher's writes when they are in
    /// memory, so none comes after a stop.
    pub unsafe fn prefetched(
        device: D,
        config: MsgdmaConfig,
        descriptors: CpuBuf,
    ) -> Result<Self, Refused<CpuBuf>> {
        let Some(at) = config.prefetcher_at else {
            let error = Error::Unsupported {
                what: "without `prefetcher_at` there is no prefetcher",
                fix: "say where its CSR port lies",
            };
            return Err(Refused::new(error, descriptors));
        };
        if let Err(error) = is_msgdma(&device, &config) {
            return Err(Refused::new(error, descriptors));
        }
        let way = Way::Prefetch(Prefetch::new(config, at, descriptors, device.port())?);
        Ok(Self::with(device, config, way))
    }

    fn with(device: D, config: MsgdmaConfig, way: Way) -> Self {
        Self { device, config, operands: config.operands(), way, stopped: true, spoilt: Spoilt::No }
    }

    /// As [`Driver::submit`], or [`submit_more`](Driver::submit_more) if `more` jobs follow.
    ///
    /// # Safety
    /// As there.
    unsafe fn give(&mut self, slot: usize, operands: &[DevSlice], more: bool) -> Result<()> {
        let len_bytes = operands.first().map_or(0, |first| first.len_bytes);
        let len = u32::try_from(len_bytes)
            .map_err(|_| Error::Unexpected { name: "a job's length", value: len_bytes as u64 })?;
        if self.stopped {
            self.begin_anew(slot)?;
            self.stopped = false;
        }
        match &mut self.way {
            // SAFETY: the caller's promise.
            Way::Slave(slave) => unsafe { slave.submit(&self.device, slot, len, operands) },
            // SAFETY: the caller's promise.
            Way::Prefetch(prefetch) => unsafe {
                prefetch.submit(&self.device, slot, len, operands, more)
            },
        }
    }

    /// Writes the registers that no job changes, after a reset.
    fn begin_anew(&mut self, slot: usize) -> Result<()> {
        let enable = match &mut self.way {
            Way::Slave(slave) => {
                slave.begin_anew(slot);
                regs::IRQ_ENABLE
            }
            Way::Prefetch(prefetch) => {
                prefetch.begin_anew()?;
                // The prefetcher interrupts.
                0
            }
        };
        // SAFETY: interrupts move no data, and no descriptor waits.
        unsafe { regs::CONTROL.write(&At(&self.device, self.config.csr_at), enable) };
        Ok(())
    }
}

// SAFETY: 1. The guide: the read master reads LENGTH bytes at the read address, and the rest of the
// first and last word of its bus, as `word_bytes` says. The write master writes at most LENGTH
// bytes at the write address, and fewer where a packet ends before. `check` compared LENGTH with
// both operands of a copy, and a receiver's LENGTH is its operand's. The prefetcher reads and
// writes back descriptors, which the driver owns. 2. The core makes a response when the write
// master is done with the descriptor, and the prefetcher writes its descriptor back after that.
// Idle means that no descriptor waits or is at work ("Status Register"). The control word asks for
// the answers of all writes, if the core counts them. Otherwise `Settle` waits for the time that
// the caller of `open` guarantees, and so does a stop. A reset ends when no master has an access
// under way ("Reset Dispatcher"), and the prefetcher's when it fetches nothing. 3. The response's
// length counts from the operand's first byte. 4. `check` reads no register; `poll` launches
// submitted descriptors only. 5. The port belongs to the device. 6. The caller of `open` guarantees
// it. 7. The program stops, resets, and waits for the last writes. 8. Each wait has a limit. 9. Its
// fields count jobs alone: an end is reported by registers, or by owner bits that `begin_anew`
// clears after a reset.
unsafe impl<D: Device> Driver for Msgdma<D> {
    forward!(|this| this.device => port, simulated);

    fn name(&self) -> &'static str {
        "msgdma"
    }

    fn addr_bits(&self) -> u32 {
        self.config.address_bits
    }

    fn operands(&self) -> &[OperandSpec] {
        match self.config.mode {
            MsgdmaMode::Copy => &self.operands,
            MsgdmaMode::Send | MsgdmaMode::Receive => &self.operands[..1],
        }
    }

    fn depth(&self) -> usize {
        match &self.way {
            Way::Slave(slave) => slave.depth(),
            Way::Prefetch(prefetch) => prefetch.depth(),
        }
    }

    fn check(&self, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        let [] = exactly(args)?;
        let Some(first) = operands.first() else { return exactly::<_, 1>(operands).map(|_| ()) };
        let need_bytes = first.len_bytes as u64;
        if let Some(to) = operands.get(1) {
            holds(to, first)?;
        }
        let multiple_of = match self.config.transfer {
            MsgdmaTransfer::FullWords => self.config.word_bytes() as u64,
            MsgdmaTransfer::Aligned | MsgdmaTransfer::Unaligned => 1,
        };
        let max = self.config.max_bytes.into();
        if need_bytes == 0 || need_bytes > max || !need_bytes.is_multiple_of(multiple_of) {
            return Err(Error::Argument {
                name: "bytes of a job",
                value: need_bytes,
                min: multiple_of,
                max,
                multiple_of,
            });
        }
        Ok(())
    }

    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.give(slot, operands, false) }
    }

    unsafe fn submit_more(&mut self, slot: usize, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.give(slot, operands, true) }
    }

    fn waits_for_doorbell(&self) -> bool {
        matches!(self.way, Way::Prefetch(_))
    }

    fn doorbell(&mut self) -> Result<()> {
        match &mut self.way {
            Way::Prefetch(prefetch) => prefetch.doorbell(&self.device),
            Way::Slave(_) => Ok(()),
        }
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        let Self { device, config, way, stopped, .. } = self;
        let told = match way {
            Way::Slave(slave) => slave.tell(),
            Way::Prefetch(prefetch) if *stopped => prefetch.tell(device)?,
            Way::Prefetch(_) => None,
        };
        if told.is_some() || *stopped {
            return Ok(told);
        }
        let mut found = Ok(None);
        poll_settling(device, config.settles_us(), timeout, |device| {
            found = match way {
                Way::Slave(slave) => {
                    slave.look(device).map(|ended| if ended { slave.tell() } else { None })
                }
                Way::Prefetch(prefetch) => prefetch.look(device),
            };
            match found {
                Ok(None) if way.settle().waits() => Settling::Waits,
                Ok(None) => Settling::Nothing,
                Ok(Some(_)) | Err(_) => Settling::Over,
            }
        })?;
        // Once per wait also if no register shows an end: an interconnect may deliver a descriptor
        // after its interrupt, which was acknowledged by then.
        match way {
            Way::Prefetch(prefetch) if !timeout.is_zero() && matches!(found, Ok(None)) => {
                prefetch.tell(device)
            }
            _ => found,
        }
    }

    /// Jobs that ended before the stop are still reported.
    fn stop(&mut self) -> Result<()> {
        self.halt()?;
        match &mut self.way {
            Way::Slave(slave) => slave.stopped(&self.device),
            Way::Prefetch(prefetch) => prefetch.stopped(),
        }
        self.stopped = true;
        Ok(())
    }

    /// `None` if an end is reported some time after its interrupt.
    fn arm_irq(&self) -> Result<Option<i32>> {
        if self.way.settle().needs_time() { Ok(None) } else { self.device.arm_irq() }
    }

    fn stop_program(&self) -> StopProgram {
        self.program()
    }
}

forward_as_fd!({D: Device} Msgdma<D>, device: D);

impl<D: Device> Drop for Msgdma<D> {
    /// Stops the core. Returns the descriptors' memory only if it has stopped; otherwise leaks it.
    fn drop(&mut self) {
        if self.halt().is_ok()
            && let Way::Prefetch(prefetch) = &mut self.way
        {
            // SAFETY: dispatcher and prefetcher were reset, and fetch nothing before they run.
            unsafe { prefetch.release() };
        }
    }
}
