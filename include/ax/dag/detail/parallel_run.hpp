// SPDX-License-Identifier: MIT
// Runs the vertices of a graph on an executor, with the caller as the first worker.
//
// Of the vertices that a worker frees it runs one next and puts the others on a stack of its own, which the others
// steal from. What finds no room there goes into one line that all take from. Each vertex enters the line at most once,
// so the line is an array with a place for every vertex and never wraps: to put in is to draw numbers from a counter
// and write there, to take is to move the head over places that have been written. So nothing that is ready is out of
// the reach of an idle worker, however long the others are busy, and workers of tiny vertices hardly touch the same
// memory.
//
// A worker that finds nothing leaves, so that no thread of the executor ever waits. When there is more to do than
// workers, another helper is asked for, one at a time, and that one asks for the next. So a graph of tiny vertices is
// not buried under hand-overs, and one of long vertices has everybody at work.
//
// The run is over when nobody works and nothing is left: no vertex has to be counted, and those that never become
// ready, because a parent threw, need no treatment.
#pragma once

#include "ax/dag/detail/stealing_stack.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

namespace ax::detail {

/// Edges in compressed rows: what belongs to vertex i lies from first[i] to first[i + 1].
template <class Vertex>
struct edge_rows_view {
    std::uint32_t const* first;
    Vertex const* item;
};

/// What survives the call that runs the graph, since a helper may come late: everything else is borrowed, and touched
/// only by who was let in. Vertices are written as one more than their number, so that 0 is none.
template <class Executor, class Vertex, class F>
class parallel_run {
  public:
    /// @param places  size + 1 zeros.
    /// @param open    How many parents of each vertex have not ended.
    parallel_run(Executor& where, F& fn, std::uint32_t size, edge_rows_view<Vertex> children,
                 std::atomic<std::uint32_t>* places, std::atomic<std::uint32_t>* open) noexcept
        : where_{&where}, fn_{&fn}, size_{size}, children_{children}, places_{places}, open_{open} {}

    parallel_run(parallel_run const&) = delete;
    parallel_run& operator=(parallel_run const&) = delete;

    /// Returns when all that can run has ended.
    static void lead(std::shared_ptr<parallel_run> const& self) {
        auto& run = *self;
        std::uint32_t roots = 0;
        for (std::uint32_t v = 0; v < run.size_; ++v)
            if (run.open_[v].load(std::memory_order_relaxed) == 0)
                run.places_[roots++].store(v + 1, std::memory_order_relaxed);
        run.end_.store(roots, std::memory_order_relaxed);
        worker leader{self, 0};
        do leader.work();
        while (run.wait_for_work());
        if (run.failure_) std::rethrow_exception(std::exchange(run.failure_, nullptr));
    }

  private:
    static constexpr std::size_t seats = 16; ///< a power of two; helpers beyond it have no stack of their own

    /// What the executor gets. Comes late, or is destroyed without a call: both are harmless.
    class helper {
      public:
        explicit helper(std::shared_ptr<parallel_run> run) noexcept : run_{std::move(run)} {}
        helper(helper&&) noexcept = default;
        helper& operator=(helper&& other) noexcept {
            helper{std::move(other)}.run_.swap(run_);
            return *this;
        }
        ~helper() {
            if (run_) run_->asked_.store(false);
        }
        void operator()() noexcept {
            auto const run = std::exchange(run_, nullptr);
            if (!run) return;
            run->asked_.store(false);    // before it looks for work: see ask()
            if (asking() == run.get()) { // called on the spot: see below
                run->ask_later();
                return;
            }
            std::size_t seat = seats;
            if (!run->enter(seat)) return;
            worker{run, seat}.work();
            run->leave(seat);
        }

      private:
        std::shared_ptr<parallel_run> run_;
    };

    /// One thread's part in the run.
    class worker {
      public:
        worker(std::shared_ptr<parallel_run> const& self, std::size_t seat) noexcept
            : self_{self}, run_{*self}, seat_{seat}, own_{seat < seats ? &run_.stacks_[seat] : nullptr} {}

        /// Until nothing is found anywhere.
        ///
        /// Who came was asked for; where there is work for one more, it is up to the comer to ask for the next.
        void work() noexcept {
            auto next = find();
            if (next != 0 && run_.has_work()) ask();
            for (; next != 0; next = find()) {
                while (next != 0) next = run_one(next - 1);
            }
        }

      private:
        std::uint32_t find() noexcept {
            if (own_ != nullptr) {
                if (auto const found = own_->pop(); found != 0) {
                    if (!own_->empty()) ask();
                    return found;
                }
            }
            if (auto const found = take(); found != 0) return found;
            for (std::size_t i = 1; i <= seats; ++i) {
                auto& other = run_.stacks_[(seat_ + i) % seats];
                if (auto const found = other.steal(); found != 0) {
                    if (!other.empty()) ask();
                    return found;
                }
            }
            return 0;
        }

        /// From the line: one to run, and some for the own stack, where others can have them. Nothing where the next
        /// place has not been written. A later place may have been: then who writes this one is still at work, and
        /// looks again afterwards.
        std::uint32_t take() noexcept {
            constexpr std::uint32_t most = 32; // the own stack is empty, so they fit
            auto head = run_.head_.load(std::memory_order_relaxed);
            for (;;) {
                auto const found = run_.places_[head].load(std::memory_order_acquire);
                if (found == 0) return 0;
                std::uint32_t batch[most];
                std::uint32_t count = 0;
                if (own_ != nullptr) {
                    while (count < most) { // ends at the place behind the last, which nobody writes
                        batch[count] = run_.places_[head + 1 + count].load(std::memory_order_acquire);
                        if (batch[count] == 0) break;
                        ++count;
                    }
                    count -= count / 2; // the rest for others
                }
                // Release: who sees the new head sees what lies there.
                if (!run_.head_.compare_exchange_weak(head, head + 1 + count, std::memory_order_release,
                                                      std::memory_order_relaxed))
                    continue;
                while (count > 0) own_->push(batch[--count]); // the first on top
                if ((own_ != nullptr && !own_->empty()) || run_.line_has_work()) ask();
                return found;
            }
        }

        /// The answer is a child to run next, or 0.
        std::uint32_t run_one(std::uint32_t v) noexcept {
            try {
                (*run_.fn_)(Vertex{v});
            } catch (...) {
                std::lock_guard const lock{run_.mutex_};
                if (!run_.failure_) run_.failure_ = std::current_exception();
                return 0;
            }
            std::uint32_t kept = 0;
            std::uint32_t rest[64];
            std::uint32_t count = 0;
            bool more = false;
            for (auto i = run_.children_.first[v], last = run_.children_.first[v + 1]; i != last; ++i) {
                auto const child = run_.children_.item[i].index();
                auto& open = run_.open_[child];
                // Where this is the last parent no other thread writes there any more, which spares most graphs the
                // dear operation.
                if (open.load(std::memory_order_acquire) != 1 && open.fetch_sub(1, std::memory_order_acq_rel) != 1)
                    continue;
                if (kept == 0) {
                    kept = child + 1;
                } else {
                    more = true;
                    if (count == 0 && own_ != nullptr && own_->push(child + 1)) continue;
                    if (count == std::size(rest)) put(rest, std::exchange(count, 0));
                    rest[count++] = child + 1;
                }
            }
            if (count != 0) put(rest, count);
            if (more) ask();
            return kept;
        }

        /// Into the line.
        void put(std::uint32_t const* vertices, std::uint32_t count) noexcept {
            auto const begin = run_.end_.fetch_add(count, std::memory_order_relaxed);
            for (auto i = count - 1; i > 0; --i) run_.places_[begin + i].store(vertices[i], std::memory_order_release);
            run_.places_[begin].store(vertices[0]); // last: who sees it sees the others
        }

        /// Sees to it that somebody comes for what lies there.
        ///
        /// What lies there was written sequentially consistent, as is the leader's word that it waits and the helper's
        /// that it has come, and each looks for the other's afterwards. So at least one sees the other, and nobody
        /// sleeps or leaves beside work.
        void ask() noexcept {
            if (run_.leader_waits_.load()) {
                std::lock_guard const lock{run_.mutex_};
                run_.leader_waits_.store(false);
                run_.wake_.notify_one();
                return;
            }
            if (run_.asked_.load()) return;
            if (auto const pause = run_.pause_.load(std::memory_order_relaxed); pause > 0) {
                run_.pause_.store(pause - 1, std::memory_order_relaxed);
                return;
            }
            if (run_.asked_.exchange(true)) return;
            auto const* const before = std::exchange(asking(), &run_);
            try {
                run_.where_->execute(helper{self_}); // whatever becomes of it, it takes back that one was asked for
            } catch (...) { // refused: who is there does the work, and after a while another is asked for
                run_.ask_later();
            }
            asking() = before;
        }

        std::shared_ptr<parallel_run> const& self_;
        parallel_run& run_;
        std::size_t seat_;
        stealing_stack* own_;
    };

    /// The run for which this thread is inside of execute(). A helper that is called there does nothing: the worker
    /// that asked goes on by itself, and the stack does not grow with the graph.
    static void const*& asking() noexcept {
        static thread_local void const* run = nullptr;
        return run;
    }

    void ask_later() noexcept {
        auto const pause = next_pause_.load(std::memory_order_relaxed);
        pause_.store(pause, std::memory_order_relaxed);
        if (pause < 1'024) next_pause_.store(2 * pause, std::memory_order_relaxed);
    }

    /// Whether there is work for the leader; otherwise all has ended, and nobody is let in any more.
    bool wait_for_work() {
        std::unique_lock lock{mutex_};
        for (;;) {
            leader_waits_.store(true); // before the look: see ask()
            bool const found = has_work();
            if (found || helpers_ == 0) {
                leader_waits_.store(false);
                closed_ = !found;
                return found;
            }
            wake_.wait(lock);
        }
    }

    bool line_has_work() const noexcept { return places_[head_.load()].load() != 0; }

    bool has_work() const noexcept {
        bool found = line_has_work();
        for (auto const& stack : stacks_) found = found || !stack.empty();
        return found;
    }

    bool enter(std::size_t& seat) noexcept {
        std::lock_guard const lock{mutex_};
        if (closed_) return false;
        ++helpers_;
        for (std::size_t i = 1; i < seats && seat == seats; ++i)
            if (!std::exchange(taken_[i], true)) seat = i;
        return true;
    }

    void leave(std::size_t seat) noexcept {
        std::lock_guard const lock{mutex_};
        if (seat < seats) taken_[seat] = false; // its stack is empty: only its owner adds
        if (--helpers_ == 0) wake_.notify_one();
    }

    Executor* where_;
    F* fn_;
    std::uint32_t size_;
    edge_rows_view<Vertex> children_;
    std::atomic<std::uint32_t>* places_; ///< the line; 0: not written yet
    std::atomic<std::uint32_t>* open_;

    alignas(64) std::atomic<std::uint32_t> head_{0}; ///< the next place to take
    alignas(64) std::atomic<std::uint32_t> end_{0};  ///< the next place to write
    alignas(64) std::atomic<bool> asked_{false};     ///< a helper is on its way
    std::atomic<bool> leader_waits_{false};
    std::atomic<std::uint32_t> pause_{0}; ///< how often nobody is asked, after a refusal
    std::atomic<std::uint32_t> next_pause_{1};
    std::array<stealing_stack, seats> stacks_; ///< the leader's is the first

    std::mutex mutex_;
    std::condition_variable wake_;
    std::size_t helpers_ = 0;
    std::array<bool, seats> taken_{};
    bool closed_ = false;
    std::exception_ptr failure_;
};

} // namespace ax::detail
