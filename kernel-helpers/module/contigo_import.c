// SPDX-License-Identifier: GPL-2.0
/*
 * dma-bufs: attached, mapped, synchronised by ranges; and kept where the device
 * may still write.
 */
#include <linux/dma-buf.h>
#include <linux/dma-direct.h>
#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>
#include <linux/iommu.h>
#include <linux/ioport.h>
#include <linux/kmemleak.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "contigo_internal.h"
#include "contigo_compat.h"

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

/*
 * The mappings that are kept of ports that are gone. Nobody takes anything out:
 * the list only says that they are not lost by mistake.
 */
static LIST_HEAD(contigo_kept);
static DEFINE_MUTEX(contigo_kept_lock);

/*
 * May the device use the buffer as it is mapped? A device that snoops needs no
 * sync, unless the DMA API put a bounce buffer in the memory's place: then a
 * user who trusts CONTIGO_INFO_COHERENT would read old data. Behind an IOMMU
 * there is nothing to ask.
 */
static bool contigo_mapping_in_reach(struct contigo_port *port,
				     const struct contigo_mapping *mapping)
{
	struct device *dev = port->dma_dev;
	u64 highest = min_not_zero(DMA_BIT_MASK(port->dma_bits), dev->bus_dma_limit);
	bool may_bounce = !port->iommu && dev_is_dma_coherent(dev);
	u32 i;

	for (i = 0; i < mapping->pieces; i++) {
		const struct contigo_piece *piece = &mapping->piece[i];
		u64 last;

		if (check_add_overflow((u64)piece->addr, (u64)piece->len_bytes - 1, &last) ||
		    last > highest)
			return false;
		if (may_bounce && dma_need_sync(dev, piece->addr))
			return false;
	}
	return true;
}

/*
 * Is there something to maintain? A buffer out of a pool that the kernel does
 * not map (no-map) is uncached for everybody; to the kernel's cache maintenance
 * its address is none. An exporter maps it without being asked to maintain it.
 */
static bool contigo_mapping_is_cached(struct contigo_port *port,
				      const struct contigo_mapping *mapping)
{
	struct device *dev = port->dma_dev;
	struct iommu_domain *domain = port->iommu ? iommu_get_domain_for_dev(dev) : NULL;
	u32 i;

	for (i = 0; i < mapping->pieces; i++) {
		dma_addr_t addr = mapping->piece[i].addr;
		phys_addr_t phys = dma_to_phys(dev, addr);

		if (domain)
			phys = iommu_iova_to_phys(domain, addr);
		if (!page_is_ram(PHYS_PFN(phys)))
			return false;
	}
	return true;
}

/*
 * Copies the mapped list up to the buffer's length: some exporters map whole
 * pages or more.
 */
static int contigo_mapping_fill(struct contigo_mapping *mapping)
{
	u64 len_bytes = mapping->dmabuf->size;
	u64 offset_bytes = 0;
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_dma_sg(mapping->sgt, sg, i) {
		struct contigo_piece *piece = &mapping->piece[mapping->pieces];

		if (offset_bytes == len_bytes)
			break;
		if (!sg_dma_len(sg))
			continue;
		piece->offset_bytes = offset_bytes;
		piece->addr = sg_dma_address(sg);
		piece->len_bytes = min_t(u64, sg_dma_len(sg), len_bytes - offset_bytes);
		if (!mapping->pieces ||
		    (u64)piece[-1].addr + piece[-1].len_bytes != piece->addr)
			mapping->segments++;
		offset_bytes += piece->len_bytes;
		mapping->pieces++;
	}
	if (!len_bytes || offset_bytes != len_bytes)
		return -ERANGE;
	mapping->len_bytes = len_bytes;
	return 0;
}

/*
 * An exporter passes on that the DMA API did not map, but not why, and under
 * various names. Where some memory is out of the device's reach, this was.
 */
static int contigo_map_error(struct contigo_port *port, int ret)
{
	if (ret != -ENOMEM && ret != -EIO)
		return ret;
	return !port->iommu && dma_addressing_limited(port->dma_dev) ? -ERANGE : ret;
}

static struct contigo_mapping *contigo_mapping_new(struct contigo_port *port,
						   struct dma_buf *dmabuf)
{
	struct dma_buf_attachment *attachment;
	struct contigo_mapping *mapping;
	struct sg_table *sgt;
	int ret;

	attachment = dma_buf_attach(dmabuf, port->dma_dev);
	if (IS_ERR(attachment))
		return ERR_CAST(attachment);

	sgt = contigo_dma_buf_map(attachment, DMA_BIDIRECTIONAL);
	if (IS_ERR(sgt)) {
		ret = contigo_map_error(port, PTR_ERR(sgt));
		goto detach;
	}

	ret = -ENOMEM;
	mapping = kvzalloc(struct_size(mapping, piece, sgt->nents), GFP_KERNEL_ACCOUNT);
	if (!mapping)
		goto unmap;
	INIT_LIST_HEAD(&mapping->node);
	mapping->dmabuf = dmabuf;
	mapping->attachment = attachment;
	mapping->sgt = sgt;
	ret = contigo_mapping_fill(mapping);
	if (ret)
		goto free;
	get_dma_buf(dmabuf);
	return mapping;

free:
	kvfree(mapping);
unmap:
	contigo_dma_buf_unmap(attachment, sgt, DMA_BIDIRECTIONAL);
detach:
	dma_buf_detach(dmabuf, attachment);
	return ERR_PTR(ret);
}

static void contigo_mapping_put(struct contigo_mapping *mapping)
{
	if (--mapping->handles)
		return;
	contigo_dma_buf_unmap(mapping->attachment, mapping->sgt, DMA_BIDIRECTIONAL);
	dma_buf_detach(mapping->dmabuf, mapping->attachment);
	dma_buf_put(mapping->dmabuf);
	kvfree(mapping);
}

/*
 * A buffer that is imported twice is mapped once: the DMA API does not support
 * mappings that overlap, and CONFIG_DMA_API_DEBUG says so. The same for one
 * that is kept, as long as the port is bound.
 */
static struct contigo_mapping *contigo_mapping_find(struct contigo_file *file,
						    const struct dma_buf *dmabuf)
{
	struct contigo_mapping *mapping;
	u32 i;

	for (i = 0; i < CONTIGO_MAX_IMPORTS; i++) {
		mapping = file->import[i];
		if (mapping && mapping->dmabuf == dmabuf)
			return mapping;
	}
	list_for_each_entry(mapping, &file->port->kept, node) {
		if (mapping->dmabuf == dmabuf)
			return mapping;
	}
	return NULL;
}

static struct contigo_mapping *contigo_import_get(struct contigo_file *file, u32 handle)
{
	u32 i = handle - 1;

	if (i >= CONTIGO_MAX_IMPORTS)
		return NULL;
	return file->import[array_index_nospec(i, CONTIGO_MAX_IMPORTS)];
}

/* The piece that holds @offset_bytes, which is within the buffer. */
static const struct contigo_piece *contigo_piece_at(const struct contigo_mapping *mapping,
						    u64 offset_bytes)
{
	u32 low = 0, high = mapping->pieces - 1;

	while (low < high) {
		u32 middle = low + (high - low + 1) / 2;

		if (mapping->piece[middle].offset_bytes <= offset_bytes)
			low = middle;
		else
			high = middle - 1;
	}
	return &mapping->piece[low];
}

/*
 * @port->sync_bytes at a time. Behind an IOMMU that is its smallest page:
 * dma_sync_single_*() looks up the first byte's physical address and goes on
 * from there. But a mapped entry may be many pages whose bus addresses alone
 * follow each other. Elsewhere it bounds how long the CPU is not given away.
 */
static int contigo_mapping_sync(struct contigo_port *port, const struct contigo_mapping *mapping,
				u64 offset_bytes, u64 len_bytes, u32 direction)
{
	const struct contigo_piece *piece = contigo_piece_at(mapping, offset_bytes);

	for (;;) {
		u64 within = offset_bytes - piece->offset_bytes;
		dma_addr_t addr = piece->addr + within;
		size_t part = port->sync_bytes - (addr & (port->sync_bytes - 1));

		part = min_t(u64, part, piece->len_bytes - within);
		part = min_t(u64, part, len_bytes);
		if (direction == CONTIGO_SYNC_FOR_CPU)
			dma_sync_single_for_cpu(port->dma_dev, addr, part, DMA_BIDIRECTIONAL);
		else
			dma_sync_single_for_device(port->dma_dev, addr, part, DMA_BIDIRECTIONAL);

		len_bytes -= part;
		if (fatal_signal_pending(current))
			return -EINTR;
		if (READ_ONCE(port->dead))
			return -ENODEV;
		cond_resched();
		if (!len_bytes)
			return 0;
		offset_bytes += part;
		if (within + part == piece->len_bytes)
			piece++;
	}
}

/**
 * contigo_import - map a dma-buf for the port's device and give it a handle
 * @file: that imports it
 * @dmabuf: the buffer to import; the caller keeps its reference
 * @arg: in: flags; out: everything else except for the fd
 *
 * Return: 0, or what the header says of CONTIGO_IMPORT.
 */
int contigo_import(struct contigo_file *file, struct dma_buf *dmabuf, struct contigo_import *arg)
{
	struct contigo_port *port = file->port;
	struct contigo_mapping *mapping;
	u32 i = 0;
	int ret;

	lockdep_assert_held(&port->lock);
	while (i < CONTIGO_MAX_IMPORTS && file->import[i])
		i++;
	if (i == CONTIGO_MAX_IMPORTS)
		return -ENOSPC;

	mapping = contigo_mapping_find(file, dmabuf) ?: contigo_mapping_new(port, dmabuf);
	if (IS_ERR(mapping))
		return PTR_ERR(mapping);
	mapping->handles++;

	ret = -ERANGE;
	if (!contigo_mapping_in_reach(port, mapping))
		goto put;
	if (arg->flags & CONTIGO_IMPORT_CONTIGUOUS && mapping->segments != 1)
		goto put;
	ret = -EOPNOTSUPP;
	if (!dev_is_dma_coherent(port->dma_dev) && !contigo_mapping_is_cached(port, mapping))
		goto put;
	/*
	 * Mapping cleaned the caches, unless the exporter asked it not to. Not
	 * again where it is mapped already: over a bounce buffer that would put
	 * old data in the place of what the device wrote.
	 */
	ret = 0;
	if (mapping->handles == 1)
		ret = contigo_mapping_sync(port, mapping, 0, mapping->len_bytes,
					   CONTIGO_SYNC_FOR_DEVICE);
	if (ret)
		goto put;

	file->import[i] = mapping;
	file->imports++;
	arg->handle = i + 1;
	arg->segments = mapping->segments;
	arg->addr = mapping->piece[0].addr;
	arg->len_bytes = mapping->len_bytes;
	return 0;

put:
	contigo_mapping_put(mapping);
	return ret;
}

int contigo_import_release(struct contigo_file *file, u32 handle)
{
	struct contigo_mapping *mapping = contigo_import_get(file, handle);

	lockdep_assert_held(&file->port->lock);
	if (!mapping)
		return -ENOENT;
	file->import[handle - 1] = NULL;
	file->imports--;
	contigo_mapping_put(mapping);
	return 0;
}

/**
 * contigo_import_segments - list the runs of bus addresses of an import
 * @file: whose import it is
 * @handle: which
 * @first: the number of the first run that is wanted
 * @segment: room for @count of them
 * @count: in: how many fit; out: how many there were
 *
 * Return: 0, or -ENOENT.
 */
int contigo_import_segments(struct contigo_file *file, u32 handle, u32 first,
			    struct contigo_segment *segment, u32 *count)
{
	struct contigo_mapping *mapping = contigo_import_get(file, handle);
	u32 room = *count;
	u64 next = 0;
	u32 run = 0;
	u32 i;

	lockdep_assert_held(&file->port->lock);
	if (!mapping)
		return -ENOENT;

	*count = 0;
	for (i = 0; i < mapping->pieces; i++) {
		const struct contigo_piece *piece = &mapping->piece[i];

		if (!i || piece->addr != next)
			run++;
		next = (u64)piece->addr + piece->len_bytes;
		/* run counts from 1 here */
		if (run <= first)
			continue;
		if (run - first > room)
			break;
		if (run - first > *count) {
			segment[*count].addr = piece->addr;
			segment[*count].len_bytes = 0;
			++*count;
		}
		segment[*count - 1].len_bytes += piece->len_bytes;
	}
	return 0;
}

static int contigo_range_check(struct contigo_file *file, const struct contigo_range *range)
{
	const struct contigo_mapping *mapping = contigo_import_get(file, range->handle);
	u64 end;

	if (range->flags != CONTIGO_SYNC_FOR_CPU && range->flags != CONTIGO_SYNC_FOR_DEVICE)
		return -EINVAL;
	if (!mapping)
		return -ENOENT;
	if (!range->len_bytes ||
	    check_add_overflow(range->offset_bytes, range->len_bytes, &end) ||
	    end > mapping->len_bytes)
		return -EINVAL;
	return 0;
}

/**
 * contigo_import_sync - synchronise ranges, after all of them were checked
 * @file: whose imports they are of
 * @range: in the kernel's memory
 * @count: how many
 *
 * Return: 0, or what the header says of CONTIGO_SYNC.
 */
int contigo_import_sync(struct contigo_file *file, const struct contigo_range *range, u32 count)
{
	u32 i;
	int ret;

	lockdep_assert_held(&file->port->lock);
	for (i = 0; i < count; i++) {
		ret = contigo_range_check(file, &range[i]);
		if (ret)
			return ret;
	}
	for (i = 0; i < count; i++) {
		ret = contigo_mapping_sync(file->port, contigo_import_get(file, range[i].handle),
					   range[i].offset_bytes, range[i].len_bytes,
					   range[i].flags);
		if (ret)
			return ret;
	}
	return 0;
}

/* The device has stopped. */
void contigo_import_release_all(struct contigo_file *file)
{
	u32 i;

	lockdep_assert_held(&file->port->lock);
	for (i = 0; i < CONTIGO_MAX_IMPORTS; i++) {
		if (file->import[i])
			contigo_mapping_put(file->import[i]);
		file->import[i] = NULL;
	}
	file->imports = 0;
}

/**
 * contigo_import_keep_all - the device has not stopped: never unmap what it was given
 * @file: whose imports they are
 * @buffers: how many are kept that were not before
 * @bytes: how long they are
 *
 * Each holds its dma-buf, and with it the exporter's module, and the device.
 * None of them refers to this module's code: a static attachment has no
 * callbacks. So the module may be unloaded, and what is kept stays as it is.
 */
void contigo_import_keep_all(struct contigo_file *file, u32 *buffers, u64 *bytes)
{
	struct contigo_port *port = file->port;
	u32 i;

	lockdep_assert_held(&port->lock);
	*buffers = 0;
	*bytes = 0;
	for (i = 0; i < CONTIGO_MAX_IMPORTS; i++) {
		struct contigo_mapping *mapping = file->import[i];

		file->import[i] = NULL;
		if (!mapping)
			continue;
		if (!list_empty(&mapping->node)) {
			contigo_mapping_put(mapping);
			continue;
		}
		/* The file's handle becomes the list's. */
		list_add_tail(&mapping->node, &port->kept);
		get_device(port->dma_dev);
		kmemleak_not_leak(mapping);
		++*buffers;
		*bytes += mapping->len_bytes;
	}
	file->imports = 0;
}

/**
 * contigo_import_unmap_kept - the DMA API is about to forget the device
 * @port: is being unbound
 *
 * An exporter may synchronise whatever is mapped, for whoever asks: with a
 * device whose DMA operations and offsets are gone it would take a bus address
 * for a physical one. The attachment and the buffer's reference stay, and with
 * them the pages; behind an IOMMU the device does not reach them any more.
 * Where it may write into a bounce buffer, which unmapping would give to
 * others, that stays mapped: there nothing else is right either.
 */
void contigo_import_unmap_kept(struct contigo_port *port)
{
	struct contigo_mapping *mapping;

	lockdep_assert_held(&port->lock);
	if (!port->iommu && dma_addressing_limited(port->dma_dev))
		return;
	list_for_each_entry(mapping, &port->kept, node) {
		contigo_dma_buf_unmap(mapping->attachment, mapping->sgt, DMA_BIDIRECTIONAL);
		mapping->sgt = NULL;
	}
}

/* The port goes, what it kept does not. */
void contigo_import_forget_kept(struct contigo_port *port)
{
	mutex_lock(&contigo_kept_lock);
	list_splice_tail_init(&port->kept, &contigo_kept);
	mutex_unlock(&contigo_kept_lock);
}
