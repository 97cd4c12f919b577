// SPDX-License-Identifier: GPL-2.0
/*
 * A file's mappings of registers. Each page is mapped when it is touched, so
 * that they can all be taken away at once: afterwards a touch maps a page of
 * ones. Every file has an inode of its own for its mappings: what is done to
 * one file's touches no other's.
 */
#include <linux/capability.h>
#include <linux/highmem.h>
#include <linux/ioport.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>
#include <linux/slab.h>

#include "contigo_calls.h"
#include "contigo_compat.h"

/* "cntg" */
#define CONTIGO_FS_MAGIC	0x636e7467

static struct vfsmount *contigo_mount;

static int contigo_fs_init(struct fs_context *context)
{
	return init_pseudo(context, CONTIGO_FS_MAGIC) ? 0 : -ENOMEM;
}

static struct file_system_type contigo_fs = {
	.name = "contigo",
	.init_fs_context = contigo_fs_init,
	.kill_sb = kill_anon_super,
};

int contigo_registers_init(void)
{
	contigo_mount = kern_mount(&contigo_fs);
	return PTR_ERR_OR_ZERO(contigo_mount);
}

void contigo_registers_exit(void)
{
	kern_unmount(contigo_mount);
}

/* The parts that need no device. */
int contigo_registers_new(struct contigo_file *file)
{
	void *ones;

	file->ones = alloc_page(GFP_KERNEL_ACCOUNT);
	if (!file->ones)
		return -ENOMEM;
	ones = page_address(file->ones);
	memset(ones, 0xff, PAGE_SIZE);
	flush_dcache_page(file->ones);
	file->inode = alloc_anon_inode(contigo_mount->mnt_sb);
	if (IS_ERR(file->inode)) {
		__free_page(file->ones);
		return PTR_ERR(file->inode);
	}
	mutex_init(&file->map_lock);
	return 0;
}

/* No mapping is left: each holds the file. */
void contigo_registers_free(struct contigo_file *file)
{
	iput(file->inode);
	__free_page(file->ones);
	mutex_destroy(&file->map_lock);
}

/* Do two windows of the device have registers in one page? */
static bool contigo_share_page(const struct contigo_registers *one,
			       const struct contigo_registers *other)
{
	return one->len_bytes && other->len_bytes &&
	       PHYS_PFN(one->start) <= PHYS_PFN(other->start + other->len_bytes - 1) &&
	       PHYS_PFN(other->start) <= PHYS_PFN(one->start + one->len_bytes - 1);
}

/*
 * The rest of a window's first and last page, up to the device's next window:
 * what is between two of them is after the first one.
 */
static void contigo_around(const struct contigo_guard *guard, u32 i, phys_addr_t *before,
			   phys_addr_t *after)
{
	const struct contigo_registers *window = &guard->window[i];
	phys_addr_t end = window->start + window->len_bytes;
	u32 j;

	*before = offset_in_page(window->start);
	*after = -end & ~PAGE_MASK;
	for (j = 0; j < CONTIGO_MAX_WINDOWS; j++) {
		const struct contigo_registers *other = &guard->window[j];

		if (j == i || !contigo_share_page(window, other))
			continue;
		if (other->start < window->start)
			*before = 0;
		else
			*after = min(*after, other->start - end);
	}
}

/*
 * Some drivers claim none of their registers. So who is not as good as root maps
 * no page that is not all the window's.
 */
static bool contigo_may_map(const struct contigo_registers *window)
{
	if (PAGE_ALIGNED(window->start) && PAGE_ALIGNED(window->len_bytes))
		return true;
	return contigo_unprivileged || capable(CAP_SYS_RAWIO);
}

/* Where another driver has registers in the same page, or may get them, nobody maps it. */
static bool contigo_claim_around(struct contigo_file *file, u32 i)
{
	const struct contigo_registers *window = &file->guard->window[i];
	const char *name = dev_name(file->guard->dma_dev);
	phys_addr_t before, after;

	if (window->hidden_from != window->hidden_to || !contigo_may_map(window))
		return false;
	contigo_around(file->guard, i, &before, &after);
	if (before) {
		file->around[i][0] = request_mem_region(window->start - before, before, name);
		if (!file->around[i][0])
			return false;
	}
	if (after) {
		file->around[i][1] = request_mem_region(window->start + window->len_bytes, after,
							name);
		if (!file->around[i][1])
			return false;
	}
	return true;
}

static void contigo_unclaim_around(struct contigo_file *file, u32 i)
{
	u32 side;

	for (side = 0; side < ARRAY_SIZE(file->around[i]); side++) {
		struct resource *around = file->around[i][side];

		if (around)
			release_mem_region(around->start, resource_size(around));
		file->around[i][side] = NULL;
	}
}

/* Which windows can be mapped? Of those in one page, all or none. */
void contigo_registers_claim(struct contigo_file *file)
{
	const struct contigo_registers *window = file->guard->window;
	u32 i, j, round;

	for (i = 0; i < CONTIGO_MAX_WINDOWS; i++) {
		if (window[i].len_bytes && contigo_claim_around(file, i))
			file->can_mmap |= BIT(i);
	}
	for (round = 0; round < CONTIGO_MAX_WINDOWS; round++) {
		for (i = 0; i < CONTIGO_MAX_WINDOWS; i++) {
			for (j = 0; j < CONTIGO_MAX_WINDOWS; j++) {
				if (!(file->can_mmap & BIT(j)) &&
				    contigo_share_page(&window[i], &window[j]))
					file->can_mmap &= ~BIT(i);
			}
		}
	}
	for (i = 0; i < CONTIGO_MAX_WINDOWS; i++) {
		if (!(file->can_mmap & BIT(i)))
			contigo_unclaim_around(file, i);
	}
}

/* After they were revoked. */
void contigo_registers_unclaim(struct contigo_file *file)
{
	u32 i;

	for (i = 0; i < CONTIGO_MAX_WINDOWS; i++)
		contigo_unclaim_around(file, i);
}

/*
 * From here to contigo_registers_resume() the file's registers are not mapped,
 * and a touch waits.
 */
void contigo_registers_pause(struct contigo_file *file)
{
	mutex_lock(&file->map_lock);
	unmap_mapping_range(file->inode->i_mapping, 0, 0, 1);
}

void contigo_registers_resume(struct contigo_file *file)
{
	mutex_unlock(&file->map_lock);
}

/* When this returns, nobody reaches the device's registers through the file any more. */
void contigo_registers_revoke(struct contigo_file *file)
{
	contigo_registers_pause(file);
	file->revoked = true;
	contigo_registers_resume(file);
}

/* The window at a page of the file, or NULL; and how many of its pages follow. */
static const struct contigo_registers *contigo_window_at(struct contigo_file *file, u64 offset,
							 u32 *index, u64 *left_bytes)
{
	u32 i;

	for (i = 0; i < CONTIGO_MAX_WINDOWS; i++) {
		const struct contigo_registers *window = &file->guard->window[i];
		u64 span = PAGE_ALIGN(offset_in_page(window->start) + window->len_bytes);

		if (!window->len_bytes || offset < window->mmap_offset ||
		    offset - window->mmap_offset >= span)
			continue;
		*index = i;
		*left_bytes = span - (offset - window->mmap_offset);
		return window;
	}
	return NULL;
}

static vm_fault_t contigo_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct contigo_file *file = vma->vm_file->private_data;
	u64 offset = (u64)vmf->pgoff << PAGE_SHIFT;
	const struct contigo_registers *window;
	u64 left_bytes;
	vm_fault_t ret;
	u32 i;

	/* mmap() has looked, and a mapping does not grow. */
	window = contigo_window_at(file, offset, &i, &left_bytes);
	if (!window)
		return VM_FAULT_SIGBUS;

	mutex_lock(&file->map_lock);
	if (file->revoked) {
		ret = vmf_insert_pfn_prot(vma, vmf->address, page_to_pfn(file->ones),
					  vm_get_page_prot(vma->vm_flags));
	} else {
		WRITE_ONCE(file->touched, true);
		ret = vmf_insert_pfn(vma, vmf->address,
				     PHYS_PFN(window->start) +
				     ((offset - window->mmap_offset) >> PAGE_SHIFT));
	}
	mutex_unlock(&file->map_lock);
	return ret;
}

/*
 * It would give the page of ones the attributes of registers, past the caches:
 * on arm64 that shows what the page held before.
 */
static int __maybe_unused contigo_mprotect(struct vm_area_struct *vma, unsigned long start,
					   unsigned long end, unsigned long flags)
{
	struct contigo_file *file = vma->vm_file->private_data;

	return READ_ONCE(file->gone) || READ_ONCE(file->revoked) ? -EACCES : 0;
}

/* No access(): a debugger does not read registers. */
static const struct vm_operations_struct contigo_vm_ops = {
	.fault = contigo_fault,
#ifdef CONTIGO_HAS_MPROTECT
	.mprotect = contigo_mprotect,
#endif
};

/* Under mmap_lock: so without the guard's. */
int contigo_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct contigo_file *file = filp->private_data;
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u64 left_bytes;
	u32 i;

	if (READ_ONCE(file->gone))
		return -ENODEV;
	/* VM_SHARED is missing where the file is open for reading alone. */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	if (!contigo_window_at(file, offset, &i, &left_bytes) ||
	    vma->vm_end - vma->vm_start > left_bytes)
		return -EINVAL;
	if (!(file->can_mmap & BIT(i)))
		return -EACCES;

	contigo_vm_flags(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY,
			 VM_MAYEXEC | CONTIGO_VM_NO_MPROTECT);
	vma->vm_page_prot = pgprot_noncached(vma->vm_page_prot);
	vma->vm_ops = &contigo_vm_ops;
	return 0;
}
