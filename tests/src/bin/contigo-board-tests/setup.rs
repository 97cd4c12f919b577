#![allow(
    unsafe_code,
    reason = "how each engine is wired is a fact about its board, which this file claims"
)]
//! Memory, an engine and what is to be done with both: types that differ for every pair, made here
//! and nowhere else.

use crate::machine::{Engine, Memory};
use contigo::drivers::pl330::{PROGRAM_BYTES, Pl330};
use contigo::drivers::zdma::Zdma;
use contigo::linux::dev_node::DevNode;
use contigo::linux::vfio::Interrupt;
use contigo::names::{Attach, OpenDevice};
use contigo::{Align, Bus, CpuBuf, Device, Driver, Error, Operand, Port, Queue, Region, Result};
use contigo_boards::DmaKind;
use contigo_exerciser::uio::ensure_at;
use contigo_exerciser::{Counted, Ground, IrqEvents, Line};
use contigo_testkit::edu::{Edu, Unwatched};
use std::sync::atomic::AtomicU64;

/// The most jobs in flight: as many as ZDMA's list is tested with. Those that an engine cannot take
/// yet wait in its queue.
pub(crate) const JOBS: usize = 8;
/// See [`Reach::DriverOnly`].
pub(crate) const DRIVER_REACH_BYTES: usize = 2 * Ground::DRIVER_BYTES;
/// The address lines of edu: its registers keep 32 bits.
const EDU_BITS: u32 = 32;
/// QEMU's default of its `dma_mask` (`docs/specs/edu.rst`).
const EDU_NARROW_BITS: u32 = 28;
/// QEMU's `virt` machine: PCI masters snoop (hw/arm/virt.c, `create_pcie`: the node is
/// `dma-coherent`), bus address = physical address where no SMMU is (`docs/system/arm/virt.rst`).
pub(crate) const VIRT_PCIE: Port = Port {
    name: "virt-pcie",
    bus: Bus::Soc,
    offset: 0,
    addr_bits: 64,
    window: (0, u64::MAX),
    coherent: true,
};

/// The same for a platform device of the module's: the kernel says whether that snoops.
pub(crate) fn virt_port(opened: &OpenDevice) -> Port {
    Port { coherent: opened.dev_node().is_none_or(DevNode::is_coherent), ..VIRT_PCIE }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) memory: Memory,
    pub(crate) engine: Engine,
    /// The engine's way to memory; the simulated board and VFIO know it themselves.
    pub(crate) port: Port,
    pub(crate) reach: Reach,
    /// The kernel has the program that stops the engine after a crash, where the module is there.
    pub(crate) armed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    All,
    /// Its first [`DRIVER_REACH_BYTES`], where a driver's own memory is; not what is taken after
    /// them.
    DriverOnly,
    /// The reach of edu with QEMU's default `dma_mask`: 28 address bits.
    Narrow,
}

impl Reach {
    /// `port`, as far as it reaches.
    fn limit(self, port: Port, region: &Region) -> Result<Port> {
        if self != Self::DriverOnly {
            return Ok(port);
        }
        let first = port.dev_addr(region.base(), DRIVER_REACH_BYTES)?.0;
        Ok(Port { window: (first, first + DRIVER_REACH_BYTES as u64 - 1), ..port })
    }
}

pub(crate) trait Bench {
    type Out;

    fn on<D: Driver>(self, region: &Region, queue: Queue<D>, line: Line<'_>) -> Self::Out;

    /// The same, for what needs to know that the engine is a PL330.
    ///
    /// # Errors
    /// The error of stopping the engine at first.
    fn on_pl330<D: Device>(
        self,
        region: &Region,
        driver: Pl330<D>,
        line: Line<'_>,
    ) -> Result<Self::Out>
    where
        Self: Sized,
    {
        Ok(self.on(region, Queue::new(driver, JOBS)?, line))
    }
}

impl Place {
    /// An engine with a memory, or why not. `lab`: this is an emulator, which has no caches.
    pub(crate) fn of(engine: &Engine, memory: &Memory, lab: bool) -> Result<Self, String> {
        if let Some(why) = memory.absent() {
            return Err(why);
        }
        let real = engine.port();
        let port = match (unmaintained(engine, memory), lab) {
            (false, _) => real,
            (true, true) => Port { name: "lab", coherent: true, ..real },
            (true, false) => {
                let why = "the caches of this memory cannot be maintained on this processor; \
                           in an emulator: --lab";
                return Err(why.into());
            }
        };
        Ok(Self { memory: *memory, engine: *engine, port, reach: Reach::All, armed: true })
    }

    /// The same with a reach that leaves out what is carved there.
    pub(crate) const fn out_of_reach(self) -> Self {
        let reach = match self.engine {
            Engine::Edu(_) => Reach::Narrow,
            _ => Reach::DriverOnly,
        };
        Self { reach, ..self }
    }

    /// Opens the memory and the engine, which waits by its interrupt or looks again and again, and
    /// runs `bench` on both. One opening serves both, where the memory belongs to the engine's
    /// device.
    ///
    /// # Errors
    /// The error of opening either.
    pub(crate) fn run<H: Bench>(&self, interrupt: bool, bench: H) -> Result<H::Out> {
        const NOWHERE: Error =
            Error::NotFound { what: "memory for this engine", among: contigo::types::Among::of(0) };
        let (memory, engine) =
            (self.memory.name().ok_or(NOWHERE)?, self.engine.device().ok_or(NOWHERE)?);
        let name = self.memory.device().filter(|owner| owner.kind() != "sim").unwrap_or(engine);
        let device = name.open()?;
        if let Engine::Soc { found, .. } = self.engine {
            ensure_at(&device, found.engine.registers)?;
        }
        let region = Region::new(device.memory(memory, self.memory.region_bytes())?)?;
        let (task, came) = (Task { place: self, device: &device, bench }, AtomicU64::new(0));
        if let Some(vfio) = device.vfio() {
            let wanted = if interrupt { Interrupt::Any } else { Interrupt::Polled };
            let device = crate::vfio::open_device(vfio, wanted)?;
            if interrupt && device.interrupt() == Interrupt::Polled {
                // Every pause between two looks would count as an interrupt.
                return Err(Error::NotFound { what: "interrupt of edu", among: 0.into() });
            }
            // SAFETY: `machine.rs` found an edu at this address.
            return unsafe { task.with_edu(&region, device) };
        }
        let port = device.port().unwrap_or(self.port);
        let port = self.reach.limit(device.seen_through(port), &region)?;
        // SAFETY: the board's constant says how the engine at these registers reaches memory, and
        // no IOMMU is before it on these boards. Or `machine.rs` found no IOMMU group before edu,
        // or the module's word is taken; or `--lab` says that nothing here has caches.
        let attached = unsafe { device.attach_wired(port, Attach { window: 0, interrupt })? };
        match self.engine {
            // SAFETY: `machine.rs` found it by edu's vendor and device, and it is locked.
            Engine::Edu(_) | Engine::EduVfio(_) => unsafe { task.with_edu(&region, attached) },
            // They are no engines of copies: `vfio/` and `gemm8/` have their tests.
            Engine::Litepcie(_) | Engine::Gemm8(_) | Engine::Gated(_) => {
                Err(Error::NotFound { what: "copy engine", among: 0.into() })
            }
            Engine::Sim(kind) => {
                let counted = Counted::new(attached, &came);
                // SAFETY: the model is a `kind`.
                unsafe { task.with_kind(&region, counted, kind, false, Line::Counted(&came)) }
            }
            Engine::Soc { found, linked, .. } => {
                let events = IrqEvents::of(&attached)?;
                let line = events.as_ref().map_or(Line::None, Line::Events);
                // SAFETY: the board's constant says which engine is at the address of these
                // registers; an opened device is locked.
                unsafe { task.with_kind(&region, attached, found.engine.kind, linked, line) }
            }
        }
    }
}

/// The buffers of a job that was not done, which the stopped device has given back.
pub(crate) fn given_back<const N: usize>(operands: Option<[Operand; N]>) -> Option<[CpuBuf; N]> {
    let buffers: Option<Vec<_>> = operands?.into_iter().map(|one| one.into_cpu().ok()).collect();
    buffers?.try_into().ok()
}

/// Can neither the kernel nor this program maintain this memory's caches for this engine? A
/// dma-heap's on armv7: a test there needs an emulator, which has no caches, and a coherent port.
pub(crate) fn unmaintained(engine: &Engine, memory: &Memory) -> bool {
    memory.is("dma-heap") && cfg!(target_arch = "arm") && !engine.port().coherent
}

struct Task<'p, H> {
    place: &'p Place,
    device: &'p OpenDevice,
    bench: H,
}

impl<H: Bench> Task<'_, H> {
    /// An engine that was stopped; then what stops it is left with the kernel, before its first
    /// job, and only then may a PCI function master the bus.
    fn queue<D: Driver>(&self, driver: D) -> Result<Queue<D>> {
        let queue = Queue::new(driver, JOBS)?;
        if let Some(dev_node) = self.device.dev_node().filter(|_| self.place.armed) {
            // SAFETY: the contigo device was found by the address of this engine's registers, which
            // are its first window; it is dropped after it.
            unsafe { queue.arm(dev_node, 0)? };
        }
        // SAFETY: `Queue::new` has stopped it.
        unsafe { self.device.enable_bus_master()? };
        Ok(queue)
    }

    /// The same for a driver that goes on without a queue.
    fn arm(&self, driver: &impl Driver) -> Result<()> {
        match self.device.dev_node().filter(|_| self.place.armed) {
            None => Ok(()),
            // SAFETY: as in `queue`; the driver's steps only stop it.
            Some(dev_node) => unsafe { dev_node.arm(&driver.stop_program(), 0) },
        }
    }

    /// # Safety
    /// `device` is a `kind`, and no other code drives it.
    unsafe fn with_kind<D: Device>(
        self,
        region: &Region,
        device: D,
        kind: DmaKind,
        linked: bool,
        line: Line<'_>,
    ) -> Result<H::Out> {
        match (kind, linked) {
            (DmaKind::Pl330, _) => {
                let program = region.alloc(PROGRAM_BYTES, Align::PAGE)?;
                // SAFETY: the caller's promise.
                let driver = unsafe { Pl330::open(device, program)? };
                self.arm(&driver)?;
                self.bench.on_pl330(region, driver, line)
            }
            (DmaKind::Zdma, linked) => {
                let driver = match linked {
                    // SAFETY: the caller's promise.
                    false => unsafe { Zdma::simple(device)? },
                    // SAFETY: the caller's promise.
                    true => unsafe {
                        Zdma::linked(device, region.alloc(Ground::DRIVER_BYTES, Align::PAGE)?)?
                    },
                };
                let queue = self.queue(driver)?;
                Ok(self.bench.on(region, queue, line))
            }
        }
    }

    /// # Safety
    /// `device` is an edu whose mask has at least [`EDU_BITS`] bits, or [`EDU_NARROW_BITS`] where
    /// the reach is narrow, and no other code drives it.
    unsafe fn with_edu<D: Device>(self, region: &Region, device: D) -> Result<H::Out> {
        let came = AtomicU64::new(0);
        let (device, line) = (Counted::new(device, &came), Line::Counted(&came));
        if self.place.reach == Reach::Narrow {
            // SAFETY: the caller's promise.
            let edu: Edu<_, EDU_NARROW_BITS, Unwatched> = unsafe { Edu::open(device)? };
            let queue = self.queue(edu)?;
            return Ok(self.bench.on(region, queue, line));
        }
        // SAFETY: the caller's promise.
        let queue = self.queue(unsafe { Edu::<_, EDU_BITS, Unwatched>::open(device)? })?;
        Ok(self.bench.on(region, queue, line))
    }
}
