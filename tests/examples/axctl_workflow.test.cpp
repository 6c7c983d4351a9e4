// SPDX-License-Identifier: MIT
#include "../../examples/axctl/workflow_command.hpp"

#include "support/catch.hpp"

#include <chrono>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using ax::member_record;
using ax::task_id;
using ax::task_state;

namespace {

constexpr ax::time_point start{1'767'225'600'000ms}; // 2026-01-01 00:00 UTC

member_record member(std::uint64_t id, std::string name, task_state state, std::vector<std::uint64_t> parents = {}) {
    member_record made;
    made.id = task_id{id};
    made.name = std::move(name);
    made.state = state;
    for (auto const parent : parents) made.parents.push_back(task_id{parent});
    return made;
}

void ran(member_record& one, ax::duration from, ax::duration to) {
    one.started = start + from;
    if (to != ax::duration{}) one.finished = start + to;
}

} // namespace

TEST_CASE("a workflow is drawn with each task below its parents", "[axctl][workflow]") {
    ax::workflow_record whole;
    whole.id = task_id{1};
    whole.name = "register";
    whole.key = "register-7";
    whole.paused = true;
    whole.succeeded = 3;
    whole.running = 1;
    whole.waiting = 3;
    whole.created = start;
    whole.started = start + 1s;
    whole.last_ended = task_id{4};
    std::vector<member_record> members{
        member(2, "account", task_state::succeeded),      member(3, "crm", task_state::running, {2}),
        member(4, "sms\x1b", task_state::succeeded, {2}), member(5, "wait for import", task_state::created, {99}),
        member(8, "wait for rates", task_state::created), member(6, "welcome", task_state::created, {3, 4}),
        member(7, "zoo", task_state::succeeded)};
    ran(members[0], 1s, 3s);
    ran(members[1], 4s, {});
    ran(members[2], 3s, 3s + 250ms);
    ran(members[6], 1s, 2s);
    members[2].generation = 2;
    members[5].when = ax::trigger_rule::all_done;
    members[3].kind = members[4].kind = ax::member_kind::wait;
    members[3].deadline = start + 20s;
    members[4].until = ax::open_await{{{}, "rates", start + 5s, "sum"}, {}};
    CHECK(
        axctl::workflow_drawing(whole, members, start + 10s, {{99, "workflow imports (99), key i (running)"}}).text() ==
        R"(workflow 1  register  key register-7
created (paused), 3 of 7 ended: 3 succeeded, 1 running, 3 waiting
created 2026-01-01T00:00:00Z, started 2026-01-01T00:00:01Z, finished -
critical path: account (2.0 s) > sms  #2 (250 ms)

account          succeeded        2.0 s
  crm            running          6.0 s     after account
  sms  #2        succeeded        250 ms    after account
    welcome      created                    after crm, sms  #2 (all_done)
wait for import  created                    after workflow imports (99), key i (running), until 2026-01-01T00:00:20Z
wait for rates   created                    waits for task "sum" of the occurrence of "rates" at 2026-01-01T00:00:05Z
zoo              succeeded        1.0 s
)");
}

TEST_CASE("a drawing of very many tasks, or of a deep chain, stays a list of lines", "[axctl][workflow]") {
    ax::workflow_record whole;
    std::vector<member_record> members;
    std::vector<std::uint64_t> all;
    constexpr std::uint64_t size = 50'000;
    for (std::uint64_t i = 1; i <= size; ++i) {
        members.push_back(member(i, "t" + std::to_string(i), task_state::created,
                                 i == 1 ? std::vector<std::uint64_t>{} : std::vector{i - 1}));
        all.push_back(i);
    }
    members.push_back(member(size + 1, "z", task_state::created, all));
    auto const text = axctl::workflow_drawing(whole, members, start).text();
    CHECK(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) == size + 1 + 4);
    CHECK(text.find("after t1, t2, t3, t4 and 49996 more") != text.npos);
    std::size_t longest = 0, at = 0;
    for (auto end = text.find('\n'); end != text.npos; at = end + 1, end = text.find('\n', at))
        longest = (std::max)(longest, end - at);
    CHECK(longest < 200);
}
