// SPDX-License-Identifier: GPL-2.0
/*
 * The program that stops a device: checked when it is armed, run when the file
 * ends. The pages of its registers are mapped as long as it may be run.
 */
#include <linux/io.h>
#include <linux/iopoll.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "contigo_calls.h"

/*
 * A look at the register each 13 to 50 us (read_poll_timeout() sleeps from a
 * quarter on).
 */
#define CONTIGO_POLL_SLEEP_US	50

static int contigo_step_check_register(const struct contigo_registers *window,
				       const struct contigo_step *step)
{
	u64 from = step->offset_bytes;
	u64 to = from + sizeof(u32);

	if (!step->mask || step->value & ~step->mask)
		return -EINVAL;
	if (step->window >= CONTIGO_MAX_WINDOWS)
		return -ENXIO;
	window += array_index_nospec(step->window, CONTIGO_MAX_WINDOWS);
	if (!IS_ALIGNED(from, sizeof(u32)) || to > window->len_bytes)
		return -ENXIO;
	if (from < window->hidden_to && to > window->hidden_from)
		return -ENXIO;
	return 0;
}

static int contigo_step_check(const struct contigo_registers *window,
			      const struct contigo_step *step, u32 i, u32 count)
{
	switch (step->kind) {
	case CONTIGO_STEP_WRITE:
		if (step->timeout_us)
			return -EINVAL;
		break;
	case CONTIGO_STEP_POLL:
	case CONTIGO_STEP_POLL_NOT:
		break;
	case CONTIGO_STEP_ELSE:
		if (!i || i == count - 1 || step[-1].kind == CONTIGO_STEP_ELSE)
			return -EINVAL;
		if (step->window || step->offset_bytes || step->mask || step->value ||
		    step->timeout_us)
			return -EINVAL;
		return 0;
	default:
		return -EINVAL;
	}
	return contigo_step_check_register(window, step);
}

/**
 * contigo_stop_check - may these steps be run?
 * @window: CONTIGO_MAX_WINDOWS of them, which never change
 * @step: the steps
 * @count: how many; not 0
 *
 * Return: 0, or what the header says of CONTIGO_ARM.
 */
int contigo_stop_check(const struct contigo_registers *window, const struct contigo_step *step,
		       u32 count)
{
	u64 poll_us = 0;
	u32 i;
	int ret;

	for (i = 0; i < count; i++) {
		ret = contigo_step_check(window, &step[i], i, count);
		if (ret)
			return ret;
		poll_us += step[i].timeout_us;
	}
	return poll_us > CONTIGO_MAX_POLL_US ? -EINVAL : 0;
}

static phys_addr_t contigo_step_phys(const struct contigo_registers *window,
				     const struct contigo_step *step)
{
	return window[step->window].start + step->offset_bytes;
}

/* An earlier step's mapping of the page of step @i, or NULL. */
static void __iomem *contigo_stop_page(const struct contigo_stop *stop,
				       const struct contigo_registers *window, u32 i)
{
	phys_addr_t phys = contigo_step_phys(window, &stop->step[i]);
	u32 j;

	for (j = 0; j < i; j++) {
		phys_addr_t other;

		if (!stop->reg[j])
			continue;
		other = contigo_step_phys(window, &stop->step[j]);
		if (PHYS_PFN(other) == PHYS_PFN(phys))
			return stop->reg[j] - offset_in_page(other);
	}
	return NULL;
}

/**
 * contigo_stop_map - map the registers of a program
 * @stop: its steps were checked; none is mapped
 * @window: the ones they were checked against
 *
 * Page by page: a whole window may be longer than there are addresses.
 *
 * Return: 0, or -ENOMEM; then none is mapped.
 */
int contigo_stop_map(struct contigo_stop *stop, const struct contigo_registers *window)
{
	u32 i;

	for (i = 0; i < stop->count; i++) {
		phys_addr_t phys = contigo_step_phys(window, &stop->step[i]);
		void __iomem *page;

		if (stop->step[i].kind == CONTIGO_STEP_ELSE)
			continue;
		page = contigo_stop_page(stop, window, i);
		if (!page)
			page = ioremap(phys & PAGE_MASK, PAGE_SIZE);
		if (!page) {
			contigo_stop_unmap(stop);
			return -ENOMEM;
		}
		stop->reg[i] = page + offset_in_page(phys);
	}
	return 0;
}

/* Each page once: the address within it is that of the register. */
void contigo_stop_unmap(struct contigo_stop *stop)
{
	u32 i, j;

	for (i = 0; i < stop->count; i++) {
		unsigned long page = (unsigned long)stop->reg[i] & PAGE_MASK;

		if (!stop->reg[i])
			continue;
		iounmap((void __iomem *)page);
		for (j = i; j < stop->count; j++) {
			if (((unsigned long)stop->reg[j] & PAGE_MASK) == page)
				stop->reg[j] = NULL;
		}
	}
}

/**
 * contigo_stop_load - copy a program from the user, check it, map its registers
 * @window: the registers that it may touch, which never change
 * @from: the steps
 * @count: how many; not 0, and CONTIGO_MAX_STEPS at most
 *
 * Called without the guard's lock.
 *
 * Return: the program, for contigo_stop_free(), or an ERR_PTR().
 */
struct contigo_stop *contigo_stop_load(const struct contigo_registers *window,
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
	ret = contigo_stop_check(window, stop->step, count);
	if (!ret)
		ret = contigo_stop_map(stop, window);
	if (ret)
		goto free;
	return stop;

free:
	kfree(stop);
	return ERR_PTR(ret);
}

void contigo_stop_free(struct contigo_stop *stop)
{
	if (!stop)
		return;
	contigo_stop_unmap(stop);
	kfree(stop);
}

bool contigo_stop_is_same(const struct contigo_stop *one, const struct contigo_stop *other)
{
	return one->count == other->count &&
	       !memcmp(one->step, other->step, array_size(one->count, sizeof(one->step[0])));
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
 * @stop: the program of a device that is awake, and bound
 * @at: the last poll that was not met
 * @value: the value of its register
 *
 * Return: 0, or -ETIMEDOUT where a poll was not met and no ELSE is below it, or
 * where the program's registers could not be mapped again.
 */
int contigo_stop_run(const struct contigo_stop *stop, u32 *at, u32 *value)
{
	u32 i;

	for (i = 0; i < stop->count; i++) {
		const struct contigo_step *step = &stop->step[i];

		/* Reached, not jumped to: all is well. */
		if (step->kind == CONTIGO_STEP_ELSE)
			return 0;
		*at = i;
		if (!stop->reg[i])
			return -ETIMEDOUT;
		if (step->kind == CONTIGO_STEP_WRITE) {
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
