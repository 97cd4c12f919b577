#![allow(unsafe_code, reason = "functions that C calls")]
//! Buffers.

use super::raw::{self, Versioned};
use crate::fault::Fault;
use crate::handles::{contigo_buf, contigo_port};
use crate::last_error::call;
use crate::object::buf::{BUFS, Buf};
use crate::object::port_of;
use crate::status::contigo_status;
use contigo::DevAddr;
use contigo::mem::DevSlice;
use contigo_objects::Access;
use contigo_objects::driver::{contigo_use, direction};
use core::ffi::c_void;
use core::{mem, ptr};

/// For `contigo_buf_map`: to read. Several may read at once.
pub const CONTIGO_READ: u32 = 1;
/// For `contigo_buf_map`: to read and write, alone.
pub const CONTIGO_WRITE: u32 = 2;

/// The state of a buffer: its size, its place and its owner. Units: bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct contigo_buf_info {
    /// `sizeof(contigo_buf_info)`.
    pub struct_size: usize,
    /// How many bytes it has; while a device owns it, how many there are at `addr`.
    pub len_bytes: usize,
    /// Where the first of them is, from the beginning of the region; 0 while a device owns the
    /// buffer.
    pub offset_bytes: usize,
    /// The bus address of the bytes that the last hand-over named, through the port of that
    /// hand-over. `contigo_buf_give` is a hand-over, and so is a job. 0 while the CPU owns the
    /// buffer.
    pub addr: u64,
    /// 1 while a device owns it.
    pub device_owned: u32,
    /// Always 0.
    pub reserved: u32,
}

// SAFETY: integers only, `struct_size` first.
unsafe impl Versioned for contigo_buf_info {
    const NAME: &'static str = "contigo_buf_info";
    const LEAST: usize = mem::size_of::<Self>();
}

/// Fills `info` with the buffer's state. `CONTIGO_E_DEVICE_OWNED` while a job has the buffer.
///
/// # Safety
/// `info` points to a structure whose `struct_size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_buf_get_info(
    buf: contigo_buf,
    info: *mut contigo_buf_info,
) -> contigo_status {
    call(|| {
        BUFS.with(buf, |buf| {
            let value = contigo_buf_info::default();
            let value = match (buf.state.cpu(), buf.state.device()) {
                (Ok(cpu), _) => contigo_buf_info {
                    len_bytes: cpu.len_bytes(),
                    offset_bytes: cpu.offset_bytes(),
                    ..value
                },
                (_, Ok(dev)) => {
                    let DevSlice { addr: DevAddr(addr), len_bytes, .. } = dev.slice();
                    contigo_buf_info { len_bytes, addr, device_owned: 1, ..value }
                }
                (_, Err(refusal)) => return Err(refusal.into()),
            };
            // SAFETY: the caller's promise.
            unsafe { raw::fill(info, &value) }
        })
    })
}

/// Answers a pointer to the buffer's bytes, and their number. The pointer is valid until
/// `contigo_buf_unmap`; until then the buffer cannot be given away or released. `access` is
/// `CONTIGO_READ` or `CONTIGO_WRITE`. With `CONTIGO_READ` nothing may be written through the
/// pointer.
///
/// `CONTIGO_E_DEVICE_OWNED`: a device has the buffer. `CONTIGO_E_MAPPED`: it is mapped already, and
/// one of the two wants to write.
///
/// # Safety
/// `ptr` and `len_bytes` are writable. `len_bytes` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_buf_map(
    buf: contigo_buf,
    access: u32,
    ptr: *mut *mut c_void,
    len_bytes: *mut usize,
) -> contigo_status {
    let map = || {
        let access = match access {
            CONTIGO_READ => Access::Read,
            CONTIGO_WRITE => Access::Write,
            value => return Err(Fault::value("access", value)),
        };
        let (found, len) = BUFS.with(buf, |buf| buf.map(access))?;
        if !len_bytes.is_null() {
            // SAFETY: not null, and the caller's promise.
            unsafe { len_bytes.write_unaligned(len) };
        }
        Ok(found.cast())
    };
    // SAFETY: the caller's promise.
    unsafe { raw::answer_or(ptr::null_mut(), ptr, "ptr", map) }
}

/// Gives one pointer up. The program must not use it any more. `CONTIGO_E_NOT_MAPPED` where there
/// is none.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_buf_unmap(buf: contigo_buf) -> contigo_status {
    call(|| BUFS.with(buf, |buf| Ok(buf.views.close().map(drop)?)))
}

/// Copies `len_bytes` bytes to the beginning of the buffer, and counts them. Data that the program
/// has still to make is better made in place.
/// `CONTIGO_E_SAME_BUFFER` where `from` lies in the buffer itself.
///
/// # Safety
/// `len_bytes` bytes are readable at `from`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_buf_write(
    buf: contigo_buf,
    from: *const c_void,
    len_bytes: usize,
) -> contigo_status {
    call(|| {
        BUFS.with(buf, |buf| {
            buf.may_take(from.addr(), len_bytes)?;
            // SAFETY: the caller's promise; and no byte of it is one of those of which
            // `copy_from_slice` makes a slice to write.
            let source = unsafe { raw::bytes(from.cast(), len_bytes, "from")? };
            Ok::<_, Fault>(buf.state.cpu_mut()?.copy_from_slice(source)?)
        })
    })
}

/// Cuts the buffer in two at byte `at_bytes`. The buffer keeps the bytes before the cut, and `rest`
/// is a new buffer with the bytes behind it. A device can own one of them while the CPU owns the
/// other, and each is released by itself. A part can be cut again; a pool's slot is free again when
/// all of its parts are released.
///
/// Cut at a multiple of the region's `line_bytes`: a port that does not snoop cannot write to
/// either side of a line that both share (`CONTIGO_E_SHARED_LINE`).
///
/// `CONTIGO_E_OUT_OF_RANGE`: `at_bytes` is past the end. `CONTIGO_E_DEVICE_OWNED`,
/// `CONTIGO_E_MAPPED`, `CONTIGO_E_TENSOR_OUT`: a device or a framework has the buffer, or it is
/// mapped. `CONTIGO_E_TABLE_FULL`: there is no entry for `rest`. `CONTIGO_E_TOO_MANY_PARTS`: a
/// pool's slot, or what `contigo_carve` answered, has 256 parts at most. A buffer whose cut is
/// refused is as it was before.
///
/// # Safety
/// `rest` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_buf_split(
    buf: contigo_buf,
    at_bytes: usize,
    rest: *mut contigo_buf,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe { raw::opened(rest, "rest", || Buf::split(buf, at_bytes)) }
}

/// Gives `len_bytes` bytes from `offset_bytes` of the buffer to a device that the program drives
/// itself, behind `port`. The call checks that the device reaches them and does the cache
/// maintenance that they need. It answers their bus address, for which `addr` may be NULL. `use`
/// says how the device uses the bytes: `CONTIGO_READS`, `CONTIGO_WRITES`, or
/// `CONTIGO_READS | CONTIGO_WRITES`.
///
/// The CPU must own the buffer: `CONTIGO_E_DEVICE_OWNED` where a device has it.
/// `CONTIGO_E_OUT_OF_RANGE`; `CONTIGO_E_BUFFER_SIZE` for no bytes; `CONTIGO_E_SHARED_LINE`: the
/// device writes a line whose rest belongs to another buffer; `CONTIGO_E_WRONG_BUS`;
/// `CONTIGO_E_UNREACHABLE`; `CONTIGO_E_CANNOT_SYNC`. Nothing is handed over then. A device whose
/// register for an address is narrower than its port wants a port of its own, with that register's
/// `addr_bits` (`contigo_port_define`).
///
/// From here on the device owns the buffer, until `contigo_buf_take_back`. The buffer can be an
/// operand of an engine's job. The program needs no barrier before it rings its device's doorbell:
/// this call ends with one.
///
/// # Safety
/// `addr` is NULL or writable. Each device that gets the address is behind `port`, touches these
/// bytes only, and writes only where `use` allows it. It has finished with them, its last write
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
            let (direction, port) = (direction(r#use)?, port_of(port)?);
            BUFS.with(buf, |buf| buf.hand_to_device(&port, offset_bytes, len_bytes, direction))
        })
    }
}

/// Takes the buffer back for the CPU. The CPU sees the bytes that the device wrote after this, also
/// behind a port that snoops. The device must have finished with the buffer, its last write
/// included: only the program knows that of a device that it drives itself. `CONTIGO_E_CPU_OWNED`
/// where the CPU owns the buffer already, `CONTIGO_E_DEVICE_OWNED` while a job has it: wait for the
/// job.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_buf_take_back(buf: contigo_buf) -> contigo_status {
    call(|| BUFS.with(buf, |Buf { state, views, .. }| Ok(state.take_back(views, None)?)))
}

/// Gives the buffer back: to its pool, or for good. The handle is stale from here on.
/// `CONTIGO_E_DEVICE_OWNED`: a device still has it. `CONTIGO_E_MAPPED`: it is still mapped.
/// `CONTIGO_E_STALE`: it was released before.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_buf_release(buf: contigo_buf) -> contigo_status {
    call(|| Buf::release(buf))
}
