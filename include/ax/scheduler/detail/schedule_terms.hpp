// SPDX-License-Identifier: MIT
// The policies of a schedule and what its tasks get, as text for the store: one line for each that is not the default.
#pragma once

#include "ax/core/error.hpp"
#include "ax/retry/retry_policy.hpp"
#include "ax/scheduler/policies.hpp"
#include "ax/task/record.hpp"
#include "ax/time/time_point.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace ax::detail {

/// The route keys of the occurrences of schedules begin with this; those of a caller's must not.
inline constexpr std::string_view schedule_route = "schedule:";

/// What schedule_options come to, checked.
/// @tparam Text  std::string, as a name by which a unit that declares no schedule does not pay for this code.
template <class Text>
struct basic_schedule_terms {
    misfire_policy misfire{};
    overlap_policy overlap = overlap_policy::skip;
    duration spread{0};
    priority_class priority = priority_class::normal;
    Text retry; ///< a policy's text form; empty: the handler's
    std::vector<Text> tags;
    bool depends_on_past = false;

    /// Empty where all is as by default.
    Text text() const {
        Text all;
        auto const line = [&all](std::string_view word, std::string_view value) {
            all.append(word).append(" ").append(value).append("\n");
        };
        if (misfire != misfire_policy{}) line("misfire", to_text(misfire));
        if (overlap != overlap_policy::skip) line("overlap", to_text(overlap));
        if (spread != duration{0}) line("spread", std::to_string(spread.count()));
        if (priority != priority_class::normal) line("priority", std::to_string(static_cast<int>(priority)));
        if (!retry.empty()) line("retry", retry);
        for (auto const& tag : tags) line("tag", std::to_string(tag.size()) + " " + tag); // it may hold any character
        if (depends_on_past) line("depends_on_past", "1");
        return all;
    }

    /// What text() wrote. Errors: corrupt where the text is none, also where a newer version wrote a word of its own.
    static basic_schedule_terms parse(std::string_view text) {
        basic_schedule_terms terms;
        auto const fail = [text](auto const& what) {
            throw error(errc::corrupt, "terms of a schedule \"" + Text(text.substr(0, 200)) + "\": " + Text(what));
        };
        auto const number = [&fail](std::string_view digits, std::int64_t most) {
            std::int64_t value = 0;
            auto const [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
            if (problem != std::errc{} || end != digits.data() + digits.size() || value < 0 || value > most)
                fail("\"" + Text(digits) + "\" is no number that can be");
            return value;
        };
        auto rest = text;
        auto const until = [&](char stop) {
            auto const end = rest.find(stop);
            if (end == rest.npos) fail("it breaks off");
            auto const found = rest.substr(0, end);
            rest.remove_prefix(end + 1);
            return found;
        };
        while (!rest.empty()) {
            auto const word = until(' ');
            if (word == "tag") {
                auto const size = static_cast<std::size_t>(number(until(' '), 1'000'000));
                if (rest.size() <= size || rest[size] != '\n') fail("it breaks off");
                terms.tags.emplace_back(rest.substr(0, size));
                rest.remove_prefix(size + 1);
                continue;
            }
            auto const value = until('\n');
            if (word == "misfire")
                terms.misfire = misfire::parse(value);
            else if (word == "overlap")
                terms.overlap = overlap::parse(value);
            else if (word == "spread")
                terms.spread = duration{number(value, (duration::max)().count())};
            else if (word == "priority")
                terms.priority = static_cast<priority_class>(number(value, priority_classes - 1));
            else if (word == "retry")
                terms.retry = value;
            else if (word == "depends_on_past")
                terms.depends_on_past = number(value, 1) == 1;
            else
                fail("\"" + Text(word) + "\" is not known");
        }
        return terms;
    }
};

} // namespace ax::detail
