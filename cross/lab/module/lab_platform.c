// SPDX-License-Identifier: GPL-2.0
/*
 * PCI functions as platform devices: QEMU adds only PCI functions to a machine, and a SoC's core is
 * none. Who writes "ADDRESS NAME" or "ADDRESS NAME reset" to contigo-lab/platform gets the platform
 * device BAR.NAME, by where BAR 0 is: with its memory BARs, its interrupt (INTx), and mastering the
 * bus. In the second form with a reset line (lab_reset.c has to know NAME).
 *
 * No driver may have the function itself. One that is bound joins the IOMMU, with the stream ID
 * that is its platform device's here; and it would have the interrupt. From 6.15 on a function
 * joins without a driver: there the board's tree has to leave it out of the bridge's iommu-map.
 */
#include <linux/iommu.h>
#include <linux/module.h>
#include <linux/of.h>
#include <linux/of_address.h>
#include <linux/of_pci.h>
#include <linux/pci.h>
#include <linux/property.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/version.h>

#include "lab.h"

/*
 * Where nothing answers: QEMU's machine virt has nothing between virtio's transports and the bus of
 * its platform devices (hw/arm/virt.c), and a read there is an external abort.
 */
#define LAB_HOLE	0x0b000000
#define LAB_HOLE_BYTES	0x1000

/* Of the text that is written. */
#define LAB_TEXT_MAX	64

/*
 * A node says that the device snoops, who translates its addresses, and what resets it. Debian's
 * 6.12 cannot add one, and before 6.12 it takes more: a device without a node has none of these.
 */
#define LAB_HAS_NODES							\
	(IS_ENABLED(CONFIG_OF_DYNAMIC) && KERNEL_VERSION(6, 12, 0) <= LINUX_VERSION_CODE)

/**
 * struct lab_function - one function
 * @list: in lab_functions
 * @function: a reference, enabled
 * @name: of the kind, as it was written
 * @changes: to the device tree
 * @without_reset: another one, which takes the reset line from it
 * @has_no_reset: that one is made
 * @node: added, or NULL
 * @reset_node: the same of its reset controller
 * @device: made of it
 * @reset: its reset controller, or NULL
 * @companion: another device in its IOMMU group, or NULL
 * @hole: a device whose registers do not answer, or NULL
 * @folder: contigo-lab/<device>/ in debugfs
 */
struct lab_function {
	struct list_head list;
	struct pci_dev *function;
	char name[LAB_TEXT_MAX];
#if LAB_HAS_NODES
	struct of_changeset changes;
	struct of_changeset without_reset;
	bool has_no_reset;
#endif
	struct device_node *node;
	struct device_node *reset_node;
	struct platform_device *device;
	struct platform_device *reset;
	struct platform_device *companion;
	struct platform_device *hole;
	struct dentry *folder;
};

static LIST_HEAD(lab_functions);
static DEFINE_MUTEX(lab_functions_lock);

#if LAB_HAS_NODES

/* dtc and QEMU number from 1 and from 0x8000 on. */
#define LAB_PHANDLE	0x10000

static struct device_node *lab_host_bridge(struct pci_dev *function)
{
	struct pci_bus *bus = function->bus;

	while (bus->parent)
		bus = bus->parent;
	return bus->bridge->parent ? bus->bridge->parent->of_node : NULL;
}

/* Two that no node has. */
static phandle lab_free_phandles(void)
{
	struct device_node *first, *second;
	phandle free;

	for (free = LAB_PHANDLE;; free += 2) {
		first = of_find_node_by_phandle(free);
		second = of_find_node_by_phandle(free + 1);
		of_node_put(first);
		of_node_put(second);
		if (!first && !second)
			return free;
	}
}

/* The node's contents are those of a core that is where the function is. */
static int lab_node_describe(struct lab_function *lab, struct device_node *bridge)
{
	struct resource *bar = &lab->function->resource[0];
	u32 reg[] = { upper_32_bits(bar->start), lower_32_bits(bar->start),
		      upper_32_bits(resource_size(bar)), lower_32_bits(resource_size(bar)) };
	struct device_node *iommu = NULL;
	u32 iommus[2];
	int err;

	err = of_changeset_add_prop_string(&lab->changes, lab->node, "compatible",
					   "contigo,engine");
	if (!err)
		err = of_changeset_add_prop_u32_array(&lab->changes, lab->node, "reg", reg,
						      ARRAY_SIZE(reg));
	if (!err && of_dma_is_coherent(bridge))
		err = of_changeset_add_prop_bool(&lab->changes, lab->node, "dma-coherent");
	if (err || of_map_id(bridge, pci_dev_id(lab->function), "iommu-map", "iommu-map-mask",
			     &iommu, &iommus[1]) || !iommu)
		return err;
	iommus[0] = iommu->phandle;
	of_node_put(iommu);
	return of_changeset_add_prop_u32_array(&lab->changes, lab->node, "iommus", iommus,
					       ARRAY_SIZE(iommus));
}

/* A reset controller that has this device alone. */
static int lab_node_add_reset(struct lab_function *lab, phandle own)
{
	u32 resets[] = { own + 1, 0 };
	int err;

	lab->reset_node = of_changeset_create_node(&lab->changes, of_root, "lab-platform-reset");
	if (!lab->reset_node)
		return -ENOMEM;
	of_node_set_flag(lab->reset_node, OF_POPULATED);
	err = of_changeset_add_prop_string(&lab->changes, lab->reset_node, "compatible",
					   "contigo-lab,reset");
	if (!err)
		err = of_changeset_add_prop_string(&lab->changes, lab->reset_node, "kind",
						   lab->name);
	if (!err)
		err = of_changeset_add_prop_u32(&lab->changes, lab->reset_node, "#reset-cells", 1);
	if (!err)
		err = of_changeset_add_prop_u32(&lab->changes, lab->reset_node, "engines", own);
	if (!err)
		err = of_changeset_add_prop_u32_array(&lab->changes, lab->node, "resets", resets,
						      ARRAY_SIZE(resets));
	return err;
}

/* The kernel makes no devices of them (OF_POPULATED): they have an interrupt and a parent here. */
static int lab_nodes_add(struct lab_function *lab, bool has_reset)
{
	struct device_node *bridge = lab_host_bridge(lab->function);
	phandle own = lab_free_phandles();
	int err;

	of_changeset_init(&lab->changes);
	lab->node = of_changeset_create_node(&lab->changes, of_root, lab->name);
	err = lab->node ? 0 : -ENOMEM;
	if (!err) {
		of_node_set_flag(lab->node, OF_POPULATED);
		err = lab_node_describe(lab, bridge);
	}
	if (!err && has_reset)
		err = lab_node_add_reset(lab, own);
	if (!err)
		err = of_changeset_apply(&lab->changes);
	if (err) {
		of_changeset_destroy(&lab->changes);
		lab->node = NULL;
		lab->reset_node = NULL;
		return err;
	}
	/* A node's number is read when it is attached, and that is before it has properties. */
	lab->node->phandle = own;
	if (lab->reset_node)
		lab->reset_node->phandle = own + 1;
	return 0;
}

/* Takes the reset line from a device that has no driver, or gives it back. */
static int lab_reset_take(struct lab_function *lab, bool take)
{
	int err;

	if (take == lab->has_no_reset)
		return 0;
	if (lab->device->dev.driver)
		return -EBUSY;
	if (!take) {
		err = of_changeset_revert(&lab->without_reset);
		if (err)
			return err;
		of_changeset_destroy(&lab->without_reset);
		lab->has_no_reset = false;
		return 0;
	}
	of_changeset_init(&lab->without_reset);
	err = of_changeset_remove_property(&lab->without_reset, lab->node,
					   of_find_property(lab->node, "resets", NULL));
	if (!err)
		err = of_changeset_apply(&lab->without_reset);
	if (err)
		of_changeset_destroy(&lab->without_reset);
	else
		lab->has_no_reset = true;
	return err;
}

static void lab_nodes_remove(struct lab_function *lab)
{
	if (!lab->node)
		return;
	if (lab->has_no_reset) {
		of_changeset_revert(&lab->without_reset);
		of_changeset_destroy(&lab->without_reset);
	}
	of_changeset_revert(&lab->changes);
	of_changeset_destroy(&lab->changes);
}

#else

static int lab_nodes_add(struct lab_function *lab, bool has_reset)
{
	return has_reset ? -EOPNOTSUPP : 0;
}

static int lab_reset_take(struct lab_function *lab, bool take)
{
	return -EOPNOTSUPP;
}

static void lab_nodes_remove(struct lab_function *lab)
{
}

#endif

/* Each of a model's registers answers, in the window that it has. */
static const struct property_entry lab_properties[] = {
	PROPERTY_ENTRY_U32("contigo,stop-windows", 0),
	{}
};

static struct platform_device *lab_device(struct lab_function *lab, const char *what,
					  struct device_node *node, const struct resource *res,
					  unsigned int count)
{
	struct platform_device_info info = {
		.parent = &lab->function->dev,
		.fwnode = of_fwnode_handle(node),
		.id = PLATFORM_DEVID_NONE,
		.res = res,
		.num_res = count,
		.properties = count ? lab_properties : NULL,
	};
	struct platform_device *device;

	info.name = kasprintf(GFP_KERNEL, "%llx.%s",
			      (unsigned long long)pci_resource_start(lab->function, 0), what);
	if (!info.name)
		return ERR_PTR(-ENOMEM);
	device = platform_device_register_full(&info);
	kfree(info.name);
	return device;
}

static int lab_companion_add(struct lab_function *lab)
{
	struct iommu_group *group = iommu_group_get(&lab->device->dev);
	struct platform_device *companion;
	int err;

	if (!group)
		return -ENODEV;
	companion = lab_device(lab, "companion", NULL, NULL, 0);
	err = PTR_ERR_OR_ZERO(companion);
	if (!err)
		err = iommu_group_add_device(group, &companion->dev);
	if (!err)
		lab->companion = companion;
	else if (!IS_ERR(companion))
		platform_device_unregister(companion);
	iommu_group_put(group);
	return err;
}

/* Which takes it out of the group. */
static void lab_companion_remove(struct lab_function *lab)
{
	platform_device_unregister(lab->companion);
	lab->companion = NULL;
}

static int lab_companion(struct lab_function *lab, bool wanted)
{
	if (wanted && !lab->companion)
		return lab_companion_add(lab);
	if (!wanted && lab->companion)
		lab_companion_remove(lab);
	return 0;
}

/* A core whose design is not loaded, or was replaced. */
static int lab_hole(struct lab_function *lab, bool wanted)
{
	struct resource res = DEFINE_RES_MEM(LAB_HOLE, LAB_HOLE_BYTES);
	struct platform_device *hole;

	if (!wanted == !lab->hole)
		return 0;
	if (!wanted) {
		platform_device_unregister(lab->hole);
		lab->hole = NULL;
		return 0;
	}
	if (!of_machine_is_compatible("linux,dummy-virt"))
		return -EOPNOTSUPP;
	hole = platform_device_register_simple("b000000.hole", PLATFORM_DEVID_NONE, &res, 1);
	if (IS_ERR(hole))
		return PTR_ERR(hole);
	lab->hole = hole;
	return 0;
}

static ssize_t lab_switch(struct file *filp, const char __user *from, size_t len,
			  int (*set)(struct lab_function *lab, bool on))
{
	bool on;
	int err;

	err = kstrtobool_from_user(from, len, &on);
	if (err)
		return err;
	mutex_lock(&lab_functions_lock);
	err = set(filp->private_data, on);
	mutex_unlock(&lab_functions_lock);
	return err ? err : len;
}

static ssize_t lab_companion_write(struct file *filp, const char __user *from, size_t len,
				   loff_t *pos)
{
	return lab_switch(filp, from, len, lab_companion);
}

static ssize_t lab_hole_write(struct file *filp, const char __user *from, size_t len, loff_t *pos)
{
	return lab_switch(filp, from, len, lab_hole);
}

static ssize_t lab_no_reset_write(struct file *filp, const char __user *from, size_t len,
				  loff_t *pos)
{
	return lab_switch(filp, from, len, lab_reset_take);
}

/* Another device in its IOMMU group, as some buses have them. */
static const struct file_operations lab_companion_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = lab_companion_write,
};

/* Another device, with a window where nothing answers. */
static const struct file_operations lab_hole_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = lab_hole_write,
};

static const struct file_operations lab_no_reset_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = lab_no_reset_write,
};

static int lab_devices_add(struct lab_function *lab)
{
	struct resource res[PCI_STD_NUM_BARS + 1] = {};
	struct pci_dev *function = lab->function;
	unsigned int count = 0, bar;
	int irq;

	for (bar = 0; bar < PCI_STD_NUM_BARS; bar++) {
		if (!(pci_resource_flags(function, bar) & IORESOURCE_MEM) ||
		    !pci_resource_len(function, bar))
			continue;
		res[count].start = pci_resource_start(function, bar);
		res[count].end = pci_resource_end(function, bar);
		res[count].flags = IORESOURCE_MEM;
		/* Below the function's own, or releasing it would take that along. */
		res[count++].parent = &function->resource[bar];
	}
	/* The kernel maps it only for a driver of the function. */
	irq = of_irq_parse_and_map_pci(function, 0, 0);
	if (irq > 0)
		res[count++] = (struct resource)DEFINE_RES_IRQ(irq);

	if (lab->reset_node) {
		lab->reset = lab_device(lab, "reset", lab->reset_node, NULL, 0);
		if (IS_ERR(lab->reset))
			return PTR_ERR(lab->reset);
	}
	lab->device = lab_device(lab, lab->name, lab->node, res, count);
	if (!IS_ERR(lab->device))
		return 0;
	if (lab->reset)
		platform_device_unregister(lab->reset);
	return PTR_ERR(lab->device);
}

static int lab_function_add(struct pci_dev *function, const char *name, bool has_reset)
{
	struct lab_function *lab;
	int err;

	list_for_each_entry(lab, &lab_functions, list)
		if (lab->function == function)
			return -EEXIST;
	if (function->dev.driver)
		return -EBUSY;
	lab = kzalloc(sizeof(*lab), GFP_KERNEL);
	if (!lab)
		return -ENOMEM;
	lab->function = function;
	strscpy(lab->name, name, sizeof(lab->name));
	err = pci_enable_device_mem(function);
	if (err)
		goto free;
	pci_set_master(function);
	pci_intx(function, true);
	err = lab_nodes_add(lab, has_reset);
	if (err)
		goto disable;
	err = lab_devices_add(lab);
	if (err)
		goto remove_nodes;
	lab->folder = debugfs_create_dir(dev_name(&lab->device->dev), lab_debugfs);
	debugfs_create_file("companion", 0200, lab->folder, lab, &lab_companion_fops);
	debugfs_create_file("hole", 0200, lab->folder, lab, &lab_hole_fops);
	if (has_reset)
		debugfs_create_file("no_reset", 0200, lab->folder, lab, &lab_no_reset_fops);
	pci_dev_get(function);
	list_add(&lab->list, &lab_functions);
	return 0;

remove_nodes:
	lab_nodes_remove(lab);
disable:
	pci_disable_device(function);
free:
	kfree(lab);
	return err;
}

static void lab_function_remove(struct lab_function *lab)
{
	debugfs_remove(lab->folder);
	if (lab->companion)
		lab_companion_remove(lab);
	if (lab->hole)
		platform_device_unregister(lab->hole);
	platform_device_unregister(lab->device);
	if (lab->reset)
		platform_device_unregister(lab->reset);
	lab_nodes_remove(lab);
	pci_disable_device(lab->function);
	pci_dev_put(lab->function);
	list_del(&lab->list);
	kfree(lab);
}

static ssize_t lab_platform_write(struct file *filp, const char __user *from, size_t len,
				  loff_t *pos)
{
	unsigned int domain, bus, slot, number;
	char name[LAB_TEXT_MAX], reset[LAB_TEXT_MAX], text[LAB_TEXT_MAX] = {};
	struct pci_dev *function;
	int words, err;

	if (len >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, len))
		return -EFAULT;
	words = sscanf(text, "%x:%x:%x.%x %s %s", &domain, &bus, &slot, &number, name, reset);
	if (words < 5 || (words == 6 && strcmp(reset, "reset")))
		return -EINVAL;
	function = pci_get_domain_bus_and_slot(domain, bus, PCI_DEVFN(slot, number));
	if (!function)
		return -ENODEV;
	mutex_lock(&lab_functions_lock);
	err = lab_function_add(function, name, words == 6);
	mutex_unlock(&lab_functions_lock);
	pci_dev_put(function);
	return err ? err : len;
}

static const struct file_operations lab_platform_fops = {
	.owner = THIS_MODULE,
	.write = lab_platform_write,
};

void lab_platform_init(void)
{
	debugfs_create_file("platform", 0200, lab_debugfs, NULL, &lab_platform_fops);
}

void lab_platform_exit(void)
{
	struct lab_function *lab, *next;

	list_for_each_entry_safe(lab, next, &lab_functions, list)
		lab_function_remove(lab);
}
