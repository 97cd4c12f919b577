// SPDX-License-Identifier: GPL-2.0
/* A clock gate that counts, and that can be told to fail. */
#include <linux/atomic.h>
#include <linux/clk-provider.h>
#include <linux/module.h>
#include <linux/of.h>

#include "lab.h"

/**
 * struct lab_clock - one gate
 * @hw: the framework's part
 * @folder: contigo-lab/<node>/ in debugfs
 * @enabled: 1 while the clock runs
 * @enables: how often it was turned on
 * @fail: it cannot be turned on
 */
struct lab_clock {
	struct clk_hw hw;
	struct dentry *folder;
	atomic_t enabled;
	atomic_t enables;
	bool fail;
};

static int lab_clock_enable(struct clk_hw *hw)
{
	struct lab_clock *clock = container_of(hw, struct lab_clock, hw);

	if (READ_ONCE(clock->fail))
		return -EIO;
	atomic_inc(&clock->enabled);
	atomic_inc(&clock->enables);
	return 0;
}

static void lab_clock_disable(struct clk_hw *hw)
{
	atomic_dec(&container_of(hw, struct lab_clock, hw)->enabled);
}

static const struct clk_ops lab_clock_ops = {
	.enable = lab_clock_enable,
	.disable = lab_clock_disable,
};

static int lab_clock_probe(struct platform_device *pdev)
{
	struct clk_parent_data parent = { .index = 0 };
	struct clk_init_data init = { .ops = &lab_clock_ops };
	struct device *dev = &pdev->dev;
	struct lab_clock *clock;
	int err;

	clock = devm_kzalloc(dev, sizeof(*clock), GFP_KERNEL);
	if (!clock)
		return -ENOMEM;
	init.name = dev->of_node->name;
	if (of_get_property(dev->of_node, "clocks", NULL)) {
		init.parent_data = &parent;
		init.num_parents = 1;
	}
	clock->hw.init = &init;
	err = devm_clk_hw_register(dev, &clock->hw);
	if (err)
		return err;
	platform_set_drvdata(pdev, clock);
	clock->folder = debugfs_create_dir(dev->of_node->name, lab_debugfs);
	debugfs_create_atomic_t("enabled", 0444, clock->folder, &clock->enabled);
	debugfs_create_atomic_t("enables", 0444, clock->folder, &clock->enables);
	debugfs_create_bool("fail", 0600, clock->folder, &clock->fail);
	return devm_of_clk_add_hw_provider(dev, of_clk_hw_simple_get, &clock->hw);
}

static const struct of_device_id lab_clock_of_match[] = {
	{ .compatible = "contigo-lab,clock" },
	{ }
};
MODULE_DEVICE_TABLE(of, lab_clock_of_match);

struct platform_driver lab_clock_driver = {
	.probe = lab_clock_probe,
	.driver = {
		.name = "contigo-lab-clock",
		.of_match_table = lab_clock_of_match,
		/* It cannot be taken away: who uses it would be left alone. */
		.suppress_bind_attrs = true,
	},
};
