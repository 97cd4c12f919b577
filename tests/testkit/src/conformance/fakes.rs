//! Harnesses on the fakes of the kernel's interfaces.

use super::{Failure, Harness, boards::OnMemory};
use crate::{
    fake_dev_node::{DevNodeConfig, FakeDevNode},
    fake_dma_heap::{FIRST_FRAME, FakeHeap, HEAP, Pages, page_bytes},
    fake_u_dma_buf::{Config, FakeUDmaBuf},
    fake_vfio::{ADDRESS, FakeVfio, Machine},
};
use contigo::{
    Backend as _, Bus, DevAddr, Port, Result,
    linux::{
        dev_node::{DevNode, DmaBuf, OwnMemory},
        memory::{dma_heap::DmaHeap, u_dma_buf::UDmaBuf},
        vfio::{Vfio, VfioMemory},
    },
    mem::SyncScope,
    sim::BusError,
};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

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
    #[must_use]
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
        for (base, size_bytes, module) in self.modules().iter() {
            match addr.0.checked_sub(*base) {
                Some(offset) if offset + len_bytes as u64 <= *size_bytes => {
                    return Ok(act(
                        module,
                        usize::try_from(offset).map_err(|_| BusError { addr })?,
                    ));
                }
                _ => {}
            }
        }
        Err(BusError { addr })
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
        let coherent = self.config.coherent == Some(true);
        Port {
            name: "fake",
            bus: Bus::Soc,
            offset: 0,
            addr_bits: 32,
            window: (0, u64::from(u32::MAX)),
            coherent,
        }
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

    fn unowned_accesses(&self) -> Option<u64> {
        None
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
    ///
    /// # Panics
    /// Where it cannot be opened there.
    #[must_use]
    #[allow(clippy::panic, reason = "this is how a test fails")]
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

    fn unowned_accesses(&self) -> Option<u64> {
        None
    }
}

/// The device of a fake contigo: its own memory, and a dma-heap's blocks that are imported for it.
#[derive(Debug)]
struct ContigoDevice {
    kernel: FakeDevNode,
    dev_node: DevNode,
}

impl ContigoDevice {
    #[allow(clippy::panic, reason = "this is how a test fails")]
    fn new(config: DevNodeConfig) -> Self {
        let kernel = FakeDevNode::new(config);
        let dev_node = kernel.open_dev_node().unwrap_or_else(|error| panic!("{error}"));
        Self { kernel, dev_node }
    }

    fn port(&self) -> Port {
        let claimed = Port {
            name: "fake",
            bus: Bus::Soc,
            offset: 0,
            addr_bits: 32,
            window: (0, u64::from(u32::MAX)),
            coherent: false,
        };
        self.dev_node.seen_through(Port { coherent: self.dev_node.is_coherent(), ..claimed })
    }

    fn device_read(&self, addr: DevAddr, bytes: &mut [u8]) -> Result<(), BusError> {
        self.kernel.device_read(addr.0, bytes).map_err(|_| BusError { addr })
    }

    fn device_write(&self, addr: DevAddr, bytes: &[u8]) -> Result<(), BusError> {
        self.kernel.device_write(addr.0, bytes).map_err(|_| BusError { addr })
    }
}

/// Memory that a fake device node allocates for its device.
#[derive(Debug)]
pub struct OnFakeDevNode {
    device: ContigoDevice,
    coherent: bool,
}

impl OnFakeDevNode {
    /// The device of such a file. `coherent`: by [`DevNode::allocate_coherent`].
    ///
    /// # Panics
    /// Where it cannot be opened there.
    #[must_use]
    pub fn new(config: DevNodeConfig, coherent: bool) -> Self {
        Self { device: ContigoDevice::new(config), coherent }
    }
}

impl Harness for OnFakeDevNode {
    type Backend = OwnMemory;

    fn open(&self, len_bytes: usize) -> Result<OwnMemory, Failure> {
        let dev_node = &self.device.dev_node;
        Ok(if self.coherent {
            dev_node.allocate_coherent(len_bytes)
        } else {
            dev_node.allocate(len_bytes)
        }?)
    }

    fn port(&self) -> Port {
        self.device.port()
    }

    fn device_read(&self, addr: DevAddr, bytes: &mut [u8]) -> Result<(), BusError> {
        self.device.device_read(addr, bytes)
    }

    fn device_write(&self, addr: DevAddr, bytes: &[u8]) -> Result<(), BusError> {
        self.device.device_write(addr, bytes)
    }

    fn unowned_accesses(&self) -> Option<u64> {
        None
    }
}

/// A dma-heap's blocks, imported for the device of a fake device node.
#[derive(Debug)]
pub struct OnFakePort {
    device: ContigoDevice,
    heap: Arc<FakeHeap>,
}

impl OnFakePort {
    /// The device of such a file.
    ///
    /// # Panics
    /// Where it cannot be opened there.
    #[must_use]
    pub fn new(config: DevNodeConfig) -> Self {
        Self { device: ContigoDevice::new(config), heap: Arc::new(FakeHeap::new(Pages::Entry(0))) }
    }
}

impl Harness for OnFakePort {
    type Backend = DmaBuf;

    fn open(&self, len_bytes: usize) -> Result<DmaBuf, Failure> {
        Ok(DmaHeap::allocate_for_from(self.heap.clone(), &self.device.dev_node, HEAP, len_bytes)?)
    }

    fn port(&self) -> Port {
        self.device.port()
    }

    fn device_read(&self, addr: DevAddr, bytes: &mut [u8]) -> Result<(), BusError> {
        self.device.device_read(addr, bytes)
    }

    fn device_write(&self, addr: DevAddr, bytes: &[u8]) -> Result<(), BusError> {
        self.device.device_write(addr, bytes)
    }

    fn unowned_accesses(&self) -> Option<u64> {
        None
    }
}
