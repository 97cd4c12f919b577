// SPDX-License-Identifier: GPL-2.0
/*
 * A node's device as the DMA API and the IOMMU see it: how far its addresses
 * reach, whether it snoops, and whether it is confined.
 */
#include <linux/dma-mapping.h>
#include <linux/iommu.h>
#include <linux/of.h>
#include <linux/of_reserved_mem.h>
#include <linux/property.h>
#include <linux/slab.h>

#include "contigo_compat.h"
#include "contigo_internal.h"

/* The domain that translates the device's addresses, or NULL. */
static struct iommu_domain *contigo_dma_domain(const struct contigo_node *node)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(node->dma_dev);

	return domain && domain->type != IOMMU_DOMAIN_IDENTITY ? domain : NULL;
}

/* The file has no memory. */
int contigo_dma_set_bits(struct contigo_node *node, u32 bits)
{
	/*
	 * With less than firmware says, memory of a machine could be out of reach
	 * without a bounce buffer, of which the DMA API warns.
	 */
	if (bits < min(32U, node->default_dma_bits))
		return -EINVAL;
	if (dma_set_mask_and_coherent(node->dma_dev, DMA_BIT_MASK(bits)))
		return -EIO;
	node->dma_bits = bits;
	return 0;
}

/* Does the device see memory elsewhere than the CPU does? Asked of one page. */
static int contigo_dma_find_translation(struct contigo_node *node)
{
	struct device *dev = node->dma_dev;
	dma_addr_t addr;
	struct page *page = dma_alloc_pages(dev, PAGE_SIZE, &addr, DMA_BIDIRECTIONAL, GFP_KERNEL);

	if (!page || dma_mapping_error(dev, addr))
		return dev_err_probe(dev, -ENOMEM, "no memory within its reach\n");
	node->is_translated = node->iommu || addr != page_to_phys(page);
	dma_free_pages(dev, PAGE_SIZE, page, addr, DMA_BIDIRECTIONAL);
	return 0;
}

int contigo_dma_set_up(struct contigo_node *node)
{
	struct device *dev = node->dma_dev;
	struct device_node *pool;
	int ret = 0;

	if (!dev->dma_mask || !dev->dma_parms)
		return dev_err_probe(dev, -EINVAL, "masters no memory\n");
	/* An entry of a mapped list is as long as the exporter makes it. */
	dma_set_max_seg_size(dev, UINT_MAX);
	dma_set_seg_boundary(dev, ULONG_MAX);
	node->default_dma_bits = fls64(dma_get_mask(dev));
	node->coherent = device_get_dma_attr(dev) == DEV_DMA_COHERENT;
	node->iommu = contigo_dma_domain(node);
	/* A reusable pool is used. An IOMMU wants none; of others no page could be mapped. */
	pool = of_parse_phandle(dev->of_node, "memory-region", 0);
	if (pool && !node->iommu && of_property_read_bool(pool, "reusable"))
		ret = of_reserved_mem_device_init(dev);
	of_node_put(pool);
	ret = ret ?: contigo_dma_find_translation(node);
	if (ret)
		contigo_dma_restore(node);
	return ret;
}

/* The next driver finds the device as this one did. */
void contigo_dma_restore(struct contigo_node *node)
{
	dma_set_mask_and_coherent(node->dma_dev, DMA_BIT_MASK(node->default_dma_bits));
	dma_set_max_seg_size(node->dma_dev, 0);
	dma_set_seg_boundary(node->dma_dev, 0);
	of_reserved_mem_device_release(node->dma_dev);
}

static int contigo_dma_count_device(struct device *dev, void *count)
{
	++*(u32 *)count;
	return 0;
}

/* Devices of one group reach each other's memory, past the IOMMU or through it. */
static bool contigo_dma_is_alone(struct iommu_group *group)
{
	u32 count = 0;

	iommu_group_for_each_dev(group, &count, contigo_dma_count_device);
	return count == 1;
}

/*
 * Is anything mapped for its group that this node did not map? Firmware can
 * reserve memory that is mapped one to one in the default domain, which is used; and
 * x86 has a window of interrupts.
 */
static bool contigo_dma_has_reserved(struct iommu_group *group)
{
	struct iommu_resv_region *region, *next;
	LIST_HEAD(regions);
	bool has = iommu_get_group_resv_regions(group, &regions);

	list_for_each_entry_safe(region, next, &regions, list) {
		has |= region->type == IOMMU_RESV_DIRECT ||
		       region->type == IOMMU_RESV_DIRECT_RELAXABLE ||
		       region->type == IOMMU_RESV_MSI;
		list_del(&region->list);
		kfree(region);
	}
	return has;
}

/* CONTIGO_INFO_* that the device and its surroundings decide; an administrator may change them. */
u32 contigo_dma_flags(const struct contigo_node *node)
{
	u32 confined = CONTIGO_INFO_RESET | CONTIGO_INFO_STRICT | CONTIGO_INFO_ALONE;
	struct iommu_group *group = iommu_group_get(node->dma_dev);
	u32 flags = 0;

	if (node->coherent)
		flags |= CONTIGO_INFO_COHERENT;
	if (node->iommu)
		flags |= CONTIGO_INFO_IOMMU;
	if (node->is_translated)
		flags |= CONTIGO_INFO_TRANSLATED;
	if (node->resets)
		flags |= CONTIGO_INFO_RESET;
	if (node->iommu && contigo_iommu_is_strict(contigo_dma_domain(node)))
		flags |= CONTIGO_INFO_STRICT;
	if (group && contigo_dma_is_alone(group))
		flags |= CONTIGO_INFO_ALONE;
	if ((flags & confined) == confined && !contigo_dma_has_reserved(group))
		flags |= CONTIGO_INFO_CONFINED;
	iommu_group_put(group);
	return flags;
}
