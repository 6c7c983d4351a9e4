#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the benchmarks with optimisation, runs all of them and writes docs/benchmarks.md from what they print:
#   benchmarks/run.sh [--quick | --full] [--dir DIR]
# Stores lie below DIR (default: where temporary files lie): the disk there is what is measured. --quick shows in two
# minutes that all of it works; its page is build/release/results/benchmarks.md, for its figures mean nothing. --full
# measures ten million tasks, too. Or one of them alone, with its own arguments (--help lists them), and without a page:
#   benchmarks/run.sh durable [ARGUMENTS]    # the whole way beside the raw limit
#   benchmarks/run.sh sweep [ARGUMENTS]      # what justifies the defaults
#   benchmarks/run.sh growth [ARGUMENTS]     # whether cost grows with what a store holds
#   benchmarks/run.sh parts [ARGUMENTS]      # the parts, by Google Benchmark
#   benchmarks/run.sh page                   # docs/benchmarks.md once more, from the latest results
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source cmake/setup.sh

usage() { sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; }

what=all
quick=
full=
dir=${AX_BENCH_DIR:-${TMPDIR:-/tmp}}
case ${1:-} in
    durable | sweep | growth | parts | page)
        what=$1
        shift
        ;;
    *)
        while (($#)); do
            case $1 in
                --quick) quick=1 ;;
                --full) full=1 ;;
                --dir)
                    dir=${2:?--dir needs a directory}
                    shift
                    ;;
                --help)
                    usage
                    exit
                    ;;
                *)
                    usage >&2
                    exit 2
                    ;;
            esac
            shift
        done
        if [[ ! -d $dir ]]; then
            echo "There is no directory $dir" >&2
            exit 2
        fi
        ;;
esac

ax_install "${ax_packages[@]}" libbenchmark-dev
# What others offer stands beside ours, where it can be had.
(ax_install libasio-dev libuv1-dev libtbb-dev) || echo "Going on without what is missing of Asio, libuv and oneTBB" >&2
launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
cmake --preset release -DAX_BUILD_TESTS=OFF -DAX_BUILD_EXAMPLES=OFF "${launcher[@]}"
cmake --build build/release
programs=build/release/benchmarks
results=build/release/results

parts() { # folder for what is printed, or nothing; arguments of Google Benchmark
    local folder=$1 program module time
    for program in "$programs"/ax_bench_*; do
        if [[ ! -x $program || -d $program ]]; then continue; fi
        module=${program##*ax_bench_}
        if [[ $folder ]]; then
            echo "== $module"
            # A timer that is cancelled takes nothing beside what prepares it: a longer time would take minutes.
            if [[ $module == wheel ]]; then time=0.02; else time=0.1; fi
            "$program" --benchmark_out="$folder/$module.json" --benchmark_out_format=json \
                --benchmark_min_time=$time "${@:2}"
        else
            "$program" "${@:2}"
        fi
    done
}

rows() { # program, arguments: shown as they come, and kept
    local program=$1
    echo "== $*"
    "$programs/$program" --json --dir "$dir" "${@:2}" | tee "$results/$program.jsonl"
}

machine() {
    local value
    echo "date: $(date -u +%F), ax $(sed -n 's/^#define AX_VERSION_STRING "\(.*\)"/\1/p' include/ax/version.hpp)"
    value=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
    echo "processor: ${value:-$(uname -m)}, $(nproc) cores"
    echo "memory: $(awk '/^MemTotal/ {printf "%.0f GiB", $2 / 1048576}' /proc/meminfo)"
    echo "system: $(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release), kernel $(uname -r | cut -d- -f1)"
    echo "compiler: $(g++ --version | head -n 1), preset \`release\`"
    value=$(sed -n 's/^#define SQLITE_VERSION  *"\(.*\)"/\1/p' "$(echo '#include <sqlite3.h>' | g++ -E -x c++ - |
        sed -n 's/^# [0-9]* "\(.*sqlite3\.h\)".*/\1/p' | head -n 1)")
    echo "SQLite: $value, on $(stat -f -c %T "$dir")"
    if [[ $quick ]]; then echo "a quick run: its figures mean nothing"; fi
}

write_page() { # to where
    local page
    page=$("$programs/page" benchmarks/benchmarks.md.in "$results")
    printf '%s\n' "$page" >"$1"
    echo "Written: $1"
}

case $what in
    durable | sweep | growth) exec "$programs/$what" "$@" ;;
    parts) parts "" "$@" ;;
    page) write_page docs/benchmarks.md ;;
    all)
        rm -rf "$results"
        mkdir -p "$results"
        export AX_BENCH_DIR=$dir
        machine | tee "$results/machine.txt"
        brief=(--brief)
        if [[ $full ]]; then brief=(); fi
        if [[ $quick ]]; then
            rows durable --rounds 1 --scale 0.01 "${brief[@]}"
            rows sweep --rounds 1 --scale 0.01
            rows growth --rounds 1 --scale 0.01 "${brief[@]}"
            parts "$results" --benchmark_min_time=0.001 "--benchmark_filter=-/[0-9]{6,}"
            benchmarks/compile_cost.sh 1 | tee "$results/compile.txt"
            write_page "$results/benchmarks.md"
        else
            rows durable "${brief[@]}"
            rows sweep --rounds 1
            rows growth --rounds 2 "${brief[@]}"
            parts "$results"
            benchmarks/compile_cost.sh 5 | tee "$results/compile.txt"
            write_page docs/benchmarks.md
        fi
        ;;
esac
