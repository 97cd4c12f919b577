// SPDX-License-Identifier: GPL-2.0
/*
 * A platform device is kept awake by runtime PM, its power domains, its clocks.
 */
#include <linux/clk.h>
#include <linux/device.h>
#include <linux/of.h>
#include <linux/pm_domain.h>
#include <linux/slab.h>

#include "contigo_calls.h"
#include "contigo_compat.h"

/* One domain alone is handled by the driver's core, with the device itself. */
static int contigo_power_attach_domains(struct contigo_power *power)
{
	struct device *dev = power->dev;
	int count, i;

	count = of_count_phandle_with_args(dev->of_node, "power-domains", "#power-domain-cells");
	if (count <= 1)
		return 0;
	if (count > CONTIGO_MAX_DOMAINS)
		return dev_err_probe(dev, -E2BIG, "%d power domains; %d at most\n", count,
				     CONTIGO_MAX_DOMAINS);
	for (i = 0; i < count; i++) {
		struct device *domain = dev_pm_domain_attach_by_id(dev, i);

		if (IS_ERR(domain))
			return dev_err_probe(dev, PTR_ERR(domain), "power domain %d of %d\n", i + 1,
					     count);
		/* A kernel without power domains. */
		if (!domain)
			return 0;
		power->domain[power->domains++] = domain;
	}
	return 0;
}

static void contigo_power_detach_domains(struct contigo_power *power)
{
	while (power->domains)
		dev_pm_domain_detach(power->domain[--power->domains], false);
}

/**
 * contigo_power_new - find what keeps a device awake, and leave it off
 * @dev: the device, whose runtime PM is enabled
 *
 * Return: for contigo_power_free(), or an ERR_PTR(); the log has the cause.
 */
struct contigo_power *contigo_power_new(struct device *dev)
{
	struct contigo_power *power;
	int ret;

	power = kzalloc(sizeof(*power), GFP_KERNEL);
	if (!power)
		return ERR_PTR(-ENOMEM);
	power->dev = get_device(dev);
	ret = clk_bulk_get_all(dev, &power->clock);
	if (ret < 0) {
		dev_err_probe(dev, ret, "clocks\n");
		goto free;
	}
	power->clocks = ret;
	ret = contigo_power_attach_domains(power);
	if (ret)
		goto free;
	return power;

free:
	contigo_power_free(power);
	return ERR_PTR(ret);
}

void contigo_power_free(struct contigo_power *power)
{
	contigo_power_detach_domains(power);
	if (power->clocks)
		clk_bulk_put_all(power->clocks, power->clock);
	put_device(power->dev);
	kfree(power);
}

/*
 * The device is unbound. Its domains are no longer ours to keep on: the driver's
 * core detaches the device itself too. The clocks are, as long as somebody keeps
 * @power.
 */
void contigo_power_unbind(struct contigo_power *power, bool awake)
{
	u32 i;

	if (awake) {
		for (i = 0; i < power->domains; i++)
			pm_runtime_put_sync(power->domain[i]);
		pm_runtime_put_noidle(power->dev);
	}
	contigo_power_detach_domains(power);
}

static void contigo_power_domains_off(struct contigo_power *power, u32 count)
{
	while (count)
		pm_runtime_put_sync(power->domain[--count]);
	pm_runtime_put_sync(power->dev);
}

static int contigo_power_domains_on(struct contigo_power *power)
{
	u32 i;
	int ret;

	ret = contigo_pm_runtime_get(power->dev);
	if (ret) {
		dev_err(power->dev, "runtime PM: error %d\n", ret);
		return ret;
	}
	for (i = 0; i < power->domains; i++) {
		ret = contigo_pm_runtime_get(power->domain[i]);
		if (ret) {
			dev_err(power->dev, "power domain %u of %u: error %d\n", i + 1,
				power->domains, ret);
			contigo_power_domains_off(power, i);
			return ret;
		}
	}
	return 0;
}

static void contigo_power_disable_clocks(struct contigo_power *power, int count)
{
	while (count)
		clk_disable_unprepare(power->clock[--count].clk);
}

/* One after the other, so that the error names it. */
static int contigo_power_enable_clocks(struct contigo_power *power)
{
	int i, ret;

	for (i = 0; i < power->clocks; i++) {
		const struct clk_bulk_data *clock = &power->clock[i];

		ret = clk_prepare_enable(clock->clk);
		if (!ret)
			continue;
		if (clock->id)
			dev_err(power->dev, "clock %s (%d of %d): error %d\n", clock->id, i + 1,
				power->clocks, ret);
		else
			dev_err(power->dev, "clock %pC (%d of %d): error %d\n", clock->clk, i + 1,
				power->clocks, ret);
		contigo_power_disable_clocks(power, i);
		return ret;
	}
	return 0;
}

/**
 * contigo_power_up - wake the device once more
 * @power: of the device; NULL for PCI, whose core has woken it before probe
 *
 * Return: 0, or the error of what could not be turned on; the log names it.
 */
int contigo_power_up(struct contigo_power *power)
{
	int ret;

	if (!power)
		return 0;
	ret = contigo_power_domains_on(power);
	if (ret)
		return ret;
	ret = contigo_power_enable_clocks(power);
	if (ret)
		contigo_power_domains_off(power, power->domains);
	return ret;
}

void contigo_power_down(struct contigo_power *power)
{
	if (!power)
		return;
	contigo_power_disable_clocks(power, power->clocks);
	contigo_power_domains_off(power, power->domains);
}

/* After contigo_power_unbind(). */
void contigo_power_clocks_off(struct contigo_power *power)
{
	contigo_power_disable_clocks(power, power->clocks);
}
