// SPDX-License-Identifier: GPL-2.0
/*
 * The program that stops a device: checked when it is armed, run when the file
 * ends.
 */
#include <linux/iopoll.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "contigo_internal.h"

/*
 * A look at the register each 13 to 50 us (read_poll_timeout() sleeps from a
 * quarter on).
 */
#define CONTIGO_POLL_SLEEP_US	50

static int contigo_step_check(const struct contigo_port *port, const struct contigo_step *step)
{
	const struct contigo_window *window;
	u32 end;

	switch (step->kind) {
	case CONTIGO_STEP_WRITE:
		if (step->timeout_us)
			return -EINVAL;
		break;
	case CONTIGO_STEP_POLL:
	case CONTIGO_STEP_POLL_NOT:
		break;
	default:
		return -EINVAL;
	}
	if (!step->mask || step->value & ~step->mask)
		return -EINVAL;

	if (step->window >= CONTIGO_MAX_WINDOWS)
		return -ENXIO;
	window = &port->window[step->window];
	if (!IS_ALIGNED(step->offset_bytes, sizeof(u32)) ||
	    check_add_overflow(step->offset_bytes, (u32)sizeof(u32), &end) ||
	    end > window->len_bytes)
		return -ENXIO;
	return 0;
}

/**
 * contigo_stop_load - copy a program from the user and check it
 * @port: whose registers it may touch
 * @from: the steps
 * @count: how many; not 0, and CONTIGO_MAX_STEPS at most
 *
 * Called without the port's lock: the lengths of its windows never change.
 *
 * Return: the program, which the caller frees with kfree(), or an ERR_PTR().
 */
struct contigo_stop *contigo_stop_load(struct contigo_port *port,
				       const struct contigo_step __user *from, u32 count)
{
	struct contigo_stop *stop;
	u64 poll_us = 0;
	u32 i;
	int ret;

	stop = kmalloc(struct_size(stop, step, count), GFP_KERNEL_ACCOUNT);
	if (!stop)
		return ERR_PTR(-ENOMEM);

	stop->count = count;
	ret = -EFAULT;
	if (copy_from_user(stop->step, from, array_size(count, sizeof(*from))))
		goto free;

	for (i = 0; i < count; i++) {
		ret = contigo_step_check(port, &stop->step[i]);
		if (ret)
			goto free;
		poll_us += stop->step[i].timeout_us;
	}
	ret = -EINVAL;
	if (poll_us > CONTIGO_MAX_POLL_US)
		goto free;
	return stop;

free:
	kfree(stop);
	return ERR_PTR(ret);
}

static void contigo_step_write(void __iomem *reg, const struct contigo_step *step)
{
	u32 value = step->value;

	if (step->mask != U32_MAX)
		value |= readl(reg) & ~step->mask;
	writel(value, reg);
}

/*
 * The sleep is not interruptible: this runs in a process that is being killed.
 */
static int contigo_step_poll(void __iomem *reg, const struct contigo_step *step, u32 *value)
{
	bool want = step->kind == CONTIGO_STEP_POLL;
	/* 0 would be for ever. */
	u64 timeout_us = max(step->timeout_us, 1U);

	return readl_poll_timeout(reg, *value, ((*value & step->mask) == step->value) == want,
				  CONTIGO_POLL_SLEEP_US, timeout_us);
}

/**
 * contigo_stop_run - stop the device
 * @port: not dead; its lock is held
 * @stop: its program, of this port
 * @at: which step was not met
 * @value: the value of its register
 *
 * Return: 0, or -ETIMEDOUT where a poll was not met; the steps after it are not
 * run.
 */
int contigo_stop_run(struct contigo_port *port, const struct contigo_stop *stop,
		     u32 *at, u32 *value)
{
	u32 i;

	lockdep_assert_held(&port->lock);
	for (i = 0; i < stop->count; i++) {
		const struct contigo_step *step = &stop->step[i];
		void __iomem *reg = port->window[step->window].base + step->offset_bytes;

		if (step->kind == CONTIGO_STEP_WRITE) {
			contigo_step_write(reg, step);
		} else if (contigo_step_poll(reg, step, value)) {
			*at = i;
			return -ETIMEDOUT;
		}
	}
	return 0;
}
