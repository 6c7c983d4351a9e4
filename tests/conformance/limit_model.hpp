// SPDX-License-Identifier: MIT
// Limits against counters that know nothing of how they are kept: a random life in which tasks are claimed only when
// the storage has named them. No limit is ever exceeded, those with equal needs come in order, and in the end nobody is
// left.
#pragma once

#include "conformance/limits.hpp"

#include <map>
#include <random>
#include <set>
#include <tuple>

namespace conformance {

template <class Fixture>
class limit_life {
  public:
    explicit limit_life(std::uint32_t seed) : random_(seed) {
        types_ = {w.probe, w.type("other"), w.type("third")};
        w.set_resource("gpu", 4);
        define("type:probe", {3, {}});
        define("type:other", {{}, rate{3, 1s, 2}});
        define("type:third", {});
        for (auto const* tag : {"a", "b", "c"}) define(std::string("tag:") + tag, some_limit());
        caps_["gpu"] = {4, {}};
    }

    void live(int steps) {
        for (int i = 0; i != steps; ++i) {
            now_ += one_in(3) ? ax::duration{0} : ax::duration{static_cast<std::int64_t>(below(400))};
            if (one_in(4)) submit();
            if (one_in(60)) define(std::string("tag:") + static_cast<char>('a' + below(3)), some_limit());
            if constexpr (Fixture::durable) {
                if (one_in(150)) restart();
            }
            ring();
            while (!flying_.empty() && one_in(2)) land(below(flying_.size()), one_in(5));
        }
    }

    /// No more comes in: everything has to come to its end by what the storage names.
    void end() {
        for (int rounds = 0; !alarms_.empty() || !flying_.empty(); ++rounds) {
            REQUIRE(rounds < 20'000);
            while (!flying_.empty()) land(0, false);
            if (!alarms_.empty()) now_ = (std::max)(now_, std::get<0>(*alarms_.begin()));
            ring();
        }
        for (auto const& [id, what] : tasks_) {
            CAPTURE(id);
            REQUIRE(w.state(id) == task_state::succeeded);
        }
        for (auto const& each : w.store.limits()) CHECK(each.used == 0);
        CHECK(w.store.waiting({}, 1'000, now_).due.empty());
    }

    std::size_t started = 0;
    std::size_t waited = 0; ///< claims that took nothing

  private:
    struct flight {
        ax::task_record record;
        std::vector<std::pair<std::string, std::size_t>> holds;
    };
    struct about {
        ax::lane_id lane{};
        std::vector<std::string> tags;
        ax::time_point run_at{};
        bool begun = false;
    };
    using bell = std::tuple<ax::time_point, ax::lane_id, ax::time_point, ax::task_id>;

    std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
    bool one_in(std::size_t n) { return below(n) == 0; }

    limit some_limit() {
        limit how;
        if (one_in(6)) return how;
        if (!one_in(3)) how.concurrency = 1 + below(3);
        if (one_in(2))
            how.rate = rate{1 + below(4), ax::duration{static_cast<std::int64_t>(1 + below(1'500))}, 1 + below(3)};
        return how;
    }

    void define(std::string const& name, limit const& how) {
        caps_[name] = how;
        begun_[name].clear(); // what the former rate allowed says nothing of the new one
        if (name.starts_with("tag:"))
            take(w.limit_tag(name.substr(4), how, now_));
        else if (name == "type:third")
            take(w.limit_type(types_[2], how, {{"gpu", 2}}, now_));
        else
            take(w.limit_type(name == "type:probe" ? types_[0] : types_[1], how,
                              name == "type:probe" ? std::vector<ax::resource_need>{{"gpu", 1}}
                                                   : std::vector<ax::resource_need>{},
                              now_));
    }

    void submit() {
        std::vector<ax::new_task> made(1 + below(6));
        for (auto& task : made) {
            task.type = types_[below(3)];
            task.run_at = now_ + ax::duration{static_cast<std::int64_t>(below(300))};
            task.priority = one_in(4) ? ax::priority::high : ax::priority::normal;
            for (auto const* tag : {"a", "b", "c"})
                if (one_in(3)) task.tags.emplace_back(tag);
        }
        auto const answers = w.insert(made, now_);
        for (std::size_t i = 0; i != made.size(); ++i)
            tasks_[answers[i].id] = {ax::make_lane(made[i].type, made[i].priority), made[i].tags, *made[i].run_at};
        take(w.due);
    }

    void take(ax::alarms const& due) {
        for (auto const& each : due) {
            auto const& what = tasks_.at(each.id);
            alarms_.emplace((std::max)(each.run_at, now_), what.lane, what.run_at, each.id);
        }
    }

    /// What is due is claimed, lane by lane in order, a few at a time.
    void ring() {
        while (!alarms_.empty() && std::get<0>(*alarms_.begin()) <= now_) {
            ids wanted;
            while (!alarms_.empty() && std::get<0>(*alarms_.begin()) <= now_ && wanted.size() < 5) {
                wanted.push_back(std::get<3>(*alarms_.begin()));
                alarms_.erase(alarms_.begin());
            }
            auto const answer = w.claim_all(wanted, now_);
            waited += wanted.size() - answer.claimed.size();
            for (auto const& task : answer.claimed) begin(task);
            take(answer.due);
        }
    }

    void begin(ax::task_record const& task) {
        flight mine{task, {}};
        auto const type = task.type == "probe" ? 0 : task.type == "other" ? 1 : 2;
        mine.holds.emplace_back("type:" + task.type, 1);
        if (type == 0) mine.holds.emplace_back("gpu", 1);
        if (type == 2) mine.holds.emplace_back("gpu", 2);
        for (auto const& tag : task.tags) mine.holds.emplace_back("tag:" + tag, 1);
        for (auto const& [name, amount] : mine.holds) {
            held_[name] += amount;
            auto const& cap = caps_[name];
            CAPTURE(name, task.id);
            // A limit that was lowered, or came later, does not count what was in flight then.
            if (cap.concurrency && !defined_later(name)) REQUIRE(held_[name] <= *cap.concurrency);
            if (!cap.rate) continue;
            auto& begun = begun_[name];
            begun.push_back((std::max)(now_, task.run_at));
            auto const burst = cap.rate->burst != 0 ? cap.rate->burst : cap.rate->count;
            for (std::size_t i = 0; i < begun.size(); ++i) {
                auto const span = (begun.back() - begun[i]).count();
                auto const gained = static_cast<std::size_t>(span) * cap.rate->count /
                                    static_cast<std::size_t>(cap.rate->period.value().count());
                REQUIRE(begun.size() - i <= burst + gained);
            }
        }
        // Nobody who came later and needs the same has begun before.
        // (Where a limit was taken back, those that still wait for it go by and by.)
        auto& what = tasks_.at(task.id);
        bool const taken_back = std::any_of(what.tags.begin(), what.tags.end(), [&](std::string const& tag) {
            return !caps_["tag:" + tag].concurrency && !caps_["tag:" + tag].rate;
        });
        if (!what.begun && !taken_back)
            for (auto const& [id, other] : tasks_)
                if (other.lane == what.lane && other.tags == what.tags && other.begun)
                    REQUIRE(std::tuple(other.run_at, id) < std::tuple(what.run_at, task.id));
        what.begun = true;
        ++started;
        flying_.push_back(std::move(mine));
    }

    bool defined_later(std::string const& name) {
        return name.starts_with("tag:") && held_[name] > static_cast<std::size_t>(used_of(name.substr(4)));
    }
    std::size_t used_of(std::string const& tag) { return w.used(limit_kind::tag, tag); }

    void land(std::size_t at, bool released) {
        auto const mine = flying_[at];
        flying_.erase(flying_.begin() + static_cast<std::ptrdiff_t>(at));
        for (auto const& [name, amount] : mine.holds) {
            held_[name] -= amount;
            if (released && caps_[name].rate) { // it has not begun after all
                auto& begun = begun_[name];
                auto const when =
                    std::find(begun.begin(), begun.end(), (std::max)(mine.record.changed, mine.record.run_at));
                if (when != begun.end()) begun.erase(when);
            }
        }
        take(w.finish(mine.record, released ? attempt_outcome::released : attempt_outcome::succeeded, now_).due);
    }

    /// The process dies and comes back: what it knew is gone.
    void restart() {
        if constexpr (Fixture::durable) w.store = w.fixture.reopen(std::move(w.store));
        w.reclaim(now_, node_b, 1'000'000);
        flying_.clear();
        held_.clear();
        alarms_.clear();
        for (auto const type : types_)
            for (auto const urgency : {ax::priority::high, ax::priority::normal})
                take(w.store.upcoming({{}, ax::make_lane(type, urgency), {}}, ax::latest_time, 100'000));
        limit_number after{};
        for (bool complete = false; !complete;) {
            auto const page = w.store.waiting(after, 1, now_);
            take(page.due);
            after = page.last;
            complete = page.complete;
        }
    }

    limit_bench<Fixture> w;
    std::mt19937 random_;
    std::vector<ax::type_number> types_;
    ax::time_point now_ = t0;
    std::map<std::string, limit> caps_;
    std::map<std::string, std::size_t> held_;
    std::map<std::string, std::vector<ax::time_point>> begun_;
    std::map<ax::task_id, about> tasks_;
    std::vector<flight> flying_;
    std::set<bell> alarms_;
};

template <class Fixture>
void limit_model(std::uint32_t seed, int steps = 400) {
    CAPTURE(seed);
    limit_life<Fixture> life(seed);
    life.live(steps);
    life.end();
    CHECK(life.started > static_cast<std::size_t>(steps) / 2);
    CHECK(life.waited > 20);
}

} // namespace conformance
