// SPDX-License-Identifier: MIT
#include "ax/scheduler/workflow_export.hpp"

#include "support/catch.hpp"
#include "support/instants.hpp"

#include <chrono>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using ax::member_record;
using ax::task_id;
using ax::task_state;
using ax::trigger_rule;
using test::t0;

namespace {

member_record member(std::uint64_t id, std::string name, task_state state, std::vector<std::uint64_t> parents = {},
                     ax::duration finished = {}) {
    member_record made;
    made.id = task_id{id};
    made.name = std::move(name);
    made.type = "t";
    made.state = state;
    for (auto const parent : parents) made.parents.push_back(task_id{parent});
    made.created = t0;
    if (finished != ax::duration{}) {
        made.started = t0 + finished - 1s;
        made.finished = t0 + finished;
    }
    return made;
}

struct example {
    ax::workflow_record whole;
    std::vector<member_record> members;
};

/// A diamond, whose left side is in its second generation, and which waits for a task outside.
example registered() {
    example made;
    auto& whole = made.whole;
    whole.id = whole.head = task_id{1};
    whole.name = R"(say "hi" \ now)";
    whole.key = "k";
    whole.created = t0;
    whole.started = t0 + 1s;
    whole.waiting = 1;
    whole.succeeded = 4;
    whole.last_ended = task_id{7};
    made.members = {member(2, "a", task_state::succeeded, {}, 2s), member(3, "left", task_state::succeeded, {2}, 3s),
                    member(7, "left", task_state::succeeded, {2}, 9s),
                    member(5, "wait for import", task_state::succeeded, {99}, 5s),
                    member(6, "z", task_state::created, {5, 7})};
    made.members[2].generation = 2;
    made.members[3].kind = ax::member_kind::wait;
    made.members[3].type = "ax:wait";
    made.members[4].when = trigger_rule::all_done;
    return made;
}

} // namespace

TEST_CASE("a workflow as JSON has its counts, tasks, edges and critical path", "[scheduler][workflow]") {
    auto const [whole, members] = registered();
    CHECK(ax::workflow_to_json(whole, members).dump(1) == R"({
 "counts": {
  "cancelled": 0,
  "dead": 0,
  "ready": 0,
  "running": 0,
  "skipped": 0,
  "succeeded": 4,
  "upstream_failed": 0,
  "waiting": 1
 },
 "created": "2026-01-01T00:00:00Z",
 "critical_path": [
  2,
  7
 ],
 "edges": [
  {
   "from": 2,
   "to": 3
  },
  {
   "from": 2,
   "to": 7
  },
  {
   "from": 99,
   "to": 5
  },
  {
   "from": 5,
   "to": 6
  },
  {
   "from": 7,
   "to": 6
  }
 ],
 "finished": null,
 "id": 1,
 "key": "k",
 "name": "say \"hi\" \\ now",
 "paused": false,
 "started": "2026-01-01T00:00:01Z",
 "state": "created",
 "stopping": false,
 "tasks": [
  {
   "created": "2026-01-01T00:00:00Z",
   "deadline": null,
   "finished": "2026-01-01T00:00:02Z",
   "generation": 1,
   "id": 2,
   "kind": "task",
   "name": "a",
   "started": "2026-01-01T00:00:01Z",
   "state": "succeeded",
   "type": "t",
   "waits_for": null,
   "when": "all_success"
  },
  {
   "created": "2026-01-01T00:00:00Z",
   "deadline": null,
   "finished": "2026-01-01T00:00:03Z",
   "generation": 1,
   "id": 3,
   "kind": "task",
   "name": "left",
   "started": "2026-01-01T00:00:02Z",
   "state": "succeeded",
   "type": "t",
   "waits_for": null,
   "when": "all_success"
  },
  {
   "created": "2026-01-01T00:00:00Z",
   "deadline": null,
   "finished": "2026-01-01T00:00:09Z",
   "generation": 2,
   "id": 7,
   "kind": "task",
   "name": "left",
   "started": "2026-01-01T00:00:08Z",
   "state": "succeeded",
   "type": "t",
   "waits_for": null,
   "when": "all_success"
  },
  {
   "created": "2026-01-01T00:00:00Z",
   "deadline": null,
   "finished": "2026-01-01T00:00:05Z",
   "generation": 1,
   "id": 5,
   "kind": "wait",
   "name": "wait for import",
   "started": "2026-01-01T00:00:04Z",
   "state": "succeeded",
   "type": "ax:wait",
   "waits_for": null,
   "when": "all_success"
  },
  {
   "created": "2026-01-01T00:00:00Z",
   "deadline": null,
   "finished": null,
   "generation": 1,
   "id": 6,
   "kind": "task",
   "name": "z",
   "started": null,
   "state": "created",
   "type": "t",
   "waits_for": null,
   "when": "all_done"
  }
 ]
})");
}

TEST_CASE("a workflow for Graphviz has a box for each task and an arrow for each edge", "[scheduler][workflow]") {
    auto const [whole, members] = registered();
    CHECK(ax::workflow_to_dot(whole, members) == R"(digraph "say \"hi\" \\ now" {
  rankdir=LR;
  node [shape=box, style=filled, fillcolor=white];
  t2 [label="a\nsucceeded", fillcolor=palegreen, penwidth=2];
  t3 [label="left\nsucceeded", fillcolor=palegreen];
  t7 [label="left #2\nsucceeded", fillcolor=palegreen, penwidth=2];
  t5 [label="wait for import\nsucceeded", fillcolor=palegreen, shape=ellipse];
  t6 [label="z\ncreated\nall_done"];
  t99 [label="task 99", style=dashed];
  t2 -> t3;
  t2 -> t7 [penwidth=2];
  t99 -> t5;
  t5 -> t6;
  t7 -> t6;
}
)");
}

TEST_CASE("an export says what a wait waits for that is not there", "[scheduler][workflow]") {
    auto made = registered();
    made.members.resize(1);
    auto& wait = made.members[0];
    wait.kind = ax::member_kind::wait;
    wait.state = task_state::created;
    wait.deadline = t0 + 1h;
    wait.until = ax::open_await{{{}, "rates", t0, "sum"}, {}};
    auto const told = [&] { return ax::workflow_to_json(made.whole, made.members)["tasks"][0]; };
    CHECK(told()["deadline"] == "2026-01-01T01:00:00Z");
    CHECK(told()["waits_for"].dump() ==
          R"({"at":"2026-01-01T00:00:00Z","key":null,"schedule":"rates","task":"sum","workflow":null})");
    auto const dot = ax::workflow_to_dot(made.whole, made.members);
    CHECK(dot.find(
              R"(u2 [label="task \"sum\" of the occurrence of \"rates\" at 2026-01-01T00:00:00Z", style=dashed];)") !=
          dot.npos);
    CHECK(dot.find("u2 -> t2 [style=dashed];") != dot.npos);
    wait.until = ax::open_await{{"k", {}, {}, {}}, {}};
    CHECK(told()["waits_for"].dump() == R"({"at":null,"key":"k","schedule":null,"task":null,"workflow":null})");
    CHECK(ax::to_text(*wait.until) == R"(key "k")");
    wait.until = ax::open_await{{{}, {}, {}, "late"}, task_id{7}};
    CHECK(told()["waits_for"].dump() == R"({"at":null,"key":null,"schedule":null,"task":"late","workflow":7})");
    CHECK(ax::to_text(*wait.until) == R"(task "late" of workflow 7)");
}

TEST_CASE("an empty export is sound, and odd names do not end a label", "[scheduler][workflow]") {
    ax::workflow_record whole;
    whole.name = "a\nb\"\xFF";
    CHECK(ax::workflow_to_dot(whole, {}) ==
          "digraph \"a b\\\"\xEF\xBF\xBD\" {\n  rankdir=LR;\n  node [shape=box, style=filled, fillcolor=white];\n}\n");
    CHECK(ax::workflow_to_json(whole, {})["tasks"].empty());
    CHECK(ax::critical_path_of(whole, {}).empty());
}

TEST_CASE("the critical path goes by the parents that ended last", "[scheduler][workflow]") {
    ax::workflow_record whole;
    whole.last_ended = task_id{5};
    std::vector<member_record> const members{
        member(1, "a", task_state::succeeded, {}, 5s), member(2, "b", task_state::succeeded, {}, 6s),
        member(3, "c", task_state::dead, {1, 2}, 7s), member(4, "d", task_state::succeeded, {1}, 8s),
        member(5, "e", task_state::succeeded, {3, 4, 77}, 9s)};
    CHECK(ax::critical_path_of(whole, members) == std::vector{task_id{1}, task_id{4}, task_id{5}});
}
