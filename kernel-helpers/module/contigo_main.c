// SPDX-License-Identifier: GPL-2.0
/*
 * contigo: registers, interrupts, memory and a safe end for a device that user
 * space drives.
 */
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/kdev_t.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "contigo_calls.h"
#include "contigo_compat.h"

#define CONTIGO_MAX_GUARDS	256

bool contigo_unprivileged;
module_param_named(unprivileged, contigo_unprivileged, bool, 0444);
MODULE_PARM_DESC(unprivileged,
		 "Who may open a node reaches all memory where no IOMMU confines the device");

static bool contigo_with_pci;
module_param_named(pci, contigo_with_pci, bool, 0444);
MODULE_PARM_DESC(pci, "Bind PCI functions by driver_override: for tests, elsewhere use vfio-pci");

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
	.dev_groups = contigo_guard_groups,
};

int contigo_devt_get(dev_t *devt)
{
	int minor = ida_alloc_max(&contigo_minors, CONTIGO_MAX_GUARDS - 1, GFP_KERNEL);

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

	ret = contigo_registers_init();
	if (ret)
		return ret;
	ret = alloc_chrdev_region(&contigo_first_devt, 0, CONTIGO_MAX_GUARDS, "contigo");
	if (ret)
		goto exit_registers;
	ret = class_register(&contigo_class);
	if (ret)
		goto unregister_region;
	ret = contigo_platform_register();
	if (ret)
		goto unregister_class;
	if (contigo_with_pci)
		ret = contigo_pci_register();
	if (ret)
		goto unregister_platform;
	return 0;

unregister_platform:
	contigo_platform_unregister();
unregister_class:
	class_unregister(&contigo_class);
unregister_region:
	unregister_chrdev_region(contigo_first_devt, CONTIGO_MAX_GUARDS);
exit_registers:
	contigo_registers_exit();
	return ret;
}

static void __exit contigo_exit(void)
{
	if (contigo_with_pci)
		contigo_pci_unregister();
	contigo_platform_unregister();
	class_unregister(&contigo_class);
	unregister_chrdev_region(contigo_first_devt, CONTIGO_MAX_GUARDS);
	ida_destroy(&contigo_minors);
	contigo_kept_exit();
	contigo_registers_exit();
}

module_init(contigo_init);
module_exit(contigo_exit);

MODULE_DESCRIPTION("One node for a device that user space drives");
MODULE_AUTHOR("The Contigo developers");
MODULE_LICENSE("GPL");
MODULE_VERSION(CONTIGO_VERSION);
contigo_import_ns_dma_buf();
