# SPDX-License-Identifier: MIT
# order_timeouts.test.sh PROGRAM FOLDER: 600 orders in about a second, killed in the middle and started again.
order_timeouts=$1

awk 'BEGIN {
    print "order,placed,limit"
    for (i = 0; i < 600; ++i)
        printf "%d,2026-03-02T09:%02d:%02d.%03dZ,%d\n", i, 10 + i % 5, i % 2, (i * 37) % 1000, 1200 - 60 * (i % 5)
}' >orders.csv

"$order_timeouts" orders.csv --lead 1 &
program=$!
# The ledger's 150th line is the sign to kill: then orders are in flight.
(timeout 60 tail -n +1 -F orders.ledger 2>/dev/null || true) | head -n 150 >/dev/null
kill -KILL "$program" || true # a slow machine may see the line when all is over
wait "$program" || true
"$order_timeouts" orders.csv --lead 1
"$order_timeouts" --check orders.csv

# A third start has nothing to do, and an order that is missing in the ledger is found.
[[ $("$order_timeouts" - <orders.csv) == *'0 are open'* ]]
sed -i '/^17 /d' orders.ledger
if "$order_timeouts" --check orders.csv; then exit 1; fi

# Wrong lines are named and nothing is submitted.
cat >wrong.csv <<'lines'
a1,2026-03-02T09:00:00Z,900
a 2,2026-03-02T09:00:00Z,900
a3,2026-02-30T09:00:00Z,900
a4,2026-03-02T09:00:00Z,soon
"a5",2026-03-02T09:00:00Z
a1,2026-03-02T09:00:00Z,900
a6,"2026-03-02T09:00:00Z",900,x
lines
code=0
"$order_timeouts" wrong.csv --db wrong.db 2>wrong.txt || code=$?
[[ $code == 2 && ! -e wrong.db ]]
diff - wrong.txt <<'lines'
wrong.csv:2:2: an order's id has only letters, digits and - _ .
wrong.csv:3:4: an instant looks like 2026-03-02T09:12:45.123Z
wrong.csv:4:25: the limit is a number of seconds, at most ten years of them
wrong.csv:5:26: three fields are needed: order,placed,limit
wrong.csv:6:1: order a1 stands in line 1
wrong.csv:7:30: more than three fields
lines
