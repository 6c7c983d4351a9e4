// SPDX-License-Identifier: MIT
// Tasks that need several limits at once do not wander between them. Counted in claims that took nothing, which are the
// only ones that can move a task from line to line, and for SQLite in rows written. Both are the same in every run.
#include "ax/storage/memory.hpp"
#include "ax/storage/sqlite.hpp"

#include "conformance/limit_combinations.hpp"
#include "conformance/limits.hpp"
#include "storage/memory_fixture.hpp"
#include "storage/sqlite_fixture.hpp"

#include <sqlite3.h>

#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace conformance;

/// Rows that this store has written; 0 for one that has none.
template <class Fixture>
std::int64_t rows_written(limit_bench<Fixture>& w) {
    std::int64_t rows = 0;
    w.write([&](auto& writer) {
        if constexpr (requires { writer.handle(); }) rows = sqlite3_total_changes(writer.handle());
    });
    return rows;
}

/// Claims whatever is named and due, as a scheduler would, until all has ended or nothing is named any more.
template <class Fixture>
class course {
  public:
    explicit course(limit_bench<Fixture>& w) : w_(w) {}

    void add(ids const& tasks) {
        for (auto const id : tasks) named_.emplace(id, now_);
    }

    /// @param after_each  Called with how many have ended.
    void run(std::size_t most_rounds, std::function<void(std::size_t)> const& after_each) {
        for (std::size_t round = 0; round != most_rounds && !(named_.empty() && running_.empty()); ++round) {
            for (auto some = draw(); !some.empty(); some = draw()) {
                auto const answer = w_.claim_all(some, now_);
                refused += some.size() - answer.claimed.size();
                for (auto const& task : answer.claimed) running_.push_back(task);
                take(answer.due);
            }
            if (running_.empty()) { // only time can help
                for (auto const& [id, at] : named_) now_ = at;
                for (auto const& [id, at] : named_) now_ = (std::min)(now_, at);
                continue;
            }
            std::swap(running_[random_() % running_.size()], running_.back());
            auto const ended = running_.back();
            running_.pop_back();
            take(w_.finish(ended, attempt_outcome::succeeded, now_).due);
            after_each(++done);
        }
    }

    std::size_t done = 0;
    std::size_t refused = 0;

  private:
    /// Some of those that are due.
    ids draw() {
        ids due;
        for (auto const& [id, at] : named_)
            if (at <= now_) due.push_back(id);
        std::shuffle(due.begin(), due.end(), random_);
        if (due.size() > 16) due.resize(16);
        for (auto const id : due) named_.erase(id);
        return due;
    }
    void take(ax::alarms const& due) {
        for (auto const& each : due) {
            auto const [at, added] = named_.emplace(each.id, each.run_at);
            if (!added) at->second = (std::min)(at->second, each.run_at);
        }
    }

    limit_bench<Fixture>& w_;
    std::map<ax::task_id, ax::time_point> named_;
    std::vector<ax::task_record> running_;
    std::mt19937 random_{1};
    ax::time_point now_ = t0;
};

/// Many that need several limits, and now and then others that take all of one of these.
/// @param others  One kind of them after the other.
template <class Fixture>
void crowd(limit_bench<Fixture>& w, ax::new_task const& one, std::vector<std::pair<ax::new_task, std::size_t>> others,
           std::size_t limits) {
    constexpr std::size_t many = 400;
    std::size_t few = 0;
    std::size_t turn = 0;
    auto const written = rows_written(w);
    course<Fixture> all(w);
    all.add(w.add_many(many, one));
    all.run(8 * many, [&](std::size_t done) {
        if (done % 4 != 0 || few >= many / 2) return;
        auto const& [other, amount] = others[turn++ % others.size()];
        all.add(w.add_many(amount, other));
        few += amount;
    });
    CHECK(all.done == many + few); // nobody is stuck
    CHECK(few >= many / 4);
    // Each is refused once for each limit at the most, and what is named in vain besides is a few with every end.
    CAPTURE(all.refused, many, few);
    CHECK(all.refused <= (limits + 2) * (many + few));
    auto const rows = rows_written(w) - written;
    CAPTURE(rows);
    CHECK(rows <= static_cast<std::int64_t>((12 + 8 * limits) * (many + few)));
}

} // namespace

TEMPLATE_TEST_CASE("tasks that need several limits do not wander between them", "[storage][limits]", memory_fixture,
                   sqlite_fixture) {
    limit_bench<TestType> w;
    auto const a = w.type("a");
    auto const b = w.type("b");
    auto const c = w.type("c");
    auto const narrow = GENERATE(0, 1, 2);
    auto const first = narrow == 1 ? std::size_t{3} : std::size_t{1};
    auto const second = narrow == 2 ? std::size_t{3} : std::size_t{1};
    auto const tagged = [&](ax::type_number type, std::vector<std::string> tags) {
        auto made = w.of(type);
        made.tags = std::move(tags);
        return made;
    };
    SECTION("a type and a resource") {
        bool const type_first = GENERATE(false, true);
        if (type_first) w.limit_type(a, {first, {}});
        w.set_resource("gpu", second);
        w.limit_type(a, {first, {}}, {{"gpu", 1}});
        w.limit_type(b, {}, {{"gpu", 1}});
        crowd(w, w.of(a), {{w.of(b), second}}, 2);
    }
    SECTION("a tag and a resource") {
        bool const tag_first = GENERATE(false, true);
        if (tag_first) w.limit_tag("x", {first, {}});
        w.set_resource("gpu", second);
        w.limit_tag("x", {first, {}});
        w.limit_type(a, {}, {{"gpu", 1}});
        w.limit_type(b, {}, {{"gpu", 1}});
        crowd(w, tagged(a, {"x"}), {{w.of(b), second}, {tagged(c, {"x"}), first}}, 2);
    }
    SECTION("two tags") {
        w.limit_tag("x", {first, {}});
        w.limit_tag("y", {second, {}});
        crowd(w, tagged(a, {"x", "y"}), {{tagged(a, {"y"}), second}, {tagged(a, {"x"}), first}}, 2);
    }
    SECTION("two resources, and two types that need one") {
        w.set_resource("gpu", first);
        w.set_resource("disk", second);
        w.limit_type(a, {}, {{"gpu", 1}, {"disk", 1}});
        w.limit_type(b, {}, {{"gpu", 1}});
        w.limit_type(c, {}, {{"disk", 1}});
        crowd(w, w.of(a), {{w.of(b), first}, {w.of(c), second}}, 2);
    }
    SECTION("three tags, a type and two resources") {
        w.limit_tag("x", {first, {}});
        w.set_resource("gpu", second);
        w.limit_tag("y", {second, {}});
        w.set_resource("disk", 2);
        w.limit_tag("z", {2, {}});
        w.limit_type(a, {4, {}}, {{"gpu", 1}, {"disk", 1}});
        w.limit_type(b, {}, {{"gpu", 1}});
        w.limit_type(c, {}, {{"disk", 1}});
        crowd(w, tagged(a, {"z", "x", "y"}),
              {{w.of(b), second}, {tagged(c, {"y"}), 2}, {tagged(w.probe, {"x", "y"}), 1}, {tagged(w.probe, {"z"}), 2}},
              6);
    }
    SECTION("a tag and the rate of a type") {
        w.limit_tag("x", {first, {}});
        w.limit_type(a, {{}, rate{10, 1s, second}});
        crowd(w, tagged(a, {"x"}), {{tagged(c, {"x"}), first}, {w.of(a), 1}}, 2);
    }
    SECTION("the rate of a tag and a resource") {
        w.set_resource("gpu", second);
        w.limit_tag("x", {{}, rate{10, 1s, first}});
        w.limit_type(a, {}, {{"gpu", 1}});
        w.limit_type(b, {}, {{"gpu", 1}});
        crowd(w, tagged(a, {"x"}), {{w.of(b), second}, {tagged(c, {"x"}), 1}}, 2);
    }
}

TEMPLATE_TEST_CASE("a line that another limit keeps back goes there as a whole, and comes back", "[storage][limits]",
                   memory_fixture, sqlite_fixture) {
    limit_bench<TestType> w;
    w.set_resource("gpu", 1);
    w.limit_type(w.probe, {1, {}}, {{"gpu", 1}});
    auto const other = w.type("other");
    w.limit_type(other, {}, {{"gpu", 1}});
    auto const all = w.add_many(4, w.task());
    auto const strange = w.add(w.of(other));
    auto const gpu = w.info(limit_kind::resource, "gpu").number;
    auto const type = w.info(limit_kind::type, "probe").number;
    w.set_resource("gpu", 2);
    auto const held = w.take(all[0]);
    w.claim_all({all[1], all[2], all[3]});
    REQUIRE(w.waits_for(all[1]) == type);
    auto const apart = w.take(strange);
    w.set_resource("gpu", 1);
    auto const freed = w.finish(held, attempt_outcome::succeeded); // the type has room, the resource has not
    CHECK(freed.due.empty());
    for (auto const id : {all[1], all[2], all[3]}) CHECK(w.waits_for(id) == gpu);
    CHECK(w.named().empty());
    SECTION("the resource has room") {
        CHECK(w.named_of(w.finish(apart, attempt_outcome::succeeded).due) == ids{all[1]});
        auto const next = w.take(all[1]);
        CHECK(w.named_of(w.finish(next, attempt_outcome::succeeded).due) == ids{all[2]});
    }
    SECTION("the first is gone before") {
        CHECK(w.cancel(all[1]).due.empty());
        CHECK(w.named_of(w.finish(apart, attempt_outcome::succeeded).due) == ids{all[2]});
    }
    SECTION("the type needs it no more") { CHECK(w.named_of(w.limit_type(w.probe, {1, {}})) == ids{all[1]}); }
    SECTION("one that comes earlier joins them as the first") {
        auto const early = w.add(w.task_at(t0 - 1s));
        CHECK(w.taken({early}).empty());
        CHECK(w.waits_for(early) == gpu);
        CHECK(w.named_of(w.finish(apart, attempt_outcome::succeeded).due) == ids{early});
    }
}

TEMPLATE_TEST_CASE("no task that could run stays parked, whatever limits it needs", "[storage][limits]", memory_fixture,
                   sqlite_fixture) {
    limit_combinations<TestType>(GENERATE(range(1U, 9U)));
}
