// SPDX-License-Identifier: MIT
// What run.sh has left in its folder of results.
#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace page {

/// One benchmark of a program of Google Benchmark: `function<variant>/arguments`.
struct part {
    std::string function;
    std::string variant;   ///< between < and >; else empty
    std::string arguments; ///< "1024/0"; else empty
    std::string label;
    double nanoseconds = 0; ///< an item, where there are items
    nlohmann::json all;     ///< as it was written
};

class results {
  public:
    explicit results(std::filesystem::path const& folder);

    /// The rows of durable, sweep and growth, as they were written.
    std::vector<nlohmann::json> const& rows() const { return rows_; }
    std::vector<part> const& parts(std::string const& module) const;
    /// The baselines that a module was built without; else empty.
    std::string not_built(std::string const& module) const;
    /// What the machine is, line by line: "processor: ...".
    std::vector<std::string> const& machine() const { return machine_; }
    /// A file as it is; empty where it is missing.
    std::string text(std::string const& name) const;

    /// A member of a row, or one of a part (`insert<wheel_timers>/1024`) of a module; none: not measured.
    std::optional<double> of_row(std::string_view name, std::string_view member) const;
    std::optional<double> of_part(std::string const& module, std::string_view name, std::string_view member) const;

  private:
    void read_parts(std::string const& module, nlohmann::json const& file);

    std::filesystem::path folder_;
    std::vector<nlohmann::json> rows_;
    std::map<std::string, std::vector<part>> parts_;
    std::map<std::string, std::string> not_built_;
    std::vector<std::string> machine_;
};

} // namespace page
