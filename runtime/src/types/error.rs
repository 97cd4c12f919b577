//! The one error type: small, `Copy`, with the numbers in it. Each variant's doc line says what the
//! caller does next.

mod debug;

use crate::types::{Bus, Direction};
use core::fmt;

/// What went wrong, with its numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Error {
    // ---- Numbers that no board could satisfy. Correct the program.
    /// An alignment must be a power of two. Use [`Align`](crate::Align)'s constants.
    NotPowerOfTwo {
        /// What was asked for.
        align_bytes: usize,
    },
    /// A range runs past the end of what it indexes. Ask for less.
    OutOfRange {
        /// First byte asked for.
        start: usize,
        /// One past the last byte asked for.
        end: usize,
        /// How many bytes there are.
        len_bytes: usize,
    },
    /// The bytes cannot be viewed as a slice of that type: their count or address does not fit.
    /// View fewer or other bytes.
    View {
        /// How many bytes the view would have.
        len_bytes: usize,
        /// The element's size.
        element_bytes: usize,
        /// The element's alignment.
        align_bytes: usize,
    },

    // ---- The block itself. Get another block, or ask less of it.
    /// The block is in pieces on the bus. Ask for a smaller block, or for memory from CMA.
    NotContiguous {
        /// The first byte of the block that is not where it should be.
        offset_bytes: usize,
        /// Where it should be.
        expected: u64,
        /// Where it is.
        found: u64,
    },
    /// An address is not aligned as the region was asked to be. Ask the backend for a larger
    /// alignment, or ask less.
    Misaligned {
        /// The address.
        addr: u64,
        /// The alignment asked for.
        align_bytes: usize,
    },
    /// The block is smaller than asked for, or not a whole number of cache lines. Make it larger
    /// where it is declared.
    BlockSize {
        /// How large the block is.
        len_bytes: usize,
        /// How large it must be at least.
        need_bytes: usize,
        /// It must be a multiple of this.
        line_bytes: usize,
    },
    /// The block's last byte lies above the address width asked for. Place it lower
    /// (`alloc-ranges`, `dma-mask`), or use a wider master.
    TooHigh {
        /// The block's last byte.
        last: u64,
        /// How many address bits were allowed.
        addr_bits: u32,
    },
    /// Memory has no address for a device. Install what `install` names.
    NoAddress {
        /// What would give it one, in words.
        install: &'static str,
    },
    /// A pointer or an address is not inside this region. It belongs to somebody else: do not use
    /// it.
    NotOurs {
        /// The pointer or the address.
        addr: u64,
        /// How many bytes from there were asked for.
        len_bytes: usize,
    },

    // ---- Carving, pools and arenas.
    /// Nothing that large is left. Free something, or plan for more.
    Exhausted {
        /// How many bytes were asked for.
        need_bytes: usize,
        /// How many bytes the pool, arena or region has in all.
        capacity_bytes: usize,
    },
    /// Every slot of the pool, or of the table of tensors, is in use. Give one back first.
    NoSlots {
        /// How many there are.
        slots: usize,
    },
    /// There is a limit on these, which the documentation of the function names, and it is reached.
    /// Give one back, or ask for fewer.
    TooMany {
        /// Of what, and where, in words.
        what: &'static str,
        /// How many there can be.
        most: u64,
    },
    /// A slot must be a whole number of cache lines, so that no line belongs to two owners. Round
    /// it up.
    SlotSize {
        /// The slot asked for.
        slot_bytes: usize,
        /// The line.
        line_bytes: usize,
    },
    /// This block can only be synchronised as a whole, so it can hold only one buffer. Use another
    /// block for the second.
    WholeBlock {
        /// How many bytes the block's other buffers have.
        shared_bytes: usize,
    },
    /// The parts of this buffer cannot be counted any further. Give some back first.
    TooManyParts {
        /// The limit.
        limit: u32,
    },

    // ---- Tensors.
    /// A tensor is not what the exchange, or the consumer's contract, allows. Make it as the rule
    /// says, or use another contract.
    Tensor {
        /// The rule.
        rule: crate::types::TensorRule,
        /// What was found; what is negative as the 64 bits that it is.
        found: u64,
        /// What the rule says.
        need: u64,
    },
    /// A consumer has this buffer's tensor. Wait until it calls the deleter.
    TensorOut,

    // ---- Memory against port, decided when a job starts. Nothing was started; the buffers come
    // back.
    /// The port cannot reach these bytes. Use another port, or place the block lower.
    Unreachable {
        /// The port.
        port: &'static str,
        /// The first byte's bus address; `u64::MAX` where it does not fit in 64 bits.
        addr: u64,
        /// How many bytes the job uses.
        len_bytes: usize,
        /// The first address the port reaches.
        first: u64,
        /// The last address the port and the accelerator's registers reach.
        last: u64,
    },
    /// The memory's addresses are for another bus. Use memory of the port's bus.
    WrongBus {
        /// The port.
        port: &'static str,
        /// The memory's bus.
        memory: Bus,
    },
    /// The kernel and the port disagree on whether this memory is coherent, which is silent data
    /// corruption. Correct the device tree's `dma-coherent`, or use the right port.
    CoherencyMismatch {
        /// The port.
        port: &'static str,
        /// What the kernel says of the memory.
        memory_coherent: bool,
    },
    /// Nobody can maintain the caches for this memory, and the port is not coherent. Install what
    /// `install` names, or use a coherent port.
    CannotSync {
        /// The port.
        port: &'static str,
        /// What would help, in words.
        install: &'static str,
    },
    /// The device would write into a cache line that another buffer shares. Cut buffers at
    /// multiples of the line.
    SharedLine {
        /// First byte of the operand, in the block.
        start: usize,
        /// One past its last byte.
        end: usize,
        /// The line.
        line_bytes: usize,
    },
    /// An operand's direction is not the one the accelerator uses it in. Use `to_device`,
    /// `from_device` or `in_out` as its documentation says.
    WrongDirection {
        /// Which operand.
        index: usize,
        /// What the accelerator does with it.
        expected: Direction,
    },
    /// An operand is too small for the job's arguments. Give a larger one, or smaller arguments.
    BufferSize {
        /// Which operand.
        index: usize,
        /// How many bytes the job needs.
        need_bytes: u64,
        /// How many it was given.
        have_bytes: usize,
    },
    /// An operand's bus address is not aligned as the accelerator needs. Use slots and slices at
    /// multiples of it.
    BufferAlign {
        /// Which operand.
        index: usize,
        /// Its bus address.
        addr: u64,
        /// What it must be a multiple of.
        align_bytes: usize,
    },
    /// An argument of the job is outside what the hardware takes.
    Argument {
        /// The argument's name.
        name: &'static str,
        /// Its value.
        value: u64,
        /// The least it may be.
        min: u64,
        /// The most it may be.
        max: u64,
        /// It must be a multiple of this.
        multiple_of: u64,
    },
    /// An operand is longer than the device takes in one job. Cut it, or take a core with a wider
    /// length register.
    OperandTooLong {
        /// Which operand.
        index: usize,
        /// How many bytes it has.
        have_bytes: usize,
        /// The most that one job takes.
        max_bytes: usize,
    },
    /// As many jobs are in flight as the queue or the device holds. Take one that ended out first
    /// (`Queue::next`).
    QueueFull {
        /// How many it holds.
        depth: usize,
    },
    /// The queue was stopped with jobs in it. Take them out first (`Queue::next` for those that had
    /// ended, then `Queue::take_back`); then it takes new ones. Where its device would not stop,
    /// reset it from outside and call `Queue::stop` before that.
    QueueStopped {
        /// How many are in it.
        in_flight: usize,
    },
    /// The engine has a job, or one that was forgotten or would not stop; or the device's window
    /// has a driver already. Wait; after the second and third, `Engine::recover`.
    Busy,

    // ---- The device. It was stopped before the buffers came back, unless the error says
    // otherwise.
    /// The job did not finish in time. The device was stopped; try again with more time, or find
    /// out why no interrupt came.
    Timeout {
        /// The limit.
        timeout_us: u32,
    },
    /// The device reports an error. The bits are decoded in the accelerator's documentation.
    Fault {
        /// The accelerator.
        device: &'static str,
        /// What its status register held.
        status: u32,
        /// The most important bit, in words.
        what: &'static str,
    },
    /// The device says it is done, and moved fewer bytes than the job has.
    ShortTransfer {
        /// What the job has.
        need_bytes: u64,
        /// What the device says it wrote.
        done_bytes: u64,
    },
    /// The device tells of a job that it does not have, tells of one twice, or claims more bytes
    /// than it was given. It was stopped: look for a wrong address, or for a bitstream that does
    /// not suit the driver.
    BadCompletion {
        /// The accelerator.
        device: &'static str,
        /// Which job, as the device says.
        slot: usize,
        /// How many bytes, as the device says.
        bytes: usize,
        /// How many it was given; 0 where there is no such job.
        most_bytes: usize,
    },
    /// Another channel of the same core reset it, which ended this channel's jobs. Their buffers
    /// come back; start them again.
    EndedByReset {
        /// The core.
        device: &'static str,
    },
    /// The device would not stop. Its buffers are leaked, not freed: it may still write into them.
    /// Reset it from outside, then `Engine::recover`.
    WillNotStop {
        /// The accelerator.
        device: &'static str,
        /// What its control register held.
        status: u32,
        /// How long it was given.
        waited_us: u32,
    },
    /// A register window is too small for this driver: it is not this device. Check the device
    /// tree's `reg`.
    RegisterWindow {
        /// The accelerator.
        device: &'static str,
        /// What the driver needs.
        need_bytes: usize,
        /// What the window has.
        have_bytes: usize,
    },

    /// A register that tells devices apart says that this is another one. Check the address, and
    /// the bitstream.
    WrongDevice {
        /// The accelerator that was expected.
        device: &'static str,
        /// The register's name.
        register: &'static str,
        /// What it holds in that accelerator; bits that may differ as they were found.
        expected: u32,
        /// What it holds here.
        found: u32,
    },

    // ---- CUDA.
    /// The driver refused, or tells now of a kernel that failed before: from 700 on the context is
    /// lost, and what is in it.
    Cuda {
        /// The function's name, without its version.
        call: &'static str,
        /// The `CUresult`.
        code: i32,
        /// Its name in `cuda.h`.
        name: &'static str,
    },
    /// A library of the system is not there. Do what `fix` says.
    NoLibrary {
        /// Its file's name.
        name: &'static str,
        /// What to install, in words.
        fix: &'static str,
    },

    // ---- The kernel.
    /// A system call failed.
    Os {
        /// What was being done, with the call's name.
        call: &'static str,
        /// The errno; `man 3 errno` names it.
        errno: i32,
    },
    /// The kernel does not let this program have a device: its user may not open it, or a driver of
    /// the kernel has it. Do what `fix` says.
    Denied {
        /// What was asked for.
        what: &'static str,
        /// The errno.
        errno: i32,
        /// What to change, in words.
        fix: &'static str,
    },
    /// A name is empty, too long, or holds a `/` or a NUL; or it is no address of a PCI function.
    BadName {
        /// Its length.
        len_bytes: usize,
        /// The most it may have.
        max_bytes: usize,
    },
    /// No such device. Compare the name with what the board has (`contigo info`), or load the
    /// device tree or driver that makes it.
    NotFound {
        /// What was looked for.
        what: &'static str,
        /// How many others of its kind there are.
        among: u32,
    },
    /// Memory or a device of this kind is not built into this program. Build it with the feature.
    NotBuiltIn {
        /// The kind, as its names begin.
        kind: &'static str,
        /// The feature of the crate `contigo`.
        feature: &'static str,
    },
    /// Memory of this kind belongs to a device: to one that was not opened, or to another one than
    /// was. Open that device, and the memory from it.
    NeedsDevice {
        /// The kind, as its names begin.
        kind: &'static str,
    },
    /// Several devices are called that. Name one of them: a device-tree node with its unit address.
    Ambiguous {
        /// What was looked for.
        what: &'static str,
        /// How many there are.
        matches: u32,
    },
    /// A file under `/sys` is not there: an older module, or it was unloaded.
    AttributeMissing {
        /// The file's name.
        name: &'static str,
    },
    /// A file under `/sys` or `/proc` cannot be read or written: permissions, or the module
    /// vanished.
    AttributeUnreadable {
        /// The file's name.
        name: &'static str,
        /// The errno.
        errno: i32,
    },
    /// A file under `/sys` is empty.
    AttributeEmpty {
        /// The file's name.
        name: &'static str,
    },
    /// A file under `/sys`, an ioctl or a register says something that cannot be.
    AttributeNonsense {
        /// The file's, the ioctl's or the register's name.
        name: &'static str,
        /// As much as could be read as a number; 0 where nothing could.
        value: u64,
    },
    /// A setting under `/sys` makes this memory unusable as it is. Do what `fix` says, and open it
    /// again.
    Unsuitable {
        /// The file's name.
        name: &'static str,
        /// What it says.
        value: u64,
        /// What to change, in words.
        fix: &'static str,
    },
    /// `/proc/self/pagemap` hides physical addresses. Run as root, or with CAP_SYS_ADMIN.
    PagemapHidden {
        /// The page asked for.
        page: u64,
    },
    /// Another process, or another part of this one, has this block or device open.
    InUse {
        /// What holds it, as far as is known: the errno of the lock.
        errno: i32,
    },
    /// The kernel would not pin so much memory for this user. Raise RLIMIT_MEMLOCK (`ulimit -l`;
    /// `LimitMEMLOCK=` of a systemd unit) or give the program CAP_IPC_LOCK; ask for less; where the
    /// limit is far above all that is pinned, the machine is out of memory.
    PinLimit {
        /// How many bytes were to be pinned, beside those that are.
        need_bytes: usize,
        /// RLIMIT_MEMLOCK, in bytes.
        limit_bytes: u64,
    },
    /// A cache maintenance call, or a change of a PCI function's command register, had to wait too
    /// long for another thread's. It was not done: the buffer stays where it is.
    Contended {
        /// How many times it tried.
        tries: u32,
    },
    /// This process is a child of fork(2), and what it has of its parent stays the parent's. Start
    /// another program by exec(3), or open nothing before the fork.
    Forked {
        /// The process whose memory and devices they are.
        owner_pid: u32,
    },
}

/// What a caller gets from almost every function here.
pub type Result<T, E = Error> = core::result::Result<T, E>;

impl core::error::Error for Error {}

impl fmt::Display for Error {
    #[allow(clippy::too_many_lines, reason = "one line a variant, in the order of the enum: a table, not a flow")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotPowerOfTwo { align_bytes } => write!(f, "alignment {align_bytes} is not a power of two"),
            Self::OutOfRange { start, end, len_bytes } => write!(f, "bytes {start}..{end} are outside the {len_bytes} there are"),
            Self::View { len_bytes, element_bytes, align_bytes } => {
                write!(
                    f,
                    "{len_bytes} bytes here are no whole slice of {element_bytes}-byte elements that begins at a multiple of {align_bytes}"
                )
            }
            Self::NotContiguous { offset_bytes, expected, found } => {
                write!(f, "the block is not contiguous: byte {offset_bytes} is at {found:#x}, expected at {expected:#x}")
            }
            Self::Misaligned { addr, align_bytes } => write!(f, "address {addr:#x} is not a multiple of {align_bytes}"),
            Self::BlockSize { len_bytes, need_bytes, line_bytes } => {
                write!(f, "the block has {len_bytes} bytes; needed: at least {need_bytes}, a multiple of {line_bytes}")
            }
            Self::TooHigh { last, addr_bits } => write!(f, "the block ends at {last:#x}, above what {addr_bits} address bits reach"),
            Self::NoAddress { install } => write!(f, "this memory has no address for a device; install: {install}"),
            Self::NotOurs { addr, len_bytes } => write!(f, "{len_bytes} bytes at {addr:#x} are not in this region"),
            Self::Exhausted { need_bytes, capacity_bytes } => {
                write!(f, "no {need_bytes} contiguous bytes are left of {capacity_bytes}")
            }
            Self::NoSlots { slots } => write!(f, "all {slots} slots are in use"),
            Self::TooMany { what, most } => write!(f, "there can be {most} {what}, and no more"),
            Self::SlotSize { slot_bytes, line_bytes } => {
                write!(f, "a slot of {slot_bytes} bytes is not a whole number of {line_bytes}-byte cache lines")
            }
            Self::WholeBlock { shared_bytes } => {
                write!(f, "this block is synchronised as a whole, and {shared_bytes} bytes of it belong to other buffers")
            }
            Self::TooManyParts { limit } => write!(f, "this buffer is in {limit} parts already"),
            Self::Tensor { rule, found, need } => write!(f, "tensor refused: {rule} {need} ({need:#x}); found {found} ({found:#x})"),
            Self::TensorOut => write!(f, "this buffer is lent as a tensor: take it back when the consumer has called the deleter"),
            Self::Unreachable { port, addr, len_bytes, first, last } => {
                write!(f, "port {port} reaches {first:#x}..={last:#x}, not the {len_bytes} bytes at {addr:#x}")
            }
            Self::WrongBus { port, memory } => write!(f, "port {port} is not on the bus of this memory ({memory:?})"),
            Self::CoherencyMismatch { port, memory_coherent } => {
                let (kernel, master) = if memory_coherent { ("coherent", "not") } else { ("not coherent", "coherent") };
                write!(f, "the kernel says this memory is {kernel}, port {port} is {master}: correct dma-coherent in the device tree")
            }
            Self::CannotSync { port, install } => {
                write!(f, "nobody can maintain the caches of this memory for the non-coherent port {port}; {install}")
            }
            Self::SharedLine { start, end, line_bytes } => {
                write!(f, "the device would write bytes {start}..{end}, which share a {line_bytes}-byte cache line with another buffer")
            }
            Self::WrongDirection { index, expected } => {
                let made_by = match expected {
                    Direction::ToDevice => "to_device",
                    Direction::FromDevice => "from_device",
                    Direction::Bidirectional => "in_out",
                };
                write!(f, "the accelerator uses operand {index} as {expected:?}: make it with {made_by}(..)")
            }
            Self::BufferSize { index, need_bytes, have_bytes } => {
                write!(f, "operand {index} has {have_bytes} bytes, the job needs {need_bytes}")
            }
            Self::BufferAlign { index, addr, align_bytes } => {
                write!(f, "operand {index} is at {addr:#x}, not a multiple of {align_bytes}")
            }
            Self::Argument { name, value, min, max, multiple_of } => {
                write!(f, "{name} = {value}; it must be a multiple of {multiple_of} between {min} and {max}")
            }
            Self::Busy => write!(f, "busy: a job is under way or was forgotten (Engine::recover), or the device has a driver already"),
            Self::Timeout { timeout_us } => write!(f, "the job did not finish within {timeout_us} us"),
            Self::Fault { device, status, what } => write!(f, "{device} reports {what} (status {status:#010x})"),
            Self::OperandTooLong { index, have_bytes, max_bytes } => {
                write!(f, "operand {index} has {have_bytes} bytes, and the device takes {max_bytes} in one job: cut it")
            }
            Self::QueueFull { depth } => write!(f, "the queue is full (jobs in flight: {depth}): take one that ended out first"),
            Self::QueueStopped { in_flight } => {
                write!(
                    f,
                    "the queue was stopped, or must be (jobs in it: {in_flight}): take them back; where its device would not stop, reset it and stop the queue first"
                )
            }
            Self::BadCompletion { device, slot, bytes, most_bytes: 0 } => {
                write!(
                    f,
                    "{device} says that job {slot} ended ({bytes} bytes), and it has no such job: is it this core, and this driver right?"
                )
            }
            Self::BadCompletion { device, slot, bytes, most_bytes } => {
                write!(
                    f,
                    "{device} says that job {slot} wrote {bytes} bytes, and it was given {most_bytes}: is it this core, and this driver right?"
                )
            }
            Self::EndedByReset { device } => {
                write!(
                    f,
                    "{device} was reset, by the program or by another of its channels, which ended this channel's jobs: start them again"
                )
            }
            Self::ShortTransfer { need_bytes, done_bytes } => {
                write!(f, "the device wrote {done_bytes} of {need_bytes} bytes and says it is done")
            }
            Self::WillNotStop { device, status, waited_us } => write!(
                f,
                "{device} did not stop within {waited_us} us (control {status:#010x}); its buffers stay out of reach: reset it from outside, then recover the engine, or stop the queue and take them back"
            ),
            Self::RegisterWindow { device, need_bytes, have_bytes } => {
                write!(f, "{device} needs a register window of {need_bytes} bytes, this one has {have_bytes}")
            }
            Self::WrongDevice { device, register, expected, found } => {
                write!(f, "this is no {device}: {register} holds {found:#010x}, and {expected:#010x} was expected")
            }
            Self::Os { call, errno } => write!(f, "{call} failed: errno {errno}"),
            Self::Denied { what, errno, fix } => write!(f, "{what} is not for this program (errno {errno}): {fix}"),
            Self::BadName { len_bytes, max_bytes } => {
                write!(f, "not a name ({len_bytes} bytes): it has 1 to {max_bytes}, no '/' and no NUL; a PCI function's is as 0000:00:01.0")
            }
            Self::Cuda { call, code, name } => write!(f, "{call}: {name} ({code})"),
            Self::NoLibrary { name, fix } => write!(f, "{name} cannot be loaded: {fix}"),
            Self::NotFound { what, among } => write!(f, "no such {what}; {among} others are there"),
            Self::NotBuiltIn { kind, feature } => write!(f, "{kind} is not built into this program: build it with the feature {feature}"),
            Self::NeedsDevice { kind } => {
                write!(f, "this {kind} memory belongs to a device: open that device, and the memory from it")
            }
            Self::Ambiguous { what, matches } => {
                write!(f, "{matches} devices match, and one {what} was asked for: name its unit address too")
            }
            Self::AttributeMissing { name } => write!(f, "{name} is missing"),
            Self::AttributeUnreadable { name, errno } => write!(f, "{name} cannot be read or written: errno {errno}"),
            Self::AttributeEmpty { name } => write!(f, "{name} is empty"),
            Self::AttributeNonsense { name, value } => write!(f, "{name} says {value:#x}, which cannot be"),
            Self::Unsuitable { name, value, fix } => write!(f, "{name} is {value}: {fix}"),
            Self::PagemapHidden { page } => {
                write!(f, "/proc/self/pagemap hides the frame of page {page:#x}: run as root or with CAP_SYS_ADMIN")
            }
            Self::InUse { errno } => write!(f, "somebody else has this block or device open (errno {errno})"),
            Self::PinLimit { need_bytes, limit_bytes } => {
                write!(
                    f,
                    "{need_bytes} bytes more cannot be pinned: RLIMIT_MEMLOCK is {limit_bytes} bytes (ulimit -l), without CAP_IPC_LOCK"
                )
            }
            Self::Contended { tries } => {
                write!(f, "another thread's cache maintenance or PCI access did not end within {tries} tries")
            }
            Self::Forked { owner_pid } => {
                write!(
                    f,
                    "this is a child of process {owner_pid}, and uses nothing of it: call exec, start the child by spawn, or fork before the first call"
                )
            }
        }
    }
}
