// SPDX-License-Identifier: MIT
#include "ax/scheduler/workflow.hpp"
#include "ax/scheduler/workflow_export.hpp"

#include "scheduler/support.hpp"

#include <algorithm>

namespace {

using namespace test;
using ax::trigger_rule;
using ax::workflow;

/// A scheduler whose handlers write down what they have run.
struct loom : bench {
    std::vector<std::string> log;
    std::map<std::string, int> fails; ///< how often a task of that note fails

    explicit loom(ax::options chosen = {}) : bench(std::move(chosen)) { prepare(**this); }
    void prepare(simulated& tasks) {
        tasks.on(shipping, [this](parcel const& p) {
            log.push_back(p.note);
            if (fails[p.note]-- > 0) throw ax::give_up{"broken"};
            return p.number;
        });
    }
    ax::workflow_task add(workflow& w, std::string note, std::vector<ax::workflow_task> after = {},
                          trigger_rule when = trigger_rule::all_success) {
        return w.add(shipping, {1, note}, {.name = note, .after = std::move(after), .when = when});
    }
    ax::workflow_record status(task_id id) { return *(*this)->find_workflow(id); }
    task_id member(task_id id, std::string const& name) {
        task_id found{};
        for (auto const& each : (*this)->workflow_tasks(id))
            if (each.name == name) found = each.id;
        REQUIRE(found != task_id{});
        return found;
    }
    void settle() {
        for (int i = 0; i != 10; ++i) poll();
    }
};

workflow diamond(loom& b) {
    workflow w{"diamond"};
    auto const a = b.add(w, "a");
    auto const left = b.add(w, "left", {a});
    auto const right = b.add(w, "right", {a});
    b.add(w, "z", {left, right});
    return w;
}

} // namespace

TEST_CASE("a workflow runs its tasks in the order of its edges", "[scheduler][workflow]") {
    loom b;
    auto const id = b->submit(diamond(b), {.key = "d"}).id;
    CHECK(b.state(id) == task_state::created);
    b.settle();
    CHECK(b.log == std::vector<std::string>{"a", "left", "right", "z"});
    CHECK(b.status(id).state == task_state::succeeded);
    CHECK(b.state(id) == task_state::succeeded);
    CHECK(b->find_by_key("d")->id == id);
    CHECK(b->submit(diamond(b), {.key = "d"}).outcome == submit_outcome::kept);
}

TEST_CASE("a workflow begins when it is told to", "[scheduler][workflow]") {
    loom b;
    auto const id = b->submit(diamond(b), {.delay = 1h}).id;
    b.settle();
    CHECK(b.log.empty());
    b.poll_after(1h);
    b.settle();
    CHECK(b.status(id).state == task_state::succeeded);
}

TEST_CASE("what is said of a workflow goes for tasks that say nothing", "[scheduler][workflow]") {
    loom b;
    workflow w{"w"};
    w.add(shipping, {1, "plain"}, {.name = "plain"});
    w.add(shipping, {1, "own"}, {.name = "own", .priority = ax::priority::low, .retry = ax::retry::none()});
    auto const id =
        b->submit(w, {.priority = ax::priority::high, .retry = ax::retry::fixed(1s).attempts(9), .tags = {"t"}}).id;
    auto const plain = b.get(b.member(id, "plain"));
    auto const own = b.get(b.member(id, "own"));
    CHECK(plain.priority == ax::priority::high);
    CHECK(own.priority == ax::priority::low);
    CHECK(plain.retry != own.retry);
    CHECK_FALSE(plain.retry.empty());
    CHECK(plain.tags == std::vector<std::string>{"t"});
    CHECK(own.tags == std::vector<std::string>{"t"});
    CHECK(plain.in_workflow);
    CHECK(b.get(id).type == "ax:workflow");
}

TEST_CASE("what is no workflow is refused with its reason, and nothing is stored", "[scheduler][workflow]") {
    loom b;
    std::string text;
    auto const refused = [&](auto&& call) {
        auto const code = failure_of(call, &text);
        CHECK(b->list().empty());
        return code == invalid;
    };
    CHECK(refused([&] { b->submit(workflow{"empty"}); }));
    CHECK(contains(text, "workflow \"empty\": empty graph"));
    CHECK(refused([&] {
        workflow w{"w"};
        auto const a = b.add(w, "a");
        auto const c = b.add(w, "c", {a});
        w.depend(a, c);
        b->submit(w);
    }));
    CHECK(contains(text, "cycle: a -> c -> a"));
    CHECK(refused([&] {
        workflow w{"w"};
        auto const a = b.add(w, "a");
        w.depend(a, a);
        b->submit(w);
    }));
    CHECK(contains(text, "cycle: a -> a"));
    CHECK(refused([&] {
        workflow w{"w"};
        b.add(w, "a");
        b.add(w, "a");
    }));
    CHECK(contains(text, "\"a\" already"));
    CHECK(refused([&] {
        workflow w{"w"};
        workflow v{"v"};
        b.add(w, "a");
        b.add(w, "b", {b.add(v, "stranger")});
    }));
    CHECK(contains(text, "\"stranger\" is of another workflow"));
    CHECK(refused([&] { workflow w{""}; }));
    CHECK(refused([&] {
        workflow w{"w"};
        w.add(ax::task_type<>{"ax:workflow"});
    }));
    CHECK(contains(text, "ax:"));
    CHECK(refused([&] { b->submit(diamond(b), {.key = "k", .on_conflict = ax::on_conflict::replace}); }));
    CHECK(contains(text, "on_conflict"));
    CHECK(refused([&] { b->submit(diamond(b), {.route_key = "r"}); }));
    CHECK(contains(text, "route key"));
    CHECK(refused([&] {
        workflow w{"w"};
        w.add(shipping, {1, std::string(2U << 20U, 'x')}, {.name = "large"});
        b->submit(w);
    }));
    CHECK(contains(text, "\"large\""));
    CHECK(refused([&] {
        workflow w{"w"};
        w.add(shipping, {}, {.deadline = b.now()});
        b->submit(w);
    }));
    CHECK(contains(text, "deadline"));
    CHECK(refused([&] {
        workflow w{"w"};
        w.wait_for(ax::occurrence_of("nightly"));
        b->submit(w);
    }));
    CHECK(contains(text, "nightly"));
    CHECK(refused([&] { b->on(ax::task_type<>{"ax:own"}, [] {}); }));
    CHECK(refused([&] { b->submit(ax::task_type<>{"ax:own"}); }));
}

TEST_CASE("a name that is left out is the type and a number", "[scheduler][workflow]") {
    workflow w{"w"};
    CHECK(w.add(probe).name() == "probe#1");
    CHECK(w.add(other, {}, {.name = "probe#2"}).name() == "probe#2");
    CHECK(w.add(probe).name() == "probe#3");
    CHECK(w.add(other).name() == "other#1");
    CHECK(w.size() == 4);
}

TEST_CASE("children read what their parents returned", "[scheduler][workflow]") {
    loom b;
    std::vector<std::string> seen;
    b->on(probe, [&](ax::context& ctx) {
        for (auto const& parent : ctx.parents())
            seen.push_back(parent.name + " " + std::string(to_string(parent.state)));
        seen.push_back(ctx.parent("a").dump());
        seen.push_back(ctx.parent("b").dump());
        std::string text;
        CHECK(failure_of([&] { ctx.parent("c"); }, &text) == invalid);
        CHECK(contains(text, "\"c\""));
    });
    workflow w{"w"};
    auto const a = w.add(shipping, {41, "a"}, {.name = "a"});
    auto const c = b.add(w, "b");
    b.fails["b"] = 1;
    w.add(probe, {}, {.after = {a, c}, .when = trigger_rule::all_done});
    b->submit(w);
    b.settle();
    CHECK(seen == std::vector<std::string>{"a succeeded", "b dead", "41", "null"});
}

TEST_CASE("a handler adds tasks to its own workflow, and what waits for it waits for them", "[scheduler][workflow]") {
    loom b;
    std::string refusal;
    b->on(probe, [&](ax::context& ctx) {
        auto const first = ctx.add(shipping, {1, "added"});
        ctx.add(shipping, {2, "behind"}, {.name = "named", .after = {first}});
    });
    b->on(other, [&](ax::context& ctx) { CHECK(failure_of([&] { ctx.add(probe); }, &refusal) == invalid); });
    workflow w{"w"};
    auto const grows = w.add(probe);
    b.add(w, "last", {grows});
    auto const id = b->submit(w).id;
    b->submit(other);
    b.settle();
    CHECK(b.log == std::vector<std::string>{"added", "behind", "last"});
    CHECK(b.status(id).state == task_state::succeeded);
    CHECK(b.status(id).total() == 4);
    CHECK(contains(refusal, "in no workflow"));
    b.member(id, "named");
    CHECK(b.member(id, "shipping#2.1") != task_id{});
}

TEST_CASE("an attempt that fails adds nothing", "[scheduler][workflow]") {
    loom b;
    b->on(probe, [&](ax::context& ctx) {
        ctx.add(shipping, {1, "added"});
        throw ax::give_up{"no"};
    });
    workflow w{"w"};
    w.add(probe);
    auto const id = b->submit(w).id;
    b.settle();
    CHECK(b.log.empty());
    CHECK(b.status(id).total() == 1);
    CHECK(b.status(id).state == task_state::upstream_failed);
}

TEST_CASE("a cancelled workflow starts nothing any more", "[scheduler][workflow]") {
    hosted_bench b;
    bool stopped = false;
    b.tasks.on(probe, [&](ax::context& ctx) { stopped = ctx.stop_token().stop_requested(); });
    b.tasks.on(other, [] { FAIL("started"); });
    workflow w{"w"};
    auto const a = w.add(probe);
    w.add(other, {}, {.after = {a}, .when = trigger_rule::all_done});
    auto const id = b.tasks.submit(w).id;
    b.poll();
    REQUIRE(b.loop.size() == 1);

    SECTION("while a task has not been started") {
        CHECK(b.tasks.cancel(id) == cancel_outcome::stop_requested);
        b.settle();
        CHECK_FALSE(stopped);
        CHECK(b.state(id) == task_state::cancelled);
    }
    SECTION("again: it is too late") {
        b.tasks.cancel(id);
        b.settle();
        CHECK(b.tasks.cancel(id) == cancel_outcome::too_late);
    }
}

TEST_CASE("a running task of a cancelled workflow is asked to stop", "[scheduler][workflow]") {
    loom b;
    task_id id{};
    bool stopped = false;
    cancel_outcome answer{};
    b->on(probe, [&](ax::context& ctx) {
        auto const token = ctx.stop_token();
        answer = b->cancel(id);
        stopped = token.stop_requested();
    });
    workflow w{"w"};
    auto const a = w.add(probe);
    b.add(w, "z", {a}, trigger_rule::all_done);
    id = b->submit(w).id;
    b.settle();
    CHECK(answer == cancel_outcome::stop_requested);
    CHECK(stopped);
    CHECK(b.log.empty());
    CHECK(b.status(id).state == task_state::cancelled);
    CHECK(b.status(id).cancelled == 2);
}

TEST_CASE("a workflow is retried from its failed tasks", "[scheduler][workflow]") {
    loom b;
    b.fails["left"] = 1;
    auto const id = b->submit(diamond(b)).id;
    b.settle();
    CHECK(b.status(id).state == task_state::upstream_failed);
    CHECK(b->retry(id) == change_outcome::done);
    b.settle();
    CHECK(b.log == std::vector<std::string>{"a", "left", "right", "left", "z"});
    CHECK(b.status(id).state == task_state::succeeded);
    CHECK(b->retry(id) == change_outcome::wrong_state);
}

TEST_CASE("a dead task is marked by hand, and what it had blocked comes back", "[scheduler][workflow]") {
    loom b;
    b.fails["left"] = 1;
    auto const id = b->submit(diamond(b)).id;
    b.settle();
    CHECK(b->mark_succeeded(b.member(id, "left")) == change_outcome::done);
    CHECK(b->mark_succeeded(b.member(id, "right")) == change_outcome::wrong_state);
    b.settle();
    CHECK(b.log.back() == "z");
    CHECK(b.status(id).state == task_state::succeeded);
}

TEST_CASE("a rerun makes a new generation of a task and of those below it", "[scheduler][workflow]") {
    loom b;
    auto const id = b->submit(diamond(b)).id;
    b.settle();
    auto const left = b.member(id, "left");
    auto const answer = b->rerun(left, ax::below::all);
    CHECK(answer.outcome == change_outcome::done);
    CHECK(answer.task == b.member(id, "left"));
    CHECK(b.status(id).state == task_state::created);
    b.settle();
    CHECK(b.log == std::vector<std::string>{"a", "left", "right", "z", "left", "z"});
    CHECK(b.status(id).state == task_state::succeeded);
    CHECK(b->rerun(left).outcome == change_outcome::wrong_state);
    CHECK(b->rerun(task_id{999}).outcome == change_outcome::unknown);
}

TEST_CASE("a paused workflow starts nothing, also after a restart, until it is resumed", "[scheduler][workflow]") {
    loom b;
    auto const id = b->submit(diamond(b)).id;
    CHECK(b->pause_workflow(id) == change_outcome::done);
    b.settle();
    CHECK(b.log.empty());
    b.restart([&](simulated& tasks) { b.prepare(tasks); });
    b.settle();
    CHECK(b.log.empty());
    CHECK(b.status(id).paused);
    CHECK(b->resume_workflow(id) == change_outcome::done);
    b.settle();
    CHECK(b.log.size() == 4);
    CHECK(b->pause_workflow(b->submit(shipping).id) == change_outcome::unknown);
}

TEST_CASE("a pause takes back what was claimed and not started", "[scheduler][workflow]") {
    hosted_bench b;
    int runs = 0;
    b.tasks.on(probe, [&] { ++runs; });
    workflow w{"w"};
    w.add(probe);
    auto const id = b.tasks.submit(w).id;
    auto const stranger = b.tasks.submit(probe).id;
    b.poll();
    REQUIRE(b.loop.size() == 2);
    b.tasks.pause_workflow(id);
    b.settle();
    CHECK(runs == 1);
    CHECK(b.state(stranger) == task_state::succeeded);
    CHECK(b.tasks.find_workflow(id)->ready == 1);
    b.tasks.resume_workflow(id);
    b.settle();
    CHECK(runs == 2);
    CHECK(b.state(id) == task_state::succeeded);
}

TEST_CASE("a workflow beyond its deadline is given up", "[scheduler][workflow]") {
    loom b;
    workflow w{"w"};
    auto const a = b.add(w, "a");
    w.add(other, {}, {.after = {a}}); // nobody has a handler for it
    auto const id = b->submit(w, {.deadline = b.now() + 1h}).id;
    b.settle();
    b.run_for(2h);
    CHECK(b.state(id) == task_state::dead);
    CHECK(b.status(id).cancelled == 1);
    CHECK(b.status(id).succeeded == 1);
}

TEST_CASE("a workflow waits for a task outside of it, at most for so long", "[scheduler][workflow]") {
    loom b;
    workflow w{"w"};
    auto const wait = w.wait_for(ax::task_with_key("import"), {.within = 1h});
    b.add(w, "after", {wait});
    SECTION("that comes") {
        auto const id = b->submit(w).id;
        b.run_for(10min);
        b->submit(shipping, {1, "import"}, {.key = "import"});
        b.settle();
        CHECK(b.log == std::vector<std::string>{"import", "after"});
        CHECK(b.status(id).state == task_state::succeeded);
    }
    SECTION("that does not") {
        auto const id = b->submit(w).id;
        b.run_for(2h);
        CHECK(b.log.empty());
        CHECK(b.state(b.member(id, "wait for import")) == task_state::dead);
        CHECK(b.status(id).state == task_state::upstream_failed);
    }
}

TEST_CASE("a schedule creates workflows, with their period in every task", "[scheduler][workflow]") {
    loom b;
    std::vector<std::string> seen;
    b->on(probe, [&](ax::context& ctx) {
        seen.push_back(
            std::to_string(ctx.scheduled_at().time_since_epoch().count() - b.now().time_since_epoch().count()));
    });
    workflow w{"reconcile"};
    auto const a = w.add(shipping, {1, "{{ts}}"}, {.name = "a"});
    w.add(probe, {}, {.after = {a}});
    b->schedule("hourly", ax::every{1h}, w);
    b.run_for(3h);
    CHECK(b.log.size() == 3);
    CHECK(b.log.at(0) == "2026-01-01T01:00:00+00:00");
    CHECK(seen == std::vector<std::string>{"0", "0", "0"});
    auto const record = b->schedules().at(0);
    CHECK(record.fired == 3);
    CHECK(b.status(record.last_task).name == "reconcile");
    CHECK(b.state(record.last_task) == task_state::succeeded);
    auto const again = b->schedule("hourly", ax::every{1h}, w);
    CHECK(again.version == record.version); // the same one: nothing changes
}

TEST_CASE("the next workflow of a schedule is left out while one goes on, and a fixed delay counts from its end",
          "[scheduler][workflow]") {
    loom b;
    workflow w{"w"};
    auto const a = b.add(w, "a");
    w.add(other, {}, {.after = {a}}); // nobody has a handler for it
    b->schedule("hourly", ax::every{1h}, w);
    b.run_for(3h);
    CHECK(b.log.size() == 1);
    CHECK(b->schedules().at(0).skipped == 2);
    b->unschedule("hourly");
    workflow v{"v"};
    b.add(v, "v", {b.add(v, "u")});
    b->schedule("delayed", ax::after_each{1h}, v);
    b.run_for(150min);
    CHECK(std::count(b.log.begin(), b.log.end(), "v") == 2);
}

TEST_CASE("a backfill and a run by hand create workflows, too", "[scheduler][workflow]") {
    loom b;
    workflow w{"w"};
    b.add(w, "{{ts}}");
    b->schedule("hourly", ax::every{1h}, w);
    b->pause_schedule("hourly");
    auto const start = b.now();
    b.run_for(5h + 30min);
    CHECK(b.log.empty());
    auto const report = b->backfill("hourly", start + 1h, start + 4h, {.at_once = 1});
    CHECK(report.planned == 3);
    b.run_for(1min);
    CHECK(b.log == std::vector<std::string>{"2026-01-01T01:00:00+00:00", "2026-01-01T02:00:00+00:00",
                                            "2026-01-01T03:00:00+00:00"});
    auto const again = b->backfill("hourly", start + 3h, start + 4h);
    CHECK(again.created == 0);
    CHECK(again.existed == 1);
    auto const extra = b->run_now("hourly").id;
    b.settle();
    CHECK(b.state(extra) == task_state::succeeded);
    CHECK(b.log.size() == 4);
    CHECK(failure_of([&] { b->mark_catch_up("hourly", start + 5h); }) == invalid);
}

TEST_CASE("what a schedule cannot do with a workflow is refused", "[scheduler][workflow]") {
    loom b;
    auto const w = diamond(b);
    CHECK(failure_of([&] { b->schedule("s", ax::every{1h}, w, {.overlap = ax::overlap::queue_all}); }) == invalid);
    CHECK(failure_of([&] { b->schedule("s", ax::every{1h}, w, {.depends_on_past = true}); }) == invalid);
    CHECK(failure_of([&] { b->schedule("s", ax::every{1h}, workflow{"empty"}); }) == invalid);
    workflow late{"late"};
    late.add(probe, {}, {.deadline = b.now() + 1h});
    CHECK(failure_of([&] { b->schedule("s", ax::every{1h}, late); }) == invalid);
    CHECK(b->schedules().empty());
}

TEST_CASE("a workflow of a schedule may wait for the same period of another", "[scheduler][workflow]") {
    loom b;
    workflow w{"w"};
    b.add(w, "sum", {w.wait_for(ax::occurrence_of("rates"))});
    b->schedule("sums", ax::every{1h}, w);
    b->schedule("rates", ax::every{1h}, shipping, {1, "rates"}, {.spread = 10min});
    b.run_for(2h + 20min);
    CHECK(b.log == std::vector<std::string>{"rates", "sum", "rates", "sum"});
}

TEST_CASE("the critical path is the chain that the end has waited for", "[scheduler][workflow]") {
    loom b;
    workflow w{"w"};
    auto const a = b.add(w, "a");
    auto const slow = w.add(shipping, {1, "slow"}, {.name = "slow", .after = {a}});
    auto const quick = b.add(w, "quick", {a});
    b.add(w, "z", {slow, quick});
    b->on(probe, [] {});
    auto const id = b->submit(w).id;
    b->pause(shipping);
    b.poll();
    b->resume(shipping);
    b.settle();
    auto const path = b->critical_path(id);
    REQUIRE(path.size() == 3);
    CHECK(path.front().id == b.member(id, "a"));
    CHECK(path.back().id == b.member(id, "z"));
    CHECK(b->critical_path(task_id{99}).empty());
}

TEST_CASE("the critical path leaves out what nobody waited for", "[scheduler][workflow]") {
    loom b;
    workflow w{"w"};
    auto const late = w.add(shipping, {1, "late"}, {.name = "late"});
    auto const first = w.add(probe, {}, {.name = "first", .after = {late}, .when = ax::trigger_rule::always});
    b.add(w, "last", {first});
    b->on(probe, [] {});
    b->pause(shipping);
    auto const id = b->submit(w).id;
    b.run_for(1s);
    b->resume(shipping);
    b.run_for(1s);
    REQUIRE(b.state(id) == task_state::succeeded);
    CHECK(b->critical_path(id).size() == 2); // "late" ended after "last" has
    auto const members = b->workflow_tasks(id);
    auto const whole = b->find_workflow(id);
    CHECK(ax::critical_path_of(*whole, members).size() == 2);
}

TEST_CASE("a fixed delay goes on wherever its workflow has come to an end", "[scheduler][workflow]") {
    loom b;
    workflow w{"w"};
    auto const look = [&] { // as the threads of a started scheduler do each second
        b.clock.advance(6s);
        b.poll();
        b.poll();
    };
    SECTION("by a task outside that it waits for") {
        b->on(probe, [] {});
        w.wait_for(ax::task_with_key("k"));
        b->schedule("s", ax::after_each{1h}, w);
        b.run_for(1h + 1min);
        b->submit(probe, {}, {.key = "k"});
    }
    SECTION("by the limit of a wait") {
        w.wait_for(ax::task_with_key("never"), {.within = 1min});
        b->schedule("s", ax::after_each{1h}, w);
        b.run_for(1h + 2min);
    }
    SECTION("by a cancel of its last task") {
        w.add(probe); // nobody has a handler for it
        b->schedule("s", ax::after_each{1h}, w);
        b.run_for(1h + 1min);
        auto const left = b->list({.type = "probe"});
        REQUIRE(left.size() == 1);
        b->cancel(left.front().id);
    }
    b.poll();
    look();
    REQUIRE(b->schedules().at(0).fired == 1);
    CHECK(b->schedules().at(0).next);
}

TEST_CASE("a run by hand of a workflow that waits for the same period of another is refused", "[scheduler][workflow]") {
    loom b;
    workflow w{"w"};
    w.wait_for(ax::occurrence_of("rates"));
    b->schedule("sums", ax::every{1h}, w);
    CHECK(failure_of([&] { b->run_now("sums"); }) == invalid);
    CHECK(b->list({}).empty());
}

TEST_CASE("explain says for whom a task of a workflow waits", "[scheduler][workflow][explain]") {
    loom b;
    b->pause(shipping);
    b.poll();
    auto w = diamond(b);
    w.wait_for(ax::task_with_key("import"));
    auto const id = b->submit(w).id;
    auto const reason = [&](task_id task, ax::wait_cause cause) {
        for (auto& each : b->explain(task))
            if (each.cause == cause) return each;
        FAIL("there is no such reason");
        return ax::wait_reason{};
    };
    auto const z = reason(b.member(id, "z"), ax::wait_cause::parents);
    CHECK(contains(z.text, "task \"left\", task \"right\""));
    CHECK(contains(z.holder, std::to_string(to_number(b.member(id, "left")))));
    auto const wait = b->explain(b.member(id, "wait for import"));
    REQUIRE(wait.size() == 1);
    CHECK(wait.front().cause == ax::wait_cause::parents);
    CHECK(contains(wait.front().text, "import"));
    auto const whole = b->explain(id);
    REQUIRE(whole.size() == 1);
    CHECK(whole.front().cause == ax::wait_cause::parents);
    CHECK(contains(whole.front().text, "1 are ready or at work, 4 wait"));
    b->pause_workflow(id);
    b->resume(shipping);
    auto const first = b->explain(b.member(id, "a"));
    REQUIRE(first.size() == 1);
    CHECK(first.front().cause == ax::wait_cause::paused);
    CHECK(contains(first.front().text, "\"diamond\" is paused"));
}

TEST_CASE("a thousand tasks behind one, and one behind them, run without being looked for", "[scheduler][workflow]") {
    loom b;
    workflow w{"fan"};
    auto const a = b.add(w, "a");
    std::vector<ax::workflow_task> middle;
    for (int i = 0; i != 1'000; ++i) middle.push_back(b.add(w, "m" + std::to_string(i), {a}));
    b.add(w, "z", middle);
    auto const id = b->submit(w).id;
    b.settle();
    CHECK(b.log.size() == 1'002);
    CHECK(b.log.back() == "z");
    CHECK(b.status(id).succeeded == 1'002);
}

TEST_CASE("a pause takes back what is claimed ahead and has not been handed over", "[scheduler][workflow]") {
    loom b;
    task_id id{};
    int runs = 0;
    b->on(probe, [&] {
        if (++runs == 1) b->pause_workflow(id);
    });
    workflow w{"w"};
    for (int i = 0; i != 20; ++i) w.add(probe);
    id = b->submit(w).id;
    b.settle();
    CHECK(runs == 1);
    CHECK(b.status(id).ready == 19);
    b->resume_workflow(id);
    b.settle();
    CHECK(runs == 20);
}

TEST_CASE("what is retried in a workflow is due at once, whatever it had waited for", "[scheduler][workflow]") {
    loom b;
    auto const id = b->submit(diamond(b), {.delay = 1h}).id;
    b.poll();
    b->cancel(id);
    CHECK(b->retry(id) == change_outcome::done);
    CHECK(b->next_wakeup() <= b.now());
    b.settle();
    CHECK(b.status(id).state == task_state::succeeded);
}

TEST_CASE("the end of a wait is a wake-up, however its workflow was made", "[scheduler][workflow]") {
    loom b;
    workflow w{"w"};
    w.wait_for(ax::task_with_key("never"), {.within = 1min});
    SECTION("by a schedule") { b->schedule("s", ax::every{1h}, w); }
    SECTION("by hand") {
        b->schedule("s", ax::once{b.now() + 100h}, w);
        b->run_now("s");
    }
    SECTION("by a backfill") {
        b->schedule("s", ax::every{1h}, w);
        b->pause_schedule("s");
        b.run_for(90min);
        b->backfill("s", b.now() - 1h, b.now());
    }
    b.run_for(1h + 2min);
    auto const waits = b->list({.state = task_state::dead, .type = "ax:wait"});
    CHECK(waits.size() == 1);
}

TEST_CASE("cancel_and_wait of a workflow that nobody works on is answered at once", "[scheduler][workflow]") {
    loom b;
    b->on(probe, [](ax::context&) {});
    workflow w{"w"};
    w.add(probe);
    auto const id = b->submit(w, {.delay = 1h}).id;
    CHECK(b->cancel_and_wait(id, 1s) == cancel_outcome::cancelled);
}

TEST_CASE("a workflow is not retried while another has its key", "[scheduler][workflow]") {
    loom b;
    auto const w = diamond(b);
    ax::submit_options how{.key = "k", .key_scope = ax::key_scope::active, .delay = 1h};
    auto const first = b->submit(w, how).id;
    b->cancel(first);
    auto const second = b->submit(w, how);
    CHECK(second.outcome == submit_outcome::inserted);
    CHECK(b->retry(first) == change_outcome::wrong_state);
    CHECK(b->retry(b.member(first, "a")) == change_outcome::wrong_state);
    b->cancel(second.id);
    CHECK(b->retry(first) == change_outcome::done);
}

TEST_CASE("the id that was submitted steers a workflow in every generation", "[scheduler][workflow]") {
    loom b;
    auto const id = b->submit(diamond(b)).id;
    b.settle();
    b.fails["left"] = 1;
    b->rerun(b.member(id, "left"), ax::below::all);
    b.settle();
    CHECK(b.status(id).state == task_state::upstream_failed);
    CHECK(b->retry(id) == change_outcome::done);
    CHECK(b->cancel(id) == cancel_outcome::cancelled);
    CHECK(b.status(id).state == task_state::cancelled);
    CHECK(b->mark_succeeded(id) == change_outcome::wrong_state);
}

TEST_CASE("a later workflow of a schedule takes the place of one that goes on", "[scheduler][workflow]") {
    loom b;
    workflow w{"w"};
    w.add(other); // nobody has a handler for it
    b->schedule("s", ax::every{1h}, w, {.overlap = ax::overlap::replace_running});
    b.run_for(2h);
    CHECK(b->schedules().at(0).fired == 2);
    CHECK(b->list({.state = task_state::cancelled, .type = "ax:workflow"}).size() == 1);
    CHECK(b->list({.state = task_state::created, .type = "ax:workflow"}).size() == 1);
    CHECK(failure_of([&] { b->schedule("t", ax::every{1h}, w, {.overlap = ax::overlap::cancel_running}); }) == invalid);
}

TEST_CASE("an occurrence that cannot be made is left out with its reason, and the schedule goes on",
          "[scheduler][workflow]") {
    loom b;
    workflow w{"w"};
    b.add(w, "a", {w.wait_for(ax::task_with_key("{{prev}}"), {.name = "before", .within = 1min})});
    b->schedule("s", ax::every{1h}, w, {.overlap = ax::overlap::allow});
    b.run_for(3h);
    auto const record = b->schedules().at(0);
    CHECK(record.fired == 2);
    CHECK(record.skipped == 1);
    CHECK_FALSE(record.last_skip.empty());
}

TEST_CASE("what is wrong with a task that a handler adds is told to the handler", "[scheduler][workflow]") {
    loom b;
    int told = 0;
    b->on(probe, [&](ax::context& ctx) {
        told += failure_of([&] { ctx.add(shipping, {}, {.route_key = "schedule:x"}); }) == invalid;
        told += failure_of([&] { ctx.add(shipping, {}, {.priority = static_cast<ax::priority_class>(9)}); }) == invalid;
        ctx.add(shipping, {1, "late"}, {.deadline = b.now()}); // it passes before it can start
    });
    workflow w{"w"};
    w.add(probe);
    auto const id = b->submit(w).id;
    b.settle();
    b.run_for(1min);
    CHECK(told == 2);
    CHECK(b.status(id).succeeded == 1);
    CHECK(b.status(id).dead == 1);
    CHECK(b->health().storage_ok);
}

TEST_CASE("a task that a handler has added is there once after a rerun, whatever was rerun", "[scheduler][workflow]") {
    loom b;
    auto const scope = GENERATE(ax::below::unfinished, ax::below::all);
    b->on(probe, [&](ax::context& ctx) { ctx.add(shipping, {1, "added"}, {.name = "added"}); });
    workflow w{"w"};
    auto const grows = w.add(probe, {}, {.name = "grows"});
    b.add(w, "last", {grows});
    auto const id = b->submit(w).id;
    b.settle();
    CHECK(b->rerun(b.member(id, "grows"), scope).outcome == change_outcome::done);
    b.settle();
    CHECK(std::count(b.log.begin(), b.log.end(), "added") == 2);
    CHECK(b.status(id).total() == 3);
    CHECK(b.status(id).state == task_state::succeeded);
    std::size_t outdated = 0;
    for (auto const& each : b->workflow_tasks(id)) outdated += each.outdated;
    CHECK(outdated == (scope == ax::below::all ? 3 : 2));
}

TEST_CASE("a key names the latest generation of a workflow, and an id what it named", "[scheduler][workflow]") {
    loom b;
    auto const id = b->submit(diamond(b), {.key = "d"}).id;
    b.settle();
    b.fails["left"] = 1;
    b->rerun(b.member(id, "left"), ax::below::all);
    auto const latest = b->find_by_key("d");
    REQUIRE(latest);
    CHECK(latest->id == b.status(id).head);
    CHECK(latest->id != id);
    CHECK(latest->key == "d");
    CHECK(latest->state == task_state::created);
    CHECK(b.state(id) == task_state::succeeded);
    b.settle();
    CHECK(b->find_by_key("d")->state == task_state::upstream_failed);
    CHECK(b.state(id) == task_state::succeeded);
    CHECK(b->submit(diamond(b), {.key = "d"}).outcome == submit_outcome::kept);
}

TEST_CASE("a workflow that waits for itself is refused, and the text names the wait", "[scheduler][workflow]") {
    loom b;
    std::string text;
    workflow w{"w"};
    w.wait_for(ax::awaited{.key = "own", .task = "a"}, {.name = "pause"});
    b.add(w, "a");
    CHECK(failure_of([&] { b->submit(w, {.key = "own"}); }, &text) == invalid);
    CHECK(contains(text, "\"pause\""));
    CHECK(contains(text, "task \"a\" of key \"own\""));
    CHECK(b->list().empty());
    CHECK(b->submit(w, {.key = "another"}).outcome == submit_outcome::inserted);
    workflow v{"v"};
    v.wait_for(ax::occurrence_of("nightly"), {.name = "pause"});
    CHECK(failure_of([&] { b->schedule("nightly", ax::every{1h}, v); }, &text) == invalid);
    CHECK(contains(text, "\"pause\""));
    CHECK(contains(text, "\"nightly\""));
    b->schedule("other", ax::every{1h}, v);
    workflow u{"u"}; // known only when the occurrence is there
    u.wait_for(ax::occurrence_of("u", b.now() + 1h), {.within = 1min});
    b->schedule("u", ax::every{1h}, u);
    b.run_for(90min);
    for (auto const& each : b->schedules())
        if (each.name == "u") {
            CHECK(each.skipped == 1);
            CHECK(contains(each.last_skip, "this very workflow"));
        }
}

TEST_CASE("a handle of another workflow is refused, also where place and name are the same", "[scheduler][workflow]") {
    loom b;
    workflow w{"w"};
    workflow v{"v"};
    auto const mine = b.add(w, "a");
    auto const stranger = b.add(v, "a");
    std::string text;
    CHECK(failure_of([&] { b.add(w, "b", {stranger}); }, &text) == invalid);
    CHECK(contains(text, "\"a\" is of another workflow"));
    CHECK(w.size() == 1);
    auto copy = w; // has the same tasks
    b.add(copy, "b", {mine});
    CHECK(copy.size() == 2);
}

TEST_CASE("no occurrence of a workflow is lost where the storage fails while it is made",
          "[scheduler][workflow][storage]") {
    auto const failing = GENERATE(range(0, 8));
    bool const reads = GENERATE(false, true);
    auto const kind = GENERATE(ax::errc::unavailable, ax::errc::disk_full, ax::errc::corrupt);
    CAPTURE(failing, reads, kind);
    loom b;
    workflow w{"w"};
    b.add(w, "a");
    b->schedule("s", ax::every{1h}, w);
    b.restart([&](simulated& tasks) { b.prepare(tasks); });
    b.poll();
    int count = 0;
    (reads ? b.store.hooks().before_read : b.store.hooks().before_transact) = [&] {
        if (count++ == failing) throw ax::error(kind, "away for a while");
    };
    b.clock.advance(1h);
    for (int i = 0; i != 200; ++i) {
        try {
            b.poll();
        } catch (ax::error const&) {
        }
        b.clock.advance(1s);
    }
    b.store.hooks() = {};
    b.run_for(10min);
    auto const record = b->schedules().at(0);
    CHECK(record.fired == 1);
    CHECK(record.skipped == 0);
    CHECK(b.log.size() == 1);
    CHECK(b->health().storage_ok);
}

TEST_CASE("a task of a paused workflow keeps its place in its route, also before outsiders, and explain names it",
          "[scheduler][workflow][explain]") {
    loom b;
    b->submit(shipping, {1, "before"}, {.route_key = "r"});
    workflow w{"w"};
    w.add(shipping, {1, "first"}, {.name = "first", .route_key = "r"});
    auto const id = b->submit(w).id;
    auto const outsider = b->submit(shipping, {1, "outsider"}, {.route_key = "r"}).id;
    b->submit(shipping, {1, "of another route"}, {.route_key = "s"});
    b->pause_workflow(id);
    b.settle();
    CHECK(b.log == std::vector<std::string>{"before", "of another route"});
    auto const why = b->explain(outsider);
    REQUIRE(why.size() == 1);
    CHECK(contains(why.front().text + why.front().holder, std::to_string(to_number(b.member(id, "first")))));
    SECTION("resumed") {
        b->resume_workflow(id);
        b.settle();
        CHECK(b.log.back() == "outsider");
        CHECK(b.log.size() == 4);
    }
    SECTION("cancelled") {
        b->cancel(id);
        b.settle();
        CHECK(b.log.back() == "outsider");
        CHECK(b.log.size() == 3);
    }
}
