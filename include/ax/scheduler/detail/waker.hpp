// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace ax::detail {

/// Lets one thread sleep until another wakes it. A wake() while nobody sleeps is remembered, once.
/// Threads: wake() safe; sleep() by one thread at a time.
class waker {
  public:
    void wake() {
        if (awake_.exchange(true)) return; // it is awake, or about to look
        { std::lock_guard const guard{mutex_}; }
        condition_.notify_one();
    }

    /// Sleeps until woken, at most for `limit`. Returns whether it was woken.
    template <class Rep, class Period>
    bool sleep(std::chrono::duration<Rep, Period> limit) {
        std::unique_lock lock{mutex_};
        if (limit > limit.zero()) condition_.wait_for(lock, limit, [this] { return awake_.load(); });
        return awake_.exchange(false);
    }

  private:
    std::mutex mutex_;
    std::condition_variable condition_;
    std::atomic<bool> awake_{false};
};

} // namespace ax::detail
