/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The differences between the kernels that the module builds against: 5.10 to
 * today's.
 */
#ifndef CONTIGO_COMPAT_H
#define CONTIGO_COMPAT_H

#include <linux/dma-buf.h>
#include <linux/eventfd.h>
#include <linux/interrupt.h>
#include <linux/iommu.h>
#include <linux/irq.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/version.h>

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
 * Offsets for mmap() above 4 GiB, on 32 bits too; from 6.12 on the file operations
 * say so.
 */
#ifdef FOP_UNSIGNED_OFFSET
#define CONTIGO_FOP_FLAGS		.fop_flags = FOP_UNSIGNED_OFFSET,
#define CONTIGO_FMODE			0
#else
#define CONTIGO_FOP_FLAGS
#define CONTIGO_FMODE			FMODE_UNSIGNED_OFFSET
#endif

/* Before 6.8 it took how much to add. */
static inline void contigo_eventfd_signal(struct eventfd_ctx *eventfd)
{
#if KERNEL_VERSION(6, 8, 0) <= LINUX_VERSION_CODE
	eventfd_signal(eventfd);
#else
	eventfd_signal(eventfd, 1);
#endif
}

/*
 * Takes pages out of all mappings of a file. Before 5.15 all of them, for by bytes 32
 * bits would not do: a touch maps again what is still there.
 */
static inline void contigo_unmap(struct address_space *mapping, unsigned long first,
				 unsigned long pages)
{
#if KERNEL_VERSION(5, 15, 0) <= LINUX_VERSION_CODE
	unmap_mapping_pages(mapping, first, pages, true);
#else
	unmap_mapping_range(mapping, 0, 0, 1);
#endif
}

/* An architecture whose devices all snoop has none. */
#ifndef pgprot_dmacoherent
#define pgprot_dmacoherent		pgprot_noncached
#endif

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

/* Before 5.11 a mapping has no say in mprotect(), and these flags refuse it. */
#if KERNEL_VERSION(5, 11, 0) <= LINUX_VERSION_CODE
#define CONTIGO_VM_MPROTECT		.mprotect = contigo_mprotect,
#define CONTIGO_VM_NO_MPROTECT		0
#else
#define CONTIGO_VM_MPROTECT
#define CONTIGO_VM_NO_MPROTECT		(VM_MAYREAD | VM_MAYWRITE)
#endif

/*
 * An interrupt that stays disabled when it is requested. Of a line that another
 * driver has the kernel's log says nothing: who opens the node could fill it.
 */
static inline int contigo_request_irq(unsigned int irq, irq_handler_t handler, const char *name,
				      void *data)
{
#ifdef IRQF_NO_AUTOEN
	return min(request_any_context_irq(irq, handler, IRQF_NO_AUTOEN | IRQF_PROBE_SHARED,
					   name, data), 0);
#else
	int ret;

	irq_set_status_flags(irq, IRQ_NOAUTOEN);
	ret = min(request_any_context_irq(irq, handler, IRQF_PROBE_SHARED, name, data), 0);
	irq_clear_status_flags(irq, IRQ_NOAUTOEN);
	return ret;
#endif
}

/*
 * Does the IOMMU forget an address before its memory is given back? Before 5.15
 * a domain does not say.
 */
static inline bool contigo_iommu_is_strict(const struct iommu_domain *domain)
{
#ifdef IOMMU_DOMAIN_DMA_FQ
	return domain && domain->type == IOMMU_DOMAIN_DMA;
#else
	return false;
#endif
}

#if KERNEL_VERSION(6, 13, 0) <= LINUX_VERSION_CODE
#define contigo_import_ns_dma_buf()	MODULE_IMPORT_NS("DMA_BUF")
#else
#define contigo_import_ns_dma_buf()	MODULE_IMPORT_NS(DMA_BUF)
#endif

#endif /* CONTIGO_COMPAT_H */
