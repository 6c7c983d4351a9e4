// SPDX-License-Identifier: MIT
// A crontab runs for a month of virtual time on SQLite, in a process that dies between any two steps, hundreds of
// times.
#include "ax/core/random.hpp"
#include "ax/scheduler/scheduler.hpp"
#include "ax/storage/sqlite.hpp"
#include "ax/testing/manual_clock.hpp"

#include "endurance/support.hpp"
#include "storage/sqlite_fixture.hpp"
#include "support/catch.hpp"
#include "support/paths.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <new>
#include <string>
#include <utility>

using namespace endurance;

namespace {

inline constexpr ax::task_type<> tick{"tick"};

/// What outlives a process: the time that it is, and what the next one is to do.
struct beyond_death {
    std::atomic<std::int64_t> now{0};
    std::atomic<std::uint64_t> runs{0};       ///< of the handler
    std::atomic<std::uint64_t> steps_left{0}; ///< until it dies; 0: never
};

beyond_death* shared = nullptr;

/// One step of a life: before a commit, within its transaction, behind it, or in a handler.
void step() {
    auto const left = shared->steps_left.load();
    if (left == 0) return;
    shared->steps_left = left - 1;
    if (left == 1) ::kill(::getpid(), SIGKILL);
}

/// A store in which each commit is three steps.
class mortal_storage : public ax::sqlite_storage {
  public:
    using ax::sqlite_storage::sqlite_storage;

    template <class Fn>
    void transact(ax::commit kind, Fn&& fn) {
        step();
        ax::sqlite_storage::transact(kind, [&](writer& w) {
            fn(w);
            step();
        });
        step();
    }
};

/// One life of the process: from where the one before it died to `end`, if it comes so far.
void live(std::string const& path, std::vector<planned> const& all, ax::time_point end) {
    ax::testing::manual_clock clock{ax::time_point{ax::duration{shared->now.load()}}};
    ax::options chosen;
    chosen.durability = ax::durability::process_crash;
    chosen.poison_after = 1'000'000; // each is innocent
    chosen.retention.age = 24h * 10'000;
    chosen.retention.count = 1'000'000;
    ax::scheduler<mortal_storage, ax::testing::manual_clock> tasks{mortal_storage{path}, chosen, clock};
    tasks.on(tick, [] {
        step();
        ++shared->runs;
        step();
    });
    ax::schedule_options how;
    how.misfire = ax::misfire::run_all(10'000);
    how.overlap = ax::overlap::queue_all;
    for (auto const& one : all) tasks.schedule(one.name, one.when, tick, {}, how);
    for (;;) {
        tasks.poll(clock.now());
        auto const next = tasks.next_wakeup();
        if (!next || *next > end) return;
        if (*next > clock.now()) clock.advance(*next - clock.now());
        shared->now = clock.now().time_since_epoch().count();
    }
}

} // namespace

TEST_CASE("a month of a crontab on SQLite, with a crash between any two steps: each occurrence once",
          "[endurance][schedules]") {
    constexpr ax::time_point start{1'774'137'600'000ms}; // 2026-03-22 00:00 UTC, a week before the clocks change
    auto const end = start + (sanitized ? 24h * 8 : 24h * 31);
    temporary_directory const folder;
    auto const path = folder.file("tasks.db");
    auto const all = schedules_of(test::data_file("crontabs/01-user-plain.crontab"), "Europe/Berlin");
    REQUIRE(all.size() == 15);

    void* const room = ::mmap(nullptr, sizeof(beyond_death), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(room != MAP_FAILED);
    shared = new (room) beyond_death;
    shared->now = start.time_since_epoch().count();

    ax::splitmix64 random{42};
    int deaths = 0;
    { // the schedules are declared by a life that ends at once, so that none counts from later
        auto const id = ::fork();
        REQUIRE(id >= 0);
        if (id == 0) {
            live(path, all, start);
            ::_exit(0);
        }
        int status = 0;
        REQUIRE(::waitpid(id, &status, 0) == id);
        REQUIRE((WIFEXITED(status) && WEXITSTATUS(status) == 0));
    }
    for (;;) {
        // Most lives are long enough to come forward, and some die while they recover.
        shared->steps_left = 1 + random() % (deaths % 3 == 0 ? 20 : 1500);
        auto const id = ::fork();
        REQUIRE(id >= 0);
        if (id == 0) {
            try {
                live(path, all, end);
            } catch (...) {
                ::_exit(1);
            }
            ::_exit(0);
        }
        int status = 0;
        REQUIRE(::waitpid(id, &status, 0) == id);
        if (WIFEXITED(status)) {
            REQUIRE(WEXITSTATUS(status) == 0);
            break;
        }
        REQUIRE((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
        REQUIRE(++deaths < 10'000);
        if (random() % 10 == 0) { // it is not noticed at once
            auto const later = shared->now + static_cast<std::int64_t>(random() % 7'200'000);
            shared->now = (std::min)(later, end.time_since_epoch().count());
        }
    }

    ax::sqlite_storage const store{path};
    std::uint64_t total = 0;
    for (auto const& one : all) {
        CAPTURE(one.name);
        for (auto at = one.when.next(start); at && *at <= end; at = one.when.next(*at)) {
            auto const task = store.occurrence(one.name, *at);
            if (!task || task->state != ax::task_state::succeeded) {
                CAPTURE(at->time_since_epoch().count());
                CHECK(task.has_value());
                if (task) CHECK(task->state == ax::task_state::succeeded);
            }
            ++total;
        }
    }
    std::uint64_t there = 0;
    for (auto const& each : store.counts()) there += each.tasks;
    CHECK(there == total); // none beside those that were planned
    for (auto const& record : store.schedules()) {
        CAPTURE(record.name, record.last_skip);
        CHECK(record.skipped == 0);
    }
    CHECK(total > (sanitized ? 2'500U : 10'000U));
    CHECK(shared->runs.load() >= total);
    CAPTURE(deaths);
    CHECK(deaths > (sanitized ? 30 : 150));
    CHECK(store.verify().empty());
    ::munmap(room, sizeof(beyond_death));
    shared = nullptr;
}
