// SPDX-License-Identifier: GPL-2.0
/*
 * The calls of an open file that are about memory, and the table of its handles.
 */
#include <linux/dma-buf.h>
#include <linux/nospec.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "contigo_internal.h"

int contigo_set_dma_bits(struct contigo_file *file, union contigo_arg *arg)
{
	if (arg->dma_bits.bits > 64 || arg->dma_bits.reserved)
		return -EINVAL;
	if (file->session->buffers)
		return -EBUSY;
	return contigo_dma_set_bits(file->node, arg->dma_bits.bits);
}

/* What a handle names, or NULL; with the node's lock. */
struct contigo_buffer *contigo_buffer_of(struct contigo_file *file, u32 handle)
{
	u32 i = handle - 1;

	lockdep_assert_held(&file->node->lock);
	if (i >= CONTIGO_MAX_BUFFERS)
		return NULL;
	return file->session->buffer[array_index_nospec(i, CONTIGO_MAX_BUFFERS)];
}

/* Room for one more of so many bytes, which are charged until they are given back. */
static int contigo_buffer_charge(const struct contigo_file *file, u64 len_bytes)
{
	struct contigo_node *node = file->node;
	u64 most_bytes = (u64)contigo_max_mib << 20;

	if (file->session->buffers + node->quarantined >= CONTIGO_MAX_BUFFERS)
		return -ENOSPC;
	if (len_bytes > most_bytes)
		return -EDQUOT;
	if (atomic64_add_return(len_bytes, &node->charged_bytes) <= most_bytes)
		return 0;
	atomic64_sub(len_bytes, &node->charged_bytes);
	return -EDQUOT;
}

/* The handle of a new one; there is room for it. */
static u32 contigo_buffer_add(struct contigo_session *session, struct contigo_buffer *buffer)
{
	u32 i = 0;

	while (session->buffer[i])
		i++;
	session->buffer[i] = buffer;
	session->buffers++;
	session->len_bytes += buffer->len_bytes;
	return i + 1;
}

/* What is lost keeps its charge. */
static void contigo_buffer_free(struct contigo_node *node, struct contigo_buffer *buffer,
				bool is_lost)
{
	if (buffer->dmabuf) {
		if (!is_lost)
			atomic64_sub(buffer->len_bytes, &node->charged_bytes);
		contigo_import_free(buffer, is_lost);
		return;
	}
	if (is_lost)
		contigo_own_lose(buffer->own);
	else
		contigo_own_put(buffer->own);
	kfree(buffer);
}

/* The device has let go of what it holds, or that is lost to the system. */
void contigo_session_free(struct contigo_node *node, struct contigo_session *session, bool is_lost)
{
	u32 i;

	for (i = 0; i < CONTIGO_MAX_BUFFERS; i++) {
		if (session->buffer[i])
			contigo_buffer_free(node, session->buffer[i], is_lost);
	}
	contigo_stop_free(session->stop);
	kvfree(session);
}

int contigo_alloc(struct contigo_file *file, union contigo_arg *arg)
{
	u64 len_bytes = arg->alloc.len_bytes;
	struct contigo_buffer *buffer;
	int ret;

	/* The list of a dma-buf has lengths of 32 bits. */
	if (arg->alloc.flags & ~CONTIGO_ALLOC_COHERENT || !len_bytes || !PAGE_ALIGNED(len_bytes) ||
	    len_bytes > min_t(u64, SIZE_MAX, U32_MAX))
		return -EINVAL;
	buffer = kzalloc(sizeof(*buffer), GFP_KERNEL_ACCOUNT);
	if (!buffer)
		return -ENOMEM;
	ret = contigo_buffer_charge(file, len_bytes);
	if (ret)
		goto free;
	buffer->own = contigo_own_new(file->node, len_bytes,
				      arg->alloc.flags & CONTIGO_ALLOC_COHERENT);
	if (IS_ERR(buffer->own)) {
		ret = PTR_ERR(buffer->own);
		goto uncharge;
	}
	buffer->len_bytes = len_bytes;
	buffer->own->handle = contigo_buffer_add(file->session, buffer);
	arg->alloc.handle = buffer->own->handle;
	arg->alloc.addr = buffer->own->addr;
	arg->alloc.mmap_offset = (u64)arg->alloc.handle << CONTIGO_HANDLE_SHIFT;
	return 0;

uncharge:
	atomic64_sub(len_bytes, &file->node->charged_bytes);
free:
	kfree(buffer);
	return ret;
}

static bool contigo_session_has(const struct contigo_session *session, const struct dma_buf *dmabuf)
{
	u32 i = 0;

	while (i < CONTIGO_MAX_BUFFERS &&
	       !(session->buffer[i] && session->buffer[i]->dmabuf == dmabuf))
		i++;
	return i < CONTIGO_MAX_BUFFERS;
}

/*
 * Mapped once, by the file or in quarantine: the DMA API does not support mappings
 * that overlap, and CONFIG_DMA_API_DEBUG reports them.
 */
static bool contigo_import_has(struct contigo_file *file, const struct dma_buf *dmabuf)
{
	const struct contigo_session *session;

	list_for_each_entry(session, &file->node->quarantine, entry) {
		if (contigo_session_has(session, dmabuf))
			return true;
	}
	return contigo_session_has(file->session, dmabuf);
}

static int contigo_import_add(struct contigo_file *file, struct dma_buf *dmabuf,
			      struct contigo_import *arg)
{
	bool reads = arg->flags & CONTIGO_IMPORT_READ_ONLY;
	struct contigo_buffer *buffer;
	int ret;

	if (contigo_own_is_of(dmabuf, file->node))
		return -EINVAL;
	if (contigo_import_has(file, dmabuf))
		return -EBUSY;
	ret = contigo_buffer_charge(file, dmabuf->size);
	if (ret)
		return ret;
	buffer = contigo_import_new(file->node, dmabuf, reads ? DMA_TO_DEVICE : DMA_BIDIRECTIONAL);
	if (IS_ERR(buffer)) {
		atomic64_sub(dmabuf->size, &file->node->charged_bytes);
		return PTR_ERR(buffer);
	}
	arg->handle = contigo_buffer_add(file->session, buffer);
	arg->segments = contigo_segments(buffer->sgt, buffer->len_bytes, 0, NULL, U32_MAX);
	arg->addr = sg_dma_address(buffer->sgt->sgl);
	arg->len_bytes = buffer->len_bytes;
	return 0;
}

int contigo_import(struct contigo_file *file, union contigo_arg *arg)
{
	u32 flags = arg->import.flags;
	struct dma_buf *dmabuf;
	fmode_t mode;
	int ret;

	if (flags & ~CONTIGO_IMPORT_READ_ONLY)
		return -EINVAL;
	dmabuf = dma_buf_get(arg->import.fd);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	/* The device does no more to it than the caller may. */
	mode = dmabuf->file->f_mode;
	ret = -EACCES;
	if (mode & FMODE_READ && (flags & CONTIGO_IMPORT_READ_ONLY || mode & FMODE_WRITE))
		ret = contigo_file_lock(file);
	if (!ret) {
		ret = contigo_import_add(file, dmabuf, &arg->import);
		mutex_unlock(&file->node->lock);
	}
	dma_buf_put(dmabuf);
	return ret;
}

int contigo_get_segments(struct contigo_file *file, union contigo_arg *arg)
{
	struct contigo_segments *segments = &arg->segments;
	struct contigo_segment *segment;
	struct contigo_buffer *buffer;
	int ret;

	if (segments->count > CONTIGO_MAX_RANGES)
		return -E2BIG;
	if (segments->ptr != (uintptr_t)segments->ptr)
		return -EFAULT;
	segment = kvcalloc(max(segments->count, 1U), sizeof(*segment), GFP_KERNEL_ACCOUNT);
	if (!segment)
		return -ENOMEM;
	ret = contigo_file_lock(file);
	if (ret)
		goto free;
	buffer = contigo_buffer_of(file, segments->handle);
	if (buffer && buffer->sgt)
		segments->count = contigo_segments(buffer->sgt, buffer->len_bytes,
						   segments->offset_bytes, segment,
						   segments->count);
	else
		ret = -ENOENT;
	mutex_unlock(&file->node->lock);
	if (!ret && copy_to_user(u64_to_user_ptr(segments->ptr), segment,
				 array_size(segments->count, sizeof(*segment))))
		ret = -EFAULT;
free:
	kvfree(segment);
	return ret;
}

int contigo_release_memory(struct contigo_file *file, union contigo_arg *arg)
{
	struct contigo_session *session = file->session;
	struct contigo_buffer *buffer = contigo_buffer_of(file, arg->release.handle);

	if (arg->release.reserved)
		return -EINVAL;
	if (!buffer)
		return -ENOENT;
	session->buffer[arg->release.handle - 1] = NULL;
	session->buffers--;
	session->len_bytes -= buffer->len_bytes;
	contigo_buffer_free(file->node, buffer, false);
	return 0;
}

static int contigo_range_check(struct contigo_file *file, const struct contigo_range *range)
{
	const struct contigo_buffer *buffer = contigo_buffer_of(file, range->handle);
	u64 end;

	if (range->flags != CONTIGO_SYNC_FOR_CPU && range->flags != CONTIGO_SYNC_FOR_DEVICE)
		return -EINVAL;
	if (!buffer)
		return -ENOENT;
	if (!range->len_bytes || check_add_overflow(range->offset_bytes, range->len_bytes, &end) ||
	    end > buffer->len_bytes)
		return -EINVAL;
	return 0;
}

/* Another thread may have released it since it was checked: so again, and with a reference. */
static int contigo_range_sync(struct contigo_file *file, const struct contigo_range *range)
{
	struct dma_buf *dmabuf = NULL;
	struct contigo_own *own = NULL;
	enum dma_data_direction direction = DMA_BIDIRECTIONAL;
	struct contigo_buffer *buffer;
	int ret = contigo_file_lock(file);

	if (ret)
		return ret;
	ret = contigo_range_check(file, range);
	if (!ret) {
		buffer = contigo_buffer_of(file, range->handle);
		own = buffer->own;
		dmabuf = buffer->dmabuf;
		direction = buffer->direction;
		if (own)
			kref_get(&own->ref);
		else
			get_dma_buf(dmabuf);
	}
	mutex_unlock(&file->node->lock);
	if (ret)
		return ret;
	if (own) {
		ret = contigo_own_sync(own, range->offset_bytes, range->len_bytes, range->flags);
		contigo_own_put(own);
		return ret;
	}
	/* The exporter's business, of all that have it mapped. It may wait, until a signal. */
	if (range->flags == CONTIGO_SYNC_FOR_CPU)
		ret = dma_buf_begin_cpu_access(dmabuf, direction);
	else
		ret = dma_buf_end_cpu_access(dmabuf, direction);
	dma_buf_put(dmabuf);
	return ret;
}

static int contigo_sync_ranges(struct contigo_file *file, const struct contigo_range *range,
			       u32 count)
{
	int ret = contigo_file_lock(file);
	u32 i;

	if (ret)
		return ret;
	for (i = 0; i < count && !ret; i++)
		ret = contigo_range_check(file, &range[i]);
	mutex_unlock(&file->node->lock);
	if (file->node->coherent)
		return ret;
	for (i = 0; i < count && !ret; i++) {
		ret = contigo_range_sync(file, &range[i]);
		/* It is as long as its caller asked for, and ends with its caller. */
		if (!ret && fatal_signal_pending(current))
			ret = -EINTR;
	}
	return ret;
}

int contigo_sync(struct contigo_file *file, union contigo_arg *arg)
{
	u32 count = arg->sync.count;
	struct contigo_range *range;
	int ret = -EFAULT;

	if (arg->sync.reserved || !count)
		return -EINVAL;
	if (count > CONTIGO_MAX_RANGES)
		return -E2BIG;
	if (arg->sync.ptr != (uintptr_t)arg->sync.ptr)
		return -EFAULT;
	range = kvmalloc_array(count, sizeof(*range), GFP_KERNEL_ACCOUNT);
	if (!range)
		return -ENOMEM;
	if (!copy_from_user(range, u64_to_user_ptr(arg->sync.ptr),
			    array_size(count, sizeof(*range))))
		ret = contigo_sync_ranges(file, range, count);
	kvfree(range);
	return ret;
}
