// SPDX-License-Identifier: MIT
// The engine's pump(): one exchange with the storage. What has ended goes in, what is due is claimed, schedules step
// on, and pages of the near future are read, in one commit and a few reads. A storage that fails loses nothing of it.
#pragma once

#include "ax/scheduler/detail/engine.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace ax::detail {

template <storage Storage, clock Clock, class Attempt, class Recurrence>
bool engine<Storage, Clock, Attempt, Recurrence>::pump() {
    mark_pumping const mark{this};
    batch b;
    std::vector<pending_event> events;
    bool moved = admit_handed_in();
    {
        std::lock_guard const guard{mutex_};
        if (backing_off()) return moved;
        collect(b, times_.reached());
    }
    try {
        if (!b.empty()) {
            read_back(b);
            exchange(b);
            apply(b, events);
            send(events); // that a task was picked up is said before its handler can start
            events.clear();
            admit(b);
            moved = true;
        }
        moved = relearn() || moved;
        moved = read_pages(b.sweep) || moved;
        if (b.sweep) look_around();
        moved = read_waiters(b.sweep) || moved;
        fill_gaps();
        moved = fill_backfills() || moved;
        moved = look_for_guests() || moved;
        storage_answered(events);
    } catch (error const& e) {
        storage_failed(b, e, events);
    } catch (std::exception const& e) { // out of memory, say: as transient as a storage that is away
        storage_failed(b, error(errc::unavailable, e.what()), events);
    } catch (...) {
        storage_failed(b, error(errc::unavailable, "it threw something that is no std::exception"), events);
    }
    b.leave.reset();
    clean(moved);
    flush();
    send(events);
    return moved;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::collect_one(batch& b, time_point now) {
    --alone_;
    b.alone = true;
    for (int tries = 0; tries != 3 && b.empty(); ++tries) {
        auto const kind = next_kind_++ % 3;
        if (kind == 0) b.ended = outbox_.take(1);
        if (stopping_) continue;
        if (kind == 1) b.steps = timetable_.take_steps(now, watching_since_, 1);
        if (kind == 2) draw(b, 1);
    }
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::collect(batch& b, time_point now) {
    if (alone_ != 0) return collect_one(b, now);
    b.ended = outbox_.take((std::numeric_limits<std::size_t>::max)());
    for (auto& mine : std::exchange(to_note_, {}))
        if (mine->status == attempt_status::running) b.noted.push_back(std::move(mine));
    b.sweep = std::exchange(must_sweep_, false) || (next_deadline_ && *next_deadline_ <= now);
    if (stopping_) return;
    b.steps = timetable_.take_steps(now, watching_since_, (std::numeric_limits<std::size_t>::max)());
    draw(b, (std::numeric_limits<std::size_t>::max)());
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::draw(batch& b, std::size_t most) {
    flight_.plan_claims();
    auto open = flight_.open_classes();
    std::array<std::size_t, priority_classes> room{};
    for (std::size_t i = 0; i != priority_classes; ++i) room[i] = flight_.room(static_cast<priority_class>(i));
    while (b.drawn.size() != most) {
        auto const task = window_.draw(open);
        if (!task) break;
        waiters_.drawn(task->id);
        if (!flight_.reserve(task->id)) continue; // in flight here already
        auto const c = static_cast<std::size_t>(class_of(task->lane->lane));
        open[c] = --room[c] != 0;
        ++claiming_[c];
        b.drawn.push_back(*task);
    }
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::read_back(batch& b) {
    for (auto& one : b.ended) {
        if (!one.in_doubt || one.stored) continue;
        auto const record = store_.find(one.end.id);
        bool const open = record && is_active(record->state) && record->fence == one.end.fence;
        std::vector<attempt_view> attempts;
        if (record && !open) attempts = store_.history(one.end.id);
        one.in_doubt = false; // both reads have been made: where one fails, it is in doubt until the next time
        if (!record || open) continue;
        if (one.end.outcome == attempt_outcome::released) { // which leaves no trace, and asks for none
            one.stored = record->state;
            continue;
        }
        for (auto& attempt : attempts) {
            if (attempt.id != one.end.fence || !attempt.outcome || attempt.end != one.end.ended ||
                *attempt.outcome == attempt_outcome::crashed)
                continue;
            one.stored = record->state;
            if (*attempt.outcome == one.end.outcome) continue;
            one.end.outcome = *attempt.outcome; // its own writes had failed
            one.end.error = std::move(attempt.error);
            one.follow_ups.clear();
            one.additions = {};
        }
    }
    auto const sent =
        std::stable_partition(b.ended.begin(), b.ended.end(), [](auto const& one) { return !one.stored; });
    b.sent = static_cast<std::size_t>(sent - b.ended.begin());
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
bool engine<Storage, Clock, Attempt, Recurrence>::relearn() {
    {
        std::lock_guard const guard{mutex_};
        if (!recovered_ || offers_ != 0 || !std::exchange(must_relearn_, false)) return false;
        relearning_ = true; // no offer is made meanwhile: what is in flight and not here has nobody
    }
    bool found = false;
    try {
        task_filter page;
        page.state = task_state::dispatched;
        page.limit = 1'000;
        for (auto records = store_.list(page, times_.reached()); !records.empty();
             records = store_.list(page, times_.reached())) {
            page.after = records.back().id;
            std::lock_guard const guard{mutex_};
            for (auto& record : records) {
                if (record.node != self_ || flight_.contains(record.id)) continue;
                auto const lost = std::make_shared<Attempt>();
                lost->record = std::move(record);
                lost->status = attempt_status::ended;
                give_back(lost);
                found = true;
            }
        }
        auto const kept = store_.schedules();
        std::lock_guard const guard{mutex_};
        for (auto const& record : kept) place(record);
        relearning_ = false;
    } catch (...) {
        std::lock_guard const guard{mutex_};
        must_relearn_ = true;
        relearning_ = false;
        throw;
    }
    return found;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::exchange(batch& b) {
    std::vector<attempt_end> ends;
    ends.reserve(b.sent);
    for (auto& one : std::span(b.ended).first(b.sent)) {
        ends.push_back(one.end);
        for (auto const& f : one.follow_ups) { // numbers are looked up before the commit, which may be repeated
            ends.back().follow_ups.push_back(f.task);
            ends.back().follow_ups.back().type = number_of(f.type);
            if (!f.says_priority) ends.back().follow_ups.back().priority = usual_priority(f.type);
        }
        new_task common;
        common.priority = one.what->record.priority;
        common.tags = one.what->record.tags;
        common.scheduled_at = one.what->record.scheduled_at;
        for (auto const& node : one.additions.all())
            ends.back().members.push_back(member_of(node, common, (time_point::min)()));
    }
    std::vector<std::string> moving;
    for (auto& step : b.steps) {
        if (step.occurrence) complete(step, times_.reached());
        moving.push_back(step.name);
        if (step.occurrence) add_awaited(moving, *step.occurrence);
    }
    auto const moved = known_of(std::move(moving));
    std::vector<claim_request> requests;
    requests.reserve(b.drawn.size());
    std::vector<start_mark> starts;
    claim_terms terms;
    terms.node = self_;
    std::string clock;
    {
        std::lock_guard const guard{mutex_};
        clock = !ends.empty() || !b.steps.empty() ? clock_to_keep(true) : std::string{};
        for (auto const& task : b.drawn)
            requests.push_back({task.id, handler_of(task.lane->lane)->how->on_interrupt == on_interrupt::hold,
                                type_of(task.lane->lane)});
        for (auto const& mine : b.noted) starts.push_back({mine->record.id, mine->record.fence, mine->started});
        terms.suspects = suspects_.open(times_.steady()) ? 1 : 0;
        offer_to_children(b);
    }
    bool const answers = !ends.empty() || !b.steps.empty() || b.sweep; // a claim alone need not survive a power cut
    store_.transact(answers ? how_durable() : commit::lazy, [&](writer& w) {
        auto const now = times_.reached();
        if (b.leave) b.leave->give(w);
        if (!ends.empty()) b.settled = w.settle(ends, now);
        if (!clock.empty()) w.note("clock", clock);
        if (!starts.empty()) w.start(starts, now);
        if (b.sweep) b.expired = w.expire(now, expire_size);
        b.stepped.clear();
        for (auto const& step : b.steps) b.stepped.push_back(step_or_leave_out(w, step, now));
        if (!b.steps.empty()) end_waits(w, moved, b.stepped.back().due);
        if (requests.empty()) return;
        terms.now = now;
        terms.until = saturating_add(now, settings_.read_ahead);
        b.claims = w.claim(requests, terms);
    });
    if (clock.empty()) return;
    std::lock_guard const guard{mutex_};
    clock_kept_at_ = times_.steady();
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::offer_to_children(batch& b) {
    auto const has_children = [](finished_attempt const& one) { return one.what->record.in_workflow; };
    if (stopping_ || std::none_of(b.ended.begin(), b.ended.end(), has_children)) return;
    std::array<std::size_t, priority_classes> room{};
    for (std::size_t i = 0; i != priority_classes; ++i) room[i] = flight_.room(static_cast<priority_class>(i));
    for (auto const& task : b.drawn) {
        auto& left = room[static_cast<std::size_t>(class_of(task.lane->lane))];
        left -= left != 0 ? 1 : 0;
    }
    b.leave.emplace(*this).open(room, true);
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::apply(batch& b, std::vector<pending_event>& events) {
    std::vector<task_id> asked;
    {
        std::lock_guard const guard{mutex_};
        auto const now = times_.reached();
        apply_settlement(b, now, events);
        if (b.sweep) {
            arm(b.expired.due);
            for (auto const id : b.expired.dead) timetable_.run_ended(id);
            asked = std::move(b.expired.asked_to_stop);
            if (!b.expired.dead.empty()) backfills_.wake();
            backfills_.sweep(times_.steady());
            timetable_.sweep(times_.steady());
            next_deadline_ = b.expired.next;
        }
        for (auto const& answer : b.stepped) {
            arm(answer.due, true);
            if (answer.accepted || !answer.record.name.empty()) place(answer.record);
            if (answer.asked_to_stop != task_id{}) asked.push_back(answer.asked_to_stop);
            if (answer.cancelled != task_id{}) must_sweep_ = true; // a workflow asks its tasks, which the sweep sees
            if (answer.cancelled != task_id{}) timetable_.run_ended(answer.cancelled);
        }
        for (auto const& step : b.steps)
            if (step.occurrence) plan_deadlines(*step.occurrence);
        b.steps.clear();
        apply_claims(b, now, events);
    }
    settled_.notify_all();
    if (!asked.empty()) stop_asked(asked);
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::apply_settlement(batch& b, time_point now,
                                                                   std::vector<pending_event>& events) {
    for (auto& failed : b.settled.failed) {
        auto& one = b.ended[failed.at];
        one.end.outcome = one.effects->otherwise;
        one.end.error = std::move(failed.error);
        one.follow_ups.clear();
        one.additions = {};
    }
    for (std::size_t i = 0; i != b.ended.size(); ++i) {
        auto const& one = b.ended[i];
        bool const taken = one.stored || b.settled.accepted[i];
        leave_flight(*one.what);
        if (one.end.outcome == attempt_outcome::released) continue;
        if (taken)
            for (auto const& f : one.follow_ups) plan_deadline(f.task.deadline);
        if (taken)
            for (auto const& node : one.additions.all()) plan_deadline(node.deadline);
        if (taken && (!one.what->record.schedule.empty() || one.what->record.in_workflow) &&
            is_terminal(one.stored ? *one.stored : b.settled.states[i])) {
            timetable_.run_ended();
            backfills_.wake();
        }
        if (!observer) continue;
        auto& e = note(events, taken ? event_kind::reported : event_kind::refused, one.what, now);
        e.outcome = one.end.outcome;
        e.run_time = one.end.started ? one.end.ended - *one.end.started : duration{0};
        e.text = one.end.error;
    }
    outbox_.stored(b.ended.size());
    b.settled_ones = std::exchange(b.ended, {});
    arm(b.settled.due);
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::apply_claims(batch& b, time_point now,
                                                               std::vector<pending_event>& events) {
    for (auto const id : b.claims.suspects)
        for (auto const& task : b.drawn)
            if (task.id == id) suspects_.put(id, task);
    std::size_t at = 0; // the claimed ones stand in the order in which they were asked for
    for (auto const& task : b.drawn) {
        if (at == b.claims.claimed.size() || b.claims.claimed[at].id != task.id) {
            flight_.give_up(task.id); // somebody else's, or not claimable any more
            continue;
        }
        auto const by = handler_of(task.lane->lane);
        auto const mine = flight_.enter(std::move(b.claims.claimed[at++]), *by);
        if (mine->record.lonely) suspects_.took_off(mine->record.id);
        if (observer) note(events, event_kind::picked_up, mine, now);
        b.entered.push_back(mine);
    }
    b.drawn.clear();
    claiming_.fill(0);
    arm(b.claims.due);
    if (b.leave) {
        auto const before = b.entered.size();
        b.leave->take(b.entered);
        if (observer)
            for (auto const& mine : std::span(b.entered).subspan(before))
                note(events, event_kind::picked_up, mine, now);
    }
    try_next_suspect(); // the lonely one may have ended in the same commit, or was not claimable any more
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::admit(batch& b) {
    std::lock_guard const guard{mutex_};
    auto const now = times_.reached();
    for (auto const& mine : b.entered) {
        if (mine->status != attempt_status::waiting) continue; // taken back meanwhile
        bool const held_back = std::erase(held_back_, mine->record.id) != 0;
        if ((stopping_ || mine->handled_by->paused || held_back) && flight_.revoke(*mine))
            give_back(mine);
        else if (flight_.admit(mine, now))
            continue;
        else
            plan_turn(mine->record.run_at);
    }
    b.entered.clear();
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
bool engine<Storage, Clock, Attempt, Recurrence>::admit_handed_in() {
    batch b;
    std::vector<pending_event> events;
    {
        std::lock_guard const guard{mutex_};
        b.entered = std::exchange(handed_in_, {});
        for (auto const& mine : b.entered) note(events, event_kind::picked_up, mine, times_.reached());
    }
    if (b.entered.empty()) return false;
    send(events);
    admit(b);
    return true;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
bool engine<Storage, Clock, Attempt, Recurrence>::read_pages(bool sweep) {
    std::vector<page_request> requests;
    {
        std::lock_guard const guard{mutex_};
        if (stopping_) must_load_ = false;
        if (stopping_ || !recovered_) return false;
        must_load_ = false;
        auto const now = times_.reached();
        for (auto* const lane : lanes_) {
            lane->sweep_due = lane->sweep_due || sweep;
            if (auto request = window_.next_sweep(*lane, now)) requests.push_back(*request);
            if (auto request = window_.next_page(*lane, now)) requests.push_back(*request);
        }
    }
    bool came = false;
    std::size_t at = 0;
    try {
        for (; at != requests.size(); ++at) came = read_page(requests[at]) || came;
    } catch (...) {
        std::lock_guard const guard{mutex_};
        for (; at != requests.size(); ++at) window_.failed(requests[at]);
        must_load_ = true;
        throw;
    }
    return came;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::look_around() {
    std::unique_lock const in_order{pause_mutex_, std::try_to_lock};
    if (!in_order) return; // a pause is being stored: the next sweep looks again
    auto const types = store_.types();
    auto const asked = store_.asked_to_stop();
    {
        std::lock_guard const guard{mutex_};
        for (auto const& type : types)
            if (auto const by = handlers_.find(type.number); by != handlers_.end() && by->second->paused != type.paused)
                for (auto const& mine : set_paused(*by->second, type.paused)) give_back(mine);
    }
    stop_asked(asked);
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::stop_asked(std::vector<task_id> const& asked) {
    std::vector<attempt_ptr> to_stop;
    {
        std::lock_guard const guard{mutex_};
        for (auto const id : asked) {
            auto const mine = flight_.find(id);
            if (!mine && (offers_ != 0 || flight_.contains(id)))
                held_back_.push_back(id); // its claim may be on the way
            if (!mine) continue;
            if (flight_.revoke(*mine))
                give_back(mine); // which cancels it, as it is marked
            else if (mine->status != attempt_status::ended)
                to_stop.push_back(mine); // runs, or is about to: the executor has come to it
        }
    }
    for (auto const& mine : to_stop) mine->request_stop(stop_reason::cancelled); // stop callbacks of the host run here
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
bool engine<Storage, Clock, Attempt, Recurrence>::read_page(page_request const& request) {
    auto const page = store_.upcoming(request.after, request.until, request.limit);
    std::optional<time_point> beyond;
    if (!request.sweep && page.size() < request.limit) {
        alarm behind = request.after;
        behind.run_at = request.until;
        behind.id = window_type::behind_all;
        auto const first = store_.upcoming(behind, (time_point::max)(), 1);
        if (!first.empty()) beyond = first.front().run_at;
    }
    std::lock_guard const guard{mutex_};
    window_.loaded(request, page, beyond, saturating_add(times_.reached(), settings_.read_ahead));
    if (!page.empty()) newest_ = (std::max)(newest_, page.back().id);
    if (auto const next = next_turn(settings_.read_ahead)) plan_turn(*next);
    return !page.empty();
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::fill_gaps() {
    std::vector<typename plan_type::gap> gaps;
    {
        std::lock_guard const guard{mutex_};
        if (!recovered_) return;
        gaps = timetable_.take_gaps();
    }
    try {
        for (auto const& gap : gaps) {
            try {
                fill(gap);
            } catch (error const& e) {
                if (e.transient() || e.kind() == errc::outcome_unknown) throw;
                // What is the matter with this one keeps no other waiting; a later sweep looks at it again.
            }
        }
    } catch (...) {
        std::lock_guard const guard{mutex_};
        timetable_.run_ended();
        throw;
    }
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::fill(typename plan_type::gap const& gap) {
    auto const last = store_.find(gap.last_task);
    auto const now = times_.reached();
    // What a wrong clock has written lies in the future, and is not waited for: a run that waits, or an end.
    bool const ahead =
        last && is_claimable(last->state) && last->scheduled_at && *last->scheduled_at > gap.how.after_end(now);
    if (last && !is_terminal(last->state) && !ahead) return;
    auto end = last && last->finished && !ahead ? (std::min)(*last->finished, now) : now;
    if (was_met(gap, gap.how.after_end(end))) end = now;
    schedule_step step;
    step.name = gap.name;
    step.version = gap.version;
    step.next = gap.how.after_end(end);
    schedule_answer answer;
    transact([&](writer& w) {
        answer = w.step(step, times_.reached());
        end_waits(w, answer.record, answer.due);
    });
    std::lock_guard const guard{mutex_};
    arm(answer.due);
    if (!answer.record.name.empty()) place(answer.record);
}

/// Whether the schedule has been at that instant: its occurrence is there, or was left out.
template <storage Storage, clock Clock, class Attempt, class Recurrence>
bool engine<Storage, Clock, Attempt, Recurrence>::was_met(typename plan_type::gap const& gap,
                                                          time_point instant) const {
    if (gap.last_nominal == instant) return true;
    if (!gap.has_skipped) return false;
    auto const log = store_.skips(gap.name);
    return !log.latest.empty() && log.latest.back().last >= instant;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
bool engine<Storage, Clock, Attempt, Recurrence>::look_for_guests() {
    std::vector<guest_look> looks;
    {
        std::lock_guard const guard{mutex_};
        if (!stopping_) looks = guests_.take_looks(times_.steady());
    }
    bool came = false;
    for (auto const& look : looks) {
        auto const found = store_.find(look.id);
        if (!found || (look.run_at && *look.run_at != found->run_at)) continue;
        guest_committed(look.id);
        came = true;
    }
    return came;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::storage_answered(std::vector<pending_event>& events) {
    std::lock_guard const guard{mutex_};
    if (!watch_.answered()) return;
    note(events, event_kind::storage_up, nullptr, times_.reached());
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::storage_failed(batch& b, error const& e,
                                                                 std::vector<pending_event>& events) {
    std::lock_guard const guard{mutex_};
    bool const passes = e.transient() || e.kind() == errc::outcome_unknown;
    if (!passes && !b.alone)
        alone_ = (std::min)(3 * (b.ended.size() + b.steps.size() + b.drawn.size()) + 3, std::size_t{10'000});
    bool const guilty = !passes && b.alone;
    if (e.kind() == errc::outcome_unknown) {
        for (auto& one : b.ended) one.in_doubt = true;
        read_anew();
    }
    if (guilty && !b.ended.empty())
        outbox_.refused(b.ended, e);
    else
        outbox_.put_back(b.ended);
    to_note_.insert(to_note_.end(), b.noted.begin(), b.noted.end());
    claiming_.fill(0);
    for (auto const& task : b.drawn) {
        flight_.give_up(task.id);
        if (guilty) continue; // the next sweep finds it again
        window_.requeue(task);
    }
    for (auto const& step : b.steps) guilty ? timetable_.set_aside(step.name) : timetable_.again(step.name);
    must_sweep_ = must_sweep_ || b.sweep;
    if (watch_.failed(e.what(), times_.steady(), random_()))
        note(events, event_kind::storage_down, nullptr, times_.reached()).text = e.what();
    settled_.notify_all();
}

} // namespace ax::detail
