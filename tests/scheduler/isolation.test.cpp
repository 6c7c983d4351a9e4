// SPDX-License-Identifier: MIT
// Handlers that run in a child process of their own: what kills it is a failed attempt, and everything a handler may
// say comes back. The scheduler is polled here, so each attempt is over when poll() returns.
#include "scheduler/support.hpp"
#include "support/sanitizers.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

using namespace test;

namespace {

inline constexpr ax::isolation_level apart = ax::isolation::process;

inline constexpr ax::task_type<> yet_another{"yet_another"};

/// How the latest attempt of a task ended.
std::string last_error_of(bench& b, task_id id) { return b->history(id).back().error; }

/// Runs a handler once, without another try, and returns what is kept of it.
template <class Work>
ax::task_view run_apart(bench& b, Work work) {
    b->on(probe, std::move(work), {.retry = ax::retry::none(), .isolation = apart});
    auto const id = b->submit(probe).id;
    b.poll();
    return b.get(id);
}

/// No child of this process is left, dead or alive.
bool has_no_child() { return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD; }

/// The text of the ax::error that `call` throws; for a handler that returns it.
template <class Call>
std::string words_of(Call&& call) {
    try {
        call();
    } catch (ax::error const& e) {
        return e.what();
    }
    return "nothing was thrown";
}

void lets_one_pass() { throw std::runtime_error("that nobody catches"); }

/// A static of the host's that tells when a child destroys it.
struct of_the_host {
    pid_t const maker = ::getpid();
    ~of_the_host() {
        if (::getpid() != maker) ::_exit(17);
    }
};

} // namespace

TEST_CASE("an isolated handler runs in a child process, and its result comes back", "[scheduler][isolation]") {
    bench b;
    int calls = 0;
    b->on(shipping,
          [&](parcel const& p) {
              ++calls; // in the child's memory
              return nlohmann::json{{"pid", ::getpid()}, {"number", p.number + 1}};
          },
          {.isolation = apart});
    auto const id = b->submit(shipping, {41, ""}).id;
    b.poll();
    CHECK(b.state(id) == task_state::succeeded);
    auto const result = nlohmann::json::parse(b.get(id).result);
    CHECK(result["number"] == 42);
    CHECK(result["pid"] != ::getpid());
    CHECK(calls == 0);
    CHECK(has_no_child());
}

TEST_CASE("a signal that kills an isolated handler is a failed attempt that names it", "[scheduler][isolation]") {
    struct fault {
        int number;
        char const* text;
    };
    auto const [number, text] =
        GENERATE(fault{SIGSEGV, "killed by signal 11 (SIGSEGV)"}, fault{SIGABRT, "killed by signal 6 (SIGABRT)"},
                 fault{SIGKILL, "killed by signal 9 (SIGKILL)"}, fault{SIGFPE, "killed by signal 8 (SIGFPE)"});
    bench b;
    auto const task = run_apart(b, [number = number] { ::raise(number); });
    CHECK(task.state == task_state::dead);
    CHECK(last_error_of(b, task.id) == text);
    CHECK(task.last_error == text);
    CHECK(b.outcomes(task.id) == std::vector{attempt_outcome::exhausted});
    CHECK(has_no_child());
}

TEST_CASE("a real fault, an abort and an exception that nobody may let pass end the attempt alone",
          "[scheduler][isolation]") {
    bench b;
    std::vector<std::string> expected;
    std::vector<task_id> ids;
    auto const add = [&](ax::task_type<> const& type, auto work, char const* text) {
        b->on(type, work, {.retry = ax::retry::none(), .isolation = apart});
        ids.push_back(b->submit(type).id);
        expected.push_back(text);
    };
    add(
        probe,
        [] {
            auto* const nowhere = reinterpret_cast<int volatile*>(std::uintptr_t{16}); // no null: that has a checker
            *nowhere = 1;
        },
        "killed by signal 11 (SIGSEGV)");
    add(
        other, [] { std::abort(); }, "killed by signal 6 (SIGABRT)");
    add(
        yet_another, []() noexcept { lets_one_pass(); }, "killed by signal 6 (SIGABRT)");
    b.poll();
    for (std::size_t i = 0; i != ids.size(); ++i) {
        CAPTURE(i);
        CHECK(b.state(ids[i]) == task_state::dead);
        CHECK(last_error_of(b, ids[i]) == expected[i]);
    }
}

TEST_CASE("an isolated handler that exits has failed, with whatever code, and destroys nothing of its parent's",
          "[scheduler][isolation]") {
    int const code = GENERATE(0, 3, 255);
    bool const at_once = GENERATE(false, true);
    CAPTURE(code, at_once);
    static of_the_host const here;
    bench b;
    auto const task = run_apart(b, [=] {
        if (at_once) ::_exit(code);
        std::exit(code);
    });
    CHECK(task.state == task_state::dead);
    CHECK(task.last_error == "exited with code " + std::to_string(code) + " before the handler had returned");
}

TEST_CASE("what an isolated handler throws means what it means in a thread", "[scheduler][isolation]") {
    bench b;
    int const what = GENERATE(range(0, 7));
    CAPTURE(what);
    b->on(probe,
          [what] {
              switch (what) {
              case 0: throw std::runtime_error("ouch");
              case 1: throw 7;
              case 2: throw ax::give_up("no use");
              case 3: throw ax::skip("nothing to do");
              case 4: throw ax::snooze{90s, "not now"};
              case 5: throw ax::retry_after{40s, "busy"};
              default: throw ax::error(ax::errc::unavailable, "the shop");
              }
          },
          {.retry = ax::retry::fixed(10s), .isolation = apart});
    auto const start = b.now();
    auto const id = b->submit(probe).id;
    b.poll();
    struct end {
        task_state state;
        std::string text;
        ax::duration due{};
    };
    std::vector<end> const ends{{task_state::failed, "ouch", 10s},
                                {task_state::failed, "the handler threw something that is no std::exception", 10s},
                                {task_state::dead, "no use"},
                                {task_state::skipped, "nothing to do"},
                                {task_state::ready, "not now", 90s},
                                {task_state::failed, "busy", 40s},
                                {task_state::failed, "the shop: storage unavailable", 10s}};
    auto const& expected = ends[static_cast<std::size_t>(what)];
    CHECK(b.state(id) == expected.state);
    CHECK(last_error_of(b, id) == expected.text);
    if (expected.due != ax::duration{}) CHECK(b.get(id).run_at == start + expected.due);
}

TEST_CASE("large results, errors and logs come back whole from a child process", "[scheduler][isolation]") {
    bench b;
    std::size_t const size = GENERATE(10U, 65'536U, 300'000U, 1'000'000U);
    auto const task = run_apart(b, [size](ax::context& ctx) {
        for (int i = 0; i != 40; ++i) ctx.log("{} {}", i, std::string(1'000, 'l'));
        ctx.progress(0.25, "a quarter");
        return std::string(size, 'x');
    });
    CHECK(task.state == task_state::succeeded);
    CHECK(task.result == '"' + std::string(size, 'x') + '"');
    auto const log = b->history(task.id).back().log;
    CHECK(contains(log, "15 lll"));
    CHECK_FALSE(contains(log, "16 lll"));
    CHECK(contains(log, "... 24 lines left out"));

    b->on(other, []() -> int { throw std::runtime_error(std::string(100'000, 'e')); },
          {.retry = ax::retry::none(), .isolation = apart});
    auto const failed = b->submit(other).id;
    b.poll();
    CHECK(b.get(failed).last_error == std::string(4'096, 'e'));
}

TEST_CASE("a result that is too large is refused in the child as elsewhere", "[scheduler][isolation]") {
    bench b{{.payload_limit = 1'000}};
    auto const task = run_apart(b, [] { return std::string(1'000, 'x'); });
    CHECK(task.state == task_state::dead);
    CHECK(task.last_error == "result has 1002 bytes, at most 1000 are allowed: invalid argument");
}

TEST_CASE("what a child had said before it died is kept", "[scheduler][isolation]") {
    bench b;
    auto const task = run_apart(b, [](ax::context& ctx) {
        ctx.log("on the edge");
        ctx.submit(other, {});
        ctx.result(1);
        ::raise(SIGSEGV);
    });
    CHECK(b->history(task.id).back().log == "on the edge\n");
    CHECK(task.result.empty());
    CHECK(b->list({.state = task_state::ready}).empty()); // a follow-up comes with a success only
}

TEST_CASE("steps of an isolated handler are kept by its parent, and its later attempts find them",
          "[scheduler][isolation]") {
    bench b;
    b->on(probe,
          [](ax::context& ctx) {
              auto const first = ctx.step("first", [&] { return ctx.attempt() * 100; });
              ctx.step("nothing", [] {});
              if (ctx.attempt() == 1) ::raise(SIGKILL);
              if (ctx.attempt() == 2) ::raise(SIGSEGV);
              return first + ctx.step("last", [&] { return ctx.attempt(); });
          },
          {.retry = ax::retry::fixed(1s), .isolation = apart});
    auto const id = b->submit(probe).id;
    b.run_for(10s);
    CHECK(b.state(id) == task_state::succeeded);
    CHECK(b.get(id).result == "103");
}

TEST_CASE("an error of the storage reaches the step of an isolated handler as it was thrown",
          "[scheduler][isolation]") {
    bench b;
    b.store.hooks().before_keep_step = [] { throw ax::error(ax::errc::disk_full, "the disk"); };
    auto const task = run_apart(b, [](ax::context& ctx) { ctx.step("one", [] { return 1; }); });
    CHECK(task.last_error == "the disk: disk full");
}

TEST_CASE("an isolated attempt that has lost its task keeps no step, learns that, and is void",
          "[scheduler][isolation]") {
    int said[2];
    REQUIRE(::pipe(said) == 0);
    hosted_bench b;
    b.tasks.on(probe,
               [&](ax::context& ctx) {
                   char seen[] = {'-', '-'};
                   auto const token = ctx.stop_token(); // else the loss ends it at once
                   try {
                       ctx.step("charge", [] { return 7; });
                   } catch (ax::error const& e) {
                       seen[0] = e.kind() == ax::errc::not_mine ? 'n' : '?';
                       seen[1] = ctx.still_mine() ? '?' : 'l';
                   }
                   if (::write(said[1], seen, sizeof seen) != sizeof seen) ::_exit(1);
               },
               {.isolation = apart});
    auto const id = b.tasks.submit(probe).id;
    b.poll();
    b.store.hooks().before_transact = [&] { // that of the step: nobody else is at work
        b.store.hooks().before_transact = {};
        ax::reclaim_terms const terms{ax::node_id{0xBEEF}, 3, b.clock.now()};
        b.store.transact(ax::commit::durable, [&](store_type::writer& w) { w.reclaim(terms); });
        claim_elsewhere(b.store, id, b.clock.now());
    };
    b.settle();
    ::close(said[1]);
    char seen[2] = {};
    REQUIRE(::read(said[0], seen, sizeof seen) == sizeof seen);
    CHECK(std::string(seen, 2) == "nl");
    CHECK(b.tasks.steps(id).empty());
    CHECK(b.state(id) == task_state::dispatched); // the other's
    CHECK(b.events.back() == ax::event_kind::refused);
    ::close(said[0]);
}

TEST_CASE("follow-ups of an isolated handler are stored with its success, with all their options",
          "[scheduler][isolation]") {
    bench b;
    auto const start = b.now();
    auto const task = run_apart(b, [start](ax::context& ctx) {
        ctx.submit(shipping, {7, "box"},
                   {.key = "k",
                    .key_scope = ax::key_scope::active,
                    .on_conflict = ax::on_conflict::throttle(5min),
                    .run_at = start + 10min,
                    .priority = ax::priority_class::high,
                    .route_key = "r",
                    .route_order = ax::route_order::relaxed,
                    .deadline = start + 1h,
                    .retry = ax::retry::fixed(3s),
                    .tags = {"b", "a"}});
        ctx.submit(other, {}, {.delay = 2min});
    });
    REQUIRE(task.state == task_state::succeeded);
    auto const made = b->find_by_key("k");
    REQUIRE(made.has_value());
    CHECK(made->type == "shipping");
    CHECK(nlohmann::json::parse(made->payload) == nlohmann::json{{"number", 7}, {"note", "box"}});
    CHECK(made->key_scope == ax::key_scope::active);
    CHECK(made->run_at == start + 10min);
    CHECK(made->priority == ax::priority_class::high);
    CHECK(made->route_key == "r");
    CHECK(made->route_order == ax::route_order::relaxed);
    CHECK(made->deadline == start + 1h);
    CHECK(made->retry == ax::retry::to_text(ax::retry::fixed(3s)));
    CHECK(made->tags == std::vector<std::string>{"a", "b"});
    CHECK(b->list({.type = "other"}).at(0).run_at == start + 2min);
}

TEST_CASE("an isolated handler adds tasks to its workflow and reads what its parents returned",
          "[scheduler][isolation]") {
    bench b;
    ax::workflow w{"w"};
    auto const head = w.add(shipping, {1, ""}, {.name = "head"});
    w.add(probe, {}, {.name = "grow", .after = {head}});
    b->on(shipping, [](parcel const& p) { return p.number + 1; }, {.isolation = apart});
    b->on(probe,
          [](ax::context& ctx) {
              auto const one = ctx.add(shipping, {10, ""}, {.priority = ax::priority_class::low});
              ctx.add(shipping, {20, ""}, {.name = "named", .after = {one}, .when = ax::trigger_rule::all_done});
              return ctx.parent("head").get<int>() + static_cast<int>(ctx.parents().size());
          },
          {.isolation = apart});
    auto const id = b->submit(w).id;
    b.run_for(5s);
    CHECK(b.state(id) == task_state::succeeded);
    auto const members = b->workflow_tasks(id);
    REQUIRE(members.size() == 4);
    for (auto const& one : members) {
        if (one.name == "grow") CHECK(b.get(one.id).result == "3");
        if (one.name == "named") {
            CHECK(b.get(one.id).result == "21");
            CHECK(one.parents.size() == 1);
        }
    }
}

TEST_CASE("what cannot work in a child process is refused there, by name", "[scheduler][isolation]") {
    bench b;
    auto const words = [&](auto call) {
        b.restart();
        auto const task = run_apart(b, call);
        REQUIRE(task.state == task_state::succeeded);
        return nlohmann::json::parse(task.result).template get<std::string>();
    };
    auto const out_of_reach = [](std::string const& what) {
        return what + ": this handler runs in a child process (isolation::process), where the scheduler is out of "
                      "reach; use its context: invalid argument";
    };
    CHECK(words([](ax::context& ctx) { return words_of([&] { ctx.commit_with([](sqlite3*) {}); }); }) ==
          "commit_with: this handler runs in a child process (isolation::process), which has no part in the commit of "
          "its parent: invalid argument");
    CHECK(words([&] { return words_of([&] { b->submit(other); }); }) == out_of_reach("submit"));
    CHECK(words([&](ax::context& ctx) { return words_of([&] { b->cancel(ctx.task().id); }); }) ==
          out_of_reach("a change of a task"));
    CHECK(words([&](ax::context& ctx) { return words_of([&] { b->find(ctx.task().id); }); }) == out_of_reach("find"));
    CHECK(words([&] { return words_of([&] { b->list({}); }); }) == out_of_reach("list"));
    CHECK(words([&] { return words_of([&] { b->pause(other); }); }) == out_of_reach("a change of the store"));
    CHECK(words([&] { return words_of([&] { b->stop(0ms); }); }) == out_of_reach("stop"));
    CHECK(b->list({.type = "other"}).empty());
}

TEST_CASE("a task that kills its child again and again is no poison: the process of the scheduler lives",
          "[scheduler][isolation]") {
    bench b{{.poison_after = 1}};
    b->on(probe,
          [](ax::context& ctx) {
              if (ctx.attempt() < 6) ::raise(SIGSEGV);
          },
          {.retry = ax::retry::fixed(1s).attempts(9), .isolation = apart});
    auto const id = b->submit(probe).id;
    b.run_for(20s);
    auto const task = b.get(id);
    CHECK(task.state == task_state::succeeded);
    CHECK(task.attempts == 6);
    CHECK(task.failures == 5);
    CHECK(task.interruptions == 0);
    CHECK(task.unclean_ends == 0);
    CHECK(task.lonely_deaths == 0);
    CHECK_FALSE(task.lonely);
}

TEST_CASE("a handler that must not run twice is held where its child process died", "[scheduler][isolation]") {
    bench b;
    b->on(probe, [] { ::raise(SIGSEGV); }, {.on_interrupt = ax::on_interrupt::hold, .isolation = apart});
    b->on(other, [] { throw std::runtime_error("ouch"); },
          {.on_interrupt = ax::on_interrupt::hold, .isolation = apart});
    auto const id = b->submit(probe).id;
    auto const thrown = b->submit(other).id;
    b.poll();
    CHECK(b.get(id).held);
    CHECK(b.outcomes(id) == std::vector{attempt_outcome::held});
    CHECK(last_error_of(b, id) == "killed by signal 11 (SIGSEGV)");
    CHECK(b.state(thrown) == task_state::failed); // it is known how far that one came
}

TEST_CASE("a child process has the signals of a new program", "[scheduler][isolation]") {
    struct host {
        struct sigaction before {};
        sigset_t mask{};
        host() {
            struct sigaction mine {};
            mine.sa_handler = [](int) { ::_exit(99); };
            ::sigaction(SIGUSR1, &mine, &before);
            sigset_t some;
            ::sigemptyset(&some);
            ::sigaddset(&some, SIGUSR1);
            ::sigaddset(&some, SIGTERM);
            ::pthread_sigmask(SIG_BLOCK, &some, &mask);
        }
        ~host() {
            ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
            ::sigaction(SIGUSR1, &before, nullptr);
        }
    } const as_hosts_do;
    bench b;
    auto const task = run_apart(b, [] {
        ::kill(::getpid(), SIGTERM); // from another than the scheduler: it is not for a child to end by that
        ::raise(SIGUSR1);
    });
    CHECK(task.last_error == "killed by signal 10 (SIGUSR1)");
    struct sigaction now {};
    ::sigaction(SIGUSR1, nullptr, &now);
    CHECK(now.sa_handler != SIG_DFL); // the host's own is as it was
}

TEST_CASE("a host that lets nobody wait for its children learns of their ends all the same", "[scheduler][isolation]") {
    struct ignores_children {
        struct sigaction before {};
        ignores_children() {
            struct sigaction none {};
            none.sa_handler = SIG_IGN;
            ::sigaction(SIGCHLD, &none, &before);
        }
        ~ignores_children() { ::sigaction(SIGCHLD, &before, nullptr); }
    } const meanwhile;
    bench b;
    b->on(other, [] { return ::system("exit 3"); }, {.isolation = apart});
    auto const well = b->submit(other).id;
    auto const task = run_apart(b, [] { ::raise(SIGSEGV); });
    CHECK(task.state == task_state::dead);
    CHECK(task.last_error == "its child process has ended, and how is not known: the program takes the status of all "
                             "its children, or ignores SIGCHLD");
    CHECK(b.state(well) == task_state::succeeded);
    CHECK(b.get(well).result == "768"); // in the child, nobody ignores them
}

TEST_CASE("a child that says what makes no sense, or nothing any more, has failed", "[scheduler][isolation]") {
    bench b;
    bool const shouts = GENERATE(false, true);
    CAPTURE(shouts);
    auto const task = run_apart(b, [shouts] {
        for (int file = 3; file != 200; ++file) {
            std::string const noise(1'000, '\xFF');
            if (shouts && ::send(file, noise.data(), noise.size(), MSG_NOSIGNAL) > 0) ::poll(nullptr, 0, -1);
            if (!shouts) ::close(file);
        }
    });
    CHECK(task.state == task_state::dead);
    CHECK(task.last_error == (shouts ? "a message of a child process is too long: stored data is corrupt; killed by "
                                       "signal 9 (SIGKILL)"
                                     : "exited with code 125 before the handler had returned"));
    CHECK(has_no_child());
}

#if !AX_TEST_SANITIZED // they need files themselves to look at an object
TEST_CASE("where the system gives no process, the task waits a little and uses nothing up", "[scheduler][isolation]") {
    bench b;
    b->on(probe, [] {}, {.isolation = apart});
    auto const id = b->submit(probe).id;
    auto const start = b.now();
    {
        struct few_files {
            rlimit before{};
            few_files() {
                ::getrlimit(RLIMIT_NOFILE, &before);
                rlimit const none{0, before.rlim_max};
                ::setrlimit(RLIMIT_NOFILE, &none);
            }
            ~few_files() { ::setrlimit(RLIMIT_NOFILE, &before); }
        } const meanwhile;
        b.poll();
    }
    CHECK(b.state(id) == task_state::ready);
    CHECK(b.get(id).run_at == start + 5s);
    CHECK(b.get(id).failures == 0);
    CHECK(contains(last_error_of(b, id), "no child process: "));
    b.run_for(6s);
    CHECK(b.state(id) == task_state::succeeded);
}
#endif

TEST_CASE("a polled scheduler kills an isolated handler at its timeout, though it waits for it itself",
          "[scheduler][isolation]") {
    ax::scheduler tasks{store_type{}, ax::options{}};
    tasks.on(probe,
             [] {
                 for (;;) ::poll(nullptr, 0, -1);
             },
             {.retry = ax::retry::none(), .timeout = 1ms, .isolation = apart});
    auto const id = tasks.submit(probe).id;
    tasks.poll(ax::system_clock{}.now());
    CHECK(tasks.find(id)->state == task_state::dead);
    CHECK(tasks.find(id)->last_error == "timeout after 1 ms: killed by signal 15 (SIGTERM)");
}

TEST_CASE("an isolation that does not exist is refused when the handler is registered", "[scheduler][isolation]") {
    bench b;
    std::string message;
    CHECK(failure_of([&] { b->on(probe, [] {}, {.isolation = static_cast<ax::isolation_level>(2)}); }, &message) ==
          invalid);
    CHECK(contains(message, "isolation of task type \"probe\""));
}
