// SPDX-License-Identifier: GPL-2.0
/*
 * How a file begins: who may, the device awake and reset, its interrupts masked.
 */
#include <linux/capability.h>
#include <linux/kernel.h>
#include <linux/pci.h>
#include <linux/security.h>
#include <linux/slab.h>

#include "contigo_calls.h"
#include "contigo_compat.h"

int contigo_guard_lock(struct contigo_guard *guard)
{
	/* Nothing was done yet: a handler with SA_RESTART is not noticed. */
	if (mutex_lock_interruptible(&guard->lock))
		return -ERESTARTSYS;
	if (READ_ONCE(guard->dead)) {
		mutex_unlock(&guard->lock);
		return -ENODEV;
	}
	return 0;
}

/* A PCI function's reset needs it, and it comes before the guard's lock. */
void contigo_guard_lock_device(struct contigo_guard *guard)
{
	if (guard->pdev)
		device_lock(guard->dma_dev);
}

void contigo_guard_unlock_device(struct contigo_guard *guard)
{
	if (guard->pdev)
		device_unlock(guard->dma_dev);
}

/*
 * Who drives a device that nothing confines reaches all memory, the kernel's
 * too: as with /dev/mem, or VFIO without an IOMMU.
 */
static int contigo_may_open(struct contigo_guard *guard)
{
	int ret;

	if (contigo_dma_flags(guard) & CONTIGO_INFO_CONFINED)
		return 0;
	if (!contigo_unprivileged && !capable(CAP_SYS_RAWIO)) {
		dev_notice_ratelimited(guard->dma_dev,
				       "nothing confines it: open() needs CAP_SYS_RAWIO\n");
		return -EPERM;
	}
	ret = security_locked_down(guard->pdev ? LOCKDOWN_PCI_ACCESS : LOCKDOWN_DEV_MEM);
	if (ret)
		return ret;
	add_taint(TAINT_USER, LOCKDEP_STILL_OK);
	return 0;
}

static int contigo_file_wake(struct contigo_file *file)
{
	struct contigo_guard *guard = file->guard;
	int ret;

	if (guard->pdev)
		contigo_pci_set_master(guard->pdev, false);
	ret = contigo_power_up(guard->power);
	if (ret)
		return ret;
	ret = contigo_reset_device(guard, false);
	if (!ret) {
		file->mastered = true;
		return 0;
	}
	if (guard->reset)
		goto sleep;
	contigo_kept_try(guard);
	if (!contigo_kept_is_mapped(guard))
		return 0;
	ret = -EBUSY;
	dev_notice_ratelimited(guard->dma_dev,
			       "it has not stopped, and others' memory is mapped for it\n");
sleep:
	contigo_power_down(guard->power);
	return ret;
}

/* As before contigo_file_wake(): in reset, where it has lines, and then without clocks. */
static void contigo_file_unwake(struct contigo_file *file)
{
	struct contigo_guard *guard = file->guard;

	if (guard->reset)
		contigo_reset_device(guard, true);
	contigo_power_down(guard->power);
}

static int contigo_file_begin(struct contigo_file *file)
{
	struct contigo_guard *guard = file->guard;
	int ret;

	lockdep_assert_held(&guard->lock);
	ret = contigo_may_open(guard);
	if (!ret)
		ret = contigo_dma_set_bits(guard, guard->default_dma_bits);
	if (!ret)
		ret = contigo_file_wake(file);
	if (ret)
		return ret;
	contigo_registers_claim(file);
	ret = contigo_irq_begin(file);
	if (ret) {
		contigo_registers_unclaim(file);
		contigo_file_unwake(file);
		return ret;
	}
	guard->file = file;
	return 0;
}

static struct contigo_file *contigo_file_new(struct contigo_guard *guard)
{
	struct contigo_file *file;
	int ret;

	file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	if (!file)
		return ERR_PTR(-ENOMEM);
	file->guard = guard;
	init_waitqueue_head(&file->wait);
	file->held = kvzalloc(sizeof(*file->held), GFP_KERNEL_ACCOUNT);
	ret = file->held ? contigo_registers_new(file) : -ENOMEM;
	if (ret) {
		kvfree(file->held);
		kfree(file);
		return ERR_PTR(ret);
	}
	return file;
}

int contigo_open(struct inode *inode, struct file *filp)
{
	struct contigo_guard *guard = container_of(inode->i_cdev, struct contigo_guard, cdev);
	struct contigo_file *file;
	int ret;

	if (test_and_set_bit_lock(0, &guard->is_open))
		return -EBUSY;

	file = contigo_file_new(guard);
	if (IS_ERR(file)) {
		ret = PTR_ERR(file);
		goto clear;
	}
	contigo_guard_lock_device(guard);
	ret = contigo_guard_lock(guard);
	if (!ret) {
		ret = contigo_file_begin(file);
		mutex_unlock(&guard->lock);
	}
	contigo_guard_unlock_device(guard);
	if (ret)
		goto free;

	filp->private_data = file;
	filp->f_mapping = file->inode->i_mapping;
	return nonseekable_open(inode, filp);

free:
	contigo_registers_free(file);
	kvfree(file->held);
	kfree(file);
clear:
	clear_bit_unlock(0, &guard->is_open);
	return ret;
}
