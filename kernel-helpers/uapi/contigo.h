/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The contract between the kernel module contigo and user space.
 *
 * A "port" is one device that masters memory, bound to the module: a platform device with
 * compatible = "contigo,dma-port", or a PCI function by driver_override. Each is one character
 * device, /dev/contigo/<device's name>, which one process at a time may open (EBUSY). A file
 * imports dma-bufs for its device, says their bus addresses, synchronises ranges of them, and may
 * be armed with a program that stops the device.
 *
 * When the last descriptor of the file is closed, by whatever end of the process, the program is
 * run. Then bus mastering is turned off (PCI). Only then are the imports unmapped and their buffers
 * dropped. Where the program does not find the device stopped, they are kept for ever, and the
 * kernel's log says so. The same happens when the device is unbound and before another kernel
 * begins (kexec).
 *
 * All structures have one layout on 32 and 64 bits. Padding and unknown flags must be zero
 * (EINVAL). Errors common to all calls: EFAULT, a pointer is bad; ENOTTY, no such call; ENODEV, the
 * device was unbound. EINTR: a signal came while waiting for the file's lock, before anything was
 * done (a handler with SA_RESTART is not noticed).
 */
#ifndef _UAPI_CONTIGO_H
#define _UAPI_CONTIGO_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * Compare with struct contigo_info.abi; it changes with the meaning of what is here, not with
 * additions.
 */
#define CONTIGO_ABI			1

/* Limits. Each is a table in the kernel that a user fills. */
#define CONTIGO_MAX_IMPORTS		256	/* buffers of one file */
#define CONTIGO_MAX_RANGES		1024	/* ranges in one sync */
#define CONTIGO_MAX_STEPS		32	/* steps of a program */
#define CONTIGO_MAX_WINDOWS		6	/* reg entries, or BARs */
#define CONTIGO_MAX_POLL_US		1000000	/* all polls of a program together */

/* struct contigo_info.flags */
#define CONTIGO_INFO_COHERENT		(1 << 0)	/* the device snoops: a sync moves nothing */
#define CONTIGO_INFO_IOMMU		(1 << 1)	/* an IOMMU translates: addresses are not physical */
#define CONTIGO_INFO_PCI		(1 << 2)
#define CONTIGO_INFO_ARMED		(1 << 3)	/* this file has a program */
#define CONTIGO_INFO_TRANSLATED		(1 << 4)	/* dma-ranges or an IOMMU: bus addresses are not physical ones */

/**
 * struct contigo_info - CONTIGO_GET_INFO: what the port is
 * @abi: CONTIGO_ABI of the module
 * @flags: CONTIGO_INFO_*
 * @dma_bits: address lines that the kernel assumes (CONTIGO_SET_DMA_BITS)
 * @imports: buffers that this file holds
 * @dma_limit: the highest bus address that the interconnect carries (dma-ranges), or all ones
 * @window_len_bytes: how long each register window is; 0 where there is none, or no memory
 */
struct contigo_info {
	__u32 abi;
	__u32 flags;
	__u32 dma_bits;
	__u32 imports;
	__aligned_u64 dma_limit;
	__aligned_u64 window_len_bytes[CONTIGO_MAX_WINDOWS];
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
#define CONTIGO_IMPORT_CONTIGUOUS	(1 << 0)	/* in: one run of bus addresses, or ERANGE */

/**
 * struct contigo_import - CONTIGO_IMPORT: a dma-buf, mapped for the device in both directions
 * @fd: in: the dma-buf
 * @flags: in: CONTIGO_IMPORT_*
 * @handle: out: names it in this file
 * @segments: out: of how many runs of bus addresses it consists
 * @addr: out: the bus address of its first byte
 * @len_bytes: out: how long it is
 *
 * The caches are clean when it returns, except for a buffer that this file has imported before.
 * EBADF: @fd is no descriptor. EINVAL: it is no dma-buf; unknown flags. ERANGE: it must be
 * contiguous and is not, or the device does not reach it. Also ERANGE: the device reaches it only
 * through a bounce buffer where it is coherent, or the exporter's list is shorter than its buffer
 * (nothing is kept). EOPNOTSUPP: the device does not snoop, and the memory is of a pool that the
 * kernel does not map (no-map): nobody can maintain its caches. EFAULT: where @handle cannot be
 * written, the import stays until the file goes. ENOSPC: the file has CONTIGO_MAX_IMPORTS. ENOMEM;
 * also where an IOMMU's addresses are used up. Else the exporter's error.
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
 * struct contigo_segment - one run of bus addresses of an import, as the device sees them in order
 */
struct contigo_segment {
	__aligned_u64 addr;
	__aligned_u64 len_bytes;
};

/**
 * struct contigo_segments - CONTIGO_GET_SEGMENTS: where the parts of an import are
 * @handle: in
 * @first: in: the number of the first one asked for
 * @count: in: room at @ptr; out: how many were written, 0 where @first is past the last
 * @reserved: 0
 * @ptr: in: struct contigo_segment[@count]
 *
 * ENOENT: no such import. E2BIG: @count is above CONTIGO_MAX_RANGES.
 */
struct contigo_segments {
	__u32 handle;
	__u32 first;
	__u32 count;
	__u32 reserved;
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
#define CONTIGO_SYNC_FOR_CPU		(1 << 0)	/* invalidate: the CPU reads what the device wrote */
#define CONTIGO_SYNC_FOR_DEVICE		(1 << 1)	/* clean: the device reads what the CPU wrote */

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
#define CONTIGO_STEP_WRITE		1	/* register = (register & ~mask) | value; with all of mask set it is not read */
#define CONTIGO_STEP_POLL		2	/* until (register & mask) == value */
#define CONTIGO_STEP_POLL_NOT		3	/* until (register & mask) != value; a program ends at a poll that is not met */

/**
 * struct contigo_step - one step of a program, on one 32-bit register
 * @kind: CONTIGO_STEP_*
 * @window: which reg entry or BAR
 * @offset_bytes: from the window's first byte; a multiple of 4
 * @mask: the bits that count; not 0
 * @value: within @mask
 * @timeout_us: POLL, POLL_NOT: at most so long; WRITE: 0
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
 * All steps are checked before the program takes the place of the one before. E2BIG: too many.
 * EINVAL: an unknown kind, bits of @value outside @mask, a timeout where none belongs, polls of
 * more than CONTIGO_MAX_POLL_US together. ENXIO: no such window, or the register is outside it or
 * unaligned.
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
 * EOPNOTSUPP: a platform device, which always may. EINVAL: @on is neither.
 */
struct contigo_bus_master {
	__u32 on;
	__u32 reserved;
};

#define CONTIGO_IOC			0xC1
#define CONTIGO_GET_INFO		_IOR(CONTIGO_IOC, 0x40, struct contigo_info)
#define CONTIGO_SET_DMA_BITS		_IOW(CONTIGO_IOC, 0x41, struct contigo_dma_bits)
#define CONTIGO_IMPORT			_IOWR(CONTIGO_IOC, 0x42, struct contigo_import)
#define CONTIGO_GET_SEGMENTS		_IOWR(CONTIGO_IOC, 0x43, struct contigo_segments)
#define CONTIGO_RELEASE			_IOW(CONTIGO_IOC, 0x44, struct contigo_release)
#define CONTIGO_SYNC			_IOW(CONTIGO_IOC, 0x45, struct contigo_sync)
#define CONTIGO_ARM			_IOW(CONTIGO_IOC, 0x46, struct contigo_program)
#define CONTIGO_SET_BUS_MASTER		_IOW(CONTIGO_IOC, 0x47, struct contigo_bus_master)

#endif /* _UAPI_CONTIGO_H */
