#![allow(unsafe_code, reason = "write-combined memory is the C program's promise")]
//! GPUs: NVIDIA's driver, each GPU's context and its kernels, from their first use to the end of the program.
//!
//! They stay, because heaps, engines and jobs of any thread stand on them, the context is TVM's and `PyTorch`'s too, and a kernel that does not
//! end would keep it anyway. What is closed gives back its own: a heap its pinned memory, an engine its stream.
//!
//! No thread waits for another one's call of the driver: two that open the same at once both make it, and one of the two is given back.

use crate::{
    fault::{Fault, Misuse},
    limits,
};
use contigo::{
    Align, Bus, Engine, Error, Port,
    cuda::{Cuda, CudaFunction, CudaHost, Gpu, Log},
    names::AnyMemory,
};
use contigo_gemm8::cuda::{Gemm8Kernel, Gemm8Module};
use std::sync::OnceLock;

/// The driver.
static CUDA: OnceLock<Cuda> = OnceLock::new();
/// GPUs, by their ordinals.
static GPUS: [OnceLock<Gpu<'static>>; limits::GPUS] = [const { OnceLock::new() }; limits::GPUS];
/// Their `gemm8`.
static GEMM8S: [OnceLock<Gemm8Module<'static>>; limits::GPUS] = [const { OnceLock::new() }; limits::GPUS];

/// `gemm8` on a GPU.
pub(crate) type Gemm8 = Gemm8Kernel<CudaFunction<'static>>;

/// What `place` holds, made by `make` where it holds nothing yet.
fn kept<T>(place: &'static OnceLock<T>, make: impl FnOnce() -> Result<T, Error>) -> Result<&'static T, Error> {
    if let Some(there) = place.get() {
        return Ok(there);
    }
    let made = make()?;
    Ok(place.get_or_init(|| made))
}

/// A GPU, and its number as an index.
fn open(ordinal: u32) -> Result<(usize, &'static Gpu<'static>), Error> {
    let cuda = kept(&CUDA, Cuda::load)?;
    let index = ordinal as usize;
    let Some(place) = GPUS.get(index) else {
        let max = (cuda.gpus()? as usize).min(limits::GPUS).saturating_sub(1) as u64;
        return Err(Error::Argument { name: "the GPU's ordinal", value: ordinal.into(), min: 0, max, multiple_of: 1 });
    };
    Ok((index, kept(place, || Gpu::primary(cuda, ordinal))?))
}

/// A GPU's way to memory that was made for it.
pub(crate) fn port(ordinal: u32) -> Result<Port, Fault> {
    Ok(open(ordinal)?.1.port())
}

/// Can this library load a driver at all?
pub(crate) const fn here() -> Result<(), Fault> {
    Ok(())
}

/// Memory that is pinned for a GPU, in both views at a multiple of `align`.
pub(crate) fn pinned(ordinal: u32, len_bytes: usize, align: Align, write_combined: bool) -> Result<AnyMemory<'static>, Fault> {
    let (_, gpu) = open(ordinal)?;
    let pinned = if write_combined {
        // SAFETY: the C program says that it fences (contigo.h, `contigo_heap_open`).
        unsafe { CudaHost::allocate_write_combined(gpu, len_bytes, align)? }
    } else {
        CudaHost::allocate(gpu, len_bytes, align)?
    };
    Ok(pinned.into())
}

/// `gemm8` on the GPU that `port` belongs to, and its engine.
pub(crate) fn gemm8(port: &Port) -> Result<Engine<Gemm8, 4>, Fault> {
    let Bus::Gpu(ordinal) = port.bus else { return Err(Misuse::OtherPort { needs: "a GPU's port", is: port.name }.into()) };
    let (index, gpu) = open(ordinal)?;
    let place = GEMM8S.get(index).ok_or(Error::Busy)?;
    // What the driver's compiler says of PTX that is built in is for whoever builds it.
    let module = kept(place, || Gemm8Module::load(gpu, &mut Log::new()))?;
    Ok(Engine::new(module.kernel()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn who_comes_second_gives_its_own_back() {
        static PLACE: OnceLock<Arc<u8>> = OnceLock::new();
        let (first, second) = (Arc::new(1), Arc::new(2));
        // Another thread is done while this one makes its own.
        let made = kept(&PLACE, || {
            let _ = PLACE.set(Arc::clone(&first));
            Ok(Arc::clone(&second))
        });
        assert_eq!((made.map(|kept| **kept), Arc::strong_count(&first), Arc::strong_count(&second)), (Ok(1), 2, 1));
        assert_eq!(kept(&PLACE, || Err(Error::Busy)).map(|kept| **kept), Ok(1), "nothing is made any more");
    }

    #[test]
    fn what_fails_is_tried_again() {
        static PLACE: OnceLock<u8> = OnceLock::new();
        assert_eq!((kept(&PLACE, || Err(Error::Busy)), kept(&PLACE, || Ok(3))), (Err(Error::Busy), Ok(&3)));
    }
}
