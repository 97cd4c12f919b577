//! A thousand jobs on memory that CUDA pinned, without the heap.

use super::counting::count;
use super::{GEMM, JOBS, SLOT};
use contigo::cuda::{Cuda, CudaHost, Gpu, Log};
use contigo::{Align, Error, Queue, Region};
use contigo_gemm8::cuda::Gemm8Module;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// The driver that stands in has a thread, which a machine that is at work elsewhere lets wait: no
/// time is measured here.
const LIMIT: Duration = Duration::from_secs(5);

/// From the driver's loading on: what the driver itself asks for is its own.
#[test]
fn none_on_memory_that_cuda_pinned() {
    let _controls = fake_cuda::Controls::take(&fake_cuda::Config::default());
    let file = CString::new(fake_cuda::library().as_os_str().as_bytes()).unwrap();
    let (done, allocations) = count(|| {
        // SAFETY: it behaves as the driver's reference says.
        let cuda = unsafe { Cuda::load_from(&file)? };
        let gpu = Gpu::primary(&cuda, 0)?;
        let module = Gemm8Module::load(&gpu, &mut Log::new())?;
        let region = Region::new(CudaHost::allocate(&gpu, 64 * 1024, Align::DLPACK)?)?;
        let pool = region.pool(4, SLOT)?;
        let mut queue = Queue::new(module.kernel()?, 1)?;
        for _ in 0..JOBS {
            let [a, b, bias, c] = [pool.take()?, pool.take()?, pool.take()?, pool.take()?];
            let operands =
                [a.to_device(..16), b.to_device(..), bias.to_device(..64), c.from_device(..16)];
            drop(queue.run(operands, &GEMM.words(), LIMIT)?);
        }
        Ok::<_, Error>(queue.counts().completed)
    });
    assert_eq!((done, allocations), (Ok(JOBS as u64), 0));
}
