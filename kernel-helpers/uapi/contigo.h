/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The contract between the kernel module contigo and user space.
 *
 * A "guard" is the kernel's node of one device that masters memory. Each is one
 * character device, /dev/contigo/<device's name>, which one process at a time
 * may open (EBUSY). It serves all that a user-space driver needs of the device:
 *
 *	registers	mmap(), by the offsets that CONTIGO_GET_INFO tells
 *	interrupts	read(), poll(), or an eventfd for each; masked when taken
 *	memory		dma-bufs: imported, their bus addresses, ranged syncs
 *	the end		a program that stops the device, its reset lines, and
 *			memory that is held until the device has stopped
 *
 * While the file is open the device is awake: its clocks run, its power domains
 * are on, its reset lines are released. Opening resets a device that has a
 * reset.
 *
 * A device is not confined without an IOMMU, behind one that invalidates lazily,
 * in a group of several devices, or where firmware reserves memory for it. Nor
 * is a PCI function that uses ATS, or whose MSIs are not isolated. Who drives
 * such a device reaches other memory. Opening then asks for CAP_SYS_RAWIO
 * (EPERM), unless the administrator loaded the module with unprivileged=1; a
 * kernel that is locked down refuses (EPERM); and the kernel is tainted ("U").
 *
 * The end comes when the last descriptor and the last mapping of the file are
 * gone, however the process ends. Registers are revoked, and interrupts are off.
 * The program is run, bus mastering is turned off (PCI), and the device is reset
 * if it can be. If the program found the device stopped or there was a reset, the
 * imports are unmapped, their buffers dropped, and the clocks turned off. If
 * neither, the buffers are kept, and the kernel's log says so. They are given
 * back when the same program, or a reset, stops the device later; opening the
 * device tries that first. Buffers of a file that had no program are given back
 * when any program finds the device stopped. A file without a program keeps
 * nothing where it holds no import when it ends, or never touched a register.
 *
 * Behind an IOMMU what is kept stays mapped, for a device that may be at work.
 * So opening answers EBUSY until one of those programs, or a reset, has stopped
 * it: at each opening the programs are tried.
 *
 * The same end comes to a file whose device is taken from it: by unbinding, by
 * a reset through sysfs, by system sleep, before another kernel begins (kexec).
 * From then on every call answers ENODEV, and poll() says POLLHUP. The mapped
 * registers are a page of ones that belongs to this file: a write to it is read
 * back, and reaches no device. System sleep is refused (EBUSY) while a device
 * is open that cannot be stopped, or has not stopped since it was open.
 *
 * All structures have one layout on 32 and 64 bits. Padding and unknown flags
 * must be zero (EINVAL). Errors common to all calls: EFAULT, a pointer is bad;
 * ENOTTY, no such call; ENODEV, the device was taken from this file. EINTR: a
 * signal came while waiting for the file's lock, before anything was done (a
 * handler with SA_RESTART is not noticed).
 */
#ifndef _UAPI_CONTIGO_H
#define _UAPI_CONTIGO_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * Compare with struct contigo_info.abi; it changes with the meaning of what is
 * here, not with additions.
 */
#define CONTIGO_ABI			2

/* Limits. Each is a table in the kernel that a user fills. */
#define CONTIGO_MAX_IMPORTS		256	/* of one file, with what is kept for its device */
#define CONTIGO_MAX_RANGES		1024	/* ranges in one sync */
#define CONTIGO_MAX_STEPS		32	/* steps of a program */
#define CONTIGO_MAX_WINDOWS		6	/* reg entries, or BARs */
#define CONTIGO_MAX_INTERRUPTS		16	/* of one device */
#define CONTIGO_MAX_POLL_US		1000000	/* all polls of a program together */
#define CONTIGO_MAX_WAIT_US		10000000	/* for the writers of a buffer */

/* struct contigo_window.flags */
#define CONTIGO_WINDOW_MMAP		(1 << 0)	/* it can be mapped */

/**
 * struct contigo_window - one window of registers: a reg entry, or a BAR
 * @len_bytes: 0 where there is none, or no memory
 * @mmap_offset: the offset for mmap(), a multiple of the page
 * @in_page_bytes: how far into that page the first register is
 * @flags: CONTIGO_WINDOW_*; without CONTIGO_WINDOW_MMAP only a program reaches
 *	it, because another device has registers in the same pages, or because
 *	it holds an MSI-X table
 *
 * Another device's registers are known where its driver claims them. Some drivers do not: so who
 * has no CAP_SYS_RAWIO, unless the module was loaded with unprivileged=1, maps windows of whole
 * pages alone.
 *
 * mmap() takes PROT_READ and PROT_WRITE, MAP_SHARED, and all or part of the
 * pages from @mmap_offset to the window's end. Errors of mmap(): EINVAL, no
 * such window, outside it, or private; EACCES, no CONTIGO_WINDOW_MMAP; EPERM,
 * executable. A child of fork() does not have the mapping. mprotect() of it
 * answers EACCES after the device was taken; before Linux 5.11, always.
 */
struct contigo_window {
	__aligned_u64 len_bytes;
	__aligned_u64 mmap_offset;
	__u32 in_page_bytes;
	__u32 flags;
};

/* struct contigo_info.flags */
#define CONTIGO_INFO_COHERENT		(1 << 0)	/* it snoops: a sync moves nothing */
#define CONTIGO_INFO_IOMMU		(1 << 1)	/* an IOMMU translates */
#define CONTIGO_INFO_PCI		(1 << 2)
#define CONTIGO_INFO_ARMED		(1 << 3)	/* this file has a program */
#define CONTIGO_INFO_TRANSLATED		(1 << 4)	/* bus addresses are not physical ones */
#define CONTIGO_INFO_RESET		(1 << 5)	/* the kernel can reset the device */
#define CONTIGO_INFO_STRICT		(1 << 6)	/* the IOMMU forgets an address at once */
#define CONTIGO_INFO_ALONE		(1 << 7)	/* no other device is in its IOMMU group */
#define CONTIGO_INFO_CONFINED		(1 << 8)	/* all three, and nothing else passes */

/**
 * struct contigo_info - CONTIGO_GET_INFO: what the guard is
 * @argsz: in: the length of the caller's structure, 32 at least; out: of the kernel's. The
 *	shorter one is written.
 * @abi: CONTIGO_ABI of the module
 * @flags: CONTIGO_INFO_*
 * @dma_bits: address lines that the kernel assumes (CONTIGO_SET_DMA_BITS)
 * @imports: buffers that this file holds
 * @kept: buffers that are kept for this device, because it has not stopped
 * @interrupts: how many the device has
 * @granule_bytes: a sync rounds to that, the largest line of the caches (dma_get_cache_alignment())
 * @dma_limit: the highest bus address that the interconnect carries (dma-ranges), or all ones
 * @kept_bytes: how long the kept buffers are
 * @window: the device's registers
 */
struct contigo_info {
	__u32 argsz;
	__u32 abi;
	__u32 flags;
	__u32 dma_bits;
	__u32 imports;
	__u32 kept;
	__u32 interrupts;
	__u32 granule_bytes;
	__aligned_u64 dma_limit;
	__aligned_u64 kept_bytes;
	struct contigo_window window[CONTIGO_MAX_WINDOWS];
};

/**
 * struct contigo_dma_bits - CONTIGO_SET_DMA_BITS: how many address lines the device has
 * @bits: 12 to 64
 * @reserved: 0
 *
 * The device tree's limit stays. EBUSY: the file holds imports. EINVAL: @bits is out of range. EIO:
 * behind an IOMMU, fewer than 32 lines, or than the device had when it was bound.
 */
struct contigo_dma_bits {
	__u32 bits;
	__u32 reserved;
};

/* struct contigo_import.flags */
#define CONTIGO_IMPORT_CONTIGUOUS	(1 << 0)	/* in: one run of addresses, or ERANGE */
#define CONTIGO_IMPORT_READ_ONLY	(1 << 1)	/* in: the device only reads it */
#define CONTIGO_IMPORT_WAIT		(1 << 2)	/* in: wait for its writers first */

/**
 * struct contigo_import - CONTIGO_IMPORT: a dma-buf, mapped for the device
 * @fd: in: the dma-buf
 * @flags: in: CONTIGO_IMPORT_*
 * @handle: out: names it in this file
 * @segments: out: of how many runs of bus addresses it consists
 * @addr: out: the bus address of its first byte
 * @len_bytes: out: how long it is
 * @wait_us: in: with CONTIGO_IMPORT_WAIT at most so long, 1 to CONTIGO_MAX_WAIT_US; else 0
 * @reserved: 0
 *
 * Mapped in both directions, or with CONTIGO_IMPORT_READ_ONLY for reading: an IOMMU keeps the
 * device to that, without one nothing does. A dma-buf that was opened for reading alone is imported
 * for reading alone (EACCES without the flag).
 *
 * Fences. The kernel's own work on the buffer (a move, a clear) is waited for always. The writers
 * that are at work on it now (a GPU, a camera) are waited for with CONTIGO_IMPORT_WAIT only. A
 * signal ends the wait (EINTR), and so does the time (ETIMEDOUT). Writers that begin later are not
 * waited for: poll the dma-buf (POLLIN: nobody writes it), or DMA_BUF_IOCTL_EXPORT_SYNC_FILE. The
 * device's own work is no fence that others could wait for.
 *
 * Caches. They are clean when it returns, except for a buffer that this file has imported before,
 * or that is kept for the device. Another holder of the dma-buf may call DMA_BUF_IOCTL_SYNC, which
 * cleans or invalidates all of it, for every importer: so nobody else may use it meanwhile.
 *
 * EBADF: @fd is no descriptor. EINVAL: it is no dma-buf; unknown flags. ERANGE: it must be
 * contiguous and is not, or the device does not reach it. Also ERANGE: the device reaches it only
 * through a bounce buffer where it is coherent, or the exporter's list is shorter than its buffer
 * (nothing is kept). EOPNOTSUPP: the device does not snoop, and the memory is of a pool that the
 * kernel does not map (no-map): nobody can maintain its caches. EFAULT: where @handle cannot be
 * written, the import stays until the file goes. EBUSY: it is to be mapped in both
 * directions, and this file holds it, or it is kept, for reading alone. ENOSPC: CONTIGO_MAX_IMPORTS
 * are held or kept. ENOMEM; also where an IOMMU's addresses are used up. Else the exporter's error.
 */
struct contigo_import {
	__s32 fd;
	__u32 flags;
	__u32 handle;
	__u32 segments;
	__aligned_u64 addr;
	__aligned_u64 len_bytes;
	__u32 wait_us;
	__u32 reserved;
};

/**
 * struct contigo_segment - one run of bus addresses of an import, as the device sees them in order
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
 * struct contigo_release - CONTIGO_RELEASE: an import is unmapped and its buffer dropped, by the
 * caller's word that the device has let go of it
 * @handle: in
 * @reserved: 0
 *
 * Where the device does not snoop, the CPU's writes since the last CONTIGO_SYNC_FOR_DEVICE may be
 * lost, here and when the file goes. ENOENT: no such import.
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
 * @handle: of the import
 * @flags: CONTIGO_SYNC_*
 * @offset_bytes: from the import's first byte
 * @len_bytes: not 0, and within the import
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
 * All ranges are checked before the first is synchronised. E2BIG: too many. EINVAL: none, a range
 * is empty or goes beyond its import, not exactly one flag. ENOENT: no such import. The caches work
 * by lines: whole lines that hold a range are written back or thrown away.
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
 * struct contigo_step - one step of a program, on one 32-bit register
 * @kind: CONTIGO_STEP_*
 * @window: which reg entry or BAR
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
 * struct contigo_program - CONTIGO_ARM: what stops the device when this file goes; replaces the one
 * before
 * @count: in: 0 to CONTIGO_MAX_STEPS; 0 disarms
 * @reserved: 0
 * @ptr: in: struct contigo_step[@count]
 *
 * The steps are run in order. The first ELSE that is reached ends the program: the device has
 * stopped. At a poll that is not met the program goes on after the next ELSE; with no ELSE below it
 * the device has not stopped.
 *
 * All steps are checked before the program takes the place of the one before. E2BIG: too many.
 * EINVAL: an unknown kind, bits of @value outside @mask, a timeout where none belongs, polls of
 * more than CONTIGO_MAX_POLL_US together, an ELSE that is first, last, or beside another. ENXIO: no
 * such window, or the register is outside it, unaligned, or of an MSI-X table.
 */
struct contigo_program {
	__u32 count;
	__u32 reserved;
	__aligned_u64 ptr;
};

/**
 * struct contigo_bus_master - CONTIGO_SET_BUS_MASTER: may the PCI function access memory? It may
 * not when the file is opened
 * @on: in: 0 or 1
 * @reserved: 0
 *
 * Off is a pause: the function goes on where it was when it is on again. So a function that cannot
 * be reset may master the bus only after a program has stopped it. Turning it on for the first time
 * runs the one that is armed. EBUSY: none is. ETIMEDOUT: it did not find the function stopped.
 * EOPNOTSUPP: a platform device, which always may. EINVAL: @on is neither.
 */
struct contigo_bus_master {
	__u32 on;
	__u32 reserved;
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
 * CONTIGO_RESET: the device is as after power-on, and has let go of all memory. Its kept buffers
 * are given back; a PCI function masters the bus no more. Who touches a mapped register meanwhile
 * waits. EOPNOTSUPP: the kernel has no way to reset it. Else the reset driver's error. Where that
 * leaves the device in reset, the mapped registers are a page of ones from then on, and no program
 * is run until a reset works.
 */

#define CONTIGO_IOC			0xC1
#define CONTIGO_GET_INFO		_IO(CONTIGO_IOC, 0x50)
#define CONTIGO_SET_DMA_BITS		_IOW(CONTIGO_IOC, 0x51, struct contigo_dma_bits)
#define CONTIGO_IMPORT			_IOWR(CONTIGO_IOC, 0x52, struct contigo_import)
#define CONTIGO_GET_SEGMENTS		_IOWR(CONTIGO_IOC, 0x53, struct contigo_segments)
#define CONTIGO_RELEASE			_IOW(CONTIGO_IOC, 0x54, struct contigo_release)
#define CONTIGO_SYNC			_IOW(CONTIGO_IOC, 0x55, struct contigo_sync)
#define CONTIGO_ARM			_IOW(CONTIGO_IOC, 0x56, struct contigo_program)
#define CONTIGO_SET_BUS_MASTER		_IOW(CONTIGO_IOC, 0x57, struct contigo_bus_master)
#define CONTIGO_UNMASK			_IOW(CONTIGO_IOC, 0x58, struct contigo_unmask)
#define CONTIGO_SET_EVENTFD		_IOW(CONTIGO_IOC, 0x59, struct contigo_eventfd)
#define CONTIGO_RESET			_IO(CONTIGO_IOC, 0x5A)

#endif /* _UAPI_CONTIGO_H */
