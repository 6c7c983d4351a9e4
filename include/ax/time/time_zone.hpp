// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/error.hpp"
#include "ax/time/detail/zone_table.hpp"
#include "ax/time/time_point.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ax {

/// Wall time, of a zone that has to be known from elsewhere: milliseconds since 1970-01-01 00:00 on the wall.
using local_time = std::chrono::local_time<duration>;

/// How often the clocks of a zone show one wall time.
enum class local_kind : std::uint8_t {
    unique,   ///< once
    skipped,  ///< never: the clocks went forward over it
    repeated, ///< twice: the clocks went back over it
};

/// The instants that belong to a wall time.
struct resolved_time {
    local_kind kind = local_kind::unique;
    time_point first;  ///< unique, repeated: when it is shown first; skipped: the first instant after the gap
    time_point second; ///< repeated: when it is shown again; else the same as `first`
};

/// A stretch of time during which the wall time of a zone is UTC + `offset`.
struct zone_period {
    std::chrono::sys_seconds begin;     ///< the first second; (sys_seconds::min)() where it has none
    std::chrono::sys_seconds end;       ///< the first second after it; (sys_seconds::max)() where it has none
    std::chrono::seconds offset;        ///< east of Greenwich: positive
    std::chrono::seconds offset_before; ///< the offset until `begin`; equal to `offset` where there is no begin
};

/// A change of the offset of a zone. `after` > `before`: wall time skips from `at` + before to `at` + after.
struct zone_transition {
    std::chrono::sys_seconds at;
    std::chrono::seconds offset_before;
    std::chrono::seconds offset_after;
};

/// A time zone of the IANA database: its name and the rules by which its wall time follows from UTC.
///
/// A value of one pointer. Only offsets count, never whether one is called daylight saving. The rules are read once for
/// each name and process, at the first use: a newer zone database is seen after a restart.
///
/// Threads: safe.
/// Source:  the machine's zone files, through cctz; https://www.iana.org/time-zones
class time_zone {
  public:
    /// UTC. Does not read any file.
    time_zone() noexcept = default;

    /// @param zone_name  An IANA name, links included, spelt as in the database: "Asia/Shanghai", "UTC", "Etc/GMT+5".
    /// Errors: error(invalid_argument) that names it, where the database has no such zone. Offsets ("UTC+2"), paths,
    ///         POSIX rules ("CET-1CEST") and the machine's own zone ("localtime") are no names.
    time_zone(std::string_view zone_name) : table_(&detail::find_zone(zone_name)) {}
    time_zone(std::string const& zone_name) : time_zone(std::string_view(zone_name)) {}
    time_zone(char const* zone_name) : time_zone(std::string_view(zone_name)) {}

    /// Whether `zone_name` is the name of a zone of this machine.
    static bool exists(std::string_view zone_name) {
        try {
            (void)detail::find_zone(zone_name);
            return true;
        } catch (error const&) {
            return false;
        }
    }

    /// The name that it was made with: a link keeps its own. Lives as long as the process.
    std::string_view name() const noexcept { return table_->name; }

    /// Wall time minus UTC at `t`.
    std::chrono::seconds offset_at(time_point t) const {
        return std::chrono::seconds{detail::period_at(*table_, whole_seconds(t)).offset};
    }

    /// What the clocks show at `t`.
    local_time to_local(time_point t) const { return local_time{t.time_since_epoch() + offset_at(t)}; }

    /// When the clocks show `local`.
    // 02:30 on 2024-03-31 in Berlin is skipped -> 01:00Z, which is shown as 03:00
    // 02:30 on 2024-10-27 in Berlin is repeated -> 00:30Z and 01:30Z
    resolved_time resolve(local_time local) const {
        auto const wall = std::chrono::floor<std::chrono::seconds>(local.time_since_epoch());
        auto const fraction = local.time_since_epoch() - wall;
        auto const found = resolve(wall.count());
        if (found.kind == local_kind::skipped) return {found.kind, instant_of(found.first), instant_of(found.first)};
        return {found.kind, instant_of(found.first) + fraction, instant_of(found.second) + fraction};
    }

    /// The one instant that stands for `local`: the first pass where it is repeated, the end of the gap where it is
    /// skipped. Never decreases when `local` increases.
    time_point to_instant(local_time local) const { return resolve(local).first; }

    /// The stretch of one offset that holds `t`.
    /// Complexity: O(1) from 1969 to 2200; a search in the zone database beyond.
    zone_period period_at(time_point t) const {
        auto const p = detail::period_at(*table_, whole_seconds(t));
        return {boundary(p.begin), boundary(p.end), std::chrono::seconds{p.offset}, std::chrono::seconds{p.before}};
    }

    /// The first change of the offset after `t`.
    std::optional<zone_transition> next_transition(time_point t) const {
        auto const p = detail::period_at(*table_, whole_seconds(t));
        if (p.end >= detail::end_of_time) return std::nullopt;
        auto const after = detail::period_at(*table_, p.end).offset;
        return zone_transition{boundary(p.end), std::chrono::seconds{p.offset}, std::chrono::seconds{after}};
    }

    /// The last change of the offset before `t`.
    std::optional<zone_transition> prev_transition(time_point t) const {
        auto const last = std::chrono::ceil<std::chrono::seconds>(t).time_since_epoch().count() - 1;
        auto const p = detail::period_at(*table_, last);
        if (p.begin <= detail::beginning_of_time) return std::nullopt;
        return zone_transition{boundary(p.begin), std::chrono::seconds{p.before}, std::chrono::seconds{p.offset}};
    }

    /// Whether the zone never changes its offset.
    bool is_fixed() const noexcept { return table_->count == 1 && table_->periods[1].begin >= detail::end_of_time; }

    /// Equal names. A zone and a link to it are not equal, although they show the same time.
    friend bool operator==(time_zone a, time_zone b) noexcept { return a.table_ == b.table_; }

    /// For searches: the same as period_at() and resolve() in bare seconds since 1970, without checks.
    struct raw_period {
        std::int64_t begin, end;
        std::int32_t offset, before;
    };
    struct raw_resolved {
        local_kind kind;
        std::int64_t first, second;
    };

    raw_period period(std::int64_t t) const {
        auto const p = detail::period_at(*table_, t);
        return {p.begin, p.end, p.offset, p.before};
    }

    raw_resolved resolve(std::int64_t wall) const {
        // The first period whose wall time has not passed `wall` at its end either shows it, or begins after the gap
        // that skipped it. Offsets differ from UTC by less than a day, so it begins at most a period or two after this
        // one.
        auto p = detail::period_at(*table_, wall - 86'400);
        while (wall >= p.end + p.offset) p = detail::period_at(*table_, p.end);
        if (wall < p.begin + p.offset) return {local_kind::skipped, p.begin, p.begin};
        auto const first = wall - p.offset;
        if (p.end < detail::end_of_time) {
            auto const after = detail::period_at(*table_, p.end);
            if (wall >= p.end + after.offset) return {local_kind::repeated, first, wall - after.offset};
        }
        return {local_kind::unique, first, first};
    }

  private:
    static std::int64_t whole_seconds(time_point t) noexcept {
        return std::chrono::floor<std::chrono::seconds>(t).time_since_epoch().count();
    }

    static time_point instant_of(std::int64_t seconds) noexcept { return time_point{std::chrono::seconds{seconds}}; }

    static std::chrono::sys_seconds boundary(std::int64_t seconds) noexcept {
        if (seconds <= detail::beginning_of_time) return (std::chrono::sys_seconds::min)();
        if (seconds >= detail::end_of_time) return (std::chrono::sys_seconds::max)();
        return std::chrono::sys_seconds{std::chrono::seconds{seconds}};
    }

    detail::zone_table const* table_ = &detail::utc_zone;
};

} // namespace ax
