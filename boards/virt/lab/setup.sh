# Run as root in the guest before the tests; share and bind_pci are in cross/lab/guest/init.sh.
# Pages of 2 MiB, and edu with the driver that hands its interrupt to user space.
echo 16 > /proc/sys/vm/nr_hugepages
bind_pci 0x1234 0x11e8 uio_pci_generic
share /dev/uio* /dev/udmabuf[0-9]*
# contigo doctor finds no fault here.
: > /tmp/doctor
