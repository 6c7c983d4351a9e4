// SPDX-License-Identifier: MIT
#include "page/goals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

namespace page {

namespace {

/// By how much the worst of the sizes is worse than the empty store: 1 is as good.
std::optional<double> growth_of(results const& from, std::string const& what, bool higher_is_better,
                                std::initializer_list<char const*> sizes, char const* member = "ax") {
    auto const base = from.of_row("growth/0/" + what, member);
    std::optional<double> worst;
    for (auto const* size : sizes)
        if (auto const value = from.of_row(fmt::format("growth/{}/{}", size, what), member); value && base)
            worst = (std::max)(worst.value_or(0), higher_is_better ? *base / *value : *value / *base);
    return worst;
}

} // namespace

std::vector<goal> goals(results const& from) {
    std::vector<goal> all;
    auto const row = [&](std::string what, std::string unit, bool at_least, double floor, std::optional<double> aim,
                         std::string const& name, std::string const& member) {
        all.push_back({std::move(what), std::move(unit), at_least, floor, aim, from.of_row(name, member)});
    };
    auto const part = [&](std::string what, std::string unit, double most, std::string const& module,
                          std::string const& name, std::string const& member = "ns", double factor = 1) {
        auto value = from.of_part(module, name, member);
        if (value) *value *= factor;
        all.push_back({std::move(what), std::move(unit), false, most, {}, value});
    };

    row("whole life, 100 in flight, of raw", "", true, 0.5, 0.7, "life/100", "ratio");
    row("whole life, 2,000 in flight, of raw", "", true, 0.5, 0.7, "life/2000", "ratio");
    row("whole life, 20,000 in flight, of raw", "", true, 0.5, 0.7, "life/20000", "ratio");
    row("bulk submit without keys, of raw", "", true, 0.7, 0.85, "submit/bulk", "ratio");
    row("bulk submit with random keys, of raw", "", true, 0.7, 0.85, "submit/bulk-random-keys", "ratio");
    row("one synchronous submit, p50, against raw", "", false, 1.5, 1.15, "submit/one", "ratio");
    row("lateness p50, against a sleeping thread", "", false, 2, 1.2, "lateness/p50", "ratio");
    row("lateness p99, against a sleeping thread", "", false, 3, 1.5, "lateness/p99", "ratio");
    row("earliest start, never before its instant", "ms", true, 0, {}, "lateness/p50", "ax_earliest_ms");
    row("a million pending, memory above an empty scheduler, SQLite's apart", "MB", false, 60, 16, "preload/1M",
        "ax_mb");
    row("start to first task, ten million on disk", "s", false, 1, 0.2, "restart/10M", "ax");
    row("idle, a million pending", "% core", false, 0.1, {}, "idle/cpu", "ax");
    row("idle, wake-ups", "a second", false, 3, {}, "idle/cpu", "wakeups_per_s");
    row("durable workflow of 100,000 tasks", "tasks/s", true, 50'000, {}, "workflow/100k", "ax");

    auto const flat = [&](std::string what, std::string const& name, bool higher_is_better, char const* member = "ax") {
        all.push_back({std::move(what),
                       "times",
                       false,
                       1.5,
                       {},
                       growth_of(from, name, higher_is_better, {"10k", "100k", "1M", "10M"}, member)});
    };
    flat("submit above up to ten million pending, against an empty store", "submit", false);
    flat("bulk submit above them", "bulk", true);
    flat("whole life above them", "life", true);
    flat("lateness p50 above them", "lateness", false, "ax_p50_ms");
    all.push_back({"whole life above ten million that have ended, against a new store",
                   "times",
                   false,
                   1.5,
                   {},
                   growth_of(from, "life", true, {"ended-1M", "ended-10M"})});

    part("wheel: insert and expire a million, 1 ms at a time", "ns", 100, "wheel",
         "insert_and_expire<wheel_timers>/1000000");
    part("wheel: insert, a million pending", "ns", 12, "wheel", "insert<wheel_timers>/1048576");
    part("wheel: cancel, a million pending, at random", "ns", 12, "wheel", "cancel<wheel_timers>/1048576/1");
    part("wheel: memory of a timer with a 64-bit id", "bytes", 40, "wheel", "insert<wheel_timers>/1048576",
         "bytes_per_timer");
    part("wheel: 1,000 timers over 30 days, one jump", "µs", 100, "wheel", "jump<wheel_timers>/1000/2592000000", "ns",
         1);
    part("wheel: the same, sleeping to each next expiry", "wake-ups", 4'000, "wheel", "wakeups/1000", "wakeups");
    part("wheel: insert, 10,000 in cache", "ns", 3.1, "wheel", "insert_again<wheel_timers>/10000");
    part("wheel: cancel, 10,000 in cache", "ns", 2.2, "wheel", "cancel<wheel_timers>/10000/0");
    part("wheel: fire, 10,000 in one jump", "ns", 21, "wheel", "jump<wheel_timers>/10000/600000");

    constexpr double utc[] = {25, 35, 90, 25};
    constexpr char const* lines[] = {"*/5 * * * * *", "0 0 2 * * *", "0 0 0 29 2 *", "0 30 9-17 * * MON-FRI"};
    for (std::size_t i = 0; i != 4; ++i) {
        auto const line = fmt::format(" `{}`", lines[i]);
        auto const at = fmt::format("/{}", i);
        part("cron: parse" + line, "ns", 100, "cron", "parse" + at);
        part("cron: next, UTC," + line, "ns", utc[i], "cron", "next_utc" + at);
        part("cron: next, Berlin," + line, "ns", 3 * utc[i], "cron", "next_berlin" + at);
    }

    for (auto const* shape :
         {"chain", "fan_out", "tree", "pairs", "random_parents", "backwards<tree>", "backwards<random_parents>"}) {
        auto const at = fmt::format("<{}>/100000", shape);
        part(std::string("graph: build and run on one thread, ") + shape, "ns", 60, "dag", "on_this_thread" + at);
        part(std::string("graph: the same with a worker, ") + shape, "ns", 60, "dag", "on_a_pool" + at);
    }
    return all;
}

} // namespace page
