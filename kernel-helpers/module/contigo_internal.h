/* SPDX-License-Identifier: GPL-2.0 */
/*
 * contigo: memory for a device that user space drives. The parts that the files
 * of this module share.
 *
 *	contigo_main.c		the module, its class, its numbers
 *	contigo_port.c		a device bound to us, and the platform's way to it
 *	contigo_pci.c		PCI's way
 *	contigo_file.c		an open port: the ioctls, and how it ends
 *	contigo_mapping.c	one dma-buf: attached, mapped, synchronised
 *	contigo_import.c	a file's dma-bufs by their handles; those that are kept
 *	contigo_program.c	what stops the device
 *
 * The order of ownership is port, file, import. One mutex, the port's, guards
 * what changes in all three: a port has one file at most, and remove() has to
 * shut out the file's calls in any case. User memory is never touched under it,
 * so that no page fault can delay remove().
 */
#ifndef CONTIGO_INTERNAL_H
#define CONTIGO_INTERNAL_H

#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/io.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/types.h>

#include <uapi/contigo.h>

struct contigo_mapping;
struct dma_buf;
struct platform_device;
struct platform_driver;

/**
 * struct contigo_window - registers of a port: a reg entry, or a BAR
 * @base: NULL where there is none
 * @len_bytes: 0 where there is none
 */
struct contigo_window {
	void __iomem *base;
	resource_size_t len_bytes;
};

/**
 * struct contigo_port - a device that masters memory, and its character device
 * @dev: the character device's; its parent is @dma_dev
 * @cdev: holds a reference to @dev, and an open file one to it: the port outlives both
 * @dma_dev: the device that masters memory; a reference
 * @pdev: the same, or NULL where it is not PCI
 * @is_open: one file at a time; set until the last one's end is over
 * @window: its registers; mapped until remove()
 * @dma_bits: address lines of the device, as probe found or the file said
 * @default_dma_bits: as probe found
 * @max_seg_size: as probe found
 * @seg_boundary: as probe found
 * @sync_bytes: the most that one call of the DMA API may synchronise
 * @iommu: an IOMMU translates the device's addresses
 * @dead: the device is being unbound; set without the lock. Who has seen it
 *	unset under the lock may touch the device until unlocking.
 * @lock: guards what follows, the file's contents, and @dma_bits
 * @file: the open file, or NULL
 * @kept: mappings whose device did not stop
 */
struct contigo_port {
	struct device dev;
	struct cdev cdev;
	struct device *dma_dev;
	struct pci_dev *pdev;
	unsigned long is_open;
	struct contigo_window window[CONTIGO_MAX_WINDOWS];
	u32 dma_bits;
	u32 default_dma_bits;
	unsigned int max_seg_size;
	unsigned long seg_boundary;
	size_t sync_bytes;
	bool iommu;
	bool dead;

	struct mutex lock;	/* the rest, the file's contents, and dma_bits */
	struct contigo_file *file;
	struct list_head kept;
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
 * struct contigo_mapping - a dma-buf mapped for a port's device
 * @node: in the list of what is kept
 * @handles: how many name it; the file's imports and, if it is kept, the kernel's
 * @dmabuf: a reference
 * @attachment: static; it holds no pointer to this module
 * @sgt: mapped, DMA_BIDIRECTIONAL; NULL where it is kept of a port that is gone, and was unmapped
 * @len_bytes: the buffer's; the pieces cover exactly this much
 * @segments: pieces, where those whose addresses follow each other count once
 * @pieces: how many
 * @piece: in the order of the buffer
 */
struct contigo_mapping {
	struct list_head node;
	u32 handles;
	struct dma_buf *dmabuf;
	struct dma_buf_attachment *attachment;
	struct sg_table *sgt;
	u64 len_bytes;
	u32 segments;
	u32 pieces;
	struct contigo_piece piece[];
};

/**
 * struct contigo_stop - a program whose steps were checked
 */
struct contigo_stop {
	u32 count;
	struct contigo_step step[];
};

/**
 * struct contigo_file - what one open of a port holds
 * @port: outlives the file
 * @stop: NULL where it is not armed
 * @imports: how many of @import are taken
 * @import: a handle is an index plus one; two handles may share a mapping
 */
struct contigo_file {
	struct contigo_port *port;
	struct contigo_stop *stop;
	u32 imports;
	struct contigo_mapping *import[CONTIGO_MAX_IMPORTS];
};

/* contigo_main.c */
extern struct class contigo_class;
int contigo_devt_get(dev_t *devt);
void contigo_devt_put(dev_t devt);

/* contigo_port.c */
extern struct platform_driver contigo_platform_driver;
void contigo_platform_remove(struct platform_device *pdev);
struct contigo_port *contigo_port_new(struct device *dma_dev);
int contigo_port_add(struct contigo_port *port);
void contigo_port_remove(struct contigo_port *port);
void contigo_port_shutdown(struct contigo_port *port);
void contigo_port_tear_down(struct contigo_port *port);
u32 contigo_port_flags(const struct contigo_port *port);
int contigo_port_set_dma_bits(struct contigo_port *port, u32 bits);
int contigo_port_begin(struct contigo_port *port);
void contigo_port_end(struct contigo_port *port, bool stopped);

/* contigo_pci.c */
#ifdef CONFIG_PCI
int contigo_pci_register(void);
void contigo_pci_unregister(void);
void contigo_pci_set_master(struct pci_dev *pdev, bool on);
bool contigo_pci_is_gone(const struct pci_dev *pdev);
#else
static inline int contigo_pci_register(void)
{
	return 0;
}

static inline void contigo_pci_unregister(void) { }
static inline void contigo_pci_set_master(struct pci_dev *pdev, bool on) { }
static inline bool contigo_pci_is_gone(const struct pci_dev *pdev)
{
	return false;
}

#endif

/* contigo_file.c */
extern const struct file_operations contigo_fops;
void contigo_file_end(struct contigo_file *file);

/* contigo_mapping.c: all with the port's lock held */
struct contigo_mapping *contigo_mapping_new(struct contigo_port *port, struct dma_buf *dmabuf);
void contigo_mapping_put(struct contigo_mapping *mapping);
bool contigo_mapping_in_reach(struct contigo_port *port, const struct contigo_mapping *mapping);
bool contigo_mapping_is_cached(struct contigo_port *port, const struct contigo_mapping *mapping);
int contigo_mapping_sync(struct contigo_port *port, const struct contigo_mapping *mapping,
			 u64 offset_bytes, u64 len_bytes, u32 direction);

/* contigo_import.c: all with the port's lock held */
int contigo_import(struct contigo_file *file, struct dma_buf *dmabuf, struct contigo_import *arg);
int contigo_import_release(struct contigo_file *file, u32 handle);
int contigo_import_segments(struct contigo_file *file, u32 handle, u32 first,
			    struct contigo_segment *segment, u32 *count);
int contigo_import_sync(struct contigo_file *file, const struct contigo_range *range, u32 count);
void contigo_import_release_all(struct contigo_file *file);
void contigo_import_keep_all(struct contigo_file *file, u32 *buffers, u64 *bytes);
void contigo_import_unmap_kept(struct contigo_port *port);
void contigo_import_forget_kept(struct contigo_port *port);

/* contigo_program.c */
struct contigo_stop *contigo_stop_load(struct contigo_port *port,
				       const struct contigo_step __user *from, u32 count);
int contigo_stop_run(struct contigo_port *port, const struct contigo_stop *stop,
		     u32 *at, u32 *value);

#endif /* CONTIGO_INTERNAL_H */
