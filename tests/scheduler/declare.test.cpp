// SPDX-License-Identifier: MIT
#include "ax/scheduler/definitions.hpp"

#include "scheduler/support.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

namespace {

using namespace test;
using ax::declare_outcome;
using nlohmann::json;

/// What a declaration did, a word for each schedule: "a created, b unchanged".
std::string said(ax::declared const& answer) {
    std::string text;
    for (auto const& each : answer.schedules) {
        char const* const words[] = {"created", "updated", "unchanged", "removed"};
        text += (text.empty() ? "" : ", ") + each.name + " " + words[static_cast<int>(each.outcome)];
    }
    return text;
}

std::vector<std::string> names(simulated& tasks) {
    std::vector<std::string> all;
    for (auto const& each : tasks.schedules()) all.push_back(each.name);
    return all;
}

constexpr auto two = R"({"schedules": [
    {"name": "b", "every": "1h", "type": "probe"},
    {"name": "a", "cron": "0 3 * * *", "type": "shipping", "payload": {"number": 1, "note": "{{ds}}"}}]})";

constexpr auto one = R"({"schedules": [{"name": "b", "every": "1h", "type": "probe"}]})";

} // namespace

TEST_CASE("the schedules of a document are created, left as they are, updated", "[scheduler][declare]") {
    bench b;
    CHECK(said(b->declare(two)) == "b created, a created");
    CHECK(names(*b) == std::vector<std::string>{"a", "b"});
    auto const before = b->schedules();

    b.clock.advance(10min);
    CHECK(said(b->declare(json::parse(two))) == "b unchanged, a unchanged");
    b.restart();
    CHECK(said(b->declare(two)) == "b unchanged, a unchanged");
    for (std::size_t i = 0; i != 2; ++i) {
        CHECK(b->schedules()[i].version == before[i].version);
        CHECK(b->schedules()[i].next == before[i].next);
    }

    auto changed = json::parse(two);
    changed["schedules"][0]["every"] = "2h";
    auto const answer = b->declare(changed);
    CHECK(said(answer) == "b updated, a unchanged");
    CHECK(answer.count(declare_outcome::updated) == 1);
    CHECK(answer.count(declare_outcome::created) == 0);
    CHECK(b->schedules()[1].next == b.now() + 2h);
}

TEST_CASE("the schedules of a document run, with their options", "[scheduler][declare]") {
    bench b;
    std::vector<std::string> notes;
    b->on(shipping, [&](parcel const& p, ax::context& ctx) {
        notes.push_back(p.note);
        CHECK(ctx.task().tags == std::vector<std::string>{"t"});
        CHECK(ctx.task().priority == ax::priority::high);
    });
    b->declare(R"({"schedules": [{"name": "hourly", "every": "1h", "type": "shipping", "tags": ["t"],
                   "priority": "high", "payload": {"note": "{{scheduled_at | %H}}"}}]})");
    b.run_for(3h);
    CHECK(notes == std::vector<std::string>{"01", "02", "03"});
}

TEST_CASE("a document is declared as a whole or not at all", "[scheduler][declare]") {
    bench b{{.payload_limit = 100}};
    b->declare(one);
    std::string text;
    auto const refused = [&](json const& document) {
        auto const before = b->schedules();
        auto const code = failure_of([&] { b->declare(document, {.prune = true}); }, &text);
        auto const after = b->schedules();
        REQUIRE(after.size() == before.size());
        for (std::size_t i = 0; i != after.size(); ++i) CHECK(after[i].version == before[i].version);
        CHECK(b->stats().owners.empty());
        CHECK(failure_of([&] { b->workflow_named("w"); }) == invalid);
        bool known = false; // of the store: not even the name of a type was kept
        for (auto const& type : b.store.types()) known = known || type.name == "new";
        CHECK_FALSE(known);
        return code == invalid;
    };
    auto document = json::parse(R"({"task_types": [{"name": "new", "owner": "ada"}],
        "workflows": [{"name": "w", "tasks": [{"name": "t", "type": "new"}]}],
        "schedules": [{"name": "x", "every": "1h", "type": "new"}, {"name": "y", "cron": "61 * * * *", "type": "new"},
                      {"name": "z", "every": "1h", "workflow": "w", "overlap": "queue_one"}]})");
    CHECK(refused(document));
    CHECK(contains(text, "2 faults"));
    CHECK(contains(text, "/schedules/1/cron: column 1, minute: \"61\" is out of range"));
    CHECK(contains(text, "/schedules/2/overlap: "));
    document["schedules"].erase(1);
    document["schedules"][1].erase("overlap");
    document["schedules"][0]["payload"] = std::string(200, 'x');
    document["workflows"][0]["tasks"][0]["payload"] = std::string(200, 'x');
    CHECK(refused(document)); // what only the scheduler knows, with its path as well
    CHECK(contains(text, "3 faults: /workflows/0/tasks/0/payload: it has 202 bytes, at most 100 are allowed"));
    CHECK(contains(text, "/schedules/0: payload of schedule \"x\" has 202 bytes"));
    CHECK(refused("no document"));
    CHECK(failure_of([&] { b->declare("{"); }) == invalid);
}

TEST_CASE("schedules that a document does not have any more stay, or are pruned", "[scheduler][declare]") {
    bench b;
    b->schedule("of the code", ax::every{1h}, probe);
    CHECK(said(b->declare(two)) == "b created, a created");

    SECTION("they stay") {
        CHECK(said(b->declare(one)) == "b unchanged");
        CHECK(names(*b) == std::vector<std::string>{"a", "b", "of the code"});
        SECTION("and can be pruned later") {
            b.restart();
            CHECK(said(b->declare(one, {.prune = true})) == "b unchanged, a removed");
            CHECK(names(*b) == std::vector<std::string>{"b", "of the code"});
            CHECK(said(b->declare(one, {.prune = true})) == "b unchanged");
        }
    }
    SECTION("they are pruned, and those of the code are not") {
        CHECK(said(b->declare("{}", {.prune = true})) == "a removed, b removed");
        CHECK(names(*b) == std::vector<std::string>{"of the code"});
        b.run_for(2h);
        CHECK(b->schedules().at(0).fired == 1);
        CHECK(b->schedules().at(0).skipped == 1); // nobody has a handler: the first has not ended
        CHECK(b->list().size() == 1);
    }
    SECTION("one that is gone is not removed twice") {
        b->unschedule("a");
        CHECK(said(b->declare(one, {.prune = true})) == "b unchanged");
        b->schedule("a", ax::every{1h}, probe); // it is the code's now
        CHECK(said(b->declare(one, {.prune = true})) == "b unchanged");
    }
}

TEST_CASE("what a document says of a task type goes before what the code says", "[scheduler][declare]") {
    bench b;
    auto const document = R"({"task_types": [{"name": "probe", "retry": {"fixed": "1m", "attempts": 2}}]})";
    ax::handler_options const in_code{.retry = ax::retry::fixed(1s).attempts(5)};
    bool const later = GENERATE(false, true);
    if (later) b->declare(document);
    b->on(
        probe, [] { throw std::runtime_error("no"); }, in_code);
    if (!later) b->declare(document);

    auto const id = b->submit(probe).id;
    b.poll();
    CHECK(b.get(id).run_at == b.now() + 1min);
    b.poll_after(1min);
    CHECK(b.state(id) == task_state::dead);

    // What is said with the task goes before both.
    auto const own = b->submit(probe, {}, {.retry = ax::retry::fixed(5s)}).id;
    b.poll();
    CHECK(b.get(own).run_at == b.now() + 5s);
    b->cancel(own);

    // A document that says nothing of it gives it back to the code.
    b->declare("{}");
    auto const third = b->submit(probe).id;
    b.poll();
    CHECK(b.get(third).run_at == b.now() + 1s);
}

TEST_CASE("what a document leaves open is the code's", "[scheduler][declare]") {
    bench b;
    b->on(probe, [] { throw std::runtime_error("no"); }, {.retry = ax::retry::fixed(1s)});
    b->declare(R"({"task_types": [{"name": "probe", "timeout": "1m", "owner": "ada"}]})");
    auto const id = b->submit(probe).id;
    b.poll();
    CHECK(b.get(id).run_at == b.now() + 1s);
}

TEST_CASE("timeout and expected run time of a document hold, from the next attempt on", "[scheduler][declare]") {
    hosted_bench b;
    b.tasks.on(probe, [&](ax::context& ctx) {
        auto const token = ctx.stop_token();
        b.pass(2min);
        CHECK(token.stop_requested());
    });
    b.tasks.on(other, [&](ax::context&) {
        b.tasks.declare("{}"); // what runs ends as it began
        b.pass(2min);
    });
    b.tasks.declare(R"({"task_types": [{"name": "probe", "timeout": "1m"}, {"name": "other", "expected": "1m"}]})");
    auto const timed = b.tasks.submit(probe).id;
    b.poll();
    b.loop.drain();
    b.poll();
    CHECK(b.last_outcome(timed) == attempt_outcome::failed);
    CHECK(contains(b.tasks.find(timed)->last_error, "timeout after 60000 ms"));
    b.tasks.cancel(timed);

    CHECK(std::count(b.events.begin(), b.events.end(), ax::event_kind::overran) == 0);
    b.tasks.submit(other);
    b.settle();
    CHECK(std::count(b.events.begin(), b.events.end(), ax::event_kind::overran) == 1);
    b.tasks.submit(other);
    b.settle();
    CHECK(std::count(b.events.begin(), b.events.end(), ax::event_kind::overran) == 1);
}

TEST_CASE("the concurrency of a document holds for what waits already, and is taken back", "[scheduler][declare]") {
    hosted_bench b{{.workers = 8}};
    b.tasks.on(probe, [] {});
    auto const limited = R"({"task_types": [{"name": "probe", "concurrency": 2}]})";
    b.tasks.declare(limited);
    for (int i = 0; i != 5; ++i) b.tasks.submit(probe);
    b.poll();
    CHECK(b.loop.size() == 2);
    b.tasks.declare(limited);
    b.poll();
    CHECK(b.loop.size() == 2);
    b.tasks.declare("{}");
    b.poll();
    CHECK(b.loop.size() == 5);
}

TEST_CASE("on_interrupt of a document says what becomes of what a crash cut off", "[scheduler][declare]") {
    bench b;
    auto const document = R"({"task_types": [{"name": "probe", "on_interrupt": "hold"}]})";
    task_id id{};
    b->on(probe, [&](ax::context&) { CHECK(b.get(id).hold_on_interrupt); });
    b->declare(document);
    id = b->submit(probe).id;
    b.poll();
    CHECK(b.state(id) == task_state::succeeded);
}

TEST_CASE("the priority of a task type is that of tasks that say none", "[scheduler][declare]") {
    bench b;
    auto const priority_of = [&](task_id id) { return b.get(id).priority; };
    b->declare(R"({"task_types": [{"name": "probe", "priority": "low"}, {"name": "other"}]})");
    CHECK(priority_of(b->submit(probe).id) == ax::priority::low);
    CHECK(priority_of(b->submit(probe, {}, {.priority = ax::priority::normal}).id) == ax::priority::normal);
    CHECK(priority_of(b->submit(other).id) == ax::priority::normal);

    SECTION("also of follow-ups of handlers") {
        b->on(shipping, [](ax::context& ctx) {
            ctx.submit(probe, {}, {.key = "follow-up"});
            ctx.submit(probe, {}, {.key = "own", .priority = ax::priority::critical});
        });
        b->submit(shipping);
        b.poll();
        CHECK(b->find_by_key("follow-up")->priority == ax::priority::low);
        CHECK(b->find_by_key("own")->priority == ax::priority::critical);
    }
    SECTION("of schedules") {
        b->schedule("none", ax::every{1h}, probe);
        b->schedule("own", ax::every{1h}, probe, {}, {.priority = ax::priority::normal});
        b.run_for(1h);
        for (auto const& each : b->schedules())
            CHECK(priority_of(each.last_task) == (each.name == "none" ? ax::priority::low : ax::priority::normal));
    }
    SECTION("of schedules of the same document") {
        b->declare(R"({"task_types": [{"name": "probe", "priority": "critical"}], "schedules": [
            {"name": "s", "every": "1h", "type": "probe"}]})");
        b.run_for(1h);
        CHECK(priority_of(b->schedules().at(0).last_task) == ax::priority::critical);
    }
    SECTION("of tasks of workflows") {
        ax::workflow w{"w"};
        w.add(probe, {}, {.name = "none"});
        w.add(probe, {}, {.name = "own", .priority = ax::priority::high});
        w.add(other, {}, {.name = "other"});
        auto const all = [&](task_id id) {
            std::vector<ax::priority_class> found;
            for (auto const& each : b->workflow_tasks(id)) found.push_back(priority_of(each.id));
            return found;
        };
        using p = std::vector<ax::priority_class>;
        CHECK(all(b->submit(w).id) == p{ax::priority::low, ax::priority::normal, ax::priority::high});
        CHECK(all(b->submit(w, {.priority = ax::priority::critical}).id) ==
              p{ax::priority::critical, ax::priority::critical, ax::priority::high});
        b->schedule("none", ax::every{1h}, w);
        b->schedule("own", ax::every{1h}, w, {.priority = ax::priority::critical});
        b.run_for(1h);
        CHECK(all(b->schedules().at(0).last_task) == p{ax::priority::low, ax::priority::normal, ax::priority::high});
        CHECK(all(b->schedules().at(1).last_task) ==
              p{ax::priority::critical, ax::priority::critical, ax::priority::high});
    }
    SECTION("until another document says otherwise") {
        b->declare("{}");
        CHECK(priority_of(b->submit(probe).id) == ax::priority::normal);
    }
}

TEST_CASE("the owner of a task type is seen with its counts", "[scheduler][declare]") {
    bench b;
    b->declare(R"({"task_types": [{"name": "probe", "owner": "billing"}, {"name": "other"}]})");
    auto const stats = b->stats();
    CHECK(stats.owner("probe") == "billing");
    CHECK(stats.owner("other").empty());
    CHECK(stats.owner("nobody").empty());
    CHECK(stats.owners.size() == 1);
}

TEST_CASE("a workflow of a document is submitted by its name", "[scheduler][declare][workflow]") {
    bench b;
    std::vector<std::string> log;
    b->on(shipping, [&](parcel const& p) { log.push_back(p.note); });
    auto const answer = b->declare(R"({"workflows": [{"name": "w", "tasks": [
        {"name": "second", "type": "shipping", "payload": {"note": "2 {{ds}}"}, "after": ["first"]},
        {"name": "first", "type": "shipping", "payload": {"note": "1"}}]}]})");
    CHECK(answer.workflows == 1);
    CHECK(answer.task_types == 0);
    CHECK(b->submit(b->workflow_named("w"), {.key = "k"}).outcome == submit_outcome::inserted);
    for (int i = 0; i != 5; ++i) b.poll();
    CHECK(log == std::vector<std::string>{"1", "2 {{ds}}"});
    std::string text;
    CHECK(failure_of([&] { b->workflow_named("v"); }, &text) == invalid);
    CHECK(contains(text, "\"v\""));
}

TEST_CASE("a schedule of a document creates workflows of it", "[scheduler][declare][workflow]") {
    bench b;
    std::vector<std::string> log;
    b->on(shipping, [&](parcel const& p) { log.push_back(p.note); });
    auto document = json::parse(R"({
        "workflows": [{"name": "day", "tasks": [
            {"name": "load", "type": "shipping", "payload": {"note": "load {{ts | %H}}"}},
            {"name": "rates", "wait_for": {"key": "rates-{{ts | %H}}"}, "within": "30m"},
            {"name": "sum", "type": "shipping", "payload": {"note": "sum"}, "after": ["load", "rates"]}]}],
        "schedules": [{"name": "hourly", "every": "1h", "workflow": "day"}]})");
    CHECK(said(b->declare(document)) == "hourly created");
    b.run_for(1h);
    b->submit(shipping, {1, "rates"}, {.key = "rates-01"});
    b.run_for(1h);
    CHECK(log == std::vector<std::string>{"load 01", "rates", "sum", "load 02"});
    b.run_for(31min); // those of the second hour did not come
    CHECK(b->find_workflow(b->schedules().at(0).last_task)->state == task_state::upstream_failed);

    b.restart();
    CHECK(said(b->declare(document)) == "hourly unchanged");
    document["workflows"][0]["tasks"][1]["within"] = "31m";
    CHECK(said(b->declare(document)) == "hourly updated");
    // The code says the same in its own way.
    auto const w = b->workflow_named("day");
    auto const version = b->schedules().at(0).version;
    CHECK(b->schedule("hourly", ax::every{1h}, w).version == version);
}

TEST_CASE("a document is declared while tasks run on other threads", "[scheduler][declare][threads]") {
    store_type store;
    ax::scheduler<store_type> tasks{store, ax::options{.workers = 2}};
    std::atomic<int> runs{0};
    tally done;
    tasks.on(probe,
             [&] {
                 if (runs.fetch_add(1) % 7 == 0) throw std::runtime_error("no");
                 ++done;
             },
             {.retry = ax::retry::fixed(1ms)});
    tasks.start();
    std::thread submitter{[&] {
        for (int i = 0; i != 300; ++i) tasks.submit(probe);
    }};
    for (int i = 0; i != 50; ++i)
        tasks.declare(i % 2 == 0 ? R"({"task_types": [{"name": "probe", "retry": {"fixed": "1ms"}, "priority": "high",
                                       "timeout": "1h", "concurrency": 3, "owner": "x"}]})"
                                 : R"({"task_types": [{"name": "probe", "retry": {"fixed": "2ms"}}]})");
    submitter.join();
    CHECK(done.reaches(300));
    tasks.stop(10s);
}
