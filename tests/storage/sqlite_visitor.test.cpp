// SPDX-License-Identifier: MIT
#include "ax/storage/sqlite_visitor.hpp"

#include "conformance/support.hpp"
#include "storage/sqlite_fixture.hpp"
#include "storage/sqlite_process.hpp"

#include <atomic>
#include <fstream>
#include <thread>

using namespace conformance;

namespace {

ax::errc refusal(std::string const& path, std::string* text = nullptr) {
    try {
        ax::sqlite_visitor const visitor{path};
    } catch (ax::error const& e) {
        if (text != nullptr) *text = e.what();
        return e.kind();
    }
    FAIL("it was opened");
    return {};
}

void execute(std::string const& path, char const* sql) {
    sqlite3* db = nullptr;
    REQUIRE(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
    CHECK(sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
    sqlite3_close(db);
}

} // namespace

TEST_CASE("sqlite_visitor sees what the owner has committed, and changes what waits", "[storage][sqlite][visitor]") {
    workbench<sqlite_fixture> w;
    ax::sqlite_visitor visitor{w.fixture.directory.file("store.db")};
    auto keyed = w.task("{\"n\":1}");
    keyed.key = "order 1";
    auto const waiting = w.add(keyed);
    auto const dying = w.add();
    auto const running = w.add();
    w.finish(w.take(dying), attempt_outcome::exhausted);
    auto const claimed = w.take(running);
    w.start(claimed, t0);
    auto const first = w.add(w.task_of("r"));
    auto const second = w.add(w.task_of("r"));

    CHECK(visitor.find(waiting)->payload == "{\"n\":1}");
    CHECK(visitor.find_by_key("order 1")->id == waiting);
    CHECK(visitor.list({.state = task_state::dead}, t0).at(0).id == dying);
    CHECK(visitor.history(dying).size() == 1);
    CHECK(visitor.obstacles(second).at(0).holders == ids{first});
    CHECK(visitor.types().at(0).name == "probe");
    CHECK(visitor.schedules().empty());

    CHECK(visitor.cancel(waiting, t0).outcome == change_outcome::done);
    CHECK(w.get(waiting).state == task_state::cancelled);
    CHECK_FALSE(w.can_take(waiting));
    CHECK(visitor.retry(dying, t0 + 1s).outcome == change_outcome::done);
    CHECK(w.get(dying).state == task_state::ready);
    CHECK(w.can_take(dying, t0 + 1s));
    CHECK(visitor.cancel(ax::task_id{999}, t0).outcome == change_outcome::unknown);

    auto const asked = visitor.cancel(running, t0); // its owner has it in hands: it is asked
    CHECK(asked.outcome == change_outcome::wrong_state);
    CHECK(asked.state == task_state::running);
    CHECK(w.store.asked_to_stop() == ids{running});
    CHECK(w.finish(claimed, attempt_outcome::cancelled).accepted.at(0));

    CHECK(visitor.verify(false, t0).empty());
    std::size_t counted = 0;
    for (auto const& each : visitor.counts()) counted += each.tasks;
    CHECK(counted == 5);
    w.write([](auto& writer) { sqlite3_exec(writer.handle(), "DELETE FROM ax_count", nullptr, nullptr, nullptr); });
    REQUIRE_FALSE(visitor.verify(false, t0).empty());
    for (auto const& one : visitor.verify(true, t0)) CHECK(one.repaired);
    CHECK(visitor.verify(false, t0).empty());
    CHECK(w.store.verify().empty());

    CHECK(visitor.pause("probe", true));
    CHECK(w.store.types().at(0).paused);
    CHECK(visitor.pause("probe", false));
    CHECK_FALSE(w.store.types().at(0).paused);
    CHECK_FALSE(visitor.pause("nobody", true));
    CHECK(w.store.types().size() == 1);
}

TEST_CASE("sqlite_visitor refuses what is no store, and makes none", "[storage][sqlite][visitor]") {
    temporary_directory const directory;
    auto const path = directory.file("shop.db");
    CHECK(refusal(path) == ax::errc::not_a_store);
    CHECK_FALSE(std::filesystem::exists(path));
    std::ofstream(path) << "";
    CHECK(refusal(path) == ax::errc::not_a_store);
    execute(path, "CREATE TABLE mine (a)");
    std::string text;
    CHECK(refusal(path, &text) == ax::errc::not_a_store);
    CHECK(text.find("shop.db") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(path + "-ax"));

    auto const other = directory.file("other.db");
    { ax::sqlite_storage const made{other}; }
    execute(other, "UPDATE ax_meta SET value = 99 WHERE name = 'schema_version'");
    CHECK(refusal(other) == ax::errc::newer_schema);
}

TEST_CASE("sqlite_visitor works on a store whose owner was killed, and recovers nothing",
          "[storage][sqlite][visitor]") {
    temporary_directory const directory;
    auto const path = directory.file("shop.db");
    child_process child{[&](auto&& report) {
        ax::sqlite_storage store{path};
        ax::task_id id{};
        store.transact(ax::commit::durable, [&](auto& w) {
            ax::new_task task;
            task.type = w.type("probe");
            ax::alarms due;
            id = w.insert({&task, 1}, t0, due).at(0).id;
            ax::claim_request const request{id, false};
            w.claim({&request, 1}, {node_a, t0, t0, 1});
        });
        report(ax::to_number(id));
        ::pause();
        return 0;
    }};
    std::uint64_t number = 0;
    REQUIRE(child.next(number));
    ax::task_id const id{number};
    child.kill();

    ax::sqlite_visitor visitor{path};
    CHECK(visitor.find(id)->state == task_state::dispatched);
    CHECK(visitor.list({}, t0).size() == 1);
    ax::sqlite_storage const store{path};
    CHECK_FALSE(store.was_clean());
}

TEST_CASE("sqlite_visitor and the owner change one store at the same time", "[storage][sqlite][visitor][threads]") {
    workbench<sqlite_fixture> w;
    ax::sqlite_visitor visitor{w.fixture.directory.file("store.db"), 60s};
    constexpr std::size_t count = 300;
    auto const answers = w.insert(std::vector<ax::new_task>(count, w.task()));
    std::atomic<std::size_t> cancelled{0};
    std::thread beside([&] {
        for (auto const& one : answers)
            if (visitor.cancel(one.id, t0).outcome == change_outcome::done) ++cancelled;
    });
    std::size_t taken = 0;
    for (auto one = answers.rbegin(); one != answers.rend(); ++one) {
        auto const answer = w.claim({{one->id, false}}, {node_a, t0, t0, 1});
        if (answer.claimed.empty()) continue;
        ++taken;
        CHECK(w.finish(answer.claimed.at(0), attempt_outcome::succeeded).accepted.at(0));
    }
    beside.join();
    CHECK(taken + cancelled == count); // each task has one end, whoever was first
    CHECK(w.store.list({.state = task_state::cancelled, .limit = 1'000}, t0).size() == cancelled);
    CHECK(w.store.list({.state = task_state::succeeded, .limit = 1'000}, t0).size() == taken);
}
