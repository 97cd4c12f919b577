// SPDX-License-Identifier: GPL-2.0
/*
 * A reset controller for the DMA engines that QEMU models. Line N is engine N of the node's
 * property "engines". An asserted line stops the engine by its registers, because QEMU has no
 * such line.
 */
#include <linux/atomic.h>
#include <linux/io.h>
#include <linux/iopoll.h>
#include <linux/module.h>
#include <linux/of.h>
#include <linux/of_address.h>
#include <linux/reset-controller.h>
#include <linux/slab.h>

#include "lab.h"

/* ARM DDI 0424: the debug interface, by which a channel is killed. */
#define PL330_INTEN		0x020
#define PL330_INTCLR		0x02c
#define PL330_CSR0		0x100
#define PL330_DBGCMD		0xd04
#define PL330_DBGINST0		0xd08
#define PL330_DBGINST1		0xd0c
#define PL330_KILL		0x01
#define PL330_STATE		0x0f
#define PL330_CHANNELS		8

/* Zynq UltraScale+ Devices Register Reference (UG1087), ZDMA. */
#define ZDMA_ISR		0x100
#define ZDMA_IDS		0x10c
#define ZDMA_ALL		0xfff
#define ZDMA_CTRL2		0x200
#define ZDMA_CTRL2_EN		BIT(0)

/* QEMU's docs/specs/edu.rst. */
#define EDU_STATUS		0x24
#define EDU_ACK			0x64
#define EDU_COMMAND		0x98
#define EDU_COMMAND_RUN		BIT(0)
/* A transfer takes 100 ms, and nothing ends it before. */
#define EDU_OVER_US		200000
#define EDU_LOOK_US		1000

/**
 * struct lab_engine - a kind of engine
 * @kind: the node's property
 * @stop: stops it, or says why not
 * @running: is it at work?
 */
struct lab_engine {
	const char *kind;
	int (*stop)(void __iomem *regs);
	bool (*running)(void __iomem *regs);
};

/**
 * struct lab_line - one reset line
 * @regs: the engine's registers
 * @engine: what it is
 * @asserted: 1 while it is
 * @asserts: how often it was
 * @inert: it counts, and stops nothing
 * @fail: it cannot be asserted
 */
struct lab_line {
	void __iomem *regs;
	const struct lab_engine *engine;
	atomic_t asserted;
	atomic_t asserts;
	bool inert;
	bool fail;
};

struct lab_reset {
	struct reset_controller_dev rcdev;
	struct lab_line *line;
};

static int lab_zdma_stop(void __iomem *regs)
{
	writel(readl(regs + ZDMA_CTRL2) & ~ZDMA_CTRL2_EN, regs + ZDMA_CTRL2);
	writel(ZDMA_ALL, regs + ZDMA_IDS);
	writel(ZDMA_ALL, regs + ZDMA_ISR);
	return 0;
}

static bool lab_zdma_running(void __iomem *regs)
{
	return readl(regs + ZDMA_CTRL2) & ZDMA_CTRL2_EN;
}

static int lab_pl330_stop(void __iomem *regs)
{
	unsigned int channel;

	for (channel = 0; channel < PL330_CHANNELS; channel++) {
		writel(PL330_KILL << 16 | channel << 8 | 1, regs + PL330_DBGINST0);
		writel(0, regs + PL330_DBGINST1);
		writel(0, regs + PL330_DBGCMD);
	}
	writel(0, regs + PL330_INTEN);
	writel(~0, regs + PL330_INTCLR);
	return 0;
}

static bool lab_pl330_running(void __iomem *regs)
{
	return readl(regs + PL330_CSR0) & PL330_STATE;
}

static bool lab_edu_running(void __iomem *regs)
{
	return readl(regs + EDU_COMMAND) & EDU_COMMAND_RUN;
}

/* It has nothing that stops it: its transfer is waited for. */
static int lab_edu_stop(void __iomem *regs)
{
	u32 command;
	int err = readl_poll_timeout(regs + EDU_COMMAND, command, !(command & EDU_COMMAND_RUN),
				     EDU_LOOK_US, EDU_OVER_US);

	writel(readl(regs + EDU_STATUS), regs + EDU_ACK);
	return err;
}

static const struct lab_engine lab_engines[] = {
	{ "pl330", lab_pl330_stop, lab_pl330_running },
	{ "zdma", lab_zdma_stop, lab_zdma_running },
	{ "edu", lab_edu_stop, lab_edu_running },
};

static int lab_reset_assert(struct reset_controller_dev *rcdev, unsigned long id)
{
	struct lab_line *line = &container_of(rcdev, struct lab_reset, rcdev)->line[id];
	int err;

	if (READ_ONCE(line->fail))
		return -EIO;
	err = READ_ONCE(line->inert) ? 0 : line->engine->stop(line->regs);
	if (err)
		return err;
	atomic_set(&line->asserted, 1);
	atomic_inc(&line->asserts);
	return 0;
}

static int lab_reset_deassert(struct reset_controller_dev *rcdev, unsigned long id)
{
	atomic_set(&container_of(rcdev, struct lab_reset, rcdev)->line[id].asserted, 0);
	return 0;
}

static int lab_reset_status(struct reset_controller_dev *rcdev, unsigned long id)
{
	return atomic_read(&container_of(rcdev, struct lab_reset, rcdev)->line[id].asserted);
}

static const struct reset_control_ops lab_reset_ops = {
	.assert = lab_reset_assert,
	.deassert = lab_reset_deassert,
	.status = lab_reset_status,
};

/* Is the engine at work? Its driver is not asked. */
static int lab_line_running(void *data, u64 *value)
{
	struct lab_line *line = data;

	*value = line->engine->running(line->regs);
	return 0;
}

DEFINE_DEBUGFS_ATTRIBUTE(lab_line_running_fops, lab_line_running, NULL, "%llu\n");

/* Its registers, which its driver has asked for: so this one does not. */
static int lab_line_probe(struct device *dev, unsigned int number, struct lab_line *line,
			  const struct lab_engine *kind)
{
	struct device_node *engine = of_parse_phandle(dev->of_node, "engines", number);
	struct dentry *folder;
	struct resource where;
	char name[32];
	int err;

	err = of_address_to_resource(engine, 0, &where);
	of_node_put(engine);
	if (err)
		return err;
	line->regs = devm_ioremap(dev, where.start, resource_size(&where));
	if (!line->regs)
		return -ENOMEM;
	line->engine = kind;
	scnprintf(name, sizeof(name), "reset-%llx", (unsigned long long)where.start);
	folder = debugfs_create_dir(name, lab_debugfs);
	debugfs_create_atomic_t("asserted", 0444, folder, &line->asserted);
	debugfs_create_atomic_t("asserts", 0444, folder, &line->asserts);
	debugfs_create_bool("inert", 0600, folder, &line->inert);
	debugfs_create_bool("fail", 0600, folder, &line->fail);
	debugfs_create_file_unsafe("running", 0444, folder, line, &lab_line_running_fops);
	return 0;
}

static const struct lab_engine *lab_engine_of(struct device_node *node)
{
	unsigned int number;

	for (number = 0; number < ARRAY_SIZE(lab_engines); number++)
		if (of_property_match_string(node, "kind", lab_engines[number].kind) == 0)
			return &lab_engines[number];
	return NULL;
}

static int lab_reset_probe(struct platform_device *pdev)
{
	struct device *dev = &pdev->dev;
	const struct lab_engine *kind = lab_engine_of(dev->of_node);
	struct lab_reset *reset;
	int number, lines, err;

	lines = of_count_phandle_with_args(dev->of_node, "engines", NULL);
	if (lines <= 0 || !kind)
		return -EINVAL;
	reset = devm_kzalloc(dev, sizeof(*reset), GFP_KERNEL);
	if (!reset)
		return -ENOMEM;
	reset->line = devm_kcalloc(dev, lines, sizeof(*reset->line), GFP_KERNEL);
	if (!reset->line)
		return -ENOMEM;
	for (number = 0; number < lines; number++) {
		err = lab_line_probe(dev, number, &reset->line[number], kind);
		if (err)
			return err;
	}
	reset->rcdev.ops = &lab_reset_ops;
	reset->rcdev.owner = THIS_MODULE;
	reset->rcdev.of_node = dev->of_node;
	reset->rcdev.nr_resets = lines;
	return devm_reset_controller_register(dev, &reset->rcdev);
}

static const struct of_device_id lab_reset_of_match[] = {
	{ .compatible = "contigo-lab,reset" },
	{ }
};
MODULE_DEVICE_TABLE(of, lab_reset_of_match);

struct platform_driver lab_reset_driver = {
	.probe = lab_reset_probe,
	.driver = {
		.name = "contigo-lab-reset",
		.of_match_table = lab_reset_of_match,
		.suppress_bind_attrs = true,
	},
};
