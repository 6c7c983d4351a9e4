// SPDX-License-Identifier: MIT
// The policies of schedules against a model that is as plain as the tables of docs/schedules.md: thousands of histories
// of downtime, pauses and slow runs, and what was left out in them, for which reason.
#include "scheduler/support.hpp"

#include "ax/core/random.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

using namespace test;

namespace {

using minutes_list =
    std::vector<std::int64_t>; ///< occurrences by number: the n-th is planned n minutes after the start

class dice {
  public:
    explicit dice(std::uint64_t seed) : random_(seed) {}
    std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n)); }

  private:
    ax::splitmix64 random_;
};

/// What was created and what was left out, told one by one.
struct naive_log {
    minutes_list created;
    std::uint64_t skipped = 0;

    void leave_out(std::int64_t number, std::string const& reason) {
        ++skipped;
        ++counts_[reason];
        auto const since = ranges_.empty() ? number : ranges_.back().last;
        bool const apart = std::any_of(created.begin(), created.end(), [&](auto n) { return since < n && n < number; });
        if (number > since && !apart && ranges_.back().reason == reason) {
            ranges_.back().last = number;
            ++ranges_.back().number;
        } else {
            ranges_.push_back({number, number, 1, reason});
        }
    }
    /// As skips_of() gives them.
    std::vector<std::string> ranges() const {
        std::vector<std::string> all;
        for (std::size_t i = ranges_.size() > 32 ? ranges_.size() - 32 : 0; i != ranges_.size(); ++i)
            all.push_back(std::to_string(ranges_[i].first) + ".." + std::to_string(ranges_[i].last) + " (" +
                          std::to_string(ranges_[i].number) + ") " + ranges_[i].reason);
        return all;
    }
    std::map<std::string, std::uint64_t> const& counts() const { return counts_; }

  private:
    struct range {
        std::int64_t first, last, number;
        std::string reason;
    };
    std::vector<range> ranges_;
    std::map<std::string, std::uint64_t> counts_;
};

template <class Tasks>
std::map<std::string, std::uint64_t> counts_of(Tasks const& tasks) {
    std::map<std::string, std::uint64_t> all;
    for (auto const& each : tasks.schedule_skips("s").reasons) all[each.reason] = each.number;
    return all;
}

/// Which occurrences of a rate a poll creates. Times in ms since the start.
struct naive_schedule {
    ax::misfire_policy misfire;
    std::int64_t period = 60'000;
    std::int64_t cursor = 1, watched_since = 0;
    bool paused = false;
    bool makes_up = false; ///< what the latest poll creates was missed, the first of it at least

    /// A poll at `now`: what it creates.
    minutes_list poll(std::int64_t now, naive_log& log) {
        if (paused) return {};
        minutes_list due;
        for (; cursor * period <= now; ++cursor) due.push_back(cursor);
        if (due.empty()) return {};
        auto const late = [&](std::int64_t n) { return now - n * period; };
        auto const grace = std::clamp<std::int64_t>(now - watched_since, 1'000, 60'000);
        minutes_list missed, on_time;
        for (auto const n : due) {
            bool const seen = late(n) <= 1'000 || (n == due.back() && late(n) <= grace);
            (seen ? on_time : missed).push_back(n);
        }
        minutes_list made;
        std::string reason = "missed: a later one stands for it";
        using action = ax::misfire_policy::action;
        if (!missed.empty()) switch (misfire.what()) {
            case action::skip: reason = "missed: the policy is to skip"; break;
            case action::run_once:
                if (on_time.empty()) made = {missed.back()};
                break;
            case action::within:
                if (!on_time.empty()) break;
                if (late(missed.back()) <= misfire.late_by().count())
                    made = {missed.back()};
                else
                    reason =
                        "missed: the latest is late by more than " + std::to_string(misfire.late_by().count()) + " ms";
                break;
            case action::run_all:
                reason = "missed: only the latest " + std::to_string(misfire.most()) + " are made up for";
                for (auto const n : missed)
                    if (missed.back() - n < static_cast<std::int64_t>(misfire.most())) made.push_back(n);
                break;
            }
        for (auto const n : missed)
            if (std::find(made.begin(), made.end(), n) == made.end()) log.leave_out(n, reason);
        makes_up = !made.empty();
        made.insert(made.end(), on_time.begin(), on_time.end());
        return made;
    }
};

ax::misfire_policy some_misfire(std::int64_t kind, dice& random, std::int64_t longest) {
    if (kind == 0) return ax::misfire::skip;
    if (kind == 1) return ax::misfire::run_once;
    if (kind == 2) return ax::misfire::run_all(1 + static_cast<std::size_t>(random.below(4)));
    return ax::misfire::within(ax::duration{1 + random.below(longest)});
}

} // namespace

TEST_CASE("misfire policies do what a plain model does, through downtime, late polls and pauses",
          "[scheduler][schedules][misfire]") {
    for (std::uint64_t seed = 1; seed != 1'001; ++seed) {
        CAPTURE(seed);
        dice random{seed};
        naive_log log;
        naive_schedule model;
        model.misfire = some_misfire(random.below(4), random, 90'000);

        bench b;
        auto const start = b.now();
        minutes_list ran;
        auto const at = [&] { return (b.now() - start).count(); };
        auto const poll = [&] {
            b.poll();
            for (auto const n : model.poll(at(), log)) log.created.push_back(n);
        };
        auto const again = [&] {
            b.restart([&](simulated& tasks) {
                tasks.on(probe, [&](ax::context& ctx) { ran.push_back((ctx.scheduled_at() - start) / 1min); });
            });
            model.watched_since = at();
            poll();
        };
        again();
        ax::schedule_options how;
        how.misfire = model.misfire;
        how.overlap = ax::overlap::allow;
        b->schedule("s", ax::every{1min}, probe, {}, how);
        for (int step = 0; step != 12; ++step) {
            switch (random.below(6)) {
            case 0: // the process is away
                b.clock.advance(ax::duration{random.below(400'000)});
                again();
                break;
            case 1: // the poll comes late
                b.clock.advance(ax::duration{random.below(150'000)});
                poll();
                break;
            case 2:
                b->pause_schedule("s");
                model.paused = true;
                break;
            case 3: {
                bool const catch_up = random.below(2) == 0;
                b->resume_schedule("s", catch_up ? ax::resume::catch_up : ax::resume::from_now);
                if (!model.paused) break;
                model.paused = false;
                if (catch_up)
                    model.watched_since = at();
                else
                    for (; model.cursor * 60'000 <= at(); ++model.cursor) log.leave_out(model.cursor, "it was paused");
                auto const real = model.watched_since;
                poll();
                model.watched_since = real;
                break;
            }
            default: // a poll each five seconds
                for (auto n = random.below(30); n != 0; --n) {
                    b.clock.advance(5s);
                    poll();
                }
            }
        }
        b.run_for(0s); // what was created runs
        auto const record = b->schedules().at(0);
        REQUIRE(ran == log.created);
        REQUIRE(record.fired == log.created.size());
        REQUIRE(record.skipped == log.skipped);
        REQUIRE(record.next == start + model.cursor * 1min);
        REQUIRE(skips_of(*b, start, 1min) == log.ranges());
        REQUIRE(counts_of(*b) == log.counts());
    }
}

namespace {

/// What overlapping occurrences do, told one by one.
struct naive_overlaps {
    enum class state { waits, runs, over, dropped };
    struct run {
        std::int64_t number;
        state is;
        bool asked = false;
    };
    ax::overlap_policy policy;
    bool all_made_up = false; ///< run_all: what it makes up for waits in line where others are left out
    std::vector<run> all;

    std::ptrdiff_t count(state s) const {
        return std::count_if(all.begin(), all.end(), [s](run const& r) { return r.is == s; });
    }
    bool lines_up() const {
        using enum ax::overlap_policy;
        return policy == queue_one || policy == queue_all || policy == cancel_running ||
               (policy == skip && all_made_up);
    }
    /// @param makes_up  It comes with what was missed.
    void due(std::int64_t number, bool makes_up, naive_log& log) {
        using enum ax::overlap_policy;
        auto* const latest = all.empty() || all.back().is >= state::over ? nullptr : &all.back();
        if (policy == skip && latest != nullptr && !(all_made_up && makes_up)) {
            log.leave_out(number, "the one before has not ended");
            return;
        }
        bool const stops = policy == cancel_running || policy == replace_running;
        bool const behind_another = count(state::runs) + count(state::waits) > 1;
        if (latest != nullptr && latest->is == state::waits && (stops || (policy == queue_one && behind_another))) {
            latest->is = state::dropped;
            log.leave_out(latest->number, "a later one took its place");
        } else if (latest != nullptr && stops) {
            latest->asked = true;
        }
        log.created.push_back(number);
        all.push_back({number, state::waits});
    }
    /// What need not wait runs: all of it, or the first where one runs at a time.
    void begin() {
        for (auto& r : all)
            if (r.is == state::waits && !(lines_up() && count(state::runs) != 0)) r.is = state::runs;
    }
    void end(std::int64_t number) {
        for (auto& r : all)
            if (r.number == number) r.is = state::over;
        begin();
    }
};

/// A schedule "s" of each ten seconds whose runs last as long as their call: meanwhile time passes, and others begin
/// within it and end before it does. Beside it, the two models.
struct policy_life {
    ax::testing::manual_clock clock;
    store_type store;
    queue_executor loop;
    std::optional<hosted> tasks;
    ax::time_point const start = clock.now();
    ax::schedule_options how;
    naive_schedule when;
    naive_overlaps overlaps;
    naive_log log;
    std::map<std::int64_t, bool> asked; ///< of those that have ended
    std::set<std::int64_t> begun;
    std::function<void()> during; ///< a run

    policy_life(ax::misfire_policy misfire, ax::overlap_policy overlap) {
        how.misfire = when.misfire = misfire;
        how.overlap = overlaps.policy = overlap;
        overlaps.all_made_up = misfire.what() == ax::misfire_policy::action::run_all;
        when.period = 10'000;
        restart();
        tasks->schedule("s", ax::every{10s}, probe, {}, how);
    }
    void restart() {
        ax::options chosen;
        chosen.workers = 64;
        tasks.reset();
        tasks.emplace(store, chosen, clock, loop);
        tasks->on(probe, [this](ax::context& ctx) {
            auto const mine = (ctx.scheduled_at() - start) / 10s;
            begun.insert(mine);
            auto const token = ctx.stop_token();
            during();
            asked[mine] = token.stop_requested();
            overlaps.end(mine);
        });
        watched_anew();
    }
    void watched_anew() { when.watched_since = (clock.now() - start).count(); }
    /// Whatever is due is created, and what may begin does; so does what that lets go.
    void look() {
        tasks->poll(clock.now());
        auto const made = when.poll((clock.now() - start).count(), log);
        for (auto const n : made) overlaps.due(n, when.makes_up, log);
        overlaps.begin();
        do {
            do {
                tasks->poll(clock.now());
                loop.drain();
            } while (tasks->next_wakeup() && *tasks->next_wakeup() <= clock.now());
            tasks->poll(clock.now());
        } while (loop.size() != 0);
    }
    void check() {
        auto const record = tasks->schedules().at(0);
        REQUIRE(record.skipped == log.skipped);
        REQUIRE(record.fired == overlaps.all.size());
        REQUIRE(record.next == start + when.cursor * 10s);
        REQUIRE(skips_of(*tasks, start, 10s) == log.ranges());
        REQUIRE(counts_of(*tasks) == log.counts());
        for (auto const& run : overlaps.all) {
            CAPTURE(run.number);
            REQUIRE(begun.contains(run.number) == (run.is == naive_overlaps::state::over));
            if (begun.contains(run.number)) REQUIRE(asked.at(run.number) == run.asked);
            auto const task = store.occurrence("s", start + run.number * 10s);
            REQUIRE(task.has_value());
            if (run.is == naive_overlaps::state::dropped) REQUIRE(task->state == task_state::cancelled);
        }
    }
};

constexpr std::array every_overlap{ax::overlap_policy::allow,          ax::overlap_policy::skip,
                                   ax::overlap_policy::queue_one,      ax::overlap_policy::queue_all,
                                   ax::overlap_policy::cancel_running, ax::overlap_policy::replace_running};

} // namespace

TEST_CASE("overlap policies do what a plain model does, through runs of any length",
          "[scheduler][schedules][overlap]") {
    for (std::uint64_t seed = 1; seed != 1'001; ++seed) {
        CAPTURE(seed);
        dice random{seed};
        policy_life b{ax::misfire::run_once, every_overlap[static_cast<std::size_t>(random.below(6))]};
        CAPTURE(to_text(b.how.overlap));
        int left = 15;
        b.during = [&] {
            while (left != 0) {
                --left;
                if (random.below(3) == 0) return;
                b.clock.advance(10s);
                b.look();
            }
        };
        b.look();
        while (left != 0) b.during();
        b.check();
    }
}

TEST_CASE("each misfire policy with each overlap policy does what the plain models do, through downtime, sleep, late "
          "polls and runs of any length",
          "[scheduler][schedules][misfire][overlap]") {
    for (std::uint64_t seed = 0; seed != 24 * 60; ++seed) {
        CAPTURE(seed);
        dice random{seed};
        auto const misfire = some_misfire(static_cast<std::int64_t>(seed % 4), random, 40'000);
        policy_life b{misfire, every_overlap[seed / 4 % 6]};
        CAPTURE(to_text(misfire), to_text(b.how.overlap));
        int left = 24;
        b.during = [&] {
            while (left != 0) {
                --left;
                switch (random.below(6)) {
                case 0:
                case 1: return;
                case 2: // the poll comes late
                    b.clock.advance(ax::duration{random.below(45'000)});
                    break;
                case 3: // the machine sleeps
                    b.clock.set(b.clock.now() + ax::duration{2'000 + random.below(60'000)});
                    b.watched_anew();
                    break;
                default: b.clock.advance(10s - (b.clock.now() - b.start) % 10s);
                }
                b.look();
            }
        };
        b.look();
        while (left != 0) {
            b.during();
            if (random.below(3) != 0) continue; // the process is away; nothing runs
            b.clock.advance(ax::duration{random.below(60'000)});
            b.restart();
            b.look();
        }
        b.check();
    }
}
