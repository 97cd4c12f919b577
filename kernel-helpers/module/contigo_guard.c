// SPDX-License-Identifier: GPL-2.0
/*
 * A guard: a device that masters memory, bound to this module, and its character
 * device. Unbinding, shutdown and system sleep take it from who has it open.
 */
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/slab.h>

#include "contigo_calls.h"
#include "contigo_compat.h"

static void contigo_guard_free(struct device *dev)
{
	struct contigo_guard *guard = container_of(dev, struct contigo_guard, dev);

	contigo_devt_put(dev->devt);
	put_device(guard->dma_dev);
	mutex_destroy(&guard->lock);
	kfree(guard);
}

/**
 * contigo_guard_new - a guard without registers, not yet visible
 * @dma_dev: the device that is being bound
 *
 * Return: the guard, which put_device(&guard->dev) frees, or an ERR_PTR().
 */
struct contigo_guard *contigo_guard_new(struct device *dma_dev)
{
	struct contigo_guard *guard;
	int ret;

	guard = kzalloc(sizeof(*guard), GFP_KERNEL);
	if (!guard)
		return ERR_PTR(-ENOMEM);
	ret = contigo_devt_get(&guard->dev.devt);
	if (ret) {
		kfree(guard);
		return ERR_PTR(ret);
	}

	mutex_init(&guard->lock);
	guard->dma_dev = get_device(dma_dev);
	if (dev_is_pci(dma_dev))
		guard->pdev = to_pci_dev(dma_dev);
	device_initialize(&guard->dev);
	guard->dev.class = &contigo_class;
	guard->dev.parent = dma_dev;
	guard->dev.release = contigo_guard_free;
	cdev_init(&guard->cdev, &contigo_fops);
	guard->cdev.owner = THIS_MODULE;

	ret = dev_set_name(&guard->dev, "%s", dev_name(dma_dev));
	if (!ret)
		ret = contigo_dma_set_up(guard);
	if (ret) {
		contigo_dma_restore(guard);
		put_device(&guard->dev);
		return ERR_PTR(ret);
	}
	return guard;
}

/* Its windows are known: where each begins in the file, whole pages after whole pages. */
int contigo_guard_set_windows(struct contigo_guard *guard)
{
	u64 next = 0;
	u32 i;

	for (i = 0; i < CONTIGO_MAX_WINDOWS; i++) {
		struct contigo_registers *window = &guard->window[i];

		if (!window->len_bytes)
			continue;
		if (window->start + window->len_bytes < window->start)
			return dev_err_probe(guard->dma_dev, -EINVAL, "window %u has no end\n", i);
		window->mmap_offset = next;
		next += PAGE_ALIGN(offset_in_page(window->start) + window->len_bytes);
	}
	return 0;
}

/* From here on it can be opened. On failure the caller puts it. */
int contigo_guard_add(struct contigo_guard *guard)
{
	int ret;

	guard->kept = contigo_kept_get(guard);
	if (!guard->kept)
		return -ENOMEM;
	dev_set_drvdata(guard->dma_dev, guard);
	ret = cdev_device_add(&guard->cdev, &guard->dev);
	if (ret)
		contigo_kept_leave(guard);
	return ret;
}

/* The file's end, and a last look at what earlier ones left. Has the device stopped? */
static bool contigo_guard_end(struct contigo_guard *guard)
{
	bool stopped = true;

	lockdep_assert_held(&guard->lock);
	if (guard->file)
		stopped = contigo_file_end(guard->file);
	if (guard->pdev && contigo_pci_is_gone(guard->pdev))
		contigo_kept_give_back(guard, NULL, true);
	if (stopped && contigo_kept_is_at_work(guard) && !contigo_power_up(guard->power)) {
		contigo_kept_try(guard);
		contigo_power_down(guard->power);
	}
	return stopped && !contigo_kept_is_at_work(guard);
}

/* Nobody gets it any more, and its file ends. Has the device stopped? */
static bool contigo_guard_take(struct contigo_guard *guard)
{
	bool stopped;

	WRITE_ONCE(guard->dead, true);
	mutex_lock(&guard->lock);
	stopped = contigo_guard_end(guard);
	mutex_unlock(&guard->lock);
	return stopped;
}

/*
 * The device is unbound, perhaps under a user. It is stopped as on a close. The
 * file's memory is given back while the device still exists; the file itself
 * stays open and answers ENODEV. dead is set first, for a caller that holds the
 * lock in a long sync; the device is ours until this returns.
 */
void contigo_guard_remove(struct contigo_guard *guard)
{
	contigo_guard_take(guard);
	mutex_lock(&guard->lock);
	contigo_kept_unmap(guard);
	contigo_dma_restore(guard);
	mutex_unlock(&guard->lock);

	cdev_device_del(&guard->cdev, &guard->dev);
	contigo_kept_leave(guard);
	if (guard->power)
		contigo_power_free(guard->power);
	put_device(&guard->dev);
}

/* Also before another kernel begins (kexec): its memory does not belong to the device. */
void contigo_guard_shutdown(struct contigo_guard *guard)
{
	if (!contigo_guard_take(guard))
		dev_emerg(guard->dma_dev, "not stopped: it may write to the next kernel's memory\n");
}

/*
 * The system goes to sleep, or an image of it is made (hibernation): the device
 * forgets what user space told it, or goes on while memory stands still. So the
 * file ends. One that nothing can stop is not touched: the sleep is refused. So
 * it is, each time, while the device has not stopped since an earlier file.
 */
static int __maybe_unused contigo_guard_suspend(struct device *dev)
{
	struct contigo_guard *guard = dev_get_drvdata(dev);
	struct contigo_file *file;
	int ret = 0;

	mutex_lock(&guard->lock);
	file = guard->file;
	if (file && !file->held->stop && !guard->can_reset)
		ret = -EBUSY;
	else if (!contigo_guard_end(guard))
		ret = -EBUSY;
	mutex_unlock(&guard->lock);
	if (ret)
		dev_err(dev, "nothing stops it: the system cannot sleep\n");
	return ret;
}

const struct dev_pm_ops contigo_pm_ops = {
	SET_SYSTEM_SLEEP_PM_OPS(contigo_guard_suspend, NULL)
};

/*
 * /sys/class/contigo/NAME/reset: takes the device from who has it, and resets
 * it. remove() waits for this function with PCI's device_lock() held, so that
 * one is only tried.
 */
static ssize_t reset_store(struct device *dev, struct device_attribute *attr, const char *buf,
			   size_t len)
{
	struct contigo_guard *guard = container_of(dev, struct contigo_guard, dev);
	bool on;
	int ret;

	ret = kstrtobool(buf, &on);
	if (ret || !on)
		return ret ?: -EINVAL;
	if (guard->pdev && !device_trylock(guard->dma_dev))
		return -EBUSY;
	mutex_lock(&guard->lock);
	ret = READ_ONCE(guard->dead) ? -ENODEV : contigo_guard_reset(guard);
	mutex_unlock(&guard->lock);
	contigo_guard_unlock_device(guard);
	return ret ?: len;
}
static DEVICE_ATTR_WO(reset);

static struct attribute *contigo_guard_attrs[] = {
	&dev_attr_reset.attr,
	NULL
};

static const struct attribute_group contigo_guard_group = {
	.attrs = contigo_guard_attrs,
};

const struct attribute_group *contigo_guard_groups[] = {
	&contigo_guard_group,
	NULL
};
