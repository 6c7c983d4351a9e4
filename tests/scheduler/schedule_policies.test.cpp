// SPDX-License-Identifier: MIT
#include "ax/scheduler/policies.hpp"

#include "scheduler/support.hpp"

using namespace test;

namespace {

/// A schedule "s" of each minute, whose runs are written down.
struct policy_bench : bench {
    std::vector<ax::time_point> runs;
    std::vector<ax::time_point> planned;
    ax::time_point start;

    policy_bench() : start(now()) { again(); }
    void again() {
        restart([this](simulated& tasks) {
            tasks.on(probe, [this](ax::context& ctx) {
                runs.push_back(now());
                planned.push_back(ctx.scheduled_at());
            });
        });
    }
    ax::schedule_record declare(ax::schedule_options chosen) {
        return (*this)->schedule("s", ax::every{60s}, probe, {}, std::move(chosen));
    }
    /// The process is away for `span`, and what it finds is run.
    void away(ax::time_span span) {
        clock.advance(span);
        again();
        run_for(0s);
    }
    ax::schedule_record record() { return (*this)->schedules().at(0); }
    std::vector<ax::time_point> minutes(std::vector<int> const& which) const {
        std::vector<ax::time_point> all;
        for (auto const m : which) all.push_back(start + m * 60s);
        return all;
    }
};

/// A schedule "s" of each ten seconds whose runs last as long as the test wants.
struct overlap_bench : hosted_bench {
    std::vector<ax::time_point> begun;
    std::vector<bool> stop_seen; ///< of each run, when it ended
    ax::time_point start = clock.now();

    explicit overlap_bench(ax::overlap_policy policy, ax::options chosen = {}) : hosted_bench(std::move(chosen)) {
        tasks.on(probe, [this](ax::context& ctx) {
            begun.push_back(ctx.scheduled_at());
            auto const mine = begun.size() - 1;
            stop_seen.push_back(false);
            if (during) during(mine);
            stop_seen[mine] = ctx.stop_token().stop_requested();
        });
        ax::schedule_options how;
        how.overlap = policy;
        tasks.schedule("s", ax::every{10s}, probe, {}, how);
        poll();
    }
    /// Time passes in which nobody runs what was posted.
    void tick(int times = 1) {
        for (; times != 0; --times) pass(10s);
    }
    ax::schedule_record record() { return tasks.schedules().at(0); }
    std::size_t in_state(task_state s) {
        ax::task_filter wanted;
        wanted.state = s;
        return tasks.list(wanted).size();
    }
    std::vector<ax::time_point> at(std::vector<int> const& seconds) const {
        std::vector<ax::time_point> all;
        for (auto const s : seconds) all.push_back(start + std::chrono::seconds{s});
        return all;
    }
    std::function<void(std::size_t)> during;
};

} // namespace

// ---------------------------------------------------------------- what its tasks get

TEST_CASE("the tasks of a schedule have its priority, retry policy and tags", "[scheduler][schedules]") {
    policy_bench b;
    ax::schedule_options how;
    how.priority = ax::priority::high;
    how.retry = ax::retry::fixed(5s).attempts(2);
    how.tags = {"b", "a b\nc", "b"};
    b.declare(how);
    bool const restarted = GENERATE(false, true);
    if (restarted) b.again();
    b.run_for(60s);
    auto const task = b.get(b.record().last_task);
    CHECK(task.priority == ax::priority_class::high);
    CHECK(task.retry == ax::retry::to_text(*how.retry));
    CHECK(task.tags == std::vector<std::string>{"a b\nc", "b"});
}

TEST_CASE("other terms make another schedule, the same ones do not", "[scheduler][schedules]") {
    policy_bench b;
    auto const first = b.declare({});
    b.clock.advance(5s);
    CHECK(b.declare({}).version == first.version);
    ax::schedule_options how;
    auto const what = GENERATE(0, 1, 2, 3, 4, 5, 6);
    if (what == 0) how.misfire = ax::misfire::skip;
    if (what == 1) how.overlap = ax::overlap::allow;
    if (what == 2) how.spread = 10s;
    if (what == 3) how.priority = ax::priority::low;
    if (what == 4) how.retry = ax::retry::none();
    if (what == 5) how.tags = {"t"};
    if (what == 6) how.depends_on_past = true;
    auto const second = b.declare(how);
    CHECK(second.version == first.version + 1);
    CHECK(second.next == first.next); // what it is due at is not moved by that
    CHECK(b.declare(how).version == first.version + 1);
    b.again();
    CHECK(b.declare(how).version == first.version + 1);
}

TEST_CASE("terms that cannot be are refused by name, and nothing is stored", "[scheduler][schedules]") {
    policy_bench b;
    std::string message;
    auto const refused = [&](ax::schedule_options how, char const* names) {
        CHECK(failure_of([&] { b.declare(how); }, &message) == invalid);
        CHECK(contains(message, names));
    };
    ax::schedule_options how;
    how.spread = 60s;
    refused(how, "spread");
    how.spread = -1s;
    refused(how, "negative");
    how = {};
    how.tags = {""};
    refused(how, "tag");
    how = {};
    how.priority = static_cast<ax::priority_class>(4);
    refused(how, "priority");
    how = {};
    how.overlap = static_cast<ax::overlap_policy>(6);
    refused(how, "overlap");
    how = {};
    how.depends_on_past = true;
    how.overlap = GENERATE(ax::overlap::cancel_running, ax::overlap::replace_running);
    refused(how, "depends_on_past");
    CHECK(b->schedules().empty());
}

TEST_CASE("spread: runs come later by a fixed offset, scheduled_at does not", "[scheduler][schedules][spread]") {
    policy_bench b;
    ax::schedule_options how;
    how.spread = 30s;
    auto const offset = ax::detail::spread_offset("s", how.spread);
    REQUIRE(offset > 0s);
    b.declare(how);
    b.run_for(100s);
    b.again();
    b.run_for(120s);
    CHECK(b.planned == b.minutes({1, 2, 3}));
    REQUIRE(b.runs.size() == 3);
    for (std::size_t i = 0; i != 3; ++i) CHECK(b.runs[i] == b.planned[i] + offset);
    CHECK(b.get(b.record().last_task).run_at == b.planned[2] + offset);
    CHECK(b.record().skipped == 0);
}

// ---------------------------------------------------------------- misfire

TEST_CASE("misfire: what becomes of minutes 2 to 5, missed while nothing ran", "[scheduler][schedules][misfire]") {
    policy_bench b;
    ax::schedule_options how;
    std::vector<int> expected;
    std::uint64_t skipped = 0;
    char const* reason = "";
    auto const what = GENERATE(0, 1, 2, 3, 4, 5, 6);
    CAPTURE(what);
    if (what == 0) expected = {1, 5, 6}, skipped = 3, reason = "stands for it";
    if (what == 1) how.misfire = ax::misfire::skip, expected = {1, 6}, skipped = 4, reason = "skip";
    if (what == 2) how.misfire = ax::misfire::run_all(10), expected = {1, 2, 3, 4, 5, 6};
    if (what == 3) how.misfire = ax::misfire::run_all(2), expected = {1, 4, 5, 6}, skipped = 2, reason = "latest 2";
    if (what == 4) how.misfire = ax::misfire::within(30s), expected = {1, 5, 6}, skipped = 3, reason = "stands for it";
    if (what == 5) how.misfire = ax::misfire::within(29s), expected = {1, 6}, skipped = 4, reason = "late by more";
    if (what == 6)
        how.misfire = ax::misfire::run_all(10), how.overlap = ax::overlap::allow, expected = {1, 2, 3, 4, 5, 6};
    b.declare(how);
    b.run_for(61s);
    b.away(269s); // to 5:30
    b.run_for(30s);
    CHECK(b.planned == b.minutes(expected));
    CHECK(b.record().fired == expected.size());
    CHECK(b.record().skipped == skipped);
    CHECK(contains(b.record().last_skip, reason));
}

TEST_CASE("what comes due while a scheduler watches is not missed, though its poll is late",
          "[scheduler][schedules][misfire]") {
    policy_bench b;
    ax::schedule_options how;
    how.misfire = ax::misfire::skip;
    b.declare(how);
    b.run_for(1s);
    b.clock.advance(80s); // 21 s late
    b.poll();
    CHECK(b.planned == b.minutes({1}));
    b.clock.set(b.now() + 57s); // the clock leaps to 2:18: nobody saw 2:00 come
    b.poll();
    CHECK(b.planned == b.minutes({1}));
    CHECK(b.record().skipped == 1);
    b.run_for(60s);
    CHECK(b.planned == b.minutes({1, 3}));
}

TEST_CASE("run_all(7) makes seven, and overlap decides which of them run", "[scheduler][schedules][misfire][overlap]") {
    struct {
        ax::overlap_policy overlap;
        std::vector<int> expected;
        std::uint64_t skipped;
    } const pairs[] = {{ax::overlap::skip, {1, 3, 4, 5, 6, 7, 8, 9}, 1},
                       {ax::overlap::allow, {1, 3, 4, 5, 6, 7, 8, 9}, 1},
                       {ax::overlap::queue_one, {1, 3, 9}, 6},
                       {ax::overlap::queue_all, {1, 3, 4, 5, 6, 7, 8, 9}, 1},
                       {ax::overlap::cancel_running, {1, 9}, 7},
                       {ax::overlap::replace_running, {1, 9}, 7}};
    auto const& pair = pairs[GENERATE(0, 1, 2, 3, 4, 5)];
    CAPTURE(static_cast<int>(pair.overlap));
    policy_bench b;
    ax::schedule_options how;
    how.misfire = ax::misfire::run_all(7);
    how.overlap = pair.overlap;
    b.declare(how);
    b.run_for(61s);
    b.away(509s); // to 9:30: of minutes 2 to 9 the latest seven
    CHECK(b.planned == b.minutes(pair.expected));
    CHECK(b.record().fired == 8);
    CHECK(b.record().skipped == pair.skipped);
    CHECK(contains(b.record().last_skip, pair.skipped == 1 ? "latest 7" : "took its place"));
}

TEST_CASE("run_all makes up for thousands, over several commits and in order", "[scheduler][schedules][misfire]") {
    policy_bench b;
    ax::schedule_options how;
    how.misfire = ax::misfire::run_all(2'500);
    b.declare(how);
    b.run_for(1s);
    b.away(60s * 3'000);
    b.run_for(10s);
    CHECK(b.planned.size() == 2'501); // and the one that is on time
    CHECK(std::is_sorted(b.planned.begin(), b.planned.end()));
    CHECK(b.planned.back() == b.start + 60s * 3'000);
    CHECK(b.record().skipped == 499);
}

// ---------------------------------------------------------------- overlap

TEST_CASE("overlap skip: what comes while one runs is left out", "[scheduler][schedules][overlap]") {
    overlap_bench b{ax::overlap::skip};
    b.tick(3);
    CHECK(b.record().fired == 1);
    CHECK(b.record().skipped == 2);
    b.settle();
    CHECK(b.begun == b.at({10}));
}

TEST_CASE("overlap allow: they run side by side", "[scheduler][schedules][overlap]") {
    overlap_bench b{ax::overlap::allow};
    b.tick(3);
    CHECK(b.record().fired == 3);
    CHECK(b.record().skipped == 0);
    CHECK(b.loop.size() == 3); // all are with the executor
    b.settle();
    CHECK(b.begun == b.at({10, 20, 30}));
}

TEST_CASE("overlap queue_all: one at a time, in order, none left out", "[scheduler][schedules][overlap]") {
    overlap_bench b{ax::overlap::queue_all};
    b.tick(4);
    CHECK(b.record().fired == 4);
    CHECK(b.record().skipped == 0);
    CHECK(b.loop.size() == 1);
    b.settle();
    CHECK(b.begun == b.at({10, 20, 30, 40}));
}

TEST_CASE("overlap queue_one: of those that wait only the latest is kept", "[scheduler][schedules][overlap]") {
    overlap_bench b{ax::overlap::queue_one};
    b.tick(4); // 10 runs; 20 and 30 give way to 40
    CHECK(b.loop.size() == 1);
    CHECK(b.in_state(task_state::cancelled) == 2);
    CHECK(b.record().skipped == 2);
    CHECK(contains(b.record().last_skip, "a later one took its place"));
    b.settle();
    CHECK(b.begun == b.at({10, 40}));
    b.tick();
    b.settle();
    CHECK(b.begun == b.at({10, 40, 50}));
}

TEST_CASE("overlap cancel_running: the one that runs is asked to stop, and waited for",
          "[scheduler][schedules][overlap]") {
    overlap_bench b{ax::overlap::cancel_running};
    b.during = [&](std::size_t which) {
        if (which != 0) return;
        b.tick();
        CHECK(b.loop.size() == 0); // 20 waits
        b.tick();                  // 30 takes the place of 20
        CHECK(b.loop.size() == 0);
    };
    b.tick();
    b.settle();
    CHECK(b.begun == b.at({10, 30}));
    CHECK(b.stop_seen == std::vector<bool>{true, false});
    CHECK(b.record().skipped == 1);
}

TEST_CASE("overlap replace_running: the one that runs is asked to stop, and not waited for",
          "[scheduler][schedules][overlap]") {
    overlap_bench b{ax::overlap::replace_running};
    b.during = [&](std::size_t which) {
        if (which != 0) return;
        b.tick();
        CHECK(b.loop.step()); // 20 runs while 10 does
    };
    b.tick();
    b.settle();
    CHECK(b.begun == b.at({10, 20}));
    CHECK(b.stop_seen == std::vector<bool>{true, false});
}

TEST_CASE("overlap: one that was claimed and has not started is cancelled, not asked",
          "[scheduler][schedules][overlap]") {
    overlap_bench b{GENERATE(ax::overlap::cancel_running, ax::overlap::replace_running)};
    b.tick(2); // 10 is with the executor, which has not begun it
    b.settle();
    CHECK(b.begun == b.at({20}));
    CHECK(b.in_state(task_state::cancelled) == 1);
}

TEST_CASE("a caller's route key cannot be that of a schedule", "[scheduler][schedules][overlap]") {
    policy_bench b;
    ax::submit_options how;
    how.route_key = "schedule:s";
    std::string message;
    CHECK(failure_of([&] { b->submit(probe, {}, how); }, &message) == invalid);
    CHECK(contains(message, "schedule:"));
    how.route_key = "schedules";
    CHECK(b->submit(probe, {}, how).outcome == submit_outcome::inserted);
}

// ---------------------------------------------------------------- paused, resumed, previewed

TEST_CASE("a paused schedule creates nothing, also after a restart", "[scheduler][schedules][pause]") {
    policy_bench b;
    b.declare({});
    b.run_for(60s);
    CHECK(b->pause_schedule("s"));
    CHECK(b->pause_schedule("s"));
    CHECK_FALSE(b->pause_schedule("t"));
    CHECK_FALSE(b->resume_schedule("t"));
    CHECK(b.record().paused);
    CHECK(b->preview("s").empty());
    b.run_for(120s);
    b.again();
    b.declare({});
    b.run_for(90s); // to 4:30
    CHECK(b.planned == b.minutes({1}));
    bool const catch_up = GENERATE(false, true);
    CAPTURE(catch_up);
    CHECK(b->resume_schedule("s", catch_up ? ax::resume::catch_up : ax::resume::from_now));
    b.run_for(30s);
    CHECK(b.planned == (catch_up ? b.minutes({1, 4, 5}) : b.minutes({1, 5})));
    CHECK(b.record().skipped == (catch_up ? 2 : 3));
    CHECK(contains(b.record().last_skip, catch_up ? "missed" : "paused"));
    CHECK_FALSE(b.record().paused);
    CHECK(b->resume_schedule("s")); // it is not paused: nothing changes
    CHECK(b.record().skipped == (catch_up ? 2 : 3));
}

TEST_CASE("resume catch_up: what came in the pause was missed, also by who was there",
          "[scheduler][schedules][pause]") {
    policy_bench b;
    ax::schedule_options how;
    std::vector<int> expected;
    std::string reason;
    auto const what = GENERATE(0, 1, 2, 3);
    CAPTURE(what);
    if (what == 0) how.misfire = ax::misfire::skip, expected = {1, 5}, reason = "missed: the policy is to skip";
    if (what == 1) how.misfire = ax::misfire::within(29s), expected = {1, 5};
    if (what == 2) how.misfire = ax::misfire::within(30s), expected = {1, 4, 5};
    if (what == 3) how.misfire = ax::misfire::run_all(2), expected = {1, 3, 4, 5};
    b.declare(how);
    b.run_for(60s);
    b->pause_schedule("s");
    b.run_for(210s); // to 4:30, and it polls all the time
    b->resume_schedule("s", ax::resume::catch_up);
    auto const next = b->preview("s", 1);
    b.run_for(30s);
    CHECK(b.planned == b.minutes(expected));
    CHECK(b.record().skipped == 5 - expected.size());
    if (!reason.empty()) CHECK(b.record().last_skip == reason);
    CHECK(next.at(0).nominal == b.minutes(expected).at(1));
}

TEST_CASE("a fixed delay that was paused goes on", "[scheduler][schedules][pause]") {
    policy_bench b;
    b->schedule("s", ax::after_each{60s}, probe);
    b.run_for(60s);
    b->pause_schedule("s");
    b.run_for(10min);
    CHECK(b.runs.size() == 1);
    b->resume_schedule("s");
    b.run_for(60s);
    CHECK(b.runs.size() == 2);
}

TEST_CASE("preview names what then comes", "[scheduler][schedules][preview]") {
    policy_bench b;
    ax::schedule_options how;
    how.spread = 30s;
    b.declare(how);
    b.run_for(61s);
    b.clock.advance(4min); // 2 to 5 are missed
    b.again();
    b.planned.clear(), b.runs.clear();
    auto const next = b->preview("s", 3);
    REQUIRE(next.size() == 3);
    b.run_for(3min);
    REQUIRE(b.planned.size() >= 3);
    for (std::size_t i = 0; i != 3; ++i) {
        CHECK(next[i].nominal == b.planned[i]);
        if (i == 0)
            CHECK(next[i].run_at < b.runs[i]); // it stands for those that were missed
        else
            CHECK(next[i].run_at == b.runs[i]);
    }
    CHECK(failure_of([&] { b->preview("t"); }) == invalid);
    CHECK(b->preview("s", 0).empty());
    CHECK(b->preview("s", 10'000).size() == 10'000);
    CHECK(failure_of([&] { b->preview("s", 10'001); }) == invalid);
}

// ---------------------------------------------------------------- payloads

TEST_CASE("a payload with placeholders is rendered for each occurrence, in the schedule's zone",
          "[scheduler][schedules][template]") {
    bench b; // 2026-01-01 00:00 UTC
    std::vector<std::string> notes;
    b->on(shipping, [&](parcel const& p) { notes.push_back(p.note); });
    b->schedule("s", ax::cron{"0 0 3 * * *", "Asia/Shanghai"}, shipping,
                {7, "{{ds - 1d}} {{prev | %d}} {{next | %d}}"});
    b.run_for(48h);
    CHECK(notes == std::vector<std::string>{"2026-01-01 01 03", "2026-01-02 02 04"});
    std::string message;
    CHECK(failure_of([&] { b->schedule("t", ax::every{1s}, shipping, {7, "{{dss}}"}); }, &message) == invalid);
    CHECK(contains(message, "dss"));
    CHECK(contains(message, "\"t\""));
    CHECK(b->schedules().size() == 1);
}

TEST_CASE("the first occurrence of a rate has none before it", "[scheduler][schedules][template]") {
    bench b;
    std::vector<std::string> notes;
    b->on(shipping, [&](parcel const& p) { notes.push_back(p.note); });
    b->schedule("s", ax::every{60s}, shipping, {7, "{{prev | %M}} {{{{"});
    b.run_for(120s);
    CHECK(notes == std::vector<std::string>{" {{", "01 {{"});
}

TEST_CASE("a run in between has the planned instants about it as its neighbours", "[scheduler][schedules][template]") {
    bench b;
    std::vector<std::string> notes;
    b->on(shipping, [&](parcel const& p) { notes.push_back(p.note); });
    auto const payload = "{{prev | %T}} {{next | %T}}";
    b->schedule("rate", ax::every{60s}, shipping, {7, payload});
    b->schedule("cron", ax::cron{"0 5 * * * *"}, shipping, {7, payload});
    b.run_for(150s);
    notes.clear();
    b->run_now("rate");
    b->run_now("cron");
    b.poll();
    CHECK(notes == std::vector<std::string>{"00:02:00 00:03:00", "23:05:00 00:05:00"});
}
