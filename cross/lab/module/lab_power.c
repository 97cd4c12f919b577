// SPDX-License-Identifier: GPL-2.0
/* A power domain that says whether it is on. */
#include <linux/atomic.h>
#include <linux/module.h>
#include <linux/of.h>
#include <linux/pm_domain.h>

#include "lab.h"

/**
 * struct lab_power - one domain
 * @domain: the framework's part
 * @on: 1 while it has power
 */
struct lab_power {
	struct generic_pm_domain domain;
	atomic_t on;
};

static int lab_power_on(struct generic_pm_domain *domain)
{
	atomic_set(&container_of(domain, struct lab_power, domain)->on, 1);
	return 0;
}

static int lab_power_off(struct generic_pm_domain *domain)
{
	atomic_set(&container_of(domain, struct lab_power, domain)->on, 0);
	return 0;
}

static int lab_power_probe(struct platform_device *pdev)
{
	struct device_node *node = pdev->dev.of_node;
	struct lab_power *power;
	struct dentry *folder;
	int err;

	power = devm_kzalloc(&pdev->dev, sizeof(*power), GFP_KERNEL);
	if (!power)
		return -ENOMEM;
	power->domain.name = node->name;
	power->domain.power_on = lab_power_on;
	power->domain.power_off = lab_power_off;
	err = pm_genpd_init(&power->domain, NULL, true);
	if (err)
		return err;
	err = of_genpd_add_provider_simple(node, &power->domain);
	if (err) {
		pm_genpd_remove(&power->domain);
		return err;
	}
	folder = debugfs_create_dir(node->name, lab_debugfs);
	debugfs_create_atomic_t("on", 0444, folder, &power->on);
	return 0;
}

static const struct of_device_id lab_power_of_match[] = {
	{ .compatible = "contigo-lab,power" },
	{ }
};
MODULE_DEVICE_TABLE(of, lab_power_of_match);

/* It cannot be taken away, and neither can this module where there is one: a domain is for good. */
static struct platform_driver lab_power_driver = {
	.probe = lab_power_probe,
	.driver = {
		.name = "contigo-lab-power",
		.of_match_table = lab_power_of_match,
		.suppress_bind_attrs = true,
	},
};

int lab_power_init(void)
{
	return platform_driver_register(&lab_power_driver);
}

void lab_power_exit(void)
{
	platform_driver_unregister(&lab_power_driver);
}
