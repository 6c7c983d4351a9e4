# SPDX-License-Identifier: MIT
# exactly_once.test.sh PROGRAM FOLDER: 900 orders fall due within four seconds; the program is killed (SIGKILL) at twenty
# random instants and started again.
exactly_once=$1

awk 'BEGIN {
    print "order,placed,limit"
    for (i = 0; i < 900; ++i)
        printf "%d,2026-03-02T09:%02d:%02d.%03dZ,%d\n", i, 10 + i % 5, i % 4, (i * 37) % 1000, 1200 - 60 * (i % 5)
}' >orders.csv

RANDOM=7
for ((kills = 0; kills < 20; ++kills)); do
    "$exactly_once" orders.csv shop.db &
    program=$!
    sleep "0.$(printf '%03d' $((50 + RANDOM % 300)))"
    kill -KILL "$program" || true # it may have closed all already
    wait "$program" || true
done 2>/dev/null
timeout 60 "$exactly_once" orders.csv shop.db
"$exactly_once" --check orders.csv shop.db

# The check can fail, and another start closes nothing again.
"$exactly_once" orders.csv shop.db
"$exactly_once" --check orders.csv shop.db >again.txt
echo '900,2026-03-02T09:00:00Z,900' >>orders.csv
if "$exactly_once" --check orders.csv shop.db; then exit 1; fi
