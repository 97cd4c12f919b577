//! The conformance suite on memory of OpenCL. Its bus master is a queue of its own, which reads and
//! writes the object at the offset that an address stands for.

use super::device;
use cl3::command_queue::{
    create_command_queue, enqueue_read_buffer, enqueue_write_buffer, release_command_queue,
};
use cl3::device::{CL_DEVICE_TYPE_ALL, get_device_ids};
use cl3::event::{cl_event, release_event};
use cl3::memory::{CL_MEM_CONTEXT, get_mem_object_info};
use cl3::platform::get_platform_ids;
use cl3::types::{CL_TRUE, cl_command_queue, cl_mem};
use contigo::mem::Mapping;
use contigo::sim::BusError;
use contigo::{Backend, DevAddr, Port};
use contigo_gpu::opencl::{OpenClGpu, OpenClMemory};
use contigo_testkit::conformance;
use contigo_testkit::conformance::{Failure, Harness};
use std::ptr;
use std::sync::{Arc, Mutex};

/// Where each block is that was not freed: its first address, its length, its object.
type Blocks = Arc<Mutex<Vec<(u64, usize, u64)>>>;

/// A block that is taken from the list when it is freed.
struct Listed {
    memory: OpenClMemory,
    blocks: Blocks,
}

// SAFETY: every method is the memory's.
unsafe impl Backend for Listed {
    contigo::forward!(|this| this.memory => name, mapping, segment, sync_for_device, sync_for_cpu);
    contigo::forward!(|this| this.memory => settled, handle, held_by, wrong_accesses);
}

impl Drop for Listed {
    fn drop(&mut self) {
        let base = self.memory.mapping().base.raw();
        self.blocks.lock().unwrap().retain(|(first, ..)| *first != base);
    }
}

struct OnOpenCl {
    gpu: Option<&'static OpenClGpu>,
    blocks: Blocks,
}

impl OnOpenCl {
    fn new() -> Self {
        Self { gpu: device(), blocks: Blocks::default() }
    }

    /// The object and the offset that `len_bytes` bytes at `addr` are.
    fn at(&self, addr: DevAddr, len_bytes: usize) -> Result<(cl_mem, usize), BusError> {
        let blocks = self.blocks.lock().unwrap();
        let inside = |(first, block_bytes, _): &&(u64, usize, u64)| {
            addr.0
                .checked_sub(*first)
                .is_some_and(|offset| offset + len_bytes as u64 <= *block_bytes as u64)
        };
        let (first, _, raw) = blocks.iter().find(inside).ok_or(BusError { addr })?;
        Ok((
            ptr::with_exposed_provenance_mut(usize::try_from(*raw).unwrap()),
            usize::try_from(addr.0 - first).unwrap(),
        ))
    }
}

/// Gives a command to a queue of another owner, in the context of `buffer`.
fn on_queue(buffer: cl_mem, command: impl FnOnce(cl_command_queue) -> Result<cl_event, i32>) {
    let device = get_device_ids(get_platform_ids().unwrap()[0], CL_DEVICE_TYPE_ALL).unwrap()[0];
    let context: isize = get_mem_object_info(buffer, CL_MEM_CONTEXT).unwrap().into();
    let context = ptr::with_exposed_provenance_mut(context.cast_unsigned());
    // SAFETY: the context is that of this device, which is the first one. Queue and event are given
    // back once.
    unsafe {
        let queue = create_command_queue(context, device, 0).unwrap();
        release_event(command(queue).unwrap()).unwrap();
        release_command_queue(queue).unwrap();
    }
}

impl Harness for OnOpenCl {
    type Backend = Listed;

    fn open(&self, len_bytes: usize) -> Result<Listed, Failure> {
        let gpu = self.gpu.ok_or_else(|| Failure::Skipped("no device of OpenCL".into()))?;
        let memory = OpenClMemory::allocate(gpu, len_bytes)?;
        let Mapping { base, len_bytes, .. } = memory.mapping();
        self.blocks.lock().unwrap().push((base.raw(), len_bytes, memory.handle().unwrap().raw));
        Ok(Listed { memory, blocks: self.blocks.clone() })
    }

    fn port(&self) -> Port {
        self.gpu.unwrap().port()
    }

    fn device_read(&self, addr: DevAddr, bytes: &mut [u8]) -> Result<(), BusError> {
        let ((buffer, offset), to) = (self.at(addr, bytes.len())?, bytes.as_mut_ptr().cast());
        // SAFETY: so many bytes are there, and it waits.
        on_queue(buffer, |queue| unsafe {
            enqueue_read_buffer(queue, buffer, CL_TRUE, offset, bytes.len(), to, 0, ptr::null())
        });
        Ok(())
    }

    fn device_write(&self, addr: DevAddr, bytes: &[u8]) -> Result<(), BusError> {
        let ((buffer, offset), from) = (self.at(addr, bytes.len())?, bytes.as_ptr().cast());
        // SAFETY: as in `device_read`.
        on_queue(buffer, |queue| unsafe {
            enqueue_write_buffer(queue, buffer, CL_TRUE, offset, bytes.len(), from, 0, ptr::null())
        });
        Ok(())
    }

    fn unowned_accesses(&self) -> Option<u64> {
        None
    }
}

conformance! {
    opencl: OnOpenCl::new();
}
