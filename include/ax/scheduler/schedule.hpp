// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/error.hpp"
#include "ax/cron/cron.hpp"
#include "ax/time/time_point.hpp"

#include <algorithm>
#include <charconv>
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

inline constexpr cron_dialect cron_dialects[] = {cron_dialect::ax, cron_dialect::crontab, cron_dialect::quartz,
                                                 cron_dialect::spring};

constexpr std::string_view to_string(cron_dialect which) noexcept {
    switch (which) {
    case cron_dialect::ax: return "ax";
    case cron_dialect::crontab: return "crontab";
    case cron_dialect::quartz: return "quartz";
    case cron_dialect::spring: return "spring";
    }
    return "?";
}

/// How a schedule recurs: a plain value with a text form for the store.
/// @tparam Cron  cron, as a name by which a unit without schedules does not pay for this code.
template <class Cron>
class basic_recurrence {
  public:
    basic_recurrence(Cron expression) : kind_(kind::calendar), cron_(std::move(expression)) {
        if (!cron_->next(earliest_time))
            throw error(errc::invalid_argument, "cron \"" + std::string(cron_->text()) + "\" has no occurrence, ever");
    }
    basic_recurrence(every rate) : kind_(kind::rate), step_(positive(rate.period, "period")) {}
    basic_recurrence(after_each gap) : kind_(kind::gap), step_(positive(gap.pause, "pause")) {}
    basic_recurrence(once single) : kind_(kind::single), at_(single.when) {
        if (at_ < earliest_time || at_ > latest_time)
            throw error(errc::invalid_argument, "a schedule's instant lies outside of the years 1970 to 9999");
    }

    /// The text form, and back. Errors: corrupt where the text is none.
    std::string spec() const {
        switch (kind_) {
        case kind::calendar:
            return "cron " + std::string(to_string(cron_->expression().dialect())) + ' ' +
                   std::string(cron_->zone().name()) + ' ' + std::string(cron_->text());
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
            auto const name = word();
            auto const zone = word();
            for (auto const dialect : cron_dialects)
                if (name == to_string(dialect))
                    return basic_recurrence{Cron{std::string(rest), time_zone{zone}, dialect}};
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

    /// True where the next occurrence is counted from the end of the one before.
    bool waits_for_end() const noexcept { return kind_ == kind::gap; }

    /// The first occurrence of a schedule declared at `now`.
    std::optional<time_point> first(time_point now) const {
        switch (kind_) {
        case kind::calendar: return cron_->next(now);
        case kind::rate:
        case kind::gap: return saturating_add(now, step_);
        case kind::single: return at_;
        }
        return std::nullopt;
    }

    /// The occurrence behind `nominal`, where that does not depend on a run's end.
    std::optional<time_point> following(time_point nominal) const {
        if (kind_ == kind::calendar) return cron_->next(nominal);
        if (kind_ == kind::rate) return saturating_add(nominal, step_);
        return std::nullopt;
    }

    /// The occurrence behind a run that ended at `end`.
    time_point after_end(time_point end) const { return saturating_add(end, step_); }

    /// Where the cursor stands at `next`, further from `now` than it can have got under a right clock: the instant at
    /// which it should stand. It keeps the phase of a rate.
    std::optional<time_point> nearer(time_point next, time_point now) const {
        if (kind_ == kind::calendar) {
            auto const first = cron_->next(now);
            if (first && *first < next) return first;
        } else if (kind_ != kind::single && next - now > step_) {
            if (kind_ == kind::gap) return now + step_;
            return next - (next - now - duration{1}) / step_ * step_;
        }
        return std::nullopt;
    }

    struct due {
        time_point nominal;       ///< the latest occurrence that has come
        std::uint64_t missed = 0; ///< how many came before it and after the cursor
    };

    static constexpr std::uint64_t most_counted = 10'000;

    /// Where the cursor stands at `next` and it is `now`: what is due, late ones counted. `next` is not after `now`.
    /// Complexity: O(1) for a rate; for a calendar one search for each missed occurrence, of which at most
    /// `most_counted` are counted.
    due latest(time_point next, time_point now) const {
        if (kind_ == kind::rate) {
            auto const missed = (now - next) / step_;
            return {next + missed * step_, static_cast<std::uint64_t>(missed)};
        }
        due found{next, 0};
        if (kind_ != kind::calendar) return found;
        auto const last = cron_->prev(now + duration{1});
        if (!last || *last <= next) return found;
        found.nominal = *last;
        for (std::optional<time_point> passed = next; passed && *passed < *last && found.missed != most_counted;
             passed = cron_->next(*passed))
            ++found.missed;
        return found;
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
    std::optional<Cron> cron_;
    duration step_{};
    time_point at_{};
};

using recurrence = basic_recurrence<cron>;

} // namespace detail

} // namespace ax
