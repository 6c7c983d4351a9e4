// SPDX-License-Identifier: MIT
// ax and the raw pipeline behind one face, so that one driver measures both. Nothing here includes ax: what only drives
// compiles in no time.
#pragma once

#include "durable/machine.hpp"
#include "durable/report.hpp"
#include "durable/settings.hpp"
#include "durable/task.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace bench {

/// Called on a worker, with the instant in milliseconds at which the task was due (0 by the raw side: it keeps none).
using handler = std::function<void(std::int64_t due)>;
/// Called after each commit that recorded successes, with their number, perhaps in parts.
using counter = std::function<void(std::size_t)>;

class side {
  public:
    virtual ~side() = default;
    /// When it returns, all of them are committed.
    virtual void submit(std::vector<task> const& tasks) = 0;
    /// Where `options_of_ax::stopped` was said: runs from now on.
    virtual void start() {}
};

/// What a row changes of ax's defaults.
struct options_of_ax {
    std::optional<std::size_t> workers = {};
    std::optional<std::size_t> claimed = {}; ///< claimed_ahead and claimed_peak
    std::optional<std::chrono::milliseconds> read_ahead = {};
    bool keep_all = false; ///< nothing that has ended is removed
    bool stopped = false;  ///< until start()
};

std::unique_ptr<side> make_ax(settings const& s, std::string const& file, handler work, counter done,
                              options_of_ax const& how = {});
std::unique_ptr<side> make_raw(settings const& s, std::string const& file, handler work, counter done);

/// Opens the file, claims the first task that is due and runs it: what a start of the raw side is.
void take_first(settings const& s, std::string const& file);

using make_side = std::function<std::unique_ptr<side>(std::string const& file, handler, counter)>;
make_side maker_of_ax(settings const& s, options_of_ax const& how = {});
make_side maker_of_raw(settings const& s);

inline void no_work(std::int64_t) {}
inline void no_counter(std::size_t) {}

inline std::int64_t in_an_hour() { return wall_us() / 1000 + 3'600'000; }

/// Stores tasks that are due at `first` or up to `over` ms later, in no order, so many in a submit.
void fill(side& where, std::size_t count, std::int64_t first, std::int64_t over, std::size_t together = 10'000);
/// Stores tasks that are due in an hour or up to ten hours later.
void fill(side& where, std::size_t count);

/// What one side came to in one round.
struct figures {
    double value = 0;
    double bytes = 0;   ///< a task, on disk, when all is copied back from the log
    double flushes = 0; ///< a task
};

/// Measures both by turns and gives the medians.
row by_turns(std::string name, std::string unit, better direction, settings const& s,
             std::function<figures(make_side const&)> const& measure);

/// A store in a directory of its own, with the backlog of the settings in it.
class store_under_test {
  public:
    store_under_test(settings const& s, make_side const& make, handler work = no_work, counter done = no_counter);

    side& operator*() { return *where_; }
    side* operator->() { return where_.get(); }

    /// Closes the store; the figures of `count` tasks since it was opened.
    figures end(double value, std::size_t count);

  private:
    workplace place_;
    std::unique_ptr<side> where_;
    std::uintmax_t bytes_ = 0;
    std::uint64_t flushes_ = 0;
};

/// Submits `count` tasks that are due at once and waits for their ends, with `in_flight` on their way at most. Made
/// before the side that it drives, whose counter it is.
class life_driver {
  public:
    counter ended();
    /// Tasks a second.
    double run(side& where, std::size_t count, std::size_t in_flight);

  private:
    std::mutex mutex_;
    std::condition_variable comes_;
    std::size_t done_ = 0;
    std::size_t goal_ = 0;
};

/// The whole life of `count` tasks on a store of their own.
figures life(settings const& s, make_side const& make, std::size_t count, std::size_t in_flight);

/// Tasks due one after another within `over`: how late each was, in milliseconds, sorted. On a scheduler of its own, or
/// on one that is there already and calls `record`.
class lateness_driver {
  public:
    handler record();
    std::vector<double> run(side& where, std::size_t count, std::chrono::duration<double> over);

  private:
    std::mutex mutex_;
    std::condition_variable all_;
    std::vector<double> late_;
    std::size_t goal_ = 0;
};

} // namespace bench
