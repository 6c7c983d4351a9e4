#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs what is missing, builds, and runs every test:
#   tests/run.sh [gcc|clang|asan|tsan ...] [-- arguments of ctest]
# Without a name it does gcc, asan and tsan, each in a build tree of its own, and ends with one summary for them all.
# The sanitizers are Clang's, with the same warnings as errors: a tree of Clang without them would find nothing more.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source cmake/setup.sh

# Where the kernel spreads addresses over more than 28 bits, the thread sanitizer of Clang 14 to 17 often finds no place
# for its shadow memory. Started again without that spreading, it always does; a container may forbid the change.
if (($(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0) > 28)) &&
    [[ $(cat /proc/self/personality 2>/dev/null || true) == 00000000 ]] && setarch -R true 2>/dev/null; then
    exec setarch -R "$PWD/tests/run.sh" "$@"
fi

presets=()
while (($# > 0)); do
    case $1 in
        gcc) presets+=(dev) ;;
        clang | asan | tsan) presets+=("$1") ;;
        --) shift; break ;;
        *) echo "usage: tests/run.sh [gcc|clang|asan|tsan ...] [-- arguments of ctest]" >&2; exit 2 ;;
    esac
    shift
done
if ((${#presets[@]} == 0)); then presets=(dev asan tsan); fi

ax_install "${ax_packages[@]}" "${ax_test_packages[@]}"

for preset in "${presets[@]}"; do ax_build "$preset"; done

# One run of ctest over all trees: a file that leads to them is all it needs.
mkdir -p build/all
for preset in "${presets[@]}"; do echo "subdirs([==[$PWD/build/$preset]==])"; done >build/all/CTestTestfile.cmake
exec ctest --test-dir build/all --parallel "$(nproc)" --output-on-failure --no-tests=error "$@"
