// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/error.hpp"
#include "ax/core/unique_function.hpp"
#include "ax/dispatch/executor.hpp"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <pthread.h>
#endif

namespace ax {

namespace detail {

/// First in, first out, in one block that doubles when it is full: no allocation once it has its size.
template <class Work>
class work_ring {
  public:
    std::size_t size() const noexcept { return size_; }

    void push(Work&& work) {
        if (size_ == cells_.size()) grow();
        cells_[(head_ + size_) & (cells_.size() - 1)] = std::move(work);
        ++size_;
    }

    Work pop() noexcept {
        Work work{std::move(cells_[head_])};
        head_ = (head_ + 1) & (cells_.size() - 1);
        --size_;
        return work;
    }

  private:
    void grow() {
        std::vector<Work> larger(cells_.empty() ? 16 : 2 * cells_.size());
        for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move(cells_[(head_ + i) & (cells_.size() - 1)]);
        cells_.swap(larger); // leaves empty cells behind: no user code is destroyed here
        head_ = 0;
    }

    std::vector<Work> cells_; ///< a power of two
    std::size_t head_ = 0;
    std::size_t size_ = 0;
};

} // namespace detail

/// Runs work on threads of its own, in the order in which it came, with a bounded queue before them.
///
///  1. Work that execute() took runs exactly once, also when stop() follows at once.
///  2. Each piece of work is taken alone, when a worker is free: none waits behind a slow one while another worker
///  idles.
///  3. No work is called or destroyed under a lock of the pool.
///  4. What work throws ends that work only; it is counted in failures().
///
/// Threads: safe. The pool may be destroyed as soon as the work that execute() took has run, even if that call has not
///          yet returned, and while other callers wait for room.
///
/// It is written for any thread, so that a unit that only names the type does not pay for its code.
/// @tparam Thread  std::thread: see thread_pool.
template <class Thread>
class basic_thread_pool {
  public:
    static constexpr std::size_t most_workers = 4'096;

    /// Starts the workers. On Linux they are named "ax-worker-0" and so on.
    ///
    /// @param workers      How many threads, 1 to most_workers.
    /// @param queue_bound  How many pieces of work may wait, at least 1: 64 bytes each, which are allocated as needed.
    /// @throws error              invalid_argument where one of the two is out of range.
    /// @throws std::system_error  Where the system gives no more threads; those that were started have then ended.
    explicit basic_thread_pool(std::size_t workers, std::size_t queue_bound = 1'024) {
        if (workers == 0 || workers > most_workers) {
            throw error{errc::invalid_argument, "thread_pool with " + std::to_string(workers) + " workers"};
        }
        if (queue_bound == 0) throw error{errc::invalid_argument, "thread_pool with a queue of 0"};
        shared_->bound = queue_bound;
        threads_.reserve(workers);
        try {
            for (std::size_t i = 0; i < workers; ++i) threads_.emplace_back(&basic_thread_pool::work, shared_, i);
        } catch (...) {
            shut_down();
            throw;
        }
        workers_ = workers;
    }

    basic_thread_pool(basic_thread_pool const&) = delete;
    basic_thread_pool& operator=(basic_thread_pool const&) = delete;

    /// As stop(). On one of the pool's own workers (where the last owner of the pool was a piece of work) that one
    /// thread goes on by itself: it runs what is queued and ends.
    ~basic_thread_pool() { shut_down(); }

    /// Hands `work` to the next free worker. While the queue is full the caller waits.
    ///
    /// @throws error  stopped after stop() has begun, also where the caller was waiting for room;
    ///                queue_full where the queue is full and the caller is a worker of this pool, which must not wait
    ///                for itself; invalid_argument where `work` is empty. Refused work is destroyed and never called.
    /// Complexity: O(1), amortised; one lock, and a wake-up only where a worker sleeps.
    void execute(unique_function<void()> work) {
        if (!work) throw error{errc::invalid_argument, "execute() of nothing"};
        std::shared_ptr<state> kept; // what a caller waits on must outlive the pool
        std::unique_lock lock{shared_->mutex};
        state& s = *shared_;
        if (s.queue.size() >= s.bound && !s.stopping) {
            if (on_worker_thread()) {
                throw error{errc::queue_full, "thread_pool with a queue of " + std::to_string(s.bound)};
            }
            kept = shared_;
            ++s.blocked;
            s.room.wait(lock, [&s] { return s.queue.size() < s.bound || s.stopping; });
            --s.blocked;
        }
        if (s.stopping) throw error{errc::stopped, "thread_pool"};
        s.queue.push(std::move(work));
        // Under the lock. Outside of it two and more workers were four times slower (each finds one piece, sleeps again
        // and has to be woken for the next), and an idle worker woke no sooner.
        if (s.idle > 0) {
            --s.idle; // whoever is on its way is not woken again
            s.wake.notify_one();
        }
    }

    /// Takes no more work, runs all that is queued, and returns when every worker has ended. May be called again.
    ///
    /// @throws error  invalid_argument on a worker of this pool, which cannot wait for its own end: nothing changes
    /// then.
    void stop() {
        if (on_worker_thread()) throw error{errc::invalid_argument, "thread_pool::stop() on its own worker"};
        shut_down();
    }

    /// Whether the caller runs on a worker of this pool.
    bool on_worker_thread() const noexcept { return current() == shared_.get(); }

    std::size_t workers() const noexcept { return workers_; }

    /// How many pieces of work wait for a worker.
    std::size_t queued() const {
        std::lock_guard const lock{shared_->mutex};
        return shared_->queue.size();
    }

    /// How many callers wait for room in the queue.
    std::size_t blocked() const {
        std::lock_guard const lock{shared_->mutex};
        return shared_->blocked;
    }

    /// How many pieces of work ended with an exception.
    std::uint64_t failures() const noexcept { return shared_->failures.load(std::memory_order_relaxed); }

  private:
    struct state {
        std::mutex mutex;
        std::condition_variable wake;   ///< there is work, or the end
        std::condition_variable room;   ///< the queue has room, or the end
        std::condition_variable joined; ///< has_ended is true
        detail::work_ring<unique_function<void()>> queue;
        std::size_t bound = 0;
        std::size_t idle =
            0; ///< workers asleep that nobody has woken; after a spurious wake-up too many, never too few
        std::size_t blocked = 0;
        bool stopping = false;
        bool has_ended = false;
        std::atomic<std::uint64_t> failures{0};
    };

    static state const*& current() noexcept {
        static thread_local state const* pool_of_this_thread = nullptr;
        return pool_of_this_thread;
    }

    static void work(std::shared_ptr<state> const& shared, std::size_t number) {
        name_this_thread(number);
        state& s = *shared;
        current() = &s;
        std::unique_lock lock{s.mutex};
        for (;;) {
            while (s.queue.size() == 0 && !s.stopping) {
                ++s.idle;
                s.wake.wait(lock);
            }
            if (s.queue.size() == 0) return;
            // One piece, not a batch: what a worker has set aside would wait behind its current work.
            auto next = s.queue.pop();
            if (s.blocked > 0) s.room.notify_one();
            lock.unlock();
            run(std::move(next), s);
            lock.lock();
        }
    }

    static void run(unique_function<void()> f, state& s) noexcept {
        try {
            f();
        } catch (...) { // not only std::exception
            s.failures.fetch_add(1, std::memory_order_relaxed);
        }
    }

    static void name_this_thread([[maybe_unused]] std::size_t number) {
#if defined(__linux__)
        // At most 15 characters, or the call does nothing.
        ::pthread_setname_np(::pthread_self(), ("ax-worker-" + std::to_string(number)).c_str());
#endif
    }

    void shut_down() noexcept {
        auto const kept = shared_;
        state& s = *kept;
        std::vector<Thread> threads;
        bool first = false;
        {
            std::lock_guard const lock{s.mutex};
            first = !std::exchange(s.stopping, true);
            threads.swap(threads_);
        }
        s.wake.notify_all();
        s.room.notify_all();
        if (!first) { // somebody else joins, or has joined
            std::unique_lock lock{s.mutex};
            s.joined.wait(lock, [&s] { return s.has_ended; });
            return;
        }
        for (Thread& thread : threads) {
            if (thread.get_id() == std::this_thread::get_id()) {
                thread.detach(); // it holds the state by itself
            } else {
                thread.join();
            }
        }
        {
            std::lock_guard const lock{s.mutex};
            s.has_ended = true;
        }
        s.joined.notify_all();
    }

    std::shared_ptr<state> shared_ = std::make_shared<state>();
    std::vector<Thread> threads_; ///< under the mutex once the constructor has ended
    std::size_t workers_ = 0;
};

/// The pool of std::thread.
using thread_pool = basic_thread_pool<std::thread>;

} // namespace ax
