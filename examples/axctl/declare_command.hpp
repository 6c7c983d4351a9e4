// SPDX-License-Identifier: MIT
// axctl declare FILE --check: what is wrong with a document of definitions.
#pragma once

#include "arguments.hpp"
#include "store_command.hpp"

#include <ax/scheduler/definitions.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace axctl {

inline constexpr char declare_usage[] =
    "  axctl declare FILE --check [--json]    what is wrong with a document of definitions; -: standard input\n";

inline constexpr char declare_help[] =
    "    a line for each fault, with the path of what is wrong; docs/definitions.md says what a document holds\n"
    "    --json      an array of {path, reason}\n"
    "    ends with 1 where there is a fault; to be declared, a document is handed to the program's own declare()\n";

/// All of a file.
inline std::string text_of_file(std::string const& name) {
    std::ifstream file;
    if (name != "-") file.open(name, std::ios::binary);
    std::istream& in = name == "-" ? std::cin : file;
    if (!in) throw std::runtime_error(name + " cannot be read");
    std::string text{std::istreambuf_iterator<char>(in), {}};
    if (in.bad() || (name != "-" && !file.is_open())) throw std::runtime_error(name + " cannot be read");
    return text;
}

inline int declare_command(arguments& given) {
    bool const json = given.flag("--json");
    if (!given.flag("--check"))
        throw usage_error("declare: only with --check; the program that owns the store declares it");
    auto const text = text_of_file(given.only_word("the document's file"));
    auto const faults = ax::check_definitions(text);
    if (json) {
        auto all = nlohmann::json::array();
        for (auto const& fault : faults) all.push_back({{"path", fault.path}, {"reason", fault.reason}});
        print(all);
    } else if (faults.empty()) {
        auto const found = ax::parse_definitions(text);
        std::printf("no fault; task types: %zu, workflows: %zu, schedules: %zu\n", found.task_types.size(),
                    found.workflows.size(), found.schedules.size());
    }
    if (!json)
        for (auto const& fault : faults) std::puts(one_line(fault.message(), 2'000).c_str());
    return faults.empty() ? 0 : 1;
}

} // namespace axctl
