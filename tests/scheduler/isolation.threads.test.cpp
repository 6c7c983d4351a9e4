// SPDX-License-Identifier: MIT
// Handlers in child processes of a scheduler with threads: cancelled, timed out, stopped, and many at once.
// Not under sanitizers: see there. isolation.test.cpp forks where there is one thread.
#include "support/sanitizers.hpp"

#if !AX_TEST_SANITIZED

#include "scheduler/support.hpp"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <semaphore>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace test;

namespace {

inline constexpr ax::isolation_level in_a_child = ax::isolation::process;

/// By which child processes and the test tell each other that it is time.
class byte_pipe {
  public:
    byte_pipe() { REQUIRE(::pipe(ends_.data()) == 0); }
    byte_pipe(byte_pipe const&) = delete;
    byte_pipe& operator=(byte_pipe const&) = delete;
    ~byte_pipe() {
        ::close(ends_[0]);
        close_writer();
    }

    void put(char c) const {
        while (::write(ends_[1], &c, 1) < 0 && errno == EINTR) {
        }
    }
    /// Waits for one. 0 where there will be none: all who could write are dead.
    char take() const {
        char c = 0;
        while (::read(ends_[0], &c, 1) < 0 && errno == EINTR) {
        }
        return c;
    }
    void close_writer() {
        if (ends_[1] >= 0) ::close(std::exchange(ends_[1], -1));
    }

  private:
    std::array<int, 2> ends_{};
};

void block(byte_pipe const& begun) {
    begun.put('e');
    for (;;) ::poll(nullptr, 0, -1);
}

/// Returns when the attempt is asked to stop.
void await_request(ax::context& ctx, byte_pipe const& begun) {
    std::binary_semaphore asked{0};
    auto const token = ctx.stop_token();
    std::stop_callback const on_stop{token, [&] { asked.release(); }};
    begun.put('t');
    asked.acquire();
}

struct threaded_bench {
    store_type store;
    byte_pipe begun;
    tally reported;
    simulated tasks; // goes first: it uses the others

    threaded_bench(ax::testing::manual_clock& clock, ax::options chosen) : tasks(store, std::move(chosen), clock) {
        tasks.observe([this](ax::event const& e) {
            if (e.kind == ax::event_kind::reported) ++reported;
        });
    }
    ax::attempt_view last(task_id id) { return tasks.history(id).back(); }
};

} // namespace

TEST_CASE("a timeout ends a child process and all that it has started", "[scheduler][isolation]") {
    ax::testing::manual_clock clock;
    threaded_bench b{clock, {.workers = 1, .stop_grace = 0ms}};
    b.tasks.on(probe,
               [&] {
                   if (::fork() == 0) ::signal(SIGTERM, SIG_IGN);
                   block(b.begun);
               },
               {.retry = ax::retry::none(), .timeout = 5min, .isolation = in_a_child});
    b.tasks.start();
    auto const id = b.tasks.submit(probe).id;
    REQUIRE(b.begun.take() == 'e');
    REQUIRE(b.begun.take() == 'e');
    b.begun.close_writer();
    clock.advance(6min);
    REQUIRE(b.reported.reaches(1));
    CHECK(b.begun.take() == 0);
    CHECK(b.tasks.find(id)->state == task_state::dead);
    CHECK(contains(b.last(id).error, "timeout after 300000 ms: killed by signal "));
}

TEST_CASE("a stop gives child processes their grace, then kills them, and nothing has failed",
          "[scheduler][isolation]") {
    ax::testing::manual_clock clock;
    threaded_bench b{clock, {.workers = 2, .stop_grace = 1ms}};
    b.tasks.on(probe, [&] { block(b.begun); }, {.isolation = in_a_child});
    b.tasks.on(other, [&] { block(b.begun); }, {.on_interrupt = ax::on_interrupt::hold, .isolation = in_a_child});
    b.tasks.start();
    auto const id = b.tasks.submit(probe).id;
    auto const held = b.tasks.submit(other).id;
    REQUIRE(b.begun.take() == 'e');
    REQUIRE(b.begun.take() == 'e');
    auto const report = b.tasks.stop(0ms);
    CHECK(report.still_running == 0);
    CHECK(report.finished == 2);
    CHECK(b.tasks.find(id)->state == task_state::ready);
    CHECK(b.tasks.find(id)->interruptions == 1);
    CHECK(b.tasks.find(id)->failures == 0);
    CHECK(b.last(id).error == "interrupted by a stop of the scheduler: killed by signal 9 (SIGKILL)");
    CHECK(b.tasks.find(held)->held);
}

TEST_CASE("a destructor waits for no child process that is blocked for ever", "[scheduler][isolation]") {
    ax::testing::manual_clock clock;
    store_type store;
    byte_pipe begun;
    task_id id{};
    {
        simulated tasks{store, {.stop_grace = 0ms}, clock};
        tasks.on(probe, [&] { block(begun); }, {.isolation = in_a_child});
        tasks.start();
        id = tasks.submit(probe).id;
        REQUIRE(begun.take() == 'e');
    }
    CHECK(store.find(id)->state == task_state::ready);
}

TEST_CASE("an isolated handler without its stop token is killed by a cancel at once", "[scheduler][isolation]") {
    ax::testing::manual_clock clock;
    threaded_bench b{clock, {.workers = 2, .stop_grace = 1h}};
    b.tasks.on(probe, [&] { block(b.begun); }, {.isolation = in_a_child});
    b.tasks.start();
    auto const id = b.tasks.submit(probe).id;
    REQUIRE(b.begun.take() == 'e');
    CHECK(b.tasks.cancel(id) == cancel_outcome::stop_requested);
    REQUIRE(b.reported.reaches(1));
    CHECK(b.tasks.find(id)->state == task_state::cancelled);
    CHECK(b.last(id).error == "cancelled while it ran: killed by signal 15 (SIGTERM)");
}

TEST_CASE("an isolated handler that has its stop token is asked, and returns in its own time",
          "[scheduler][isolation]") {
    ax::testing::manual_clock clock;
    threaded_bench b{clock, {.workers = 1, .stop_grace = 1h}};
    b.tasks.on(probe,
               [&](ax::context& ctx) {
                   await_request(ctx, b.begun);
                   ctx.log("tidied up");
               },
               {.retry = ax::retry::none(), .timeout = 5min, .isolation = in_a_child});
    b.tasks.start();
    auto const id = b.tasks.submit(probe).id;
    REQUIRE(b.begun.take() == 't');
    bool const by_timeout = GENERATE(false, true);
    CAPTURE(by_timeout);
    if (by_timeout)
        clock.advance(6min);
    else
        b.tasks.cancel(id);
    REQUIRE(b.reported.reaches(1));
    CHECK(b.last(id).log == "tidied up\n");
    CHECK(b.last(id).error == (by_timeout ? "timeout after 300000 ms" : "cancelled while it ran"));
    CHECK(b.tasks.find(id)->state == (by_timeout ? task_state::dead : task_state::cancelled));
}

TEST_CASE("an isolated handler that does not heed its stop token is killed after the grace", "[scheduler][isolation]") {
    ax::testing::manual_clock clock;
    threaded_bench b{clock, {.workers = 1, .stop_grace = 1ms}};
    b.tasks.on(probe,
               [&](ax::context& ctx) {
                   await_request(ctx, b.begun);
                   block(b.begun);
               },
               {.retry = ax::retry::none(), .isolation = in_a_child});
    b.tasks.start();
    auto const id = b.tasks.submit(probe).id;
    REQUIRE(b.begun.take() == 't');
    b.tasks.cancel(id);
    REQUIRE(b.reported.reaches(1));
    CHECK(b.last(id).error == "cancelled while it ran: killed by signal 9 (SIGKILL)");
}

TEST_CASE("a stop lets a child process finish that cannot be asked, and asks the others", "[scheduler][isolation]") {
    ax::testing::manual_clock clock;
    threaded_bench b{clock, {.workers = 2, .stop_grace = 1h}};
    byte_pipe go;
    b.tasks.on(probe,
               [&] {
                   b.begun.put('p');
                   go.take();
                   return 7;
               },
               {.isolation = in_a_child});
    b.tasks.on(other,
               [&](ax::context& ctx) {
                   await_request(ctx, b.begun);
                   b.begun.put('a');
               },
               {.isolation = in_a_child});
    b.tasks.start();
    auto const id = b.tasks.submit(probe).id;
    REQUIRE(b.begun.take() == 'p');
    auto const asked = b.tasks.submit(other).id;
    REQUIRE(b.begun.take() == 't');
    {
        std::jthread const stops{[&] { b.tasks.stop(0ms); }};
        CHECK(b.begun.take() == 'a');
        go.put('g');
    }
    CHECK(b.tasks.find(id)->state == task_state::succeeded);
    CHECK(b.tasks.find(id)->result == "7");
    CHECK(b.tasks.find(asked)->state == task_state::ready);
    CHECK(b.tasks.find(asked)->interruptions == 1);
}

TEST_CASE("many child processes at once: each end is that of its own task", "[scheduler][isolation]") {
    ax::testing::manual_clock clock;
    threaded_bench b{clock, {.workers = 6}};
    b.tasks.on(shipping,
               [](parcel const& p, ax::context& ctx) {
                   ctx.log("{}", p.number);
                   if (p.number % 5 == 1) ::raise(SIGSEGV);
                   if (p.number % 5 == 2) throw std::runtime_error("no " + std::to_string(p.number));
                   if (p.number % 5 == 3) ctx.step("s", [&] { return p.number; });
                   return std::string(static_cast<std::size_t>(p.number) * 1'000, 'x');
               },
               {.retry = ax::retry::none(), .isolation = in_a_child});
    b.tasks.on(other, [] { return std::string(10'000, 'y'); }); // in a thread, beside them
    b.tasks.start();
    constexpr int count = 150;
    std::vector<parcel> parcels;
    for (int n = 0; n != count; ++n) parcels.push_back({n, ""});
    auto const made = b.tasks.submit_all(shipping, parcels);
    b.tasks.submit_all(other, std::vector<ax::no_payload>(count));
    REQUIRE(b.reported.reaches(2 * count, 120s));
    for (int n = 0; n != count; ++n) {
        CAPTURE(n);
        auto const task = *b.tasks.find(made[static_cast<std::size_t>(n)].id);
        CHECK(b.last(task.id).log == std::to_string(n) + '\n');
        if (n % 5 == 1)
            CHECK(task.last_error == "killed by signal 11 (SIGSEGV)");
        else if (n % 5 == 2)
            CHECK(task.last_error == "no " + std::to_string(n));
        else
            CHECK(task.result.size() == static_cast<std::size_t>(n) * 1'000 + 2);
    }
}

#endif
