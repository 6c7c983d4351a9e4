// SPDX-License-Identifier: MIT
// What the library is meant to reach.
#pragma once

#include "page/results.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace page {

struct goal {
    std::string what;
    std::string unit; ///< "": a ratio to raw
    bool at_least = false;
    double floor = 0;
    std::optional<double> aim; ///< none: the floor is all
    std::optional<double> measured;

    bool meets(double bound) const { return at_least ? *measured >= bound : *measured <= bound; }
};

std::vector<goal> goals(results const& from);

} // namespace page
