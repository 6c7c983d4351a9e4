// SPDX-License-Identifier: MIT
// What does it cost to read an expression, and to find its next occurrence, in UTC and in a zone that changes its
// clocks? The instants asked from are spread over 40 years, so that nothing is answered from the last answer.
#include "ax/cron/expression.hpp"

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

} // namespace

BENCHMARK(parse)->DenseRange(0, 6);
BENCHMARK(parse_crontab)->DenseRange(0, 2);
BENCHMARK(next_utc)->DenseRange(0, 6);
BENCHMARK(next_berlin)->DenseRange(0, 6);
BENCHMARK(prev_berlin)->DenseRange(0, 6);
