// SPDX-License-Identifier: MIT
// axctl: a look at what ax does, from the command line.
//
//   axctl cron next "30 2 * * *" --zone Europe/Berlin --count 3
//   axctl cron describe "0 0 LW * *"
//   axctl cron check --jsonl < expressions.jsonl
#include "axctl/arguments.hpp"
#include "axctl/cron_command.hpp"

#include <cstdio>
#include <exception>
#include <string_view>

namespace {

struct command {
    std::string_view name;
    int (*run)(axctl::arguments&);
    char const* usage;
};

constexpr command commands[] = {
    {"cron", axctl::cron_command, axctl::cron_usage},
};

int usage(std::FILE* to) {
    std::fputs("usage:\n", to);
    for (auto const& c : commands) std::fputs(c.usage, to);
    return to == stdout ? 0 : 2;
}

} // namespace

int main(int count, char** values) try {
    axctl::arguments given(count - 1, values + 1);
    auto const name = given.next_word();
    if (name == "--help" || name == "help") return usage(stdout);
    for (auto const& c : commands)
        if (name == c.name) return c.run(given);
    return usage(stderr);
} catch (axctl::usage_error const& e) {
    std::fprintf(stderr, "axctl: %s\n", e.what());
    return usage(stderr);
} catch (std::exception const& e) {
    std::fprintf(stderr, "axctl: %s\n", e.what());
    return 1;
}
