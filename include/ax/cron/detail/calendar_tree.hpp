// SPDX-License-Identifier: MIT
// Calendars: cron expressions joined, thinned out and cut off, as a tree that never changes.
//
// What a tree may hold at most (its crons without what is taken from them) is found as fast as a cron's occurrences. So
// a search first tries these candidates. Where many in a row are taken away it changes its method, so that "every
// second, except every second" is answered too: it reads whole minutes as sets of 60 bits, and of each day it writes
// down by what it is determined (the offsets, and for each cron whether its dates are in); of days with the same
// description only the first is looked at. Days on which the clocks change have none and are always looked at.
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/core/error.hpp"
#include "ax/cron/cron.hpp"
#include "ax/cron/detail/calendar.hpp"
#include "ax/cron/detail/count.hpp"
#include "ax/cron/detail/zone_search.hpp"
#include "ax/time/time_zone.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

struct expression_fields {
    template <class Cron>
    static auto const& of(Cron const& c) noexcept {
        return c.expression().fields_;
    }
};

/// Local dates, both included, in days since 1970.
struct day_span {
    std::int64_t first = 0, last = 0;

    friend bool operator==(day_span const&, day_span const&) noexcept = default;
};

template <class Cron>
using calendar_days = std::vector<dependent<day_span, Cron>>;

enum class calendar_kind : std::uint8_t {
    moments,    ///< of one cron
    dates,      ///< every instant of some local dates
    also,       ///< of any part
    except,     ///< of the first part and not of the second
    not_before, ///< of the part, from `bound` on
    not_after,  ///< of the part, up to `bound`
    at_most,    ///< the first `times` of the part, which end at `bound`
};

/// @tparam Cron  cron: as a name that depends, here and below, a unit that makes no calendar does not pay for this.
template <class Cron>
struct calendar_node {
    calendar_kind kind;
    std::optional<Cron> moments;
    time_zone zone;             ///< of the dates
    calendar_days<Cron> days{}; ///< in order, with gaps between them
    std::vector<std::shared_ptr<calendar_node<Cron> const>> parts;
    std::int64_t bound = 0; ///< seconds since 1970
    std::size_t times = 0;

    std::size_t crons = 0, depth = 1;
    bool thinned = false; ///< there is an `except` in it
    bool begins = false;  ///< nothing is before some instant
};

template <class Cron>
using calendar_tree = std::shared_ptr<calendar_node<Cron> const>;

inline constexpr std::size_t most_calendar_crons = 64, most_calendar_depth = 64, most_calendar_spans = 10'000;
inline constexpr std::size_t most_calendar_times = 1'000'000'000;
inline constexpr std::int64_t first_moment = -two_days, last_moment = cron_end + two_days; // in any zone

constexpr std::int64_t floor_days(std::int64_t t) noexcept {
    return t >= 0 ? t / seconds_a_day : -((-t + seconds_a_day - 1) / seconds_a_day);
}

inline bool has_wall_day(cron_fields const& f, std::int64_t day) noexcept {
    return day >= 0 && day < cron_days && has_day(f, static_cast<std::uint32_t>(day));
}

template <class Days>
bool in_spans(Days const& days, std::int64_t day) noexcept {
    std::size_t first = 0, last = days.size(); // of those that may begin after `day`
    while (first < last) {
        auto const middle = (first + last) / 2;
        if (days[middle].first <= day) {
            first = middle + 1;
        } else {
            last = middle;
        }
    }
    return first > 0 && day <= days[first - 1].last;
}

/// The first instant from `t` on that may be one of the tree, whatever is taken from it; no_instant: none.
template <class Cron>
std::int64_t candidate_from(calendar_node<Cron> const& n, std::int64_t t) {
    switch (n.kind) {
    case calendar_kind::moments: return next_occurrence(expression_fields::of(*n.moments), n.moments->zone(), t);
    case calendar_kind::dates: break; // are only ever taken away
    case calendar_kind::also: {
        auto first = no_instant;
        for (auto const& part : n.parts)
            if (auto const at = candidate_from(*part, t); at != no_instant && (first == no_instant || at < first))
                first = at;
        return first;
    }
    case calendar_kind::except: return candidate_from(*n.parts[0], t);
    case calendar_kind::not_before: return candidate_from(*n.parts[0], (std::max)(t, n.bound));
    case calendar_kind::not_after:
    case calendar_kind::at_most: {
        if (t > n.bound) return no_instant;
        auto const at = candidate_from(*n.parts[0], t);
        return at > n.bound ? no_instant : at;
    }
    }
    return no_instant;
}

/// The last one up to `t`.
template <class Cron>
std::int64_t candidate_to(calendar_node<Cron> const& n, std::int64_t t) {
    switch (n.kind) {
    case calendar_kind::moments: return prev_occurrence(expression_fields::of(*n.moments), n.moments->zone(), t);
    case calendar_kind::dates: break;
    case calendar_kind::also: {
        auto last = no_instant; // is below all others
        for (auto const& part : n.parts) last = (std::max)(last, candidate_to(*part, t));
        return last;
    }
    case calendar_kind::except: return candidate_to(*n.parts[0], t);
    case calendar_kind::not_before: {
        if (t < n.bound) return no_instant;
        auto const at = candidate_to(*n.parts[0], t);
        return at < n.bound ? no_instant : at;
    }
    case calendar_kind::not_after:
    case calendar_kind::at_most: return candidate_to(*n.parts[0], (std::min)(t, n.bound));
    }
    return no_instant;
}

template <class Cron>
bool holds(calendar_node<Cron> const& n, std::int64_t t) {
    switch (n.kind) {
    case calendar_kind::moments: return occurs_at(expression_fields::of(*n.moments), n.moments->zone(), t);
    case calendar_kind::dates: return in_spans(n.days, floor_days(t + n.zone.period(t).offset));
    case calendar_kind::also:
        for (auto const& part : n.parts)
            if (holds(*part, t)) return true;
        return false;
    case calendar_kind::except: return holds(*n.parts[0], t) && !holds(*n.parts[1], t);
    case calendar_kind::not_before: return t >= n.bound && holds(*n.parts[0], t);
    case calendar_kind::not_after:
    case calendar_kind::at_most: return t <= n.bound && holds(*n.parts[0], t);
    }
    return false;
}

/// Whether from `t` on, `length` seconds of real time are as many of wall time by one offset, and mean to a cron what
/// the wall shows.
inline bool is_plain(time_zone::raw_period const& p, bool interval, std::int64_t t, std::int64_t length) noexcept {
    if (p.end < t + length) return false;
    return interval || (t > p.begin && t >= p.begin + p.before - p.offset);
}

inline constexpr std::uint64_t whole_minute = cron_fields::all_seconds;

/// The bits of the seconds from `t` on that pass the test.
template <class Test>
std::uint64_t second_by_second(std::int64_t t, Test test) {
    std::uint64_t bits = 0;
    for (unsigned s = 0; s < 60; ++s)
        if (test(t + s)) bits |= std::uint64_t{1} << s;
    return bits;
}

template <class Cron>
std::uint64_t minute_of_cron(Cron const& c, std::int64_t t) {
    auto const& f = expression_fields::of(c);
    auto const p = c.zone().period(t);
    if (!is_plain(p, f.interval, t, 60))
        return second_by_second(t, [&](std::int64_t s) { return occurs_at(f, c.zone(), s); });
    auto const seconds_of = [&](std::int64_t wall) -> std::uint64_t {
        if (wall < 0 || wall >= cron_end) return 0;
        auto const time = static_cast<std::uint32_t>(wall % seconds_a_day);
        bool const runs = (f.minutes >> time / 60 % 60 & f.hours >> time / 3600 & 1) != 0 &&
                          has_day(f, static_cast<std::uint32_t>(wall / seconds_a_day));
        return runs ? f.seconds : 0;
    };
    auto const wall = t + p.offset;
    auto const into = static_cast<unsigned>(wall - floor_days(wall) * seconds_a_day) % 60;
    if (into == 0) return seconds_of(wall);
    // An offset with seconds, of long ago: the minute meets two on the wall.
    return (seconds_of(wall - into) >> into | seconds_of(wall - into + 60) << (60 - into)) & whole_minute;
}

/// The 60 seconds from `t` on, which begins a minute, as bits.
template <class Cron>
std::uint64_t minute_of(calendar_node<Cron> const& n, std::int64_t t) {
    switch (n.kind) {
    case calendar_kind::moments: return minute_of_cron(*n.moments, t);
    case calendar_kind::dates: {
        auto const p = n.zone.period(t);
        auto const first = floor_days(t + p.offset), last = floor_days(t + 59 + p.offset);
        if (p.end >= t + 60 && first == last) return in_spans(n.days, first) ? whole_minute : 0;
        return second_by_second(t, [&](std::int64_t s) { return holds(n, s); });
    }
    case calendar_kind::also: {
        std::uint64_t bits = 0;
        for (auto const& part : n.parts) bits |= minute_of(*part, t);
        return bits;
    }
    case calendar_kind::except: {
        auto const bits = minute_of(*n.parts[0], t);
        return bits == 0 ? 0 : bits & ~minute_of(*n.parts[1], t);
    }
    case calendar_kind::not_before:
        if (n.bound >= t + 60) return 0;
        return n.bound <= t ? minute_of(*n.parts[0], t)
                            : bits_from(minute_of(*n.parts[0], t), static_cast<unsigned>(n.bound - t));
    case calendar_kind::not_after:
    case calendar_kind::at_most:
        if (n.bound < t) return 0;
        return n.bound >= t + 59 ? minute_of(*n.parts[0], t)
                                 : bits_to(minute_of(*n.parts[0], t), static_cast<unsigned>(n.bound - t));
    }
    return 0;
}

/// Appends what determines the day that begins at `t`; false where there is no short word for it.
template <class Cron>
bool describe_day(calendar_node<Cron> const& n, std::int64_t t, std::string& key) {
    auto const append = [&](std::int32_t offset, bool first, bool last) {
        for (int shift = 0; shift < 32; shift += 8) key += static_cast<char>(offset >> shift & 0xff);
        key += static_cast<char>('0' + (first ? 1 : 0) + (last ? 2 : 0));
    };
    switch (n.kind) {
    case calendar_kind::moments: {
        auto const& f = expression_fields::of(*n.moments);
        auto const p = n.moments->zone().period(t);
        if (!is_plain(p, f.interval, t, seconds_a_day)) return false;
        append(p.offset, has_wall_day(f, floor_days(t + p.offset)),
               has_wall_day(f, floor_days(t + p.offset + seconds_a_day - 1)));
        return true;
    }
    case calendar_kind::dates: {
        auto const p = n.zone.period(t);
        if (p.end < t + seconds_a_day) return false;
        append(p.offset, in_spans(n.days, floor_days(t + p.offset)),
               in_spans(n.days, floor_days(t + p.offset + seconds_a_day - 1)));
        return true;
    }
    case calendar_kind::not_before:
    case calendar_kind::not_after:
    case calendar_kind::at_most:
        if (n.bound >= t && n.bound < t + seconds_a_day) return false;
        key += n.bound < t ? '<' : '>';
        break;
    case calendar_kind::also:
    case calendar_kind::except: break;
    }
    for (auto const& part : n.parts)
        if (!describe_day(*part, t, key)) return false;
    return true;
}

/// Looks at a tree day by day, at each kind of day once.
template <class Cron>
class day_reader {
  public:
    explicit day_reader(calendar_node<Cron> const& tree) : tree_(tree) {}

    /// The first instant from `t` on.
    std::int64_t next(std::int64_t t) {
        for (bool known = false;; known = true) { // what is found on the first day is mostly close

            auto const candidate = candidate_from(tree_, t);
            if (candidate == no_instant) return no_instant;
            auto const begin = floor_days(candidate) * seconds_a_day, end = begin + seconds_a_day;
            if (!known || total_of(begin) != 0)
                for (auto at = candidate; at != no_instant && at < end;) {
                    auto const minute = at - (at - begin) % 60;
                    auto const bits = bits_from(minute_of(tree_, minute),
                                                minute < candidate ? static_cast<unsigned>(candidate - minute) : 0);
                    if (bits != 0) return minute + lowest_bit(bits);
                    at = candidate_from(tree_, minute + 60);
                }
            t = end;
        }
    }

    /// The last instant up to `t`.
    std::int64_t prev(std::int64_t t) {
        for (bool known = false;; known = true) {
            auto const candidate = candidate_to(tree_, t);
            if (candidate == no_instant) return no_instant;
            auto const begin = floor_days(candidate) * seconds_a_day;
            if (!known || total_of(begin) != 0)
                for (auto at = candidate; at != no_instant && at >= begin;) {
                    auto const minute = at - (at - begin) % 60;
                    auto const bits = bits_to(minute_of(tree_, minute),
                                              minute + 59 > candidate ? static_cast<unsigned>(candidate - minute) : 59);
                    if (bits != 0) return minute + highest_bit(bits);
                    at = candidate_to(tree_, minute - 1);
                }
            t = begin - 1;
        }
    }

    /// How many instants are in [from, until).
    std::uint64_t count(std::int64_t from, std::int64_t until) {
        std::uint64_t count = 0;
        for (auto t = from;;) {
            auto const candidate = candidate_from(tree_, t);
            if (candidate == no_instant || candidate >= until) return count;
            auto const begin = floor_days(candidate) * seconds_a_day, end = begin + seconds_a_day;
            count +=
                from <= begin && end <= until ? total_of(begin) : walk((std::max)(begin, from), (std::min)(end, until));
            t = end;
        }
    }

    /// The `n`-th instant from the beginning, counted from 1.
    std::int64_t nth(std::uint64_t n) {
        for (auto t = first_moment;;) {
            auto const candidate = candidate_from(tree_, t);
            if (candidate == no_instant) return no_instant;
            auto const begin = floor_days(candidate) * seconds_a_day, end = begin + seconds_a_day;
            auto const total = total_of(begin);
            if (n <= total) {
                for (t = begin;; t += 60) { // the minute that holds it
                    auto const found = walk(t, t + 60);
                    if (n <= found) break;
                    n -= found;
                }
                for (t = next(t); n > 1; --n) t = next(t + 1);
                return t;
            }
            n -= total;
            t = end;
        }
    }

  private:
    static constexpr std::size_t most_kinds = 256; // further kinds of days are looked at each time

    /// How many instants are in the day that begins at `begin`.
    std::uint32_t total_of(std::int64_t begin) {
        key_.clear();
        if (!describe_day(tree_, begin, key_)) return walk(begin, begin + seconds_a_day);
        // All descriptions of one tree are equally long.
        for (std::size_t i = 0; i < kinds_; ++i)
            if (known_.compare(i * key_.size(), key_.size(), key_) == 0) return totals_[i];
        auto const total = walk(begin, begin + seconds_a_day);
        if (kinds_ < most_kinds) {
            known_ += key_;
            totals_[kinds_++] = total;
        }
        return total;
    }

    std::uint32_t walk(std::int64_t from, std::int64_t until) const {
        std::uint32_t count = 0;
        for (auto at = candidate_from(tree_, from); at != no_instant && at < until;) {
            auto const minute = at - (at - floor_days(at) * seconds_a_day) % 60;
            auto bits = minute_of(tree_, minute);
            if (minute < from) bits = bits_from(bits, static_cast<unsigned>(from - minute));
            if (minute + 60 > until) bits = bits_to(bits, static_cast<unsigned>(until - 1 - minute));
            count += static_cast<std::uint32_t>(std::popcount(bits));
            at = candidate_from(tree_, minute + 60);
        }
        return count;
    }

    calendar_node<Cron> const& tree_;
    std::string key_, known_; // the day at hand; all kinds of days, one behind the other
    std::uint32_t totals_[most_kinds]{};
    std::size_t kinds_ = 0;
};

inline constexpr int patience = 64; // candidates in a row that may be taken away before days are read as a whole

template <class Cron>
std::int64_t next_in(calendar_node<Cron> const& tree, std::int64_t t) {
    auto candidate = candidate_from(tree, t);
    if (!tree.thinned) return candidate;
    for (int i = 0; i < patience; ++i) {
        if (candidate == no_instant || holds(tree, candidate)) return candidate;
        candidate = candidate_from(tree, candidate + 1);
    }
    return candidate == no_instant ? no_instant : day_reader<Cron>(tree).next(candidate);
}

template <class Cron>
std::int64_t prev_in(calendar_node<Cron> const& tree, std::int64_t t) {
    auto candidate = candidate_to(tree, t);
    if (!tree.thinned) return candidate;
    for (int i = 0; i < patience; ++i) {
        if (candidate == no_instant || holds(tree, candidate)) return candidate;
        candidate = candidate_to(tree, candidate - 1);
    }
    return candidate == no_instant ? no_instant : day_reader<Cron>(tree).prev(candidate);
}

template <class Cron>
std::uint64_t count_in(calendar_node<Cron> const& tree, std::int64_t from, std::int64_t until) {
    from = (std::max)(from, first_moment);
    until = (std::min)(until, last_moment);
    if (from >= until) return 0;
    switch (tree.kind) {
    case calendar_kind::moments:
        return count_occurrences(expression_fields::of(*tree.moments), tree.moments->zone(), from, until);
    case calendar_kind::not_before: return count_in(*tree.parts[0], (std::max)(from, tree.bound), until);
    case calendar_kind::not_after:
    case calendar_kind::at_most: return count_in(*tree.parts[0], from, (std::min)(until, tree.bound + 1));
    default: return day_reader<Cron>(tree).count(from, until);
    }
}

// Building.

template <class Cron>
calendar_tree<Cron> joined(calendar_node<Cron> node) {
    node.crons = node.moments ? 1 : 0;
    bool begin = !node.parts.empty();
    for (auto const& part : node.parts) {
        node.crons += part->crons;
        node.depth = (std::max)(node.depth, part->depth + 1);
        node.thinned = node.thinned || part->thinned;
        begin = begin && (part->begins || (node.kind == calendar_kind::except && part != node.parts[0]));
    }
    node.thinned = node.thinned || node.kind == calendar_kind::except;
    node.begins = begin || node.kind == calendar_kind::not_before;
    if (node.crons > most_calendar_crons)
        throw error(errc::invalid_argument,
                    "a calendar of more than " + std::to_string(most_calendar_crons) + " cron expressions");
    if (node.depth > most_calendar_depth)
        throw error(errc::invalid_argument,
                    "a calendar of more than " + std::to_string(most_calendar_depth) + " steps in each other");
    return std::make_shared<calendar_node<Cron> const>(std::move(node));
}

template <class Cron>
calendar_node<Cron> node_of(calendar_kind kind, std::vector<calendar_tree<Cron>> parts) {
    return {kind, std::nullopt, {}, {}, std::move(parts)};
}

template <class Cron>
calendar_tree<Cron> tree_of(Cron moments) {
    return joined<Cron>({calendar_kind::moments, std::move(moments), {}, {}, {}});
}

/// Parts that are unions themselves become parts of this one.
template <class Cron>
calendar_tree<Cron> tree_of_any(std::vector<calendar_tree<Cron>> const& parts) {
    std::vector<calendar_tree<Cron>> all;
    for (auto const& part : parts) {
        if (part->kind == calendar_kind::also) {
            all.insert(all.end(), part->parts.begin(), part->parts.end());
        } else {
            all.push_back(part);
        }
    }
    return joined(node_of<Cron>(calendar_kind::also, std::move(all)));
}

template <class Cron>
calendar_tree<Cron> tree_without(calendar_tree<Cron> from, calendar_tree<Cron> what) {
    return joined(node_of<Cron>(calendar_kind::except, {std::move(from), std::move(what)}));
}

/// Dates in any order, which may meet and overlap.
template <class Cron>
calendar_tree<Cron> tree_of_dates(time_zone zone, calendar_days<Cron> days) {
    if (days.size() > most_calendar_spans)
        throw error(errc::invalid_argument, "a calendar without more than " + std::to_string(most_calendar_spans) +
                                                " dates and ranges of dates");
    // By insertion: lists of dates come in order, and std::sort would cost every unit its compilation.
    for (std::size_t i = 1; i < days.size(); ++i)
        for (auto k = i; k > 0 && days[k].first < days[k - 1].first; --k) std::swap(days[k], days[k - 1]);
    std::size_t apart = 0; // spans that are done
    for (auto span : days) {
        span.first = (std::max)(span.first, floor_days(first_moment) - 1);
        span.last = (std::min)(span.last, floor_days(last_moment) + 1);
        if (span.last < span.first) continue; // where nothing ever happens
        if (apart > 0 && span.first <= days[apart - 1].last + 1) {
            days[apart - 1].last = (std::max)(days[apart - 1].last, span.last);
        } else {
            days[apart++] = span;
        }
    }
    days.resize(apart);
    return joined<Cron>({calendar_kind::dates, std::nullopt, zone, std::move(days), {}});
}

/// @param kind  not_before or not_after.
template <class Cron>
calendar_tree<Cron> tree_bounded(calendar_kind kind, calendar_tree<Cron> part, std::int64_t bound) {
    auto node = node_of<Cron>(kind, {std::move(part)});
    node.bound = std::clamp(bound, first_moment, last_moment);
    return joined(std::move(node));
}

template <class Cron>
calendar_tree<Cron> tree_at_most(calendar_tree<Cron> part, std::size_t times) {
    if (times == 0 || times > most_calendar_times)
        throw error(errc::invalid_argument, "a calendar that happens at most " + std::to_string(times) +
                                                " times; allowed: 1-" + std::to_string(most_calendar_times));
    if (!part->begins)
        throw error(errc::invalid_argument, "a calendar that happens at most " + std::to_string(times) +
                                                " times needs a first instant to count from: see not_before()");
    auto node = node_of<Cron>(calendar_kind::at_most, {std::move(part)});
    node.times = times;
    auto const last = day_reader<Cron>(*node.parts[0]).nth(times);
    node.bound = last == no_instant ? last_moment : last;
    return joined(std::move(node));
}

/// The same tree with the crons read again, with the values of `H` drawn from `name`.
/// @param all  False: only those that have no name and in which something is drawn. Without one it is `tree` itself.
template <class Cron>
calendar_tree<Cron> tree_named(calendar_tree<Cron> const& tree, std::string_view name, bool all) {
    if (tree->kind == calendar_kind::dates) return tree;
    if (tree->kind == calendar_kind::moments) {
        auto const& known = *tree->moments;
        if (!all && !known.name().empty()) return tree;
        auto named = known.named(name);
        return !all && named == known ? tree : tree_of(std::move(named));
    }
    std::vector<calendar_tree<Cron>> parts;
    bool changed = false;
    for (auto const& part : tree->parts) {
        parts.push_back(tree_named(part, name, all));
        changed = changed || parts.back() != part;
    }
    if (!changed) return tree;
    if (tree->kind == calendar_kind::at_most) return tree_at_most(std::move(parts[0]), tree->times);
    auto node = node_of<Cron>(tree->kind, std::move(parts));
    node.bound = tree->bound;
    return joined(std::move(node));
}

template <class Cron>
bool same_tree(calendar_node<Cron> const& a, calendar_node<Cron> const& b) {
    if (a.kind != b.kind || a.moments != b.moments || !(a.zone == b.zone) || a.days != b.days || a.bound != b.bound ||
        a.times != b.times || a.parts.size() != b.parts.size())
        return false;
    for (std::size_t i = 0; i < a.parts.size(); ++i)
        if (!same_tree(*a.parts[i], *b.parts[i])) return false;
    return true;
}

} // namespace ax::detail
