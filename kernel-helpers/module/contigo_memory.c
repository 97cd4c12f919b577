// SPDX-License-Identifier: GPL-2.0
/*
 * The calls of an open file that are about memory. User memory is copied here,
 * outside the lock.
 */
#include <linux/dma-buf.h>
#include <linux/fs.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "contigo_calls.h"

/* Ranges of one sync that need no allocation. */
#define CONTIGO_FEW_RANGES	8

int contigo_ioctl_set_dma_bits(struct contigo_file *file, void __user *ptr)
{
	struct contigo_guard *guard = file->guard;
	struct contigo_dma_bits arg;
	int ret;

	if (copy_from_user(&arg, ptr, sizeof(arg)))
		return -EFAULT;
	if (arg.bits < 12 || arg.bits > 64 || arg.reserved)
		return -EINVAL;

	ret = contigo_file_lock(file);
	if (ret)
		return ret;
	ret = file->held->imports ? -EBUSY : contigo_dma_set_bits(guard, arg.bits);
	mutex_unlock(&guard->lock);
	return ret;
}

static int contigo_import_check_arg(const struct contigo_import *arg)
{
	u32 known = CONTIGO_IMPORT_CONTIGUOUS | CONTIGO_IMPORT_READ_ONLY | CONTIGO_IMPORT_WAIT;

	if (arg->flags & ~known || arg->reserved)
		return -EINVAL;
	if (!(arg->flags & CONTIGO_IMPORT_WAIT))
		return arg->wait_us ? -EINVAL : 0;
	return arg->wait_us && arg->wait_us <= CONTIGO_MAX_WAIT_US ? 0 : -EINVAL;
}

int contigo_ioctl_import(struct contigo_file *file, void __user *ptr)
{
	struct contigo_import arg;
	struct dma_buf *dmabuf;
	int ret;

	if (copy_from_user(&arg, ptr, sizeof(arg)))
		return -EFAULT;
	ret = contigo_import_check_arg(&arg);
	if (ret)
		return ret;
	dmabuf = dma_buf_get(arg.fd);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);

	/* Who may only read it does not let a device write it. */
	ret = -EACCES;
	if (!(arg.flags & CONTIGO_IMPORT_READ_ONLY) && !(dmabuf->file->f_mode & FMODE_WRITE))
		goto put;
	ret = contigo_import_wait(dmabuf, &arg);
	if (!ret)
		ret = contigo_file_lock(file);
	if (ret)
		goto put;
	ret = contigo_import(file, dmabuf, &arg);
	mutex_unlock(&file->guard->lock);
put:
	dma_buf_put(dmabuf);
	if (ret)
		return ret;

	/*
	 * Where this fails the import stays until the file goes: another thread
	 * may know its handle.
	 */
	return copy_to_user(ptr, &arg, sizeof(arg)) ? -EFAULT : 0;
}

int contigo_ioctl_get_segments(struct contigo_file *file, void __user *ptr)
{
	struct contigo_segments __user *to = ptr;
	struct contigo_segment *segment = NULL;
	struct contigo_segments arg;
	int ret;

	if (copy_from_user(&arg, ptr, sizeof(arg)))
		return -EFAULT;
	if (arg.count > CONTIGO_MAX_RANGES)
		return -E2BIG;
	if (!contigo_is_user_ptr(arg.ptr))
		return -EFAULT;
	if (arg.count) {
		segment = kvcalloc(arg.count, sizeof(*segment), GFP_KERNEL_ACCOUNT);
		if (!segment)
			return -ENOMEM;
	}

	ret = contigo_file_lock(file);
	if (ret)
		goto free;
	ret = contigo_import_segments(file, arg.handle, arg.offset_bytes, segment, &arg.count);
	mutex_unlock(&file->guard->lock);
	if (ret)
		goto free;

	if (copy_to_user(u64_to_user_ptr(arg.ptr), segment,
			 array_size(arg.count, sizeof(*segment))) ||
	    put_user(arg.count, &to->count))
		ret = -EFAULT;
free:
	kvfree(segment);
	return ret;
}

int contigo_ioctl_release(struct contigo_file *file, void __user *ptr)
{
	struct contigo_release arg;
	int ret;

	if (copy_from_user(&arg, ptr, sizeof(arg)))
		return -EFAULT;
	if (arg.reserved)
		return -EINVAL;

	ret = contigo_file_lock(file);
	if (ret)
		return ret;
	ret = contigo_import_release(file, arg.handle);
	mutex_unlock(&file->guard->lock);
	return ret;
}

int contigo_ioctl_sync(struct contigo_file *file, void __user *ptr)
{
	struct contigo_range few[CONTIGO_FEW_RANGES];
	struct contigo_range *range = few;
	struct contigo_sync arg;
	int ret;

	if (copy_from_user(&arg, ptr, sizeof(arg)))
		return -EFAULT;
	if (arg.reserved || !arg.count)
		return -EINVAL;
	if (arg.count > CONTIGO_MAX_RANGES)
		return -E2BIG;
	if (!contigo_is_user_ptr(arg.ptr))
		return -EFAULT;
	if (arg.count > CONTIGO_FEW_RANGES) {
		range = kvmalloc_array(arg.count, sizeof(*range), GFP_KERNEL_ACCOUNT);
		if (!range)
			return -ENOMEM;
	}

	ret = -EFAULT;
	if (copy_from_user(range, u64_to_user_ptr(arg.ptr), array_size(arg.count, sizeof(*range))))
		goto free;
	ret = contigo_file_lock(file);
	if (ret)
		goto free;
	ret = contigo_import_sync(file, range, arg.count);
	mutex_unlock(&file->guard->lock);
free:
	if (range != few)
		kvfree(range);
	return ret;
}
