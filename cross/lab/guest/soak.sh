# For `cargo lab test --soak`: the board's last preparation, then random work. /lab/arguments has
# the arguments, one a line.
set --
while read -r argument; do set -- "$@" "$argument"; done < /lab/arguments
set -o pipefail
status=0
[ ! -e /lab/then.sh ] || (set -e; . /lab/then.sh) || { status=1; echo "then.sh failed" > /tmp/soak; }
[ "$status" != 0 ] || contigo-board-tests "$@" < /dev/null 2>&1 | tee /tmp/soak || status=1
result=passed
[ "$status" = 0 ] || result=failed
said=$(tail -n 2 /tmp/soak | tr -d '"\\' | tr '\n\t' '; ')
echo "@row {\"kind\":\"check\",\"name\":\"soak\",\"status\":\"$result\",\"reason\":\"$said\"}"
echo 1 > /tmp/rows
(exit "$status")
