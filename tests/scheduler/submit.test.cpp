// SPDX-License-Identifier: MIT
#include "scheduler/support.hpp"

#include <array>
#include <latch>
#include <limits>
#include <ratio>
#include <set>
#include <thread>

using namespace test;

TEST_CASE("submit keeps the task that holds the key, and says which and how it stands", "[scheduler][submit]") {
    bench b;
    b->on(shipping, [](parcel const&) {});
    auto const first = b->submit(shipping, {1, "first"}, {.key = "p-1"});
    CHECK(first.outcome == submit_outcome::inserted);
    auto const second = b->submit(shipping, {2, "second"}, {.key = "p-1"});
    CHECK(second.outcome == submit_outcome::kept);
    CHECK(second.id == first.id);
    CHECK(second.state == task_state::ready);
    CHECK(b.get(first.id).payload == R"({"note":"first","number":1})");

    b.poll();
    auto const third = b->submit(shipping, {3, "third"}, {.key = "p-1"});
    CHECK(third.outcome == submit_outcome::kept);
    CHECK(third.id == first.id);
    CHECK(third.state == task_state::succeeded);
    CHECK(b->find_by_key("p-1")->id == first.id);
    CHECK_FALSE(b->find_by_key("p-2").has_value());
    CHECK(stored(b) == 1);
}

TEST_CASE("submit takes an empty key as no key", "[scheduler][submit]") {
    bench b;
    auto const one = b->submit(probe, {}, {.key = ""});
    auto const two = b->submit(probe, {}, {.key = ""});
    CHECK(one.id != two.id);
    CHECK(two.outcome == submit_outcome::inserted);
    CHECK_FALSE(b->find_by_key("").has_value());
}

TEST_CASE("submit_all answers for each task in order and stores all or nothing", "[scheduler][submit]") {
    bench b;
    std::vector<parcel> const parcels{{1, "a"}, {2, "b"}, {1, "again"}, {3, "c"}};
    auto const key_of = [](parcel const& p) { return ax::submit_options{.key = "p-" + std::to_string(p.number)}; };
    auto const before = b.store.transacts();
    auto const answers = b->submit_all(shipping, parcels, key_of);
    CHECK(b.store.transacts() - before == 2); // the type's number, and one commit for all
    REQUIRE(answers.size() == 4);
    CHECK(answers[0].outcome == submit_outcome::inserted);
    CHECK(answers[1].outcome == submit_outcome::inserted);
    CHECK(answers[2].outcome == submit_outcome::kept);
    CHECK(answers[2].id == answers[0].id);
    CHECK(answers[3].outcome == submit_outcome::inserted);
    CHECK(b.get(answers[3].id).payload == R"({"note":"c","number":3})");

    SECTION("one bad task: nothing of the call is stored") {
        std::vector<parcel> const bad{{10, "x"}, {11, "\xFF"}, {12, "y"}};
        CHECK(failure_of([&] { b->submit_all(shipping, bad); }) == invalid);
        CHECK(stored(b) == 3);
    }
    SECTION("no task, no answer, no commit") {
        auto const commits = b.store.transacts();
        CHECK(b->submit_all(shipping, std::vector<parcel>{}).empty());
        CHECK(b.store.transacts() == commits);
    }
}

TEST_CASE("submit refuses bad names and keys, names the member, and stores nothing", "[scheduler][submit]") {
    bench b;
    std::string message;
    auto const refused = [&](auto&& call, char const* names) {
        CHECK(failure_of(call, &message) == invalid);
        CHECK(contains(message, names));
    };
    auto const bad =
        GENERATE(as<std::string>{}, std::string(1025, 'k'), std::string("a\0b", 3), "\xC3(", "\xED\xA0\x80");
    CAPTURE(bad);
    refused([&] { b->submit(probe, {}, {.key = bad}); }, "key");
    refused([&] { b->submit(probe, {}, {.route_key = bad}); }, "route key");
    refused([&] { b->submit(ax::task_type<>{bad}); }, "task type");
    refused([&] { b->submit(ax::task_type<>{""}); }, "task type is empty");
    refused([&] { b->submit(ax::task_type<>{std::string_view{bad}}); }, "task type");
    refused([&] { b->pause(ax::task_type<>{bad}); }, "task type");
    refused([&] { b->on(ax::task_type<>{bad}, [] {}); }, "task type");
    refused([&] { b->submit(probe, {}, {.priority = static_cast<ax::priority_class>(4)}); }, "priority");
    CHECK(stored(b) == 0);
    CHECK(b.store.types().empty());
}

TEST_CASE("submit takes names and keys up to their limits", "[scheduler][submit]") {
    bench b;
    std::string const name(255, 'n');
    auto const answer = b->submit(ax::task_type<>{name}, {}, {.key = std::string(1024, 'k')});
    CHECK(b.get(answer.id).type == name);
    std::string const longer(256, 'n');
    CHECK(failure_of([&] { b->submit(ax::task_type<>{longer}); }) == invalid);
}

TEST_CASE("submit refuses payloads that are too large or that JSON cannot hold", "[scheduler][submit]") {
    bench b{{.payload_limit = 64}};
    std::string message;
    CHECK(failure_of([&] { b->submit(shipping, {1, std::string(64, 'x')}); }, &message) == invalid);
    CHECK(contains(message, "payload"));
    CHECK(contains(message, "shipping"));
    CHECK(failure_of([&] { b->submit(shipping, {1, "\xFF\xFE"}); }, &message) == invalid);
    CHECK(contains(message, "payload"));
    CHECK(stored(b) == 0);
    auto const overhead = std::string_view{R"({"note":"","number":1})"}.size();
    b->submit(shipping, {1, std::string(64 - overhead, 'x')});
    CHECK(failure_of([&] { b->submit(shipping, {1, std::string(65 - overhead, 'x')}); }) == invalid);
    CHECK(stored(b) == 1);
}

TEST_CASE("submit rounds times up, so that nothing is early", "[scheduler][submit]") {
    bench b;
    auto const run_at = [&](ax::submit_options how) { return b.get(b->submit(probe, {}, how).id).run_at; };
    CHECK(run_at({.delay = 1ns}) == b.now() + 1ms);
    CHECK(run_at({.delay = std::chrono::duration<double>{0.0101}}) == b.now() + 11ms);
    CHECK(run_at({.delay = 2min}) == b.now() + 2min);
    auto const odd = std::chrono::time_point_cast<std::chrono::nanoseconds>(b.now()) + 1ns;
    CHECK(run_at({.run_at = odd}) == b.now() + 1ms);
    CHECK(run_at({}) == b.now());
    CHECK(run_at({.run_at = b.now() - 1h}) == b.now() - 1h);
}

TEST_CASE("submit takes instants of the years 1970 to 9999 and no others", "[scheduler][submit]") {
    bench b;
    std::string message;
    auto const refused = [&](ax::submit_options how, char const* names) {
        CHECK(failure_of([&] { b->submit(probe, {}, how); }, &message) == invalid);
        CHECK(contains(message, names));
    };
    refused({.run_at = ax::earliest_time - 1ms}, "run_at");
    refused({.run_at = ax::latest_time + 1ms}, "run_at");
    refused({.run_at = (ax::time_point::min)()}, "run_at");
    refused({.delay = -1ms}, "delay");
    refused({.delay = (ax::duration::min)()}, "delay");
    refused({.delay = (ax::duration::max)()}, "delay");
    refused({.delay = std::chrono::hours{24 * 366} * 8000}, "delay");
    refused({.run_at = b.now(), .delay = 0ms}, "run_at");
    refused({.deadline = ax::latest_time + 1ms}, "deadline");
    refused({.deadline = b.now()}, "deadline");
    refused({.delay = 10s, .deadline = b.now() + 10s}, "deadline");
    refused({.run_at = b.now() + 10s, .deadline = b.now() + 9s}, "deadline");
    CHECK(failure_of([&] {
              b->submit(probe, {}, {.delay = std::chrono::duration<double>{std::numeric_limits<double>::quiet_NaN()}});
          }) == invalid);
    CHECK(stored(b) == 0);

    b->submit(probe, {}, {.run_at = ax::earliest_time});
    b->submit(probe, {}, {.run_at = ax::latest_time});
    b->submit(probe, {}, {.delay = 10s, .deadline = b.now() + 10s + 1ms});
    CHECK(stored(b) == 3);
}

TEST_CASE("submit for the year 9999 harms nothing that is near", "[scheduler][submit]") {
    bench b;
    int runs = 0;
    b->on(probe, [&] { ++runs; });
    auto const far = b->submit(probe, {}, {.run_at = ax::latest_time});
    b->submit(probe, {}, {.delay = 10s});
    b.run_for(1min);
    CHECK(runs == 1);
    CHECK(b.state(far.id) == task_state::ready);
    b.clock.set(ax::latest_time);
    b.poll();
    CHECK(runs == 2);
}

TEST_CASE("submit after stop is refused and stores nothing", "[scheduler][submit][stop]") {
    bench b;
    b->stop();
    CHECK(failure_of([&] { b->submit(probe); }) == ax::errc::stopped);
    CHECK(failure_of([&] { b->submit_all(shipping, std::vector<parcel>(3)); }) == ax::errc::stopped);
    CHECK(stored(b) == 0);
    b.restart();
    b->submit(probe);
    CHECK(stored(b) == 1);
}

TEST_CASE("submit from many threads gives one key to one task", "[scheduler][submit][threads]") {
    bench b;
    constexpr int threads = 4;
    constexpr int keys = 250;
    std::vector<std::vector<ax::submitted>> answers(threads);
    std::latch start{threads};
    {
        std::vector<std::jthread> all;
        for (std::size_t t = 0; t != threads; ++t)
            all.emplace_back([&, t] {
                start.arrive_and_wait();
                for (int k = 0; k != keys; ++k)
                    answers[t].push_back(b->submit(probe, {}, {.key = "k" + std::to_string(k)}));
            });
    }
    std::size_t inserted = 0;
    for (std::size_t k = 0; k != keys; ++k) {
        std::set<ax::task_id> ids;
        for (auto const& mine : answers) {
            ids.insert(mine.at(k).id);
            inserted += mine[k].outcome == submit_outcome::inserted;
        }
        CHECK(ids.size() == 1);
    }
    CHECK(inserted == keys);
    CHECK(stored(b) == keys);
}

TEST_CASE("submit waits for room outside of handlers and throws queue_full within", "[scheduler][submit][threads]") {
    bench b{{.submit_queue = 10}};
    std::latch inside{1};
    std::latch release{1};
    std::atomic<bool> block{false};
    b.store.hooks().before_transact = [&] {
        if (!block.exchange(false)) return;
        inside.count_down();
        release.wait();
    };
    ax::errc seen{};
    b->on(other, [&] { seen = failure_of([&] { b->submit_all(probe, std::vector<ax::no_payload>(3)); }); });
    b->submit(other);
    b->submit(probe); // the type has its number now
    block = true;
    std::jthread const busy{[&] { b->submit_all(ax::task_type<>{"probe"}, std::vector<ax::no_payload>(8)); }};
    inside.wait();

    SECTION("as many as there is room for pass") {
        release.count_down();
        CHECK(b->submit_all(probe, std::vector<ax::no_payload>(2)).size() == 2);
    }
    SECTION("a handler is told that the queue is full") {
        CHECK(b.poll() == 1);
        CHECK(seen == ax::errc::queue_full);
        release.count_down();
    }
    SECTION("another caller waits until there is room") {
        std::atomic<bool> done{false};
        tally finished;
        std::jthread const waits{[&] {
            b->submit_all(probe, std::vector<ax::no_payload>(3));
            done = true;
            ++finished;
        }};
        CHECK_FALSE(done);
        release.count_down();
        CHECK(finished.reaches(1));
    }
    SECTION("a call of more than the queue can hold passes alone") {
        release.count_down();
        CHECK(b->submit_all(probe, std::vector<ax::no_payload>(25)).size() == 25);
    }
    SECTION("a waiting caller is let go by stop") {
        tally started;
        std::jthread waits{[&] {
            ++started;
            seen = failure_of([&] { b->submit_all(probe, std::vector<ax::no_payload>(3)); });
        }};
        CHECK(started.reaches(1));
        b->stop(0ms);
        waits.join();
        CHECK(seen == ax::errc::stopped);
        release.count_down();
    }
}

TEST_CASE("a scheduler without a name goes by its host and process", "[scheduler]") {
    bench b;
    CHECK(contains(b->health().node_name, ":"));
    ax::options named;
    named.node_name = "till 3";
    bench second{named};
    CHECK(second->health().node_name == "till 3");
}
