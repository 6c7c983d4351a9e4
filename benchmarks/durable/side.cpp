// SPDX-License-Identifier: MIT
#include "durable/side.hpp"

#include <random>
#include <utility>

namespace bench {

void fill(side& where, std::size_t count, std::int64_t first, std::int64_t over, std::size_t together) {
    std::mt19937_64 random(1);
    for (std::size_t done = 0; done < count; done += together) {
        std::vector<task> tasks((std::min)(together, count - done));
        for (auto& one : tasks)
            one.run_at = first + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(over));
        where.submit(tasks);
    }
}

void fill(side& where, std::size_t count) { fill(where, count, in_an_hour(), 36'000'000); }

make_side maker_of_ax(settings const& s, options_of_ax const& how) {
    return [s, how](std::string const& file, handler work, counter done) {
        return make_ax(s, file, std::move(work), std::move(done), how);
    };
}

make_side maker_of_raw(settings const& s) {
    return [s](std::string const& file, handler work, counter done) {
        return make_raw(s, file, std::move(work), std::move(done));
    };
}

row by_turns(std::string name, std::string unit, better direction, settings const& s,
             std::function<figures(make_side const&)> const& measure) {
    std::vector<figures> ax;
    std::vector<figures> raw;
    for (std::size_t i = 0; i != s.rounds; ++i) {
        ax.push_back(measure(maker_of_ax(s)));
        raw.push_back(measure(maker_of_raw(s)));
    }
    auto const middle = [](std::vector<figures> const& all, double figures::*which) {
        std::vector<double> values;
        for (auto const& one : all) values.push_back(one.*which);
        return median(std::move(values));
    };
    return {std::move(name),
            std::move(unit),
            direction,
            middle(ax, &figures::value),
            middle(raw, &figures::value),
            {{"ax_bytes_per_task", middle(ax, &figures::bytes)},
             {"raw_bytes_per_task", middle(raw, &figures::bytes)},
             {"ax_flushes_per_task", middle(ax, &figures::flushes)},
             {"raw_flushes_per_task", middle(raw, &figures::flushes)}}};
}

store_under_test::store_under_test(settings const& s, make_side const& make, handler work, counter done)
    : place_(s.dir) {
    if (s.backlog != 0) {
        fill(*make(place_.file(), no_work, no_counter), s.backlog);
        bytes_ = place_.bytes();
    }
    where_ = make(place_.file(), std::move(work), std::move(done));
    flushes_ = flushes.load();
}

figures store_under_test::end(double value, std::size_t count) {
    auto const n = static_cast<double>(count);
    auto const flushed = static_cast<double>(flushes.load() - flushes_);
    where_.reset(); // copies the log back and removes it
    return {value, (static_cast<double>(place_.bytes()) - static_cast<double>(bytes_)) / n, flushed / n};
}

counter life_driver::ended() {
    return [this](std::size_t n) {
        std::scoped_lock const lock(mutex_);
        done_ += n;
        comes_.notify_one();
    };
}

double life_driver::run(side& where, std::size_t count, std::size_t in_flight) {
    auto submitted = goal_; // all of earlier runs have ended
    goal_ += count;
    auto const start = steady::now();
    while (submitted < goal_) {
        std::size_t room = 0;
        {
            std::unique_lock lock(mutex_);
            comes_.wait(lock, [&] { return submitted - done_ < in_flight; });
            room = in_flight - (submitted - done_);
        }
        std::vector<task> const tasks((std::min)(room, goal_ - submitted));
        submitted += tasks.size();
        where.submit(tasks);
    }
    std::unique_lock lock(mutex_);
    comes_.wait(lock, [&] { return done_ == goal_; });
    return static_cast<double>(count) / seconds_since(start);
}

figures life(settings const& s, make_side const& make, std::size_t count, std::size_t in_flight) {
    life_driver driver;
    store_under_test store(s, make, no_work, driver.ended());
    auto const speed = driver.run(*store, count, in_flight);
    return store.end(speed, count);
}

handler lateness_driver::record() {
    return [this](std::int64_t due) {
        auto const now = wall_us();
        std::scoped_lock const lock(mutex_);
        if (late_.size() == goal_) return; // a task of something else
        late_.push_back(static_cast<double>(now - due * 1000) / 1000);
        if (late_.size() == goal_) all_.notify_one();
    };
}

std::vector<double> lateness_driver::run(side& where, std::size_t count, std::chrono::duration<double> over) {
    auto const first = wall_us() / 1000 + 2'000; // not before all of them are stored
    std::vector<task> tasks(count);
    auto const step = over.count() * 1'000 / static_cast<double>(count);
    for (std::size_t i = 0; i != count; ++i)
        tasks[i].run_at = first + static_cast<std::int64_t>(step * static_cast<double>(i));
    {
        std::scoped_lock const lock(mutex_);
        late_.clear();
        goal_ = count;
    }
    where.submit(tasks);
    std::unique_lock lock(mutex_);
    all_.wait(lock, [&] { return late_.size() == goal_; });
    goal_ = 0;
    auto result = std::exchange(late_, {});
    std::ranges::sort(result);
    return result;
}

} // namespace bench
