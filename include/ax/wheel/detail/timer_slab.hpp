// SPDX-License-Identifier: MIT
// Where the payloads of a timing wheel live: blocks of records that never move, addressed by index and generation.
#pragma once

#include "ax/wheel/detail/entry_list.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace ax::detail {

template <class Payload>
class timer_slab {
  public:
    /// A generation names one use of a record. The last value is never given out: a record that reaches it retires, so
    /// that a stale handle cannot match a later timer, however long it is kept.
    static constexpr std::uint32_t first_generation = 1;
    static constexpr std::uint32_t last_generation = (std::numeric_limits<std::uint32_t>::max)();

    struct record {
        record() noexcept {}
        ~record() {}
        record(record const&) = delete;
        record& operator=(record const&) = delete;

        std::uint32_t generation;
        std::uint32_t next; // of the block's free records
        union {
            Payload payload;
        };
    };

    /// @param first  Where generations begin; another value is for tests.
    explicit timer_slab(std::uint32_t first = first_generation) noexcept : first_(first) {}
    timer_slab(timer_slab&& other) noexcept { swap(other); }
    timer_slab& operator=(timer_slab&& other) noexcept {
        timer_slab(std::move(other)).swap(*this);
        return *this;
    }
    ~timer_slab() {
        for (auto* b : blocks_) delete b; // payloads were destroyed by the wheel, which knows which are alive
    }

    /// The record with this index and generation, or null if that use of it is over.
    record* find(std::uint32_t index, std::uint32_t generation) const noexcept {
        auto* const b = blocks_[index / block_size];
        if (b == nullptr) return nullptr;
        auto& r = b->records[index % block_size];
        return r.generation == generation ? &r : nullptr;
    }

    /// The same for an index and a generation that may come from anywhere.
    record* find_any(std::uint32_t index, std::uint32_t generation) const noexcept {
        if (generation == 0 || index / block_size >= blocks_.size()) return nullptr;
        return find(index, generation);
    }

    void prefetch_record(std::uint32_t index) const noexcept {
        auto const* const b = blocks_[index / block_size];
        if (b != nullptr) prefetch(&b->records[index % block_size]);
    }

    /// Stores a payload. Returns its index and record.
    std::pair<std::uint32_t, record*> insert(Payload&& payload) {
        auto* const b = open_ != nullptr ? open_ : open_block();
        auto const reuse = b->free != no_record;
        auto const at = reuse ? b->free : b->fresh;
        auto& r = b->records[at];
        std::construct_at(std::addressof(r.payload), std::move(payload)); // may throw: nothing has changed yet
        if (reuse) {
            b->free = r.next;
        } else {
            ++b->fresh;
        }
        ++b->live;
        if (b->full()) unlink(open_, b);
        return {b->number * block_size + at, &r};
    }

    /// Takes back a record whose payload has been destroyed and whose generation has been raised.
    void release(std::uint32_t index) noexcept {
        auto* const b = blocks_[index / block_size];
        auto& r = b->records[index % block_size];
        auto const was_full = b->full();
        --b->live;
        if (r.generation == last_generation) {
            ++b->retired;
        } else {
            r.next = b->free;
            b->free = index % block_size;
            if (was_full) link(open_, b); // in front: the record that was just used is the one still in the cache
        }
        if (b->live == 0) retire(b);
    }

    std::size_t memory() const noexcept {
        return allocated_ * sizeof(block) + blocks_.capacity() * sizeof(block*) +
               (bases_.capacity() + unused_numbers_.capacity()) * sizeof(std::uint32_t);
    }

    /// Of all blocks: how many records are in use, or SIZE_MAX if the books do not balance. For tests.
    std::size_t audit() const noexcept {
        std::size_t live = 0;
        std::size_t present = 0;
        std::size_t open = 0;
        std::size_t idle = 0;
        for (auto const* b : blocks_) {
            if (b == nullptr) continue;
            ++present;
            std::uint32_t unused = 0;
            for (auto i = b->free; i != no_record; i = b->records[i].next) ++unused;
            if (unused + b->live + b->retired != b->fresh) return SIZE_MAX;
            live += b->live;
        }
        for (auto const* b = open_; b != nullptr; b = b->next) open += b->full() ? SIZE_MAX / 2 : 1;
        for (auto const* b = idle_; b != nullptr; b = b->next) idle += b->live != 0 ? SIZE_MAX / 2 : 1;
        auto const balanced = present == allocated_ && idle == idle_count_ && open + idle <= present;
        return balanced ? live : SIZE_MAX;
    }

    void swap(timer_slab& other) noexcept {
        std::swap(first_, other.first_);
        blocks_.swap(other.blocks_);
        bases_.swap(other.bases_);
        unused_numbers_.swap(other.unused_numbers_);
        std::swap(open_, other.open_);
        std::swap(idle_, other.idle_);
        std::swap(allocated_, other.allocated_);
        std::swap(idle_count_, other.idle_count_);
    }

  private:
    static constexpr std::uint32_t block_size = 512;
    static constexpr std::uint32_t no_record = block_size;
    static constexpr std::size_t idle_kept = 4;
    static constexpr std::uint32_t worn_out = last_generation / 2; // a block is not begun with less life than this

    struct block {
        bool full() const noexcept { return free == no_record && fresh == block_size; }

        block* next = nullptr; // of the open or idle blocks
        block* previous = nullptr;
        std::uint32_t number = 0;
        std::uint32_t free = no_record;
        std::uint32_t fresh = 0; // the records from here on have not been used yet
        std::uint32_t live = 0;
        std::uint32_t retired = 0;
        record records[block_size];
    };

    static void link(block*& list, block* b) noexcept {
        b->previous = nullptr;
        b->next = list;
        if (list != nullptr) list->previous = b;
        list = b;
    }

    static void unlink(block*& list, block* b) noexcept {
        (b->previous == nullptr ? list : b->previous->next) = b->next;
        if (b->next != nullptr) b->next->previous = b->previous;
    }

    block* open_block() {
        block* b = idle_;
        if (b != nullptr) {
            unlink(idle_, b);
            --idle_count_;
        } else {
            b = new_block();
        }
        link(open_, b);
        return b;
    }

    block* new_block() {
        if (unused_numbers_.empty()) {
            auto const number = blocks_.size();
            if (number > last_generation / block_size) throw std::bad_alloc(); // indexes have 32 bits
            if (number == blocks_.capacity()) blocks_.reserve(2 * number + 8);
            bases_.reserve(blocks_.capacity());
            unused_numbers_.reserve(blocks_.capacity()); // so that giving a number back cannot fail
            bases_.push_back(first_);
            blocks_.push_back(nullptr);
            unused_numbers_.push_back(static_cast<std::uint32_t>(number));
        }
        auto* const b = new block;
        b->number = unused_numbers_.back();
        unused_numbers_.pop_back();
        for (auto& r : b->records) r.generation = bases_[b->number]; // all: an old entry may ask for any of them
        blocks_[b->number] = b;
        ++allocated_;
        return b;
    }

    /// An empty block is kept for the next timers while there are few such, else its memory goes back.
    void retire(block* b) noexcept {
        if (!b->full()) unlink(open_, b);
        if (b->retired != 0) {
            destroy(b);
        } else {
            link(idle_, b);
            ++idle_count_;
        }
        while (2 * idle_count_ > allocated_ + idle_kept) {
            auto* const idle = idle_;
            unlink(idle_, idle);
            --idle_count_;
            destroy(idle);
        }
    }

    void destroy(block* b) noexcept {
        auto base = first_;
        for (auto const& r : b->records) base = (std::max)(base, r.generation);
        bases_[b->number] = base;
        blocks_[b->number] = nullptr;
        if (base < worn_out) unused_numbers_.push_back(b->number);
        --allocated_;
        delete b;
    }

    std::uint32_t first_ = first_generation;
    std::vector<block*> blocks_;
    std::vector<std::uint32_t> bases_;          // first generation of the next block of each number
    std::vector<std::uint32_t> unused_numbers_; // numbers without a block
    block* open_ = nullptr;                     // blocks with room
    block* idle_ = nullptr;                     // blocks without timers
    std::size_t allocated_ = 0;
    std::size_t idle_count_ = 0;
};

} // namespace ax::detail
