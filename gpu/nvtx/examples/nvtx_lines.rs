#![allow(unsafe_code, reason = "a library that a program loads, calls and is called by")]
//! A tool for NVTX, as `nsys` has one inside: it attaches to the program that loads it, and writes
//! a line for each call. Lines go to the file that `NVTX_LINES` names, else to standard error. The
//! numbers are from `nvtxTypes.h`, apart from those of `src/abi.rs`; `tests/header.rs` runs it
//! with a program that has the real header.
//!
//! ```sh
//! cargo build -p contigo-nvtx --example nvtx_lines
//! NVTX_INJECTION64_PATH=target/debug/examples/libnvtx_lines.so contigo demo --images 1
//! ```
//!
//! Lines are `THREAD VERB DOMAIN NAME PAYLOAD`, with `-` for what is not there. A thread has its
//! number in this program, from 1. Blanks in names are `_`.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::{env, ptr};

const NVTX_ETID_CALLBACKS: u32 = 1;
const NVTX_ETID_VERSIONINFO: u32 = 3;
const NVTX_CB_MODULE_CORE2: c_uint = 5;
const NVTX_CBID_CORE2_DOMAIN_MARK_EX: usize = 1;
const NVTX_CBID_CORE2_DOMAIN_RANGE_START_EX: usize = 2;
const NVTX_CBID_CORE2_DOMAIN_RANGE_END: usize = 3;
const NVTX_CBID_CORE2_DOMAIN_RANGE_PUSH_EX: usize = 4;
const NVTX_CBID_CORE2_DOMAIN_RANGE_POP: usize = 5;
const NVTX_CBID_CORE2_DOMAIN_CREATE_A: usize = 12;
const NVTX_CBID_CORE2_SIZE: c_uint = 16;
const NVTX_PAYLOAD_TYPE_UNSIGNED_INT64: i32 = 1;
const NVTX_MESSAGE_TYPE_ASCII: i32 = 1;

#[repr(C)]
struct Callbacks {
    struct_size: usize,
    get_module_function_table:
        unsafe extern "C" fn(c_uint, *mut *mut *mut *mut c_void, *mut c_uint) -> c_int,
}

#[repr(C)]
struct VersionInfo {
    struct_size: usize,
    version: u32,
    reserved0: u32,
    set_injection_nvtx_version: unsafe extern "C" fn(u32),
}

#[repr(C)]
struct Attributes {
    version: u16,
    size: u16,
    category: u32,
    color_type: i32,
    color: u32,
    payload_type: i32,
    reserved0: i32,
    payload: u64,
    message_type: i32,
    message: *const c_char,
}

type Domain = *const c_char;

/// Where the lines go; `None`: standard error.
static LINES: Mutex<Option<File>> = Mutex::new(None);

fn line(verb: &str, rest: &str) {
    static THREADS: AtomicU64 = AtomicU64::new(0);
    thread_local! { static THREAD: Cell<u64> = const { Cell::new(0) }; }
    if THREAD.get() == 0 {
        THREAD.set(THREADS.fetch_add(1, Relaxed) + 1);
    }
    let line = format!("{} {verb} {rest}\n", THREAD.get());
    let mut file = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    // A line that cannot be written cannot be reported either.
    let _ = match file.as_mut() {
        Some(file) => file.write_all(line.as_bytes()),
        None => io::stderr().write_all(line.as_bytes()),
    };
}

/// A text of the program's; `-` where there is none.
unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return "-".to_owned();
    }
    // SAFETY: the caller's: a text that ends with a null.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().replace(' ', "_")
}

/// Domain, name and payload.
unsafe fn shown(domain: Domain, attributes: *const Attributes) -> String {
    // SAFETY: NVTX's promise: the structure lives during the call, its text too, and the domain is
    // one of ours.
    let (domain, of) = unsafe { (text(domain), &*attributes) };
    if of.version != 3 || usize::from(of.size) != size_of::<Attributes>() || of.reserved0 != 0 {
        return format!("{domain} version_{}_size_{} -", of.version, of.size);
    }
    let is_text = of.message_type == NVTX_MESSAGE_TYPE_ASCII;
    // SAFETY: as above.
    let name = unsafe { text(if is_text { of.message } else { ptr::null() }) };
    let has_number = of.payload_type == NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    let payload = if has_number { of.payload.to_string() } else { "-".to_owned() };
    format!("{domain} {name} {payload}")
}

unsafe extern "C" fn domain_create(name: *const c_char) -> Domain {
    // SAFETY: NVTX's promise.
    let name = unsafe { CStr::from_ptr(name) }.to_owned();
    name.into_raw()
}

unsafe extern "C" fn domain_mark(domain: Domain, attributes: *const Attributes) {
    // SAFETY: the program's promise, as NVTX asks for it.
    line("mark", &unsafe { shown(domain, attributes) });
}

unsafe extern "C" fn domain_range_push(domain: Domain, attributes: *const Attributes) -> c_int {
    // SAFETY: as above.
    line("push", &unsafe { shown(domain, attributes) });
    0
}

unsafe extern "C" fn domain_range_pop(domain: Domain) -> c_int {
    // SAFETY: as above.
    line("pop", &format!("{} - -", unsafe { text(domain) }));
    0
}

/// Ranges have numbers from 100, which no job and no depth has by chance.
unsafe extern "C" fn domain_range_start(domain: Domain, attributes: *const Attributes) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(100);
    let id = NEXT.fetch_add(1, Relaxed);
    // SAFETY: as above.
    line(&format!("start:{id}"), &unsafe { shown(domain, attributes) });
    id
}

unsafe extern "C" fn domain_range_end(domain: Domain, id: u64) {
    // SAFETY: as above.
    line(&format!("end:{id}"), &format!("{} - -", unsafe { text(domain) }));
}

/// The function that a program looks for in the library. 1: attached.
///
/// # Safety
/// `get_export_table` is NVTX's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(
    get_export_table: unsafe extern "C" fn(u32) -> *const c_void,
) -> c_int {
    if env::var_os("NVTX_LINES_REFUSES").is_some() {
        return 0;
    }
    if let Some(path) = env::var_os("NVTX_LINES") {
        let Ok(file) = OpenOptions::new().create(true).append(true).open(path) else { return 0 };
        *LINES.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
    }
    // SAFETY: what NVTX answers with lives as long as the program.
    let tables = unsafe {
        let callbacks = get_export_table(NVTX_ETID_CALLBACKS).cast::<Callbacks>();
        let version = get_export_table(NVTX_ETID_VERSIONINFO).cast::<VersionInfo>();
        (callbacks.as_ref(), version.as_ref())
    };
    let (Some(callbacks), Some(version)) = tables else { return 0 };
    if callbacks.struct_size != size_of::<Callbacks>()
        || version.struct_size != size_of::<VersionInfo>()
        || version.version != 3
    {
        return 0;
    }
    let (mut table, mut size) = (ptr::null_mut(), 0);
    // SAFETY: both are places of ours; the version is a number.
    let found = unsafe {
        (version.set_injection_nvtx_version)(3);
        (callbacks.get_module_function_table)(NVTX_CB_MODULE_CORE2, &raw mut table, &raw mut size)
    };
    if found != 1 || size != NVTX_CBID_CORE2_SIZE {
        return 0;
    }
    let functions = [
        (NVTX_CBID_CORE2_DOMAIN_MARK_EX, domain_mark as *const () as *mut c_void),
        (NVTX_CBID_CORE2_DOMAIN_RANGE_START_EX, domain_range_start as *const () as *mut c_void),
        (NVTX_CBID_CORE2_DOMAIN_RANGE_END, domain_range_end as *const () as *mut c_void),
        (NVTX_CBID_CORE2_DOMAIN_RANGE_PUSH_EX, domain_range_push as *const () as *mut c_void),
        (NVTX_CBID_CORE2_DOMAIN_RANGE_POP, domain_range_pop as *const () as *mut c_void),
        (NVTX_CBID_CORE2_DOMAIN_CREATE_A, domain_create as *const () as *mut c_void),
    ];
    for (slot, function) in functions {
        // SAFETY: the table has `size` addresses of slots, and these numbers are below it.
        unsafe { **table.add(slot) = function };
    }
    1
}
