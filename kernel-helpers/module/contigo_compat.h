/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The differences between the kernels that the module builds against: 5.10 to
 * today's.
 */
#ifndef CONTIGO_COMPAT_H
#define CONTIGO_COMPAT_H

#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/eventfd.h>
#include <linux/interrupt.h>
#include <linux/iommu.h>
#include <linux/irq.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/pm_runtime.h>
#include <linux/version.h>

#include "contigo_calls.h"

#if KERNEL_VERSION(5, 10, 0) > LINUX_VERSION_CODE
#error "contigo needs Linux 5.10 or later: the DMA API before it does not tell what the module asks"
#endif

/*
 * Before 6.2 an importer that is not dynamic took no lock, and there was one
 * function.
 */
#if KERNEL_VERSION(6, 2, 0) <= LINUX_VERSION_CODE
#define contigo_dma_buf_map		dma_buf_map_attachment_unlocked
#define contigo_dma_buf_unmap		dma_buf_unmap_attachment_unlocked
#define contigo_devnode_device		const struct device
#else
#define contigo_dma_buf_map		dma_buf_map_attachment
#define contigo_dma_buf_unmap		dma_buf_unmap_attachment
#define contigo_devnode_device		struct device
#endif

/*
 * Waits for the kernel's own work on a buffer, or also for those who write it.
 * Before 5.19 the two were one, and the exporter waits for its own work when it
 * maps. Returns what is left of the time, 0 for none, or an error.
 */
static inline long contigo_resv_wait(struct dma_buf *dmabuf, bool writers, unsigned long timeout)
{
#if KERNEL_VERSION(5, 19, 0) <= LINUX_VERSION_CODE
	return dma_resv_wait_timeout(dmabuf->resv,
				     writers ? DMA_RESV_USAGE_WRITE : DMA_RESV_USAGE_KERNEL,
				     true, timeout);
#elif KERNEL_VERSION(5, 14, 0) <= LINUX_VERSION_CODE
	return writers ? dma_resv_wait_timeout(dmabuf->resv, false, true, timeout) : 1;
#else
	return writers ? dma_resv_wait_timeout_rcu(dmabuf->resv, false, true, timeout) : 1;
#endif
}

/* Before 6.8 it took how much to add. */
static inline void contigo_eventfd_signal(struct eventfd_ctx *eventfd)
{
#if KERNEL_VERSION(6, 8, 0) <= LINUX_VERSION_CODE
	eventfd_signal(eventfd);
#else
	eventfd_signal(eventfd, 1);
#endif
}

/* From 6.3 on the flags are written through a function. */
static inline void contigo_vm_flags(struct vm_area_struct *vma, unsigned long set,
				    unsigned long clear)
{
#if KERNEL_VERSION(6, 3, 0) <= LINUX_VERSION_CODE
	vm_flags_mod(vma, set, clear);
#else
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
#endif
}

/* Before 5.11 a mapping cannot refuse mprotect() later: so it refuses it from the beginning. */
#if KERNEL_VERSION(5, 11, 0) <= LINUX_VERSION_CODE
#define CONTIGO_HAS_MPROTECT
#define CONTIGO_VM_NO_MPROTECT		0
#else
#define CONTIGO_VM_NO_MPROTECT		(VM_MAYREAD | VM_MAYWRITE)
#endif

/* An interrupt that stays disabled when it is requested; later kernels have a flag for it. */
static inline int contigo_request_irq(unsigned int irq, irq_handler_t handler, const char *name,
				      void *data)
{
#ifdef IRQF_NO_AUTOEN
	return request_irq(irq, handler, IRQF_NO_AUTOEN, name, data);
#else
	int ret;

	irq_set_status_flags(irq, IRQ_NOAUTOEN);
	ret = request_irq(irq, handler, 0, name, data);
	irq_clear_status_flags(irq, IRQ_NOAUTOEN);
	return ret;
#endif
}

/* 5.10's first releases do not have pm_runtime_resume_and_get(). */
static inline int contigo_pm_runtime_get(struct device *dev)
{
	int ret = pm_runtime_get_sync(dev);

	if (ret < 0)
		pm_runtime_put_noidle(dev);
	return min(ret, 0);
}

/*
 * Does the IOMMU forget an address before its memory is given back? Before 5.15
 * a domain does not say.
 */
static inline bool contigo_iommu_is_strict(const struct iommu_domain *domain)
{
#ifdef IOMMU_DOMAIN_DMA_FQ
	return domain->type == IOMMU_DOMAIN_DMA;
#else
	return false;
#endif
}

/* Before 6.4 a group does not say whether its devices' MSIs are isolated. */
static inline bool contigo_iommu_isolates_msi(struct iommu_group *group)
{
#if KERNEL_VERSION(6, 4, 0) <= LINUX_VERSION_CODE && defined(CONFIG_IOMMU_API)
	return iommu_group_has_isolated_msi(group);
#else
	return false;
#endif
}

/* Before 6.11 remove() returned what nobody looked at. */
#if KERNEL_VERSION(6, 11, 0) <= LINUX_VERSION_CODE
#define contigo_platform_remove_op	contigo_platform_remove
#else
static inline int contigo_platform_remove_op(struct platform_device *pdev)
{
	contigo_platform_remove(pdev);
	return 0;
}
#endif

/* The namespace became a string. */
#if KERNEL_VERSION(6, 13, 0) <= LINUX_VERSION_CODE
#define contigo_import_ns_dma_buf()	MODULE_IMPORT_NS("DMA_BUF")
#else
#define contigo_import_ns_dma_buf()	MODULE_IMPORT_NS(DMA_BUF)
#endif

#endif /* CONTIGO_COMPAT_H */
