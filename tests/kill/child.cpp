// SPDX-License-Identifier: MIT
// The program that is killed. It opens a store, runs what is due, and says on its standard output what it knows to be
// stored; its handlers keep a ledger of their own. Started as
//
//   ax_kill_child work   STORE LEDGER A B    submits tasks a-A, a-A+1, ... and b-B, b-B+1, ... until it is killed
//   ax_kill_child work   STORE LEDGER A B POINT N     likewise, and kills itself at that point, the Nth time (see
//   point) ax_kill_child drain  STORE LEDGER        ends when no task is open any more ax_kill_child hold   STORE
//   LEDGER        runs a task that never ends ax_kill_child look   STORE LEDGER        runs one other task, and ends
//   ax_kill_child retry  STORE LEDGER        lets the task that never ended go, and ends when it has run
//   ax_kill_child stuck  STORE LEDGER        runs ten tasks that never end
//   ax_kill_child guilty STORE LEDGER        runs ten tasks, and one that kills the process
//   ax_kill_child apart  STORE LEDGER        runs a task in a child process, whose handler does not end for long
//
// Its lines: "recovered N", "acknowledged KEY", "reported KEY FENCE", "started KEY", "point POINT". The ledger's: "KEY
// ATTEMPT FENCE". Tasks with an odd number also write into a table of the store's file, with commit_with().
#include <ax/ax.hpp>

#include "disk/watched_vfs.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

namespace {

inline constexpr ax::task_type<std::uint64_t> plain{"plain"};
inline constexpr ax::task_type<std::uint64_t> follow_up{"follow-up"};
inline constexpr ax::task_type<> endless{"endless"};
inline constexpr ax::task_type<> murder{"murder"};
inline constexpr ax::task_type<> isolated{"isolated"};

/// One write for each line, so that a line is there whole or not at all.
void write_line(int file, std::string const& line) {
    if (::write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) ::_exit(3);
}

void say(std::string const& line) { write_line(STDOUT_FILENO, line + '\n'); }

class ledger {
  public:
    explicit ledger(char const* path) : file_(::open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) {}
    void add(ax::context const& ctx) const {
        auto line =
            ctx.task().key + ' ' + std::to_string(ctx.attempt()) + ' ' + std::to_string(ax::to_number(ctx.fence()));
        line.resize(63, ' '); // 64 bytes never lie on two pages, and between pages alone a kill stops a write
        write_line(file_, line + '\n');
    }

  private:
    int file_;
};

void execute(sqlite3* db, std::string const& sql) {
    if (sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
        throw std::runtime_error(sqlite3_errmsg(db));
}

/// Where the process kills itself:
///
///     frame      before a write to SQLite's log: nothing, or a part of a commit is in it
///     torn       in the middle of such a write
///     flush      before the log is flushed: a commit is there and nobody was told
///     committed  after that, before anybody is told
///     copied     before a page is copied from the log into the database
///     effect     after a handler's own write in the transaction that records its success, before the record
class point {
  public:
    point(std::string_view name, std::string_view count)
        : name_(name), left_(std::strtoull(std::string(count).c_str(), nullptr, 10)), vfs_("ax-kill") {
        vfs_.before = [this](disk::request const& asked) {
            using disk::call;
            bool const log = disk::is_log(asked.path);
            if (asked.kind == call::write && log) {
                pass("frame");
                if (name_ == "torn" && is_last()) {
                    int const file = ::open(std::string(asked.path).c_str(), O_WRONLY | O_CLOEXEC);
                    if (::pwrite(file, asked.bytes, static_cast<std::size_t>(asked.count / 2), asked.offset) < 0)
                        ::_exit(5);
                    die();
                }
            }
            if (asked.kind == call::write && asked.path.ends_with(".db")) pass("copied");
            if (asked.kind == call::sync && log) pass("flush");
            return SQLITE_OK;
        };
        vfs_.after = [this](disk::request const& done) {
            if (done.kind == disk::call::sync && disk::is_log(done.path)) pass("committed");
        };
    }

    void pass(std::string_view name) {
        if (name == name_ && is_last()) die();
    }

    ax::sqlite_settings settings() const {
        ax::sqlite_settings chosen;
        chosen.vfs = vfs_.name();
        chosen.checkpoint_pages = 40;
        return chosen;
    }

  private:
    bool is_last() noexcept { return left_-- == 1; }
    [[noreturn]] void die() const {
        say("point " + name_);
        ::kill(::getpid(), SIGKILL);
        for (;;) ::pause();
    }

    std::string name_;
    std::atomic<std::uint64_t> left_;
    disk::watched_vfs vfs_;
};

/// Every kind of task in turn: at once and later, failing once, with a follow-up, in order behind others.
ax::submit_options options_of(std::string key, std::uint64_t n) {
    ax::submit_options how;
    how.key = std::move(key);
    if (n % 3 == 0) how.delay = ax::duration{static_cast<std::int64_t>(n * 7'919 % 40)};
    if (n % 4 == 0) how.route_key = "route-" + std::to_string(n % 5);
    how.priority = static_cast<ax::priority_class>(n % ax::priority_classes);
    return how;
}

int run(std::string_view mode, char** argv, int argc) {
    ledger const book{argv[3]};
    std::counting_semaphore<1'000'000> ended{0}; // successes, of any task
    std::counting_semaphore<1'000'000> room{64}; // for submits
    std::binary_semaphore never{0};

    std::optional<point> end_at;
    if (argc == 8) end_at.emplace(argv[6], argv[7]);
    ax::sqlite_storage opened{argv[2], end_at ? end_at->settings() : ax::sqlite_settings{}};
    opened.transact(ax::commit::lazy, [](ax::sqlite_storage::writer& w) {
        execute(w.handle(), "CREATE TABLE IF NOT EXISTS closed (key TEXT, twice INTEGER)"); // would take a key twice
    });
    ax::sqlite_scheduler tasks{std::move(opened), {.workers = 4}};
    tasks.on(plain,
             [&](std::uint64_t const& n, ax::context& ctx) {
                 book.add(ctx);
                 if (mode == "stuck") {
                     say("started " + ctx.task().key);
                     never.acquire();
                 }
                 if (n % 7 == 0 && ctx.task().failures == 0) throw std::runtime_error("fails once");
                 if (n % 2 == 1) {
                     auto const twice = ctx.step("twice", [&] { return 2 * n; });
                     ctx.commit_with([&end_at, key = ctx.task().key, twice](sqlite3* db) {
                         execute(db, "INSERT INTO closed VALUES ('" + key + "', " + std::to_string(twice) + ")");
                         if (end_at) end_at->pass("effect");
                     });
                 }
                 if (n % 5 == 0) ctx.submit(follow_up, n, {.key = "next-" + ctx.task().key});
                 return n;
             },
             {.retry = ax::retry::fixed(1ms)});
    tasks.on(follow_up, [&](ax::context& ctx) { book.add(ctx); });
    tasks.on(endless,
             [&](ax::context& ctx) {
                 book.add(ctx);
                 say("started " + ctx.task().key);
                 if (mode == "hold") never.acquire();
             },
             {.on_interrupt = ax::on_interrupt::hold});
    tasks.on(murder, [&](ax::context& ctx) {
        book.add(ctx);
        ::kill(::getpid(), SIGKILL);
        never.acquire();
    });
    tasks.on(isolated,
             [&](ax::context& ctx) {
                 book.add(ctx);
                 if (mode != "apart") return;
                 say("started " + ctx.task().key);
                 ::poll(nullptr, 0, 60'000);
                 say("survived");
             },
             {.isolation = ax::isolation::process});
    tasks.observe([&](ax::event const& e) {
        if (e.kind != ax::event_kind::reported || e.outcome != ax::attempt_outcome::succeeded) return;
        say("reported " + std::string(e.key) + ' ' + std::to_string(ax::to_number(e.attempt_id)));
        room.release();
        ended.release();
    });
    tasks.start();
    say("recovered " + std::to_string(tasks.health().recovered));

    auto const all_over = [&] {
        using enum ax::task_state;
        for (auto const state : {created, ready, dispatched, running, failed})
            if (!tasks.list({.state = state, .limit = 1}).empty()) return false;
        return true;
    };
    auto const drain = [&] {
        while (!all_over()) (void)ended.try_acquire_for(50ms);
    };

    if (mode == "work" && argc >= 6) {
        std::thread const single{[&, n = std::strtoull(argv[4], nullptr, 10)]() mutable {
            for (;; ++n) {
                room.acquire();
                auto const key = "a-" + std::to_string(n);
                tasks.submit(plain, n, options_of(key, n));
                say("acknowledged " + key);
            }
        }};
        for (auto n = std::strtoull(argv[5], nullptr, 10);; n += 8) {
            std::vector<std::uint64_t> some;
            for (std::uint64_t i = 0; i != 8; ++i) some.push_back(n + i);
            for (auto i = some.size(); i != 0; --i) room.acquire();
            auto const key_of = [](std::uint64_t one) { return "b-" + std::to_string(one); };
            tasks.submit_all(plain, some, [&](std::uint64_t one) { return options_of(key_of(one), one); });
            for (auto const one : some) say("acknowledged " + key_of(one));
        }
    } else if (mode == "hold") {
        tasks.submit(endless, {}, {.key = "endless"});
        never.acquire();
    } else if (mode == "apart") {
        tasks.submit(isolated, {}, {.key = "isolated"});
        never.acquire();
    } else if (mode == "look") {
        tasks.submit(plain, 1, {.key = "other"});
        ended.acquire();
    } else if (mode == "retry") {
        auto const held = tasks.find_by_key("endless");
        if (!held || tasks.retry(held->id) != ax::change_outcome::done) return 4;
        ended.acquire();
    } else if (mode == "stuck" || mode == "guilty") {
        for (std::uint64_t n = 1; n != 11; ++n) {
            if (n == 5 && mode == "guilty") tasks.submit(murder, {}, {.key = "guilty"});
            tasks.submit(plain, n, {.key = "innocent-" + std::to_string(n)});
        }
        drain();
    } else {
        drain();
    }
    tasks.stop(10s);
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    try {
        if (argc < 4) return 2;
        return run(argv[1], argv, argc);
    } catch (std::exception const& e) {
        std::fprintf(stderr, "ax_kill_child: %s\n", e.what());
        return 1;
    }
}
