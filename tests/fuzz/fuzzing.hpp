// SPDX-License-Identifier: MIT
// What the fuzzers of this folder share.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace fuzzing {

/// Ends the process, which is a finding, where a promise does not hold.
inline void require(bool holds, char const* promise) {
    if (holds) return;
    std::fprintf(stderr, "broken: %s\n", promise);
    std::abort();
}

} // namespace fuzzing
