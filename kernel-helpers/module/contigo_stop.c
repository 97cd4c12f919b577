// SPDX-License-Identifier: GPL-2.0
/*
 * The stop sequence of a file: checked when it is armed, run at the teardown. The
 * pages of its registers are mapped as long as it may be run.
 */
#include <linux/io.h>
#include <linux/iopoll.h>
#include <linux/nospec.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "contigo_internal.h"

/*
 * A look at the register each 13 to 50 us (read_poll_timeout() sleeps from a
 * quarter on).
 */
#define CONTIGO_POLL_SLEEP_US	50

static int contigo_step_check(const struct contigo_registers *window, bool is_trusted,
			      const struct contigo_step *step)
{
	u64 from = step->offset_bytes;

	if (step->kind < CONTIGO_STEP_WRITE || step->kind > CONTIGO_STEP_ELSE)
		return -EINVAL;
	if (step->kind == CONTIGO_STEP_ELSE)
		return step->window || from || step->mask || step->value || step->timeout_us ?
			       -EINVAL : 0;
	if (step->kind == CONTIGO_STEP_WRITE && step->timeout_us)
		return -EINVAL;
	if (!step->mask || step->value & ~step->mask)
		return -EINVAL;
	if (step->window >= CONTIGO_MAX_WINDOWS)
		return -ENXIO;
	window += array_index_nospec(step->window, CONTIGO_MAX_WINDOWS);
	if (!IS_ALIGNED(from, sizeof(u32)) || from + sizeof(u32) > window->len_bytes)
		return -ENXIO;
	return is_trusted || window->answers ? 0 : -EPERM;
}

/**
 * contigo_stop_check - may these steps be run?
 * @window: CONTIGO_MAX_WINDOWS of them, which never change
 * @is_trusted: who arms it may crash the machine
 * @step: the steps
 * @count: how many; not 0
 *
 * A stop sequence is believed only where it has looked after it wrote: so each
 * way to its end, to the last step or to an ELSE, ends with a poll.
 *
 * Return: 0, or what the header says of CONTIGO_ARM.
 */
int contigo_stop_check(const struct contigo_registers *window, bool is_trusted,
		       const struct contigo_step *step, u32 count)
{
	u32 before = CONTIGO_STEP_ELSE;
	u64 poll_us = 0;
	u32 i;
	int ret;

	for (i = 0; i < count; i++) {
		ret = contigo_step_check(window, is_trusted, &step[i]);
		if (ret)
			return ret;
		if (step[i].kind == CONTIGO_STEP_ELSE &&
		    (before == CONTIGO_STEP_ELSE || before == CONTIGO_STEP_WRITE))
			return -EINVAL;
		before = step[i].kind;
		poll_us += step[i].timeout_us;
	}
	if (before == CONTIGO_STEP_ELSE || before == CONTIGO_STEP_WRITE)
		return -EINVAL;
	return poll_us > CONTIGO_MAX_POLL_US ? -EINVAL : 0;
}

void contigo_stop_free(struct contigo_stop *stop)
{
	u32 i;

	for (i = 0; stop && i < stop->count; i++) {
		if (stop->reg[i])
			iounmap(stop->reg[i]);
	}
	kfree(stop);
}

/* Each register alone: a whole window may be longer than there are addresses. */
static int contigo_stop_map(struct contigo_stop *stop, const struct contigo_registers *window)
{
	u32 i;

	for (i = 0; i < stop->count; i++) {
		const struct contigo_step *step = &stop->step[i];

		if (step->kind == CONTIGO_STEP_ELSE)
			continue;
		stop->reg[i] = ioremap(window[step->window].start + step->offset_bytes,
				       sizeof(u32));
		if (!stop->reg[i])
			return -ENOMEM;
	}
	return 0;
}

/*
 * Copies a stop sequence of up to CONTIGO_MAX_STEPS from the user, checks it, and maps
 * its registers; without the node's lock. For contigo_stop_free(), or an ERR_PTR().
 */
struct contigo_stop *contigo_stop_load(const struct contigo_registers *window, bool is_trusted,
				       const struct contigo_step __user *from, u32 count)
{
	struct contigo_stop *stop;
	int ret;

	stop = kzalloc(struct_size(stop, step, count), GFP_KERNEL_ACCOUNT);
	if (!stop)
		return ERR_PTR(-ENOMEM);

	stop->count = count;
	ret = -EFAULT;
	if (copy_from_user(stop->step, from, array_size(count, sizeof(*from))))
		goto free;
	ret = contigo_stop_check(window, is_trusted, stop->step, count);
	if (!ret)
		ret = contigo_stop_map(stop, window);
	if (ret)
		goto free;
	return stop;

free:
	contigo_stop_free(stop);
	return ERR_PTR(ret);
}

static void contigo_step_write(void __iomem *reg, const struct contigo_step *step)
{
	u32 value = step->value;

	if (step->mask != U32_MAX)
		value |= readl(reg) & ~step->mask;
	writel(value, reg);
}

/* The sleep is not interruptible: this runs in a process that is being killed. */
static int contigo_step_poll(void __iomem *reg, const struct contigo_step *step, u32 *value)
{
	bool want = step->kind == CONTIGO_STEP_POLL;
	/* 0 would be for ever. */
	u64 timeout_us = max(step->timeout_us, 1U);

	return readl_poll_timeout(reg, *value, ((*value & step->mask) == step->value) == want,
				  CONTIGO_POLL_SLEEP_US, timeout_us);
}

/**
 * contigo_stop_run - stop the device, or ask whether it has stopped
 * @stop: the stop sequence of a device that is awake, and bound
 * @writes: false: its polls alone, where the file that armed it is gone
 * @at: the last poll that was not met
 * @value: the value of its register
 *
 * Return: 0, or -ETIMEDOUT where a poll was not met and no ELSE is below it.
 */
int contigo_stop_run(const struct contigo_stop *stop, bool writes, u32 *at, u32 *value)
{
	u32 i;

	for (i = 0; i < stop->count; i++) {
		const struct contigo_step *step = &stop->step[i];

		/* Reached, not jumped to: all is well. */
		if (step->kind == CONTIGO_STEP_ELSE)
			return 0;
		*at = i;
		if (step->kind == CONTIGO_STEP_WRITE) {
			if (writes)
				contigo_step_write(stop->reg[i], step);
			continue;
		}
		if (!contigo_step_poll(stop->reg[i], step, value))
			continue;
		while (++i < stop->count && stop->step[i].kind != CONTIGO_STEP_ELSE)
			;
		if (i == stop->count)
			return -ETIMEDOUT;
	}
	return 0;
}
