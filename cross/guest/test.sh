# What `cargo lab test` runs: the board tests, then the demo. /lab/arguments has the tests' arguments, one a line.
set --
while read -r argument; do set -- "$@" "$argument"; done < /lab/arguments
set -o pipefail
# The rows are counted, so that one that gets lost on the way is missed.
contigo-board-tests "$@" < /dev/null | tee /tmp/output
status=$?
grep -c '^@row ' /tmp/output > /tmp/rows
if [ -x /bin/contigo ] && [ -e /lab/demo ]; then
	contigo demo --images 50 --json --png /tmp/demo.png < /dev/null > /tmp/demo.json 2> /tmp/demo.error
	demo=$?
	echo "@demo $demo $(cat /tmp/demo.json /tmp/demo.error | tr '\n' ' ')"
	[ "$status" = 0 ] && status=$demo
fi
(exit "$status")
