# Run as root in the guest before the tests; share and bind_pci are in cross/lab/guest/init.sh.
bind_pci 0x1234 0x4754 uio_pci_generic
share /dev/dma_heap/*
