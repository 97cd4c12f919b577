#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! The widget, a core that copies: `LEN` bytes from `SRC` to `DST`.
//!
//! Imports: `types`, `mem`, `hw`, `job`, `sim`.

#[cfg(all(feature = "linux", target_os = "linux"))]
pub(crate) mod registry;

use crate::{
    hw::{
        Device,
        wait::{poll_every, poll_until},
        mmio::{Pointer, ReadOnly, ReadWrite, Register},
    },
    job::{Completion, Driver, OperandSpec, exactly},
    mem::{DevSlice, Port, SimulatedDevice},
    types::{Error, Result},
};
use core::time::Duration;

const SRC: Pointer = Pointer::at(0x00);
const DST: Pointer = Pointer::at(0x08);
/// Written: so many bytes, and go.
const LEN: Register<ReadWrite> = Register::at(0x10);
/// Bit 0: idle.
const STATUS: Register<ReadOnly> = Register::at(0x14);
/// Written: stop.
const STOP: Register<ReadWrite> = Register::at(0x18);
const LEN_MAX: usize = 1 << 20;

/// The driver.
#[derive(Debug)]
pub struct Widget<D> {
    device: D,
    busy: bool,
}

impl<D: Device> Widget<D> {
    /// # Safety
    /// The window belongs to a widget, and nobody else drives it.
    pub const unsafe fn open(device: D) -> Self {
        Self { device, busy: false }
    }
}

const fn is_idle(status: u32) -> bool {
    status != u32::MAX && status & 1 != 0
}

// SAFETY: it copies LEN bytes, which `check` found in both operands, and is idle after the last
// write.
unsafe impl<D: Device> Driver for Widget<D> {
    fn name(&self) -> &'static str {
        "widget"
    }
    fn port(&self) -> &Port {
        self.device.port()
    }
    fn simulated(&self) -> Option<&dyn SimulatedDevice> {
        self.device.simulated()
    }
    fn addr_bits(&self) -> u32 {
        64
    }
    fn operands(&self) -> &[OperandSpec] {
        const { &[OperandSpec::to_device().at_most(LEN_MAX), OperandSpec::from_device()] }
    }
    fn check(&self, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        let [from, to] = exactly(operands)?;
        let need_bytes = from.len_bytes as u64;
        if to.len_bytes < from.len_bytes { Err(Error::BufferSize { index: 1, need_bytes, have_bytes: to.len_bytes }) } else { Ok(()) }
    }
    unsafe fn submit(&mut self, _slot: usize, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        let [from, to] = exactly(operands)?;
        self.busy = true;
        // SAFETY: both operands were handed over, and `check` found the second large enough.
        unsafe {
            SRC.write(&self.device, from.addr);
            DST.write(&self.device, to.addr);
            LEN.write(&self.device, u32::try_from(from.len_bytes).unwrap_or(0));
        }
        Ok(())
    }
    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        if !self.busy {
            return Ok(None);
        }
        let done = poll_until(&self.device, timeout, |device| is_idle(STATUS.read(device)))?;
        self.busy = !done;
        Ok(done.then_some(Completion::of(0)))
    }
    fn stop(&mut self) -> Result<()> {
        // SAFETY: it starts nothing.
        unsafe { STOP.write(&self.device, 1) };
        let mut status = 0;
        let idle = poll_every(&self.device, 10, Duration::from_millis(10), |device| {
            status = STATUS.read(device);
            is_idle(status)
        })?;
        self.busy = false;
        if idle { Ok(()) } else { Err(Error::WillNotStop { device: "widget", status, waited_us: 10_000 }) }
    }
}

/// The model.
#[cfg(feature = "sim")]
pub use model::WidgetModel;

#[cfg(feature = "sim")]
mod model {
    use crate::{
        sim::{Model, SimBus},
        types::DevAddr,
    };

    /// A widget that takes 2 µs for a copy.
    #[derive(Debug, Default)]
    pub struct WidgetModel {
        words: [u32; 4],
        job: Option<(u64, u32)>,
    }

    // SAFETY: it touches the bytes that its registers name, before it is idle.
    unsafe impl Model for WidgetModel {
        const WINDOW_BYTES: usize = 0x1C;
        fn advance(&mut self, bus: &mut SimBus<'_>) {
            let Some((_, len)) = self.job.filter(|(at, _)| *at <= bus.now_ns()) else { return };
            let [from_low, from_high, to_low, to_high] = self.words.map(u64::from);
            for index in 0..u64::from(len) {
                let mut byte = [0];
                let _ = bus.read(DevAddr((from_high << 32 | from_low) + index), &mut byte);
                let _ = bus.write(DevAddr((to_high << 32 | to_low) + index), &byte);
            }
            self.job = None;
        }
        fn read32(&mut self, offset: usize, _: &mut SimBus<'_>) -> u32 {
            u32::from(offset == 0x14 && self.job.is_none())
        }
        fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
            match (offset, self.words.get_mut(offset / 4)) {
                (_, Some(word)) => *word = value,
                (0x10, _) => self.job = Some((bus.now_ns() + 2_000, value)),
                (0x18, _) => self.job = None,
                _ => {}
            }
        }
        fn irq_at_ns(&self) -> Option<u64> {
            self.job.map(|(at, _)| at)
        }
        fn reset(&mut self) {
            *self = Self::default();
        }
    }
}
