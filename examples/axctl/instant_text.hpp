// SPDX-License-Identifier: MIT
// Instants as people and files write them: 2026-03-29T01:30:00Z.
#pragma once

#include <ax/time/time_zone.hpp>

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace axctl {

inline std::string text_of(std::chrono::milliseconds since_1970, char between, char const* behind) {
    auto const t = std::chrono::sys_time<std::chrono::milliseconds>{since_1970};
    auto const day = std::chrono::floor<std::chrono::days>(t);
    std::chrono::year_month_day const date{day};
    std::chrono::hh_mm_ss const time{std::chrono::floor<std::chrono::seconds>(t - day)};
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, "%04d-%02u-%02u%c%02d:%02d:%02d%s", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), between,
                  static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                  static_cast<int>(time.seconds().count()), behind);
    return buffer;
}

/// "2026-03-29T01:30:00Z".
inline std::string text_of(ax::time_point t) { return text_of(t.time_since_epoch(), 'T', "Z"); }

/// "2026-03-29 03:30:00", what the clocks of `zone` show.
inline std::string local_text_of(ax::time_point t, ax::time_zone const& zone) {
    return text_of(zone.to_local(t).time_since_epoch(), ' ', "");
}

/// Reads `2026-03-29`, `2026-03-29T01:30`, `...:00`, `...:00.250`, each but the first with `Z` or an offset such as
/// `+02:00` behind it; without one it is UTC.
class instant_reader {
  public:
    static std::optional<ax::time_point> read(std::string_view text) {
        instant_reader reader(text);
        auto const result = reader.read_all();
        if (!reader.good_ || !reader.rest_.empty()) return std::nullopt;
        return result;
    }

  private:
    explicit instant_reader(std::string_view text) : rest_(text) {}

    bool take(char c) {
        if (rest_.empty() || rest_.front() != c) return false;
        rest_.remove_prefix(1);
        return true;
    }

    int digits(std::size_t count, int highest) {
        int value = 0;
        for (; count > 0; --count) {
            if (rest_.empty() || rest_.front() < '0' || rest_.front() > '9') return good_ = false;
            value = value * 10 + (rest_.front() - '0');
            rest_.remove_prefix(1);
        }
        if (value > highest) good_ = false;
        return value;
    }

    void expect(char c) { good_ = take(c) && good_; }

    ax::time_point read_all() {
        using namespace std::chrono;
        auto const y = digits(4, 9999);
        expect('-');
        auto const m = digits(2, 12);
        expect('-');
        auto const d = digits(2, 31);
        auto const date = year{y} / m / d;
        if (!good_ || !date.ok()) {
            good_ = false;
            return {};
        }
        milliseconds time = sys_days{date}.time_since_epoch();
        if (take('T') || take('t') || take(' ')) time += read_time();
        return ax::time_point{time};
    }

    std::chrono::milliseconds read_time() {
        using namespace std::chrono;
        milliseconds time = hours{digits(2, 23)};
        expect(':');
        time += minutes{digits(2, 59)};
        if (take(':')) time += seconds{digits(2, 59)};
        if (take('.')) {
            for (int unit = 100; !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; unit /= 10)
                time += milliseconds{digits(1, 9) * unit};
        }
        if (take('Z') || take('z')) return time;
        bool const east = take('+');
        if (!east && !take('-')) return time;
        milliseconds offset = hours{digits(2, 23)};
        expect(':');
        offset += minutes{digits(2, 59)};
        return east ? time - offset : time + offset;
    }

    std::string_view rest_;
    bool good_ = true;
};

} // namespace axctl
