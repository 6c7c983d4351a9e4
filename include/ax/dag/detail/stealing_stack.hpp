// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ax::detail {

/// A small stack of numbers that its owner works on from one end while others steal from the other end, oldest first.
///
/// The deque of Chase & Lev, "Dynamic Circular Work-Stealing Deque", SPAA 2005, of a fixed size: what does not fit goes
/// elsewhere. Sequentially consistent operations stand where others have fences, which the thread sanitizer cannot
/// follow.
///
/// Threads: push() and pop() by one owner at a time, the rest by anybody.
class stealing_stack {
  public:
    static constexpr std::int64_t capacity = 128;

    /// False where it is full. What was written before is visible to whoever gets the number.
    bool push(std::uint32_t number) noexcept {
        auto const bottom = bottom_.load(std::memory_order_relaxed);
        if (bottom - top_.load(std::memory_order_acquire) >= capacity) return false;
        at(bottom).store(number, std::memory_order_relaxed);
        bottom_.store(bottom + 1);
        return true;
    }

    /// The youngest number, or 0.
    std::uint32_t pop() noexcept {
        auto const bottom = bottom_.load(std::memory_order_relaxed) - 1;
        if (bottom < top_.load(std::memory_order_relaxed)) return 0; // nobody but the owner adds, so it stays empty
        bottom_.store(bottom);
        auto top = top_.load();
        if (top < bottom) return at(bottom).load(std::memory_order_relaxed);
        std::uint32_t found = 0;
        if (top == bottom && top_.compare_exchange_strong(top, top + 1))
            found = at(bottom).load(std::memory_order_relaxed);
        bottom_.store(bottom + 1, std::memory_order_relaxed);
        return found;
    }

    /// The oldest number, or 0 where there is none or another thread was faster each time.
    std::uint32_t steal() noexcept {
        for (;;) {
            auto top = top_.load();
            if (top >= bottom_.load()) return 0;
            auto const found = at(top).load(std::memory_order_relaxed); // overwritten only after the top has moved
            if (top_.compare_exchange_strong(top, top + 1)) return found;
        }
    }

    bool empty() const noexcept { return top_.load() >= bottom_.load(); }

  private:
    std::atomic<std::uint32_t>& at(std::int64_t i) noexcept { return ring_[static_cast<std::size_t>(i % capacity)]; }

    alignas(64) std::atomic<std::int64_t> top_{0};    ///< the oldest; written by thieves
    alignas(64) std::atomic<std::int64_t> bottom_{0}; ///< one past the youngest; written by the owner
    std::array<std::atomic<std::uint32_t>, static_cast<std::size_t>(capacity)> ring_{};
};

} // namespace ax::detail
