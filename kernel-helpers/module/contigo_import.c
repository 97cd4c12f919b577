// SPDX-License-Identifier: GPL-2.0
/*
 * A file's imports, by their handles.
 */
#include <linux/dma-buf.h>
#include <linux/jiffies.h>
#include <linux/nospec.h>
#include <linux/slab.h>

#include "contigo_calls.h"
#include "contigo_compat.h"

/*
 * A buffer that is imported twice is mapped once: the DMA API does not support
 * mappings that overlap, and CONFIG_DMA_API_DEBUG says so. The same for one that
 * is kept, as long as the guard is bound.
 */
static struct contigo_mapping *contigo_mapping_find(struct contigo_file *file,
						    const struct dma_buf *dmabuf)
{
	struct contigo_mapping *mapping;
	u32 i;

	for (i = 0; i < CONTIGO_MAX_IMPORTS; i++) {
		mapping = file->held->import[i];
		if (mapping && mapping->dmabuf == dmabuf)
			return mapping;
	}
	return contigo_kept_find(file->guard, dmabuf);
}

/* So one that is mapped for reading cannot be mapped for writing beside it. */
static struct contigo_mapping *contigo_mapping_get(struct contigo_file *file,
						   struct dma_buf *dmabuf,
						   enum dma_data_direction direction)
{
	struct contigo_mapping *mapping = contigo_mapping_find(file, dmabuf);

	if (!mapping)
		mapping = contigo_mapping_new(file->guard, dmabuf, direction);
	else if (mapping->direction != direction && direction != DMA_TO_DEVICE)
		mapping = ERR_PTR(-EBUSY);
	if (!IS_ERR(mapping))
		mapping->handles++;
	return mapping;
}

static struct contigo_mapping *contigo_import_get(struct contigo_file *file, u32 handle)
{
	u32 i = handle - 1;

	if (i >= CONTIGO_MAX_IMPORTS)
		return NULL;
	return file->held->import[array_index_nospec(i, CONTIGO_MAX_IMPORTS)];
}

/**
 * contigo_import_wait - wait for others who are at work on a buffer
 * @dmabuf: the buffer
 * @arg: the call's flags and time
 *
 * Called without the guard's lock: so that nobody else waits.
 *
 * Return: 0, -EINTR, or -ETIMEDOUT.
 */
int contigo_import_wait(struct dma_buf *dmabuf, const struct contigo_import *arg)
{
	bool writers = arg->flags & CONTIGO_IMPORT_WAIT;
	u32 wait_us = writers ? arg->wait_us : CONTIGO_MAX_WAIT_US;
	long left = contigo_resv_wait(dmabuf, writers, usecs_to_jiffies(wait_us));

	if (left < 0)
		return left == -ERESTARTSYS ? -EINTR : left;
	return left ? 0 : -ETIMEDOUT;
}

/* May the device use the buffer, as it is mapped and as the caller asks? */
static int contigo_import_check(struct contigo_guard *guard, struct contigo_mapping *mapping,
				u32 flags)
{
	if (!contigo_mapping_in_reach(guard, mapping))
		return -ERANGE;
	if (flags & CONTIGO_IMPORT_CONTIGUOUS && mapping->segments != 1)
		return -ERANGE;
	if (!guard->coherent && !contigo_mapping_is_cached(guard, mapping))
		return -EOPNOTSUPP;
	/*
	 * Mapping cleaned the caches, unless the exporter asked it not to. Not
	 * again where it is mapped already: over a bounce buffer that would put
	 * old data in the place of what the device wrote.
	 */
	if (mapping->handles > 1)
		return 0;
	return contigo_mapping_sync(guard, mapping, 0, mapping->len_bytes,
				    CONTIGO_SYNC_FOR_DEVICE);
}

/**
 * contigo_import - map a dma-buf for the guard's device and give it a handle
 * @file: that imports it
 * @dmabuf: the buffer to import; the caller keeps its reference
 * @arg: in: flags; out: everything else except for the fd
 *
 * Return: 0, or what the header says of CONTIGO_IMPORT.
 */
int contigo_import(struct contigo_file *file, struct dma_buf *dmabuf, struct contigo_import *arg)
{
	enum dma_data_direction direction = arg->flags & CONTIGO_IMPORT_READ_ONLY ?
					    DMA_TO_DEVICE : DMA_BIDIRECTIONAL;
	struct contigo_guard *guard = file->guard;
	struct contigo_held *held = file->held;
	struct contigo_mapping *mapping;
	u64 kept_bytes;
	u32 kept, i = 0;
	int ret;

	lockdep_assert_held(&guard->lock);
	contigo_kept_count(guard, &kept, &kept_bytes);
	if (held->imports + kept >= CONTIGO_MAX_IMPORTS)
		return -ENOSPC;
	while (held->import[i])
		i++;

	mapping = contigo_mapping_get(file, dmabuf, direction);
	if (IS_ERR(mapping))
		return PTR_ERR(mapping);
	ret = contigo_import_check(guard, mapping, arg->flags);
	if (ret) {
		contigo_mapping_put(mapping);
		return ret;
	}

	held->import[i] = mapping;
	held->imports++;
	held->len_bytes += mapping->len_bytes;
	arg->handle = i + 1;
	arg->segments = mapping->segments;
	arg->addr = mapping->piece[0].addr;
	arg->len_bytes = mapping->len_bytes;
	return 0;
}

int contigo_import_release(struct contigo_file *file, u32 handle)
{
	struct contigo_mapping *mapping = contigo_import_get(file, handle);
	struct contigo_held *held = file->held;

	lockdep_assert_held(&file->guard->lock);
	if (!mapping)
		return -ENOENT;
	held->import[handle - 1] = NULL;
	held->imports--;
	held->len_bytes -= mapping->len_bytes;
	contigo_mapping_put(mapping);
	return 0;
}

/**
 * contigo_import_segments - list the runs of bus addresses of an import
 * @file: whose import it is
 * @handle: which
 * @offset_bytes: where in it the first run begins that is wanted
 * @segment: room for @count of them
 * @count: in: how many fit; out: how many there were
 *
 * Return: 0, or -ENOENT.
 */
int contigo_import_segments(struct contigo_file *file, u32 handle, u64 offset_bytes,
			    struct contigo_segment *segment, u32 *count)
{
	struct contigo_mapping *mapping = contigo_import_get(file, handle);

	lockdep_assert_held(&file->guard->lock);
	if (!mapping)
		return -ENOENT;
	*count = contigo_pieces_runs(mapping, offset_bytes, segment, *count);
	return 0;
}

static int contigo_range_check(struct contigo_file *file, const struct contigo_range *range)
{
	const struct contigo_mapping *mapping = contigo_import_get(file, range->handle);

	if (range->flags != CONTIGO_SYNC_FOR_CPU && range->flags != CONTIGO_SYNC_FOR_DEVICE)
		return -EINVAL;
	if (!mapping)
		return -ENOENT;
	if (!contigo_is_within(range->offset_bytes, range->len_bytes, mapping->len_bytes))
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

	lockdep_assert_held(&file->guard->lock);
	for (i = 0; i < count; i++) {
		ret = contigo_range_check(file, &range[i]);
		if (ret)
			return ret;
	}
	for (i = 0; i < count; i++) {
		ret = contigo_mapping_sync(file->guard, contigo_import_get(file, range[i].handle),
					   range[i].offset_bytes, range[i].len_bytes,
					   range[i].flags);
		if (ret)
			return ret;
	}
	return 0;
}

/* The device has stopped, or let go of everything: unmaps it all. */
void contigo_held_free(struct contigo_held *held)
{
	u32 i;

	for (i = 0; i < CONTIGO_MAX_IMPORTS; i++) {
		if (held->import[i])
			contigo_mapping_put(held->import[i]);
	}
	contigo_stop_free(held->stop);
	kvfree(held);
}
