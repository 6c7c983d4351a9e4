// SPDX-License-Identifier: MIT
// What every test of the scheduler needs: one kind of scheduler under a manual clock, short forms, and printing.
#pragma once

#include "ax/scheduler/scheduler.hpp"
#include "ax/storage/memory.hpp"
#include "ax/testing/manual_clock.hpp"

#include "support/catch.hpp"
#include "support/instants.hpp"
#include "support/shared_storage.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// How a failed check shows what it found.
namespace std::chrono {
inline std::ostream& operator<<(std::ostream& out, ax::time_point t) {
    return out << (t - test::t0).count() << " ms after the start of 2026";
}
} // namespace std::chrono
namespace ax {
inline std::ostream& operator<<(std::ostream& out, task_id id) { return out << "task " << to_number(id); }
inline std::ostream& operator<<(std::ostream& out, fence_token f) { return out << "fence " << to_number(f); }
inline std::ostream& operator<<(std::ostream& out, task_state s) { return out << to_string(s); }
inline std::ostream& operator<<(std::ostream& out, attempt_outcome o) { return out << to_string(o); }
inline std::ostream& operator<<(std::ostream& out, event_kind k) { return out << to_string(k); }
inline std::ostream& operator<<(std::ostream& out, cancel_outcome o) { return out << static_cast<int>(o); }
inline std::ostream& operator<<(std::ostream& out, change_outcome o) { return out << static_cast<int>(o); }
inline std::ostream& operator<<(std::ostream& out, submit_outcome o) { return out << to_string(o); }
inline std::ostream& operator<<(std::ostream& out, errc e) { return out << make_error_code(e).message(); }
} // namespace ax

namespace test {

using store_type = shared_storage;
using simulated = ax::scheduler<store_type, ax::testing::manual_clock>;

/// Runs what it is given when step() is called: the loop of a host.
class queue_executor {
  public:
    void execute(ax::unique_function<void()> work) {
        std::lock_guard const guard{mutex_};
        if (refuses_) throw std::runtime_error("the loop takes no more");
        waiting_.push_back(std::move(work));
    }
    /// Runs one piece of work. False where there is none.
    bool step() {
        ax::unique_function<void()> next;
        {
            std::lock_guard const guard{mutex_};
            if (waiting_.empty()) return false;
            next = std::move(waiting_.front());
            waiting_.erase(waiting_.begin());
        }
        next();
        return true;
    }
    void drain() {
        while (step()) {
        }
    }
    void refuse(bool yes) {
        std::lock_guard const guard{mutex_};
        refuses_ = yes;
    }
    std::size_t size() const {
        std::lock_guard const guard{mutex_};
        return waiting_.size();
    }

  private:
    mutable std::mutex mutex_;
    bool refuses_ = false;
    std::vector<ax::unique_function<void()>> waiting_;
};

static_assert(ax::executor<queue_executor>);

using hosted = ax::scheduler<store_type, ax::testing::manual_clock, queue_executor>;

/// Tells the store that an attempt which a vanished process claimed had started.
inline void start_elsewhere(store_type& store, ax::task_record const& claimed, ax::time_point now) {
    ax::start_mark const mark{claimed.id, claimed.fence, now};
    store.transact(ax::commit::durable, [&](store_type::writer& w) { w.start(std::span(&mark, 1), now); });
}

} // namespace test

// Compiled once, in scheduler.test.cpp.
extern template class ax::detail::engine<test::store_type, ax::testing::manual_clock>;
extern template class ax::scheduler<test::store_type, ax::testing::manual_clock>;
extern template class ax::scheduler<test::store_type, ax::testing::manual_clock, test::queue_executor>;

namespace test {

using namespace std::chrono_literals;
using ax::attempt_outcome;
using ax::cancel_outcome;
using ax::change_outcome;
using ax::submit_outcome;
using ax::task_id;
using ax::task_state;

struct parcel {
    int number = 0;
    std::string note;
    NLOHMANN_DEFINE_TYPE_INTRUSIVE_WITH_DEFAULT(parcel, number, note)
};

inline constexpr ax::task_type<> probe{"probe"};
inline constexpr ax::task_type<> other{"other"};
inline constexpr ax::task_type<parcel> shipping{"shipping"};

/// A store, a clock, and a scheduler that the test turns by hand.
class bench {
  public:
    explicit bench(ax::options chosen = {}) : settings(std::move(chosen)) {
        if (settings.seed == 0) settings.seed = 7;
        restart();
    }

    /// The scheduler goes, and another comes up on the same store. `prepare` registers its handlers.
    void restart(std::function<void(simulated&)> const& prepare = {}) {
        tasks_.reset();
        tasks_.emplace(store, settings, clock);
        if (prepare) prepare(*tasks_);
    }

    simulated& operator*() { return *tasks_; }
    simulated* operator->() { return &*tasks_; }

    std::size_t poll() { return tasks_->poll(clock.now()); }
    std::size_t poll_after(ax::time_span step) {
        clock.advance(step);
        return poll();
    }
    /// Lets `span` pass, and polls whenever the scheduler asks for it. Returns how often.
    std::size_t run_for(ax::time_span span, std::size_t most_polls = 1'000'000) {
        auto const end = clock.now() + span.value();
        std::size_t polls = 0;
        while (polls != most_polls) {
            poll();
            ++polls;
            auto const next = tasks_->next_wakeup();
            if (!next || *next > end) break;
            if (*next > clock.now()) clock.advance(*next - clock.now());
        }
        REQUIRE(polls != 1'000'000); // a wake-up that is asked for again and again, and finds nothing
        if (end > clock.now()) clock.advance(end - clock.now());
        poll();
        return polls + 1;
    }

    /// As it is stored. Fails the test where there is none.
    ax::task_view get(task_id id) {
        auto found = tasks_->find(id);
        REQUIRE(found.has_value());
        return std::move(*found);
    }
    task_state state(task_id id) { return get(id).state; }
    std::vector<attempt_outcome> outcomes(task_id id) {
        std::vector<attempt_outcome> all;
        for (auto const& attempt : tasks_->history(id))
            if (attempt.outcome) all.push_back(*attempt.outcome);
        return all;
    }

    ax::time_point now() const { return clock.now(); }

    ax::testing::manual_clock clock;
    store_type store;
    ax::options settings;

  private:
    std::optional<simulated> tasks_;
};

/// Counts up on any thread, and lets one wait for it.
class tally {
  public:
    std::size_t operator++() {
        std::lock_guard const guard{mutex_};
        changed_.notify_all(); // under the lock: who waits may then end this object
        return ++count_;
    }
    std::size_t value() const {
        std::lock_guard const guard{mutex_};
        return count_;
    }
    /// Waits until it has come to `count`. False where that takes longer than anything should.
    bool reaches(std::size_t count, std::chrono::seconds limit = std::chrono::seconds{60}) {
        std::unique_lock lock{mutex_};
        return changed_.wait_for(lock, limit, [&] { return count_ >= count; });
    }

  private:
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t count_ = 0;
};

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

/// What the schedule "s" has left out, in occurrences by number: the n-th is planned n periods after the start.
template <class Tasks>
std::vector<std::string> skips_of(Tasks const& tasks, ax::time_point start, ax::time_span period) {
    auto const number = [&](ax::time_point nominal) { return std::to_string((nominal - start) / period.value()); };
    std::vector<std::string> all;
    for (auto const& each : tasks.schedule_skips("s").latest)
        all.push_back(number(each.first) + ".." + number(each.last) + " (" + std::to_string(each.number) + ") " +
                      each.reason);
    return all;
}

/// The code of the ax::error that `call` throws. Fails the test where it throws none.
template <class Call>
ax::errc failure_of(Call&& call, std::string* message = nullptr) {
    try {
        call();
    } catch (ax::error const& e) {
        if (message != nullptr) *message = e.what();
        return e.kind();
    }
    FAIL("no ax::error was thrown");
    return {};
}

inline ax::errc constexpr invalid = ax::errc::invalid_argument;

/// A scheduler whose handlers are run by a loop of the host's, so that time can pass while they run.
struct hosted_bench {
    ax::testing::manual_clock clock;
    store_type store;
    queue_executor loop;
    std::vector<ax::event_kind> events;
    hosted tasks;

    explicit hosted_bench(ax::options chosen = {}) : tasks(store, std::move(chosen), clock, loop) {
        tasks.observe([this](ax::event const& e) { events.push_back(e.kind); });
    }
    std::size_t poll() { return tasks.poll(clock.now()); }
    /// Time passes, and the scheduler looks.
    void pass(ax::time_span span) {
        clock.advance(span);
        poll();
    }
    /// Polls and runs the loop until nothing is left to do.
    void settle() {
        do {
            poll();
            loop.drain();
        } while (tasks.next_wakeup() <= clock.now() && tasks.next_wakeup().has_value());
        poll();
    }
    task_state state(task_id id) { return tasks.find(id)->state; }
    attempt_outcome last_outcome(task_id id) { return *tasks.history(id).back().outcome; }
};

/// Claims a task in the store for a node that then vanishes.
inline ax::task_record claim_elsewhere(store_type& store, task_id id, ax::time_point now, bool hold = false,
                                       std::uint64_t node = 0xDEAD) {
    ax::claim_answer answer;
    ax::claim_request const request{id, hold};
    store.transact(ax::commit::durable, [&](store_type::writer& w) {
        answer = w.claim(std::span(&request, 1), {ax::node_id{node}, now, now, 100});
    });
    REQUIRE(answer.claimed.size() == 1);
    return answer.claimed.front();
}

/// How many tasks the store has.
inline std::size_t stored(bench& b) { return b->list({.limit = 1'000'000}).size(); }

} // namespace test
