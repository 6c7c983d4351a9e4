// SPDX-License-Identifier: MIT
#include "scheduler/support.hpp"

#include <atomic>
#include <map>
#include <memory>

using namespace test;

TEST_CASE("an attempt is picked up, dispatched and reported, in that order, with its key and id",
          "[scheduler][events]") {
    bench b;
    struct seen {
        ax::event_kind kind;
        task_id id;
        std::string type, key, error;
        std::size_t attempt;
        ax::fence_token attempt_id;
        std::optional<attempt_outcome> outcome;
        ax::duration lateness, run_time;
        task_state stored;
    };
    std::vector<seen> all;
    bool fails = true;
    b.restart([&](simulated& tasks) {
        tasks.observe([&](ax::event const& e) {
            all.push_back({e.kind, e.id, std::string(e.type), std::string(e.key), std::string(e.error), e.attempt,
                           e.attempt_id, e.outcome, e.lateness, e.run_time, b.store.find(e.id)->state});
        });
        tasks.on(probe,
                 [&] {
                     b.clock.advance(3ms); // not seen by a poll, which stands at its instant
                     if (std::exchange(fails, false)) throw std::runtime_error("no");
                 },
                 {.retry = ax::retry::fixed(10s)});
    });
    auto const id = b->submit(probe, {}, {.key = "k"}).id;
    b.clock.advance(250ms);
    b.poll();
    b.clock.advance(11s);
    b.poll();
    REQUIRE(all.size() == 6);
    using k = ax::event_kind;
    k const order[] = {k::picked_up, k::dispatched, k::reported};
    auto const history = b->history(id);
    REQUIRE(history.size() == 2);
    for (std::size_t i = 0; i != 6; ++i) {
        CAPTURE(i);
        CHECK(all[i].kind == order[i % 3]);
        CHECK(all[i].id == id);
        CHECK(all[i].type == "probe");
        CHECK(all[i].key == "k");
        CHECK(all[i].attempt == i / 3 + 1);
        CHECK(all[i].attempt_id == history[i / 3].id);
    }
    CHECK(all[0].stored == task_state::dispatched); // the claim is committed
    CHECK(all[1].lateness == 250ms);
    CHECK(all[2].stored == task_state::failed); // so is the outcome
    CHECK(all[2].outcome == attempt_outcome::failed);
    CHECK(all[2].error == "no");
    CHECK(all[5].stored == task_state::succeeded);
    CHECK(all[5].outcome == attempt_outcome::succeeded);
    CHECK(all[5].error.empty());
}

TEST_CASE("an outcome is reported once it is stored, not before", "[scheduler][events]") {
    bench b;
    int reported = 0;
    bool away = false;
    b.store.hooks().before_settle = [&](std::span<ax::attempt_end const>) {
        if (away) throw ax::error(ax::errc::unavailable, "away");
    };
    b.restart([&](simulated& tasks) {
        tasks.observe([&](ax::event const& e) { reported += e.kind == ax::event_kind::reported; });
        tasks.on(probe, [&] { away = true; });
    });
    b->submit(probe);
    b.run_for(10s);
    CHECK(reported == 0);
    away = false;
    b.run_for(10s);
    CHECK(reported == 1);
}

TEST_CASE("an outcome that comes after the task was taken away is refused, and says so", "[scheduler][events]") {
    bench b;
    std::vector<ax::event_kind> events;
    b.restart([&](simulated& tasks) {
        tasks.observe([&](ax::event const& e) { events.push_back(e.kind); });
        tasks.on(probe, [&](ax::context& ctx) {
            b.store.transact(ax::commit::durable, [&](store_type::writer& w) {
                w.reclaim({ax::node_id{0xF00}, 3, b.now()}); // another node thinks that this one is gone
            });
            ctx.submit(other, {});
        });
    });
    auto const id = b->submit(probe).id;
    b.poll();
    using k = ax::event_kind;
    CHECK(events == std::vector{k::picked_up, k::dispatched, k::refused});
    CHECK(b.state(id) == task_state::ready);
    CHECK(b->list().size() == 1);
}

TEST_CASE("an observer that throws harms nothing", "[scheduler][events]") {
    bench b;
    int seen = 0;
    b.restart([&](simulated& tasks) {
        tasks.observe([&](ax::event const&) {
            if (++seen % 2 == 0) throw 42;
            throw std::runtime_error("observer");
        });
        tasks.on(probe, [] {});
    });
    auto const id = b->submit(probe).id;
    b.poll();
    CHECK(seen == 3);
    CHECK(b.state(id) == task_state::succeeded);
}

TEST_CASE("an observer may call the scheduler", "[scheduler][events]") {
    bench b;
    b.restart([&](simulated& tasks) {
        tasks.observe([&](ax::event const& e) {
            CHECK(tasks.find(e.id).has_value());
            if (e.kind == ax::event_kind::reported && e.type == "probe") tasks.submit(other);
        });
        tasks.on(probe, [] {});
        tasks.on(other, [] {});
    });
    b->submit(probe);
    b.run_for(1s);
    CHECK(b->list({.state = task_state::succeeded}).size() == 2);
}

TEST_CASE("with threads too, the events of an attempt come in their order", "[scheduler][events][threads]") {
    constexpr std::size_t count = 3'000;
    std::vector<std::atomic<int>> stage(count + 1);
    std::atomic<int> wrong{0};
    tally reported;
    ax::scheduler tasks{store_type{}, ax::options{.workers = 4}};
    tasks.observe([&](ax::event const& e) {
        auto const at = ax::to_number(e.id);
        auto const is = static_cast<int>(e.kind == ax::event_kind::picked_up    ? 1
                                         : e.kind == ax::event_kind::dispatched ? 2
                                                                                : 3);
        if (stage.at(at).exchange(is) != is - 1) ++wrong;
        if (is == 3) ++reported;
    });
    tasks.on(probe, [] {});
    tasks.start();
    auto const now = ax::now();
    for (std::size_t i = 0; i != count; ++i)
        tasks.submit(probe, {}, {.run_at = now + ax::duration{static_cast<std::int64_t>(i % 200)}});
    REQUIRE(reported.reaches(count));
    CHECK(wrong == 0);
}
