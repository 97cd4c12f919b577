// SPDX-License-Identifier: GPL-2.0
/*
 * A PCI function as a guard: its BARs, its interrupt (INTx), its mastering, its
 * reset. For tests: vfio-pci is the way to such a device.
 */
#include <linux/build_bug.h>
#include <linux/module.h>
#include <linux/pci.h>

#include "contigo_calls.h"
#include "contigo_compat.h"

/*
 * Reading the register back does two things: the write has arrived, and what
 * the function wrote to memory before it has too, for a completion does not
 * pass posted writes.
 */
void contigo_pci_set_master(struct pci_dev *pdev, bool on)
{
	u16 command;

	if (on)
		pci_set_master(pdev);
	else
		pci_clear_master(pdev);
	pci_read_config_word(pdev, PCI_COMMAND, &command);
}

/*
 * Was it pulled out? Then its registers read as ones, and it writes nothing.
 */
bool contigo_pci_is_gone(const struct pci_dev *pdev)
{
	return pdev->error_state == pci_channel_io_perm_failure;
}

/*
 * Not pci_reset_function(): that one takes device_lock(), which is held, and
 * calls contigo_pci_reset_prepare().
 */
int contigo_pci_reset(struct pci_dev *pdev)
{
	int ret;

	device_lock_assert(&pdev->dev);
	if (!pci_cfg_access_trylock(pdev))
		return -EAGAIN;
	pci_save_state(pdev);
	ret = __pci_reset_function_locked(pdev);
	pci_restore_state(pdev);
	pci_cfg_access_unlock(pdev);
	return ret;
}

void contigo_pci_mask(struct pci_dev *pdev, bool masked)
{
	pci_intx(pdev, !masked);
}

/* Was it this function that raised the shared line? Then it does no more. */
bool contigo_pci_mask_raised(struct pci_dev *pdev)
{
	return pci_check_and_mask_intx(pdev);
}

/* Who writes an MSI-X table lets the function write an address of his choice. */
static void contigo_pci_hide_msix(struct contigo_guard *guard, struct pci_dev *pdev)
{
	struct contigo_registers *window;
	u16 control;
	u32 table;

	if (!pdev->msix_cap)
		return;
	pci_read_config_word(pdev, pdev->msix_cap + PCI_MSIX_FLAGS, &control);
	pci_read_config_dword(pdev, pdev->msix_cap + PCI_MSIX_TABLE, &table);
	if ((table & PCI_MSIX_TABLE_BIR) >= CONTIGO_MAX_WINDOWS)
		return;
	window = &guard->window[table & PCI_MSIX_TABLE_BIR];
	window->hidden_from = table & PCI_MSIX_TABLE_OFFSET;
	window->hidden_to = window->hidden_from +
			    ((control & PCI_MSIX_FLAGS_QSIZE) + 1) * PCI_MSIX_ENTRY_SIZE;
}

static int contigo_pci_windows(struct contigo_guard *guard, struct pci_dev *pdev)
{
	int i;

	BUILD_BUG_ON(CONTIGO_MAX_WINDOWS != PCI_STD_NUM_BARS);
	for (i = 0; i < PCI_STD_NUM_BARS; i++) {
		if (!(pci_resource_flags(pdev, i) & IORESOURCE_MEM) || !pci_resource_len(pdev, i))
			continue;
		guard->window[i].start = pci_resource_start(pdev, i);
		guard->window[i].len_bytes = pci_resource_len(pdev, i);
	}
	contigo_pci_hide_msix(guard, pdev);
	return contigo_guard_set_windows(guard);
}

/*
 * Nobody handles the line while no file is open: so the function does not raise
 * it from probe on. One that cannot be told so has no interrupt.
 */
static void contigo_pci_irq(struct contigo_guard *guard, struct pci_dev *pdev)
{
	if (!pdev->pin || !pdev->irq || !pci_intx_mask_supported(pdev))
		return;
	guard->irq[0] = pdev->irq;
	guard->interrupts = 1;
}

static int contigo_pci_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct contigo_guard *guard;
	int ret;

	ret = pci_enable_device_mem(pdev);
	if (ret)
		return ret;
	/* Enabling has unmasked it. The next driver's call does so too. */
	contigo_pci_mask(pdev, true);
	contigo_pci_set_master(pdev, false);
	ret = pci_request_selected_regions(pdev, pci_select_bars(pdev, IORESOURCE_MEM), "contigo");
	if (ret)
		goto disable;

	guard = contigo_guard_new(&pdev->dev);
	if (IS_ERR(guard)) {
		ret = PTR_ERR(guard);
		goto release;
	}
	contigo_pci_irq(guard, pdev);
	ret = contigo_pci_windows(guard, pdev);
	if (!ret)
		ret = contigo_guard_add(guard);
	if (ret)
		goto put;
	return 0;

put:
	contigo_dma_restore(guard);
	put_device(&guard->dev);
release:
	pci_release_selected_regions(pdev, pci_select_bars(pdev, IORESOURCE_MEM));
disable:
	pci_disable_device(pdev);
	return ret;
}

static void contigo_pci_remove(struct pci_dev *pdev)
{
	contigo_guard_remove(pci_get_drvdata(pdev));
	pci_release_selected_regions(pdev, pci_select_bars(pdev, IORESOURCE_MEM));
	pci_disable_device(pdev);
}

static void contigo_pci_shutdown(struct pci_dev *pdev)
{
	contigo_guard_shutdown(pci_get_drvdata(pdev));
}

/* Somebody else resets it, through sysfs or with its bus: its file ends before. */
static void contigo_pci_reset_prepare(struct pci_dev *pdev)
{
	struct contigo_guard *guard = pci_get_drvdata(pdev);

	mutex_lock(&guard->lock);
	if (guard->file)
		contigo_file_end(guard->file);
	mutex_unlock(&guard->lock);
}

static const struct pci_error_handlers contigo_pci_err_handler = {
	.reset_prepare = contigo_pci_reset_prepare,
};

static struct pci_driver contigo_pci_driver = {
	.name = "contigo",
	.id_table = NULL,	/* binds by driver_override alone, which needs no entry */
	.probe = contigo_pci_probe,
	.remove = contigo_pci_remove,
	.shutdown = contigo_pci_shutdown,
	.err_handler = &contigo_pci_err_handler,
	.driver.pm = &contigo_pm_ops,
};

int contigo_pci_register(void)
{
	return pci_register_driver(&contigo_pci_driver);
}

void contigo_pci_unregister(void)
{
	pci_unregister_driver(&contigo_pci_driver);
}
