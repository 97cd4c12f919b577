# Run as root in the guest before the tests; share and bind_pci are in cross/lab/guest/init.sh.
# gemm8 with vfio-pci, by which it gets a group, whose file the ordinary user may open.
bind_pci 0x1234 0x474d vfio-pci
share "/dev/vfio/$(basename "$(readlink "$function/iommu_group")")"
# Memory that an ordinary user maps for a device is locked; a real board allows it in limits.conf.
ulimit -l unlimited
