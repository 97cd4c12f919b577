// SPDX-License-Identifier: GPL-2.0
/*
 * A dma-buf of another exporter, mapped for a node's device. Its caches are its
 * exporter's business.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "contigo_compat.h"
#include "contigo_internal.h"

/*
 * Lists runs of bus addresses, each as long as it can be, from @offset_bytes on. Of the
 * mapped list @len_bytes count: some exporters map whole pages or more. Without
 * @segment they are counted. Returns how many: 0 where @offset_bytes is past the end.
 */
u32 contigo_segments(const struct sg_table *sgt, u64 len_bytes, u64 offset_bytes,
		     struct contigo_segment *segment, u32 room)
{
	u64 begin = 0, next = 0;
	struct scatterlist *sg;
	unsigned int i;
	u32 count = 0;

	for_each_sgtable_dma_sg(sgt, sg, i) {
		u64 end = min_t(u64, begin + sg_dma_len(sg), len_bytes);
		u64 from = max(begin, offset_bytes);
		u64 addr = sg_dma_address(sg) + (from - begin);
		bool goes_on = count && addr == next;

		begin += sg_dma_len(sg);
		if (from >= end)
			continue;
		if (!goes_on && count == room)
			break;
		if (!goes_on)
			count++;
		if (segment && goes_on)
			segment[count - 1].len_bytes += end - from;
		else if (segment)
			segment[count - 1] = (struct contigo_segment){ addr, end - from };
		next = addr + (end - from);
	}
	return count;
}

/*
 * May the device use it as it is mapped? All of it is mapped. A device that
 * snoops needs no sync, unless the DMA API put a bounce buffer in the memory's
 * place: then a user who trusts CONTIGO_INFO_COHERENT would read old data.
 */
static bool contigo_import_fits(const struct contigo_node *node, const struct sg_table *sgt,
				u64 len_bytes)
{
	bool may_bounce = !node->iommu && node->coherent;
	struct scatterlist *sg;
	u64 mapped_bytes = 0;
	unsigned int i;

	for_each_sgtable_dma_sg(sgt, sg, i) {
		if (may_bounce && dma_need_sync(node->dma_dev, sg_dma_address(sg)))
			return false;
		mapped_bytes += sg_dma_len(sg);
	}
	return len_bytes && mapped_bytes >= len_bytes;
}

/*
 * Maps a dma-buf for the device, which is charged and not mapped for it yet. For
 * contigo_import_free(), or an ERR_PTR().
 */
struct contigo_buffer *contigo_import_new(struct contigo_node *node, struct dma_buf *dmabuf,
					  enum dma_data_direction direction)
{
	struct contigo_buffer *buffer;
	int ret;

	/* dma_buf_attach() maps those of some exporters, and for both directions. */
	if (direction == DMA_TO_DEVICE && node->iommu && dmabuf->ops->pin)
		return ERR_PTR(-EOPNOTSUPP);
	buffer = kzalloc(sizeof(*buffer), GFP_KERNEL_ACCOUNT);
	if (!buffer)
		return ERR_PTR(-ENOMEM);
	buffer->attachment = dma_buf_attach(dmabuf, node->dma_dev);
	if (IS_ERR(buffer->attachment)) {
		ret = PTR_ERR(buffer->attachment);
		goto free;
	}
	buffer->sgt = contigo_dma_buf_map(buffer->attachment, direction);
	if (IS_ERR(buffer->sgt)) {
		ret = PTR_ERR(buffer->sgt);
		goto detach;
	}
	ret = -ERANGE;
	if (!contigo_import_fits(node, buffer->sgt, dmabuf->size))
		goto unmap;
	get_dma_buf(dmabuf);
	buffer->dmabuf = dmabuf;
	buffer->direction = direction;
	buffer->may_bounce = dma_addressing_limited(node->dma_dev);
	buffer->len_bytes = dmabuf->size;
	return buffer;

unmap:
	contigo_dma_buf_unmap(buffer->attachment, buffer->sgt, direction);
detach:
	dma_buf_detach(dmabuf, buffer->attachment);
free:
	kfree(buffer);
	return ERR_PTR(ret);
}

/*
 * Unmaps a dma-buf. Where it is lost the device may go on writing to it: it keeps its
 * reference, and is never freed. Two kinds stay mapped too, for nothing else
 * is right with them. One may go through a bounce buffer: unmapping would give
 * that to others. The other is pinned by being attached: its exporter would move
 * it, and give its pages to others.
 */
void contigo_import_free(struct contigo_buffer *buffer, bool is_lost)
{
	struct device *dev = buffer->attachment->dev;

	if (is_lost && (buffer->may_bounce || buffer->dmabuf->ops->pin)) {
		/* The attachment points to it. */
		get_device(dev);
	} else {
		contigo_dma_buf_unmap(buffer->attachment, buffer->sgt, buffer->direction);
		dma_buf_detach(buffer->dmabuf, buffer->attachment);
	}
	if (!is_lost)
		dma_buf_put(buffer->dmabuf);
	kfree(buffer);
}
