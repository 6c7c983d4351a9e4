// SPDX-License-Identifier: MIT
#include "durable/settings.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <system_error>

namespace bench {

namespace {

void usage(std::FILE* to, std::string_view program) {
    fmt::print(to,
               "usage: {} [options] [NAME ...]\n"
               "A NAME is that of a row or its beginning; without one all rows are measured.\n"
               "  --json           a line of JSON for each row\n"
               "  --dir DIR        stores lie below DIR (default: AX_BENCH_DIR, else where temporary files lie)\n"
               "  --rounds N       medians of N rounds (3)\n"
               "  --scale F        multiplies how many tasks a row has (1)\n"
               "  --backlog N      puts N future tasks below what is measured (0)\n"
               "  --workers N      (2)\n"
               "  --process-crash  commits survive the end of the process, not a power cut\n"
               "  --brief          leaves out the rows that need ten million tasks\n",
               program);
}

template <class Number>
bool read_number(std::string_view text, Number& to) {
    auto const [end, code] = std::from_chars(text.data(), text.data() + text.size(), to);
    return code == std::errc{} && end == text.data() + text.size() && to >= 0;
}

} // namespace

std::optional<int> read_settings(settings& s, std::string_view program, int count, char** values) {
    auto const wrong = [&](std::string_view what) {
        fmt::print(stderr, "{}: {}\n", program, what);
        usage(stderr, program);
        return 2;
    };
    for (int i = 1; i < count; ++i) {
        std::string_view const word = values[i];
        auto const number = [&](auto& to) { return ++i < count && read_number(values[i], to); };
        if (word == "--help") {
            usage(stdout, program);
            return 0;
        } else if (word == "--json")
            s.json = true;
        else if (word == "--process-crash")
            s.power_loss = false;
        else if (word == "--brief")
            s.brief = true;
        else if (word == "--dir") {
            if (++i == count || !std::filesystem::is_directory(values[i])) return wrong("--dir needs a directory");
            s.dir = values[i];
        } else if (word == "--rounds") {
            if (!number(s.rounds) || s.rounds == 0) return wrong("--rounds needs a number from 1 on");
        } else if (word == "--scale") {
            if (!number(s.scale) || s.scale == 0) return wrong("--scale needs a positive number");
        } else if (word == "--backlog") {
            if (!number(s.backlog)) return wrong("--backlog needs a number");
        } else if (word == "--workers") {
            if (!number(s.workers) || s.workers == 0) return wrong("--workers needs a number from 1 on");
        } else if (word.starts_with("--"))
            return wrong(fmt::format("unknown option {}", word));
        else
            s.names.emplace_back(word);
    }
    return {};
}

} // namespace bench
