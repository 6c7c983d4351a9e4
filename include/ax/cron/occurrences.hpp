// SPDX-License-Identifier: MIT
#pragma once

#include "ax/time/time_point.hpp"

#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>

namespace ax {

/// The occurrences between two instants, both excluded, in order, each found when it is asked for: a forward range.
///
/// It keeps a copy of its source; its iterators point into it and must not outlive it.
/// @tparam Source  Anything with next(time_point) -> std::optional<time_point>, the first occurrence after an instant.
template <class Source>
class occurrence_range {
  public:
    class iterator {
      public:
        using value_type = time_point;
        using difference_type = std::ptrdiff_t;
        using iterator_concept = std::forward_iterator_tag;
        using iterator_category = std::input_iterator_tag; // dereferencing makes a value, not a reference

        iterator() = default;

        time_point operator*() const noexcept { return *at_; }

        iterator& operator++() {
            at_ = range_->following(*at_);
            return *this;
        }

        iterator operator++(int) {
            auto const old = *this;
            ++*this;
            return old;
        }

        friend bool operator==(iterator const& a, iterator const& b) noexcept { return a.at_ == b.at_; }
        friend bool operator==(iterator const& i, std::default_sentinel_t) noexcept { return !i.at_; }

      private:
        friend class occurrence_range;
        iterator(occurrence_range const* range, std::optional<time_point> at) : range_(range), at_(at) {}

        occurrence_range const* range_ = nullptr;
        std::optional<time_point> at_;
    };

    /// @param before  Excluded.
    occurrence_range(Source source, time_point after, time_point before)
        : source_(std::move(source)), after_(after), before_(before) {}

    iterator begin() const { return {this, following(after_)}; }
    std::default_sentinel_t end() const noexcept { return {}; }
    bool empty() const { return !following(after_); }

  private:
    std::optional<time_point> following(time_point t) const {
        auto found = source_.next(t);
        if (found && *found >= before_) found.reset();
        return found;
    }

    Source source_;
    time_point after_, before_;
};

} // namespace ax
