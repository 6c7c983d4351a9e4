// SPDX-License-Identifier: MIT
// The wheel beside a sorted set of (deadline, sequence), which is slow and obvious.
#include "ax/wheel/timing_wheel.hpp"

#include "support/catch.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

namespace {

using ax::time_point;
using std::chrono::milliseconds;

/// What the wheel has to do, one set and one map.
class sorted_set {
  public:
    explicit sorted_set(time_point start) : now_(start) {}

    void schedule(time_point deadline, int id) {
        auto const key = std::pair(deadline, sequence_++);
        timers_.emplace(key, id);
        keys_[id] = key;
        if (deadline <= now_) next_call_.insert(key.second);
    }
    bool cancel(int id) {
        auto const found = keys_.find(id);
        if (found == keys_.end()) return false;
        timers_.erase({found->second, id});
        keys_.erase(found);
        return true;
    }
    bool reschedule(int id, time_point deadline) {
        if (!cancel(id)) return false;
        schedule(deadline, id);
        return true;
    }
    bool begin(time_point now) {
        if (now < now_) return false;
        now_ = now;
        next_call_.clear();
        return true;
    }
    /// The next timer that this call of advance() has to fire.
    std::optional<int> fire() {
        for (auto const& [key, id] : timers_) {
            if (key.first > now_) break;
            if (next_call_.count(key.second) != 0) continue;
            auto const fired = id;
            keys_.erase(fired);
            timers_.erase(timers_.find({key, fired}));
            return fired;
        }
        return std::nullopt;
    }
    void rewind(time_point now) {
        if (now < now_) now_ = now;
    }
    std::optional<time_point> next() const {
        if (timers_.empty()) return std::nullopt;
        return timers_.begin()->first.first;
    }
    time_point now() const { return now_; }
    std::size_t size() const { return timers_.size(); }
    bool contains(int id) const { return keys_.count(id) != 0; }

  private:
    using key_type = std::pair<time_point, std::uint64_t>;
    time_point now_;
    std::uint64_t sequence_ = 0;
    std::set<std::pair<key_type, int>> timers_;
    std::unordered_map<int, key_type> keys_;
    std::set<std::uint64_t> next_call_; // scheduled as overdue within the present call
};

struct interruption {};

class comparison {
  public:
    comparison(std::uint64_t seed, time_point start, std::size_t most)
        : random_(seed), most_(most), wheel_(start), model_(start) {}

    void run(int operations) {
        for (int i = 0; i != operations; ++i) {
            step();
            REQUIRE(wheel_.size() == model_.size());
            if (i % 1'009 == 0) REQUIRE(wheel_.check_invariants());
        }
        while (auto const next = wheel_.next_expiry()) advance((std::max)(*next, model_.now()));
        REQUIRE(model_.size() == 0);
        REQUIRE(wheel_.check_invariants());
    }

    std::size_t fired() const { return fired_; }

  private:
    std::uint64_t below(std::uint64_t n) { return random_() % n; }

    /// Distances on both sides of the levels' edges, of every magnitude, and some in the past.
    time_point deadline() {
        auto const now = model_.now();
        auto const edge = std::int64_t{1} << 6 * below(below(4) == 0 ? 8 : 3);
        auto const around = static_cast<std::int64_t>(below(3)) - 1;
        std::int64_t delta = static_cast<std::int64_t>(below(5'000));
        switch (below(12)) {
        case 0: delta = -static_cast<std::int64_t>(below(200)); break;
        case 1: delta = 0; break;
        case 2: delta = edge + around; break;
        case 3: delta = edge - (now.time_since_epoch().count() & (edge - 1)) + around; break;
        case 4:
            if (below(8) == 0) return (time_point::max)() - milliseconds{below(3)};
            if (below(8) == 0) return ax::latest_time;
            break;
        case 5:
            delta = static_cast<std::int64_t>(below(std::uint64_t{1} << (1 + below(below(8) == 0 ? 45 : 20))));
            break;
        case 6: return last_deadline_; // often the very same tick
        default: break;
        }
        last_deadline_ = ax::detail::saturating_add(now, milliseconds{delta});
        return last_deadline_;
    }

    void schedule() {
        auto const when = deadline();
        auto const id = static_cast<int>(handles_.size());
        handles_.push_back(wheel_.schedule(when, id));
        model_.schedule(when, id);
    }

    int any() { return static_cast<int>(handles_.size() - 1 - below((std::min)(handles_.size(), 4 * most_))); }

    void cancel() {
        if (handles_.empty()) return;
        auto const id = any();
        REQUIRE(wheel_.cancel(handles_[static_cast<std::size_t>(id)]) == model_.cancel(id));
    }

    void reschedule() {
        if (handles_.empty()) return;
        auto const id = any();
        auto const when = deadline();
        REQUIRE(wheel_.reschedule(handles_[static_cast<std::size_t>(id)], when) == model_.reschedule(id, when));
    }

    void fire(int id) {
        auto const expected = model_.fire();
        REQUIRE(expected.has_value());
        REQUIRE(id == *expected);
        ++fired_;
        if (model_.size() < most_ && below(3) == 0) schedule();
        if (below(4) == 0) cancel();
        if (below(16) == 0) reschedule();
        if (below(64) == 0) check_next();
        if (below(50) == 0) throw interruption{};
    }

    void advance(time_point now) {
        auto const moves = model_.begin(now);
        auto const before = fired_;
        try {
            auto const count = wheel_.advance(now, [&](int id) { fire(id); });
            REQUIRE(count == fired_ - before);
            if (moves) REQUIRE(!model_.fire().has_value());
            REQUIRE((moves || count == 0));
        } catch (interruption const&) {
        }
    }

    void check_next() {
        auto const next = wheel_.next_expiry();
        REQUIRE(next.has_value() == model_.next().has_value());
        if (next && model_.size() < 100) REQUIRE(*next == *model_.next());
        if (next) REQUIRE(*next <= *model_.next());
    }

    void step() {
        switch (below(16)) {
        case 0:
        case 1:
        case 2:
        case 3:
        case 4:
        case 5:
            if (model_.size() < most_) schedule();
            break;
        case 6:
        case 7:
        case 8: cancel(); break;
        case 9: reschedule(); break;
        case 10: check_next(); break;
        case 11:
        case 12: advance(model_.now() + milliseconds{below(4) == 0 ? below(20'000) : below(100)}); break;
        case 13:
            if (auto const next = wheel_.next_expiry(); next && *next < ax::latest_time)
                advance((std::max)(*next, model_.now()));
            break;
        case 14: // the clock steps
            if (below(8) == 0) advance(model_.now() - milliseconds{1 + below(100'000)});
            if (below(500) == 0) advance(model_.now() + milliseconds{below(std::uint64_t{1} << 40)});
            break;
        default:
            if (below(200) == 0) {
                auto const back = model_.now() - milliseconds{below(1'000'000)};
                wheel_.rewind(back);
                model_.rewind(back);
            }
        }
    }

    std::mt19937_64 random_;
    std::size_t most_;
    ax::timing_wheel<int> wheel_;
    sorted_set model_;
    std::vector<ax::timer_handle> handles_;
    time_point last_deadline_{};
    std::size_t fired_ = 0;
};

} // namespace

TEST_CASE("timing_wheel does what a sorted set does, over a million random operations", "[wheel]") {
    auto const seed = GENERATE(1U, 2U, 3U, 4U);
    auto const most = GENERATE(std::size_t{8}, std::size_t{90}, std::size_t{3'000});
    CAPTURE(seed, most);
    time_point const start{milliseconds{seed == 1 ? -1'000'000 : seed == 2 ? 0 : 1'700'000'000'000}};
    comparison both{seed, start, most};
    both.run(100'000);
    CHECK(both.fired() > 5'000);
}
