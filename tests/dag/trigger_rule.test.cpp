// SPDX-License-Identifier: MIT
#include "ax/dag/trigger_rule.hpp"

#include "support/catch.hpp"
#include "support/paths.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

using ax::decide;
using ax::parent_counts;
using ax::trigger_decision;
using ax::trigger_rule;

enum class outcome { succeeded, dead, cancelled, skipped, upstream_failed, unfinished };
constexpr std::array<char const*, 6> outcome_names{"succeeded",       "dead",      "cancelled", "skipped",
                                                   "upstream_failed", "unfinished"};
using outcomes = std::vector<outcome>;

parent_counts counts_of(outcomes const& parents) {
    parent_counts c;
    for (auto const p : parents) {
        ++c.total;
        if (p == outcome::succeeded) ++c.succeeded;
        if (p == outcome::dead || p == outcome::cancelled) ++c.failed;
        if (p == outcome::skipped) ++c.skipped;
        if (p == outcome::upstream_failed) ++c.upstream_failed;
    }
    return c;
}

bool failed(outcome o) { return o == outcome::dead || o == outcome::cancelled || o == outcome::upstream_failed; }
bool ran(outcome o) { return o == outcome::succeeded || o == outcome::dead || o == outcome::cancelled; }
bool is_skipped(outcome o) { return o == outcome::skipped; }
bool succeeded(outcome o) { return o == outcome::succeeded; }
bool done(outcome o) { return o != outcome::unfinished; }

template <class Is>
bool all(outcomes const& parents, Is is) {
    return std::all_of(parents.begin(), parents.end(), is);
}
template <class Is>
bool one(outcomes const& parents, Is is) {
    return std::any_of(parents.begin(), parents.end(), is);
}
template <class Is>
bool none(outcomes const& parents, Is is) {
    return !one(parents, is);
}

/// The rule read aloud: whether a task with these parents runs.
bool holds(trigger_rule rule, outcomes const& p) {
    switch (rule) {
    case trigger_rule::all_success: return all(p, succeeded);
    case trigger_rule::all_failed: return all(p, failed);
    case trigger_rule::all_done: return all(p, done);
    case trigger_rule::all_done_min_one_success: return all(p, done) && none(p, is_skipped) && one(p, succeeded);
    case trigger_rule::all_skipped: return all(p, is_skipped);
    case trigger_rule::one_failed: return one(p, failed);
    case trigger_rule::one_success: return one(p, succeeded);
    case trigger_rule::one_done: return one(p, ran);
    case trigger_rule::none_failed: return all(p, done) && none(p, failed);
    case trigger_rule::none_failed_min_one_success: return all(p, done) && none(p, failed) && one(p, succeeded);
    case trigger_rule::none_skipped: return all(p, done) && none(p, is_skipped);
    case trigger_rule::always: return true;
    }
    return false;
}

/// What a task ends as that cannot run. Rules that ask for a success blame a failure for its lack.
trigger_decision end_without_running(trigger_rule rule, outcomes const& p) {
    std::set<trigger_rule> const want_success{trigger_rule::all_success, trigger_rule::one_success,
                                              trigger_rule::none_failed, trigger_rule::none_failed_min_one_success};
    if (want_success.count(rule) != 0 && one(p, failed)) return trigger_decision::upstream_failed;
    if (rule == trigger_rule::all_done_min_one_success && none(p, is_skipped)) return trigger_decision::upstream_failed;
    return trigger_decision::skip;
}

/// Every way in which the parents that have not ended may end.
std::vector<outcomes> endings(outcomes const& parents) {
    std::vector<outcomes> all_ways{{}};
    for (auto const p : parents) {
        std::vector<outcomes> longer;
        for (auto const& way : all_ways)
            for (int o = 0; o < 5; ++o) {
                if (p != outcome::unfinished && p != static_cast<outcome>(o)) continue;
                longer.push_back(way);
                longer.back().push_back(static_cast<outcome>(o));
            }
        all_ways.swap(longer);
    }
    return all_ways;
}

/// Runs as soon as the rule holds; ends without running as soon as no ending would let it run and all agree on how.
trigger_decision naive(trigger_rule rule, outcomes const& parents) {
    if (parents.empty() || holds(rule, parents)) return trigger_decision::run;
    std::set<trigger_decision> answers;
    for (auto const& way : endings(parents))
        answers.insert(holds(rule, way) ? trigger_decision::run : end_without_running(rule, way));
    return answers.size() == 1 && *answers.begin() != trigger_decision::run ? *answers.begin() : trigger_decision::wait;
}

/// Calls f(parents) for each number of parents of each outcome up to `most`.
template <class F>
void for_each_mixture(int most, F f) {
    std::array<int, 6> n{};
    for (;;) {
        outcomes parents;
        for (std::size_t o = 0; o < n.size(); ++o)
            parents.insert(parents.end(), static_cast<std::size_t>(n[o]), static_cast<outcome>(o));
        f(parents);
        std::size_t digit = 0;
        while (digit < n.size() && n[digit] == most) n[digit++] = 0;
        if (digit == n.size()) return;
        ++n[digit];
    }
}

static_assert(decide(trigger_rule::all_success, {}) == trigger_decision::run);
static_assert(decide(trigger_rule::all_done, {.total = 3, .succeeded = 1, .failed = 1}) == trigger_decision::wait);
static_assert(trigger_rule{} == trigger_rule::all_success);

} // namespace

TEST_CASE("every trigger rule answers as it reads, for up to two parents of each outcome", "[dag]") {
    std::size_t cases = 0;
    std::size_t wrong = 0;
    for_each_mixture(2, [&](outcomes const& parents) {
        for (auto const rule : ax::all_trigger_rules) {
            ++cases;
            if (decide(rule, counts_of(parents)) == naive(rule, parents)) continue;
            if (++wrong > 5) continue;
            CAPTURE(ax::to_string(rule));
            std::string text;
            for (auto const p : parents) text += std::string(outcome_names[static_cast<std::size_t>(p)]) + ' ';
            CAPTURE(text);
            CHECK(ax::to_string(decide(rule, counts_of(parents))) == ax::to_string(naive(rule, parents)));
        }
    });
    CHECK(wrong == 0);
    CHECK(cases == 729 * 12);
}

TEST_CASE("a decision other than wait stays as it is however the other parents end", "[dag]") {
    std::size_t decided_early = 0;
    for_each_mixture(3, [&](outcomes const& parents) {
        auto const before = counts_of(parents);
        if (before.unfinished() == 0) return;
        for (auto const rule : ax::all_trigger_rules) {
            auto const early = decide(rule, before);
            if (early == trigger_decision::wait) continue;
            ++decided_early;
            for (auto const end : {&parent_counts::succeeded, &parent_counts::failed, &parent_counts::skipped,
                                   &parent_counts::upstream_failed}) { // one more step each: the rest follows
                auto after = before;
                ++(after.*end);
                if (decide(rule, after) != early) {
                    CAPTURE(ax::to_string(rule), before.total, before.succeeded, before.failed, before.skipped);
                    FAIL("changed to " << ax::to_string(decide(rule, after)));
                }
            }
        }
    });
    CHECK(decided_early > 10'000);
}

TEST_CASE("every trigger rule decides when all parents have ended", "[dag]") {
    for_each_mixture(3, [&](outcomes const& parents) {
        if (!all(parents, done)) return;
        for (auto const rule : ax::all_trigger_rules)
            if (decide(rule, counts_of(parents)) == trigger_decision::wait)
                FAIL(ax::to_string(rule) << " waits for ever");
    });
}

TEST_CASE("only the kinds of outcomes matter to a trigger rule and not how many there are", "[dag]") {
    for_each_mixture(3, [&](outcomes const& parents) {
        auto const kinds = std::set<outcome>(parents.begin(), parents.end());
        outcomes const single(kinds.begin(), kinds.end());
        for (auto const rule : ax::all_trigger_rules)
            if (decide(rule, counts_of(parents)) != decide(rule, counts_of(single))) FAIL(ax::to_string(rule));
    });
    auto const most = 0xFFFF'FFFFU;
    CHECK(decide(trigger_rule::all_success, {.total = most, .succeeded = most}) == trigger_decision::run);
    CHECK(decide(trigger_rule::all_success, {.total = most, .succeeded = most - 1}) == trigger_decision::wait);
}

TEST_CASE("counts that add up to more than there are parents leave none unfinished", "[dag]") {
    parent_counts const strange{.total = 1, .succeeded = 1, .failed = 1, .skipped = 0xFFFF'FFFF};
    CHECK(strange.unfinished() == 0);
    for (auto const rule : ax::all_trigger_rules) CHECK(decide(rule, strange) != trigger_decision::wait);
}

TEST_CASE("a number that is no trigger rule never runs a task and never keeps it for ever", "[dag]") {
    auto const none_such = static_cast<trigger_rule>(200);
    CHECK(decide(none_such, {.total = 1}) == trigger_decision::wait);
    CHECK(decide(none_such, {.total = 1, .succeeded = 1}) == trigger_decision::upstream_failed);
    CHECK(ax::to_string(none_such) == "unknown");
    CHECK_FALSE(ax::trigger_rule_of(12));
    CHECK_FALSE(ax::trigger_rule_of(-1));
}

TEST_CASE("trigger rules have Airflow's names and numbers that are stored", "[dag]") {
    constexpr std::array<std::string_view, 12> names{
        "all_success", "all_failed", "all_done",    "all_done_min_one_success",    "all_skipped",  "one_failed",
        "one_success", "one_done",   "none_failed", "none_failed_min_one_success", "none_skipped", "always"};
    REQUIRE(std::size(ax::all_trigger_rules) == names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
        CHECK(to_string(ax::all_trigger_rules[i]) == names[i]);
        CHECK(static_cast<std::size_t>(ax::all_trigger_rules[i]) == i);
        CHECK(ax::trigger_rule_from(names[i]) == ax::all_trigger_rules[i]);
        CHECK(ax::trigger_rule_of(static_cast<std::int64_t>(i)) == ax::all_trigger_rules[i]);
    }
    for (auto const* const text : {"", "All_success", "all_success ", "unknown", "dummy", "all_succes"})
        CHECK_FALSE(ax::trigger_rule_from(text));
}

TEST_CASE("the table of trigger rules in the docs has every mixture and the answers that are given", "[dag][docs]") {
    std::ifstream in(test::project_file("docs/trigger_rules.md"));
    std::vector<std::vector<std::string>> rows;
    bool reached = false;
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("## ")) reached = line == "## The full table";
        if (!reached || !line.starts_with("| ")) continue;
        auto& cells = rows.emplace_back();
        std::istringstream cut(line.substr(2));
        for (std::string cell; std::getline(cut, cell, '|');) {
            cell.erase(0, cell.find_first_not_of(" `"));
            cell.erase(cell.find_last_not_of(" `") + 1);
            cells.push_back(cell);
        }
    }
    REQUIRE(rows.size() == 1 + 64);
    REQUIRE(rows.front().size() == 1 + 12);
    std::set<outcomes> seen;
    for (std::size_t r = 1; r < rows.size(); ++r) {
        CAPTURE(rows[r].front());
        REQUIRE(rows[r].size() == rows.front().size());
        outcomes parents;
        std::istringstream words(rows[r].front());
        for (std::string word; rows[r].front() != "none at all" && words >> word;) {
            if (word.back() == ',') word.pop_back();
            auto const* const found = std::find(outcome_names.begin(), outcome_names.end(), word);
            REQUIRE(found != outcome_names.end());
            parents.push_back(static_cast<outcome>(found - outcome_names.begin()));
        }
        CHECK(seen.insert(parents).second);
        CHECK(std::set<outcome>(parents.begin(), parents.end()).size() == parents.size());
        for (std::size_t c = 1; c < rows[r].size(); ++c) {
            auto const rule = ax::trigger_rule_from(rows.front()[c]);
            REQUIRE(rule);
            CAPTURE(rows.front()[c]);
            auto const& cell = rows[r][c];
            auto const stated = cell == "uf" ? "upstream_failed" : cell == "·" ? "wait" : cell;
            CHECK(stated == ax::to_string(decide(*rule, counts_of(parents))));
        }
    }
}
