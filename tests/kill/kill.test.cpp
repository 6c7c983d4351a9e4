// SPDX-License-Identifier: MIT
// The promise of the whole house: the process may be killed at any instruction.
#include <ax/ax.hpp>

#include "storage/sqlite_fixture.hpp"
#include "support/catch.hpp"
#include "support/sanitizers.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

using namespace std::chrono_literals;

namespace {

using steady = std::chrono::steady_clock;

/// A running ax_kill_child and the lines that it says.
class child {
  public:
    explicit child(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), AX_KILL_CHILD);
        std::vector<char*> argv;
        for (auto& one : arguments) argv.push_back(one.data());
        argv.push_back(nullptr);
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
        id_ = ::fork();
        if (id_ < 0) throw std::runtime_error("no fork");
        if (id_ == 0) {
            ::dup2(ends[1], STDOUT_FILENO);
            ::execv(argv[0], argv.data());
            ::_exit(127);
        }
        ::close(ends[1]);
        output_ = ends[0];
    }
    child(child const&) = delete;
    child& operator=(child const&) = delete;
    ~child() {
        if (id_ > 0) end(SIGKILL);
        ::close(output_);
    }

    /// Reads on until there are `count` lines, it has ended, or `limit` is over. Returns whether there are.
    bool read_lines(std::size_t count, steady::duration limit) {
        auto const until = steady::now() + limit;
        while (lines.size() < count) {
            auto const left = std::chrono::ceil<std::chrono::milliseconds>(until - steady::now()).count();
            pollfd waiting{output_, POLLIN, 0};
            if (left <= 0 || ::poll(&waiting, 1, static_cast<int>(left)) == 0) return false;
            if (!read_some()) return false;
        }
        return true;
    }

    /// Reads on for as long as `limit`.
    void read_for(std::chrono::microseconds limit) {
        auto const until = steady::now() + limit;
        for (auto now = steady::now(); now < until; now = steady::now()) {
            auto const left = std::chrono::ceil<std::chrono::nanoseconds>(until - now);
            timespec const wait{0, left.count()};
            pollfd waiting{output_, POLLIN, 0};
            if (::ppoll(&waiting, 1, &wait, nullptr) > 0 && !read_some()) return;
        }
    }

    /// Sends a signal (0: none), reads what is left and waits for the end. Returns the status of waitpid().
    int end(int signal) {
        if (signal != 0) ::kill(id_, signal);
        while (read_some()) {
        }
        int status = 0;
        ::waitpid(id_, &status, 0);
        id_ = -1;
        return status;
    }

    std::vector<std::string> lines; ///< complete ones

  private:
    bool read_some() {
        char buffer[4096];
        auto const got = ::read(output_, buffer, sizeof buffer);
        if (got <= 0) return false;
        rest_.append(buffer, static_cast<std::size_t>(got));
        std::size_t start = 0;
        for (auto newline = rest_.find('\n'); newline != rest_.npos; newline = rest_.find('\n', start)) {
            lines.push_back(rest_.substr(start, newline - start));
            start = newline + 1;
        }
        rest_.erase(0, start);
        return true;
    }

    pid_t id_ = -1;
    int output_ = -1;
    std::string rest_;
};

bool ended_well(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }
bool was_killed(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL; }

struct run {
    std::size_t attempt = 0;
    std::uint64_t fence = 0;
};

/// The runs of each task, by its key, as the handlers have written them down.
std::map<std::string, std::vector<run>> read_ledger(std::string const& path) {
    std::map<std::string, std::vector<run>> found;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string key;
        run one;
        if (!(words >> key >> one.attempt >> one.fence)) throw std::runtime_error("ledger: " + line);
        found[key].push_back(one);
    }
    return found;
}

/// What the lines of all children come to.
struct testimony {
    std::set<std::string> acknowledged;
    std::multimap<std::string, std::uint64_t> reported; ///< the fence of each success that was reported
    std::size_t recovered = 0;
    std::uint64_t next[2] = {0, 0}; ///< behind the highest acknowledged number of a- and of b-

    void add(std::vector<std::string> const& lines) {
        for (auto const& line : lines) {
            std::istringstream words(line);
            std::string what, key;
            words >> what >> key;
            if (what == "recovered") recovered += std::stoul(key);
            if (what == "reported") {
                std::uint64_t fence = 0;
                words >> fence;
                reported.emplace(key, fence);
            }
            if (what == "acknowledged") {
                acknowledged.insert(key);
                auto& last = next[key[0] == 'a' ? 0 : 1];
                last = (std::max)(last, std::uint64_t{std::stoul(key.substr(2))} + 1);
            }
        }
    }
};

/// The table that the handlers write with commit_with().
std::multimap<std::string, std::uint64_t> read_closed(std::string const& path) {
    ax::detail::sqlite_connection db{path};
    auto const statement = db.prepare("SELECT key, twice FROM closed");
    ax::detail::sqlite_run row(db, statement.get());
    std::multimap<std::string, std::uint64_t> found;
    while (row.next()) found.emplace(row.copy(0), row.as<std::uint64_t>(1));
    return found;
}

std::size_t rounds() {
    auto const* const wanted = std::getenv("AX_KILL_ROUNDS");
    return wanted != nullptr ? std::stoul(wanted) : 50;
}

/// Lets what is left be done, and compares the ledgers of handlers, host and store with what was said.
void judge(testimony& heard, std::string const& store_path, std::string const& ledger_path) {
    child last{{"drain", store_path, ledger_path}};
    auto const status = last.end(0);
    heard.add(last.lines);
    REQUIRE(ended_well(status));

    auto const runs = read_ledger(ledger_path);
    ax::sqlite_storage const store{store_path};
    CHECK(heard.acknowledged.size() > rounds());
    CHECK(heard.recovered > 0); // else no kill has hit anything
    for (auto const& task : store.list({.state = ax::task_state::dead}, ax::now())) {
        std::string life;
        for (auto const& one : store.history(task.id))
            life += std::string(one.start ? " started " : " ") + (one.outcome ? ax::to_string(*one.outcome) : "open");
        UNSCOPED_INFO("dead: " << task.key << ":" << life << "; " << task.last_error);
    }
    CHECK(store.list({.state = ax::task_state::dead}, ax::now()).empty());

    std::size_t lost = 0, again = 0, unexplained = 0, childless = 0;
    for (auto const& key : heard.acknowledged) {
        INFO(key);
        auto const task = store.find_by_key(key);
        if (task && task->state == ax::task_state::succeeded && runs.contains(key)) continue;
        ++lost;
        UNSCOPED_INFO("lost: " << key);
    }
    CHECK(lost == 0);
    for (auto const& [key, fence] : heard.reported) {
        auto const found = runs.find(key);
        bool const repeated = found == runs.end() || heard.reported.count(key) != 1 ||
                              std::any_of(found->second.begin(), found->second.end(),
                                          [f = fence](run const& one) { return one.fence > f; });
        if (!repeated) continue;
        ++again;
        UNSCOPED_INFO("reported and run again: " << key);
    }
    CHECK(again == 0);
    for (auto const& [key, all] : runs) {
        auto const task = store.find_by_key(key);
        if (!task) {
            ++lost;
            continue;
        }
        // Whatever ran more than once was cut off by a kill, or had failed.
        auto const history = store.history(task->id);
        std::size_t ended_otherwise = 0;
        for (auto const& one : all)
            for (auto const& attempt : history)
                if (ax::to_number(attempt.id) == one.fence &&
                    (attempt.outcome == ax::attempt_outcome::crashed || attempt.outcome == ax::attempt_outcome::failed))
                    ++ended_otherwise;
        if (ended_otherwise + 1 != all.size()) {
            ++unexplained;
            UNSCOPED_INFO("ran again for no reason: " << key);
        }
        // What a success submits is stored with it.
        if (key[0] != 'n' && std::stoull(key.substr(2)) % 5 == 0) {
            auto const next = store.find_by_key("next-" + key);
            if (!next || next->state != ax::task_state::succeeded) ++childless;
        }
    }
    CHECK(lost == 0);
    CHECK(unexplained == 0);
    CHECK(childless == 0);

    // What was written with commit_with() is there once for each success, however often the handler ran.
    auto const closed = read_closed(store_path);
    std::size_t wrong = 0, odd = 0;
    for (auto const& [key, all] : runs) {
        if (key[0] == 'n') continue;
        auto const number = std::stoull(key.substr(2));
        if (number % 2 == 0) continue;
        ++odd;
        auto const found = closed.equal_range(key);
        if (closed.count(key) == 1 && found.first->second == 2 * number) continue;
        ++wrong;
        UNSCOPED_INFO(key << " was closed " << closed.count(key) << " times");
    }
    CHECK(wrong == 0);
    CHECK(closed.size() == odd);
}

} // namespace

TEST_CASE("A kill at any instant loses no acknowledged task and repeats no reported success", "[kill][threads]") {
    temporary_directory const folder;
    auto const store_path = folder.file("store.db");
    auto const ledger_path = folder.file("ledger");
    constexpr std::uint64_t seed = 20261130;
    CAPTURE(seed);
    std::mt19937_64 random{seed};

    testimony heard;
    for (std::size_t round = 0; round != rounds(); ++round) {
        CAPTURE(round);
        child victim{{"work", store_path, ledger_path, std::to_string(heard.next[0]), std::to_string(heard.next[1])}};
        // Every eighth dies while it starts, the others somewhere in their work.
        if (round % 8 == 7) {
            victim.read_for(std::chrono::microseconds{random() % 60'000});
        } else {
            REQUIRE(victim.read_lines(1 + random() % 200, 60s));
            victim.read_for(std::chrono::microseconds{random() % 4'000});
        }
        auto const status = victim.end(SIGKILL);
        heard.add(victim.lines);
        REQUIRE(was_killed(status));
    }
    judge(heard, store_path, ledger_path);
}

TEST_CASE("A kill at any point of a commit loses nothing, and effects are there once", "[kill][threads]") {
    temporary_directory const folder;
    auto const store_path = folder.file("store.db");
    auto const ledger_path = folder.file("ledger");
    constexpr std::uint64_t seed = 20261201;
    CAPTURE(seed);
    std::mt19937_64 random{seed};
    struct place {
        char const* name;
        std::uint64_t most; ///< how often it may be passed before
    };
    constexpr place places[] = {{"frame", 200},    {"torn", 200},  {"flush", 30},
                                {"committed", 30}, {"copied", 40}, {"effect", 20}};

    testimony heard;
    std::map<std::string, std::size_t> hit;
    for (std::size_t round = 0; round != rounds(); ++round) {
        auto const& where = places[round % std::size(places)];
        auto const count = std::to_string(1 + random() % where.most);
        CAPTURE(round, where.name, count);
        child victim{{"work", store_path, ledger_path, std::to_string(heard.next[0]), std::to_string(heard.next[1]),
                      where.name, count}};
        victim.read_lines(5'000, 60s); // until it has killed itself
        auto const status = victim.end(SIGKILL);
        heard.add(victim.lines);
        REQUIRE(was_killed(status));
        for (auto const& line : victim.lines)
            if (line.starts_with("point ")) ++hit[line.substr(6)];
    }
    std::size_t hits = 0;
    for (auto const& where : places) {
        INFO(where.name);
        CHECK(hit[where.name] > 0);
        hits += hit[where.name];
    }
    CHECK(hits + hits / 10 >= rounds());
    judge(heard, store_path, ledger_path);
}

TEST_CASE("A task with on_interrupt hold waits for a person after a kill", "[kill][threads]") {
    temporary_directory const folder;
    auto const store_path = folder.file("store.db");
    auto const ledger_path = folder.file("ledger");
    {
        child victim{{"hold", store_path, ledger_path}};
        REQUIRE(victim.read_lines(2, 60s)); // "recovered 0", "started endless"
        REQUIRE(was_killed(victim.end(SIGKILL)));
        CHECK(victim.lines.at(1) == "started endless");
    }
    child other{{"look", store_path, ledger_path}};
    REQUIRE(ended_well(other.end(0)));
    {
        ax::sqlite_storage const store{store_path};
        auto const held = store.find_by_key("endless");
        REQUIRE(held);
        CHECK(held->state == ax::task_state::ready);
        CHECK(held->held);
        CHECK(held->interruptions == 1);
        CHECK(read_ledger(ledger_path).at("endless").size() == 1);
        CHECK(read_ledger(ledger_path).at("other").size() == 1); // nobody else waits with it
    }
    child third{{"retry", store_path, ledger_path}};
    REQUIRE(ended_well(third.end(0)));
    ax::sqlite_storage const store{store_path};
    CHECK(store.find_by_key("endless")->state == ax::task_state::succeeded);
    CHECK(read_ledger(ledger_path).at("endless").size() == 2);
}

TEST_CASE("A task that kills its process ends as poison, and its neighbours do not", "[kill][threads]") {
    temporary_directory const folder;
    auto const store_path = folder.file("store.db");
    auto const ledger_path = folder.file("ledger");
    std::size_t deaths = 0;
    for (;;) {
        child one{{"guilty", store_path, ledger_path}};
        auto const status = one.end(0);
        if (ended_well(status)) break;
        REQUIRE(was_killed(status));
        REQUIRE(++deaths < 20);
    }
    // Two deaths among others make it a suspect, three alone prove it.
    CHECK(deaths == 5);
    ax::sqlite_storage const store{store_path};
    CHECK(store.find_by_key("guilty")->state == ax::task_state::dead);
    CHECK(read_ledger(ledger_path).at("guilty").size() == deaths);
    for (int n = 1; n != 11; ++n) {
        CAPTURE(n);
        CHECK(store.find_by_key("innocent-" + std::to_string(n))->state == ax::task_state::succeeded);
    }
}

TEST_CASE("Deaths soon after the start are held against no task", "[kill][threads]") {
    temporary_directory const folder;
    auto const store_path = folder.file("store.db");
    auto const ledger_path = folder.file("ledger");
    for (int death = 0; death != 8; ++death) {
        child one{{"stuck", store_path, ledger_path}};
        // In the first two, tasks are cut off among others. From then on they are suspects, and in so short a life no
        // lonely run may begin.
        if (death < 2)
            REQUIRE(one.read_lines(2, 60s)); // "recovered", "started"
        else
            one.read_lines(99, 100ms);
        REQUIRE(was_killed(one.end(SIGKILL)));
    }
    child last{{"drain", store_path, ledger_path}};
    REQUIRE(ended_well(last.end(0)));
    ax::sqlite_storage const store{store_path};
    CHECK(store.list({.state = ax::task_state::dead}, ax::now()).empty());
    for (int n = 1; n != 11; ++n) {
        CAPTURE(n);
        CHECK(store.find_by_key("innocent-" + std::to_string(n))->state == ax::task_state::succeeded);
    }
}

#if !AX_TEST_SANITIZED

TEST_CASE("A handler's child process dies with the process of the scheduler, and its task runs again", "[kill]") {
    temporary_directory const folder;
    auto const store_path = folder.file("store.db");
    auto const ledger_path = folder.file("ledger");
    {
        child victim{{"apart", store_path, ledger_path}};
        REQUIRE(victim.read_lines(2, 60s)); // "recovered 0", "started isolated"
        CHECK(victim.lines.at(1) == "started isolated");
        REQUIRE(was_killed(victim.end(SIGKILL))); // reads on until nobody is left who could write
        CHECK(victim.lines.size() == 2);
    }
    child last{{"drain", store_path, ledger_path}};
    REQUIRE(ended_well(last.end(0)));
    ax::sqlite_storage const store{store_path};
    auto const task = store.find_by_key("isolated");
    REQUIRE(task);
    CHECK(task->state == ax::task_state::succeeded);
    CHECK(task->interruptions == 1);
    CHECK(task->failures == 0);
    CHECK(read_ledger(ledger_path).at("isolated").size() == 2);
}

#endif
