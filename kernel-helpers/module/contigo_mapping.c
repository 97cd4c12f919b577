// SPDX-License-Identifier: GPL-2.0
/*
 * One dma-buf, mapped for a guard's device: the device's reach, and the caches by
 * ranges.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/ioport.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "contigo_calls.h"
#include "contigo_compat.h"

/*
 * May the device use the buffer as it is mapped? A device that snoops needs no
 * sync, unless the DMA API put a bounce buffer in the memory's place: then a
 * user who trusts CONTIGO_INFO_COHERENT would read old data. Behind an IOMMU
 * there is nothing to ask.
 */
bool contigo_mapping_in_reach(struct contigo_guard *guard, const struct contigo_mapping *mapping)
{
	struct device *dev = guard->dma_dev;
	u64 highest = min_not_zero(DMA_BIT_MASK(guard->dma_bits), dev->bus_dma_limit);
	bool may_bounce = !guard->iommu && guard->coherent;
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
bool contigo_mapping_is_cached(struct contigo_guard *guard, const struct contigo_mapping *mapping)
{
	u32 i;

	for (i = 0; i < mapping->pieces; i++) {
		const struct contigo_piece *piece = &mapping->piece[i];
		phys_addr_t first = contigo_dma_to_phys(guard, piece->addr);
		phys_addr_t last = contigo_dma_to_phys(guard, piece->addr + piece->len_bytes - 1);

		if (!page_is_ram(PHYS_PFN(first)) || !page_is_ram(PHYS_PFN(last)))
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
static int contigo_map_error(struct contigo_guard *guard, int ret)
{
	if (ret != -ENOMEM && ret != -EIO)
		return ret;
	return !guard->iommu && dma_addressing_limited(guard->dma_dev) ? -ERANGE : ret;
}

struct contigo_mapping *contigo_mapping_new(struct contigo_guard *guard, struct dma_buf *dmabuf,
					    enum dma_data_direction direction)
{
	struct dma_buf_attachment *attachment;
	struct contigo_mapping *mapping;
	struct sg_table *sgt;
	int ret;

	attachment = dma_buf_attach(dmabuf, guard->dma_dev);
	if (IS_ERR(attachment))
		return ERR_CAST(attachment);

	sgt = contigo_dma_buf_map(attachment, direction);
	if (IS_ERR(sgt)) {
		ret = contigo_map_error(guard, PTR_ERR(sgt));
		goto detach;
	}

	ret = -ENOMEM;
	mapping = kvzalloc(struct_size(mapping, piece, sgt->nents), GFP_KERNEL_ACCOUNT);
	if (!mapping)
		goto unmap;
	mapping->dmabuf = dmabuf;
	mapping->attachment = attachment;
	mapping->sgt = sgt;
	mapping->direction = direction;
	ret = contigo_mapping_fill(mapping);
	if (ret)
		goto free;
	get_dma_buf(dmabuf);
	return mapping;

free:
	kvfree(mapping);
unmap:
	contigo_dma_buf_unmap(attachment, sgt, direction);
detach:
	dma_buf_detach(dmabuf, attachment);
	return ERR_PTR(ret);
}

/*
 * The device's driver goes, and the mapping stays as it is; more than once, too.
 * The attachment points to the device, so that one stays as well.
 */
void contigo_mapping_leave(struct contigo_mapping *mapping)
{
	if (!mapping->attachment || mapping->left)
		return;
	get_device(mapping->attachment->dev);
	mapping->left = true;
}

/* @dev is bound again: where it is that device itself, and not one of the same name. */
void contigo_mapping_return(struct contigo_mapping *mapping, struct device *dev)
{
	if (!mapping->left || mapping->attachment->dev != dev)
		return;
	mapping->left = false;
	put_device(dev);
}

/* The device is not to reach it any more, but the buffer stays; more than once, too. */
void contigo_mapping_detach(struct contigo_mapping *mapping)
{
	if (!mapping->attachment || mapping->left)
		return;
	contigo_dma_buf_unmap(mapping->attachment, mapping->sgt, mapping->direction);
	dma_buf_detach(mapping->dmabuf, mapping->attachment);
	mapping->attachment = NULL;
	mapping->sgt = NULL;
}

void contigo_mapping_put(struct contigo_mapping *mapping)
{
	if (--mapping->handles)
		return;
	contigo_mapping_detach(mapping);
	/* Nobody can unmap it for a device that is gone: buffer and device are lost. */
	if (!mapping->left)
		dma_buf_put(mapping->dmabuf);
	kvfree(mapping);
}

/*
 * @guard->sync_bytes at a time. Behind an IOMMU that is its smallest page:
 * dma_sync_single_*() looks up the first byte's physical address and goes on
 * from there. But a mapped entry may be many pages whose bus addresses alone
 * follow each other. Elsewhere it bounds how long the CPU is not given away.
 */
int contigo_mapping_sync(struct contigo_guard *guard, const struct contigo_mapping *mapping,
			 u64 offset_bytes, u64 len_bytes, u32 direction)
{
	const struct contigo_piece *piece = contigo_piece_at(mapping, offset_bytes);

	for (;;) {
		u64 within = offset_bytes - piece->offset_bytes;
		dma_addr_t addr = piece->addr + within;
		size_t part = guard->sync_bytes - (addr & (guard->sync_bytes - 1));

		part = min_t(u64, part, piece->len_bytes - within);
		part = min_t(u64, part, len_bytes);
		if (direction == CONTIGO_SYNC_FOR_CPU)
			dma_sync_single_for_cpu(guard->dma_dev, addr, part, mapping->direction);
		else
			dma_sync_single_for_device(guard->dma_dev, addr, part,
						   mapping->direction);

		len_bytes -= part;
		if (fatal_signal_pending(current))
			return -EINTR;
		if (READ_ONCE(guard->dead))
			return -ENODEV;
		cond_resched();
		if (!len_bytes)
			return 0;
		offset_bytes += part;
		if (within + part == piece->len_bytes)
			piece++;
	}
}
