// SPDX-License-Identifier: MIT
// Schedules under a wall clock that leaps about, with restarts, pauses and slow runs in between: whatever has happened,
// no occurrence comes twice or early, and from then on each comes at its instant.
#include "scheduler/support.hpp"

#include "ax/core/random.hpp"

#include <map>

using namespace test;

namespace {

class leaping_life {
  public:
    explicit leaping_life(std::uint64_t seed) : random_(seed) {
        start();
        ax::schedule_options how;
        how.misfire =
            one_of({ax::misfire::skip, ax::misfire::run_once, ax::misfire::run_all(3), ax::misfire::within(5min)});
        how.overlap = one_of({ax::overlap::skip, ax::overlap::allow, ax::overlap::queue_one, ax::overlap::queue_all,
                              ax::overlap::cancel_running, ax::overlap::replace_running});
        tasks_->schedule("rate", ax::every{1min}, probe, {}, how);
        tasks_->schedule("cron", ax::cron{"0 */2 * * * *", "Europe/Berlin"}, probe, {}, how);
        tasks_->schedule("delay", ax::after_each{1min}, probe, {}, how);
        tasks_->schedule("ends", ax::calendar{ax::cron{"0 */3 * * * *"}}.not_before(begun_).at_most(1'000), probe, {},
                         how);
    }

    void live(int steps) {
        while (steps-- != 0) {
            auto const what = below(10);
            if (what < 3) pass(ax::duration{below(300'000)});
            if (what == 3 || what == 4) leap();
            if (what == 5 || what == 6) loop_.drain();
            if (what == 7) restart();
            if (what == 8) tasks_->pause_schedule(any_name());
            if (what == 9)
                tasks_->resume_schedule(any_name(), below(2) == 0 ? ax::resume::from_now : ax::resume::catch_up);
            if (below(3) != 0) settle(below(2) == 0);
        }
    }

    /// From now on the clock is right, and each occurrence comes.
    void check_that_it_goes_on() {
        slow_ = false;
        for (auto const* name : names) tasks_->resume_schedule(name);
        settle(true);
        auto const since = clock_.now();
        auto const first = runs_;
        for (int i = 0; i != 60; ++i) {
            clock_.advance(10s);
            settle(true);
        }
        for (auto const& record : tasks_->schedules()) {
            CAPTURE(record.name, record.terms, record.last_skip);
            auto const how = ax::detail::recurrence::parse(record.spec);
            CHECK((record.skipped == 0) == record.last_skip.empty());
            std::uint64_t created = 0;
            for (auto const& task : all()) created += task.schedule == record.name ? 1U : 0U;
            CHECK(record.fired == created);
            if (record.name == "delay") {
                if (record.terms.find("queue") != record.terms.npos || record.terms.find("cancel") != record.terms.npos)
                    continue; // one that waits in a queue for a wrong instant holds those behind it
                CHECK(runs_.at("delay") - (first.contains("delay") ? first.at("delay") : 0) >= 8);
                continue;
            }
            if (record.name != "ends") REQUIRE(record.next.has_value());
            for (auto at = how.at_or_after(since + 1ms, record.next.value_or(since)); at && *at <= clock_.now();
                 at = how.following(*at)) {
                CAPTURE(*at);
                CHECK(store_.occurrence(record.name, *at).has_value());
            }
        }
        CHECK(doubles == 0);
        CHECK(early == 0);
    }

    int doubles = 0, early = 0;

  private:
    static constexpr std::array names{"rate", "cron", "delay", "ends"};

    std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n)); }
    template <class T>
    T one_of(std::initializer_list<T> some) {
        return some.begin()[below(static_cast<std::int64_t>(some.size()))];
    }
    char const* any_name() { return names[static_cast<std::size_t>(below(4))]; }
    std::vector<ax::task_record> all() const {
        ax::task_filter wanted;
        wanted.limit = 100'000;
        return store_.list(wanted, clock_.now());
    }

    void start() {
        ax::options chosen;
        chosen.seed = 7;
        chosen.retention.age = 24h * 365 * 1'000; // what is pruned is forgotten
        tasks_.emplace(store_, chosen, clock_, loop_);
        tasks_->on(probe, [this](ax::context& ctx) {
            auto const name = std::string(ctx.task().schedule);
            auto const nominal = ctx.scheduled_at();
            if (++seen_[{name, nominal}] != 1) ++doubles;
            if (clock_.now() < nominal && !leapt_) ++early;
            ++runs_[name];
            if (!slow_) return;
            if (below(2) == 0) clock_.advance(ax::duration{below(120'000)});
            if (below(4) == 0) leap();
        });
    }
    void restart() {
        loop_.drain();
        tasks_.reset();
        if (below(2) == 0) leap();
        if (below(2) == 0) clock_.advance(ax::duration{below(3'600'000)});
        start();
    }
    void leap() {
        auto const far = one_of<ax::duration>({50ms, 900ms, 5s, 70s, 10min, 26h, 400 * 24h});
        auto const there = clock_.now() + ax::duration{below(2 * far.count()) - far.count()};
        clock_.set((std::max)(there, begun_ - 24h * 30));
        leapt_ = true; // what was handed out before runs, if nobody polls in between
    }
    void pass(ax::duration span) {
        clock_.advance(span);
        if (below(2) == 0) poll();
    }
    void settle(bool drain) {
        int polls = 0;
        do {
            poll();
            if (drain) loop_.drain();
            if (slow_ && drain && polls == 20) break; // more comes due than can run
            REQUIRE(++polls < 200);                   // a leap never loops
        } while (tasks_->next_wakeup() && *tasks_->next_wakeup() <= clock_.now());
        poll();
    }
    void poll() {
        leapt_ = false;
        tasks_->poll(clock_.now());
    }

    ax::splitmix64 random_;
    ax::testing::manual_clock clock_;
    store_type store_;
    queue_executor loop_;
    ax::time_point begun_ = clock_.now();
    bool leapt_ = false; ///< since the latest poll
    bool slow_ = true;
    std::map<std::pair<std::string, ax::time_point>, int> seen_;
    std::map<std::string, std::size_t> runs_;
    std::optional<hosted> tasks_;
};

} // namespace

TEST_CASE("a clock that leaps about: no occurrence comes twice or early, and then each comes",
          "[scheduler][schedules][clock]") {
    for (std::uint64_t seed = 1; seed != 301; ++seed) {
        CAPTURE(seed);
        leaping_life life{seed};
        life.live(25);
        life.check_that_it_goes_on();
    }
}
