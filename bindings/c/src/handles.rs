//! The handles that C has: numbers, each of an entry of a table; and how many of everything there
//! are. The tables are static, so that nothing is ever allocated. Entries that are never used cost
//! no memory but address space: they are pages of zeroes that no code touches.
#![allow(non_camel_case_types, reason = "the names in C")]

use core::ffi::c_uint;

/// A buffer: some bytes of a region. Either the CPU owns them or a device does, never both. While
/// the CPU owns the buffer, it can be mapped and has no bus address. While a device owns it, it has
/// a bus address and cannot be mapped. Any thread may use it, one thread at a time.
pub type contigo_buf = u64;

/// A port: one bus master's way to memory. It is a handful of numbers, and each object that uses it
/// has a copy, so it can be closed at any time.
pub type contigo_port = u64;

/// A device that was opened by its name: one opening serves its registers, its engine and its
/// memory. It can be closed once all of them are.
pub type contigo_device = u64;

/// A region: one block of DMA memory, contiguous on the bus, aligned, and checked. Carve it once,
/// when the program begins.
pub type contigo_region = u64;

/// An engine: one channel of one device, its driver, and its jobs in flight.
pub type contigo_engine = u64;

/// Code that was loaded for a GPU.
pub type contigo_module = u64;

/// A job. Its handle is stale once its end was taken.
pub type contigo_job = u64;

/// The map of a kernel that HLS made. It opens nothing: the same bytes are `map` of
/// `contigo_engine_options`, with the driver `ap_ctrl`.
pub type contigo_kernel = u64;

/// A pool: equal slots over one piece of a region. Any number of threads may take and release at
/// once.
pub type contigo_pool = u64;

/// A simulated board: a bus, a clock of virtual time, and a seed that decides everything that is
/// left to chance.
pub type contigo_sim = u64;

/// The registers and the interrupt of a device that a program drives itself.
pub type contigo_registers = u64;

/// Buffers that exist at once, pools' free slots included: four pools of the largest size. A
/// handle's index has 12 bits.
pub const CONTIGO_MAX_BUFS: c_uint = 4096;
/// Slots of one pool: as many as the runtime's own `Pool` has at most.
pub const CONTIGO_MAX_POOL_SLOTS: c_uint = 1024;
/// Pools at once: one for each kind of tensor of a program with some to spare.
pub const CONTIGO_MAX_POOLS: c_uint = 64;
/// Regions at once: a board has a handful of memories, and a test opens some more.
pub const CONTIGO_MAX_REGIONS: c_uint = 32;
/// Engines at once, and as many maps and modules of kernels: a Zynq has eight PL330 channels and a
/// fabric with room for as many cores.
pub const CONTIGO_MAX_ENGINES: c_uint = 32;
/// Jobs of one engine at once, with those whose end no call took: as many as a descriptor ring of
/// the fabric takes. A driver's own depth may be less.
pub const CONTIGO_MAX_JOBS: c_uint = 64;
/// Argument words of a job: 16 scalars of 64 bits, twice over.
pub const CONTIGO_MAX_ARGS: c_uint = 64;

/// A flag of contigo_job_start: more jobs follow at once.
pub const CONTIGO_JOB_MORE: c_uint = 1;
/// Ports at once: the boards' own are two dozen.
pub const CONTIGO_MAX_PORTS: c_uint = 64;
/// Different names of ports that a program makes (`contigo_port_define`), from its beginning to its
/// end: errors and engines keep them.
pub const CONTIGO_MAX_PORT_NAMES: c_uint = 1024;
/// GPUs: NVIDIA's largest machines have 16. A GPU that was opened once stays open until the
/// program ends.
pub const CONTIGO_MAX_GPUS: c_uint = 16;
/// Devices at once, opened by their names: one for each engine at most.
pub const CONTIGO_MAX_DEVICES: c_uint = 32;
/// Simulated boards at once.
pub const CONTIGO_MAX_SIMS: c_uint = 32;
/// Tensors of buffers that are out at once: finding a free entry looks at each.
pub const CONTIGO_MAX_TENSORS: c_uint = 256;
/// Dimensions of a tensor: as many as the runtime's table has room for.
pub const CONTIGO_MAX_DIMS: c_uint = 8;
/// Bytes of a name, its NUL not counted.
pub const CONTIGO_MAX_NAME_BYTES: c_uint = 127;

const _: () = assert!(contigo_objects::JOBS == CONTIGO_MAX_JOBS as usize);
const _: () = assert!(contigo_objects::NAMES == CONTIGO_MAX_PORT_NAMES as usize);
const _: () = assert!(contigo_objects::NAME_BYTES == CONTIGO_MAX_NAME_BYTES as usize);
const _: () = assert!(contigo::dlpack::MAX_DIMS == CONTIGO_MAX_DIMS as usize);
