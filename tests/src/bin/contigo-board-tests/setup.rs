#![allow(unsafe_code, reason = "how each engine is wired is a fact about its board, which this file claims")]
//! Memory, an engine and what is to be done with both: types that differ for every pair, made here and nowhere else.

use crate::machine::{Engine, Memory};
use contigo::{
    Accelerator, Align, Backend, Bus, BusMaster, Device, DmaHeap, Error, HugeTlb, KernelPort, PciFunction, Port, Region, Result, UDmaBuf,
    Uio,
    drivers::{
        pl330::{PROGRAM_BYTES, Pl330, SimPl330},
        zdma::{SimZdma, Zdma},
    },
    linux::vfio::{Interrupt, Vfio},
    sim::SimBoard,
};
use contigo_boards::DmaKind;
use contigo_testkit::{
    edu::{Edu, Unwatched},
    exercise::{Counted, Ground, UioEvents},
};
use std::{
    os::fd::AsFd,
    sync::atomic::{AtomicU64, Ordering},
};

/// What a driver may carve beside the slots: a PL330's program, ZDMA's descriptors.
const DRIVER_BYTES: usize = 16 * 1024;
/// All that is asked of memory.
pub(crate) const REGION_BYTES: usize = Ground::WHOLE_BYTES + DRIVER_BYTES + 4096;
/// See [`Reach::DriverOnly`].
pub(crate) const DRIVER_REACH_BYTES: usize = 2 * DRIVER_BYTES;
/// The address lines of edu: its registers keep 32 bits.
const EDU_BITS: u32 = 32;
/// Its mask where QEMU is told nothing (`docs/specs/edu.rst`).
const EDU_NARROW_BITS: u32 = 28;
/// QEMU's `virt` machine: PCI masters snoop (hw/arm/virt.c, `create_pcie`: the node is `dma-coherent`), bus address = physical
/// address where no SMMU is (`docs/system/arm/virt.rst`).
pub(crate) const VIRT_PCIE: Port =
    Port { name: "virt-pcie", bus: Bus::Soc, offset: 0, addr_bits: 64, window: (0, u64::MAX), coherent: true };

/// One memory with one engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) memory: Memory,
    pub(crate) engine: Engine,
    /// The engine's way to memory; the simulated board and VFIO know it themselves.
    pub(crate) port: Port,
    pub(crate) reach: Reach,
    /// What stops the engine after a crash is left with the kernel, where the module is there.
    pub(crate) armed: bool,
}

/// How much of the memory the engine reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// All of it.
    All,
    /// Its first [`DRIVER_REACH_BYTES`], where a driver's own memory is; not what is carved after them.
    DriverOnly,
    /// What edu reaches where QEMU is told nothing: 28 address bits.
    Narrow,
}

impl Reach {
    /// `port`, as far as it reaches.
    fn limit<B: Backend>(self, port: Port, region: &Region<B>) -> Result<Port> {
        if self != Self::DriverOnly {
            return Ok(port);
        }
        let first = port.dev_addr(region.base(), DRIVER_REACH_BYTES)?.0;
        Ok(Port { window: (first, first + DRIVER_REACH_BYTES as u64 - 1), ..port })
    }
}

/// What is known of an engine's interrupt.
#[derive(Debug)]
pub(crate) enum Line<'l> {
    /// It is not asked for.
    None,
    /// It can be waited for before the engine is looked at.
    Events(&'l UioEvents),
    /// Waits that it ended are counted.
    Counted(&'l AtomicU64),
}

impl Line<'_> {
    /// How many interrupts ended a wait so far.
    pub(crate) fn came(&self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Events(events) => Some(events.came()),
            Self::Counted(count) => Some(count.load(Ordering::Relaxed)),
        }
    }
}

/// What is done with them.
pub(crate) trait Bench {
    /// What comes of it.
    type Out;

    /// Does it.
    fn on<B: Backend, A: Accelerator<2, Args = ()>>(self, region: &Region<B>, engine: contigo::Engine<A, 2>, line: &Line<'_>) -> Self::Out;

    /// The same, for what needs to know that the engine is a PL330.
    ///
    /// # Errors
    /// What keeps the engine from being stopped at first.
    fn on_pl330<'r, B: Backend, D: Device>(self, region: &'r Region<B>, driver: Pl330<'r, D>, line: &Line<'_>) -> Result<Self::Out>
    where
        Self: Sized,
    {
        Ok(self.on(region, contigo::Engine::new(driver)?, line))
    }
}

impl Place {
    /// Opens the memory and the engine, which waits by its interrupt or looks again and again, and runs `bench` on both.
    ///
    /// # Errors
    /// What keeps either from being opened.
    pub(crate) fn run<H: Bench>(&self, interrupt: bool, bench: H) -> Result<H::Out> {
        let task = Task { place: self, interrupt, bench, kernel: None, master: None };
        match &self.memory {
            Memory::Sim => {
                let board = SimBoard::new(1);
                let region = Region::new(board.memory(REGION_BYTES)?)?;
                let came = AtomicU64::new(0);
                let line = Line::Counted(&came);
                let port = self.reach.limit(board.port(), &region)?;
                match &self.engine {
                    Engine::Sim(DmaKind::Pl330) => {
                        let device = SimPl330::new(&board, port);
                        // SAFETY: the model is a PL330.
                        unsafe { task.with_kind(&region, Counted::new(device.window()?, &came), DmaKind::Pl330, false, &line) }
                    }
                    _ => {
                        let device = SimZdma::new(&board, port);
                        // SAFETY: the model is a ZDMA.
                        unsafe { task.with_kind(&region, Counted::new(device.window()?, &came), DmaKind::Zdma, false, &line) }
                    }
                }
            }
            Memory::HugeTlb => task.on_memory(HugeTlb::new(REGION_BYTES)?),
            Memory::UDmaBuf(name) => task.on_memory(UDmaBuf::open(name)?),
            Memory::DmaHeap(name) => task.on_memory(DmaHeap::allocate(name, REGION_BYTES)?),
            Memory::Imported { port, heap } => {
                let kernel = KernelPort::open(port)?;
                let block = DmaHeap::allocate_for(&kernel, heap, REGION_BYTES)?;
                Task { kernel: Some(&kernel), ..task }.on_memory(block)
            }
            Memory::Vfio(address) => {
                let vfio = Vfio::open(address)?;
                let region = Region::new(vfio.memory(REGION_BYTES)?)?;
                let device = crate::vfio::open_device(&vfio, if interrupt { Interrupt::Any } else { Interrupt::Polled })?;
                if interrupt && device.interrupt() == Interrupt::Polled {
                    // Every pause between two looks would count as an interrupt.
                    return Err(Error::NotFound { what: "interrupt of edu", among: 0 });
                }
                // SAFETY: `machine.rs` found an edu at this address.
                unsafe { task.with_edu(&region, device) }
            }
        }
    }
}

struct Task<'p, H> {
    place: &'p Place,
    interrupt: bool,
    bench: H,
    /// What the memory was imported for.
    kernel: Option<&'p KernelPort>,
    /// What lets the engine reach memory, where the module `contigo` does not.
    master: Option<BusMaster>,
}

impl<H: Bench> Task<'_, H> {
    /// An engine that was stopped; then what stops it is left with the kernel, before its first job, and only then may it master the bus.
    fn engine<A: Accelerator<2>>(&self, driver: A) -> Result<contigo::Engine<A, 2>> {
        let engine = contigo::Engine::new(driver)?;
        if let Some(kernel) = self.kernel {
            if self.place.armed {
                // SAFETY: the port was found by the address of this engine's registers, which are its first window; it is dropped after it.
                unsafe { engine.arm(kernel, 0)? };
            }
            if matches!(self.place.engine, Engine::EduPci { .. }) {
                // SAFETY: `Engine::new` has stopped it.
                unsafe { kernel.enable_bus_master()? };
            }
        }
        if let Some(master) = &self.master {
            // SAFETY: as above.
            unsafe { master.enable()? };
        }
        Ok(engine)
    }

    /// The same for a driver that goes on without an engine.
    fn arm(&self, driver: &impl Accelerator<2>) -> Result<()> {
        match self.kernel.filter(|_| self.place.armed) {
            None => Ok(()),
            // SAFETY: as in `engine`; the driver's steps only stop it.
            Some(kernel) => unsafe { kernel.arm(&driver.quiesce_program(), 0) },
        }
    }

    fn on_memory<B: Backend>(mut self, memory: B) -> Result<H::Out> {
        let region = Region::new(memory)?;
        let port = self.kernel.map_or(self.place.port, |kernel| kernel.seen_through(self.place.port));
        let port = self.place.reach.limit(port, &region)?;
        match &self.place.engine {
            Engine::Uio { found, .. } => {
                let device = Uio::open(found.device.index)?;
                if self.interrupt {
                    // SAFETY: the board's constant says how the engine at these registers reaches memory, and no IOMMU is before
                    // it on these boards; or `--lab` says that nothing here has caches.
                    let device = unsafe { device.wired(port) };
                    let events = UioEvents::new(device.as_fd())?;
                    // SAFETY: the board's constant says which engine is at the address of these
                    // registers; a UIO device is locked.
                    unsafe { self.with_engine(&region, device, &Line::Events(&events)) }
                } else {
                    // SAFETY: as above.
                    let device = unsafe { device.polled(port) };
                    // SAFETY: as above.
                    unsafe { self.with_engine(&region, device, &Line::None) }
                }
            }
            Engine::EduPci { address } => {
                let function = PciFunction::open(address)?;
                if self.kernel.is_none() {
                    function.enable()?;
                    self.master = Some(function.bus_master()?);
                }
                if self.interrupt {
                    // SAFETY: `machine.rs` found no IOMMU group, and QEMU's other machines with edu are not among the lab's.
                    let device = unsafe { function.wired(0, port)? };
                    // SAFETY: `machine.rs` found it by edu's vendor and device, and it is locked.
                    unsafe { self.with_edu(&region, device) }
                } else {
                    // SAFETY: as above.
                    let device = unsafe { function.polled(0, port)? };
                    // SAFETY: as above.
                    unsafe { self.with_edu(&region, device) }
                }
            }
            Engine::Sim(_) | Engine::EduVfio { .. } => Err(Error::NotFound { what: "engine for this memory", among: 0 }),
        }
    }

    /// # Safety
    /// `device` is the engine of this place, and nobody else drives it.
    unsafe fn with_engine<B: Backend, D: Device>(self, region: &Region<B>, device: D, line: &Line<'_>) -> Result<H::Out> {
        let Engine::Uio { found, linked, .. } = &self.place.engine else {
            return Err(Error::NotFound { what: "UIO device", among: 0 });
        };
        let (kind, linked) = (found.kind, *linked);
        // SAFETY: the caller's promise.
        unsafe { self.with_kind(region, device, kind, linked, line) }
    }

    /// # Safety
    /// `device` is a `kind`, and nobody else drives it.
    unsafe fn with_kind<B: Backend, D: Device>(
        self,
        region: &Region<B>,
        device: D,
        kind: DmaKind,
        linked: bool,
        line: &Line<'_>,
    ) -> Result<H::Out> {
        match (kind, linked) {
            (DmaKind::Pl330, _) => {
                let program = region.carve(PROGRAM_BYTES, Align::PAGE)?.into_buf();
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
                    true => unsafe { Zdma::linked(device, region.carve(DRIVER_BYTES, Align::PAGE)?.into_buf())? },
                };
                let engine = self.engine(driver)?;
                Ok(self.bench.on(region, engine, line))
            }
        }
    }

    /// # Safety
    /// `device` is an edu whose mask has at least [`EDU_BITS`] bits, or [`EDU_NARROW_BITS`] where
    /// the reach is narrow, and nobody else drives it.
    unsafe fn with_edu<B: Backend, D: Device>(self, region: &Region<B>, device: D) -> Result<H::Out> {
        let came = AtomicU64::new(0);
        let (device, line) = (Counted::new(device, &came), Line::Counted(&came));
        if self.place.reach == Reach::Narrow {
            // SAFETY: the caller's promise.
            let edu: Edu<_, EDU_NARROW_BITS, Unwatched> = unsafe { Edu::open(device)? };
            let engine = self.engine(edu)?;
            return Ok(self.bench.on(region, engine, &line));
        }
        // SAFETY: the caller's promise.
        let edu: Edu<_, EDU_BITS, Unwatched> = unsafe { Edu::open(device)? };
        let engine = self.engine(edu)?;
        Ok(self.bench.on(region, engine, &line))
    }
}
