# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Read by axctl.test.sh: the commands on a store file, beside a program that owns it (hello) and after it was killed.
hello=$(dirname "$axctl")/hello
[[ -x $hello ]] || fail "$hello is not built"

# has PATTERN ARGUMENTS...: the answer matches.
has() {
    local want=$1 got
    shift
    got=$("$axctl" "$@") || fail "axctl $*: failed"
    [[ $got =~ $want ]] || fail "axctl $*: no \"$want\" in: $got"
}
refuses() { # words in the message, arguments
    local want=$1 got
    shift
    if got=$("$axctl" "$@" 2>&1 >/dev/null); then fail "axctl $*: taken"; fi
    [[ $got == *"$want"* ]] || fail "axctl $*: no \"$want\" in: $got"
}

for verb in list stats verify show stuck cancel retry pause resume; do
    for words in "$verb --help" "help $verb" "$verb shop.db -h"; do
        # shellcheck disable=SC2086
        got=$("$axctl" $words) || fail "axctl $words: failed"
        [[ $got == *"axctl $verb FILE"*--json* ]] || fail "axctl $words: $got"
        (($(grep -c '^  axctl ' <<<"$got") == 1)) || fail "axctl $words: tells of others as well: $got"
    done
    grep -q "^  axctl $verb FILE" <<<"$("$axctl" --help)" || fail "--help leaves out $verb"
done
[[ $("$axctl" list shop.db --limit x 2>&1 >/dev/null || true) == *'axctl list FILE'*'--state S'* ]] || fail "the usage of the one that is misused"
if "$axctl" fly --help >/dev/null 2>&1; then fail "axctl fly --help: taken"; fi

refuses 'does not exist' list shop.db
[[ ! -e shop.db ]] || fail "a look has made a store"

coproc owner { exec "$hello"; }
# shellcheck disable=SC2154 # bash sets it
owner_pid=$owner_PID
read -r _ <&"${owner[0]}" # it has stored the order

has 'ready +close-order .* close-42' list shop.db
has '"node": null' list shop.db --json
has '"state": "ready"' list shop.db --json --state ready
has '^\[\]$' list shop.db --json --state dead
has 'task +1' show shop.db close-42
has '"key": "close-42"' show shop.db 1 --json
has '"payload": \{[^}]*"order_id": 42' show shop.db key:close-42 --json
has 'waits for +its time' show shop.db close-42
has 'task 1: done, cancelled' cancel shop.db close-42
has 'state +cancelled' show shop.db 1
refuses '' cancel shop.db 1
has '"outcome": "done"' retry shop.db 1 --json
has 'paused' pause shop.db close-order
has 'waits for +its type to be resumed' show shop.db close-42
has 'close-order \(paused\)' stats shop.db
has 'resumed' resume shop.db close-order
has '^\[\]$' stuck shop.db --json
read -r line <&"${owner[0]}" # the retried order runs, within the owner's next look at the store
[[ $line == 'order 42: closed by attempt 1' ]] || fail "beside its owner: $line"
wait "$owner_pid" || true
has 'attempt 1 +succeeded' show shop.db close-42
has '"outcome": "succeeded"' show shop.db 1 --json

has 'close-order.*1 succeeded.*lateness +p50' stats shop.db
has '"succeeded": 1' stats shop.db --json
has '"run_time_ms": \{' stats shop.db --json
has '^nothing impossible' verify shop.db
has '^\[\]$' verify shop.db --repair --json

# Every member of the JSON is explained in the docs, under its name.
docs=$(dirname "${BASH_SOURCE[0]}")/../../docs/axctl.md
members() { "$axctl" "$@" --json | grep -oE '"[a-z_0-9]+":' | tr -d '":' | sort -u; }
for member in $(members show shop.db 1) $(members list shop.db) $(members stats shop.db) \
    $(members pause shop.db close-order) $(members resume shop.db close-order); do
    [[ $member == order_id ]] && continue # of the payload
    grep -q "\`$member\`" "$docs" || fail "docs/axctl.md does not explain \"$member\""
done
has '"priority": "normal"' list shop.db --json
has '"waits_for_limit": false' list shop.db --json
has '"deadline": null' list shop.db --json
has '"created": "20[0-9-]+T[0-9:.]+Z"' list shop.db --json
has '"node": "[0-9]+"' show shop.db 1 --json
refuses 'there is no task close-43' show shop.db close-43
refuses 'there is no task 99' cancel shop.db 99
refuses 'there is no task type "nobody"' pause shop.db nobody
refuses 'is no state' list shop.db --state asleep
refuses 'is no length' stuck shop.db --for soon
refuses 'file is missing' list
refuses 'not understood' list shop.db more
echo 'no database at all, but long enough to be taken for one by nobody' >text.db
refuses 'text.db' list text.db
