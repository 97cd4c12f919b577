// SPDX-License-Identifier: GPL-2.0
/*
 * The module; and a node: a platform device that masters memory, bound to it, and its
 * character device. Unbinding, shutdown, system sleep and the administrator take the
 * device from who has it open.
 */
#include <linux/idr.h>
#include <linux/mm.h>
#include <linux/mod_devicetable.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/property.h>
#include <linux/slab.h>

#include "contigo_compat.h"
#include "contigo_internal.h"

/* Minor numbers. */
#define CONTIGO_MAX_NODES	256

bool contigo_unprivileged;
module_param_named(unprivileged, contigo_unprivileged, bool, 0444);
MODULE_PARM_DESC(unprivileged,
		 "Who may open a node reaches all memory where no IOMMU confines the device");

static bool contigo_sleep_needs_stop;
module_param_named(sleep_needs_stop, contigo_sleep_needs_stop, bool, 0644);
MODULE_PARM_DESC(sleep_needs_stop, "Refuse system sleep while a device has not stopped");

uint contigo_max_mib;
module_param_named(max_mib, contigo_max_mib, uint, 0644);
MODULE_PARM_DESC(max_mib,
		 "Memory of one device, with its quarantine, in MiB (default a quarter of all, at most 1024)");

static dev_t contigo_first_devt;
static DEFINE_IDA(contigo_minors);

/* For the administrator: takes the device from who has it, and resets it. */
static ssize_t reset_store(struct device *dev, struct device_attribute *attr, const char *buf,
			   size_t len)
{
	struct contigo_node *node = container_of(dev, struct contigo_node, dev);
	bool on;
	int ret;

	ret = kstrtobool(buf, &on);
	if (ret || !on)
		return ret ?: -EINVAL;
	ret = contigo_node_lock(node);
	if (ret)
		return ret;
	ret = contigo_node_reset(node);
	mutex_unlock(&node->lock);
	return ret ?: len;
}
static DEVICE_ATTR_WO(reset);

static ssize_t quarantine_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct contigo_node *node = container_of(dev, struct contigo_node, dev);

	return sysfs_emit(buf, "%llu\n", READ_ONCE(node->quarantined_bytes));
}

/* 0: the administrator does not wait for the device to stop. */
static ssize_t quarantine_store(struct device *dev, struct device_attribute *attr,
				const char *buf, size_t len)
{
	struct contigo_node *node = container_of(dev, struct contigo_node, dev);
	u64 bytes, lost_bytes;
	int ret;

	ret = kstrtou64(buf, 0, &bytes);
	if (ret || bytes)
		return ret ?: -EINVAL;
	ret = contigo_node_lock(node);
	if (ret)
		return ret;
	lost_bytes = contigo_quarantine_discard(node);
	mutex_unlock(&node->lock);
	dev_notice(node->dma_dev, "quarantine ended: %llu bytes are lost\n", lost_bytes);
	return len;
}
static DEVICE_ATTR_RW(quarantine);

static struct attribute *contigo_node_attrs[] = {
	&dev_attr_quarantine.attr,
	&dev_attr_reset.attr,
	NULL
};
ATTRIBUTE_GROUPS(contigo_node);

/* udev gives it a group. */
static char *contigo_devnode(contigo_devnode_device *dev, umode_t *mode)
{
	if (mode)
		*mode = 0660;
	return kasprintf(GFP_KERNEL, "contigo/%s", dev_name(dev));
}

static struct class contigo_class = {
	.name = "contigo",
	.devnode = contigo_devnode,
	.dev_groups = contigo_node_groups,
};

static void contigo_node_release(struct device *dev)
{
	struct contigo_node *node = container_of(dev, struct contigo_node, dev);

	ida_free(&contigo_minors, MINOR(dev->devt) - MINOR(contigo_first_devt));
	put_device(node->dma_dev);
	mutex_destroy(&node->dma_lock);
	mutex_destroy(&node->lock);
	kfree(node);
}

/* A node that is not yet visible, which put_device() frees, or an ERR_PTR(). */
static struct contigo_node *contigo_node_new(struct device *dma_dev)
{
	struct contigo_node *node = kzalloc(sizeof(*node), GFP_KERNEL);
	int minor;

	if (!node)
		return ERR_PTR(-ENOMEM);
	minor = ida_alloc_max(&contigo_minors, CONTIGO_MAX_NODES - 1, GFP_KERNEL);
	if (minor < 0) {
		kfree(node);
		return ERR_PTR(minor);
	}
	node->dev.devt = MKDEV(MAJOR(contigo_first_devt), MINOR(contigo_first_devt) + minor);
	mutex_init(&node->lock);
	mutex_init(&node->dma_lock);
	INIT_LIST_HEAD(&node->owns);
	INIT_LIST_HEAD(&node->quarantine);
	node->dma_dev = get_device(dma_dev);
	device_initialize(&node->dev);
	node->dev.class = &contigo_class;
	node->dev.parent = dma_dev;
	node->dev.release = contigo_node_release;
	cdev_init(&node->cdev, &contigo_fops);
	node->cdev.owner = THIS_MODULE;
	if (!dev_set_name(&node->dev, "%s", dev_name(dma_dev)))
		return node;
	put_device(&node->dev);
	return ERR_PTR(-ENOMEM);
}

/* Windows of which the device tree says that all of it answers. */
static void contigo_node_find_answering(struct contigo_node *node)
{
	int count = device_property_count_u32(node->dma_dev, "contigo,stop-windows");
	u32 window[CONTIGO_MAX_WINDOWS];

	count = min(count, CONTIGO_MAX_WINDOWS);
	if (count <= 0 ||
	    device_property_read_u32_array(node->dma_dev, "contigo,stop-windows", window, count))
		return;
	while (count--) {
		if (window[count] < CONTIGO_MAX_WINDOWS)
			node->window[window[count]].answers = true;
	}
}

/* Each begins in the file where the one before has ended, at a page. */
static int contigo_node_find_windows(struct contigo_node *node, struct platform_device *pdev)
{
	struct device *dev = &pdev->dev;
	u64 next = 0;
	u32 i;

	for (i = 0; i < CONTIGO_MAX_WINDOWS; i++) {
		struct contigo_registers *window = &node->window[i];
		struct resource *res = platform_get_resource(pdev, IORESOURCE_MEM, i);

		if (!res)
			break;
		if (!devm_request_mem_region(dev, res->start, resource_size(res), dev_name(dev)))
			return dev_err_probe(dev, -EBUSY, "window %u, %pR: in use\n", i, res);
		window->start = res->start;
		window->len_bytes = resource_size(res);
		window->mmap_offset = next;
		next += PAGE_ALIGN(window->len_bytes);
	}
	if (platform_get_resource(pdev, IORESOURCE_MEM, CONTIGO_MAX_WINDOWS))
		return dev_err_probe(dev, -E2BIG, "more than %d windows\n", CONTIGO_MAX_WINDOWS);
	contigo_node_find_answering(node);
	if (next >> CONTIGO_HANDLE_SHIFT)
		return dev_err_probe(dev, -E2BIG, "windows of %llu bytes\n", next);
	return 0;
}

static int contigo_node_find_irqs(struct contigo_node *node, struct platform_device *pdev)
{
	int count = platform_irq_count(pdev);
	int i, irq;

	if (count < 0)
		return dev_err_probe(&pdev->dev, count, "interrupts\n");
	if (count > CONTIGO_MAX_INTERRUPTS)
		return dev_err_probe(&pdev->dev, -E2BIG, "%d interrupts; %d at most\n", count,
				     CONTIGO_MAX_INTERRUPTS);
	for (i = 0; i < count; i++) {
		irq = platform_get_irq_optional(pdev, i);
		if (irq < 0)
			return dev_err_probe(&pdev->dev, irq, "interrupt %d\n", i);
		node->irq[i] = irq;
	}
	node->interrupts = count;
	return 0;
}

static int contigo_probe(struct platform_device *pdev)
{
	struct contigo_node *node = contigo_node_new(&pdev->dev);
	int ret;

	if (IS_ERR(node))
		return PTR_ERR(node);
	ret = contigo_node_find_windows(node, pdev);
	if (!ret)
		ret = contigo_node_find_irqs(node, pdev);
	if (!ret)
		ret = contigo_reset_find(node);
	if (!ret)
		ret = contigo_dma_set_up(node);
	if (ret)
		goto put;
	ret = contigo_power_find(node);
	if (ret)
		goto restore;
	platform_set_drvdata(pdev, node);
	/* From here on it can be opened. */
	ret = cdev_device_add(&node->cdev, &node->dev);
	if (ret)
		goto put_power;
	return 0;

put_power:
	contigo_power_put(node);
restore:
	contigo_dma_restore(node);
put:
	put_device(&node->dev);
	return ret;
}

/*
 * The device is unbound, perhaps under a user. It is stopped as on a close. What
 * the DMA API has for it is given back while the device still exists; the file
 * stays open and answers ENODEV. dead is set first: calls that begin now do not
 * wait for the lock.
 */
static void contigo_remove(struct platform_device *pdev)
{
	struct contigo_node *node = platform_get_drvdata(pdev);
	u64 lost_bytes;

	WRITE_ONCE(node->dead, true);
	mutex_lock(&node->lock);
	contigo_node_end(node);
	lost_bytes = contigo_quarantine_discard(node);
	contigo_own_forget(node);
	contigo_dma_restore(node);
	mutex_unlock(&node->lock);
	if (lost_bytes)
		dev_err(&pdev->dev, "not stopped: %llu bytes are lost\n", lost_bytes);

	cdev_device_del(&node->cdev, &node->dev);
	contigo_power_put(node);
	put_device(&node->dev);
}

/* Before 6.11 remove() returned what the core did not look at. */
#if KERNEL_VERSION(6, 11, 0) > LINUX_VERSION_CODE
static int contigo_remove_op(struct platform_device *pdev)
{
	contigo_remove(pdev);
	return 0;
}
#else
#define contigo_remove_op	contigo_remove
#endif

/* Also before another kernel begins (kexec): its memory does not belong to the device. */
static void contigo_shutdown(struct platform_device *pdev)
{
	struct contigo_node *node = platform_get_drvdata(pdev);

	WRITE_ONCE(node->dead, true);
	mutex_lock(&node->lock);
	if (!contigo_node_end(node))
		dev_emerg(&pdev->dev,
			  "not stopped: it may write to the next kernel's memory\n");
	mutex_unlock(&node->lock);
}

/*
 * The system goes to sleep, or an image of it is made (hibernation): the device
 * forgets what user space told it. So the file ends. A device that has not
 * stopped writes what is in quarantine, and nothing else; the administrator may
 * want no sleep then.
 */
static int __maybe_unused contigo_suspend(struct device *dev)
{
	struct contigo_node *node = dev_get_drvdata(dev);
	bool stopped;

	mutex_lock(&node->lock);
	stopped = !contigo_sleep_needs_stop || !node->file || node->resets ||
		  node->file->session->stop;
	if (stopped)
		stopped = contigo_node_end(node) || !contigo_sleep_needs_stop;
	if (stopped)
		contigo_quarantine_disarm(node);
	mutex_unlock(&node->lock);
	if (!stopped)
		dev_err(dev, "not stopped: no sleep (sleep_needs_stop)\n");
	return stopped ? 0 : -EBUSY;
}

static SIMPLE_DEV_PM_OPS(contigo_pm_ops, contigo_suspend, NULL);

static const struct of_device_id contigo_of_match[] = {
	{ .compatible = "contigo,engine" },
	{ }
};
MODULE_DEVICE_TABLE(of, contigo_of_match);

static struct platform_driver contigo_driver = {
	.probe = contigo_probe,
	.remove = contigo_remove_op,
	.shutdown = contigo_shutdown,
	.driver = {
		.name = "contigo",
		.of_match_table = contigo_of_match,
		.pm = &contigo_pm_ops,
	},
};

static int __init contigo_init(void)
{
	int ret;

	if (!contigo_max_mib)
		contigo_max_mib = min(totalram_pages() >> (20 - PAGE_SHIFT + 2), 1024UL);
	ret = alloc_chrdev_region(&contigo_first_devt, 0, CONTIGO_MAX_NODES, "contigo");
	if (ret)
		return ret;
	ret = class_register(&contigo_class);
	if (ret)
		goto unregister_region;
	ret = platform_driver_register(&contigo_driver);
	if (ret)
		goto unregister_class;
	return 0;

unregister_class:
	class_unregister(&contigo_class);
unregister_region:
	unregister_chrdev_region(contigo_first_devt, CONTIGO_MAX_NODES);
	return ret;
}

static void __exit contigo_exit(void)
{
	platform_driver_unregister(&contigo_driver);
	class_unregister(&contigo_class);
	unregister_chrdev_region(contigo_first_devt, CONTIGO_MAX_NODES);
}

module_init(contigo_init);
module_exit(contigo_exit);

MODULE_DESCRIPTION("One node for a device that user space drives");
MODULE_AUTHOR("The Contigo developers");
MODULE_LICENSE("GPL");
MODULE_VERSION(CONTIGO_VERSION);
contigo_import_ns_dma_buf();
