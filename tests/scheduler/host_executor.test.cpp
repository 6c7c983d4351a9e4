// SPDX-License-Identifier: MIT
// Executors of hosts that do not keep what they took: a loop that ends drops its work without calling it.
#include "scheduler/support.hpp"

#include <atomic>
#include <memory>
#include <thread>

using namespace test;

namespace {

/// Drops the first pieces of work that it is given, in one of several ways, and calls the others at once.
class forgetful_executor {
  public:
    enum class how { never_keeps, keeps_for_a_while, throws };

    forgetful_executor(how what, int drops) : how_(what), drops_(drops) {}

    void execute(ax::unique_function<void()> work) {
        if (drops_-- <= 0) return work();
        ++dropped;
        if (how_ == how::keeps_for_a_while) kept_.push_back(std::move(work));
        if (how_ == how::throws) {
            auto const mine = std::move(work);
            throw std::runtime_error("the loop is at its end");
        }
    }
    void forget() { kept_.clear(); }

    int dropped = 0;

  private:
    how how_;
    int drops_;
    std::vector<ax::unique_function<void()>> kept_;
};

using forgetful = ax::scheduler<store_type, ax::testing::manual_clock, forgetful_executor>;

} // namespace

TEST_CASE("work that an executor drops is handed over again, and no worker is lost", "[scheduler][poll]") {
    using how = forgetful_executor::how;
    auto const kind = GENERATE(how::never_keeps, how::keeps_for_a_while, how::throws);
    CAPTURE(static_cast<int>(kind));
    ax::testing::manual_clock clock;
    store_type store;
    forgetful_executor loop{kind, 3};
    forgetful tasks{store, {.workers = 1}, clock, loop};
    int runs = 0;
    int wakes = 0;
    tasks.on_wakeup([&] { ++wakes; });
    tasks.on(probe, [&] { ++runs; });
    std::vector<task_id> ids;
    for (int i = 0; i != 4; ++i) ids.push_back(tasks.submit(probe).id);
    for (int i = 0; i != 20 && runs != 4; ++i) {
        tasks.poll(clock.now());
        auto const before = wakes;
        if (kind == how::keeps_for_a_while && loop.dropped != 0) {
            CHECK(tasks.health().running == (runs == 4 ? 0 : tasks.health().running));
            auto const held = tasks.health().running;
            loop.forget();
            if (held != 0) CHECK(wakes > before); // there is work for the next poll
        }
        if (runs != 4) CHECK(tasks.next_wakeup() == clock.now());
    }
    tasks.poll(clock.now());
    CHECK(loop.dropped == 3);
    CHECK(runs == 4);
    CHECK(tasks.health().running == 0);
    for (auto const id : ids) {
        CHECK(tasks.find(id)->state == task_state::succeeded);
        CHECK(tasks.find(id)->attempts == 1); // a run that did not begin is none
        CHECK(tasks.history(id).size() == 1);
    }
}

TEST_CASE("work that an executor drops after its task was cancelled or stopped is nobody's", "[scheduler][poll]") {
    using how = forgetful_executor::how;
    ax::testing::manual_clock clock;
    store_type store;
    forgetful_executor loop{how::keeps_for_a_while, 1'000};
    auto tasks = std::make_unique<forgetful>(store, ax::options{.workers = 2}, clock, loop);
    tasks->on(probe, [] { FAIL("nothing was to run"); });
    auto const cancelled = tasks->submit(probe).id;
    auto const given_back = tasks->submit(probe).id;
    tasks->poll(clock.now());
    REQUIRE(loop.dropped == 2);
    CHECK(tasks->cancel(cancelled) == cancel_outcome::cancelled);
    CHECK(tasks->stop().released == 1);
    SECTION("while the scheduler lives") {
        loop.forget();
        CHECK(tasks->health().running == 0);
        tasks.reset();
    }
    SECTION("after it") {
        tasks.reset();
        loop.forget();
    }
    CHECK(store.find(cancelled)->state == task_state::cancelled);
    CHECK(store.find(given_back)->state == task_state::ready);
    CHECK(store.find(given_back)->attempts == 0);
}

TEST_CASE("with threads, an executor that drops work now and then loses nothing", "[scheduler][poll][threads]") {
    /// Every third piece of work is dropped, the others are called on a thread of its own.
    class unreliable {
      public:
        void execute(ax::unique_function<void()> work) {
            if (++count_ % 3 != 0) pool_.execute(std::move(work));
        }

      private:
        std::atomic<int> count_{0};
        ax::thread_pool pool_{2, 1'000};
    };
    constexpr std::size_t count = 500;
    store_type store;
    ax::system_clock const machine;
    unreliable loop;
    tally done;
    {
        ax::scheduler<store_type, ax::system_clock, unreliable> tasks{store, ax::options{.workers = 4}, machine, loop};
        tasks.observe([&](ax::event const& e) {
            if (e.kind == ax::event_kind::reported) ++done;
        });
        tasks.on(probe, [] {});
        tasks.start();
        for (std::size_t i = 0; i != count; ++i) tasks.submit(probe);
        REQUIRE(done.reaches(count));
        for (auto const& task : tasks.list({.limit = 2 * count})) CHECK(task.attempts == 1);
        CHECK(tasks.list({.state = task_state::succeeded, .limit = 2 * count}).size() == count);
    }
}

TEST_CASE("an executor that calls at once is never called by the thread that submits",
          "[scheduler][offers][threads]") {
    ax::testing::manual_clock clock;
    store_type store;
    forgetful_executor loop{forgetful_executor::how::never_keeps, 0};
    tally runs;
    std::atomic<std::thread::id> runner{};
    forgetful tasks{store, {.workers = 1}, clock, loop};
    tasks.on(probe, [&] {
        runner = std::this_thread::get_id();
        ++runs;
    });
    tasks.start();
    for (std::size_t i = 0; i != 5; ++i) {
        tasks.submit(probe); // the caller may hold a lock that the handler wants
        REQUIRE(runs.reaches(i + 1));
        CHECK(runner.load() != std::this_thread::get_id());
    }
}
