// SPDX-License-Identifier: MIT
// Group commit. A durable commit costs a flush of the disk, whatever it holds, so callers that arrive while one is
// under way should share the next.
//
// There is no committing thread: handing an operation to one costs two context switches, more than a flush on a good
// disk. Instead the first caller in becomes the leader and commits on its own thread. Who comes meanwhile queues and
// sleeps. A leader commits one batch, the one that begins with its own operation, answers it, and hands the lead to the
// front of the queue, so that nobody serves others for ever.
//
// Every entry of the queue lives on its caller's stack: an operation that is not shared allocates nothing.
#pragma once

#include "ax/core/error.hpp"

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

namespace ax::detail {

/// Runs operations in transactions of `Target`, several in one where they arrive together.
///
/// `Target` has `begin(bool durable)`, `finish()` (the commit) and `undo() noexcept`; undo() is called after anything
/// but a finish() that returned, also after a begin() that threw. All three, and the operations, are called by one
/// thread at a time, which is that of some caller of run().
///
/// Threads: safe. No user code runs under its mutex.
template <class Target>
class commit_queue {
  public:
    /// @param target         Must outlive the queue.
    /// @param largest_group  How many operations may share one transaction.
    explicit commit_queue(Target& target, std::size_t largest_group = 256)
        : target_(target), largest_group_(largest_group == 0 ? 1 : largest_group) {}

    commit_queue(commit_queue const&) = delete;
    commit_queue& operator=(commit_queue const&) = delete;

    /// Runs `operation()` in a transaction and returns when that has been committed.
    ///
    /// The operation may run on another caller's thread, and more than once: where another one that shares its
    /// transaction throws, all is undone and each runs again in a transaction of its own. It must not call run().
    ///
    /// @param durable  The group is committed durably if any of its members asks for it.
    /// @throws         What `operation` threw, in its last run; what begin() or finish() threw, to each member of the
    ///                 group. error invalid_argument when called from inside an operation.
    template <class Operation>
    void run(bool durable, Operation&& operation) {
        if (led_here() == this)
            throw error(errc::invalid_argument, "a transaction was begun inside of another one on the same store");
        using plain = std::remove_reference_t<Operation>;
        entry mine;
        mine.durable = durable;
        mine.operation = const_cast<void*>(static_cast<void const*>(std::addressof(operation)));
        mine.call = [](void* erased) { (*static_cast<plain*>(erased))(); };

        std::unique_lock lock(mutex_);
        push(mine);
        if (led_)
            mine.turn.wait(lock, [&] { return mine.answered || mine.leads; });
        else
            led_ = true;
        if (!mine.answered) {
            entry* const batch = take();
            lock.unlock();
            perform(batch);
            lock.lock();
            answer(batch, mine);
            hand_over();
        }
        lock.unlock();
        if (mine.failure) std::rethrow_exception(std::move(mine.failure));
    }

    /// How many callers wait for a leader at this instant.
    std::size_t waiting() const {
        std::scoped_lock const lock(mutex_);
        return size_;
    }

  private:
    struct entry {
        void* operation = nullptr;
        void (*call)(void*) = nullptr;
        bool durable = false;
        bool leads = false;
        bool answered = false;
        std::exception_ptr failure;
        entry* next = nullptr;
        std::condition_variable turn;
    };

    /// The queue whose operation runs on this thread.
    static commit_queue const*& led_here() noexcept {
        static thread_local commit_queue const* queue = nullptr;
        return queue;
    }

    void push(entry& added) noexcept {
        (tail_ == nullptr ? head_ : tail_->next) = &added;
        tail_ = &added;
        ++size_;
    }

    /// Cuts a batch off the front. The leader's own entry is its first: the lead is handed to the front only.
    entry* take() noexcept {
        entry* const first = head_;
        entry* last = first;
        --size_;
        for (std::size_t taken = 1; taken < largest_group_ && last->next != nullptr; ++taken) {
            last = last->next;
            --size_;
        }
        head_ = last->next;
        if (head_ == nullptr) tail_ = nullptr;
        last->next = nullptr;
        return first;
    }

    /// An entry may be gone as soon as it is marked and the mutex is free, so all are marked before that.
    void answer(entry* batch, entry const& mine) noexcept {
        while (batch != nullptr) {
            auto* const next = batch->next;
            batch->answered = true;
            if (batch != &mine) batch->turn.notify_one();
            batch = next;
        }
    }

    void hand_over() noexcept {
        led_ = head_ != nullptr;
        if (!led_) return;
        head_->leads = true;
        head_->turn.notify_one();
    }

    void perform(entry* batch) noexcept {
        auto const* const outer = std::exchange(led_here(), this);
        if (!together(batch)) one_by_one(batch);
        led_here() = outer;
    }

    /// @return  False where an operation threw that does not stand alone.
    bool together(entry* batch) noexcept {
        bool durable = false;
        for (auto* e = batch; e != nullptr; e = e->next) durable = durable || e->durable;
        bool began = false;
        bool ran = false;
        try {
            target_.begin(durable);
            began = true;
            for (auto* e = batch; e != nullptr; e = e->next) e->call(e->operation);
            ran = true;
            target_.finish();
            return true;
        } catch (...) {
            target_.undo();
            if (began && !ran && batch->next != nullptr) return false;
            fail(batch, std::current_exception());
            return true;
        }
    }

    void one_by_one(entry* batch) noexcept {
        for (auto* e = batch; e != nullptr; e = e->next) {
            bool began = false;
            try {
                target_.begin(e->durable);
                began = true;
                e->call(e->operation);
                target_.finish();
            } catch (...) {
                target_.undo();
                if (!began) { // it would take as long to fail for each of the rest
                    fail(e, std::current_exception());
                    return;
                }
                e->failure = std::current_exception();
            }
        }
    }

    /// Gives every caller an exception object of its own where that can be done: they are caught on different threads.
    static void fail(entry* batch, std::exception_ptr const& why) noexcept {
        for (auto* e = batch; e != nullptr; e = e->next) e->failure = e == batch ? why : copy(why);
    }

    static std::exception_ptr copy(std::exception_ptr const& why) noexcept {
        try {
            std::rethrow_exception(why);
        } catch (error const& e) {
            try {
                std::string text = e.what();
                auto const meaning = ": " + e.code().message(); // error's constructor appends it again
                if (text.size() >= meaning.size() &&
                    text.compare(text.size() - meaning.size(), meaning.size(), meaning) == 0)
                    text.resize(text.size() - meaning.size());
                return std::make_exception_ptr(error(e.kind(), text));
            } catch (...) {
                return std::current_exception();
            }
        } catch (...) {
            return why;
        }
    }

    Target& target_;
    std::size_t const largest_group_;
    mutable std::mutex mutex_;
    entry* head_ = nullptr; ///< those that wait, in the order of their arrival
    entry* tail_ = nullptr;
    std::size_t size_ = 0;
    bool led_ = false; ///< some caller leads, or has just been told to
};

} // namespace ax::detail
