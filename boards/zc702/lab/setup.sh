# Run as root in the guest before the tests; share and bind_pci are in cross/lab/guest/init.sh.
# contigo doctor finds no fault here.
: > /tmp/doctor
share /dev/contigo/* /dev/dma_heap/* /dev/udmabuf[0-9]*
