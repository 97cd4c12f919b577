# For `cargo lab test`: the board tests, then the tree of --with, then the demo on each memory that
# has a name here. /lab/arguments has the tests' arguments, one a line.
set --
while read -r argument; do set -- "$@" "$argument"; done < /lab/arguments
set -o pipefail
# The rows are counted, so that one that gets lost on the way is missed.
status=0
: > /tmp/output
run() {
	"$@" < /dev/null | tee -a /tmp/output || status=1
}
# The kernel's own tests of the module, which ran when it was loaded.
for results in /sys/kernel/debug/kunit/contigo*/results; do
	[ -e "$results" ] || continue
	said=$(grep -E '^# .*pass:' "$results" | tail -n 1)
	if [ -n "$said" ] && ! grep -q 'not ok' "$results"; then
		echo "@row {\"kind\":\"check\",\"name\":\"kunit\",\"status\":\"passed\",\"reason\":\"$said\"}"
	else
		echo "@row {\"kind\":\"check\",\"name\":\"kunit\",\"status\":\"failed\",\"reason\":\"$(grep 'not ok' "$results" | tr -d '"\\' | tr '\n\t' '; ')\"}"
	fi | tee -a /tmp/output
	grep -q 'not ok' "$results" && status=1
done
# The 32-bit program first: after the other one's last rows a port is root's alone.
if [ -x /bin/contigo-board-tests-32 ] && [ -n "$(contigo-board-tests-32 "$@" --list)" ]; then
	run contigo-board-tests-32 "$@"
fi
# Without one of them to run they end as if a test had failed, and the doctor is a test, too.
if [ ! -e /tmp/doctor ] || [ -n "$(contigo-board-tests "$@" --list)" ]; then
	run contigo-board-tests "$@"
fi
# The board's second preparation, and everything again.
if [ -e /lab/then.sh ]; then
	if (set -e; . /lab/then.sh); then
		[ -z "$(contigo-board-tests "$@" --list)" ] || run contigo-board-tests "$@"
	else
		echo "@row {\"kind\":\"check\",\"name\":\"the second preparation\",\"status\":\"failed\",\"reason\":\"then.sh failed\"}" | tee -a /tmp/output
		status=1
	fi
fi
# The tree of --with has its own libraries, so it gets a root of its own, with this kernel's files.
if [ -e /with/run ]; then
	for folder in dev proc sys tmp; do
		mkdir -p /with/$folder
		mount -o bind /$folder /with/$folder
	done
	run chroot /with /run
fi
# Memory that belongs to a device of this board, by its name: VFIO's, and a contigo device's.
owned='s/^ *"name": "\(\(vfio\|contigo\):[^"]*\)",$/\1/p'
owned() {
	contigo info --json < /dev/null | sed -n "$owned" | sort -u
}
# The same from C: a device, its memory and its registers in one opening.
from_c() {
	said=$(contigo-names "$1" "${1##*@}" 2>&1) && result=passed || result=failed
	said=$(echo "$said" | tr -d '"\\' | tr '\n\t' '; ')
	echo "@row {\"kind\":\"check\",\"name\":\"C opens $1\",\"status\":\"$result\",\"reason\":\"$said\"}"
	[ $result = passed ]
}
if [ -x /bin/contigo-names ] && [ -e /lab/demo ]; then
	for memory in $(owned); do run from_c "$memory"; done
fi
if [ -x /bin/contigo ] && [ -e /lab/demo ]; then
	# The simulated board's memory, and each that belongs to a device.
	for memory in sim $(owned); do
		contigo demo --memory "$memory" --images 50 --json --png /tmp/demo.png < /dev/null > /tmp/demo.json 2> /tmp/demo.error
		demo=$?
		echo "@demo $demo $(cat /tmp/demo.json /tmp/demo.error | tr '\n' ' ')"
		[ "$status" = 0 ] && status=$demo
	done
fi
# Whether a reset of the GPIO LINE is refused, and by whose NAME.
refused_by() {
	said=$(contigo reset "$1" --active low < /dev/null 2>&1) && return 1
	[ "$said" = "contigo: $1 is in use by $2: end or unbind it first" ]
}
# A reset line of a GPIO chip that QEMU models. During a pulse the kernel reads its level from the
# chip. A second program is refused by the first one's name, and so is the line of a driver.
reset_line() {
	line=gpiochip0:0
	levels=
	for active in low high; do
		contigo reset $line --active $active --pulse-us 900000 < /dev/null > /dev/null &
		pulse=$!
		usleep 450000
		levels="$levels$active: $(grep 'contigo reset' /sys/kernel/debug/gpio | grep -o 'out [a-z]*'); "
		refused_by $line 'contigo reset' || return 1
		wait $pulse || return 1
	done
	refused_by gpiochip0:3 'GPIO Key Poweroff' || return 1
	contigo reset $line --active low < /dev/null > /dev/null || return 1
	said=$levels
	[ "$levels" = "low: out lo; high: out hi; " ]
}
# A reset line of the kernel's gpio-sim, which shows the level on the line. The line's own pull is
# the level that holds no core: a pulse that is asserted turns it round, and the release turns it
# back.
simulated_line() {
	line=$(ls -d /sys/bus/gpio/devices/*/sim_gpio0) || return 1
	levels=
	for active in low high; do
		[ $active = low ] && echo pull-up > "$line/pull" || echo pull-down > "$line/pull"
		levels="$levels$active: $(cat "$line/value")"
		contigo reset lab-aresetn --active $active --pulse-us 1000000 < /dev/null > /dev/null &
		pulse=$!
		# A busy machine starts a program in seconds; the pulse itself is looked at ten times.
		tries=0
		while [ "$(cat "$line/value")" = "${levels##*: }" ] && [ $tries -lt 100 ]; do
			tries=$((tries + 1))
			usleep 100000
		done
		levels="$levels $(cat "$line/value")"
		wait $pulse || return 1
		levels="$levels $(cat "$line/value"); "
	done
	said=$levels
	[ "$levels" = "low: 1 0 1; high: 0 1 0; " ]
}
# A clock of the fabric, whose driver is the kernel's and whose dividers QEMU models. 26 times
# 33.3 MHz by 20 is set; 50 MHz, which no divider gives, is refused and changes nothing.
fabric_clock() {
	hz() {
		contigo clocks --json < /dev/null | grep -A 2 '"clock": "fclk0"' | sed -n 's/.*"hz": \([0-9]*\).*/\1/p'
	}
	before=$(hz)
	contigo clocks --set fclk0=43333333 < /dev/null > /dev/null || return 1
	set=$(hz)
	said=$(contigo clocks --set fclk0=50000000 < /dev/null 2>&1) && return 1
	after=$(hz)
	contigo clocks --set "fclk0=$before" < /dev/null > /dev/null || return 1
	said="$before Hz, $set Hz, $after Hz, $(hz) Hz; $said"
	[ "$set" != "$before" ] && [ "$set" = "$after" ] && [ "$set" -gt 43000000 ] && [ "$(hz)" = "$before" ]
}
# A bitstream through the kernel's own zynq-fpga. QEMU's devcfg never raises PCFG_INIT, and says
# that its command queue is not empty: a load comes as far as "write init", whole or partial.
bitstream() {
	manager=/sys/class/fpga_manager/fpga0
	mkdir -p /lib/firmware
	# Sync word, the IDCODE of a 7Z020, DESYNC, and no frames.
	printf '\377\377\377\377\252\231\125\146\060\001\200\001\003\162\160\223\060\000\200\001\000\000\000\015' > /tmp/top.bin
	dd if=/dev/zero bs=4096 count=1 2> /dev/null >> /tmp/top.bin
	for part in '' --partial; do
		# shellcheck disable=SC2086 # no word, or one
		said=$(contigo fpga load /tmp/top.bin --board zc702 $part < /dev/null 2>&1) && return 1
		case $part$said in
		"contigo: "*'"write init error" (Connection timed out'*) ;;
		"--partialcontigo: "*'"write init error" (Device or resource busy'*) ;;
		*) return 1 ;;
		esac
		[ "$(cat $manager/state)" = "write init error" ] || return 1
		[ -z "$(ls /lib/firmware)" ] || return 1
	done
	said="$(dmesg | grep 'fpga0: ' | tail -n 4 | cut -d: -f2- | tr '\n' ';') nothing is left in /lib/firmware"
}
# The registers around the fabric's ports, and busybox's reading of them. zynq-fpga has left the
# level shifters half open, and the resets held, which no design wants released here. A SLCR that is
# locked takes no write.
port_registers() {
	has() {
		contigo board --registers --json < /dev/null | grep -A 2 "\"field\": \"$1\"" | sed -n 's/.*"value": "\([^"]*\)".*/\1/p'
	}
	state() { echo "$(devmem 0xf8000900) $(has 'level shifters'), $(devmem 0xf8000240) $(has 'reset 0 of the fabric')"; }
	before=$(state)
	contigo board prepare --loaded < /dev/null > /dev/null || return 1
	same=$(state)
	devmem 0xf8000004 32 0x767b
	refused=$(contigo board prepare --loaded --yes < /dev/null 2>&1) && return 1
	devmem 0xf8000008 32 0xdf0d
	contigo board prepare --loaded --yes < /dev/null > /dev/null || return 1
	said="$before; $(state); ${refused%%,*}"
	[ "$before" = "0x0000000A to the fabric only, 0x0000000F held" ] && [ "$same" = "$before" ] &&
		[ "$(state)" = "0x0000000F on, 0x0000000F held" ] && [ "$refused" != "${refused#contigo: the SLCR is locked}" ]
}
# The number of the I2C bus that is called so.
i2c_bus() {
	grep -l -x "$1.*" /sys/bus/i2c/devices/i2c-*/name | sed 's/[^0-9]*2c.*i2c-\([0-9]*\).*/\1/'
}
# A rail of 5 W, by the kernel's ina2xx and by its bus. The kernel's chip is not taken from it.
rails() {
	bus=$(i2c_bus 'contigo-lab monitors')
	said=$(contigo power --monitor "ina226@$bus:0x40,shunt_uohm=2000" --monitor "ina226@$bus:0x41,shunt_uohm=2000" \
		--monitor "ina260@$bus:0x41" --monitor "ina226@$bus:0x42,shunt_uohm=1" --json < /dev/null)
	[ "$(echo "$said" | grep -c '"watts": 5.0')" = 2 ] || return 1
	for words in 'a driver of the kernel has this chip' 'another chip answers: maker 0x5449, die 0x2260' 'No such device or address'; do
		echo "$said" | grep -q "$words" || return 1
	done
	said=$(contigo demo --images 50 --png /tmp/demo.png --power --monitor "ina226@$bus:0x41,shunt_uohm=2000" < /dev/null | grep 'per image on')
	[ "$(echo "$said" | grep -c ': 5.000 W in ')" = 2 ]
}
# A chip of the kernel's own i2c-stub, whose registers keep the number that they get. An INA226
# sends the high byte first, and SMBus the low one: 320 times 6.25 mW is 2 W. Then 640 times. That
# bus has no I2C_RDWR: a monitor behind it is ina2xx's alone.
stub_rail() {
	bus=$(i2c_bus 'SMBus stub')
	refused=$(contigo power --monitor "ina226@$bus:0x40,shunt_uohm=2000" --json < /dev/null | grep -o "$bus: Operation not supported")
	echo ina226 0x40 > "/sys/bus/i2c/devices/i2c-$bus/new_device"
	rail=ina226@$(ls "/sys/bus/i2c/devices/$bus-0040/hwmon")
	said=
	for power in 0x4001 0x8002; do
		# By force, because ina2xx has the chip.
		i2cset -f -y "$bus" 0x40 0x03 $power w || said="$said; no i2cset"
		said="$said$(contigo power --json < /dev/null | grep -A 3 "\"$rail\"" | grep '"watts"')"
	done
	echo 0x40 > "/sys/bus/i2c/devices/i2c-$bus/delete_device"
	said="$said; by its bus: $refused"
	[ "$(echo "$said" | grep -c '"watts": 2.0.*"watts": 4.0.*Operation not')" = 1 ]
}
# The row of the check that is called NAME, by the function that follows.
row() {
	said=
	"$2" && result=passed || { result=failed; status=1; }
	said=$(echo "$said" | tr -d '"\\' | tr '\n\t' '; ')
	echo "@row {\"kind\":\"check\",\"name\":\"$1\",\"status\":\"$result\",\"reason\":\"$said\"}" | tee -a /tmp/output
}
# On the boards where they were tried: their files name these rows in `checks`.
case $CONTIGO_BOARD in
zynq-6.1 | zynq-6.12) by_fabric=yes ;;
*) by_fabric= ;;
esac
if [ -x /bin/contigo ] && [ -e /lab/demo ] && [ -n "$by_fabric" ]; then
	row "contigo clocks sets one" fabric_clock
	row "contigo fpga load by zynq-fpga" bitstream
	row "contigo board --registers" port_registers
fi
if [ -x /bin/contigo ] && [ -e /lab/demo ] && [ "$CONTIGO_BOARD" = zynq-6.1 ]; then
	row "contigo power" rails
	row "contigo power by i2c-stub" stub_rail
	row "contigo reset by gpio-sim" simulated_line
fi
# The self-test of the boards' pages, by the SoC's own engine.
self_test() {
	said=$(contigo selftest --driver "$engine" --jobs 200 < /dev/null 2>&1) || return 1
	said=$(echo "$said" | tail -n 2)
}
case $CONTIGO_BOARD in
zynq-6.1 | zynq-6.12) engine=pl330 ;;
zynqmp) engine=zdma ;;
*) engine= ;;
esac
if [ -x /bin/contigo ] && [ -e /lab/demo ] && [ -n "$engine" ]; then
	row "contigo selftest --driver $engine" self_test
fi
# Only virt loads gpio_keys, whose line is refused.
if [ -x /bin/contigo ] && [ -e /lab/demo ] && grep -q 'GPIO Key Poweroff' /sys/kernel/debug/gpio 2> /dev/null; then
	row "contigo reset by a GPIO" reset_line
fi
# The doctor: each line of this file is found, and no fault that has none.
if [ -x /bin/contigo ] && [ -e /tmp/doctor ]; then
	contigo doctor < /dev/null > /tmp/doctor.said 2>&1
	sed -n 's/^\(fault\|note\) \([a-z0-9-]*\): .*/\1 \2/p' /tmp/doctor.said > /tmp/doctor.found
	# With no line at all in its list, busybox's grep -v prints nothing.
	for list in /tmp/doctor /tmp/doctor.found; do echo '# the end' >> $list; done
	wrong=$(grep -v -x -F -f /tmp/doctor.found /tmp/doctor | sed 's/^/not found: /'; grep '^fault' /tmp/doctor.found | grep -v -x -F -f /tmp/doctor)
	contigo doctor --probe --json < /dev/null > /tmp/doctor.probe 2>&1
	probed() { grep -A 4 '"id": "port-measured"' /tmp/doctor.probe | sed -n "s/^ *\"$1\": \"\(.*\)\",$/\1/p"; }
	# Where an engine of the SoC stands idle, its port is measured.
	case "$CONTIGO_BOARD $(probed verdict)" in
	"zynq-6.1 fine" | "zynq-6.12 fine" | "zynqmp fine") ;;
	"zynq-6.1 "* | "zynq-6.12 "* | "zynqmp "*) wrong="$wrong probe: $(probed verdict)" ;;
	*" fine" | *" skipped") ;;
	*) wrong="$wrong probe: $(probed verdict)" ;;
	esac
	said="$(tail -n 1 /tmp/doctor.said); probe $(probed verdict): $(probed found)"
	said=$(echo "$said" | tr -d '"\\')
	if [ -z "$wrong" ] && grep -q '^faults: ' /tmp/doctor.said; then
		echo "@row {\"kind\":\"check\",\"name\":\"doctor\",\"status\":\"passed\",\"reason\":\"$said\"}"
	else
		echo "@row {\"kind\":\"check\",\"name\":\"doctor\",\"status\":\"failed\",\"reason\":\"$(echo "$wrong" | tr '\n' ';') $said\"}"
		cat /tmp/doctor.said
	fi | tee -a /tmp/output
	[ -z "$wrong" ] || status=1
fi
# After this nothing can be opened any more that an IOMMU does not confine.
if [ -n "$(contigo-board-tests "$@" --locked-down --list)" ]; then
	run contigo-board-tests "$@" --locked-down
fi
rows=$(grep -c '^@row ' /tmp/output)
# The faults that the kernel found meanwhile in itself or in its modules: a row of its own, where
# any test ran.
if [ "$rows" != 0 ]; then
	wrong='BUG:|KASAN|UBSAN:|WARNING:|possible .* locking|suspicious RCU|INFO: task|DMA-API:.*(device driver|out of memory)'
	report=$(dmesg | grep -E "$wrong" | head -n 1 | tr -d '"\\' | tr '\t' ' ')
	seen="no report"
	# Where the kernel checks every use of the DMA API, it must still do so, and have counted nothing.
	dma=/sys/kernel/debug/dma-api
	if [ -e $dma ]; then
		seen="no report; DMA_API_DEBUG is on and has counted $(cat $dma/error_count) errors"
		[ "$(cat $dma/disabled) $(cat $dma/error_count)" = "N 0" ] || report="${report:-DMA_API_DEBUG: disabled $(cat $dma/disabled), errors $(cat $dma/error_count)}"
	fi
	if [ -n "$report" ]; then
		echo "@row {\"kind\":\"check\",\"name\":\"kernel-log\",\"status\":\"failed\",\"reason\":\"$report\"}"
		dmesg | grep -E -A 30 "$wrong" | head -n 60
		status=1
	else
		echo "@row {\"kind\":\"check\",\"name\":\"kernel-log\",\"status\":\"passed\",\"reason\":\"$seen\"}"
	fi
	rows=$((rows + 1))
fi
echo "$rows" > /tmp/rows
(exit "$status")
