// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/cron/calendar.hpp"
#include "ax/cron/cron.hpp"
#include "ax/scheduler/detail/definition_page.hpp"
#include "ax/scheduler/detail/spread.hpp"
#include "ax/scheduler/policies.hpp"
#include "ax/scheduler/schedule.hpp"
#include "ax/time/time_point.hpp"
#include "ax/time/time_zone.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

/// Reads the elements of "schedules".
/// @tparam Made  schedule_definition.
template <class Made, class Json>
class schedule_reader {
  public:
    using page_type = definition_page<Json>;

    /// @param now  From when on the distances between occurrences are looked at, for a spread.
    schedule_reader(page_type& page, time_point now) : page_(page), now_(now) {}

    /// Nothing where it does not say soundly when it recurs.
    std::optional<Made> read(Json const& one, std::string const& path, typename page_type::name_map& taken,
                             std::size_t place) {
        if (!page_.is_object(one, path)) return std::nullopt;
        page_.check_members(one, path,
                            {"name", "cron", "every", "after_each", "once", "calendar", "zone", "dialect", "type",
                             "workflow", "payload", "misfire", "overlap", "spread", "priority", "retry", "tags",
                             "depends_on_past"});
        auto const name = page_.name_of(one, path, taken, place);
        std::string type, whole, payload;
        read_what(one, path, type, whole, payload);

        schedule_options chosen;
        if (auto const* value = page_.member(one, "misfire")) chosen.misfire = misfire_of(*value, path + "/misfire");
        if (auto const word = page_.word_of(one, path, "overlap", overlap_names); !word.empty())
            chosen.overlap = overlap::parse(word);
        chosen.priority = page_.priority_of(one, path);
        if (auto const* value = page_.member(one, "retry")) chosen.retry = page_.retry_of(*value, path + "/retry");
        if (auto const* value = page_.member(one, "tags")) chosen.tags = page_.tags_of(*value, path + "/tags");
        if (auto const* value = page_.member(one, "depends_on_past")) {
            if (value->is_boolean())
                chosen.depends_on_past = value->template get<bool>();
            else
                page_.wrong_kind(*value, path + "/depends_on_past", "true or false");
        }
        if (!whole.empty() &&
            (chosen.overlap == overlap_policy::queue_one || chosen.overlap == overlap_policy::queue_all))
            page_.fail(path + "/overlap", "a workflow cannot be queued behind the one before");
        if (!whole.empty() && chosen.depends_on_past)
            page_.fail(path + "/depends_on_past",
                       "is for tasks: a task of a workflow waits with wait_for for another occurrence");

        auto const faults_before = page_.fault_count();
        auto how = recurrence_of(one, path, name);
        if (auto const* value = page_.member(one, "spread")) {
            if (auto const window = page_.length(*value, path + "/spread")) {
                chosen.spread = *window;
                if (how && page_.fault_count() == faults_before)
                    page_.attempt(path + "/spread", [&] { check_spread(name, *how, *window, now_); });
            }
        }
        if (!how) return std::nullopt;
        return Made{name, std::move(*how), type, std::move(payload), std::move(chosen), whole};
    }

  private:
    // As dependent names, so that a unit that only includes this does not pay for their code.
    using cron = dependent<ax::cron, Json>;
    using calendar = basic_calendar<cron>;
    using recurrence = basic_recurrence<cron>;

    /// What it creates: tasks of a type, or workflows.
    void read_what(Json const& one, std::string const& path, std::string& type, std::string& whole,
                   std::string& payload) {
        auto const* const said = page_.member(one, "type");
        auto const* const workflow = page_.member(one, "workflow");
        auto const* const carried = page_.member(one, "payload");
        if (said) type = page_.type_of(*said, path + "/type");
        if (workflow) whole = page_.text_of(*workflow, path + "/workflow", longest_name);
        if (said && workflow)
            page_.fail(path, "says what in 2 ways (type, workflow): one is needed");
        else if (!said && !workflow)
            page_.fail(path, "does not say what: one of type, workflow is needed");
        if (!carried) return;
        if (workflow)
            page_.fail(path + "/payload", "the tasks of a workflow have the payloads");
        else
            payload = page_.payload_of(*carried, path + "/payload", true);
    }

    std::optional<recurrence> recurrence_of(Json const& one, std::string const& path, std::string const& name) {
        std::vector<std::string_view> given;
        for (std::string_view const kind : {"cron", "every", "after_each", "once", "calendar"})
            if (page_.member(one, kind)) given.push_back(kind);
        if (given.empty()) {
            page_.fail(path, "does not say when: one of cron, every, after_each, once, calendar is needed");
            return std::nullopt;
        }
        if (given.size() != 1) {
            page_.fail(path, "says when in " + std::to_string(given.size()) + " ways (" + page_.joined(given) +
                                 "): one is needed");
            return std::nullopt;
        }
        auto const kind = given.front();
        auto const& value = *page_.member(one, kind);
        auto const place = page_.below(path, kind);

        bool sound = true;
        std::optional<time_zone> zone;
        if (auto const* said = page_.member(one, "zone")) {
            if (kind != "cron" && kind != "once") {
                page_.fail(path + "/zone",
                           std::string(kind) + (kind == "calendar" ? " names its zones itself" : " has no zone"));
                sound = false;
            } else if (said->is_string()) {
                sound = page_.attempt(path + "/zone", [&] { zone = time_zone{std::string_view(page_.string(*said))}; });
            } else {
                sound = page_.wrong_kind(*said, path + "/zone", "a text");
            }
        }
        auto dialect = cron_dialect::ax;
        if (page_.member(one, "dialect")) {
            if (kind == "cron") {
                auto const word = page_.word_of(one, path, "dialect", {"ax", "crontab", "quartz", "spring"});
                if (word.empty()) return std::nullopt; // in which language the expression is meant nobody knows
                dialect = *dialect_named(word);
            } else {
                page_.fail(path + "/dialect", std::string(kind) + " has no dialect");
            }
        }

        std::optional<recurrence> how;
        if (kind == "every" || kind == "after_each") {
            if (auto const step = page_.length(value, place)) {
                page_.attempt(place, [&] {
                    if (kind == "every")
                        how.emplace(every{*step});
                    else
                        how.emplace(after_each{*step});
                });
            }
        } else if (!value.is_string()) {
            page_.wrong_kind(value, place, "a text");
        } else if (kind == "cron") {
            if (auto const fault = cron_expression::check(page_.string(value), dialect))
                page_.fail(place, fault->message());
            else if (sound)
                page_.attempt(place, [&] {
                    how.emplace(cron{page_.string(value), zone.value_or(time_zone{}), dialect});
                });
        } else if (kind == "calendar") {
            page_.attempt(place, [&] { how.emplace(calendar::parse(page_.string(value))); });
        } else if (auto const when = instant_of(page_.string(value), place, path, zone, sound)) {
            page_.attempt(place, [&] { how.emplace(once{*when}); });
        }
        if (how) {
            bool const occurs = page_.attempt(place, [&] { (void)how->of_schedule(name); });
            if (!occurs) how.reset();
        }
        return how;
    }

    std::optional<time_point> instant_of(std::string const& text, std::string const& place, std::string const& path,
                                         std::optional<time_zone> const& zone, bool sound) {
        auto const written = written_instant_of(text);
        if (!written) {
            page_.fail(place, page_.quoted(text) +
                                  " is no instant; allowed: as 2026-03-29T03:00:00+02:00, or without an offset and "
                                  "with a zone");
        } else if (written->east && zone) {
            page_.fail(path + "/zone", "the instant says its offset from UTC itself");
        } else if (written->east) {
            return time_point{written->wall.time_since_epoch() - *written->east};
        } else if (zone) {
            return zone->to_instant(written->wall);
        } else if (sound) {
            page_.fail(place, page_.quoted(text) + " says no offset from UTC: Z, +02:00 or a zone is needed");
        }
        return std::nullopt;
    }

    misfire_policy misfire_of(Json const& value, std::string const& path) {
        auto made = misfire::run_once;
        if (value.is_string()) {
            if (page_.is_one_of(page_.string(value), path, {"skip", "run_once"}))
                made = misfire::parse(page_.string(value));
        } else if (!value.is_object()) {
            page_.wrong_kind(value, path, R"("skip", "run_once", {"run_all": 100} or {"within": "10m"})");
        } else if (page_.check_members(value, path, {"run_all", "within"})) {
            if (value.size() != 1) {
                page_.fail(path, "needs one of run_all, within");
            } else if (auto const* most = page_.member(value, "run_all")) {
                if (auto const n = page_.count_of(*most, path + "/run_all"))
                    page_.attempt(path + "/run_all", [&] { made = misfire::run_all(*n); });
            } else if (auto const late = page_.length_of(value, path, "within")) {
                page_.attempt(path + "/within", [&] { made = misfire::within(*late); });
            }
        }
        return made;
    }

    page_type& page_;
    time_point now_;
};

} // namespace ax::detail
