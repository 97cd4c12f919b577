//! The codes of the runtime's errors, made from `runtime/core/src/types/error/rows.rs`.
//!
//! `CONTIGO_WRITE_HEADER=1 cargo test -p contigo-c --test header` writes it anew.

use super::contigo_status;

/// An alignment is no power of two.
pub const CONTIGO_E_NOT_POWER_OF_TWO: contigo_status = -100;
/// A range runs past the end of the bytes that it is taken from.
pub const CONTIGO_E_OUT_OF_RANGE: contigo_status = -101;
/// The bytes are no slice of that type: their count or address does not fit.
pub const CONTIGO_E_VIEW: contigo_status = -102;
/// A number is outside what is possible. The text has the limits.
pub const CONTIGO_E_ARGUMENT: contigo_status = -122;
/// The check of a driver in C, or of one in a shared library, refuses a job. Nothing was
/// touched.
pub const CONTIGO_E_DRIVER_CHECK: contigo_status = -171;
/// A setting is no number.
pub const CONTIGO_E_NOT_A_NUMBER: contigo_status = -159;
/// A setting or a map is not what the simulated core is built with. Nothing was touched.
pub const CONTIGO_E_OTHER_MODEL: contigo_status = -169;
/// The driver has no setting of this name. The text lists those that it has.
pub const CONTIGO_E_UNKNOWN_SETTING: contigo_status = -160;
/// The device uses an operand in another direction than it was given for.
pub const CONTIGO_E_WRONG_DIRECTION: contigo_status = -119;
/// An operand is longer than the device takes in one job.
pub const CONTIGO_E_OPERAND_TOO_LONG: contigo_status = -152;
/// The device reads whole words of its bus, and the operand's first or last one is not all in
/// the block.
pub const CONTIGO_E_READS_BESIDE: contigo_status = -168;
/// A tensor is not what the exchange, or the consumer's contract, allows. The text has the rule
/// and the numbers.
pub const CONTIGO_E_TENSOR: contigo_status = -143;
/// A name is empty, too long, or has a `/`.
pub const CONTIGO_E_BAD_NAME: contigo_status = -131;
/// A file is neither a map of a kernel nor a block design. The text has the line and the rule.
pub const CONTIGO_E_BAD_MAP: contigo_status = -158;
/// This cannot be done here at all. The text says what can be done.
pub const CONTIGO_E_UNSUPPORTED: contigo_status = -161;
/// Memory of this kind belongs to a device: to one that was not opened, or to another one than
/// was.
pub const CONTIGO_E_NEEDS_DEVICE: contigo_status = -151;
/// Memory or a device of this kind is not built into this program or library. The text has the
/// feature.
pub const CONTIGO_E_NOT_BUILT_IN: contigo_status = -150;
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
/// A pointer or an address is not inside this region.
pub const CONTIGO_E_NOT_OURS: contigo_status = -108;
/// Nothing that large is left.
pub const CONTIGO_E_EXHAUSTED: contigo_status = -109;
/// Every slot of the pool, or of the table of tensors, is in use.
pub const CONTIGO_E_NO_SLOTS: contigo_status = -110;
/// There is a limit on these, and it is reached. The text says on what, and how many there can
/// be.
pub const CONTIGO_E_TOO_MANY: contigo_status = -148;
/// The kernel does not allocate so much memory for a device. The text says what to change.
pub const CONTIGO_E_NO_MEMORY: contigo_status = -170;
/// A slot is no whole number of cache lines, so that a line would belong to two owners.
pub const CONTIGO_E_SLOT_SIZE: contigo_status = -111;
/// The block can only be synchronised as a whole, so it can hold only one buffer.
pub const CONTIGO_E_WHOLE_BLOCK: contigo_status = -112;
/// The parts of this buffer or region cannot be counted any further.
pub const CONTIGO_E_TOO_MANY_PARTS: contigo_status = -113;
/// The device would write into a cache line that another buffer shares.
pub const CONTIGO_E_SHARED_LINE: contigo_status = -118;
/// An operand is too small for the job.
pub const CONTIGO_E_BUFFER_SIZE: contigo_status = -120;
/// An operand's bus address is not aligned as the device needs.
pub const CONTIGO_E_BUFFER_ALIGN: contigo_status = -121;
/// A consumer has this buffer's tensor, or the buffer was not taken back yet.
pub const CONTIGO_E_TENSOR_OUT: contigo_status = -144;
/// The port, or the device's registers, cannot reach these bytes.
pub const CONTIGO_E_UNREACHABLE: contigo_status = -114;
/// The memory's addresses are for another bus.
pub const CONTIGO_E_WRONG_BUS: contigo_status = -115;
/// The kernel and the port disagree on whether the memory is coherent, which is silent data
/// corruption.
pub const CONTIGO_E_COHERENCY: contigo_status = -116;
/// No code can maintain the caches of this memory, and the port does not snoop. The text says
/// what would help.
pub const CONTIGO_E_CANNOT_SYNC: contigo_status = -117;
/// A job is under way here, or one was forgotten.
pub const CONTIGO_E_BUSY: contigo_status = -123;
/// The device or the channel has a driver already, or had one that was forgotten.
pub const CONTIGO_E_HAS_DRIVER: contigo_status = -162;
/// As many jobs are in flight as the queue or the device holds.
pub const CONTIGO_E_QUEUE_FULL: contigo_status = -153;
/// The queue was stopped with jobs in it, or must be. A device that would not stop is reset
/// first.
pub const CONTIGO_E_QUEUE_STOPPED: contigo_status = -154;
/// The job did not end in time. The device was stopped, and the buffers are back.
pub const CONTIGO_E_TIMEOUT: contigo_status = -124;
/// The device reports an error. It was stopped, and the buffers are back.
pub const CONTIGO_E_FAULT: contigo_status = -125;
/// A function of a driver in C, or of one in a shared library, failed. The device was stopped.
pub const CONTIGO_E_DRIVER: contigo_status = -172;
/// The device reports an error at an address. It was stopped, and the buffers are back.
pub const CONTIGO_E_FAULT_AT: contigo_status = -164;
/// The device says it is done, and moved too little. The buffers are back.
pub const CONTIGO_E_SHORT_TRANSFER: contigo_status = -126;
/// The core's length register is narrower than a setting says, and dropped bits of a job's
/// length. The device was stopped, and the buffers are back.
pub const CONTIGO_E_LENGTH_CUT: contigo_status = -165;
/// The device claims more bytes than it was given. It was stopped, and the buffers are back.
pub const CONTIGO_E_BAD_COMPLETION: contigo_status = -155;
/// The simulated device touched bytes that were not handed over to it, or no memory at all,
/// while the job was in flight. It was stopped, and the buffers are back.
pub const CONTIGO_E_WRONG_ACCESS: contigo_status = -167;
/// The function that computes a simulated kernel's jobs failed, or left its operands, while the
/// job was in flight. The kernel was stopped, and the buffers are back.
pub const CONTIGO_E_NOT_COMPUTED: contigo_status = -173;
/// The device tells of a job that it does not have, or of one twice. It was stopped, and the
/// buffers are back.
pub const CONTIGO_E_NO_SUCH_JOB: contigo_status = -163;
/// Another channel of the same core reset it, which ended this channel's jobs.
pub const CONTIGO_E_ENDED_BY_RESET: contigo_status = -156;
/// The device would not stop, and keeps its buffers.
pub const CONTIGO_E_WILL_NOT_STOP: contigo_status = -127;
/// The register window is too small: this is another device.
pub const CONTIGO_E_REGISTER_WINDOW: contigo_status = -128;
/// A register that tells devices apart says that this is another one. The text has its content,
/// and what was expected.
pub const CONTIGO_E_WRONG_DEVICE: contigo_status = -149;
/// NVIDIA's driver refused, or tells now of a kernel that failed before. From 700 on the GPU is
/// lost to this program.
pub const CONTIGO_E_CUDA: contigo_status = -145;
/// The driver of a GPU refused, or lost the GPU: it is Vulkan's or OpenCL's.
pub const CONTIGO_E_GPU: contigo_status = -166;
/// A system call failed. The text has its name and the errno.
pub const CONTIGO_E_OS: contigo_status = -129;
/// The kernel does not give this program the device. The text says what to change.
pub const CONTIGO_E_DENIED: contigo_status = -130;
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
/// A file, an ioctl, a library or a register says what cannot be.
pub const CONTIGO_E_UNEXPECTED: contigo_status = -137;
/// A setting of the machine or of the device makes this impossible. The text says what to
/// change.
pub const CONTIGO_E_SETTING: contigo_status = -138;
/// `/proc/self/pagemap` hides addresses.
pub const CONTIGO_E_PAGEMAP_HIDDEN: contigo_status = -139;
/// Another process, or another part of this one, has it open. Or a contigo device behind an
/// IOMMU did not stop.
pub const CONTIGO_E_IN_USE: contigo_status = -140;
/// The kernel would not pin so much memory for this user (`RLIMIT_MEMLOCK`).
pub const CONTIGO_E_PIN_LIMIT: contigo_status = -141;
/// Another thread's cache maintenance or PCI access did not end in time. Nothing was done.
pub const CONTIGO_E_CONTENDED: contigo_status = -142;
/// A library of the system is not there, as NVIDIA's driver. The text says what to install.
pub const CONTIGO_E_NO_LIBRARY: contigo_status = -146;
/// This process is a child of fork, and all that it has is its parent's: nothing was touched.
pub const CONTIGO_E_FORKED: contigo_status = -147;
