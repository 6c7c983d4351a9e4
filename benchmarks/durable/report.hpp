// SPDX-License-Identifier: MIT
// The rows of the benchmark: a table for people, or lines of JSON.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

enum class better { higher, lower };

/// One row: the same work done by ax and by the raw limit, in one run.
struct row {
    std::string name;
    std::string unit;
    better direction = better::higher; ///< of two values, which is the better one
    double ax = 0;
    std::optional<double> raw;                             ///< none: there is no such thing to compare with
    std::vector<std::pair<std::string, double>> more = {}; ///< what stands beside it

    std::optional<double> ratio() const {
        if (!raw || *raw == 0) return {};
        return ax / *raw;
    }
};

class report {
  public:
    /// @param durability  What the commits of all rows survive.
    report(bool json, std::string durability);
    void add(row const& one);

  private:
    bool json_;
    std::string durability_;
};

} // namespace bench
