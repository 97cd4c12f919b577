// SPDX-License-Identifier: GPL-2.0
/*
 * An open node: its calls. User memory is copied outside the lock.
 */
#include <linux/capability.h>
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/uaccess.h>

#include "contigo_compat.h"
#include "contigo_internal.h"

int contigo_file_lock(struct contigo_file *file)
{
	int ret = contigo_node_lock(file->node);

	if (!ret && file->gone) {
		mutex_unlock(&file->node->lock);
		ret = -ENODEV;
	}
	return ret;
}

static void contigo_fill_info(struct contigo_file *file, struct contigo_info *info)
{
	struct contigo_node *node = file->node;
	u32 i;

	info->flags = contigo_dma_flags(node);
	if (file->session->stop)
		info->flags |= CONTIGO_INFO_ARMED;
	info->dma_bits = node->dma_bits;
	info->buffers = file->session->buffers;
	info->quarantined = node->quarantined;
	info->quarantined_bytes = node->quarantined_bytes;
	info->interrupts = node->interrupts;
	info->granule_bytes = dma_get_cache_alignment();
	for (i = 0; i < CONTIGO_MAX_WINDOWS; i++) {
		const struct contigo_registers *window = &node->window[i];

		info->window[i].len_bytes = window->len_bytes;
		info->window[i].mmap_offset = window->mmap_offset;
		if (contigo_registers_can_mmap(window))
			info->window[i].flags |= CONTIGO_WINDOW_MMAP;
		if (window->answers)
			info->window[i].flags |= CONTIGO_WINDOW_STOP;
	}
}

static int contigo_get_info(struct contigo_file *file, void __user *ptr)
{
	struct contigo_info info = { .argsz = sizeof(info) };
	u32 argsz;
	int ret;

	if (get_user(argsz, (u32 __user *)ptr))
		return -EFAULT;
	if (argsz < offsetof(struct contigo_info, window))
		return -EINVAL;
	ret = contigo_file_lock(file);
	if (ret)
		return ret;
	contigo_fill_info(file, &info);
	mutex_unlock(&file->node->lock);
	return copy_to_user(ptr, &info, min_t(size_t, argsz, sizeof(info))) ? -EFAULT : 0;
}

static int contigo_arm(struct contigo_file *file, union contigo_arg *arg)
{
	struct contigo_stop *stop = NULL;
	int ret;

	if (arg->stop.reserved)
		return -EINVAL;
	if (arg->stop.count > CONTIGO_MAX_STEPS)
		return -E2BIG;
	/* On 32 bits a pointer that is none must not become one. */
	if (arg->stop.ptr != (uintptr_t)arg->stop.ptr)
		return -EFAULT;
	if (arg->stop.count) {
		stop = contigo_stop_load(file->node->window, capable(CAP_SYS_RAWIO),
					 u64_to_user_ptr(arg->stop.ptr), arg->stop.count);
		if (IS_ERR(stop))
			return PTR_ERR(stop);
	}

	ret = contigo_file_lock(file);
	if (!ret) {
		swap(file->session->stop, stop);
		mutex_unlock(&file->node->lock);
	}
	contigo_stop_free(stop);
	return ret;
}

/* Its descriptor is there when the caller has its number. */
static int contigo_export_fd(struct contigo_file *file, union contigo_arg *arg, void __user *ptr)
{
	int fd = get_unused_fd_flags(O_CLOEXEC);
	struct dma_buf *dmabuf;
	int ret;

	if (fd < 0)
		return fd;
	ret = contigo_file_lock(file);
	if (ret)
		goto put_fd;
	dmabuf = contigo_own_export(contigo_buffer_of(file, arg->export.handle));
	mutex_unlock(&file->node->lock);
	ret = PTR_ERR_OR_ZERO(dmabuf);
	if (ret)
		goto put_fd;
	arg->export.fd = fd;
	if (copy_to_user(ptr, arg, sizeof(arg->export))) {
		dma_buf_put(dmabuf);
		ret = -EFAULT;
		goto put_fd;
	}
	fd_install(fd, dmabuf->file);
	return 0;

put_fd:
	put_unused_fd(fd);
	return ret;
}

static int contigo_reset(struct contigo_file *file, union contigo_arg *arg)
{
	return contigo_file_reset(file);
}

/* Called with the node's lock where locked is true. What it answers is copied to the user. */
static const struct contigo_call {
	unsigned int cmd;
	bool locked;
	int (*call)(struct contigo_file *file, union contigo_arg *arg);
} contigo_calls[] = {
	{ CONTIGO_SET_DMA_BITS, true, contigo_set_dma_bits },
	{ CONTIGO_ALLOC, true, contigo_alloc },
	{ CONTIGO_IMPORT, false, contigo_import },
	{ CONTIGO_GET_SEGMENTS, false, contigo_get_segments },
	{ CONTIGO_RELEASE, true, contigo_release_memory },
	{ CONTIGO_SYNC, false, contigo_sync },
	{ CONTIGO_ARM, false, contigo_arm },
	{ CONTIGO_UNMASK, true, contigo_unmask },
	{ CONTIGO_SET_EVENTFD, false, contigo_set_eventfd },
	{ CONTIGO_RESET, true, contigo_reset },
	{ CONTIGO_WAIT, false, contigo_wait },
};

/*
 * Where the answer cannot be written, memory stays until the teardown: another
 * thread may know its handle.
 */
static int contigo_call(const struct contigo_call *call, struct contigo_file *file,
			union contigo_arg *arg, void __user *ptr)
{
	int ret = call->locked ? contigo_file_lock(file) : 0;

	if (ret)
		return ret;
	ret = call->call(file, arg);
	if (call->locked)
		mutex_unlock(&file->node->lock);
	if (!ret && _IOC_DIR(call->cmd) & _IOC_READ &&
	    copy_to_user(ptr, arg, _IOC_SIZE(call->cmd))) {
		ret = -EFAULT;
		/* As in contigo_read(): for who reads next. */
		if (call->cmd == CONTIGO_WAIT)
			atomic_or(arg->wait.interrupts, &file->pending);
	}
	return ret;
}

static long contigo_ioctl(struct file *filp, unsigned int cmd, unsigned long to)
{
	struct contigo_file *file = filp->private_data;
	void __user *ptr = (void __user *)to;
	union contigo_arg arg;
	u32 i;

	/* Before any argument is looked at; contigo_file_lock() decides. */
	if (READ_ONCE(file->gone))
		return -ENODEV;
	if (cmd == CONTIGO_GET_INFO)
		return contigo_get_info(file, ptr);
	for (i = 0; i < ARRAY_SIZE(contigo_calls) && contigo_calls[i].cmd != cmd; i++)
		;
	if (i == ARRAY_SIZE(contigo_calls) && cmd != CONTIGO_EXPORT)
		return -ENOTTY;
	if (copy_from_user(&arg, ptr, _IOC_SIZE(cmd)))
		return -EFAULT;
	if (cmd == CONTIGO_EXPORT)
		return contigo_export_fd(file, &arg, ptr);
	return contigo_call(&contigo_calls[i], file, &arg, ptr);
}

/*
 * Under mmap_lock. No fault and no call that holds the node's lock touches user
 * memory, so the two locks may be taken in this order.
 */
static int contigo_mmap(struct file *filp, struct vm_area_struct *vma)
{
	unsigned long first = vma->vm_pgoff & (CONTIGO_HANDLE_PAGES - 1);
	u32 handle = vma->vm_pgoff / CONTIGO_HANDLE_PAGES;
	struct contigo_file *file = filp->private_data;
	struct contigo_buffer *buffer;
	int ret;

	if (!handle)
		return contigo_registers_mmap(filp, vma);
	ret = contigo_file_lock(file);
	if (ret)
		return ret;
	buffer = contigo_buffer_of(file, handle);
	ret = buffer && buffer->own ? contigo_own_mmap(buffer->own, vma, first) : -EINVAL;
	mutex_unlock(&file->node->lock);
	return ret;
}

const struct file_operations contigo_fops = {
	.owner = THIS_MODULE,
	CONTIGO_FOP_FLAGS
	.open = contigo_open,
	.release = contigo_release,
	.read = contigo_read,
	.poll = contigo_poll,
	.mmap = contigo_mmap,
	.unlocked_ioctl = contigo_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};
