# Run as root in the guest before the tests; share and bind_pci are in cross/lab/guest/init.sh.
# Pages of 2 MiB, and edu with vfio-pci, by which it gets a group, whose file the ordinary user may
# open.
echo 16 > /proc/sys/vm/nr_hugepages
bind_pci 0x1234 0x11e8 vfio-pci
share "/dev/vfio/$(basename "$(readlink "$function/iommu_group")")"
# Memory that an ordinary user maps for a device is locked; a real board allows it in limits.conf.
ulimit -l unlimited
