//! The conformance suite, with the GPU itself as the bus master: a kernel reads and writes.

use super::raw::Raw;
use super::{beside_others, gpu};
use contigo::cuda::{CudaHost, Gpu};
use contigo::sim::BusError;
use contigo::{Align, Backend, DevAddr, Port, Region};
use contigo_testkit::conformance;
use contigo_testkit::conformance::{Failure, Harness};
use std::sync::{Mutex, RwLockReadGuard};

/// The most that a check reads or writes at once.
const STAGE_BYTES: usize = 1 << 20;

struct OnGpu {
    master: Result<Master, String>,
    _beside_others: RwLockReadGuard<'static, ()>,
}

struct Master {
    gpu: &'static Gpu,
    raw: Raw,
    /// The bytes that the kernel reads or writes on the other side.
    stage: Mutex<CudaHost>,
}

impl OnGpu {
    fn new() -> Self {
        // First: each of them loads a module, and another test may be comparing free memory.
        let beside_others = beside_others();
        let stage = |gpu| CudaHost::allocate(gpu, STAGE_BYTES, Align::DLPACK).unwrap();
        let master =
            gpu().map(|gpu| Master { gpu, raw: Raw::open(), stage: Mutex::new(stage(gpu)) });
        Self { master, _beside_others: beside_others }
    }

    fn master(&self) -> &Master {
        self.master.as_ref().unwrap_or_else(|why| panic!("asked without a GPU: {why}"))
    }
}

impl Harness for OnGpu {
    type Backend = CudaHost;

    fn open(&self, len_bytes: usize) -> Result<CudaHost, Failure> {
        let master = self.master.as_ref().map_err(|why| Failure::Skipped(why.clone()))?;
        Ok(CudaHost::allocate(master.gpu, len_bytes, Align::DLPACK)?)
    }

    fn port(&self) -> Port {
        Gpu::port(self.master().gpu)
    }

    fn device_read(&self, addr: DevAddr, bytes: &mut [u8]) -> Result<(), BusError> {
        let Master { raw, stage, .. } = self.master();
        if !raw.is_there(addr.0, bytes.len()) {
            return Err(BusError { addr });
        }
        let stage = stage.lock().unwrap();
        let mapping = stage.mapping();
        // SAFETY: the driver has memory there, which the owner of the buffer leaves to the device;
        // the stage belongs to this thread.
        unsafe { raw.copy(mapping.base.raw(), addr.0, bytes.len()) };
        for (index, byte) in bytes.iter_mut().enumerate() {
            // SAFETY: inside the stage, and the kernel has ended.
            *byte = unsafe { mapping.cpu.add(index).read_volatile() };
        }
        Ok(())
    }

    fn device_write(&self, addr: DevAddr, bytes: &[u8]) -> Result<(), BusError> {
        let Master { raw, stage, .. } = self.master();
        if !raw.is_there(addr.0, bytes.len()) {
            return Err(BusError { addr });
        }
        let stage = stage.lock().unwrap();
        let mapping = stage.mapping();
        for (index, byte) in bytes.iter().enumerate() {
            // SAFETY: inside the stage, which belongs to this thread.
            unsafe { mapping.cpu.add(index).write_volatile(*byte) };
        }
        // SAFETY: as in `device_read`.
        unsafe { raw.copy(addr.0, mapping.base.raw(), bytes.len()) };
        Ok(())
    }

    fn unowned_accesses(&self) -> Option<u64> {
        None
    }
}

conformance! {
    cuda_host: OnGpu::new();
}

/// Without a GPU, every check above reports that it is missing; this one reports that it is there.
#[test]
fn the_gpu_is_the_bus_master() {
    let harness = OnGpu::new();
    let gpu = match &harness.master {
        Ok(master) => master.gpu,
        Err(why) => return contigo_testkit::skipped("the_gpu_is_the_bus_master", why),
    };
    let region = Region::new(CudaHost::allocate(gpu, 4096, Align::DLPACK).unwrap()).unwrap();
    let mut byte = [1];
    harness.device_read(DevAddr(region.base().raw() + 4095), &mut byte).unwrap();
    assert_eq!(byte, [0]);
    assert!(harness.device_read(DevAddr(0x10), &mut byte).is_err());
}
