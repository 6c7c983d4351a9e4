// SPDX-License-Identifier: MIT
// The runs of a crontab on one day, found the slow and obvious way: every minute of real time is looked at, the C
// library says what the clocks show, and each field is read and compared by plain loops. Nothing of ax is used: this is
// what `crontab --day --list` is compared with.
//
//   cron_search DAY ZONE FILE       prints "line <tab> instant" (UTC) for each run, the wrong lines on standard error
//
// The rule for clock changes: a line whose minute or hour holds * or / follows real time. All others are fixed times:
// one that is shown twice runs the first time, one that is skipped runs when the clocks have jumped, unless its whole
// date is skipped.
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

namespace {

using wall = std::tuple<int, int, int, int, int, int>; // year, month, day, hour, minute, weekday

struct rule {
    int line = 0;
    std::set<int> minutes, hours, days, months, weekdays;
    bool both_days = false; // both day fields have to match: classic cron, where one of them begins with a star
    bool interval = false;
};

int value_of(std::string word, char const* names, int first_name) {
    if (word.empty()) return -1;
    for (auto& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    std::istringstream all{names};
    int number = first_name;
    for (std::string name; all >> name; ++number)
        if (name == word) return number;
    int value = 0;
    for (auto const c : word) {
        if (c < '0' || c > '9' || value > 1000) return -1;
        value = value * 10 + (c - '0');
    }
    return value;
}

// One field: numbers from lowest to highest. False where it is none.
bool read_field(std::string const& text, int lowest, int highest, char const* names, int first_name, bool weekday,
                std::set<int>& values) {
    if (text.empty() || text.back() == ',') return false;
    std::istringstream parts{text};
    for (std::string part; std::getline(parts, part, ',');) {
        int step = 1;
        bool stepped = false;
        if (auto const slash = part.find('/'); slash != std::string::npos) {
            step = value_of(part.substr(slash + 1), "", 0);
            if (step < 1) return false;
            stepped = true;
            part.erase(slash);
        }
        int from = lowest, to = weekday ? 6 : highest;
        if (part != "*") {
            auto const dash = part.find('-');
            from = value_of(part.substr(0, dash), names, first_name);
            to = dash == std::string::npos ? from : value_of(part.substr(dash + 1), names, first_name);
            if (weekday && dash != std::string::npos && to == 0 && from > 0) to = 7; // friday to sunday
            if (stepped && dash == std::string::npos) return false;
            if (from < lowest || from > highest || to < lowest || to > highest || from > to) return false;
        }
        for (int v = from; v <= to; v += step) values.insert(weekday ? v % 7 : v);
    }
    return true;
}

bool read_rule(std::string const& line, rule& r) {
    std::istringstream in{line};
    std::string f[5];
    in >> f[0];
    if (f[0][0] == '@') {
        std::map<std::string, std::string> const macros{
            {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"}, {"@weekly", "0 0 * * 0"},
            {"@daily", "0 0 * * *"},  {"@midnight", "0 0 * * *"}, {"@hourly", "0 * * * *"}};
        auto const found = macros.find(f[0]);
        return found != macros.end() && read_rule(found->second + " true", r);
    }
    for (int i = 1; i != 5; ++i)
        if (!(in >> f[i])) return false;
    std::string command;
    if (!(in >> command)) return false;
    r.both_days = f[2][0] == '*' || f[4][0] == '*';
    r.interval = (f[0] + f[1]).find_first_of("*/") != std::string::npos;
    return read_field(f[0], 0, 59, "", 0, false, r.minutes) && read_field(f[1], 0, 23, "", 0, false, r.hours) &&
           read_field(f[2], 1, 31, "", 0, false, r.days) &&
           read_field(f[3], 1, 12, "jan feb mar apr may jun jul aug sep oct nov dec", 1, false, r.months) &&
           read_field(f[4], 0, 7, "sun mon tue wed thu fri sat", 0, true, r.weekdays);
}

bool matches(rule const& r, wall const& w) {
    auto const& [year, month, day, hour, minute, weekday] = w;
    (void)year;
    bool const d = r.days.count(day) != 0, wd = r.weekdays.count(weekday) != 0;
    return r.minutes.count(minute) != 0 && r.hours.count(hour) != 0 && r.months.count(month) != 0 &&
           (r.both_days ? d && wd : d || wd);
}

wall shown_by(std::tm const& t) { return {t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_wday}; }

wall local(std::time_t t) {
    std::tm shown{};
    localtime_r(&t, &shown);
    return shown_by(shown);
}

// The next minute of a calendar that knows no clock changes.
wall after(wall const& w) {
    std::tm t{};
    t.tm_year = std::get<0>(w) - 1900;
    t.tm_mon = std::get<1>(w) - 1;
    t.tm_mday = std::get<2>(w);
    t.tm_hour = std::get<3>(w);
    t.tm_min = std::get<4>(w) + 1;
    auto const seconds = timegm(&t);
    gmtime_r(&seconds, &t);
    return shown_by(t);
}

std::tuple<int, int, int> date(wall const& w) { return {std::get<0>(w), std::get<1>(w), std::get<2>(w)}; }

} // namespace

int main(int argc, char** argv) {
    if (argc == 1) return std::puts("usage: cron_search DAY ZONE FILE"), 0;
    int y = 0, m = 0, d = 0;
    if (argc != 4 || std::sscanf(argv[1], "%d-%d-%d", &y, &m, &d) != 3) return 2;
    setenv("TZ", argv[2], 1);
    tzset();
    std::ifstream file{argv[3]};
    if (!file) return 2;

    std::vector<rule> rules;
    int number = 0;
    for (std::string line; std::getline(file, line);) {
        ++number;
        if (line.empty() || line[0] == '#' || line.rfind("@reboot", 0) == 0) continue;
        rule r;
        r.line = number;
        if (read_rule(line, r))
            rules.push_back(r);
        else
            std::fprintf(stderr, "%d\n", number);
    }

    std::tm noon{};
    noon.tm_year = y - 1900;
    noon.tm_mon = m - 1;
    noon.tm_mday = d;
    noon.tm_hour = 12;
    auto const middle = timegm(&noon);
    std::set<wall> seen; // all that the clocks have shown in the two days before the minute that is looked at
    wall before = local(middle - 60 * 60 * 72 - 60);
    std::map<int, std::vector<std::time_t>> runs;
    for (auto t = middle - 60 * 60 * 72; t < middle + 60 * 60 * 48; t += 60) {
        auto const now = local(t);
        std::vector<wall> skipped;
        if (now > after(before))
            for (auto w = after(before); w < now; w = after(w))
                if (date(w) == date(before) || date(w) == date(now)) skipped.push_back(w);
        bool const first = seen.insert(now).second;
        before = now;
        if (date(now) != std::tuple<int, int, int>{y, m, d}) continue;
        for (auto const& r : rules) {
            bool due = matches(r, now) && (r.interval || first);
            if (!r.interval)
                for (auto const& w : skipped) due = due || matches(r, w);
            if (due) runs[r.line].push_back(t);
        }
    }
    for (auto const& [line, at] : runs)
        for (auto const t : at) {
            std::tm u{};
            gmtime_r(&t, &u);
            std::printf("%d\t%04d-%02d-%02d %02d:%02dZ\n", line, u.tm_year + 1900, u.tm_mon + 1, u.tm_mday, u.tm_hour,
                        u.tm_min);
        }
}
