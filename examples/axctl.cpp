// SPDX-License-Identifier: MIT
// axctl: a look at what ax does, from the command line.
//
//   axctl cron next "30 2 * * *" --zone Europe/Berlin --count 3
//   axctl cron describe "0 0 LW * *"
//   axctl cron check --jsonl < expressions.jsonl
//   axctl show shop.db close-42
//   axctl list shop.db --state dead --json
//   axctl list --help
#include "axctl/arguments.hpp"
#include "axctl/cron_command.hpp"
#include "axctl/declare_command.hpp"
#include "axctl/help.hpp"
#include "axctl/schedule_command.hpp"
#include "axctl/store_command.hpp"
#include "axctl/workflow_command.hpp"

#include <cstdio>
#include <exception>
#include <string_view>

namespace {

struct command {
    std::string_view name;
    int (*run)(axctl::arguments&);
    char const* usage;
    char const* help; ///< what is to be said besides
};

constexpr command commands[] = {
    {"cron", axctl::cron_command, axctl::cron_usage, ""},
    {"list", axctl::list_command, axctl::list_usage, axctl::list_help},
    {"stats", axctl::stats_command, axctl::stats_usage, axctl::stats_help},
    {"verify", axctl::verify_command, axctl::verify_usage, axctl::verify_help},
    {"show", axctl::show_command, axctl::show_usage, axctl::show_help},
    {"stuck", axctl::stuck_command, axctl::stuck_usage, axctl::stuck_help},
    {"cancel", axctl::cancel_command, axctl::cancel_usage, axctl::cancel_help},
    {"retry", axctl::retry_command, axctl::retry_usage, axctl::retry_help},
    {"pause", axctl::pause_command, axctl::pause_usage, axctl::pause_help},
    {"resume", axctl::resume_command, axctl::resume_usage, axctl::resume_help},
    {"declare", axctl::declare_command, axctl::declare_usage, axctl::declare_help},
    {"schedules", axctl::schedules_command, axctl::schedules_usage, axctl::schedules_help},
    {"skips", axctl::skips_command, axctl::skips_usage, axctl::skips_help},
    {"preview", axctl::preview_command, axctl::preview_usage, axctl::preview_help},
    {"workflow", axctl::workflow_command, axctl::workflow_usage, axctl::workflow_help},
};

int usage(std::FILE* to) {
    std::fputs("usage:\n", to);
    for (auto const& c : commands) std::fputs(c.usage, to);
    std::fputs(axctl::of_all, to);
    return to == stdout ? 0 : 2;
}

int usage(command const& one) {
    std::fputs("usage:\n", stdout);
    std::fputs(one.usage, stdout);
    std::fputs(one.help, stdout);
    return 0;
}

/// A mistake in the command line: of one command, the usage of that one helps.
int usage_after(axctl::usage_error const& e, command const* one) {
    std::fprintf(stderr, "axctl: %s\n", e.what());
    if (one == nullptr) return usage(stderr);
    std::fprintf(stderr, "usage:\n%s%s", one->usage, one->help);
    return 2;
}

} // namespace

int main(int count, char** values) {
    command const* chosen = nullptr;
    try {
        axctl::arguments given(count - 1, values + 1);
        auto name = given.next_word();
        if (name == "--help" || name == "-h") return usage(stdout);
        bool const help = name == "help" || given.flag("--help") || given.flag("-h");
        if (name == "help" && (name = given.next_word()).empty()) return usage(stdout);
        for (auto const& c : commands)
            if (name == c.name) chosen = &c;
        if (chosen == nullptr) return usage(stderr);
        return help ? usage(*chosen) : chosen->run(given);
    } catch (axctl::usage_error const& e) {
        return usage_after(e, chosen);
    } catch (std::exception const& e) {
        std::fprintf(stderr, "axctl: %s\n", e.what());
        return 1;
    }
}
