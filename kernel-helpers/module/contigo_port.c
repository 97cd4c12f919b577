// SPDX-License-Identifier: GPL-2.0
/*
 * A port: a device that masters memory, bound to this module; its registers and
 * its character device.
 */
#include <linux/dma-direct.h>
#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>
#include <linux/iommu.h>
#include <linux/mod_devicetable.h>
#include <linux/platform_device.h>
#include <linux/pm_runtime.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "contigo_internal.h"
#include "contigo_compat.h"

/* About 0.1 to 1 ms of cache maintenance. */
#define CONTIGO_SYNC_BYTES	SZ_1M

static void contigo_port_free(struct device *dev)
{
	struct contigo_port *port = container_of(dev, struct contigo_port, dev);

	contigo_devt_put(dev->devt);
	put_device(port->dma_dev);
	mutex_destroy(&port->lock);
	kfree(port);
}

/*
 * The domain that translates the device's addresses, or NULL: the default
 * domain, which does not change while a driver is bound.
 */
static struct iommu_domain *contigo_port_iommu(const struct contigo_port *port)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(port->dma_dev);

	return domain && domain->type & __IOMMU_DOMAIN_PAGING ? domain : NULL;
}

/*
 * Not behind an IOMMU, the mask decides only when the DMA API gives up: the
 * memory was allocated before anybody knew which device it is imported for.
 * With a mask narrower than memory it would bounce, or warn. So it is as wide
 * as it can be, and contigo_import() compares the addresses with the file's
 * bits. An IOMMU's addresses are chosen below the mask.
 */
int contigo_port_set_dma_bits(struct contigo_port *port, u32 bits)
{
	/*
	 * Below 4 GiB an address that cannot be had makes the domain's allocator
	 * refuse that length to everybody, until one is freed there (iova.c,
	 * max32_alloc_size).
	 */
	if (port->iommu && bits < min(32U, port->default_dma_bits))
		return -EIO;
	if (port->iommu && dma_set_mask(port->dma_dev, DMA_BIT_MASK(bits)))
		return -EIO;
	port->dma_bits = bits;
	return 0;
}

static int contigo_port_set_up_dma(struct contigo_port *port)
{
	struct iommu_domain *domain = contigo_port_iommu(port);
	struct device *dev = port->dma_dev;

	if (!dev->dma_mask || !dev->dma_parms)
		return dev_err_probe(dev, -EINVAL, "masters no memory\n");

	port->max_seg_size = dma_get_max_seg_size(dev);
	port->seg_boundary = dma_get_seg_boundary(dev);
	/* An entry of a mapped list is as long as the exporter makes it. */
	dma_set_max_seg_size(dev, UINT_MAX);
	dma_set_seg_boundary(dev, ULONG_MAX);

	port->default_dma_bits = fls64(dma_get_mask(dev));
	port->dma_bits = port->default_dma_bits;
	port->iommu = domain;
	if (domain) {
		port->sync_bytes = 1UL << __ffs(domain->pgsize_bitmap);
		return 0;
	}
	port->sync_bytes = CONTIGO_SYNC_BYTES;
	return dma_set_mask(dev, DMA_BIT_MASK(64));
}

/* The next driver finds the device as this one did. */
static void contigo_port_restore_dma(struct contigo_port *port)
{
	struct device *dev = port->dma_dev;

	if (!port->default_dma_bits)
		return;
	dma_set_mask(dev, DMA_BIT_MASK(port->default_dma_bits));
	dma_set_max_seg_size(dev, port->max_seg_size);
	dma_set_seg_boundary(dev, port->seg_boundary);
}

/**
 * contigo_port_new - a port without registers, not yet visible
 * @dma_dev: the device that is being bound
 *
 * Return: the port, which put_device(&port->dev) frees, or an ERR_PTR().
 */
struct contigo_port *contigo_port_new(struct device *dma_dev)
{
	struct contigo_port *port;
	int ret;

	port = kzalloc(sizeof(*port), GFP_KERNEL);
	if (!port)
		return ERR_PTR(-ENOMEM);
	ret = contigo_devt_get(&port->dev.devt);
	if (ret) {
		kfree(port);
		return ERR_PTR(ret);
	}

	mutex_init(&port->lock);
	INIT_LIST_HEAD(&port->kept);
	port->dma_dev = get_device(dma_dev);
	device_initialize(&port->dev);
	port->dev.class = &contigo_class;
	port->dev.parent = dma_dev;
	port->dev.release = contigo_port_free;
	cdev_init(&port->cdev, &contigo_fops);
	port->cdev.owner = THIS_MODULE;

	ret = dev_set_name(&port->dev, "%s", dev_name(dma_dev));
	if (!ret)
		ret = contigo_port_set_up_dma(port);
	if (ret) {
		contigo_port_restore_dma(port);
		put_device(&port->dev);
		return ERR_PTR(ret);
	}
	return port;
}

/* From here on it can be opened. On failure the caller unmaps and puts it. */
int contigo_port_add(struct contigo_port *port)
{
	dev_set_drvdata(port->dma_dev, port);
	return cdev_device_add(&port->cdev, &port->dev);
}

/* Undoes the port's changes to the device: its registers, the DMA API's settings. */
void contigo_port_tear_down(struct contigo_port *port)
{
	u32 i;

	for (i = 0; i < CONTIGO_MAX_WINDOWS; i++) {
		if (port->window[i].base)
			iounmap(port->window[i].base);
		port->window[i].base = NULL;
	}
	contigo_port_restore_dma(port);
}

/*
 * The device is unbound, perhaps under a user. It is stopped as on a close. The
 * file's memory is given back while the device still exists; the file itself
 * stays open and answers ENODEV. dead is set first, for a caller that holds the
 * lock in a long sync; the device is ours until this returns.
 */
void contigo_port_remove(struct contigo_port *port)
{
	contigo_port_shutdown(port);
	mutex_lock(&port->lock);
	contigo_import_unmap_kept(port);
	contigo_port_tear_down(port);
	mutex_unlock(&port->lock);

	cdev_device_del(&port->cdev, &port->dev);
	contigo_import_forget_kept(port);
	put_device(&port->dev);
}

/* Also before another kernel begins (kexec): its memory does not belong to the device. */
void contigo_port_shutdown(struct contigo_port *port)
{
	WRITE_ONCE(port->dead, true);
	mutex_lock(&port->lock);
	if (port->file)
		contigo_file_end(port->file);
	mutex_unlock(&port->lock);
}

static bool contigo_port_is_offset(const struct contigo_port *port)
{
	const struct bus_dma_region *region = port->dma_dev->dma_range_map;

	for (; region && region->size; region++) {
		if (region->cpu_start != region->dma_start)
			return true;
	}
	return false;
}

u32 contigo_port_flags(const struct contigo_port *port)
{
	u32 flags = 0;

	if (dev_is_dma_coherent(port->dma_dev))
		flags |= CONTIGO_INFO_COHERENT;
	if (port->iommu)
		flags |= CONTIGO_INFO_IOMMU;
	if (port->iommu || contigo_port_is_offset(port))
		flags |= CONTIGO_INFO_TRANSLATED;
	if (port->pdev)
		flags |= CONTIGO_INFO_PCI;
	return flags;
}

/*
 * A file begins: the device is awake until it ends, and as probe left it. PCI's
 * core has woken a function before probe and lets it sleep after remove. System
 * sleep is not held up: what the device forgets in it only user space can
 * restore.
 */
int contigo_port_begin(struct contigo_port *port)
{
	int ret;

	lockdep_assert_held(&port->lock);
	ret = contigo_port_set_dma_bits(port, port->default_dma_bits);
	if (ret)
		return ret;
	if (port->pdev) {
		contigo_pci_set_master(port->pdev, false);
		return 0;
	}
	return pm_runtime_resume_and_get(port->dma_dev);
}

/*
 * A device that did not stop stays awake until it is unbound: its accesses must
 * find an answer.
 */
void contigo_port_end(struct contigo_port *port, bool stopped)
{
	lockdep_assert_held(&port->lock);
	if (!port->pdev && stopped)
		pm_runtime_put(port->dma_dev);
}

/*
 * Without request_mem_region(): a generic-uio node that describes the same
 * registers is how user space reaches them, and it has claimed them, or will.
 */
static int contigo_platform_map(struct contigo_port *port, struct platform_device *pdev)
{
	u32 i;

	for (i = 0; i < CONTIGO_MAX_WINDOWS; i++) {
		struct resource *res = platform_get_resource(pdev, IORESOURCE_MEM, i);

		if (!res)
			break;
		port->window[i].base = ioremap(res->start, resource_size(res));
		if (!port->window[i].base)
			return -ENOMEM;
		port->window[i].len_bytes = resource_size(res);
	}
	return 0;
}

static int contigo_platform_probe(struct platform_device *pdev)
{
	struct contigo_port *port;
	int ret;

	port = contigo_port_new(&pdev->dev);
	if (IS_ERR(port))
		return PTR_ERR(port);

	ret = contigo_platform_map(port, pdev);
	if (ret)
		goto put;
	pm_runtime_enable(&pdev->dev);
	ret = contigo_port_add(port);
	if (ret)
		goto disable;
	return 0;

disable:
	pm_runtime_disable(&pdev->dev);
put:
	contigo_port_tear_down(port);
	put_device(&port->dev);
	return ret;
}

void contigo_platform_remove(struct platform_device *pdev)
{
	contigo_port_remove(platform_get_drvdata(pdev));
	pm_runtime_disable(&pdev->dev);
}

static void contigo_platform_shutdown(struct platform_device *pdev)
{
	contigo_port_shutdown(platform_get_drvdata(pdev));
}

static const struct of_device_id contigo_of_match[] = {
	{ .compatible = "contigo,dma-port" },
	{ }
};
MODULE_DEVICE_TABLE(of, contigo_of_match);

struct platform_driver contigo_platform_driver = {
	.probe = contigo_platform_probe,
	.remove = contigo_platform_remove_op,
	.shutdown = contigo_platform_shutdown,
	.driver = {
		.name = "contigo",
		.of_match_table = contigo_of_match,
	},
};
