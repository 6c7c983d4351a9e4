// SPDX-License-Identifier: MIT
// What a schedule does with occurrences that nobody saw come due, and with those whose forerunner still runs.
#pragma once

#include "ax/core/error.hpp"
#include "ax/retry/retry_policy.hpp"
#include "ax/task/record.hpp"
#include "ax/time/time_point.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace ax {

class misfire_policy;

/// The values and makers of misfire_policy, as a caller writes them: `.misfire = ax::misfire::run_all(100)`.
namespace misfire {

/// The most missed occurrences that run_all() makes up for.
inline constexpr std::size_t most_run_all = 10'000;

constexpr misfire_policy run_all(std::size_t n);
constexpr misfire_policy within(time_span late);
misfire_policy parse(std::string_view text);

} // namespace misfire

/// What becomes of the occurrences of a schedule that were missed: they came due while no scheduler was there to see
/// it.
///
///   | value             | of the missed ones it creates                                                 |
///   |-------------------|-------------------------------------------------------------------------------|
///   | skip              | none                                                                          |
///   | run_once          | the latest, where no later one is on time; it stands for all. The default     |
///   | run_all(n)        | the latest n, in order                                                        |
///   | within(d)         | as run_once where the latest is late by no more than d, else none             |
///
/// What is on time is always created, and what is left out is counted, with the reason.
class misfire_policy {
  public:
    enum class action : std::uint8_t { skip, run_once, run_all, within };

    /// run_once.
    constexpr misfire_policy() noexcept = default;

    /// `what` without an argument. For run_all and within there are makers.
    explicit constexpr misfire_policy(action what) : what_(what) {
        if (what == action::run_all || what == action::within)
            throw error(errc::invalid_argument, "misfire run_all and within are made by the functions of that name");
    }

    constexpr action what() const noexcept { return what_; }

    /// run_all: how many missed occurrences it creates at the most. Else 0.
    constexpr std::size_t most() const noexcept { return most_; }

    /// within: how late the latest may be. Else 0.
    constexpr duration late_by() const noexcept { return late_by_; }

    friend constexpr bool operator==(misfire_policy const&, misfire_policy const&) noexcept = default;

  private:
    friend constexpr misfire_policy misfire::run_all(std::size_t n);
    friend constexpr misfire_policy misfire::within(time_span late);

    action what_ = action::run_once;
    std::size_t most_ = 0;
    duration late_by_{0};
};

namespace misfire {

inline constexpr misfire_policy skip{misfire_policy::action::skip};
inline constexpr misfire_policy run_once{};

/// The latest `n` of what was missed, in order; those before them are skipped and counted.
/// @throws ax::error invalid_argument where it is 0 (say skip) or more than most_run_all.
constexpr misfire_policy run_all(std::size_t n) {
    if (n == 0) throw error(errc::invalid_argument, "misfire run_all(0) runs nothing: say misfire::skip");
    if (n > most_run_all)
        throw error(errc::invalid_argument,
                    "misfire run_all(" + std::to_string(n) + "): at most " + std::to_string(most_run_all));
    misfire_policy p;
    p.what_ = misfire_policy::action::run_all;
    p.most_ = n;
    return p;
}

/// The latest of what was missed where it is late by no more than `late`, else none.
/// @throws ax::error invalid_argument where it is less than a millisecond.
constexpr misfire_policy within(time_span late) {
    if (late.value() < duration{1})
        throw error(errc::invalid_argument,
                    "misfire within(" + std::to_string(late.value().count()) + " ms): at least 1 ms");
    misfire_policy p;
    p.what_ = misfire_policy::action::within;
    p.late_by_ = late;
    return p;
}

} // namespace misfire

/// The policy as text for a store: `skip`, `run_once`, `run_all 100`, `within 600000` (milliseconds).
inline std::string to_text(misfire_policy const& p) {
    switch (p.what()) {
    case misfire_policy::action::skip: return "skip";
    case misfire_policy::action::run_once: return "run_once";
    case misfire_policy::action::run_all: return "run_all " + std::to_string(p.most());
    case misfire_policy::action::within: return "within " + std::to_string(p.late_by().count());
    }
    return {};
}

namespace misfire {

/// The policy that to_text() wrote.
/// @throws ax::error corrupt where the text is none.
inline misfire_policy parse(std::string_view text) {
    if (text == "skip") return skip;
    if (text == "run_once") return run_once;
    auto const blank = text.find(' ');
    auto const word = text.substr(0, blank);
    auto const digits = blank == text.npos ? std::string_view{} : text.substr(blank + 1);
    std::int64_t number = 0;
    auto const [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (problem == std::errc{} && end == digits.data() + digits.size() && number > 0) {
        if (word == "run_all" && number <= static_cast<std::int64_t>(most_run_all))
            return run_all(static_cast<std::size_t>(number));
        if (word == "within") return within(duration{number});
    }
    throw error(errc::corrupt, "misfire policy \"" + std::string(text.substr(0, 200)) + "\"");
}

} // namespace misfire

/// What becomes of an occurrence that comes due while one before it has not ended.
enum class overlap_policy : std::uint8_t {
    allow,          ///< they run side by side
    skip,           ///< it is left out, counted, with the reason
    queue_one,      ///< it waits for the one before to end; of those that wait only the latest is kept
    queue_all,      ///< it waits for all before it: one at a time, in order
    cancel_running, ///< the one before is asked to stop; it waits until that one has ended
    replace_running ///< the one before is asked to stop; it does not wait for that
};

/// The values of overlap_policy, as a caller writes them: `.overlap = ax::overlap::queue_one`.
namespace overlap {
using enum overlap_policy;
}

namespace detail {

inline constexpr std::string_view overlap_names[] = {"allow",     "skip",           "queue_one",
                                                     "queue_all", "cancel_running", "replace_running"};

} // namespace detail

/// The policy as text for a store: its name.
constexpr std::string_view to_text(overlap_policy p) noexcept {
    return detail::overlap_names[static_cast<std::size_t>(p)];
}

namespace overlap {

/// The policy that to_text() wrote.
/// @throws ax::error corrupt where the text is none.
inline overlap_policy parse(std::string_view text) {
    for (auto const p : {allow, skip, queue_one, queue_all, cancel_running, replace_running})
        if (text == to_text(p)) return p;
    throw error(errc::corrupt, "overlap policy \"" + std::string(text.substr(0, 200)) + "\"");
}

} // namespace overlap

/// Said with one schedule.
struct schedule_options {
    misfire_policy misfire = {};
    overlap_policy overlap = overlap_policy::skip;
    time_span spread = {}; ///< its runs are moved back by a fixed offset within this window; scheduled_at() is not
    std::optional<priority_class> priority = {}; ///< of its tasks; none: that of their type, see docs/definitions.md
    std::optional<ax::retry::policy> retry = {}; ///< of its tasks; none: the handler's
    std::vector<std::string> tags = {};          ///< of its tasks
    bool depends_on_past = false;                ///< an occurrence waits until the one before it has succeeded
};

/// Where a schedule that was paused goes on.
enum class resume_policy : std::uint8_t {
    from_now, ///< with the next occurrence from now on; those of the pause are left out, and counted
    catch_up  ///< those of the pause are treated as missed: the misfire policy says what becomes of them
};

/// The values of resume_policy, as a caller writes them: `ax::resume::catch_up`.
namespace resume {
using enum resume_policy;
}

/// One of the next occurrences of a schedule.
struct firing {
    time_point nominal; ///< its scheduled_at()
    time_point run_at;  ///< when its task is due: the nominal instant and the offset of the spread
    std::string why;    ///< what plans it, and what is special about it, for people: see docs/schedules.md
};

namespace detail {

/// Refuses options that no schedule can have, whatever recurs; what depends on that is check_spread().
/// @throws ax::error invalid_argument that names the schedule and the option.
template <class Options> // schedule_options: a unit that declares no schedule does not pay for this
void check_schedule_options(std::string_view schedule_name, Options const& chosen) {
    if (chosen.spread.value() < duration{0})
        throw error(errc::invalid_argument, "spread of schedule \"" + std::string(schedule_name) + "\" is negative: " +
                                                std::to_string(chosen.spread.value().count()) + " ms");
    auto const refuse = [&](char const* what, int value, char const* why) {
        throw error(errc::invalid_argument,
                    "schedule \"" + std::string(schedule_name) + "\": " + what + " " + std::to_string(value) + why);
    };
    if (chosen.priority && *chosen.priority > priority_class::low)
        refuse("priority", static_cast<int>(*chosen.priority), " is no priority class");
    if (chosen.overlap > overlap_policy::replace_running)
        refuse("overlap", static_cast<int>(chosen.overlap), " is no policy");
    // What waits for a run that was cancelled would wait for ever.
    if (chosen.depends_on_past && chosen.overlap >= overlap_policy::cancel_running)
        throw error(errc::invalid_argument, "schedule \"" + std::string(schedule_name) + "\": overlap " +
                                                std::string(to_text(chosen.overlap)) + " contradicts depends_on_past");
}

} // namespace detail

} // namespace ax
