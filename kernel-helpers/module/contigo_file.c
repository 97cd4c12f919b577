// SPDX-License-Identifier: GPL-2.0
/*
 * An open port: its ioctls, and how it ends, by whatever end of the process or
 * of the device.
 */
#include <linux/bitops.h>
#include <linux/build_bug.h>
#include <linux/dma-buf.h>
#include <linux/fs.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "contigo_internal.h"

/* Ranges of one sync that need no allocation. */
#define CONTIGO_FEW_RANGES	8

/* The sizes that user space was compiled with: the same on 32 and 64 bits. */
static_assert(sizeof(struct contigo_info) == 72);
static_assert(sizeof(struct contigo_dma_bits) == 8);
static_assert(sizeof(struct contigo_import) == 32);
static_assert(sizeof(struct contigo_segment) == 16);
static_assert(sizeof(struct contigo_segments) == 24);
static_assert(sizeof(struct contigo_release) == 8);
static_assert(sizeof(struct contigo_range) == 24);
static_assert(sizeof(struct contigo_sync) == 16);
static_assert(sizeof(struct contigo_step) == 24);
static_assert(sizeof(struct contigo_program) == 16);
static_assert(sizeof(struct contigo_bus_master) == 8);

static int contigo_lock(struct contigo_port *port)
{
	/* Nothing was done yet: a handler with SA_RESTART is not noticed. */
	if (mutex_lock_interruptible(&port->lock))
		return -ERESTARTSYS;
	if (READ_ONCE(port->dead)) {
		mutex_unlock(&port->lock);
		return -ENODEV;
	}
	return 0;
}

/* On 32 bits a pointer that is none must not become one. */
static bool contigo_is_user_ptr(u64 ptr)
{
	return ptr == (uintptr_t)ptr;
}

static int contigo_get_info(struct contigo_file *file, struct contigo_info __user *to)
{
	struct contigo_port *port = file->port;
	struct contigo_info info = { .abi = CONTIGO_ABI };
	u32 i;
	int ret;

	ret = contigo_lock(port);
	if (ret)
		return ret;
	info.flags = contigo_port_flags(port);
	if (file->stop)
		info.flags |= CONTIGO_INFO_ARMED;
	info.dma_bits = port->dma_bits;
	info.imports = file->imports;
	info.dma_limit = port->dma_dev->bus_dma_limit ?: U64_MAX;
	for (i = 0; i < CONTIGO_MAX_WINDOWS; i++)
		info.window_len_bytes[i] = port->window[i].len_bytes;
	mutex_unlock(&port->lock);

	return copy_to_user(to, &info, sizeof(info)) ? -EFAULT : 0;
}

static int contigo_set_dma_bits(struct contigo_file *file,
				const struct contigo_dma_bits __user *from)
{
	struct contigo_port *port = file->port;
	struct contigo_dma_bits arg;
	int ret;

	if (copy_from_user(&arg, from, sizeof(arg)))
		return -EFAULT;
	if (arg.bits < 12 || arg.bits > 64 || arg.reserved)
		return -EINVAL;

	ret = contigo_lock(port);
	if (ret)
		return ret;
	ret = file->imports ? -EBUSY : contigo_port_set_dma_bits(port, arg.bits);
	mutex_unlock(&port->lock);
	return ret;
}

static int contigo_do_import(struct contigo_file *file, struct contigo_import __user *to)
{
	struct contigo_port *port = file->port;
	struct contigo_import arg;
	struct dma_buf *dmabuf;
	int ret;

	if (copy_from_user(&arg, to, sizeof(arg)))
		return -EFAULT;
	if (arg.flags & ~CONTIGO_IMPORT_CONTIGUOUS)
		return -EINVAL;
	dmabuf = dma_buf_get(arg.fd);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);

	ret = contigo_lock(port);
	if (!ret) {
		ret = contigo_import(file, dmabuf, &arg);
		mutex_unlock(&port->lock);
	}
	dma_buf_put(dmabuf);
	if (ret)
		return ret;

	/*
	 * Where this fails the import stays until the file goes: another thread
	 * may know its handle.
	 */
	return copy_to_user(to, &arg, sizeof(arg)) ? -EFAULT : 0;
}

static int contigo_get_segments(struct contigo_file *file, struct contigo_segments __user *to)
{
	struct contigo_port *port = file->port;
	struct contigo_segment *segment = NULL;
	struct contigo_segments arg;
	int ret;

	if (copy_from_user(&arg, to, sizeof(arg)))
		return -EFAULT;
	if (arg.reserved)
		return -EINVAL;
	if (arg.count > CONTIGO_MAX_RANGES)
		return -E2BIG;
	if (!contigo_is_user_ptr(arg.ptr))
		return -EFAULT;
	if (arg.count) {
		segment = kvcalloc(arg.count, sizeof(*segment), GFP_KERNEL_ACCOUNT);
		if (!segment)
			return -ENOMEM;
	}

	ret = contigo_lock(port);
	if (ret)
		goto free;
	ret = contigo_import_segments(file, arg.handle, arg.first, segment, &arg.count);
	mutex_unlock(&port->lock);
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

static int contigo_release_import(struct contigo_file *file,
				  const struct contigo_release __user *from)
{
	struct contigo_port *port = file->port;
	struct contigo_release arg;
	int ret;

	if (copy_from_user(&arg, from, sizeof(arg)))
		return -EFAULT;
	if (arg.reserved)
		return -EINVAL;

	ret = contigo_lock(port);
	if (ret)
		return ret;
	ret = contigo_import_release(file, arg.handle);
	mutex_unlock(&port->lock);
	return ret;
}

static int contigo_do_sync(struct contigo_file *file, const struct contigo_sync __user *from)
{
	struct contigo_range few[CONTIGO_FEW_RANGES];
	struct contigo_port *port = file->port;
	struct contigo_range *range = few;
	struct contigo_sync arg;
	int ret;

	if (copy_from_user(&arg, from, sizeof(arg)))
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
	ret = contigo_lock(port);
	if (ret)
		goto free;
	ret = contigo_import_sync(file, range, arg.count);
	mutex_unlock(&port->lock);
free:
	if (range != few)
		kvfree(range);
	return ret;
}

static int contigo_arm(struct contigo_file *file, const struct contigo_program __user *from)
{
	struct contigo_port *port = file->port;
	struct contigo_stop *stop = NULL;
	struct contigo_program arg;
	int ret;

	if (copy_from_user(&arg, from, sizeof(arg)))
		return -EFAULT;
	if (arg.reserved)
		return -EINVAL;
	if (arg.count > CONTIGO_MAX_STEPS)
		return -E2BIG;
	if (!contigo_is_user_ptr(arg.ptr))
		return -EFAULT;
	if (arg.count) {
		stop = contigo_stop_load(port, u64_to_user_ptr(arg.ptr), arg.count);
		if (IS_ERR(stop))
			return PTR_ERR(stop);
	}

	ret = contigo_lock(port);
	if (!ret) {
		swap(file->stop, stop);
		mutex_unlock(&port->lock);
	}
	kfree(stop);
	return ret;
}

static int contigo_set_bus_master(struct contigo_file *file,
				  const struct contigo_bus_master __user *from)
{
	struct contigo_port *port = file->port;
	struct contigo_bus_master arg;
	int ret;

	if (copy_from_user(&arg, from, sizeof(arg)))
		return -EFAULT;
	if (arg.on > 1 || arg.reserved)
		return -EINVAL;
	if (!port->pdev)
		return -EOPNOTSUPP;

	ret = contigo_lock(port);
	if (ret)
		return ret;
	contigo_pci_set_master(port->pdev, arg.on);
	mutex_unlock(&port->lock);
	return 0;
}

static long contigo_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	struct contigo_file *file = filp->private_data;
	void __user *ptr = (void __user *)arg;
	long ret;

	/* Before any argument is looked at; contigo_lock() decides. */
	if (READ_ONCE(file->port->dead))
		return -ENODEV;

	switch (cmd) {
	case CONTIGO_GET_INFO:
		ret = contigo_get_info(file, ptr);
		break;
	case CONTIGO_SET_DMA_BITS:
		ret = contigo_set_dma_bits(file, ptr);
		break;
	case CONTIGO_IMPORT:
		ret = contigo_do_import(file, ptr);
		break;
	case CONTIGO_GET_SEGMENTS:
		ret = contigo_get_segments(file, ptr);
		break;
	case CONTIGO_RELEASE:
		ret = contigo_release_import(file, ptr);
		break;
	case CONTIGO_SYNC:
		ret = contigo_do_sync(file, ptr);
		break;
	case CONTIGO_ARM:
		ret = contigo_arm(file, ptr);
		break;
	case CONTIGO_SET_BUS_MASTER:
		ret = contigo_set_bus_master(file, ptr);
		break;
	default:
		ret = -ENOTTY;
	}
	if (ret)
		dev_dbg_ratelimited(&file->port->dev, "ioctl %#x: error %ld\n", cmd, ret);
	return ret;
}

static int contigo_open(struct inode *inode, struct file *filp)
{
	struct contigo_port *port = container_of(inode->i_cdev, struct contigo_port, cdev);
	struct contigo_file *file;
	int ret;

	if (test_and_set_bit_lock(0, &port->is_open))
		return -EBUSY;

	ret = -ENOMEM;
	file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	if (!file)
		goto clear;
	file->port = port;

	ret = contigo_lock(port);
	if (ret)
		goto free;
	ret = contigo_port_begin(port);
	if (!ret)
		port->file = file;
	mutex_unlock(&port->lock);
	if (ret)
		goto free;

	filp->private_data = file;
	return nonseekable_open(inode, filp);

free:
	kfree(file);
clear:
	clear_bit_unlock(0, &port->is_open);
	return ret;
}

/**
 * contigo_file_end - stop the device, then let go of what it was given
 * @file: the port's; the device is still ours
 *
 * Called once for each file, from its last close or from the device's remove(),
 * with the port's lock held.
 */
void contigo_file_end(struct contigo_file *file)
{
	struct contigo_port *port = file->port;
	u32 at = 0, value = 0, buffers;
	bool stopped = true;
	u64 bytes;

	lockdep_assert_held(&port->lock);
	if (file->stop && !(port->pdev && contigo_pci_is_gone(port->pdev)))
		stopped = !contigo_stop_run(port, file->stop, &at, &value);
	if (port->pdev)
		contigo_pci_set_master(port->pdev, false);

	if (stopped) {
		contigo_import_release_all(file);
	} else {
		const struct contigo_step *step = &file->stop->step[at];

		contigo_import_keep_all(file, &buffers, &bytes);
		/* Not rate-limited: each costs memory for good, so they end. */
		if (buffers)
			dev_err(port->dma_dev,
				"not stopped: step %u, window %u, register %#x is %#010x; %u buffers, %llu bytes kept for ever\n",
				at, step->window, step->offset_bytes, value, buffers, bytes);
		else
			dev_warn_ratelimited(port->dma_dev,
					     "not stopped: step %u, window %u, register %#x is %#010x\n",
					     at, step->window, step->offset_bytes, value);
	}
	contigo_port_end(port, stopped);

	kfree(file->stop);
	file->stop = NULL;
	port->file = NULL;
}

static int contigo_release(struct inode *inode, struct file *filp)
{
	struct contigo_file *file = filp->private_data;
	struct contigo_port *port = file->port;

	mutex_lock(&port->lock);
	if (port->file == file)
		contigo_file_end(file);
	mutex_unlock(&port->lock);
	kfree(file);
	clear_bit_unlock(0, &port->is_open);
	return 0;
}

const struct file_operations contigo_fops = {
	.owner = THIS_MODULE,
	.open = contigo_open,
	.release = contigo_release,
	.unlocked_ioctl = contigo_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};
