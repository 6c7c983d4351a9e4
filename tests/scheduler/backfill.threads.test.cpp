// SPDX-License-Identifier: MIT
#include "ax/scheduler/backfill.hpp"

#include "scheduler/support.hpp"

using namespace test;

TEST_CASE("a backfill goes on by itself where the scheduler has threads of its own, in any order that callers ask",
          "[scheduler][schedules][backfill][threads]") {
    ax::testing::manual_clock clock;
    store_type store;
    std::mutex mutex;
    std::vector<ax::time_point> ran;
    tally runs;
    simulated tasks{store, ax::options{.workers = 4}, clock};
    tasks.on(probe, [&](ax::context& ctx) {
        {
            std::lock_guard const guard{mutex};
            ran.push_back(ctx.scheduled_at());
        }
        ++runs;
    });
    ax::schedule_options how;
    how.depends_on_past = GENERATE(false, true);
    auto const start = clock.now();
    tasks.schedule("s", ax::every{1s}, probe, {}, how);
    tasks.pause_schedule("s");
    tasks.start();
    auto const ask = [&](int from, int to) {
        ax::backfill_options chosen;
        chosen.at_once = 5;
        tasks.backfill("s", start + from * 1s, start + to * 1s, chosen);
    };
    std::thread one{[&] { ask(-300, -100); }};
    std::thread two{[&] { ask(-200, 0); }};
    std::thread three{[&] {
        for (int i = 0; i != 20; ++i) {
            tasks.mark_catch_up("s", start - 50s);
            tasks.release("s", start - 50s);
        }
        tasks.release_all("s");
    }};
    one.join();
    two.join();
    three.join();
    CHECK(runs.reaches(300));
    tasks.stop(60s);
    std::lock_guard const guard{mutex};
    std::sort(ran.begin(), ran.end());
    CHECK(ran.size() == 300);
    CHECK(std::unique(ran.begin(), ran.end()) == ran.end());
    if (how.depends_on_past) CHECK(store.memory().check_invariants() == "");
}
