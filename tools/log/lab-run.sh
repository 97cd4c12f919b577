#!/busybox sh
# Run by root in the guest, in a root of its own: see lab beside this file.
PATH=/
b() { /busybox "$@"; }
/flight /tmp/flight.log > /tmp/told &
flight=$!
# A thousand jobs take a second here; a minute is too long for any of it.
looks=0
until [ "$(b wc -l < /tmp/told)" -ge 1000 ] || [ $looks -ge 600 ]; do
	b usleep 100000
	looks=$((looks + 1))
done
kill -9 $flight
wait $flight
status=$?
# A line a job; one that the kill cut has no end, and is not counted.
told=$(b wc -l < /tmp/told)
b xxd -p -c 64 /tmp/flight.log | b sed 's/^/@ring /'
echo "@told $told"
if [ $status = 137 ] && [ "$told" -ge 1000 ]; then result=passed; else result=failed; fi
echo "@row {\"kind\":\"check\",\"name\":\"a log after kill -9\",\"status\":\"$result\",\"reason\":\"status $status, $told jobs\"}"
[ $result = passed ]
