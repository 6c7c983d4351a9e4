// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

namespace bench {

/// A task as both sides are given it.
struct task {
    std::int64_t run_at = 0; ///< milliseconds since the epoch; 0: at once
    std::string key;         ///< empty: none
};

} // namespace bench
