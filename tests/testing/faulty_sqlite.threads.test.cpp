// SPDX-License-Identifier: MIT
// A scheduler with threads on SQLite whose replies get lost: what was claimed in the commit that stored it is found
// again, and nothing runs twice.
#include "ax/scheduler/scheduler.hpp"
#include "ax/storage/sqlite.hpp"
#include "ax/testing/faulty_storage.hpp"

#include "storage/sqlite_fixture.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

namespace {

constexpr ax::task_type<> job{"job"};

} // namespace

TEST_CASE("with threads, and replies of SQLite that get lost, each task that is stored runs once",
          "[testing][sqlite][threads]") {
    using ax::testing::fault;
    using store_type = ax::testing::faulty_storage<ax::sqlite_storage>;
    static_assert(ax::eager_writer<store_type::writer>);
    sqlite_fixture fixture;
    ax::testing::fault_plan plan{GENERATE(1u, 2u)};
    plan.rate(fault::lost_reply, 0.03).rate(fault::lost_request, 0.02);
    store_type store{fixture.open(), std::move(plan)};
    std::mutex mutex;
    std::map<ax::task_id, int> runs;
    ax::scheduler tasks{store, ax::options{.workers = 2, .durability = ax::durability::process_crash}};
    for (bool known = false; !known;) {
        try {
            tasks.on(job, [&](ax::context& ctx) {
                std::lock_guard const guard{mutex};
                ++runs[ctx.task().id];
            });
            known = true;
        } catch (ax::error const&) { // a reply was lost: once more
        }
    }
    for (bool started = false; !started;) {
        try {
            tasks.start();
            started = true;
        } catch (ax::error const& e) {
            REQUIRE(e.kind() == ax::errc::outcome_unknown);
        }
    }
    auto const submit = [&](auto&& what) {
        try {
            what();
        } catch (ax::error const& e) { // it is stored, or is not
            REQUIRE(e.kind() == ax::errc::outcome_unknown);
        }
    };
    for (int i = 0; i != 60; ++i) submit([&] { tasks.submit(job); });
    ax::workflow flow{"chain"};
    auto last = flow.add(job);
    for (int i = 0; i != 20; ++i) last = flow.add(job, {}, {.after = {last}});
    submit([&] { tasks.submit(flow); });

    auto const end = std::chrono::steady_clock::now() + std::chrono::seconds{100};
    auto const all_ended = [&] {
        auto const all = tasks.list({.limit = 1'000});
        return std::all_of(all.begin(), all.end(), [](auto const& one) { return ax::is_terminal(one.state); });
    };
    while (!all_ended() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    REQUIRE(all_ended());
    tasks.stop();
    for (auto const& one : tasks.list({.limit = 1'000})) {
        CAPTURE(ax::to_number(one.id));
        CHECK(one.state == ax::task_state::succeeded);
        if (one.type == "job") CHECK(runs[one.id] == 1);
    }
    CHECK(runs.size() > 40);
}
