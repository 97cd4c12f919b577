// SPDX-License-Identifier: GPL-2.0
/*
 * The list of devices that keep something. It outlives the guard, and the next
 * guard of the same device finds its entry.
 */
#include <linux/device.h>
#include <linux/kmemleak.h>
#include <linux/of.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "contigo_calls.h"

static LIST_HEAD(contigo_kept_list);
static DEFINE_MUTEX(contigo_kept_lock);	/* the list, and what no guard has */

/* Hardware of this kind has such registers. */
static char *contigo_kind(const struct contigo_guard *guard)
{
	const char *compatible = "";

#ifdef CONFIG_PCI
	if (guard->pdev)
		return kasprintf(GFP_KERNEL, "%04x:%04x", guard->pdev->vendor,
				 guard->pdev->device);
#endif
	of_property_read_string(guard->dma_dev->of_node, "compatible", &compatible);
	return kstrdup(compatible, GFP_KERNEL);
}

static bool contigo_kept_is_for(const struct contigo_kept *kept, const struct contigo_guard *guard,
				const char *kind)
{
	return !kept->is_bound && kept->bus == guard->dma_dev->bus &&
	       !strcmp(kept->name, dev_name(guard->dma_dev)) && !strcmp(kept->kind, kind) &&
	       !memcmp(kept->window, guard->window, sizeof(guard->window));
}

static void contigo_kept_free(struct contigo_kept *kept)
{
	list_del(&kept->node);
	kfree(kept->kind);
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

/* The mappings that were left are this guard's where the device is the same. */
static void contigo_kept_return(struct contigo_kept *kept, struct device *dev)
{
	struct contigo_held *held;
	u32 i;

	list_for_each_entry(held, &kept->held, node) {
		for (i = 0; i < CONTIGO_MAX_IMPORTS; i++) {
			if (held->import[i])
				contigo_mapping_return(held->import[i], dev);
		}
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

/* The entry of the guard's device, from a guard before it or new; or NULL: no memory. */
struct contigo_kept *contigo_kept_get(struct contigo_guard *guard)
{
	char *kind = contigo_kind(guard);
	struct contigo_kept *kept;

	if (!kind)
		return NULL;
	mutex_lock(&contigo_kept_lock);
	list_for_each_entry(kept, &contigo_kept_list, node) {
		if (contigo_kept_is_for(kept, guard, kind)) {
			contigo_kept_map_stops(kept);
			contigo_kept_return(kept, guard->dma_dev);
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
	kept->kind = kind;
	kind = NULL;
	kept->bus = guard->dma_dev->bus;
	memcpy(kept->window, guard->window, sizeof(kept->window));
	INIT_LIST_HEAD(&kept->held);
	list_add_tail(&kept->node, &contigo_kept_list);
bind:
	kept->is_bound = true;
unlock:
	mutex_unlock(&contigo_kept_lock);
	kfree(kind);
	return kept;
}

/* The guard goes; an entry that is not empty stays for the next one. */
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
		kmemleak_not_leak(kept->kind);
		kmemleak_not_leak(kept->name);
		kmemleak_not_leak(kept);
		list_del_init(&kept->node);
	}
}
