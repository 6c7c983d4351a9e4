// SPDX-License-Identifier: MIT
#pragma once

#include "ax/time/time_point.hpp"

namespace test {

/// Where the time of most tests begins, and the manual clock too: 2026-01-01 00:00 UTC.
inline constexpr ax::time_point t0{ax::duration{1'767'225'600'000}};

} // namespace test
