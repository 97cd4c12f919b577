# What `cargo lab test` runs: the board tests, then the demo. /lab/arguments has the tests' arguments, one a line.
set --
while read -r argument; do set -- "$@" "$argument"; done < /lab/arguments
set -o pipefail
# The rows are counted, so that one that gets lost on the way is missed.
contigo-board-tests "$@" < /dev/null | tee /tmp/output
status=$?
grep -c '^@row ' /tmp/output > /tmp/rows
# What the kernel found wrong with itself or with its modules meanwhile: a row of its own, where any test was run.
if [ "$(cat /tmp/rows)" != 0 ]; then
	report=$(dmesg | grep -E 'BUG:|KASAN|UBSAN:|WARNING:|possible .* locking|suspicious RCU|INFO: task' | head -n 1 | tr -d '"\\' | tr '\t' ' ')
	if [ -n "$report" ]; then
		echo "@row {\"kind\":\"check\",\"name\":\"kernel-log\",\"status\":\"failed\",\"reason\":\"$report\"}"
		dmesg | grep -E -A 30 'BUG:|KASAN|UBSAN:|WARNING:|possible .* locking|suspicious RCU|INFO: task' | head -n 60
		[ "$status" = 0 ] && status=1
	else
		echo '@row {"kind":"check","name":"kernel-log","status":"passed","reason":"no report"}'
	fi
	echo $(($(cat /tmp/rows) + 1)) > /tmp/rows
fi
if [ -x /bin/contigo ] && [ -e /lab/demo ]; then
	contigo demo --images 50 --json --png /tmp/demo.png < /dev/null > /tmp/demo.json 2> /tmp/demo.error
	demo=$?
	echo "@demo $demo $(cat /tmp/demo.json /tmp/demo.error | tr '\n' ' ')"
	[ "$status" = 0 ] && status=$demo
fi
(exit "$status")
