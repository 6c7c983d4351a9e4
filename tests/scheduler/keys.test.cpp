// SPDX-License-Identifier: MIT
// What happens when a key is taken, as a caller sees it: who runs, when, with which payload, and what submit answers.
#include "scheduler/support.hpp"

#include <algorithm>
#include <atomic>
#include <latch>
#include <set>
#include <thread>

using namespace test;
namespace on_conflict = ax::on_conflict;
namespace key_scope = ax::key_scope;

namespace {

/// What the handler of `shipping` was called with, and when.
struct seen {
    std::vector<int> numbers;
    std::vector<ax::duration> at;

    void listen(bench& b) {
        auto const start = b.now();
        b->on(shipping, [this, &b, start](parcel const& p) {
            numbers.push_back(p.number);
            at.push_back(b.now() - start);
        });
    }
};

} // namespace

TEST_CASE("submit refuses what makes no sense with a key, names it, and stores nothing", "[scheduler][keys]") {
    bench b;
    std::string message;
    auto const refused = [&](ax::submit_options how, char const* names) {
        CAPTURE(names);
        CHECK(failure_of([&] { b->submit(probe, {}, how); }, &message) == invalid);
        CHECK(contains(message, names));
        std::vector<parcel> const two(2);
        CHECK(failure_of([&] { b->submit_all(shipping, two, [&](parcel const&) { return how; }); }) == invalid);
    };
    refused({.on_conflict = on_conflict::reject}, "reject without a key");
    refused({.on_conflict = on_conflict::replace}, "replace without a key");
    refused({.on_conflict = on_conflict::debounce, .delay = 1s}, "debounce without a key");
    refused({.on_conflict = on_conflict::throttle(1s)}, "throttle without a key");
    refused({.key_scope = key_scope::active}, "key_scope without a key");
    refused({.key = "", .key_scope = key_scope::active}, "key_scope without a key");
    refused({.key = "k", .on_conflict = on_conflict::debounce}, "debounce without delay or run_at");
    refused({.key = "k", .on_conflict = on_conflict::throttle(0s)}, "throttle with a period of 0 ms");
    refused({.key = "k", .on_conflict = on_conflict::throttle(-5ms)}, "throttle with a period of -5 ms");
    refused({.key = "k", .key_scope = static_cast<ax::key_scoping>(2)}, "key_scope 2");
    refused({.key = "k", .on_conflict = ax::conflict_policy{static_cast<ax::conflict_action>(5)}}, "on_conflict 5");
    CHECK(stored(b) == 0);
    b->submit(probe, {}, {.key = "k", .on_conflict = on_conflict::debounce, .delay = 0s});
    b->submit(probe, {}, {.key = "l", .on_conflict = on_conflict::debounce, .run_at = b.now()});
    b->submit(probe, {}, {.key = "m", .on_conflict = on_conflict::throttle(1ms)});
    b->submit(probe, {}, {.key_scope = key_scope::kept, .on_conflict = on_conflict::keep});
    CHECK(stored(b) == 4);
}

TEST_CASE("keep and reject leave the holder as it is, and say so", "[scheduler][keys]") {
    bench b;
    seen runs;
    runs.listen(b);
    auto const first = b->submit(shipping, {1, ""}, {.key = "p", .delay = 10s});
    auto const kept = b->submit(shipping, {2, ""}, {.key = "p"});
    CHECK(kept.outcome == submit_outcome::kept);
    CHECK(kept.id == first.id);
    auto const rejected = b->submit(shipping, {3, ""}, {.key = "p", .on_conflict = on_conflict::reject});
    CHECK(rejected.outcome == submit_outcome::rejected);
    CHECK(rejected.id == first.id);
    CHECK(rejected.state == task_state::ready);
    b.run_for(1min);
    CHECK(runs.numbers == std::vector{1});
    CHECK(b->submit(shipping, {4, ""}, {.key = "p", .on_conflict = on_conflict::reject}).state ==
          task_state::succeeded);
    auto const fresh = b->submit(shipping, {5, ""}, {.key = "q", .on_conflict = on_conflict::reject});
    CHECK(fresh.outcome == submit_outcome::inserted);
    b.run_for(1min);
    CHECK(runs.numbers == std::vector{1, 5});
}

TEST_CASE("replace runs the latest once, at the instant of the latest", "[scheduler][keys]") {
    bench b;
    seen runs;
    runs.listen(b);
    auto const first_at = GENERATE(1s, 30s, 3600s); // memory holds it, due soon or later, or knows nothing of it
    auto const second_at = GENERATE(0s, 2s, 31s, 7200s);
    CAPTURE(first_at.count(), second_at.count());
    auto const first = b->submit(shipping, {1, ""}, {.key = "p", .delay = first_at});
    CHECK(b.poll() == 0);
    auto const second = b->submit(shipping, {2, ""},
                                  {.key = "p",
                                   .on_conflict = on_conflict::replace,
                                   .delay = second_at,
                                   .priority = GENERATE(ax::priority::normal, ax::priority::critical)});
    CHECK(second.outcome == submit_outcome::replaced);
    CHECK(second.id == first.id);
    auto const wake = b->next_wakeup();
    REQUIRE(wake.has_value());
    CHECK(*wake <= b.now() + second_at);
    b.run_for(3h);
    CHECK(runs.numbers == std::vector{2});
    CHECK(runs.at == std::vector<ax::duration>{second_at});
    CHECK(b->history(first.id).size() == 1);
}

TEST_CASE("a submit that comes while the handler runs gets a run of its own", "[scheduler][keys]") {
    auto const policy = GENERATE(as<ax::conflict_policy>{}, on_conflict::replace, on_conflict::debounce);
    auto const scope = GENERATE(key_scope::kept, key_scope::active);
    hosted_bench b;
    std::vector<int> numbers;
    ax::submitted second{};
    ax::submitted third{};
    b.tasks.on(shipping, [&](parcel const& p) {
        numbers.push_back(p.number);
        if (p.number != 1) return;
        auto const how = [&](ax::duration delay) {
            return ax::submit_options{.key = "p", .key_scope = scope, .on_conflict = policy, .delay = delay};
        };
        second = b.tasks.submit(shipping, {2, ""}, how(0s));
        third = b.tasks.submit(shipping, {3, ""}, how(1s));
    });
    auto const first = b.tasks.submit(shipping, {1, ""}, {.key = "p", .key_scope = scope});
    b.settle();
    CHECK(second.outcome == submit_outcome::inserted);
    CHECK(second.id != first.id);
    CHECK(third.outcome == submit_outcome::replaced);
    CHECK(third.id == second.id);
    CHECK(b.state(first.id) == task_state::succeeded);
    CHECK(b.tasks.find(first.id)->key_released);
    CHECK(b.tasks.find_by_key("p")->id == second.id);
    b.clock.advance(1s);
    b.settle();
    CHECK(numbers == std::vector{1, 3});
    CHECK(b.state(second.id) == task_state::succeeded);
}

TEST_CASE("replace in a retry wait runs the new one with all its attempts", "[scheduler][keys]") {
    bench b;
    std::vector<int> numbers;
    b->on(shipping,
          [&](parcel const& p) {
              numbers.push_back(p.number);
              throw std::runtime_error("no");
          },
          {.retry = ax::retry::fixed(1min).attempts(2)});
    auto const id = b->submit(shipping, {1, ""}, {.key = "p"}).id;
    b.poll();
    CHECK(b.state(id) == task_state::failed);
    auto const again = b->submit(shipping, {2, ""}, {.key = "p", .on_conflict = on_conflict::replace, .delay = 10s});
    CHECK(again.outcome == submit_outcome::replaced);
    CHECK(again.state == task_state::failed);
    b.run_for(10min);
    CHECK(numbers == std::vector{1, 2, 2});
    CHECK(b.state(id) == task_state::dead);
    CHECK(b->history(id).size() == 3);
}

TEST_CASE("debounce runs once, when calls have ceased, with the last payload", "[scheduler][keys]") {
    bench b;
    seen runs;
    runs.listen(b);
    auto const call = [&](int number) {
        return b->submit(
            shipping, {number, ""},
            {.key = "p", .key_scope = key_scope::active, .on_conflict = on_conflict::debounce, .delay = 10s});
    };
    auto const first = call(0);
    CHECK(first.outcome == submit_outcome::inserted);
    for (int i = 1; i <= 50; ++i) {
        b.run_for(9s);
        auto const next = call(i);
        CHECK(next.outcome == submit_outcome::replaced);
        CHECK(next.id == first.id);
    }
    CHECK(runs.numbers.empty());
    b.run_for(1min);
    CHECK(runs.numbers == std::vector{50});
    CHECK(runs.at == std::vector<ax::duration>{50 * 9s + 10s});

    CHECK(call(51).outcome == submit_outcome::inserted); // a new burst
    b.run_for(1min);
    CHECK(runs.numbers == std::vector{50, 51});
}

TEST_CASE("debounce never brings a task forward", "[scheduler][keys]") {
    bench b;
    seen runs;
    runs.listen(b);
    b->submit(shipping, {1, ""}, {.key = "p", .delay = 1min});
    b->submit(shipping, {2, ""}, {.key = "p", .on_conflict = on_conflict::debounce, .delay = 1s});
    b.run_for(2min);
    CHECK(runs.numbers == std::vector{2});
    CHECK(runs.at == std::vector<ax::duration>{1min});
}

TEST_CASE("a debounced task dies of no deadline that its latest submit did not set", "[scheduler][keys]") {
    bench b;
    seen runs;
    runs.listen(b);
    for (int i = 1; i <= 4; ++i) {
        b->submit(shipping, {i, ""},
                  {.key = "p", .on_conflict = on_conflict::debounce, .delay = 20s, .deadline = b.now() + 30s});
        b.run_for(15s);
    }
    b.run_for(1min);
    CHECK(runs.numbers == std::vector{4});
}

TEST_CASE("throttle runs one per period, whatever becomes of it", "[scheduler][keys]") {
    bench b;
    seen runs;
    runs.listen(b);
    auto const scope = GENERATE(key_scope::kept, key_scope::active);
    std::size_t inserted = 0;
    for (int i = 0; i != 40; ++i) {
        auto const answer =
            b->submit(shipping, {i, ""}, {.key = "p", .key_scope = scope, .on_conflict = on_conflict::throttle(10s)});
        inserted += answer.outcome == submit_outcome::inserted;
        if (answer.outcome == submit_outcome::kept) CHECK(answer.state == task_state::succeeded);
        b.run_for(1s);
    }
    CHECK(inserted == 4);
    CHECK(runs.numbers == std::vector{0, 10, 20, 30});
}

TEST_CASE("submit_all answers for tasks of one key as if they came one by one", "[scheduler][keys]") {
    bench b;
    seen runs;
    runs.listen(b);
    std::vector<parcel> const parcels{{1, ""}, {2, ""}, {3, ""}};
    auto const answers = b->submit_all(shipping, parcels, [](parcel const&) {
        return ax::submit_options{.key = "p", .on_conflict = on_conflict::replace};
    });
    REQUIRE(answers.size() == 3);
    CHECK(answers[0].outcome == submit_outcome::inserted);
    CHECK(answers[1].outcome == submit_outcome::replaced);
    CHECK(answers[2].outcome == submit_outcome::replaced);
    CHECK(answers[2].id == answers[0].id);
    b.run_for(1min);
    CHECK(runs.numbers == std::vector{3});
}

TEST_CASE("a follow-up meets a key as a submit does, at the success of its task", "[scheduler][keys]") {
    bench b;
    seen runs;
    runs.listen(b);
    bool fails = true;
    b->on(probe,
          [&](ax::context& ctx) {
              ctx.submit(shipping, {2, ""}, {.key = "p", .on_conflict = on_conflict::replace, .delay = 1s});
              if (std::exchange(fails, false)) throw std::runtime_error("no");
          },
          {.retry = ax::retry::fixed(10s).attempts(2)});
    b->on(other, [](ax::context& ctx) { ctx.submit(probe, {}, {.on_conflict = on_conflict::replace}); },
          {.retry = ax::retry::none()});
    auto const id = b->submit(shipping, {1, ""}, {.key = "p", .delay = 1min}).id;
    b->submit(probe);
    b.poll();
    CHECK(b.get(id).version == 1); // the attempt failed
    b.run_for(2min);
    CHECK(runs.numbers == std::vector{2});
    CHECK(runs.at == std::vector<ax::duration>{11s});
    auto const bad = b->submit(other).id;
    b.run_for(1s);
    CHECK(b.state(bad) == task_state::dead);
    CHECK(contains(b.get(bad).last_error, "replace without a key"));
}

TEST_CASE("an active key is taken until its task ends, through retries, and is free then", "[scheduler][keys]") {
    bench b;
    std::size_t runs = 0;
    b->on(shipping,
          [&](parcel const& p) {
              ++runs;
              if (p.number == 1) throw std::runtime_error("no");
          },
          {.retry = ax::retry::fixed(1min).attempts(2)});
    auto const submit = [&](int number) {
        return b->submit(shipping, {number, ""}, {.key = "p", .key_scope = key_scope::active});
    };
    auto const first = submit(1);
    CHECK(submit(2).outcome == submit_outcome::kept);
    b.poll();
    CHECK(b.state(first.id) == task_state::failed);
    CHECK(submit(2).outcome == submit_outcome::kept);
    b.run_for(1min);
    CHECK(b.state(first.id) == task_state::dead);
    CHECK(b->find_by_key("p")->id == first.id);

    auto const second = submit(2);
    CHECK(second.outcome == submit_outcome::inserted);
    CHECK(b->find_by_key("p")->id == second.id);
    SECTION("a retry by hand is refused while another holds the key, and takes it back after that") {
        CHECK(b->retry(first.id) == change_outcome::wrong_state);
        CHECK(b.state(first.id) == task_state::dead);
        b.poll();
        CHECK(b.state(second.id) == task_state::succeeded);
        CHECK(b->retry(first.id) == change_outcome::done);
        CHECK(submit(2).id == first.id);
    }
    SECTION("a cancelled one lets it go as well") {
        CHECK(b->cancel(second.id) == cancel_outcome::cancelled);
        CHECK(submit(2).outcome == submit_outcome::inserted);
    }
}

TEST_CASE("a restart changes nothing about who holds a key", "[scheduler][keys][recovery]") {
    bench b;
    std::vector<int> numbers;
    auto const prepare = [&](simulated& tasks) {
        tasks.on(shipping, [&](parcel const& p) { numbers.push_back(p.number); });
    };
    b.restart(prepare);
    auto const call = [&](int number, ax::conflict_policy policy) {
        return b->submit(shipping, {number, ""},
                         {.key = "p", .key_scope = key_scope::active, .on_conflict = policy, .delay = 10s});
    };
    auto const first = call(1, on_conflict::debounce);
    b.restart(prepare);
    CHECK(call(2, on_conflict::debounce).id == first.id);
    b.clock.advance(10s);
    claim_elsewhere(b.store, first.id, b.now()); // and that process is gone
    auto const second = call(3, on_conflict::replace);
    CHECK(second.outcome == submit_outcome::inserted);
    b.restart(prepare);
    b.poll();
    CHECK(numbers == std::vector{2}); // it runs again, without its key
    CHECK(b.get(first.id).key_released);
    CHECK(call(4, on_conflict::replace).id == second.id);
    b.restart(prepare);
    b.run_for(1min);
    CHECK(numbers == std::vector{2, 4});
    CHECK(call(5, on_conflict::keep).outcome == submit_outcome::inserted);
}

TEST_CASE("whatever threads submit while handlers run, the last one is run", "[scheduler][keys][threads]") {
    // The manual clock stands still: all is due at once, and only the order of commits counts.
    auto const policy = GENERATE(as<ax::conflict_policy>{}, on_conflict::replace, on_conflict::debounce);
    ax::testing::manual_clock clock;
    store_type store;
    constexpr int calls = 300;
    std::mutex mutex;
    std::vector<int> numbers;
    tally ended;
    std::size_t inserted = 0;
    {
        simulated tasks{store, {.workers = 3}, clock};
        tasks.on(shipping, [&](parcel const& p) {
            {
                std::lock_guard const guard{mutex};
                numbers.push_back(p.number);
            }
            ++ended;
        });
        tasks.start();
        for (int i = 1; i <= calls; ++i) {
            auto const answer = tasks.submit(
                shipping, {i, ""},
                {.key = "p", .key_scope = key_scope::active, .on_conflict = policy, .run_at = clock.now()});
            if (answer.outcome == submit_outcome::inserted)
                ++inserted;
            else
                CHECK(answer.outcome == submit_outcome::replaced);
        }
        CHECK(ended.reaches(inserted)); // each row is one run
        tasks.stop(60s);
    }
    CHECK(numbers.size() == inserted);
    CHECK(std::find(numbers.begin(), numbers.end(), calls) != numbers.end());
    CHECK(std::set<int>(numbers.begin(), numbers.end()).size() == numbers.size());
}

TEST_CASE("from many threads one key is one task at a time", "[scheduler][keys][threads]") {
    bench b;
    constexpr std::size_t threads = 4;
    std::latch start{threads};
    std::atomic<std::size_t> inserted{0};
    std::atomic<std::size_t> replaced{0};
    {
        std::vector<std::jthread> all;
        for (std::size_t t = 0; t != threads; ++t)
            all.emplace_back([&, t] {
                start.arrive_and_wait();
                for (int i = 0; i != 100; ++i) {
                    auto const policy =
                        (t + static_cast<std::size_t>(i)) % 2 == 0 ? on_conflict::replace : on_conflict::debounce;
                    auto const answer = b->submit(shipping, {i, ""}, {.key = "p", .on_conflict = policy, .delay = 1h});
                    ++(answer.outcome == submit_outcome::inserted ? inserted : replaced);
                }
            });
    }
    CHECK(inserted == 1);
    CHECK(replaced == threads * 100 - 1);
    CHECK(stored(b) == 1);
    CHECK(b->find_by_key("p")->version == threads * 100);
}
