#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs what is missing, builds the examples, and shows and checks what they do, in less than two minutes:
#   examples/run.sh
#   examples/run.sh name [arguments]      runs that one instead
# Ends with 1 where a check fails. All that it writes lies in build/ and in a temporary folder that goes again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source cmake/setup.sh

if (($# > 0)) && [[ ! -f examples/$1.cpp ]]; then
    echo "There is no example '$1'; there are: $(cd examples && printf '%s ' *.cpp | sed 's/\.cpp//g')" >&2
    exit 2
fi
ax_install "${ax_packages[@]}"

work=$(mktemp -d)
running=
# shellcheck disable=SC2317 # called by the trap
clean_up() {
    if [[ $running ]]; then kill -KILL "$running" 2>/dev/null || true; fi
    rm -rf "$work"
}
trap clean_up EXIT

targets=(example_hello example_order_timeouts example_workflow example_crontab example_cron_search)
if (($# > 0)); then targets=("example_$1"); fi
echo "Building into build/examples; the first time this takes a minute or two."
if ! ax_build examples --target "${targets[@]}" >"$work/build.txt" 2>&1; then
    cat "$work/build.txt" >&2
    exit 1
fi
if (($# > 0)); then
    trap - EXIT
    rm -rf "$work"
    exec "build/examples/examples/$1" "${@:2}"
fi

bin=$PWD/build/examples/examples
data=$PWD/examples/data
cd "$work"
SECONDS=0

title() { printf '\n== %s\n' "$1"; }
fail() {
    echo "FAILED: $1" >&2
    exit 1
}

title "hello: an order is closed two seconds from now. A second start knows that it is done."
"$bin/hello"
"$bin/hello" | tee hello.txt
grep -q 'known already, succeeded' hello.txt || fail "the second start should have known the order"

title "order_timeouts: 20,000 orders fall due within ten seconds. The program is killed in the middle (SIGKILL)."
"$bin/order_timeouts" "$data/orders.csv" &
running=$!
# The 9,000th line of the ledger is the sign to kill.
(timeout 60 tail -n +1 -F orders.ledger 2>/dev/null || true) | head -n 9000 >lines.txt
kill -KILL "$running" || fail "the program ended before it could be killed"
wait "$running" 2>/dev/null || true
running=
echo "killed after $(grep -vc '^#' orders.ledger) orders; started again:"
"$bin/order_timeouts" "$data/orders.csv" || fail "the second start"
echo "judged by the ledger that the handlers wrote, and by the history of each repeated order:"
"$bin/order_timeouts" --check "$data/orders.csv" || fail "an order was lost, or was closed twice without a reason"

title "workflow: a recorded graph of 1,004 tasks, killed in the middle and started again"
graph=$data/../../tests/data/workflows/bwa-chameleon-medium-004.json
"$bin/workflow" "$graph" flow.db --speed 150 >/dev/null &
running=$!
sleep 1.5
kill -KILL "$running" || fail "the program ended before it could be killed"
wait "$running" 2>/dev/null || true
running=
"$bin/workflow" "$graph" flow.db --speed 150 | tail -n 2 | cut -c 1-150
"$bin/workflow" --check "$graph" flow.db || fail "a task of the workflow had no effect, or had it twice"

title "crontab: the day in Berlin on which 02:00 to 03:00 does not exist, in a moment"
"$bin/crontab" --day 2026-03-29 --zone Europe/Berlin "$data/01-user-plain.crontab"

title "crontab: wrong lines are named, the others are kept"
if "$bin/crontab" --day 2026-03-29 --zone Europe/Berlin "$data/12-mistakes.crontab" >good.txt 2>wrong.txt; then
    fail "wrong lines should have been told by the exit code"
fi
sed "s|^$data/||" wrong.txt | sed -n '1,4p'
echo "... $(wc -l <wrong.txt) wrong lines, $(($(wc -l <good.txt) - 1)) kept"

title "crontab: every schedule of 378 real lines, compared with a search minute by minute"
while read -r day zone what; do
    "$bin/crontab" --day "$day" --zone "$zone" --list "$data/real-expressions.crontab" 2>wrong.txt | sort >runs.txt || true
    "$bin/cron_search" "$day" "$zone" "$data/real-expressions.crontab" 2>search-wrong.txt | sort >search-runs.txt
    sed 's/.*crontab:\([0-9]*\):.*/\1/' wrong.txt >wrong-lines.txt
    [[ -s runs.txt ]] || fail "no runs on $day in $zone"
    diff search-runs.txt runs.txt >&2 || fail "runs differ on $day in $zone: < search, > crontab"
    diff search-wrong.txt wrong-lines.txt >&2 || fail "the two disagree on which lines are wrong"
    printf '%s  %-20s %5d runs agree, %d lines refused by both   %s\n' "$day" "$zone" "$(wc -l <runs.txt)" \
        "$(wc -l <wrong-lines.txt)" "$what"
done <<'days'
2026-03-29 Europe/Berlin       02:00 to 03:00 is skipped
2026-10-25 Europe/Berlin       02:00 to 03:00 comes twice
2026-11-01 America/Havana      00:00 to 01:00 comes twice
2026-10-04 Australia/Lord_Howe half an hour is skipped
2024-03-30 America/Nuuk        23:00 to 24:00 is skipped
2024-03-31 America/Nuuk        and made up for at 00:00 of this day
2011-12-31 Pacific/Apia        the day before was skipped as a whole
2026-12-31 UTC                 a plain day
days

title "crontab --execute: commands with settings, input and exit codes"
cat >jobs.crontab <<'lines'
GREETING = "good day"
@reboot  echo "$GREETING from $LOGNAME"
@reboot  sort%pear%apple
@reboot  exit 3
30 2 * * *  true
lines
cat jobs.crontab
echo "--"
"$bin/crontab" --execute --runs 3 --zone Europe/Berlin jobs.crontab | tee ran.txt
for expected in '| good day from ' '| apple' 'exit code 3'; do
    grep -qF "$expected" ran.txt || fail "a command did not run as it should: there is no \"$expected\""
done

printf '\nAll checks passed, in %d seconds.\n' "$SECONDS"
