// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/core/error.hpp"
#include "ax/cron/cron.hpp"
#include "ax/cron/detail/calendar_text.hpp"
#include "ax/cron/detail/calendar_tree.hpp"
#include "ax/cron/occurrences.hpp"
#include "ax/time/time_point.hpp"
#include "ax/time/time_zone.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax {

/// A date, or all dates from one to another, both included.
struct date_range {
    std::chrono::year_month_day first, last;

    constexpr date_range(std::chrono::year_month_day date) noexcept : first(date), last(date) {}
    constexpr date_range(std::chrono::year_month_day from, std::chrono::year_month_day to) noexcept
        : first(from), last(to) {}
};

/// Occurrences that one cron expression cannot say: several joined, dates and other expressions taken away, a first and
/// a last instant, a number of times. A value that is refined step by step and stands wherever a cron stands, which it
/// is made from.
///
///   auto opening = ax::calendar{ax::cron{"0 9 * * MON-FRI", "Europe/Berlin"}}
///                      .also(ax::cron{"0 10 * * SAT", "Europe/Berlin"})
///                      .except_dates({2026y / 12 / 24, {2026y / 12 / 28, 2026y / 12 / 31}});
///
/// Every search ends: a candidate that is taken away costs as much as one that is found, and where many are taken away
/// in a row, days of the same kind are looked at once. "Every second, except every second" takes some 50 ms to 2199; at
/// the very worst each of the 121 million minutes is looked at, where more than 256 kinds of days alternate.
///
/// At most 64 expressions, 64 steps in each other and 10,000 dates and ranges.
/// Copies share what they hold. Threads: one calendar may be used from any number of threads at once.
///
/// @tparam Cron  cron, as a name by which a unit that makes no calendar does not pay for this code.
template <class Cron>
class basic_calendar {
    using tree_type = detail::calendar_tree<Cron>;

  public:
    /// The occurrences of `single`.
    basic_calendar(Cron single) : tree_(detail::tree_of(std::move(single))) {}

    /// What to_string() has written. Errors: error(invalid_argument) that says what is wrong where.
    static basic_calendar parse(std::string_view text) {
        return basic_calendar(detail::calendar_reader<Cron>(text).read());
    }

    /// These occurrences and those of `other`; one that is in both counts once.
    basic_calendar also(basic_calendar const& other) const {
        return basic_calendar(detail::tree_of_any<Cron>({tree_, other.tree_}));
    }

    /// These occurrences without those of `other`: instants are compared, whatever the zones.
    basic_calendar except(basic_calendar const& other) const {
        return basic_calendar(detail::tree_without(tree_, other.tree_));
    }

    /// These occurrences without those on some dates, as the clocks of `zone` show them.
    // 23:30 that clocks skip and that therefore runs at 00:00 belongs to the date that is shown then
    /// Errors: error(invalid_argument) for a date that no calendar has and a range that runs backwards.
    basic_calendar except_dates(std::vector<detail::dependent<date_range, Cron>> const& dates, time_zone zone) const {
        detail::calendar_days<Cron> spans;
        for (auto const& range : dates) {
            if (!range.first.ok() || !range.last.ok() || range.last < range.first)
                throw error(errc::invalid_argument, "a date to be left out does not exist, or a range runs backwards");
            spans.push_back({day_of(range.first), day_of(range.last)});
        }
        return basic_calendar(detail::tree_without(tree_, detail::tree_of_dates<Cron>(zone, std::move(spans))));
    }

    /// The same, in the zone of this calendar.
    basic_calendar except_dates(std::vector<detail::dependent<date_range, Cron>> const& dates) const {
        return except_dates(dates, zone());
    }

    /// These occurrences from `first` on, itself included; up to `last`, itself included.
    basic_calendar not_before(instant first) const {
        auto const bound = std::chrono::ceil<std::chrono::seconds>(first.value()).time_since_epoch().count();
        return basic_calendar(detail::tree_bounded(detail::calendar_kind::not_before, tree_, bound));
    }
    template <class Duration>
    basic_calendar not_after(std::chrono::time_point<std::chrono::system_clock, Duration> last) const {
        return basic_calendar(detail::tree_bounded(detail::calendar_kind::not_after, tree_, floor_seconds(last)));
    }

    /// The first `times` of these occurrences, which must have a first instant to count from (not_before()).
    /// Complexity: a look at each kind of day that they take. Errors: error(invalid_argument) for 0 and beyond a
    /// billion.
    basic_calendar at_most(std::size_t times) const { return basic_calendar(detail::tree_at_most(tree_, times)); }

    /// The same with the values of `H` drawn from `name`, in every expression.
    basic_calendar named(std::string_view name) const { return basic_calendar(detail::tree_named(tree_, name, true)); }

    /// The same with the values of `H` drawn from `name` in the expressions that have no name of their own.
    basic_calendar with_default_name(std::string_view name) const {
        return basic_calendar(detail::tree_named(tree_, name, false));
    }

    /// The first occurrence after `after`, itself excluded; nothing where there is none to the end of 2199.
    template <class Duration>
    std::optional<time_point> next(std::chrono::time_point<std::chrono::system_clock, Duration> after) const {
        return instant_of(detail::next_in(*tree_, floor_seconds(after) + 1));
    }

    /// The last occurrence before `before`, itself excluded; nothing where there is none since 1970.
    template <class Duration>
    std::optional<time_point> prev(std::chrono::time_point<std::chrono::system_clock, Duration> before) const {
        return instant_of(detail::prev_in(*tree_, ceil_seconds(before) - 1));
    }

    template <class Duration>
    bool matches(std::chrono::time_point<std::chrono::system_clock, Duration> at) const {
        auto const seconds = floor_seconds(at);
        return at.time_since_epoch() == std::chrono::seconds{seconds} && detail::holds(*tree_, seconds);
    }

    /// The occurrences between two instants, both excluded; each is found when the loop comes to it.
    template <class After, class Before>
    occurrence_range<basic_calendar>
    occurrences(std::chrono::time_point<std::chrono::system_clock, After> after,
                std::chrono::time_point<std::chrono::system_clock, Before> before) const {
        return {*this, std::chrono::floor<duration>(after), std::chrono::ceil<duration>(before)};
    }

    /// How many occurrences lie between two instants, both excluded.
    /// Complexity: a look at each kind of day between them, not at each occurrence.
    template <class After, class Before>
    std::uint64_t count(std::chrono::time_point<std::chrono::system_clock, After> after,
                        std::chrono::time_point<std::chrono::system_clock, Before> before) const {
        return detail::count_in(*tree_, floor_seconds(after) + 1, ceil_seconds(before));
    }

    /// Whether there is no occurrence at all.
    bool never() const { return detail::next_in(*tree_, detail::first_moment) == detail::no_instant; }

    /// The zone of its first expression.
    time_zone zone() const noexcept {
        auto const* node = tree_.get();
        while (!node->moments) node = node->parts.front().get();
        return node->moments->zone();
    }

    /// The expression that it consists of; null where there is more to it.
    Cron const* single() const noexcept { return tree_->moments ? &*tree_->moments : nullptr; }

    /// A text for a store, in ASCII where the names are; parse() makes an equal calendar of it.
    // (except (cron ax Europe/Berlin "0 9 * * MON-FRI") (dates Europe/Berlin 2026-12-24))
    std::string to_string() const { return detail::calendar_writer<Cron>::write(*tree_); }

    /// The calendar in English.
    // "at 09:00, on Monday to Friday (Europe/Berlin); except on 2026-12-24 (Europe/Berlin)"
    std::string describe() const { return detail::calendar_writer<Cron>::tell(*tree_); }

    /// Built in the same steps from equal expressions.
    friend bool operator==(basic_calendar const& a, basic_calendar const& b) {
        return a.tree_ == b.tree_ || detail::same_tree(*a.tree_, *b.tree_);
    }

  private:
    explicit basic_calendar(tree_type tree) noexcept : tree_(std::move(tree)) {}

    template <class Duration>
    static std::int64_t floor_seconds(std::chrono::time_point<std::chrono::system_clock, Duration> t) {
        return std::chrono::floor<std::chrono::duration<std::int64_t>>(t).time_since_epoch().count();
    }

    template <class Duration>
    static std::int64_t ceil_seconds(std::chrono::time_point<std::chrono::system_clock, Duration> t) {
        return std::chrono::ceil<std::chrono::duration<std::int64_t>>(t).time_since_epoch().count();
    }

    static std::int64_t day_of(std::chrono::year_month_day date) {
        return std::chrono::sys_days{date}.time_since_epoch().count();
    }

    static std::optional<time_point> instant_of(std::int64_t seconds) noexcept {
        if (seconds == detail::no_instant) return std::nullopt;
        return time_point{std::chrono::seconds{seconds}};
    }

    tree_type tree_; ///< never null, save in one that was moved from
};

using calendar = basic_calendar<cron>;

} // namespace ax
