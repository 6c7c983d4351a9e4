// SPDX-License-Identifier: MIT
// A random life of a store, as plain data: what is done is decided before it is done, so that the same can be done to
// any storage and written down when two of them disagree.
#pragma once

#include "conformance/support.hpp"

#include "ax/storage/memory.hpp"

#include <random>
#include <sstream>

namespace conformance {

// ---- in words ------------------------------------------------------------------------------------------------------

inline std::string show(ax::time_point t) { return std::to_string((t - t0).count()); }
inline std::string show(std::optional<ax::time_point> const& t) { return t ? show(*t) : "-"; }

/// Every field of a task, so that two that are shown alike are alike.
inline std::string show(ax::task_record const& task) {
    std::ostringstream out;
    out << "task " << task.id << " type=" << task.type << " key=" << task.key << " " << to_string(task.state)
        << " payload=" << task.payload << " run_at=" << show(task.run_at) << " attempts=" << task.attempts
        << " failures=" << task.failures << " interruptions=" << task.interruptions << " snoozes=" << task.snoozes
        << " last_error=" << task.last_error << " created=" << show(task.created) << " started=" << show(task.started)
        << " finished=" << show(task.finished) << " " << task.node << " priority=" << int(task.priority)
        << " route=" << task.route_key << "/" << int(task.route_order) << " order_at=" << show(task.order_at)
        << " blocked=" << task.blocked << " held=" << task.held << " aside=" << task.set_aside
        << " deadline=" << show(task.deadline) << " retry=" << task.retry << " result=" << task.result
        << " schedule=" << task.schedule << "@" << show(task.scheduled_at) << " version=" << task.version << " "
        << task.fence << " changed=" << show(task.changed) << " first_started=" << show(task.first_started)
        << " hold=" << task.hold_on_interrupt << " lonely=" << task.lonely << " unclean=" << task.unclean_ends << "/"
        << task.lonely_deaths << " scope=" << int(task.key_scope) << " released=" << task.key_released
        << " waits_for=" << std::uint32_t(task.waits_for) << " tags=";
    for (auto const& tag : task.tags) out << tag << ",";
    return out.str();
}

inline std::string show(ax::attempt_view const& attempt) {
    std::ostringstream out;
    out << "attempt " << attempt.number << " " << attempt.id << " " << attempt.node << " " << show(attempt.start)
        << ".." << show(attempt.end) << " " << (attempt.outcome ? to_string(*attempt.outcome) : "-")
        << " error=" << attempt.error << " log=" << attempt.log;
    return out.str();
}

inline std::string show(ax::schedule_record const& schedule) {
    std::ostringstream out;
    out << "schedule " << schedule.name << " spec=" << schedule.spec << " type=" << std::uint32_t(schedule.type)
        << " payload=" << schedule.payload << " next=" << show(schedule.next) << " last=" << show(schedule.last_nominal)
        << "/" << schedule.last_task << " version=" << schedule.version << " fired=" << schedule.fired
        << " skipped=" << schedule.skipped << " (" << schedule.last_skip << ") created=" << show(schedule.created)
        << " terms=" << schedule.terms << " paused=" << schedule.paused;
    return out.str();
}

inline std::string show(ax::skip_range const& each) {
    std::ostringstream out;
    out << each.number << " " << show(each.first) << ".." << show(each.last) << " " << each.reason << " at "
        << show(each.recorded);
    return out.str();
}

inline std::string show(ax::backfill_record const& each) {
    std::ostringstream out;
    out << "backfill " << each.number << " of " << each.schedule << " " << show(each.from) << ".." << show(each.to)
        << " next=" << show(each.next) << " priority=" << int(each.priority) << " at_once=" << each.at_once
        << " planned=" << each.planned << " made=" << each.made << " existed=" << each.existed
        << " unfinished=" << each.unfinished << " version=" << each.version << " created=" << show(each.created);
    return out.str();
}

inline std::string show(ax::insertion const& each) {
    std::ostringstream out;
    out << "insertion " << each.id << " outcome=" << int(each.outcome) << " " << to_string(each.state);
    return out.str();
}

inline std::string show(ax::new_task const& task) {
    std::ostringstream out;
    out << "{type=" << std::uint32_t(task.type) << " key=" << task.key << "/" << int(task.key_scope) << " "
        << to_string(task.on_conflict.action()) << "(" << task.on_conflict.period().count() << ")"
        << " run_at=" << show(task.run_at) << " delay=" << task.delay.count() << " route=" << task.route_key << "/"
        << int(task.route_order) << " priority=" << int(task.priority) << " deadline=" << show(task.deadline)
        << " schedule=" << task.schedule << "@" << show(task.scheduled_at) << " tags=" << task.tags.size()
        << (task.after_past ? " after_past" : "") << (task.set_aside ? " aside" : "") << "}";
    return out.str();
}

// ---- what is done ---------------------------------------------------------------------------------------------------

enum class verb {
    type,
    insert,
    claim,
    start,
    settle,
    reclaim,
    cancel,
    retry,
    reschedule,
    expire,
    pause,
    declare,
    step,
    forget,
    keep_step,
    prune,
    note,
    limit,
    set_aside,
    release,
    begin_backfill,
    fill,
    drop_backfill
};

/// One call of a verb with all its arguments; a verb uses those it has.
struct operation {
    verb what = verb::insert;
    ax::time_point now{};
    std::vector<ax::new_task> tasks;
    std::vector<ax::claim_request> requests;
    ax::claim_terms claims;
    std::vector<ax::start_mark> starts;
    std::vector<ax::attempt_end> ends;
    ax::reclaim_terms reclaims;
    ax::task_id id{};
    ax::fence_token fence{};
    ax::type_number number{};
    ax::time_point when{};
    bool yes = false;
    ax::schedule_record schedule;
    ax::schedule_step step;
    std::string name;
    ax::prune_terms ended;
    std::size_t limit = 0;
    ax::limit_kind kind = ax::limit_kind::tag;
    ax::limit how;
    std::vector<ax::resource_need> needs;
    ax::priority_class urgency{};
    ax::backfill_record range;
    ax::backfill_step some;
};

inline std::string show(ax::limit const& how) {
    std::ostringstream out;
    if (how.concurrency) out << " concurrency " << *how.concurrency;
    if (how.rate)
        out << " rate " << how.rate->count << " per " << how.rate->period.value().count() << " ms, burst "
            << how.rate->burst;
    return out.str();
}

inline std::string show(operation const& op) {
    std::ostringstream out;
    out << "now=" << show(op.now) << " ";
    switch (op.what) {
    case verb::type: out << "type " << op.name; break;
    case verb::insert:
        out << "insert";
        for (auto const& task : op.tasks) out << " " << show(task);
        break;
    case verb::claim:
        out << "claim by " << op.claims.node << " until " << show(op.claims.until) << " suspects "
            << op.claims.suspects;
        for (auto const& request : op.requests) out << " " << request.id << (request.hold_on_interrupt ? "h" : "");
        break;
    case verb::start:
        out << "start";
        for (auto const& mark : op.starts) out << " " << mark.id << "/" << mark.fence << "@" << show(mark.at);
        break;
    case verb::settle:
        out << "settle";
        for (auto const& end : op.ends)
            out << " " << end.id << "/" << end.fence << " " << to_string(end.outcome) << " started "
                << show(end.started) << " ended " << show(end.ended) << " retry_at " << show(end.retry_at)
                << " follow-ups " << end.follow_ups.size();
        break;
    case verb::reclaim: out << "reclaim by " << op.reclaims.node << " poison_after " << op.reclaims.poison_after; break;
    case verb::cancel: out << "cancel " << op.id; break;
    case verb::retry: out << "retry " << op.id; break;
    case verb::reschedule: out << "reschedule " << op.id << " to " << show(op.when); break;
    case verb::expire: out << "expire"; break;
    case verb::pause: out << "pause " << std::uint32_t(op.number) << " " << op.yes; break;
    case verb::declare: out << "declare " << show(op.schedule); break;
    case verb::step:
        out << "step " << op.step.name << " version " << op.step.version << " next " << show(op.step.next)
            << " skipped " << op.step.skipped.size() << (op.step.skip_if_unfinished ? " if finished " : " ")
            << (op.step.replace_blocked ? "replace " : "") << (op.step.stop_latest ? "stop " : "")
            << (op.step.paused ? (*op.step.paused ? "pause " : "resume ") : "")
            << (op.step.occurrence ? show(*op.step.occurrence) : "");
        break;
    case verb::forget: out << "forget " << op.name; break;
    case verb::keep_step: out << "keep step " << op.name << " of " << op.id << "/" << op.fence; break;
    case verb::prune:
        out << "prune type " << std::uint32_t(op.ended.type) << " ended by " << show(op.ended.ended_by) << " dead by "
            << show(op.ended.dead_by) << " keep " << op.ended.keep << ", " << op.limit << " of " << op.ended.look_at;
        break;
    case verb::note: out << "note " << op.name; break;
    case verb::limit:
        out << "limit kind " << int(op.kind) << " " << op.name << " type " << std::uint32_t(op.number) << show(op.how);
        for (auto const& need : op.needs) out << " needs " << need.amount << " of " << need.name;
        break;
    case verb::set_aside: out << "set aside " << op.id; break;
    case verb::release: out << "release " << op.id << " at " << int(op.urgency); break;
    case verb::begin_backfill: out << "begin backfill " << show(op.range); break;
    case verb::fill:
        out << "fill " << op.some.number << " version " << op.some.version << " next " << show(op.some.next);
        for (auto const& task : op.some.occurrences) out << " " << show(task);
        break;
    case verb::drop_backfill: out << "drop backfill " << op.some.number; break;
    }
    return out.str();
}

/// What a verb answered: in words, and the alarms apart, since they are compared as a set.
struct reply {
    std::string text;
    ax::alarms due;
};

template <class Writer>
reply perform(Writer& writer, operation const& op) {
    std::ostringstream out;
    reply answer;
    auto const tell = [&](ax::change const& change) {
        out << "change " << int(change.outcome);
        if (change.outcome != change_outcome::unknown) out << " " << to_string(change.state);
        answer.due = change.due;
    };
    switch (op.what) {
    case verb::type: out << std::uint32_t(writer.type(op.name)); break;
    case verb::insert:
        for (auto const& each : writer.insert(op.tasks, op.now, answer.due)) out << show(each) << "\n";
        break;
    case verb::claim: {
        auto const taken = writer.claim(op.requests, op.claims);
        for (auto const& task : taken.claimed) out << show(task) << "\n";
        for (auto const id : taken.suspects) out << "suspect " << id << "\n";
        answer.due = taken.due;
        break;
    }
    case verb::start: writer.start(op.starts, op.now); break;
    case verb::settle: {
        auto const settled = writer.settle(op.ends, op.now);
        for (std::size_t i = 0; i < settled.accepted.size(); ++i)
            out << (settled.accepted[i] ? to_string(settled.states.at(i)) : "refused") << " ";
        answer.due = settled.due;
        break;
    }
    case verb::reclaim: {
        auto reclaimed = writer.reclaim(op.reclaims);
        std::sort(reclaimed.poisoned.begin(), reclaimed.poisoned.end());
        out << "reclaimed " << reclaimed.reclaimed << " held " << reclaimed.held << " poisoned";
        for (auto const id : reclaimed.poisoned) out << " " << id;
        break;
    }
    case verb::cancel: tell(writer.cancel(op.id, op.now)); break;
    case verb::retry: tell(writer.retry(op.id, op.now)); break;
    case verb::reschedule: tell(writer.reschedule(op.id, op.when, op.now)); break;
    case verb::expire: {
        auto expired = writer.expire(op.now, 100'000);
        std::sort(expired.dead.begin(), expired.dead.end());
        for (auto const id : expired.dead) out << "dead " << id << " ";
        out << "next " << show(expired.next);
        answer.due = expired.due;
        break;
    }
    case verb::pause: writer.pause(op.number, op.yes); break;
    case verb::declare: out << show(writer.declare(op.schedule, op.now)); break;
    case verb::step: {
        auto const stepped = writer.step(op.step, op.now);
        out << stepped.accepted << " " << show(stepped.record);
        if (stepped.occurrence) out << " " << show(*stepped.occurrence);
        out << " cancelled " << stepped.cancelled << " asked " << stepped.asked_to_stop;
        answer.due = stepped.due;
        break;
    }
    case verb::forget: out << writer.forget(op.name); break;
    case verb::keep_step: out << writer.keep_step(op.id, op.fence, op.name, show(op.now)); break;
    case verb::prune: { // in how many calls is the storage's affair
        auto terms = op.ended;
        std::size_t pruned = 0;
        for (bool more = true; more;) {
            auto const part = writer.prune(terms, op.limit);
            pruned += part.pruned;
            more = part.more;
            terms.after = part.after;
        }
        out << "pruned " << pruned;
        break;
    }
    case verb::note: writer.note(op.name, show(op.now)); break;
    case verb::limit:
        try {
            if (op.kind == ax::limit_kind::type) answer.due = writer.limit_type(op.number, op.how, op.needs, op.now);
            if (op.kind == ax::limit_kind::tag) answer.due = writer.limit_tag(op.name, op.how, op.now);
            if (op.kind == ax::limit_kind::resource)
                answer.due = writer.set_resource(op.name, *op.how.concurrency, op.now);
        } catch (ax::error const& e) { // a resource that is not there yet
            out << e.what();
        }
        break;
    case verb::set_aside: tell(writer.set_aside(op.id, op.now)); break;
    case verb::release: tell(writer.release(op.id, op.urgency, op.now)); break;
    case verb::begin_backfill: out << show(writer.begin_backfill(op.range, op.now)); break;
    case verb::fill: {
        auto const filled = writer.fill(op.some, op.now);
        out << filled.accepted << " " << show(filled.record) << (filled.over ? " over" : "");
        answer.due = filled.due;
        break;
    }
    case verb::drop_backfill: out << writer.drop_backfill(op.some.number); break;
    }
    answer.text = out.str();
    return answer;
}

/// Thrown by a transaction that is to be undone.
struct undo_this {};

/// Runs the operations in one transaction.
/// @return  One reply each; they are given even where the transaction is undone in the end.
template <class Storage>
std::vector<reply> perform_all(Storage& store, std::vector<operation> const& ops, bool undone) {
    std::vector<reply> answers;
    try {
        store.transact(ax::commit::lazy, [&](typename Storage::writer& writer) {
            answers.clear(); // it may be run more than once
            for (auto const& op : ops) answers.push_back(perform(writer, op));
            if (undone) throw undo_this{};
        });
    } catch (undo_this const&) {
    }
    return answers;
}

// ---- what is to be done next ----------------------------------------------------------------------------------------

/// Draws operations that make sense for the present state of a store often enough to get far, and senseless ones often
/// enough to be refused. Names, keys and routes are few, so that they meet.
class walk {
  public:
    /// @param periods  Also sets occurrences aside, lets them wait for their past, and fills ranges.
    explicit walk(std::uint32_t seed, bool periods = false) : random_(seed), periods_(periods) {}

    ax::time_point now() const { return now_; }

    /// @param model  The store as it is; only read.
    std::vector<operation> next(ax::memory_storage const& model) {
        pass_time();
        std::vector<operation> ops;
        if (first_) {
            first_ = false;
            for (auto const* name : {"probe", "close-order", "\xF0\x9F\x90\xA2"}) {
                operation op;
                op.what = verb::type;
                op.name = name;
                op.now = now_;
                ops.push_back(op);
            }
            return ops;
        }
        auto const count = one_in(4) ? 1 + below(4) : 1;
        for (std::size_t i = 0; i < count; ++i) {
            ops.push_back(draw(model));
            if (ops.back().what == verb::claim && one_in(4)) ops.push_back(end_in_same_commit(model, ops.back()));
        }
        return ops;
    }

    bool one_in(std::size_t n) { return below(n) == 0; }

  private:
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); } // the same on every machine

    /// A length of time below `n` beats. All instants fall on beats, so that they meet.
    ax::duration beats(std::size_t n) { return 250ms * static_cast<int>(below(n)); }

    void pass_time() {
        if (one_in(40))
            now_ += 1h;
        else if (one_in(40))
            now_ -= 7s; // clocks step back
        else
            now_ += beats(9);
    }

    ax::time_point some_time() {
        switch (below(6)) {
        case 0: return now_;
        case 1: return now_ - beats(20);
        case 2: return t0 + std::chrono::seconds{below(100)};
        default: return now_ + beats(40);
        }
    }

    ax::task_id some_task(ax::memory_storage const& model) {
        auto const latest = model.list({}, now_);
        if (latest.empty() || one_in(50)) return ax::task_id{below(10'000)};
        auto const last = static_cast<std::size_t>(to_number(latest.front().id));
        auto const reach = one_in(10) ? last : (std::min)(last, std::size_t{40});
        return ax::task_id{last - below(reach)};
    }

    ax::task_id some_in(ax::memory_storage const& model, std::initializer_list<task_state> states) {
        ids found;
        for (auto const state : states) {
            ax::task_filter filter;
            filter.state = state;
            filter.limit = 10;
            for (auto const& task : model.list(filter, now_)) found.push_back(task.id);
        }
        return found.empty() ? some_task(model) : found[below(found.size())];
    }

    /// Tasks that have been lost before are claimed more often than others and settled less often, so that some of them
    /// are lost again and again.
    ax::task_id some_to_claim(ax::memory_storage const& model) {
        if (one_in(2)) {
            ax::task_filter filter;
            filter.state = task_state::ready;
            for (auto const& task : model.list(filter, now_))
                if (task.unclean_ends > 0 && !one_in(3)) return task.id;
        }
        return some_in(model, {task_state::ready, task_state::failed});
    }

    ax::task_id some_to_settle(ax::memory_storage const& model) {
        auto const id = some_in(model, {task_state::dispatched, task_state::running});
        auto const task = model.find(id);
        return task && task->unclean_ends > 0 && !one_in(3) ? some_in(model, {task_state::running}) : id;
    }

    /// Every policy meets every state of a holder: some keys are many tasks', and most come with a policy.
    void give_key(ax::new_task& task) {
        task.key = "key-" + std::to_string(one_in(2) ? below(6) : below(60));
        task.key_scope = one_in(2) ? ax::key_scope::active : ax::key_scope::kept;
        task.on_conflict = ax::conflict_policy{static_cast<ax::conflict_action>(below(5)), beats(400)};
    }

    ax::new_task some_new_task() {
        ax::new_task task;
        task.type = ax::type_number{static_cast<std::uint32_t>(1 + below(3))};
        task.payload = one_in(3) ? std::string("\0\xFF{}", 4) : std::string{};
        if (one_in(3)) give_key(task);
        if (one_in(2))
            task.run_at = some_time();
        else
            task.delay = beats(20);
        task.priority = static_cast<ax::priority_class>(below(4));
        if (one_in(2)) task.route_key = "route-" + std::to_string(below(6));
        task.route_order = one_in(2) ? ax::route_ordering::relaxed : ax::route_ordering::strict;
        if (one_in(4)) task.deadline = some_time() + beats(40);
        if (one_in(9)) task.retry = "fixed(1s)";
        for (auto const* tag : {"tag-a", "tag-b", "tag-c"})
            if (one_in(4)) task.tags.emplace_back(tag);
        return task;
    }

    static constexpr std::size_t nominals = 20;

    ax::time_point some_nominal() { return t0 + std::chrono::seconds{30 * below(nominals)}; }

    /// Of few periods of few schedules, so that they meet.
    ax::new_task some_occurrence(std::string schedule, ax::time_point nominal) {
        auto task = some_new_task();
        task.schedule = std::move(schedule);
        task.scheduled_at = nominal;
        task.after_past = periods_ && one_in(2);
        task.set_aside = periods_ && one_in(8);
        if (task.after_past || task.set_aside) { // as schedulers make them
            task.key.clear();
            task.on_conflict = {};
            task.route_order = ax::route_ordering::strict;
        }
        return task;
    }

    ax::task_id some_to_set_aside(ax::memory_storage const& model, bool aside) {
        for (int tries = 0; tries != 8; ++tries) {
            auto const task = model.occurrence("schedule-" + std::to_string(below(3)), some_nominal());
            if (task && task->key.empty() && task->route_order == ax::route_ordering::strict &&
                task->set_aside == aside)
                return task->id;
        }
        return ax::task_id{10'000'000};
    }

    operation draw_period(ax::memory_storage const& model) {
        operation op;
        op.now = now_;
        auto const under_way = model.backfills();
        auto const dice = below(10);
        if (dice < 3) {
            op.what = verb::set_aside;
            op.id = some_to_set_aside(model, one_in(8));
        } else if (dice < 6) {
            op.what = verb::release;
            op.id = some_to_set_aside(model, !one_in(8));
            op.urgency = static_cast<ax::priority_class>(below(4));
        } else if (under_way.empty() || dice == 6) {
            op.what = verb::begin_backfill;
            op.range.schedule = "schedule-" + std::to_string(below(3));
            op.range.from = op.range.to = some_nominal();
            op.range.next = op.range.from;
            op.range.at_once = 1 + below(3);
        } else {
            auto const& one = under_way[below(under_way.size())];
            op.what = one_in(9) ? verb::drop_backfill : verb::fill;
            op.some.number = one_in(20) ? 77 : one.number;
            op.some.version = one_in(8) ? one.version - 1 : one.version;
            if (!one.next) return op;
            for (auto n = 1 + below(4); n > 0; --n)
                op.some.occurrences.push_back(some_occurrence(one.schedule, some_nominal()));
            if (one_in(2)) op.some.next = some_nominal();
        }
        return op;
    }

    ax::node_id some_node() { return ax::node_id{1 + below(3)}; }

    ax::attempt_end some_end(ax::memory_storage const& model) {
        auto const id = some_to_settle(model);
        auto const task = model.find(id);
        ax::attempt_end end;
        end.id = id;
        end.fence = task ? task->fence : ax::fence_token{1};
        if (one_in(10)) end.fence = ax::fence_token{to_number(end.fence) - 1};
        end.outcome = one_in(3) ? attempt_outcome::succeeded : static_cast<attempt_outcome>(below(10)); // never crashed
        end.ended = now_ - 5ms * static_cast<int>(below(3)); // before it is recorded
        if (end.outcome != attempt_outcome::released) end.started = end.ended - 10ms;
        if (end.outcome == attempt_outcome::failed || end.outcome == attempt_outcome::snoozed)
            end.retry_at = some_time();
        if (one_in(2)) end.error = "error " + std::to_string(below(9));
        if (one_in(4)) end.log = std::string("log\0\xF0\x9F\x90\xA2", 8);
        if (one_in(4)) end.result = "{}";
        if (one_in(4)) end.follow_ups.push_back(some_new_task());
        return end;
    }

    /// An end of what `claim` is about to take; the fence is the version that it will write.
    operation end_in_same_commit(ax::memory_storage const& model, operation const& claim) {
        operation op;
        op.what = verb::settle;
        op.now = now_;
        op.ends.push_back(some_end(model));
        op.ends[0].id = claim.requests[0].id;
        auto const task = model.find(op.ends[0].id);
        op.ends[0].fence = ax::fence_token{task ? task->version + 1 : 1};
        return op;
    }

    ax::limit some_limit() {
        ax::limit how;
        if (one_in(5)) return how;
        if (one_in(2)) how.concurrency = 1 + below(4);
        if (!how.concurrency || one_in(3)) how.rate = ax::rate{1 + below(5), beats(20) + 250ms, below(4)};
        return how;
    }

    operation draw_limit() {
        operation op;
        op.now = now_;
        op.what = verb::limit;
        op.kind = static_cast<ax::limit_kind>(1 + below(3));
        op.name = "tag-" + std::string(1, static_cast<char>('a' + below(3)));
        op.how = some_limit();
        op.number = ax::type_number{static_cast<std::uint32_t>(1 + below(3))};
        if (op.kind == ax::limit_kind::type)
            for (auto const* name : {"tag-a", "tag-b"})
                if (one_in(3)) op.needs.push_back({name, 1 + below(3)});
        if (op.kind == ax::limit_kind::resource) op.how.concurrency = 1 + below(5);
        return op;
    }

    operation draw(ax::memory_storage const& model) {
        if (one_in(25)) return draw_limit();
        if (periods_ && one_in(12)) return draw_period(model);
        operation op;
        op.now = now_;
        auto const dice = below(104);
        if (dice < 12) {
            op.what = verb::insert;
            for (auto n = 1 + below(3); n > 0; --n) op.tasks.push_back(some_new_task());
            if (periods_ && one_in(3)) {
                op.tasks[0] = some_occurrence("schedule-" + std::to_string(below(3)), some_nominal());
            } else if (one_in(10)) {
                op.tasks[0].schedule = "schedule-0";
                op.tasks[0].scheduled_at = some_nominal();
            }
        } else if (dice < 42) {
            op.what = verb::claim;
            op.claims = {some_node(), now_, now_ + beats(4), below(3)};
            for (auto n = 1 + below(4); n > 0; --n) op.requests.push_back({some_to_claim(model), one_in(4)});
        } else if (dice < 50) {
            op.what = verb::start;
            auto const id = some_in(model, {task_state::dispatched});
            auto const task = model.find(id);
            op.starts.push_back({id, task && !one_in(10) ? task->fence : ax::fence_token{1}, now_});
        } else if (dice < 73) {
            op.what = verb::settle;
            for (auto n = 1 + below(3); n > 0; --n) op.ends.push_back(some_end(model));
        } else if (dice < 78) {
            op.what = verb::reclaim;
            op.reclaims = {some_node(), 1 + below(3), now_};
        } else if (dice < 81) {
            op.what = verb::cancel;
            op.id = some_task(model);
        } else if (dice < 86) {
            op.what = verb::retry;
            op.id = one_in(2) ? some_task(model)
                              : some_in(model, {task_state::dead, task_state::cancelled, task_state::ready});
        } else if (dice < 89) {
            op.what = verb::reschedule;
            op.id = some_task(model);
            op.when = some_time();
        } else if (dice < 91) {
            op.what = verb::expire;
        } else if (dice < 92) {
            op.what = verb::pause;
            op.number = ax::type_number{static_cast<std::uint32_t>(1 + below(4))};
            op.yes = one_in(2);
        } else if (dice < 93) {
            op.what = verb::type;
            op.name = "type-" + std::to_string(below(9));
        } else if (dice < 95) {
            op.what = verb::declare;
            op.schedule.name = "schedule-" + std::to_string(below(3));
            op.schedule.spec = "every " + std::to_string(below(2)) + "s";
            op.schedule.type = ax::type_number{static_cast<std::uint32_t>(1 + below(2))};
            op.schedule.payload = std::string("\0\0", 1 + below(2));
            op.schedule.next = t0 + std::chrono::seconds{30 * below(20)};
        } else if (dice == 98) {
            op.what = one_in(6) ? verb::note : verb::prune;
            op.name = "note-" + std::to_string(below(3));
            op.ended.type = ax::type_number{static_cast<std::uint32_t>(1 + below(4))};
            op.ended.ended_by = now_ - beats(400);
            op.ended.dead_by = now_ - beats(800);
            if (one_in(2)) op.ended.keep = below(30);
            op.limit = 1 + below(10);
            op.ended.look_at = 1 + below(30);
        } else if (dice < 99) {
            op.what = verb::step;
            auto const schedules = model.schedules();
            op.step.name = "schedule-" + std::to_string(below(3));
            for (auto const& each : schedules)
                if (each.name == op.step.name) {
                    op.step.version = one_in(8) ? each.version - 1 : each.version;
                    if (!one_in(4) && each.next) {
                        op.step.occurrence = some_occurrence(each.name, *each.next);
                    }
                    if (each.next || one_in(2)) op.step.next = each.next.value_or(t0) + 30s;
                }
            op.step.skip_if_unfinished = one_in(3);
            op.step.replace_blocked = one_in(3);
            op.step.stop_latest = one_in(4);
            if (one_in(8)) op.step.paused = one_in(2);
            for (auto ranges = one_in(4) ? 1 + below(3) : 0; ranges != 0; --ranges) {
                auto const first = t0 + 15s * static_cast<int>(below(40));
                auto const reason = one_in(4) ? "late " + std::to_string(below(60)) : std::string{"late"};
                op.step.skipped.push_back({first, first + 30s * static_cast<int>(below(3)), 1 + below(3), reason, {}});
            }
        } else if (dice < 100) {
            op.what = verb::forget;
            op.name = "schedule-" + std::to_string(below(4));
        } else {
            op.what = verb::keep_step;
            op.id = some_to_settle(model);
            auto const task = model.find(op.id);
            op.fence = task && !one_in(10) ? task->fence : ax::fence_token{1};
            op.name = "step-" + std::to_string(below(3));
        }
        return op;
    }

    std::mt19937 random_; // its sequence is fixed by the standard; the distributions are not
    ax::time_point now_ = t0;
    bool const periods_;
    bool first_ = true;
};

} // namespace conformance
