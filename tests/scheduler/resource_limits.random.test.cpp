// SPDX-License-Identifier: MIT
// A random life of a scheduler under limits of every kind, on memory and on SQLite: what is in flight is counted by the
// executor, and never exceeds a limit; and when no more comes, everything ends.
#include "ax/storage/sqlite.hpp"

#include "scheduler/support.hpp"
#include "storage/sqlite_fixture.hpp"

#include <map>
#include <optional>
#include <random>

using namespace test;

namespace {

/// @param open  Gives the storage: for a restart, the same again.
template <class Storage, class Open>
void random_life(std::uint32_t seed, Open&& open) {
    using scheduler = ax::scheduler<Storage, ax::testing::manual_clock, queue_executor>;
    CAPTURE(seed);
    std::mt19937 random(seed);
    auto const below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    ax::testing::manual_clock clock;
    queue_executor loop;
    std::map<std::string, int> most; // seen in flight at once, by limit
    std::optional<scheduler> tasks;
    std::size_t submitted = 0;
    std::size_t runs = 0;

    auto const come_up = [&] {
        tasks.emplace(open(), ax::options{.workers = 6, .claimed_ahead = 8, .seed = 5}, clock, loop);
        auto const run = [&] {
            ++runs;
            if (below(6) == 0) throw ax::retry_after{2s};
        };
        tasks->set_resource("gpu", 3);
        tasks->on(probe, run, {.concurrency = 3, .resources = {{"gpu", 1}}});
        tasks->on(other, run, {.resources = {{"gpu", 2}}});
        tasks->limit_tag("a", {.concurrency = 2});
        tasks->limit_tag("b", {.concurrency = 1});
    };
    // Everything posted is in flight: counted before it is run, from what the store says.
    auto const look = [&] {
        std::map<std::string, int> flying;
        for (auto const state : {task_state::dispatched, task_state::running}) {
            ax::task_filter filter;
            filter.state = state;
            for (auto const& task : tasks->list(filter)) {
                for (auto const& tag : task.tags) ++flying[tag];
                ++flying[task.type];
                flying["gpu"] += task.type == "probe" ? 1 : 2;
            }
        }
        CHECK(flying["gpu"] <= 3);
        CHECK(flying["a"] <= 2);
        CHECK(flying["b"] <= 1);
        CHECK(flying["probe"] <= 3);
        for (auto const& [name, number] : flying) most[name] = (std::max)(most[name], number);
    };

    come_up();
    for (int step = 0; step != 250; ++step) {
        clock.advance(ax::duration{below(3) == 0 ? 0 : static_cast<std::int64_t>(below(500))});
        for (auto n = below(3); n != 0; --n) {
            ax::submit_options how;
            if (below(2) == 0) how.tags.emplace_back("a");
            if (below(3) == 0) how.tags.emplace_back("b");
            if (below(4) == 0) how.priority = ax::priority::high;
            if (below(4) == 0) how.delay = 1s;
            if (below(6) == 0) how.route_key = "r";
            tasks->submit(below(3) == 0 ? other : probe, {}, std::move(how));
            ++submitted;
        }
        if (below(50) == 0) tasks->pause(probe);
        if (below(10) == 0) tasks->resume(probe);
        if (below(60) == 0) clock.set(clock.now() - 700ms);
        tasks->poll(clock.now());
        look();
        for (auto n = below(5); n != 0; --n) loop.step();
        if (below(80) == 0) {
            loop.drain();
            tasks.reset();
            come_up();
        }
    }
    tasks->resume(probe);
    ax::task_filter unfinished;
    std::size_t left = 1;
    for (int rounds = 0; left != 0 && rounds != 20'000; ++rounds) {
        tasks->poll(clock.now());
        look();
        loop.drain();
        auto const next = tasks->next_wakeup();
        left = 0;
        for (auto const state : {task_state::ready, task_state::failed, task_state::dispatched, task_state::running}) {
            unfinished.state = state;
            unfinished.limit = 1;
            left += tasks->list(unfinished).size();
        }
        if (next && *next > clock.now()) clock.advance(*next - clock.now());
        if (!next && left != 0) FAIL("somebody waits, and nobody will come");
    }
    CHECK(left == 0);
    unfinished.state = task_state::dead;
    unfinished.limit = 10'000;
    auto const dead = tasks->list(unfinished).size();
    unfinished.state = task_state::succeeded;
    CHECK(tasks->list(unfinished).size() + dead == submitted);
    CHECK(runs >= submitted);
    for (auto const& each : tasks->store().limits()) CHECK(each.used == 0);
    CHECK(most["gpu"] == 3); // the limits were reached, lest this proves nothing
    CHECK(most["a"] == 2);
    CHECK(most["b"] == 1);
}

} // namespace

TEST_CASE("a scheduler exceeds no limit through a random life, and ends all there is", "[scheduler][limits]") {
    store_type store;
    random_life<store_type>(GENERATE(range(1U, 13U)), [&] { return store; });
}

TEST_CASE("a scheduler on SQLite exceeds no limit, and ends all there is", "[scheduler][limits][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    random_life<ax::sqlite_storage>(GENERATE(range(1U, 4U)), [&] { return ax::sqlite_storage{path}; });
}
