// SPDX-License-Identifier: MIT
// What does it cost to read an expression, and to find its next occurrence, in UTC and in a zone that changes its
// clocks? The instants asked from are spread over 40 years, so that nothing is answered from the last answer.
#include "ax/cron/expression.hpp"
#include "ax/cron/calendar.hpp"

#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr std::array<char const*, 7> expressions = {"*/5 * * * * *",         "0 0 2 * * *",  "0 0 0 29 2 *",
                                                    "0 30 9-17 * * MON-FRI", "0 0 0 30 2 *", "0 0 0 LW * *",
                                                    "0 0 0 13 * +FRI"};

std::vector<ax::time_point> starts() {
    std::mt19937_64 random(1);
    std::vector<ax::time_point> result;
    for (int i = 0; i < 4096; ++i)
        result.emplace_back(
            std::chrono::milliseconds{static_cast<std::int64_t>(946'684'800'000ULL + random() % 1'262'304'000'000ULL)});
    return result;
}

void parse(benchmark::State& state) {
    std::string const text = expressions[static_cast<std::size_t>(state.range(0))];
    state.SetLabel(text);
    for (auto _ : state) {
        auto e = ax::cron_expression::parse(text);
        benchmark::DoNotOptimize(e);
    }
}

void next_in(benchmark::State& state, ax::time_zone zone) {
    auto const e = ax::cron_expression::parse(expressions[static_cast<std::size_t>(state.range(0))]);
    state.SetLabel(expressions[static_cast<std::size_t>(state.range(0))]);
    auto const from = starts();
    std::size_t i = 0;
    for (auto _ : state) {
        auto t = e.next(from[i++ & 4095], zone);
        benchmark::DoNotOptimize(t);
    }
    std::uint64_t checksum = 0;
    for (auto const start : from)
        if (auto const t = e.next(start, zone))
            checksum = checksum * 31 + static_cast<std::uint64_t>(t->time_since_epoch().count());
    state.counters["checksum"] = static_cast<double>(checksum % 1'000'003);
}

/// The baseline: instant by instant, every minute or, where the seconds vary, every second. A never would last for
/// ever.
void next_step_by_step(benchmark::State& state) {
    std::string const text = expressions[static_cast<std::size_t>(state.range(0))];
    auto const e = ax::cron_expression::parse(text);
    state.SetLabel(text);
    auto const step = text.starts_with("0 ") ? std::chrono::seconds{60} : std::chrono::seconds{1};
    auto const search = [&](ax::time_point after) {
        auto t =
            std::chrono::floor<std::chrono::minutes>(after) + (after.time_since_epoch() % 60'000 / step) * step + step;
        while (!e.matches(t)) t += step;
        return ax::time_point{t};
    };
    auto const from = starts();
    std::size_t i = 0;
    for (auto _ : state) {
        auto const start = from[i++ & 4095];
        auto t = search(start);
        benchmark::DoNotOptimize(t);
        if (t != e.next(start)) {
            state.SkipWithError("next() finds another one");
            break;
        }
    }
}

void next_utc(benchmark::State& state) { next_in(state, ax::time_zone{}); }
void next_berlin(benchmark::State& state) { next_in(state, ax::time_zone{"Europe/Berlin"}); }

void prev_berlin(benchmark::State& state) {
    auto const e = ax::cron_expression::parse(expressions[static_cast<std::size_t>(state.range(0))]);
    state.SetLabel(expressions[static_cast<std::size_t>(state.range(0))]);
    ax::time_zone const zone{"Europe/Berlin"};
    auto const from = starts();
    std::size_t i = 0;
    for (auto _ : state) {
        auto t = e.prev(from[i++ & 4095], zone);
        benchmark::DoNotOptimize(t);
    }
}

void parse_crontab(benchmark::State& state) {
    constexpr std::array<char const*, 3> texts = {"*/5 * * * *", "0 2 * * *", "30 9-17 * * mon-fri"};
    std::string const text = texts[static_cast<std::size_t>(state.range(0))];
    state.SetLabel(text);
    for (auto _ : state) {
        auto e = ax::cron_expression::parse(text, ax::cron_dialect::crontab);
        benchmark::DoNotOptimize(e);
    }
}

/// A calendar over the same expression: what its steps add; and one from which all is taken.
void next_calendar(benchmark::State& state) {
    ax::calendar const plain = ax::cron{"0 30 9-17 * * MON-FRI", "Europe/Berlin"};
    std::vector<ax::date_range> dates;
    for (int y = 2000; y < 2040; ++y)
        dates.emplace_back(std::chrono::year{y} / 12 / 24, std::chrono::year{y} / 12 / 31);
    ax::calendar const shapes[] = {plain, plain.except_dates(dates).also(ax::cron{"0 10 * * SAT", "Europe/Berlin"})};
    char const* const names[] = {"of one expression", "a union without dates"};
    state.SetLabel(names[state.range(0)]);
    auto const from = starts();
    std::size_t i = 0;
    for (auto _ : state) {
        auto t = shapes[state.range(0)].next(from[i++ & 4095]);
        benchmark::DoNotOptimize(t);
    }
}

void calendar_never(benchmark::State& state) {
    ax::cron const each{"* * * * * *", "Europe/Berlin"};
    auto const nothing = ax::calendar{each}.except(each);
    for (auto _ : state) {
        bool never = nothing.never();
        benchmark::DoNotOptimize(never);
    }
}

void count_years(benchmark::State& state) {
    auto const e = ax::cron_expression::parse(expressions[static_cast<std::size_t>(state.range(0))]);
    state.SetLabel(expressions[static_cast<std::size_t>(state.range(0))]);
    ax::time_point const from{std::chrono::seconds{946'684'800}}, to{std::chrono::seconds{2'208'988'800}};
    for (auto _ : state) {
        auto n = e.count(from, to, "Europe/Berlin");
        benchmark::DoNotOptimize(n);
    }
}

} // namespace

BENCHMARK(count_years)->DenseRange(0, 3);
BENCHMARK(next_calendar)->DenseRange(0, 1);
BENCHMARK(calendar_never);
BENCHMARK(parse)->DenseRange(0, 6);
BENCHMARK(parse_crontab)->DenseRange(0, 2);
BENCHMARK(next_utc)->DenseRange(0, 6);
BENCHMARK(next_step_by_step)->DenseRange(0, 3)->DenseRange(5, 6);
BENCHMARK(next_berlin)->DenseRange(0, 6);
BENCHMARK(prev_berlin)->DenseRange(0, 6);
