// SPDX-License-Identifier: MIT
// The same random life on two storages: memory_storage, which is plain enough to be believed, and another.
#pragma once

#include "conformance/walk.hpp"

#include <set>
#include <tuple>

namespace conformance {

using alarm_set = std::set<std::tuple<ax::lane_id, ax::time_point, ax::task_id>>;

/// The alarms that are true by now. A verb may give one that a later change of the same transaction has overtaken, or
/// the same twice: an alarm clock has to bear both, so they are no difference.
inline alarm_set true_alarms(ax::alarms const& due, ax::memory_storage const& model) {
    alarm_set answer;
    for (auto const& each : due) {
        auto const task = model.find(each.id);
        bool const waits = task && task->waits_for != ax::limit_number{};
        if (task && ax::is_claimable(task->state) && !task->blocked && !task->held && waits == each.waits &&
            (waits || task->run_at == each.run_at) && task->priority == ax::class_of(each.lane))
            answer.emplace(each.lane, each.run_at, each.id);
    }
    return answer;
}

/// All that can be read of a store, in words, a line a thing.
template <class Storage>
std::vector<std::string> read_all(Storage const& store, ax::time_point now) {
    std::vector<std::string> lines;
    auto const page_through = [&](ax::task_filter filter, std::size_t page_size, auto&& each) {
        filter.limit = page_size;
        for (;;) {
            auto const page = store.list(filter, now);
            if (page.empty()) return;
            for (auto const& task : page) each(task);
            filter.after = page.back().id;
        }
    };
    page_through({}, 500, [&](ax::task_record const& task) {
        lines.push_back(show(task));
        for (auto const& attempt : store.history(task.id)) lines.push_back("  " + show(attempt));
        for (auto const& step : store.steps(task.id)) lines.push_back("  " + step.name + " " + step.value);
        for (auto const& each : store.obstacles(task.id))
            if (each.kind == ax::obstacle::what::past)
                lines.push_back("  waits in " + each.name + " for " + std::to_string(to_number(each.holders.at(0))));
        if (task.key.empty()) return;
        auto const found = store.find_by_key(task.key);
        lines.push_back("  key of " + (found ? std::to_string(to_number(found->id)) : std::string{"nobody"}));
    });
    for (std::uint8_t state = 0; state <= 9; ++state) {
        ax::task_filter filter;
        filter.state = static_cast<task_state>(state);
        for (auto const& [type, stuck] : {std::pair{"", false}, std::pair{"probe", false}, std::pair{"", true}}) {
            filter.type = type;
            filter.stuck_for = stuck ? std::optional<ax::time_span>{5s} : std::nullopt;
            std::string line = "list " + std::string{to_string(*filter.state)} + " " + type + (stuck ? "stuck:" : ":");
            page_through(filter, 7,
                         [&](ax::task_record const& task) { line += " " + std::to_string(to_number(task.id)); });
            lines.push_back(line);
        }
    }
    for (auto const& type : store.types()) {
        lines.push_back("type " + std::to_string(std::uint32_t(type.number)) + " " + type.name +
                        (type.paused ? " paused" : ""));
        for (std::uint8_t urgency = 0; urgency < ax::priority_classes; ++urgency) {
            ax::alarm after{{}, ax::make_lane(type.number, static_cast<ax::priority_class>(urgency)), {}};
            std::string line = "upcoming";
            for (;;) {
                auto const page = store.upcoming(after, now + 1h, 5);
                if (page.empty()) break;
                for (auto const& each : page)
                    line += " " + std::to_string(to_number(each.id)) + "@" + show(each.run_at);
                after = page.back();
            }
            lines.push_back(line);
        }
    }
    for (auto const& schedule : store.schedules()) lines.push_back(show(schedule));
    for (auto const* name : {"schedule-0", "schedule-1", "schedule-2"}) {
        for (auto const& each : store.aside(name, t0, t0 + 10h, 100))
            lines.push_back("aside in " + std::string{name} + ": " + std::to_string(to_number(each.id)));
        auto const skips = store.skips(name);
        for (auto const& each : skips.latest) lines.push_back("left out of " + std::string{name} + ": " + show(each));
        for (auto const& each : skips.reasons)
            lines.push_back("left out of " + std::string{name} + ", " + each.reason + ": " +
                            std::to_string(each.number));
    }
    for (auto const& each : store.backfills()) lines.push_back(show(each));
    for (auto const& each : store.counts())
        lines.push_back("count of " + each.type + " " + std::to_string(static_cast<int>(each.priority)) + " " +
                        std::string{to_string(each.state)} + ": " + std::to_string(each.tasks));
    for (auto const* name : {"note-0", "note-1", "note-2"}) lines.push_back(name + (": " + store.note(name)));
    for (auto const& each : store.verify())
        lines.push_back("impossible: " + each.kind + " of " + std::to_string(to_number(each.task)) + ": " + each.text);
    for (auto const& limit : store.limits()) {
        std::ostringstream line;
        line << "limit " << std::uint32_t(limit.number) << " kind " << int(limit.kind) << " " << limit.name
             << show(limit.how) << " used " << limit.used;
        lines.push_back(line.str());
    }
    ax::limit_number after{};
    for (bool complete = false; !complete;) {
        auto const page = store.waiting(after, 2, now);
        std::ostringstream line;
        line << "waiting behind " << std::uint32_t(after) << ":";
        for (auto const& each : page.due) {
            line << " " << each.id << "@" << show(each.run_at);
            for (auto const& obstacle : store.obstacles(each.id)) {
                line << " " << obstacle.name << " until " << show(obstacle.free_at) << " held by";
                for (auto const id : obstacle.holders) line << " " << id;
            }
        }
        lines.push_back(line.str());
        complete = page.complete;
        after = page.last;
    }
    return lines;
}

} // namespace conformance

/// Does the same `steps` random transactions to a memory_storage and to the fixture's storage, and compares every
/// answer and, every so often, all that can be read. Stops at the first difference, with what led to it.
template <class Fixture>
void storage_differential(std::uint32_t seed, std::size_t steps = 2'000) {
    using namespace conformance;
    Fixture fixture;
    auto subject = fixture.open();
    ax::memory_storage model;
    walk life(seed, true);
    std::string story; // since the last comparison of all
    for (std::size_t step = 1; step <= steps; ++step) {
        auto const ops = life.next(model);
        bool const undone = step > 1 && life.one_in(12);
        auto const expected = perform_all(model, ops, undone);
        auto const answered = perform_all(subject, ops, undone);
        for (auto const& op : ops) story += show(op) + "\n";
        if (undone) story += "(undone)\n";
        REQUIRE(answered.size() == expected.size());
        for (std::size_t i = 0; i < ops.size(); ++i) {
            if (answered[i].text != expected[i].text) {
                CAPTURE(seed, step, story, show(ops[i]));
                REQUIRE(answered[i].text == expected[i].text);
            }
            if (undone) continue;
            auto const wanted = true_alarms(expected[i].due, model);
            auto const given = true_alarms(answered[i].due, model);
            if (!std::includes(given.begin(), given.end(), wanted.begin(), wanted.end())) {
                CAPTURE(seed, step, story, show(ops[i]), expected[i].due, answered[i].due);
                FAIL("an alarm is missing");
            }
        }
        if (step % 50 != 0 && step != steps) continue;
        auto const wanted = read_all(model, life.now());
        auto const given = read_all(subject, life.now());
        for (std::size_t i = 0; i < (std::min)(wanted.size(), given.size()); ++i)
            if (given[i] != wanted[i]) {
                CAPTURE(seed, step, story);
                REQUIRE(given[i] == wanted[i]);
            }
        REQUIRE(given.size() == wanted.size());
        story.clear();
        if constexpr (Fixture::durable) {
            if (step % 500 == 0) subject = fixture.reopen(std::move(subject));
        }
    }
    SUCCEED("the two agree");
}
