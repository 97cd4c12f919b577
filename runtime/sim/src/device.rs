#![allow(
    unsafe_code,
    reason = "a device that lies about being finished corrupts memory, also a simulated one"
)]
//! A simulated device: a register window and its interrupt, over a model of the IP core.

use super::board::no_memory;
use super::state::Master;
use super::{Model, SimBoard, SimBus};
use contigo_core::hw::Device;
use contigo_core::hw::mmio::Mmio;
use contigo_core::hw::wait::Wait;
use contigo_core::mem::{Port, SimulatedDevice, WrongAccesses};
use contigo_core::trace::stats::Counter;
use contigo_core::types::shared::Shared;
use contigo_core::types::{Error, Result, lock};
use core::fmt;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use spin::Mutex;

/// The board's side of a simulated device, behind a port. It is a handle: clones refer to the same
/// device. It is not a [`Device`] itself: [`window`](Self::window) gives its registers and
/// interrupt to one driver, and the reset line stays here.
///
/// The model lies in the device's own pages. The last handle or window drops it.
pub struct SimDevice<M> {
    device: Shared<OnPort<M>>,
}

/// A model on a board, behind a port: what the handles share.
struct OnPort<M> {
    board: SimBoard,
    port: Port,
    /// Unique in this process.
    number: u32,
    window_bytes: usize,
    model: Mutex<M>,
    /// A driver has the window.
    driven: AtomicBool,
    /// A register write was lost: the device does not answer until a reset.
    gone: AtomicBool,
    /// Register reads, and writes. No lock: a wait for it would have no bound.
    reads: Counter,
    writes: Counter,
    waits: Counter,
}

/// How often registers were read and written, and how often the interrupt was waited for, by the
/// driver that has the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimAccesses {
    /// Registers read.
    pub reads: u64,
    /// Registers written.
    pub writes: u64,
    /// Waits for the interrupt, or for a time.
    pub waits: u64,
}

/// A simulated device's registers and interrupt line: [`Device`] for one driver. It keeps the
/// device and the board alive. If it is forgotten, they live for ever, and the device never gets
/// another driver.
pub struct SimWindow<M> {
    device: SimDevice<M>,
}

impl<M: Model> SimDevice<M> {
    /// The core as it is built by default, on `board`, reaching memory through `port`.
    ///
    /// # Panics
    /// As [`with_model`](Self::with_model).
    #[must_use]
    pub fn new(board: &SimBoard, port: Port) -> Self
    where
        M: Default,
    {
        Self::with_model(board, port, M::default())
    }

    /// `model` on `board`, reaching memory through `port`, on whatever bus that port is.
    ///
    /// # Panics
    /// Where [`try_with_model`](Self::try_with_model) is an error.
    pub fn with_model(board: &SimBoard, port: Port, model: M) -> Self {
        Self::try_with_model(board, port, model).unwrap_or_else(|error| no_memory(error))
    }

    /// As [`with_model`](Self::with_model), for a program that continues if there is no memory for
    /// the model.
    ///
    /// # Errors
    /// As [`SimBoard::try_with`].
    pub fn try_with_model(board: &SimBoard, port: Port, model: M) -> Result<Self> {
        Ok(Self { device: Shared::new(OnPort::new(board, port, model))? })
    }

    /// As [`with_model`](Self::with_model), in memory that the program gives up for good, for a
    /// processor without a kernel: the model's size, and 512 bytes.
    ///
    /// # Errors
    /// [`Error::Exhausted`]: `memory` is too small.
    pub fn in_memory(
        board: &SimBoard,
        port: Port,
        model: M,
        memory: &'static mut [MaybeUninit<u8>],
    ) -> Result<Self> {
        Ok(Self { device: Shared::given(OnPort::new(board, port, model), memory)? })
    }

    /// Its registers and interrupt, for one driver at a time.
    ///
    /// # Errors
    /// [`Error::HasDriver`] while a driver has them.
    pub fn window(&self) -> Result<SimWindow<M>> {
        if self.device.driven.swap(true, Ordering::Acquire) {
            Err(Error::HasDriver)
        } else {
            Ok(SimWindow { device: self.clone() })
        }
    }

    /// Pulls the reset line: the only thing that stops a stuck device.
    ///
    /// # Errors
    /// [`Error::Contended`].
    pub fn reset(&self) -> Result<()> {
        lock::acquire(&self.device.model)?.reset();
        self.device.gone.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Reads the model, for what no register shows, such as how many packets a camera lost. A test
    /// that makes one thing go wrong gives its model a `Cell`, and sets it here.
    ///
    /// # Errors
    /// [`Error::Contended`].
    pub fn model<R>(&self, look: impl FnOnce(&M) -> R) -> Result<R> {
        Ok(look(&*lock::acquire(&self.device.model)?))
    }

    /// How often its registers were read and written, and its interrupt waited for, so far.
    #[must_use]
    pub fn accesses(&self) -> SimAccesses {
        let OnPort { reads, writes, waits, .. } = &*self.device;
        SimAccesses { reads: reads.get(), writes: writes.get(), waits: waits.get() }
    }

    /// Lets `time_us` of virtual time pass: the device runs, and nothing accesses it.
    ///
    /// # Errors
    /// [`Error::Contended`].
    pub fn run_for(&self, time_us: u32) -> Result<()> {
        self.with(|model, bus| {
            bus.run_until(bus.now_ns().saturating_add(u64::from(time_us) * 1_000));
            model.advance(bus);
        })
    }

    /// As its window's [`Mmio::len_bytes`].
    pub fn len_bytes(&self) -> usize {
        self.device.window_bytes
    }

    fn answers(&self, offset: usize) -> bool {
        let OnPort { window_bytes, gone, .. } = &*self.device;
        offset.is_multiple_of(4) && offset < *window_bytes && !gone.load(Ordering::Relaxed)
    }

    /// As its window's [`Mmio::read32`], beside the driver that has the window: as the kernel reads
    /// the registers of a device whose program is gone.
    pub fn read32(&self, offset: usize) -> u32 {
        if !self.answers(offset) {
            return u32::MAX;
        }
        self.device.reads.add(1);
        let read = self.with(|model, bus| {
            bus.tick();
            model.advance(bus);
            model.read32(offset, bus)
        });
        read.unwrap_or(u32::MAX)
    }

    /// As its window's [`Mmio::write32`].
    ///
    /// # Safety
    /// As [`Mmio::write32`]; and the driver that has the window writes nothing meanwhile.
    pub unsafe fn write32(&self, offset: usize, value: u32) {
        if !self.answers(offset) {
            return;
        }
        self.device.writes.add(1);
        let written = self.with(|model, bus| {
            bus.tick();
            model.advance(bus);
            model.write32(offset, value, bus);
        });
        if written.is_err() {
            // The next write might start a job with an old pointer.
            self.device.gone.store(true, Ordering::Relaxed);
        }
    }

    /// The board's time, in microseconds: as its window's [`Wait::now_us`].
    pub fn now_us(&self) -> u64 {
        self.device.board.now_ns() / 1_000
    }

    /// As its window's [`Wait::wait_at_most`].
    pub(crate) fn wait_at_most(&self, timeout_us: u32) -> Result<()> {
        self.device.waits.add(1);
        self.with(|model, bus| {
            let deadline_ns = bus.now_ns().saturating_add(u64::from(timeout_us) * 1_000);
            let until_ns = model.run(deadline_ns, bus).min(deadline_ns);
            // A line that is already high ends the wait at once, and polling it costs time all the
            // same.
            bus.run_until(until_ns);
            bus.tick();
            model.advance(bus);
        })
    }

    fn with<R>(&self, act: impl FnOnce(&mut M, &mut SimBus<'_>) -> R) -> Result<R> {
        // Always model before board, so that two threads cannot each hold what the other wants.
        let mut model = lock::acquire(&self.device.model)?;
        let mut state = self.device.board.lock()?;
        let master = Master { port: &self.device.port, device: self.device.number };
        Ok(act(&mut model, &mut SimBus::on_board(&mut state, master, self.device.board.faults())))
    }
}

impl<M: Model> OnPort<M> {
    fn new(board: &SimBoard, port: Port, model: M) -> Self {
        let port = Port { bus: board.bus(), ..port };
        Self {
            board: board.clone(),
            port,
            number: next_number(),
            window_bytes: model.window_bytes(),
            model: Mutex::new(model),
            driven: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            reads: Counter::default(),
            writes: Counter::default(),
            waits: Counter::default(),
        }
    }
}

impl<M> Clone for SimDevice<M> {
    fn clone(&self) -> Self {
        Self { device: self.device.clone() }
    }
}

/// The next device's number. After four milliards of devices the numbers repeat, and two devices of
/// one number on one board are counted together.
fn next_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl<M: Model> SimulatedDevice for SimDevice<M> {
    fn number(&self) -> u32 {
        self.device.number
    }

    fn wrong_accesses(&self) -> Result<WrongAccesses> {
        self.device.board.wrong_accesses(Some(self.device.number))
    }
}

impl<M: Model> SimWindow<M> {
    /// Reads the model behind it.
    ///
    /// # Errors
    /// [`Error::Contended`].
    pub(crate) fn ask<R>(&self, act: impl FnOnce(&M) -> R) -> Result<R> {
        Ok(act(&*lock::acquire(&self.device.device.model)?))
    }
}

impl<M> Drop for SimWindow<M> {
    /// Runs before the handle is dropped, which may be the last.
    fn drop(&mut self) {
        self.device.device.driven.store(false, Ordering::Release);
    }
}

// SAFETY: 1. The registers belong to the model, which is one device; if the model cannot be locked,
// a read returns all ones, which no driver takes for a finished device. 2. `SimDevice::window`
// gives out one at a time.
unsafe impl<M: Model> Mmio for SimWindow<M> {
    fn len_bytes(&self) -> usize {
        self.device.len_bytes()
    }

    fn read32(&self, offset: usize) -> u32 {
        self.device.read32(offset)
    }

    unsafe fn write32(&self, offset: usize, value: u32) {
        // SAFETY: the caller's promise.
        unsafe { self.device.write32(offset, value) }
    }
}

impl<M: Model> Wait for SimWindow<M> {
    fn now_us(&self) -> u64 {
        self.device.now_us()
    }

    fn wait_at_most(&self, timeout_us: u32) -> Result<(), Error> {
        self.device.wait_at_most(timeout_us)
    }
}

// SAFETY: the board routes every access of the model through this port.
unsafe impl<M: Model> Device for SimWindow<M> {
    fn port(&self) -> &Port {
        &self.device.device.port
    }

    fn simulated(&self) -> Option<&dyn contigo_core::mem::SimulatedDevice> {
        Some(&self.device)
    }
}

impl<M> fmt::Debug for SimWindow<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimWindow").field("device", &self.device).finish()
    }
}

impl<M> fmt::Debug for SimDevice<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimDevice").field("port", &self.device.port.name).finish_non_exhaustive()
    }
}
