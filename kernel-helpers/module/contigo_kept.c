// SPDX-License-Identifier: GPL-2.0
/*
 * A device that has not stopped keeps its buffers, the programs that would stop
 * it, and its clocks.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/ktime.h>

#include "contigo_calls.h"
#include "contigo_compat.h"

void contigo_kept_count(const struct contigo_guard *guard, u32 *buffers, u64 *len_bytes)
{
	lockdep_assert_held(&guard->lock);
	*buffers = guard->kept->buffers;
	*len_bytes = guard->kept->len_bytes;
}

/* Is the device not known to have stopped since a file before? */
bool contigo_kept_is_at_work(const struct contigo_guard *guard)
{
	lockdep_assert_held(&guard->lock);
	return guard->kept->awake || !list_empty(&guard->kept->held);
}

/*
 * Would its next owner reach the memory of who had it before? Behind an IOMMU
 * what is kept stays mapped; after an unbind its addresses go to others, and the
 * device may still use them.
 */
bool contigo_kept_is_mapped(const struct contigo_guard *guard)
{
	lockdep_assert_held(&guard->lock);
	return guard->iommu && !list_empty(&guard->kept->held);
}

/* The mapping of @dmabuf that is kept and that this guard made, or NULL. */
struct contigo_mapping *contigo_kept_find(struct contigo_guard *guard,
					  const struct dma_buf *dmabuf)
{
	struct contigo_mapping *mapping;
	struct contigo_held *held;
	u32 i;

	lockdep_assert_held(&guard->lock);
	list_for_each_entry(held, &guard->kept->held, node) {
		for (i = 0; i < CONTIGO_MAX_IMPORTS; i++) {
			mapping = held->import[i];
			if (mapping && mapping->dmabuf == dmabuf && mapping->attachment &&
			    !mapping->left)
				return mapping;
		}
	}
	return NULL;
}

/* The device has not stopped: it keeps what it was given. */
void contigo_kept_keep(struct contigo_guard *guard, struct contigo_held *held)
{
	struct contigo_kept *kept = guard->kept;

	lockdep_assert_held(&guard->lock);
	list_add_tail(&held->node, &kept->held);
	kept->buffers += held->imports;
	kept->len_bytes += held->len_bytes;
}

/* A guard before this one left them on. */
static void contigo_kept_clocks_off(struct contigo_kept *kept)
{
	if (!kept->clocks)
		return;
	contigo_power_clocks_off(kept->clocks);
	contigo_power_free(kept->clocks);
	kept->clocks = NULL;
}

/* The file's wakefulness becomes what is kept; false where one is kept already. */
bool contigo_kept_stay_awake(struct contigo_guard *guard)
{
	lockdep_assert_held(&guard->lock);
	if (guard->kept->awake)
		return false;
	guard->kept->awake = true;
	contigo_kept_clocks_off(guard->kept);
	return true;
}

static void contigo_kept_sleep(struct contigo_guard *guard)
{
	if (guard->kept->awake)
		contigo_power_down(guard->power);
	guard->kept->awake = false;
	contigo_kept_clocks_off(guard->kept);
}

/**
 * contigo_kept_take - free what a stop speaks for
 * @kept: of the device
 * @stop: the program that said so; NULL: all of it
 *
 * @stop may be of what is freed, so nothing is before all are compared.
 *
 * Return: how many buffers it was.
 */
u32 contigo_kept_take(struct contigo_kept *kept, const struct contigo_stop *stop)
{
	struct contigo_held *held, *next;
	u32 buffers = 0;
	LIST_HEAD(taken);

	list_for_each_entry_safe(held, next, &kept->held, node) {
		if (stop && held->stop && !contigo_stop_is_same(held->stop, stop))
			continue;
		list_move_tail(&held->node, &taken);
		kept->buffers -= held->imports;
		kept->len_bytes -= held->len_bytes;
		buffers += held->imports;
	}
	list_for_each_entry_safe(held, next, &taken, node)
		contigo_held_free(held);
	return buffers;
}

/**
 * contigo_kept_give_back - the device has stopped
 * @guard: of the device
 * @stop: the program that said so, or NULL
 * @reset: it was reset, which is true of whatever is kept
 *
 * A program speaks for what was kept with the same program, and for what was
 * kept with none.
 */
void contigo_kept_give_back(struct contigo_guard *guard, const struct contigo_stop *stop,
			    bool reset)
{
	struct contigo_kept *kept = guard->kept;
	u32 buffers;

	lockdep_assert_held(&guard->lock);
	if (!stop && !reset)
		return;
	buffers = contigo_kept_take(kept, reset ? NULL : stop);
	if (buffers)
		dev_info(guard->dma_dev, "stopped: %u kept buffers given back\n", buffers);
	if (list_empty(&kept->held))
		contigo_kept_sleep(guard);
}

/*
 * Before the device's next owner, or before nobody can look any more: has it
 * stopped in the meantime? It is awake. All programs together have about as long
 * as one.
 */
void contigo_kept_try(struct contigo_guard *guard)
{
	ktime_t end = ktime_add_us(ktime_get(), CONTIGO_MAX_POLL_US);
	struct contigo_held *held;
	u32 at, value;

	lockdep_assert_held(&guard->lock);
	if (guard->in_reset)
		return;
again:
	list_for_each_entry(held, &guard->kept->held, node) {
		if (!held->stop || ktime_after(ktime_get(), end))
			continue;
		if (contigo_stop_run(held->stop, &at, &value))
			continue;
		contigo_kept_give_back(guard, held->stop, false);
		goto again;
	}
}

/**
 * contigo_kept_unmap - the DMA API is about to forget the device
 * @guard: is being unbound
 *
 * An exporter may synchronise whatever is mapped, for whoever asks: with a
 * device whose DMA operations and offsets are gone it would take a bus address
 * for a physical one. Detaching ends that also with exporters that keep what
 * they mapped. The buffer's reference stays, and with it the pages.
 *
 * Two kinds stay as they are, for nothing else is right with them either. One
 * goes through a bounce buffer: unmapping would give that to others. The other
 * is pinned by being attached: its exporter would move it, and give its pages
 * to others. Behind an IOMMU the device reaches neither afterwards.
 */
void contigo_kept_unmap(struct contigo_guard *guard)
{
	bool bounces = !guard->iommu && dma_addressing_limited(guard->dma_dev);
	struct contigo_held *held;
	u32 i;

	lockdep_assert_held(&guard->lock);
	list_for_each_entry(held, &guard->kept->held, node) {
		for (i = 0; i < CONTIGO_MAX_IMPORTS; i++) {
			struct contigo_mapping *mapping = held->import[i];

			if (!mapping)
				continue;
			if (bounces || (!guard->iommu && mapping->dmabuf->ops->pin))
				contigo_mapping_leave(mapping);
			else
				contigo_mapping_detach(mapping);
		}
	}
}
