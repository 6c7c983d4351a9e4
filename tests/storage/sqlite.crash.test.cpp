// SPDX-License-Identifier: MIT
// A process that is killed at whatever it is doing: all that it was told is stored, and nothing is half there.
#include "ax/storage/sqlite.hpp"

#include "storage/sqlite_fixture.hpp"
#include "storage/sqlite_process.hpp"
#include "support/catch.hpp"
#include "support/instants.hpp"

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using writer = ax::sqlite_storage::writer;
using test::t0;

/// Whether SQLite finds its own file sound.
std::string integrity(std::string const& path) {
    sqlite3* db = nullptr;
    std::string answer;
    if (sqlite3_open(path.c_str(), &db) == SQLITE_OK)
        sqlite3_exec(
            db, "PRAGMA integrity_check",
            [](void* to, int, char** values, char**) {
                *static_cast<std::string*>(to) += values[0];
                return 0;
            },
            &answer, nullptr);
    sqlite3_close(db);
    return answer;
}

/// One life in one transaction after another: two tasks that belong together are inserted, the first is claimed and
/// settled with a follow-up. Each commit is reported after it has returned.
template <class Report>
void live(ax::sqlite_storage& store, std::string const& name, ax::commit kind, Report const& report) {
    for (std::uint64_t round = 0;; ++round) {
        ax::task_id first{};
        store.transact(kind, [&](writer& w) {
            ax::new_task made[2];
            for (int i = 0; i < 2; ++i) {
                made[i].type = w.type("probe");
                made[i].payload = std::string(300, 'x');
                made[i].key = name + "/" + std::to_string(round) + (i == 0 ? "/a" : "/b");
            }
            ax::alarms due;
            first = w.insert(made, t0, due).at(0).id;
        });
        report(to_number(first) * 4);
        ax::attempt_end end;
        store.transact(kind, [&](writer& w) {
            ax::claim_request const request{first, false};
            auto const claimed = w.claim({&request, 1}, {ax::node_id{7}, t0, t0, 0}).claimed.at(0);
            end.id = first;
            end.fence = claimed.fence;
        });
        report(to_number(first) * 4 + 1);
        store.transact(kind, [&](writer& w) {
            end.started = end.ended = t0;
            ax::new_task next;
            next.type = w.type("probe");
            next.key = name + "/" + std::to_string(round) + "/c";
            end.follow_ups = {next};
            w.settle({&end, 1}, t0);
        });
        report(to_number(first) * 4 + 2);
    }
}

} // namespace

TEST_CASE("a killed process loses nothing that was acknowledged and leaves no half of a transaction",
          "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    std::mt19937 random(20260101); // where the blow falls
    std::map<std::uint64_t, std::uint64_t> stage;
    for (int round = 0; round < 14; ++round) {
        CAPTURE(round);
        auto const kind = round % 2 == 0 ? ax::commit::lazy : ax::commit::durable;
        child_process worker([&](auto const& report) {
            ax::sqlite_settings settings;
            settings.checkpoint_pages = 50; // so that the blow also falls into checkpoints
            ax::sqlite_storage store{path, settings};
            live(store, std::to_string(round), kind, report);
            return 0;
        });
        auto const reports = 1 + random() % (kind == ax::commit::lazy ? 400U : 60U);
        std::uint64_t number = 0;
        for (unsigned i = 0; i < reports; ++i) {
            REQUIRE(worker.next(number));
            stage[number / 4] = number % 4;
        }
        worker.kill();
        while (worker.next(number)) stage[number / 4] = number % 4; // what it reported before it died

        ax::sqlite_storage store{path};
        CHECK_FALSE(store.was_clean());
        for (auto const& [id, reached] : stage) {
            CAPTURE(id, reached);
            auto const first = store.find(ax::task_id{id});
            REQUIRE(first);
            auto const stem = first->key.substr(0, first->key.size() - 1);
            REQUIRE(store.find_by_key(stem + "b"));
            if (reached == 1)
                CHECK((first->state == ax::task_state::dispatched || first->state == ax::task_state::succeeded));
            if (reached == 2) REQUIRE(first->state == ax::task_state::succeeded);
            CHECK(store.find_by_key(stem + "c").has_value() == (first->state == ax::task_state::succeeded));
        }
        std::size_t given_back = 0;
        store.transact(ax::commit::durable, [&](writer& w) {
            given_back = w.reclaim({ax::node_id{8}, 3, t0}).reclaimed;
        });
        CHECK(given_back <= 1);
        for (auto& [id, reached] : stage)
            if (reached == 1 && store.find(ax::task_id{id})->state == ax::task_state::ready) reached = 0;
    }
    CHECK(integrity(path) == "ok");
    CHECK(stage.size() > 100);
}

TEST_CASE("a process that is killed while it creates the store leaves one that opens", "[storage][sqlite]") {
    for (int round = 0; round < 10; ++round) {
        temporary_directory const directory;
        auto const path = directory.file("store.db");
        child_process worker([&](auto const& report) {
            report(0);
            ax::sqlite_storage const store{path};
            for (;;) report(1);
            return 0;
        });
        std::uint64_t number = 0;
        REQUIRE(worker.next(number));
        for (int i = 0; i < 200 * round; ++i) std::this_thread::yield(); // somewhere else each time
        worker.kill();
        CHECK_NOTHROW(ax::sqlite_storage{path});
    }
}

TEST_CASE("durable commits of many threads are all kept, each with its own answer", "[storage][sqlite][threads]") {
    temporary_directory const directory;
    ax::sqlite_storage store{directory.file("store.db")};
    constexpr std::size_t threads = 8;
    constexpr std::size_t rounds = 30;
    std::vector<std::vector<ax::task_id>> given(threads);
    std::vector<std::thread> running;
    for (std::size_t t = 0; t < threads; ++t)
        running.emplace_back([&, t] {
            for (std::size_t i = 0; i < rounds; ++i)
                store.transact(ax::commit::durable, [&](writer& w) {
                    ax::new_task made;
                    made.type = w.type("type " + std::to_string(i));
                    made.payload = std::to_string(t) + "/" + std::to_string(i);
                    ax::alarms due;
                    auto const id = w.insert({&made, 1}, t0, due).at(0).id;
                    given[t].resize(i); // it may be run again
                    given[t].push_back(id);
                });
        });
    for (auto& thread : running) thread.join();
    for (std::size_t t = 0; t < threads; ++t) {
        REQUIRE(given[t].size() == rounds);
        for (std::size_t i = 0; i < rounds; ++i) {
            auto const task = store.find(given[t][i]);
            REQUIRE(task);
            CHECK(task->payload == std::to_string(t) + "/" + std::to_string(i));
            CHECK(task->type == "type " + std::to_string(i));
        }
    }
    CHECK(store.types().size() == rounds);
}
