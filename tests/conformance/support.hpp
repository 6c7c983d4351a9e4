// SPDX-License-Identifier: MIT
// What every part of the conformance suite needs: a fixture's contract, short forms of tasks and verbs, and printing.
#pragma once

#include "ax/storage/concept.hpp"

#include "support/catch.hpp"
#include "support/instants.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// How a failed check shows what it found.
namespace ax {
inline std::ostream& operator<<(std::ostream& out, task_id id) { return out << to_number(id); }
inline std::ostream& operator<<(std::ostream& out, node_id id) { return out << "node " << to_number(id); }
inline std::ostream& operator<<(std::ostream& out, fence_token f) { return out << "fence " << to_number(f); }
inline std::ostream& operator<<(std::ostream& out, task_state s) { return out << to_string(s); }
inline std::ostream& operator<<(std::ostream& out, attempt_outcome o) { return out << to_string(o); }
inline std::ostream& operator<<(std::ostream& out, lane_id lane) {
    return out << "lane " << static_cast<std::uint32_t>(lane);
}
inline std::ostream& operator<<(std::ostream& out, alarm const& a) {
    return out << "alarm{" << a.id << ", " << a.lane << ", " << a.run_at.time_since_epoch().count() << "}";
}
} // namespace ax

namespace conformance {

using namespace std::chrono_literals;
using ax::attempt_outcome;
using ax::change_outcome;
using ax::submit_outcome;
using ax::task_state;

// A fixture opens one storage backend. It has
//     using storage_type = ...;
//     static constexpr bool durable;            // reopen() exists
//     storage_type open();                      // a new and empty store
//     storage_type reopen(storage_type store);  // closes it and opens the same data again; only where durable

using test::t0;
inline constexpr ax::node_id node_a{0xA1};
inline constexpr ax::node_id node_b{0xB2};

/// One store and one verb a transaction. The commits are lazy where a test is not about durability: it is about
/// meaning, and a storage on disk would spend its time waiting for the disk.
template <class Fixture>
class workbench {
  public:
    using storage_type = typename Fixture::storage_type;
    using writer = typename storage_type::writer;

    workbench() : store(fixture.open()), probe(type("probe")) {}

    /// Runs `verb(writer&)` in a transaction of its own and gives its answer.
    template <class Verb>
    auto write(Verb&& verb, ax::commit durability = ax::commit::lazy) {
        using answer_type = decltype(verb(std::declval<writer&>()));
        if constexpr (std::is_void_v<answer_type>) {
            store.transact(durability, [&](writer& w) { verb(w); });
        } else {
            std::optional<answer_type> answer;
            store.transact(durability, [&](writer& w) { answer.emplace(verb(w)); });
            return std::move(*answer);
        }
    }

    ax::type_number type(std::string_view name) {
        return write([&](writer& w) { return w.type(name); });
    }

    ax::new_task task(std::string payload = {}) const {
        ax::new_task made;
        made.type = probe;
        made.payload = std::move(payload);
        return made;
    }
    ax::new_task task_at(ax::time_point when) const {
        auto made = task();
        made.run_at = when;
        return made;
    }
    ax::new_task task_of(std::string route_key, ax::route_ordering order = ax::route_ordering::strict) const {
        auto made = task();
        made.route_key = std::move(route_key);
        made.route_order = order;
        return made;
    }

    std::vector<ax::insertion> insert(std::vector<ax::new_task> const& tasks, ax::time_point now = t0) {
        due.clear();
        return write([&](writer& w) {
            due.clear(); // a transaction may be run more than once
            return w.insert(tasks, now, due);
        });
    }
    ax::task_id add(ax::new_task const& made, ax::time_point now = t0) { return insert({made}, now).at(0).id; }
    ax::task_id add() { return add(task()); }

    ax::claim_answer claim(std::vector<ax::claim_request> const& requests, ax::claim_terms const& terms) {
        return write([&](writer& w) { return w.claim(requests, terms); });
    }
    /// Claims one task as `node`, with room for suspects. Fails the test where it is passed over.
    ax::task_record take(ax::task_id id, ax::time_point now = t0, ax::node_id node = node_a, bool hold = false) {
        auto answer = claim({{id, hold}}, {node, now, now, 10});
        REQUIRE(answer.claimed.size() == 1);
        return answer.claimed.front();
    }
    bool can_take(ax::task_id id, ax::time_point now = t0) {
        return !claim({{id, false}}, {node_a, now, now, 10}).claimed.empty();
    }

    void start(ax::task_record const& claimed, ax::time_point at) {
        ax::start_mark const mark{claimed.id, claimed.fence, at};
        write([&](writer& w) { w.start(std::span(&mark, 1), at); });
    }

    static ax::attempt_end end_of(ax::task_record const& claimed, attempt_outcome outcome, ax::time_point at) {
        ax::attempt_end end;
        end.id = claimed.id;
        end.fence = claimed.fence;
        end.outcome = outcome;
        end.ended = at;
        if (outcome != attempt_outcome::released) end.started = at;
        if (outcome == attempt_outcome::failed || outcome == attempt_outcome::snoozed) end.retry_at = at + 60s;
        return end;
    }
    ax::settlement settle(std::vector<ax::attempt_end> const& ends, ax::time_point now) {
        return write([&](writer& w) { return w.settle(ends, now); });
    }
    /// Settles one attempt at `at`. Fails the test where that is refused.
    ax::settlement finish(ax::task_record const& claimed, attempt_outcome outcome, ax::time_point at = t0) {
        auto answer = settle({end_of(claimed, outcome, at)}, at);
        REQUIRE(answer.accepted == std::vector<bool>{true});
        REQUIRE(answer.states.size() == 1);
        return answer;
    }

    ax::reclaim_answer reclaim(ax::time_point now = t0, ax::node_id node = node_b, std::size_t poison_after = 3) {
        ax::reclaim_terms const terms{node, poison_after, now};
        return write([&](writer& w) { return w.reclaim(terms); });
    }
    ax::change cancel(ax::task_id id, ax::time_point now = t0) {
        return write([&](writer& w) { return w.cancel(id, now); });
    }
    ax::change retry(ax::task_id id, ax::time_point now = t0) {
        return write([&](writer& w) { return w.retry(id, now); });
    }
    ax::change reschedule(ax::task_id id, ax::time_point when, ax::time_point now = t0) {
        return write([&](writer& w) { return w.reschedule(id, when, now); });
    }
    ax::expiry expire(ax::time_point now, std::size_t limit = 1000) {
        return write([&](writer& w) { return w.expire(now, limit); });
    }

    /// The task as it is stored. Fails the test where there is none.
    ax::task_record get(ax::task_id id) const {
        auto found = store.find(id);
        REQUIRE(found.has_value());
        return std::move(*found);
    }
    task_state state(ax::task_id id) const { return get(id).state; }

    ax::lane_id lane(ax::priority_class urgency = ax::priority_class::normal) const {
        return ax::make_lane(probe, urgency);
    }
    std::vector<ax::task_id> upcoming(ax::time_point until = ax::latest_time) const {
        std::vector<ax::task_id> ids;
        for (auto const& each : store.upcoming({{}, lane(), {}}, until, 10'000)) ids.push_back(each.id);
        return ids;
    }

    Fixture fixture;
    storage_type store;
    ax::type_number probe;
    ax::alarms due; ///< of the latest insert()
};

using ids = std::vector<ax::task_id>;

inline bool announces(ax::alarms const& due, ax::alarm const& wanted) {
    return std::find(due.begin(), due.end(), wanted) != due.end();
}
inline bool announces(ax::alarms const& due, ax::task_id id) {
    return std::any_of(due.begin(), due.end(), [&](ax::alarm const& each) { return each.id == id; });
}

inline ids ids_of(std::vector<ax::task_record> const& tasks) {
    ids answer;
    for (auto const& task : tasks) answer.push_back(task.id);
    return answer;
}

} // namespace conformance
