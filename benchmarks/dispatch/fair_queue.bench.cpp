// SPDX-License-Identifier: MIT
// What does fairness cost over a plain queue, and over strict priority?
#include "ax/dispatch/fair_queue.hpp"

#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <vector>

namespace {

using item = std::uint64_t;

struct plain_queue {
    void push(std::size_t, item i) { items.push_back(i); }
    std::optional<item> pop() {
        if (items.empty()) return std::nullopt;
        auto const i = items.front();
        items.pop_front();
        return i;
    }
    std::deque<item> items;
};

struct strict_queue {
    void push(std::size_t c, item i) { items[c].push_back(i); }
    std::optional<item> pop() {
        for (auto& line : items) {
            if (line.empty()) continue;
            auto const i = line.front();
            line.pop_front();
            return i;
        }
        return std::nullopt;
    }
    std::array<std::deque<item>, 4> items;
};

/// A queue that holds `range(0)` items all the time: one in, one out.
template <class Queue>
void one_in_one_out(benchmark::State& state) {
    std::mt19937 random{1};
    std::vector<std::size_t> classes(4'096);
    for (auto& c : classes) c = random() % 4;
    Queue queue;
    item next = 0;
    for (std::int64_t i = 0; i < state.range(0); ++i, ++next) queue.push(classes[next % 4'096], next);
    item sum = 0;
    for (auto _ : state) {
        queue.push(classes[next % 4'096], next);
        ++next;
        sum += queue.pop().value_or(0);
    }
    while (auto const left = queue.pop()) sum += *left;
    if (sum != next * (next - 1) / 2) state.SkipWithError("items were lost");
}
BENCHMARK(one_in_one_out<ax::fair_queue<item>>)->Arg(32)->Arg(1'024)->Arg(1'048'576);
BENCHMARK(one_in_one_out<plain_queue>)->Arg(32)->Arg(1'024)->Arg(1'048'576);
BENCHMARK(one_in_one_out<strict_queue>)->Arg(32)->Arg(1'024)->Arg(1'048'576);

} // namespace
