// SPDX-License-Identifier: GPL-2.0
/*
 * A platform device as a guard: its windows and interrupts from the device tree,
 * and its reset lines.
 */
#include <linux/delay.h>
#include <linux/mod_devicetable.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/pm_runtime.h>
#include <linux/reset.h>

#include "contigo_calls.h"
#include "contigo_compat.h"

/* For how long a line is held, and how long the device has afterwards: many cycles of any clock. */
#define CONTIGO_RESET_US	20

/*
 * Whole windows are claimed while the device is bound. The rest of their first
 * and last page is claimed only while they can be mapped, by an open file.
 */
static int contigo_platform_windows(struct contigo_guard *guard, struct platform_device *pdev)
{
	struct device *dev = &pdev->dev;
	u32 i;

	for (i = 0; i < CONTIGO_MAX_WINDOWS; i++) {
		struct resource *res = platform_get_resource(pdev, IORESOURCE_MEM, i);

		if (!res)
			break;
		if (!devm_request_mem_region(dev, res->start, resource_size(res), dev_name(dev)))
			return dev_err_probe(dev, -EBUSY,
					     "window %u, %pR: another driver has it\n", i, res);
		guard->window[i].start = res->start;
		guard->window[i].len_bytes = resource_size(res);
	}
	return contigo_guard_set_windows(guard);
}

static int contigo_platform_irqs(struct contigo_guard *guard, struct platform_device *pdev)
{
	int count = platform_irq_count(pdev);
	int i, irq;

	if (count < 0)
		return dev_err_probe(&pdev->dev, count, "interrupts\n");
	if (count > CONTIGO_MAX_INTERRUPTS)
		return dev_err_probe(&pdev->dev, -E2BIG, "%d interrupts; %d at most\n", count,
				     CONTIGO_MAX_INTERRUPTS);
	for (i = 0; i < count; i++) {
		irq = platform_get_irq_optional(pdev, i);
		if (irq < 0)
			return dev_err_probe(&pdev->dev, irq, "interrupt %d\n", i);
		guard->irq[i] = irq;
	}
	guard->interrupts = count;
	return 0;
}

/**
 * contigo_reset_lines - reset the device by its lines
 * @guard: has such lines, and is awake
 * @hold: leave it in reset
 *
 * A controller that only knows pulses does one: the device has stopped as well.
 * One that asserts and then fails leaves the device in reset, as a pulse that
 * fails may. One that does not assert leaves it as it was.
 *
 * Return: 0, or the controller's error.
 */
int contigo_reset_lines(struct contigo_guard *guard, bool hold)
{
	int ret = reset_control_assert(guard->reset);
	bool pulse = ret == -ENOTSUPP;

	if (ret && !pulse)
		return ret;
	guard->in_reset = true;
	if (pulse) {
		ret = reset_control_reset(guard->reset);
	} else if (!hold) {
		usleep_range(CONTIGO_RESET_US, 2 * CONTIGO_RESET_US);
		ret = reset_control_deassert(guard->reset);
	}
	if (ret)
		return ret;
	guard->in_reset = hold && !pulse;
	usleep_range(CONTIGO_RESET_US, 2 * CONTIGO_RESET_US);
	return 0;
}

/* Lines that are shared with another driver are no stop of this device alone. */
static int contigo_platform_reset(struct contigo_guard *guard)
{
	struct device *dev = guard->dma_dev;

	guard->reset = devm_reset_control_array_get_optional_exclusive(dev);
	if (IS_ERR(guard->reset))
		return dev_err_probe(dev, PTR_ERR(guard->reset),
				     "reset lines (a line is refused that is shared)\n");
	guard->can_reset = !!guard->reset;
	/* Who had it before may have left it there. */
	guard->in_reset = guard->can_reset;
	return 0;
}

static int contigo_platform_probe(struct platform_device *pdev)
{
	struct contigo_guard *guard;
	int ret;

	guard = contigo_guard_new(&pdev->dev);
	if (IS_ERR(guard))
		return PTR_ERR(guard);

	ret = contigo_platform_windows(guard, pdev);
	if (!ret)
		ret = contigo_platform_irqs(guard, pdev);
	if (!ret)
		ret = contigo_platform_reset(guard);
	if (ret)
		goto put;
	pm_runtime_enable(&pdev->dev);
	guard->power = contigo_power_new(&pdev->dev);
	if (IS_ERR(guard->power)) {
		ret = PTR_ERR(guard->power);
		goto disable;
	}
	ret = contigo_guard_add(guard);
	if (ret)
		goto free_power;
	return 0;

free_power:
	contigo_power_free(guard->power);
disable:
	pm_runtime_disable(&pdev->dev);
put:
	contigo_dma_restore(guard);
	put_device(&guard->dev);
	return ret;
}

void contigo_platform_remove(struct platform_device *pdev)
{
	contigo_guard_remove(platform_get_drvdata(pdev));
	pm_runtime_disable(&pdev->dev);
}

static void contigo_platform_shutdown(struct platform_device *pdev)
{
	contigo_guard_shutdown(platform_get_drvdata(pdev));
}

static const struct of_device_id contigo_of_match[] = {
	{ .compatible = "contigo,engine" },
	{ }
};
MODULE_DEVICE_TABLE(of, contigo_of_match);

static struct platform_driver contigo_platform_driver = {
	.probe = contigo_platform_probe,
	.remove = contigo_platform_remove_op,
	.shutdown = contigo_platform_shutdown,
	.driver = {
		.name = "contigo",
		.of_match_table = contigo_of_match,
		.pm = &contigo_pm_ops,
	},
};

int contigo_platform_register(void)
{
	return platform_driver_register(&contigo_platform_driver);
}

void contigo_platform_unregister(void)
{
	platform_driver_unregister(&contigo_platform_driver);
}
