//! What every call returns: 0, or a negative number for each class of refusal. A number never
//! changes its meaning.

use crate::fault::{Fault, Misuse};
use contigo::Error;
use core::ffi::CStr;

/// What a call returns: `CONTIGO_OK`, or one of `CONTIGO_E_...`, which are negative.
/// `contigo_last_error` has the text with the numbers.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type contigo_status = i32;

/// It was done.
pub const CONTIGO_OK: contigo_status = 0;

// ---- What a program must not do: -1 and on.
/// A pointer that must not be `NULL` is.
pub const CONTIGO_E_NULL: contigo_status = -1;
/// A number that is no handle.
pub const CONTIGO_E_HANDLE: contigo_status = -2;
/// The object is gone: released, closed, ended, or given away. Also the second release of one
/// handle.
pub const CONTIGO_E_STALE: contigo_status = -3;
/// A handle, a port, or a register of another kind; or the device has no interrupt.
pub const CONTIGO_E_KIND: contigo_status = -4;
/// Another thread is in a call with this object. Use a handle from one thread at a time.
pub const CONTIGO_E_IN_CALL: contigo_status = -5;
/// Others still use this object: its buffers, its engines, a call of another thread. Release them
/// first.
pub const CONTIGO_E_STILL_USED: contigo_status = -6;
/// A fixed table of this library is full (`CONTIGO_MAX_...`).
pub const CONTIGO_E_TABLE_FULL: contigo_status = -7;
/// The buffer is mapped, so that nobody else may have it. Unmap it first.
pub const CONTIGO_E_MAPPED: contigo_status = -8;
/// The buffer is not mapped.
pub const CONTIGO_E_NOT_MAPPED: contigo_status = -9;
/// The buffer is a device's. Wait for its job, or take it back with `contigo_buf_to_cpu`.
pub const CONTIGO_E_DEVICE_OWNED: contigo_status = -10;
/// The buffer is the CPU's, and has no bus address. Hand it over with `contigo_buf_to_device`.
pub const CONTIGO_E_CPU_OWNED: contigo_status = -11;
/// A structure's `struct_size` cannot be, or it has something set that this library does not know.
pub const CONTIGO_E_STRUCT: contigo_status = -13;
/// A text is not UTF-8, or too long.
pub const CONTIGO_E_TEXT: contigo_status = -14;
/// A number is none of those that this header lists for it.
pub const CONTIGO_E_VALUE: contigo_status = -15;
/// One buffer is two operands of one job, or a copy is from a buffer into itself.
pub const CONTIGO_E_SAME_BUFFER: contigo_status = -16;
/// The engine has jobs whose end nobody took. Wait for them, or cancel them.
pub const CONTIGO_E_HAS_JOB: contigo_status = -17;
/// A defect of this library was caught. Please report it.
pub const CONTIGO_E_INTERNAL: contigo_status = -18;

// ---- Numbers that no board could satisfy.
/// An alignment is no power of two.
pub const CONTIGO_E_NOT_POWER_OF_TWO: contigo_status = -100;
/// A range runs past the end of what it indexes.
pub const CONTIGO_E_OUT_OF_RANGE: contigo_status = -101;
/// The bytes cannot be viewed so.
pub const CONTIGO_E_VIEW: contigo_status = -102;

// ---- The block itself.
/// The block is in pieces on the bus.
pub const CONTIGO_E_NOT_CONTIGUOUS: contigo_status = -103;
/// An address is not aligned as was asked for.
pub const CONTIGO_E_MISALIGNED: contigo_status = -104;
/// The block is too small, or no whole number of cache lines.
pub const CONTIGO_E_BLOCK_SIZE: contigo_status = -105;
/// The block ends above the address width asked for.
pub const CONTIGO_E_TOO_HIGH: contigo_status = -106;
/// The memory has no address for a device. The text says what to install.
pub const CONTIGO_E_NO_ADDRESS: contigo_status = -107;
/// A pointer or an address is not inside this heap.
pub const CONTIGO_E_NOT_OURS: contigo_status = -108;

// ---- Carving and pools.
/// Nothing that large is left.
pub const CONTIGO_E_EXHAUSTED: contigo_status = -109;
/// Every slot of the pool is taken.
pub const CONTIGO_E_NO_SLOTS: contigo_status = -110;
/// A slot is no whole number of cache lines.
pub const CONTIGO_E_SLOT_SIZE: contigo_status = -111;
/// The block can only be synchronised as a whole, and has another buffer.
pub const CONTIGO_E_WHOLE_BLOCK: contigo_status = -112;
/// The parts of the heap cannot be counted any further.
pub const CONTIGO_E_TOO_MANY_PARTS: contigo_status = -113;

// ---- Memory against port, decided when a buffer is handed over.
/// The port, or the engine's registers, cannot reach these bytes.
pub const CONTIGO_E_UNREACHABLE: contigo_status = -114;
/// The memory's addresses are for another bus.
pub const CONTIGO_E_WRONG_BUS: contigo_status = -115;
/// The kernel and the port disagree on whether the memory is coherent.
pub const CONTIGO_E_COHERENCY: contigo_status = -116;
/// Nobody can maintain the caches of this memory, and the port does not snoop.
pub const CONTIGO_E_CANNOT_SYNC: contigo_status = -117;
/// The device would write into a cache line that another buffer shares.
pub const CONTIGO_E_SHARED_LINE: contigo_status = -118;
/// The engine uses this operand in another direction.
pub const CONTIGO_E_WRONG_DIRECTION: contigo_status = -119;
/// An operand is too small for the job.
pub const CONTIGO_E_BUFFER_SIZE: contigo_status = -120;
/// An operand's bus address is not aligned as the engine needs.
pub const CONTIGO_E_BUFFER_ALIGN: contigo_status = -121;
/// An argument is outside what is possible. The text has the limits.
pub const CONTIGO_E_ARGUMENT: contigo_status = -122;
/// The device has a driver already.
pub const CONTIGO_E_BUSY: contigo_status = -123;

// ---- The device.
/// The job did not end in time. The device was stopped, and the buffers are back.
pub const CONTIGO_E_TIMEOUT: contigo_status = -124;
/// The device reports an error. It was stopped, and the buffers are back.
pub const CONTIGO_E_FAULT: contigo_status = -125;
/// The device says it is done, and moved too little. The buffers are back.
pub const CONTIGO_E_SHORT_TRANSFER: contigo_status = -126;
/// The device would not stop, and keeps its buffers. Reset it, then `contigo_queue_stop`.
pub const CONTIGO_E_WILL_NOT_STOP: contigo_status = -127;
/// The register window is too small: this is another device.
pub const CONTIGO_E_REGISTER_WINDOW: contigo_status = -128;

// ---- The kernel.
/// A system call failed. The text has its name and the errno.
pub const CONTIGO_E_OS: contigo_status = -129;
/// The kernel does not give this program the device. The text says what to change.
pub const CONTIGO_E_DENIED: contigo_status = -130;
/// A name is empty, too long, or has a `/`.
pub const CONTIGO_E_BAD_NAME: contigo_status = -131;
/// There is no such device.
pub const CONTIGO_E_NOT_FOUND: contigo_status = -132;
/// Several devices are called that.
pub const CONTIGO_E_AMBIGUOUS: contigo_status = -133;
/// A file under `/sys` is not there.
pub const CONTIGO_E_ATTRIBUTE_MISSING: contigo_status = -134;
/// A file under `/sys` or `/proc` cannot be read or written.
pub const CONTIGO_E_ATTRIBUTE_UNREADABLE: contigo_status = -135;
/// A file under `/sys` is empty.
pub const CONTIGO_E_ATTRIBUTE_EMPTY: contigo_status = -136;
/// A file, an ioctl or a register says what cannot be.
pub const CONTIGO_E_ATTRIBUTE_NONSENSE: contigo_status = -137;
/// A setting makes this memory or device unusable. The text says what to change.
pub const CONTIGO_E_UNSUITABLE: contigo_status = -138;
/// `/proc/self/pagemap` hides addresses: run as root, or with `CAP_SYS_ADMIN`.
pub const CONTIGO_E_PAGEMAP_HIDDEN: contigo_status = -139;
/// Another process, or another part of this one, has it open.
pub const CONTIGO_E_IN_USE: contigo_status = -140;
/// The kernel would not pin so much memory (`RLIMIT_MEMLOCK`).
pub const CONTIGO_E_PIN_LIMIT: contigo_status = -141;
/// Another thread's cache maintenance did not end in time. Nothing was done; try again.
pub const CONTIGO_E_CONTENDED: contigo_status = -142;

// ---- Tensors.
/// A tensor is not what the exchange, or the consumer's demand, allows. The text has the rule and
/// the numbers.
pub const CONTIGO_E_TENSOR: contigo_status = -143;
/// A consumer has this buffer's tensor, or the buffer was not taken back yet
/// (`contigo_buf_unlend`).
pub const CONTIGO_E_TENSOR_OUT: contigo_status = -144;

// ---- CUDA.
/// NVIDIA's driver refused, or tells now of a kernel that failed before. The text has its function,
/// and the code with its name; from 700 on the GPU is lost to this program.
pub const CONTIGO_E_CUDA: contigo_status = -145;
/// A library of the system is not there, as NVIDIA's driver. The text says what to install.
pub const CONTIGO_E_NO_LIBRARY: contigo_status = -146;

// ---- The process.
/// This process is a child of fork, and whatever the library has is its parent's: every call is
/// refused, and touches nothing. Start a program by exec, or fork before the first call.
pub const CONTIGO_E_FORKED: contigo_status = -147;

// ---- Limits, and which device it is.
/// There is a limit on these, and it is reached. The text says on what, and how many there can be.
pub const CONTIGO_E_TOO_MANY: contigo_status = -148;
/// A register that tells devices apart says that this is another one. The text has what it holds,
/// and what was expected.
pub const CONTIGO_E_WRONG_DEVICE: contigo_status = -149;

/// Memory or a device of this kind is not built into this library. The text has the feature.
pub const CONTIGO_E_NOT_BUILT_IN: contigo_status = -150;
/// The memory belongs to a device: open that one, and the memory from it (`contigo_device_memory`).
pub const CONTIGO_E_NEEDS_DEVICE: contigo_status = -151;

// ---- Queues.
/// An operand is longer than the device takes in one job. Cut it.
pub const CONTIGO_E_OPERAND_TOO_LONG: contigo_status = -152;
/// As many jobs are in flight as the queue or the device holds. Take one that ended out first.
pub const CONTIGO_E_QUEUE_FULL: contigo_status = -153;
/// The device would not stop. Reset it, then `contigo_queue_stop`.
pub const CONTIGO_E_QUEUE_STOPPED: contigo_status = -154;
/// The device tells of a job that it does not have, or claims more bytes than it was given. It was
/// stopped, and the buffers are back.
pub const CONTIGO_E_BAD_COMPLETION: contigo_status = -155;
/// Another channel of the same core reset it, which ended this channel's jobs. Start them again.
pub const CONTIGO_E_ENDED_BY_RESET: contigo_status = -156;
/// The device was stopped before this job ended. Its buffers are back.
pub const CONTIGO_E_CANCELLED: contigo_status = -157;
/// A file is no map of a kernel. The text has the line and the rule.
pub const CONTIGO_E_BAD_MAP: contigo_status = -158;

/// A refusal that is newer than this list. The text says what.
pub const CONTIGO_E_OTHER: contigo_status = -999;

impl Fault {
    /// The code of this refusal.
    pub(crate) const fn status(&self) -> contigo_status {
        match *self {
            Self::Runtime(error) | Self::Job { error, .. } | Self::Memory { error, .. } | Self::Device { error, .. } => of_runtime(error),
            Self::Name(_) => CONTIGO_E_BAD_NAME,
            Self::Map(_) => CONTIGO_E_BAD_MAP,
            Self::Misuse(misuse) => of_misuse(misuse),
        }
    }
}

const fn of_misuse(misuse: Misuse) -> contigo_status {
    match misuse {
        Misuse::Null { .. } => CONTIGO_E_NULL,
        Misuse::NoHandle { .. } => CONTIGO_E_HANDLE,
        Misuse::Stale { .. } => CONTIGO_E_STALE,
        Misuse::WrongKind { .. } | Misuse::OtherPort | Misuse::NoGpu { .. } | Misuse::NoInterrupt | Misuse::Register { .. } => {
            CONTIGO_E_KIND
        }
        Misuse::NoDriver => CONTIGO_E_NOT_FOUND,
        Misuse::Cancelled => CONTIGO_E_CANCELLED,
        Misuse::InCall { .. } => CONTIGO_E_IN_CALL,
        Misuse::StillUsed { .. } => CONTIGO_E_STILL_USED,
        Misuse::TableFull { .. } => CONTIGO_E_TABLE_FULL,
        Misuse::Mapped { .. } => CONTIGO_E_MAPPED,
        Misuse::NotMapped => CONTIGO_E_NOT_MAPPED,
        Misuse::DeviceOwned => CONTIGO_E_DEVICE_OWNED,
        Misuse::CpuOwned => CONTIGO_E_CPU_OWNED,
        Misuse::StructSize { .. } | Misuse::NewerStruct { .. } => CONTIGO_E_STRUCT,
        Misuse::Text { .. } => CONTIGO_E_TEXT,
        Misuse::Value { .. } => CONTIGO_E_VALUE,
        Misuse::SameBuffer { .. } | Misuse::Overlap => CONTIGO_E_SAME_BUFFER,
        Misuse::HasJob { .. } => CONTIGO_E_HAS_JOB,
        Misuse::Panicked => CONTIGO_E_INTERNAL,
    }
}

#[allow(clippy::too_many_lines, reason = "one line a variant: a table, not a flow")]
const fn of_runtime(error: Error) -> contigo_status {
    match error {
        Error::NotPowerOfTwo { .. } => CONTIGO_E_NOT_POWER_OF_TWO,
        Error::OutOfRange { .. } => CONTIGO_E_OUT_OF_RANGE,
        Error::View { .. } => CONTIGO_E_VIEW,
        Error::NotContiguous { .. } => CONTIGO_E_NOT_CONTIGUOUS,
        Error::Misaligned { .. } => CONTIGO_E_MISALIGNED,
        Error::BlockSize { .. } => CONTIGO_E_BLOCK_SIZE,
        Error::TooHigh { .. } => CONTIGO_E_TOO_HIGH,
        Error::NoAddress { .. } => CONTIGO_E_NO_ADDRESS,
        Error::NotOurs { .. } => CONTIGO_E_NOT_OURS,
        Error::Exhausted { .. } => CONTIGO_E_EXHAUSTED,
        Error::NoSlots { .. } => CONTIGO_E_NO_SLOTS,
        Error::TooMany { .. } => CONTIGO_E_TOO_MANY,
        Error::SlotSize { .. } => CONTIGO_E_SLOT_SIZE,
        Error::WholeBlock { .. } => CONTIGO_E_WHOLE_BLOCK,
        Error::TooManyParts { .. } => CONTIGO_E_TOO_MANY_PARTS,
        Error::Tensor { .. } => CONTIGO_E_TENSOR,
        Error::TensorOut => CONTIGO_E_TENSOR_OUT,
        Error::Unreachable { .. } => CONTIGO_E_UNREACHABLE,
        Error::WrongBus { .. } => CONTIGO_E_WRONG_BUS,
        Error::CoherencyMismatch { .. } => CONTIGO_E_COHERENCY,
        Error::CannotSync { .. } => CONTIGO_E_CANNOT_SYNC,
        Error::SharedLine { .. } => CONTIGO_E_SHARED_LINE,
        Error::WrongDirection { .. } => CONTIGO_E_WRONG_DIRECTION,
        Error::BufferSize { .. } => CONTIGO_E_BUFFER_SIZE,
        Error::BufferAlign { .. } => CONTIGO_E_BUFFER_ALIGN,
        Error::Argument { .. } => CONTIGO_E_ARGUMENT,
        Error::Busy => CONTIGO_E_BUSY,
        Error::Timeout { .. } => CONTIGO_E_TIMEOUT,
        Error::Fault { .. } => CONTIGO_E_FAULT,
        Error::ShortTransfer { .. } => CONTIGO_E_SHORT_TRANSFER,
        Error::WillNotStop { .. } => CONTIGO_E_WILL_NOT_STOP,
        Error::RegisterWindow { .. } => CONTIGO_E_REGISTER_WINDOW,
        Error::WrongDevice { .. } => CONTIGO_E_WRONG_DEVICE,
        Error::Os { .. } => CONTIGO_E_OS,
        Error::Denied { .. } => CONTIGO_E_DENIED,
        Error::BadName { .. } => CONTIGO_E_BAD_NAME,
        Error::NotFound { .. } => CONTIGO_E_NOT_FOUND,
        Error::Ambiguous { .. } => CONTIGO_E_AMBIGUOUS,
        Error::AttributeMissing { .. } => CONTIGO_E_ATTRIBUTE_MISSING,
        Error::AttributeUnreadable { .. } => CONTIGO_E_ATTRIBUTE_UNREADABLE,
        Error::AttributeEmpty { .. } => CONTIGO_E_ATTRIBUTE_EMPTY,
        Error::AttributeNonsense { .. } => CONTIGO_E_ATTRIBUTE_NONSENSE,
        Error::Unsuitable { .. } => CONTIGO_E_UNSUITABLE,
        Error::PagemapHidden { .. } => CONTIGO_E_PAGEMAP_HIDDEN,
        Error::InUse { .. } => CONTIGO_E_IN_USE,
        Error::PinLimit { .. } => CONTIGO_E_PIN_LIMIT,
        Error::Contended { .. } => CONTIGO_E_CONTENDED,
        Error::Cuda { .. } => CONTIGO_E_CUDA,
        Error::NoLibrary { .. } => CONTIGO_E_NO_LIBRARY,
        Error::Forked { .. } => CONTIGO_E_FORKED,
        Error::NotBuiltIn { .. } => CONTIGO_E_NOT_BUILT_IN,
        Error::NeedsDevice { .. } => CONTIGO_E_NEEDS_DEVICE,
        Error::OperandTooLong { .. } => CONTIGO_E_OPERAND_TOO_LONG,
        Error::QueueFull { .. } => CONTIGO_E_QUEUE_FULL,
        Error::QueueStopped { .. } => CONTIGO_E_QUEUE_STOPPED,
        Error::BadCompletion { .. } => CONTIGO_E_BAD_COMPLETION,
        Error::EndedByReset { .. } => CONTIGO_E_ENDED_BY_RESET,
        _ => CONTIGO_E_OTHER,
    }
}

/// The name of a code, as this header spells it; `"?"` for a number that is none.
pub(crate) fn name(status: contigo_status) -> &'static CStr {
    NAMES.iter().find(|(code, _)| *code == status).map_or(c"?", |(_, name)| name)
}

const NAMES: &[(contigo_status, &CStr)] = &[
    (CONTIGO_OK, c"CONTIGO_OK"),
    (CONTIGO_E_NULL, c"CONTIGO_E_NULL"),
    (CONTIGO_E_HANDLE, c"CONTIGO_E_HANDLE"),
    (CONTIGO_E_STALE, c"CONTIGO_E_STALE"),
    (CONTIGO_E_KIND, c"CONTIGO_E_KIND"),
    (CONTIGO_E_IN_CALL, c"CONTIGO_E_IN_CALL"),
    (CONTIGO_E_STILL_USED, c"CONTIGO_E_STILL_USED"),
    (CONTIGO_E_TABLE_FULL, c"CONTIGO_E_TABLE_FULL"),
    (CONTIGO_E_MAPPED, c"CONTIGO_E_MAPPED"),
    (CONTIGO_E_NOT_MAPPED, c"CONTIGO_E_NOT_MAPPED"),
    (CONTIGO_E_DEVICE_OWNED, c"CONTIGO_E_DEVICE_OWNED"),
    (CONTIGO_E_CPU_OWNED, c"CONTIGO_E_CPU_OWNED"),
    (CONTIGO_E_STRUCT, c"CONTIGO_E_STRUCT"),
    (CONTIGO_E_TEXT, c"CONTIGO_E_TEXT"),
    (CONTIGO_E_VALUE, c"CONTIGO_E_VALUE"),
    (CONTIGO_E_SAME_BUFFER, c"CONTIGO_E_SAME_BUFFER"),
    (CONTIGO_E_HAS_JOB, c"CONTIGO_E_HAS_JOB"),
    (CONTIGO_E_INTERNAL, c"CONTIGO_E_INTERNAL"),
    (CONTIGO_E_NOT_POWER_OF_TWO, c"CONTIGO_E_NOT_POWER_OF_TWO"),
    (CONTIGO_E_OUT_OF_RANGE, c"CONTIGO_E_OUT_OF_RANGE"),
    (CONTIGO_E_VIEW, c"CONTIGO_E_VIEW"),
    (CONTIGO_E_NOT_CONTIGUOUS, c"CONTIGO_E_NOT_CONTIGUOUS"),
    (CONTIGO_E_MISALIGNED, c"CONTIGO_E_MISALIGNED"),
    (CONTIGO_E_BLOCK_SIZE, c"CONTIGO_E_BLOCK_SIZE"),
    (CONTIGO_E_TOO_HIGH, c"CONTIGO_E_TOO_HIGH"),
    (CONTIGO_E_NO_ADDRESS, c"CONTIGO_E_NO_ADDRESS"),
    (CONTIGO_E_NOT_OURS, c"CONTIGO_E_NOT_OURS"),
    (CONTIGO_E_EXHAUSTED, c"CONTIGO_E_EXHAUSTED"),
    (CONTIGO_E_NO_SLOTS, c"CONTIGO_E_NO_SLOTS"),
    (CONTIGO_E_SLOT_SIZE, c"CONTIGO_E_SLOT_SIZE"),
    (CONTIGO_E_WHOLE_BLOCK, c"CONTIGO_E_WHOLE_BLOCK"),
    (CONTIGO_E_TOO_MANY_PARTS, c"CONTIGO_E_TOO_MANY_PARTS"),
    (CONTIGO_E_UNREACHABLE, c"CONTIGO_E_UNREACHABLE"),
    (CONTIGO_E_WRONG_BUS, c"CONTIGO_E_WRONG_BUS"),
    (CONTIGO_E_COHERENCY, c"CONTIGO_E_COHERENCY"),
    (CONTIGO_E_CANNOT_SYNC, c"CONTIGO_E_CANNOT_SYNC"),
    (CONTIGO_E_SHARED_LINE, c"CONTIGO_E_SHARED_LINE"),
    (CONTIGO_E_WRONG_DIRECTION, c"CONTIGO_E_WRONG_DIRECTION"),
    (CONTIGO_E_BUFFER_SIZE, c"CONTIGO_E_BUFFER_SIZE"),
    (CONTIGO_E_BUFFER_ALIGN, c"CONTIGO_E_BUFFER_ALIGN"),
    (CONTIGO_E_ARGUMENT, c"CONTIGO_E_ARGUMENT"),
    (CONTIGO_E_BUSY, c"CONTIGO_E_BUSY"),
    (CONTIGO_E_TIMEOUT, c"CONTIGO_E_TIMEOUT"),
    (CONTIGO_E_FAULT, c"CONTIGO_E_FAULT"),
    (CONTIGO_E_SHORT_TRANSFER, c"CONTIGO_E_SHORT_TRANSFER"),
    (CONTIGO_E_WILL_NOT_STOP, c"CONTIGO_E_WILL_NOT_STOP"),
    (CONTIGO_E_REGISTER_WINDOW, c"CONTIGO_E_REGISTER_WINDOW"),
    (CONTIGO_E_OS, c"CONTIGO_E_OS"),
    (CONTIGO_E_DENIED, c"CONTIGO_E_DENIED"),
    (CONTIGO_E_BAD_NAME, c"CONTIGO_E_BAD_NAME"),
    (CONTIGO_E_NOT_FOUND, c"CONTIGO_E_NOT_FOUND"),
    (CONTIGO_E_AMBIGUOUS, c"CONTIGO_E_AMBIGUOUS"),
    (CONTIGO_E_ATTRIBUTE_MISSING, c"CONTIGO_E_ATTRIBUTE_MISSING"),
    (CONTIGO_E_ATTRIBUTE_UNREADABLE, c"CONTIGO_E_ATTRIBUTE_UNREADABLE"),
    (CONTIGO_E_ATTRIBUTE_EMPTY, c"CONTIGO_E_ATTRIBUTE_EMPTY"),
    (CONTIGO_E_ATTRIBUTE_NONSENSE, c"CONTIGO_E_ATTRIBUTE_NONSENSE"),
    (CONTIGO_E_UNSUITABLE, c"CONTIGO_E_UNSUITABLE"),
    (CONTIGO_E_PAGEMAP_HIDDEN, c"CONTIGO_E_PAGEMAP_HIDDEN"),
    (CONTIGO_E_IN_USE, c"CONTIGO_E_IN_USE"),
    (CONTIGO_E_PIN_LIMIT, c"CONTIGO_E_PIN_LIMIT"),
    (CONTIGO_E_CONTENDED, c"CONTIGO_E_CONTENDED"),
    (CONTIGO_E_TENSOR, c"CONTIGO_E_TENSOR"),
    (CONTIGO_E_TENSOR_OUT, c"CONTIGO_E_TENSOR_OUT"),
    (CONTIGO_E_CUDA, c"CONTIGO_E_CUDA"),
    (CONTIGO_E_NO_LIBRARY, c"CONTIGO_E_NO_LIBRARY"),
    (CONTIGO_E_FORKED, c"CONTIGO_E_FORKED"),
    (CONTIGO_E_TOO_MANY, c"CONTIGO_E_TOO_MANY"),
    (CONTIGO_E_WRONG_DEVICE, c"CONTIGO_E_WRONG_DEVICE"),
    (CONTIGO_E_NOT_BUILT_IN, c"CONTIGO_E_NOT_BUILT_IN"),
    (CONTIGO_E_NEEDS_DEVICE, c"CONTIGO_E_NEEDS_DEVICE"),
    (CONTIGO_E_OPERAND_TOO_LONG, c"CONTIGO_E_OPERAND_TOO_LONG"),
    (CONTIGO_E_QUEUE_FULL, c"CONTIGO_E_QUEUE_FULL"),
    (CONTIGO_E_QUEUE_STOPPED, c"CONTIGO_E_QUEUE_STOPPED"),
    (CONTIGO_E_BAD_COMPLETION, c"CONTIGO_E_BAD_COMPLETION"),
    (CONTIGO_E_ENDED_BY_RESET, c"CONTIGO_E_ENDED_BY_RESET"),
    (CONTIGO_E_CANCELLED, c"CONTIGO_E_CANCELLED"),
    (CONTIGO_E_BAD_MAP, c"CONTIGO_E_BAD_MAP"),
    (CONTIGO_E_OTHER, c"CONTIGO_E_OTHER"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn codes_are_negative_and_different() {
        let codes: BTreeSet<_> = NAMES.iter().map(|(code, _)| code).collect();
        assert_eq!(codes.len(), NAMES.len());
        assert!(NAMES.iter().all(|&(code, _)| code < 0 || code == CONTIGO_OK));
        assert_eq!((name(CONTIGO_E_STALE), name(1), name(-50)), (c"CONTIGO_E_STALE", c"?", c"?"));
    }
}
