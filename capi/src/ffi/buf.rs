#![allow(unsafe_code, reason = "functions that C calls")]
//! Buffers.

use super::{
    port::contigo_port,
    raw::{self, Versioned},
};
use crate::{
    fault::{Fault, Misuse},
    last_error::call,
    object::{
        buf::{Access, Buf, with},
        port::get,
    },
    status::contigo_status,
};
use contigo::{DevAddr, DevSlice, Direction};
use core::{ffi::c_void, mem, ptr};

/// A buffer: some bytes of a region, which the CPU owns, or a device, never both. The CPU's can be
/// mapped and has no bus address; a device's has a bus address and cannot be mapped. One thread at
/// a time uses it; any thread may.
pub type contigo_buf = u64;

/// For `contigo_buf_map`: to read. Several may read at once.
pub const CONTIGO_READ: u32 = 1;
/// For `contigo_buf_map`: to read and write, alone.
pub const CONTIGO_WRITE: u32 = 2;

/// What a device does with bytes, always from the device's side: `CONTIGO_READS`, `CONTIGO_WRITES`,
/// or both, joined by `|`.
pub type contigo_use = u32;
/// The device reads.
pub const CONTIGO_READS: u32 = 1;
/// The device writes. Where it does not read too, bytes that the CPU wrote before may be lost.
pub const CONTIGO_WRITES: u32 = 2;
/// Both.
const BOTH: u32 = CONTIGO_READS | CONTIGO_WRITES;

/// What a buffer is. Units: bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct contigo_buf_info {
    /// `sizeof(contigo_buf_info)`.
    pub struct_size: usize,
    /// How many bytes it shows; while it is a device's, how many there are at `addr`.
    pub len_bytes: usize,
    /// Where the first of them is, from the beginning of the region; 0 while it is a device's.
    pub offset_bytes: usize,
    /// The bus address of what the last hand-over named, through that port:
    /// `contigo_buf_give`'s bytes, or those that the last job used. 0 while the buffer is the
    /// CPU's.
    pub addr: u64,
    /// 1 while it is a device's.
    pub device_owned: u32,
    /// Always 0.
    pub reserved: u32,
}

// SAFETY: integers only, `struct_size` first.
unsafe impl Versioned for contigo_buf_info {
    const NAME: &'static str = "contigo_buf_info";
    const LEAST: usize = mem::size_of::<Self>();
}

/// What the buffer is. `CONTIGO_E_DEVICE_OWNED` while a job has it.
///
/// # Safety
/// `info` points to a structure whose `struct_size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_buf_get_info(buf: contigo_buf, info: *mut contigo_buf_info) -> contigo_status {
    call(|| {
        let value = with(buf, |buf| {
            let value = contigo_buf_info::default();
            Ok(match (buf.cpu(), buf.dev()) {
                (Ok(cpu), _) => contigo_buf_info { len_bytes: cpu.len_bytes(), offset_bytes: cpu.offset_bytes(), ..value },
                (_, Ok(dev)) => {
                    let DevSlice { addr: DevAddr(addr), len_bytes, .. } = dev.slice();
                    contigo_buf_info { len_bytes, addr, device_owned: 1, ..value }
                }
                (_, Err(fault)) => return Err(fault),
            })
        })?;
        // SAFETY: the caller's promise.
        unsafe { raw::fill(info, &value) }
    })
}

/// A pointer to the bytes that the buffer shows, and their number. It is valid until
/// `contigo_buf_unmap`; until then the buffer cannot be given away or released. `access`:
/// `CONTIGO_READ`, and nothing may be written through the pointer, or `CONTIGO_WRITE`.
///
/// `CONTIGO_E_DEVICE_OWNED`: a device has it. `CONTIGO_E_MAPPED`: it is mapped already, and one of
/// the two wants to write.
///
/// # Safety
/// `ptr` and `len_bytes` are writable. `len_bytes` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_buf_map(buf: contigo_buf, access: u32, ptr: *mut *mut c_void, len_bytes: *mut usize) -> contigo_status {
    let map = || {
        let access = match access {
            CONTIGO_READ => Access::Read,
            CONTIGO_WRITE => Access::Write,
            value => return Err(Misuse::Value { what: "access", value: value.into() }.into()),
        };
        let (found, len) = with(buf, |buf| buf.map(access))?;
        if !len_bytes.is_null() {
            // SAFETY: not null, and the caller's promise.
            unsafe { len_bytes.write_unaligned(len) };
        }
        Ok(found.cast())
    };
    // SAFETY: the caller's promise.
    unsafe { raw::answer_or(ptr::null_mut(), ptr, "ptr", map) }
}

/// Gives one pointer up: it must not be used any more. `CONTIGO_E_NOT_MAPPED` where there is none.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_buf_unmap(buf: contigo_buf) -> contigo_status {
    call(|| with(buf, |buf| Ok(buf.unmap()?)))
}

/// Copies `len_bytes` bytes to the beginning of what the buffer shows, and counts them: this
/// library's only copy. Data that is still to be made is better made in place.
/// `CONTIGO_E_SAME_BUFFER` where `from` lies in the buffer itself.
///
/// # Safety
/// `len_bytes` bytes are readable at `from`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_buf_write(buf: contigo_buf, from: *const c_void, len_bytes: usize) -> contigo_status {
    call(|| {
        with(buf, |buf| {
            buf.may_take(from.addr(), len_bytes)?;
            // SAFETY: the caller's promise; and no byte of it is one of those of which `copy_from`
            // makes a slice to write.
            buf.copy_from(unsafe { raw::bytes(from.cast(), len_bytes, "from")? })
        })
    })
}

/// Shows only `len_bytes` bytes from `offset_bytes` of what the buffer shows now. All of it stays
/// taken.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_buf_slice(buf: contigo_buf, offset_bytes: usize, len_bytes: usize) -> contigo_status {
    call(|| with(buf, |buf| buf.slice(offset_bytes, len_bytes)))
}

/// Shows all of the buffer again: the reverse of `contigo_buf_slice`. Of a part
/// (`contigo_buf_split`) it is all of that part.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_buf_whole(buf: contigo_buf) -> contigo_status {
    call(|| with(buf, Buf::whole))
}

/// Cuts the buffer in two at byte `at_bytes` of what it shows: it keeps what is before, and `rest`
/// is a buffer of its own with what is behind. One of them can be a device's while the other is the
/// CPU's, and each is released by itself. What the buffer did not show goes with the side
/// it lies on. A part can be cut again; a pool's slot is free again when all of its parts are
/// released.
///
/// Cut at a multiple of the region's `line_bytes`: a port that does not snoop cannot write to
/// either side of a line that both share (`CONTIGO_E_SHARED_LINE`).
///
/// `CONTIGO_E_OUT_OF_RANGE`: `at_bytes` is past the end. `CONTIGO_E_DEVICE_OWNED`,
/// `CONTIGO_E_MAPPED`, `CONTIGO_E_TENSOR_OUT`: it is out. `CONTIGO_E_TABLE_FULL`: there is no entry
/// for `rest`. `CONTIGO_E_TOO_MANY_PARTS`: a pool's slot has 256 parts at most. The buffer is as it
/// was then.
///
/// # Safety
/// `rest` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_buf_split(buf: contigo_buf, at_bytes: usize, rest: *mut contigo_buf) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe { raw::answer(rest, "rest", || Buf::split(buf, at_bytes)) }
}

/// Where the first byte that the buffer shows is, from the beginning of the region.
/// `CONTIGO_E_DEVICE_OWNED` while a device has it.
///
/// # Safety
/// `offset_bytes` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_buf_offset(buf: contigo_buf, offset_bytes: *mut usize) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe { raw::answer(offset_bytes, "offset_bytes", || with(buf, |buf| Ok(buf.cpu()?.offset_bytes()))) }
}

/// Gives `len_bytes` bytes from `offset_bytes` of the buffer to a device that the program drives
/// itself, behind `port`. The call checks that the device reaches them and does the cache
/// maintenance that they need. It answers their bus address, for which `addr` may be NULL. `use`
/// is what the device does: `CONTIGO_READS`, `CONTIGO_WRITES`, or `CONTIGO_READS | CONTIGO_WRITES`.
///
/// The buffer must be the CPU's: `CONTIGO_E_DEVICE_OWNED` of one that a device has.
/// `CONTIGO_E_OUT_OF_RANGE`; `CONTIGO_E_BUFFER_SIZE` for no bytes; `CONTIGO_E_SHARED_LINE`: the
/// device writes a line whose rest is another buffer's; `CONTIGO_E_WRONG_BUS`;
/// `CONTIGO_E_UNREACHABLE`; `CONTIGO_E_CANNOT_SYNC`. Nothing is handed over then. A device whose
/// register for an address is narrower than its port wants a port of its own, with that register's
/// `addr_bits` (`contigo_port_define`).
///
/// From here on the buffer is the device's, until `contigo_buf_take_back`. It can be an operand of
/// an engine's job. Before the program rings its device's doorbell it needs no barrier: this call
/// ends with one.
///
/// # Safety
/// `addr` is NULL or writable. Whichever device is told the address is behind `port`, touches these
/// bytes only, and writes only where `use` says so. It has finished with them, its last write
/// included, before the buffer is taken back, given to a job, or lent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_buf_give(
    buf: contigo_buf,
    port: contigo_port,
    offset_bytes: usize,
    len_bytes: usize,
    r#use: contigo_use,
    addr: *mut u64,
) -> contigo_status {
    let mut ignored = 0;
    let to = if addr.is_null() { &raw mut ignored } else { addr };
    // SAFETY: the caller's promise.
    unsafe {
        raw::answer(to, "addr", || {
            let direction = direction(r#use)?;
            let port = get(port)?;
            with(buf, |buf| buf.hand_to_device(&port, offset_bytes, len_bytes, direction))
        })
    }
}

/// Takes the buffer back for the CPU: what the device wrote is visible after this, also behind a
/// port that snoops. The device must have finished with it, its last write included: only the
/// program knows that of a device that it drives itself. `CONTIGO_E_CPU_OWNED` where it is the
/// CPU's already, `CONTIGO_E_DEVICE_OWNED` while a job has it: wait for the job.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_buf_take_back(buf: contigo_buf) -> contigo_status {
    call(|| with(buf, Buf::take_back))
}

/// Where the device finds it: the bus address and the number of bytes that the last hand-over
/// named, through that port. A job on a part of the buffer makes this the part, so the two belong
/// together. `CONTIGO_E_CPU_OWNED` while the buffer is the CPU's: it has no address then.
///
/// # Safety
/// `addr` and `len_bytes` are writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_buf_dev_addr(buf: contigo_buf, addr: *mut u64, len_bytes: *mut usize) -> contigo_status {
    if !len_bytes.is_null() {
        // SAFETY: not null, and the caller's promise. Where it fails both are 0: no address and no
        // byte.
        unsafe { len_bytes.write_unaligned(0) };
    }
    let find = || {
        if len_bytes.is_null() {
            return Err(Misuse::Null { what: "len_bytes" }.into());
        }
        let slice = with(buf, |buf| Ok(buf.dev()?.slice()))?;
        // SAFETY: as above.
        unsafe { len_bytes.write_unaligned(slice.len_bytes) };
        Ok(slice.addr.0)
    };
    // SAFETY: the caller's promise.
    unsafe { raw::answer(addr, "addr", find) }
}

/// Gives the buffer back: to its pool, or for good. The handle is stale from here on.
/// `CONTIGO_E_DEVICE_OWNED` and `CONTIGO_E_MAPPED`: it is still out; `CONTIGO_E_STALE`: it was
/// released before.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_buf_release(buf: contigo_buf) -> contigo_status {
    call(|| Buf::release(buf))
}

/// The runtime's word for it.
pub(super) fn direction(r#use: contigo_use) -> Result<Direction, Fault> {
    match r#use {
        CONTIGO_READS => Ok(Direction::ToDevice),
        CONTIGO_WRITES => Ok(Direction::FromDevice),
        BOTH => Ok(Direction::Bidirectional),
        value => Err(Misuse::Value { what: "use", value: value.into() }.into()),
    }
}

pub(super) const fn use_of(direction: Direction) -> contigo_use {
    match direction {
        Direction::ToDevice => CONTIGO_READS,
        Direction::FromDevice => CONTIGO_WRITES,
        Direction::Bidirectional => BOTH,
    }
}
