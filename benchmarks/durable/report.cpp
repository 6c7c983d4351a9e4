// SPDX-License-Identifier: MIT
#include "durable/report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>

namespace bench {

namespace {

std::string short_number(double value) {
    if (value >= 1000) return fmt::format("{:.0f}", value);
    return fmt::format("{:.3g}", value);
}

nlohmann::ordered_json number_or_null(std::optional<double> value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

} // namespace

report::report(bool json, std::string durability) : json_(json), durability_(std::move(durability)) {
    if (json_) return;
    fmt::print("Both sides: {}. `<` behind a unit: less is better.\n", durability_);
    fmt::print("{:<32} {:<9} {:>10} {:>10} {:>7}  {}\n", "name", "unit", "ax", "raw", "ratio", "beside it");
}

void report::add(row const& one) {
    auto const less = one.direction == better::lower;
    if (json_) {
        nlohmann::ordered_json line{{"name", one.name}, {"unit", one.unit}, {"ax", one.ax}};
        line["raw"] = number_or_null(one.raw);
        line["ratio"] = number_or_null(one.ratio());
        line["better"] = less ? "lower" : "higher";
        line["durability"] = durability_;
        for (auto const& [name, value] : one.more) line[name] = value;
        fmt::print("{}\n", line.dump());
    } else {
        std::string beside;
        for (auto const& [name, value] : one.more)
            beside += fmt::format("{}{} {}", beside.empty() ? "" : ", ", name, short_number(value));
        fmt::print("{:<32} {:<9} {:>10} {:>10} {:>7}  {}\n", one.name, one.unit + (less ? " <" : ""),
                   short_number(one.ax), one.raw ? short_number(*one.raw) : "-",
                   one.ratio() ? fmt::format("{:.2f}", *one.ratio()) : "-", beside);
    }
    std::fflush(stdout);
}

} // namespace bench
