# Run as root in the guest before the tests; share and bind_pci are in cross/lab/guest/init.sh.
# Pages of 2 MiB, and gemm8 by UIO, as a board has it that has no module of this project's.
echo 8 > /proc/sys/vm/nr_hugepages
bind_pci 0x1234 0x4754 uio_pci_generic
