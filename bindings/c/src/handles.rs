//! The handles that C has: numbers, each of an entry of a table.
#![allow(non_camel_case_types, reason = "the names in C")]

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
