#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# reliability.sh has to be able to fail, in each of its ways.
set -euo pipefail
check=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/reliability.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

printf '# a section\nF001\nF002\n' >faults
cat >tests <<'END'
Test project /somewhere
  Test   #1: gcc/core: an error; of [odd] signs, and more: it is found
  Test  #12: gcc/storage: kept
  Test #123: gcc/fuzz: cron finds nothing (Disabled)
  Test #124: gcc/kill: not built
  Test #125: other/core: of another tree
END
good_1='| F001 | lost | kept | `core: an error; of [odd] signs, and more: it is found`, `storage: kept` |'
good_2='| F002 | late | on time | *later*: nodes |'

# expect <status> <words> <line ...>: what the check says of a page with these lines
expect() {
    local status=$1 words=$2 result=0
    shift 2
    { echo '| id | what | here | proof |'; echo '|---|---|---|---|'; printf '%s\n' "$@"; } >page
    bash "$check" page faults "${label:-gcc}" cat tests >said 2>&1 || result=$?
    if ((result != status)) || [[ $(<said) != *"$words"* ]]; then
        echo "expected $status and '$words', got $result and:" >&2
        cat page said >&2
        exit 1
    fi
}

expect 0 '' "$good_1" "$good_2"
expect 0 '' "$good_2" 'other text' "$good_1"
expect 0 '' "$good_1" '| F002 | late | on time | `fuzz: cron finds nothing` |'
expect 1 'F001: has no line' "$good_2"
expect 1 'F001: has two lines' "$good_1" "$good_1" "$good_2"
expect 1 'F003: there is no such fault' "$good_1" "$good_2" '| F003 | a | b | *open* |'
expect 1 'F002: ctest lists no test "storage: lost"' "$good_1" '| F002 | late | on time | `storage: kept`, `storage: lost` |'
expect 1 'F002: ctest lists no test "core: of another tree"' "$good_1" '| F002 | late | on time | `core: of another tree` |'
expect 1 'F002: ctest lists no test "storage: kep"' "$good_1" '| F002 | late | on time | `storage: kep` |'
expect 1 'F002: neither a test nor a word' "$good_1" '| F002 | late | on time | surely |'
expect 1 'F002: a backtick without its other one' "$good_1" '| F002 | late | on time | `storage: kept`, `storage: |'
expect 1 'F002: the line does not have four cells' "$good_1" '| F002 | late | `storage: kept` |'
expect 1 'F002: an empty cell' "$good_1" '| F002 | late | | `storage: kept` |'
expect 77 '1 tests are of programs that were not built' "$good_1" '| F002 | late | on time | `kill: kept` |'
expect 1 'F001: has no line' '| F002 | late | on time | `kill: kept` |'
label=none expect 1 "no test is listed with the label 'none'" "$good_1" "$good_2"
: >faults
expect 1 'the list of faults is empty' ''
