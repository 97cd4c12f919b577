// SPDX-License-Identifier: GPL-2.0
/*
 * A device is kept awake by runtime PM, which has its power domain, and its clocks;
 * and reset by its reset lines.
 */
#include <linux/clk.h>
#include <linux/delay.h>
#include <linux/device.h>
#include <linux/of.h>
#include <linux/pm_runtime.h>
#include <linux/reset.h>

#include "contigo_internal.h"

/* For how long a line is held, and how long the device has afterwards: many cycles of any clock. */
#define CONTIGO_RESET_US	20

/* Finds what keeps the device awake, and leaves it off. Its power domain is the core's business. */
int contigo_power_find(struct contigo_node *node)
{
	int ret = clk_bulk_get_all(node->dma_dev, &node->clock);

	if (ret < 0)
		return dev_err_probe(node->dma_dev, ret, "clocks\n");
	node->clocks = ret;
	pm_runtime_enable(node->dma_dev);
	return 0;
}

void contigo_power_put(struct contigo_node *node)
{
	pm_runtime_disable(node->dma_dev);
	if (node->clocks)
		clk_bulk_put_all(node->clocks, node->clock);
}

/* Once more awake: 0, or the error of what could not be turned on. */
int contigo_power_up(struct contigo_node *node)
{
	struct device *dev = node->dma_dev;
	int ret = pm_runtime_get_sync(dev);

	if (ret < 0) {
		dev_err_ratelimited(dev, "power domain: error %d\n", ret);
		pm_runtime_put_noidle(dev);
		return ret;
	}
	ret = clk_bulk_prepare_enable(node->clocks, node->clock);
	if (ret) {
		/* The line before has the clock's name. */
		dev_err_ratelimited(dev, "clocks: error %d\n", ret);
		pm_runtime_put_sync(dev);
	}
	return ret;
}

void contigo_power_down(struct contigo_node *node)
{
	clk_bulk_disable_unprepare(node->clocks, node->clock);
	pm_runtime_put_sync(node->dma_dev);
}

/* Lines that are shared with another driver are no stop of this device alone. */
int contigo_reset_find(struct contigo_node *node)
{
	struct device *dev = node->dma_dev;
	int count = of_count_phandle_with_args(dev->of_node, "resets", "#reset-cells");
	int i;

	if (count > CONTIGO_MAX_RESETS)
		return dev_err_probe(dev, -E2BIG, "%d resets; %d at most\n", count,
				     CONTIGO_MAX_RESETS);
	for (i = 0; i < count; i++) {
		struct reset_control *reset = devm_reset_control_get_exclusive_by_index(dev, i);

		if (IS_ERR(reset))
			return dev_err_probe(dev, PTR_ERR(reset),
					     "reset %d (a line is refused that is shared)\n", i);
		node->reset[i] = reset;
		node->resets++;
	}
	/* Who had it before may have left it there. */
	node->in_reset = node->resets;
	return 0;
}

/*
 * A pulse, where the controller knows nothing else. A line that is not asserted
 * leaves the device as it was; a pulse that fails may leave it in reset.
 */
static int contigo_reset_assert(struct contigo_node *node, u32 i)
{
	int ret = reset_control_assert(node->reset[i]);

	node->pulses &= ~BIT(i);
	if (ret && ret != -ENOTSUPP)
		return ret;
	node->in_reset = true;
	if (!ret)
		return 0;
	node->pulses |= BIT(i);
	return reset_control_reset(node->reset[i]);
}

static int contigo_reset_each(struct contigo_node *node, bool hold)
{
	u32 i;
	int ret;

	for (i = 0; i < node->resets; i++) {
		ret = contigo_reset_assert(node, i);
		if (ret)
			return ret;
	}
	usleep_range(CONTIGO_RESET_US, 2 * CONTIGO_RESET_US);
	for (i = 0; i < node->resets && !hold; i++) {
		if (node->pulses & BIT(i))
			continue;
		ret = reset_control_deassert(node->reset[i]);
		if (ret)
			return ret;
	}
	node->in_reset = hold && node->pulses != BIT(node->resets) - 1;
	usleep_range(CONTIGO_RESET_US, 2 * CONTIGO_RESET_US);
	return 0;
}

/*
 * Resets a device that is awake by its lines, and leaves it in reset by those that
 * can where @hold is true. Each line is asked alone: an array of controllers of two
 * kinds can neither be asserted nor pulsed. -EOPNOTSUPP: it has none.
 */
int contigo_reset_lines(struct contigo_node *node, bool hold)
{
	int ret;

	lockdep_assert_held(&node->lock);
	if (!node->resets)
		return -EOPNOTSUPP;
	ret = contigo_reset_each(node, hold);
	if (ret)
		dev_err_ratelimited(node->dma_dev, "reset: error %d\n", ret);
	/* ENOTSUPP is the kernel's own. */
	return ret == -ENOTSUPP ? -EOPNOTSUPP : ret;
}
