// SPDX-License-Identifier: MIT
#include "ax/dispatch/fair_queue.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace {

enum class urgency : unsigned char { critical, high, normal, low };

constexpr std::size_t none = 4;
using queue = ax::fair_queue<int>;
using class_set = queue::class_set;

/// Draws `count` items of a queue whose four classes never run dry; the items are the numbers of their classes.
std::vector<int> drawn(queue& q, std::size_t count) {
    std::vector<int> result;
    for (std::size_t i = 0; i < count; ++i) {
        for (int c = 0; c < 4; ++c) {
            if (q.size(static_cast<std::size_t>(c)) == 0) q.push(static_cast<std::size_t>(c), c);
        }
        result.push_back(q.pop().value());
    }
    return result;
}

std::string text_of(ax::error const& e) { return e.what(); }

} // namespace

TEST_CASE("fair_queue draws the classes by weight, evenly spread", "[dispatch]") {
    queue q;
    auto const order = drawn(q, 1'000);
    std::vector<int> const first(order.begin(), order.begin() + 20);
    CHECK(first == std::vector{0, 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 2, 0, 0, 1, 0, 0, 1, 2, 3});

    // Any 20 draws in a row hold 10, 5, 3 and 2 of the classes, wherever they begin.
    for (std::size_t from = 0; from + 20 <= order.size(); ++from) {
        auto const begin = order.begin() + static_cast<std::ptrdiff_t>(from);
        std::vector<std::ptrdiff_t> counts;
        for (int c = 0; c < 4; ++c) counts.push_back(std::count(begin, begin + 20, c));
        CAPTURE(from);
        REQUIRE(counts == std::vector<std::ptrdiff_t>{10, 5, 3, 2});
    }
}

TEST_CASE("fair_queue is first in, first out within a class", "[dispatch]") {
    ax::fair_queue<int, urgency> q;
    for (int i = 0; i < 1'000; ++i) q.push(static_cast<urgency>(i % 4), i);
    std::vector<int> last(4, -1);
    for (int left = 1'000; left > 0; --left) {
        REQUIRE(q.size() == static_cast<std::size_t>(left));
        auto const announced = q.next_class();
        auto const item = q.pop();
        REQUIRE(item.has_value());
        REQUIRE(announced == static_cast<urgency>(*item % 4));
        REQUIRE(*item > last[static_cast<std::size_t>(*item % 4)]);
        last[static_cast<std::size_t>(*item % 4)] = *item;
    }
    CHECK(q.empty());
    CHECK_FALSE(q.pop().has_value());
    CHECK_FALSE(q.next_class().has_value());
}

TEST_CASE("fair_queue gives a class that is alone every draw", "[dispatch]") {
    auto const only = GENERATE(0U, 1U, 2U, 3U);
    queue q;
    for (int i = 0; i < 50; ++i) q.push(only, i);
    for (int i = 0; i < 50; ++i) REQUIRE(q.pop() == i);
    CHECK(q.empty());
}

TEST_CASE("fair_queue draws only from classes that are allowed, and finds whatever there is", "[dispatch]") {
    for (unsigned held = 0; held < 16; ++held) {
        for (unsigned may = 0; may < 16; ++may) {
            queue q;
            class_set allowed{};
            for (std::size_t c = 0; c < 4; ++c) {
                if (held >> c & 1U) q.push(c, static_cast<int>(c));
                allowed[c] = (may >> c & 1U) != 0;
            }
            unsigned taken = 0;
            while (auto const item = q.pop(allowed)) taken |= 1U << *item;
            CAPTURE(held, may);
            REQUIRE(taken == (held & may));
            REQUIRE_FALSE(q.next_class(allowed).has_value());
            REQUIRE(q.empty() == ((held & ~may) == 0));
        }
    }
}

TEST_CASE("fair_queue gives a class that was idle no burst", "[dispatch]") {
    queue q;
    for (int i = 0; i < 10'000; ++i) {
        q.push(3, 3);
        q.pop();
    }
    // Class 0 was idle for 10,000 draws; from now on it has 50 of 60 draws and not more.
    for (int i = 0; i < 600; ++i) {
        q.push(0, 0);
        q.push(3, 3);
    }
    int critical = 0;
    for (int i = 0; i < 60; ++i) critical += q.pop() == 0 ? 1 : 0;
    CHECK(critical >= 49);
    CHECK(critical <= 51);
}

TEST_CASE("fair_queue lets a class that was kept back catch up by one draw", "[dispatch]") {
    queue q;
    for (int i = 0; i < 1'000; ++i) {
        q.push(2, 2);
        q.push(3, 3);
    }
    class_set const without_low{true, true, true, false};
    for (int i = 0; i < 500; ++i) REQUIRE(q.pop(without_low) == 2);
    CHECK(q.pop() == 3);
    int low = 0;
    for (int i = 0; i < 25; ++i) low += q.pop() == 3 ? 1 : 0;
    CHECK(low == 10); // 10 of 25 is its share
}

TEST_CASE("fair_queue forgets nothing of a class that empties and fills again at every draw", "[dispatch]") {
    // Both classes hold at most one item at a time; that must neither cost a share nor win one.
    ax::fair_queue<int, std::size_t, 2> q{{3, 1}};
    std::vector<int> counts(2, 0);
    for (int i = 0; i < 4'000; ++i) {
        for (std::size_t c = 0; c < 2; ++c) {
            if (q.size(c) == 0) q.push(c, static_cast<int>(c));
        }
        ++counts[static_cast<std::size_t>(q.pop().value())];
    }
    CHECK(counts == std::vector{3'000, 1'000});
}

// All that an adversary can do, for every class at every draw (it is absent, kept back, or may be drawn), is tried in
// every state that can be reached. `longest` is then the longest path on which a class that may be drawn is not.
TEST_CASE("fair_queue lets no class wait longer than its bound, whatever the others do", "[dispatch]") {
    auto const [weights, expected] = GENERATE(table<std::array<std::size_t, 4>, std::array<std::size_t, 4>>({
        {{{50, 25, 15, 10}}, {{3, 4, 7, 10}}},
        {{{1, 1, 1, 1}}, {{3, 3, 3, 3}}},
        {{{4, 3, 2, 1}}, {{3, 4, 5, 9}}},
        {{{1, 2, 3, 4}}, {{9, 5, 4, 3}}},
        {{{1, 7, 1, 1}}, {{9, 3, 9, 9}}},
    }));
    CAPTURE(weights);
    using order = ax::detail::stride_order<4>;
    order const start{weights};

    struct scene {
        order::class_set waiting{};
        order::class_set allowed{};
        order::class_set free{};
    };
    std::vector<scene> scenes;
    for (int code = 0; code < 81; ++code) {
        scene s;
        int rest = code;
        for (std::size_t c = 0; c < 4; ++c, rest /= 3) {
            s.waiting[c] = rest % 3 != 0;
            s.allowed[c] = rest % 3 == 2;
            s.free[c] = rest % 3 == 2;
        }
        if (start.next(s.free) != none) scenes.push_back(s);
    }

    // state -> for each scene the state after it; breadth first
    std::map<order, std::size_t> numbers{{start, 0}};
    std::vector<order> states{start};
    std::vector<std::vector<std::pair<std::size_t, std::size_t>>> steps; // class drawn, next state
    for (std::size_t at = 0; at < states.size(); ++at) {
        auto& out = steps.emplace_back();
        for (scene const& s : scenes) {
            order next = states[at];
            auto const c = next.next(s.free);
            next.draw(c, s.waiting, s.allowed);
            auto const [where, is_new] = numbers.try_emplace(next, states.size());
            if (is_new) states.push_back(next);
            out.emplace_back(c, where->second);
        }
    }
    INFO(states.size() << " states");
    REQUIRE(states.size() > 1);

    for (std::size_t watched = 0; watched < 4; ++watched) {
        CAPTURE(watched);
        REQUIRE(start.longest_wait(watched) == expected[watched]);
        std::vector<int> longest(states.size(), -1);
        // Depth first; ends because a class that may be drawn is drawn in the end, which is what is being proved.
        auto const walk = [&](auto const& self, std::size_t state, std::size_t depth) -> int {
            if (depth > 1'000) return 1'000;
            if (longest[state] >= 0) return longest[state];
            int most = 0;
            for (std::size_t i = 0; i < scenes.size(); ++i) {
                auto const [c, next] = steps[state][i];
                if (scenes[i].free[watched] && c != watched) most = (std::max)(most, 1 + self(self, next, depth + 1));
            }
            return longest[state] = most;
        };
        int worst = 0;
        for (std::size_t state = 0; state < states.size(); ++state) worst = (std::max)(worst, walk(walk, state, 0));
        CHECK(worst == static_cast<int>(expected[watched])); // reached, so the bound is not only safe but exact
    }
}

TEST_CASE("fair_queue agrees with exact arithmetic on any history", "[dispatch]") {
    // The obvious form: absolute virtual time in 64 bits, no rebasing, short histories. It repeats the rules of arrival
    // and keeping back as they are worded, on instants instead of distances.
    auto const seed = GENERATE(1U, 2U, 3U, 4U, 5U);
    CAPTURE(seed);
    std::mt19937 random{seed};
    auto const up_to = [&](unsigned limit) { return random() % limit; };
    std::array<std::size_t, 4> weights{};
    for (auto& w : weights) w = 1 + up_to(100);
    queue q{weights};

    auto multiple = std::int64_t{2};
    for (auto w : weights) multiple = std::lcm(multiple, std::int64_t{2} * static_cast<std::int64_t>(w));
    std::array<std::int64_t, 4> stride{};
    std::array<std::int64_t, 4> previous{}; // the instant of the last draw, moved up to what idleness makes of it
    std::array<std::deque<int>, 4> lines;
    std::int64_t present = 0;
    for (std::size_t c = 0; c < 4; ++c) {
        stride[c] = multiple / static_cast<std::int64_t>(weights[c]);
        previous[c] = -1;
    }
    for (int i = 0; i < 20'000; ++i) {
        for (auto c = up_to(6); c < 4; c = up_to(6)) {
            if (lines[c].empty()) previous[c] = (std::max)(previous[c], present - 1);
            lines[c].push_back(i);
            q.push(c, i);
        }
        class_set allowed{};
        for (auto& a : allowed) a = up_to(4) != 0;

        std::size_t first = none;
        for (std::size_t c = 0; c < 4; ++c) {
            bool const free = allowed[c] && !lines[c].empty();
            if (free && (first == none || previous[c] + stride[c] < previous[first] + stride[first])) first = c;
        }
        std::optional<int> expected;
        if (first != none) {
            expected = lines[first].front();
            lines[first].pop_front();
            previous[first] += stride[first];
            present = previous[first];
            for (std::size_t c = 0; c < 4; ++c) {
                bool const kept_back = !lines[c].empty() && !allowed[c];
                if (kept_back) previous[c] = (std::max)(previous[c], present + 1 - stride[c]);
            }
        }
        CAPTURE(i);
        auto const announced = q.next_class(allowed);
        REQUIRE(announced.value_or(none) == first);
        REQUIRE(q.pop(allowed) == expected);
        REQUIRE(q.size() == lines[0].size() + lines[1].size() + lines[2].size() + lines[3].size());
    }
}

TEST_CASE("fair_queue holds what can only be moved, and gives back what is removed", "[dispatch]") {
    ax::fair_queue<std::unique_ptr<int>, urgency> q;
    for (int i = 0; i < 12; ++i) q.push(static_cast<urgency>(i % 4), std::make_unique<int>(i));
    auto const removed = q.remove_if([](std::unique_ptr<int> const& p) { return *p % 3 == 0; });

    std::vector<int> gone;
    for (auto const& p : removed) gone.push_back(*p);
    CHECK(gone == std::vector{0, 9, 6, 3});
    CHECK(q.size() == 8);
    CHECK(q.size(urgency::critical) == 2);
    std::vector<int> left;
    class_set low{false, false, false, true};
    while (auto p = q.pop(low)) left.push_back(**p);
    CHECK(left == std::vector{7, 11});
    CHECK(q.size() == 6);
    CHECK(q.remove_if([](auto const&) { return true; }).size() == 6);
    CHECK(q.empty());
    CHECK_FALSE(q.pop().has_value());
}

TEST_CASE("fair_queue is as it was when a predicate throws", "[dispatch]") {
    queue q;
    for (int i = 0; i < 8; ++i) q.push(static_cast<std::size_t>(i % 4), i);
    auto const throws = [](int i) -> bool {
        if (i == 6) throw i;
        return true;
    };
    CHECK_THROWS_AS(q.remove_if(throws), int);
    CHECK(q.size() == 8);
    std::set<int> items;
    while (auto const item = q.pop()) items.insert(*item);
    CHECK(items.size() == 8);
}

TEST_CASE("fair_queue refuses weights and classes that make no sense and names them", "[dispatch]") {
    try {
        queue q{{50, 25, 0, 10}};
        FAIL("accepted");
    } catch (ax::error const& e) {
        CHECK(e.kind() == ax::errc::invalid_argument);
        CHECK(text_of(e) == "weight of class 2 is 0: invalid argument");
    }
    CHECK_THROWS_AS((queue{{1, 1, std::size_t{0} - 1, 1}}), ax::error);
    CHECK_THROWS_AS((queue{{1'000'003, 999'983, 999'979, 999'961}}), ax::error); // no common multiple in 63 bits
    CHECK_NOTHROW(queue{{1'000'000, 500'000, 250'000, 1}});
    CHECK_NOTHROW(queue{{26'993, 26'987, 26'981, 26'959}}); // primes

    ax::fair_queue<int, urgency> q;
    CHECK_THROWS_AS(q.push(static_cast<urgency>(4), 1), ax::error);
    CHECK_THROWS_AS(q.size(static_cast<urgency>(200)), ax::error);
    ax::fair_queue<int, int> signed_classes;
    CHECK_THROWS_AS(signed_classes.push(-1, 1), ax::error);
    CHECK(q.empty());
    CHECK(q.longest_wait(urgency::low) == 10);
}

TEST_CASE("fair_queue keeps its shares for weights of any size", "[dispatch]") {
    queue q{{100'000, 50'000, 49'999, 1}};
    std::vector<std::size_t> counts(4, 0);
    for (int c : drawn(q, 200'000)) ++counts[static_cast<std::size_t>(c)];
    CHECK(counts == std::vector<std::size_t>{100'000, 50'000, 49'999, 1});
}
