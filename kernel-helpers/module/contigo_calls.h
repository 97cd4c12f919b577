/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The functions that the files of this module call of each other.
 */
#ifndef CONTIGO_CALLS_H
#define CONTIGO_CALLS_H

#include <linux/fs.h>
#include <linux/interrupt.h>
#include <linux/pm.h>
#include <linux/poll.h>

#include "contigo_internal.h"

/* contigo_main.c */
extern bool contigo_unprivileged;
extern struct class contigo_class;
int contigo_devt_get(dev_t *devt);
void contigo_devt_put(dev_t devt);

/* contigo_guard.c */
extern const struct attribute_group *contigo_guard_groups[];
extern const struct dev_pm_ops contigo_pm_ops;
struct contigo_guard *contigo_guard_new(struct device *dma_dev);
int contigo_guard_add(struct contigo_guard *guard);
void contigo_guard_remove(struct contigo_guard *guard);
void contigo_guard_shutdown(struct contigo_guard *guard);
int contigo_guard_set_windows(struct contigo_guard *guard);

/* contigo_dma.c */
int contigo_dma_set_up(struct contigo_guard *guard);
void contigo_dma_restore(struct contigo_guard *guard);
int contigo_dma_set_bits(struct contigo_guard *guard, u32 bits);
u32 contigo_dma_flags(const struct contigo_guard *guard);
phys_addr_t contigo_dma_to_phys(const struct contigo_guard *guard, dma_addr_t addr);

/* contigo_platform.c */
int contigo_platform_register(void);
void contigo_platform_unregister(void);
void contigo_platform_remove(struct platform_device *pdev);
int contigo_reset_lines(struct contigo_guard *guard, bool hold);

/* contigo_pci.c */
#ifdef CONFIG_PCI
int contigo_pci_register(void);
void contigo_pci_unregister(void);
void contigo_pci_set_master(struct pci_dev *pdev, bool on);
bool contigo_pci_is_gone(const struct pci_dev *pdev);
int contigo_pci_reset(struct pci_dev *pdev);
void contigo_pci_mask(struct pci_dev *pdev, bool masked);
bool contigo_pci_mask_raised(struct pci_dev *pdev);
#else
static inline int contigo_pci_register(void)
{
	return 0;
}

static inline void contigo_pci_unregister(void) { }
static inline void contigo_pci_set_master(struct pci_dev *pdev, bool on) { }
static inline bool contigo_pci_is_gone(const struct pci_dev *pdev)
{
	return false;
}

static inline int contigo_pci_reset(struct pci_dev *pdev)
{
	return -ENOTTY;
}

static inline void contigo_pci_mask(struct pci_dev *pdev, bool masked) { }
static inline bool contigo_pci_mask_raised(struct pci_dev *pdev)
{
	return false;
}

#endif

/* contigo_power.c */
struct contigo_power *contigo_power_new(struct device *dev);
void contigo_power_unbind(struct contigo_power *power, bool awake);
void contigo_power_free(struct contigo_power *power);
int contigo_power_up(struct contigo_power *power);
void contigo_power_down(struct contigo_power *power);
void contigo_power_clocks_off(struct contigo_power *power);

/* contigo_open.c */
int contigo_open(struct inode *inode, struct file *filp);
int contigo_guard_lock(struct contigo_guard *guard);
void contigo_guard_lock_device(struct contigo_guard *guard);
void contigo_guard_unlock_device(struct contigo_guard *guard);

/* contigo_end.c: all with the guard's lock held, and device_lock() where it is PCI */
bool contigo_file_end(struct contigo_file *file);
bool contigo_run_stop(struct contigo_guard *guard, const struct contigo_stop *stop);
int contigo_reset_device(struct contigo_guard *guard, bool hold);
int contigo_file_reset(struct contigo_file *file);
int contigo_guard_reset(struct contigo_guard *guard);

/* contigo_file.c */
extern const struct file_operations contigo_fops;
int contigo_file_lock(struct contigo_file *file);
bool contigo_is_user_ptr(u64 ptr);

/* contigo_memory.c */
int contigo_ioctl_set_dma_bits(struct contigo_file *file, void __user *ptr);
int contigo_ioctl_import(struct contigo_file *file, void __user *ptr);
int contigo_ioctl_get_segments(struct contigo_file *file, void __user *ptr);
int contigo_ioctl_release(struct contigo_file *file, void __user *ptr);
int contigo_ioctl_sync(struct contigo_file *file, void __user *ptr);

/* contigo_registers.c */
int contigo_registers_init(void);
void contigo_registers_exit(void);
int contigo_registers_new(struct contigo_file *file);
void contigo_registers_claim(struct contigo_file *file);
void contigo_registers_revoke(struct contigo_file *file);
void contigo_registers_pause(struct contigo_file *file);
void contigo_registers_resume(struct contigo_file *file);
void contigo_registers_unclaim(struct contigo_file *file);
void contigo_registers_free(struct contigo_file *file);
int contigo_mmap(struct file *filp, struct vm_area_struct *vma);

/* contigo_irq.c */
int contigo_irq_begin(struct contigo_file *file);
void contigo_irq_end(struct contigo_file *file);
int contigo_irq_unmask(struct contigo_file *file, u32 interrupts);
int contigo_irq_set_eventfd(struct contigo_file *file, u32 interrupt, s32 fd);
ssize_t contigo_read(struct file *filp, char __user *to, size_t len, loff_t *pos);
__poll_t contigo_poll(struct file *filp, poll_table *wait);

/* contigo_mapping.c: all with the guard's lock held */
struct contigo_mapping *contigo_mapping_new(struct contigo_guard *guard, struct dma_buf *dmabuf,
					    enum dma_data_direction direction);
void contigo_mapping_put(struct contigo_mapping *mapping);
void contigo_mapping_detach(struct contigo_mapping *mapping);
void contigo_mapping_leave(struct contigo_mapping *mapping);
void contigo_mapping_return(struct contigo_mapping *mapping, struct device *dev);
bool contigo_mapping_in_reach(struct contigo_guard *guard, const struct contigo_mapping *mapping);
bool contigo_mapping_is_cached(struct contigo_guard *guard, const struct contigo_mapping *mapping);
int contigo_mapping_sync(struct contigo_guard *guard, const struct contigo_mapping *mapping,
			 u64 offset_bytes, u64 len_bytes, u32 direction);

/* contigo_pieces.c */
const struct contigo_piece *contigo_piece_at(const struct contigo_mapping *mapping,
					     u64 offset_bytes);
u32 contigo_pieces_runs(const struct contigo_mapping *mapping, u64 offset_bytes,
			struct contigo_segment *segment, u32 room);
bool contigo_is_within(u64 offset_bytes, u64 len_bytes, u64 whole_bytes);

/* contigo_import.c: all with the guard's lock held, except for the first */
int contigo_import_wait(struct dma_buf *dmabuf, const struct contigo_import *arg);
int contigo_import(struct contigo_file *file, struct dma_buf *dmabuf, struct contigo_import *arg);
int contigo_import_release(struct contigo_file *file, u32 handle);
int contigo_import_segments(struct contigo_file *file, u32 handle, u64 offset_bytes,
			    struct contigo_segment *segment, u32 *count);
int contigo_import_sync(struct contigo_file *file, const struct contigo_range *range, u32 count);
void contigo_held_free(struct contigo_held *held);

/* contigo_kept.c: all with the guard's lock held */
void contigo_kept_count(const struct contigo_guard *guard, u32 *buffers, u64 *len_bytes);
struct contigo_mapping *contigo_kept_find(struct contigo_guard *guard,
					  const struct dma_buf *dmabuf);
void contigo_kept_keep(struct contigo_guard *guard, struct contigo_held *held);
bool contigo_kept_is_at_work(const struct contigo_guard *guard);
bool contigo_kept_is_mapped(const struct contigo_guard *guard);
bool contigo_kept_stay_awake(struct contigo_guard *guard);
u32 contigo_kept_take(struct contigo_kept *kept, const struct contigo_stop *stop);
void contigo_kept_give_back(struct contigo_guard *guard, const struct contigo_stop *stop,
			    bool reset);
void contigo_kept_try(struct contigo_guard *guard);
void contigo_kept_unmap(struct contigo_guard *guard);

/* contigo_kept_list.c */
struct contigo_kept *contigo_kept_get(struct contigo_guard *guard);
void contigo_kept_leave(struct contigo_guard *guard);
void contigo_kept_exit(void);

/* contigo_program.c */
struct contigo_stop *contigo_stop_load(const struct contigo_registers *window,
				       const struct contigo_step __user *from, u32 count);
int contigo_stop_check(const struct contigo_registers *window, const struct contigo_step *step,
		       u32 count);
int contigo_stop_map(struct contigo_stop *stop, const struct contigo_registers *window);
void contigo_stop_unmap(struct contigo_stop *stop);
void contigo_stop_free(struct contigo_stop *stop);
bool contigo_stop_is_same(const struct contigo_stop *one, const struct contigo_stop *other);
int contigo_stop_run(const struct contigo_stop *stop, u32 *at, u32 *value);

#endif /* CONTIGO_CALLS_H */
