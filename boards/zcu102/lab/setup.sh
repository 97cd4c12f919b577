# Run as root in the guest before the tests; share and bind_pci are in cross/lab/guest/init.sh.
# Pages of 2 MiB first.
echo 16 > /proc/sys/vm/nr_hugepages
share /dev/contigo/* /dev/dma_heap/* /dev/udmabuf[0-9]*
# contigo doctor finds no fault here, except for the bounces of zynqmp-bounce (swiotlb=force).
: > /tmp/doctor
case $CONTIGO_BOARD in zynqmp-bounce) echo "fault swiotlb-forced" > /tmp/doctor ;; esac
