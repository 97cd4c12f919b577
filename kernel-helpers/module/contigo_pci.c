// SPDX-License-Identifier: GPL-2.0
/*
 * A PCI function as a port.
 */
#include <linux/build_bug.h>
#include <linux/module.h>
#include <linux/pci.h>

#include "contigo_internal.h"

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
 * Without pci_request_regions(): user space maps the same BARs through sysfs.
 */
static int contigo_pci_map(struct contigo_port *port, struct pci_dev *pdev)
{
	int i;

	BUILD_BUG_ON(CONTIGO_MAX_WINDOWS != PCI_STD_NUM_BARS);
	for (i = 0; i < PCI_STD_NUM_BARS; i++) {
		if (!(pci_resource_flags(pdev, i) & IORESOURCE_MEM) || !pci_resource_len(pdev, i))
			continue;
		port->window[i].base = pci_ioremap_bar(pdev, i);
		if (!port->window[i].base)
			return -ENOMEM;
		port->window[i].len_bytes = pci_resource_len(pdev, i);
	}
	return 0;
}

static int contigo_pci_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct contigo_port *port;
	int ret;

	ret = pci_enable_device_mem(pdev);
	if (ret)
		return ret;
	contigo_pci_set_master(pdev, false);

	port = contigo_port_new(&pdev->dev);
	if (IS_ERR(port)) {
		ret = PTR_ERR(port);
		goto disable;
	}
	port->pdev = pdev;
	ret = contigo_pci_map(port, pdev);
	if (!ret)
		ret = contigo_port_add(port);
	if (ret)
		goto put;
	return 0;

put:
	contigo_port_tear_down(port);
	put_device(&port->dev);
disable:
	pci_disable_device(pdev);
	return ret;
}

static void contigo_pci_remove(struct pci_dev *pdev)
{
	contigo_port_remove(pci_get_drvdata(pdev));
	pci_disable_device(pdev);
}

static void contigo_pci_shutdown(struct pci_dev *pdev)
{
	contigo_port_shutdown(pci_get_drvdata(pdev));
}

static struct pci_driver contigo_pci_driver = {
	.name = "contigo",
	.id_table = NULL,	/* binds by driver_override alone, which needs no entry */
	.probe = contigo_pci_probe,
	.remove = contigo_pci_remove,
	.shutdown = contigo_pci_shutdown,
};

int contigo_pci_register(void)
{
	return pci_register_driver(&contigo_pci_driver);
}

void contigo_pci_unregister(void)
{
	pci_unregister_driver(&contigo_pci_driver);
}
