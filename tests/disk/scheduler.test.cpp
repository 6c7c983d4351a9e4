// SPDX-License-Identifier: MIT
// A scheduler on a disk that fails, and on one whose power is cut.
#include "ax/scheduler/scheduler.hpp"

#include "ax/storage/sqlite.hpp"
#include "ax/testing/manual_clock.hpp"

#include "disk/power_vfs.hpp"
#include "disk/support.hpp"
#include "storage/sqlite_process.hpp"
#include "support/catch.hpp"

#include <sqlite3.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

using namespace disk;
using namespace std::chrono_literals;

namespace {

using simulated = ax::scheduler<ax::sqlite_storage, ax::testing::manual_clock>;
inline constexpr ax::task_type<std::uint64_t> probe{"probe"};

void execute(sqlite3* db, std::string const& sql) {
    if (sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
        throw std::runtime_error(sqlite3_errmsg(db));
}

void run_for(simulated& tasks, ax::testing::manual_clock& clock, ax::time_span span) {
    auto const end = clock.now() + span.value();
    for (int polls = 0; polls != 10'000; ++polls) {
        tasks.poll(clock.now());
        auto const next = tasks.next_wakeup();
        if (!next || *next > end) break;
        if (*next > clock.now()) clock.advance(*next - clock.now());
    }
    if (end > clock.now()) clock.advance(end - clock.now());
    tasks.poll(clock.now());
}

/// How often each key is in the handlers' table.
std::map<std::string, int> read_ledger(ax::sqlite_storage& store) {
    std::map<std::string, int> found;
    store.transact(ax::commit::lazy, [&](writer& w) {
        found.clear();
        sqlite3_exec(
            w.handle(), "SELECT key FROM ledger",
            [](void* to, int, char** values, char**) {
                ++(*static_cast<std::map<std::string, int>*>(to))[values[0]];
                return 0;
            },
            &found, nullptr);
    });
    return found;
}

} // namespace

TEST_CASE("a disk that is away is told by health(), and that it came back is noticed without being asked",
          "[disk][sick]") {
    watched_vfs disk{"ax-sick"};
    int answer = SQLITE_OK;
    call refused = GENERATE(call::write, call::sync, call::read);
    bool const full = GENERATE(false, true);
    if (full && refused == call::read) return;
    CAPTURE(to_string(refused), full);
    disk.before = [&](request const& asked) { return asked.kind == refused ? answer : SQLITE_OK; };
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    auto settings = settings_on(disk);
    settings.cache_bytes = 1; // so that reads reach the disk
    ax::testing::manual_clock clock;
    std::vector<ax::event_kind> storage_events;
    simulated tasks{ax::sqlite_storage{path, settings}, ax::options{.seed = 7}, clock};
    int runs = 0;
    tasks.on(probe, [&] { ++runs; });
    tasks.observe([&](ax::event const& e) {
        if (e.kind == ax::event_kind::storage_down || e.kind == ax::event_kind::storage_up)
            storage_events.push_back(e.kind);
    });
    std::vector<ax::task_id> made;
    for (std::uint64_t n = 0; n != 20; ++n) made.push_back(tasks.submit(probe, n, {.delay = 1s}).id);
    tasks.poll(clock.now());

    answer = full ? SQLITE_FULL : failure_of(refused);
    run_for(tasks, clock, 30s);
    auto const health = tasks.health();
    if (refused != call::read) { // what is in the cache need not be read
        CHECK_FALSE(health.storage_ok);
        CHECK(health.consecutive_failures > 2);
        CHECK(health.consecutive_failures < 60); // no loop without end
        CHECK_THAT(health.storage_error, Catch::Matchers::Contains(path));
        CHECK(runs == 0);
        try {
            tasks.submit(probe, 99);
            FAIL("acknowledged");
        } catch (ax::error const& e) {
            CHECK(e.kind() == (full ? ax::errc::disk_full : ax::errc::unavailable));
        }
    }
    answer = SQLITE_OK;
    run_for(tasks, clock, 10s);
    CHECK(tasks.health().storage_ok);
    CHECK(tasks.health().storage_error.empty());
    for (auto const id : made) CHECK(tasks.find(id)->state == ax::task_state::succeeded);
    if (refused == call::read) return;
    CHECK(runs == 20);
    CHECK(storage_events == std::vector{ax::event_kind::storage_down, ax::event_kind::storage_up});
    CHECK(tasks.list({.limit = 1'000}).size() == 20); // nothing that was refused is there
}

TEST_CASE("a power cut takes no acknowledged task and no reported outcome, and effects are there once",
          "[disk][power]") {
    bool const strict = GENERATE(true, false);
    CAPTURE(strict);
    std::size_t again = 0;
    for (std::uint64_t seed = 1; seed <= rounds(10); ++seed) {
        std::mt19937_64 random{seed};
        power_vfs disk{"ax-power"};
        temporary_directory const directory;
        auto const path = directory.file("store.db");
        auto settings = settings_on(disk);
        settings.checkpoint_pages = 1 + random() % 60;
        {
            ax::sqlite_storage first{path, settings};
            first.transact(ax::commit::durable,
                           [](writer& w) { execute(w.handle(), "CREATE TABLE ledger (key TEXT)"); });
        }
        ax::testing::manual_clock clock;
        std::set<std::string> acknowledged, reported, late; // late: run after it was reported
        std::uint64_t next = 0;
        for (int life = 0; life != 6; ++life) {
            CAPTURE(seed, life);
            bool const last = life == 5;
            disk.cut_after(last ? power_vfs::never : random() % 150);
            try {
                simulated tasks{
                    ax::sqlite_storage{path, settings},
                    ax::options{.durability = strict ? ax::durability::power_loss : ax::durability::process_crash,
                                .seed = 7},
                    clock};
                tasks.on(probe,
                         [&](std::uint64_t const& n, ax::context& ctx) {
                             auto const key = ctx.task().key;
                             if (reported.contains(key)) late.insert(key);
                             if (n % 7 == 0 && ctx.task().failures == 0) throw std::runtime_error("fails once");
                             ctx.commit_with(
                                 [key](sqlite3* db) { execute(db, "INSERT INTO ledger VALUES ('" + key + "')"); });
                         },
                         {.retry = ax::retry::fixed(1s)});
                tasks.observe([&](ax::event const& e) {
                    if (e.kind == ax::event_kind::reported && e.outcome == ax::attempt_outcome::succeeded)
                        reported.insert(std::string(e.key));
                });
                for (int step = 0; step != 40 && !disk.is_off() && !last; ++step) {
                    auto const key = "k" + std::to_string(next);
                    tasks.submit(probe, next++,
                                 {.key = key, .delay = ax::duration{static_cast<int>(random() % 3'000)}});
                    acknowledged.insert(key);
                    clock.advance(ax::duration{static_cast<int>(random() % 400)});
                    tasks.poll(clock.now());
                }
                if (last) run_for(tasks, clock, 1min);
                if (!last) disk.cut(); // before the destructor, which would settle and close
            } catch (ax::error const&) {
                if (!disk.is_off()) throw;
            }
            if (!last) disk.restore(random);
        }
        ax::sqlite_storage store{path, settings};
        auto const wrong = complaints(store);
        INFO(wrong);
        CHECK(wrong.empty());
        auto const ledger = read_ledger(store);
        std::set<std::string> kept;
        for (auto const& task : store.list({.limit = 10'000}, clock.now())) {
            CAPTURE(seed, task.key);
            kept.insert(task.key);
            CHECK(task.state == ax::task_state::succeeded);
            auto const found = ledger.find(task.key);
            CHECK((found != ledger.end() && found->second == 1));
        }
        CHECK(ledger.size() == kept.size());
        if (strict) {
            std::size_t lost = 0;
            for (auto const& key : acknowledged) lost += !kept.contains(key);
            CHECK(lost == 0);
            CHECK(late.empty());
        } else {
            // What is lost of one life are its latest submits, so what is kept has no hole within a life; more is said
            // by the test of the storage.
            again += late.size() + acknowledged.size() - kept.size();
        }
    }
    if (!strict) CHECK(again > 0); // else the cuts have hit nothing
}

TEST_CASE("a second scheduler on one file is refused, and the first one does not notice", "[disk][hostile]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    ax::testing::manual_clock clock;
    simulated tasks{ax::sqlite_storage{path}, ax::options{.seed = 7}, clock};
    int runs = 0;
    tasks.on(probe, [&] { ++runs; });
    for (std::uint64_t n = 0; n != 5; ++n) {
        tasks.submit(probe, n);
        try {
            simulated const second{ax::sqlite_storage{path}, ax::options{.seed = 8}, clock};
            FAIL("two owners");
        } catch (ax::error const& e) {
            CHECK(e.kind() == ax::errc::locked);
            CHECK_THAT(e.what(), Catch::Matchers::Contains(path));
        }
        tasks.poll(clock.now());
    }
    CHECK(runs == 5);
    CHECK(tasks.health().storage_ok);
}

TEST_CASE("a host that forks keeps its scheduler, and the child is told that it has none", "[disk][hostile]") {
    temporary_directory const directory;
    ax::testing::manual_clock clock;
    std::optional<simulated> tasks;
    tasks.emplace(ax::sqlite_storage{directory.file("store.db")}, ax::options{.seed = 7}, clock);
    int runs = 0;
    tasks->on(probe, [&] { ++runs; });
    auto const before = tasks->submit(probe, 1).id;
    child_process child([&](auto const&) {
        auto const refused = [](auto const& use) {
            try {
                use();
                return false;
            } catch (ax::error const& e) {
                return e.kind() == ax::errc::invalid_argument;
            }
        };
        if (!refused([&] { tasks->submit(probe, 2); })) return 1;
        if (!refused([&] { tasks->cancel(before); })) return 2;
        if (!refused([&] { tasks->poll(clock.now()); })) return 3;
        tasks.reset();
        return 0;
    });
    CHECK(child.wait() == 0);
    tasks->submit(probe, 3);
    tasks->poll(clock.now());
    CHECK(runs == 2);
    CHECK(tasks->list({.state = ax::task_state::succeeded}).size() == 2);
}
