// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/error.hpp"
#include "ax/core/text.hpp"
#include "ax/cron/calendar.hpp"
#include "ax/cron/cron.hpp"
#include "ax/time/time_point.hpp"
#include "ax/time/time_zone.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace ax {

/// A fixed rate: one occurrence each `period`, counted from the instant at which the schedule was declared.
struct every {
    time_span period;
};

/// A fixed delay: the next occurrence is due `pause` after the end of the one before.
struct after_each {
    time_span pause;
};

/// One occurrence, at `when`.
struct once {
    instant when;
};

namespace detail {

/// A length of time for people, in the largest unit that it is a whole number of: `90 s`, `5 min`, `24 h`.
inline std::string length_text(duration length) {
    using namespace std::chrono;
    auto const whole = [&](duration unit) { return length % unit == duration{0}; };
    if (length == duration{0} || !whole(seconds{1})) return std::to_string(length.count()) + " ms";
    if (whole(hours{1})) return std::to_string(length / hours{1}) + " h";
    return whole(minutes{1}) ? std::to_string(length / minutes{1}) + " min"
                             : std::to_string(length / seconds{1}) + " s";
}

/// How a schedule recurs: a plain value with a text form for the store.
/// @tparam Cron  cron, as a name by which a unit without schedules does not pay for this code.
template <class Cron>
class basic_recurrence {
  public:
    using calendar_type = basic_calendar<Cron>;

    basic_recurrence(Cron expression) : basic_recurrence(calendar_type(std::move(expression))) {}
    basic_recurrence(calendar_type instants) : kind_(kind::calendar), instants_(std::move(instants)) {}
    basic_recurrence(every rate) : kind_(kind::rate), step_(positive(rate.period, "period")) {}
    basic_recurrence(after_each gap) : kind_(kind::gap), step_(positive(gap.pause, "pause")) {}
    basic_recurrence(once single) : kind_(kind::single), at_(single.when) {
        if (at_ < earliest_time || at_ > latest_time)
            throw error(errc::invalid_argument, "a schedule's instant lies outside of the years 1970 to 9999");
    }

    /// The same as a schedule of this name has it: what `H` draws comes from the name, where a cron has none itself.
    /// Errors: invalid_argument for a cron or a calendar that never occurs.
    basic_recurrence of_schedule(std::string_view name) const {
        if (kind_ != kind::calendar) return *this;
        basic_recurrence named{instants_->with_default_name(name)};
        if (named.instants_->never()) {
            auto const* single = instants_->single();
            throw error(errc::invalid_argument, single ? "cron \"" + single->text() + "\" has no occurrence, ever"
                                                       : "calendar \"" + bounded_text(instants_->to_string(), 200) +
                                                             "\" has no occurrence, ever");
        }
        return named;
    }

    /// The text form, and back. Errors: corrupt where the text is none.
    std::string spec() const {
        switch (kind_) {
        case kind::calendar: {
            auto const* single = instants_->single();
            if (single == nullptr || !(single->named({}) == *single)) return "calendar " + instants_->to_string();
            return std::string("cron ") + name_of(single->expression().dialect()) + ' ' +
                   std::string(single->zone().name()) + ' ' + single->text();
        }
        case kind::rate: return "every " + std::to_string(step_.count());
        case kind::gap: return "after_each " + std::to_string(step_.count());
        case kind::single: return "once " + std::to_string(at_.time_since_epoch().count());
        }
        return {};
    }

    static basic_recurrence parse(std::string_view spec) {
        auto rest = spec;
        auto const word = [&rest] {
            auto const end = (std::min)(rest.find(' '), rest.size());
            auto const taken = rest.substr(0, end);
            rest.remove_prefix((std::min)(end + 1, rest.size()));
            return taken;
        };
        auto const what = word();
        if (what == "cron") {
            auto const dialect = dialect_named(word());
            auto const zone = word();
            if (dialect) return basic_recurrence{Cron{std::string(rest), time_zone{zone}, *dialect}};
        } else if (what == "calendar") {
            return basic_recurrence{calendar_type::parse(rest)};
        } else {
            std::int64_t number = 0;
            auto const [end, failed] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
            if (failed == std::errc{} && end == rest.data() + rest.size()) {
                if (what == "every") return basic_recurrence{every{duration{number}}};
                if (what == "after_each") return basic_recurrence{after_each{duration{number}}};
                if (what == "once") return basic_recurrence{once{time_point{duration{number}}}};
            }
        }
        throw error(errc::corrupt, "schedule \"" + std::string(spec) + "\"");
    }

    /// What recurs, for people: `cron "0 3 * * *" in Europe/Berlin`, `every 90 s`. A calendar in its text form, cut.
    std::string in_words() const {
        switch (kind_) {
        case kind::calendar: {
            auto const* single = instants_->single();
            if (single == nullptr) return "calendar " + bounded_text(instants_->to_string(), 200);
            return "cron \"" + single->text() + "\" in " + std::string(single->zone().name());
        }
        case kind::rate: return "every " + length_text(step_);
        case kind::gap: return length_text(step_) + " after the end of each run";
        case kind::single: return "once";
        }
        return {};
    }

    /// The zone in which a calendar is read; none for the other kinds.
    std::optional<time_zone> zone() const {
        return kind_ == kind::calendar ? std::optional{instants_->zone()} : std::nullopt;
    }

    /// True where the next occurrence is counted from the end of the one before.
    bool waits_for_end() const noexcept { return kind_ == kind::gap; }

    /// The first occurrence of a schedule declared at `now`.
    std::optional<time_point> first(time_point now) const {
        switch (kind_) {
        case kind::calendar: return instants_->next(now);
        case kind::rate:
        case kind::gap: return saturating_add(now, step_);
        case kind::single: return at_;
        }
        return std::nullopt;
    }

    /// The occurrence behind `nominal`, where that does not depend on a run's end.
    std::optional<time_point> following(time_point nominal) const {
        if (kind_ == kind::calendar) return instants_->next(nominal);
        if (kind_ == kind::rate) return saturating_add(nominal, step_);
        return std::nullopt;
    }

    /// The occurrence behind a run that ended at `end`.
    time_point after_end(time_point end) const { return saturating_add(end, step_); }

    /// The first planned instant from `from` on; none for a fixed delay, whose instants come from ends of runs.
    /// @param anchor  One of them, or any instant where it is no rate.
    std::optional<time_point> at_or_after(time_point from, time_point anchor) const {
        switch (kind_) {
        case kind::calendar: return instants_->next(from - duration{1});
        case kind::rate: {
            auto const over = (from - anchor) % step_;
            if (over == duration{0}) return from;
            return saturating_add(from, over < duration{0} ? -over : step_ - over);
        }
        case kind::single: return at_ >= from ? std::optional{at_} : std::nullopt;
        case kind::gap: break;
        }
        return std::nullopt;
    }

    /// Where the cursor stands at `next` or behind the end, further from `now` than it can have got under a right
    /// clock: the instant at which it should stand. It keeps the phase of a rate.
    std::optional<time_point> nearer(std::optional<time_point> next, time_point now) const {
        if (kind_ == kind::calendar) {
            auto const first = instants_->next(now);
            if (first && (!next || *first < *next)) return first;
        } else if (kind_ != kind::single && next && *next - now > step_) {
            if (kind_ == kind::gap) return now + step_;
            return *next - (*next - now - duration{1}) / step_ * step_;
        }
        return std::nullopt;
    }

    struct due {
        time_point nominal;       ///< the latest occurrence that has come
        std::uint64_t missed = 0; ///< how many came before it and after the cursor
    };

    static constexpr std::uint64_t most_counted = 10'000;

    /// Where the cursor stands at `next` and it is `now`: what is due, late ones counted. `next` is not after `now`.
    /// Complexity: O(1) for a rate; for a cron a look at each month that was missed, for a calendar at each kind of
    /// day. Of theirs at most `most_counted` are counted.
    due latest(time_point next, time_point now) const {
        if (kind_ == kind::rate) {
            auto const missed = (now - next) / step_;
            return {next + missed * step_, static_cast<std::uint64_t>(missed)};
        }
        due found{next, 0};
        if (kind_ != kind::calendar) return found;
        auto const last = instants_->prev(now + duration{1});
        if (!last || *last <= next) return found;
        return {*last, (std::min)(instants_->count(next - duration{1}, *last), most_counted)};
    }

    /// The occurrence before `nominal`, which is one; nothing where it is the only one or begins a calendar. A rate
    /// goes back for ever: where it began is the caller's to know.
    std::optional<time_point> preceding(time_point nominal) const {
        if (kind_ == kind::calendar) return instants_->prev(nominal);
        if (kind_ == kind::rate) return saturating_add(nominal, -step_);
        return std::nullopt;
    }

    /// How many occurrences come after `nominal`, which is one, by `until`. For a fixed delay none: not before an end.
    /// Complexity: O(1) for a rate; for a calendar a look at each kind of day between, not at each occurrence.
    std::uint64_t count(time_point nominal, time_point until) const {
        if (until <= nominal) return 0;
        if (kind_ == kind::calendar) return instants_->count(nominal, until + duration{1});
        return kind_ == kind::rate ? static_cast<std::uint64_t>((until - nominal) / step_) : 0;
    }

  private:
    enum class kind : std::uint8_t { calendar, rate, gap, single };

    static duration positive(time_span length, std::string_view what) {
        if (length.value() <= duration{0})
            throw error(errc::invalid_argument, std::string(what) + " of " + std::to_string(length.value().count()) +
                                                    " ms: a schedule needs at least 1 ms");
        return length;
    }

    kind kind_;
    std::optional<calendar_type> instants_;
    duration step_{};
    time_point at_{};
};

using recurrence = basic_recurrence<cron>;

} // namespace detail

} // namespace ax
