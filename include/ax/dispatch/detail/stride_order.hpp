// SPDX-License-Identifier: MIT
//
// Which class is served next. Every class is due at an instant of a virtual time; the one that is due first is drawn,
// virtual time moves there, and the class is due again one stride later, where stride = common multiple / weight.
// (Waldspurger & Weihl, "Stride Scheduling", MIT/LCS/TM-528, 1995; the rule for arrivals is that of self-clocked fair
// queueing: Golestani, INFOCOM 1994.)
//
// Virtual time is kept at zero by subtracting it from every `due`, so nothing grows and nothing overflows. Three rules:
//  (a) a class that has nothing to draw stays at least stride - 1 away: it earns nothing while idle;
//  (b) a class that has something but is not allowed stays at least 1 away: when it is allowed again it is first in
//      line, and has no more than that one draw in advance;
//  (c) two draws of a class are at least a stride apart.
//
// The bound. Let c have something to draw and be allowed. Then every other class j is drawn at most ceil(w_j / w_c)
// times before c is. Proof: draws happen at non-decreasing instants, none later than due(c), and by (c) those of j are
// at least stride(j) apart.
//  - Counted from a draw of c, at 0: c is due at stride(c). Where j wins ties against c, j was not due at 0 as well, or
//    it would have been drawn instead; unless it could not be drawn, and then (a), (b) and stride >= 2 put it at 1 or
//    later. So its draws lie in (0, stride(c)]. Where c wins ties they lie in [0, stride(c)). Both are half open and
//    hold at most ceil(stride(c) / stride(j)) draws.
//  - Counted from a later instant at which c comes or is allowed again: it is then due in at most stride(c) - 1, and
//    [0, stride(c) - 1] holds at most ceil(stride(c) / stride(j)) draws. That is what the 1 in (a) is for.
// stride(c) / stride(j) is w_j / w_c exactly, since strides are whole; one rounded from a fixed scale breaks the bound.
#pragma once

#include "ax/core/error.hpp"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>

namespace ax::detail {

template <std::size_t N>
class stride_order {
  public:
    using class_set = std::array<bool, N>;

    constexpr explicit stride_order(std::array<std::size_t, N> const& weights) {
        constexpr std::int64_t most = std::int64_t{1} << 60;
        std::int64_t multiple = 1;
        for (std::size_t c = 0; c < N; ++c) {
            if (weights[c] == 0) throw error{errc::invalid_argument, "weight of class " + std::to_string(c) + " is 0"};
            if (weights[c] > static_cast<std::size_t>(most)) throw too_large(c);
            auto const weight = static_cast<std::int64_t>(weights[c]);
            // Twice the weight, so that no stride is below 2.
            auto const factor = 2 * weight / std::gcd(2 * weight, multiple);
            if (factor > most / multiple) throw too_large(c);
            multiple *= factor;
        }
        for (std::size_t c = 0; c < N; ++c) {
            stride_[c] = multiple / static_cast<std::int64_t>(weights[c]);
            due_[c] = stride_[c] - 1;
        }
    }

    /// The class to draw next among `candidates`; N where there is none. Of two that are due at once the lower number.
    constexpr std::size_t next(class_set const& candidates) const noexcept {
        std::size_t first = N;
        for (std::size_t c = 0; c < N; ++c) {
            if (candidates[c] && (first == N || due_[c] < due_[first])) first = c;
        }
        return first;
    }

    /// Notes that `drawn` was drawn: next() of the classes that are both in `waiting` (they had something) and
    /// `allowed`.
    constexpr void draw(std::size_t drawn, class_set const& waiting, class_set const& allowed) noexcept {
        auto const at = due_[drawn];
        for (std::size_t c = 0; c < N; ++c) {
            auto const earliest = !waiting[c] ? stride_[c] - 1 : std::int64_t{!allowed[c]};
            due_[c] = due_[c] - at < earliest ? earliest : due_[c] - at;
        }
        due_[drawn] = stride_[drawn];
    }

    /// The most draws of other classes that pass while `c` has something to draw and is allowed.
    constexpr std::size_t longest_wait(std::size_t c) const noexcept {
        std::int64_t sum = 0;
        for (std::size_t j = 0; j < N; ++j) {
            if (j != c) sum += (stride_[c] - 1) / stride_[j] + 1;
        }
        return static_cast<std::size_t>(sum);
    }

    friend constexpr auto operator<=>(stride_order const&, stride_order const&) = default;

  private:
    static error too_large(std::size_t c) {
        return error{errc::invalid_argument,
                     "weight of class " + std::to_string(c) + " is too large, or shares too few factors"};
    }

    std::array<std::int64_t, N> due_{};    ///< virtual time from now to the next draw, had the class something to draw
    std::array<std::int64_t, N> stride_{}; ///< virtual time between two draws
};

} // namespace ax::detail
