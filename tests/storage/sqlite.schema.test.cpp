// SPDX-License-Identifier: MIT
// Stores of every schema there has been, and that none of them is edited any more.
#include "ax/storage/detail/awaited_occurrence.hpp"
#include "ax/storage/sqlite.hpp"

#include "storage/sqlite_fixture.hpp"
#include "support/catch.hpp"
#include "support/instants.hpp"
#include "support/paths.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace {

using test::t0;

/// FNV-1a.
constexpr std::uint64_t checksum(std::string_view text) {
    std::uint64_t sum = 14695981039346656037U;
    for (char const c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 1099511628211U;
    return sum;
}

/// A store as a former version left it: a dump of it, run on an empty database.
void restore(std::string const& path, int schema) {
    std::ifstream in(test::data_file("sqlite/schema-" + std::to_string(schema) + ".sql"));
    std::string const dump{std::istreambuf_iterator<char>(in), {}};
    REQUIRE(dump.size() > 1'000);
    ax::detail::sqlite_connection db{path};
    db.execute(dump.c_str());
}

/// Tables and indexes, in words without the white space.
std::vector<std::string> schema_of(std::string const& path) {
    ax::detail::sqlite_connection db{path};
    auto const statement = db.prepare("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name");
    ax::detail::sqlite_run row(db, statement.get());
    std::vector<std::string> answer;
    while (row.next()) {
        answer.emplace_back();
        for (char const c : row.text(0))
            if (c != ' ' && c != '\n') answer.back() += c;
    }
    return answer;
}

} // namespace

TEST_CASE("a migration that has been released is never edited", "[storage][sqlite]") {
    // Where this fails, take the edit back and add a further migration instead: stores that have gone through the old
    // one never see the edit.
    std::vector<std::uint64_t> const released{13631620882504122283U, 18104139236755424143U,
                                              10780873070688185333U};
    REQUIRE(std::size(ax::detail::sqlite_migrations) == released.size());
    for (std::size_t i = 0; i < released.size(); ++i) {
        CAPTURE(i + 1);
        CHECK(ax::detail::sqlite_migrations[i].version == static_cast<int>(i + 1));
        CHECK(checksum(ax::detail::sqlite_migrations[i].sql) == released[i]);
    }
}

TEST_CASE("whether a file has tables of a store is asked for every one of them", "[storage][sqlite]") {
    std::string_view const asked = ax::detail::sqlite_count_tables;
    std::size_t tables = 0;
    for (auto const& migration : ax::detail::sqlite_migrations) {
        std::string_view const sql = migration.sql;
        constexpr std::string_view create = "CREATE TABLE ";
        for (auto at = sql.find(create); at != sql.npos; at = sql.find(create, at + 1)) {
            auto const name = sql.substr(at + create.size(), sql.find(' ', at + create.size()) - at - create.size());
            CAPTURE(name);
            CHECK(asked.find("'" + std::string(name) + "'") != asked.npos);
            ++tables;
        }
    }
    auto const listed = asked.substr(asked.find(" IN ("));
    CHECK(static_cast<std::size_t>(std::count(listed.begin(), listed.end(), '\'')) == 2 * tables); // and for no other
    CHECK(tables == 21);
}

TEST_CASE("occurrences that were waited for under schema 1 still are", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    restore(path, 1);
    {
        ax::detail::sqlite_connection db{path};
        db.execute("INSERT INTO ax_await (target, task, name) VALUES "
                   "('s1767225600000 night job', 3, 'a'), ('s-5 x', 3, ''), ('kclose 7', 3, '')");
    }
    { ax::sqlite_storage const opened{path}; }
    ax::detail::sqlite_connection db{path};
    auto const statement = db.prepare("SELECT target FROM ax_await ORDER BY target");
    ax::detail::sqlite_run row(db, statement.get());
    std::vector<std::string> targets;
    while (row.next()) targets.emplace_back(row.text(0));
    using ax::detail::awaited_occurrence;
    CHECK(targets == std::vector<std::string>{"kclose 7", awaited_occurrence<std::string>("night job", t0),
                                              awaited_occurrence<std::string>("x", ax::time_point{ax::duration{-5}})});
}

TEST_CASE("a store of any former schema opens, with all that is in it", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    auto const schema = GENERATE(range(1, ax::detail::sqlite_schema_version + 1));
    CAPTURE(schema);
    restore(path, schema);
    {
        ax::sqlite_storage store{path};
        CHECK(store.store_id() == "00112233445566778899aabbccddeeff");
        REQUIRE(store.types().size() == 2);
        CHECK(store.types()[1].name == "r\xC3\xA9port");
        CHECK(store.types()[1].paused);
        REQUIRE(store.schedules().size() == 1);
        CHECK(store.schedules()[0].next == t0 + std::chrono::hours{24});
        CHECK(store.schedules()[0].last_task == ax::task_id{5});
        CHECK(store.schedules()[0].terms == "overlap allow");
        CHECK(store.schedules()[0].paused);
        auto const skips = store.skips("nightly");
        REQUIRE(skips.latest.size() == (schema < 2 ? 0 : 1)); // before, only their number was kept
        if (schema >= 2) {
            CHECK(skips.latest[0].first == t0 - std::chrono::hours{48});
            CHECK(skips.latest[0].last == t0 - std::chrono::hours{24});
            CHECK(skips.latest[0].number == store.schedules()[0].skipped);
            CHECK(skips.latest[0].reason == "it was paused");
            CHECK(skips.latest[0].recorded == t0);
            REQUIRE(skips.reasons.size() == 1);
            CHECK(skips.reasons[0].number == 2);
        }

        auto const first = store.find_by_key("close-42");
        REQUIRE(first);
        CHECK(first->payload == R"({"order_id":42})");
        CHECK(first->priority == ax::priority::high);
        CHECK_FALSE(store.find(ax::task_id{2})->blocked);
        CHECK(store.find(ax::task_id{3})->blocked);
        CHECK(store.find(ax::task_id{3})->route_order == ax::route_order::relaxed);
        CHECK(store.find(ax::task_id{4})->state == ax::task_state::failed);
        CHECK(store.history(ax::task_id{4}).at(0).log == "line 1\nline 2");
        REQUIRE(store.steps(ax::task_id{4}).size() == 1);
        CHECK(store.steps(ax::task_id{4})[0].value == "\"receipt-7\"");
        CHECK(store.history(ax::task_id{6}).at(0).outcome == ax::attempt_outcome::succeeded);
        CHECK(store.find(ax::task_id{6})->result == R"({"ok":true})");
        CHECK(store.find(ax::task_id{8})->last_error == "refused");
        CHECK(store.find(ax::task_id{8})->key_scope == ax::key_scope::active);
        CHECK(store.find_by_key("report-8")->id == ax::task_id{8});
        CHECK(store.find_by_key("report-8")->key_released);
        CHECK_FALSE(first->key_released);
        CHECK(store.verify().empty());
        CHECK(store.counts().size() == 7);
        CHECK(first->tags == std::vector<std::string>{"bulk", "tenant-7"});
        REQUIRE(store.limits().size() == 1);
        CHECK(store.limits()[0].name == "tenant-7");
        CHECK(store.limits()[0].how.concurrency == 1U);

        store.transact(ax::commit::durable, [&](ax::sqlite_storage::writer& w) {
            CHECK(w.reclaim({ax::node_id{9}, 3, t0}).held == 1); // task 7, as its claim said
            std::vector<ax::claim_request> all;
            for (std::uint64_t id = 1; id <= 8; ++id) all.push_back({ax::task_id{id}, false});
            CHECK(w.claim(all, {ax::node_id{9}, t0, t0 + std::chrono::minutes{1}, 0}).claimed.size() == 4);
            ax::new_task again;
            again.type = w.type("r\xC3\xA9port");
            again.schedule = "nightly";
            again.scheduled_at = t0;
            ax::schedule_step step;
            step.name = "nightly";
            step.version = 1;
            step.skipped = {{t0, t0, 1, "it was paused", {}}};
            CHECK(w.step(step, t0).accepted);
            ax::alarms due;
            CHECK(w.insert({&again, 1}, t0, due).at(0).outcome == ax::submit_outcome::kept);
            again.schedule.clear();
            CHECK(w.insert({&again, 1}, t0, due).at(0).id == ax::task_id{9});
        });
        CHECK(store.skips("nightly").reasons.at(0).number == (schema < 2 ? 1 : 3));
    }
    auto const fresh = directory.file("fresh.db");
    { ax::sqlite_storage const store{fresh}; }
    CHECK(schema_of(path) == schema_of(fresh));
}
