// SPDX-License-Identifier: MIT
// What a time zone does between 1969 and 2201, as a sorted list of periods of one offset. The zone database answers the
// same questions, but through a call, a search and a normalised civil time each; a schedule asks them millions of
// times. A table is made once for each zone and process, never changes and is never freed, so that a zone is one
// pointer and may be used from every thread without a lock.
#pragma once

#include "ax/core/error.hpp"

#include <cctz/time_zone.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace ax::detail {

/// Ends of time for a period that has no begin or no end. Far enough from the ends of 64 bits for offsets to be added.
inline constexpr std::int64_t beginning_of_time = -(std::int64_t{1} << 60);
inline constexpr std::int64_t end_of_time = std::int64_t{1} << 60;

/// From `begin`, until the begin of the next period, wall time is UTC + `offset` seconds; before, it was `before`.
struct offset_period {
    std::int64_t begin;
    std::int32_t offset;
    std::int32_t before;
};

struct zone_table {
    static constexpr std::int64_t covered_from = -31'536'000;    // 1969-01-01
    static constexpr std::int64_t covered_until = 7'289'654'400; // 2201-01-01
    static constexpr unsigned bucket_bits = 23;                  // 97 days: mostly one period, seldom three
    static constexpr std::size_t bucket_count =
        static_cast<std::size_t>((covered_until - covered_from) >> bucket_bits) + 1;

    std::string_view name;
    offset_period const* periods; // one more than `count`: the last one only marks where the table ends
    std::size_t count;
    std::uint16_t const* buckets;  // the period that holds the begin of each bucket
    cctz::time_zone const* source; // for instants beyond the table; null: one offset for ever

    std::size_t index_at(std::int64_t t) const noexcept {
        if (count == 1 || t < covered_from) return 0;
        if (t >= covered_until) return count - 1;
        std::size_t i = buckets[static_cast<std::size_t>((t - covered_from) >> bucket_bits)];
        while (t >= periods[i + 1].begin) ++i;
        return i;
    }

    bool covers(std::int64_t t) const noexcept { return t >= periods[0].begin && t < periods[count].begin; }
};

inline constexpr offset_period utc_periods[] = {{beginning_of_time, 0, 0}, {end_of_time, 0, 0}};
inline constexpr zone_table utc_zone{"UTC", utc_periods, 1, nullptr, nullptr};

inline cctz::time_point<cctz::seconds> cctz_instant(std::int64_t t) {
    return cctz::time_point<cctz::seconds>{cctz::seconds{t}};
}

inline std::int32_t cctz_offset(cctz::time_zone const& zone, std::int64_t t) {
    return static_cast<std::int32_t>(zone.lookup(cctz_instant(t)).offset);
}

/// The first instant after `t` at which the offset changes; end_of_time where there is none. A change of the name or of
/// the daylight-saving flag alone is none.
inline std::int64_t next_offset_change(cctz::time_zone const& zone, std::int64_t t) {
    auto const offset = cctz_offset(zone, t);
    for (cctz::time_zone::civil_transition change; zone.next_transition(cctz_instant(t), &change);) {
        auto const at = zone.lookup(change.to).trans.time_since_epoch().count();
        if (at <= t || at >= end_of_time) break;
        t = at;
        if (cctz_offset(zone, t) != offset) return t;
    }
    return end_of_time;
}

/// The last instant not after `t` at which the offset changed; beginning_of_time where there is none.
inline std::int64_t last_offset_change(cctz::time_zone const& zone, std::int64_t t) {
    for (cctz::time_zone::civil_transition change; zone.prev_transition(cctz_instant(t + 1), &change);) {
        auto const at = zone.lookup(change.to).trans.time_since_epoch().count();
        if (at > t || at <= beginning_of_time) break;
        if (cctz_offset(zone, at) != cctz_offset(zone, at - 1)) return at;
        t = at - 1;
    }
    return beginning_of_time;
}

/// A table with what it points to. Bare arrays: this header is part of every other one, and a vector costs each compile
/// more than they do.
struct owned_zone_table {
    std::string name;
    cctz::time_zone source;
    owned_zone_table const* next; // in the list of all
    std::uint16_t buckets[zone_table::bucket_count]{};
    zone_table table{};

    owned_zone_table(std::string zone_name, cctz::time_zone const& zone, owned_zone_table const* following)
        : name(std::move(zone_name)), source(zone), next(following) {
        auto const first = first_period();
        std::size_t count = 0;
        for (auto p = first; p.begin < zone_table::covered_until; p = period_after(p)) ++count;
        auto* const periods = new offset_period[count + 1]; // for ever, like the table
        periods[0] = first;
        for (std::size_t i = 0; i < count; ++i) periods[i + 1] = period_after(periods[i]);
        std::size_t index = 0;
        for (std::size_t i = 0; i < zone_table::bucket_count; ++i) {
            auto const at = zone_table::covered_from + static_cast<std::int64_t>(i << zone_table::bucket_bits);
            while (index + 1 < count && periods[index + 1].begin <= at) ++index;
            buckets[i] = static_cast<std::uint16_t>(index);
        }
        table = {name, periods, count, buckets, &source};
    }

    owned_zone_table(owned_zone_table const&) = delete;
    owned_zone_table& operator=(owned_zone_table const&) = delete;

  private:
    offset_period first_period() const {
        auto const begin = last_offset_change(source, zone_table::covered_from);
        auto const offset = cctz_offset(source, zone_table::covered_from);
        return {begin, offset, begin == beginning_of_time ? offset : cctz_offset(source, begin - 1)};
    }

    offset_period period_after(offset_period const& p) const {
        auto const from = p.begin > zone_table::covered_from ? p.begin : zone_table::covered_from;
        auto const begin = next_offset_change(source, from);
        return {begin, begin == end_of_time ? p.offset : cctz_offset(source, begin), p.offset};
    }
};

/// Whether `name` can be one of the zone database. The loader would take more: paths, the machine's own zone, offsets
/// in a spelling of its own, and the copies with leap seconds, in which every instant is off by half a minute.
inline bool plausible_zone_name(std::string_view name) noexcept {
    auto const letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); };
    if (name.empty() || name.size() > 64 || !letter(name.front()) || name.back() == '/') return false;
    for (std::size_t i = 0; i < name.size(); ++i) {
        char const c = name[i];
        if (c == '/' ? name[i - 1] == '/' : !letter(c) && !(c >= '0' && c <= '9') && c != '_' && c != '-' && c != '+')
            return false;
    }
    if (name == "localtime" || name == "posixrules") return false;
    return !name.starts_with("posix/") && !name.starts_with("right/") && !name.starts_with("Fixed/");
}

inline std::string printable_zone_name(std::string_view name) {
    std::string text;
    for (char const c : name.substr(0, 64)) text += (static_cast<unsigned char>(c) >= 0x20 && c != '\x7f') ? c : '?';
    if (name.size() > 64) text += "...";
    return text;
}

/// The table of a zone, made at the first call with its name. Throws error(invalid_argument) for an unknown name.
inline zone_table const& find_zone(std::string_view name) {
    if (name == utc_zone.name) return utc_zone;
    if (!plausible_zone_name(name))
        throw error(errc::invalid_argument,
                    "time zone \"" + printable_zone_name(name) + "\" is no name of the zone database");

    struct registry {
        std::mutex mutex;
        owned_zone_table const* first = nullptr;
    };
    static registry& known = *new registry; // never destroyed: zones are used by objects of static lifetime too
    std::lock_guard const lock(known.mutex);
    for (auto const* entry = known.first; entry != nullptr; entry = entry->next)
        if (entry->name == name) return entry->table;

    std::string text(name);
    cctz::time_zone zone;
    if (!cctz::load_time_zone(text, &zone))
        throw error(errc::invalid_argument, "time zone \"" + text + "\" is unknown");
    known.first = new owned_zone_table(std::move(text), zone, known.first);
    return known.first->table;
}

/// The period that holds `t`, and its end.
struct bounded_period {
    std::int64_t begin;
    std::int64_t end;
    std::int32_t offset;
    std::int32_t before;
};

inline bounded_period distant_period(zone_table const& zone, std::int64_t t) {
    auto const begin = last_offset_change(*zone.source, t);
    auto const offset = cctz_offset(*zone.source, t);
    return {begin, next_offset_change(*zone.source, t), offset,
            begin == beginning_of_time ? offset : cctz_offset(*zone.source, begin - 1)};
}

inline bounded_period period_at(zone_table const& zone, std::int64_t t) {
    if (!zone.covers(t) && zone.source != nullptr) return distant_period(zone, t);
    auto const* p = zone.periods + zone.index_at(t);
    return {p[0].begin, p[1].begin, p[0].offset, p[0].before};
}

} // namespace ax::detail
