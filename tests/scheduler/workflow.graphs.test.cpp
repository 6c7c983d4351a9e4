// SPDX-License-Identifier: MIT
// Twelve recorded workflows, durable, under every trigger rule: which task runs and which does not is compared with the
// rules as their documentation words them, and each effect is there once.
#include "ax/scheduler/scheduler.hpp"

#include "ax/storage/sqlite.hpp"

#include "scheduler/support.hpp"
#include "support/paths.hpp"
#include "storage/sqlite_fixture.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

namespace {

using namespace test;
using ax::trigger_rule;

struct graph {
    std::string name;
    std::vector<std::string> tasks;
    std::map<std::string, std::vector<std::string>> parents;
};

std::vector<graph> recorded() {
    std::vector<graph> all;
    for (auto const& entry : std::filesystem::directory_iterator(test::data_file("workflows"))) {
        if (entry.path().extension() != ".json") continue;
        std::ifstream in(entry.path());
        auto const document = nlohmann::json::parse(in);
        graph one{document.at("name"), {}, {}};
        for (auto const& task : document.at("tasks")) {
            one.tasks.push_back(task.at("id"));
            one.parents[one.tasks.back()] = task.at("parents").get<std::vector<std::string>>();
        }
        all.push_back(std::move(one));
    }
    std::sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.name < b.name; });
    return all;
}

/// Whether a task runs whose parents have all ended like this, by the wording of the rule.
bool runs(trigger_rule rule, std::vector<task_state> const& parents) {
    if (parents.empty()) return true;
    auto const count = [&](task_state state) { return std::count(parents.begin(), parents.end(), state); };
    auto const succeeded = count(task_state::succeeded);
    auto const skipped = count(task_state::skipped);
    auto const failed = count(task_state::dead) + count(task_state::upstream_failed);
    auto const all = static_cast<std::ptrdiff_t>(parents.size());
    switch (rule) {
    case trigger_rule::all_success: return succeeded == all;
    case trigger_rule::all_failed: return failed == all;
    case trigger_rule::all_done: return true;
    case trigger_rule::all_done_min_one_success: return succeeded > 0 && skipped == 0;
    case trigger_rule::all_skipped: return skipped == all;
    case trigger_rule::one_failed: return failed > 0;
    case trigger_rule::one_success: return succeeded > 0;
    case trigger_rule::one_done: return succeeded > 0 || count(task_state::dead) > 0;
    case trigger_rule::none_failed: return failed == 0;
    case trigger_rule::none_failed_min_one_success: return failed == 0 && succeeded > 0;
    case trigger_rule::none_skipped: return skipped == 0;
    case trigger_rule::always: return true;
    }
    return false;
}

inline constexpr ax::task_type<std::string> replay{"replay"};

} // namespace

TEST_CASE("recorded workflows run to their end under every rule, whatever fails", "[scheduler][workflow]") {
    auto const rule = GENERATE(from_range(std::begin(ax::all_trigger_rules), std::end(ax::all_trigger_rules)));
    CAPTURE(to_string(rule));
    auto const graphs = recorded();
    REQUIRE(graphs.size() == 12);
    temporary_directory const directory;
    ax::testing::manual_clock clock;
    auto const path = directory.file("store.db");
    std::map<std::string, std::string> fails;
    std::optional<ax::scheduler<ax::sqlite_storage, ax::testing::manual_clock>> tasks;
    std::vector<std::string> log;
    auto const start = [&] {
        tasks.reset();
        tasks.emplace(ax::sqlite_storage{path}, ax::options{.durability = ax::durability::process_crash}, clock);
        tasks->on(replay, [&](std::string const& what, ax::context& ctx) {
            log.push_back(what);
            if (fails.contains(what)) throw ax::give_up{"it was told to"};
            ctx.commit_with([what](sqlite3* db) {
                auto const sql = "INSERT INTO ledger VALUES ('" + what + "')";
                if (sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
                    throw std::runtime_error(sqlite3_errmsg(db));
            });
        });
    };
    start();
    {
        ax::detail::sqlite_connection db{path};
        db.execute("CREATE TABLE ledger (task TEXT NOT NULL UNIQUE)"); // a second effect would fail its task
    }
    std::vector<task_id> ids;
    for (auto const& one : graphs) {
        // One task of each graph fails.
        fails[one.name + ' ' + one.tasks[one.tasks.size() / 3]] = "";
        ax::workflow w{one.name};
        std::map<std::string, ax::workflow_task> known;
        for (auto const& task : one.tasks)
            known.emplace(task, w.add(replay, one.name + ' ' + task, {.name = task, .when = rule}));
        for (auto const& task : one.tasks)
            for (auto const& parent : one.parents.at(task)) w.depend(known.at(task), known.at(parent));
        ids.push_back(tasks->submit(w, {.key = one.name}).id);
    }
    auto const all_ended = [&] {
        return std::all_of(ids.begin(), ids.end(),
                           [&](task_id id) { return ax::is_terminal(tasks->find_workflow(id)->state); });
    };
    for (int rounds = 0; rounds != 200 && !all_ended(); ++rounds) {
        tasks->poll(clock.now());
        if (rounds % 7 == 3) start(); // in the middle of it
    }
    REQUIRE(all_ended());

    std::map<std::string, std::size_t> place;
    for (std::size_t i = 0; i != log.size(); ++i) CHECK(place.emplace(log[i], i).second); // each was called once
    for (std::size_t g = 0; g != graphs.size(); ++g) {
        auto const& one = graphs[g];
        CAPTURE(one.name);
        std::map<std::string, task_state> states;
        for (auto const& task : tasks->workflow_tasks(ids[g])) states[task.name] = task.state;
        REQUIRE(states.size() == one.tasks.size());
        std::size_t wrong = 0;
        for (auto const& task : one.tasks) {
            std::vector<task_state> parents;
            for (auto const& parent : one.parents.at(task)) parents.push_back(states.at(parent));
            auto const name = one.name + ' ' + task;
            bool const expected = runs(rule, parents);
            if (place.contains(name) != expected) ++wrong;
            auto const ended =
                !expected ? states.at(task) == task_state::skipped || states.at(task) == task_state::upstream_failed
                : fails.contains(name) ? states.at(task) == task_state::dead
                                       : states.at(task) == task_state::succeeded;
            if (!ended) ++wrong;
            if (expected && (rule == trigger_rule::all_success || rule == trigger_rule::all_done))
                for (auto const& parent : one.parents.at(task))
                    if (auto const at = place.find(one.name + ' ' + parent); at != place.end())
                        if (at->second > place.at(name)) ++wrong;
        }
        CHECK(wrong == 0);
    }
    ax::detail::sqlite_connection db{path};
    auto const statement = db.prepare("SELECT count(*) FROM ledger");
    ax::detail::sqlite_run row(db, statement.get());
    REQUIRE(row.next());
    auto const failed =
        std::count_if(fails.begin(), fails.end(), [&](auto const& f) { return place.contains(f.first); });
    CHECK(row.number(0) == static_cast<std::int64_t>(log.size()) - failed);
}
