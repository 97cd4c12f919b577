//! The conformance suite on memory that CUDA pins. Its bus master asks the driver where an address
//! of the GPU's is, as it must be told for each.

use super::{function, load};
use contigo::cuda::{CudaHost, Gpu};
use contigo::sim::BusError;
use contigo::{Align, DevAddr, Port};
use contigo_testkit::conformance;
use contigo_testkit::conformance::{Failure, Harness};
use fake_cuda::{Config, Controls};
use std::ffi::c_void;

/// A GPU on a driver of its own, for as long as one check takes.
struct OnGpu {
    gpu: Gpu,
    _controls: Controls,
}

impl OnGpu {
    fn new(config: &Config) -> Self {
        let controls = Controls::take(config);
        Self { gpu: Gpu::primary(&load().unwrap(), 0).unwrap(), _controls: controls }
    }

    /// The CPU's pointer for `len_bytes` bytes at `addr`, which the driver has for memory that is
    /// there.
    fn at(addr: DevAddr, len_bytes: usize) -> Result<*mut u8, BusError> {
        type Attribute = unsafe extern "C" fn(*mut c_void, i32, u64) -> i32;
        const HOST_POINTER: i32 = 4;
        let ask = function::<Attribute>("cuPointerGetAttribute");
        let host = |addr: u64| {
            let mut host: *mut u8 = std::ptr::null_mut();
            // SAFETY: the pointer is a reference to what this attribute is.
            let answer = unsafe { ask((&raw mut host).cast(), HOST_POINTER, addr) };
            (answer == 0).then_some(host)
        };
        let last = addr.0.wrapping_add(len_bytes.saturating_sub(1) as u64);
        host(last).and_then(|_| host(addr.0)).ok_or(BusError { addr })
    }
}

impl Harness for OnGpu {
    type Backend = CudaHost;

    fn open(&self, len_bytes: usize) -> Result<CudaHost, Failure> {
        Ok(CudaHost::allocate(&self.gpu, len_bytes, Align::DLPACK)?)
    }

    fn port(&self) -> Port {
        self.gpu.port()
    }

    fn device_read(&self, addr: DevAddr, bytes: &mut [u8]) -> Result<(), BusError> {
        let from = Self::at(addr, bytes.len())?;
        for (index, byte) in bytes.iter_mut().enumerate() {
            // SAFETY: the driver says that these bytes are there; the owner of the buffer waits for
            // this.
            *byte = unsafe { from.add(index).read_volatile() };
        }
        Ok(())
    }

    fn device_write(&self, addr: DevAddr, bytes: &[u8]) -> Result<(), BusError> {
        let to = Self::at(addr, bytes.len())?;
        for (index, byte) in bytes.iter().enumerate() {
            // SAFETY: as in `device_read`.
            unsafe { to.add(index).write_volatile(*byte) };
        }
        Ok(())
    }

    fn unowned_accesses(&self) -> Option<u64> {
        None
    }
}

conformance! {
    cuda_host: OnGpu::new(&Config::default());
    cuda_host_at_one_address: OnGpu::new(&Config {
        device_pointer_offset: 0,
        host_alignment: 4096,
        ..Config::default()
    });
}
