//! Harnesses on the fakes of the kernel's interfaces.
#![allow(clippy::panic, reason = "this is how a test fails")]

use super::boards::{OnMemory, Open};
use super::{Failure, Harness};
use crate::fake_dev_node::{DevNodeConfig, FakeDevNode};
use crate::fake_dma_heap::{FIRST_FRAME, FakeHeap, HEAP, Pages, page_bytes};
use crate::fake_u_dma_buf::{Config, FakeUDmaBuf};
use crate::fake_vfio::{ADDRESS, FakeVfio, Machine};
use contigo::linux::dev_node::{DevNode, DmaBuf, OwnMemory};
use contigo::linux::memory::dma_heap::DmaHeap;
use contigo::linux::memory::u_dma_buf::UDmaBuf;
use contigo::linux::vfio::{Vfio, VfioMemory};
use contigo::mem::SyncScope;
use contigo::sim::BusError;
use contigo::{Backend as _, Bus, DevAddr, Port, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A port of 32 bits.
fn port(coherent: bool) -> Port {
    let window = (0, u64::from(u32::MAX));
    Port { name: "fake", bus: Bus::Soc, offset: 0, addr_bits: 32, window, coherent }
}

/// u-dma-buf devices, each behind a fake module with a bus side of its own.
#[derive(Debug)]
pub struct OnFakeModule {
    config: Config,
    modules: Mutex<Vec<(u64, u64, FakeUDmaBuf)>>,
}

/// From one fake block to the next, on the bus: more than any check asks for.
const BLOCK_STEP: u64 = 1 << 24;

impl OnFakeModule {
    /// Devices like `config`, one after the other on the bus.
    pub const fn new(config: Config) -> Self {
        Self { config, modules: Mutex::new(Vec::new()) }
    }

    fn modules(&self) -> MutexGuard<'_, Vec<(u64, u64, FakeUDmaBuf)>> {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The module whose block holds these bytes, and where they are in it.
    fn at<R>(
        &self,
        addr: DevAddr,
        len_bytes: usize,
        act: impl FnOnce(&FakeUDmaBuf, usize) -> R,
    ) -> Result<R, BusError> {
        let modules = self.modules();
        let inside = |(base, size_bytes, _): &&(u64, u64, FakeUDmaBuf)| {
            *base <= addr.0 && addr.0 + len_bytes as u64 <= base + size_bytes
        };
        let (base, _, module) = modules.iter().find(inside).ok_or(BusError { addr })?;
        let offset = usize::try_from(addr.0 - base).map_err(|_| BusError { addr })?;
        Ok(act(module, offset))
    }
}

impl Harness for OnFakeModule {
    type Backend = UDmaBuf;

    fn open(&self, len_bytes: usize) -> Result<UDmaBuf, Failure> {
        let mut modules = self.modules();
        let phys_addr = self.config.phys_addr + modules.len() as u64 * BLOCK_STEP;
        let size_bytes = (len_bytes as u64).next_multiple_of(page_bytes());
        let module = FakeUDmaBuf::new(Config { size_bytes, phys_addr, ..self.config.clone() });
        let opened = module.open()?;
        modules.push((phys_addr, size_bytes, module));
        Ok(opened)
    }

    fn port(&self) -> Port {
        port(self.config.coherent == Some(true))
    }

    fn device_read(&self, addr: DevAddr, bytes: &mut [u8]) -> Result<(), BusError> {
        self.at(addr, bytes.len(), |module, offset| module.device_read(offset, bytes))
    }

    /// The cache runs short right after: a line that was left dirty goes over what the device
    /// wrote.
    fn device_write(&self, addr: DevAddr, bytes: &[u8]) -> Result<(), BusError> {
        self.at(addr, bytes.len(), |module, offset| {
            module.device_write(offset, bytes);
            module.evict(offset..offset + bytes.len());
        })
    }

    /// The block belongs to the module: it outlives the program.
    fn sees_freed_memory(&self) -> bool {
        false
    }
}

/// A dma-heap of a kernel before 6.9: contiguous frames that pagemap shows, each block at a place
/// of its own.
pub fn on_fake_heap() -> OnMemory<impl Fn(usize) -> Result<DmaHeap, Failure>> {
    let next_frame = AtomicU64::new(FIRST_FRAME);
    OnMemory::new(move |len_bytes: usize| {
        let pages = (len_bytes as u64).div_ceil(page_bytes());
        // One frame is left out, so that running past a block is seen.
        let first = next_frame.fetch_add(pages + 1, Ordering::Relaxed);
        let frames = Pages::Frames((first..first + pages).collect());
        Ok(DmaHeap::allocate_from(Arc::new(FakeHeap::new(frames)), HEAP, len_bytes)?)
    })
}

/// A device behind a fake IOMMU: it sees what is mapped for it, and nothing else.
#[derive(Debug)]
pub struct OnFakeVfio {
    kernel: FakeVfio,
    vfio: Vfio,
}

impl OnFakeVfio {
    /// The device on such a machine.
    pub fn new(machine: Machine) -> Self {
        let kernel = FakeVfio::new(machine);
        let vfio = Vfio::open_from(Arc::new(kernel.clone()), ADDRESS)
            .unwrap_or_else(|error| panic!("{error}"));
        Self { kernel, vfio }
    }
}

impl Harness for OnFakeVfio {
    type Backend = VfioMemory;

    fn open(&self, len_bytes: usize) -> Result<VfioMemory, Failure> {
        let memory = self.vfio.memory(len_bytes)?;
        match memory.mapping().scope {
            // armv7: a job through a port that does not snoop is refused (`fake_vfio`'s and the
            // region's own tests).
            SyncScope::None { install } => Err(Failure::Skipped(format!(
                "the runtime cannot maintain its caches on this CPU: {install}"
            ))),
            _ => Ok(memory),
        }
    }

    fn port(&self) -> Port {
        self.vfio.port()
    }

    fn device_read(&self, addr: DevAddr, bytes: &mut [u8]) -> Result<(), BusError> {
        self.kernel.device_read(addr.0, bytes).map_err(|_| BusError { addr })
    }

    fn device_write(&self, addr: DevAddr, bytes: &[u8]) -> Result<(), BusError> {
        self.kernel.device_write(addr.0, bytes).map_err(|_| BusError { addr })
    }
}

/// The device of a fake contigo, and its memory, which `open` makes.
#[derive(Debug)]
pub struct OnFakeDevNode<F> {
    kernel: FakeDevNode,
    port: Port,
    open: F,
}

impl<F> OnFakeDevNode<F> {
    fn new(config: DevNodeConfig, open: impl FnOnce(DevNode) -> F) -> Self {
        let kernel = FakeDevNode::new(config);
        let dev_node = kernel.open_dev_node().unwrap_or_else(|error| panic!("{error}"));
        let port = dev_node.seen_through(port(dev_node.is_coherent()));
        Self { kernel, port, open: open(dev_node) }
    }
}

/// Memory that a fake device node allocates for its device. `coherent`: by
/// [`DevNode::allocate_coherent`].
pub fn on_fake_dev_node(
    config: DevNodeConfig,
    coherent: bool,
) -> OnFakeDevNode<impl Open<Backend = OwnMemory>> {
    OnFakeDevNode::new(config, |dev_node| {
        move |len_bytes: usize| {
            Ok(match coherent {
                true => dev_node.allocate_coherent(len_bytes)?,
                false => dev_node.allocate(len_bytes)?,
            })
        }
    })
}

/// A dma-heap's blocks, imported for the device of a fake device node.
pub fn on_fake_port(config: DevNodeConfig) -> OnFakeDevNode<impl Open<Backend = DmaBuf>> {
    OnFakeDevNode::new(config, |dev_node| {
        let heap = Arc::new(FakeHeap::new(Pages::Entry(0)));
        move |len_bytes: usize| {
            Ok(DmaHeap::allocate_for_from(heap.clone(), &dev_node, HEAP, len_bytes)?)
        }
    })
}

impl<F: Open> Harness for OnFakeDevNode<F> {
    type Backend = F::Backend;

    fn open(&self, len_bytes: usize) -> Result<F::Backend, Failure> {
        self.open.open(len_bytes)
    }

    fn port(&self) -> Port {
        self.port
    }

    fn device_read(&self, addr: DevAddr, bytes: &mut [u8]) -> Result<(), BusError> {
        self.kernel.device_read(addr.0, bytes).map_err(|_| BusError { addr })
    }

    fn device_write(&self, addr: DevAddr, bytes: &[u8]) -> Result<(), BusError> {
        self.kernel.device_write(addr.0, bytes).map_err(|_| BusError { addr })
    }
}
