// SPDX-License-Identifier: GPL-2.0
/*
 * How a file ends, by whatever end of the process or of the device; and the
 * device's reset.
 */
#include <linux/device.h>
#include <linux/pci.h>
#include <linux/reset.h>

#include "contigo_calls.h"
#include "contigo_compat.h"

/**
 * contigo_run_stop - run a program, and say where it did not find the device stopped
 * @guard: awake, and not dead
 * @stop: its program
 *
 * Return: the device has stopped.
 */
bool contigo_run_stop(struct contigo_guard *guard, const struct contigo_stop *stop)
{
	const struct contigo_step *step;
	u32 at = 0, value = 0;

	lockdep_assert_held(&guard->lock);
	if (guard->in_reset) {
		dev_warn_ratelimited(guard->dma_dev, "in reset: its program is not run\n");
		return false;
	}
	if (!contigo_stop_run(stop, &at, &value))
		return true;
	step = &stop->step[at];
	dev_warn_ratelimited(guard->dma_dev,
			     "not stopped: step %u, window %u, register %#x is %#010x\n",
			     at, step->window, step->offset_bytes, value);
	return false;
}

/* contigo_reset_device(), except that what is kept stays. */
static int contigo_reset_only(struct contigo_guard *guard, bool hold)
{
	int ret;

	lockdep_assert_held(&guard->lock);
	if (guard->pdev) {
		contigo_pci_set_master(guard->pdev, false);
		ret = contigo_pci_reset(guard->pdev);
		/* EAGAIN: somebody else is about to. */
		if (ret == -EAGAIN)
			return ret;
		guard->can_reset = !ret;
		if (ret == -ENOTTY)
			ret = -EOPNOTSUPP;
	} else if (guard->reset) {
		ret = contigo_reset_lines(guard, hold);
	} else {
		ret = -EOPNOTSUPP;
	}
	if (ret && ret != -EOPNOTSUPP)
		dev_err(guard->dma_dev, "reset: error %d\n", ret);
	return ret;
}

/**
 * contigo_reset_device - reset the device, and give back what is kept for it
 * @guard: awake, and not dead; where it is PCI, device_lock() is held
 * @hold: leave it in reset, where it has such lines
 *
 * Return: 0, -EOPNOTSUPP where nothing can, or the reset driver's error.
 */
int contigo_reset_device(struct contigo_guard *guard, bool hold)
{
	int ret = contigo_reset_only(guard, hold);

	if (!ret)
		contigo_kept_give_back(guard, NULL, true);
	return ret;
}

/*
 * The file goes on. Nobody touches registers in reset: on many buses no answer
 * would come. So where the device is left there, the file loses them. Exporters
 * are not called under map_lock, which faults take.
 */
int contigo_file_reset(struct contigo_file *file)
{
	struct contigo_guard *guard = file->guard;
	int ret;

	contigo_registers_pause(file);
	ret = contigo_reset_only(guard, false);
	if (guard->in_reset)
		file->revoked = true;
	contigo_registers_resume(file);
	if (ret)
		return ret;
	contigo_kept_give_back(guard, NULL, true);
	file->mastered = true;
	return 0;
}

/* The device stops: by its program, by its reset, or because it was pulled out. */
static bool contigo_file_stop(struct contigo_file *file)
{
	struct contigo_guard *guard = file->guard;
	const struct contigo_stop *stop = file->held->stop;
	bool stopped = false;

	if (guard->pdev && contigo_pci_is_gone(guard->pdev)) {
		contigo_kept_give_back(guard, NULL, true);
		return true;
	}
	if (stop && contigo_run_stop(guard, stop)) {
		contigo_kept_give_back(guard, stop, false);
		stopped = true;
	}
	if (guard->pdev)
		contigo_pci_set_master(guard->pdev, false);
	if (guard->can_reset && !contigo_reset_device(guard, true))
		stopped = true;
	return stopped;
}

/**
 * contigo_file_end - stop the device, then let go of what it was given
 * @file: the guard's; the device is still ours
 *
 * Called once for each file, from its last close or from where the device is
 * taken from it, with the guard's lock held; where it is PCI, with device_lock()
 * too.
 *
 * Return: the device has stopped, or had nothing to stop.
 */
bool contigo_file_end(struct contigo_file *file)
{
	struct contigo_guard *guard = file->guard;
	struct contigo_held *held = file->held;
	bool stopped;

	lockdep_assert_held(&guard->lock);
	WRITE_ONCE(file->gone, true);
	contigo_registers_revoke(file);
	contigo_irq_end(file);

	stopped = contigo_file_stop(file);
	if (!stopped && !held->stop && (!held->imports || !file->touched))
		/* It was given nothing, or was never told of it: there is nothing to stop. */
		stopped = true;

	if (!stopped && held->imports)
		dev_err(guard->dma_dev,
			"not stopped: %u buffers, %llu bytes are kept until it stops\n",
			held->imports, held->len_bytes);
	if (!stopped && held->imports)
		contigo_kept_keep(guard, held);
	else
		contigo_held_free(held);

	contigo_registers_unclaim(file);
	if (stopped || !contigo_kept_stay_awake(guard))
		contigo_power_down(guard->power);
	file->held = NULL;
	guard->file = NULL;
	wake_up_interruptible_all(&file->wait);
	return stopped;
}

/* For the administrator: whoever has the device loses it. It stays in reset, where it has lines. */
int contigo_guard_reset(struct contigo_guard *guard)
{
	int ret;

	lockdep_assert_held(&guard->lock);
	if (!guard->can_reset && (guard->file || !guard->pdev))
		return -EOPNOTSUPP;
	if (guard->file)
		contigo_file_end(guard->file);
	ret = contigo_power_up(guard->power);
	if (ret)
		return ret;
	ret = contigo_reset_device(guard, true);
	contigo_power_down(guard->power);
	return ret;
}
