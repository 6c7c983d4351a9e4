// SPDX-License-Identifier: MIT
// Where the payloads of a timing wheel live: blocks of records that never move, addressed by index and generation. The
// generations of a block lie together and apart from the payloads, because cancelling and sweeping need nothing else:
// four bytes a timer instead of a cache line.
#pragma once

#include "ax/wheel/detail/entry_list.hpp"

#include <algorithm>
#include <bit>
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
    static constexpr std::uint32_t block_size = 512;
    static constexpr std::uint32_t words = block_size / 64;
    struct block;

  public:
    /// A generation names one use of a record. The last value is never given out: a record that reaches it retires, so
    /// that a stale handle cannot match a later timer, however long it is kept.
    static constexpr std::uint32_t first_generation = 1;
    static constexpr std::uint32_t last_generation = (std::numeric_limits<std::uint32_t>::max)();

    /// One record; valid while the record is in use.
    class reference {
      public:
        std::uint32_t& generation() const noexcept { return block_->generations[at_]; }
        Payload& payload() const noexcept { return block_->cells[at_].payload; }
        std::uint32_t index() const noexcept { return block_->number * block_size + at_; }

      private:
        friend class timer_slab;
        reference(block* b, std::uint32_t at) noexcept : block_(b), at_(at) {}
        block* block_;
        std::uint32_t at_;
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

    /// True if the record with this index is in that use. The index must be one that was given out.
    bool alive(std::uint32_t index, std::uint32_t generation) const noexcept {
        auto const* const b = blocks_[index / block_size];
        return b != nullptr && b->generations[index % block_size] == generation;
    }

    /// The same for an index and a generation that may come from anywhere.
    bool known(std::uint32_t index, std::uint32_t generation) const noexcept {
        return generation != 0 && index / block_size < blocks_.size() && alive(index, generation);
    }

    /// The record of a timer that is alive.
    reference operator[](std::uint32_t index) const noexcept {
        return {blocks_[index / block_size], index % block_size};
    }

    void prefetch_record(std::uint32_t index) const noexcept {
        auto const* const b = blocks_[index / block_size];
        if (b == nullptr) return;
        prefetch(&b->generations[index % block_size]);
        prefetch(&b->cells[index % block_size]);
    }

    /// Stores a payload in an unused record.
    reference insert(Payload&& payload) {
        auto* const b = open_ != nullptr ? open_ : open_block();
        auto const word = static_cast<std::uint32_t>(std::countr_zero(b->open_words));
        auto const at = word * 64 + static_cast<std::uint32_t>(std::countr_zero(b->unused[word]));
        std::construct_at(std::addressof(b->cells[at].payload),
                          std::move(payload)); // may throw: nothing has changed yet
        b->unused[word] &= b->unused[word] - 1;
        ++b->live;
        if (b->unused[word] == 0) {
            b->open_words &= b->open_words - 1;
            if (b->open_words == 0) unlink(open_, b);
        }
        return {b, at};
    }

    /// Takes back a record whose payload has been destroyed and whose generation has been raised.
    void release(reference r) noexcept {
        auto* const b = r.block_;
        if (r.generation() == last_generation) {
            ++b->retired;
        } else {
            if (b->open_words == 0) link(open_, b); // in front: the block that was just used is the one in the cache
            b->unused[r.at_ / 64] |= std::uint64_t{1} << r.at_ % 64;
            b->open_words |= 1U << r.at_ / 64;
        }
        if (--b->live == 0) retire(b);
    }

    std::size_t memory() const noexcept {
        return allocated_ * sizeof(block) + blocks_.capacity() * sizeof(block*) +
               (bases_.capacity() + unused_numbers_.capacity()) * sizeof(std::uint32_t);
    }

    /// How many records are in use, or SIZE_MAX if the books do not balance. For tests.
    std::size_t audit() const noexcept {
        std::size_t live = 0;
        std::size_t present = 0;
        std::size_t open = 0;
        std::size_t linked = 0;
        for (auto const* b : blocks_) {
            if (b == nullptr) continue;
            ++present;
            std::size_t unused = 0;
            for (std::uint32_t word = 0; word != words; ++word) {
                unused += static_cast<std::size_t>(std::popcount(b->unused[word]));
                if ((b->unused[word] != 0) != ((b->open_words >> word & 1) != 0)) return SIZE_MAX;
            }
            if (unused + b->live + b->retired != block_size) return SIZE_MAX;
            open += b->open_words != 0 ? 1 : 0;
            live += b->live;
        }
        for (auto const* b = open_; b != nullptr; b = b->next) linked += b->open_words != 0 ? 1 : SIZE_MAX / 2;
        for (auto const* b = idle_; b != nullptr; b = b->next) linked += b->live == 0 ? 1 : SIZE_MAX / 2;
        return present == allocated_ && open == linked ? live : SIZE_MAX;
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
    static constexpr std::size_t idle_kept = 4;
    static constexpr std::uint32_t worn_out = last_generation / 2; // a block is not begun with less life than this

    union cell {
        cell() noexcept {}
        ~cell() {}
        cell(cell const&) = delete;
        cell& operator=(cell const&) = delete;
        Payload payload;
    };

    struct block {
        block(std::uint32_t n, std::uint32_t generation) noexcept : number(n) {
            std::fill_n(unused, words, ~std::uint64_t{0});
            std::fill_n(generations, block_size, generation); // all: an old entry may ask for any of them
        }

        block* next = nullptr; // of the open or the idle blocks
        block* previous = nullptr;
        std::uint32_t number;
        std::uint32_t live = 0;
        std::uint32_t retired = 0;
        std::uint32_t open_words = (1U << words) - 1; // a bit for each word of `unused` that is not 0
        std::uint64_t unused[words];
        std::uint32_t generations[block_size];
        cell cells[block_size];
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
            if (number == blocks_.capacity()) blocks_.reserve(number + number / 2 + 8);
            bases_.reserve(blocks_.capacity());
            unused_numbers_.reserve(blocks_.capacity()); // so that giving a number back cannot fail
            bases_.push_back(first_);
            blocks_.push_back(nullptr);
            unused_numbers_.push_back(static_cast<std::uint32_t>(number));
        }
        auto const number = unused_numbers_.back();
        auto* const b = new block(number, bases_[number]);
        unused_numbers_.pop_back();
        blocks_[number] = b;
        ++allocated_;
        return b;
    }

    /// An empty block is kept for the next timers while there are few such, else its memory goes back.
    void retire(block* b) noexcept {
        if (b->open_words != 0) unlink(open_, b);
        if (b->retired != 0) {
            destroy(b);
        } else {
            link(idle_, b);
            ++idle_count_;
        }
        while (4 * idle_count_ > allocated_ + 4 * idle_kept) {
            auto* const idle = idle_;
            unlink(idle_, idle);
            --idle_count_;
            destroy(idle);
        }
    }

    void destroy(block* b) noexcept {
        auto const base = *std::max_element(b->generations, b->generations + block_size);
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
