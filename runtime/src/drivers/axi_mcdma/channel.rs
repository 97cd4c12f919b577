#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! The driver of one channel: a circle of descriptors, as many jobs in flight as it has.

use super::{
    config::{McdmaConfig, Way},
    fault,
    host::Host,
    regs,
};
use crate::{
    drivers::ring::{Layout, Ring},
    hw::wait::poll_every,
    hw::{
        mmio::{ReadWrite, Register},
        wait::poll_until,
    },
    job::{Completion, Driver, OperandSpec, StopProgram, TypedDriver, exactly},
    mem::{CpuBuf, DevSlice},
    types::{DevAddr, Error, Refused, Result, forward::forward, platform::forward_as_fd},
};
use core::{cell::Cell, fmt, mem::ManuallyDrop, time::Duration};

/// While a channel may pause with jobs left, it is looked at so often.
const STEP_US: u32 = 20;
/// The most descriptors of a channel: more jobs are in flight nowhere.
const DEPTH_MAX: usize = 256;
const LAYOUT: Layout = Layout { len_bytes: regs::DESCRIPTOR_BYTES, align_bytes: regs::DESCRIPTOR_BYTES, most: DEPTH_MAX };

/// The driver of one channel. Dropping it stops the channel, and gives it and its descriptors'
/// memory back; where it will not stop, they stay claimed.
pub struct McdmaChannel<'p, H: Host> {
    pub(super) device: ManuallyDrop<H>,
    pub(super) ring: Ring<'p>,
    pub(super) regs: &'static regs::Channel,
    pub(super) common: &'static regs::Common,
    pub(super) config: McdmaConfig,
    way: Way,
    operand: [OperandSpec; 1],
    /// The descriptor of the oldest job that was not told, and the job's slot.
    pub(super) oldest: usize,
    slot: usize,
    pub(super) in_flight: usize,
    /// Between the first submit and a stop.
    pub(super) runs: bool,
    /// The device's reset epoch when it was started.
    pub(super) epoch: u32,
    /// An interrupt was acknowledged, and not all that it told of was found.
    look_again: bool,
    dropped: Cell<u64>,
    /// The lower half of the tail was written since the last doorbell, and a job ended since.
    owed: bool,
    moved: bool,
}

/// A descriptor's report on what it received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PacketReport {
    /// It has the packet's first byte.
    pub first: bool,
    /// It has the packet's last byte. Where it has not, the packet goes on in the next job's
    /// buffer.
    pub last: bool,
    /// TUSER of the packet's last beat; 0 without [`McdmaConfig::sideband`].
    pub user: u16,
    /// TID; 0 without [`McdmaConfig::sideband`].
    pub id: u8,
}

impl<'p, H: Host> McdmaChannel<'p, H> {
    /// The driver of channel `way` of a core that is built as `config` says, and was reset.
    ///
    /// # Errors
    /// `descriptors` come back with the error of [`McdmaConfig::check`] or of the circle, or
    /// [`Error::Unsupported`] where the core has no such channel.
    pub(super) fn new(host: H, way: Way, config: McdmaConfig, descriptors: CpuBuf<'p>) -> Result<Self, Refused<CpuBuf<'p>>> {
        let (regs, common, operand) = match parts(&host, way, &config) {
            Ok(parts) => parts,
            Err(error) => return Err(Refused::new(error, descriptors)),
        };
        let ring = Ring::new(descriptors, host.port(), config.address_bits.into(), LAYOUT, 2)?;
        // SAFETY: the core was reset, and was not told of this memory.
        let ring = unsafe { ring.cleared(regs::STATUS_AT.get(way.direction()).copied().unwrap_or_default(), regs::COMPLETE)? };
        let (oldest, slot, in_flight, runs, epoch, look_again, dropped) = (0, 0, 0, false, 0, false, Cell::new(0));
        let (owed, moved) = (false, false);
        let device = ManuallyDrop::new(host);
        Ok(Self {
            device,
            ring,
            regs,
            common,
            config,
            way,
            operand: [operand],
            oldest,
            slot,
            in_flight,
            runs,
            epoch,
            look_again,
            dropped,
            owed,
            moved,
        })
    }

    /// Which channel it is.
    pub const fn way(&self) -> Way {
        self.way
    }

    /// How many packets the core dropped because this channel had no descriptor, or was not
    /// enabled: since it was opened, up to 65,535 between two calls. 0 of a channel that sends.
    pub fn dropped(&self) -> u64 {
        if let Way::S2mm(_) = self.way {
            let count = self.regs.dropped.read_and_clear(&*self.device);
            // A device that is gone reads all ones, where the upper half is reserved.
            let count = if count > u16::MAX.into() { 0 } else { count };
            self.dropped.set(self.dropped.get() + u64::from(count));
        }
        self.dropped.get()
    }

    /// Where a descriptor has its status.
    pub(super) const fn status_at(&self) -> usize {
        let [send, receive] = regs::STATUS_AT;
        if let Way::Mm2s(_) = self.way { send } else { receive }
    }

    /// The oldest job's descriptor, in which it says `status`: the job has ended.
    fn ended(&mut self, status: u32) -> Result<Completion> {
        let (index, slot) = (self.oldest, self.slot);
        let mut completion = Completion { status, ..Completion::of(slot) };
        if let Way::S2mm(_) = self.way {
            completion = completion.with_bytes((status & regs::BYTES) as usize).with_last(status & regs::LAST != 0);
            if self.config.sideband {
                let [sideband, ..] = &mut completion.words;
                self.ring.read(index, regs::SIDEBAND_AT, core::slice::from_mut(sideband))?;
            }
        }
        self.oldest = self.ring.after(index, 1);
        self.slot = if slot + 1 >= self.ring.len() { 0 } else { slot + 1 };
        self.in_flight -= 1;
        self.moved = true;
        self.look_again &= self.in_flight > 0;
        Ok(completion)
    }

    /// A descriptor's status.
    ///
    /// # Errors
    /// [`Error::Fault`]: it sent fewer bytes than it was given.
    fn look(ring: &mut Ring<'_>, index: usize, direction: usize) -> Result<u32> {
        let mut words = [0; 3];
        ring.read(index, regs::CONTROL_AT, &mut words)?;
        let [control, receive, send] = words;
        if direction == 1 {
            return Ok(receive);
        }
        if is_good(send) && (send ^ control) & regs::BYTES != 0 { Err(fault::cut_length(send)) } else { Ok(send) }
    }

    /// The error behind the channel's status, or behind its oldest descriptor's.
    fn fault(&mut self, channel: u32, descriptor: u32) -> Error {
        if channel & (regs::ERROR | regs::OTHER_ERROR) == regs::OTHER_ERROR && descriptor & regs::FAILED == 0 {
            return fault::of_another(self.common.error.read(&*self.device));
        }
        let mut words = [0; 2];
        let address = |[low, high]: [u32; 2]| u64::from(high) << 32 | u64::from(low);
        let buffer = self.ring.read(self.oldest, regs::BUFFER_AT, &mut words).map_or(0, |()| address(words));
        if descriptor & regs::FAILED != 0 {
            return fault::of_descriptor(descriptor, buffer);
        }
        let current = self.regs.current.map(|half| half.read(&*self.device));
        let current = if self.config.address_bits > 32 { address(current) } else { current[0].into() };
        fault::of_core(self.common.error.read(&*self.device), buffer, current)
    }

    /// Writes a descriptor's address.
    ///
    /// # Safety
    /// As [`Mmio::write32`](crate::Mmio::write32).
    #[allow(clippy::cast_possible_truncation, reason = "the halves of an address")]
    unsafe fn point(&self, whole: &H::Whole, [low, high]: [Register<ReadWrite>; 2], DevAddr(addr): DevAddr) {
        // SAFETY: the caller's promise. The lower half comes first, as in embeddedsw's
        // `XMcdma_UpdateChanTDesc`: where the core has an upper half, writing it is the doorbell.
        unsafe {
            low.write(whole, addr as u32);
            if self.config.address_bits > 32 {
                high.write(whole, (addr >> 32) as u32);
            }
        }
    }

    /// Starts the channel at `first`, under the lock, as PG288's programming sequence has it.
    ///
    /// # Safety
    /// As [`Driver::submit`].
    unsafe fn start(&self, whole: &H::Whole, first: DevAddr) -> Result<()> {
        let control = self.common.control.read(whole);
        if control & regs::RESET != 0 {
            return Err(Error::WillNotStop { device: fault::DEVICE, status: control, waited_us: 0 });
        }
        let enabled = self.common.enable.read(whole) | 1 << self.way.number();
        // SAFETY: the caller's promise; and no channel fetches before its tail is written.
        unsafe {
            self.common.enable.write(whole, enabled);
            self.point(whole, self.regs.current, first);
            self.regs.control.write(whole, regs::RUN | regs::IRQS | regs::THRESHOLD_1);
            self.common.control.write(whole, regs::RUN);
        }
        let mut status = 0;
        let runs = poll_until(whole, Duration::from_micros(self.config.stop_us.into()), |whole| {
            status = self.common.status.read(whole);
            status & (regs::HALTED | regs::COMMON_RESERVED) == 0
        })?;
        if runs { Ok(()) } else { Err(fault::not_running(status)) }
    }
}

/// The registers and the operand of channel `way`, which is there.
fn parts(host: &impl Host, way: Way, config: &McdmaConfig) -> Result<(&'static regs::Channel, &'static regs::Common, OperandSpec)> {
    let operand = config.check(way)?;
    let none = Error::Unsupported { what: "the core has no such channel", fix: "build it with more, or take one with a smaller number" };
    let (Some(regs), Some(common)) = (regs::CHANNELS.get(way.index()), regs::COMMON.get(way.direction())) else {
        return Err(none);
    };
    if common.status.read(host) & regs::COMMON_RESERVED != 0 {
        return Err(fault::gone());
    }
    // SAFETY: a channel that does not run starts nothing.
    unsafe { regs.control.write(host, regs::IRQS | regs::THRESHOLD_1) };
    let there = regs.control.read(host) & (regs::IRQS | regs::CHANNEL_RESERVED) == regs::IRQS;
    // SAFETY: as above.
    unsafe { regs.control.write(host, regs::THRESHOLD_1) };
    if there { Ok((regs, common, operand)) } else { Err(none) }
}

// SAFETY: 1. PG288: a channel reads or writes the buffer of a descriptor, at most as many bytes as
// the descriptor says; `submit` takes that length from the operand. It reads and writes
// descriptors, which are the driver's own, and goes no further than the tail. 2. A descriptor's
// Completed is written after its last byte was answered ("Status"), and no other look is believed,
// nor one with an error. `stop` is right where each descriptor is complete, or after a reset. It
// waits for the end of its own. A sibling's is over where the lock is free, no direction says
// Reset, and this channel's control register is as a reset leaves it. 3. The transferred bytes are
// the descriptor's own count. 4. `check` reads no register, and `poll` acknowledges an interrupt.
// 5. The port is the device's, and the rest never changes. 6. The caller of the function that made
// it promised it. 7. The program writes the reset alone. 8. Every wait has a limit. 9. `runs` is
// set before the first register is written.
unsafe impl<H: Host> Driver for McdmaChannel<'_, H> {
    forward!(|this| *this.device => port, arm_irq);

    fn name(&self) -> &'static str {
        fault::DEVICE
    }

    fn addr_bits(&self) -> u32 {
        self.config.address_bits.into()
    }

    fn operands(&self) -> &[OperandSpec] {
        &self.operand
    }

    fn depth(&self) -> usize {
        self.ring.len()
    }

    fn check(&self, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        let ([packet], []) = (exactly(operands)?, exactly(args)?);
        self.config.check_length(self.way, packet.len_bytes)
    }

    #[allow(clippy::cast_possible_truncation, reason = "the lower half of an address")]
    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        let [packet] = exactly(operands)?;
        let runs = self.runs;
        if !runs {
            // Nobody tells of the jobs that a stop took back: the core would find them complete.
            let status_at = self.status_at();
            for step in 0..self.in_flight {
                // SAFETY: the channel is stopped.
                unsafe { self.ring.write(self.ring.after(self.oldest, step), status_at, &[regs::COMPLETE])? };
            }
            (self.oldest, self.slot, self.in_flight, self.look_again) = (self.ring.after(self.oldest, self.in_flight), slot, 0, false);
        }
        let index = self.ring.after(self.oldest, self.in_flight);
        let len_bytes = u32::try_from(packet.len_bytes).unwrap_or(u32::MAX) & regs::BYTES;
        let control = if let Way::Mm2s(_) = self.way { len_bytes | regs::SOF | regs::EOF } else { len_bytes };
        let next = self.ring.addr(self.ring.after(index, 1));
        // SAFETY: the slot is free, so its descriptor was told or taken back: the channel is
        // stopped, or its tail lies before.
        unsafe { self.ring.write(index, 0, &regs::descriptor(next, packet.addr.0, control))? };
        let at = DevAddr(self.ring.addr(index));
        self.runs = true;
        let this = &*self;
        self.epoch = this.device.locked(|whole| {
            let epoch = this.device.reset_epoch();
            let was_reset = runs && epoch != this.epoch;
            if was_reset && this.in_flight > 0 {
                return Err(Error::EndedByReset { device: fault::DEVICE });
            }
            // SAFETY: the descriptors up to this one name operands that were handed over, and the
            // registers that channels share are this one's until the lock is dropped.
            unsafe {
                if !runs || was_reset {
                    this.start(whole, at)?;
                }
                // The two halves of a running channel's tail are no doorbell at once: the core may
                // reach the new tail between them, and the doorbell then sends it past. So a
                // channel at work gets the lower half, and the doorbell where it pauses.
                if this.in_flight == 0 {
                    this.point(whole, this.regs.tail, at);
                } else {
                    let [low, _] = this.regs.tail;
                    low.write(whole, at.0 as u32);
                }
            }
            Ok(epoch)
        })?;
        self.owed = self.config.address_bits > 32 && self.in_flight > 0;
        self.moved &= self.in_flight > 0;
        self.in_flight += 1;
        Ok(())
    }

    #[allow(clippy::cast_possible_truncation, reason = "the upper half of an address")]
    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        if self.in_flight == 0 {
            return Ok(None);
        }
        let (index, direction, epoch, registers) = (self.oldest, self.way.direction(), self.epoch, self.regs);
        if !self.runs {
            // Stopped: nothing changes any more, and one look says all.
            let status = Self::look(&mut self.ring, index, direction)?;
            if is_good(status) {
                return self.ended(status).map(Some);
            }
            return Ok(None);
        }
        let (ring, look_again) = (&mut self.ring, &mut self.look_again);
        let (mut channel, mut descriptor, mut found) = (0, 0, Ok(false));
        let (owed, moved, [_, high]) = (&mut self.owed, self.moved, registers.tail);
        // No interrupt tells that a channel pauses with jobs left.
        let step_us = if *owed && moved { STEP_US } else { u32::MAX };
        let upper = (ring.addr(index) >> 32) as u32;
        poll_every(&*self.device, step_us, timeout, |device| {
            channel = registers.status.read(device);
            // After the registers: what they said before a reset counts.
            if device.reset_epoch() != epoch {
                found = Err(Error::EndedByReset { device: fault::DEVICE });
            } else if channel & regs::CHANNEL_RESERVED != 0 {
                found = Err(fault::gone());
            } else {
                if channel & regs::IOC != 0 {
                    *look_again = true;
                    // SAFETY: acknowledging moves no data. An error stays, for the next look.
                    unsafe { registers.status.write(device, regs::IOC) };
                }
                // The register first: each look at a descriptor is a sync.
                let told = regs::IDLE | regs::SHORT_FALL | regs::ERROR | regs::OTHER_ERROR;
                if *look_again || channel & told != 0 {
                    found = Self::look(ring, index, direction).map(|status| {
                        descriptor = status;
                        *look_again &= is_good(status);
                        is_good(status) || channel & (regs::ERROR | regs::OTHER_ERROR) != 0 || status & regs::FAILED != 0
                    });
                }
                // Idle is of the time since the doorbell where a job ended since.
                if *owed && moved && channel & regs::IDLE != 0 && matches!(found, Ok(false)) && descriptor & regs::COMPLETE == 0 {
                    *owed = false;
                    // SAFETY: the channel pauses before the oldest job, whose descriptor is open.
                    unsafe { high.write(device, upper) };
                }
            }
            !matches!(found, Ok(false))
        })?;
        match found? {
            false => Ok(None),
            true if is_good(descriptor) => self.ended(descriptor).map(Some),
            true => Err(self.fault(channel, descriptor)),
        }
    }

    fn stop(&mut self) -> Result<()> {
        self.stop_channel()
    }

    fn stop_program(&self) -> StopProgram {
        self.stop_steps()
    }

    fn ran_dry(&self) -> Option<u64> {
        if let Way::S2mm(_) = self.way { Some(self.dropped()) } else { None }
    }
}

/// Does a descriptor say that its job is done? One that failed says Completed too.
const fn is_good(status: u32) -> bool {
    status & (regs::COMPLETE | regs::FAILED) == regs::COMPLETE
}

impl<H: Host> TypedDriver<1> for McdmaChannel<'_, H> {
    type Args = ();
    type Words = [u32; 0];
    type Report = PacketReport;

    fn words((): &()) -> [u32; 0] {
        []
    }

    #[allow(clippy::cast_possible_truncation, reason = "fields of a word")]
    fn report(&self, completion: &Completion) -> PacketReport {
        let [sideband, ..] = completion.words;
        let (first, last) = (completion.status & regs::FIRST != 0, completion.status & regs::LAST != 0);
        PacketReport { first, last, user: sideband as u16, id: (sideband >> 24) as u8 }
    }
}

forward_as_fd!({'p, H: Host} McdmaChannel<'p, H>, device: H);

impl<H: Host> Drop for McdmaChannel<'_, H> {
    fn drop(&mut self) {
        if self.stop_channel().is_ok() {
            // SAFETY: `drop` runs once, nothing uses either after it, and the channel is stopped.
            unsafe {
                self.ring.release();
                ManuallyDrop::drop(&mut self.device);
            }
        }
    }
}

impl<H: Host> fmt::Debug for McdmaChannel<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McdmaChannel").field("port", &self.device.port().name).field("way", &self.way).finish_non_exhaustive()
    }
}
