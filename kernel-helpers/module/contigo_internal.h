/* SPDX-License-Identifier: GPL-2.0 */
/*
 * contigo: one node for a device that user space drives. The parts that the
 * files of this module share.
 *
 *	contigo_main.c		the module, its parameters, its class, its numbers
 *	contigo_guard.c		a device bound to us: made, removed, put to sleep
 *	contigo_dma.c		what the DMA API and the IOMMU say of it
 *	contigo_platform.c	the platform's way to a device; its reset lines
 *	contigo_pci.c		PCI's way; its mastering, its interrupt, its reset
 *	contigo_power.c		clocks, power domains, runtime PM
 *	contigo_open.c		how a file begins
 *	contigo_end.c		how it ends, and the device's reset
 *	contigo_file.c		its calls
 *	contigo_memory.c	its calls about memory
 *	contigo_registers.c	its mappings of registers, and how they are revoked
 *	contigo_irq.c		its interrupts
 *	contigo_mapping.c	one dma-buf: attached, mapped, synchronised
 *	contigo_pieces.c	where the parts of a mapped dma-buf are
 *	contigo_import.c	a file's dma-bufs by their handles
 *	contigo_kept.c		those of a device that has not stopped
 *	contigo_kept_list.c	the same, by device, over unbind and bind
 *	contigo_program.c	what stops the device
 *	contigo_kunit.c		tests of what needs no device
 *
 * The order of ownership is guard, file, import. One mutex, the guard's, guards
 * what changes in all three: a guard has one file at most, and remove() has to
 * shut out the file's calls in any case. User memory is never touched under it,
 * and no fault and no mmap() takes it, so that no page fault can delay remove().
 *
 * The order of locks is: device_lock() (PCI alone, for its reset), the guard's
 * lock, the file's map_lock. The last one is also taken below mmap_lock.
 */
#ifndef CONTIGO_INTERNAL_H
#define CONTIGO_INTERNAL_H

#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/dma-direction.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>

#include <uapi/contigo.h>

struct clk_bulk_data;
struct dma_buf;
struct eventfd_ctx;
struct inode;
struct page;
struct pci_dev;
struct platform_device;
struct reset_control;
struct vm_area_struct;

/* Power domains of one device. */
#define CONTIGO_MAX_DOMAINS	8

/**
 * struct contigo_registers - registers of a guard: a reg entry, or a BAR
 * @start: the physical address of the first one
 * @len_bytes: 0 where there is none
 * @mmap_offset: a multiple of the page
 * @hidden_from: where in it an MSI-X table begins
 * @hidden_to: where that ends; the same where there is none
 */
struct contigo_registers {
	phys_addr_t start;
	u64 len_bytes;
	u64 mmap_offset;
	u64 hidden_from;
	u64 hidden_to;
};

/**
 * struct contigo_power - what keeps a device awake
 * @dev: a reference
 * @clock: NULL where there are none
 * @clocks: how many
 * @domain: the power domains, where there are several; the driver's core handles one alone
 * @domains: how many
 */
struct contigo_power {
	struct device *dev;
	struct clk_bulk_data *clock;
	int clocks;
	struct device *domain[CONTIGO_MAX_DOMAINS];
	u32 domains;
};

/**
 * struct contigo_guard - a device that masters memory, and its character device
 * @dev: the character device's; its parent is @dma_dev
 * @cdev: holds a reference to @dev, and an open file one to it: the guard outlives both
 * @dma_dev: the device itself; a reference
 * @pdev: the same, or NULL where it is not PCI
 * @is_open: one file at a time; set until the last one's end is over
 * @window: its registers
 * @irq: the numbers of its interrupts
 * @interrupts: how many
 * @reset: its reset lines, or NULL
 * @can_reset: there are reset lines; or the PCI function was reset
 * @in_reset: its lines are asserted, or may be: nobody touches its registers
 * @power: NULL for PCI, whose core does it
 * @dma_bits: address lines of the device, as probe found or the file said
 * @default_dma_bits: as probe found
 * @max_seg_size: as probe found
 * @seg_boundary: as probe found
 * @sync_bytes: the most that one call of the DMA API may synchronise
 * @iommu: an IOMMU translates the device's addresses
 * @coherent: the device snoops
 * @dead: the device is being unbound; set without the lock. Who has seen it
 *	unset under the lock may touch the device until unlocking.
 * @lock: guards what follows, the file's contents, @dma_bits, @can_reset and @in_reset
 * @file: the open file, or NULL
 * @kept: buffers and more of files whose device did not stop
 */
struct contigo_guard {
	struct device dev;
	struct cdev cdev;
	struct device *dma_dev;
	struct pci_dev *pdev;
	unsigned long is_open;
	struct contigo_registers window[CONTIGO_MAX_WINDOWS];
	int irq[CONTIGO_MAX_INTERRUPTS];
	u32 interrupts;
	struct reset_control *reset;
	bool can_reset;
	bool in_reset;
	struct contigo_power *power;
	u32 dma_bits;
	u32 default_dma_bits;
	unsigned int max_seg_size;
	unsigned long seg_boundary;
	size_t sync_bytes;
	bool iommu;
	bool coherent;
	bool dead;

	struct mutex lock;	/* the rest, the file's contents, dma_bits, can_reset, in_reset */
	struct contigo_file *file;
	struct contigo_kept *kept;
};

/**
 * struct contigo_piece - an entry of the mapped list
 * @offset_bytes: where in the buffer it begins
 * @addr: its bus address
 * @len_bytes: not 0
 *
 * Not joined with a neighbour whose address follows: the DMA API synchronises
 * within what it mapped as one.
 */
struct contigo_piece {
	u64 offset_bytes;
	dma_addr_t addr;
	size_t len_bytes;
};

/**
 * struct contigo_mapping - a dma-buf mapped for a guard's device
 * @handles: how many name it: imports of the file, and places in what is kept
 * @dmabuf: a reference
 * @attachment: static: it holds no pointer to this module; NULL where it is kept
 *	of a guard that is gone
 * @sgt: mapped; NULL with @attachment
 * @left: attached for a device that was unbound, to which it has a reference
 * @direction: DMA_BIDIRECTIONAL, or DMA_TO_DEVICE
 * @len_bytes: the buffer's; the pieces cover exactly this much
 * @segments: pieces, where those whose addresses follow each other count once
 * @pieces: how many
 * @piece: in the order of the buffer
 */
struct contigo_mapping {
	u32 handles;
	struct dma_buf *dmabuf;
	struct dma_buf_attachment *attachment;
	struct sg_table *sgt;
	bool left;
	enum dma_data_direction direction;
	u64 len_bytes;
	u32 segments;
	u32 pieces;
	struct contigo_piece piece[];
};

/**
 * struct contigo_stop - a program whose steps were checked
 * @count: not 0
 * @reg: the register of each step, mapped; NULL for ELSE, and while the device is unbound
 * @step: in order
 */
struct contigo_stop {
	u32 count;
	void __iomem *reg[CONTIGO_MAX_STEPS];
	struct contigo_step step[];
};

/**
 * struct contigo_held - what a file gave its device, and what takes it away
 * @node: in the list of what is kept
 * @stop: NULL where it is not armed
 * @imports: how many of @import are taken
 * @len_bytes: of all of them
 * @import: a handle is an index plus one; two handles may share a mapping
 *
 * Where the device has not stopped the whole of it is kept: that needs no memory.
 */
struct contigo_held {
	struct list_head node;
	struct contigo_stop *stop;
	u32 imports;
	u64 len_bytes;
	struct contigo_mapping *import[CONTIGO_MAX_IMPORTS];
};

/**
 * struct contigo_kept - what is kept for one device
 * @node: in the list of all
 * @is_bound: a guard has it
 * @bus: where to find the device again, by
 * @name: its name on @bus,
 * @kind: the name of such hardware: "compatible", or PCI's two numbers
 * @window: and its registers
 * @held: struct contigo_held, one for each file whose device did not stop
 * @buffers: imports in all of them
 * @len_bytes: of these
 * @awake: the guard's power was left up, once
 * @clocks: of a guard that is gone, left on, once; or NULL
 *
 * The guard's lock guards it while @is_bound, the list's otherwise.
 */
struct contigo_kept {
	struct list_head node;
	bool is_bound;
	const struct bus_type *bus;
	char *name;
	char *kind;
	struct contigo_registers window[CONTIGO_MAX_WINDOWS];
	struct list_head held;
	u32 buffers;
	u64 len_bytes;
	bool awake;
	struct contigo_power *clocks;
};

/**
 * struct contigo_interrupt - an interrupt of an open file
 * @file: whose it is
 * @irq: its number, 0 where it is not requested
 * @lock: guards @eventfd; taken by the handler
 * @eventfd: a reference, or NULL
 */
struct contigo_interrupt {
	struct contigo_file *file;
	int irq;
	spinlock_t lock;	/* eventfd */
	struct eventfd_ctx *eventfd;
};

/**
 * struct contigo_file - what one open of a guard holds
 * @guard: outlives the file
 * @gone: the file's end has come; set under the guard's lock, read anywhere
 * @held: the imports and the program; NULL after the end
 * @mastered: a program has stopped the PCI function, or a reset did
 * @inode: its mappings of registers alone belong to it
 * @ones: the page that they show after the end
 * @map_lock: guards @revoked: what a fault maps
 * @revoked: no fault maps registers any more
 * @touched: a fault has mapped registers, or the PCI function may master the bus
 * @around: the rest of a window's first and last page, so that nobody claims it
 * @can_mmap: windows that can be mapped, a bit for each
 * @interrupt: the first guard->interrupts of them
 * @masked: interrupts that are masked, a bit for each; set by the handlers
 * @pending: interrupts that came since the last read(), a bit for each
 * @wait: for @pending, and @gone
 */
struct contigo_file {
	struct contigo_guard *guard;
	bool gone;
	struct contigo_held *held;
	bool mastered;

	struct inode *inode;
	struct page *ones;
	struct mutex map_lock;	/* revoked */
	bool revoked;
	bool touched;
	struct resource *around[CONTIGO_MAX_WINDOWS][2];
	u32 can_mmap;

	struct contigo_interrupt interrupt[CONTIGO_MAX_INTERRUPTS];
	unsigned long masked;
	atomic_t pending;
	wait_queue_head_t wait;
};

#endif /* CONTIGO_INTERNAL_H */
