#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! The driver: a ring of descriptors, as many jobs in flight as it has.

use super::{CameraModel, regs};
use contigo::{
    Completion, CpuBuf, DevSlice, Device, Driver, DriverBuf, Error, OperandSpec, Port, Result, StopProgram, StopStep, TypedDriver, exactly,
    sim::SimWindow,
    wait::{poll_every, poll_until},
};
use std::time::Duration;

/// The bus address of a descriptor or a buffer has so many bits, as the core is built here.
const ADDR_BITS: u32 = 32;
/// How long stopping waits for the packet under way, and once more for the reset. 4 KiB take 10 µs
/// at 400 MB/s; the limit is a hundred times that, for an interconnect that others congest.
const STOP_US: u32 = 1_000;
/// Between two looks while it waits.
const STOP_STEP_US: u32 = 1;

/// The driver of a receive channel. `'p` is how long its descriptors' memory lives.
///
/// | operand | what | direction |
/// |---|---|---|
/// | packet | one packet, from its beginning; at least the longest that comes | from the device |
///
/// `Completion::status` is the descriptor's STATUS. Packets end in order. [`Driver::ran_dry`]
/// counts how often a packet's buffer came when the channel had none left, which its Idle bit
/// tells.
#[derive(Debug)]
pub struct Camera<'p, D: Device> {
    device: D,
    /// `None` only while it is dropped.
    ring: Option<DriverBuf<'p>>,
    operand: [OperandSpec; 1],
    /// How far apart descriptors lie: whole cache lines.
    stride: usize,
    depth: usize,
    /// The oldest slot that was not told.
    oldest: usize,
    in_flight: usize,
    /// Between the first submit and a stop.
    runs: bool,
    ran_dry: u64,
    looks: u64,
}

/// A descriptor's report on its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketReport {
    /// It has the packet's first byte.
    pub first: bool,
    /// It has the packet's last byte.
    pub last: bool,
}

impl<'p, D: Device> Camera<'p, D> {
    /// The driver of `device`, with `depth` descriptors in `descriptors`: a cache line each, and 64
    /// bytes at least.
    ///
    /// # Errors
    /// [`Error::RegisterWindow`]; [`Error::BlockSize`] where the memory is too small;
    /// [`Error::Argument`] for a depth of 0. [`Error::Misaligned`] where the first descriptor has
    /// no bus address that is a multiple of 64. An error of [`DriverBuf::new`].
    ///
    /// # Safety
    /// The window belongs to an AXI DMA with scatter-gather and a receive channel, built for
    /// addresses of 32 bits and lengths of 26. Nobody else drives it while this value lives.
    pub unsafe fn open(device: D, descriptors: CpuBuf<'p>, depth: usize) -> Result<Self> {
        let (need_bytes, have_bytes) = (regs::WINDOW_BYTES, device.len_bytes());
        if have_bytes < need_bytes {
            return Err(Error::RegisterWindow { device: "camera", need_bytes, have_bytes });
        }
        let ring = DriverBuf::new(descriptors, device.port(), ADDR_BITS)?;
        let (stride, addr, len_bytes) = (ring.stride(regs::DESCRIPTOR_BYTES), ring.addr_at(0).0, ring.len_bytes());
        let need_bytes = stride.saturating_mul(depth);
        let error = match depth {
            0 => Some(Error::Argument { name: "depth", value: 0, min: 1, max: (len_bytes / stride) as u64, multiple_of: 1 }),
            _ if need_bytes > len_bytes => Some(Error::BlockSize { len_bytes, need_bytes, line_bytes: stride }),
            _ if addr % regs::DESCRIPTOR_BYTES as u64 != 0 => Some(Error::Misaligned { addr, align_bytes: regs::DESCRIPTOR_BYTES }),
            _ => None,
        };
        let operand = [OperandSpec::from_device().at_most(regs::BYTES_MASK as usize)];
        let (oldest, in_flight, runs, ran_dry, looks) = (0, 0, false, 0, 0);
        let mut camera = Self { device, ring: Some(ring), operand, stride, depth, oldest, in_flight, runs, ran_dry, looks };
        match error {
            Some(error) => {
                camera.give_back_ring();
                Err(error)
            }
            None => Ok(camera),
        }
    }

    /// The descriptors' memory, to whoever wants it next. The channel has stopped, or was never
    /// told.
    fn give_back_ring(&mut self) {
        if let Some(ring) = self.ring.take() {
            // SAFETY: no channel fetches from it.
            drop(unsafe { ring.release() });
        }
    }

    /// How often it looked at a descriptor: on a port that does not snoop, a sync each.
    #[must_use]
    pub const fn looks(&self) -> u64 {
        self.looks
    }

    /// The bus address of slot `slot`'s descriptor.
    fn addr(&self, slot: usize) -> u64 {
        self.ring.as_ref().map_or(u64::MAX, |ring| ring.addr_at(slot * self.stride).0)
    }

    const fn after(&self, slot: usize) -> usize {
        if slot + 1 >= self.depth { 0 } else { slot + 1 }
    }

    /// The oldest packet's descriptor says that it is done.
    fn completed(&mut self, status: u32) -> Completion {
        let slot = self.oldest;
        (self.oldest, self.in_flight) = (self.after(slot), self.in_flight - 1);
        Completion { status, ..Completion::of(slot).with_bytes((status & regs::BYTES_MASK) as usize) }
    }
}

impl<'d, 'p> Camera<'p, SimWindow<'d, CameraModel>> {
    /// As [`open`](Self::open), and safe: the type of the window says what is behind it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_simulated(window: SimWindow<'d, CameraModel>, descriptors: CpuBuf<'p>, depth: usize) -> Result<Self> {
        // SAFETY: the model is this channel, and has one window at a time.
        unsafe { Self::open(window, descriptors, depth) }
    }
}

// SAFETY: 1. PG021: the channel writes a packet into the buffer of its descriptor, at most as many
// bytes as the descriptor says. `submit` takes that length from the operand. The channel reads and
// writes the descriptors, which are the driver's own, and goes no further than TAILDESC. 2. A
// descriptor's Cmplt is written after the last byte of its packet was answered; no other look is
// believed, nor one with an error. Halted, and then the end of the soft reset, come when all
// transfers have ended ("S2MM_DMASR", "Reset"). 3. The transferred bytes are the descriptor's own
// count. 4. `check` touches nothing; `poll` acknowledges interrupts. 5. The port is the device's,
// and the rest never changes. 6. `open`'s caller promised it. 7. The program writes 0 and the reset
// into DMACR. 8. Every wait is bounded.
unsafe impl<D: Device> Driver for Camera<'_, D> {
    fn name(&self) -> &'static str {
        "camera"
    }

    fn port(&self) -> &Port {
        self.device.port()
    }

    fn addr_bits(&self) -> u32 {
        ADDR_BITS
    }

    fn operands(&self) -> &[OperandSpec] {
        &self.operand
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn check(&self, _: &[DevSlice], _: &[u32]) -> Result<()> {
        Ok(())
    }

    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        let [packet] = exactly(operands)?;
        let (at, next, runs) = (self.addr(slot), self.addr(self.after(slot)), self.runs);
        let Some(ring) = &mut self.ring else { return Err(Error::Busy) };
        let len_bytes = u32::try_from(packet.len_bytes).unwrap_or(u32::MAX);
        // SAFETY: the slot is free, so the channel stopped at an earlier descriptor's tail, or is
        // halted.
        unsafe { ring.write(slot * self.stride, &regs::descriptor(next, packet.addr.0, len_bytes))? };
        if !runs {
            (self.oldest, self.in_flight) = (slot, 0);
        } else if is_idle(regs::DMASR.read(&self.device)) {
            self.ran_dry += 1;
        }
        let low = |addr: u64| u32::try_from(addr).unwrap_or(u32::MAX);
        // SAFETY: the descriptors from the first to this one name buffers that were handed over.
        // The channel starts at the first, and ends at the tail.
        unsafe {
            if !runs {
                regs::CURDESC.write(&self.device, low(at));
                regs::DMACR.write(&self.device, regs::RUN | regs::IRQ_ENABLE | regs::THRESHOLD_1);
            }
            regs::TAILDESC.write(&self.device, low(at));
        }
        (self.runs, self.in_flight) = (true, self.in_flight + 1);
        Ok(())
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        if self.in_flight == 0 {
            return Ok(None);
        }
        let (runs, oldest) = (self.runs, self.addr(self.oldest));
        let at = self.oldest * self.stride + regs::STATUS_AT;
        let Some(ring) = &mut self.ring else { return Ok(None) };
        let mut look = || {
            let mut words = [0];
            self.looks += 1;
            ring.read(at, &mut words).map(|()| words[0])
        };
        if !runs {
            // Stopped: nothing changes any more, and one look says all.
            let status = look()?;
            if !is_good(status) {
                self.in_flight = 0;
                return Ok(None);
            }
            return Ok(Some(self.completed(status)));
        }
        let mut found = Ok(None);
        poll_until(&self.device, timeout, |device| {
            let channel = regs::DMASR.read(device);
            if channel != u32::MAX && channel & regs::IRQS != 0 {
                // SAFETY: acknowledging moves no data.
                unsafe { regs::DMASR.write(device, channel & regs::IRQS) };
            }
            let ended = channel & (regs::IDLE | regs::HALTED | regs::ERRORS) != 0;
            // The register first: each look at a descriptor is a sync.
            if channel == u32::MAX || !ended && u64::from(regs::CURDESC.read(device)) == oldest {
                found = if channel == u32::MAX { Err(fault(channel)) } else { Ok(None) };
                return found.is_err();
            }
            found = look().and_then(|status| match status {
                status if is_good(status) => Ok(Some(status)),
                // Maybe after the channel's status was read.
                status if status & regs::FAILED != 0 => Err(fault(regs::DMASR.read(device))),
                // The packets before the error were told.
                _ if channel & (regs::HALTED | regs::ERRORS) != 0 => Err(fault(channel)),
                // CURDESC moved on before the status was written.
                _ => Ok(None),
            });
            !matches!(found, Ok(None))
        })?;
        Ok(found?.map(|status| self.completed(status)))
    }

    fn stop(&mut self) -> Result<()> {
        let mut status = 0;
        // SAFETY: a channel that does not run starts nothing.
        unsafe { regs::DMACR.write(&self.device, 0) };
        // An interrupt's file that fails only ends the waiting; the reset's end counts.
        let _ = poll_every(&self.device, STOP_STEP_US, Duration::from_micros(STOP_US.into()), |device| {
            status = regs::DMASR.read(device);
            status & (regs::HALTED | regs::RESERVED) == regs::HALTED
        });
        // SAFETY: as above.
        unsafe { regs::DMACR.write(&self.device, regs::RESET) };
        let mut halted = false;
        let _ = poll_every(&self.device, STOP_STEP_US, Duration::from_micros(STOP_US.into()), |device| {
            status = regs::DMASR.read(device);
            halted = regs::CONTROL.read(device) & regs::RESET == 0 && status & (regs::HALTED | regs::RESERVED) == regs::HALTED;
            halted
        });
        if !halted {
            return Err(Error::WillNotStop { device: "camera", status, waited_us: 2 * STOP_US });
        }
        self.runs = false;
        Ok(())
    }

    /// As `stop`: it is asked to halt, and reset where it does not.
    fn stop_program(&self) -> StopProgram {
        let (control, status) = (regs::DMACR.offset(), regs::DMASR.offset());
        let halted = StopStep::poll_until(status, regs::HALTED | regs::RESERVED, regs::HALTED, STOP_US);
        let over = StopStep::poll_until(control, regs::RESET, 0, STOP_US);
        let ask = StopProgram::new(&[StopStep::write(control, u32::MAX, 0), halted]);
        let reset = StopProgram::new(&[StopStep::write(control, u32::MAX, regs::RESET), over, halted]);
        ask.and_then(|ask| ask.or_else(&reset?)).unwrap_or_default()
    }

    fn arm_irq(&self) -> Result<Option<i32>> {
        self.device.arm_irq()
    }

    fn ran_dry(&self) -> Option<u64> {
        Some(self.ran_dry)
    }
}

impl<D: Device> TypedDriver<1> for Camera<'_, D> {
    type Args = ();
    type Words = [u32; 0];
    type Report = PacketReport;

    fn words((): &()) -> [u32; 0] {
        []
    }

    fn report(&self, completion: &Completion) -> PacketReport {
        PacketReport { first: completion.status & regs::FIRST != 0, last: completion.status & regs::LAST != 0 }
    }
}

impl<D: Device> Drop for Camera<'_, D> {
    /// Stops the channel and gives the descriptors' memory back, or leaks it.
    fn drop(&mut self) {
        if self.ring.is_some() && self.stop().is_ok() {
            self.give_back_ring();
        }
    }
}

/// Does a descriptor say that its packet is in its buffer? One that failed says Cmplt too.
const fn is_good(status: u32) -> bool {
    status & (regs::COMPLETE | regs::FAILED) == regs::COMPLETE
}

const fn is_idle(status: u32) -> bool {
    status & (regs::IDLE | regs::RESERVED) == regs::IDLE
}

const fn fault(status: u32) -> Error {
    Error::Fault { device: "camera", status, what: regs::describe(status) }
}
