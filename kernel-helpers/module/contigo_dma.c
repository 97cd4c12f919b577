// SPDX-License-Identifier: GPL-2.0
/*
 * A guard's device as the DMA API and the IOMMU see it: how far its addresses
 * reach, whether it snoops, and whether it is confined.
 */
#include <linux/dma-mapping.h>
/*
 * For two things that no public header tells: that the interconnect shifts a
 * device's addresses (dma-ranges), and by how much. An importer needs the second
 * to tell memory that the kernel maps from memory that it does not.
 */
#include <linux/dma-direct.h>
#include <linux/iommu.h>
#include <linux/pci.h>
#include <linux/property.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "contigo_calls.h"
#include "contigo_compat.h"

/* About 0.1 to 1 ms of cache maintenance. */
#define CONTIGO_SYNC_BYTES	SZ_1M

/*
 * The domain that translates the device's addresses, or NULL: the default
 * domain, which does not change while a driver is bound.
 */
static struct iommu_domain *contigo_dma_domain(const struct contigo_guard *guard)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(guard->dma_dev);

	return domain && domain->type & __IOMMU_DOMAIN_PAGING ? domain : NULL;
}

/*
 * Not behind an IOMMU, the mask decides only when the DMA API gives up: the
 * memory was allocated before anybody knew which device it is imported for.
 * With a mask narrower than memory it would bounce, or warn. So it is as wide
 * as it can be, and contigo_import() compares the addresses with the file's
 * bits. An IOMMU's addresses are chosen below the mask.
 */
int contigo_dma_set_bits(struct contigo_guard *guard, u32 bits)
{
	/*
	 * Below 4 GiB an address that cannot be had makes the domain's allocator
	 * refuse that length to everybody, until one is freed there (iova.c,
	 * max32_alloc_size).
	 */
	if (guard->iommu && bits < min(32U, guard->default_dma_bits))
		return -EIO;
	if (guard->iommu && dma_set_mask(guard->dma_dev, DMA_BIT_MASK(bits)))
		return -EIO;
	guard->dma_bits = bits;
	return 0;
}

/*
 * The kernel set the device up by what the firmware says: a PCI function goes by
 * its host bridge. dev_is_dma_coherent() says true of everything on 32-bit Arm
 * before 6.0.
 */
static bool contigo_dma_is_coherent(const struct contigo_guard *guard)
{
	struct device *dev = guard->dma_dev;
	enum dev_dma_attr attr;

	if (IS_ENABLED(CONFIG_X86))
		return true;
	attr = device_get_dma_attr(dev);
#ifdef CONFIG_PCI
	if (guard->pdev) {
		struct pci_bus *bus = guard->pdev->bus;

		while (bus->parent)
			bus = bus->parent;
		attr = device_get_dma_attr(bus->bridge);
		if (attr == DEV_DMA_NOT_SUPPORTED && bus->bridge->parent)
			attr = device_get_dma_attr(bus->bridge->parent);
	}
#endif
	return attr == DEV_DMA_COHERENT;
}

int contigo_dma_set_up(struct contigo_guard *guard)
{
	struct iommu_domain *domain = contigo_dma_domain(guard);
	struct device *dev = guard->dma_dev;

	if (!dev->dma_mask || !dev->dma_parms)
		return dev_err_probe(dev, -EINVAL, "masters no memory\n");

	guard->max_seg_size = dma_get_max_seg_size(dev);
	guard->seg_boundary = dma_get_seg_boundary(dev);
	/* An entry of a mapped list is as long as the exporter makes it. */
	dma_set_max_seg_size(dev, UINT_MAX);
	dma_set_seg_boundary(dev, ULONG_MAX);

	guard->default_dma_bits = fls64(dma_get_mask(dev));
	guard->dma_bits = guard->default_dma_bits;
	guard->coherent = contigo_dma_is_coherent(guard);
	guard->iommu = domain;
	if (domain) {
		guard->sync_bytes = 1UL << __ffs(domain->pgsize_bitmap);
		return 0;
	}
	guard->sync_bytes = CONTIGO_SYNC_BYTES;
	return dma_set_mask(dev, DMA_BIT_MASK(64));
}

/* The next driver finds the device as this one did. */
void contigo_dma_restore(struct contigo_guard *guard)
{
	struct device *dev = guard->dma_dev;

	if (!guard->default_dma_bits)
		return;
	dma_set_mask(dev, DMA_BIT_MASK(guard->default_dma_bits));
	dma_set_max_seg_size(dev, guard->max_seg_size);
	dma_set_seg_boundary(dev, guard->seg_boundary);
}

static bool contigo_dma_is_offset(const struct contigo_guard *guard)
{
	const struct bus_dma_region *region = guard->dma_dev->dma_range_map;

	for (; region && region->size; region++) {
		if (region->cpu_start != region->dma_start)
			return true;
	}
	return false;
}

static int contigo_dma_count_device(struct device *dev, void *count)
{
	++*(u32 *)count;
	return 0;
}

/* Devices of one group reach each other's memory, past the IOMMU or through it. */
static bool contigo_dma_is_alone(const struct contigo_guard *guard)
{
	struct iommu_group *group = iommu_group_get(guard->dma_dev);
	u32 count = 0;

	if (!group)
		return false;
	iommu_group_for_each_dev(group, &count, contigo_dma_count_device);
	iommu_group_put(group);
	return count == 1;
}

/*
 * Is anything mapped for its group that nobody imported? Firmware can reserve
 * memory that is mapped one to one in the default domain, which is used here.
 */
static bool contigo_dma_has_reserved(struct iommu_group *group)
{
	struct iommu_resv_region *region, *next;
	LIST_HEAD(regions);
	bool has = iommu_get_group_resv_regions(group, &regions);

	list_for_each_entry_safe(region, next, &regions, list) {
		has |= region->type == IOMMU_RESV_DIRECT ||
		       region->type == IOMMU_RESV_DIRECT_RELAXABLE;
		list_del(&region->list);
		kfree(region);
	}
	return has;
}

/*
 * Does the IOMMU let nothing else pass than imports? A PCI function that writes to where
 * MSIs go raises any interrupt, unless these are isolated. With ATS it says
 * itself which of its addresses are translated.
 */
static bool contigo_dma_is_confined(const struct contigo_guard *guard)
{
	struct iommu_group *group = iommu_group_get(guard->dma_dev);
	bool confined;

	if (!group)
		return false;
	confined = !contigo_dma_has_reserved(group);
#ifdef CONFIG_PCI
	if (guard->pdev && (guard->pdev->ats_enabled || !contigo_iommu_isolates_msi(group)))
		confined = false;
#endif
	iommu_group_put(group);
	return confined;
}

/* CONTIGO_INFO_* that the device's surroundings decide; two of them may change by themselves. */
u32 contigo_dma_flags(const struct contigo_guard *guard)
{
	u32 confined = CONTIGO_INFO_IOMMU | CONTIGO_INFO_STRICT | CONTIGO_INFO_ALONE;
	u32 flags = 0;

	if (guard->coherent)
		flags |= CONTIGO_INFO_COHERENT;
	if (guard->iommu)
		flags |= CONTIGO_INFO_IOMMU;
	if (guard->iommu || contigo_dma_is_offset(guard))
		flags |= CONTIGO_INFO_TRANSLATED;
	if (guard->iommu && contigo_iommu_is_strict(contigo_dma_domain(guard)))
		flags |= CONTIGO_INFO_STRICT;
	if (contigo_dma_is_alone(guard))
		flags |= CONTIGO_INFO_ALONE;
	if ((flags & confined) == confined && contigo_dma_is_confined(guard))
		flags |= CONTIGO_INFO_CONFINED;
	return flags;
}

/* Where the memory is that the device sees at @addr. */
phys_addr_t contigo_dma_to_phys(const struct contigo_guard *guard, dma_addr_t addr)
{
	if (guard->iommu)
		return iommu_iova_to_phys(contigo_dma_domain(guard), addr);
	return dma_to_phys(guard->dma_dev, addr);
}
