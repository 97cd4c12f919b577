/* Contigo: contiguous DMA memory, bus addresses and ownership for FPGA and SoC accelerators on
 * embedded Linux.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A program opens a region of DMA memory by its name. It takes buffers from a pool, looks at them
 * while the CPU owns them, and gives them to an engine's job:
 *
 *     contigo_region_open -> contigo_pool_open -> contigo_pool_take -> contigo_buf_map, _unmap
 *         -> contigo_job_start -> contigo_job_wait -> contigo_buf_map ... -> contigo_buf_release
 *
 * Handles. Every object is a number. A number that is stale, of another kind, or of no kind is
 * refused; 0 is never a handle. An object belongs to the program from the call that made it until
 * the call that closes or releases it.
 *
 * Directions. Every direction is said from the device's side: CONTIGO_READS, the device reads these
 * bytes; CONTIGO_WRITES, it writes them; CONTIGO_READS | CONTIGO_WRITES, both.
 *
 * Errors. Every call that can fail returns a contigo_status: 0, or a negative code. A call that is
 * refused answers 0 where it would answer a value, and -1 for a descriptor. One that would answer
 * the handle of a new object leaves what is there, because that may be a good handle; only a job's
 * is 0 then. So a variable for a handle begins with 0. contigo_last_error has the text with the
 * numbers, for each thread.
 *
 * Threads. Any thread may use any handle. Many threads may use a region, a port or a pool at once.
 * One thread at a time uses a buffer, an engine or a job: a second one is refused with
 * CONTIGO_E_IN_CALL, and nothing waits. A close while others are in a call is refused with
 * CONTIGO_E_STILL_USED.
 *
 * Fork. A child of fork has no part in the objects of its parent: every call is refused with
 * CONTIGO_E_FORKED there, and touches nothing. The child calls exec, or fork comes before the first
 * call of this library.
 *
 * Memory. Nothing is allocated from the heap. All tables are static and have the sizes
 * CONTIGO_MAX_.... (A GPU's driver, which is loaded when a GPU is first asked for, allocates as it
 * pleases. So do this library's calls for vulkan and opencl, to open, to load, to close, and
 * those that open and close an engine of a driver's shared library.)
 *
 * The library cannot catch: a pointer that is neither NULL nor valid; a pointer of contigo_buf_map
 * that is used after contigo_buf_unmap; a device that the program drives itself and that still
 * writes after contigo_buf_take_back; an importer of an exported region that reads or writes while
 * the program uses a buffer of it; a port that is not the one that a device is wired to; a missing
 * fence between two threads of the CPU that share write-combined memory.
 *
 * This file is made by cbindgen from bindings/c/src and bindings/objects/src/driver. Do not
 * edit it. */

#ifndef CONTIGO_H
#define CONTIGO_H

#include <stddef.h>
#include <stdint.h>

/// The device reads.
#define CONTIGO_READS 1

/// The device writes. Where it does not read too, bytes that the CPU wrote before may be lost.
#define CONTIGO_WRITES 2

/// For contigo_buf_map: to read. Several may read at once.
#define CONTIGO_READ 1

/// For contigo_buf_map: to read and write, alone.
#define CONTIGO_WRITE 2

/// How many interrupts of a core contigo_core_info has room for.
#define CONTIGO_CORE_INTERRUPTS 16

/// The driver has no memory of its own.
#define CONTIGO_DESCRIPTORS_NONE 0

/// The port snoops.
#define CONTIGO_DESCRIPTORS_SNOOPED 1

/// The port does not snoop, and the CPU does not cache the memory: it needs no call.
#define CONTIGO_DESCRIPTORS_COHERENT 2

/// The port does not snoop: each write and read of a descriptor is a sync.
#define CONTIGO_DESCRIPTORS_SYNCED 3

/// The version of this header, which is also the number in the shared library's name. It grows
/// where a program that was compiled with an older header would not work any more. New functions
/// and codes, and new fields at the end of a structure, do not change it.
#define CONTIGO_ABI_VERSION 2

/// It keeps the bits that are written, and reading changes nothing.
#define CONTIGO_READ_WRITE 0

/// It is not written.
#define CONTIGO_READ_ONLY 1

/// Reading clears its bits.
#define CONTIGO_READ_CLEARS 2

/// A bit that is written as 1 is cleared.
#define CONTIGO_WRITE_1_CLEARS 3

/// Buffers that exist at once, pools' free slots included: four pools of the largest size. A
/// handle's index has 12 bits.
#define CONTIGO_MAX_BUFS 4096

/// Slots of one pool: as many as the runtime's own Pool has at most.
#define CONTIGO_MAX_POOL_SLOTS 1024

/// Pools at once: one for each kind of tensor of a program with some to spare.
#define CONTIGO_MAX_POOLS 64

/// Regions at once: a board has a handful of memories, and a test opens some more.
#define CONTIGO_MAX_REGIONS 32

/// Engines at once, and as many maps and modules of kernels: a Zynq has eight PL330 channels and a
/// fabric with room for as many cores.
#define CONTIGO_MAX_ENGINES 32

/// Jobs of one engine at once, with those whose end no call took: as many as a descriptor ring of
/// the fabric takes. A driver's own depth may be less.
#define CONTIGO_MAX_JOBS 64

/// Argument words of a job: 16 scalars of 64 bits, twice over.
#define CONTIGO_MAX_ARGS 64

/// A flag of contigo_job_start: more jobs follow at once.
#define CONTIGO_JOB_MORE 1

/// Ports at once: the boards' own are two dozen.
#define CONTIGO_MAX_PORTS 64

/// Different names of ports that a program makes (contigo_port_define), from its beginning to its
/// end: errors and engines keep them.
#define CONTIGO_MAX_PORT_NAMES 1024

/// GPUs: NVIDIA's largest machines have 16. A GPU that was opened once stays open until the
/// program ends.
#define CONTIGO_MAX_GPUS 16

/// Devices at once, opened by their names: one for each engine at most.
#define CONTIGO_MAX_DEVICES 32

/// Simulated boards at once.
#define CONTIGO_MAX_SIMS 32

/// Tensors of buffers that are out at once: finding a free entry looks at each.
#define CONTIGO_MAX_TENSORS 256

/// Dimensions of a tensor: as many as the runtime's table has room for.
#define CONTIGO_MAX_DIMS 8

/// Bytes of a name, its NUL not counted.
#define CONTIGO_MAX_NAME_BYTES 127

/// A call returns CONTIGO_OK, or one of CONTIGO_E_..., which are negative.
/// contigo_last_error has the text with the numbers.
typedef int32_t contigo_status;

/// A buffer: some bytes of a region. Either the CPU owns them or a device does, never both. While
/// the CPU owns the buffer, it can be mapped and has no bus address. While a device owns it, it has
/// a bus address and cannot be mapped. Any thread may use it, one thread at a time.
typedef uint64_t contigo_buf;

/// The state of a buffer: its size, its place and its owner. Units: bytes.
typedef struct {
    /// sizeof(contigo_buf_info).
    size_t struct_size;
    /// How many bytes it has; while a device owns it, how many there are at addr.
    size_t len_bytes;
    /// Where the first of them is, from the beginning of the region; 0 while a device owns the
    /// buffer.
    size_t offset_bytes;
    /// The bus address of the bytes that the last hand-over named, through the port of that
    /// hand-over. contigo_buf_give is a hand-over, and so is a job. 0 while the CPU owns the
    /// buffer.
    uint64_t addr;
    /// 1 while a device owns it.
    uint32_t device_owned;
    /// Always 0.
    uint32_t reserved;
} contigo_buf_info;

/// A port: one bus master's way to memory. It is a handful of numbers, and each object that uses it
/// has a copy, so it can be closed at any time.
typedef uint64_t contigo_port;

/// How a device uses bytes, always said from the device's side: CONTIGO_READS, CONTIGO_WRITES,
/// or both, joined by |.
typedef uint32_t contigo_use;

/// A core of a block design. Its texts end with NUL, and are empty where there is nothing to say.
typedef struct {
    /// sizeof(contigo_core_info).
    size_t struct_size;
    /// Where its first window of registers is; 0 where the processor sees none.
    uint64_t address;
    /// How many bytes that window has.
    uint64_t window_bytes;
    /// How many bytes of memory its driver needs for itself.
    uint64_t memory_bytes;
    /// How many bits of data the port to memory has that its first master uses; 0: none.
    uint32_t port_bits;
    /// How many interrupts it has; of more than CONTIGO_CORE_INTERRUPTS a core is refused.
    uint32_t interrupts;
    /// The number of each in a device tree (a shared interrupt of the GIC); 0: it does not reach
    /// the processor, or through a controller in the fabric.
    uint32_t interrupt[CONTIGO_CORE_INTERRUPTS];
    /// Its name in the hierarchy: video/axi_vdma.
    char name[128];
    /// Its driver, for contigo_engine_options.
    char driver[32];
    /// Its device, for contigo_device_open, where contigo overlay wrote its node.
    char device[64];
    /// Its driver's settings, from the design.
    char settings[256];
} contigo_core_info;

/// A device that was opened by its name: one opening serves its registers, its engine and its
/// memory. It can be closed once all of them are.
typedef uint64_t contigo_device;

/// A region: one block of DMA memory, contiguous on the bus, aligned, and checked. Carve it once,
/// when the program begins.
typedef uint64_t contigo_region;

/// Facts about an opened device. Yes is 1, no 0. Where is_contigo_device is 0 the kernel module
/// says nothing of the device, and every fact up to window_len_bytes is 0.
typedef struct {
    /// sizeof(contigo_device_info).
    size_t struct_size;
    /// It was opened as contigo:…: the kernel module stops it when the program ends.
    uint32_t is_contigo_device;
    /// The device snoops the CPU's caches.
    uint32_t is_coherent;
    /// Its bus addresses are not physical ones.
    uint32_t is_translated;
    /// It reaches memory that was imported for it, and nothing else: an IOMMU that forgets an
    /// address at once stands before this device alone.
    uint32_t is_confined;
    /// The kernel can reset it (contigo_device_reset), and does so when the program ends.
    uint32_t can_reset;
    /// The kernel has a program that stops it (contigo_engine_arm).
    uint32_t is_armed;
    /// How many interrupts it has.
    uint32_t interrupts;
    /// Blocks that this opening has allocated or imported.
    uint32_t buffers;
    /// Blocks in quarantine, because nothing has stopped the device.
    uint32_t quarantined;
    /// Always 0.
    uint32_t reserved;
    /// How long those are, in bytes.
    uint64_t quarantined_bytes;
    /// How many bytes each window of registers has; 0: there is none.
    uint64_t window_len_bytes[6];
    /// The name that a GPU's driver gives it, such as "llvmpipe (LLVM 15.0.6, 256 bits)", with a
    /// NUL, cut to fit; empty where the device is no GPU. On a machine with drivers for the CPU
    /// beside a GPU's it says which one vulkan or opencl:1 means.
    char gpu_name[128];
} contigo_device_info;

/// Says which driver an engine has, and which device.
typedef struct {
    /// sizeof(contigo_engine_options).
    size_t struct_size;
    /// The driver's name; contigo_inventory lists them, with their settings and jobs. Or the path
    /// of a shared library with a driver (contigo_driver_library): it has a / in it, or ends
    /// with .so.
    const char *driver;
    /// The device (contigo_device_open, contigo_sim_device).
    contigo_device device;
    /// The port that its bus master is wired to; 0 where the kernel or the simulated board says it.
    contigo_port port;
    /// The window of its registers: a PCI function's BAR; 0 for others.
    uint32_t window;
    /// 1: wait without the interrupt, by looking again and again.
    uint32_t polled;
    /// The region from which the driver's own memory is carved, once; 0: none. contigo_inventory
    /// says which drivers need it.
    contigo_region region;
    /// The size of that memory; 0: as much as the driver asks for, and a page at least.
    size_t region_bytes;
    /// Settings that no register tells, name=number,name=number; NULL: none.
    const char *settings;
    /// The description of a kernel, as its tool wrote it, for a driver that needs one; or NULL.
    const uint8_t *map;
    /// Its length.
    size_t map_bytes;
    /// The device that has the registers of the gate before the core (docs/stopping.md); 0: there
    /// is no gate. It is device where they are among the core's.
    contigo_device gate;
    /// Where they begin in its window, in bytes.
    size_t gate_offset;
    /// Which window, as window.
    uint32_t gate_window;
} contigo_engine_options;

/// An engine: one channel of one device, its driver, and its jobs in flight.
typedef uint64_t contigo_engine;

/// One operand of a driver's jobs, as the driver describes it.
typedef struct {
    /// Does the device read it (CONTIGO_READS), write it (CONTIGO_WRITES), or both?
    contigo_use use;
    /// The device reads it in whole words of so many bytes, a power of two, such as its data bus
    /// has: a job whose last word is not all in the operand's block is refused then. 0: by bytes.
    uint32_t word_bytes;
    /// Its bus address is a multiple of so many bytes, a power of two; 0: any address.
    size_t align_bytes;
    /// The fewest bytes; 0: 1.
    size_t min_bytes;
    /// The most that one job takes; 0: any.
    size_t max_bytes;
} contigo_operand_spec;

/// Where the device finds an operand's bytes.
typedef struct {
    /// The bus address.
    uint64_t addr;
    /// How many bytes.
    size_t len_bytes;
} contigo_dev_slice;

/// A device's report at the end of a job. A driver fills the fields that it knows, all others are
/// 0, and leaves struct_size, which says how many bytes the program knows. A later version has at
/// most 256 bytes.
typedef struct {
    /// sizeof(contigo_completion).
    size_t struct_size;
    /// How many bytes the device wrote, from the beginning of the operand that it writes.
    size_t bytes;
    /// 0: the device does not tell how many, and bytes is 0.
    uint32_t has_bytes;
    /// The driver's number of the job's place: 0 to one less than its depth.
    uint32_t slot;
    /// The device's status, as the driver's documentation describes it.
    uint32_t status;
    /// 1: this job failed, and the others went on.
    uint32_t failed;
    /// Further results: a return value, a cycle count, a packet's user words.
    uint32_t words[4];
} contigo_completion;

/// A driver in C: what its jobs look like, and four functions, each of which gets context first.
/// The library checks, cleans caches, keeps the buffers, and stops the device; the functions write
/// and read registers (contigo_registers_..., or the program's own).
///
/// Each answers 0, or another number: one of the driver's own, above 0, or a CONTIGO_E_..., such
/// as one of the library's functions has just answered. The text of the refusal has it. The library
/// calls the functions of one engine one at a time, from the thread that calls the engine; those of
/// two engines run at once. They must not unwind or jump out.
/// **A function that calls its own engine is refused with CONTIGO_E_IN_CALL. One that never
/// returns cannot be interrupted**: it holds the thread and the engine for ever.
///
/// contigo_engine_open_driver takes the structure from a program, and then the library does not
/// know the device: on a simulated board a job fails with CONTIGO_E_WRONG_ACCESS for what any
/// device of the board touched meanwhile. contigo_driver_library is for a driver in a file.
typedef struct {
    /// sizeof(contigo_driver_ops).
    size_t struct_size;
    /// The core's name, for messages. It is copied. A driver in a shared library has the name in
    /// its contigo_driver_library instead.
    const char *name;
    /// How many jobs the device takes at once; 0: 1. Slots are 0 to one less.
    uint32_t depth;
    /// 1: jobs may end in another order than they were started in.
    uint32_t out_of_order;
    /// How many bits the narrowest register that holds a bus address has; 0: 64.
    uint32_t addr_bits;
    /// How many operands a job has: 1 to 16.
    uint32_t n_operands;
    /// The operands, in their order. They are copied when the call that takes this structure, or
    /// the open of a driver's library, has returned: no local array of open will do.
    const contigo_operand_spec *operands;
    /// Answers 0 where the hardware takes these operands and argument words. Starts nothing. NULL:
    /// the hardware takes all of them.
    contigo_status (*check)(void *context, const contigo_dev_slice *operands, size_t n, const uint32_t *args, size_t args_words);
    /// Gives the device one job, which check has passed, in a free slot; a stopped device starts.
    /// On an error the library stops the device before it gives anything back.
    contigo_status (*submit)(void *context,
                             uint32_t slot,
                             const contigo_dev_slice *operands,
                             size_t n,
                             const uint32_t *args,
                             size_t args_words);
    /// Looks for a job that has ended: once at least, and for at most timeout_us. Where there is
    /// one, it sets ended, which is 0, to 1, and says in done, which is all 0 but for
    /// struct_size, which job it is (slot), and whatever else it knows. It tells each end once.
    /// An error means that the channel cannot go on; the library then stops it.
    contigo_status (*poll)(void *context, uint32_t timeout_us, contigo_completion *done, uint32_t *ended);
    /// Stops the device in bounded time, at any moment of its work; also before its first job, for
    /// a program that crashed may have left it at work. After a 0 the device touches no memory of
    /// any job, and none of the driver's own, until the next submit, which names slot 0. After
    /// any other answer the device keeps the buffers.
    contigo_status (*stop)(void *context);
} contigo_driver_ops;

/// The form of an engine's jobs, and counts of how they went.
typedef struct {
    /// sizeof(contigo_engine_info).
    size_t struct_size;
    /// How many operands a job has.
    uint32_t operands;
    /// How many jobs can be in flight.
    uint32_t depth;
    /// How many jobs are in flight.
    uint32_t in_flight;
    /// How many jobs have ended whose end no call has taken yet.
    uint32_t ended;
    /// 1: jobs end in the order in which they were started.
    uint32_t in_order;
    /// 1: the device would not stop. Reset it, then contigo_queue_stop.
    uint32_t stopped;
    /// Jobs that the device was given.
    uint64_t started;
    /// Jobs that ended well.
    uint64_t completed;
    /// Jobs that failed alone, while the others went on.
    uint64_t failed;
    /// Jobs that had not ended when the device was stopped.
    uint64_t cancelled;
    /// How often the device was stopped.
    uint64_t stops;
    /// How often the device was left without a job: for a stream, loss.
    uint64_t underruns;
    /// The driver's own memory, for its descriptors: CONTIGO_DESCRIPTORS_*.
    uint32_t descriptors;
    /// 0.
    uint32_t reserved;
} contigo_engine_info;

/// Code that was loaded for a GPU.
typedef uint64_t contigo_module;

/// One parameter of a GPU's kernel.
typedef struct {
    /// A scalar, or a structure by value: so many of the job's next argument words. 0: a pointer
    /// or a buffer, which is the job's next operand.
    uint32_t words;
    /// Always 0.
    uint32_t reserved;
    /// That operand, as the kernel takes it. It is read where words is 0.
    contigo_operand_spec operand;
} contigo_parameter;

/// Which bytes of which buffer a job uses. The CPU owns the buffer, or a device does since an
/// earlier job or contigo_buf_give; then the bytes count from the first that was handed over. The
/// driver says whether the device reads or writes them.
typedef struct {
    /// The buffer.
    contigo_buf buf;
    /// The first byte, from the beginning of the buffer.
    size_t offset_bytes;
    /// How many.
    size_t len_bytes;
} contigo_operand;

/// A job. Its handle is stale once its end was taken.
typedef uint64_t contigo_job;

/// The map of a kernel that HLS made. It opens nothing: the same bytes are map of
/// contigo_engine_options, with the driver ap_ctrl.
typedef uint64_t contigo_kernel;

/// The operands and the words of a kernel's jobs, and the size of its registers.
typedef struct {
    /// sizeof(contigo_kernel_info).
    size_t struct_size;
    /// How many operands a job has: its pointers.
    uint32_t operands;
    /// How many argument words: one for each scalar, two where it has more than 32 bits.
    uint32_t args_words;
    /// How many words a completion has.
    uint32_t result_words;
    /// How many bytes its register window has at least.
    uint32_t window_bytes;
} contigo_kernel_info;

/// A pool: equal slots over one piece of a region. Any number of threads may take and release at
/// once.
typedef uint64_t contigo_pool;

/// A simulated board: a bus, a clock of virtual time, and a seed that decides everything that is
/// left to chance.
typedef uint64_t contigo_sim;

/// A port of the program's own board.
typedef struct {
    /// sizeof(contigo_port_options).
    size_t struct_size;
    /// The name that errors print, 1 to CONTIGO_MAX_NAME_BYTES bytes. It is copied.
    const char *name;
    /// The master adds it: bus address = physical address + offset.
    uint64_t offset;
    /// The first bus address that reaches memory.
    uint64_t window_first;
    /// The last bus address that reaches memory.
    uint64_t window_last;
    /// How many address lines the master drives: 1 to 64.
    uint32_t addr_bits;
    /// 1: it snoops the CPU's caches; 0: it does not.
    uint32_t coherent;
    /// The simulated board whose bus it is on; 0: the SoC's.
    contigo_sim sim;
} contigo_port_options;

/// The properties of memory that its name does not say. A field of 0 stands for its default.
typedef struct {
    /// sizeof(contigo_region_options).
    size_t struct_size;
    /// The size in bytes, where the memory is made here; otherwise how large it must be at least.
    size_t len_bytes;
    /// The bus address is a multiple of so many bytes, a power of two; 0: 64.
    size_t align_bytes;
    /// Each byte must be reachable with so many address bits; 0: 64.
    uint32_t addr_bits;
    /// For cuda: 1, write-combined, for bytes that the CPU only writes, front to back. A card
    /// reads it faster; the CPU reads it very slowly.
    uint32_t write_combined;
    /// For u-dma-buf:NAME: 1, its node is behind dma-ranges or an IOMMU, so that its address is
    /// the accelerator's own.
    uint32_t translated;
    /// The opened device that the memory is for; 0: a device that it belongs to is opened with it.
    contigo_device device;
    /// For sim: the simulated board; 0: a board of its own.
    contigo_sim sim;
} contigo_region_options;

/// A region's size, its cache line, where it lies, and counts of its work.
typedef struct {
    /// sizeof(contigo_region_info).
    size_t struct_size;
    /// The block's size in bytes.
    size_t len_bytes;
    /// How many bytes can still be carved, before alignment.
    size_t free_bytes;
    /// The size of a cache line. The size of a pool's slots must be a multiple of it.
    size_t line_bytes;
    /// Where the block lies, as the memory knows it; a port may add its offset.
    uint64_t base;
    /// Cache maintenance calls since it was opened.
    uint64_t syncs;
    /// Bytes made visible to devices since then, rounded out to whole lines where devices write.
    uint64_t bytes_synced_for_device;
    /// Bytes taken back for the CPU.
    uint64_t bytes_synced_for_cpu;
    /// Bytes that contigo_buf_write copied.
    uint64_t bytes_copied;
    /// How often memory was allocated, for a buffer or a pool.
    uint64_t carves;
} contigo_region_info;

/// The registers and the interrupt of a device that a program drives itself.
typedef uint64_t contigo_registers;

/// A register of 32 bits, as the device's manual has it: write it down once, as a constant.
typedef struct {
    /// From the window's first byte; a multiple of 4.
    uint32_t offset_bytes;
    /// CONTIGO_READ_WRITE, CONTIGO_READ_ONLY...
    uint32_t access;
} contigo_register;

/// The seed and the faults of a simulated board. Where all is zero except for struct_size,
/// nothing goes wrong.
///
/// Each fault strikes in so many of 1,000 jobs.
typedef struct {
    /// sizeof(contigo_sim_options).
    size_t struct_size;
    /// The seed.
    uint64_t seed;
    /// The interrupt comes up to ten times as late as the result.
    uint16_t late_irq;
    /// The interrupt never comes; the status register is right.
    uint16_t lost_irq;
    /// The device ends with an error bit.
    uint16_t error;
    /// The device says that it is done, and wrote only a part.
    uint16_t short_transfer;
    /// The device hangs until its driver stops it.
    uint16_t hang;
    /// The device hangs and does not stop before contigo_device_reset.
    uint16_t stuck;
    /// 1, for a test that provokes it: jobs end well whose device touches bytes that were not
    /// handed over to it, or no memory at all. With 0 such a job ends with
    /// CONTIGO_E_WRONG_ACCESS, and its device has been stopped.
    uint32_t allow_wrong_accesses;
} contigo_sim_options;

/// One operand of a simulated kernel's job: the bytes that the kernel may access.
typedef struct {
    /// A copy of them, for any type; of an operand that the kernel only writes, as they were
    /// before. Those that the kernel writes go back when the function returns; any others must stay
    /// as they are. Where there are none, it points nowhere.
    uint8_t *bytes;
    /// How many: by the map's rule; without one, as many as the job was given.
    size_t len_bytes;
    /// CONTIGO_READS, CONTIGO_WRITES, or both: what the kernel does with them.
    contigo_use use;
} contigo_kernel_bytes;

/// One job of a simulated kernel, for the function that computes it, and until it returns.
typedef struct {
    /// The kernel's scalars, in the map's order; a float's bits are its value.
    const uint64_t *scalars;
    /// The kernel's operands, in the map's order.
    const contigo_kernel_bytes *operands;
    /// How many scalars.
    uint32_t scalar_count;
    /// How many operands.
    uint32_t operand_count;
    /// The function puts the words of the kernel's results here; they are 0 before.
    uint32_t results[4];
} contigo_kernel_job;

/// Computes a job of a simulated kernel. 0: done. Any other number fails the job with
/// CONTIGO_E_NOT_COMPUTED. It returns, and does not unwind or jump: an exception of C++ stays
/// inside. While it computes, other threads wait for its board, for a second at most: then they get
/// CONTIGO_E_CONTENDED.
typedef int32_t (*contigo_kernel_function)(void *context, contigo_kernel_job *job);

/// The tensor as which a buffer is lent. Its elements follow each other in C's order.
typedef struct {
    /// sizeof(contigo_tensor_options).
    size_t struct_size;
    /// ndim dimensions, the outermost first. It is copied; NULL where ndim is 0, a scalar.
    const int64_t *shape;
    /// How many dimensions: at most CONTIGO_MAX_DIMS.
    uint32_t ndim;
    /// DLDataTypeCode: 0 signed, 1 unsigned, 2 float, 4 bfloat, 5 complex, 6 bool.
    uint8_t dtype_code;
    /// Bits of an element: a multiple of 8.
    uint8_t dtype_bits;
    /// Always 0.
    uint16_t reserved;
    /// 1: the consumer may not write. Refused together with legacy, which cannot say it.
    uint32_t read_only;
    /// 1: the data pointer is the region's first byte, and byte_offset leads to the buffer; 0:
    /// the data pointer leads there itself.
    uint32_t keep_byte_offset;
    /// 1: the form before DLPack 1.0, a DLManagedTensor; 0: a DLManagedTensorVersioned.
    uint32_t legacy;
    /// The alignment that the consumer demands of the first element's address: 64 for TVM and ONNX
    /// Runtime, 256 for dlpack.h; 0: none.
    uint32_t align_bytes;
} contigo_tensor_options;

/// Which bytes of a region a tensor is.
typedef struct {
    /// sizeof(contigo_tensor_info).
    size_t struct_size;
    /// Where the lowest element is, from the beginning of the region.
    size_t offset_bytes;
    /// From the lowest element's first byte to the highest one's last.
    size_t len_bytes;
    /// 1: its producer forbids to write.
    uint32_t read_only;
    /// Always 0.
    uint32_t reserved;
} contigo_tensor_info;

/// The device of a driver in a file (contigo_driver_library). Its functions get the structure
/// itself, from which they know the device: device->read32(device, 0x10). The driver keeps the
/// pointer. They may be called from the driver's own functions, on the thread that these are called
/// on, until its close has returned.
typedef struct {
    /// The size of the structure in the program. Fields behind it are not there.
    size_t struct_size;
    /// How many bytes of registers the device has.
    size_t len_bytes;
    /// The driver's settings as they were given, name=number,name=number; never NULL. setting
    /// reads one.
    const char *settings;
    /// How many bytes of memory the driver has for descriptors or microcode: memory_bytes of its
    /// contigo_driver_library, or more; 0: none. Its contents are
    /// undefined at first.
    size_t memory_bytes;
    /// Where the device finds the first of them.
    uint64_t memory_addr;
    /// How far apart two descriptors lie at least, in bytes, so that each has its cache lines to
    /// itself: the CPU writes one while the device writes the other.
    size_t memory_stride_bytes;
    /// How many bits of an address reach memory through the device's port.
    uint32_t port_addr_bits;
    /// 1: the port snoops the CPU's caches.
    uint32_t port_coherent;
    /// Reads the 32-bit register at offset bytes. All ones: it is outside of the window, or the
    /// device is gone.
    uint32_t (*read32)(const void *device, size_t offset);
    /// Writes it. What the driver promises of its device is said at contigo_engine_open_driver.
    void (*write32)(const void *device, size_t offset, uint32_t value);
    /// A clock that never goes back, in microseconds; the simulated board's where the device is of
    /// one.
    uint64_t (*now_us)(const void *device);
    /// Waits for the device's interrupt, for at most timeout_us; where it has none, for a moment.
    /// It may return early: look at the device again, then at the clock. An interrupt is a level:
    /// one that the driver has not cleared in the device ends the next wait at once. For a bit that
    /// raises no interrupt, such as that of a reset, wait 10 us at a time.
    contigo_status (*wait)(const void *device, uint32_t timeout_us);
    /// The setting name, one of settings of the contigo_driver_library, from min to max;
    /// otherwise where it was not given. The driver's open returns the status of a refusal, and
    /// the program gets its text.
    contigo_status (*setting)(const void *device, const char *name, uint64_t min, uint64_t max, uint64_t otherwise, uint64_t *value);
    /// Writes n words into the driver's memory at offset bytes, a multiple of 4, and makes them
    /// visible to the device before the next register is written. The device does not fetch these
    /// bytes now.
    contigo_status (*memory_write)(const void *device, size_t offset, const uint32_t *words, size_t n);
    /// Reads n words of it, as the device wrote them.
    contigo_status (*memory_read)(const void *device, size_t offset, uint32_t *words, size_t n);
    /// Says why the function that runs now refuses, for the text of the refusal: "operand 1 is
    /// shorter than operand 0". A constant of the library, of 127 bytes at most.
    void (*say)(const void *device, const char *why);
} contigo_driver_device;

/// A driver in a shared library: what the file exports, as the symbol contigo_driver. It uses
/// none of this library's functions and is linked with nothing. A file in C++ says extern "C"
/// before it.
///
/// A program in C names the file where it would name a driver (contigo_engine_options.driver:
/// "./libmover.so"), one in Python calls contigo.load_driver("./libmover.so"). The file stays
/// loaded for as long as the process runs. What the driver promises of its device is said at
/// contigo_engine_open_driver.
typedef struct {
    /// sizeof(contigo_driver_library).
    size_t struct_size;
    /// The driver's name, which no other has: letters, digits, _ and -, 127 bytes at most.
    const char *name;
    /// One sentence: what it drives, and what its jobs are. 127 bytes at most.
    const char *help;
    /// The names of its settings, separated by commas, 16 of them and 127 bytes at most; NULL: it
    /// has none. Others are refused. On a simulated board a setting that is called as the built-in
    /// driver's must be as the simulated core is built.
    const char *settings;
    /// How many bytes of memory the driver itself needs; 0: none.
    size_t memory_bytes;
    /// How many bits the register for their address has; 0: 64.
    uint32_t memory_addr_bits;
    /// Always 0.
    uint32_t reserved;
    /// Fills ops, which is all 0 but for struct_size, and context. It may look whether the
    /// device is the right one; stop is called next. Another answer than 0: the device is not
    /// opened, knows no address of the driver's memory, and nothing is left. open and close of
    /// one library are called one at a time.
    contigo_status (*open)(const contigo_driver_device *device, contigo_driver_ops *ops, void **context);
    /// Gives back what open took. It is called once, after every other function. The device has
    /// stopped, or it could not be stopped. NULL: there is nothing to give back.
    void (*close)(void *context);
} contigo_driver_library;

/// It was done.
#define CONTIGO_OK 0

/// A pointer that must not be NULL is.
#define CONTIGO_E_NULL -1

/// A number that is no handle.
#define CONTIGO_E_HANDLE -2

/// The object is gone: released, closed, ended, or given away. Also the second release of one
/// handle.
#define CONTIGO_E_STALE -3

/// A handle, a port, or a register of another kind; or the device has no interrupt, or is none that
/// the kernel module stops.
#define CONTIGO_E_KIND -4

/// Another thread is in a call with this object. Use a handle from one thread at a time.
#define CONTIGO_E_IN_CALL -5

/// Others still use this object: its buffers, its engines, a call of another thread. Release them
/// first.
#define CONTIGO_E_STILL_USED -6

/// A fixed table of this library is full (CONTIGO_MAX_...).
#define CONTIGO_E_TABLE_FULL -7

/// The buffer is mapped, so that it cannot be given away or released. Unmap it first.
#define CONTIGO_E_MAPPED -8

/// The buffer is not mapped.
#define CONTIGO_E_NOT_MAPPED -9

/// The buffer is a device's. Wait for its job, or take it back with contigo_buf_take_back.
#define CONTIGO_E_DEVICE_OWNED -10

/// The buffer is the CPU's, and has no bus address. Hand it over with contigo_buf_give.
#define CONTIGO_E_CPU_OWNED -11

/// A structure's struct_size cannot be, or it has something set that this library does not know.
#define CONTIGO_E_STRUCT -13

/// A text is not UTF-8, or too long.
#define CONTIGO_E_TEXT -14

/// A number is none of those that this header lists for it.
#define CONTIGO_E_VALUE -15

/// One buffer is two operands of one job, or a copy is from a buffer into itself.
#define CONTIGO_E_SAME_BUFFER -16

/// The engine has jobs whose end no call took. Wait for them, or stop the engine.
#define CONTIGO_E_HAS_JOB -17

/// A defect of this library was caught. Please report it.
#define CONTIGO_E_INTERNAL -18

/// The device was stopped before this job ended. Its buffers are back.
#define CONTIGO_E_CANCELLED -157

/// A refusal that is newer than this list. The text says what.
#define CONTIGO_E_OTHER -999

/// An alignment is no power of two.
#define CONTIGO_E_NOT_POWER_OF_TWO -100

/// A range runs past the end of the bytes that it is taken from.
#define CONTIGO_E_OUT_OF_RANGE -101

/// The bytes are no slice of that type: their count or address does not fit.
#define CONTIGO_E_VIEW -102

/// A number is outside what is possible. The text has the limits.
#define CONTIGO_E_ARGUMENT -122

/// The check of a driver in C, or of one in a shared library, refuses a job. Nothing was
/// touched.
#define CONTIGO_E_DRIVER_CHECK -171

/// A setting is no number.
#define CONTIGO_E_NOT_A_NUMBER -159

/// A setting or a map is not what the simulated core is built with. Nothing was touched.
#define CONTIGO_E_OTHER_MODEL -169

/// The driver has no setting of this name. The text lists those that it has.
#define CONTIGO_E_UNKNOWN_SETTING -160

/// The device uses an operand in another direction than it was given for.
#define CONTIGO_E_WRONG_DIRECTION -119

/// An operand is longer than the device takes in one job.
#define CONTIGO_E_OPERAND_TOO_LONG -152

/// The device reads whole words of its bus, and the operand's first or last one is not all in
/// the block.
#define CONTIGO_E_READS_BESIDE -168

/// A tensor is not what the exchange, or the consumer's contract, allows. The text has the rule
/// and the numbers.
#define CONTIGO_E_TENSOR -143

/// A name is empty, too long, or has a /.
#define CONTIGO_E_BAD_NAME -131

/// A file is neither a map of a kernel nor a block design. The text has the line and the rule.
#define CONTIGO_E_BAD_MAP -158

/// This cannot be done here at all. The text says what can be done.
#define CONTIGO_E_UNSUPPORTED -161

/// Memory of this kind belongs to a device: to one that was not opened, or to another one than
/// was.
#define CONTIGO_E_NEEDS_DEVICE -151

/// Memory or a device of this kind is not built into this program or library. The text has the
/// feature.
#define CONTIGO_E_NOT_BUILT_IN -150

/// The block is in pieces on the bus.
#define CONTIGO_E_NOT_CONTIGUOUS -103

/// An address is not aligned as was asked for.
#define CONTIGO_E_MISALIGNED -104

/// The block is too small, or no whole number of cache lines.
#define CONTIGO_E_BLOCK_SIZE -105

/// The block ends above the address width asked for.
#define CONTIGO_E_TOO_HIGH -106

/// The memory has no address for a device. The text says what to install.
#define CONTIGO_E_NO_ADDRESS -107

/// A pointer or an address is not inside this region.
#define CONTIGO_E_NOT_OURS -108

/// Nothing that large is left.
#define CONTIGO_E_EXHAUSTED -109

/// Every slot of the pool, or of the table of tensors, is in use.
#define CONTIGO_E_NO_SLOTS -110

/// There is a limit on these, and it is reached. The text says on what, and how many there can
/// be.
#define CONTIGO_E_TOO_MANY -148

/// The kernel does not allocate so much memory for a device. The text says what to change.
#define CONTIGO_E_NO_MEMORY -170

/// A slot is no whole number of cache lines, so that a line would belong to two owners.
#define CONTIGO_E_SLOT_SIZE -111

/// The block can only be synchronised as a whole, so it can hold only one buffer.
#define CONTIGO_E_WHOLE_BLOCK -112

/// The parts of this buffer or region cannot be counted any further.
#define CONTIGO_E_TOO_MANY_PARTS -113

/// The device would write into a cache line that another buffer shares.
#define CONTIGO_E_SHARED_LINE -118

/// An operand is too small for the job.
#define CONTIGO_E_BUFFER_SIZE -120

/// An operand's bus address is not aligned as the device needs.
#define CONTIGO_E_BUFFER_ALIGN -121

/// A consumer has this buffer's tensor, or the buffer was not taken back yet.
#define CONTIGO_E_TENSOR_OUT -144

/// The port, or the device's registers, cannot reach these bytes.
#define CONTIGO_E_UNREACHABLE -114

/// The memory's addresses are for another bus.
#define CONTIGO_E_WRONG_BUS -115

/// The kernel and the port disagree on whether the memory is coherent, which is silent data
/// corruption.
#define CONTIGO_E_COHERENCY -116

/// No code can maintain the caches of this memory, and the port does not snoop. The text says
/// what would help.
#define CONTIGO_E_CANNOT_SYNC -117

/// A job is under way here, or one was forgotten.
#define CONTIGO_E_BUSY -123

/// The device or the channel has a driver already, or had one that was forgotten.
#define CONTIGO_E_HAS_DRIVER -162

/// As many jobs are in flight as the queue or the device holds.
#define CONTIGO_E_QUEUE_FULL -153

/// The queue was stopped with jobs in it, or must be. A device that would not stop is reset
/// first.
#define CONTIGO_E_QUEUE_STOPPED -154

/// The job did not end in time. The device was stopped, and the buffers are back.
#define CONTIGO_E_TIMEOUT -124

/// The device reports an error. It was stopped, and the buffers are back.
#define CONTIGO_E_FAULT -125

/// A function of a driver in C, or of one in a shared library, failed. The device was stopped.
#define CONTIGO_E_DRIVER -172

/// The device reports an error at an address. It was stopped, and the buffers are back.
#define CONTIGO_E_FAULT_AT -164

/// The device says it is done, and moved too little. The buffers are back.
#define CONTIGO_E_SHORT_TRANSFER -126

/// The core's length register is narrower than a setting says, and dropped bits of a job's
/// length. The device was stopped, and the buffers are back.
#define CONTIGO_E_LENGTH_CUT -165

/// The device claims more bytes than it was given. It was stopped, and the buffers are back.
#define CONTIGO_E_BAD_COMPLETION -155

/// The simulated device touched bytes that were not handed over to it, or no memory at all,
/// while the job was in flight. It was stopped, and the buffers are back.
#define CONTIGO_E_WRONG_ACCESS -167

/// The function that computes a simulated kernel's jobs failed, or left its operands, while the
/// job was in flight. The kernel was stopped, and the buffers are back.
#define CONTIGO_E_NOT_COMPUTED -173

/// The device tells of a job that it does not have, or of one twice. It was stopped, and the
/// buffers are back.
#define CONTIGO_E_NO_SUCH_JOB -163

/// Another channel of the same core reset it, which ended this channel's jobs.
#define CONTIGO_E_ENDED_BY_RESET -156

/// The device would not stop, and keeps its buffers.
#define CONTIGO_E_WILL_NOT_STOP -127

/// The register window is too small: this is another device.
#define CONTIGO_E_REGISTER_WINDOW -128

/// A register that tells devices apart says that this is another one. The text has its content,
/// and what was expected.
#define CONTIGO_E_WRONG_DEVICE -149

/// NVIDIA's driver refused, or tells now of a kernel that failed before. From 700 on the GPU is
/// lost to this program.
#define CONTIGO_E_CUDA -145

/// The driver of a GPU refused, or lost the GPU: it is Vulkan's or OpenCL's.
#define CONTIGO_E_GPU -166

/// A system call failed. The text has its name and the errno.
#define CONTIGO_E_OS -129

/// The kernel does not give this program the device. The text says what to change.
#define CONTIGO_E_DENIED -130

/// There is no such device.
#define CONTIGO_E_NOT_FOUND -132

/// Several devices are called that.
#define CONTIGO_E_AMBIGUOUS -133

/// A file under /sys is not there.
#define CONTIGO_E_ATTRIBUTE_MISSING -134

/// A file under /sys or /proc cannot be read or written.
#define CONTIGO_E_ATTRIBUTE_UNREADABLE -135

/// A file under /sys is empty.
#define CONTIGO_E_ATTRIBUTE_EMPTY -136

/// A file, an ioctl, a library or a register says what cannot be.
#define CONTIGO_E_UNEXPECTED -137

/// A setting of the machine or of the device makes this impossible. The text says what to
/// change.
#define CONTIGO_E_SETTING -138

/// /proc/self/pagemap hides addresses.
#define CONTIGO_E_PAGEMAP_HIDDEN -139

/// Another process, or another part of this one, has it open. Or a contigo device behind an
/// IOMMU did not stop.
#define CONTIGO_E_IN_USE -140

/// The kernel would not pin so much memory for this user (RLIMIT_MEMLOCK).
#define CONTIGO_E_PIN_LIMIT -141

/// Another thread's cache maintenance or PCI access did not end in time. Nothing was done.
#define CONTIGO_E_CONTENDED -142

/// A library of the system is not there, as NVIDIA's driver. The text says what to install.
#define CONTIGO_E_NO_LIBRARY -146

/// This process is a child of fork, and all that it has is its parent's: nothing was touched.
#define CONTIGO_E_FORKED -147

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/// Fills info with the buffer's state. CONTIGO_E_DEVICE_OWNED while a job has the buffer.
///
/// The caller promises:
/// info points to a structure whose struct_size is set.
contigo_status contigo_buf_get_info(contigo_buf buf, contigo_buf_info *info);

/// Answers a pointer to the buffer's bytes, and their number. The pointer is valid until
/// contigo_buf_unmap; until then the buffer cannot be given away or released. access is
/// CONTIGO_READ or CONTIGO_WRITE. With CONTIGO_READ nothing may be written through the
/// pointer.
///
/// CONTIGO_E_DEVICE_OWNED: a device has the buffer. CONTIGO_E_MAPPED: it is mapped already, and
/// one of the two wants to write.
///
/// The caller promises:
/// ptr and len_bytes are writable. len_bytes may be NULL.
contigo_status contigo_buf_map(contigo_buf buf, uint32_t access, void **ptr, size_t *len_bytes);

/// Gives one pointer up. The program must not use it any more. CONTIGO_E_NOT_MAPPED where there
/// is none.
contigo_status contigo_buf_unmap(contigo_buf buf);

/// Copies len_bytes bytes to the beginning of the buffer, and counts them. Data that the program
/// has still to make is better made in place.
/// CONTIGO_E_SAME_BUFFER where from lies in the buffer itself.
///
/// The caller promises:
/// len_bytes bytes are readable at from.
contigo_status contigo_buf_write(contigo_buf buf, const void *from, size_t len_bytes);

/// Cuts the buffer in two at byte at_bytes. The buffer keeps the bytes before the cut, and rest
/// is a new buffer with the bytes behind it. A device can own one of them while the CPU owns the
/// other, and each is released by itself. A part can be cut again; a pool's slot is free again when
/// all of its parts are released.
///
/// Cut at a multiple of the region's line_bytes: a port that does not snoop cannot write to
/// either side of a line that both share (CONTIGO_E_SHARED_LINE).
///
/// CONTIGO_E_OUT_OF_RANGE: at_bytes is past the end. CONTIGO_E_DEVICE_OWNED,
/// CONTIGO_E_MAPPED, CONTIGO_E_TENSOR_OUT: a device or a framework has the buffer, or it is
/// mapped. CONTIGO_E_TABLE_FULL: there is no entry for rest. CONTIGO_E_TOO_MANY_PARTS: a
/// pool's slot, or what contigo_carve answered, has 256 parts at most. A buffer whose cut is
/// refused is as it was before.
///
/// The caller promises:
/// rest is writable.
contigo_status contigo_buf_split(contigo_buf buf, size_t at_bytes, contigo_buf *rest);

/// Gives len_bytes bytes from offset_bytes of the buffer to a device that the program drives
/// itself, behind port. The call checks that the device reaches them and does the cache
/// maintenance that they need. It answers their bus address, for which addr may be NULL. use
/// says how the device uses the bytes: CONTIGO_READS, CONTIGO_WRITES, or
/// CONTIGO_READS | CONTIGO_WRITES.
///
/// The CPU must own the buffer: CONTIGO_E_DEVICE_OWNED where a device has it.
/// CONTIGO_E_OUT_OF_RANGE; CONTIGO_E_BUFFER_SIZE for no bytes; CONTIGO_E_SHARED_LINE: the
/// device writes a line whose rest belongs to another buffer; CONTIGO_E_WRONG_BUS;
/// CONTIGO_E_UNREACHABLE; CONTIGO_E_CANNOT_SYNC. Nothing is handed over then. A device whose
/// register for an address is narrower than its port wants a port of its own, with that register's
/// addr_bits (contigo_port_define).
///
/// From here on the device owns the buffer, until contigo_buf_take_back. The buffer can be an
/// operand of an engine's job. The program needs no barrier before it rings its device's doorbell:
/// this call ends with one.
///
/// The caller promises:
/// addr is NULL or writable. Each device that gets the address is behind port, touches these
/// bytes only, and writes only where use allows it. It has finished with them, its last write
/// included, before the buffer is taken back, given to a job, or lent.
contigo_status contigo_buf_give(contigo_buf buf, contigo_port port, size_t offset_bytes, size_t len_bytes, contigo_use use, uint64_t *addr);

/// Takes the buffer back for the CPU. The CPU sees the bytes that the device wrote after this, also
/// behind a port that snoops. The device must have finished with the buffer, its last write
/// included: only the program knows that of a device that it drives itself. CONTIGO_E_CPU_OWNED
/// where the CPU owns the buffer already, CONTIGO_E_DEVICE_OWNED while a job has it: wait for the
/// job.
contigo_status contigo_buf_take_back(contigo_buf buf);

/// Gives the buffer back: to its pool, or for good. The handle is stale from here on.
/// CONTIGO_E_DEVICE_OWNED: a device still has it. CONTIGO_E_MAPPED: it is still mapped.
/// CONTIGO_E_STALE: it was released before.
contigo_status contigo_buf_release(contigo_buf buf);

/// Fills info with the core called name of a block design: the bytes of Vivado's .hwh, which
/// are not kept. In a hierarchy its name has _ or /. CONTIGO_E_BAD_MAP: the file is none, or
/// at odds with itself, and the text has the line; or it has no such core.
///
/// The caller promises:
/// hwh points to hwh_bytes bytes; name is NUL-terminated; info points to a structure whose
/// struct_size is set.
contigo_status contigo_design_core(const uint8_t *hwh, size_t hwh_bytes, const char *name, contigo_core_info *info);

/// The port that the core called name reaches memory by, with what it reaches there and whether
/// it snoops for this core. Close it with contigo_port_close. CONTIGO_E_BAD_MAP: the core
/// reaches no memory, or the file does not tell whether the port snoops.
///
/// The caller promises:
/// As contigo_design_core; port is writable.
contigo_status contigo_design_port(const uint8_t *hwh, size_t hwh_bytes, const char *name, contigo_port *port);

/// Opens a device by its name: uio:axi_dma@40400000, contigo:f8003000, contigo:gemm8,
/// pci:0000:01:00.0, vfio:0000:01:00.0, sim:zdma; a GPU for its memory: vulkan,
/// opencl:1. Close it with contigo_device_close.
///
/// CONTIGO_E_BAD_NAME: as contigo_region_open.
///
/// The caller promises:
/// name is NUL-terminated; device is writable.
contigo_status contigo_device_open(const char *name, contigo_device *device);

/// Closes a device. CONTIGO_E_STILL_USED while memory of it, its registers or an engine on it is
/// open.
contigo_status contigo_device_close(contigo_device device);

/// Opens len_bytes of memory for a device: memory that belongs to it (contigo, vfio:…), a
/// dma-heap's block through its device node, or memory that belongs to no device. It is
/// contigo_region_open_with with device. Close it with contigo_region_close.
///
/// CONTIGO_E_NEEDS_DEVICE: the memory belongs to another device.
///
/// The caller promises:
/// name is NUL-terminated; region is writable.
contigo_status contigo_device_memory(contigo_device device, const char *name, size_t len_bytes, contigo_region *region);

/// Answers the device's way to memory: port as the kernel describes this device. With a port of
/// 0 the kernel or the simulated board must know it alone (vfio:…, sim:…, cuda:…). Close
/// seen with contigo_port_close.
///
/// CONTIGO_E_UNSUPPORTED: neither of them knows it; name the port.
///
/// The caller promises:
/// seen is writable.
contigo_status contigo_device_port(contigo_device device, contigo_port port, contigo_port *seen);

/// Resets a device from outside, also while an engine has it: the only thing that stops one that is
/// stuck. Then contigo_queue_stop, and the engine goes on. A contigo device does so by its reset
/// lines (contigo:…), VFIO by the function's reset, a simulated board by its own. A PCI function
/// masters the bus as before.
///
/// CONTIGO_E_UNSUPPORTED, or CONTIGO_E_OS with EOPNOTSUPP: the kernel has no way to.
///
/// The caller promises:
/// No thread calls an engine of it meanwhile, to start a job, to wait for one, or to look: some
/// drivers start jobs while they wait, and a thread that the reset holds between a job's addresses
/// and its start would start a job with cleared addresses. The library cannot check that. Engines
/// that share the device (the setting channel) may go on.
contigo_status contigo_device_reset(contigo_device device);

/// Lets a PCI function reach memory, once the program has stopped it; other devices may already.
/// One that the module has and that cannot be reset needs contigo_engine_arm before:
/// CONTIGO_E_OS with EBUSY.
///
/// The caller promises:
/// The device was stopped or reset since other code drove it. The library cannot check that.
contigo_status contigo_device_enable_bus_master(contigo_device device);

/// Lists the memory and the devices of this machine, and the drivers of this library, one a line,
/// and says why the rest is missing. It reads files under /sys and opens no device.
///
/// A line has four fields with a tab between them. The first is memory, device or driver. The
/// second is the name, or the kind where there is no name. The third is ready, blocked or
/// absent. The last says why, and what to do about it; of a driver it says what the driver does.
///
/// text gets at most capacity_bytes bytes, the NUL at the end included. len_bytes gets the
/// length of the whole list without the NUL. Where that is capacity_bytes or more, the list in
/// text was cut.
///
/// The caller promises:
/// text points to capacity_bytes writable bytes, or is NULL with a capacity of 0; len_bytes
/// is writable.
contigo_status contigo_inventory(char *text, size_t capacity_bytes, size_t *len_bytes);

/// Fills info with facts about a device. CONTIGO_E_OS: the kernel module does not answer.
///
/// The caller promises:
/// info points to a structure whose struct_size is set.
contigo_status contigo_device_get_info(contigo_device device, contigo_device_info *info);

/// Opens an engine. The call checks that the device is one for this driver, as far as its registers
/// tell. It stops the device, because a program that crashed may have left it running. Close the
/// engine with contigo_engine_close. CONTIGO_E_NOT_FOUND: there is no such driver; the text
/// lists the names that are most like it.
///
/// With the setting channel, engines share a device whose channels can have a driver each (a
/// pl330). There is one engine a channel, in any thread, and all use one port and one window.
/// Each is stopped and closed by itself. CONTIGO_E_HAS_DRIVER: an engine has the channel, or the
/// whole device.
///
/// With a gate, contigo_queue_stop stops the core whatever it does: also a kernel of HLS, which
/// cannot be aborted. An error of the bus ends the jobs, and its text has the address.
/// CONTIGO_E_WRONG_DEVICE: no gate is at gate_offset.
///
/// The caller promises:
/// options points to an initialised structure whose texts are NULL or NUL-terminated; engine is
/// writable.
///
/// Of a real device the library cannot check the rest. The driver is for this device, as the
/// settings and the map describe it. Only engines of this program drive the device.
/// The device reaches memory through port and no other way. With another driver or port it
/// writes into other memory. Where there is a gate, all that the core does to memory passes it, and
/// its core_aresetn resets the core.
contigo_status contigo_engine_open(const contigo_engine_options *options, contigo_engine *engine);

/// Opens an engine over a driver in C, which stops the device first. Close it with
/// contigo_engine_close; the functions and context stay until then.
///
/// The caller promises:
/// ops points to an initialised structure, with n_operands structures at operands; engine
/// is writable.
///
/// The library cannot check the rest. The device touches the bytes of jobs in flight, memory of its
/// own, and nothing else, and it writes only operands that say so. It reaches memory through port
/// and no other way, and no other code drives it. Once poll has told of a job's end, the device
/// touches none of that job's bytes. Where done has bytes, the device wrote none behind them.
contigo_status contigo_engine_open_driver(const contigo_driver_ops *ops, void *context, contigo_port port, contigo_engine *engine);

/// Fills info with the form of the engine's jobs, and with counts of how they went.
///
/// The caller promises:
/// info points to a structure whose struct_size is set.
contigo_status contigo_engine_get_info(contigo_engine engine, contigo_engine_info *info);

/// Fills spec with the driver's description of operand number index of its jobs.
/// CONTIGO_E_VALUE: there are fewer.
///
/// The caller promises:
/// spec is writable.
contigo_status contigo_engine_get_operand(contigo_engine engine, uint32_t index, contigo_operand_spec *spec);

/// Forgets an interrupt that came before, lets the next one come, and answers the descriptor that
/// poll(2) finds readable then. The descriptor belongs to the engine and is open until the engine
/// is closed: the program neither reads, writes nor closes it. -1 where the call is refused.
///
/// In an event loop, in this order: this function; then contigo_queue_next or
/// contigo_job_wait_for with a time of 0; and only where nothing has ended, poll(2), with a
/// limit.
///
/// CONTIGO_E_KIND: the device has no interrupt that is a file; look again and again.
/// CONTIGO_E_UNSUPPORTED: the device's node has none; open the engine with polled.
///
/// The caller promises:
/// fd is writable.
contigo_status contigo_engine_irq_arm(contigo_engine engine, int *fd);

/// Leaves a stop of the device with the kernel. The kernel runs it when this program ends, in any
/// way, before the memory goes. Do it before the first job. CONTIGO_E_KIND: the engine's device
/// is no contigo:…. CONTIGO_E_UNSUPPORTED: the engine shares its device (setting channel),
/// which one channel's program does not stop.
///
/// The caller promises:
/// The device's window number window is the registers that the engine drives. The library cannot
/// check that.
contigo_status contigo_engine_arm(contigo_engine engine, uint32_t window);

/// Closes an engine. CONTIGO_E_HAS_JOB while it has jobs whose end no call has taken;
/// CONTIGO_E_WILL_NOT_STOP where its device does not stop: the engine stays open then.
contigo_status contigo_engine_close(contigo_engine engine);

/// Loads code for the GPU that port belongs to (contigo_port_find). For cuda:0 it is PTX with
/// a NUL at its end, or a whole cubin or fatbin; for vulkan SPIR-V; for opencl a text of
/// OpenCL C. The GPU's driver compiles and allocates as it pleases: do it before the first job.
/// Close it with contigo_module_close.
///
/// CONTIGO_E_NO_LIBRARY: there is no driver. CONTIGO_E_KIND: the port belongs to no GPU.
/// CONTIGO_E_CUDA, CONTIGO_E_GPU: the driver refused the code; contigo_last_error has the
/// words of its compiler.
///
/// The caller promises:
/// image points to image_bytes bytes. A compiler made them for this kind of GPU, and they are
/// whole; a text is what the program means to run. module is writable.
contigo_status contigo_module_load(contigo_port port, const uint8_t *image, size_t image_bytes, contigo_module *module);

/// Opens an engine over one kernel of a module, with a stream or a queue of its own. entry is its
/// name there; CUDA's is mangled, unless it is extern "C", and a shader's is most often main.
/// n parameters in the order of their declaration: of a shader the storage buffers by their
/// bindings, and the words of its push constants.
///
/// A job's first seven argument words are its launch: grid in x, y and z, block in x, y and z,
/// bytes of shared memory; its scalars follow. Of a shader the block is its local_size, and
/// shared memory is 0, as of OpenCL. The operands are memory of this GPU, by the same name
/// (contigo_region_open("vulkan", …)). Close it with contigo_engine_close.
///
/// The engine has no interrupt: wait, or look again and again. A kernel cannot be stopped. Where a
/// job takes too long or is cancelled, the library waits for its end: five seconds at most for
/// cuda, ten for vulkan and opencl. Through OpenCL each operand's hand-over may wait ten
/// seconds too, behind a kernel that goes on. A kernel that is only slow keeps its buffers until
/// it has ended: then contigo_queue_stop gives them back.
///
/// The caller promises:
/// entry is NUL-terminated; parameters points to n structures; engine is writable. The
/// kernel has these parameters. With all argument words that the program passes, it touches no
/// bytes except for the operands' bytes, and writes only the operands that say so.
contigo_status contigo_engine_open_kernel(contigo_module module,
                                          const char *entry,
                                          const contigo_parameter *parameters,
                                          size_t n,
                                          contigo_engine *engine);

/// Closes a module. CONTIGO_E_STILL_USED while an engine has a kernel of it.
contigo_status contigo_module_close(contigo_module module);

/// Gives the device one job more: n operands, as many as the driver's jobs have, and args_words
/// argument words, which the driver's documentation names. Every check comes first, then the caches
/// that these bytes need on this port, then the doorbell.
///
/// flags: 0, or CONTIGO_JOB_MORE where more jobs follow at once, as MSG_MORE of send(2). A
/// driver with descriptors then rings one doorbell for all of them, and their caches are maintained
/// by one call: at the next job without it, or when this engine is next waited for. Do not sleep
/// before that. Where the device does not take such a burst, each of its jobs ends by
/// CONTIGO_E_FAULT.
///
/// The device owns the buffers until one of the functions below takes the job's end. Where the job
/// is refused, the buffers stay as they were, and nothing was touched. CONTIGO_E_QUEUE_FULL: as
/// many jobs are in flight as the device takes, or CONTIGO_MAX_JOBS with those that have ended.
/// Where the device itself refused the job, the device was stopped, which ends the jobs before it.
/// CONTIGO_E_WILL_NOT_STOP: it could not be stopped then, and job is a job under way.
///
/// The caller promises:
/// operands points to n structures, args to args_words words, or is NULL where that is 0;
/// nothing writes to them before the call returns. job is writable.
contigo_status contigo_job_start(contigo_engine engine,
                                 const contigo_operand *operands,
                                 size_t n,
                                 const uint32_t *args,
                                 size_t args_words,
                                 uint32_t flags,
                                 contigo_job *job);

/// Waits for the end of the job, at most timeout_us microseconds, and takes it. The CPU owns the
/// buffers then, and sees the bytes that the device wrote. The handle is stale. Ends of other jobs
/// that come meanwhile are kept until a call takes them. completion is filled where the device
/// told of the end; it may be NULL.
///
/// timeout_us is an hour at most, here and wherever there is one: more is CONTIGO_E_ARGUMENT,
/// and the job goes on.
///
/// CONTIGO_E_TIMEOUT, CONTIGO_E_FAULT, CONTIGO_E_SHORT_TRANSFER, CONTIGO_E_CANCELLED: the
/// buffers are back all the same. A buffer whose caches could not be maintained still belongs to a
/// device, and contigo_buf_take_back tries again.
///
/// After a timeout, and after a fault that is not of this job alone, the device was stopped, which
/// ended every job of the engine. A job that ended well meanwhile is done: a kernel of HLS cannot
/// be aborted. CONTIGO_E_WILL_NOT_STOP: it could not be stopped, and the job keeps its buffers:
/// reset the device, then contigo_queue_stop. While this call waits, another thread's call with
/// the same engine is refused (CONTIGO_E_IN_CALL).
///
/// The caller promises:
/// completion is NULL, or points to a structure whose struct_size is set.
contigo_status contigo_job_wait(contigo_job job, uint32_t timeout_us, contigo_completion *completion);

/// As contigo_job_wait, and the buffers stay a device's: the output can be an operand of the next
/// job with no cache maintenance between.
///
/// The caller promises:
/// As contigo_job_wait.
contigo_status contigo_job_wait_device(contigo_job job, uint32_t timeout_us, contigo_completion *completion);

/// As contigo_job_wait, and nothing is stopped where the time is over: done is 0, and the job
/// goes on. With a time of 0 it looks once, with no wait and no system call. On an error the job
/// has ended too where done is 1.
///
/// The caller promises:
/// As contigo_job_wait; done is writable.
contigo_status contigo_job_wait_for(contigo_job job, uint32_t timeout_us, uint32_t *done, contigo_completion *completion);

/// Takes the end of the job that ended first on this engine; waits at most timeout_us for one.
/// job is its handle, as contigo_job_start answered it, and stale now; 0: none has ended, and
/// nothing was stopped. The CPU owns the buffers. An error with a job belongs to that job; the
/// statuses are those of contigo_job_wait.
///
/// The caller promises:
/// job is writable; completion is NULL, or points to a structure whose struct_size is set.
contigo_status contigo_queue_next(contigo_engine engine, uint32_t timeout_us, contigo_job *job, contigo_completion *completion);

/// Stops the device at any moment of its work, which ends every job of the engine. Those that had
/// not ended are CONTIGO_E_CANCELLED. Each end is still to be taken, and the engine takes new
/// jobs. After CONTIGO_E_WILL_NOT_STOP reset the device from outside, and call this again.
contigo_status contigo_queue_stop(contigo_engine engine);

/// Reads a map: JSON, HLS's x<name>_hw.h, or Vivado's .hwh, which begin differently. The bytes
/// are not kept. Close it with contigo_kernel_close. A map that is none is refused with the line.
///
/// The caller promises:
/// map points to map_bytes bytes; kernel is writable.
contigo_status contigo_kernel_open(const uint8_t *map, size_t map_bytes, contigo_kernel *kernel);

/// Fills info from the map.
///
/// The caller promises:
/// info points to a structure whose struct_size is set.
contigo_status contigo_kernel_get_info(contigo_kernel kernel, contigo_kernel_info *info);

/// The number of the operand that the map calls name, for contigo_job_start.
/// CONTIGO_E_NOT_FOUND.
///
/// The caller promises:
/// name is NUL-terminated; index is writable.
contigo_status contigo_kernel_operand(contigo_kernel kernel, const char *name, uint32_t *index);

/// Puts value where the argument words have the scalar that the map calls name: one word, or
/// two, the low one first. args has args_words words, as many as the kernel takes at least.
/// CONTIGO_E_NOT_FOUND: the map has no such scalar; CONTIGO_E_ARGUMENT: it has fewer bits than
/// value. A float's bits are its value.
///
/// The caller promises:
/// name is NUL-terminated; args points to args_words writable words.
contigo_status contigo_kernel_set(contigo_kernel kernel, const char *name, uint64_t value, uint32_t *args, size_t args_words);

/// Closes a map.
contigo_status contigo_kernel_close(contigo_kernel kernel);

/// The library's version as a text, such as "0.1.0". It is static: never free it.
const char *contigo_version(void);

/// The name of a status, such as "CONTIGO_E_STALE"; "?" for a number that is none. It is static:
/// never free it.
const char *contigo_status_name(contigo_status status);

/// The text of this thread's last refusal, with its numbers, as UTF-8 with a NUL. A call that
/// succeeds leaves it.
///
/// Writes at most len bytes to buf, the NUL included, and cuts a text that does not fit.
/// Returns the text's length without the NUL, so that contigo_last_error(NULL, 0) asks how long
/// it is; 0: nothing was refused yet. 4,096 bytes hold every text; a longer one is cut.
///
/// The caller promises:
/// buf is NULL, or len bytes are writable there.
size_t contigo_last_error(char *buf, size_t len);

/// Carves slots buffers of slot_bytes each, 1 to CONTIGO_MAX_POOL_SLOTS. slot_bytes is a
/// multiple of the region's cache line, so that no line has two owners. The first slot begins at a
/// multiple of align_bytes, a power of two; 0: a cache line. Close it with contigo_pool_close,
/// which gives the bytes back to the region.
///
/// The caller promises:
/// pool is writable.
contigo_status contigo_pool_open(contigo_region region, size_t slot_bytes, size_t slots, size_t align_bytes, contigo_pool *pool);

/// Takes a free slot, which the CPU owns. It holds the bytes that its last owner left in it. Any
/// thread may take one, and the call makes no system call and no allocation. Release the slot with
/// contigo_buf_release. CONTIGO_E_NO_SLOTS where all are taken; CONTIGO_E_IN_CALL while
/// another thread tries to close the pool.
///
/// The caller promises:
/// buf is writable.
contigo_status contigo_pool_take(contigo_pool pool, contigo_buf *buf);

/// Answers how many slots are free. Other threads may change that at once.
///
/// The caller promises:
/// free is writable.
contigo_status contigo_pool_free_slots(contigo_pool pool, size_t *free);

/// Closes a pool. CONTIGO_E_STILL_USED while a slot is out.
contigo_status contigo_pool_close(contigo_pool pool);

/// Carves one buffer of len_bytes, rounded up to whole cache lines, at a multiple of
/// align_bytes for the CPU and for the device; 0: a cache line. It is for data that a program
/// plans once, such as weights. Release it with contigo_buf_release, which gives the bytes back
/// to the region.
///
/// The caller promises:
/// buf is writable.
contigo_status contigo_carve(contigo_region region, size_t len_bytes, size_t align_bytes, contigo_buf *buf);

/// The port of a known board that is called name: zynq-hp0, zynq-acp, zynq-dmac,
/// cyclone-v-acp... (contigo boards lists them). Close it with contigo_port_close.
/// CONTIGO_E_NOT_FOUND: no board has one.
///
/// cuda:0, cuda:1... are the ports of GPUs, and cuda is the port of the first one. Such a
/// name loads NVIDIA's driver and takes the GPU's primary context, which the CUDA runtime uses too.
/// Both stay until the program ends. CONTIGO_E_NO_LIBRARY: there is no driver.
/// CONTIGO_E_SETTING: the driver is too old. CONTIGO_E_CUDA: the driver refuses, as where there
/// is no GPU. CONTIGO_E_ARGUMENT: there are fewer GPUs.
///
/// vulkan, vulkan:1, opencl, opencl:1... are the ports of GPUs through these interfaces,
/// which stay open likewise. CONTIGO_E_NO_LIBRARY: there is no loader. CONTIGO_E_NOT_FOUND:
/// there is no GPU. CONTIGO_E_GPU: the driver refuses.
///
/// The caller promises:
/// name is NUL-terminated; port is writable.
contigo_status contigo_port_find(const char *name, contigo_port *port);

/// Makes a port of the program's own, with the numbers of the silicon's manual. Close it with
/// contigo_port_close. CONTIGO_E_TABLE_FULL: CONTIGO_MAX_PORTS are open, or the program has
/// used CONTIGO_MAX_PORT_NAMES different names so far, and this is a new one.
///
/// The caller promises:
/// options points to an initialised structure with a NUL-terminated name; port is writable.
contigo_status contigo_port_define(const contigo_port_options *options, contigo_port *port);

/// Closes a port's handle. Each object that uses the port has a copy.
contigo_status contigo_port_close(contigo_port port);

/// Opens len_bytes of memory by its name: maps it, checks that it is contiguous, and cleans its
/// caches once. Close it with contigo_region_close.
///
/// The names are contigo:f8003000, u-dma-buf:udmabuf0, dma-heap:linux,cma, hugetlb,
/// vfio:0000:01:00.0, cuda:0, sim:7; contigo_inventory and contigo info list
/// those of this machine. A device that the memory belongs to is opened and closed with it. A
/// program that drives this device too opens it, and calls contigo_device_memory.
/// contigo_region_open_with can ask more of the memory.
///
/// CONTIGO_E_BAD_NAME: it is no name; the text says at which byte, and how to write it. Where the
/// name is not there, the text lists the names of this machine.
///
/// The caller promises:
/// name is NUL-terminated; region is writable.
contigo_status contigo_region_open(const char *name, size_t len_bytes, contigo_region *region);

/// As contigo_region_open, with properties that only the program can say.
///
/// CONTIGO_E_VALUE: an option does not fit the name. CONTIGO_E_NEEDS_DEVICE: the memory belongs
/// to another device or board. CONTIGO_E_MISALIGNED, CONTIGO_E_TOO_HIGH,
/// CONTIGO_E_BLOCK_SIZE: the memory is not as the options ask. The refusals of cuda are those
/// of contigo_port_find, and CONTIGO_E_CUDA with CUDA_ERROR_OUT_OF_MEMORY where no more can
/// be pinned.
///
/// The caller promises:
/// name is NUL-terminated; options points to an initialised structure; region is writable.
///
/// Of memory that is translated: every device that is given the region's addresses is behind the
/// same iommus or dma-ranges as the node. To another device they are physical addresses, of
/// memory that is not the region's.
///
/// Of write_combined memory: a thread that has written to a buffer calls
/// atomic_thread_fence(memory_order_seq_cst) before another thread of the CPU gets it; jobs and
/// hand-overs need nothing.
contigo_status contigo_region_open_with(const char *name, const contigo_region_options *options, contigo_region *region);

/// Closes a region and gives its memory back. CONTIGO_E_STILL_USED while a buffer, a pool or an
/// engine has a piece of it. Where a device would not stop, this is so for ever: memory that a
/// device may own is leaked and never freed. Memory that CUDA pinned goes back to the driver, which
/// may wait for the GPU's work; beside a kernel that does not end it stays pinned.
contigo_status contigo_region_close(contigo_region region);

/// Answers a descriptor of a dma-buf that holds the region's whole block, for another importer. The
/// driver of a camera or a display (V4L2, DRM) then writes or reads the same bytes, with no copy.
/// The program owns the descriptor and closes it; the pages live as long as their last descriptor.
/// -1 where the call is refused.
///
/// CONTIGO_E_UNSUPPORTED: this memory is no dma-buf (huge pages, the simulated board).
/// CONTIGO_E_OS: the kernel refused. With errno 25 the module u-dma-buf cannot export.
///
/// The caller promises:
/// fd is writable.
///
/// An importer reads, writes, and maintains the caches of the whole block while it has the block
/// mapped. As long as any importer has it mapped, the program uses no buffer of this region. None
/// is mapped (contigo_buf_map), in a job, given to a device (contigo_buf_give), or out as a
/// tensor.
///
/// Of a u-dma-buf, every copy of the descriptor is closed, and every importer has let go, before
/// contigo_region_close and before the program ends. After that another program may open the
/// device.
contigo_status contigo_region_export(contigo_region region, int *fd);

/// Fills info with the region's size, its cache line, where it lies, and counts of its work so
/// far. Any thread may ask at any time.
///
/// The caller promises:
/// info points to a structure whose struct_size is set.
contigo_status contigo_region_get_info(contigo_region region, contigo_region_info *info);

/// Answers the bus address through port of len_bytes bytes at ptr, any pointer into the
/// region. The address is a number and gives no right to the bytes: the buffer's owner still says
/// who may touch them. CONTIGO_E_NOT_OURS where not all of them lie in the region.
///
/// The caller promises:
/// addr is writable. ptr may be any number.
contigo_status contigo_dev_addr_of(contigo_region region, contigo_port port, const void *ptr, size_t len_bytes, uint64_t *addr);

/// Answers where the CPU finds the byte at bus address addr of port. A device may own the byte
/// at this moment: do not touch it then. Write through a mapping of the buffer (contigo_buf_map):
/// only what was written there is cleaned for a device.
///
/// The caller promises:
/// ptr is writable.
contigo_status contigo_host_ptr_of(contigo_region region, contigo_port port, uint64_t addr, void **ptr);

/// Takes the registers and the interrupt of a device, for a program that drives it itself. window
/// is the number of the window: a PCI function's BAR, an entry of a contigo device's node's reg,
/// and 0 for others. A polled of 1 leaves the interrupt out. One engine or one program has them
/// at a time. Close them with contigo_registers_close.
///
/// port is the device's way to memory where only the program knows it; 0 where the kernel says
/// it, or the simulated board.
///
/// The caller promises:
/// registers is writable. In this bitstream, on this board, the device reaches memory through
/// port and no other way, and no other code drives it. The library cannot check that.
contigo_status contigo_device_attach(contigo_device device,
                                     contigo_port port,
                                     uint32_t window,
                                     uint32_t polled,
                                     contigo_registers *registers);

/// Reads a register; all ones outside of the window, as an absent device answers.
///
/// The caller promises:
/// value is writable.
contigo_status contigo_registers_read(contigo_registers registers, contigo_register reg, uint32_t *value);

/// Writes a register; outside of the window nothing happens. CONTIGO_E_KIND: it is read-only.
///
/// The caller promises:
/// With this value the device touches only memory that was handed to it (contigo_buf_give, or a
/// job). An address and a doorbell make it read and write there.
contigo_status contigo_registers_write(contigo_registers registers, contigo_register reg, uint32_t value);

/// Waits until the bits mask of a register are value, at most timeout_us: by the interrupt
/// where there is one, and by looking. seen, which may be NULL, gets the last value of the
/// register. Where reading clears the register, seen gets all bits that any look saw, and the
/// call compares these bits.
///
/// CONTIGO_E_TIMEOUT: the bits are not value yet. Nothing was stopped.
///
/// The caller promises:
/// seen is NULL or writable.
contigo_status contigo_registers_wait_until(contigo_registers registers,
                                            contigo_register reg,
                                            uint32_t mask,
                                            uint32_t value,
                                            uint32_t timeout_us,
                                            uint32_t *seen);

/// Waits for the interrupt, at most timeout_us; without one it is a short pause. It may end
/// early: look at the device after it.
contigo_status contigo_registers_wait(contigo_registers registers, uint32_t timeout_us);

/// Gives the registers back; the next program or engine may have them.
contigo_status contigo_registers_close(contigo_registers registers);

/// Makes a simulated board. Close it with contigo_sim_close.
///
/// The caller promises:
/// options points to an initialised structure; sim is writable.
contigo_status contigo_sim_open(const contigo_sim_options *options, contigo_sim *sim);

/// Closes a simulated board. CONTIGO_E_STILL_USED while it has regions or devices.
contigo_status contigo_sim_close(contigo_sim sim);

/// Answers a port of a simulated board, with 32 address bits and no offset. With coherent 0 it
/// does not snoop the CPU's caches, like Zynq's HP0; with 1 it does, like Zynq's ACP. Close it with
/// contigo_port_close.
///
/// The caller promises:
/// port is writable.
contigo_status contigo_sim_port(contigo_sim sim, uint32_t coherent, contigo_port *port);

/// Puts a device on the board: the model of the hardware that driver drives. Where no other port
/// is named, the device is at port 0, which does not snoop. Close it with contigo_device_close.
///
/// CONTIGO_E_NOT_FOUND: there is no such driver, or it has no model.
///
/// The caller promises:
/// driver is NUL-terminated; device is writable.
contigo_status contigo_sim_device(contigo_sim sim, const char *driver, contigo_device *device);

/// Puts a kernel on a simulated board: function computes its jobs, with context, and the driver
/// ap_ctrl drives it by the same map. With a sim of 0 it has a board of its own. Close it with
/// contigo_device_close. kernel may be closed at once.
///
/// A job whose function returns another number than 0, or alters bytes that the kernel only reads,
/// fails with CONTIGO_E_NOT_COMPUTED.
///
/// The caller promises:
/// function may be called with context in any thread that uses the device or another one of its
/// board, until contigo_device_close has returned for it. It stays inside the operands, and calls
/// no function of this library. device is writable.
contigo_status contigo_kernel_simulate(contigo_kernel kernel,
                                       contigo_sim sim,
                                       contigo_kernel_function function,
                                       void *context,
                                       contigo_device *device);

/// Lends the buffer to a framework. tensor gets a DLManagedTensorVersioned *, or a
/// DLManagedTensor * where options->legacy is 1. The tensor is for one consumer, which calls
/// its deleter when it is done, on any thread.
///
/// While the CPU owns the buffer, the tensor has the CPU's address: kDLCPU, or kDLCUDAHost for
/// memory that CUDA pinned. While a device owns it, the tensor has the bus address (kDLExtDev), or
/// the GPU's pointer with the GPU's number (kDLCUDA). Through Vulkan and OpenCL it has an object
/// (kDLVulkan, kDLOpenCL), and needs keep_byte_offset. It then has the bytes of the last
/// hand-over and no more. Where it is not read_only, these bytes count as written by a device,
/// and CONTIGO_E_SHARED_LINE is possible.
///
/// Until the deleter was called and contigo_buf_unlend took the buffer back, it can be neither
/// mapped, nor given to a device, nor released: CONTIGO_E_TENSOR_OUT. CONTIGO_E_MAPPED: the
/// buffer is mapped. CONTIGO_E_TENSOR: the elements do not fit in the buffer, or are not as the
/// options demand. CONTIGO_E_NO_SLOTS: CONTIGO_MAX_TENSORS are out.
///
/// The caller promises:
/// options points to an initialised structure with ndim entries in its shape; tensor is
/// writable.
contigo_status contigo_buf_lend(contigo_buf buf, const contigo_tensor_options *options, void **tensor);

/// Takes a lent buffer back, once the tensor's deleter was called. CONTIGO_E_TENSOR_OUT: its
/// consumer has not called it. CONTIGO_E_CPU_OWNED, CONTIGO_E_DEVICE_OWNED: it was not lent.
contigo_status contigo_buf_unlend(contigo_buf buf);

/// Finds out which bytes of region the elements of a tensor are. Any library may have made the
/// tensor, and it stays with the caller. tensor is a DLManagedTensorVersioned *, or where
/// legacy is 1 a DLManagedTensor *. contigo_dev_addr_of answers the bus address of the lowest
/// element.
///
/// CONTIGO_E_NOT_OURS: they are elsewhere; contigo_buf_write copies them.
/// CONTIGO_E_TENSOR: it is no tensor that the CPU can read, or not aligned to align_bytes (0:
/// nothing is demanded).
///
/// The caller promises:
/// tensor is NULL or a tensor as DLPack says, and info points to a structure whose
/// struct_size is set.
contigo_status contigo_tensor_locate(contigo_region region, void *tensor, uint32_t legacy, uint32_t align_bytes, contigo_tensor_info *info);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* CONTIGO_H */
