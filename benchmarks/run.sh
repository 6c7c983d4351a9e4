#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the benchmarks with optimisation and runs them:
#   benchmarks/run.sh [arguments of durable]      # the whole way beside the raw limit; --help lists them
#   benchmarks/run.sh parts [arguments of Google Benchmark]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source cmake/setup.sh
ax_install "${ax_packages[@]}" libbenchmark-dev

cmake --preset release -DAX_BUILD_TESTS=OFF -DAX_BUILD_EXAMPLES=OFF
cmake --build build/release
if [[ ${1:-} == parts ]]; then
    for program in build/release/benchmarks/ax_bench_*; do
        if [[ -x $program ]]; then "$program" "${@:2}"; fi
    done
else
    exec build/release/benchmarks/durable "$@"
fi
