//! The table of errors. Each row has its documentation, C's number and name, its errno, its fields,
//! and its text, which says what happened and how to go on. Its section is its kind.

use super::words::{Errno, Limits, List};
use super::{ErrorKind, ErrorRow};
use crate::types::near::Among;
use crate::types::{Bus, Direction, TensorRule};
use core::fmt;

// errno(3), as Linux numbers them on the processors of every board here.
const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const EIO: i32 = 5;
const EAGAIN: i32 = 11;
const ENOMEM: i32 = 12;
const EFAULT: i32 = 14;
const EBUSY: i32 = 16;
const ENODEV: i32 = 19;
const EINVAL: i32 = 22;
const ENOSPC: i32 = 28;
const ENODATA: i32 = 61;
const EPROTO: i32 = 71;
const ENOTUNIQ: i32 = 76;
const EOPNOTSUPP: i32 = 95;
const ENOBUFS: i32 = 105;
const ESHUTDOWN: i32 = 108;
const ETIMEDOUT: i32 = 110;
const ECANCELED: i32 = 125;

errors! {
Request {
    /// An alignment is no power of two.
    NotPowerOfTwo(-100 NOT_POWER_OF_TWO Argument EINVAL) {
        /// The alignment that was asked for.
        align_bytes: usize,
    } "alignment {align_bytes} is not a power of two: use 64, 128, 256, …";

    /// A range runs past the end of the bytes that it is taken from.
    OutOfRange(-101 OUT_OF_RANGE Argument EINVAL) {
        /// First byte asked for.
        start: usize,
        /// One past the last byte asked for.
        end: usize,
        /// How many bytes there are.
        len_bytes: usize,
    } "bytes {start}..{end} are outside the {len_bytes} there are: ask for less";

    /// The bytes are no slice of that type: their count or address does not fit.
    View(-102 VIEW Argument EINVAL) {
        /// How many bytes the view would have.
        len_bytes: usize,
        /// The element's size.
        element_bytes: usize,
        /// The element's alignment.
        align_bytes: usize,
    } "{len_bytes} bytes here are no whole slice of {element_bytes}-byte elements that begins at a \
       multiple of {align_bytes}: view fewer or other bytes";

    /// A number is outside what is possible. The text has the limits.
    Argument(-122 ARGUMENT Argument EINVAL) {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: u64,
        /// The least it may be.
        min: u64,
        /// The most it may be.
        max: u64,
        /// It must be a multiple of this.
        multiple_of: u64,
    } let must = Limits { min, max, multiple_of }; "{name} is {value}: it must be {must}";

    /// The check of a driver in C, or of one in a shared library, refuses a job. Nothing was
    /// touched.
    DriverCheck(-171 DRIVER_CHECK Argument EINVAL) {
        /// The driver.
        driver: &'static str,
        /// Why, in the driver's words.
        why: &'static str,
        /// What it answered: a number of its own, or a code of this table.
        answer: i32,
    } let said = Answer(answer); "the driver {driver} takes no such job: {why} (its check \
     answered {said})";

    /// A setting is no number.
    NotANumber(-159 NOT_A_NUMBER Argument EINVAL) {
        /// The setting's name.
        name: &'static str,
        /// The least it may be.
        min: u64,
        /// The most it may be.
        max: u64,
    } "{name} is no number: write one from {min} to {max}";

    /// A setting or a map is not what the simulated core is built with. Nothing was touched.
    OtherModel(-169 OTHER_MODEL Argument EINVAL) {
        /// The setting, or the number of the map.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The least that the simulated core has.
        min: u64,
        /// The most that it has.
        max: u64,
    } let has = Limits { min, max, multiple_of: 1 };
    "{what} is {value}, and for this simulated core it must be {has}: say that, or make a model \
     of your \
     own core in Rust";

    /// The driver has no setting of this name. The text lists those that it has.
    UnknownSetting(-160 UNKNOWN_SETTING Argument EINVAL) {
        /// Which setting it is, counted from 1.
        place: usize,
        /// The names that the driver knows.
        known: &'static [&'static str],
    } let known = List(known);
    "setting {place} is unknown to this driver, whose settings are: {known}";

    /// The device uses an operand in another direction than it was given for.
    WrongDirection(-119 WRONG_DIRECTION Buffer EINVAL) {
        /// Which operand, counted from 0.
        index: usize,
        /// The direction in which the device uses it.
        expected: Direction,
    } let does = expected.device_does();
    "operand {index} was given for another direction: give it as one that the device {does}";

    /// An operand is longer than the device takes in one job.
    OperandTooLong(-152 OPERAND_TOO_LONG Argument EINVAL) {
        /// Which operand, counted from 0.
        index: usize,
        /// How many bytes it has.
        have_bytes: usize,
        /// The most that one job takes.
        max_bytes: usize,
    } "operand {index} has {have_bytes} bytes, and the device takes {max_bytes} in one job: cut \
     it, \
       or open the driver with the width of its core (length_bits)";

    /// The device reads whole words of its bus, and the operand's first or last one is not all in
    /// the block.
    ReadsBeside(-168 READS_BESIDE Buffer EINVAL) {
        /// Which operand, counted from 0.
        index: usize,
        /// The bytes of a word.
        word_bytes: usize,
        /// The first address that it would read.
        from: u64 as hex,
        /// The last one.
        last: u64 as hex,
        /// The block's first address.
        block_from: u64 as hex,
        /// The block's last address.
        block_last: u64 as hex,
    } "the device reads operand {index} in words of {word_bytes} bytes, {from:#x}..={last:#x}, \
     and its \
       block has {block_from:#x}..={block_last:#x}: keep it away from the block's ends, or \
       give a whole word";

    /// A tensor is not what the exchange, or the consumer's contract, allows. The text has the rule
    /// and the numbers.
    Tensor(-143 TENSOR Buffer EINVAL) {
        /// The rule.
        rule: TensorRule,
        /// The number that was found; a negative one as the 64 bits that it is.
        found: u64,
        /// The number that the rule asks for.
        need: u64,
    } "tensor refused: {rule} {need} ({need:#x}); found {found} ({found:#x})";

    /// A name is empty, too long, or has a `/`.
    BadName(-131 BAD_NAME Argument EINVAL) {
        /// Its length.
        len_bytes: usize,
        /// The most it may have.
        max_bytes: usize,
    } "{len_bytes} bytes that are no name: it has 1 to {max_bytes}, no '/' and no NUL; a PCI \
       function's is as 0000:00:01.0";

    /// A file is neither a map of a kernel nor a block design. The text has the line and the rule.
    BadMap(-158 BAD_MAP Argument EINVAL) {
        /// The line, from 1; 0 where a table in Rust is meant.
        line: u32,
        /// The rule that it breaks.
        rule: &'static str,
    } "line {line} of the kernel's map or the design: {rule}";

    /// This cannot be done here at all. The text says what can be done.
    Unsupported(-161 UNSUPPORTED Unsupported EOPNOTSUPP) {
        /// The thing that cannot be done, as a sentence.
        what: &'static str,
        /// The way to go on, in words.
        fix: &'static str,
    } "{what}: {fix}";

    /// Memory of this kind belongs to a device: to one that was not opened, or to another one than
    /// was.
    NeedsDevice(-151 NEEDS_DEVICE Argument EINVAL) {
        /// The kind, as its names begin.
        kind: &'static str,
    } "this {kind} memory belongs to a device: open that device, and the memory from it";

    /// Memory or a device of this kind is not built into this program or library. The text has the
    /// feature.
    NotBuiltIn(-150 NOT_BUILT_IN Unsupported EOPNOTSUPP) {
        /// The kind, as its names begin.
        kind: &'static str,
        /// The feature of the crate `contigo`.
        feature: &'static str,
    } "{kind} is not built into this program: build it with the feature {feature}";
}

Memory {
    /// The block is in pieces on the bus.
    NotContiguous(-103 NOT_CONTIGUOUS Buffer EINVAL) {
        /// The first byte of the block that is not where it should be.
        offset_bytes: usize,
        /// Where it should be.
        expected: u64 as hex,
        /// Where it is.
        found: u64 as hex,
    } "the block is not contiguous: byte {offset_bytes} is at {found:#x}, expected at \
     {expected:#x}; \
       ask for a smaller block, or for memory from CMA";

    /// An address is not aligned as was asked for.
    Misaligned(-104 MISALIGNED Buffer EINVAL) {
        /// The address.
        addr: u64 as hex,
        /// The alignment asked for.
        align_bytes: usize,
    } "address {addr:#x} is not a multiple of {align_bytes}: ask for less alignment, or for memory \
       that has more";

    /// The block is too small, or no whole number of cache lines.
    BlockSize(-105 BLOCK_SIZE Buffer EINVAL) {
        /// How large the block is.
        len_bytes: usize,
        /// How large it must be at least.
        need_bytes: usize,
        /// It must be a multiple of this.
        line_bytes: usize,
    } "the block has {len_bytes} bytes; it must have at least {need_bytes}, a multiple of \
       {line_bytes}: make it larger where it is opened or declared";

    /// The block ends above the address width asked for.
    TooHigh(-106 TOO_HIGH Buffer EINVAL) {
        /// The block's last byte.
        last: u64 as hex,
        /// How many address bits were allowed.
        addr_bits: u32,
    } "the block ends at {last:#x}, above what {addr_bits} address bits reach: place it lower \
       (alloc-ranges, dma-mask), or use a wider master";

    /// The memory has no address for a device. The text says what to install.
    NoAddress(-107 NO_ADDRESS Unsupported EOPNOTSUPP) {
        /// The thing that would give it one, in words.
        install: &'static str,
    } "this memory has no address for a device; install: {install}";

    /// A pointer or an address is not inside this region.
    NotOurs(-108 NOT_OURS Buffer EFAULT) {
        /// The pointer or the address.
        addr: u64 as hex,
        /// How many bytes from there were asked for.
        len_bytes: usize,
    } "{addr:#x} ({len_bytes} bytes) is not in this region: take a pointer or an address of it";

    /// Nothing that large is left.
    Exhausted(-109 EXHAUSTED Memory ENOMEM) {
        /// How many bytes were asked for.
        need_bytes: usize,
        /// How many bytes the pool, arena or region has in all.
        capacity_bytes: usize,
    } "no {need_bytes} contiguous bytes are left of {capacity_bytes}: free some, or plan for more";

    /// Every slot of the pool, or of the table of tensors, is in use.
    NoSlots(-110 NO_SLOTS Memory ENOBUFS) {
        /// How many there are.
        slots: usize,
    } "all {slots} slots are in use: give one back first";

    /// There is a limit on these, and it is reached. The text says on what, and how many there can
    /// be.
    TooMany(-148 TOO_MANY Memory ENOSPC) {
        /// Of what, and where, in words.
        what: &'static str,
        /// How many there can be.
        most: u64,
    } "there can be at most {most} {what}: give one back, or ask for fewer";

    /// The kernel does not allocate so much memory for a device. The text says what to change.
    NoMemory(-170 NO_MEMORY Memory errno) {
        /// How many bytes were to be allocated.
        need_bytes: usize,
        /// The errno.
        errno: i32,
        /// The change that would help, in words.
        fix: &'static str,
    } let errno = Errno(errno);
    "the kernel does not allocate {need_bytes} bytes for a device (errno {errno}): {fix}";

    /// A slot is no whole number of cache lines, so that a line would belong to two owners.
    SlotSize(-111 SLOT_SIZE Argument EINVAL) {
        /// The slot asked for.
        slot_bytes: usize,
        /// The line.
        line_bytes: usize,
    } "a slot of {slot_bytes} bytes is not a whole number of {line_bytes}-byte cache lines: round \
     it up";

    /// The block can only be synchronised as a whole, so it can hold only one buffer.
    WholeBlock(-112 WHOLE_BLOCK Buffer EBUSY) {
        /// How many bytes the block's other buffers have.
        shared_bytes: usize,
    } "this block is synchronised as a whole, and {shared_bytes} bytes of it belong to other \
       buffers: use another block for one of them";

    /// The parts of this buffer or region cannot be counted any further.
    TooManyParts(-113 TOO_MANY_PARTS Memory ENOSPC) {
        /// The limit.
        limit: u32,
    } "there are {limit} parts already, which is the limit: give some back first";

    /// The device would write into a cache line that another buffer shares.
    SharedLine(-118 SHARED_LINE Buffer EINVAL) {
        /// First byte of the operand, in the block.
        start: usize,
        /// One past its last byte.
        end: usize,
        /// The line.
        line_bytes: usize,
    } "the device would write bytes {start}..{end}, which share a {line_bytes}-byte cache line \
     with \
       another buffer: cut buffers at multiples of the line, and give whole lines";

    /// An operand is too small for the job.
    BufferSize(-120 BUFFER_SIZE Buffer EINVAL) {
        /// Which operand, counted from 0.
        index: usize,
        /// How many bytes the job needs.
        need_bytes: u64,
        /// How many it was given.
        have_bytes: usize,
    } "operand {index} has {have_bytes} bytes, the job needs {need_bytes}: give more, or a \
     smaller job";

    /// An operand's bus address is not aligned as the device needs.
    BufferAlign(-121 BUFFER_ALIGN Buffer EINVAL) {
        /// Which operand, counted from 0.
        index: usize,
        /// Its bus address.
        addr: u64 as hex,
        /// The address must be a multiple of this.
        align_bytes: usize,
    } "operand {index} is at {addr:#x}, which is not a multiple of {align_bytes}: cut slots and \
       slices at multiples of it";

    /// A consumer has this buffer's tensor, or the buffer was not taken back yet.
    TensorOut(-144 TENSOR_OUT Buffer EBUSY)
    "this buffer is lent as a tensor: take it back when the consumer has called the deleter";
}

Port {
    /// The port, or the device's registers, cannot reach these bytes.
    Unreachable(-114 UNREACHABLE Buffer EFAULT) {
        /// The port.
        port: &'static str,
        /// The first byte's bus address; `u64::MAX` where it does not fit in 64 bits.
        addr: u64 as hex,
        /// How many bytes the job uses.
        len_bytes: usize,
        /// The first address that the port reaches.
        first: u64 as hex,
        /// The last address that the port and the device's registers reach.
        last: u64 as hex,
    } "port {port} reaches {first:#x}..={last:#x}, not the {len_bytes} bytes at {addr:#x}: use \
       another port, or place the block there";

    /// The memory's addresses are for another bus.
    WrongBus(-115 WRONG_BUS Buffer EINVAL) {
        /// The port.
        port: &'static str,
        /// The memory's bus.
        memory: Bus,
    } "port {port} is not on the bus of this memory ({memory:?}): use memory of the port's device";

    /// The kernel and the port disagree on whether the memory is coherent, which is silent data
    /// corruption.
    CoherencyMismatch(-116 COHERENCY Buffer EINVAL) {
        /// The port.
        port: &'static str,
        /// The kernel's word on the memory.
        memory_coherent: bool,
    } let kernel = if memory_coherent { "coherent" } else { "not coherent" };
    let master = if memory_coherent { "not" } else { "coherent" };
    "the kernel says this memory is {kernel}, port {port} is {master}: correct dma-coherent in the \
     device tree, or use the right port";

    /// No code can maintain the caches of this memory, and the port does not snoop. The text says
    /// what would help.
    CannotSync(-117 CANNOT_SYNC Unsupported EOPNOTSUPP) {
        /// The port.
        port: &'static str,
        /// The thing that would help, in words.
        install: &'static str,
    } "no code can maintain the caches of this memory for the non-coherent port {port}; {install}";
}

Device {
    /// A job is under way here, or one was forgotten.
    Busy(-123 BUSY Busy EBUSY)
    "a job is under way here, or was forgotten: wait for it, or stop the queue";

    /// The device or the channel has a driver already, or had one that was forgotten.
    HasDriver(-162 HAS_DRIVER Busy EBUSY)
    "this device or channel has a driver already: close or drop that one first; a driver that was \
     forgotten keeps it";

    /// As many jobs are in flight as the queue or the device holds.
    QueueFull(-153 QUEUE_FULL Busy EAGAIN) {
        /// How many it holds.
        depth: usize,
    } "the queue is full (jobs in flight: {depth}): take one that ended out first";

    /// The queue was stopped with jobs in it, or must be. A device that would not stop is reset
    /// first.
    QueueStopped(-154 QUEUE_STOPPED Busy ESHUTDOWN) {
        /// How many are in it.
        in_flight: usize,
    } "the queue was stopped, or must be (jobs in it: {in_flight}): take them back; where its \
     device \
       would not stop, reset it and stop the queue first";

    /// The job did not end in time. The device was stopped, and the buffers are back.
    Timeout(-124 TIMEOUT Timeout ETIMEDOUT) {
        /// The limit.
        timeout_us: u32,
    } "the job did not end within {timeout_us} us: give it more time, or look why nothing came \
       (interrupt, clock, reset, the other side of a stream)";

    /// The device reports an error. It was stopped, and the buffers are back.
    Fault(-125 FAULT Device EIO) {
        /// The device.
        device: &'static str,
        /// Its status register.
        status: u32 as register,
        /// The most important bit, in words.
        what: &'static str,
    } "{device} reports: {what} (status {status:#010x}; its manual has the bits)";

    /// A function of a driver in C, or of one in a shared library, failed. The device was stopped.
    Driver(-172 DRIVER Device EIO) {
        /// The driver.
        driver: &'static str,
        /// Which function, or why, in the driver's words.
        why: &'static str,
        /// What it answered: a number of its own, or a code of this table.
        answer: i32,
    } let said = Answer(answer); "the driver {driver} failed: {why} (it answered {said})";

    /// The device reports an error at an address. It was stopped, and the buffers are back.
    FaultAt(-164 FAULT_AT Device EIO) {
        /// The device.
        device: &'static str,
        /// Its status register, or its descriptor's.
        status: u32 as register,
        /// The most important bit, in words.
        what: &'static str,
        /// The bus address of the descriptor or of the buffer that it was at.
        addr: u64 as hex,
    } "{device} reports: {what} (bus address {addr:#x}, status {status:#010x})";

    /// The device says it is done, and moved too little. The buffers are back.
    ShortTransfer(-126 SHORT_TRANSFER Device EIO) {
        /// The bytes of the job.
        need_bytes: u64,
        /// The bytes that the device says it wrote.
        done_bytes: u64,
    } "the device wrote {done_bytes} of {need_bytes} bytes and says it is done: is the job larger \
       than its registers hold?";

    /// The core's length register is narrower than a setting says, and dropped bits of a job's
    /// length. The device was stopped, and the buffers are back.
    LengthCut(-165 LENGTH_CUT Device EIO) {
        /// The device.
        device: &'static str,
        /// The setting.
        length_bits: u32,
        /// The bytes that were written into the register, or into a descriptor.
        need_bytes: u64,
        /// The bytes that the core made of them.
        done_bytes: u64,
    } "{device} took a length of {need_bytes} bytes as {done_bytes}: its length register has fewer \
       than {length_bits} bits; set length_bits to its width in the block design";

    /// The device claims more bytes than it was given. It was stopped, and the buffers are back.
    BadCompletion(-155 BAD_COMPLETION Device EIO) {
        /// The device.
        device: &'static str,
        /// Which job, as the device says.
        slot: usize,
        /// How many bytes, as the device says.
        bytes: usize,
        /// How many it was given.
        most_bytes: usize,
    } "{device} says that job {slot} wrote {bytes} bytes, and it was given {most_bytes}: is it \
     this \
       core, and this driver right?";

    /// The simulated device touched bytes that were not handed over to it, or no memory at all,
    /// while the job was in flight. It was stopped, and the buffers are back.
    WrongAccess(-167 WRONG_ACCESS Device EFAULT) {
        /// The device.
        device: &'static str,
        /// How often it touched bytes that were not handed over, or wrote those handed over to be
        /// read.
        unowned: u64,
        /// How often it touched addresses where no memory is.
        stray: u64,
    } "{device}, simulated, made {unowned} accesses to bytes that were not handed over to it in \
     that \
       direction, and {stray} to addresses without memory: are its addresses and lengths those of \
       the job's operands, and is the map this kernel's? (a test that provokes this allows it with \
       allow_wrong_accesses)";

    /// The function that computes a simulated kernel's jobs failed, or left its operands, while the
    /// job was in flight. The kernel was stopped, and the buffers are back.
    NotComputed(-173 NOT_COMPUTED Device EIO) {
        /// The device.
        device: &'static str,
        /// How many jobs were not computed.
        jobs: u64,
    } "{device}, simulated: its function did not compute {jobs} of its jobs: it failed, or it read \
     or \
       wrote outside of an operand or against its direction";

    /// The device tells of a job that it does not have, or of one twice. It was stopped, and the
    /// buffers are back.
    NoSuchJob(-163 NO_SUCH_JOB Device EIO) {
        /// The device.
        device: &'static str,
        /// Which job, as the device says.
        slot: usize,
    } "{device} says that job {slot} ended, and it has no such job: is it this core, and this \
     driver \
       right?";

    /// Another channel of the same core reset it, which ended this channel's jobs.
    EndedByReset(-156 ENDED_BY_RESET Device ECANCELED) {
        /// The core.
        device: &'static str,
    } "{device} was reset, by the program or by another of its channels, which ended this \
     channel's \
       jobs: start them again";

    /// The device would not stop, and keeps its buffers.
    WillNotStop(-127 WILL_NOT_STOP Device EIO) {
        /// The device.
        device: &'static str,
        /// Its control register.
        status: u32 as register,
        /// How long it was given.
        waited_us: u32,
    } "{device} did not stop within {waited_us} us (control {status:#010x}): it keeps its \
     buffers; reset \
       it from outside, then stop the queue and take them back";

    /// The register window is too small: this is another device.
    RegisterWindow(-128 REGISTER_WINDOW Device ENODEV) {
        /// The device that was expected.
        device: &'static str,
        /// The bytes that its driver needs.
        need_bytes: usize,
        /// The bytes of the window.
        have_bytes: usize,
    } "{device} needs a register window of {need_bytes} bytes, this one has {have_bytes}: compare \
       `reg` in the device tree with the design";

    /// A register that tells devices apart says that this is another one. The text has its content,
    /// and what was expected.
    WrongDevice(-149 WRONG_DEVICE Device ENODEV) {
        /// The device that was expected.
        device: &'static str,
        /// The register's name.
        register: &'static str,
        /// Its content in that device; bits that may differ as they were found.
        expected: u32 as register,
        /// Its content here.
        found: u32 as register,
    } "this is no {device}: {register} holds {found:#010x}, and {expected:#010x} was expected; \
     check \
       the address, and the bitstream";

    /// NVIDIA's driver refused, or tells now of a kernel that failed before. From 700 on the GPU is
    /// lost to this program.
    Cuda(-145 CUDA Device EIO) {
        /// The function's name, without its version.
        call: &'static str,
        /// The `CUresult`.
        code: i32,
        /// Its name in `cuda.h`.
        name: &'static str,
    } "{call}: {name} ({code})";

    /// The driver of a GPU refused, or lost the GPU: it is Vulkan's or OpenCL's.
    Gpu(-166 GPU Device EIO) {
        /// The function's name.
        call: &'static str,
        /// The `VkResult`, or OpenCL's error.
        code: i32,
        /// Its name in the interface's header.
        name: &'static str,
    } "{call}: {name} ({code})";
}

System {
    /// A system call failed. The text has its name and the errno.
    Os(-129 OS OS errno) {
        /// The work that was under way, with the call's name.
        call: &'static str,
        /// The errno; `man 3 errno` names it.
        errno: i32,
    } let errno = Errno(errno); "{call} failed: errno {errno}";

    /// The kernel does not give this program the device. The text says what to change.
    Denied(-130 DENIED Permission errno) {
        /// The thing that was asked for.
        what: &'static str,
        /// The errno.
        errno: i32,
        /// The change that would help, in words.
        fix: &'static str,
    } let errno = Errno(errno); "{what} is not for this program (errno {errno}): {fix}";

    /// There is no such device.
    NotFound(-132 NOT_FOUND NotFound ENOENT) {
        /// The thing that was looked for.
        what: &'static str,
        /// The others of its kind: how many there are, and the names that are most like it.
        among: Among,
    } "there is no such {what}; others that are here: {among}";

    /// Several devices are called that.
    Ambiguous(-133 AMBIGUOUS NotFound ENOTUNIQ) {
        /// The thing that was looked for.
        what: &'static str,
        /// How many there are.
        matches: u32,
    } "{matches} devices match, and one {what} was asked for: name its unit address too";

    /// A file under `/sys` is not there.
    AttributeMissing(-134 ATTRIBUTE_MISSING NotFound ENOENT) {
        /// The file's name.
        name: &'static str,
    } "{name} is missing: there is no such device, or its kernel module is older or was unloaded";

    /// A file under `/sys` or `/proc` cannot be read or written.
    AttributeUnreadable(-135 ATTRIBUTE_UNREADABLE OS errno) {
        /// The file's name.
        name: &'static str,
        /// The errno.
        errno: i32,
    } let errno = Errno(errno);
    "{name} cannot be read or written (errno {errno}): look at its permissions, and whether its \
       module is still loaded";

    /// A file under `/sys` is empty.
    AttributeEmpty(-136 ATTRIBUTE_EMPTY OS ENODATA) {
        /// The file's name.
        name: &'static str,
    } "{name} under /sys is empty: its kernel module does not say what is needed";

    /// A file, an ioctl, a library or a register says what cannot be.
    Unexpected(-137 UNEXPECTED OS EPROTO) {
        /// Its name.
        name: &'static str,
        /// As much as could be read as a number; 0 where nothing could.
        value: u64 as hex,
    } "{name} says {value:#x}, which cannot be: is the device, module or library another one than \
       expected?";

    /// A setting of the machine or of the device makes this impossible. The text says what to
    /// change.
    Setting(-138 SETTING OS EINVAL) {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: u64,
        /// The change that would help, in words.
        fix: &'static str,
    } "{name} is {value}: {fix}";

    /// `/proc/self/pagemap` hides addresses.
    PagemapHidden(-139 PAGEMAP_HIDDEN Permission EPERM) {
        /// The page asked for.
        page: u64 as hex,
    } "/proc/self/pagemap hides the frame of page {page:#x}: run as root or with CAP_SYS_ADMIN";

    /// Another process, or another part of this one, has it open. Or a contigo device behind an
    /// IOMMU did not stop.
    InUse(-140 IN_USE Busy EBUSY) {
        /// The errno of the lock.
        errno: i32,
    } "another program has this block or device open (errno {errno}): end that program, or take \
     another; \
       a contigo device that did not stop is to be reset";

    /// The kernel would not pin so much memory for this user (`RLIMIT_MEMLOCK`).
    PinLimit(-141 PIN_LIMIT Memory ENOMEM) {
        /// How many bytes were to be pinned, beside those that are.
        need_bytes: usize,
        /// RLIMIT_MEMLOCK, in bytes.
        limit_bytes: u64,
    } "{need_bytes} bytes more cannot be pinned: RLIMIT_MEMLOCK is {limit_bytes} bytes, without \
       CAP_IPC_LOCK; raise it (ulimit -l, LimitMEMLOCK= of systemd), or ask for less";

    /// Another thread's cache maintenance or PCI access did not end in time. Nothing was done.
    Contended(-142 CONTENDED Busy EAGAIN) {
        /// How many times it tried.
        tries: u32,
    } "another thread's cache maintenance or PCI access did not end within {tries} tries: try \
     again";

    /// A library of the system is not there, as NVIDIA's driver. The text says what to install.
    NoLibrary(-146 NO_LIBRARY NotFound ENOENT) {
        /// Its file's name.
        name: &'static str,
        /// The thing to install, in words.
        fix: &'static str,
    } "{name} cannot be loaded: {fix}";

    /// This process is a child of fork, and all that it has is its parent's: nothing was touched.
    Forked(-147 FORKED Forked EPERM) {
        /// The process whose memory and devices they are.
        owner_pid: u32,
    } "this is a child of process {owner_pid}, and uses nothing of it: call exec, start the child \
     by \
       spawn, or fork before the first call";
}
}

/// What a driver's function answered: a number of its own, or a code of the table of errors.
struct Answer(i32);

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Error::ROWS.iter().find(|row| row.code == self.0) {
            Some(row) => write!(f, "{}, {}", self.0, row.name),
            // A status register, as most manuals have it.
            None if self.0 > 255 => write!(f, "{:#x}", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}
