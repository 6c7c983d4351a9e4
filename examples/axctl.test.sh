#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# axctl.test.sh <program> <empty folder>: axctl gives the answers of the test data, and never stops at a bad line.
set -euo pipefail
axctl=$1
data=$(cd "$(dirname "${BASH_SOURCE[0]}")/../tests/data/cron" && pwd)

fail() { echo "axctl.test.sh: $*" >&2; exit 1; }

# The answers that the lines of a file hold, in the form in which axctl gives them.
expected() {
    sed -E 's/^.*"error": *true.*$/{"error"}/; s/^.*("(next|prev)": *\[[^]]*\]).*$/{\1}/' "$1" | tr -d ' '
}
answers() { "$axctl" cron check --jsonl | sed -E 's/^\{"error":".+"\}$/{"error"}/'; }

for file in vectors prev dialects; do
    expected "$data/$file.jsonl" >"$file.expected"
    answers <"$data/$file.jsonl" >"$file.answers"
    diff "$file.expected" "$file.answers" >/dev/null || fail "$file.jsonl: $(diff "$file.expected" "$file.answers" | head)"
    # Without `from` only: valid or not.
    sed -E 's/"from": *"[^"]*", *//' "$data/$file.jsonl" | answers >"$file.validity"
    sed -E 's/^\{"(next|prev)".*$/{"valid":true}/' "$file.expected" | diff - "$file.validity" >/dev/null ||
        fail "$file.jsonl: an expression is refused or taken without a from"
done
(($(wc -l <vectors.answers) == 880 && $(wc -l <prev.answers) == 133 && $(wc -l <dialects.answers) == 57)) ||
    fail "the files have other lengths"

# The same when the direction is asked for by name.
sed -E 's/"prev": *\[[^]]*\]/"want":"prev"/' "$data/prev.jsonl" | answers | diff prev.expected - || fail "want"

# Bad lines, each answered, none the last.
printf '%s\n' '' 'no json' '{"expr":' '[1]' '17' '{}' '{"expr":5}' '{"expr":"0 0 * * *","tz":"Mars/Base"}' \
    '{"expr":"0 0 * * *","dialect":"latin"}' '{"expr":"0 0 * * *","from":"soon"}' '{"expr":"0 0 * * *","from":5}' \
    '{"expr":"0 0 * * *","from":"2026-02-30T00:00:00Z"}' '{"expr":"0 0 * * *","from":"2026-01-01T00:00:00Z","count":-1}' \
    '{"expr":"0 0 * * *","from":"2026-01-01T00:00:00Z","want":"both"}' $'{"expr":"\xff"}' $'\x01\xfe' >bad.jsonl
printf '{"expr":"0 0 * * *","from":"2026-01-01T00:00:00Z","count":1}' >>bad.jsonl # and no line end
answers <bad.jsonl >bad.answers
(($(wc -l <bad.answers) == 17)) || fail "bad lines: $(wc -l <bad.answers) answers"
(($(grep -cx '{"error"}' bad.answers) == 16)) || fail "a bad line is taken: $(cat bad.answers)"
[[ $(tail -n 1 bad.answers) == '{"next":["2026-01-02T00:00:00Z"]}' ]] || fail "the line after the bad ones"

check() { # expected output, arguments
    local want=$1 got
    shift
    got=$("$axctl" "$@" 2>/dev/null) || fail "axctl $*: failed"
    [[ $got == "$want" ]] || fail "axctl $*: $got"
}
check $'2026-03-28T01:30:00Z\n2026-03-29T01:00:00Z\n2026-03-30T00:30:00Z' \
    cron next '30 2 * * *' --zone Europe/Berlin --from 2026-03-28T00:00:00Z --count 3
check '2026-03-29T01:00:00Z  2026-03-29 03:00:00 Europe/Berlin' \
    cron next --count=1 --zone=Europe/Berlin --from '2026-03-28T12:00+01:00' --local '30 2 * * *'
check '2026-03-27T12:00:00Z' cron prev '0 0 12 ? * FRI' --dialect quartz --from 2026-03-28 --count 1
check '' cron next '0 0 30 2 *'
(($("$axctl" cron next '@hourly' | wc -l) == 5)) || fail "five are shown where no number is asked for"
check 'at minute 30, hours 9 to 17, on Monday to Friday' cron describe '30 9-17 * * MON-FRI'
check '0 0 1-3 1 *' cron check '0 0 1,2,3 JAN *'

for wrong in 'cron next' 'cron next 61*' 'cron next @daily --count x' 'cron next @daily --zone Mars/Base' \
    'cron next @daily --from' 'cron describe @never' 'cron' 'cron fly' '' 'cron check @daily more'; do
    # shellcheck disable=SC2086
    if "$axctl" $wrong >out.txt 2>err.txt; then fail "axctl $wrong: taken"; fi
    [[ -s err.txt && ! -s out.txt ]] || fail "axctl $wrong: says nothing, or not where it should"
done
{ "$axctl" cron next '0 24 * * *' || true; } 2>&1 | grep -q 'column 3, hour: "24" is out of range; allowed: 0-23' ||
    fail "the reason"
"$axctl" --help | grep -q 'axctl cron next EXPR' || fail "--help"

# shellcheck source=axctl/store.test.sh
source "$(dirname "${BASH_SOURCE[0]}")/axctl/store.test.sh"
# shellcheck source=axctl/definitions.test.sh
source "$(dirname "${BASH_SOURCE[0]}")/axctl/definitions.test.sh"
