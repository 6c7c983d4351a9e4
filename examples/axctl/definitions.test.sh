# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Read by axctl.test.sh: documents of definitions, and the schedules and workflows of a store (that of `definitions`).
definitions=$(dirname "$axctl")/definitions
[[ -x $definitions ]] || fail "$definitions is not built"

cat >good.json <<'JSON'
{"workflows": [{"name": "w", "tasks": [{"name": "a", "type": "t"}]}],
 "schedules": [{"name": "s", "every": "1h", "workflow": "w"}]}
JSON
cat >bad.json <<'JSON'
{"workflows": [{"name": "w", "tasks": [{"name": "a", "type": "t", "after": ["b"]}, {"name": "b", "type": "t", "after": ["a"]}]}],
 "schedules": [{"name": "s", "cron": "0 24 * * *", "type": "t"}]}
JSON
check 'no fault; task types: 0, workflows: 1, schedules: 1' declare good.json --check
check '[]' declare --check good.json --json
got=$("$axctl" declare --check - <bad.json) && fail 'declare: a bad document is taken'
[[ $got == '/workflows/0/tasks: workflow "w": cycle: a -> b -> a
/schedules/0/cron: column 3, hour: "24" is out of range; allowed: 0-23' ]] || fail "declare --check: $got"
got=$("$axctl" declare --check bad.json --json) && fail 'declare: a bad document is taken'
[[ $got == *'"path": "/schedules/0/cron"'* ]] || fail "declare --check --json: $got"
refuses 'cannot be read' declare nowhere.json --check
refuses 'only with --check' declare good.json

for _ in 1 2; do # the second start finds all as it was
    "$definitions" >definitions.txt || fail "definitions: $(cat definitions.txt)"
done
grep -q '^nightly: as before$' definitions.txt || fail "definitions: $(cat definitions.txt)"
db=definitions.db
has 'nightly +20[0-9-]+T0[0-9:]+Z +0 +0 +report, cron "0 3 \* \* \*" in Europe/Berlin' schedules $db
has '"misfire": "within 21600000"' schedules $db --json
has '"payload": \{[^}]*"day": "\{\{ds - 1d\}\}"' schedules $db --json
has '^20[0-9-]+T0[12]:00:00Z  20[0-9-]+ 03:00:00 Europe/Berlin, runs at 20' preview $db nightly --count 1
(($("$axctl" preview $db nightly | wc -l) == 10)) || fail "preview: ten where no number is asked for"
has '"missed": false' preview $db nightly --json --count=1
has 'runs at 20[^ ]+: cron "0 3 \* \* \*" in Europe/Berlin; [0-9]+ ms later by its spread' preview $db nightly --count 1
has '"why": "cron ' preview $db nightly --json --count 1
refuses 'there is no schedule daily' preview $db daily
refuses 'at most 10000' preview $db nightly --count 10001
refuses 'is missing' preview $db

has 'succeeded +register +20[^ ]+ 2 succeeded, 1 dead; register-7' workflow list $db
has '"key": "register-7"' workflow list $db --json
for name in register register-7 key:register-7 1 2; do # of an id that is a task's, its workflow
    has '^workflow 1  register  key register-7' workflow show $db $name
done
got=$("$axctl" workflow show $db register)
[[ $got == *$'succeeded, 3 of 3 ended: 2 succeeded, 1 dead\n'* ]] || fail "workflow show: $got"
[[ $got =~ 'critical path: account ('.*') > sms ('.*') > done (' ]] || fail "workflow show: $got"
[[ $got =~ $'\n'account\ +succeeded.*$'\n'\ \ sms\ +dead.*after\ account$'\n'\ \ \ \ done\ +succeeded.*after\ account,\ sms\ \(all_done\) ]] ||
    fail "workflow show: $got"
has '"critical_path": \[' workflow show $db register --json
has '^digraph "register" \{' workflow show $db register --dot
has 'workflow +register \(1\)' show $db 2
has '"workflow": \{[^}]*"name": "register"' show $db 2 --json
has 'register-7, of register' list $db
has '"workflow": \{[^}]*"id": 1' list $db --json
refuses 'there is no workflow nobody' workflow show $db nobody
refuses 'list or show' workflow
refuses 'does not exist' workflow list no.db
for verb in declare schedules preview workflow; do
    [[ $("$axctl" "$verb" --help) == *"  axctl $verb "*--json* ]] || fail "axctl $verb --help"
    [[ $("$axctl" --help) == *"  axctl $verb "* ]] || fail "--help leaves out $verb"
done
