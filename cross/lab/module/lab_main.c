// SPDX-License-Identifier: GPL-2.0
/*
 * The lab's own hardware: a clock gate, a reset controller, a power domain, an exporter of
 * dma-bufs, monitors of power, and platform devices of PCI functions. Also the files that AMD's
 * kernels have for a clock of the fabric and for an FPGA manager.
 */
#include <linux/module.h>

#include "lab.h"

struct dentry *lab_debugfs;

static struct platform_driver * const drivers[] = { &lab_clock_driver, &lab_reset_driver,
						    &lab_fclk_driver };

static int __init lab_init(void)
{
	int err;

	lab_debugfs = debugfs_create_dir("contigo-lab", NULL);
	err = lab_exporter_init();
	if (err)
		goto no_exporter;
	err = LAB_HAS_POWER ? lab_power_init() : 0;
	if (err)
		goto no_power;
	err = platform_register_drivers(drivers, ARRAY_SIZE(drivers));
	if (err)
		goto no_drivers;
	err = LAB_HAS_FPGA ? lab_fpga_init() : 0;
	if (err)
		goto no_fpga;
	err = LAB_HAS_MONITOR ? lab_monitor_init() : 0;
	if (err)
		goto no_monitor;
	if (LAB_HAS_PLATFORM)
		lab_platform_init();
	return 0;

no_monitor:
	if (LAB_HAS_FPGA)
		lab_fpga_exit();
no_fpga:
	platform_unregister_drivers(drivers, ARRAY_SIZE(drivers));
no_drivers:
	if (LAB_HAS_POWER)
		lab_power_exit();
no_power:
	lab_exporter_exit();
no_exporter:
	debugfs_remove(lab_debugfs);
	return err;
}

static void __exit lab_exit(void)
{
	if (LAB_HAS_PLATFORM)
		lab_platform_exit();
	if (LAB_HAS_MONITOR)
		lab_monitor_exit();
	if (LAB_HAS_FPGA)
		lab_fpga_exit();
	platform_unregister_drivers(drivers, ARRAY_SIZE(drivers));
	if (LAB_HAS_POWER)
		lab_power_exit();
	lab_exporter_exit();
	debugfs_remove(lab_debugfs);
}

module_init(lab_init);
module_exit(lab_exit);
MODULE_DESCRIPTION("The lab's own hardware: what QEMU does not model");
MODULE_LICENSE("GPL");
