#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! The driver of a core, with registers or descriptors.

use super::complete::{Simple, look_again_at_chain, look_at_chain, reset};
use super::config::{self, AxiCdmaConfig, Keyhole};
use super::descriptors::{Chain, Transfer};
use super::regs;
use crate::checks::{holds, low, reset_program};
use contigo_core::forward;
use contigo_core::hw::Device;
use contigo_core::job::{Completion, Driver, OperandSpec, StopProgram, exactly};
use contigo_core::mem::{CpuBuf, DevSlice};
use contigo_core::types::platform::forward_as_fd;
use contigo_core::types::{DevAddr, Error, Refused, Result};
use core::time::Duration;

/// The driver of one core. It owns its descriptors' memory; in simple mode there is none.
///
/// ```
/// use contigo::{Align, Queue, Region, drivers::axi_cdma::AxiCdmaConfig};
/// use contigo::sim::{SimDevice, axi_cdma::AxiCdmaModel, SimBoard};
/// use core::time::Duration;
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(256 * 1024)?)?;
/// let descriptors = region.alloc(4096, Align::PAGE)?;
/// let pool = region.pool(8, 16384)?;
/// let core = SimDevice::<AxiCdmaModel>::new(&board, board.port());
/// let cdma = core.window()?.sg(AxiCdmaConfig::default(), descriptors)?;
///
/// let mut queue = Queue::new(cdma, 4)?;
/// for byte in 0..4 {
///     let mut from = pool.take()?;
///     from.view_mut::<u8>()?.fill(byte);
///     queue.submit([from.to_device(..10_000), pool.take()?.from_device(..)], &[])?;
/// }
/// for byte in 0..4 {
///     let [_from, to] = queue.wait(Duration::from_millis(20))?.ok_or(contigo::Error::Busy)?.buffers;
///     assert_eq!(to.view_at::<u8>(..10_000)?, [byte; 10_000]);
/// }
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Debug)]
pub struct AxiCdma<D: Device> {
    device: D,
    config: AxiCdmaConfig,
    /// A keyhole's job has only the first of them.
    operands: [OperandSpec; 2],
    keyhole: Option<Keyhole>,
    mode: Mode,
}

/// How jobs reach the core.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one a core, and no heap")]
enum Mode {
    /// In registers.
    Simple(Simple),
    /// In descriptors.
    Sg(Chain),
}

impl<D: Device> AxiCdma<D> {
    /// The driver of `device`, with one copy at a time in registers. It also works if
    /// scatter-gather is built in.
    ///
    /// # Errors
    /// [`Error::RegisterWindow`] if the window is too small. [`Error::WrongDevice`] if bits are set
    /// that read as zero in this core: another device, or none. [`Error::Argument`] and
    /// [`Error::Unsupported`] for a configuration that no core has. [`Error::WillNotStop`]: the
    /// reset at open does not end.
    ///
    /// # Safety
    /// The window is an AXI CDMA's, built as `config` says, and no other code drives it while
    /// this value lives.
    pub unsafe fn simple(device: D, config: AxiCdmaConfig) -> Result<Self> {
        Self::in_registers(device, config, None)
    }

    pub(super) fn in_registers(
        device: D,
        config: AxiCdmaConfig,
        keyhole: Option<Keyhole>,
    ) -> Result<Self> {
        config::check(&device, &config, keyhole)?;
        reset(&device, config.stop_us)?;
        Ok(Self::of(device, config, keyhole, Mode::Simple(Simple::Reset)))
    }

    /// The driver of `device`, with descriptors in `descriptors`: 64 bytes each, two at least, and
    /// up to 255. One of them stays free.
    ///
    /// The driver owns the memory. Dropping the driver stops the core and returns the memory; if
    /// the core will not stop, the memory is leaked.
    ///
    /// # Errors
    /// The buffer comes back with the errors of [`simple`](Self::simple) and
    /// [`DriverBuf::new`](contigo_core::mem::DriverBuf::new). [`Error::Unsupported`]: the core has
    /// no scatter-gather. [`Error::BlockSize`] if the memory is too small for `config.depth` jobs.
    /// [`Error::Misaligned`] if its bus address is not a multiple of 64. `device` is dropped.
    ///
    /// # Safety
    /// As [`simple`](Self::simple).
    pub unsafe fn sg(
        device: D,
        config: AxiCdmaConfig,
        descriptors: CpuBuf,
    ) -> Result<Self, Refused<CpuBuf>> {
        Self::with_descriptors(device, config, None, descriptors)
    }

    pub(super) fn with_descriptors(
        device: D,
        config: AxiCdmaConfig,
        keyhole: Option<Keyhole>,
        descriptors: CpuBuf,
    ) -> Result<Self, Refused<CpuBuf>> {
        let checked = config::check(&device, &config, keyhole)
            .and_then(|()| config::has_sg(&device, &config));
        if let Err(error) = checked.and_then(|()| reset(&device, config.stop_us)) {
            return Err(Refused::new(error, descriptors));
        }
        let is_wide = config::is_wide(&device);
        let chain = Chain::new(
            descriptors,
            device.port(),
            config.address_bits,
            config.depth,
            config.piece_bytes(),
            is_wide,
        )?;
        Ok(Self::of(device, config, keyhole, Mode::Sg(chain)))
    }

    /// `device` was reset.
    fn of(device: D, config: AxiCdmaConfig, keyhole: Option<Keyhole>, mode: Mode) -> Self {
        let longest = match &mode {
            Mode::Simple(_) => config.longest(),
            Mode::Sg(chain) => chain.longest(),
        };
        let (reads, writes) = (OperandSpec::to_device(), OperandSpec::from_device());
        let [first, second] = match keyhole {
            Some(Keyhole::Reads(_)) => [writes; 2],
            Some(Keyhole::Writes(_)) => [reads; 2],
            None => [reads, writes],
        };
        // The second operand may be longer than the copy.
        let operands = [config.operand(first, longest), config.operand(second, usize::MAX)];
        Self { device, config, operands, keyhole, mode }
    }

    /// A job's transfer.
    fn transfer(&self, operands: &[DevSlice]) -> Result<Transfer> {
        let (from_moves, to_moves) = (true, true);
        Ok(match self.keyhole {
            None => {
                let [from, to] = exactly(operands)?;
                Transfer {
                    from: from.addr.0,
                    to: to.addr.0,
                    len_bytes: from.len_bytes,
                    from_moves,
                    to_moves,
                }
            }
            Some(Keyhole::Reads(from)) => {
                let [to] = exactly(operands)?;
                Transfer {
                    from,
                    to: to.addr.0,
                    len_bytes: to.len_bytes,
                    from_moves: false,
                    to_moves,
                }
            }
            Some(Keyhole::Writes(to)) => {
                let [from] = exactly(operands)?;
                Transfer {
                    from: from.addr.0,
                    to,
                    len_bytes: from.len_bytes,
                    from_moves,
                    to_moves: false,
                }
            }
        })
    }

    /// As [`Driver::submit`], or [`submit_more`](Driver::submit_more) if `more` jobs follow.
    ///
    /// # Safety
    /// As there.
    unsafe fn give(&mut self, slot: usize, operands: &[DevSlice], more: bool) -> Result<()> {
        let transfer = self.transfer(operands)?;
        let keyhole = match self.keyhole {
            None => 0,
            Some(Keyhole::Reads(_)) => regs::KEYHOLE_READ,
            Some(Keyhole::Writes(_)) => regs::KEYHOLE_WRITE,
        };
        let device = &self.device;
        match &mut self.mode {
            Mode::Simple(job) => {
                let starts = job.give(transfer.from);
                let len_bytes = u32::try_from(transfer.len_bytes).unwrap_or(0);
                // SAFETY: the core is idle: it was reset by `stop` or at open, or the last job's
                // end was seen. The operands were handed over, and `check` found both long enough.
                unsafe {
                    if starts {
                        regs::CDMACR.write(
                            device,
                            regs::IOC | regs::ERROR | 1 << regs::THRESHOLD_SHIFT | keyhole,
                        );
                    }
                    regs::SA.write(device, DevAddr(transfer.from));
                    regs::DA.write(device, DevAddr(transfer.to));
                    regs::BTT.write(device, len_bytes);
                }
                // Versions before 4.1 drop the upper bits. The copy is then shorter, and is
                // stopped.
                if len_bytes >> regs::LENGTH_BITS_ANY != 0 && regs::BTT.read(device) != len_bytes {
                    return Err(Error::Unsupported {
                        what: "BTT of this AXI CDMA holds fewer bits than length_bits says",
                        fix: "set length_bits=23",
                    });
                }
            }
            Mode::Sg(chain) => {
                let coalescing = self.config.irq_threshold << regs::THRESHOLD_SHIFT
                    | self.config.irq_delay << regs::DELAY_SHIFT;
                let delay = if self.config.irq_delay > 0 { regs::DELAY } else { 0 };
                let control = regs::SG_MODE | keyhole | regs::IOC | regs::ERROR | coalescing;
                let starts = chain.begin_anew()?;
                chain.push(slot, &transfer)?;
                if starts {
                    // SAFETY: the core is idle, with `SGMode` at 0 after its reset, so the engine
                    // takes CURDESC. It fetches nothing before a doorbell. `Dly_IrqEn` is kept only
                    // if `SGMode` is already set.
                    unsafe {
                        regs::CDMACR.write(device, control);
                        regs::CURDESC.write(device, DevAddr(chain.first_addr()));
                        regs::CDMACR.write(device, control | delay);
                    }
                }
                if !more {
                    ring(device, chain);
                }
            }
        }
        Ok(())
    }

    /// Resets the core, and waits for the reset's end.
    fn halt(&mut self) -> Result<()> {
        match &mut self.mode {
            Mode::Simple(job) => job.resets(&self.device),
            Mode::Sg(chain) => chain.resets(),
        }
        reset(&self.device, self.config.stop_us)?;
        match &mut self.mode {
            Mode::Simple(job) => job.was_reset(),
            Mode::Sg(chain) => chain.was_reset(),
        }
        Ok(())
    }
}

/// Rings the doorbell for the jobs whose doorbell is owed.
fn ring(device: &impl Device, chain: &mut Chain) {
    let Some((tail, is_free)) = chain.rings() else { return };
    // SAFETY: the descriptors up to `tail` name bytes of jobs in flight, and the core goes no
    // further.
    unsafe {
        if is_free {
            regs::TAILDESC.write(device, DevAddr(tail));
        } else {
            regs::TAILDESC_LOW.write(device, low(tail));
        }
    }
}

// SAFETY: 1. PG034: the core writes as many bytes at the destination's address as BTT or a
// descriptor says, and masks the others of a bus word. With Key Hole Write it writes all of them at
// one address, where there is no memory (`AxiCdmaKeyhole::open`'s caller guarantees it). `check`
// compared the length with both operands. It reads whole bus words around the source, and drops the
// excess, as `word_bytes` says. It reads and writes the descriptors, which the driver owns, as far
// as TAILDESC. 2. In simple mode Idle and `IOC_Irq` together end a job: the last write was answered
// ("CDMASR"). With descriptors, Cmplt without an error bit does, which is written after that
// ("Transfer Descriptor Status Word"). A reset is over when the started bursts have ended
// ("CDMACR", Reset), and leaves no transfer. 3. No bytes are reported. 4. `check` reads no
// register; `poll` acknowledges interrupts. 5. The port is the device's. 6. The constructor's
// caller guarantees it. 7. The program writes Reset alone. 8. Each poll has a limit. 9. The jobs'
// state is set before the doorbell, and `stop` resets the core whatever the state.
unsafe impl<D: Device> Driver for AxiCdma<D> {
    forward!(|this| this.device => port, simulated, arm_irq);

    fn name(&self) -> &'static str {
        "axi_cdma"
    }

    fn addr_bits(&self) -> u32 {
        self.config.address_bits
    }

    fn operands(&self) -> &[OperandSpec] {
        match self.keyhole {
            None => &self.operands,
            Some(_) => self.operands.get(..1).unwrap_or_default(),
        }
    }

    fn depth(&self) -> usize {
        match &self.mode {
            Mode::Simple(_) => 1,
            Mode::Sg(chain) => chain.depth(),
        }
    }

    fn check(&self, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        let [] = exactly(args)?;
        let transfer = self.transfer(operands)?;
        if let ([from, to], None) = (operands, self.keyhole) {
            holds(to, from)?;
        }
        config::suits(&self.config, self.keyhole, &transfer)
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
        matches!(self.mode, Mode::Sg(_))
    }

    fn poll_again(&mut self) -> Result<Option<Completion>> {
        match &mut self.mode {
            Mode::Simple(_) => Ok(None),
            Mode::Sg(chain) => look_again_at_chain(&self.device, chain),
        }
    }

    fn doorbell(&mut self) -> Result<()> {
        if let Mode::Sg(chain) = &mut self.mode {
            ring(&self.device, chain);
        }
        Ok(())
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        match &mut self.mode {
            Mode::Simple(job) => job.look(&self.device, timeout),
            Mode::Sg(chain) => look_at_chain(&self.device, chain, timeout),
        }
    }

    /// Resets the core. Jobs that had ended before are still reported.
    fn stop(&mut self) -> Result<()> {
        self.halt()
    }

    /// The reset, and a wait for its end in the same two registers.
    fn stop_program(&self) -> StopProgram {
        reset_program(
            (regs::CDMACR.offset(), regs::RESET, regs::RESET | regs::CDMACR_ZEROES),
            (regs::CDMASR.offset(), regs::IDLE | regs::CDMASR_ZEROES, regs::IDLE),
            self.config.stop_us,
        )
    }
}

forward_as_fd!({D: Device} AxiCdma<D>, device: D);

impl<D: Device> Drop for AxiCdma<D> {
    /// Stops the core. Returns the descriptors' memory only if it has stopped; otherwise leaks it.
    fn drop(&mut self) {
        if self.halt().is_ok()
            && let Mode::Sg(chain) = &mut self.mode
        {
            // SAFETY: the core was reset, and fetches descriptors only after a doorbell.
            unsafe { chain.release() }
        }
    }
}
