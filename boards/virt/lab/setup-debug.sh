# Run as root in the guest before the tests; share and bind_pci are in cross/lab/guest/init.sh. Few
# huge pages, all of which one test holds.
echo 4 > /proc/sys/vm/nr_hugepages
bind_pci 0x1234 0x11e8 contigo
share /dev/contigo/* /dev/dma_heap/* /dev/udmabuf
# Another edu, on the same interrupt line, with a driver of the lab's.
other=/sys/bus/pci/devices/0000:00:05.0
if [ -e $other ]; then
	echo contigo-lab-edu > $other/driver_override
	echo 0000:00:05.0 > /sys/bus/pci/drivers_probe
	[ -e /sys/kernel/debug/contigo-lab/edu ]
fi
