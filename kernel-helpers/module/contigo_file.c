// SPDX-License-Identifier: GPL-2.0
/*
 * An open guard: its calls, and its last close. User memory is copied outside
 * the lock.
 */
#include <linux/build_bug.h>
#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "contigo_calls.h"
#include "contigo_compat.h"

/* The sizes that user space was compiled with: the same on 32 and 64 bits. */
static_assert(sizeof(struct contigo_window) == 24);
static_assert(sizeof(struct contigo_info) == 192);
static_assert(sizeof(struct contigo_dma_bits) == 8);
static_assert(sizeof(struct contigo_import) == 40);
static_assert(sizeof(struct contigo_segment) == 16);
static_assert(sizeof(struct contigo_segments) == 24);
static_assert(sizeof(struct contigo_release) == 8);
static_assert(sizeof(struct contigo_range) == 24);
static_assert(sizeof(struct contigo_sync) == 16);
static_assert(sizeof(struct contigo_step) == 24);
static_assert(sizeof(struct contigo_program) == 16);
static_assert(sizeof(struct contigo_bus_master) == 8);
static_assert(sizeof(struct contigo_unmask) == 8);
static_assert(sizeof(struct contigo_eventfd) == 8);

int contigo_file_lock(struct contigo_file *file)
{
	int ret = contigo_guard_lock(file->guard);

	if (!ret && file->gone) {
		mutex_unlock(&file->guard->lock);
		ret = -ENODEV;
	}
	return ret;
}

/* On 32 bits a pointer that is none must not become one. */
bool contigo_is_user_ptr(u64 ptr)
{
	return ptr == (uintptr_t)ptr;
}

static void contigo_fill_info(struct contigo_file *file, struct contigo_info *info)
{
	struct contigo_guard *guard = file->guard;
	u32 i;

	info->abi = CONTIGO_ABI;
	info->flags = contigo_dma_flags(guard);
	if (guard->pdev)
		info->flags |= CONTIGO_INFO_PCI;
	if (guard->can_reset)
		info->flags |= CONTIGO_INFO_RESET;
	if (file->held->stop)
		info->flags |= CONTIGO_INFO_ARMED;
	info->dma_bits = guard->dma_bits;
	info->imports = file->held->imports;
	contigo_kept_count(guard, &info->kept, &info->kept_bytes);
	info->interrupts = guard->interrupts;
	info->granule_bytes = dma_get_cache_alignment();
	info->dma_limit = guard->dma_dev->bus_dma_limit ?: U64_MAX;
	for (i = 0; i < CONTIGO_MAX_WINDOWS; i++) {
		const struct contigo_registers *window = &guard->window[i];

		if (!window->len_bytes)
			continue;
		info->window[i].len_bytes = window->len_bytes;
		info->window[i].mmap_offset = window->mmap_offset;
		info->window[i].in_page_bytes = offset_in_page(window->start);
		if (file->can_mmap & BIT(i))
			info->window[i].flags = CONTIGO_WINDOW_MMAP;
	}
}

static int contigo_ioctl_get_info(struct contigo_file *file, void __user *ptr)
{
	struct contigo_info info = { };
	u32 argsz;
	int ret;

	if (get_user(argsz, (u32 __user *)ptr))
		return -EFAULT;
	if (argsz < offsetof(struct contigo_info, dma_limit))
		return -EINVAL;

	ret = contigo_file_lock(file);
	if (ret)
		return ret;
	contigo_fill_info(file, &info);
	mutex_unlock(&file->guard->lock);

	info.argsz = sizeof(info);
	return copy_to_user(ptr, &info, min_t(size_t, argsz, sizeof(info))) ? -EFAULT : 0;
}

static int contigo_ioctl_arm(struct contigo_file *file, void __user *ptr)
{
	struct contigo_stop *stop = NULL;
	struct contigo_program arg;
	int ret;

	if (copy_from_user(&arg, ptr, sizeof(arg)))
		return -EFAULT;
	if (arg.reserved)
		return -EINVAL;
	if (arg.count > CONTIGO_MAX_STEPS)
		return -E2BIG;
	if (!contigo_is_user_ptr(arg.ptr))
		return -EFAULT;
	if (arg.count) {
		stop = contigo_stop_load(file->guard->window, u64_to_user_ptr(arg.ptr), arg.count);
		if (IS_ERR(stop))
			return PTR_ERR(stop);
	}

	ret = contigo_file_lock(file);
	if (!ret) {
		swap(file->held->stop, stop);
		mutex_unlock(&file->guard->lock);
	}
	contigo_stop_free(stop);
	return ret;
}

/* Not before somebody has seen the function stop: it would go on where it was. */
static int contigo_master(struct contigo_file *file, bool on)
{
	struct contigo_guard *guard = file->guard;

	if (on && !file->mastered) {
		if (!file->held->stop)
			return -EBUSY;
		if (!contigo_run_stop(guard, file->held->stop))
			return -ETIMEDOUT;
		contigo_kept_give_back(guard, file->held->stop, false);
		file->mastered = true;
	}
	if (on)
		WRITE_ONCE(file->touched, true);
	contigo_pci_set_master(guard->pdev, on);
	return 0;
}

static int contigo_ioctl_set_bus_master(struct contigo_file *file, void __user *ptr)
{
	struct contigo_bus_master arg;
	int ret;

	if (copy_from_user(&arg, ptr, sizeof(arg)))
		return -EFAULT;
	if (arg.on > 1 || arg.reserved)
		return -EINVAL;
	if (!file->guard->pdev)
		return -EOPNOTSUPP;

	ret = contigo_file_lock(file);
	if (ret)
		return ret;
	ret = contigo_master(file, arg.on);
	mutex_unlock(&file->guard->lock);
	return ret;
}

static int contigo_ioctl_unmask(struct contigo_file *file, void __user *ptr)
{
	struct contigo_unmask arg;
	int ret;

	if (copy_from_user(&arg, ptr, sizeof(arg)))
		return -EFAULT;
	if (arg.reserved)
		return -EINVAL;
	ret = contigo_file_lock(file);
	if (ret)
		return ret;
	ret = contigo_irq_unmask(file, arg.interrupts);
	mutex_unlock(&file->guard->lock);
	return ret;
}

static int contigo_ioctl_set_eventfd(struct contigo_file *file, void __user *ptr)
{
	struct contigo_eventfd arg;

	if (copy_from_user(&arg, ptr, sizeof(arg)))
		return -EFAULT;
	return contigo_irq_set_eventfd(file, arg.interrupt, arg.fd);
}

static int contigo_ioctl_reset(struct contigo_file *file)
{
	struct contigo_guard *guard = file->guard;
	int ret;

	contigo_guard_lock_device(guard);
	ret = contigo_file_lock(file);
	if (!ret) {
		ret = guard->can_reset ? contigo_file_reset(file) : -EOPNOTSUPP;
		mutex_unlock(&guard->lock);
	}
	contigo_guard_unlock_device(guard);
	return ret;
}

static int contigo_dispatch(struct contigo_file *file, unsigned int cmd, void __user *ptr)
{
	switch (cmd) {
	case CONTIGO_GET_INFO:
		return contigo_ioctl_get_info(file, ptr);
	case CONTIGO_SET_DMA_BITS:
		return contigo_ioctl_set_dma_bits(file, ptr);
	case CONTIGO_IMPORT:
		return contigo_ioctl_import(file, ptr);
	case CONTIGO_GET_SEGMENTS:
		return contigo_ioctl_get_segments(file, ptr);
	case CONTIGO_RELEASE:
		return contigo_ioctl_release(file, ptr);
	case CONTIGO_SYNC:
		return contigo_ioctl_sync(file, ptr);
	case CONTIGO_ARM:
		return contigo_ioctl_arm(file, ptr);
	case CONTIGO_SET_BUS_MASTER:
		return contigo_ioctl_set_bus_master(file, ptr);
	case CONTIGO_UNMASK:
		return contigo_ioctl_unmask(file, ptr);
	case CONTIGO_SET_EVENTFD:
		return contigo_ioctl_set_eventfd(file, ptr);
	case CONTIGO_RESET:
		return contigo_ioctl_reset(file);
	default:
		return -ENOTTY;
	}
}

static long contigo_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	struct contigo_file *file = filp->private_data;
	int ret;

	/* Before any argument is looked at; contigo_file_lock() decides. */
	if (READ_ONCE(file->gone))
		return -ENODEV;
	ret = contigo_dispatch(file, cmd, (void __user *)arg);
	switch (ret) {
	case -EINVAL:
	case -ENXIO:
	case -E2BIG:
	case -ENOTTY:
		dev_notice_ratelimited(file->guard->dma_dev, "ioctl %#x: error %d\n", cmd, ret);
		break;
	}
	return ret;
}

static int contigo_release(struct inode *inode, struct file *filp)
{
	struct contigo_file *file = filp->private_data;
	struct contigo_guard *guard = file->guard;

	contigo_guard_lock_device(guard);
	mutex_lock(&guard->lock);
	if (guard->file == file)
		contigo_file_end(file);
	mutex_unlock(&guard->lock);
	contigo_guard_unlock_device(guard);

	filp->f_mapping = inode->i_mapping;
	contigo_registers_free(file);
	kfree(file);
	clear_bit_unlock(0, &guard->is_open);
	return 0;
}

const struct file_operations contigo_fops = {
	.owner = THIS_MODULE,
	.open = contigo_open,
	.release = contigo_release,
	.read = contigo_read,
	.poll = contigo_poll,
	.mmap = contigo_mmap,
	.unlocked_ioctl = contigo_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};
