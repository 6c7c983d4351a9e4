// SPDX-License-Identifier: MIT
// A hierarchical timing wheel for any 64-bit horizon. Time is cut into digits of six bits; a timer sits at the level of
// the highest digit in which its deadline differs from the wheel's position, in the slot that its own digit names. So a
// timer moves to a lower level only when the position enters its slot, all timers of one tick are always in one slot in
// the order of their coming, and the earliest timer is in the first slot of the lowest level in use.
//
// At a million timers cache misses decide, not instructions. Slots hold small plain entries (deadline, index,
// generation) in contiguous chunks; payloads stay where they are until they fire. Cancelling only touches the payload's
// record: the entry, whose generation is then out of date, is dropped when its slot comes up, or by a sweep when such
// entries outnumber the timers.
#pragma once

#include "ax/time/time_point.hpp"
#include "ax/wheel/detail/entry_list.hpp"
#include "ax/wheel/detail/timer_slab.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace ax {

namespace detail {
struct timing_wheel_peer;
}

template <class Payload>
class timing_wheel;

/// Names one timer of the wheel that gave it out. Matches nothing once the timer has fired or was cancelled, and
/// nothing when default-constructed.
class timer_handle {
  public:
    constexpr timer_handle() noexcept = default;
    friend constexpr bool operator==(timer_handle, timer_handle) noexcept = default;

  private:
    template <class Payload>
    friend class timing_wheel;

    constexpr timer_handle(std::uint32_t index, std::uint32_t generation) noexcept
        : index_(index), generation_(generation) {}

    std::uint32_t index_ = 0;
    std::uint32_t generation_ = 0;
};

/// Keeps timers and hands over the payload of each when time has reached its deadline; ticks of one millisecond.
///
/// The wheel has no clock and no thread: advance() tells it the time. Payloads need only be movable. A payload's
/// destructor may use the wheel, except advance() and rewind().
///
/// Threads: distinct wheels may be used at once; one wheel by one thread at a time, next_expiry() included.
/// Source:  Varghese & Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987, scheme 7.
template <class Payload>
class timing_wheel {
    static_assert(std::is_object_v<Payload> && std::is_move_constructible_v<Payload> && std::is_destructible_v<Payload>,
                  "a timing_wheel's payload is a movable object type");

  public:
    using handle = timer_handle;

    /// @param start  The present instant: what is due at or before it fires with the next advance().
    explicit timing_wheel(time_point start)
        : slots_(std::make_unique<detail::entry_list[]>(levels * slots_per_level)), now_(to_tick(start)),
          position_(now_) {}

    /// A wheel that was moved from may only be assigned to or destroyed.
    timing_wheel(timing_wheel&& other) noexcept = default;
    timing_wheel& operator=(timing_wheel&& other) noexcept {
        if (this != &other) {
            std::destroy_at(this);
            std::construct_at(this, std::move(other));
        }
        return *this;
    }

    ~timing_wheel() {
        if (slots_ != nullptr) clear();
    }

    /// Adds a timer. A deadline at or before the present instant is overdue: it fires with the next advance().
    ///
    /// @return     Names the timer until it has fired or was cancelled.
    /// Complexity: O(1). Allocates only while the wheel grows: one block for many timers.
    /// Errors:     std::bad_alloc, or what moving the payload throws; the wheel is then as it was.
    handle schedule(time_point deadline, Payload payload) {
        auto const due = to_tick(deadline);
        auto const record = slab_.insert(std::move(payload));
        auto const index = record.index();
        auto const generation = record.generation();
        try {
            file({due, index, generation});
        } catch (...) {
            discard(record);
            throw;
        }
        ++live_;
        ++operations_;
        return {index, generation};
    }

    /// Takes a timer back and destroys its payload at once.
    ///
    /// @return     False if it has fired, was cancelled before or never existed; that is harmless.
    /// Complexity: O(1), amortised. Does not allocate.
    bool cancel(handle timer) noexcept {
        if (!slab_.known(timer.index_, timer.generation_)) return false;
        auto const record = slab_[timer.index_];
        --live_;
        ++operations_;
        ++record.generation(); // from here on the timer is gone, also for a destructor that looks
        count_dead();
        record.payload().~Payload();
        slab_.release(record);
        return true;
    }

    /// Gives a timer another deadline, earlier or later, and a new handle; the payload stays where it is. Within its
    /// new tick the timer is the last one, as if it had been scheduled just now.
    ///
    /// @return     False, and `timer` is unchanged, if it has fired or was cancelled.
    /// Complexity: O(1), amortised.
    /// Errors:     std::bad_alloc; nothing has changed then.
    bool reschedule(handle& timer, time_point deadline) {
        if (!slab_.known(timer.index_, timer.generation_)) return false;
        auto const record = slab_[timer.index_];
        if (record.generation() + 1 == slab::last_generation) { // this record retires: move to another one
            pool_.reserve(1);                                   // so that only the next line may fail
            auto const fresh = slab_.insert(std::move(record.payload()));
            file({to_tick(deadline), fresh.index(), fresh.generation()});
            ++live_;
            cancel(std::exchange(timer, {fresh.index(), fresh.generation()}));
            return true;
        }
        file({to_tick(deadline), timer.index_, record.generation() + 1});
        timer.generation_ = ++record.generation();
        ++operations_;
        count_dead();
        return true;
    }

    /// Moves time forward to `now` and hands every timer that became due to `fire`, in the order of deadlines.
    ///
    /// Timers of one tick fire in the order in which they were scheduled. `fire` may schedule, cancel and reschedule
    /// any timer; a timer that it cancels does not fire, and one that it schedules for `now` or earlier fires with the
    /// next call, so that a timer which renews itself cannot hold up this one. It must not call advance() (which then
    /// does nothing) or rewind().
    ///
    /// @param now   Earlier than the last call: nothing happens, since clocks step back; see rewind().
    /// @param fire  Called with the payload of each timer as an rvalue. What it throws passes through; that timer
    ///              counts as fired, and the rest fires with the next call.
    /// @return      How many fired.
    /// Complexity:  O(timers fired + timers moved to a lower level), however much time has passed. Allocates only room
    ///              to move or to sort many timers, and keeps what it may need again.
    /// Errors:      std::bad_alloc; no timer is lost.
    template <std::invocable<Payload> Fire>
    std::size_t advance(time_point now, Fire&& fire) {
        auto const target = to_tick(now);
        if (target < now_ || busy_) return 0;
        busy_ = true;
        struct guard {
            timing_wheel& wheel;
            ~guard() {
                wheel.busy_ = false;
                wheel.pool_.trim();
            }
        } const done{*this};

        collect_overdue();
        now_ = target;
        std::size_t fired = 0;
        for (;;) {
            auto const next = first_slot();
            if (!next || next->start > now_) break;
            fired += fire_until(next->start, fire);
            if (!slots_[next->at].empty()) open(*next); // unless `fire` has cancelled all that was in it
        }
        position_ = now_; // before the rest fires: what `fire` schedules gets its place by where the wheel will stand
        return fired + fire_until(now_, fire);
    }

    /// The deadline of the earliest timer, or nothing if there is none: advance() has nothing to fire before it.
    ///
    /// Exact, with one exception: when the earliest timer was cancelled and more than 256 others share its slot, the
    /// next one is looked for only after every so many calls that change the wheel. Until then this may be the deadline
    /// of the cancelled timer, which is never too late and, once reached by advance(), does not come again.
    ///
    /// Complexity: O(levels), amortised over the calls of schedule() and cancel(). Does not allocate.
    std::optional<time_point> next_expiry() const noexcept {
        if (live_ == 0) return std::nullopt;
        auto earliest = std::optional<std::uint64_t>{};
        auto const consider = [&](std::optional<std::uint64_t> found) {
            if (found && (!earliest || *found < *earliest)) earliest = found;
            return found.has_value();
        };
        current_.visit([&](detail::wheel_entry const& e) { // in order: the first that is alive
            return !consider(slab_.alive(e.index, e.generation) ? std::optional(e.due) : std::nullopt);
        });
        consider(earliest_in(overdue_, false));
        for (auto rest = used_levels_; rest != 0; rest &= rest - 1) {
            auto const level = static_cast<unsigned>(std::countr_zero(rest));
            for (auto bits = occupied_[level]; bits != 0; bits &= bits - 1) {
                auto const digit = static_cast<unsigned>(std::countr_zero(bits));
                if (consider(earliest_in(slots_[level * slots_per_level + digit], level == 0)))
                    return to_time(*earliest);
            }
        }
        return earliest ? std::optional(to_time(*earliest)) : std::nullopt;
    }

    /// The earliest instant at which advance() fires something: next_expiry(), but not before position(), since
    /// advance() does nothing with an earlier one. The same costs.
    std::optional<time_point> next_advance() const noexcept {
        auto const next = next_expiry();
        return next ? std::optional((std::max)(*next, position())) : next;
    }

    /// The instant that the wheel has reached: the start, or what advance() or rewind() set.
    time_point position() const noexcept { return to_time(now_); }

    /// Moves the wheel back to `now`, for a clock that was set back: what was overdue and is now in the future waits
    /// for its deadline again. Not earlier than the last instant: nothing happens.
    ///
    /// Complexity: O(n). Must not be called by `fire`.
    /// Errors:     std::bad_alloc; nothing has changed then.
    void rewind(time_point now) {
        auto const target = to_tick(now);
        if (target >= now_ || busy_) return;
        pool_.reserve((std::min)(live_ + dead_, std::size_t{levels * slots_per_level + 1}));
        auto all = take_all();
        now_ = target;
        position_ = target;
        all.drain(pool_, [this](detail::wheel_entry const& entry) {
            if (slab_.alive(entry.index, entry.generation)) {
                file(entry);
            } else {
                --dead_;
            }
        });
        pool_.trim();
    }

    std::size_t size() const noexcept { return live_; }
    bool empty() const noexcept { return live_ == 0; }

    /// Destroys all payloads. Timers that their destructors schedule stay.
    void clear() noexcept {
        auto const outer = std::exchange(busy_, true);
        current_ = take_all(); // a member, so that a sweep on behalf of a destructor sees what is left
        while (!current_.empty()) {
            auto const entry = current_.front();
            current_.pop_front(pool_);
            if (slab_.alive(entry.index, entry.generation)) {
                --live_;
                discard(slab_[entry.index]);
            } else {
                --dead_;
            }
        }
        busy_ = outer;
        pool_.trim();
    }

    /// Bytes that the wheel holds, those kept for the next timers included; without what payloads own elsewhere.
    std::size_t memory() const noexcept {
        return levels * slots_per_level * sizeof(detail::entry_list) + pool_.memory() + slab_.memory();
    }

    /// True if all inner bounds hold. For tests. O(n).
    bool check_invariants() const {
        std::size_t alive = 0;
        std::size_t dead = 0;
        std::size_t chunks = 0;
        bool good = position_ <= now_;
        auto const check = [&](detail::entry_queue const& queue, auto&& placed) {
            std::size_t entries = 0;
            queue.visit([&](detail::wheel_entry const& e) {
                auto const is_alive = slab_.alive(e.index, e.generation);
                good = good && (!is_alive || placed(e.due));
                ++(is_alive ? alive : dead);
                ++entries;
                return true;
            });
            good = good && entries == queue.size();
            chunks += queue.chunks();
        };
        std::uint64_t last = 0;
        check(current_, [&](std::uint64_t due) { return std::exchange(last, due) <= due; });
        check(overdue_.queue(), [&](std::uint64_t due) { return due <= now_ && due >= overdue_.earliest().due; });
        for (unsigned level = 0; level != levels; ++level) {
            for (unsigned digit = 0; digit != slots_per_level; ++digit) {
                auto const at = level * slots_per_level + digit;
                auto const& list = slots_[at];
                good = good && list.empty() == ((occupied_[level] >> digit & 1) == 0);
                check(list.queue(), [&](std::uint64_t due) {
                    return due >= position_ && slot_of(due) == at && due >= list.earliest().due;
                });
            }
            good = good && (occupied_[level] != 0) == ((used_levels_ >> level & 1) != 0);
        }
        return good && alive == live_ && dead == dead_ && chunks == pool_.used() && slab_.audit() == live_;
    }

  private:
    friend struct detail::timing_wheel_peer; // of the tests

    using slab = detail::timer_slab<Payload>;
    using reference = typename slab::reference;

    static constexpr unsigned bits_per_level = 6;
    static constexpr unsigned slots_per_level = 1U << bits_per_level;
    static constexpr unsigned levels = (64 + bits_per_level - 1) / bits_per_level;
    static constexpr std::size_t dead_tolerated = 64;

    // Ticks are unsigned and in the order of instants, so that the whole range of time_point has a place.
    static constexpr std::uint64_t to_tick(time_point t) noexcept {
        return static_cast<std::uint64_t>(t.time_since_epoch().count()) ^ std::uint64_t{1} << 63;
    }
    static constexpr time_point to_time(std::uint64_t tick) noexcept {
        return time_point{duration{static_cast<std::int64_t>(tick ^ std::uint64_t{1} << 63)}};
    }

    unsigned slot_of(std::uint64_t due) const noexcept {
        auto const level = static_cast<unsigned>(std::bit_width((due ^ position_) | 1) - 1) / bits_per_level;
        return level * slots_per_level + (static_cast<unsigned>(due >> level * bits_per_level) & (slots_per_level - 1));
    }

    void file(detail::wheel_entry entry) {
        if (entry.due <= now_) {
            overdue_.push_back(entry, pool_);
        } else {
            place(entry);
        }
    }

    /// Puts an entry that is not before the position into its slot.
    void place(detail::wheel_entry entry) {
        auto const at = slot_of(entry.due);
        slots_[at].push_back(entry, pool_);
        auto const level = at / slots_per_level;
        occupied_[level] |= std::uint64_t{1} << at % slots_per_level;
        used_levels_ |= 1U << level;
    }

    /// The entries of a slot, for an owner who leaves nothing of them there.
    detail::entry_queue& take_slot(unsigned level, unsigned digit) noexcept {
        occupied_[level] &= ~(std::uint64_t{1} << digit);
        if (occupied_[level] == 0) used_levels_ &= ~(1U << level);
        return slots_[level * slots_per_level + digit].take();
    }

    /// All entries; those of one deadline are in their order.
    detail::entry_queue take_all() noexcept {
        auto all = std::exchange(current_, {});
        while (auto const slot = first_slot()) all.append(take_slot(slot->level, slot->digit));
        all.append(overdue_.take()); // last: what shares a deadline with an entry above was scheduled later
        return all;
    }

    /// Adds what was overdue before this call of advance() to current_.
    void collect_overdue() {
        if (overdue_.empty()) return;
        auto last = std::uint64_t{0};
        auto simple = true;
        overdue_.queue().visit([&](detail::wheel_entry const& e) {
            simple = last <= e.due && e.due <= position_;
            last = e.due;
            return simple;
        });
        if (simple && (current_.empty() || last < current_.front().due) &&
            (last < position_ || slots_[slot_of(position_)].empty())) {
            current_.prepend(overdue_.take());
            return;
        }
        // Out of order, or an earlier call was cut short by an exception: then timers of the same tick may wait in
        // current_ and in the wheel, and come first since they were scheduled before.
        std::vector<detail::wheel_entry> entries;
        entries.reserve(current_.size() + overdue_.size());
        pool_.reserve((std::min)(overdue_.size(), std::size_t{levels * slots_per_level}) + 2);
        current_.drain(pool_, [&](detail::wheel_entry const& entry) { entries.push_back(entry); });
        auto const waiting = entries.size();
        overdue_.take().drain(pool_, [&](detail::wheel_entry const& entry) {
            if (entry.due < position_) {
                entries.push_back(entry);
            } else {
                place(entry);
            }
        });
        auto const by_due = [](auto const& a, auto const& b) { return a.due < b.due; };
        if (entries.size() != waiting) std::stable_sort(entries.begin(), entries.end(), by_due);
        for (auto const& entry : entries) current_.push_back(entry, pool_);
    }

    /// Fires what is in current_ and due by `tick`. `fire` may change current_ by cancelling.
    template <class Fire>
    std::size_t fire_until(std::uint64_t tick, Fire& fire) {
        std::size_t fired = 0;
        while (!current_.empty() && current_.front().due <= tick) {
            current_.look_ahead(8, [this](detail::wheel_entry const& e) { slab_.prefetch_record(e.index); });
            auto const entry = current_.front();
            if (!slab_.alive(entry.index, entry.generation)) {
                current_.pop_front(pool_);
                --dead_;
                continue;
            }
            auto const record = slab_[entry.index];
            Payload payload(std::move(record.payload()));
            current_.pop_front(pool_);
            --live_;
            discard(record);
            ++fired;
            fire(std::move(payload));
        }
        return fired;
    }

    struct slot_place {
        unsigned level;
        unsigned digit;
        unsigned at;
        std::uint64_t start;
    };

    /// The slot with the earliest entries.
    std::optional<slot_place> first_slot() const noexcept {
        if (used_levels_ == 0) return std::nullopt;
        auto const level = static_cast<unsigned>(std::countr_zero(used_levels_));
        auto const digit = static_cast<unsigned>(std::countr_zero(occupied_[level]));
        return slot_place{level, digit, level * slots_per_level + digit, slot_start(level, digit)};
    }

    /// Moves the position into a slot that is due: its entries go to current_ or to lower levels. What is in current_
    /// is later.
    void open(slot_place const& slot) {
        auto& list = slots_[slot.at];
        if (slot.level == 0) {
            position_ = slot.start;
        } else if (list.earliest().generation == 0) { // known to have no timer that is alive
            dead_ -= list.size();
            take_slot(slot.level, slot.digit).clear(pool_);
            return;
        } else {
            // Straight to the first timer: a lonely one far away then moves once and not once a level.
            if (!current_.empty() || !list.sort_if_short()) return cascade(slot);
            position_ = (std::min)(list.earliest().due, now_);
        }
        current_.prepend(take_slot(slot.level, slot.digit));
    }

    std::uint64_t slot_start(unsigned level, unsigned digit) const noexcept {
        auto const shift = level * bits_per_level;
        auto const above = level + 1 == levels ? 0 : position_ >> (shift + bits_per_level) << (shift + bits_per_level);
        return above | std::uint64_t{digit} << shift;
    }

    /// Enters a slot of a higher level: its timers move to lower ones.
    void cascade(slot_place const& slot) {
        auto const most = std::size_t{slot.level * slots_per_level};
        pool_.reserve((std::min)(slots_[slot.at].size(), most) + 1); // nothing below may fail
        position_ = (std::min)(slots_[slot.at].earliest().due, now_);
        take_slot(slot.level, slot.digit).drain(pool_, [this](detail::wheel_entry const& entry) {
            if (entry.due < position_) { // before the earliest that is alive
                --dead_;
            } else {
                slab_.prefetch_record(entry.index);
                place(entry);
            }
        });
    }

    /// Destroys a payload and frees its record.
    void discard(reference record) noexcept {
        ++record.generation();
        record.payload().~Payload();
        slab_.release(record);
    }

    /// Counts an entry whose timer is gone, and sweeps when such outnumber the timers: the cost of a sweep is then paid
    /// by the cancellations since the last one.
    void count_dead() noexcept {
        if (++dead_ > live_ + dead_tolerated) sweep();
    }

    void sweep() noexcept {
        auto const keep = [&](detail::wheel_entry const& entry) { return slab_.alive(entry.index, entry.generation); };
        current_.compact(pool_, keep, [](detail::wheel_entry const&) {});
        overdue_.compact(pool_, keep);
        for (auto rest = used_levels_; rest != 0; rest &= rest - 1) {
            auto const level = static_cast<unsigned>(std::countr_zero(rest));
            for (auto bits = occupied_[level]; bits != 0; bits &= bits - 1) {
                auto const digit = static_cast<unsigned>(std::countr_zero(bits));
                auto& slot = slots_[level * slots_per_level + digit];
                slot.compact(pool_, keep);
                if (slot.empty()) take_slot(level, digit);
            }
        }
        dead_ = 0;
        pool_.trim();
    }

    /// The earliest due time in a list, or nothing if all its timers are gone. If sorted: that of the first one alive.
    std::optional<std::uint64_t> earliest_in(detail::entry_list const& list, bool sorted) const noexcept {
        if (list.empty()) return std::nullopt;
        auto const known = list.earliest();
        if (known.generation == 0) return std::nullopt;
        if (slab_.alive(known.index, known.generation)) return known.due;
        // It was cancelled. A search is paid for by the calls since the last one; until then the old answer is early,
        // not late.
        if (list.size() > search_free && (operations_ - last_search_) * search_per_operation < list.size())
            return known.due;
        if (list.size() > search_free) last_search_ = operations_;
        auto best = detail::entry_list::none();
        list.queue().visit([&](detail::wheel_entry const& e) {
            if (best.generation != 0 && e.due >= best.due) return true;
            if (!slab_.alive(e.index, e.generation)) return true;
            best = e;
            return !sorted;
        });
        list.set_earliest(best);
        return best.generation == 0 ? std::nullopt : std::optional(best.due);
    }

    static constexpr std::size_t search_free = 256;
    static constexpr std::size_t search_per_operation = 64;

    std::unique_ptr<detail::entry_list[]> slots_; // level by level
    std::uint64_t now_;                           // what advance() was told last
    std::uint64_t position_;                      // what slots are relative to; behind now_ only while something is due
    std::array<std::uint64_t, levels> occupied_{}; // a bit for each slot that has entries
    std::uint32_t used_levels_ = 0;
    bool busy_ = false; // in advance() or clear()
    std::size_t live_ = 0;
    std::size_t dead_ = 0; // entries whose timer is gone
    std::uint64_t operations_ = 0;
    mutable std::uint64_t last_search_ = 0;
    detail::entry_queue current_; // comes next, in order: what was overdue, one tick, a slot of few timers
    detail::entry_list overdue_;  // scheduled when already due: fires with the next advance()
    slab slab_;
    detail::chunk_pool pool_;
};

} // namespace ax
