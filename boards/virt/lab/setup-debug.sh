# Run as root in the guest before the tests; share and contigo_pci are in cross/lab/guest/init.sh.
# Few huge pages, all of which one test holds. Behind an SMMU edu has a reset line: the module calls
# no device confined that the kernel cannot stop.
echo 4 > /proc/sys/vm/nr_hugepages
if [ -n "$(ls /sys/class/iommu)" ]; then
	contigo_pci 0x1234 0x11e8 edu reset
else
	contigo_pci 0x1234 0x11e8 edu
fi
share /dev/contigo/* /dev/dma_heap/* /dev/udmabuf
