// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/error.hpp"
#include "ax/dispatch/detail/stride_order.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ax {

/// A queue of several classes that share the draws by weight: first in, first out within a class, and no class starves.
///
///  1. While several classes hold items, each is drawn in proportion to its weight, spread evenly and not in runs.
///  2. While class c holds an item and is allowed, at most longest_wait(c) = sum over the others j of ceil(w_j / w_c)
///     draws of other classes pass before c is drawn: 3, 4, 7 and 10 for the default weights 50, 25, 15 and 10.
///  3. A pop() returns nothing only when no allowed class holds an item.
///  4. An idle class earns nothing: after a pause it gets its share from then on, and no burst to catch up. A class
///     that was kept back by `allowed` is first in line when it is allowed again, for one draw.
///
/// `detail/stride_order.hpp` holds the algorithm and the proof of the second sentence.
///
/// @tparam T      The items; need only be movable.
/// @tparam Class  Names the classes: std::size_t, or an enumeration with the values 0 to N - 1.
/// @tparam N      How many classes there are.
/// Complexity: O(1) for each item; N (a small constant) compares a draw.
/// Threads:    distinct queues may be used at once; one queue by one thread at a time.
template <class T, class Class = std::size_t, std::size_t N = 4>
    requires(N > 0 && (std::is_enum_v<Class> || std::integral<Class>))
class fair_queue {
  public:
    /// For each class, whether it may be drawn.
    using class_set = std::array<bool, N>;

    /// The weights 50, 25, 15 and 10: critical, high, normal and low.
    fair_queue() requires(N == 4) : fair_queue(std::array<std::size_t, 4>{50, 25, 15, 10}) {}

    /// @param weights  For each class its share of the draws, relative to the sum.
    /// @throws error   invalid_argument where a weight is 0, or where the least common multiple of all exceeds 2^59
    ///                 (any four weights up to 27,000 are good).
    explicit fair_queue(std::array<std::size_t, N> const& weights) : order_(weights) {}

    /// Puts `item` behind the others of its class.
    /// @throws error  invalid_argument where there is no such class; the item is then lost with its argument.
    void push(Class c, T item) {
        items_[index(c)].push_back(std::move(item));
        ++size_;
    }

    /// Takes the item that is next in turn; none where the queue is empty.
    std::optional<T> pop() { return pop(everything()); }

    /// Takes the item that is next in turn among the classes that are `allowed`; none where they are all empty.
    std::optional<T> pop(class_set const& allowed) {
        auto const held = waiting();
        auto const c = order_.next(both(held, allowed));
        if (c == N) return std::nullopt;
        std::optional<T> item{std::move(items_[c].front())};
        items_[c].pop_front();
        --size_;
        order_.draw(c, held, allowed);
        return item;
    }

    /// The class that the next pop() draws from; none where that would return nothing.
    std::optional<Class> next_class() const noexcept { return next_class(everything()); }

    std::optional<Class> next_class(class_set const& allowed) const noexcept {
        auto const c = order_.next(both(waiting(), allowed));
        if (c == N) return std::nullopt;
        return static_cast<Class>(c);
    }

    /// Takes out every item for which `unwanted` holds and leaves the order of the others as it was.
    ///
    /// @param unwanted  Called once for each item; must not use the queue. Where it throws, nothing has changed.
    /// @return          The items, class by class in their order: a caller that holds a lock destroys them after it.
    /// Complexity: O(size).
    template <std::predicate<T const&> Unwanted>
    std::vector<T> remove_if(Unwanted&& unwanted) {
        std::vector<bool> marks;
        marks.reserve(size_);
        std::size_t count = 0;
        for (auto const& line : items_) {
            for (T const& item : line) {
                bool const mark = unwanted(item);
                marks.push_back(mark);
                count += mark ? 1 : 0;
            }
        }
        std::vector<T> removed;
        removed.reserve(count);
        std::size_t at = 0;
        for (auto& line : items_) {
            auto keep = line.begin();
            for (auto it = line.begin(); it != line.end(); ++it) {
                if (marks[at++]) {
                    removed.push_back(std::move(*it));
                } else {
                    if (keep != it) *keep = std::move(*it);
                    ++keep;
                }
            }
            line.erase(keep, line.end());
        }
        size_ -= count;
        return removed;
    }

    std::size_t size() const noexcept { return size_; }

    /// @throws error  invalid_argument where there is no such class.
    std::size_t size(Class c) const { return items_[index(c)].size(); }

    bool empty() const noexcept { return size_ == 0; }

    /// The most draws of other classes that pass while `c` holds an item and is allowed (sentence 2 above).
    /// @throws error  invalid_argument where there is no such class.
    std::size_t longest_wait(Class c) const { return order_.longest_wait(index(c)); }

  private:
    static std::size_t index(Class c) {
        auto const i = static_cast<std::size_t>(c); // a negative number becomes a large one
        if (i >= N) throw error{errc::invalid_argument, "class " + std::to_string(i) + " of " + std::to_string(N)};
        return i;
    }

    static class_set everything() noexcept {
        class_set all;
        all.fill(true);
        return all;
    }

    static class_set both(class_set const& a, class_set const& b) noexcept {
        class_set result;
        for (std::size_t c = 0; c < N; ++c) result[c] = a[c] && b[c];
        return result;
    }

    class_set waiting() const noexcept {
        class_set result;
        for (std::size_t c = 0; c < N; ++c) result[c] = !items_[c].empty();
        return result;
    }

    std::array<std::deque<T>, N> items_;
    detail::stride_order<N> order_;
    std::size_t size_ = 0;
};

} // namespace ax
