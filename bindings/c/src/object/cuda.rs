#![allow(unsafe_code, reason = "write-combined memory is the C program's promise")]
//! GPUs of CUDA: NVIDIA's driver and each GPU's context, from their first use to the end of the
//! program.
//!
//! They stay for three reasons. Regions, engines and jobs of any thread stand on them; TVM and
//! `PyTorch` use the context too; and a kernel that does not end would keep it anyway. An object
//! that is closed gives back its own: a region its pinned memory, an engine its stream.
//!
//! No thread waits for another one's call of the driver: two that open the same at once both make
//! it, and one of the two is given back. The wait that is left in `OnceLock` is for a thread that
//! moves a value into its place. The standard library sleeps in it, so a thread of lower priority
//! goes on and ends it.

use crate::fault::Fault;
use crate::handles::CONTIGO_MAX_GPUS;
use contigo::cuda::{Cuda, CudaHost, Gpu};
use contigo::names::{self, AnyMemory, AnyModule};
use contigo::{Align, Error, Port};
use core::fmt;
use std::sync::OnceLock;

/// The driver.
static CUDA: OnceLock<Cuda> = OnceLock::new();
/// GPUs, by their ordinals.
static GPUS: [OnceLock<Gpu>; CONTIGO_MAX_GPUS as usize] =
    [const { OnceLock::new() }; CONTIGO_MAX_GPUS as usize];

/// The value in `place`, made by `make` where there is none yet.
fn kept<T>(
    place: &'static OnceLock<T>,
    make: impl FnOnce() -> Result<T, Error>,
) -> Result<&'static T, Error> {
    if let Some(there) = place.get() {
        return Ok(there);
    }
    let made = make()?;
    Ok(place.get_or_init(|| made))
}

/// A GPU.
fn open(ordinal: u32) -> Result<&'static Gpu, Error> {
    let cuda = kept(&CUDA, Cuda::load)?;
    let Some(place) = GPUS.get(ordinal as usize) else {
        let max = cuda.gpus()?.min(CONTIGO_MAX_GPUS).saturating_sub(1);
        return Err(Error::Argument {
            name: "the GPU's ordinal",
            value: ordinal.into(),
            min: 0,
            max: max.into(),
            multiple_of: 1,
        });
    };
    kept(place, || Gpu::primary(cuda, ordinal))
}

/// A GPU's way to memory that was made for it.
pub(crate) fn port(ordinal: u32) -> Result<Port, Fault> {
    Ok(open(ordinal)?.port())
}

/// Memory that is pinned for a GPU, in both views at a multiple of `align`.
pub(crate) fn pinned(
    ordinal: u32,
    len_bytes: usize,
    align: Align,
    write_combined: bool,
) -> Result<AnyMemory, Fault> {
    let gpu = open(ordinal)?;
    let pinned = if write_combined {
        // SAFETY: the C program says that it fences (contigo.h, `contigo_region_open_with`).
        unsafe { CudaHost::allocate_write_combined(gpu, len_bytes, align)? }
    } else {
        CudaHost::allocate(gpu, len_bytes, align)?
    };
    Ok(AnyMemory::new(pinned)?)
}

/// Loads code: PTX where it ends with a NUL and has no other. `log` gets the words of the driver's
/// compiler where it refuses.
///
/// # Safety
/// As `names::load_cuda`.
pub(crate) unsafe fn load(
    ordinal: u32,
    image: &[u8],
    log: &mut dyn fmt::Write,
) -> Result<AnyModule, Error> {
    // SAFETY: the caller's promise.
    unsafe { names::load_cuda(open(ordinal)?, image, log) }
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
        assert_eq!(
            (made.map(|kept| **kept), Arc::strong_count(&first), Arc::strong_count(&second)),
            (Ok(1), 2, 1)
        );
        assert_eq!(
            kept(&PLACE, || Err(Error::Busy)).map(|kept| **kept),
            Ok(1),
            "nothing is made any more"
        );
    }
}
