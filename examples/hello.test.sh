# SPDX-License-Identifier: MIT
# hello.test.sh PROGRAM FOLDER: the first start closes the order, the second finds that it is closed.
hello=$1

expect() {
    if [[ $1 != "$2" ]]; then
        printf 'expected:\n%s\nfound:\n%s\n' "$2" "$1" >&2
        exit 1
    fi
}

expect "$("$hello")" 'order 42: stored, will be closed in two seconds
order 42: closed by attempt 1
order 42: succeeded'
expect "$("$hello")" 'order 42: known already, succeeded
order 42: succeeded'

# Killed while it waits, it goes on where it was: the second start runs what the first one stored.
rm shop.db*
coproc first { exec "$hello"; }
# shellcheck disable=SC2154 # bash sets it
first_pid=$first_PID
read -r line <&"${first[0]}"
expect "$line" 'order 42: stored, will be closed in two seconds'
kill -KILL "$first_pid"
wait "$first_pid" || true
expect "$("$hello")" 'order 42: known already, ready
order 42: closed by attempt 1
order 42: succeeded'
