// SPDX-License-Identifier: MIT
#include "ax/state/state_machine.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

// A table of edges alone, with names.
enum class door { open = 2, closed = 1, locked = 7, broken = 4 };

struct door_table {
    static constexpr ax::transition<door> transitions[] = {
        {door::open, door::closed},   {door::closed, door::open},           {door::closed, door::locked, "key turned"},
        {door::locked, door::closed}, {door::open, door::broken, "kicked"}, {door::open, door::open},
    };
    static constexpr door initial[] = {door::closed};
    static constexpr std::string_view name(door d) {
        switch (d) {
        case door::open: return "open";
        case door::closed: return "closed";
        case door::locked: return "locked";
        case door::broken: return "broken";
        }
        return "?";
    }
};
constexpr ax::state_machine<door_table> doors{};

// Edges with guards and actions.
struct lift {
    int load = 0;
    std::vector<std::string> log;
};

struct lift_table {
    using row = ax::transition<door, void, lift>;
    static constexpr row transitions[] = {
        {door::open, door::closed, "light enough", [](lift const& l) { return l.load <= 400; },
         [](lift& l) { l.log.push_back("closing"); }},
        {door::closed, door::open, {}, nullptr, [](lift& l) { l.log.push_back("opening"); }},
        {door::closed, door::broken, {}, nullptr, [](lift&) { throw std::runtime_error{"the rope"}; }},
    };
    static constexpr std::string_view name(door d) { return door_table::name(d); }
};
constexpr ax::state_machine<lift_table> lifts{};

// Events, names found by argument-dependent lookup.
namespace turnstile {
enum class state { locked, unlocked };
enum class event { coin, push, kick };
constexpr std::string_view to_string(state s) { return s == state::locked ? "locked" : "unlocked"; }
constexpr std::string_view to_string(event e) { return e == event::coin ? "coin" : e == event::push ? "push" : "kick"; }

struct table {
    static constexpr std::array<ax::transition<state, event>, 4> transitions{{
        {state::locked, event::coin, state::unlocked},
        {state::locked, event::push, state::locked},
        {state::unlocked, event::push, state::locked, "one at a time"},
        {state::unlocked, event::coin, state::unlocked},
    }};
    static constexpr std::array<state, 0> terminal{};
};
} // namespace turnstile
constexpr ax::state_machine<turnstile::table> turnstiles{};

// Events with guards: the first row whose guard passes is taken.
namespace account {
enum class state { open, overdrawn, closed };
enum class event { withdraw, close };
struct balance {
    int cents = 0;
    int request = 0;
};
constexpr bool covered(balance const& b) { return b.cents >= b.request; }
constexpr bool empty(balance const& b) { return b.cents == 0; }
constexpr void pay(balance& b) { b.cents -= b.request; }

struct table {
    using row = ax::transition<state, event, balance>;
    static constexpr row transitions[] = {
        {state::open, event::withdraw, state::open, "covered", covered, pay},
        {state::open, event::withdraw, state::overdrawn, "on credit", nullptr, pay},
        {state::open, event::close, state::closed, "empty", empty},
    };
};
} // namespace account
constexpr ax::state_machine<account::table> accounts{};

// An end that can be left, as only the table can say.
struct declared {
    static constexpr ax::transition<door> const (&transitions)[6] = door_table::transitions;
    static constexpr door const (&terminal)[1] = door_table::initial;
};

// Names and reasons that are awkward in a diagram.
enum class odd { a, b, c };
struct odd_table {
    static constexpr ax::transition<odd> transitions[] = {
        {odd::a, odd::b, "ax::skip; see #1\nbelow"},
        {odd::b, odd::c},
    };
    static constexpr std::string_view name(odd o) {
        return o == odd::a ? "not \"quite\" done" : o == odd::b ? "End" : std::string_view{};
    }
};

template <class Call>
std::string refusal(Call call) {
    try {
        (void)call();
    } catch (ax::error const& e) {
        CHECK(e.kind() == ax::errc::invalid_argument);
        return e.what();
    }
    return "accepted";
}

template <class State>
std::vector<State> list(std::span<State const> states) {
    return {states.begin(), states.end()};
}

} // namespace

TEST_CASE("a state machine allows the edges of its table and no others", "[state]") {
    std::array const all{door::closed, door::open, door::broken, door::locked};
    std::vector<std::pair<door, door>> const legal{{door::open, door::closed},   {door::closed, door::open},
                                                   {door::closed, door::locked}, {door::locked, door::closed},
                                                   {door::open, door::broken},   {door::open, door::open}};
    for (auto from : all) {
        for (auto to : all) {
            CAPTURE(doors.name(from), doors.name(to));
            bool const expected = std::find(legal.begin(), legal.end(), std::pair{from, to}) != legal.end();
            CHECK(doors.allowed(from, to) == expected);
            if (expected)
                CHECK(doors.go(from, to) == to);
            else
                CHECK_THROWS_AS(doors.go(from, to), ax::error);
        }
    }
}

TEST_CASE("an illegal edge is an error that names both states and what is allowed", "[state]") {
    CHECK(refusal([] { return doors.go(door::locked, door::open); }) ==
          "no edge leads from locked to open (allowed: closed): invalid argument");
    CHECK(refusal([] { return doors.go(door::broken, door::open); }) ==
          "no edge leads from broken to open (allowed: none): invalid argument");
    CHECK(refusal([] { return doors.go(door::closed, door::broken); }) ==
          "no edge leads from closed to broken (allowed: open, locked): invalid argument");
}

TEST_CASE("a number that is no state is refused and named by its number", "[state]") {
    auto const strange = static_cast<door>(99);
    CHECK_FALSE(doors.contains(strange));
    CHECK_FALSE(doors.allowed(strange, door::open));
    CHECK_FALSE(doors.is_terminal(strange));
    CHECK(doors.targets(strange).empty());
    CHECK(doors.sources(strange).empty());
    CHECK(refusal([&] { return doors.go(strange, door::open); }) ==
          "no edge leads from state 99 to open (allowed: none): invalid argument");
}

TEST_CASE("a state machine lists its states by value and its edges as written", "[state]") {
    CHECK(list(doors.states()) == std::vector{door::closed, door::open, door::broken, door::locked});
    CHECK(list(doors.targets(door::open)) == std::vector{door::closed, door::broken, door::open});
    CHECK(list(doors.sources(door::closed)) == std::vector{door::open, door::locked});
    CHECK(doors.targets(door::broken).empty());
    REQUIRE(doors.edges().size() == 6);
    CHECK(doors.edges()[2].from == door::closed);
    CHECK(doors.edges()[2].to == door::locked);
    CHECK(doors.edges()[2].reason == "key turned");
    CHECK(doors.reason(door::closed, door::locked) == "key turned");
    CHECK(doors.reason(door::open, door::closed).empty());
    CHECK(doors.reason(door::broken, door::open).empty());
}

TEST_CASE("a state is terminal where nothing leads out of it or the table says so", "[state]") {
    CHECK(doors.is_terminal(door::broken));
    CHECK_FALSE(doors.is_terminal(door::open));
    CHECK(accounts.is_terminal(account::state::closed));
    CHECK(accounts.is_terminal(account::state::overdrawn));
    for (auto s : turnstiles.states()) CHECK_FALSE(turnstiles.is_terminal(s));
    CHECK(ax::state_machine<declared>::is_terminal(door::closed));
    CHECK_FALSE(ax::state_machine<declared>::is_terminal(door::broken));
}

TEST_CASE("guards and actions of edges are asked and run", "[state]") {
    lift l{.load = 500, .log = {}};
    CHECK(lifts.allowed(door::open, door::closed));
    CHECK_FALSE(lifts.allowed(door::open, door::closed, l));
    CHECK(refusal([&] { return lifts.go(door::open, door::closed, l); }) ==
          "the guard of the edge from open to closed refused: invalid argument");
    CHECK(l.log.empty());

    l.load = 400;
    CHECK(lifts.allowed(door::open, door::closed, l));
    CHECK(lifts.go(door::open, door::closed, l) == door::closed);
    CHECK(lifts.go<door::closed, door::open>(l) == door::open);
    CHECK(l.log == std::vector<std::string>{"closing", "opening"});
    CHECK(refusal([&] { return lifts.go(door::open, door::broken, l); }) ==
          "no edge leads from open to broken (allowed: closed): invalid argument");
}

TEST_CASE("what an action throws passes through", "[state]") {
    lift l{};
    CHECK_THROWS_AS(lifts.go(door::closed, door::broken, l), std::runtime_error);
}

TEST_CASE("an event leads where the table says, or nowhere", "[state]") {
    using namespace turnstile;
    CHECK(turnstiles.next(state::locked, event::coin) == state::unlocked);
    CHECK(turnstiles.next(state::unlocked, event::push) == state::locked);
    CHECK_FALSE(turnstiles.next(state::locked, event::kick).has_value());
    CHECK(turnstiles.fire(state::locked, event::push) == state::locked);
    CHECK(turnstiles.fire<state::locked, event::coin>() == state::unlocked);
    CHECK(refusal([] { return turnstiles.fire(state::locked, event::kick); }) ==
          "kick leads nowhere from locked: invalid argument");
}

TEST_CASE("of several rows for an event the first whose guard passes is taken", "[state]") {
    using namespace account;
    balance b{.cents = 100, .request = 60};
    CHECK(accounts.next(state::open, event::withdraw, b) == state::open);
    CHECK(accounts.fire(state::open, event::withdraw, b) == state::open);
    CHECK(b.cents == 40);
    CHECK(accounts.next(state::open, event::withdraw, b) == state::overdrawn);
    CHECK(b.cents == 40); // asking does nothing
    CHECK(accounts.fire<state::open, event::withdraw>(b) == state::overdrawn);
    CHECK(b.cents == -20);
    CHECK_FALSE(accounts.next(state::open, event::close, b).has_value());
    CHECK(refusal([&] { return accounts.fire(state::open, event::close, b); }) ==
          "event 1 leads nowhere from state 0: invalid argument"); // without names the numbers have to do
}

TEST_CASE("a state machine can be drawn as a Mermaid diagram", "[state]") {
    CHECK(doors.to_mermaid() == "stateDiagram-v2\n"
                                "    [*] --> closed\n"
                                "    open --> closed\n"
                                "    closed --> open\n"
                                "    closed --> locked : key turned\n"
                                "    locked --> closed\n"
                                "    open --> broken : kicked\n"
                                "    open --> open\n"
                                "    broken --> [*]\n");
    CHECK(turnstiles.to_mermaid() == "stateDiagram-v2\n"
                                     "    locked --> unlocked : coin\n"
                                     "    locked --> locked : push\n"
                                     "    unlocked --> locked : push, one at a time\n"
                                     "    unlocked --> unlocked : coin\n");
}

TEST_CASE("names and reasons that Mermaid would misread are written so that it does not", "[state]") {
    CHECK(ax::state_machine<odd_table>::to_mermaid() == "stateDiagram-v2\n"
                                                        "    state \"not 'quite' done\" as state_0\n"
                                                        "    state \"End\" as state_1\n"
                                                        "    state \"state 2\" as state_2\n"
                                                        "    state_0 --> state_1 : ax#58;#58;skip#59; see #35;1 below\n"
                                                        "    state_1 --> state_2\n"
                                                        "    state_2 --> [*]\n");
}

TEST_CASE("a state machine can be written as text", "[state]") {
    CHECK(doors.to_text() == "closed -> open, locked (key turned)\n"
                             "open -> closed, broken (kicked), open\n"
                             "broken (terminal)\n"
                             "locked -> closed\n");
    CHECK(turnstiles.to_text() == "locked -> unlocked (coin), locked (push)\n"
                                  "unlocked -> locked (push, one at a time), unlocked (coin)\n");
}

namespace {

// Random tables, fixed at compile time, against a plain search of their rows.
template <unsigned Seed>
struct random_table {
    enum class state : std::int16_t {};
    static constexpr std::size_t size = 40;
    static constexpr std::array<ax::transition<state>, size> transitions = [] {
        std::array<ax::transition<state>, size> rows{};
        unsigned x = Seed;
        auto const draw = [&x] {
            x = x * 1'664'525u + 1'013'904'223u;
            return static_cast<state>(static_cast<int>((x >> 16) % 15) * 300 - 2'000);
        };
        for (std::size_t n = 0; n < size;) {
            auto const from = draw();
            auto const to = draw();
            bool fresh = true;
            for (std::size_t i = 0; i < n; ++i) fresh = fresh && !(rows[i].from == from && rows[i].to == to);
            if (fresh) rows[n++] = {from, to};
        }
        return rows;
    }();
};

template <unsigned Seed>
void compare_with_search() {
    CAPTURE(Seed);
    using table = random_table<Seed>;
    using state = typename table::state;
    using machine = ax::state_machine<table>;
    std::vector<state> expected_states;
    for (int i = -2'100; i < 2'600; ++i) {
        auto const s = static_cast<state>(i);
        std::vector<state> targets;
        std::vector<state> sources;
        for (auto const& row : table::transitions) {
            if (row.from == s) targets.push_back(row.to);
            if (row.to == s) sources.push_back(row.from);
        }
        if (!targets.empty() || !sources.empty()) expected_states.push_back(s);
        REQUIRE(list(machine::targets(s)) == targets);
        REQUIRE(list(machine::sources(s)) == sources);
        REQUIRE(machine::is_terminal(s) == (targets.empty() && !sources.empty()));
        for (int j = -2'000; j < 2'500; j += 300) {
            auto const t = static_cast<state>(j);
            REQUIRE(machine::allowed(s, t) == (std::find(targets.begin(), targets.end(), t) != targets.end()));
        }
    }
    CHECK(list(machine::states()) == expected_states);
}

} // namespace

TEST_CASE("the lists of a state machine equal a search of its rows", "[state]") {
    compare_with_search<1>();
    compare_with_search<2>();
    compare_with_search<20'240'229>();
}

TEST_CASE("a state that two events lead to is listed once", "[state]") {
    using namespace account;
    CHECK(list(accounts.targets(state::open)) == std::vector{state::open, state::overdrawn, state::closed});
    CHECK(list(accounts.sources(state::overdrawn)) == std::vector{state::open});
    CHECK(list(accounts.sources(state::open)) == std::vector{state::open});
}

// All of it at compile time.
static_assert(doors.go<door::open, door::closed>() == door::closed);
static_assert(doors.go(door::closed, door::locked) == door::locked);
static_assert(doors.targets(door::locked).size() == 1);
static_assert(turnstiles.fire<turnstile::state::locked, turnstile::event::coin>() == turnstile::state::unlocked);
static_assert([] {
    account::balance b{.cents = 10, .request = 3};
    return accounts.fire(account::state::open, account::event::withdraw, b) == account::state::open && b.cents == 7;
}());
static_assert(sizeof(ax::state_machine<door_table>) == 1);
