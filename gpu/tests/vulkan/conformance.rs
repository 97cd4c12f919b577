//! The conformance suite on this memory: under a simulated master, and under the device itself,
//! whose every access is a dispatch.

use super::shaders::BYTES;
use super::{LIMIT, gpu, kernel, shaders};
use contigo::job::Parameter::{Operand, Words};
use contigo::job::{Launch, Signature};
use contigo::mem::DevSlice;
use contigo::sim::BusError;
use contigo::types::BaseAddr;
use contigo::{Backend, DevAddr, Driver, OperandSpec, Port};
use contigo_gpu::vulkan::{VulkanGpu, VulkanKernel, VulkanMemory, VulkanModule};
use contigo_testkit::conformance;
use contigo_testkit::conformance::boards::OnMemory;
use contigo_testkit::conformance::{Failure, Harness};
use std::sync::{Mutex, OnceLock, PoisonError};

fn device() -> Result<&'static VulkanGpu, Failure> {
    VulkanGpu::open(0).map_err(|error| Failure::Skipped(error.to_string()))
}

fn allocate(len_bytes: usize) -> Result<VulkanMemory, Failure> {
    Ok(VulkanMemory::allocate(device()?, len_bytes)?)
}

fn imported(len_bytes: usize) -> Result<VulkanMemory<VulkanMemory>, Failure> {
    Ok(VulkanMemory::import(device()?, allocate(len_bytes)?)?)
}

/// A shader that moves bytes, and a block for those on their way.
struct Master {
    kernel: VulkanKernel,
    staging: VulkanMemory,
}

/// The device itself as the bus master.
struct OnDevice;

impl OnDevice {
    fn master() -> Result<&'static Mutex<Master>, Failure> {
        static MASTER: OnceLock<Result<Mutex<Master>, String>> = OnceLock::new();
        let made = MASTER.get_or_init(|| {
            let gpu = VulkanGpu::open(0).map_err(|error| error.to_string())?;
            if !gpu.facts().has_8bit_storage || !gpu.facts().has_8bit_integers {
                return Err("this device does not store single bytes".into());
            }
            let spirv = shaders::compiled(BYTES)?;
            // SAFETY: glslangValidator made it.
            let module = unsafe { VulkanModule::load(gpu, &spirv) }.unwrap();
            let (from, to) =
                (Operand(OperandSpec::to_device()), Operand(OperandSpec::from_device()));
            let signature =
                Signature::new("bytes", &[from, to, Words(1), Words(1), Words(1)]).unwrap();
            Ok(Mutex::new(Master {
                kernel: kernel(&module, signature),
                staging: VulkanMemory::allocate(gpu, 1 << 20).unwrap(),
            }))
        });
        made.as_ref().map_err(|why| Failure::Skipped(why.clone()))
    }

    /// Moves `len` bytes between `addr` and the staging block: to it, or from it.
    fn transfer(addr: DevAddr, bytes: &mut [u8], writes: bool) -> Result<(), BusError> {
        let astray = BusError { addr };
        let mut master =
            Self::master().map_err(|_| astray)?.lock().unwrap_or_else(PoisonError::into_inner);
        let Master { kernel, staging } = &mut *master;
        let step = staging.gpu().facts().min_storage_buffer_offset_alignment;
        let (mapping, skip) = (staging.mapping(), usize::try_from(addr.0 % step).unwrap());
        let BaseAddr::Dev(base) = mapping.base else { return Err(astray) };
        let there = DevSlice {
            addr: DevAddr(addr.0 - addr.0 % step),
            offset_bytes: 0,
            len_bytes: skip + bytes.len(),
        };
        let here = DevSlice { addr: base, offset_bytes: 0, len_bytes: bytes.len() };
        if writes {
            // SAFETY: the block is this function's alone, under the lock.
            unsafe {
                mapping
                    .cpu
                    .copy_from_nonoverlapping(std::ptr::NonNull::from(&*bytes).cast(), bytes.len())
            }
        }
        let (count, skip) = (u32::try_from(bytes.len()).unwrap(), u32::try_from(skip).unwrap());
        let (operands, skips) =
            if writes { ([here, there], [0, skip]) } else { ([there, here], [skip, 0]) };
        let words = Launch::of(count.div_ceil(64), 64).with(&[count, skips[0], skips[1]]);
        kernel.check(&operands, &words).map_err(|_| astray)?;
        // SAFETY: the suite's master touches what it was handed, or memory that was leaked; the
        // shader moves `count` bytes and touches no other.
        unsafe { kernel.submit(0, &operands, &words) }.unwrap();
        assert!(kernel.poll(LIMIT).unwrap().is_some());
        if !writes {
            // SAFETY: as above.
            unsafe {
                mapping.cpu.copy_to_nonoverlapping(
                    std::ptr::NonNull::from(bytes).cast(),
                    usize::try_from(count).unwrap(),
                )
            }
        }
        Ok(())
    }
}

impl Harness for OnDevice {
    type Backend = VulkanMemory;

    fn open(&self, len_bytes: usize) -> Result<VulkanMemory, Failure> {
        Self::master()?;
        allocate(len_bytes)
    }

    fn port(&self) -> Port {
        gpu().unwrap().port()
    }

    fn device_read(&self, addr: DevAddr, bytes: &mut [u8]) -> Result<(), BusError> {
        Self::transfer(addr, bytes, false)
    }

    fn device_write(&self, addr: DevAddr, bytes: &[u8]) -> Result<(), BusError> {
        Self::transfer(addr, &mut bytes.to_vec(), true)
    }

    fn unowned_accesses(&self) -> Option<u64> {
        None
    }
}

conformance! {
    vulkan_under_a_simulated_master: OnMemory::new(allocate);
    vulkan_imported_twice: OnMemory::new(imported);
    vulkan_under_a_shader: OnDevice;
}
