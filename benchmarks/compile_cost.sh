#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What it costs to include <ax/ax.hpp>, as a multiple of <nlohmann/json.hpp> in the same run:
#   benchmarks/compile_cost.sh [repetitions]
# For each compiler the median processor time of a file that includes the one header and nothing else. The limit is 1.5 times.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
repetitions=${1:-7}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

echo '#include <nlohmann/json.hpp>' >"$scratch/json.cpp"
echo '#include <ax/ax.hpp>' >"$scratch/ax.cpp"

milliseconds() { # compiler, file: the processor's time, which other work on the machine does not lengthen
    local TIMEFORMAT='%3U %3S' user system
    if ! { time "$1" -std=c++20 -Iinclude -c "$scratch/$2.cpp" -o "$scratch/out.o" 2>"$scratch/errors"; } 2>"$scratch/time"; then
        cat "$scratch/errors" >&2
        exit 1
    fi
    read -r user system <"$scratch/time"
    echo $((10#${user/[.,]/} + 10#${system/[.,]/}))
}

median() { sort -n | sed -n "$((($1 + 1) / 2))p"; }

printf '%-40s %10s %10s %7s\n' compiler json.hpp ax.hpp ratio
for compiler in g++ clang++; do
    command -v "$compiler" >/dev/null || continue
    milliseconds "$compiler" json >/dev/null # the files are in memory from here on
    milliseconds "$compiler" ax >/dev/null
    # By turns, so that a busy moment of the machine meets both.
    for ((i = 0; i < repetitions; ++i)); do
        milliseconds "$compiler" json >>"$scratch/$compiler.json"
        milliseconds "$compiler" ax >>"$scratch/$compiler.ax"
    done
    json=$(median "$repetitions" <"$scratch/$compiler.json")
    ax=$(median "$repetitions" <"$scratch/$compiler.ax")
    printf '%-40s %7d ms %7d ms %4d.%02d\n' "$("$compiler" --version | head -n 1)" "$json" "$ax" \
        $((ax / json)) $((ax * 100 / json % 100))
done
