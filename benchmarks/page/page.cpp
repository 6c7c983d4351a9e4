// SPDX-License-Identifier: MIT
// Writes docs/benchmarks.md from what was measured:
//   page TEMPLATE RESULTS >docs/benchmarks.md
// The template is that page with a line {{...}} wherever figures belong; all else is written by hand and stays.
//   {{machine}}                       what it was measured on
//   {{goals}}                         each goal, what was measured, whether it is met
//   {{rows PREFIX...}}                rows of durable, sweep and growth with these beginnings
//   {{growth}}                        growth/*, a line for each size
//   {{by-variant MODULE FUNCTION...}} parts of Google Benchmark, a column for each variant; without functions all
//   {{by-function MODULE FUNCTION...}} the same, a column for each function
//   {{text FILE}}                     a file of the results as it is
#include "page/goals.hpp"
#include "page/results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>

namespace {

using namespace page;

/// Three digits that count, and commas between thousands.
std::string number(double value) {
    if (std::abs(value) < 1'000) {
        if (value == 0) return "0";
        auto const digits = std::clamp(2 - static_cast<int>(std::floor(std::log10(std::abs(value)))), 0, 4);
        auto text = fmt::format("{:.{}f}", value, digits);
        if (text.find('.') != std::string::npos) {
            text.erase(text.find_last_not_of('0') + 1);
            if (text.back() == '.') text.pop_back();
        }
        return text;
    }
    auto text = fmt::format("{:.0f}", value);
    for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > (text[0] == '-' ? 1 : 0); at -= 3)
        text.insert(static_cast<std::size_t>(at), 1, ',');
    return text;
}

std::string number(std::optional<double> value) { return value ? number(*value) : "-"; }

std::optional<double> member(nlohmann::json const& row, char const* name) {
    if (!row.contains(name) || !row.at(name).is_number()) return {};
    return row.at(name).get<double>();
}

void machine(std::ostream& out, results const& from) {
    for (auto const& line : from.machine()) out << "- " << line << '\n';
}

void goal_table(std::ostream& out, results const& from) {
    out << "| | unit | measured | floor | aim | |\n|---|---|---|---|---|---|\n";
    std::size_t met = 0;
    std::size_t missed = 0;
    std::size_t open = 0;
    auto const all = goals(from);
    for (auto const& one : all) {
        char const* verdict = "not measured";
        if (!one.measured) {
            ++open;
        } else if (!one.meets(one.floor)) {
            verdict = "**missed**";
            ++missed;
        } else {
            verdict = one.aim && !one.meets(*one.aim) ? "floor" : one.aim ? "aim" : "met";
            ++met;
        }
        char const* sign = one.at_least ? "&ge; " : "&le; ";
        out << fmt::format("| {} | {} | {} | {}{} | {} | {} |\n", one.what, one.unit.empty() ? "ratio" : one.unit,
                           number(one.measured), sign, number(one.floor), one.aim ? sign + number(*one.aim) : "-",
                           verdict);
    }
    out << fmt::format("\n{} of {} goals are met, {} are missed, {} were not measured.\n", met, all.size(), missed,
                       open);
}

bool begins(std::string const& name, std::vector<std::string> const& prefixes) {
    return std::ranges::any_of(prefixes, [&](std::string const& one) { return name.starts_with(one); });
}

void row_table(std::ostream& out, results const& from, std::vector<std::string> const& prefixes) {
    std::vector<nlohmann::json> rows;
    for (auto const& one : from.rows())
        if (begins(one.at("name"), prefixes)) rows.push_back(one);
    if (rows.empty()) {
        out << "Not measured.\n";
        return;
    }
    auto const any = [&](char const* name) {
        return std::ranges::any_of(rows, [&](auto const& one) { return member(one, name).has_value(); });
    };
    bool const raw = any("raw");
    // What both sides tell of each task has columns of its own.
    std::vector<std::pair<std::string, std::string>> pairs;
    for (auto const* name : {"bytes_per_task", "flushes_per_task"})
        if (any(("ax_" + std::string(name)).c_str()))
            pairs.emplace_back(std::string("ax_") + name, std::string("raw_") + name);
    out << "| | unit | ax |" << (raw ? " raw | ratio |" : "");
    for (auto const& [mine, theirs] : pairs)
        out << (mine == "ax_bytes_per_task" ? " bytes a task" : " flushes a task")
            << (any(theirs.c_str()) ? " (raw) |" : " |");
    out << " durability | beside it |\n|---|---|---|" << (raw ? "---|---|" : "");
    for (std::size_t i = 0; i != pairs.size(); ++i) out << "---|";
    out << "---|---|\n";
    for (auto const& one : rows) {
        out << fmt::format("| `{}` | {}{} | {} |", one.at("name").get<std::string>(), one.at("unit").get<std::string>(),
                           one.at("better") == "lower" ? ", less is better" : "", number(member(one, "ax")));
        if (raw) out << fmt::format(" {} | {} |", number(member(one, "raw")), number(member(one, "ratio")));
        for (auto const& [mine, theirs] : pairs) {
            auto const their = member(one, theirs.c_str());
            out << fmt::format(" {}{} |", number(member(one, mine.c_str())), their ? " (" + number(*their) + ")" : "");
        }
        std::string beside;
        for (auto const& [name, value] : one.items()) {
            if (!value.is_number() || name == "ax" || name == "raw" || name == "ratio") continue;
            if (name.ends_with("_per_task")) continue;
            auto said = name;
            std::ranges::replace(said, '_', ' ');
            beside += fmt::format("{}{} {}", beside.empty() ? "" : ", ", said, number(value.get<double>()));
        }
        out << fmt::format(" {} | {} |\n", one.at("durability").get<std::string>(), beside);
    }
}

void growth_table(std::ostream& out, results const& from) {
    constexpr char const* columns[] = {"submit", "bulk", "life", "lateness", "memory"};
    std::vector<std::string> sizes;
    for (auto const& one : from.rows()) {
        auto const name = one.at("name").get<std::string>();
        if (!name.starts_with("growth/")) continue;
        auto const size = name.substr(7, name.find('/', 7) - 7);
        if (std::ranges::find(sizes, size) == sizes.end()) sizes.push_back(size);
    }
    if (sizes.empty()) {
        out << "Not measured.\n";
        return;
    }
    out << "| in the store | one submit, p50, µs (raw) | bulk, tasks/s (raw) | whole life, tasks/s (raw) "
           "| lateness p99 (p50), ms | memory, MB |\n|---|---|---|---|---|---|\n";
    for (auto const& size : sizes) {
        out << "| "
            << (size == "0"                 ? "nothing"
                : size.starts_with("ended") ? size.substr(6) + " that have ended"
                                            : size + " that wait")
            << " |";
        for (auto const* column : columns) {
            auto const name = "growth/" + size + "/" + column;
            auto const raw = from.of_row(name, std::string_view(column) == "lateness" ? "ax_p50_ms" : "raw");
            out << fmt::format(" {}{} |", number(from.of_row(name, "ax")), raw ? " (" + number(*raw) + ")" : "");
        }
        out << '\n';
    }
}

/// A table of parts: columns by variant or by function, a line for each of the rest.
void part_table(std::ostream& out, results const& from, bool by_variant, std::vector<std::string> const& words) {
    if (words.empty()) throw std::runtime_error("which module?");
    auto const wanted = [&](part const& one) {
        return words.size() == 1 || std::find(words.begin() + 1, words.end(), one.function) != words.end();
    };
    auto const column_of = [&](part const& one) { return by_variant ? one.variant : one.function; };
    auto const line_of = [&](part const& one) {
        auto const& rest = by_variant ? one.function : one.variant;
        if (!one.label.empty()) return "`" + one.label + "`";
        return rest + (rest.empty() || one.arguments.empty() ? "" : ", ") + one.arguments;
    };
    std::vector<std::string> columns;
    std::vector<std::string> lines;
    std::map<std::pair<std::string, std::string>, double> values;
    for (auto const& one : from.parts(words.front())) {
        if (!wanted(one)) continue;
        if (std::ranges::find(columns, column_of(one)) == columns.end()) columns.push_back(column_of(one));
        if (std::ranges::find(lines, line_of(one)) == lines.end()) lines.push_back(line_of(one));
        values[{line_of(one), column_of(one)}] = one.nanoseconds;
    }
    if (lines.empty()) {
        out << "Not measured.\n";
        return;
    }
    out << "| |";
    for (auto const& column : columns) out << " " << (column.empty() ? "" : column + ", ") << "ns |";
    out << "\n|---|";
    for (std::size_t i = 0; i != columns.size(); ++i) out << "---|";
    out << '\n';
    for (auto const& line : lines) {
        out << "| " << line << " |";
        for (auto const& column : columns) {
            auto const at = values.find({line, column});
            out << " " << (at == values.end() ? "-" : number(at->second)) << " |";
        }
        out << '\n';
    }
    if (auto const missing = from.not_built(words.front()); !missing.empty())
        out << "\nNot built, for their packages were not there: " << missing << ".\n";
}

void figures(std::ostream& out, results const& from, std::string const& directive) {
    std::istringstream read(directive);
    std::string what;
    read >> what;
    std::vector<std::string> words;
    for (std::string word; read >> word;) words.push_back(word);
    if (what == "machine")
        machine(out, from);
    else if (what == "goals")
        goal_table(out, from);
    else if (what == "rows")
        row_table(out, from, words);
    else if (what == "growth")
        growth_table(out, from);
    else if (what == "by-variant" || what == "by-function")
        part_table(out, from, what == "by-variant", words);
    else if (what == "text" && words.size() == 1) {
        auto const text = from.text(words.front());
        out << (text.empty() ? "Not measured.\n" : "```\n" + text + "```\n");
    } else
        throw std::runtime_error("the template asks for {{" + directive + "}}, which is nothing");
}

} // namespace

int main(int count, char** values) {
    if (count != 3) {
        std::cerr << "usage: page TEMPLATE RESULTS\n";
        return 2;
    }
    try {
        std::ifstream file(values[1]);
        if (!file) throw std::runtime_error(std::string("cannot read ") + values[1]);
        results const from(values[2]);
        std::ostringstream out; // nothing is written when something is wrong
        for (std::string line; std::getline(file, line);) {
            if (line.starts_with("{{") && line.ends_with("}}"))
                figures(out, from, line.substr(2, line.size() - 4));
            else
                out << line << '\n';
        }
        std::cout << out.str();
    } catch (std::exception const& e) {
        std::cerr << "page: " << e.what() << '\n';
        return 1;
    }
}
