// SPDX-License-Identifier: MIT
#include "scheduler/support.hpp"

#include <memory>
#include <string>
#include <thread>

using namespace test;

namespace {

/// True where every byte belongs to text without NUL.
bool is_text(std::string const& text) { return ax::detail::first_bad_byte(text) == std::string_view::npos; }

struct hostile final : std::exception {
    explicit hostile(std::string text) : text_(std::move(text)) {}
    char const* what() const noexcept override { return text_.c_str(); }
    std::string text_;
};

struct speechless final : std::exception {
    char const* what() const noexcept override { return nullptr; }
};

} // namespace

TEST_CASE("a handler takes payload and context, one of them, or nothing", "[scheduler][handlers]") {
    bench b;
    int called = 0;
    SECTION("payload and context") {
        b->on(shipping,
              [&](parcel const& p, ax::context& ctx) { called += p.number + (ctx.attempt() == 1 ? 0 : 100); });
    }
    SECTION("payload by value and context") {
        b->on(shipping, [&](parcel p, ax::context&) { called += p.number; });
    }
    SECTION("payload") {
        b->on(shipping, [&](parcel const& p) { called += p.number; });
    }
    SECTION("context") {
        b->on(shipping, [&](ax::context& ctx) { called += ctx.payload() == R"({"note":"n","number":3})" ? 3 : 0; });
    }
    SECTION("nothing") {
        b->on(shipping, [&] { called += 3; });
    }
    auto const id = b->submit(shipping, {3, "n"}).id;
    b.poll();
    CHECK(called == 3);
    CHECK(b.state(id) == task_state::succeeded);
}

TEST_CASE("a handler without payload takes the context or nothing", "[scheduler][handlers]") {
    bench b;
    int called = 0;
    b->on(probe, [&](ax::context& ctx) { called += ctx.payload().empty(); });
    b->on(other, [&] { ++called; });
    b->submit(probe);
    b->submit(other);
    CHECK(b.poll() == 2);
    CHECK(called == 2);
}

TEST_CASE("a handler need not be copyable, and a type has one", "[scheduler][handlers]") {
    bench b;
    auto owned = std::make_unique<int>(41);
    b->on(probe, [owned = std::move(owned)]() mutable { return ++*owned; });
    auto const id = b->submit(probe).id;
    b.poll();
    CHECK(b.get(id).result == "42");
    CHECK(failure_of([&] { b->on(probe, [] {}); }) == invalid);
    CHECK(failure_of([&] { b->on(other, [] {}, {.timeout = 0ms}); }) == invalid);
    CHECK(failure_of([&] { b->on(other, [] {}, {.expected = -1ms}); }) == invalid);
}

TEST_CASE("what a handler returns or gives to result() is kept, with a success only", "[scheduler][handlers]") {
    bench b{{.payload_limit = 100}};
    SECTION("a returned value of its own type") {
        b->on(probe, [] { return parcel{5, "five"}; });
        auto const id = b->submit(probe).id;
        b.poll();
        CHECK(b.get(id).result == R"({"note":"five","number":5})");
    }
    SECTION("the last result() stands") {
        b->on(probe, [](ax::context& ctx) {
            ctx.result(1);
            ctx.result({{"done", true}});
        });
        auto const id = b->submit(probe).id;
        b.poll();
        CHECK(b.get(id).result == R"({"done":true})");
    }
    SECTION("not with a failure") {
        b->on(probe, [](ax::context& ctx) {
            ctx.result(1);
            throw ax::give_up{"no"};
        });
        auto const id = b->submit(probe).id;
        b.poll();
        CHECK(b.get(id).result.empty());
        CHECK(b.state(id) == task_state::dead);
    }
    SECTION("one that is too large, or no JSON, is the handler's failure") {
        b->on(probe, [] { return std::string(200, 'x'); });
        b->on(other, [] { return std::string("\xFF"); });
        auto const large = b->submit(probe).id;
        auto const bad = b->submit(other).id;
        b.poll();
        CHECK(b.state(large) == task_state::failed);
        CHECK(contains(b.get(large).last_error, "result"));
        CHECK(b.state(bad) == task_state::failed);
    }
}

TEST_CASE("the context tells the task, the attempt and the planned instant", "[scheduler][handlers]") {
    bench b;
    std::vector<ax::fence_token> fences;
    std::vector<std::size_t> attempts;
    task_id seen{};
    ax::time_point planned{};
    b->on(probe,
          [&](ax::context& ctx) {
              fences.push_back(ctx.fence());
              attempts.push_back(ctx.attempt());
              seen = ctx.task().id;
              planned = ctx.scheduled_at();
              CHECK(ctx.task().key == "k");
              CHECK(ctx.still_mine());
              CHECK_FALSE(ctx.stop_token().stop_requested());
              if (attempts.size() != 3) throw std::runtime_error("again");
          },
          {.retry = ax::retry::fixed(1s)});
    auto const due = b.now() + 5s;
    auto const id = b->submit(probe, {}, {.key = "k", .delay = 5s}).id;
    b.run_for(10s);
    CHECK(seen == id);
    CHECK(attempts == std::vector<std::size_t>{1, 2, 3});
    REQUIRE(fences.size() == 3);
    CHECK(fences[0] < fences[1]);
    CHECK(fences[1] < fences[2]);
    CHECK(planned == due + 2s);
    auto const history = b->history(id);
    REQUIRE(history.size() == 3);
    for (std::size_t i = 0; i != 3; ++i) {
        CHECK(history[i].number == i + 1);
        CHECK(history[i].id == fences[i]);
    }
    CHECK(history[0].error == "again");
    CHECK(history[2].outcome == attempt_outcome::succeeded);
    CHECK(b.get(id).last_error.empty());
}

TEST_CASE("the log of an attempt is kept with it, bounded and clean", "[scheduler][handlers]") {
    bench b;
    b->on(probe, [](ax::context& ctx) {
        ctx.log("plain {}");
        ctx.log("number {}", 7);
        ctx.log(std::string_view{"bad \xFF and \0 nul", 15});
        if (ctx.attempt() == 1) throw ax::snooze{1s};
        for (int i = 0; i != 1000; ++i) ctx.log(std::string(100, 'x'));
        ctx.log(std::string(ax::log_limit * 2, 'y'));
    });
    auto const id = b->submit(probe).id;
    b.run_for(5s);
    auto const history = b->history(id);
    REQUIRE(history.size() == 2);
    CHECK(history[0].log == "plain {}\nnumber 7\nbad \xEF\xBF\xBD and \xEF\xBF\xBD nul\n");
    CHECK(history[1].log.size() <= ax::log_limit + 100);
    CHECK(contains(history[1].log, "lines left out"));
    CHECK(is_text(history[1].log));
}

TEST_CASE("progress is seen while the handler runs", "[scheduler][handlers]") {
    bench b;
    std::optional<ax::task_view> seen;
    std::vector<ax::attempt_view> attempts;
    b->on(probe, [&](ax::context& ctx) {
        ctx.progress(0.25, "a quarter\xFF");
        ctx.log("half way");
        seen = b->find(ctx.task().id);
        attempts = b->history(ctx.task().id);
    });
    b->submit(probe);
    b.poll();
    REQUIRE(seen.has_value());
    CHECK(seen->state == task_state::running);
    CHECK(seen->progress == 0.25);
    CHECK(seen->progress_note == "a quarter\xEF\xBF\xBD");
    CHECK(seen->started == b.now());
    REQUIRE(attempts.size() == 1);
    CHECK(attempts[0].log == "half way\n");
    CHECK(attempts[0].start == b.now());
    CHECK_FALSE(attempts[0].outcome.has_value());
}

TEST_CASE("follow-ups are stored with the success, and only with it", "[scheduler][handlers]") {
    bench b;
    std::vector<int> shipped;
    bool fails = true;
    b->on(shipping, [&](parcel const& p) { shipped.push_back(p.number); });
    b->on(probe,
          [&](ax::context& ctx) {
              ctx.submit(shipping, {1, ""}, {.key = "follow"});
              ctx.submit(shipping, {2, ""}, {.delay = 10s});
              CHECK_FALSE(b->find_by_key("follow").has_value());
              if (std::exchange(fails, false)) throw std::runtime_error("not yet");
          },
          {.retry = ax::retry::fixed(1s)});
    b->submit(probe);
    b.poll();
    CHECK_FALSE(b->find_by_key("follow").has_value());
    b.poll_after(1s);
    CHECK(b->find_by_key("follow").has_value());
    b.poll();
    CHECK(shipped == std::vector{1});
    b.poll_after(9'999ms);
    CHECK(shipped == std::vector{1});
    b.poll_after(1ms);
    CHECK(shipped == std::vector{1, 2});
}

TEST_CASE("a bad follow-up is the handler's failure, and a key that is taken keeps its holder",
          "[scheduler][handlers]") {
    bench b;
    b->on(shipping, [](parcel const&) {});
    b->on(probe, [&](ax::context& ctx) {
        CHECK(failure_of([&] { ctx.submit(shipping, {1, ""}, {.delay = -1s}); }) == invalid);
        CHECK(failure_of([&] { ctx.submit(shipping, {1, "\xFF"}); }) == invalid);
        ctx.submit(shipping, {9, ""}, {.key = "taken"});
    });
    auto const holder = b->submit(shipping, {1, ""}, {.key = "taken"}).id;
    auto const id = b->submit(probe).id;
    b.poll();
    CHECK(b.state(id) == task_state::succeeded);
    CHECK(b->list().size() == 2);
    CHECK(b->find_by_key("taken")->id == holder);
}

TEST_CASE("whatever a handler throws is one failed attempt with a bounded, clean text", "[scheduler][handlers]") {
    bench b;
    std::function<void()> fault;
    auto const fails_with = [&](std::function<void()> how) {
        fault = std::move(how);
        auto const id = b->submit(probe).id;
        auto const next = b->submit(other).id;
        b.poll();
        CHECK(b.state(id) == task_state::failed);
        CHECK(b.state(next) == task_state::succeeded);
        auto const task = b.get(id);
        CHECK(task.failures == 1);
        CHECK_FALSE(task.last_error.empty());
        CHECK(task.last_error.size() <= 4096);
        CHECK(is_text(task.last_error));
        CHECK(b->history(id).at(0).error == task.last_error);
        return task.last_error;
    };
    b->on(probe, [&] { fault(); });
    b->on(other, [] {});
    CHECK(fails_with([] { throw std::runtime_error("plain"); }) == "plain");
    CHECK(contains(fails_with([] { throw 42; }), "no std::exception"));
    fails_with([] { throw nullptr; });
    fails_with([] { throw "a literal"; });
    fails_with([] { throw std::string("text"); });
    fails_with([] { throw speechless{}; });
    fails_with([] { throw hostile{""}; });
    CHECK(fails_with([] { throw hostile{"\xC3(\xFF"}; }) == "\xEF\xBF\xBD(\xEF\xBF\xBD");
    fails_with([] { throw hostile{std::string(100'000, 'e')}; });
    CHECK(fails_with([] { throw hostile{std::string(4095, 'e') + "\xC3\xA4"}; }).size() ==
          4095); // cut between characters
    fails_with([] { throw ax::error(ax::errc::unavailable, "some storage"); });
}

TEST_CASE("a payload that no longer parses is a failed attempt, and nobody else's trouble", "[scheduler][handlers]") {
    bench b;
    int runs = 0;
    b->on(shipping, [&](parcel const&) { ++runs; }, {.retry = ax::retry::none()});
    auto const store_raw = [&](std::string payload) {
        task_id id{};
        b.store.transact(ax::commit::durable, [&](store_type::writer& w) {
            ax::new_task task;
            task.type = w.type("shipping");
            task.payload = std::move(payload);
            ax::alarms due;
            id = w.insert(std::span(&task, 1), b.now(), due).at(0).id;
        });
        return id;
    };
    auto const bad = GENERATE(as<std::string>{}, "", "{", "[]", "\"text\"", R"({"number":"seven"})", "\xFF", "nul");
    CAPTURE(bad);
    auto const id = store_raw(bad);
    auto const good = store_raw(R"({"number":1,"later":true})");
    b.poll();
    CHECK(b.state(id) == task_state::dead);
    CHECK(contains(b.get(id).last_error, "payload of task type \"shipping\""));
    CHECK(b.state(good) == task_state::succeeded);
    CHECK(runs == 1);
}

TEST_CASE("a handler may submit, look and steer while it runs", "[scheduler][handlers]") {
    bench b;
    std::vector<int> order;
    b->on(shipping, [&](parcel const& p) { order.push_back(p.number); });
    b->on(probe, [&](ax::context& ctx) {
        auto const id = b->submit(shipping, {1, ""}).id;
        CHECK(b->find(id)->state == task_state::ready);
        auto const late = b->submit(shipping, {2, ""}, {.delay = 1h}).id;
        CHECK(b->reschedule(late, b.now()) == change_outcome::done);
        auto const gone = b->submit(shipping, {3, ""}).id;
        CHECK(b->cancel(gone) == cancel_outcome::cancelled);
        CHECK(b->cancel(ctx.task().id) == cancel_outcome::stop_requested);
    });
    auto const id = b->submit(probe).id;
    b.poll();
    b.poll();
    CHECK(order == std::vector{1, 2});
    CHECK(b.state(id) == task_state::succeeded); // it never took its token
}
