// SPDX-License-Identifier: MIT
// Timers of Asio, as part of Boost or alone, on a clock that is moved by hand.
#pragma once

// With epoll Asio looks at its timers when the kernel's timer fires, which knows nothing of a clock moved by hand; with
// select it looks in each turn of the loop. The queue of timers is the same.
#define ASIO_DISABLE_EPOLL 1
#define BOOST_ASIO_DISABLE_EPOLL 1
#if __has_include(<asio.hpp>)
#include <asio/basic_waitable_timer.hpp>
#include <asio/io_context.hpp>
namespace bench::asio_library {
using namespace ::asio;
using error = std::error_code;
} // namespace bench::asio_library
#else
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
namespace bench::asio_library {
using namespace ::boost::asio;
using error = boost::system::error_code;
} // namespace bench::asio_library
#endif

#include "ax/time/time_point.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <type_traits>
#include <vector>

namespace bench {

class asio_timers {
  public:
    using handle = std::size_t;
    explicit asio_timers(ax::time_point start) { moved_clock::current = start.time_since_epoch(); }
    asio_timers(asio_timers const&) = delete;
    asio_timers& operator=(asio_timers const&) = delete;

    handle schedule(ax::time_point due, std::uint64_t id) {
        handle h = timers_.size();
        if (free_.empty()) {
            timers_.emplace_back(context_);
        } else {
            h = free_.back();
            free_.pop_back();
        }
        timers_[h].expires_at(moved_clock::time_point{due.time_since_epoch()});
        timers_[h].async_wait([this, h, id](asio_library::error const& cancelled) {
            free_.push_back(h);
            if (!cancelled) fire_(sink_, id);
        });
        return h;
    }
    void cancel(handle h) { timers_[h].cancel(); }
    template <class Fire>
    void advance(ax::time_point now, Fire&& fire) {
        moved_clock::current = now.time_since_epoch();
        sink_ = std::addressof(fire);
        fire_ = [](void* sink, std::uint64_t id) { (*static_cast<std::remove_reference_t<Fire>*>(sink))(id); };
        forget_cancelled();
    }
    void forget_cancelled() { // it calls their handlers, too
        context_.restart();
        while (context_.poll() != 0) context_.restart();
    }

  private:
    struct moved_clock {
        using duration = ax::duration;
        using rep = duration::rep;
        using period = duration::period;
        using time_point = std::chrono::time_point<moved_clock>;
        static constexpr bool is_steady = false;
        static inline duration current{};
        static time_point now() { return time_point{current}; }
    };

    asio_library::io_context context_{1};
    std::deque<asio_library::basic_waitable_timer<moved_clock>> timers_;
    std::vector<handle> free_;
    void* sink_ = nullptr;
    void (*fire_)(void*, std::uint64_t) = nullptr;
};

} // namespace bench
