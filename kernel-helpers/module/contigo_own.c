// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of the node's own: allocated for its device by the DMA API. Its user
 * maps it, synchronises ranges of it, and may export it.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "contigo_compat.h"
#include "contigo_internal.h"

/* One piece of a sync: about 0.1 to 1 ms of cache maintenance. */
#define CONTIGO_SYNC_BYTES	BIT(20)

/* Gives the memory back, once; with the node's dma_lock. */
static void contigo_own_free_dma(struct contigo_own *own)
{
	struct device *dev = own->node->dma_dev;

	list_del_init(&own->entry);
	atomic64_sub(own->len_bytes, &own->node->charged_bytes);
	if (own->is_coherent)
		dma_free_attrs(dev, own->len_bytes, own->cpu, own->addr, DMA_ATTR_FORCE_CONTIGUOUS);
	else
		dma_free_pages(dev, own->len_bytes, virt_to_page(own->cpu), own->addr,
			       DMA_BIDIRECTIONAL);
}

static void contigo_own_free(struct kref *ref)
{
	struct contigo_own *own = container_of(ref, struct contigo_own, ref);
	struct contigo_node *node = own->node;

	mutex_lock(&node->dma_lock);
	if (!list_empty(&own->entry))
		contigo_own_free_dma(own);
	mutex_unlock(&node->dma_lock);
	vfree(own->copy);
	mutex_destroy(&own->maps_lock);
	put_device(&node->dev);
	kfree(own);
}

void contigo_own_put(struct contigo_own *own)
{
	kref_put(&own->ref, contigo_own_free);
}

/* The device may go on writing to it: its reference stays, and it is never freed. */
void contigo_own_lose(struct contigo_own *own)
{
	mutex_lock(&own->node->dma_lock);
	own->is_lost = true;
	list_del_init(&own->entry);
	mutex_unlock(&own->node->dma_lock);
}

static void contigo_own_allocate(struct contigo_own *own)
{
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_NOWARN;
	struct device *dev = own->node->dma_dev;
	struct page *page;

	if (own->is_coherent) {
		/* One run behind an IOMMU, too. */
		own->cpu = dma_alloc_attrs(dev, own->len_bytes, &own->addr, gfp,
					   DMA_ATTR_FORCE_CONTIGUOUS);
		if (is_vmalloc_addr(own->cpu))
			own->pfn = vmalloc_to_pfn(own->cpu);
		else if (own->cpu)
			own->pfn = PHYS_PFN(virt_to_phys(own->cpu));
		return;
	}
	page = dma_alloc_pages(dev, own->len_bytes, &own->addr, DMA_BIDIRECTIONAL, gfp);
	/* CONFIG_DMA_API_DEBUG wants to see that it was looked at. */
	if (!page || dma_mapping_error(dev, own->addr))
		return;
	own->cpu = page_address(page);
	own->pfn = page_to_pfn(page);
	if (own->cpu)
		dma_sync_single_for_device(dev, own->addr, own->len_bytes, DMA_BIDIRECTIONAL);
	else	/* a CMA pool in high memory */
		dma_free_pages(dev, own->len_bytes, page, own->addr, DMA_BIDIRECTIONAL);
}

/*
 * Memory for the device: zero, and one run of bus addresses that it reaches. Its
 * bytes are whole pages, and charged. For contigo_own_put(), or an ERR_PTR().
 */
struct contigo_own *contigo_own_new(struct contigo_node *node, size_t len_bytes, bool is_coherent)
{
	struct contigo_own *own = kzalloc(sizeof(*own), GFP_KERNEL_ACCOUNT);

	if (!own)
		return ERR_PTR(-ENOMEM);
	own->node = node;
	own->len_bytes = len_bytes;
	own->is_coherent = is_coherent;
	contigo_own_allocate(own);
	if (!own->cpu) {
		kfree(own);
		return ERR_PTR(-ENOMEM);
	}
	kref_init(&own->ref);
	mutex_init(&own->maps_lock);
	get_device(&node->dev);
	mutex_lock(&node->dma_lock);
	list_add_tail(&own->entry, &node->owns);
	mutex_unlock(&node->dma_lock);
	return own;
}

/* A page fault waits for it. Where memory is short, that fault fails, and nothing else. */
static void contigo_own_copy(struct contigo_own *own)
{
	struct contigo_node *node = own->node;

	if (node->mapping)
		contigo_unmap(node->mapping, own->handle * CONTIGO_HANDLE_PAGES,
			      own->len_bytes >> PAGE_SHIFT);
	own->copy = __vmalloc(own->len_bytes, GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	if (own->copy)
		memcpy(own->copy, own->cpu, own->len_bytes);
}

/*
 * The DMA API forgets the device. What is still mapped shows a copy from here on,
 * for a result may not have been read yet. What has a dma-buf stays where it is,
 * lost: other devices may have it.
 */
void contigo_own_forget(struct contigo_node *node)
{
	struct contigo_own *own, *next;

	mutex_lock(&node->dma_lock);
	list_for_each_entry_safe(own, next, &node->owns, entry) {
		own->is_lost = atomic_read(&own->exports);
		if (own->is_lost) {
			dev_warn(node->dma_dev, "%zu shared bytes are lost\n", own->len_bytes);
			list_del_init(&own->entry);
			continue;
		}
		contigo_own_copy(own);
		contigo_own_free_dma(own);
	}
	mutex_unlock(&node->dma_lock);
}

/*
 * Each page is mapped when it is touched: what is mapped by mmap() itself is not found
 * by contigo_unmap() before mmap() has ended. After unbinding a copy, which is cached.
 */
static vm_fault_t contigo_own_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct contigo_own *own = vma->vm_private_data;
	unsigned long page = vmf->pgoff & (CONTIGO_HANDLE_PAGES - 1);
	vm_fault_t ret = VM_FAULT_SIGBUS;

	mutex_lock(&own->node->dma_lock);
	if (own->copy)
		ret = vmf_insert_pfn_prot(vma, vmf->address,
					  vmalloc_to_pfn(own->copy + (page << PAGE_SHIFT)),
					  vm_get_page_prot(vma->vm_flags));
	else if (own->is_lost || !list_empty(&own->entry))
		ret = vmf_insert_pfn(vma, vmf->address, own->pfn + page);
	mutex_unlock(&own->node->dma_lock);
	return ret;
}

/* A mapping has a reference of its own: it may outlive the handle, and the device. */
static void contigo_own_open(struct vm_area_struct *vma)
{
	struct contigo_own *own = vma->vm_private_data;

	kref_get(&own->ref);
}

static void contigo_own_close(struct vm_area_struct *vma)
{
	contigo_own_put(vma->vm_private_data);
}

static const struct vm_operations_struct contigo_own_vm_ops = {
	.open = contigo_own_open,
	.close = contigo_own_close,
	.fault = contigo_own_fault,
	CONTIGO_VM_MPROTECT
};

/* Maps it from page @first on. The node is locked, and bound, or the memory has a dma-buf. */
int contigo_own_mmap(struct contigo_own *own, struct vm_area_struct *vma, unsigned long first)
{
	unsigned long pages = own->len_bytes >> PAGE_SHIFT;

	if (!(vma->vm_flags & VM_SHARED) || first >= pages || vma_pages(vma) > pages - first)
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	contigo_vm_flags(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY,
			 VM_MAYEXEC | VM_MIXEDMAP | CONTIGO_VM_NO_MPROTECT);
	if (own->is_coherent && !own->node->coherent)
		vma->vm_page_prot = pgprot_dmacoherent(vma->vm_page_prot);
	kref_get(&own->ref);
	vma->vm_private_data = own;
	vma->vm_ops = &contigo_own_vm_ops;
	return 0;
}

/*
 * Synchronises a range of it, by CONTIGO_SYNC_*, without the node's lock: a long one
 * makes no other call wait. -ENODEV: the device was unbound.
 */
int contigo_own_sync(struct contigo_own *own, u64 offset_bytes, u64 len_bytes, u32 flags)
{
	struct contigo_node *node = own->node;
	int ret = 0;

	if (own->is_coherent)
		return 0;
	while (len_bytes && !ret) {
		size_t part = min_t(u64, len_bytes, CONTIGO_SYNC_BYTES);
		dma_addr_t addr = own->addr + offset_bytes;

		mutex_lock(&node->dma_lock);
		if (list_empty(&own->entry))
			ret = -ENODEV;
		else if (flags == CONTIGO_SYNC_FOR_CPU)
			dma_sync_single_for_cpu(node->dma_dev, addr, part, DMA_BIDIRECTIONAL);
		else
			dma_sync_single_for_device(node->dma_dev, addr, part, DMA_BIDIRECTIONAL);
		mutex_unlock(&node->dma_lock);
		offset_bytes += part;
		len_bytes -= part;
		if (len_bytes && fatal_signal_pending(current))
			ret = ret ?: -EINTR;
		cond_resched();
	}
	return ret;
}

static struct sg_table *contigo_own_map(struct dma_buf_attachment *attachment,
					enum dma_data_direction direction)
{
	struct contigo_own *own = attachment->dmabuf->priv;
	struct sg_table *sgt;
	int ret;

	sgt = kzalloc(sizeof(*sgt), GFP_KERNEL);
	if (!sgt)
		return ERR_PTR(-ENOMEM);
	ret = sg_alloc_table(sgt, 1, GFP_KERNEL);
	if (ret)
		goto free;
	sg_set_page(sgt->sgl, virt_to_page(own->cpu), own->len_bytes, 0);
	ret = dma_map_sgtable(attachment->dev, sgt, direction, 0);
	if (ret)
		goto free_table;
	mutex_lock(&own->maps_lock);
	if (!attachment->priv)
		attachment->priv = sgt;
	else
		ret = -EBUSY;
	mutex_unlock(&own->maps_lock);
	if (!ret)
		return sgt;
	dma_unmap_sgtable(attachment->dev, sgt, direction, DMA_ATTR_SKIP_CPU_SYNC);

free_table:
	sg_free_table(sgt);
free:
	kfree(sgt);
	return ERR_PTR(ret);
}

static void contigo_own_unmap(struct dma_buf_attachment *attachment, struct sg_table *sgt,
			      enum dma_data_direction direction)
{
	struct contigo_own *own = attachment->dmabuf->priv;

	mutex_lock(&own->maps_lock);
	attachment->priv = NULL;
	mutex_unlock(&own->maps_lock);
	dma_unmap_sgtable(attachment->dev, sgt, direction, 0);
	sg_free_table(sgt);
	kfree(sgt);
}

static void contigo_own_release(struct dma_buf *dmabuf)
{
	struct contigo_own *own = dmabuf->priv;

	atomic_dec(&own->exports);
	contigo_own_put(own);
}

static int contigo_own_dma_buf_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	return contigo_own_mmap(dmabuf->priv, vma, vma->vm_pgoff);
}

/*
 * For who has it mapped, and for the device that it was allocated for. Before 6.2 the
 * reservation guards the list of attachments, and not their mappings.
 */
static int contigo_own_access(struct dma_buf *dmabuf, enum dma_data_direction direction, u32 flags)
{
	struct contigo_own *own = dmabuf->priv;
	struct dma_buf_attachment *attachment;
	int ret;

	dma_resv_lock(dmabuf->resv, NULL);
	mutex_lock(&own->maps_lock);
	list_for_each_entry(attachment, &dmabuf->attachments, node) {
		if (!attachment->priv)
			continue;
		if (flags == CONTIGO_SYNC_FOR_CPU)
			dma_sync_sgtable_for_cpu(attachment->dev, attachment->priv, direction);
		else
			dma_sync_sgtable_for_device(attachment->dev, attachment->priv, direction);
	}
	mutex_unlock(&own->maps_lock);
	dma_resv_unlock(dmabuf->resv);
	ret = contigo_own_sync(own, 0, own->len_bytes, flags);
	return ret == -ENODEV ? 0 : ret;
}

static int contigo_own_begin_cpu_access(struct dma_buf *dmabuf, enum dma_data_direction direction)
{
	return contigo_own_access(dmabuf, direction, CONTIGO_SYNC_FOR_CPU);
}

static int contigo_own_end_cpu_access(struct dma_buf *dmabuf, enum dma_data_direction direction)
{
	return contigo_own_access(dmabuf, direction, CONTIGO_SYNC_FOR_DEVICE);
}

static const struct dma_buf_ops contigo_own_dma_buf_ops = {
	.map_dma_buf = contigo_own_map,
	.unmap_dma_buf = contigo_own_unmap,
	.release = contigo_own_release,
	.mmap = contigo_own_dma_buf_mmap,
	.begin_cpu_access = contigo_own_begin_cpu_access,
	.end_cpu_access = contigo_own_end_cpu_access,
};

/*
 * A dma-buf of what a handle names, or an ERR_PTR(). It may outlive its file: behind
 * an IOMMU the device of the next one would still reach it.
 */
struct dma_buf *contigo_own_export(struct contigo_buffer *buffer)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dma_buf *dmabuf;
	struct contigo_own *own;

	if (!buffer)
		return ERR_PTR(-ENOENT);
	own = buffer->own;
	if (!own)
		return ERR_PTR(-EINVAL);
	if (own->is_coherent || own->node->iommu)
		return ERR_PTR(-EOPNOTSUPP);
	info.ops = &contigo_own_dma_buf_ops;
	info.size = own->len_bytes;
	info.flags = O_RDWR;
	info.priv = own;
	dmabuf = dma_buf_export(&info);
	if (IS_ERR(dmabuf))
		return dmabuf;
	kref_get(&own->ref);
	atomic_inc(&own->exports);
	return dmabuf;
}

/* It is mapped for its own device already: a second mapping would overlap. */
bool contigo_own_is_of(const struct dma_buf *dmabuf, const struct contigo_node *node)
{
	const struct contigo_own *own = dmabuf->priv;

	return dmabuf->ops == &contigo_own_dma_buf_ops && own->node == node;
}
