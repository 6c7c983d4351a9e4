// SPDX-License-Identifier: MIT
// Whether cost grows with what a store holds, and how long its longest pauses are.
//   growth/PENDING/...   submit, whole life, lateness and memory above PENDING tasks that wait for hours
//   growth/ended/...     the same above a million tasks (ten, without --brief) that have ended and are kept
//   pause/cascade        the longest advance() of a timing wheel while a full upper slot is handed down, ms
//   pause/checkpoint     the longest single submit while bulk submits make SQLite copy its log back, ms
// `growth --help` lists the options.
#include "durable/side.hpp"

#include <ax/wheel/timing_wheel.hpp>

#include <fmt/format.h>

#include <atomic>
#include <initializer_list>
#include <thread>
#include <utility>

namespace {

using namespace bench;
using namespace std::chrono_literals;

struct cost {
    double submit_us = 0; ///< one at a time, p50
    double bulk = 0;      ///< a thousand a submit, tasks/s
    double life = 0;      ///< 2,000 in flight, tasks/s
};

cost cost_of(side& where, life_driver& driver, settings const& s) {
    cost result;
    std::vector<task> const one(1, {in_an_hour(), {}});
    std::vector<double> times;
    for (std::size_t i = 0; i != s.scaled(1'000); ++i) {
        auto const start = steady::now();
        where.submit(one);
        times.push_back(seconds_since(start) * 1e6);
    }
    result.submit_us = percentile(times, 0.5);

    auto const count = s.scaled(50) * 1'000;
    auto const start = steady::now();
    for (std::size_t done = 0; done != count; done += 1'000) {
        std::vector<task> batch(1'000);
        for (std::size_t i = 0; i != batch.size(); ++i)
            batch[i].run_at = one.front().run_at + static_cast<std::int64_t>(done * 7'919 + i * 104'729) % 600'000;
        where.submit(batch);
    }
    result.bulk = static_cast<double>(count) / seconds_since(start);

    result.life = driver.run(where, s.scaled(50'000), 2'000);
    return result;
}

/// The medians of both by turns, on stores that `prepare` has filled and that stay as they are.
class comparison {
  public:
    void add(cost const& ax, cost const& raw) {
        ax_.push_back(ax);
        raw_.push_back(raw);
    }
    void tell(report& out, std::string const& name) const {
        out.add({name + "/submit", "us", better::lower, of(ax_, &cost::submit_us), of(raw_, &cost::submit_us)});
        out.add({name + "/bulk", "tasks/s", better::higher, of(ax_, &cost::bulk), of(raw_, &cost::bulk)});
        out.add({name + "/life", "tasks/s", better::higher, of(ax_, &cost::life), of(raw_, &cost::life)});
    }

  private:
    static double of(std::vector<cost> const& all, double cost::*which) {
        std::vector<double> values;
        for (auto const& one : all) values.push_back(one.*which);
        return median(std::move(values));
    }
    std::vector<cost> ax_;
    std::vector<cost> raw_;
};

/// Measures above what `prepare` puts into both stores.
void measure(settings const& s, report& out, std::string const& name,
             std::function<void(side&, life_driver&)> const& prepare) {
    options_of_ax keep;
    keep.keep_all = true;
    comparison both;
    memory above;
    std::vector<double> p50;
    std::vector<double> p99;
    std::vector<double> worst;
    {
        workplace const ax_place(s.dir);
        workplace const raw_place(s.dir);
        lateness_driver times;
        life_driver ax_driver;
        life_driver raw_driver;
        auto const before = memory::now(true);
        auto const ax = make_ax(s, ax_place.file(), times.record(), ax_driver.ended(), keep);
        prepare(*ax, ax_driver);
        above = memory::now(true).since(before);
        auto const raw = make_raw(s, raw_place.file(), no_work, raw_driver.ended());
        prepare(*raw, raw_driver);
        for (std::size_t i = 0; i != s.rounds; ++i) {
            auto const mine = cost_of(*ax, ax_driver, s);
            both.add(mine, cost_of(*raw, raw_driver, s));
        }
        // Last: its tasks end beside those that the driver counts.
        for (std::size_t i = 0; i != s.rounds; ++i) {
            auto late = times.run(*ax, s.scaled(2'000), 2s * (std::min)(s.scale, 1.0));
            p50.push_back(percentile(late, 0.5));
            p99.push_back(percentile(late, 0.99));
            worst.push_back(late.back());
        }
    }
    both.tell(out, name);
    out.add({name + "/lateness",
             "ms",
             better::lower,
             median(p99),
             {},
             {{"ax_p50_ms", median(p50)}, {"ax_worst_ms", percentile(worst, 1)}}});
    out.add({name + "/memory", "MB", better::lower, above.apart(), {}, {{"ax_sqlite_mb", above.sqlite}}});
}

/// A million timers in one slot of an upper level: the longest that one step of a millisecond takes.
row cascade(settings const& s) {
    auto const count = s.scaled(1e6);
    ax::time_point const start{std::chrono::milliseconds{std::int64_t{1} << 40}}; // a border of all levels used
    constexpr std::int64_t slot = 1 << 18;                                        // ms of one slot of the fourth level
    ax::timing_wheel<std::uint64_t> wheel{start};
    for (std::size_t i = 0; i != count; ++i)
        wheel.schedule(start + std::chrono::milliseconds{slot + static_cast<std::int64_t>(i * 7'919) % slot}, i);
    double longest = 0;
    double fired = 0;
    double total = 0;
    wheel.advance(start + std::chrono::milliseconds{slot - 1}, [](std::uint64_t) {});
    for (std::int64_t at = slot; at != 2 * slot; ++at) {
        auto const before = steady::now();
        wheel.advance(start + std::chrono::milliseconds{at}, [&](std::uint64_t) { ++fired; });
        auto const took = seconds_since(before) * 1'000;
        longest = (std::max)(longest, took);
        total += took;
    }
    return {"pause/cascade", "ms", better::lower, longest, {}, {{"timers", fired}, {"total_ms", total}}};
}

/// Lone submits while another thread stores in bulk, so that the log is copied back several times.
figures checkpoint(settings const& s, make_side const& make) {
    store_under_test store(s, make);
    std::atomic<bool> quit{false};
    std::thread load([&] {
        fill(*store, s.scaled(5e5), in_an_hour(), 36'000'000, 500); // a few ms each: a pause is not one of them
        quit = true;
    });
    std::vector<task> const one(1, {in_an_hour(), {}});
    std::vector<double> times;
    while (!quit) {
        auto const start = steady::now();
        store->submit(one);
        times.push_back(seconds_since(start) * 1'000);
        std::this_thread::sleep_for(1ms);
    }
    load.join();
    return store.end(percentile(times, 1), s.scaled(5e5));
}

void run(settings const& s) {
    report out(s.json, s.durability());
    constexpr double ten_million = 1e7;
    for (auto const& [name, size] :
         std::initializer_list<std::pair<char const*, double>>{{"growth/0", 0},
                                                               {"growth/10k", 1e4},
                                                               {"growth/100k", 1e5},
                                                               {"growth/1M", 1e6},
                                                               {"growth/10M", ten_million}}) {
        if (!s.wants_some(name) || (s.brief && size == ten_million)) continue;
        auto const count = size == 0 ? 0 : s.scaled(size);
        measure(s, out, name, [&](side& where, life_driver&) { fill(where, count); });
    }
    if (s.wants_some("growth/ended"))
        measure(s, out, s.brief ? "growth/ended-1M" : "growth/ended-10M", [&](side& where, life_driver& driver) {
            driver.run(where, s.scaled(s.brief ? 1e6 : ten_million), 20'000);
        });
    if (s.wants("pause/cascade")) out.add(cascade(s));
    if (s.wants("pause/checkpoint"))
        out.add(
            by_turns("pause/checkpoint", "ms", better::lower, s, [&](make_side const& m) { return checkpoint(s, m); }));
}

} // namespace

int main(int count, char** values) {
    settings s;
    if (auto const code = read_settings(s, "growth", count, values)) return *code;
    run(s);
}
