// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/error.hpp"
#include "ax/cron/describe.hpp"
#include "ax/cron/detail/calendar.hpp"
#include "ax/cron/detail/count.hpp"
#include "ax/cron/detail/writer.hpp"
#include "ax/cron/detail/zone_search.hpp"
#include "ax/cron/occurrences.hpp"
#include "ax/cron/parser.hpp"
#include "ax/time/time_point.hpp"
#include "ax/time/time_zone.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ax {

namespace detail {

struct expression_fields; // what calendars look at

template <class>
struct dependent_fields {
    using type = cron_fields;
};

template <class T>
using fields_for = typename dependent_fields<T>::type;

/// An expression that knows its zone.
template <class Expression>
struct in_zone {
    Expression expression;
    time_zone zone;

    std::optional<time_point> next(time_point after) const { return expression.next(after, zone); }
};

} // namespace detail

/// A cron expression: the wall times at which something happens, in whole seconds of the years 1970 to 2199.
///
/// It knows no zone; each question brings one (UTC where it does not). next(), prev() and matches() are one list of
/// instants seen from three sides. Where the clocks of a zone change:
///
///   | wall time is shown ...              | interval: second, minute or hour has * or / | fixed times           |
///   |-------------------------------------|---------------------------------------------|-----------------------|
///   | once                                | runs                                        | runs                  |
///   | twice (the clocks go back)          | runs both times                             | runs the first time   |
///   | never (the clocks go forward)       | does not run                                | once, after the gap   |
///   | never, nor any other of its date    | does not run                                | does not run          |
///
/// A value of 96 bytes without memory of its own.
/// Threads: one expression may be used from any number of threads at once.
class cron_expression {
  public:
    /// @param text   The fields, parted by blanks, or a macro.
    /// @param which  The language of the text.
    /// @param name   What `H` draws its value from, mostly the name of the schedule: the same name, the same value.
    /// Errors: error(invalid_argument) with the message of check().
    /// Complexity: one pass over the text. Does not allocate.
    static cron_expression parse(std::string_view text, cron_dialect which = cron_dialect::ax,
                                 std::string_view name = {}) {
        cron_expression result;
        auto const& grammar = detail::grammar_of(which);
        detail::cron_reader reader(text, grammar, name);
        auto const fault = reader.read(result.fields_);
        if (fault.trouble != detail::cron_trouble::none) refuse(text, grammar, fault);
        result.notes_ = reader.notes();
        result.dialect_ = which;
        return result;
    }

    /// What is wrong with `text`; nothing where parse() takes it. For text that people type: nothing is thrown.
    static std::optional<cron_error> check(std::string_view text, cron_dialect which = cron_dialect::ax) {
        detail::cron_fields unused;
        auto const& grammar = detail::grammar_of(which);
        auto const fault = detail::cron_reader(text, grammar).read(unused);
        if (fault.trouble == detail::cron_trouble::none) return std::nullopt;
        return detail::describe_fault(text, grammar, fault);
    }

    /// The first occurrence after `after`, itself excluded; nothing where there is none to the end of 2199.
    ///
    /// @param after  Any instant, between seconds too.
    // "30 2 * * *" in Europe/Berlin, after 2026-03-28 12:00Z -> 2026-03-29 01:00Z, where 03:00 follows 01:59 on the
    // wall
    /// Complexity: no more than a look at each month to 2199 ("0 0 30 2 *"), mostly at one. Does not allocate.
    template <class Duration>
    std::optional<time_point> next(std::chrono::time_point<std::chrono::system_clock, Duration> after,
                                   time_zone const& zone = {}) const {
        return instant_of(detail::next_occurrence(fields_, zone, floor_seconds(after) + 1));
    }

    /// The last occurrence before `before`, itself excluded; nothing where there is none since 1970.
    template <class Duration>
    std::optional<time_point> prev(std::chrono::time_point<std::chrono::system_clock, Duration> before,
                                   time_zone const& zone = {}) const {
        auto const seconds = floor_seconds(before);
        bool const whole = before.time_since_epoch() == std::chrono::seconds{seconds};
        return instant_of(detail::prev_occurrence(fields_, zone, whole ? seconds - 1 : seconds));
    }

    /// Whether `at` is an occurrence. An instant between seconds never is.
    template <class Duration>
    bool matches(std::chrono::time_point<std::chrono::system_clock, Duration> at, time_zone const& zone = {}) const {
        auto const seconds = floor_seconds(at);
        return at.time_since_epoch() == std::chrono::seconds{seconds} && detail::occurs_at(fields_, zone, seconds);
    }

    /// The occurrences between two instants, both excluded; each is found when the loop comes to it.
    // for (ax::time_point t : e.occurrences(monday, friday, "Europe/Berlin")) ...
    template <class After, class Before>
    occurrence_range<detail::in_zone<cron_expression>>
    occurrences(std::chrono::time_point<std::chrono::system_clock, After> after,
                std::chrono::time_point<std::chrono::system_clock, Before> before, time_zone const& zone = {}) const {
        return {detail::in_zone<cron_expression>{*this, zone}, std::chrono::floor<duration>(after),
                std::chrono::ceil<duration>(before)};
    }

    /// How many occurrences lie between two instants, both excluded.
    /// Complexity: a look at each month between them, whatever the answer: 7,258,118,400 for every second of all years
    ///             in microseconds. Does not allocate.
    template <class After, class Before>
    std::uint64_t count(std::chrono::time_point<std::chrono::system_clock, After> after,
                        std::chrono::time_point<std::chrono::system_clock, Before> before,
                        time_zone const& zone = {}) const {
        auto const until = floor_seconds(before);
        bool const whole = before.time_since_epoch() == std::chrono::seconds{until};
        return detail::count_occurrences(fields_, zone, floor_seconds(after) + 1, whole ? until : until + 1);
    }

    /// Whether it follows the wall clock through a change of the offset, instead of keeping to fixed times.
    bool is_interval() const noexcept { return fields_.interval; }

    /// Whether there is no occurrence at all: "0 0 30 2 *".
    bool never() const noexcept { return detail::next_wall_time(fields_, 0) == detail::no_wall_time; }

    cron_dialect dialect() const noexcept { return dialect_; }

    /// A text of the same dialect that is equal to this expression; the same for all that are equal.
    // "0 0 1,2,3 JAN *" -> "0 0 1-3 1 *"
    std::string to_string() const { return detail::cron_writer(fields_, dialect_).write(); }

    /// The expression in English, for people to compare with what they meant.
    // "30 9-17 * * MON-FRI" -> "at minute 30, hours 9 to 17, on Monday to Friday"
    template <class Text = std::string> // so that only who calls it compiles it
    Text describe() const {
        return detail::cron_describer<detail::fields_for<Text>>(fields_).describe();
    }

    /// What is valid and yet seldom meant: steps that do not fill their field, every minute of an hour, days that
    /// months lack, two day fields at once, no occurrence at all. Empty for most expressions.
    template <class Warning = cron_warning>
    std::vector<Warning> lint() const {
        return detail::cron_linter<detail::fields_for<Warning>>(fields_, notes_, detail::grammar_of(dialect_)).lint();
    }

    /// The same wall times, treated alike where clocks change; in whatever dialect they were written.
    friend bool operator==(cron_expression const& a, cron_expression const& b) noexcept {
        return a.fields_ == b.fields_;
    }

  private:
    friend struct detail::expression_fields;

    cron_expression() noexcept = default;

    [[noreturn]] static void refuse(std::string_view text, detail::cron_grammar const& grammar,
                                    detail::cron_fault const& fault) {
        auto const reason = detail::describe_fault(text, grammar, fault);
        throw error(errc::invalid_argument, "cron expression \"" + detail::printable(text) + "\": " + reason.message());
    }

    template <class Duration>
    static std::int64_t floor_seconds(std::chrono::time_point<std::chrono::system_clock, Duration> t) {
        return std::chrono::floor<std::chrono::duration<std::int64_t>>(t).time_since_epoch().count();
    }

    static std::optional<time_point> instant_of(std::int64_t seconds) noexcept {
        if (seconds == detail::no_instant) return std::nullopt;
        return time_point{std::chrono::seconds{seconds}};
    }

    detail::cron_fields fields_;
    detail::cron_notes notes_;
    cron_dialect dialect_ = cron_dialect::ax;
};

static_assert(sizeof(cron_expression) <= 128);

} // namespace ax
