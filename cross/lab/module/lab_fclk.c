// SPDX-License-Identifier: GPL-2.0
/*
 * In the place of the driver that AMD's kernels have for a clock of the fabric: a file set_rate,
 * which asks the kernel's own clock driver. The clock and its dividers are the SoC's.
 */
#include <linux/clk.h>
#include <linux/module.h>
#include <linux/of.h>

#include "lab.h"

static ssize_t set_rate_show(struct device *dev, struct device_attribute *attr, char *text)
{
	return sysfs_emit(text, "%lu\n", clk_get_rate(dev_get_drvdata(dev)));
}

static ssize_t set_rate_store(struct device *dev, struct device_attribute *attr, const char *text,
			      size_t len)
{
	unsigned long hz;
	int err;

	err = kstrtoul(text, 0, &hz);
	if (err)
		return err;
	err = clk_set_rate(dev_get_drvdata(dev), hz);
	return err ? err : len;
}
static DEVICE_ATTR_RW(set_rate);

static struct attribute *lab_fclk_attrs[] = {
	&dev_attr_set_rate.attr,
	NULL
};
ATTRIBUTE_GROUPS(lab_fclk);

static int lab_fclk_probe(struct platform_device *pdev)
{
	struct clk *clk = devm_clk_get_enabled(&pdev->dev, NULL);

	if (IS_ERR(clk))
		return PTR_ERR(clk);
	platform_set_drvdata(pdev, clk);
	return 0;
}

static const struct of_device_id lab_fclk_of_match[] = {
	{ .compatible = "xlnx,fclk" },
	{ }
};
MODULE_DEVICE_TABLE(of, lab_fclk_of_match);

struct platform_driver lab_fclk_driver = {
	.probe = lab_fclk_probe,
	.driver = {
		.name = "contigo-lab-fclk",
		.of_match_table = lab_fclk_of_match,
		.dev_groups = lab_fclk_groups,
		.suppress_bind_attrs = true,
	},
};
