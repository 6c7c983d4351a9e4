// SPDX-License-Identifier: MIT
// Handlers that run in a child process of their own: what kills it is a failed attempt, and everything a handler may
// say comes back. The scheduler is polled here, so each attempt is over when poll() returns.
#include "scheduler/support.hpp"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

using namespace test;

namespace {

inline constexpr ax::isolation_level apart = ax::isolation::process;

/// How the only attempt of a task ended.
std::string error_of(bench& b, task_id id) { return b->history(id).back().error; }

/// Runs a handler once, without another try, and returns what is kept of it.
template <class Work>
ax::task_view run_apart(bench& b, Work work) {
    b->on(probe, std::move(work), {.retry = ax::retry::none(), .isolation = apart});
    auto const id = b->submit(probe).id;
    b.poll();
    return b.get(id);
}

} // namespace

TEST_CASE("an isolated handler runs in a child process, and its result comes back", "[scheduler][isolation]") {
    bench b;
    b->on(shipping, [](parcel const& p) { return nlohmann::json{{"pid", ::getpid()}, {"number", p.number + 1}}; },
          {.isolation = apart});
    auto const id = b->submit(shipping, {41, ""}).id;
    b.poll();
    CHECK(b.state(id) == task_state::succeeded);
    auto const result = nlohmann::json::parse(b.get(id).result);
    CHECK(result["number"] == 42);
    CHECK(result["pid"] != ::getpid());
}

TEST_CASE("a signal that kills an isolated handler is a failed attempt that names it", "[scheduler][isolation]") {
    struct fault {
        int number;
        char const* text;
    };
    auto const [number, text] = GENERATE(fault{SIGSEGV, "killed by signal 11 (SIGSEGV)"},
                                         fault{SIGABRT, "killed by signal 6 (SIGABRT)"},
                                         fault{SIGKILL, "killed by signal 9 (SIGKILL)"},
                                         fault{SIGFPE, "killed by signal 8 (SIGFPE)"});
    bench b;
    auto const task = run_apart(b, [number = number] { ::raise(number); });
    CHECK(task.state == task_state::dead);
    CHECK(error_of(b, task.id) == text);
    CHECK(task.last_error == text);
    CHECK(b.outcomes(task.id) == std::vector{attempt_outcome::exhausted});
}
