// SPDX-License-Identifier: MIT
// Types with several resources, tags of which several are limited, and rates, against a model that keeps nothing but
// who is in flight and when each began: whenever all that was named has been tried, no task that waits could run.
#pragma once

#include "conformance/limits.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace conformance {

template <class Fixture>
class combined_limits {
  public:
    explicit combined_limits(std::uint32_t seed) : random_(seed) {
        for (auto const* name : {"gpu", "disk", "line"}) {
            caps_[name].most = 1 + below(4);
            w.set_resource(name, caps_[name].most);
        }
        for (auto const* name : {"plain", "one", "two", "three"}) types_.push_back(w.type(name));
        for (std::size_t i = 0; i != types_.size(); ++i) {
            std::vector<ax::resource_need> needs;
            std::size_t wanted = i;
            for (auto const* name : {"gpu", "disk", "line"})
                if (wanted != 0 && (one_in(2) || i == 3)) {
                    needs.push_back({name, 1 + below(caps_[name].most)});
                    needs_[i].emplace_back(name, needs.back().amount);
                    --wanted;
                }
            auto const name = "type " + std::to_string(i);
            w.limit_type(types_[i], some_limit(name), needs);
            needs_[i].emplace_back(name, 1);
        }
        for (auto const* tag : {"a", "b", "c", "d"}) w.limit_tag(tag, some_limit(tag));
    }

    void live(int steps) {
        for (int i = 0; i != steps; ++i) {
            now_ += one_in(2) ? ax::duration{0} : ax::duration{static_cast<std::int64_t>(below(700))};
            if (i < steps * 3 / 4) change();
            for (auto left = below(4); left != 0 && !flying_.empty(); --left) land(below(flying_.size()));
            try_all();
            if constexpr (Fixture::durable) {
                if (one_in(60)) restart();
            }
            look();
        }
    }

    /// No more comes in: all come to their end by what is named.
    void end() {
        for (int rounds = 0; !named_.empty() || !flying_.empty(); ++rounds) {
            REQUIRE(rounds < 20'000);
            while (!flying_.empty()) land(0);
            auto next = ax::latest_time;
            for (auto const& [id, at] : named_) next = (std::min)(next, at);
            if (!named_.empty()) now_ = (std::max)(now_, next);
            try_all();
        }
        for (auto const& [id, what] : tasks_) {
            CAPTURE(id);
            REQUIRE(ax::is_terminal(w.state(id)));
        }
        CHECK(w.store.waiting({}, 1'000, now_).due.empty());
        CHECK(w.store.verify().empty());
    }

    std::size_t seen_waiting = 0;
    std::size_t seen_in_line = 0; ///< tasks that wait though one of their limits has room

  private:
    struct cap {
        std::size_t most = 0;      ///< 0: any number
        std::int64_t interval = 0; ///< milliseconds for a token; 0: no rate
        std::int64_t burst = 0;
        std::int64_t level = 0; ///< tokens, in milliseconds
        ax::time_point as_of = t0;
        std::size_t held = 0;
    };
    struct about {
        std::size_t type = 0;
        std::vector<std::string> tags;
        ax::time_point run_at{};
    };

    std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
    bool one_in(std::size_t n) { return below(n) == 0; }

    limit some_limit(std::string const& name) {
        limit how;
        auto& mine = caps_[name];
        if (!one_in(4)) how.concurrency = mine.most = 1 + below(3);
        if (one_in(3)) {
            mine.interval = static_cast<std::int64_t>(1 + below(900));
            mine.burst = static_cast<std::int64_t>(1 + below(3));
            mine.level = mine.burst * mine.interval;
            how.rate = rate{1, ax::duration{mine.interval}, static_cast<std::size_t>(mine.burst)};
        }
        return how;
    }

    std::vector<std::pair<std::string, std::size_t>> needs_of(about const& task) {
        auto needs = needs_[task.type];
        for (auto const& tag : task.tags) needs.emplace_back(tag, 1);
        return needs;
    }

    void change() {
        if (one_in(2)) submit();
        if (one_in(12) && !tasks_.empty()) cancel();
        if (one_in(20)) {
            auto const* const name = one_in(2) ? "gpu" : "disk";
            std::size_t least = 1;
            for (auto const& [type, needs] : needs_)
                for (auto const& [what, amount] : needs)
                    if (what == name) least = (std::max)(least, amount);
            caps_[name].most = least + below(3);
            take(w.set_resource(name, caps_[name].most, now_));
        }
    }

    void submit() {
        std::vector<ax::new_task> made(1 + below(8));
        std::vector<about> what;
        for (auto& task : made) {
            auto const type = below(types_.size());
            task.type = types_[type];
            task.run_at = now_ - ax::duration{static_cast<std::int64_t>(below(300))};
            for (auto const* tag : {"a", "b", "c", "d", "free"})
                if (one_in(3)) task.tags.emplace_back(tag);
            what.push_back({type, task.tags, *task.run_at});
        }
        auto const answers = w.insert(made, now_);
        for (std::size_t i = 0; i != made.size(); ++i) {
            tasks_[answers[i].id] = what[i];
            open_.insert(answers[i].id);
        }
        take(w.due);
    }

    void cancel() {
        auto const id = std::next(tasks_.begin(), static_cast<std::ptrdiff_t>(below(tasks_.size())))->first;
        auto const answer = w.cancel(id, now_);
        if (answer.outcome == ax::change_outcome::done) open_.erase(id);
        take(answer.due);
    }

    void take(ax::alarms const& due) {
        for (auto const& each : due) {
            auto const [at, added] = named_.emplace(each.id, each.run_at);
            if (!added) at->second = (std::min)(at->second, each.run_at);
        }
    }

    /// Claims what was named and is due, in any order, until nothing is.
    void try_all() {
        for (int rounds = 0;; ++rounds) {
            REQUIRE(rounds < 10'000); // else they are named for ever
            ids due;
            for (auto const& [id, at] : named_)
                if (at <= now_) due.push_back(id);
            if (due.empty()) return;
            std::shuffle(due.begin(), due.end(), random_);
            if (due.size() > 6) due.resize(6);
            for (auto const id : due) named_.erase(id);
            auto const answer = w.claim_all(due, now_);
            for (auto const& task : answer.claimed) begin(task);
            take(answer.due);
        }
    }

    void begin(ax::task_record const& task) {
        for (auto const& [name, amount] : needs_of(tasks_.at(task.id))) {
            auto& mine = caps_[name];
            mine.held += amount;
            if (mine.interval == 0) continue;
            pour(mine);
            REQUIRE(mine.level >= mine.interval);
            mine.level -= mine.interval;
        }
        open_.erase(task.id);
        flying_.push_back(task);
    }

    void pour(cap& mine) const {
        mine.level = (std::min)(mine.level + (now_ - mine.as_of).count(), mine.burst * mine.interval);
        mine.as_of = now_;
    }

    void land(std::size_t at) {
        auto const task = flying_[at];
        flying_.erase(flying_.begin() + static_cast<std::ptrdiff_t>(at));
        for (auto const& [name, amount] : needs_of(tasks_.at(task.id))) caps_[name].held -= amount;
        take(w.finish(task, attempt_outcome::succeeded, now_).due);
    }

    bool has_room(std::string const& name, std::size_t amount) {
        auto& mine = caps_[name];
        if (mine.most != 0 && mine.held + amount > mine.most) return false;
        if (mine.interval != 0) pour(mine);
        return mine.interval == 0 || mine.level >= mine.interval;
    }

    /// All that was named has been tried.
    void look() {
        for (auto const id : open_) {
            auto const& what = tasks_.at(id);
            if (!w.waits(id)) continue;
            ++seen_waiting;
            auto const needs = needs_of(what);
            auto const fit = std::count_if(needs.begin(), needs.end(),
                                           [&](auto const& need) { return has_room(need.first, need.second); });
            if (fit > 0) ++seen_in_line;
            if (static_cast<std::size_t>(fit) == needs.size()) {
                CAPTURE(id, w.waits_for(id));
                FAIL("it could run, and nobody tries it");
            }
        }
    }

    void restart() {
        w.store = w.fixture.reopen(std::move(w.store));
        named_.clear();
        for (auto const type : types_)
            take(w.store.upcoming({{}, ax::make_lane(type, ax::priority::normal), {}}, ax::latest_time, 100'000));
        take(w.store.waiting({}, 1'000, now_).due);
        try_all();
    }

    limit_bench<Fixture> w;
    std::mt19937 random_;
    std::vector<ax::type_number> types_;
    std::map<std::size_t, std::vector<std::pair<std::string, std::size_t>>> needs_;
    std::map<std::string, cap> caps_;
    std::map<ax::task_id, about> tasks_;
    std::set<ax::task_id> open_; ///< neither in flight nor over
    std::map<ax::task_id, ax::time_point> named_;
    std::vector<ax::task_record> flying_;
    ax::time_point now_ = t0;
};

template <class Fixture>
void limit_combinations(std::uint32_t seed, int steps = 250) {
    CAPTURE(seed);
    combined_limits<Fixture> life(seed);
    life.live(steps);
    life.end();
    CHECK(life.seen_waiting > 100);
    CHECK(life.seen_in_line > 50);
}

} // namespace conformance
