// SPDX-License-Identifier: MIT
// The clean-up on a file, over restarts.
#include "ax/scheduler/scheduler.hpp"
#include "ax/storage/sqlite.hpp"
#include "ax/testing/manual_clock.hpp"

#include "storage/sqlite_fixture.hpp"
#include "support/catch.hpp"

#include <optional>

namespace {

using namespace std::chrono_literals;
using scheduler_type = ax::scheduler<ax::sqlite_storage, ax::testing::manual_clock>;
inline constexpr ax::task_type<> daily{"daily"};

} // namespace

TEST_CASE("a file that is opened for half an hour a day is cleaned up, though not by a jump of the clock",
          "[scheduler][retention][sqlite]") {
    temporary_directory const directory;
    ax::testing::manual_clock clock;
    std::optional<scheduler_type> tasks;
    auto const open = [&] {
        tasks.reset();
        tasks.emplace(ax::sqlite_storage{directory.file("store.db")}, ax::options{.retention = {.age = 24h * 5}},
                      clock);
        tasks->on(daily, [] {});
    };
    auto const pass = [&](ax::duration span) {
        for (; span > span.zero(); span -= 1min) {
            clock.advance(1min);
            tasks->poll(clock.now());
        }
    };
    open();
    tasks->submit_all(daily, std::vector<ax::no_payload>(500));
    tasks->poll(clock.now());
    CHECK(tasks->stats().tasks("daily", ax::task_state::succeeded) == 500);
    pass(30min);

    int days = 0;
    for (; tasks->stats().tasks(ax::task_state::succeeded) != 0; ++days) {
        REQUIRE(days < 30);
        if (days < 5) CHECK(tasks->stats().tasks(ax::task_state::succeeded) == 500);
        clock.advance(24h - 30min);
        open();
        pass(30min);
    }
    CHECK(days >= 5);
    CHECK(days <= 10);
    CHECK(tasks->health().pruned == 500);

    tasks->submit(daily);
    tasks->poll(clock.now());
    clock.advance(100 * 24h); // as far as anybody can tell from now
    open();
    pass(30min);
    CHECK(tasks->health().clock_in_doubt);
    CHECK(tasks->stats().tasks(ax::task_state::succeeded) == 1);
    pass(90min);
    CHECK(tasks->stats().tasks(ax::task_state::succeeded) == 0);
    CHECK(tasks->verify().empty());
}
