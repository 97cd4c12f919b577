#!/bin/busybox sh
# The guest's first process. It mounts, loads modules, runs the board's own preparation, then the
# command that the lab was asked for. Lines for the lab begin with @; the last of them is
# `@end STATUS ROWS`, without which no run has passed.
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t tmpfs tmp /tmp
/bin/busybox mount -t debugfs debug /sys/kernel/debug 2>/dev/null
/bin/busybox mount -t securityfs security /sys/kernel/security 2>/dev/null
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root
read -r CONTIGO_BOARD < /etc/contigo-board
export CONTIGO_BOARD
# From here on only what is fatal comes between the lines of the tests.
echo 3 > /proc/sys/kernel/printk

end() {
	[ "$1" = 0 ] || { echo "the kernel's last messages:"; dmesg | tail -n 30; }
	echo "@end $1 ${2:-0}"
	contigo-lab-exit "$1"
	poweroff -f
}

# For a board's setup.sh: hands files to the members of the ordinary user's group, as a udev rule
# does.
share() {
	for file; do
		if [ -e "$file" ]; then
			chgrp 1000 "$file"
			chmod g+rw "$file"
		fi
	done
}

# Puts the folder of the PCI function VENDOR DEVICE into $function, and takes it from its driver.
free_pci() {
	for function in /sys/bus/pci/devices/*; do
		if [ "$(cat "$function/vendor") $(cat "$function/device")" = "$1 $2" ]; then
			[ ! -e "$function/driver" ] || basename "$function" > "$function/driver/unbind"
			return
		fi
	done
	echo "there is no PCI function $1 $2"
	return 1
}

# For a board's setup.sh: binds the PCI function VENDOR DEVICE to DRIVER, and puts its folder into
# $function.
bind_pci() {
	free_pci "$1" "$2" || return 1
	echo "$3" > "$function/driver_override"
	basename "$function" > /sys/bus/pci/drivers_probe
	[ "$(basename "$(readlink "$function/driver")")" = "$3" ] && return
	echo "$function is not bound to $3"
	return 1
}

# For a board's setup.sh: makes a platform device of the PCI function VENDOR DEVICE, as a SoC's core
# is one, and binds it to the module contigo. It is called BAR.NAME, by where its registers are.
# With `reset` as a fourth word it has a reset line.
contigo_pci() {
	free_pci "$1" "$2" || return 1
	echo > "$function/driver_override"
	echo "$(basename "$function") $3 $4" > /sys/kernel/debug/contigo-lab/platform || return 1
	bind_platform "$(basename "$function"/*."$3")" contigo
}

# For a board's setup.sh: binds the platform device NAME to DRIVER, whatever its node says.
bind_platform() {
	device=/sys/bus/platform/devices/$1
	[ -e "$device/driver" ] && echo "$1" > "$device/driver/unbind"
	echo "$2" > "$device/driver_override"
	echo "$1" > /sys/bus/platform/drivers_probe
	[ "$(basename "$(readlink "$device/driver")")" = "$2" ] && return
	echo "$1 is not bound to $2"
	return 1
}

# Each line: a file, its name, its parameters.
while read -r file name parameters; do
	# shellcheck disable=SC2086 # the parameters are words
	insmod "$file" $parameters 2>/tmp/insmod || echo "@module-failed $name $(tr '\n' ' ' < /tmp/insmod)"
done < /lab/modules

# In a shell of its own: its settings (a limit) hold for the tests, and an error in it does not
# break this script.
(
	[ -e /lab/setup.sh ] && { set -e; . /lab/setup.sh; set +e; }
	touch /tmp/prepared
	. /lab/main.sh
)
status=$?
[ -e /tmp/prepared ] || { echo "@setup-failed $status"; end 1; }
end "$status" "$(cat /tmp/rows 2>/dev/null)"
