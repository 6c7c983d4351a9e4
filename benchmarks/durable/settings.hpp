// SPDX-License-Identifier: MIT
// What one says on the command line of durable, sweep and growth.
#pragma once

#include "workplace.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

struct settings {
    bool json = false;
    std::filesystem::path dir = usual_place();
    std::size_t rounds = 3;
    double scale = 1;
    std::size_t backlog = 0;
    std::size_t workers = 2;
    bool power_loss = true;
    bool brief = false; ///< leaves out what needs ten million tasks
    std::vector<std::string> names;

    /// Whether a row is to be measured: it was named, or its beginning was, or none was.
    bool wants(std::string_view name) const {
        return names.empty() || std::ranges::any_of(names, [&](std::string const& n) { return name.starts_with(n); });
    }
    /// Whether any row is to be measured whose name begins so.
    bool wants_some(std::string_view beginning) const {
        return wants(beginning) ||
               std::ranges::any_of(names, [&](std::string const& n) { return n.starts_with(beginning); });
    }
    std::size_t scaled(double count) const {
        return (std::max<std::size_t>)(static_cast<std::size_t>(count * scale), 1);
    }
    std::string durability() const { return power_loss ? "power_loss" : "process_crash"; }
};

/// Reads the command line into `to`. Where the program is to end at once, the answer is its exit code.
std::optional<int> read_settings(settings& to, std::string_view program, int count, char** values);

} // namespace bench
