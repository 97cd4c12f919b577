/* SPDX-License-Identifier: GPL-2.0 */
/*
 * contigo: one node for a device that user space drives. What the files of this
 * module share.
 *
 *	contigo_node.c		the module; a device bound to it: probe, remove, sleep, sysfs
 *	contigo_power.c		its clocks, its power domain, its reset lines
 *	contigo_dma.c		what the DMA API and the IOMMU say of it
 *	contigo_session.c	how a file begins and ends; its quarantine
 *	contigo_file.c		its calls
 *	contigo_memory.c	its calls about memory
 *	contigo_registers.c	its mappings of registers, and how they are revoked
 *	contigo_irq.c		its interrupts
 *	contigo_stop.c		its stop sequence
 *	contigo_own.c		memory that is allocated for the device
 *	contigo_import.c	dma-bufs of others
 *	contigo_kunit.c		tests of what needs no device, a module of its own
 *
 * A node has one file at most, and a file one session: its memory and its stop
 * sequence, which are put in quarantine as a whole. One mutex, the node's, guards
 * all three, for remove() has to shut out the file's calls in any case. User
 * memory is never touched under it, and no fault takes it, so that no page fault
 * can delay remove().
 *
 * The order of locks is: mmap_lock, the node's lock, the file's map_lock or a
 * dma-buf's reservation, the node's dma_lock. The last ones are also taken below
 * mmap_lock alone.
 */
#ifndef CONTIGO_INTERNAL_H
#define CONTIGO_INTERNAL_H

#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/dma-direction.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>

#include <uapi/contigo.h>

struct clk_bulk_data;
struct dma_buf;
struct dma_buf_attachment;
struct eventfd_ctx;
struct reset_control;
struct sg_table;

/* Reset lines of one device: no binding of a SoC has more. */
#define CONTIGO_MAX_RESETS	8

/* A handle of allocated memory is so far left in its offset for mmap(); windows are below. */
#define CONTIGO_HANDLE_SHIFT	35
#define CONTIGO_HANDLE_PAGES	BIT(CONTIGO_HANDLE_SHIFT - PAGE_SHIFT)

/* A window of registers, a reg entry. */
struct contigo_registers {
	phys_addr_t start;
	u64 len_bytes;		/* 0 where there is none */
	u64 mmap_offset;	/* a multiple of the page */
	bool answers;		/* all of it answers a read while the device is awake */
};

/* A device that masters memory, and its character device. */
struct contigo_node {
	struct device dev;	/* the character device's; its parent is dma_dev */
	struct cdev cdev;	/* has a reference to dev; an open file has one to it */
	struct device *dma_dev;	/* the device itself; a reference */
	unsigned long is_open;	/* one file; set until the last one's teardown is over */
	struct contigo_registers window[CONTIGO_MAX_WINDOWS];
	int irq[CONTIGO_MAX_INTERRUPTS];
	u32 interrupts;
	struct reset_control *reset[CONTIGO_MAX_RESETS];
	u32 resets;
	u32 pulses;		/* those that cannot be held, a bit for each */
	struct clk_bulk_data *clock;
	int clocks;
	u32 default_dma_bits;	/* as probe found them */
	bool iommu;		/* an IOMMU translates the device's addresses */
	bool is_translated;	/* they are not physical ones */
	bool coherent;		/* the device snoops */
	/*
	 * The device is being unbound; set without the lock. Who has seen it unset
	 * under the lock may touch the device until unlocking.
	 */
	bool dead;

	struct mutex dma_lock;	/* owns, and whether the DMA API has forgotten the device */
	struct list_head owns;	/* struct contigo_own that are allocated for it */
	atomic64_t charged_bytes;	/* all its memory, until it is given back */

	struct mutex lock;	/* what follows, and the session */
	struct contigo_file *file;	/* the open one, or NULL */
	struct address_space *mapping;	/* of the file's mappings, until its last close */
	bool in_reset;		/* lines are asserted, or may be: registers are not accessed */
	u32 dma_bits;
	struct list_head quarantine;	/* sessions of a device that has not stopped: it is awake */
	u32 quarantined;	/* buffers in it */
	u64 quarantined_bytes;
};

/* Memory that was allocated for a node's device. */
struct contigo_own {
	struct kref ref;	/* of its buffer, of mappings, of dma-bufs */
	struct contigo_node *node;	/* a reference */
	struct list_head entry;	/* in the node's list, until the DMA API forgets the device */
	struct mutex maps_lock;	/* the lists that attachments of its dma-bufs have */
	void *cpu;
	unsigned long pfn;	/* of its first page; the others follow */
	dma_addr_t addr;
	size_t len_bytes;	/* whole pages */
	u32 handle;
	bool is_coherent;	/* it needs no sync */
	bool is_lost;		/* it is never given back */
	atomic_t exports;	/* dma-bufs of it, which other devices may have */
	void *copy;		/* what mappings show after unbinding, or NULL */
};

/* What a handle names: memory of the node's own, or a mapped dma-buf. */
struct contigo_buffer {
	struct contigo_own *own;	/* a reference, or NULL */
	struct dma_buf *dmabuf;	/* a reference, or NULL */
	struct dma_buf_attachment *attachment;	/* static: it has no pointer to this module */
	struct sg_table *sgt;	/* mapped */
	enum dma_data_direction direction;	/* DMA_BIDIRECTIONAL or DMA_TO_DEVICE */
	bool may_bounce;	/* when it was mapped */
	u64 len_bytes;		/* the dma-buf's; the mapped list has at least this much */
};

/* A stop sequence whose steps were checked; count is not 0. */
struct contigo_stop {
	u32 count;
	void __iomem *reg[CONTIGO_MAX_STEPS];	/* of each step, mapped; NULL for ELSE */
	struct contigo_step step[];
};

/* What a file gave its device, and what takes it away. */
struct contigo_session {
	struct list_head entry;	/* in the quarantine */
	struct contigo_stop *stop;	/* NULL where it is not armed */
	u32 buffers;		/* how many of the table are taken */
	u64 len_bytes;		/* of all of them */
	struct contigo_buffer *buffer[CONTIGO_MAX_BUFFERS];	/* a handle is an index plus one */
};

/* An interrupt of an open file. */
struct contigo_interrupt {
	struct contigo_file *file;
	int irq;		/* 0 where it is not requested */
	spinlock_t lock;	/* eventfd, waited; taken by the handler */
	struct eventfd_ctx *eventfd;	/* a reference, or NULL */
	bool waited;		/* by a CONTIGO_WAIT, and then no eventfd is signalled */
};

/* What one open of a node holds; the node outlives it. */
struct contigo_file {
	struct contigo_node *node;
	bool gone;		/* its teardown has begun; set under the node's lock */
	struct contigo_session *session;	/* NULL after the teardown */

	struct page *ones;	/* what mapped registers show after the teardown */
	struct mutex map_lock;	/* revoked: what a fault maps */
	bool revoked;		/* no fault maps registers any more */
	bool touched;		/* a fault has mapped registers */

	struct contigo_interrupt interrupt[CONTIGO_MAX_INTERRUPTS];
	unsigned long masked;	/* a bit for each; set by the handlers */
	atomic_t pending;	/* those that no read() and no wait returned, a bit for each */
	wait_queue_head_t wait;	/* for pending, and gone */
};

/* contigo_node.c */
extern bool contigo_unprivileged;
extern uint contigo_max_mib;

/* contigo_power.c */
int contigo_power_find(struct contigo_node *node);
void contigo_power_put(struct contigo_node *node);
int contigo_power_up(struct contigo_node *node);
void contigo_power_down(struct contigo_node *node);
int contigo_reset_find(struct contigo_node *node);
int contigo_reset_lines(struct contigo_node *node, bool hold);

/* contigo_dma.c */
int contigo_dma_set_up(struct contigo_node *node);
void contigo_dma_restore(struct contigo_node *node);
int contigo_dma_set_bits(struct contigo_node *node, u32 bits);
u32 contigo_dma_flags(const struct contigo_node *node);

/* contigo_session.c: what takes a node or a session has the node's lock held */
int contigo_open(struct inode *inode, struct file *filp);
int contigo_release(struct inode *inode, struct file *filp);
int contigo_node_lock(struct contigo_node *node);
int contigo_node_reset(struct contigo_node *node);
bool contigo_node_end(struct contigo_node *node);
int contigo_file_reset(struct contigo_file *file);
void contigo_quarantine_disarm(struct contigo_node *node);
u64 contigo_quarantine_discard(struct contigo_node *node);

/* contigo_file.c */
union contigo_arg {
	struct contigo_dma_bits dma_bits;
	struct contigo_alloc alloc;
	struct contigo_export export;
	struct contigo_import import;
	struct contigo_segments segments;
	struct contigo_release release;
	struct contigo_sync sync;
	struct contigo_stop_sequence stop;
	struct contigo_unmask unmask;
	struct contigo_eventfd eventfd;
	struct contigo_wait wait;
};

extern const struct file_operations contigo_fops;
int contigo_file_lock(struct contigo_file *file);

/* contigo_memory.c */
int contigo_set_dma_bits(struct contigo_file *file, union contigo_arg *arg);
int contigo_alloc(struct contigo_file *file, union contigo_arg *arg);
int contigo_import(struct contigo_file *file, union contigo_arg *arg);
int contigo_get_segments(struct contigo_file *file, union contigo_arg *arg);
int contigo_release_memory(struct contigo_file *file, union contigo_arg *arg);
int contigo_sync(struct contigo_file *file, union contigo_arg *arg);
struct contigo_buffer *contigo_buffer_of(struct contigo_file *file, u32 handle);
void contigo_session_free(struct contigo_node *node, struct contigo_session *session, bool is_lost);

/* contigo_registers.c */
bool contigo_registers_can_mmap(const struct contigo_registers *window);
void contigo_registers_pause(struct contigo_file *file);
int contigo_registers_mmap(struct file *filp, struct vm_area_struct *vma);
int contigo_mprotect(struct vm_area_struct *vma, unsigned long start, unsigned long end,
		     unsigned long flags);

/* contigo_irq.c */
int contigo_irq_begin(struct contigo_file *file);
void contigo_irq_end(struct contigo_file *file);
int contigo_unmask(struct contigo_file *file, union contigo_arg *arg);
int contigo_wait(struct contigo_file *file, union contigo_arg *arg);
int contigo_set_eventfd(struct contigo_file *file, union contigo_arg *arg);
ssize_t contigo_read(struct file *filp, char __user *to, size_t len, loff_t *pos);
__poll_t contigo_poll(struct file *filp, poll_table *wait);

/* contigo_stop.c */
struct contigo_stop *contigo_stop_load(const struct contigo_registers *window, bool is_trusted,
				       const struct contigo_step __user *from, u32 count);
int contigo_stop_check(const struct contigo_registers *window, bool is_trusted,
		       const struct contigo_step *step, u32 count);
void contigo_stop_free(struct contigo_stop *stop);
int contigo_stop_run(const struct contigo_stop *stop, bool writes, u32 *at, u32 *value);

/* contigo_own.c */
struct contigo_own *contigo_own_new(struct contigo_node *node, size_t len_bytes, bool is_coherent);
void contigo_own_put(struct contigo_own *own);
void contigo_own_lose(struct contigo_own *own);
void contigo_own_forget(struct contigo_node *node);
int contigo_own_sync(struct contigo_own *own, u64 offset_bytes, u64 len_bytes, u32 flags);
int contigo_own_mmap(struct contigo_own *own, struct vm_area_struct *vma, unsigned long first);
struct dma_buf *contigo_own_export(struct contigo_buffer *buffer);
bool contigo_own_is_of(const struct dma_buf *dmabuf, const struct contigo_node *node);

/* contigo_import.c: with the node's lock held */
struct contigo_buffer *contigo_import_new(struct contigo_node *node, struct dma_buf *dmabuf,
					  enum dma_data_direction direction);
void contigo_import_free(struct contigo_buffer *buffer, bool is_lost);
u32 contigo_segments(const struct sg_table *sgt, u64 len_bytes, u64 offset_bytes,
		     struct contigo_segment *segment, u32 room);

#endif /* CONTIGO_INTERNAL_H */
