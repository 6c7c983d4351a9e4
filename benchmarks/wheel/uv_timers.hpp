// SPDX-License-Identifier: MIT
// Timers of libuv, on a clock that is moved by hand: libuv asks clock_gettime(), which uv_timers.cpp answers.
#pragma once

#include "ax/time/time_point.hpp"

#include <uv.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <type_traits>
#include <vector>

namespace bench {

/// While it lives, the monotonic clocks of this process show that many milliseconds.
class moved_monotonic_clock {
  public:
    explicit moved_monotonic_clock(std::int64_t milliseconds);
    moved_monotonic_clock(moved_monotonic_clock const&) = delete;
    moved_monotonic_clock& operator=(moved_monotonic_clock const&) = delete;
    ~moved_monotonic_clock();
};

class uv_timers {
  public:
    using handle = std::size_t;
    explicit uv_timers(ax::time_point start) : start_(start) {
        moved_monotonic_clock const moved(origin);
        uv_loop_init(&loop_);
    }
    uv_timers(uv_timers const&) = delete;
    uv_timers& operator=(uv_timers const&) = delete;
    ~uv_timers() {
        for (auto& one : timers_) uv_close(reinterpret_cast<uv_handle_t*>(&one.timer), nullptr);
        uv_run(&loop_, UV_RUN_DEFAULT);
        uv_loop_close(&loop_);
    }

    handle schedule(ax::time_point due, std::uint64_t id) {
        handle h = timers_.size();
        if (free_.empty()) {
            auto& made = timers_.emplace_back();
            uv_timer_init(&loop_, &made.timer);
            made.owner = this;
            made.self = h;
        } else {
            h = free_.back();
            free_.pop_back();
        }
        timers_[h].id = id;
        timers_[h].timer.data = &timers_[h];
        uv_timer_start(&timers_[h].timer, &uv_timers::expired, static_cast<std::uint64_t>((due - now_).count()), 0);
        return h;
    }
    void cancel(handle h) {
        uv_timer_stop(&timers_[h].timer);
        free_.push_back(h);
    }
    template <class Fire>
    void advance(ax::time_point now, Fire&& fire) {
        now_ = now;
        sink_ = std::addressof(fire);
        fire_ = [](void* sink, std::uint64_t id) { (*static_cast<std::remove_reference_t<Fire>*>(sink))(id); };
        moved_monotonic_clock const moved(origin + (now - start_).count());
        uv_run(&loop_, UV_RUN_NOWAIT);
    }
    void forget_cancelled() {} // libuv does that by itself

  private:
    static constexpr std::int64_t origin = 1'000;
    struct entry {
        uv_timer_t timer;
        uv_timers* owner;
        handle self;
        std::uint64_t id;
    };
    static void expired(uv_timer_t* timer) {
        auto& one = *static_cast<entry*>(timer->data);
        one.owner->free_.push_back(one.self);
        one.owner->fire_(one.owner->sink_, one.id);
    }

    ax::time_point start_;
    ax::time_point now_ = start_;
    uv_loop_t loop_;
    std::deque<entry> timers_;
    std::vector<handle> free_;
    void* sink_ = nullptr;
    void (*fire_)(void*, std::uint64_t) = nullptr;
};

} // namespace bench
