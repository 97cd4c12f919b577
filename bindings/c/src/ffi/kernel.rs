#![allow(unsafe_code, reason = "functions that C calls")]
//! Kernels of Vitis HLS by their maps: which operand and which argument word a name is.

use super::raw::{self, Versioned};
use crate::fault::Fault;
use crate::handles::{CONTIGO_MAX_ARGS, contigo_kernel};
use crate::last_error::call;
use crate::object::KERNELS;
use crate::status::contigo_status;
use contigo::design::kernel::{self, KernelMap, Scalar};
use contigo::design::{Name, Near};
use core::ffi::c_char;
use core::mem;

/// The operands and the words of a kernel's jobs, and the size of its registers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct contigo_kernel_info {
    /// `sizeof(contigo_kernel_info)`.
    pub struct_size: usize,
    /// How many operands a job has: its pointers.
    pub operands: u32,
    /// How many argument words: one for each scalar, two where it has more than 32 bits.
    pub args_words: u32,
    /// How many words a completion has.
    pub result_words: u32,
    /// How many bytes its register window has at least.
    pub window_bytes: u32,
}

// SAFETY: integers only, `struct_size` first.
unsafe impl Versioned for contigo_kernel_info {
    const NAME: &'static str = "contigo_kernel_info";
    const LEAST: usize = mem::size_of::<Self>();
}

/// Reads a map: JSON, HLS's `x<name>_hw.h`, or Vivado's `.hwh`, which begin differently. The bytes
/// are not kept. Close it with `contigo_kernel_close`. A map that is none is refused with the line.
///
/// # Safety
/// `map` points to `map_bytes` bytes; `kernel` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_kernel_open(
    map: *const u8,
    map_bytes: usize,
    kernel: *mut contigo_kernel,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe {
        raw::opened(kernel, "kernel", || {
            let map =
                kernel::any(raw::bytes(map, map_bytes, "map")?, "").and_then(|map| map.build());
            Ok(KERNELS.insert(map.map_err(Fault::Map)?)?)
        })
    }
}

/// Fills `info` from the map.
///
/// # Safety
/// `info` points to a structure whose `struct_size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_kernel_get_info(
    kernel: contigo_kernel,
    info: *mut contigo_kernel_info,
) -> contigo_status {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "a window of registers, and at most 16 of each"
    )]
    call(|| {
        let map = KERNELS.lease(kernel)?;
        let value = contigo_kernel_info {
            struct_size: 0,
            operands: map.operands().len() as u32,
            args_words: map.words() as u32,
            result_words: map.results().iter().map(Scalar::words).sum::<usize>() as u32,
            window_bytes: map.window_bytes() as u32,
        };
        // SAFETY: the caller's promise.
        unsafe { raw::fill(info, &value) }
    })
}

/// The number of the operand that the map calls `name`, for `contigo_job_start`.
/// `CONTIGO_E_NOT_FOUND`.
///
/// # Safety
/// `name` is NUL-terminated; `index` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_kernel_operand(
    kernel: contigo_kernel,
    name: *const c_char,
    index: *mut u32,
) -> contigo_status {
    let find = || {
        // SAFETY: the caller's promise.
        let (map, name) = (KERNELS.lease(kernel)?, unsafe { raw::text(name, "name")? });
        let found = map.pointers().iter().position(|pointer| pointer.name.as_str() == name);
        let found = found.ok_or_else(|| {
            no_such("operand", name, map.pointers().iter().map(|pointer| pointer.name.as_str()))
        })?;
        Ok(u32::try_from(found).unwrap_or(u32::MAX))
    };
    // SAFETY: the caller's promise.
    unsafe { raw::answer(index, "index", find) }
}

/// Puts `value` where the argument words have the scalar that the map calls `name`: one word, or
/// two, the low one first. `args` has `args_words` words, as many as the kernel takes at least.
/// `CONTIGO_E_NOT_FOUND`: the map has no such scalar; `CONTIGO_E_ARGUMENT`: it has fewer bits than
/// `value`. A float's bits are its value.
///
/// # Safety
/// `name` is NUL-terminated; `args` points to `args_words` writable words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_kernel_set(
    kernel: contigo_kernel,
    name: *const c_char,
    value: u64,
    args: *mut u32,
    args_words: usize,
) -> contigo_status {
    call(|| {
        if args.is_null() {
            return Err(Fault::null("args"));
        }
        // SAFETY: the caller's promise.
        let (map, name) = (KERNELS.lease(kernel)?, unsafe { raw::text(name, "name")? });
        if !(map.words()..=CONTIGO_MAX_ARGS as usize).contains(&args_words) {
            return Err(Fault::value("args_words", args_words as u64));
        }
        let (at, scalar) = scalar(&map, name).ok_or_else(|| {
            no_such("scalar", name, map.scalars().iter().map(|scalar| scalar.name.as_str()))
        })?;
        let max = u64::MAX >> (u64::BITS - scalar.bits.clamp(1, u64::BITS));
        if value > max {
            return Err(Fault::range("the scalar", value, 0, max));
        }
        #[allow(clippy::cast_possible_truncation, reason = "its two halves")]
        let words = [value as u32, (value >> 32) as u32];
        for (index, word) in words.into_iter().take(scalar.words()).enumerate() {
            // SAFETY: the scalar's words are below `map.words()`, and so many are there.
            unsafe { args.add(at + index).write_unaligned(word) };
        }
        Ok(())
    })
}

/// Closes a map.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_kernel_close(kernel: contigo_kernel) -> contigo_status {
    call(|| Ok(KERNELS.close(kernel)?))
}

/// The scalar called `name`, and its first argument word.
fn scalar<'m>(map: &'m KernelMap, name: &str) -> Option<(usize, &'m Scalar)> {
    let mut at = 0;
    map.scalars().iter().find_map(|scalar| {
        let first = at;
        at += scalar.words();
        (scalar.name.as_str() == name).then_some((first, scalar))
    })
}

fn no_such<'m>(what: &'static str, name: &str, all: impl Iterator<Item = &'m str>) -> Fault {
    Fault::NoSuchIn { what, name: Name::clipped(name), near: Near::of(name, all) }
}
