// SPDX-License-Identifier: MIT
// Closes every order that is not paid in time, whatever happens to the process: see --help.
#include "orders_file.hpp"

#include <ax/ax.hpp>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <stdexcept>
#include <unordered_set>

using namespace std::chrono_literals;

namespace {

char const* const usage =
    R"(usage: order_timeouts FILE|- [options]          close the orders of a file when they are due
       order_timeouts --check FILE|- [options]  afterwards: was every order closed, and which one twice?

FILE has one order a line: its id, the instant at which it was placed (UTC, ISO 8601), and the seconds that it may stay
unpaid. An order is due when they are over. Start the program again with the same files after a crash: it goes on.

The instants of a file lie in the past. So the first start moves the whole file: its first order becomes due `lead`
after that start, and all others keep their distance from it. How far that was is kept in the database, and every later
start moves the file as far. With --as-written nothing is moved, and what is over is closed at once.

  --db PATH        the database (orders.db)
  --ledger PATH    where closing an order leaves its line (orders.ledger)
  --lead SECONDS   see above (3)
  --as-written     see above
  --workers N      handlers at work at once (4)

Exit code: 0 all is well, 1 an order is not closed or a check failed, 2 the arguments or a line of the file are wrong
(all such lines are named, and nothing is submitted).
)";

struct close_order {
    std::string id;
    std::int64_t due = 0; ///< milliseconds since 1970
    NLOHMANN_DEFINE_TYPE_INTRUSIVE_WITH_DEFAULT(close_order, id, due)
};
inline constexpr ax::task_type<close_order> closing{"close-order"};

/// How far the file is moved, in milliseconds. It is kept as a task: no handler ever takes it, so it stays what the
/// first submit under its key has made it.
inline constexpr ax::task_type<std::int64_t> file_shift{"file-shift"};

struct arguments {
    std::string file, db = "orders.db", ledger = "orders.ledger";
    ax::duration lead = 3s;
    std::size_t workers = 4;
    bool as_written = false, check = false;
};

struct wrong_usage : std::runtime_error {
    using std::runtime_error::runtime_error;
};

std::int64_t to_number(std::string_view text, std::int64_t most) {
    std::int64_t value = 0;
    auto const [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc{} || end != text.data() + text.size() || value < 0 || value > most)
        throw wrong_usage("\"" + std::string(text) + "\" is no number from 0 to " + std::to_string(most));
    return value;
}

arguments read_arguments(int argc, char** argv) {
    arguments chosen;
    for (int i = 1; i < argc; ++i) {
        std::string_view const word = argv[i];
        auto const value = [&] {
            if (++i == argc) throw wrong_usage(std::string(word) + " needs a value");
            return std::string(argv[i]);
        };
        if (word == "--db")
            chosen.db = value();
        else if (word == "--ledger")
            chosen.ledger = value();
        else if (word == "--lead")
            chosen.lead = std::chrono::seconds{to_number(value(), 86'400)};
        else if (word == "--workers")
            chosen.workers = static_cast<std::size_t>(to_number(value(), 1'000));
        else if (word == "--as-written")
            chosen.as_written = true;
        else if (word == "--check")
            chosen.check = true;
        else if (word.starts_with("--"))
            throw wrong_usage("there is no option " + std::string(word));
        else if (chosen.file.empty())
            chosen.file = word;
        else
            throw wrong_usage("one file is enough");
    }
    if (chosen.file.empty()) throw wrong_usage("which file?");
    return chosen;
}

/// The ledger: a line for each order that was closed, written by the handler itself and by nothing else, so that it
/// tells what has really been done. Each line is one write of 128 bytes: a kill cannot cut it in two, since the kernel
/// is interrupted between pages only.
class ledger {
  public:
    explicit ledger(std::string const& path)
        : file_(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) {
        if (file_ < 0) throw std::runtime_error(path + ": " + std::strerror(errno));
    }
    ledger(ledger const&) = delete;
    ledger& operator=(ledger const&) = delete;
    ~ledger() { ::close(file_); }

    void add(std::string const& text) const {
        char line[128];
        std::fill(std::begin(line), std::end(line), ' ');
        line[sizeof line - 1] = '\n';
        text.copy(line, sizeof line - 1);
        if (::write(file_, line, sizeof line) != static_cast<ssize_t>(sizeof line))
            throw std::runtime_error(std::string("the ledger: ") + std::strerror(errno));
    }

  private:
    int file_;
};

/// Which orders are still open. Their tasks end while they are being submitted, too.
class open_orders {
  public:
    void add(ax::submitted const& task) {
        std::lock_guard const guard{mutex_};
        if (!ax::is_terminal(task.state) && !ended_.contains(task.id)) open_.insert(task.id);
    }
    void ended(ax::task_id id) {
        std::lock_guard const guard{mutex_};
        ended_.insert(id);
        open_.erase(id);
    }
    std::size_t size() const {
        std::lock_guard const guard{mutex_};
        return open_.size();
    }

  private:
    mutable std::mutex mutex_;
    std::unordered_set<ax::task_id> open_, ended_;
};

std::int64_t since_1970(ax::time_point t) { return t.time_since_epoch().count(); }

std::string key_of(std::string const& id) { return "close-" + id; }

bool ends_the_task(ax::attempt_outcome outcome) {
    using enum ax::attempt_outcome;
    return outcome == succeeded || outcome == exhausted || outcome == cancelled || outcome == skipped ||
           outcome == expired;
}

/// What the ledger holds.
struct ledger_line {
    std::string id;
    std::size_t attempt = 0;
    std::uint64_t fence = 0;
    std::int64_t due = 0, started = 0;
};

struct ledger_text {
    std::vector<ledger_line> lines;
    std::vector<std::int64_t> starts; ///< of the process
    std::size_t recovered = 0;
    std::size_t unreadable = 0;
};

ledger_text read_ledger(std::string const& path) {
    std::ifstream in(path);
    if (!in) throw wrong_usage("cannot read " + path);
    ledger_text found;
    for (std::string line; std::getline(in, line);) {
        ledger_line one;
        char id[64] = {};
        std::size_t recovered = 0;
        long long due = 0, started = 0;
        unsigned long long fence = 0;
        if (std::sscanf(line.c_str(), "# start %lld recovered %zu", &started, &recovered) == 2) {
            found.starts.push_back(started);
            found.recovered += recovered;
        } else if (std::sscanf(line.c_str(), "%63s %zu %llu %lld %lld", id, &one.attempt, &fence, &due, &started) ==
                   5) {
            found.lines.push_back({id, one.attempt, fence, due, started});
        } else {
            ++found.unreadable;
        }
    }
    return found;
}

void print_lateness(ledger_text const& done) {
    std::vector<std::int64_t> all, awake;
    for (auto const& line : done.lines) {
        all.push_back(line.started - line.due);
        // An order that was due while no process ran is late by the length of that pause, and by the queue behind it.
        auto const start = std::upper_bound(done.starts.begin(), done.starts.end(), line.started);
        if (start == done.starts.begin() || *(start - 1) <= line.due) awake.push_back(all.back());
    }
    auto const print = [](char const* which, std::vector<std::int64_t>& late) {
        if (late.empty()) return;
        std::sort(late.begin(), late.end());
        std::printf("lateness of %s: p50 %lld ms, p99 %lld ms, worst %lld ms (%zu runs)\n", which,
                    static_cast<long long>(late[late.size() / 2]),
                    static_cast<long long>(late[late.size() - 1 - late.size() / 100]),
                    static_cast<long long>(late.back()), late.size());
    };
    print("all", all);
    if (awake.size() != all.size()) print("those due while it ran", awake);
}

/// Judges by the ledger what has been done, and by the store why any of it was done twice.
int check(arguments const& chosen, std::vector<orders::order> const& all) {
    auto const done = read_ledger(chosen.ledger);
    ax::sqlite_storage const store{chosen.db};
    std::map<std::string, std::vector<ledger_line>, std::less<>> by_order;
    for (auto const& line : done.lines) by_order[line.id].push_back(line);

    std::size_t missing = 0, repeated = 0, unexplained = 0, wrong = 0, early = 0;
    auto const complain = [](std::size_t& count, std::string const& id, char const* what) {
        if (++count <= 10) std::fprintf(stderr, "order %s: %s\n", id.c_str(), what);
    };
    for (auto const& order : all) {
        auto const found = by_order.find(order.id);
        if (found == by_order.end()) {
            complain(missing, order.id, "was never closed");
            continue;
        }
        auto const& runs = found->second;
        for (auto const& run : runs)
            if (run.started < run.due) complain(early, order.id, "was closed before it was due");
        auto const task = store.find_by_key(key_of(order.id));
        if (!task || task->state != ax::task_state::succeeded) complain(wrong, order.id, "is not recorded as closed");
        if (runs.size() == 1 || !task) continue;
        ++repeated;
        // Every run but one must be an attempt that a crash cut off after it had written its line.
        auto const attempts = store.history(task->id);
        auto const crashed = [&](ledger_line const& run) {
            return std::any_of(attempts.begin(), attempts.end(), [&](ax::attempt_view const& a) {
                return ax::to_number(a.id) == run.fence && a.outcome == ax::attempt_outcome::crashed;
            });
        };
        auto const cut_off = static_cast<std::size_t>(std::count_if(runs.begin(), runs.end(), crashed));
        if (cut_off + 1 != runs.size()) complain(unexplained, order.id, "ran again without a crash between");
    }
    for (auto const& order : all) by_order.erase(order.id);
    for (auto const& [id, runs] : by_order) complain(wrong, id, "is no order of this file");
    if (done.unreadable != 0) std::fprintf(stderr, "%zu lines of the ledger cannot be read\n", done.unreadable);

    std::printf("%zu orders, %zu closed, %zu missing; starts of the program: %zu\n", all.size(), all.size() - missing,
                missing, done.starts.size());
    std::printf("recovered after a kill: %zu tasks; of these %zu had been closed and were closed again\n",
                done.recovered, repeated);
    print_lateness(done);
    bool const well = missing + unexplained + wrong + early + done.unreadable == 0;
    std::puts(well ? "check: passed" : "check: FAILED");
    return well ? 0 : 1;
}

/// Blocks the signals that end or wake the program: they are waited for instead.
sigset_t block_signals() {
    sigset_t watched;
    sigemptyset(&watched);
    for (auto const s : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&watched, s);
    pthread_sigmask(SIG_BLOCK, &watched, nullptr);
    return watched;
}

int run(arguments const& chosen, std::vector<orders::order> const& all) {
    auto const watched = block_signals(); // before there are other threads
    ledger const book{chosen.ledger};
    open_orders open;
    std::atomic<std::size_t> closed{0};

    ax::sqlite_scheduler tasks{ax::sqlite_storage{chosen.db}, {.workers = chosen.workers}};
    tasks.on(closing, [&](close_order const& order, ax::context& ctx) {
        book.add(order.id + ' ' + std::to_string(ctx.attempt()) + ' ' + std::to_string(ax::to_number(ctx.fence())) +
                 ' ' + std::to_string(order.due) + ' ' + std::to_string(since_1970(ax::now())));
        ++closed;
    });
    tasks.observe([&](ax::event const& e) {
        if (e.kind != ax::event_kind::reported || !e.outcome || !ends_the_task(*e.outcome)) return;
        open.ended(e.id);
        if (open.size() == 0) ::kill(::getpid(), SIGUSR1);
    });

    auto first_due = (ax::time_point::max)();
    for (auto const& order : all) first_due = (std::min)(first_due, order.due());
    std::int64_t shift = 0;
    if (!chosen.as_written && !all.empty()) {
        auto const wanted = since_1970(ax::now()) + chosen.lead.count() - since_1970(first_due);
        auto const kept = tasks.submit(file_shift, wanted, {.key = "file-shift"});
        shift = std::stoll(tasks.find(kept.id)->payload);
    }
    tasks.start();
    auto const recovered = tasks.health().recovered;
    book.add("# start " + std::to_string(since_1970(ax::now())) + " recovered " + std::to_string(recovered));
    if (recovered != 0) std::printf("recovered %zu tasks that were in flight when the process ended\n", recovered);

    std::size_t submitted = 0;
    for (std::size_t from = 0; from < all.size(); from += 1'000) {
        std::vector<close_order> some;
        for (auto i = from; i != (std::min)(from + 1'000, all.size()); ++i)
            some.push_back({all[i].id, since_1970(all[i].due()) + shift});
        for (auto const& answer : tasks.submit_all(closing, some, [](close_order const& o) {
                 return ax::submit_options{.key = key_of(o.id), .run_at = ax::time_point{ax::duration{o.due}}};
             })) {
            open.add(answer);
            if (answer.outcome == ax::submit_outcome::inserted) ++submitted;
        }
    }
    std::printf("%zu orders: %zu submitted, %zu known already; %zu are open\n", all.size(), submitted,
                all.size() - submitted, open.size());
    std::fflush(stdout);

    bool stopped = false;
    while (open.size() != 0 && !stopped) {
        timespec const limit{1, 0};
        auto const signal = ::sigtimedwait(&watched, nullptr, &limit);
        stopped = signal == SIGINT || signal == SIGTERM;
    }
    tasks.stop(10s);
    if (stopped) {
        std::printf("stopped; %zu orders are open and stay in %s\n", open.size(), chosen.db.c_str());
        return 0;
    }
    std::size_t failed = tasks.list({.state = ax::task_state::dead, .type = std::string(closing.name)}).size();
    std::printf("closed %zu orders in this run\n", closed.load());
    return failed == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
    try {
        if (argc == 2 && std::string_view(argv[1]) == "--help") return std::fputs(usage, stdout), 0;
        auto const chosen = read_arguments(argc, argv);
        auto const all = orders::load(chosen.file);
        if (!all) return 2;
        return chosen.check ? check(chosen, *all) : run(chosen, *all);
    } catch (wrong_usage const& e) {
        std::fprintf(stderr, "order_timeouts: %s; see --help\n", e.what());
        return 2;
    } catch (orders::unreadable const& e) {
        std::fprintf(stderr, "order_timeouts: %s; see --help\n", e.what());
        return 2;
    } catch (std::exception const& e) {
        std::fprintf(stderr, "order_timeouts: %s\n", e.what());
        return 1;
    }
}
