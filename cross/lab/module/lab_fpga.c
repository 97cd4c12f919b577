// SPDX-License-Identifier: GPL-2.0
/*
 * In the place of what AMD's kernels add to an FPGA manager: the files firmware and flags in its
 * folder. The name of a bitstream goes into the first, and the kernel's own manager loads it; a
 * failure is the write's.
 */
#include <linux/fpga/fpga-mgr.h>
#include <linux/kernel_read_file.h>
#include <linux/module.h>
#include <linux/of.h>
#include <linux/vmalloc.h>

#include "lab.h"

/* QEMU's model takes a few words as well as a whole file. */
#define LAB_BITSTREAM_MAX SZ_1M

static struct fpga_manager *lab_manager;
static unsigned long lab_flags;

static int lab_load(const char *path)
{
	struct fpga_image_info *info;
	void *bytes = NULL;
	ssize_t len;
	int err;

	len = kernel_read_file_from_path(path, 0, &bytes, LAB_BITSTREAM_MAX, NULL, READING_FIRMWARE);
	if (len < 0)
		return len;
	info = fpga_image_info_alloc(&lab_manager->dev);
	if (!info) {
		vfree(bytes);
		return -ENOMEM;
	}
	info->flags = lab_flags;
	info->buf = bytes;
	info->count = len;
	err = fpga_mgr_lock(lab_manager);
	if (!err) {
		err = fpga_mgr_load(lab_manager, info);
		fpga_mgr_unlock(lab_manager);
	}
	fpga_image_info_free(info);
	vfree(bytes);
	return err;
}

static ssize_t firmware_store(struct device *dev, struct device_attribute *attr, const char *text,
			      size_t len)
{
	char path[128];
	int err;

	if (scnprintf(path, sizeof(path), "/lib/firmware/%s", text) == sizeof(path) - 1)
		return -EINVAL;
	err = lab_load(strim(path));
	return err ? err : len;
}
static DEVICE_ATTR_WO(firmware);

static ssize_t flags_show(struct device *dev, struct device_attribute *attr, char *text)
{
	return sysfs_emit(text, "%lx\n", lab_flags);
}

static ssize_t flags_store(struct device *dev, struct device_attribute *attr, const char *text,
			   size_t len)
{
	int err = kstrtoul(text, 16, &lab_flags);

	return err ? err : len;
}
static DEVICE_ATTR_RW(flags);

static struct attribute *lab_fpga_attrs[] = {
	&dev_attr_firmware.attr,
	&dev_attr_flags.attr,
	NULL
};
static const struct attribute_group lab_fpga_group = { .attrs = lab_fpga_attrs };

int lab_fpga_init(void)
{
	struct device_node *node = of_find_compatible_node(NULL, NULL, "xlnx,zynq-devcfg-1.0");
	struct fpga_manager *manager;
	int err;

	if (!node)
		return 0;
	manager = of_fpga_mgr_get(node);
	of_node_put(node);
	/* A board whose kernel has no driver for it. */
	if (IS_ERR(manager))
		return 0;
	err = sysfs_create_group(&manager->dev.kobj, &lab_fpga_group);
	if (err)
		fpga_mgr_put(manager);
	else
		lab_manager = manager;
	return err;
}

void lab_fpga_exit(void)
{
	if (!lab_manager)
		return;
	sysfs_remove_group(&lab_manager->dev.kobj, &lab_fpga_group);
	fpga_mgr_put(lab_manager);
}
