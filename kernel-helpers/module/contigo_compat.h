/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The differences between the kernels that the module builds against: 6.1 to
 * today's.
 */
#ifndef CONTIGO_COMPAT_H
#define CONTIGO_COMPAT_H

#include <linux/dma-buf.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/version.h>

#include "contigo_internal.h"

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
