// SPDX-License-Identifier: MIT
// Hosts that do what one should not: each call still has its answer, and nothing is lost or left hanging.
#include "scheduler/support.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <set>
#include <thread>

using namespace test;

namespace {

/// Submits when it goes, whatever the reason, and keeps what came of it.
class last_words {
  public:
    last_words(simulated& tasks, std::vector<ax::errc>& refused) : tasks_(&tasks), refused_(&refused) {}
    last_words(last_words&& other) noexcept : tasks_(std::exchange(other.tasks_, nullptr)), refused_(other.refused_) {}
    last_words& operator=(last_words&&) = delete;
    ~last_words() {
        if (tasks_ == nullptr) return;
        try {
            tasks_->submit(other);
        } catch (ax::error const& e) {
            refused_->push_back(e.kind());
        }
    }

  private:
    simulated* tasks_;
    std::vector<ax::errc>* refused_;
};

} // namespace

TEST_CASE("a destructor may submit, also while what a handler threw passes by", "[scheduler][hostile]") {
    bench b;
    std::vector<ax::errc> refused;
    int runs = 0;
    bool const throws = GENERATE(false, true);
    CAPTURE(throws);
    b->on(probe,
          [&] {
              last_words const words{*b, refused};
              if (throws) throw std::runtime_error("no");
          },
          {.retry = ax::retry::none()});
    b->on(other, [&] { ++runs; });
    b->submit(probe);
    b.run_for(1s);
    CHECK(runs == 1);
    CHECK(refused.empty());
}

TEST_CASE("what a handler owns may submit as it goes: it is told that the scheduler has stopped",
          "[scheduler][hostile]") {
    bench b;
    std::vector<ax::errc> refused;
    b->on(probe, [words = last_words{*b, refused}] {});
    b->submit(probe);
    b.poll();
    b->stop(0ms);
    b.restart();
    CHECK(refused == std::vector{ax::errc::stopped});
    CHECK(b->list({.state = task_state::ready}).empty());
}

TEST_CASE("a handler cancels itself, submits and stops the scheduler, all at once", "[scheduler][hostile]") {
    bench b;
    std::optional<ax::errc> refused;
    task_id follow_up{};
    std::optional<cancel_outcome> cancelled;
    b->on(other, [] {});
    b->on(probe, [&](ax::context& ctx) {
        follow_up = b->submit(other).id;
        cancelled = b->cancel(ctx.task().id);
        b->stop(0ms);
        b->stop(0ms); // and once more
        try {
            b->submit(other);
        } catch (ax::error const& e) {
            refused = e.kind();
        }
        ctx.submit(other, {}); // with its success, which is still recorded
    });
    auto const id = b->submit(probe).id;
    b.poll();
    CHECK(cancelled == cancel_outcome::stop_requested);
    CHECK(refused == ax::errc::stopped);
    CHECK(b.state(id) == task_state::succeeded);
    CHECK(b.state(follow_up) == task_state::ready);
    CHECK(b->list({.state = task_state::ready}).size() == 2);

    int runs = 0;
    b.restart([&](simulated& tasks) { tasks.on(other, [&] { ++runs; }); });
    b.run_for(1s);
    CHECK(runs == 2);
    CHECK(b.store.memory().check_invariants().empty());
}

TEST_CASE("many more submitters than the queue has room for wait their turn, and all are served",
          "[scheduler][hostile][threads]") {
    constexpr std::size_t threads = 24, each = 420, room = 8; // as many as 10,000 threads would submit at once
    store_type store;
    std::atomic<std::size_t> inside{0}, most{0};
    store.hooks().before_insert = [&](std::span<ax::new_task const> tasks) {
        auto const now = inside += tasks.size();
        for (auto seen = most.load(); seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::yield();
        inside -= tasks.size();
    };
    tally ran;
    ax::scheduler tasks{store, ax::options{.workers = 2, .submit_queue = room}};
    tasks.on(probe, [&] { ++ran; });
    tasks.start();
    std::vector<std::set<task_id>> ids(threads);
    {
        std::vector<std::jthread> callers;
        for (std::size_t t = 0; t != threads; ++t)
            callers.emplace_back([&, t] {
                for (std::size_t i = 0; i != each; i += 3)
                    for (auto const& one : tasks.submit_all(probe, std::vector<ax::no_payload>(3)))
                        ids[t].insert(one.id);
            });
    }
    std::set<task_id> all;
    for (auto const& some : ids) all.insert(some.begin(), some.end());
    CHECK(all.size() == threads * each);
    CHECK(most <= room);
    CHECK(ran.reaches(threads * each, 120s));
}

TEST_CASE("timers that are cancelled leave memory when their instants have passed, and never hold more than the window",
          "[scheduler][hostile][memory]") {
    std::size_t const most = GENERATE(1'000U, 1'000'000U);
    CAPTURE(most);
    bench b{{.window_tasks = most}};
    int runs = 0;
    b->on(probe, [] {});
    b->on(other, [&] { ++runs; });
    std::size_t const before = b->health().in_memory;
    for (int round = 0; round != 4; ++round) {
        auto const made = b->submit_all(probe, std::vector<ax::no_payload>(2'000),
                                        [](auto const&) { return ax::submit_options{.delay = 1min}; });
        b->submit(other, {}, {.delay = 1min});
        b.poll();
        for (auto const& one : made) REQUIRE(b->cancel(one.id) == cancel_outcome::cancelled);
        b.poll();
        CHECK(b->health().in_memory <= most + 100);
        b.run_for(61s);
        CHECK(runs == round + 1);
        CHECK(b->health().in_memory == before);
    }
    CHECK(b->list({.state = task_state::ready}).empty());
}

TEST_CASE("a host that forks again and again while tasks run harms none of them, and its children end at once",
          "[scheduler][hostile][threads]") {
    constexpr std::size_t rounds = 40, each = 10;
    store_type store;
    tally ran;
    {
        ax::scheduler tasks{store, ax::options{.workers = 3}};
        tasks.on(probe, [&] { ++ran; });
        tasks.start();
        for (std::size_t round = 0; round != rounds; ++round) {
            tasks.submit_all(probe, std::vector<ax::no_payload>(each));
            auto const child = ::fork();
            REQUIRE(child >= 0);
            if (child == 0) ::_exit(7); // the threads are its parent's: this or exec is what it may do
            int status = 0;
            while (::waitpid(child, &status, 0) != child) REQUIRE(errno == EINTR);
            REQUIRE(WIFEXITED(status));
            CHECK(WEXITSTATUS(status) == 7);
        }
        REQUIRE(ran.reaches(rounds * each));
    }
    CHECK(ran.value() == rounds * each);
    CHECK(store.memory().check_invariants().empty());
}
