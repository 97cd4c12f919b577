// SPDX-License-Identifier: GPL-2.0
/*
 * contigo: bus addresses, ranged cache maintenance and a safe end for dma-bufs
 * of a device that user space drives.
 */
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/kdev_t.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/slab.h>

#include "contigo_internal.h"
#include "contigo_compat.h"

#define CONTIGO_MAX_PORTS	256

static dev_t contigo_first_devt;
static DEFINE_IDA(contigo_minors);

/* udev gives it a group. */
static char *contigo_devnode(contigo_devnode_device *dev, umode_t *mode)
{
	if (mode)
		*mode = 0660;
	return kasprintf(GFP_KERNEL, "contigo/%s", dev_name(dev));
}

struct class contigo_class = {
	.name = "contigo",
	.devnode = contigo_devnode,
};

int contigo_devt_get(dev_t *devt)
{
	int minor = ida_alloc_max(&contigo_minors, CONTIGO_MAX_PORTS - 1, GFP_KERNEL);

	if (minor < 0)
		return minor;
	*devt = MKDEV(MAJOR(contigo_first_devt), MINOR(contigo_first_devt) + minor);
	return 0;
}

void contigo_devt_put(dev_t devt)
{
	ida_free(&contigo_minors, MINOR(devt) - MINOR(contigo_first_devt));
}

static int __init contigo_init(void)
{
	int ret;

	ret = alloc_chrdev_region(&contigo_first_devt, 0, CONTIGO_MAX_PORTS, "contigo");
	if (ret)
		return ret;
	ret = class_register(&contigo_class);
	if (ret)
		goto unregister_region;
	ret = platform_driver_register(&contigo_platform_driver);
	if (ret)
		goto unregister_class;
	ret = contigo_pci_register();
	if (ret)
		goto unregister_platform;
	return 0;

unregister_platform:
	platform_driver_unregister(&contigo_platform_driver);
unregister_class:
	class_unregister(&contigo_class);
unregister_region:
	unregister_chrdev_region(contigo_first_devt, CONTIGO_MAX_PORTS);
	return ret;
}

static void __exit contigo_exit(void)
{
	contigo_pci_unregister();
	platform_driver_unregister(&contigo_platform_driver);
	class_unregister(&contigo_class);
	unregister_chrdev_region(contigo_first_devt, CONTIGO_MAX_PORTS);
	ida_destroy(&contigo_minors);
}

module_init(contigo_init);
module_exit(contigo_exit);

MODULE_DESCRIPTION("DMA memory for devices that user space drives");
MODULE_AUTHOR("The Contigo developers");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
contigo_import_ns_dma_buf();
