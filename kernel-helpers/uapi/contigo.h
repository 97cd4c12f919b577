/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The contract between the kernel module contigo and user space.
 *
 * A node is the kernel's file of one platform device that masters memory:
 * /dev/contigo/<device's name>, which one process at a time may open (EBUSY).
 * It serves all that a user-space driver needs of the device:
 *
 *	registers	mmap(), by the offsets that CONTIGO_GET_INFO tells
 *	interrupts	read(), poll(), a wait, or an eventfd for each; masked when they come
 *	memory		allocated for the device, or dma-bufs of others that are
 *			imported; their bus addresses; their caches
 *	teardown	a stop sequence, the device's reset lines, and a quarantine
 *			for the memory of a device that has not stopped
 *
 * While the file is open the device is awake: its clocks run, its power domain
 * is on, its reset lines are released. Opening resets a device that has reset
 * lines. open() asks for O_RDWR (EACCES).
 *
 * Who drives a device that is not confined reaches other memory. Confined is one
 * that has reset lines, and is alone behind an IOMMU that forgets an address at
 * once, with no memory that firmware reserves for it: only a reset ends what its
 * last user began, whatever that user's stop sequence does. This is as of
 * open(): an administrator can change the IOMMU's domain under it. Opening a
 * device that is not confined asks for CAP_SYS_RAWIO (EPERM), unless the
 * administrator loaded the module with unprivileged=1; a kernel that is locked
 * down refuses (EPERM); and the kernel is tainted ("U").
 *
 * The teardown comes when the last descriptor and the last mapping of the file
 * are gone, however the process ends. Registers are revoked, and interrupts are
 * off. The stop sequence is run, and the device is put in reset if it has reset
 * lines. If the sequence found the device stopped or there was a reset, the
 * file's memory is unmapped for the device and given back, and the clocks are
 * turned off. If neither, memory and clocks go to quarantine, and the kernel's
 * log reports it. A file without memory leaves nothing there, nor does one that
 * has no stop sequence and never touched a register.
 *
 * The quarantine of a file ends when the device has stopped: by a reset, or by
 * the polls of that file's own stop sequence, which are run again when the
 * device is opened, and when a later file has stopped it. Its writes are run at
 * its own file's teardown alone, and no stop sequence speaks for another file's
 * memory. The administrator ends it by writing 0 to the node's file "quarantine"
 * in sysfs, or by unbinding the device: behind an IOMMU that forgets an address
 * at once the memory is given back, and the device's next user may have the same
 * addresses; elsewhere it is lost to the system. System sleep ends the asking.
 * Behind an IOMMU what is in quarantine stays mapped, and opening answers EBUSY
 * meanwhile.
 *
 * The same teardown comes to a file whose device is taken from it: by unbinding,
 * by a reset through sysfs, by system sleep, before another kernel begins
 * (kexec). From then on every call answers ENODEV, and poll() says POLLHUP. The
 * mapped registers are a page of ones that belongs to this file: a write to it
 * is read back, and reaches no device. Mapped memory stays as it is; after
 * unbinding it is a copy, or a touch is SIGBUS where the system had no memory
 * for one. System sleep is refused (EBUSY) only with the module's parameter
 * sleep_needs_stop, while a device is open that cannot be stopped, or has not
 * stopped since it was open.
 *
 * All structures have one layout on 32 and 64 bits. Padding and unknown flags
 * must be zero (EINVAL). A later module adds calls (ENOTTY where there is none),
 * flags, and fields at the end of a structure that begins with argsz. Errors
 * common to all calls: EFAULT, a pointer is bad; ENODEV, the device was taken
 * from this file. EINTR: a signal came while waiting for the file's lock, before
 * anything was done, or between two ranges of a CONTIGO_SYNC, which can be called
 * again (a handler with SA_RESTART is not noticed), or during a CONTIGO_WAIT.
 */
#ifndef _UAPI_CONTIGO_H
#define _UAPI_CONTIGO_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Limits. Each is a table in the kernel that a user fills. */
#define CONTIGO_MAX_BUFFERS		256	/* of one file, with its device's quarantine */
#define CONTIGO_MAX_RANGES		1024	/* ranges in one sync, segments in one answer */
#define CONTIGO_MAX_STEPS		32	/* steps of a stop sequence */
#define CONTIGO_MAX_WINDOWS		6	/* reg entries */
#define CONTIGO_MAX_INTERRUPTS		16	/* of one device */
#define CONTIGO_MAX_POLL_US		1000000	/* all polls of a stop sequence together */

/* struct contigo_window.flags */
#define CONTIGO_WINDOW_MMAP		(1 << 0)	/* it is of whole pages: it can be mapped */
#define CONTIGO_WINDOW_STOP		(1 << 1)	/* a stop sequence may reach it */

/**
 * struct contigo_window - one window of registers: a reg entry
 * @len_bytes: 0 where there is none
 * @mmap_offset: the offset for mmap(), a multiple of the page
 * @flags: CONTIGO_WINDOW_*; of a window with CONTIGO_WINDOW_STOP its node says that each register
 *	in it answers (contigo,stop-windows)
 * @reserved: 0
 *
 * mmap() takes PROT_READ and PROT_WRITE, MAP_SHARED, and all or part of the
 * window. Errors of mmap(): EINVAL, no such window, outside it, or private;
 * EACCES, no CONTIGO_WINDOW_MMAP; EPERM, executable. A child of fork() does not
 * have the mapping. mprotect() of it answers EACCES.
 */
struct contigo_window {
	__aligned_u64 len_bytes;
	__aligned_u64 mmap_offset;
	__u32 flags;
	__u32 reserved;
};

/* struct contigo_info.flags */
#define CONTIGO_INFO_COHERENT		(1 << 0)	/* it snoops: a sync moves nothing */
#define CONTIGO_INFO_IOMMU		(1 << 1)	/* an IOMMU translates */
#define CONTIGO_INFO_TRANSLATED		(1 << 2)	/* bus addresses are not physical ones */
#define CONTIGO_INFO_RESET		(1 << 3)	/* it has reset lines */
#define CONTIGO_INFO_STRICT		(1 << 4)	/* the IOMMU forgets an address at once */
#define CONTIGO_INFO_ALONE		(1 << 5)	/* no other device is in its IOMMU group */
#define CONTIGO_INFO_CONFINED		(1 << 6)	/* it reaches this file's memory alone */
#define CONTIGO_INFO_ARMED		(1 << 7)	/* this file has a stop sequence */

/**
 * struct contigo_info - CONTIGO_GET_INFO: what the node is
 * @argsz: in: the length of the caller's structure, 40 at least; out: of the kernel's. The
 *	shorter one is written.
 * @flags: CONTIGO_INFO_*
 * @dma_bits: address lines that the kernel assumes (CONTIGO_SET_DMA_BITS)
 * @buffers: how many this file holds
 * @quarantined: how many are in quarantine, because this device has not stopped
 * @interrupts: how many the device has
 * @granule_bytes: a sync rounds to that, the largest line of the caches (dma_get_cache_alignment())
 * @reserved: 0
 * @quarantined_bytes: how long those in quarantine are
 * @window: the device's registers
 */
struct contigo_info {
	__u32 argsz;
	__u32 flags;
	__u32 dma_bits;
	__u32 buffers;
	__u32 quarantined;
	__u32 interrupts;
	__u32 granule_bytes;
	__u32 reserved;
	__aligned_u64 quarantined_bytes;
	struct contigo_window window[CONTIGO_MAX_WINDOWS];
};

/**
 * struct contigo_dma_bits - CONTIGO_SET_DMA_BITS: how many address lines the device has
 * @bits: 32 to 64; fewer only where the device tree says fewer
 * @reserved: 0
 *
 * 32 after open(), as for each device of a SoC. Firmware's limit (dma-ranges) stays. EBUSY: the
 * file has memory. EINVAL: @bits is out of range. EIO: the kernel cannot serve so few.
 */
struct contigo_dma_bits {
	__u32 bits;
	__u32 reserved;
};

/* struct contigo_alloc.flags */
#define CONTIGO_ALLOC_COHERENT		(1 << 0)	/* in: it needs no sync */

/**
 * struct contigo_alloc - CONTIGO_ALLOC: memory for the device, by the kernel's DMA API
 * @len_bytes: in: how long; a multiple of the page
 * @flags: in: CONTIGO_ALLOC_*
 * @handle: out: names it in this file
 * @addr: out: the bus address of its first byte; the others follow it
 * @mmap_offset: out: where mmap() finds it; PROT_READ and PROT_WRITE, MAP_SHARED, whole or in part
 *
 * It is zero. It comes from the node's memory-region where that is a reusable pool and no IOMMU
 * translates; else from the kernel's default pool (CMA), within the device's reach. Without
 * CONTIGO_ALLOC_COHERENT the CPU caches it, and CONTIGO_SYNC maintains ranges of it. With it the
 * CPU reads and writes slowly where the device does not snoop: for rings of descriptors.
 *
 * The memory is there until CONTIGO_RELEASE or the teardown, and until the last mapping and the
 * last dma-buf of it are gone. A child of fork() does not have the mapping, and mprotect() of it
 * answers EACCES.
 *
 * EINVAL: @len_bytes is 0, no multiple of the page, or 4 GiB or more. ENOSPC: CONTIGO_MAX_BUFFERS
 * are held or in quarantine. EDQUOT: more bytes than the module's parameter max_mib, with what is
 * in quarantine, still mapped, or has a dma-buf.
 * ENOMEM. EFAULT: where the answer cannot be written, the memory stays until the teardown.
 */
struct contigo_alloc {
	__aligned_u64 len_bytes;
	__u32 flags;
	__u32 handle;
	__aligned_u64 addr;
	__aligned_u64 mmap_offset;
};

/**
 * struct contigo_export - CONTIGO_EXPORT: allocated memory as a dma-buf, to share it
 * @handle: in
 * @fd: out: a descriptor with O_CLOEXEC
 *
 * The memory and its charge (max_mib) are there until the last dma-buf is closed, also after the
 * teardown. What has a dma-buf when the device is unbound is lost to the system: another device may
 * have it.
 *
 * ENOENT: no such handle. EINVAL: it is an import. EOPNOTSUPP: it is coherent, for its own device;
 * or the device is behind an IOMMU, where its next user would reach it: import another exporter's
 * there. EFAULT: the answer cannot be written, and there is no dma-buf.
 */
struct contigo_export {
	__u32 handle;
	__s32 fd;
};

/* struct contigo_import.flags */
#define CONTIGO_IMPORT_READ_ONLY	(1 << 0)	/* in: the device only reads it */

/**
 * struct contigo_import - CONTIGO_IMPORT: a dma-buf of another exporter, mapped for the device
 * @fd: in: the dma-buf
 * @flags: in: CONTIGO_IMPORT_*
 * @handle: out: names it in this file
 * @segments: out: of how many runs of bus addresses it consists
 * @addr: out: the bus address of its first byte
 * @len_bytes: out: how long it is
 *
 * Mapped in both directions, or with CONTIGO_IMPORT_READ_ONLY for reading: an IOMMU keeps the
 * device to that, without one nothing does. A dma-buf that was opened for reading alone is imported
 * for reading alone (EACCES without the flag), and one for writing alone not at all (EACCES).
 *
 * Writers that are at work on it (a GPU, a camera) are not waited for: poll() the dma-buf for
 * POLLIN. The device's own work is no fence that others could wait for.
 *
 * EBADF: @fd is no descriptor. EINVAL: it is no dma-buf, or memory of this node; unknown flags.
 * EBUSY: this file has imported it already, or it is in quarantine. ENOSPC, EDQUOT: as
 * CONTIGO_ALLOC. ERANGE: the exporter's list is shorter than its buffer; or the device snoops and
 * reaches it only through a bounce buffer, which a sync that moves nothing would leave as it is.
 * ENOMEM; also where an IOMMU's addresses are used up. EOPNOTSUPP: CONTIGO_IMPORT_READ_ONLY of an
 * exporter that moves its memory, behind an IOMMU: the kernel would map it for writing, too.
 * EFAULT: as CONTIGO_ALLOC. Else the exporter's error: one of the device's reach is EIO or ENOMEM.
 */
struct contigo_import {
	__s32 fd;
	__u32 flags;
	__u32 handle;
	__u32 segments;
	__aligned_u64 addr;
	__aligned_u64 len_bytes;
};

/**
 * struct contigo_segment - one run of bus addresses, as the device sees them in order
 * @addr: of its first byte
 * @len_bytes: not 0
 */
struct contigo_segment {
	__aligned_u64 addr;
	__aligned_u64 len_bytes;
};

/**
 * struct contigo_segments - CONTIGO_GET_SEGMENTS: where the parts of an import are
 * @handle: in
 * @count: in: room at @ptr; out: how many were written, 0 where @offset_bytes is past the end
 * @offset_bytes: in: where in the import the first run begins that is asked for
 * @ptr: in: struct contigo_segment[@count]; the first one begins at @offset_bytes
 *
 * ENOENT: no such import. E2BIG: @count is above CONTIGO_MAX_RANGES.
 */
struct contigo_segments {
	__u32 handle;
	__u32 count;
	__aligned_u64 offset_bytes;
	__aligned_u64 ptr;
};

/**
 * struct contigo_release - CONTIGO_RELEASE: memory is unmapped for the device and given up, by the
 * caller's word that the device has let go of it
 * @handle: in
 * @reserved: 0
 *
 * Where the device does not snoop, the CPU's writes to an import since the last
 * CONTIGO_SYNC_FOR_DEVICE may be lost, here and at the teardown. ENOENT: no such handle.
 */
struct contigo_release {
	__u32 handle;
	__u32 reserved;
};

/* struct contigo_range.flags: exactly one of them */
#define CONTIGO_SYNC_FOR_CPU		(1 << 0)	/* invalidate: the device wrote */
#define CONTIGO_SYNC_FOR_DEVICE		(1 << 1)	/* clean: the CPU wrote */

/**
 * struct contigo_range - what to synchronise
 * @handle: of the memory
 * @flags: CONTIGO_SYNC_*
 * @offset_bytes: from its first byte
 * @len_bytes: not 0, and within it
 */
struct contigo_range {
	__u32 handle;
	__u32 flags;
	__aligned_u64 offset_bytes;
	__aligned_u64 len_bytes;
};

/**
 * struct contigo_sync - CONTIGO_SYNC: many ranges in one call, in order
 * @count: in: 1 to CONTIGO_MAX_RANGES
 * @reserved: 0
 * @ptr: in: struct contigo_range[@count]
 *
 * Of allocated memory each range is maintained: whole lines of the caches that hold it are written
 * back or thrown away (dma_sync_single_for_*()). The caches of an import are its exporter's: any
 * range of it is CPU access to all of it, begun or ended (DMA_BUF_IOCTL_SYNC), which may wait for
 * others' work. So hand over an import as a whole. A device that snoops needs no sync, and nothing
 * is done.
 *
 * All ranges are checked before the first is synchronised. E2BIG: too many. EINVAL: none, a range
 * is empty or goes beyond its memory, not exactly one flag. ENOENT: no such handle. Else the
 * exporter's error.
 */
struct contigo_sync {
	__u32 count;
	__u32 reserved;
	__aligned_u64 ptr;
};

/* struct contigo_step.kind */
#define CONTIGO_STEP_WRITE		1	/* register = (register & ~mask) | value */
#define CONTIGO_STEP_POLL		2	/* until (register & mask) == value */
#define CONTIGO_STEP_POLL_NOT		3	/* until (register & mask) != value */
#define CONTIGO_STEP_ELSE		4	/* where a poll above was not met */

/**
 * struct contigo_step - one step of a stop sequence, on one 32-bit register
 * @kind: CONTIGO_STEP_*
 * @window: which reg entry
 * @offset_bytes: from the window's first byte; a multiple of 4
 * @mask: the bits that count; not 0. WRITE with all of them does not read the register
 * @value: within @mask
 * @timeout_us: POLL, POLL_NOT: at most so long; WRITE: 0
 *
 * ELSE has zeros everywhere else.
 */
struct contigo_step {
	__u32 kind;
	__u32 window;
	__u32 offset_bytes;
	__u32 mask;
	__u32 value;
	__u32 timeout_us;
};

/**
 * struct contigo_stop_sequence - CONTIGO_ARM: what stops the device at the teardown, instead of
 *	the one before
 * @count: in: 0 to CONTIGO_MAX_STEPS; 0 disarms
 * @reserved: 0
 * @ptr: in: struct contigo_step[@count]
 *
 * The steps are run in order. The first ELSE that is reached ends the sequence: the device has
 * stopped. At a poll that is not met it goes on after the next ELSE; with no ELSE below it the
 * device has not stopped.
 *
 * The kernel reaches registers as the CPU does: where no register answers, many buses answer with
 * an error, which the kernel cannot survive. So a step may only name a window with
 * CONTIGO_WINDOW_STOP (EPERM), unless the caller has CAP_SYS_RAWIO, and answers for it.
 *
 * All steps are checked before the sequence takes the place of the one before. E2BIG: too many.
 * EINVAL: the last step, or the one before an ELSE, is a WRITE: only a poll shows that the device
 * has stopped. Also EINVAL: an unknown kind, bits of @value outside @mask, a timeout where none
 * belongs, polls of more than CONTIGO_MAX_POLL_US together, an ELSE that is first, last, or beside
 * another. ENXIO: no such window, or the register is outside it, or unaligned.
 */
struct contigo_stop_sequence {
	__u32 count;
	__u32 reserved;
	__aligned_u64 ptr;
};

/**
 * struct contigo_unmask - CONTIGO_UNMASK: let interrupts come again
 * @interrupts: in: a bit for each
 * @reserved: 0
 *
 * An interrupt is masked when the file is opened, and when it has come. read() of 4 bytes says
 * which came since the last one, a bit for each; it blocks, or answers EAGAIN with O_NONBLOCK, and
 * EINVAL for less than 4 bytes. poll() says POLLIN where read() would not block. An edge that comes
 * while its interrupt is masked is seen when it is unmasked. EINVAL: a bit that is no interrupt of
 * the device.
 */
struct contigo_unmask {
	__u32 interrupts;
	__u32 reserved;
};

/**
 * struct contigo_wait - CONTIGO_WAIT: wait for interrupts, in one call
 * @interrupts: in: a bit for each, at least one; out: which of them came, 0 at the timeout
 * @timeout_us: at most so long; 0 unmasks nothing, and tells only which came
 *
 * This is CONTIGO_UNMASK, poll() and read() for @interrupts: one that came earlier and was not read
 * ends the wait at once, and what is returned here is returned by no read(). One that comes during
 * the wait signals no eventfd. After the wait those that did not come are still unmasked. Of two
 * waits for an interrupt one returns it. The time counts from when the call has the file's lock.
 * EINVAL: a bit that is no interrupt of the device, or none. EINTR: a signal, the freezer or a
 * debugger ended the wait, with SA_RESTART too; the interrupts may be unmasked.
 */
struct contigo_wait {
	__u32 interrupts;
	__u32 timeout_us;
};

/**
 * struct contigo_eventfd - CONTIGO_SET_EVENTFD: where an interrupt is signalled, beside read()
 * @interrupt: in: its number
 * @fd: in: an eventfd, or -1 for none
 *
 * When the device is taken from the file, each eventfd is signalled once more.
 *
 * EINVAL: no such interrupt, or @fd is no eventfd. EBADF: @fd is no descriptor.
 */
struct contigo_eventfd {
	__u32 interrupt;
	__s32 fd;
};

/*
 * CONTIGO_RESET: the device is as after power-on, and has let go of all memory. Its quarantine
 * ends. Who touches a mapped register meanwhile waits. EOPNOTSUPP: it has no reset lines. Else the
 * reset driver's error. Where that leaves the device in reset, the mapped registers are a page of
 * ones from then on, and no stop sequence is run until a reset works.
 */

#define CONTIGO_IOC			0xC1
#define CONTIGO_GET_INFO		_IO(CONTIGO_IOC, 0x50)
#define CONTIGO_SET_DMA_BITS		_IOW(CONTIGO_IOC, 0x51, struct contigo_dma_bits)
#define CONTIGO_ALLOC			_IOWR(CONTIGO_IOC, 0x52, struct contigo_alloc)
#define CONTIGO_EXPORT			_IOWR(CONTIGO_IOC, 0x53, struct contigo_export)
#define CONTIGO_IMPORT			_IOWR(CONTIGO_IOC, 0x54, struct contigo_import)
#define CONTIGO_GET_SEGMENTS		_IOWR(CONTIGO_IOC, 0x55, struct contigo_segments)
#define CONTIGO_RELEASE			_IOW(CONTIGO_IOC, 0x56, struct contigo_release)
#define CONTIGO_SYNC			_IOW(CONTIGO_IOC, 0x57, struct contigo_sync)
#define CONTIGO_ARM			_IOW(CONTIGO_IOC, 0x58, struct contigo_stop_sequence)
#define CONTIGO_UNMASK			_IOW(CONTIGO_IOC, 0x59, struct contigo_unmask)
#define CONTIGO_SET_EVENTFD		_IOW(CONTIGO_IOC, 0x5A, struct contigo_eventfd)
#define CONTIGO_RESET			_IO(CONTIGO_IOC, 0x5B)
#define CONTIGO_WAIT			_IOWR(CONTIGO_IOC, 0x5C, struct contigo_wait)

#endif /* _UAPI_CONTIGO_H */
