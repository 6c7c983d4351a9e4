// SPDX-License-Identifier: MIT
// What does a task cost in memory_storage, from its insertion to its success, and does the cost depend on how many wait
// or have ended? The answer bounds what a simulation of a month can do.
#include "ax/storage/memory.hpp"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;
using writer = ax::memory_storage::writer;

constexpr ax::time_point start{ax::duration{1'767'225'600'000}};
constexpr ax::node_id node{1};

std::vector<ax::new_task> tasks_of(writer& w, std::size_t count, ax::time_point when, std::string const& route) {
    ax::new_task task;
    task.type = w.type("probe");
    task.payload = R"({"order_id":42,"amount":"17.50"})";
    task.run_at = when;
    task.route_key = route;
    return std::vector(count, task);
}

/// Fills the store with tasks that wait for tomorrow.
void fill(ax::memory_storage& store, std::size_t count, std::string const& route) {
    store.transact(ax::commit::lazy, [&](writer& w) {
        ax::alarms due;
        w.insert(tasks_of(w, count, start + 24h, route), start, due);
    });
}

/// A batch of 64 is inserted, read as upcoming, claimed and settled, each in a commit of its own.
void life(benchmark::State& state, std::string const& route) {
    ax::memory_storage store;
    fill(store, static_cast<std::size_t>(state.range(0)), route);
    constexpr std::size_t batch = 64;
    std::uint64_t succeeded = 0;
    auto const lane = ax::make_lane(ax::type_number{1}, ax::priority_class::normal);
    for (auto _ : state) {
        std::size_t left = batch;
        store.transact(ax::commit::lazy, [&](writer& w) {
            ax::alarms due;
            w.insert(tasks_of(w, batch, start, route), start, due);
        });
        while (left > 0) { // a route gives one at a time
            std::vector<ax::claim_request> requests;
            for (auto const& each : store.upcoming({{}, lane, {}}, start, batch)) requests.push_back({each.id, false});
            std::vector<ax::attempt_end> ends;
            store.transact(ax::commit::lazy, [&](writer& w) {
                for (auto const& task : w.claim(requests, {node, start, start, 0}).claimed) {
                    ax::attempt_end end;
                    end.id = task.id;
                    end.fence = task.fence;
                    end.started = start;
                    end.ended = start;
                    ends.push_back(std::move(end));
                }
            });
            store.transact(ax::commit::lazy, [&](writer& w) {
                for (bool const accepted : w.settle(ends, start).accepted) succeeded += accepted ? 1 : 0;
            });
            left -= ends.size();
        }
    }
    if (succeeded != static_cast<std::uint64_t>(state.iterations()) * batch) state.SkipWithError("tasks were lost");
    state.SetItemsProcessed(static_cast<std::int64_t>(succeeded));
}

void life_of_a_task(benchmark::State& state) { life(state, ""); }
void life_of_a_task_in_one_route(benchmark::State& state) { life(state, "customer-7"); }

BENCHMARK(life_of_a_task)->Arg(0)->Arg(1'000)->Arg(100'000);
BENCHMARK(life_of_a_task_in_one_route)->Arg(0)->Arg(1'000)->Arg(100'000);

} // namespace
