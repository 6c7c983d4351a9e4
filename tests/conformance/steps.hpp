// SPDX-License-Identifier: MIT
#pragma once

#include "conformance/support.hpp"

#include <stdexcept>

namespace conformance {

/// storage_writer 19 and storage 9: the values of finished steps.
template <class Fixture>
void steps() {
    workbench<Fixture> w;
    using writer = typename workbench<Fixture>::writer;
    using kept = std::vector<ax::kept_step>;
    auto const keep = [&](ax::task_record const& claimed, std::string_view name, std::string_view value) {
        return w.write([&](writer& verbs) { return verbs.keep_step(claimed.id, claimed.fence, name, value); });
    };
    auto const id = w.add();

    SECTION("a step is kept by its attempt, claimed or running, and given by name") {
        auto const claimed = w.take(id);
        CHECK(keep(claimed, "ship", "{\"parcel\":7}"));
        w.start(claimed, t0 + 1s);
        CHECK(keep(claimed, "charge", "\"receipt\""));
        CHECK(w.store.steps(id) == kept{{"charge", "\"receipt\""}, {"ship", "{\"parcel\":7}"}});
    }
    SECTION("a task without steps, and no task, have none") {
        auto const other = w.add();
        keep(w.take(id), "charge", "1");
        CHECK(w.store.steps(other).empty());
        CHECK(w.store.steps(ax::task_id{77}).empty());
        CHECK(w.store.steps(ax::task_id{}).empty());
    }
    SECTION("the same name takes the place of the older value") {
        auto const claimed = w.take(id);
        CHECK(keep(claimed, "charge", "1"));
        CHECK(keep(claimed, "charge", "2"));
        CHECK(w.store.steps(id) == kept{{"charge", "2"}});
    }
    SECTION("names and values are bytes, also of any length") {
        auto const claimed = w.take(id);
        std::string const name = "k\xC3\xB6rper 'a' \"b\"";
        std::string value(100'000, 'x');
        value[7] = '\0';
        CHECK(keep(claimed, name, value));
        CHECK(keep(claimed, "Charge", "1"));
        CHECK(keep(claimed, "charge", "2"));
        CHECK(w.store.steps(id) == kept{{"Charge", "1"}, {"charge", "2"}, {name, value}});
    }
    SECTION("they outlive every end of the attempt, and are there for the next one") {
        auto const outcome = GENERATE(attempt_outcome::failed, attempt_outcome::interrupted, attempt_outcome::snoozed,
                                      attempt_outcome::succeeded, attempt_outcome::exhausted);
        auto const claimed = w.take(id);
        CHECK(keep(claimed, "charge", "1"));
        w.finish(claimed, outcome);
        CHECK(w.store.steps(id) == kept{{"charge", "1"}});
        if (outcome == attempt_outcome::succeeded || outcome == attempt_outcome::exhausted) return;
        CHECK(keep(w.take(id, t0 + 1h), "ship", "2"));
        CHECK(w.store.steps(id) == kept{{"charge", "1"}, {"ship", "2"}});
    }
    SECTION("an old owner keeps nothing, whatever has become of the task") {
        auto const old = w.take(id, t0, node_a);
        CHECK(keep(old, "charge", "1"));
        w.reclaim(t0 + 31s);
        CHECK_FALSE(keep(old, "ship", "2"));
        CHECK_FALSE(keep(old, "charge", "2"));
        auto const current = w.take(id, t0 + 31s, node_b);
        CHECK_FALSE(keep(old, "charge", "2"));
        CHECK(keep(current, "ship", "3"));
        w.finish(current, attempt_outcome::succeeded, t0 + 32s);
        CHECK_FALSE(keep(current, "charge", "4"));
        CHECK(w.store.steps(id) == kept{{"charge", "1"}, {"ship", "3"}});
    }
    SECTION("a task that gets another payload by its key loses the steps done for the old one") {
        auto wanted = w.task();
        wanted.key = "report-7";
        auto const keyed = w.add(wanted);
        auto const claimed = w.take(keyed);
        CHECK(keep(claimed, "charge", "1"));
        w.finish(claimed, attempt_outcome::failed);
        wanted.on_conflict = ax::on_conflict::keep;
        w.insert({wanted});
        CHECK(w.store.steps(keyed).size() == 1);
        bool const replaced = GENERATE(true, false);
        wanted.on_conflict = replaced ? ax::on_conflict::replace : ax::on_conflict::debounce;
        wanted.payload = "2";
        CHECK_THROWS_AS(w.write([&](writer& verbs) {
            ax::alarms due;
            verbs.insert(std::span(&wanted, 1), t0, due);
            throw std::runtime_error("undo");
        }),
                        std::runtime_error);
        CHECK(w.store.steps(keyed) == kept{{"charge", "1"}});
        CHECK(w.insert({wanted}).at(0).outcome == submit_outcome::replaced);
        CHECK(w.store.steps(keyed).empty());
    }
    SECTION("nobody keeps a step for a task that was never claimed, or is not there") {
        auto waiting = w.get(id);
        CHECK_FALSE(keep(waiting, "charge", "1"));
        waiting.id = ax::task_id{77};
        CHECK_FALSE(keep(waiting, "charge", "1"));
        CHECK(w.store.steps(id).empty());
    }
    SECTION("a step is undone with its transaction, back to the value before") {
        auto const claimed = w.take(id);
        CHECK(keep(claimed, "charge", "1"));
        CHECK_THROWS_AS(w.write([&](writer& verbs) {
            verbs.keep_step(claimed.id, claimed.fence, "charge", "2");
            verbs.keep_step(claimed.id, claimed.fence, "ship", "3");
            throw std::runtime_error("undo");
        }),
                        std::runtime_error);
        CHECK(w.store.steps(id) == kept{{"charge", "1"}});
    }
}

} // namespace conformance
