//! GPUs by their numbers.

use crate::{
    cuda::{Cuda, Gpu},
    types::Error,
    types::lock,
};
use spin::{Mutex, Once};

/// NVIDIA's driver, from its first use to the end of the program: it stays loaded anyway.
static DRIVER: Once<Cuda> = Once::new();
/// Held while it is loaded, so that nobody waits in `DRIVER` without a bound.
static LOADING: Mutex<()> = Mutex::new(());

/// GPU number `ordinal`.
pub(super) fn open(ordinal: u32) -> Result<Gpu<'static>, Error> {
    let driver = match DRIVER.get() {
        Some(driver) => driver,
        None => {
            let _one_at_a_time = lock::acquire(&LOADING)?;
            match DRIVER.get() {
                Some(driver) => driver,
                None => {
                    let loaded = Cuda::load()?;
                    DRIVER.call_once(|| loaded)
                }
            }
        }
    };
    Gpu::primary(driver, ordinal)
}
