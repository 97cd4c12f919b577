// SPDX-License-Identifier: GPL-2.0
/*
 * An exporter of dma-bufs with the properties that no heap has: one that keeps the list of a
 * mapping, one with a writer still at work, one whose list is too short. /dev/contigo-lab makes
 * them; the fences of a file are signalled by it, or when it is closed.
 */
#include <linux/atomic.h>
#include <linux/dma-buf.h>
#include <linux/dma-fence.h>
#include <linux/dma-resv.h>
#include <linux/highmem.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "lab.h"

/* struct lab_export.flags */
#define LAB_CACHED	BIT(0)	/* the list of a mapping is kept until the detachment */
#define LAB_WRITER	BIT(1)	/* a fence of a writer */
#define LAB_SHORT	BIT(3)	/* a list that is a page shorter than the buffer */
#define LAB_FLAGS	(LAB_CACHED | LAB_WRITER | LAB_SHORT)

/**
 * struct lab_export - a new dma-buf
 * @pages: in: how long it is
 * @flags: in: LAB_*
 * @fd: out
 * @reserved: 0
 */
struct lab_export {
	__u32 pages;
	__u32 flags;
	__s32 fd;
	__u32 reserved;
};

#define LAB_EXPORT	_IOWR('L', 1, struct lab_export)
#define LAB_SIGNAL	_IO('L', 2)

#define LAB_MAX_PAGES	64

MODULE_IMPORT_NS(DMA_BUF);

struct lab_buffer {
	unsigned int count;
	bool is_short;
	struct page *page[];
};

struct lab_file {
	spinlock_t lock;	/* of @fence, the pointer */
	u64 context;
	struct dma_fence *fence;
};

static atomic_t maps;
static atomic_t unmaps;
static atomic_t buffers;

static struct sg_table *lab_map(struct dma_buf_attachment *attachment, enum dma_data_direction way)
{
	struct lab_buffer *buffer = attachment->dmabuf->priv;
	unsigned int count = buffer->count - buffer->is_short;
	size_t bytes = count * PAGE_SIZE;
	struct sg_table *table;
	int err;

	table = kzalloc(sizeof(*table), GFP_KERNEL);
	if (!table)
		return ERR_PTR(-ENOMEM);
	err = sg_alloc_table_from_pages(table, buffer->page, count, 0, bytes, GFP_KERNEL);
	if (err)
		goto free;
	err = dma_map_sgtable(attachment->dev, table, way, 0);
	if (err)
		goto free_table;
	atomic_inc(&maps);
	return table;

free_table:
	sg_free_table(table);
free:
	kfree(table);
	return ERR_PTR(err);
}

static void lab_unmap(struct dma_buf_attachment *attachment, struct sg_table *table,
		      enum dma_data_direction way)
{
	dma_unmap_sgtable(attachment->dev, table, way, 0);
	sg_free_table(table);
	kfree(table);
	atomic_inc(&unmaps);
}

static int lab_mmap(struct dma_buf *buf, struct vm_area_struct *vma)
{
	struct lab_buffer *buffer = buf->priv;

	return vm_map_pages(vma, buffer->page, buffer->count);
}

static void lab_free(struct lab_buffer *buffer)
{
	unsigned int number;

	for (number = 0; number < buffer->count; number++)
		if (buffer->page[number])
			__free_page(buffer->page[number]);
	kfree(buffer);
}

static void lab_release(struct dma_buf *buf)
{
	lab_free(buf->priv);
	atomic_dec(&buffers);
}

static const struct dma_buf_ops lab_ops = {
	.map_dma_buf = lab_map,
	.unmap_dma_buf = lab_unmap,
	.mmap = lab_mmap,
	.release = lab_release,
};

static const struct dma_buf_ops lab_caching_ops = {
	.cache_sgt_mapping = true,
	.map_dma_buf = lab_map,
	.unmap_dma_buf = lab_unmap,
	.mmap = lab_mmap,
	.release = lab_release,
};

/* In one run where the memory allows it: the pages of one block. */
static struct lab_buffer *lab_alloc(unsigned int count)
{
	unsigned int order = get_order(count * PAGE_SIZE), number;
	struct lab_buffer *buffer;
	struct page *block;

	buffer = kzalloc(struct_size(buffer, page, count), GFP_KERNEL);
	if (!buffer)
		return NULL;
	block = alloc_pages(GFP_KERNEL | __GFP_ZERO, order);
	if (!block) {
		kfree(buffer);
		return NULL;
	}
	split_page(block, order);
	buffer->count = count;
	for (number = 0; number < 1U << order; number++) {
		if (number < count)
			buffer->page[number] = block + number;
		else
			__free_page(block + number);
	}
	return buffer;
}

static const char *lab_fence_name(struct dma_fence *fence)
{
	return "contigo-lab";
}

static const struct dma_fence_ops lab_fence_ops = {
	.get_driver_name = lab_fence_name,
	.get_timeline_name = lab_fence_name,
};

static void lab_signal(struct lab_file *file)
{
	struct dma_fence *fence;

	spin_lock_irq(&file->lock);
	fence = file->fence;
	file->fence = NULL;
	spin_unlock_irq(&file->lock);
	if (fence) {
		dma_fence_signal(fence);
		dma_fence_put(fence);
	}
}

/* The lock of a fence that is still referenced outlives the file. */
struct lab_fence {
	struct dma_fence base;
	spinlock_t lock;	/* the framework's */
};

static int lab_add_fence(struct lab_file *file, struct dma_buf *buf)
{
	struct lab_fence *fence = kzalloc(sizeof(*fence), GFP_KERNEL);
	int err;

	if (!fence)
		return -ENOMEM;
	spin_lock_init(&fence->lock);
	dma_fence_init(&fence->base, &lab_fence_ops, &fence->lock, file->context, 1);
	dma_resv_lock(buf->resv, NULL);
	err = dma_resv_reserve_fences(buf->resv, 1);
	if (!err)
		dma_resv_add_fence(buf->resv, &fence->base, DMA_RESV_USAGE_WRITE);
	dma_resv_unlock(buf->resv);
	if (err) {
		dma_fence_put(&fence->base);
		return err;
	}
	lab_signal(file);
	spin_lock_irq(&file->lock);
	file->fence = &fence->base;
	spin_unlock_irq(&file->lock);
	return 0;
}

static long lab_export(struct lab_file *file, struct lab_export __user *user)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct lab_buffer *buffer;
	struct lab_export export;
	struct dma_buf *buf;
	int err = 0;

	if (copy_from_user(&export, user, sizeof(export)))
		return -EFAULT;
	if (!export.pages || export.pages > LAB_MAX_PAGES)
		return -EINVAL;
	if (export.flags & ~LAB_FLAGS || export.reserved)
		return -EINVAL;
	buffer = lab_alloc(export.pages);
	if (!buffer)
		return -ENOMEM;
	buffer->is_short = export.flags & LAB_SHORT && export.pages > 1;
	info.ops = export.flags & LAB_CACHED ? &lab_caching_ops : &lab_ops;
	info.size = export.pages * PAGE_SIZE;
	info.flags = O_RDWR | O_CLOEXEC;
	info.priv = buffer;
	buf = dma_buf_export(&info);
	if (IS_ERR(buf)) {
		lab_free(buffer);
		return PTR_ERR(buf);
	}
	atomic_inc(&buffers);
	if (export.flags & LAB_WRITER)
		err = lab_add_fence(file, buf);
	if (err)
		goto put;
	export.fd = dma_buf_fd(buf, O_CLOEXEC);
	if (export.fd < 0) {
		err = export.fd;
		goto put;
	}
	return copy_to_user(user, &export, sizeof(export)) ? -EFAULT : 0;

put:
	dma_buf_put(buf);
	return err;
}

static long lab_ioctl(struct file *filp, unsigned int command, unsigned long argument)
{
	struct lab_file *file = filp->private_data;

	switch (command) {
	case LAB_EXPORT:
		return lab_export(file, (struct lab_export __user *)argument);
	case LAB_SIGNAL:
		lab_signal(file);
		return 0;
	default:
		return -ENOTTY;
	}
}

static int lab_open(struct inode *inode, struct file *filp)
{
	struct lab_file *file = kzalloc(sizeof(*file), GFP_KERNEL);

	if (!file)
		return -ENOMEM;
	spin_lock_init(&file->lock);
	file->context = dma_fence_context_alloc(1);
	filp->private_data = file;
	return 0;
}

static int lab_close(struct inode *inode, struct file *filp)
{
	lab_signal(filp->private_data);
	kfree(filp->private_data);
	return 0;
}

static const struct file_operations lab_fops = {
	.owner = THIS_MODULE,
	.open = lab_open,
	.release = lab_close,
	.unlocked_ioctl = lab_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice lab_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "contigo-lab",
	.fops = &lab_fops,
};

int lab_exporter_init(void)
{
	struct dentry *folder = debugfs_create_dir("exporter", lab_debugfs);

	debugfs_create_atomic_t("maps", 0444, folder, &maps);
	debugfs_create_atomic_t("unmaps", 0444, folder, &unmaps);
	debugfs_create_atomic_t("buffers", 0444, folder, &buffers);
	return misc_register(&lab_device);
}

void lab_exporter_exit(void)
{
	misc_deregister(&lab_device);
}
