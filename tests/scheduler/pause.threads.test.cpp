// SPDX-License-Identifier: MIT
#include "scheduler/support.hpp"

#include <semaphore>
#include <thread>

using namespace test;

namespace {

bool is_paused(store_type const& store, std::string_view name) {
    for (auto const& type : store.types())
        if (type.name == name) return type.paused;
    return false;
}

} // namespace

TEST_CASE("a pause that is overtaken by a resume, or the other way round, leaves what was stored last",
          "[scheduler][pause][threads]") {
    bool const pause_first = GENERATE(true, false);
    CAPTURE(pause_first);
    bench b;
    int runs = 0;
    b->on(probe, [&] { ++runs; });
    b.poll(); // the sweep, which would set memory right, is due again in a second
    if (!pause_first) b->pause(probe);

    // The slow one has stored its wish, and is held up before its memory follows, for as long as the fast one takes.
    std::binary_semaphore stored{0};
    std::binary_semaphore fast_is_done{0};
    std::atomic<std::thread::id> slow_one{};
    b.store.hooks().after_transact = [&] {
        if (std::this_thread::get_id() != slow_one.load()) return;
        stored.release();
        (void)fast_is_done.try_acquire_for(100ms); // passes where the fast one waits for the slow one, as it should
    };
    {
        std::jthread const slow{[&] {
            slow_one = std::this_thread::get_id();
            pause_first ? b->pause(probe) : b->resume(probe);
        }};
        stored.acquire();
        pause_first ? b->resume(probe) : b->pause(probe);
        fast_is_done.release();
    }
    b.store.hooks().after_transact = {};
    CHECK(is_paused(b.store, "probe") == !pause_first);
    b->submit(probe);
    b.poll();
    CHECK(runs == (pause_first ? 1 : 0));
    b->resume(probe);
    b.poll();
    CHECK(runs == 1);
}

TEST_CASE("a schedule that is declared while one of its name is removed fires", "[scheduler][schedules][threads]") {
    bench b;
    int runs = 0;
    b->on(probe, [&] { ++runs; });
    b->schedule("s", ax::every{60s}, probe);
    b.poll();

    // The removal is stored, and held up before memory follows, for as long as the declaration takes.
    std::binary_semaphore stored{0};
    std::binary_semaphore declared{0};
    std::atomic<std::thread::id> remover{};
    b.store.hooks().after_transact = [&] {
        if (std::this_thread::get_id() != remover.load()) return;
        stored.release();
        (void)declared.try_acquire_for(100ms); // passes where the declaration waits, as it should
    };
    {
        std::jthread const slow{[&] {
            remover = std::this_thread::get_id();
            CHECK(b->unschedule("s"));
        }};
        stored.acquire();
        b->schedule("s", ax::every{60s}, probe);
        declared.release();
    }
    b.store.hooks().after_transact = {};
    REQUIRE(b->schedules().size() == 1);
    b.run_for(60s);
    CHECK(runs == 1);
    CHECK(b->schedules().at(0).fired == 1);
}

TEST_CASE("pause and resume from many threads at once: what memory does is what the store says",
          "[scheduler][pause][threads]") {
    store_type store;
    ax::scheduler tasks{store, ax::options{.workers = 2}};
    tally runs;
    tasks.on(probe, [&] { ++runs; });
    tasks.start();
    std::size_t submitted = 0;
    for (int round = 0; round != 30; ++round) {
        {
            std::vector<std::jthread> callers;
            for (int t = 0; t != 4; ++t)
                callers.emplace_back([&, t] {
                    for (int i = 0; i != 10; ++i) (t + i) % 2 == 0 ? tasks.pause(probe) : tasks.resume(probe);
                });
            for (int i = 0; i != 10; ++i, ++submitted) tasks.submit(probe);
        }
        if (is_paused(store, "probe")) tasks.resume(probe);
        REQUIRE(runs.reaches(submitted)); // a type that memory thinks is paused would run nothing
    }
    for (auto const& task : tasks.list({.limit = 2 * submitted})) CHECK(task.attempts == 1);
}
