// SPDX-License-Identifier: GPL-2.0
/*
 * What is kept for a device that has not stopped: buffers, the programs that
 * would stop it, its clocks. It outlives the guard, and the next guard of the
 * same device finds it.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/kmemleak.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#include "contigo_calls.h"
#include "contigo_compat.h"

/**
 * struct contigo_kept - what is kept for one device
 * @node: in the list of all
 * @is_bound: a guard has it
 * @bus: where to find the device again, by
 * @name: its name on @bus,
 * @window: and its registers
 * @held: struct contigo_held, one for each file whose device did not stop
 * @buffers: imports in all of them
 * @len_bytes: of these
 * @awake: the guard's power was left up, once
 * @clocks: of a guard that is gone, left on, once; or NULL
 *
 * The guard's lock guards it while @is_bound, contigo_kept_lock otherwise.
 */
struct contigo_kept {
	struct list_head node;
	bool is_bound;
	const struct bus_type *bus;
	char *name;
	struct contigo_registers window[CONTIGO_MAX_WINDOWS];
	struct list_head held;
	u32 buffers;
	u64 len_bytes;
	bool awake;
	struct contigo_power *clocks;
};

static LIST_HEAD(contigo_kept_list);
static DEFINE_MUTEX(contigo_kept_lock);	/* the list, and what no guard has */

static bool contigo_kept_is_for(const struct contigo_kept *kept, const struct contigo_guard *guard)
{
	return !kept->is_bound && kept->bus == guard->dma_dev->bus &&
	       !strcmp(kept->name, dev_name(guard->dma_dev)) &&
	       !memcmp(kept->window, guard->window, sizeof(guard->window));
}

static void contigo_kept_free(struct contigo_kept *kept)
{
	list_del(&kept->node);
	kfree(kept->name);
	kfree(kept);
}

/* Its programs need its registers; one that cannot map them is not tried. */
static void contigo_kept_map_stops(struct contigo_kept *kept)
{
	struct contigo_held *held;

	list_for_each_entry(held, &kept->held, node) {
		if (held->stop)
			contigo_stop_map(held->stop, kept->window);
	}
}

static void contigo_kept_unmap_stops(struct contigo_kept *kept)
{
	struct contigo_held *held;

	list_for_each_entry(held, &kept->held, node) {
		if (held->stop)
			contigo_stop_unmap(held->stop);
	}
}

/* What is kept for the guard's device, from a guard before it or new; or NULL: no memory. */
struct contigo_kept *contigo_kept_get(struct contigo_guard *guard)
{
	struct contigo_kept *kept;

	mutex_lock(&contigo_kept_lock);
	list_for_each_entry(kept, &contigo_kept_list, node) {
		if (contigo_kept_is_for(kept, guard)) {
			contigo_kept_map_stops(kept);
			goto bind;
		}
	}

	kept = kzalloc(sizeof(*kept), GFP_KERNEL);
	if (!kept)
		goto unlock;
	kept->name = kstrdup(dev_name(guard->dma_dev), GFP_KERNEL);
	if (!kept->name) {
		kfree(kept);
		kept = NULL;
		goto unlock;
	}
	kept->bus = guard->dma_dev->bus;
	memcpy(kept->window, guard->window, sizeof(kept->window));
	INIT_LIST_HEAD(&kept->held);
	list_add_tail(&kept->node, &contigo_kept_list);
bind:
	kept->is_bound = true;
unlock:
	mutex_unlock(&contigo_kept_lock);
	return kept;
}

void contigo_kept_count(const struct contigo_guard *guard, u32 *buffers, u64 *len_bytes)
{
	lockdep_assert_held(&guard->lock);
	*buffers = guard->kept->buffers;
	*len_bytes = guard->kept->len_bytes;
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
			if (mapping && mapping->dmabuf == dmabuf && mapping->attachment)
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

/* What a guard before this one left on. */
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
	struct contigo_held *held, *next;
	u32 buffers = 0;

	lockdep_assert_held(&guard->lock);
	list_for_each_entry_safe(held, next, &kept->held, node) {
		if (!reset && !stop)
			continue;
		if (!reset && held->stop && !contigo_stop_is_same(held->stop, stop))
			continue;
		list_del(&held->node);
		kept->buffers -= held->imports;
		kept->len_bytes -= held->len_bytes;
		buffers += held->imports;
		contigo_held_free(held);
	}
	if (buffers)
		dev_info(guard->dma_dev, "stopped: %u kept buffers given back\n", buffers);
	if (list_empty(&kept->held) && (reset || stop))
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
 * Two kinds stay as they are, for nothing else is right with them either. What
 * goes through a bounce buffer: unmapping would give that to others. And what
 * is pinned by being attached: the exporter would move it, and give its pages
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

			if (!mapping || bounces || (!guard->iommu && mapping->dmabuf->ops->pin))
				continue;
			contigo_mapping_detach(mapping);
		}
	}
}

/* The guard goes; what is kept stays for the next one. */
void contigo_kept_leave(struct contigo_guard *guard)
{
	struct contigo_kept *kept = guard->kept;

	mutex_lock(&contigo_kept_lock);
	if (guard->power)
		contigo_power_unbind(guard->power, kept->awake);
	if (kept->awake && guard->power) {
		kept->clocks = guard->power;
		guard->power = NULL;
	}
	contigo_kept_unmap_stops(kept);
	kept->awake = false;
	kept->is_bound = false;
	if (list_empty(&kept->held) && !kept->clocks)
		contigo_kept_free(kept);
	mutex_unlock(&contigo_kept_lock);
}

/*
 * The module goes, what is kept does not: nobody takes it out any more. None of
 * it refers to this module's code, for a static attachment has no callbacks.
 */
void contigo_kept_exit(void)
{
	struct contigo_kept *kept, *next;
	struct contigo_held *held;
	u32 i;

	list_for_each_entry_safe(kept, next, &contigo_kept_list, node) {
		list_for_each_entry(held, &kept->held, node) {
			for (i = 0; i < CONTIGO_MAX_IMPORTS; i++) {
				if (held->import[i])
					kmemleak_not_leak(held->import[i]);
			}
			if (held->stop)
				kmemleak_not_leak(held->stop);
			kmemleak_not_leak(held);
		}
		if (kept->clocks)
			kmemleak_not_leak(kept->clocks);
		kmemleak_not_leak(kept->name);
		kmemleak_not_leak(kept);
		list_del_init(&kept->node);
	}
}
