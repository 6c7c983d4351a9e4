// SPDX-License-Identifier: MIT
// What keeps a store small and sound: ended tasks are removed, counts are read, impossible states are found.
#pragma once

#include "ax/scheduler/detail/engine.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace ax::detail {

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::clean(bool busy) {
    bool begin = false;
    {
        std::lock_guard const guard{mutex_};
        if (!recovered_ || stopping_) return;
        auto const steady = times_.steady();
        trust_.look(times_.reached(), steady);
        busy = busy || pump_has_work(times_.reached());
        if (!cleaning_.due(steady, busy)) return;
        cleaning_.start_work(steady);
        begin = !cleaning_.in_pass();
    }
    try {
        if (begin) begin_cleaning();
        clean_some();
        std::lock_guard const guard{mutex_};
        cleaning_.end_work(times_.steady());
    } catch (std::exception const& e) { // seen in health(), and tried again: nothing else waits for it
        std::lock_guard const guard{mutex_};
        cleaning_.failed(times_.steady(), e.what());
    }
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::begin_cleaning() {
    auto const counts = store_.counts();
    auto const types = store_.types();
    std::vector<typename cleaning<Storage>::stock> stocks;
    std::lock_guard const guard{mutex_};
    for (auto const& type : types) {
        typename cleaning<Storage>::stock mine;
        mine.type = type.number;
        for (auto const& each : counts) {
            if (!is_terminal(each.state) || each.type != type.name) continue;
            (each.state == task_state::dead ? mine.dead : mine.ended) += each.tasks;
        }
        if (mine.ended + mine.dead == 0) continue;
        mine.rule = settings_.retention;
        if (auto const by = handlers_.find(type.number); by != handlers_.end() && by->second->how->retention)
            mine.rule = *by->second->how->retention;
        stocks.push_back(std::move(mine));
    }
    cleaning_.begin(stocks, trust_.now(times_.steady()));
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::clean_some() {
    std::vector<prune_terms> jobs;
    bool compact = false;
    std::string clock;
    {
        std::lock_guard const guard{mutex_};
        jobs = cleaning_.next(trust_.now(times_.steady()), times_.reached());
        compact = cleaning_.wants_to_compact();
        clock = clock_to_keep(!jobs.empty());
    }
    if (jobs.empty() && !compact && clock.empty()) return;
    std::vector<prune_answer> answers;
    bool more = false;
    // After a power cut what was removed may be there again, and is removed again.
    store_.transact(commit::lazy, [&](writer& w) {
        answers.clear();
        auto room = cleaning<Storage>::batch_size;
        auto look = cleaning<Storage>::look_size;
        for (auto terms : jobs) {
            terms.look_at = look;
            answers.push_back(w.prune(terms, room));
            room -= answers.back().pruned;
            look -= answers.back().looked_at;
            if (answers.back().more || room == 0 || look == 0) break;
        }
        if (compact) more = w.compact();
        if (!clock.empty()) w.note("clock", clock);
    });
    std::lock_guard const guard{mutex_};
    auto const trusted = trust_.now(times_.steady());
    for (std::size_t i = 0; i != answers.size(); ++i) cleaning_.pruned(jobs[i].type, answers[i], trusted);
    if (compact) cleaning_.compacted(more);
    if (!clock.empty()) clock_kept_at_ = times_.steady();
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::stats() const -> task_stats {
    task_stats answer;
    for (auto const& each : store_.counts()) {
        auto& counts = answer.counts;
        auto const same = [&](state_count const& c) { return c.state == each.state && c.type == each.type; };
        auto const known = std::find_if(counts.begin(), counts.end(), same);
        if (known == counts.end())
            counts.push_back({each.type, each.state, each.tasks});
        else
            known->tasks += each.tasks;
    }
    std::lock_guard const guard{mutex_};
    for (auto const& [name, type] : declared_.types)
        if (!type.owner.empty()) answer.owners.push_back({name, type.owner});
    return answer;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::verify(bool repair) -> std::vector<finding> {
    std::vector<finding> all;
    for (bool again = true; again;) { // a search gives a bounded number, and one repair may call for another
        auto found = store_.verify();
        again = false;
        for (std::size_t at = 0; repair && at < found.size(); at += 100) {
            auto const some = std::span(found).subspan(at, (std::min)(std::size_t{100}, found.size() - at));
            alarms due;
            transact([&](writer& w) {
                due.clear();
                w.repair(some, times_.reached(), due);
            });
            take_alarms(due);
        }
        for (auto const& one : found) again = again || one.repaired;
        for (auto& one : found)
            if (one.repaired || !again) all.push_back(std::move(one));
    }
    find_lost(all, repair);
    return all;
}

/// What the store says to be in flight, and nobody here has. All that is in flight is this scheduler's once it has
/// taken over.
template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::find_lost(std::vector<finding>& all, bool repair) {
    auto const missing = [&](task_id id) {
        std::lock_guard const guard{mutex_};
        return recovered_ && offers_ == 0 && !flight_.contains(id);
    };
    for (auto const state : {task_state::dispatched, task_state::running}) {
        task_filter page;
        page.state = state;
        page.limit = 1'000;
        for (auto records = store_.list(page, times_.reached()); !records.empty();
             records = store_.list(page, times_.reached())) {
            page.after = records.back().id;
            for (auto const& record : records) {
                if (!missing(record.id)) continue;
                // It may have been settled between the two looks; then it is not under this fence any more.
                auto const again = store_.find(record.id);
                if (!again || !is_active(again->state) || again->fence != record.fence) continue;
                finding one;
                one.kind = "lost";
                one.task = record.id;
                one.text = again->node == self_
                               ? std::string("it is in flight for this scheduler, which has nothing of it")
                               : "it is in flight for node " + std::to_string(to_number(again->node)) +
                                     ", which does not run: this scheduler has the store";
                if (repair) {
                    attempt_end end;
                    end.id = record.id;
                    end.fence = record.fence;
                    end.outcome =
                        again->state == task_state::running ? attempt_outcome::interrupted : attempt_outcome::released;
                    if (again->state == task_state::running) end.started = again->started;
                    end.ended = times_.reached();
                    settlement settled;
                    transact([&](writer& w) { settled = w.settle({&end, 1}, times_.reached()); });
                    take_alarms(settled.due);
                    one.repaired = settled.accepted.front();
                }
                all.push_back(std::move(one));
            }
        }
    }
}

} // namespace ax::detail
