/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The lab's own hardware, which QEMU does not model. Each part counts in debugfs, in
 * contigo-lab/<part>/, and can be told there to fail. Parts that a kernel lacks the framework for
 * are not built, and lab_main.c does not call them.
 */
#ifndef CONTIGO_LAB_H
#define CONTIGO_LAB_H

#include <linux/debugfs.h>
#include <linux/kconfig.h>
#include <linux/platform_device.h>

/* contigo-lab/ in debugfs. */
extern struct dentry *lab_debugfs;

extern struct platform_driver lab_clock_driver;
extern struct platform_driver lab_reset_driver;
extern struct platform_driver lab_fclk_driver;

int lab_exporter_init(void);
void lab_exporter_exit(void);

#define LAB_HAS_POWER		IS_ENABLED(CONFIG_PM_GENERIC_DOMAINS_OF)
int lab_power_init(void);
void lab_power_exit(void);

#define LAB_HAS_FPGA		IS_BUILTIN(CONFIG_FPGA)
int lab_fpga_init(void);
void lab_fpga_exit(void);

#define LAB_HAS_MONITOR		IS_BUILTIN(CONFIG_I2C)
int lab_monitor_init(void);
void lab_monitor_exit(void);

#define LAB_HAS_PLATFORM	IS_ENABLED(CONFIG_PCI)
void lab_platform_init(void);
void lab_platform_exit(void);

#endif
