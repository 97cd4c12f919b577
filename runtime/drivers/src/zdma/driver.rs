#![allow(
    unsafe_code,
    reason = "implementing `Driver` is a promise about the hardware; attributes and interrupt \
        masks are registers"
)]
//! The driver of a channel: the check of its window, the registers that no job changes, and its
//! jobs.

use super::descriptors::{PAIR_BYTES, PAIRS_MIN};
use super::regs;
use super::submit::Jobs;
use crate::checks::{has_window, holds, reads_zero, within};
use contigo_core::forward;
use contigo_core::hw::Device;
use contigo_core::job::{Completion, Driver, OperandSpec, StopProgram, exactly};
use contigo_core::mem::{CpuBuf, DevSlice, DriverBuf};
use contigo_core::types::platform::forward_as_fd;
use contigo_core::types::{Error, Refused, Result};
use core::time::Duration;

/// The driver of one channel. It owns its descriptors' memory; in simple mode there is none.
///
/// ```
/// use contigo::{Align, sim::{SimDevice, zdma::ZdmaModel, SimBoard}, Queue, Region};
/// use core::time::Duration;
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(256 * 1024)?)?;
/// let descriptors = region.alloc(4096, Align::PAGE)?;
/// let pool = region.pool(4, 16384)?;
/// let channel = SimDevice::<ZdmaModel>::new(&board, board.port());
/// let mut queue = Queue::new(channel.window()?.linked(descriptors)?, 1)?;
///
/// let (mut from, to) = (pool.take()?, pool.take()?);
/// from.view_mut::<u8>()?.fill(7);
/// let [_from, to] = queue.run([from.to_device(3..10_000), to.from_device(..)], &[], Duration::from_millis(20))?.buffers;
/// assert_eq!(to.view_at::<u8>(..9_997)?, [7; 9_997]);
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Debug)]
pub struct Zdma<D: Device> {
    pub(super) device: D,
    pub(super) jobs: Jobs,
}

impl<D: Device> Zdma<D> {
    /// The driver of `device`, with one transfer at a time in registers.
    ///
    /// # Errors
    /// [`Error::RegisterWindow`] if the window is too small; [`Error::WrongDevice`] if bits are set
    /// that read as zero in a ZDMA: the address is wrong.
    ///
    /// # Safety
    /// The window is one ZDMA channel's (UG1087, module ZDMA), and no other code drives it while
    /// this value lives.
    pub unsafe fn simple(device: D) -> Result<Self> {
        is_zdma(&device)?;
        Ok(Self { device, jobs: Jobs::new(None) })
    }

    /// The driver of `device`, with lists of descriptors in `descriptors`: 64 bytes for each piece
    /// of a copy, at least 128. With 256, 512, or at least 1,024 bytes it takes 2, 4, or 8 jobs at
    /// once, each with an equal share. At most 32 KiB are used. The driver cuts a copy at multiples
    /// of 4 KiB of its destination, where an AXI burst ends anyway, or at larger powers of two if
    /// the share is too short for that. A share of 128 bytes allows 512 MiB, and one of 576 bytes 4
    /// GiB - 1 B.
    ///
    /// The driver owns the memory. Dropping the driver stops the channel and returns the memory; if
    /// the channel will not stop, the memory is leaked.
    ///
    /// # Errors
    /// The buffer comes back with the errors of [`simple`](Self::simple) and [`DriverBuf::new`],
    /// [`Error::BlockSize`] for less than 128 bytes, and [`Error::Misaligned`] if its bus address
    /// is not a multiple of a descriptor's 32 bytes. `device` is dropped.
    ///
    /// # Safety
    /// As [`simple`](Self::simple).
    pub unsafe fn linked(device: D, descriptors: CpuBuf) -> Result<Self, Refused<CpuBuf>> {
        if let Err(error) = is_zdma(&device) {
            return Err(Refused::new(error, descriptors));
        }
        let (len_bytes, need_bytes) = (descriptors.len_bytes(), PAIRS_MIN * PAIR_BYTES);
        if len_bytes < need_bytes {
            return Err(Refused::new(
                Error::BlockSize { len_bytes, need_bytes, line_bytes: PAIR_BYTES },
                descriptors,
            ));
        }
        let descriptors = DriverBuf::new(descriptors, device.port(), regs::ADDR_BITS)?;
        let (addr, align_bytes) = (descriptors.addr_at(0).0, regs::DESCRIPTOR_BYTES);
        if !addr.is_multiple_of(align_bytes as u64) {
            // SAFETY: no device has its address.
            let buf = unsafe { descriptors.reclaim() };
            return Err(Refused::new(Error::Misaligned { addr, align_bytes }, buf));
        }
        Ok(Self { device, jobs: Jobs::new(Some(descriptors)) })
    }

    /// Writes the registers that no job changes, also after an external reset. The channel is
    /// stopped: they must not change while it is enabled.
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
            found => Err(Error::WrongDevice {
                device: "zdma",
                register: "ZDMA_CH_DATA_ATTR",
                expected: data,
                found,
            }),
        }
    }
}

/// Checks that the window is large enough for a ZDMA, and reads zero where a ZDMA does.
fn is_zdma(device: &impl Device) -> Result<()> {
    has_window(device, "zdma", regs::WINDOW_BYTES)?;
    regs::ZEROES.iter().try_for_each(|(name, register, zeroes)| {
        reads_zero("zdma", name, register.read(device), *zeroes)
    })
}

// SAFETY: 1. UG1085: a channel reads SIZE bytes at the source's address, and no others with
// over-fetch off, and writes as many at the destination's; `check` compared SIZE with both
// operands. In linked mode the descriptors do the same for each piece (`List`), and the channel
// also reads the descriptors, which the driver owns. 2. `poll` and `halt` trust STATUS. A channel
// that ends leaves its busy state only when all data is in the destination's memory ("Channel
// Disabled"). Each write has been answered then ("Total Transferred Bytes Overflow"). Without
// snooping the answer comes from memory, as AWCACHE asks; with it, from the snooping interconnect,
// after which every observer sees the write. The same register is trusted for a channel that was
// disabled because it did not end (`halt`). 3. No bytes are reported. 4. `check` reads no register.
// 5. The port belongs to the device. 6. The constructor's caller guarantees it. 7. The program
// writes an interrupt mask, and waits for what ends a job: EN, which the channel clears at its end,
// and STATUS. 8. Each poll has a limit. 9. Its fields hold no more than registers do.
unsafe impl<D: Device> Driver for Zdma<D> {
    forward!(|this| this.device => port, simulated, arm_irq);

    fn name(&self) -> &'static str {
        "zdma"
    }

    fn addr_bits(&self) -> u32 {
        regs::ADDR_BITS
    }

    fn operands(&self) -> &[OperandSpec] {
        const { &[OperandSpec::to_device(), OperandSpec::from_device()] }
    }

    fn depth(&self) -> usize {
        self.jobs.depth
    }

    fn check(&self, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        let [] = exactly(args)?;
        let [from, to] = exactly(operands)?;
        holds(to, from)?;
        within("bytes to copy", from.len_bytes as u64, 1_u8, self.jobs.longest())
    }

    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        let [from, to] = exactly(operands)?;
        self.jobs.push(slot, *from, *to, self.device.port().coherent)?;
        self.launch()
    }

    unsafe fn submit_more(&mut self, slot: usize, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        let [from, to] = exactly(operands)?;
        self.jobs.push(slot, *from, *to, self.device.port().coherent)
    }

    fn waits_for_doorbell(&self) -> bool {
        true
    }

    fn doorbell(&mut self) -> Result<()> {
        self.launch()
    }

    fn poll_again(&mut self) -> Result<Option<Completion>> {
        Ok(self.jobs.tell().map(Completion::of))
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

    /// Jobs of a list that ended before the stop are still reported.
    fn stop(&mut self) -> Result<()> {
        // If the interrupt's file fails, the channel is stopped all the same.
        let _ = self.list_ended(Duration::ZERO);
        self.halt()?;
        self.jobs.stopped();
        self.configure()
    }

    fn stop_program(&self) -> StopProgram {
        self.program()
    }
}

forward_as_fd!({D: Device} Zdma<D>, device: D);

impl<D: Device> Drop for Zdma<D> {
    /// Stops the channel. Returns the descriptors' memory only if it has stopped; otherwise leaks
    /// it.
    fn drop(&mut self) {
        if self.halt().is_ok() {
            // SAFETY: STATUS says that the channel is disabled, and it fetches descriptors only
            // while it is enabled.
            drop(self.jobs.memory.take().map(|descriptors| unsafe { descriptors.reclaim() }));
        }
    }
}
