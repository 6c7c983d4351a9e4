// SPDX-License-Identifier: MIT
#include "ax/scheduler/definitions.hpp"

#include "ax/core/random.hpp"
#include "ax/scheduler/detail/workflow_text.hpp"
#include "ax/time/instant_text.hpp"

#include "scheduler/definitions_support.hpp"
#include "support/catch.hpp"

#include <chrono>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using ax::check_definitions;
using ax::parse_definitions;
using ax::trigger_rule;
using nlohmann::json;
using test::faults;
using test::t0;
using test::without;

namespace {

/// The faults of a document with one workflow of these tasks, without the path to it.
std::string faults_of_tasks(std::string const& tasks) {
    return without(faults(R"({"workflows":[{"name":"w","tasks":[)" + tasks + "]}]}"), "/workflows/0/tasks");
}

ax::workflow workflow_of(std::string const& tasks) {
    auto const made = parse_definitions(R"({"workflows":[{"name":"w","tasks":[)" + tasks + "]}]}", t0);
    REQUIRE(made.workflows.size() == 1);
    return made.workflows.front();
}

std::string text_of(ax::workflow const& w) { return ax::detail::workflow_text<json>(w); }

} // namespace

TEST_CASE("a workflow of a document has what the document says", "[scheduler][definitions][workflow]") {
    auto const w = workflow_of(R"(
        {"name": "sum", "type": "sum", "after": ["fetch", "rates", "fetch"], "when": "none_failed"},
        {"name": "fetch", "type": "fetch-day", "payload": {"day": 7}, "priority": "high", "route_key": "r",
         "retry": {"fixed": "10s", "attempts": 3}},
        {"name": "rates", "wait_for": {"schedule": "rates", "at": "2026-03-29T03:00:00+02:00", "task": "last"},
         "within": "1h30m", "when": "all_done"},
        {"name": "import", "wait_for": {"key": "import-7"}})");
    CHECK(w.name() == "w");
    auto const& all = w.nodes().all();
    REQUIRE(all.size() == 4);
    CHECK(all[0].type == "sum");
    CHECK(all[0].after == std::vector<std::uint32_t>{1, 2});
    CHECK(all[0].when == trigger_rule::none_failed);
    CHECK(all[0].payload.empty());
    CHECK_FALSE(all[0].priority);
    CHECK(all[0].retry.empty());
    CHECK(all[1].name == "fetch");
    CHECK(all[1].type == "fetch-day");
    CHECK(all[1].payload == R"({"day":7})");
    CHECK(all[1].priority == ax::priority::high);
    CHECK(all[1].route_key == "r");
    CHECK(all[1].retry == to_text(ax::retry::fixed(10s).attempts(3)));
    CHECK(all[1].when == trigger_rule::all_success);
    REQUIRE(all[2].until);
    CHECK(all[2].type == "ax:wait");
    CHECK(all[2].until->schedule == "rates");
    CHECK(all[2].until->at->value() == t0 + 87 * 24h + 1h);
    CHECK(all[2].until->task == "last");
    CHECK(all[2].within == 90min);
    CHECK(all[2].when == trigger_rule::all_done);
    CHECK(all[3].until->key == "import-7");
    CHECK_FALSE(all[3].within);
}

TEST_CASE("each trigger rule has its name in a document", "[scheduler][definitions][workflow]") {
    for (auto const rule : ax::all_trigger_rules) {
        auto const w = workflow_of(R"({"name":"a","type":"t","when":")" + std::string(to_string(rule)) + "\"}");
        CHECK(w.nodes().all().front().when == rule);
    }
}

TEST_CASE("each fault of a workflow is told with its path", "[scheduler][definitions][workflow]") {
    auto const document = R"({
        "workflows": [
            {"name": "x", "tasks": []},
            {"name": "x", "tasks": [
                {"name": "a", "type": "t", "when": "all_sucess"},
                {"name": "a", "type": "t"},
                {"name": "b", "typ": "t", "after": ["a", "fetch"]},
                {"name": "fetsh", "type": "ax:wait"},
                {"name": "c", "type": "t", "wait_for": {"key": "k"}},
                {"name": "d", "wait_for": {"key": "k", "schedule": "s"}, "payload": 1},
                {"name": "e", "wait_for": {"schedule": "s", "at": "noon"}, "within": "0s"},
                {"name": "f", "type": "t", "route_key": "schedule:x", "within": "1h", "retry": {"fixed": "1x"}}]},
            {"tasks": 7},
            {"name": "z"}
        ],
        "schedules": [
            {"name": "s", "every": "1h", "workflow": "y"},
            {"name": "t", "every": "1h", "workflow": "x", "type": "t"},
            {"name": "u", "every": "1h"},
            {"name": "v", "every": "1h", "workflow": "z", "payload": 1, "overlap": "queue_all",
             "depends_on_past": true}
        ]
    })";
    CHECK(faults(document) ==
          R"(/workflows/0/tasks: is empty: a workflow has at least one task
/workflows/1/name: "x" is the name of number 0 already
/workflows/1/tasks/0/when: "all_sucess" is unknown; did you mean "all_success"? Allowed: all_success, all_failed, all_done, all_done_min_one_success, all_skipped, one_failed, one_success, one_done, none_failed, none_failed_min_one_success, none_skipped, always
/workflows/1/tasks/1/name: "a" is the name of number 0 already
/workflows/1/tasks/2/typ: is unknown here; did you mean "type"? Allowed: name, type, payload, after, when, priority, route_key, retry, wait_for, within
/workflows/1/tasks/2: does not say what: one of type, wait_for is needed
/workflows/1/tasks/3/type: task type "ax:wait": names that begin with "ax:" are this library's own
/workflows/1/tasks/4: says what in 2 ways (type, wait_for): one is needed
/workflows/1/tasks/5/payload: belongs to a task that runs: this one waits
/workflows/1/tasks/5/wait_for: needs one of key, schedule
/workflows/1/tasks/6/within: is nothing: at least 1ms is needed
/workflows/1/tasks/6/wait_for/at: "noon" is no instant; allowed: as 2026-03-29T03:00:00+02:00
/workflows/1/tasks/7/route_key: begins with "schedule:": those are the schedules' own
/workflows/1/tasks/7/retry/fixed: "1x" is no length of time; allowed: numbers with w, d, h, m, s or ms, the larger first, as 1h30m; at most 36525d
/workflows/1/tasks/7/within: belongs to wait_for
/workflows/1/tasks/2/after/1: "fetch" is no task of this workflow; did you mean "fetsh"?
/workflows/2/name: is missing
/workflows/2/tasks: is a number; allowed: a list
/workflows/3/tasks: is missing
/schedules/0/workflow: "y" is no workflow of this document; allowed: x, z
/schedules/1: says what in 2 ways (type, workflow): one is needed
/schedules/2: does not say what: one of type, workflow is needed
/schedules/3/payload: the tasks of a workflow have the payloads
/schedules/3/overlap: a workflow cannot be queued behind the one before
/schedules/3/depends_on_past: is for tasks: a task of a workflow waits with wait_for for another occurrence
)");
}

TEST_CASE("a cycle in a document is told with its path through the tasks", "[scheduler][definitions][workflow]") {
    CHECK(faults_of_tasks(R"({"name":"a","type":"t","after":["c"]},{"name":"b","type":"t","after":["a"]},
                             {"name":"c","type":"t","after":["b"]})") == ": workflow \"w\": cycle: a -> b -> c -> a\n");
    CHECK(faults_of_tasks(R"({"name":"a","type":"t","after":["a"]})") == ": workflow \"w\": cycle: a -> a\n");
}

TEST_CASE("members of the wrong kind are told", "[scheduler][definitions][workflow]") {
    CHECK(faults_of_tasks("7") == "/0: is a number; allowed: an object\n");
    CHECK(faults_of_tasks(R"({"name":"a","type":7})") == "/0/type: is a number; allowed: a text\n");
    CHECK(faults_of_tasks(R"({"name":"a","type":"t","after":"b"})") == "/0/after: is a text; allowed: a list\n");
    CHECK(faults_of_tasks(R"({"name":"a","type":"t","after":[1]})") == "/0/after/0: is a number; allowed: a text\n");
    CHECK(faults_of_tasks(R"({"name":"a","wait_for":"k"})").find("/0/wait_for: is a text; allowed: an object") == 0);
    CHECK(faults_of_tasks(R"({"name":"a","wait_for":{"key":"k","at":"2026-03-29T03:00Z"}})") ==
          "/0/wait_for/at: belongs to a schedule\n");
    CHECK(faults_of_tasks(R"({"name":"a","wait_for":{"schedule":"k","at":"2026-03-29T03:00"}})") ==
          "/0/wait_for/at: \"2026-03-29T03:00\" is no instant; allowed: as 2026-03-29T03:00:00+02:00\n");
    CHECK(faults(R"({"workflows":{}})") == "/workflows: is an object; allowed: a list\n");
    CHECK(faults(R"({"workflows":[null]})") == "/workflows/0: is null; allowed: an object\n");
}

TEST_CASE("strings of a workflow are templates where a schedule creates it, and only there",
          "[scheduler][definitions][workflow]") {
    auto const document = [](std::string const& schedules) {
        return R"({"workflows":[{"name":"w","tasks":[{"name":"a","type":"t","payload":["{{dss}}"]},
                   {"name":"b","wait_for":{"key":"import-{{ds}}"}}]}],"schedules":[)" +
               schedules + "]}";
    };
    CHECK(faults(document("")).empty());
    CHECK(faults(document(R"({"name":"s","every":"1h","workflow":"w"},{"name":"u","every":"2h","workflow":"w"})")) ==
          "/workflows/0/tasks/0/payload/0: column 3: \"dss\" is no name; allowed: ds, ts, scheduled_at, prev, next\n");
}

TEST_CASE("a workflow that is written as text reads back the same", "[scheduler][definitions][workflow]") {
    ax::workflow w{"all \"of\" it"};
    auto const fetch = w.add(ax::task_type<json>{"fetch"}, json{{"day", "{{{{ds}}"}, {"x", {1.5, nullptr}}},
                             {.name = "fetch", .priority = ax::priority::critical, .route_key = "r"});
    auto const rates = w.wait_for(ax::occurrence_of("rates", t0 + 250ms), {.name = "rates", .within = 36'525h});
    auto const key = w.wait_for(ax::awaited{.key = "k", .schedule = {}, .at = {}, .task = "t"}, {.after = {fetch}});
    std::vector<ax::workflow_task> const parents{fetch, rates, key};
    ax::retry::policy const policies[] = {
        ax::retry::none(),
        ax::retry::fixed(0s),
        ax::retry::fixed(90s).attempts(3).total(1h),
        ax::retry::exponential(0s).attempts(2),
        ax::retry::exponential(1min).cap(30min).jitter(0.1).attempts(4),
        ax::retry::exponential(1ms).factor(1.0000001).cap(24h),
        ax::retry::list({1s, 0s, 1h}),
        ax::retry::list({1s}).attempts(ax::retry::unlimited).jitter(1),
    };
    int number = 0;
    for (auto const& p : policies)
        w.add(ax::task_type<>{"t"}, {},
              {.name = "t" + std::to_string(++number),
               .after = parents,
               .when = static_cast<trigger_rule>(number),
               .retry = p});
    auto const text = text_of(w);
    CAPTURE(text);
    auto const read = ax::detail::parse_workflow<json>(text);
    CHECK(text_of(read) == text);
    auto const& wanted = w.nodes().all();
    auto const& found = read.nodes().all();
    REQUIRE(found.size() == wanted.size());
    for (std::size_t i = 0; i != found.size(); ++i) {
        CHECK(found[i].name == wanted[i].name);
        CHECK(found[i].type == wanted[i].type);
        CHECK(found[i].payload == wanted[i].payload);
        CHECK(found[i].after == wanted[i].after);
        CHECK(found[i].when == wanted[i].when);
        CHECK(found[i].priority == wanted[i].priority);
        CHECK(found[i].route_key == wanted[i].route_key);
        CHECK(found[i].retry == wanted[i].retry);
        CHECK(found[i].within == wanted[i].within);
        CHECK(found[i].until.has_value() == wanted[i].until.has_value());
    }
    CHECK(found[1].until->at->value() == t0 + 250ms);
    CHECK(found[2].until->key == "k");
    CHECK(found[2].until->task == "t");

    // And it is what a document holds.
    CHECK(faults(R"({"workflows":[)" + text + "]}").empty());
}

TEST_CASE("the text of a stored workflow is short and as people write it", "[scheduler][definitions][workflow]") {
    ax::workflow w{"w"};
    auto const a = w.add(ax::task_type<>{"t"}, {}, {.retry = ax::retry::fixed(90s)});
    w.wait_for(ax::task_with_key("k"), {.after = {a}, .within = 36h});
    CHECK(text_of(w) == R"({"name":"w","tasks":[{"name":"t#1","retry":{"fixed":"1m30s"},"type":"t"},)"
                        R"({"after":["t#1"],"name":"wait for k","wait_for":{"key":"k"},"within":"1d12h"}]})");
}

TEST_CASE("a stored text that is no workflow is corrupt, with what is wrong", "[scheduler][definitions][workflow]") {
    for (std::string const text : {"", "7", "{}", R"({"name":"w"})", R"({"name":"w","tasks":[{"name":"a"}]})"}) {
        CAPTURE(text);
        try {
            ax::detail::parse_workflow<json>(text);
            FAIL("it was taken");
        } catch (ax::error const& e) {
            CHECK(e.kind() == ax::errc::corrupt);
            CHECK(std::string(e.what()).find("a stored workflow makes no sense: ") == 0);
        }
    }
}

TEST_CASE("a workflow of a hundred thousand tasks is read in no more than a pass",
          "[scheduler][definitions][workflow]") {
    json tasks = json::array();
    constexpr int size = 100'000;
    for (int i = 0; i != size; ++i) {
        json one{{"name", "t" + std::to_string(i)}, {"type", "t"}};
        if (i > 0) one["after"] = {"t" + std::to_string(i - 1)};
        tasks.push_back(std::move(one));
    }
    json document{{"workflows", {{{"name", "deep"}, {"tasks", std::move(tasks)}}}}};
    CHECK(parse_definitions(document, t0).workflows.front().size() == size);
    document["workflows"][0]["tasks"][0]["after"] = {"t" + std::to_string(size - 1)};
    auto const found = check_definitions(document, t0);
    REQUIRE(found.size() == 1);
    CHECK(found.front().path == "/workflows/0/tasks");
}

TEST_CASE("no workflow makes the reader fail", "[scheduler][definitions][workflow]") {
    // A good document with parts exchanged and bent.
    json const good = json::parse(R"({"workflows":[{"name":"w","tasks":[
        {"name":"a","type":"t","payload":{"x":"{{ds}}"},"retry":{"list":["1s"]},"priority":"low","route_key":"r"},
        {"name":"b","wait_for":{"schedule":"s","at":"2026-01-01T00:00Z","task":"z"},"within":"1h"},
        {"name":"c","type":"u","after":["a","b"],"when":"all_done"}]}],
        "schedules":[{"name":"s","every":"1h","workflow":"w"}]})");
    std::vector<json::json_pointer> const places = [&] {
        std::vector<json::json_pointer> all;
        auto const flat = good.flatten();
        for (auto const& item : flat.items()) {
            json::json_pointer at{item.key()};
            for (; !at.empty(); at.pop_back()) all.push_back(at);
        }
        return all;
    }();
    ax::splitmix64 random{12};
    int taken = 0;
    for (int round = 0; round != 3'000; ++round) {
        json document = good;
        for (auto n = random() % 4; n != 0; --n) {
            auto const& at = places[random() % places.size()];
            auto const& from = places[random() % places.size()];
            json const bent[] = {good[from], nullptr,       true,          0, -1, 1e300, "", "{{",
                                 "1h",       json::array(), json::object()};
            try {
                document[at] = bent[random() % std::size(bent)];
            } catch (json::exception const&) { // that place is gone
            }
        }
        CAPTURE(document.dump());
        auto const from_value = faults(document);
        REQUIRE(from_value == faults(document.dump()));
        if (!from_value.empty()) continue;
        ++taken;
        for (auto const& w : parse_definitions(document, t0).workflows)
            REQUIRE(text_of(ax::detail::parse_workflow<json>(text_of(w))) == text_of(w));
    }
    CHECK(taken > 100);
}

TEST_CASE("a length of time as text reads back the same", "[scheduler][definitions]") {
    using ax::detail::duration_of;
    using ax::detail::text_of_length;
    CHECK(text_of_length(0ms) == "0s");
    CHECK(text_of_length(90s) == "1m30s");
    CHECK(text_of_length(24h) == "1d");
    CHECK(text_of_length(1ms) == "1ms");
    CHECK(text_of_length((ax::duration::max)()) == "36525d");
    ax::splitmix64 random{3};
    for (int i = 0; i != 1'000; ++i) {
        ax::duration const length{static_cast<std::int64_t>(random() % (std::uint64_t{1} << (random() % 41)))};
        CHECK(duration_of(text_of_length(length)) == length);
    }
}
