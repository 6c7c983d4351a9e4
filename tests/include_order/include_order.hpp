// SPDX-License-Identifier: MIT
// Which include lines of include/ax point the wrong way. The tree comes in as text, so that the check itself can be
// tested with trees that are wrong.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ax_test {

/// Path below include/ ("ax/core/error.hpp") to content.
using header_tree = std::map<std::string, std::string>;

namespace include_order {

struct rank_of_module {
    std::string_view module;
    std::size_t rank;
};

// The order of the modules; those of one rank do not know each other. The three headers at the top are modules of one
// file: everybody may include version.hpp and fwd.hpp, nobody ax.hpp.
inline constexpr auto ranks = std::to_array<rank_of_module>({
    {"version.hpp", 0}, {"fwd.hpp", 1},    {"core", 2},    {"time", 3},     {"wheel", 4},
    {"state", 4},       {"retry", 4},      {"cron", 4},    {"dag", 4},      {"task", 5},
    {"storage", 6},     {"observe", 7},    {"cluster", 8}, {"dispatch", 9}, {"scheduler", 10},
    {"actions", 11},    {"dashboard", 12}, {"ax.hpp", 13}, {"testing", 14},
});

// Everything else in storage/ (the concept above all) comes before these, and they do not know each other.
inline constexpr auto backends = std::to_array<std::string_view>({"memory", "sqlite", "postgresql", "mariadb"});

inline std::optional<std::size_t> rank(std::string_view module) {
    auto const* const found = std::find_if(ranks.begin(), ranks.end(), [&](auto& r) { return r.module == module; });
    if (found == ranks.end()) return std::nullopt;
    return found->rank;
}

/// "core" of "ax/core/error.hpp", "ax.hpp" of "ax/ax.hpp".
inline std::string_view module_of(std::string_view path) {
    path.remove_prefix((std::min)(path.size(), std::string_view{"ax/"}.size()));
    return path.substr(0, path.find('/'));
}

/// "sqlite" of "ax/storage/sqlite.hpp" and of "ax/storage/detail/sqlite_statements.hpp"; empty for the rest.
inline std::string_view backend_of(std::string_view path) {
    if (module_of(path) != "storage") return {};
    auto const file = path.substr(path.rfind('/') + 1);
    auto const stem = file.substr(0, file.find_first_of("_."));
    auto const* const found = std::find(backends.begin(), backends.end(), stem);
    return found == backends.end() ? std::string_view{} : *found;
}

struct include_line {
    std::string_view path;
    bool quoted;
};

/// The include lines of a text, including those in branches of #if and without those in line comments.
inline std::vector<include_line> include_lines(std::string_view text) {
    std::vector<include_line> result;
    while (!text.empty()) {
        auto line = text.substr(0, text.find('\n'));
        text.remove_prefix((std::min)(text.size(), line.size() + 1));
        auto const skip = [&](std::string_view word) {
            while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
            if (!line.starts_with(word)) return false;
            line.remove_prefix(word.size());
            return true;
        };
        if (!skip("#") || !skip("include") || !skip("")) continue;
        if (line.empty() || (line.front() != '"' && line.front() != '<')) continue;
        bool const quoted = line.front() == '"';
        line.remove_prefix(1);
        result.push_back({line.substr(0, line.find(quoted ? '"' : '>')), quoted});
    }
    return result;
}

/// Why `from` may not include `to`; empty when it may.
inline std::string_view objection(std::string_view from, std::string_view to) {
    auto const source = module_of(from);
    auto const target = module_of(to);
    auto const source_rank = rank(source);
    auto const target_rank = rank(target);
    if (!source_rank) return "is in no module of the order";
    if (!target_rank) return "includes a module that is not in the order";
    if (target == "ax.hpp") return "includes everything";
    if (source != "testing" && target == "testing") return "includes a test kit";
    if (source != target) {
        if (to.find("/detail/") != to.npos) return "includes a private part of another module";
        if (*target_rank == *source_rank) return "includes a module that it does not know";
        if (*target_rank > *source_rank) return "includes a later module";
    }
    auto const backend = backend_of(to);
    if (source == "storage" && !backend.empty() && backend != backend_of(from)) return "includes a backend";
    return {};
}

/// A way from `path` back to itself, as text; empty when there is none.
inline std::string cycle_through(header_tree const& tree, std::string const& path) {
    std::vector<std::string> open{path};
    std::map<std::string, std::string> reached_from;
    while (!open.empty()) {
        auto const current = open.back();
        open.pop_back();
        for (auto const& line : include_lines(tree.at(current))) {
            std::string const next{line.path};
            if (!tree.contains(next) || reached_from.contains(next)) continue;
            reached_from[next] = current;
            open.push_back(next);
        }
    }
    if (!reached_from.contains(path)) return {};
    std::string text = path;
    auto step = reached_from.at(path);
    for (; step != path; step = reached_from.at(step)) text.insert(0, step + " -> ");
    return text.insert(0, path + " -> ");
}

} // namespace include_order

/// One line for each include line that is not allowed, in the order of the tree; empty when all is well.
inline std::vector<std::string> wrong_includes(header_tree const& tree) {
    std::vector<std::string> wrong;
    for (auto const& [from, text] : tree) {
        for (auto const& line : include_order::include_lines(text)) {
            std::string_view reason;
            if (line.path.starts_with("ax/"))
                reason = include_order::objection(from, line.path);
            else if (line.quoted)
                reason = "does not write the path from ax/ on";
            if (!reason.empty()) wrong.push_back(from + " -> " + std::string{line.path} + ": " + std::string{reason});
        }
        if (auto const cycle = include_order::cycle_through(tree, from); !cycle.empty())
            wrong.push_back("cycle: " + cycle);
    }
    return wrong;
}

} // namespace ax_test
