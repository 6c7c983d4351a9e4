// SPDX-License-Identifier: MIT
#pragma once

#include "conformance/support.hpp"

namespace conformance {

/// storage_writer 14 and 15, storage 20: what a schedule has left out, and why.
template <class Fixture>
void skips() {
    workbench<Fixture> w;

    ax::schedule_record record;
    record.name = "nightly";
    record.spec = "every 30s";
    record.type = w.probe;
    record.next = t0 + 30s;
    record = w.write([&](auto& writer) { return writer.declare(record, t0); });
    ax::time_point now = t0 + 1h;
    auto const take = [&](ax::schedule_step step) {
        step.name = "nightly";
        step.version = record.version;
        step.next = record.next;
        auto answer = w.write([&](auto& writer) { return writer.step(step, now); });
        REQUIRE(answer.accepted);
        record = answer.record;
        return answer;
    };
    /// The n-th occurrence.
    auto const occurrence = [&](int n) {
        ax::schedule_step step;
        step.occurrence = w.task_at(t0 + n * 30s);
        step.occurrence->schedule = "nightly";
        step.occurrence->scheduled_at = t0 + n * 30s;
        return step;
    };
    auto const leave_out = [&](int first, int last, std::string reason = "late") {
        ax::schedule_step step;
        step.skipped = {{t0 + first * 30s, t0 + last * 30s, static_cast<std::uint64_t>(last - first + 1), reason, {}}};
        take(step);
    };
    /// The ranges, in occurrences by number.
    auto const ranges = [&] {
        std::vector<std::string> found;
        for (auto const& each : w.store.skips("nightly").latest)
            found.push_back(std::to_string((each.first - t0) / 30s) + ".." + std::to_string((each.last - t0) / 30s) +
                            " (" + std::to_string(each.number) + ") " + each.reason);
        return found;
    };
    auto const counts = [&] {
        std::vector<std::string> found;
        for (auto const& each : w.store.skips("nightly").reasons)
            found.push_back(each.reason + ": " + std::to_string(each.number));
        return found;
    };
    using texts = std::vector<std::string>;

    SECTION("a schedule that has left nothing out, and one that is not there, have none") {
        take(occurrence(1));
        for (auto const* name : {"nightly", "no such"}) {
            CHECK(w.store.skips(name).latest.empty());
            CHECK(w.store.skips(name).reasons.empty());
        }
    }
    SECTION("what is left out is kept as it was given, with the instant of the step") {
        auto step = occurrence(9);
        step.skipped = {{t0 + 30s, t0 + 90s, 3, "late", {}}, {t0 + 2min, t0 + 4min, 5, "pa\xC3\xBCsed", {}}};
        take(step);
        auto const found = w.store.skips("nightly");
        REQUIRE(found.latest.size() == 2);
        CHECK(found.latest[0].first == t0 + 30s);
        CHECK(found.latest[0].last == t0 + 90s);
        CHECK(found.latest[0].number == 3);
        CHECK(found.latest[0].reason == "late");
        CHECK(found.latest[0].recorded == now);
        CHECK(ranges() == texts{"1..3 (3) late", "4..8 (5) pa\xC3\xBCsed"});
        CHECK(counts() == texts{"late: 3", "pa\xC3\xBCsed: 5"});
        CHECK(record.skipped == 8);
        CHECK(record.last_skip == "pa\xC3\xBCsed");
        CHECK(w.store.skips("nightl").latest.empty());
    }
    SECTION("what follows on for the same reason joins the latest range") {
        leave_out(1, 2);
        now += 1s;
        leave_out(3, 5);
        CHECK(ranges() == texts{"1..5 (5) late"});
        CHECK(w.store.skips("nightly").latest[0].recorded == now);
        leave_out(6, 6, "paused");
        leave_out(7, 7);
        CHECK(ranges() == texts{"1..5 (5) late", "6..6 (1) paused", "7..7 (1) late"});
        leave_out(7, 8); // a clock was set back: it does not follow on
        leave_out(3, 4);
        CHECK(ranges() == texts{"1..5 (5) late", "6..6 (1) paused", "7..7 (1) late", "7..8 (2) late", "3..4 (2) late"});
        CHECK(counts() == texts{"late: 10", "paused: 1"});
    }
    SECTION("an occurrence between the two keeps ranges apart, whoever has made it") {
        leave_out(1, 2);
        bool const by_step = GENERATE(true, false);
        auto const between = occurrence(3);
        if (by_step)
            take(between);
        else
            w.insert({*between.occurrence});
        leave_out(4, 4);
        leave_out(5, 6);
        CHECK(ranges() == texts{"1..2 (2) late", "4..6 (3) late"});
    }
    SECTION("an overlap is kept with the instant of the one that was left out") {
        take(occurrence(1));
        for (int n : {2, 3}) {
            auto step = occurrence(n);
            step.skip_if_unfinished = true;
            take(step);
        }
        CHECK(ranges() == texts{"2..3 (2) the one before has not ended"});
        CHECK(counts() == texts{"the one before has not ended: 2"});
    }
    SECTION("one that gives way is kept with its own instant, whether it waits in line or not") {
        bool const in_line = GENERATE(true, false);
        for (int n : {1, 2, 3, 4}) {
            auto step = occurrence(n);
            if (in_line) step.occurrence->route_key = "line";
            (in_line ? step.replace_blocked : step.stop_latest) = true;
            take(step);
        }
        CHECK(ranges() ==
              texts{in_line ? "2..3 (2) a later one took its place" : "1..3 (3) a later one took its place"});
    }
    SECTION("one that is met again is kept") {
        for (int n : {1, 2, 3, 1, 2, 3}) take(occurrence(n));
        CHECK(ranges() == texts{"1..3 (3) it was there already"});
        CHECK(record.skipped == 3);
    }
    SECTION("a step that is refused or undone keeps nothing") {
        leave_out(1, 1);
        ax::schedule_step step;
        step.name = "nightly";
        step.version = record.version - 1;
        step.skipped = {{t0 + 60s, t0 + 60s, 1, "late", {}}};
        CHECK_FALSE(w.write([&](auto& writer) { return writer.step(step, now); }).accepted);
        step.version = record.version;
        CHECK_THROWS_AS(w.write([&](auto& writer) {
            writer.step(step, now);
            step.skipped[0].reason = "other";
            ++step.version;
            writer.step(step, now);
            writer.forget("nightly");
            throw 7;
        }),
                        int);
        CHECK(ranges() == texts{"1..1 (1) late"});
        CHECK(counts() == texts{"late: 1"});
        CHECK(w.store.schedules().at(0).skipped == 1);
    }
    SECTION("the latest 32 ranges are kept, and all are counted") {
        for (int n = 1; n <= 80; n += 2) leave_out(n, n, n % 4 == 1 ? "odd" : "even");
        auto const found = w.store.skips("nightly").latest;
        REQUIRE(found.size() == ax::most_skips_kept);
        CHECK(found.front().first == t0 + (80 - 63) * 30s);
        CHECK(found.back().first == t0 + 79 * 30s);
        CHECK(counts() == texts{"even: 20", "odd: 20"});
        CHECK(record.skipped == 40);
        leave_out(81, 90, "even"); // joins, and none goes
        CHECK(w.store.skips("nightly").latest.size() == ax::most_skips_kept);
        CHECK(w.store.skips("nightly").latest.front().first == found.front().first);
    }
    SECTION("of more than 32 reasons the smallest numbers go") {
        for (int n = 0; n != 32; ++n)
            leave_out(10 * n, 10 * n + (n == 5 || n == 7 ? 1 : 2), "r" + std::to_string(10 + n));
        CHECK(counts().size() == 32);
        leave_out(1000, 1000, "r99");
        leave_out(1001, 1002, "r10");
        auto found = counts();
        CHECK(found.size() == 32);
        CHECK(found.front() == "r10: 5");
        CHECK(std::find(found.begin(), found.end(), "r15: 2") == found.end());
        CHECK(found.back() == "r99: 1");
        leave_out(1003, 1003, "r00"); // in the place of the one before, though that is its number too
        CHECK(counts().front() == "r00: 1");
        CHECK(counts().back() == "r41: 3");
        CHECK(record.skipped == 32 * 3 - 2 + 1 + 2 + 1);
    }
    SECTION("another definition keeps them, and a schedule that is forgotten takes its own along") {
        leave_out(1, 2);
        auto other = record;
        other.name = "other";
        w.write([&](auto& writer) { writer.declare(other, t0); });
        ax::schedule_step step;
        step.name = "other";
        step.version = 1;
        step.skipped = {{t0, t0, 1, "late", {}}};
        w.write([&](auto& writer) { writer.step(step, t0); });
        auto changed = record;
        changed.spec = "every 10s";
        w.write([&](auto& writer) { writer.declare(changed, t0); });
        CHECK(ranges().size() == 1);
        CHECK(w.write([&](auto& writer) { return writer.forget("nightly"); }));
        CHECK(ranges().empty());
        CHECK(counts().empty());
        w.write([&](auto& writer) { writer.declare(record, t0); });
        CHECK(ranges().empty());
        CHECK(w.store.skips("other").latest.size() == 1);
        CHECK(w.store.skips("other").reasons.size() == 1);
    }
    if constexpr (Fixture::durable) {
        SECTION("they are kept over a restart, and go on") {
            leave_out(1, 2);
            w.store = w.fixture.reopen(std::move(w.store));
            leave_out(3, 3);
            CHECK(ranges() == texts{"1..3 (3) late"});
            CHECK(counts() == texts{"late: 3"});
        }
    }
}

} // namespace conformance
