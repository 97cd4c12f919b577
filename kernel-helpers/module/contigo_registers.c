// SPDX-License-Identifier: GPL-2.0
/*
 * A file's mappings of registers. Each page is mapped when it is touched, so
 * that they can all be taken away at once: afterwards a touch maps a page of
 * ones.
 */
#include <linux/mm.h>

#include "contigo_compat.h"
#include "contigo_internal.h"

/* From here until map_lock is given back the file's registers are not mapped, and a touch waits. */
void contigo_registers_pause(struct contigo_file *file)
{
	mutex_lock(&file->map_lock);
	contigo_unmap(file->node->mapping, 0, CONTIGO_HANDLE_PAGES);
}

/* A page that is not all the window's has registers of others. */
bool contigo_registers_can_mmap(const struct contigo_registers *window)
{
	return window->len_bytes && PAGE_ALIGNED(window->start) &&
	       PAGE_ALIGNED(window->len_bytes);
}

/* The window at an offset of the file, or NULL. */
static const struct contigo_registers *contigo_window_at(struct contigo_file *file, u64 offset)
{
	u32 i;

	for (i = 0; i < CONTIGO_MAX_WINDOWS; i++) {
		const struct contigo_registers *window = &file->node->window[i];

		if (offset >= window->mmap_offset &&
		    offset - window->mmap_offset < window->len_bytes)
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
	vm_fault_t ret;

	/* mmap() has looked, and a mapping does not grow. */
	window = contigo_window_at(file, offset);
	if (!window)
		return VM_FAULT_SIGBUS;

	mutex_lock(&file->map_lock);
	if (file->revoked) {
		/* Cached: past the caches it could show what the page held before. */
		ret = vmf_insert_pfn_prot(vma, vmf->address, page_to_pfn(file->ones),
					  vm_get_page_prot(vma->vm_flags));
	} else {
		WRITE_ONCE(file->touched, true);
		ret = vmf_insert_pfn(vma, vmf->address,
				     PHYS_PFN(window->start + offset - window->mmap_offset));
	}
	mutex_unlock(&file->map_lock);
	return ret;
}

/* It would give the page of ones, or a copy, the attributes of what was there. */
int contigo_mprotect(struct vm_area_struct *vma, unsigned long start, unsigned long end,
		     unsigned long flags)
{
	return -EACCES;
}

static const struct vm_operations_struct contigo_vm_ops = {
	.fault = contigo_fault,
	CONTIGO_VM_MPROTECT
};

int contigo_registers_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct contigo_file *file = filp->private_data;
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	const struct contigo_registers *window = contigo_window_at(file, offset);

	if (READ_ONCE(file->gone))
		return -ENODEV;
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	if (!window ||
	    vma->vm_end - vma->vm_start > PAGE_ALIGN(window->len_bytes) -
					  (offset - window->mmap_offset))
		return -EINVAL;
	if (!contigo_registers_can_mmap(window))
		return -EACCES;

	contigo_vm_flags(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY,
			 VM_MAYEXEC | CONTIGO_VM_NO_MPROTECT);
	vma->vm_page_prot = pgprot_decrypted(pgprot_device(vma->vm_page_prot));
	vma->vm_ops = &contigo_vm_ops;
	return 0;
}
