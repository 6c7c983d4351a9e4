// SPDX-License-Identifier: MIT
#pragma once

#include "ax/cron/expression.hpp"
#include "ax/time/time_zone.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace ax {

/// A cron expression with the zone whose clocks it follows, ready for a schedule.
// ax::cron{"0 0 3 * * *", "Asia/Shanghai"}   // at 03:00:00 there
class cron {
  public:
    /// @param text   The expression.
    /// @param zone   The zone or its IANA name.
    /// @param which  The language of `text`.
    /// @param name   What `H` draws its value from.
    /// Errors: error(invalid_argument) for a text that is no expression and for an unknown zone.
    explicit cron(std::string text, time_zone zone = {}, cron_dialect which = cron_dialect::ax,
                  std::string_view name = {})
        : text_(std::move(text)), name_(name), expression_(cron_expression::parse(text_, which, name)), zone_(zone) {}

    /// The same text read again with the values of `H` drawn from `name`, so that schedules of one text spread out.
    cron named(std::string_view name) const { return cron(text_, zone_, expression_.dialect(), name); }

    cron_expression const& expression() const noexcept { return expression_; }
    time_zone const& zone() const noexcept { return zone_; }

    /// The text as it was given.
    std::string const& text() const noexcept { return text_; }

    /// What `H` drew its value from.
    std::string const& name() const noexcept { return name_; }

    /// The first occurrence after `after`; see cron_expression::next().
    template <class Duration>
    std::optional<time_point> next(std::chrono::time_point<std::chrono::system_clock, Duration> after) const {
        return expression_.next(after, zone_);
    }

    /// The last occurrence before `before`; see cron_expression::prev().
    template <class Duration>
    std::optional<time_point> prev(std::chrono::time_point<std::chrono::system_clock, Duration> before) const {
        return expression_.prev(before, zone_);
    }

    template <class Duration>
    bool matches(std::chrono::time_point<std::chrono::system_clock, Duration> at) const {
        return expression_.matches(at, zone_);
    }

    /// The occurrences between two instants, both excluded; see cron_expression::occurrences().
    template <class After, class Before>
    auto occurrences(std::chrono::time_point<std::chrono::system_clock, After> after,
                     std::chrono::time_point<std::chrono::system_clock, Before> before) const {
        return expression_.occurrences(after, before, zone_);
    }

    /// How many occurrences lie between two instants, both excluded; see cron_expression::count().
    template <class After, class Before>
    std::uint64_t count(std::chrono::time_point<std::chrono::system_clock, After> after,
                        std::chrono::time_point<std::chrono::system_clock, Before> before) const {
        return expression_.count(after, before, zone_);
    }

    /// The same occurrences in the same zone.
    friend bool operator==(cron const& a, cron const& b) noexcept {
        return a.expression_ == b.expression_ && a.zone_ == b.zone_;
    }

  private:
    std::string text_, name_;
    cron_expression expression_;
    time_zone zone_;
};

} // namespace ax
