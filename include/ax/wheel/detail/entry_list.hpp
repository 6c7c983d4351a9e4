// SPDX-License-Identifier: MIT
// The lists that the slots of a timing wheel hold: small plain entries in chunks of contiguous memory. A list of nodes
// would cost a cache miss for every timer that cascades; here cascading reads and writes in sequence.
#pragma once

#include <algorithm>
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
        if (spares_ > used_ + spares_kept) trim(used_ + spares_kept);
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

/// Entries in the order in which they came. Memory belongs to the pool: the owner gives the chunks back.
class entry_list {
  public:
    std::size_t size() const noexcept { return count_; }
    bool empty() const noexcept { return count_ == 0; }

    /// An entry with the smallest due time of those that may be alive, or one of generation 0 if none is.
    wheel_entry const& earliest() const noexcept { return earliest_; }
    void set_earliest(wheel_entry entry) noexcept { earliest_ = entry; }
    static constexpr wheel_entry none() noexcept { return {UINT64_MAX, 0, 0}; }

    wheel_entry const& front() const noexcept { return head_->entries[head_->begin]; }

    /// Calls f with each entry, first to last, until f says false.
    template <class F>
    void visit(F&& f) const {
        for (auto const* chunk = head_; chunk != nullptr; chunk = chunk->next) {
            for (auto i = chunk->begin; i != chunk->end; ++i) {
                if (!f(chunk->entries[i])) return;
            }
        }
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

    void push_back(wheel_entry entry, chunk_pool& pool) {
        if (tail_ == nullptr || tail_->end == wheel_chunk::capacity) grow(pool);
        tail_->entries[tail_->end++] = entry;
        ++count_;
        if (entry.due <= earliest_.due) earliest_ = entry;
    }

    void pop_front(chunk_pool& pool) noexcept {
        --count_;
        if (++head_->begin == head_->end) {
            pool.give(std::exchange(head_, head_->next));
            if (head_ == nullptr) *this = {};
        }
    }

    /// Prefetch hint: the entry `distance` behind the front, or the last one of the first chunk.
    wheel_entry const& ahead(std::uint32_t distance) const noexcept {
        return head_->entries[(std::min)(head_->begin + distance, head_->end - 1)];
    }

    void clear(chunk_pool& pool) noexcept {
        while (head_ != nullptr) pool.give(std::exchange(head_, head_->next));
        *this = {};
    }

    /// Appends all of `other`, chunk by chunk.
    void splice(entry_list& other) noexcept {
        if (other.empty()) return;
        (tail_ == nullptr ? head_ : tail_->next) = other.head_;
        tail_ = other.tail_;
        count_ += other.count_;
        if (other.earliest_.due <= earliest_.due) earliest_ = other.earliest_;
        other = {};
    }

    /// Drops what `keep` refuses and gives back the memory; keeps the order. Returns how many were dropped.
    template <class Keep>
    std::size_t compact(chunk_pool& pool, Keep keep) noexcept {
        auto const before = count_;
        auto* to = head_; // never overtakes the reader: it has written no more than was read
        std::uint32_t at = 0;
        count_ = 0;
        earliest_ = none();
        for (auto* from = head_; from != nullptr; from = from->next) {
            auto const end = from->end;
            for (auto i = from->begin; i != end; ++i) {
                auto const entry = from->entries[i];
                if (!keep(entry, from->entries[(std::min)(i + 16, end - 1)])) continue;
                if (at == wheel_chunk::capacity) {
                    to->begin = 0;
                    to->end = at;
                    to = to->next;
                    at = 0;
                }
                to->entries[at++] = entry;
                ++count_;
                if (entry.due <= earliest_.due) earliest_ = entry;
            }
        }
        if (count_ == 0) {
            clear(pool);
            return before;
        }
        to->begin = 0;
        to->end = at;
        tail_ = to;
        for (auto* rest = std::exchange(to->next, nullptr); rest != nullptr;)
            pool.give(std::exchange(rest, rest->next));
        return before - count_;
    }

    std::size_t chunks() const noexcept {
        std::size_t n = 0;
        for (auto const* chunk = head_; chunk != nullptr; chunk = chunk->next) ++n;
        return n;
    }

  private:
    void grow(chunk_pool& pool) {
        auto* const chunk = pool.take();
        (tail_ == nullptr ? head_ : tail_->next) = chunk;
        tail_ = chunk;
    }

    wheel_chunk* head_ = nullptr;
    wheel_chunk* tail_ = nullptr;
    wheel_entry earliest_ = none();
    std::size_t count_ = 0;
};

} // namespace ax::detail
