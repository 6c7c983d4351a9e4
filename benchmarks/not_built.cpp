// SPDX-License-Identifier: MIT
// Names, at the head of what a benchmark prints, the baselines whose packages were not there when it was built.
#include <benchmark/benchmark.h>

namespace {
[[maybe_unused]] bool const told = (benchmark::AddCustomContext("not built", AX_BENCH_NOT_BUILT), true);
} // namespace
