// SPDX-License-Identifier: GPL-2.0
/*
 * A driver of QEMU's edu that does nothing but answer its interrupt, on a line that it shares. It
 * takes no device by itself: only one whose driver_override names it.
 */
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>

#include "lab.h"

/* QEMU's docs/specs/edu.rst. */
#define EDU_STATUS	0x24
#define EDU_RAISE	0x60
#define EDU_ACK		0x64

struct lab_edu {
	void __iomem *regs;
	struct completion came;
	atomic_t interrupts;
	struct dentry *folder;
};

static irqreturn_t lab_edu_interrupt(int irq, void *data)
{
	struct lab_edu *edu = data;
	u32 status = readl(edu->regs + EDU_STATUS);

	if (!status)
		return IRQ_NONE;
	writel(status, edu->regs + EDU_ACK);
	atomic_inc(&edu->interrupts);
	complete(&edu->came);
	return IRQ_HANDLED;
}

/* A read raises an interrupt, and answers how many microseconds it took, or an error. */
static int lab_edu_round(void *data, u64 *value)
{
	struct lab_edu *edu = data;
	ktime_t begun = ktime_get();

	reinit_completion(&edu->came);
	writel(1, edu->regs + EDU_RAISE);
	if (!wait_for_completion_timeout(&edu->came, msecs_to_jiffies(2000)))
		return -ETIMEDOUT;
	*value = ktime_us_delta(ktime_get(), begun);
	return 0;
}

DEFINE_DEBUGFS_ATTRIBUTE(lab_edu_round_fops, lab_edu_round, NULL, "%llu\n");

static int lab_edu_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct lab_edu *edu;
	int err;

	edu = devm_kzalloc(&pdev->dev, sizeof(*edu), GFP_KERNEL);
	if (!edu)
		return -ENOMEM;
	init_completion(&edu->came);
	err = pcim_enable_device(pdev);
	if (err)
		return err;
	edu->regs = pcim_iomap(pdev, 0, 0);
	if (!edu->regs)
		return -ENOMEM;
	err = devm_request_irq(&pdev->dev, pdev->irq, lab_edu_interrupt, IRQF_SHARED,
			       "contigo-lab-edu", edu);
	if (err)
		return err;
	pci_set_drvdata(pdev, edu);
	edu->folder = debugfs_create_dir("edu", lab_debugfs);
	debugfs_create_atomic_t("interrupts", 0444, edu->folder, &edu->interrupts);
	debugfs_create_file_unsafe("round", 0444, edu->folder, edu, &lab_edu_round_fops);
	return 0;
}

static void lab_edu_remove(struct pci_dev *pdev)
{
	struct lab_edu *edu = pci_get_drvdata(pdev);

	debugfs_remove(edu->folder);
}

static struct pci_driver lab_edu_driver = {
	.name = "contigo-lab-edu",
	.probe = lab_edu_probe,
	.remove = lab_edu_remove,
};

int lab_edu_init(void)
{
	return pci_register_driver(&lab_edu_driver);
}

void lab_edu_exit(void)
{
	pci_unregister_driver(&lab_edu_driver);
}
