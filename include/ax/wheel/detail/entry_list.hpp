// SPDX-License-Identifier: MIT
// The lists that the slots of a timing wheel hold: small plain entries in chunks of contiguous memory. A list of nodes
// would cost a cache miss for every timer that cascades; here cascading reads and writes in sequence.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace ax::detail {

inline void prefetch(void const* address) noexcept {
#if defined(__GNUC__)
    __builtin_prefetch(address, 1);
#else
    static_cast<void>(address);
#endif
}

/// What a slot knows of a timer. The timer is alive while its record still has this generation.
struct wheel_entry {
    std::uint64_t due;
    std::uint32_t index;
    std::uint32_t generation; ///< never 0 in an entry of a live timer
};

struct wheel_chunk {
    static constexpr std::uint32_t capacity = 31; // 512 bytes: few enough to be half empty in every slot

    wheel_chunk* next;
    std::uint32_t begin;
    std::uint32_t end;
    wheel_entry entries[capacity];
};

/// Chunks of one list lie anywhere, which the processor's own prefetching does not foresee.
inline void prefetch_chunk(wheel_chunk const* chunk) noexcept {
    if (chunk == nullptr) return; // prefetching it would be harmless, reckoning with it is not defined
    auto const* const bytes = reinterpret_cast<char const*>(chunk);
    for (std::size_t line = 0; line < sizeof(wheel_chunk); line += 64) prefetch(bytes + line);
}

/// Gives out chunks and keeps a bounded number of spare ones, so that a wheel at work does not allocate.
class chunk_pool {
  public:
    chunk_pool() noexcept = default;
    chunk_pool(chunk_pool&& other) noexcept { swap(other); }
    chunk_pool& operator=(chunk_pool&& other) noexcept {
        chunk_pool(std::move(other)).swap(*this);
        return *this;
    }
    ~chunk_pool() { trim(0); }

    wheel_chunk* take() {
        if (spare_ == nullptr) add();
        auto* const chunk = std::exchange(spare_, spare_->next);
        --spares_;
        ++used_;
        chunk->next = nullptr;
        chunk->begin = 0;
        chunk->end = 0;
        return chunk;
    }

    void give(wheel_chunk* chunk) noexcept {
        chunk->next = spare_;
        spare_ = chunk;
        --used_;
        ++spares_;
    }

    /// Gives back to the system what is more than a wheel of this size needs.
    void trim() noexcept {
        if (auto const kept = used_ / 4 + spares_kept; spares_ > kept) trim(kept);
    }

    /// The next `count` calls of take() cannot fail, calls of give() between them not counted.
    void reserve(std::size_t count) {
        while (spares_ < count) add();
    }

    std::size_t used() const noexcept { return used_; }
    std::size_t memory() const noexcept { return (used_ + spares_) * sizeof(wheel_chunk); }

    void swap(chunk_pool& other) noexcept {
        std::swap(spare_, other.spare_);
        std::swap(spares_, other.spares_);
        std::swap(used_, other.used_);
    }

  private:
    static constexpr std::size_t spares_kept = 128;

    void add() {
        auto* const chunk = new wheel_chunk;
        chunk->next = spare_;
        spare_ = chunk;
        ++spares_;
    }

    void trim(std::size_t count) noexcept {
        for (; spares_ > count; --spares_) delete std::exchange(spare_, spare_->next);
    }

    wheel_chunk* spare_ = nullptr;
    std::size_t spares_ = 0;
    std::size_t used_ = 0;
};

/// Entries in their order. Memory belongs to the pool: the owner gives the chunks back.
class entry_queue {
  public:
    std::size_t size() const noexcept { return count_; }
    bool empty() const noexcept { return count_ == 0; }
    wheel_entry const& front() const noexcept { return head_->entries[head_->begin]; }

    /// Calls f with each entry, first to last, until f says false.
    template <class F>
    void visit(F&& f) const {
        for (auto const* chunk = head_; chunk != nullptr; chunk = chunk->next) {
            prefetch_chunk(chunk->next);
            for (auto i = chunk->begin; i != chunk->end; ++i) {
                if (!f(chunk->entries[i])) return;
            }
        }
    }

    /// Calls f with the entry `distance` behind the front, if that is in the first chunk; at the beginning of a chunk
    /// also with those between. For prefetching.
    template <class F>
    void look_ahead(std::uint32_t distance, F&& f) const {
        if (head_->begin == 0) {
            for (std::uint32_t i = 1; i < (std::min)(distance, head_->end); ++i) f(head_->entries[i]);
        }
        if (head_->begin + distance < head_->end) f(head_->entries[head_->begin + distance]);
    }

    void push_back(wheel_entry entry, chunk_pool& pool) {
        if (tail_ == nullptr || tail_->end == wheel_chunk::capacity) grow(pool);
        tail_->entries[tail_->end++] = entry;
        ++count_;
    }

    void pop_front(chunk_pool& pool) noexcept {
        --count_;
        if (++head_->begin == head_->end) {
            pool.give(std::exchange(head_, head_->next));
            if (head_ == nullptr) {
                tail_ = nullptr;
            } else {
                prefetch_chunk(head_->next);
            }
        }
    }

    /// Hands each entry to f, first to last, and gives the chunks back on the way.
    template <class F>
    void drain(chunk_pool& pool, F&& f) {
        while (head_ != nullptr) {
            auto* const chunk = head_;
            prefetch_chunk(chunk->next);
            for (auto i = chunk->begin; i != chunk->end; ++i) f(chunk->entries[i]);
            head_ = chunk->next;
            pool.give(chunk);
        }
        reset();
    }

    void clear(chunk_pool& pool) noexcept {
        while (head_ != nullptr) pool.give(std::exchange(head_, head_->next));
        reset();
    }

    /// Takes all of `other`, chunk by chunk, to the end.
    void append(entry_queue& other) noexcept {
        if (other.empty()) return;
        (tail_ == nullptr ? head_ : tail_->next) = other.head_;
        tail_ = other.tail_;
        count_ += other.count_;
        other.reset();
    }

    /// The same to the beginning.
    void prepend(entry_queue& other) noexcept {
        if (other.empty()) return;
        other.tail_->next = head_;
        head_ = other.head_;
        if (tail_ == nullptr) tail_ = other.tail_;
        count_ += other.count_;
        other.reset();
    }

    /// Drops what `keep` refuses and gives back the memory; keeps the order and hands what is kept to `kept`.
    template <class Keep, class Kept>
    void compact(chunk_pool& pool, Keep keep, Kept kept) noexcept {
        auto* to = head_; // never overtakes the reader: it has written no more than was read
        std::uint32_t at = 0;
        count_ = 0;
        for (auto* from = head_; from != nullptr; from = from->next) {
            prefetch_chunk(from->next);
            // First a mask and then its bits: which entries stay has no pattern, so that a branch for each would be
            // mispredicted half of the time, and the look-ups need not wait for one another.
            std::uint32_t mask = 0;
            for (auto i = from->begin; i != from->end; ++i) mask |= std::uint32_t{keep(from->entries[i])} << i;
            for (; mask != 0; mask &= mask - 1, ++count_) {
                auto const entry = from->entries[std::countr_zero(mask)];
                if (at == wheel_chunk::capacity) {
                    to->begin = 0;
                    to->end = at;
                    to = to->next;
                    at = 0;
                }
                to->entries[at++] = entry;
                kept(entry);
            }
        }
        if (count_ == 0) return clear(pool);
        to->begin = 0;
        to->end = at;
        tail_ = to;
        for (auto* rest = std::exchange(to->next, nullptr); rest != nullptr;)
            pool.give(std::exchange(rest, rest->next));
    }

    /// Sorts by due time if all entries are in one chunk, and says whether they are; entries of one tick keep their
    /// order.
    bool sort_if_short() noexcept {
        if (head_ != tail_) return false;
        for (auto i = head_->begin + 1; i < head_->end; ++i) {
            auto const entry = head_->entries[i];
            auto to = i;
            for (; to != head_->begin && head_->entries[to - 1].due > entry.due; --to) {
                head_->entries[to] = head_->entries[to - 1];
            }
            head_->entries[to] = entry;
        }
        return true;
    }

    std::size_t chunks() const noexcept {
        std::size_t n = 0;
        for (auto const* chunk = head_; chunk != nullptr; chunk = chunk->next) ++n;
        return n;
    }

  private:
    void reset() noexcept {
        head_ = nullptr;
        tail_ = nullptr;
        count_ = 0;
    }

    [[gnu::noinline]] void grow(chunk_pool& pool) {
        auto* const chunk = pool.take();
        (tail_ == nullptr ? head_ : tail_->next) = chunk;
        tail_ = chunk;
    }

    wheel_chunk* head_ = nullptr;
    wheel_chunk* tail_ = nullptr;
    std::size_t count_ = 0;
};

/// A queue in no order of due times that knows its earliest entry.
class entry_list {
  public:
    std::size_t size() const noexcept { return queue_.size(); }
    bool empty() const noexcept { return queue_.empty(); }
    entry_queue const& queue() const noexcept { return queue_; }

    /// An entry with the smallest due time of those that may be alive, or one of generation 0 if none is.
    wheel_entry const& earliest() const noexcept { return earliest_; }
    void set_earliest(wheel_entry entry) const noexcept { earliest_ = entry; } // a better answer to the same question
    static constexpr wheel_entry none() noexcept { return {UINT64_MAX, 0, 0}; }

    void push_back(wheel_entry entry, chunk_pool& pool) {
        queue_.push_back(entry, pool);
        if (entry.due <= earliest_.due) earliest_ = entry;
    }

    /// The queue for its new owner, who leaves it empty.
    entry_queue& take() noexcept {
        earliest_ = none();
        return queue_;
    }

    bool sort_if_short() noexcept { return queue_.sort_if_short(); }

    template <class Keep>
    void compact(chunk_pool& pool, Keep keep) noexcept {
        earliest_ = none();
        queue_.compact(pool, keep, [this](wheel_entry const& entry) {
            if (entry.due <= earliest_.due) earliest_ = entry;
        });
    }

  private:
    entry_queue queue_;
    mutable wheel_entry earliest_ = none();
};

} // namespace ax::detail
