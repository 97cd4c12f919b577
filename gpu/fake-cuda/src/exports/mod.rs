//! The exported functions, with the C signatures of `cuda.h`. A pointer that the function writes
//! through, or reads one value from, is an `Option` of a reference. To C it is the same, with NULL
//! as `None`. The caller promises that it is valid, as in every C call.

mod context;
mod device;
mod memory;
mod module;
mod stream;

#[cfg(test)]
pub(crate) use {context::*, device::*, memory::*, module::*, stream::*};

use crate::state::{Answer, Needs, call, lock};
use crate::{Code, Config, Counters, code};
use std::ffi::c_int;
use std::mem::MaybeUninit;

/// A pointer to room for a `T`, or NULL.
pub(crate) type Out<'a, T> = Option<&'a mut MaybeUninit<T>>;

/// Writes an answer; without room for it, that is INVALID_VALUE.
fn put<T>(out: Out<'_, T>, value: T) -> Answer {
    out.ok_or(code::INVALID_VALUE)?.write(value);
    Ok(())
}

/// Sets the library to a configuration, as it is when nothing was called yet; 0 when it was taken.
#[unsafe(no_mangle)]
extern "C" fn fake_cuda_configure(config: Option<&Config>, bytes: usize) -> c_int {
    let Some(config) = config.filter(|config| bytes == size_of::<Config>() && config.is_valid())
    else {
        return code::INVALID_VALUE;
    };
    lock().configure(config);
    code::SUCCESS
}

/// Reads the counters; 0 when they were written.
#[unsafe(no_mangle)]
extern "C" fn fake_cuda_counters(counters: Option<&mut Counters>, bytes: usize) -> c_int {
    let Some(counters) = counters.filter(|_| bytes == size_of::<Counters>()) else {
        return code::INVALID_VALUE;
    };
    *counters = lock().counted();
    code::SUCCESS
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuInit(flags: u32) -> Code {
    call(crate::Function::cuInit, Needs::Nothing, |state, _| {
        if flags != 0 {
            return Err(code::INVALID_VALUE);
        }
        if state.config.device_count == 0 {
            return Err(code::NO_DEVICE);
        }
        state.initialised = true;
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuDriverGetVersion(version: Out<'_, c_int>) -> Code {
    call(crate::Function::cuDriverGetVersion, Needs::Nothing, |state, _| {
        put(version, state.config.driver_version)
    })
}
