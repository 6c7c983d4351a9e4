// SPDX-License-Identifier: MIT
// What callers ask of the engine about schedules: declared, paused, resumed, removed, and what they will do next.
#pragma once

#include "ax/scheduler/detail/engine.hpp"
#include "ax/scheduler/detail/next_firings.hpp"
#include "ax/scheduler/detail/submission.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

/// The most occurrences that one preview() gives.
inline constexpr std::size_t most_previewed = 10'000;

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::declare(std::string_view name, Recurrence const& how,
                                                          std::string_view type, std::string payload,
                                                          later<schedule_options> chosen) -> schedule_record {
    if (!chosen.priority) chosen.priority = usual_priority(type);
    auto wanted = checked_schedule(name, how, type, std::move(payload), std::move(chosen));
    wanted.type = number_of(type);
    schedule_record stored;
    {
        std::lock_guard const in_order{schedules_mutex_};
        alarms due;
        transact([&](writer& w) {
            due.clear();
            stored = w.declare(wanted, times_.reached());
            end_waits(w, stored, due);
        });
        std::lock_guard const guard{mutex_};
        place(stored);
        arm(due);
    }
    flush();
    return stored;
}

/// A schedule about to be stored, all but the number of its type. Nothing is stored yet.
template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::checked_schedule(std::string_view name, Recurrence const& how,
                                                                   std::string_view type, std::string payload,
                                                                   later<schedule_options> chosen) const
    -> schedule_record {
    using meaning = schedule_meaning<Recurrence>;
    check_text(name, "schedule name", longest_name, false);
    check_text(type, "task type", longest_name, false);
    auto const label = "schedule \"" + std::string(name) + "\"";
    check_size(payload, "payload of " + label, settings_.payload_limit);
    check_schedule_options(name, chosen);
    auto const named = how.of_schedule(name);
    auto const now = times_.reached();
    check_spread(name, named, chosen.spread, now);
    if (meaning::is_template(payload)) {
        if (auto const fault = basic_payload_template<typename meaning::text>::check(payload))
            throw error(errc::invalid_argument, "payload of " + label + ": " + fault->message());
    }
    basic_schedule_terms<typename meaning::text> terms;
    terms.misfire = chosen.misfire;
    terms.overlap = chosen.overlap;
    terms.spread = chosen.spread;
    terms.priority = chosen.priority.value_or(priority_class::normal);
    if (chosen.retry) terms.retry = ax::retry::to_text(*chosen.retry);
    check_tags(chosen.tags);
    terms.tags = std::move(chosen.tags);
    terms.depends_on_past = chosen.depends_on_past;
    schedule_record wanted;
    wanted.name = name;
    wanted.spec = named.spec();
    check_text(wanted.spec, "definition of " + label, longest_definition, false);
    wanted.payload = std::move(payload);
    wanted.terms = terms.text();
    wanted.next = named.first(now);
    return wanted;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
bool engine<Storage, Clock, Attempt, Recurrence>::forget(std::string_view name) {
    bool known = false;
    {
        alarms due;
        std::lock_guard const in_order{schedules_mutex_}; // else one that is declared meanwhile leaves memory with it
        transact([&](writer& w) {
            due.clear();
            known = w.forget(name);
            if (known) w.end_waits(name, true, times_.reached(), due);
        });
        std::lock_guard const guard{mutex_};
        timetable_.remove(name);
        backfills_.erase_of(name);
        arm(due);
    }
    flush();
    return known;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::find_schedule(std::string_view name) const
    -> std::optional<schedule_record> {
    for (auto& record : store_.schedules())
        if (record.name == name) return std::move(record);
    return std::nullopt;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
bool engine<Storage, Clock, Attempt, Recurrence>::pause_schedule(std::string_view name) {
    return change_schedule(name, [](schedule_record const& record, schedule_step& step) {
        step.paused = true;
        return !record.paused;
    });
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
bool engine<Storage, Clock, Attempt, Recurrence>::resume_schedule(std::string_view name, resume_policy how) {
    return change_schedule(name, [&](schedule_record const& record, schedule_step& step) {
        if (!record.paused) return false;
        step.paused = false;
        schedule_meaning<Recurrence> const means{record};
        auto const until = saturating_add(times_.reached(), -means.offset);
        if (auto const nearer = means.nearer(record, times_.reached())) {
            step.next = *nearer; // a wrong clock had carried it away
        } else if (how == resume_policy::from_now && record.next && *record.next <= until) {
            auto const last = means.how.latest(*record.next, until).nominal;
            step.next = means.how.waits_for_end() ? std::optional{means.how.after_end(times_.reached())}
                                                  : means.how.following(last);
            step.skipped.push_back(
                {*record.next, last, 1 + means.how.count(*record.next, last), "it was paused", times_.reached()});
        }
        return true;
    });
}

/// Stores a step that is decided by what is stored: again where the schedule moved on meanwhile.
/// @param decide  bool(record, step&): false where there is nothing to change.
template <storage Storage, clock Clock, class Attempt, class Recurrence>
template <class Decide>
bool engine<Storage, Clock, Attempt, Recurrence>::change_schedule(std::string_view name, Decide&& decide) {
    check_text(name, "schedule name", longest_name, false);
    for (;;) {
        auto const record = find_schedule(name);
        if (!record) return false;
        schedule_step step;
        step.name = record->name;
        step.version = record->version;
        step.next = record->next;
        if (!decide(*record, step)) return true;
        {
            schedule_answer answer;
            std::lock_guard const in_order{schedules_mutex_};
            transact([&](writer& w) {
                answer = w.step(step, times_.reached());
                if (answer.accepted) end_waits(w, answer.record, answer.due);
            });
            if (!answer.accepted) continue;
            std::lock_guard const guard{mutex_};
            place(answer.record);
            arm(answer.due);
            nudge_pump_ = true;
        }
        flush();
        return true;
    }
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::preview(std::string_view name, std::size_t most) const
    -> std::vector<later<firing>> {
    if (most > most_previewed)
        throw error(errc::invalid_argument, "preview of " + std::to_string(most) + " occurrences: at most " +
                                                std::to_string(most_previewed) + " are given");
    auto const record = known_schedule(name);
    time_point since;
    {
        std::lock_guard const guard{mutex_};
        since = timetable_.watched_since(name, watching_since_);
    }
    auto next = next_firings<Recurrence>(record, times_.reached(), since, most);
    for (auto& one : next) // one that is there is not made again
        if (auto const there = store_.occurrence(name, one.nominal))
            one.why += "; there already: task " + std::to_string(to_number(there->id)) +
                       (there->set_aside ? ", set aside" : ", " + std::string(to_string(there->state)));
    return next;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::skips(std::string_view name) const -> later<skip_log> {
    return store_.skips(known_schedule(name).name);
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::why_no_more(std::string_view name) const -> later<std::string> {
    return detail::why_no_more<Recurrence>(known_schedule(name));
}

} // namespace ax::detail
