#![allow(unsafe_code, reason = "symbols of the linker, and a mapping that no other code has yet")]
//! The header of a new ring: the program, its build, the boot, and the start time.

use super::{Settings, StartError};
use crate::build_id::BuildId;
use crate::layout::{BOOT_ID_BYTES, HEADER_BYTES, MAGIC, PATH_BYTES, at};
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::ptr::NonNull;
use core::sync::atomic::{Ordering, fence};
use nix::libc::{PT_NOTE, dl_iterate_phdr, dl_phdr_info};
use nix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io::Read;

unsafe extern "C" {
    /// Entry 1 of defmt's table. Only its address is used, never its memory.
    static _defmt_needs_the_linker_script_contigo_log_x: u8;
}

/// An event's number is the low 16 bits of an address. A position-independent program is relocated,
/// and Linux 5.10 or newer does so by a multiple of its segments' alignment: this one's.
#[repr(C, align(65536))]
struct Aligned(UnsafeCell<u8>);

// SAFETY: no code reads or writes it.
unsafe impl Sync for Aligned {}

#[used]
static ALIGNED: Aligned = Aligned(UnsafeCell::new(0));

/// Checks that the events' numbers are those of the table at the program's load address.
pub(super) fn numbers_are_right() -> Result<(), StartError> {
    let own = (&raw const _defmt_needs_the_linker_script_contigo_log_x).addr();
    #[allow(clippy::cast_possible_truncation, reason = "as defmt makes a number of an address")]
    let off_by = (own as u16).wrapping_sub(1);
    // ALIGNED is used here so that it is linked.
    if off_by == 0 && !core::hint::black_box(ALIGNED.0.get()).is_null() {
        Ok(())
    } else {
        Err(StartError::LoadAddress { off_by })
    }
}

/// This program's build ID, from its notes in memory, which the C library finds.
pub(super) fn own_build_id() -> Option<BuildId> {
    let mut found: Option<BuildId> = None;
    // SAFETY: `of_program` takes a pointer of this type, and does not keep it.
    unsafe { dl_iterate_phdr(Some(of_program), (&raw mut found).cast()) };
    found
}

/// The first object of `dl_iterate_phdr` is the program (man 3 dl_iterate_phdr); stops after it.
unsafe extern "C" fn of_program(info: *mut dl_phdr_info, _: usize, found: *mut c_void) -> c_int {
    // SAFETY: the C library's own structure, which is valid during this call.
    let info = unsafe { &*info };
    // SAFETY: the table and its length are the C library's.
    let headers =
        unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let id = headers.iter().filter(|header| header.p_type == PT_NOTE).find_map(|header| {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "both are addresses and sizes of this process"
        )]
        let (first, len) =
            (info.dlpi_addr.wrapping_add(header.p_vaddr) as usize, header.p_memsz as usize);
        // SAFETY: the linker's notes are in a segment of this length, which is mapped, readable and
        // constant.
        BuildId::in_notes(unsafe {
            core::slice::from_raw_parts(core::ptr::with_exposed_provenance(first), len)
        })
    });
    // SAFETY: `own_build_id` passed a pointer to its own variable.
    unsafe { found.cast::<Option<BuildId>>().write(id) };
    1
}

/// Writes the header, and its magic last, so that an unfinished header is not valid.
pub(super) fn fill(map: NonNull<u8>, settings: &Settings, build_id: &BuildId) {
    // SAFETY: the mapping holds at least a header, is writable, and no other code has it yet.
    let header = unsafe { core::slice::from_raw_parts_mut(map.as_ptr(), HEADER_BYTES) };
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(place) = header.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    };
    let now_ns = |clock| {
        clock_gettime(clock).map_or(0, |now| {
            let seconds = u64::try_from(now.tv_sec()).unwrap_or(0);
            seconds
                .wrapping_mul(1_000_000_000)
                .wrapping_add(u64::try_from(now.tv_nsec()).unwrap_or(0))
        })
    };
    put(at::RING_BYTES, &settings.ring_bytes.to_le_bytes());
    put(at::PID, &std::process::id().to_le_bytes());
    put(at::START_MONOTONIC_NS, &now_ns(ClockId::CLOCK_MONOTONIC).to_le_bytes());
    put(at::START_REAL_NS, &now_ns(ClockId::CLOCK_REALTIME).to_le_bytes());
    put(at::BUILD_ID, build_id.bytes());
    #[allow(clippy::cast_possible_truncation, reason = "20 at most")]
    put(at::BUILD_ID_LEN, &(build_id.bytes().len() as u32).to_le_bytes());
    let mut boot = [0; BOOT_ID_BYTES];
    // A kernel without the file leaves zeroes.
    let _ = File::open("/proc/sys/kernel/random/boot_id")
        .and_then(|mut file| file.read_exact(&mut boot));
    put(at::BOOT_ID, &boot);
    let mut path = [0_u8; PATH_BYTES];
    // SAFETY: a constant name, and a buffer with its length.
    let len = unsafe {
        nix::libc::readlink(c"/proc/self/exe".as_ptr(), path.as_mut_ptr().cast(), path.len())
    };
    let len = usize::try_from(len).unwrap_or(0);
    put(at::PATH, path.get(..len).unwrap_or_default());
    #[allow(clippy::cast_possible_truncation, reason = "PATH_BYTES at most")]
    put(at::PATH_LEN, &(len as u32).to_le_bytes());
    fence(Ordering::Release);
    put(0, &MAGIC);
}
