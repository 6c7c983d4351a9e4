// SPDX-License-Identifier: MIT
// The rows of the benchmark: a table for people, or lines of JSON.
#pragma once

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// One row: the same work done by ax and by the raw limit, in one run.
struct row {
    std::string name;
    std::string unit;
    double ax = 0;
    std::optional<double> raw;                             ///< none: there is no such thing to compare with
    std::vector<std::pair<std::string, double>> more = {}; ///< what stands beside it

    std::optional<double> ratio() const {
        if (!raw || *raw == 0) return {};
        return ax / *raw;
    }
};

inline std::string short_number(double value) {
    if (value >= 1000) return fmt::format("{:.0f}", value);
    return fmt::format("{:.3g}", value);
}

class report {
  public:
    explicit report(bool json) : json_(json) {
        if (!json_)
            fmt::print("{:<26} {:<8} {:>10} {:>10} {:>7}  {}\n", "name", "unit", "ax", "raw", "ratio", "beside it");
    }

    void add(row const& one) {
        if (json_) {
            nlohmann::ordered_json line{{"name", one.name}, {"unit", one.unit}, {"ax", one.ax}};
            line["raw"] = one.raw ? nlohmann::ordered_json(*one.raw) : nlohmann::ordered_json();
            line["ratio"] = one.ratio() ? nlohmann::ordered_json(*one.ratio()) : nlohmann::ordered_json();
            for (auto const& [name, value] : one.more) line[name] = value;
            fmt::print("{}\n", line.dump());
        } else {
            std::string beside;
            for (auto const& [name, value] : one.more)
                beside += fmt::format("{}{} {}", beside.empty() ? "" : ", ", name, short_number(value));
            fmt::print("{:<26} {:<8} {:>10} {:>10} {:>7}  {}\n", one.name, one.unit, short_number(one.ax),
                       one.raw ? short_number(*one.raw) : "-", one.ratio() ? fmt::format("{:.2f}", *one.ratio()) : "-",
                       beside);
        }
        std::fflush(stdout);
    }

  private:
    bool json_;
};

} // namespace bench
