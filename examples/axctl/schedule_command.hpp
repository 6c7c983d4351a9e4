// SPDX-License-Identifier: MIT
// axctl schedules, skips, preview: the schedules of a store, what they left out, and what they will do next.
#pragma once

#include "arguments.hpp"
#include "instant_text.hpp"
#include "store_command.hpp"

#include <ax/scheduler/detail/next_firings.hpp>
#include <ax/scheduler/detail/submission.hpp>
#include <ax/scheduler/schedule.hpp>
#include <ax/storage/sqlite_visitor.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace axctl {

inline constexpr char schedules_usage[] =
    "  axctl schedules FILE                   what recurs, when next, how often it came and was left out\n";
inline constexpr char skips_usage[] = "  axctl skips FILE NAME                  what a schedule left out, and why\n";
inline constexpr char preview_usage[] = "  axctl preview FILE NAME [--count N]    the next occurrences of a schedule\n";

inline constexpr char schedules_help[] =
    "    --json      an array of schedules, with their policies, payloads and counts\n";
inline constexpr char skips_help[] =
    "    the latest 32 ranges, the latest last, and how many were left out for each reason\n"
    "    --json      {latest: an array of {first, last, number, reason, recorded}, reasons: an array of {reason, "
    "number}}\n";
inline constexpr char preview_help[] =
    "    as they come if nothing changes, and why; what an overlap will leave out nobody knows yet. Missed ones\n"
    "    that are to be made up for come first\n"
    "    --count N   so many (10), at most 10000\n"
    "    --json      an array of {nominal, run_at, missed, why}\n";

/// The schedules of one store.
class schedule_session {
  public:
    explicit schedule_session(arguments& given) : json_(given.flag("--json")), count_(given.number("--count", 10)) {
        auto const file = given.next_word();
        if (file.empty()) throw usage_error("the store's file is missing");
        store_.emplace(file);
        for (auto const& type : store_->types()) types_[type.number] = type.name;
    }

    int list() {
        auto const schedules = store_->schedules();
        if (json_) {
            auto all = nlohmann::json::array();
            for (auto const& each : schedules) all.push_back(json_of(each));
            return print(all);
        }
        std::printf("%-24s %-24s %7s %7s  %s\n", "name", "next", "created", "skipped", "what, when");
        for (auto const& each : schedules) {
            auto tail = one_line(what_of(each), 40) + ", " + one_line(when_of(each));
            if (each.skipped != 0) tail += "; latest skip: " + one_line(each.last_skip);
            std::printf("%-24s %-24s %7llu %7llu  %s\n", one_line(each.name, 200).c_str(), next_of(each).c_str(),
                        static_cast<unsigned long long>(each.fired), static_cast<unsigned long long>(each.skipped),
                        tail.c_str());
        }
        return 0;
    }

    int skips(std::string const& name) {
        (void)known(name);
        auto const all = store_->skips(name);
        if (json_) {
            nlohmann::json whole{{"latest", nlohmann::json::array()}, {"reasons", nlohmann::json::array()}};
            for (auto const& each : all.latest)
                whole["latest"].push_back({{"first", ax::to_text(each.first)},
                                           {"last", ax::to_text(each.last)},
                                           {"number", each.number},
                                           {"reason", json_text(each.reason)},
                                           {"recorded", ax::to_text(each.recorded)}});
            for (auto const& each : all.reasons)
                whole["reasons"].push_back({{"reason", json_text(each.reason)}, {"number", each.number}});
            return print(whole);
        }
        std::printf("%-24s %-24s %7s  %s\n", "first", "last", "skipped", "why, and when that was recorded");
        for (auto const& each : all.latest)
            std::printf("%-24s %-24s %7llu  %s, %s\n", ax::to_text(each.first).c_str(), ax::to_text(each.last).c_str(),
                        static_cast<unsigned long long>(each.number), one_line(each.reason, 400).c_str(),
                        ax::to_text(each.recorded).c_str());
        for (auto const& each : all.reasons)
            std::printf("%-49s %7llu  %s\n", "in all", static_cast<unsigned long long>(each.number),
                        one_line(each.reason, 400).c_str());
        return 0;
    }

    int preview(std::string const& name) {
        if (count_ > highest_previewed)
            throw usage_error("--count " + std::to_string(count_) + ": at most " + std::to_string(highest_previewed));
        return preview(known(name));
    }

  private:
    static constexpr std::size_t highest_previewed = 10'000;

    ax::schedule_record known(std::string const& name) const {
        for (auto& each : store_->schedules())
            if (each.name == name) return std::move(each);
        throw std::invalid_argument("there is no schedule " + name);
    }

    int preview(ax::schedule_record const& schedule) const {
        // Whether its owner has been watching nobody knows here: what is late counts as missed.
        auto const now = ax::now();
        auto const next = ax::detail::next_firings<ax::detail::recurrence>(schedule, now, now, count_);
        auto const zone = ax::detail::recurrence::parse(schedule.spec).zone().value_or(ax::time_zone{});
        auto all = nlohmann::json::array();
        for (auto const& one : next) {
            if (json_) {
                all.push_back({{"nominal", ax::to_text(one.nominal)},
                               {"run_at", ax::to_text(one.run_at)},
                               {"missed", one.run_at < now},
                               {"why", one.why}});
                continue;
            }
            auto line =
                ax::to_text(one.nominal) + "  " + local_text_of(one.nominal, zone) + " " + std::string(zone.name());
            if (one.run_at != one.nominal) line += ", runs at " + ax::to_text(one.run_at);
            std::puts((line + ": " + one_line(one.why, 400)).c_str());
        }
        if (json_) print(all);
        if (next.size() < count_)
            std::fprintf(stderr, "%s: %s\n", next.empty() ? "none" : "then none",
                         ax::detail::why_no_more<ax::detail::recurrence>(schedule).c_str());
        return 0;
    }

    static std::string next_of(ax::schedule_record const& schedule) {
        if (schedule.paused) return "paused";
        if (schedule.next) return ax::to_text(*schedule.next);
        return schedule.spec.starts_with("after_each") ? "after its latest run" : "over";
    }

    /// In words; a spec that this version cannot read as it is stored.
    static std::string when_of(ax::schedule_record const& schedule) {
        try {
            return ax::detail::recurrence::parse(schedule.spec).in_words();
        } catch (ax::error const&) {
            return schedule.spec;
        }
    }

    bool makes_workflows(ax::schedule_record const& schedule) const {
        return type_of(schedule) == ax::detail::workflow_type;
    }

    std::string type_of(ax::schedule_record const& schedule) const {
        auto const known = types_.find(schedule.type);
        return known == types_.end() ? std::string{} : known->second;
    }

    static std::string workflow_of(ax::schedule_record const& schedule) {
        auto const whole = nlohmann::json::parse(schedule.payload, nullptr, false);
        auto const name = whole.is_object() ? whole.find("name") : whole.end();
        return whole.is_object() && name != whole.end() && name->is_string() ? name->get<std::string>() : "?";
    }

    std::string what_of(ax::schedule_record const& schedule) const {
        return makes_workflows(schedule) ? "workflow " + workflow_of(schedule) : type_of(schedule);
    }

    nlohmann::json json_of(ax::schedule_record const& schedule) const {
        bool const whole = makes_workflows(schedule);
        nlohmann::json all{{"name", schedule.name},
                           {"spec", schedule.spec},
                           {"type", whole ? nlohmann::json() : nlohmann::json(type_of(schedule))},
                           {"workflow", whole ? nlohmann::json(workflow_of(schedule)) : nlohmann::json()},
                           {"payload", json_text(schedule.payload)},
                           {"paused", schedule.paused},
                           {"next", axctl::json_of(schedule.next)},
                           {"last_nominal", axctl::json_of(schedule.last_nominal)},
                           {"last_task", schedule.last_task == ax::task_id{}
                                             ? nlohmann::json()
                                             : nlohmann::json(ax::to_number(schedule.last_task))},
                           {"fired", schedule.fired},
                           {"skipped", schedule.skipped},
                           {"last_skip", schedule.last_skip},
                           {"created", ax::to_text(schedule.created)}};
        auto const terms = ax::detail::basic_schedule_terms<std::string>::parse(schedule.terms);
        all["misfire"] = ax::to_text(terms.misfire);
        all["overlap"] = ax::to_text(terms.overlap);
        all["spread_ms"] = terms.spread.count();
        all["priority"] = ax::to_string(terms.priority);
        all["retry"] = terms.retry.empty() ? nlohmann::json() : nlohmann::json(terms.retry);
        all["tags"] = terms.tags;
        all["depends_on_past"] = terms.depends_on_past;
        return all;
    }

    bool json_;
    std::size_t count_;
    std::optional<ax::sqlite_visitor> store_;
    std::map<ax::type_number, std::string> types_;
};

inline int schedules_command(arguments& given) {
    schedule_session session{given};
    given.nothing_left();
    return session.list();
}

inline int skips_command(arguments& given) {
    schedule_session session{given};
    return session.skips(given.only_word("the name of a schedule"));
}

inline int preview_command(arguments& given) {
    schedule_session session{given};
    return session.preview(given.only_word("the name of a schedule"));
}

} // namespace axctl
