# Run as root in the guest before the tests; share and bind_pci are in cross/lab/guest/init.sh. Few
# huge pages, all of which one test holds.
echo 4 > /proc/sys/vm/nr_hugepages
bind_pci 0x1234 0x11e8 contigo
share /dev/contigo/* /dev/dma_heap/* /dev/udmabuf "$function/resource0"
