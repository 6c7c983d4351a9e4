# SPDX-License-Identifier: MIT
# crontab.test.sh PROGRAM FOLDER: days with a clock change compared with the slow search, commands, a restart.
crontab=$1
search=$(dirname "$1")/cron_search
data=$(dirname "${BASH_SOURCE[0]}")/data

compare() {
    "$crontab" --day "$1" --zone "$2" --list "$data/real-expressions.crontab" 2>wrong.txt | sort >runs.txt || true
    "$search" "$1" "$2" "$data/real-expressions.crontab" 2>search-wrong.txt | sort >search-runs.txt
    [[ -s runs.txt ]]
    diff search-runs.txt runs.txt
    sed 's/.*crontab:\([0-9]*\):.*/\1/' wrong.txt | diff search-wrong.txt -
}
compare 2026-03-29 Europe/Berlin
compare 2026-11-01 America/Havana # the clocks go back at 01:00
[[ $("$crontab" --day 2026-03-29 --zone Europe/Berlin "$data/01-user-plain.crontab") == \
    *'  26  30 2 * * *              1 run   03:00  echo backup'* ]]

# Wrong lines are named, and the others run.
code=0
"$crontab" --day 2026-03-29 --zone UTC "$data/12-mistakes.crontab" >good.txt 2>wrong.txt || code=$?
[[ $code == 1 ]]
grep -q 'good line among bad ones' good.txt
grep -q '12-mistakes.crontab:11:1: minute: "60" is out of range' wrong.txt

# Commands: settings, input, output of both kinds, exit codes, and a stop.
cat >jobs.crontab <<'lines'
GREETING = "good day"
@reboot  echo "$GREETING from $LOGNAME" >&2
@reboot  cat%first%second
@reboot  exit 3
@reboot  kill -9 $$
0 0 1 1 *  true
0 0 1 1 *  true
lines
code=0
HOME=$PWD "$crontab" --execute --runs 4 --zone UTC jobs.crontab >ran.txt || code=$?
[[ $code == 0 ]]
grep -q '^schedules in crontab.db: 2 kept, 0 forgotten; the next is due at ' ran.txt
for expected in "jobs.crontab:2  | good day from $(id -un)" 'jobs.crontab:2  done' 'jobs.crontab:3  | first' \
    'jobs.crontab:3  | second' 'jobs.crontab:4  exit code 3' 'jobs.crontab:5  killed by signal 9'; do
    grep -qF "$expected" ran.txt || { echo "missing: $expected"; cat ran.txt; exit 1; }
done

# At the next start a line that is gone is forgotten, and a new one is kept; without --execute nothing is run.
cat >jobs.crontab <<'lines'
@reboot  touch executed
0 0 1 1 *  true
lines
"$crontab" --runs 1 --zone UTC jobs.crontab >ran.txt
grep -q '^schedules in crontab.db: 1 kept, 1 forgotten' ran.txt
grep -q 'would run: touch executed' ran.txt
[[ ! -e executed && ! -e ~/executed ]]
