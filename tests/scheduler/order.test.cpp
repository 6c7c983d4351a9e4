// SPDX-License-Identifier: MIT
// Priorities and route keys: what runs before what.
#include "scheduler/support.hpp"

#include <algorithm>
#include <array>
#include <map>

using namespace test;

TEST_CASE("a critical task starts with the next claim, however many low ones are overdue", "[scheduler][order]") {
    constexpr std::size_t flood = 100'000;
    hosted_bench b{{.workers = 4, .claimed_ahead = 256}};
    std::size_t low = 0;
    std::size_t low_before_critical = 0;
    b.tasks.on(shipping, [&](parcel const&) { ++low; });
    b.tasks.on(probe, [&] { low_before_critical = low; });
    b.tasks.submit_all(shipping, std::vector<parcel>(flood),
                       [](parcel const&) { return ax::submit_options{.priority = ax::priority::low}; });
    b.poll();
    for (int i = 0; i != 100; ++i) b.loop.step();
    REQUIRE(low == 100);
    auto const id = b.tasks.submit(probe, {}, {.priority = ax::priority::critical}).id;
    b.poll();
    // Those that the executor had already been given come first, and the one that a class in turn is owed.
    for (int i = 0; i != 12; ++i) {
        b.loop.step();
        b.poll();
    }
    CHECK(b.state(id) == task_state::succeeded);
    CHECK(low_before_critical <= 106);
}

TEST_CASE("priority classes share the starts by their weights, and none starves", "[scheduler][order]") {
    hosted_bench b{{.workers = 1, .claimed_ahead = 8}};
    std::array<std::size_t, 4> started{};
    b.tasks.on(shipping,
               [&](parcel const&, ax::context& ctx) { ++started[static_cast<std::size_t>(ctx.task().priority)]; });
    for (auto const c : {ax::priority::critical, ax::priority::high, ax::priority::normal, ax::priority::low})
        b.tasks.submit_all(shipping, std::vector<parcel>(2'000),
                           [&](parcel const&) { return ax::submit_options{.priority = c}; });
    b.poll();
    for (int i = 0; i != 1'000; ++i) {
        b.loop.step();
        b.poll();
    }
    CHECK(std::abs(static_cast<double>(started[0]) - 500) <= 10);
    CHECK(std::abs(static_cast<double>(started[1]) - 250) <= 10);
    CHECK(std::abs(static_cast<double>(started[2]) - 150) <= 10);
    CHECK(std::abs(static_cast<double>(started[3]) - 100) <= 10);
}

TEST_CASE("tasks of one class start in the order in which they are due", "[scheduler][order]") {
    bench b{{.workers = 1}};
    std::vector<int> order;
    b->on(shipping, [&](parcel const& p) { order.push_back(p.number); });
    b->submit(shipping, {3, ""}, {.run_at = b.now() - 1s});
    b->submit(shipping, {4, ""});
    b->submit(shipping, {1, ""}, {.run_at = b.now() - 3s});
    b->submit(shipping, {5, ""});
    b->submit(shipping, {2, ""}, {.run_at = b.now() - 2s});
    b.poll();
    CHECK(order == std::vector{1, 2, 3, 4, 5});
}

TEST_CASE("a route key lets its tasks run one at a time, by run_at and then id, across types",
          "[scheduler][order][routes]") {
    bench b;
    std::vector<int> order;
    b->on(shipping, [&](parcel const& p) { order.push_back(p.number); });
    b->on(probe, [&](ax::context&) { order.push_back(100); });
    auto const t = b.now();
    b->submit(shipping, {3, ""}, {.run_at = t + 2s, .route_key = "r"});
    b->submit(shipping, {1, ""}, {.run_at = t + 1s, .route_key = "r"});
    b->submit(probe, {}, {.run_at = t + 1s, .priority = ax::priority::critical, .route_key = "r"});
    b->submit(shipping, {4, ""}, {.run_at = t + 2s, .route_key = "r"});
    b->submit(shipping, {2, ""}, {.run_at = t + 1s, .priority = ax::priority::high, .route_key = "r"});
    b.clock.advance(10s);
    b.run_for(1s);
    CHECK(order == std::vector{1, 100, 2, 3, 4});
}

TEST_CASE("one poll runs the whole line of a route key, also of an earlier process",
          "[scheduler][order][routes][poll]") {
    bench b;
    std::vector<int> order;
    auto const prepare = [&](simulated& tasks) {
        tasks.on(shipping, [&](parcel const& p) { order.push_back(p.number); });
    };
    bool const restarted = GENERATE(false, true);
    CAPTURE(restarted);
    b.restart(prepare);
    for (int i = 0; i != 20; ++i) b->submit(shipping, {i, ""}, {.route_key = "r"});
    if (restarted) b.restart(prepare);
    CHECK(b.poll() == 20);
    CHECK(order.size() == 20);
    CHECK(std::is_sorted(order.begin(), order.end()));
}

TEST_CASE("strict order: a failure keeps its place, and those behind it wait", "[scheduler][order][routes]") {
    bench b;
    std::vector<int> order;
    int failures = GENERATE(2, 100);
    bool const dies = failures == 100;
    CAPTURE(dies);
    b->on(shipping,
          [&](parcel const& p) {
              order.push_back(p.number);
              if (p.number == 1 && failures-- > 0) throw std::runtime_error("no");
          },
          {.retry = ax::retry::fixed(10s).attempts(4)});
    auto const first = b->submit(shipping, {1, ""}, {.route_key = "r"}).id;
    auto const second = b->submit(shipping, {2, ""}, {.route_key = "r"}).id;
    b->submit(shipping, {9, ""}, {.route_key = "other"});
    b.run_for(15s);
    CHECK(b.state(second) == task_state::ready);
    CHECK(b.get(second).blocked);
    b.run_for(1min);
    CHECK(b.state(second) == task_state::succeeded);
    CHECK(b.state(first) == (dies ? task_state::dead : task_state::succeeded));
    std::erase(order, 9);
    CHECK(order == (dies ? std::vector{1, 1, 1, 1, 2} : std::vector{1, 1, 1, 2}));
}

TEST_CASE("relaxed order: those behind a failure pass it", "[scheduler][order][routes]") {
    bench b;
    std::vector<int> order;
    bool fails = true;
    b->on(shipping,
          [&](parcel const& p) {
              order.push_back(p.number);
              if (p.number == 1 && std::exchange(fails, false)) throw std::runtime_error("no");
          },
          {.retry = ax::retry::fixed(10s)});
    auto const relaxed = [](ax::duration delay) {
        return ax::submit_options{.delay = delay, .route_key = "r", .route_order = ax::route_order::relaxed};
    };
    b->submit(shipping, {1, ""}, relaxed(0ms));
    b->submit(shipping, {2, ""}, relaxed(0ms));
    b->submit(shipping, {3, ""}, relaxed(5s));
    b->submit(shipping, {4, ""}, relaxed(20s));
    b.run_for(1min);
    CHECK(order == std::vector{1, 2, 3, 1, 4});
}

TEST_CASE("under eight workers no two tasks of a route key run at once, and each key keeps its order",
          "[scheduler][order][routes][threads]") {
    constexpr int keys = 16;
    constexpr int each = 60;
    std::array<std::atomic<int>, keys> inside{};
    std::array<std::vector<int>, keys> order; // guarded by what is tested
    std::atomic<int> overlaps{0};
    tally done;
    ax::scheduler tasks{store_type{}, ax::options{.workers = 8}};
    auto const work = [&](parcel const& p) {
        auto const k = static_cast<std::size_t>(p.number % keys);
        if (++inside[k] != 1) ++overlaps;
        order[k].push_back(p.number);
        if (--inside[k] != 0) ++overlaps;
        ++done;
    };
    constexpr ax::task_type<parcel> second{"second"};
    tasks.on(shipping, work);
    tasks.on(second, work);
    tasks.start();
    for (int i = 0; i != keys * each; ++i) {
        auto const options = ax::submit_options{.priority = static_cast<ax::priority_class>(i % 4),
                                                .route_key = "r" + std::to_string(i % keys)};
        tasks.submit(i % 3 == 0 ? second : shipping, {i, ""}, options);
    }
    REQUIRE(done.reaches(keys * each, 120s));
    CHECK(overlaps == 0);
    tasks.stop(60s);
    for (auto const& line : order) {
        CHECK(line.size() == each);
        CHECK(std::is_sorted(line.begin(), line.end())); // ids rise with run_at
    }
}

TEST_CASE("tasks that wait for their turn cost no reads", "[scheduler][order][routes]") {
    bench b;
    b->on(probe, [] { throw std::runtime_error("no"); }, {.retry = ax::retry::fixed(1h)});
    for (int i = 0; i != 1'000; ++i) b->submit(probe, {}, {.route_key = "r"});
    b.poll();
    auto const rows = b.store.rows_read();
    b.run_for(10min);
    CHECK(b.store.rows_read() - rows < 20);
}
