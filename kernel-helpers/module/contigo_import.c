// SPDX-License-Identifier: GPL-2.0
/*
 * A file's imports, by their handles; and those that are kept where the device
 * may still write.
 */
#include <linux/dma-buf.h>
#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>
#include <linux/kmemleak.h>
#include <linux/nospec.h>
#include <linux/overflow.h>

#include "contigo_internal.h"
#include "contigo_compat.h"

/*
 * The mappings that are kept of ports that are gone. Nobody takes anything out:
 * the list only says that they are not lost by mistake.
 */
static LIST_HEAD(contigo_kept);
static DEFINE_MUTEX(contigo_kept_lock);

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
