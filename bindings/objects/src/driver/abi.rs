#![allow(
    non_camel_case_types,
    unsafe_code,
    reason = "the names in C; structures of integers and pointers"
)]
//! The structures that a driver and a program exchange, in C. `contigo.h` is made from this file.

use crate::{ArgumentError, Versioned};
use contigo::{Align, Completion, Direction, OperandSpec};
use core::ffi::{c_char, c_void};
use core::mem;

/// A call returns `CONTIGO_OK`, or one of `CONTIGO_E_...`, which are negative.
/// `contigo_last_error` has the text with the numbers.
pub type contigo_status = i32;

/// How a device uses bytes, always said from the device's side: `CONTIGO_READS`, `CONTIGO_WRITES`,
/// or both, joined by `|`.
pub type contigo_use = u32;
/// The device reads.
pub const CONTIGO_READS: u32 = 1;
/// The device writes. Where it does not read too, bytes that the CPU wrote before may be lost.
pub const CONTIGO_WRITES: u32 = 2;
/// Both.
const BOTH: u32 = CONTIGO_READS | CONTIGO_WRITES;

/// The runtime's word for a use.
///
/// # Errors
/// [`ArgumentError::Value`].
pub const fn direction(r#use: contigo_use) -> Result<Direction, ArgumentError> {
    match r#use {
        CONTIGO_READS => Ok(Direction::ToDevice),
        CONTIGO_WRITES => Ok(Direction::FromDevice),
        BOTH => Ok(Direction::Bidirectional),
        value => Err(ArgumentError::Value { what: "use", value: value as u64 }),
    }
}

/// C's number for a direction.
#[must_use]
pub const fn use_of(direction: Direction) -> contigo_use {
    match direction {
        Direction::ToDevice => CONTIGO_READS,
        Direction::FromDevice => CONTIGO_WRITES,
        Direction::Bidirectional => BOTH,
    }
}

/// One operand of a driver's jobs, as the driver describes it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct contigo_operand_spec {
    /// Does the device read it (`CONTIGO_READS`), write it (`CONTIGO_WRITES`), or both?
    pub r#use: contigo_use,
    /// The device reads it in whole words of so many bytes, a power of two, such as its data bus
    /// has: a job whose last word is not all in the operand's block is refused then. 0: by bytes.
    pub word_bytes: u32,
    /// Its bus address is a multiple of so many bytes, a power of two; 0: any address.
    pub align_bytes: usize,
    /// The fewest bytes; 0: 1.
    pub min_bytes: usize,
    /// The most that one job takes; 0: any.
    pub max_bytes: usize,
}

impl From<&OperandSpec> for contigo_operand_spec {
    fn from(spec: &OperandSpec) -> Self {
        Self {
            r#use: use_of(spec.direction),
            word_bytes: if spec.word_bytes <= 1 {
                0
            } else {
                u32::try_from(spec.word_bytes).unwrap_or(u32::MAX)
            },
            align_bytes: spec.align_bytes,
            min_bytes: spec.min_bytes,
            max_bytes: if spec.max_bytes == usize::MAX { 0 } else { spec.max_bytes },
        }
    }
}

impl TryFrom<&contigo_operand_spec> for OperandSpec {
    type Error = crate::Refusal;

    fn try_from(given: &contigo_operand_spec) -> Result<Self, crate::Refusal> {
        Ok(Self {
            direction: direction(given.r#use)?,
            align_bytes: Align::new(given.align_bytes.max(1))?.bytes(),
            min_bytes: given.min_bytes.max(1),
            max_bytes: if given.max_bytes == 0 { usize::MAX } else { given.max_bytes },
            word_bytes: Align::new((given.word_bytes as usize).max(1))?.bytes(),
        })
    }
}

/// Where the device finds an operand's bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct contigo_dev_slice {
    /// The bus address.
    pub addr: u64,
    /// How many bytes.
    pub len_bytes: usize,
}

/// A device's report at the end of a job. A driver fills the fields that it knows, all others are
/// 0, and leaves `struct_size`, which says how many bytes the program knows. A later version has at
/// most 256 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct contigo_completion {
    /// `sizeof(contigo_completion)`.
    pub struct_size: usize,
    /// How many bytes the device wrote, from the beginning of the operand that it writes.
    pub bytes: usize,
    /// 0: the device does not tell how many, and `bytes` is 0.
    pub has_bytes: u32,
    /// The driver's number of the job's place: 0 to one less than its depth.
    pub slot: u32,
    /// The device's status, as the driver's documentation describes it.
    pub status: u32,
    /// 1: this job failed, and the others went on.
    pub failed: u32,
    /// Further results: a return value, a cycle count, a packet's user words.
    pub words: [u32; 4],
}

// SAFETY: integers only, `struct_size` first.
unsafe impl Versioned for contigo_completion {
    const NAME: &'static str = "contigo_completion";
    const LEAST: usize = mem::size_of::<Self>();
}

impl From<Completion> for contigo_completion {
    #[inline]
    fn from(said: Completion) -> Self {
        Self {
            struct_size: 0,
            bytes: said.bytes.unwrap_or(0),
            has_bytes: said.bytes.is_some().into(),
            slot: u32::try_from(said.slot).unwrap_or(u32::MAX),
            status: said.status,
            failed: said.failed.is_some().into(),
            words: said.words,
        }
    }
}

/// A driver in C: what its jobs look like, and four functions, each of which gets `context` first.
/// The library checks, cleans caches, keeps the buffers, and stops the device; the functions write
/// and read registers (`contigo_registers_...`, or the program's own).
///
/// Each answers 0, or another number: one of the driver's own, above 0, or a `CONTIGO_E_...`, such
/// as one of the library's functions has just answered. The text of the refusal has it. The library
/// calls the functions of one engine one at a time, from the thread that calls the engine; those of
/// two engines run at once. They must not unwind or jump out.
/// **A function that calls its own engine is refused with `CONTIGO_E_IN_CALL`. One that never
/// returns cannot be interrupted**: it holds the thread and the engine for ever.
///
/// `contigo_engine_open_driver` takes the structure from a program, and then the library does not
/// know the device: on a simulated board a job fails with `CONTIGO_E_WRONG_ACCESS` for what any
/// device of the board touched meanwhile. `contigo_driver_library` is for a driver in a file.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct contigo_driver_ops {
    /// `sizeof(contigo_driver_ops)`.
    pub struct_size: usize,
    /// The core's name, for messages. It is copied. A driver in a shared library has the name in
    /// its `contigo_driver_library` instead.
    pub name: *const c_char,
    /// How many jobs the device takes at once; 0: 1. Slots are 0 to one less.
    pub depth: u32,
    /// 1: jobs may end in another order than they were started in.
    pub out_of_order: u32,
    /// How many bits the narrowest register that holds a bus address has; 0: 64.
    pub addr_bits: u32,
    /// How many operands a job has: 1 to 16.
    pub n_operands: u32,
    /// The operands, in their order. They are copied when the call that takes this structure, or
    /// the `open` of a driver's library, has returned: no local array of `open` will do.
    pub operands: *const contigo_operand_spec,
    /// Answers 0 where the hardware takes these operands and argument words. Starts nothing. NULL:
    /// the hardware takes all of them.
    pub check: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            operands: *const contigo_dev_slice,
            n: usize,
            args: *const u32,
            args_words: usize,
        ) -> contigo_status,
    >,
    /// Gives the device one job, which `check` has passed, in a free slot; a stopped device starts.
    /// On an error the library stops the device before it gives anything back.
    pub submit: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            slot: u32,
            operands: *const contigo_dev_slice,
            n: usize,
            args: *const u32,
            args_words: usize,
        ) -> contigo_status,
    >,
    /// Looks for a job that has ended: once at least, and for at most `timeout_us`. Where there is
    /// one, it sets `ended`, which is 0, to 1, and says in `done`, which is all 0 but for
    /// `struct_size`, which job it is (`slot`), and whatever else it knows. It tells each end once.
    /// An error means that the channel cannot go on; the library then stops it.
    pub poll: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            timeout_us: u32,
            done: *mut contigo_completion,
            ended: *mut u32,
        ) -> contigo_status,
    >,
    /// Stops the device in bounded time, at any moment of its work; also before its first job, for
    /// a program that crashed may have left it at work. After a 0 the device touches no memory of
    /// any job, and none of the driver's own, until the next `submit`, which names slot 0. After
    /// any other answer the device keeps the buffers.
    pub stop: Option<unsafe extern "C" fn(context: *mut c_void) -> contigo_status>,
}

// SAFETY: integers and pointers, which zeroes are too, `struct_size` first.
unsafe impl Versioned for contigo_driver_ops {
    const NAME: &'static str = "contigo_driver_ops";
    const LEAST: usize = mem::size_of::<Self>();
}

/// The device of a driver in a file (`contigo_driver_library`). Its functions get the structure
/// itself, from which they know the device: `device->read32(device, 0x10)`. The driver keeps the
/// pointer. They may be called from the driver's own functions, on the thread that these are called
/// on, until its `close` has returned.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct contigo_driver_device {
    /// The size of the structure in the program. Fields behind it are not there.
    pub struct_size: usize,
    /// How many bytes of registers the device has.
    pub len_bytes: usize,
    /// The driver's settings as they were given, `name=number,name=number`; never NULL. `setting`
    /// reads one.
    pub settings: *const c_char,
    /// How many bytes of memory the driver has for descriptors or microcode: `memory_bytes` of its
    /// `contigo_driver_library`, or more; 0: none. Its contents are
    /// undefined at first.
    pub memory_bytes: usize,
    /// Where the device finds the first of them.
    pub memory_addr: u64,
    /// How far apart two descriptors lie at least, in bytes, so that each has its cache lines to
    /// itself: the CPU writes one while the device writes the other.
    pub memory_stride_bytes: usize,
    /// How many bits of an address reach memory through the device's port.
    pub port_addr_bits: u32,
    /// 1: the port snoops the CPU's caches.
    pub port_coherent: u32,
    /// Reads the 32-bit register at `offset` bytes. All ones: it is outside of the window, or the
    /// device is gone.
    pub read32: Option<unsafe extern "C" fn(device: *const c_void, offset: usize) -> u32>,
    /// Writes it. What the driver promises of its device is said at `contigo_engine_open_driver`.
    pub write32: Option<unsafe extern "C" fn(device: *const c_void, offset: usize, value: u32)>,
    /// A clock that never goes back, in microseconds; the simulated board's where the device is of
    /// one.
    pub now_us: Option<unsafe extern "C" fn(device: *const c_void) -> u64>,
    /// Waits for the device's interrupt, for at most `timeout_us`; where it has none, for a moment.
    /// It may return early: look at the device again, then at the clock. An interrupt is a level:
    /// one that the driver has not cleared in the device ends the next wait at once. For a bit that
    /// raises no interrupt, such as that of a reset, wait 10 us at a time.
    pub wait:
        Option<unsafe extern "C" fn(device: *const c_void, timeout_us: u32) -> contigo_status>,
    /// The setting `name`, one of `settings` of the `contigo_driver_library`, from `min` to `max`;
    /// `otherwise` where it was not given. The driver's `open` returns the status of a refusal, and
    /// the program gets its text.
    pub setting: Option<
        unsafe extern "C" fn(
            device: *const c_void,
            name: *const c_char,
            min: u64,
            max: u64,
            otherwise: u64,
            value: *mut u64,
        ) -> contigo_status,
    >,
    /// Writes `n` words into the driver's memory at `offset` bytes, a multiple of 4, and makes them
    /// visible to the device before the next register is written. The device does not fetch these
    /// bytes now.
    pub memory_write: Option<
        unsafe extern "C" fn(
            device: *const c_void,
            offset: usize,
            words: *const u32,
            n: usize,
        ) -> contigo_status,
    >,
    /// Reads `n` words of it, as the device wrote them.
    pub memory_read: Option<
        unsafe extern "C" fn(
            device: *const c_void,
            offset: usize,
            words: *mut u32,
            n: usize,
        ) -> contigo_status,
    >,
    /// Says why the function that runs now refuses, for the text of the refusal: "operand 1 is
    /// shorter than operand 0". A constant of the library, of 127 bytes at most.
    pub say: Option<unsafe extern "C" fn(device: *const c_void, why: *const c_char)>,
}

/// A driver in a shared library: what the file exports, as the symbol `contigo_driver`. It uses
/// none of this library's functions and is linked with nothing. A file in C++ says `extern "C"`
/// before it.
///
/// A program in C names the file where it would name a driver (`contigo_engine_options.driver`:
/// "./libmover.so"), one in Python calls `contigo.load_driver("./libmover.so")`. The file stays
/// loaded for as long as the process runs. What the driver promises of its device is said at
/// `contigo_engine_open_driver`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct contigo_driver_library {
    /// `sizeof(contigo_driver_library)`.
    pub struct_size: usize,
    /// The driver's name, which no other has: letters, digits, `_` and `-`, 127 bytes at most.
    pub name: *const c_char,
    /// One sentence: what it drives, and what its jobs are. 127 bytes at most.
    pub help: *const c_char,
    /// The names of its settings, separated by commas, 16 of them and 127 bytes at most; NULL: it
    /// has none. Others are refused. On a simulated board a setting that is called as the built-in
    /// driver's must be as the simulated core is built.
    pub settings: *const c_char,
    /// How many bytes of memory the driver itself needs; 0: none.
    pub memory_bytes: usize,
    /// How many bits the register for their address has; 0: 64.
    pub memory_addr_bits: u32,
    /// Always 0.
    pub reserved: u32,
    /// Fills `ops`, which is all 0 but for `struct_size`, and `context`. It may look whether the
    /// device is the right one; `stop` is called next. Another answer than 0: the device is not
    /// opened, knows no address of the driver's memory, and nothing is left. `open` and `close` of
    /// one library are called one at a time.
    pub open: Option<
        unsafe extern "C" fn(
            device: *const contigo_driver_device,
            ops: *mut contigo_driver_ops,
            context: *mut *mut c_void,
        ) -> contigo_status,
    >,
    /// Gives back what `open` took. It is called once, after every other function. The device has
    /// stopped, or it could not be stopped. NULL: there is nothing to give back.
    pub close: Option<unsafe extern "C" fn(context: *mut c_void)>,
}

// SAFETY: as above.
unsafe impl Versioned for contigo_driver_library {
    const NAME: &'static str = "contigo_driver";
    const LEAST: usize = mem::size_of::<Self>();
}

// SAFETY: it is read, and its texts are constants of its library.
unsafe impl Sync for contigo_driver_library {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operand_is_the_same_on_both_sides() {
        let all = [
            OperandSpec::to_device(),
            OperandSpec {
                align_bytes: 64,
                min_bytes: 8,
                max_bytes: 4096,
                ..OperandSpec::from_device()
            },
            OperandSpec { word_bytes: 128, ..OperandSpec::in_out() },
        ];
        for spec in all {
            assert_eq!(OperandSpec::try_from(&contigo_operand_spec::from(&spec)), Ok(spec));
        }
        let bent = contigo_operand_spec {
            r#use: CONTIGO_READS,
            word_bytes: 3,
            ..contigo_operand_spec::default()
        };
        assert!(OperandSpec::try_from(&bent).is_err());
    }
}
