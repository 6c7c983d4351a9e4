// SPDX-License-Identifier: MIT
// A state machine as a table that is known at compile time.
//
// The table is the only place where the edges are written down. The code asks it, at compile time where both ends are
// known and at run time where they are not, and the pictures in the documents are drawn from it, so that code and
// picture cannot differ. The machine itself holds nothing: the present state stays where it belongs, for example in a
// row of a database.
#pragma once

#include "ax/core/error.hpp"

#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace ax {

/// The context of a table whose edges have neither guards nor actions.
struct no_context {};

/// One row of a transition table: on `on` the machine moves from `from` to `to`.
///
/// `guard` decides whether the row may be taken now (none: always), `action` is run when it is taken (none: nothing).
/// Both are plain functions; a lambda without captures is one. `reason` says why, for pictures and error texts.
template <class State, class Event = void, class Context = no_context>
struct transition {
    State from;
    Event on;
    State to;
    std::string_view reason{};
    bool (*guard)(Context const&) = nullptr;
    void (*action)(Context&) = nullptr;
};

/// One row of a table without events: an edge.
template <class State, class Context>
struct transition<State, void, Context> {
    State from;
    State to;
    std::string_view reason{};
    bool (*guard)(Context const&) = nullptr;
    void (*action)(Context&) = nullptr;
};

namespace detail {

template <class Row>
struct transition_parts;

template <class State, class Event, class Context>
struct transition_parts<transition<State, Event, Context>> {
    using state_type = State;
    using event_type = Event;
    using context_type = Context;
};

template <class Table>
using row_of = std::remove_cvref_t<decltype(*std::begin(Table::transitions))>;

} // namespace detail

/// What a state_machine is made from: a type with
///  1. `static constexpr ax::transition<State, ...> transitions[]` (or a std::array): the rows, State an enumeration.
///  2. optionally `static constexpr State initial[]`: the states in which a life may begin (only drawn).
///  3. optionally `static constexpr State terminal[]`: the states that count as an end. Without it these are the states
///     with no edge out of them; it is declared where an end can be left after all, say by hand.
///  4. optionally `static constexpr std::string_view name(State)`, and the same for events. Without it the name comes
///     from a constexpr `to_string(State)` found by argument-dependent lookup, and without that from the number.
template <class T>
concept transition_table = requires {
    typename detail::transition_parts<detail::row_of<T>>::state_type;
    std::size(T::transitions);
}
&&std::is_enum_v<typename detail::transition_parts<detail::row_of<T>>::state_type>;

namespace detail {

template <class Table, class Value>
constexpr std::string_view name_in_table(Value value) {
    if constexpr (requires { std::string_view{Table::name(value)}; })
        return Table::name(value);
    else if constexpr (requires { std::string_view{to_string(value)}; })
        return to_string(value);
    else
        return {};
}

/// The table turned into lists: the states in the order of their values, and for each the states it leads to and the
/// states that lead to it, in the order of the rows and each once.
template <class Table>
struct transition_index {
    using state_type = typename transition_parts<row_of<Table>>::state_type;
    static constexpr std::size_t rows = std::size(Table::transitions);
    static constexpr std::size_t room = [] {
        std::size_t n = 2 * rows;
        if constexpr (requires { Table::initial; }) n += std::size(Table::initial);
        if constexpr (requires { Table::terminal; }) n += std::size(Table::terminal);
        return n;
    }();

    state_type states[room]{};
    std::size_t count = 0;
    state_type targets[rows]{};
    std::size_t targets_begin[room + 1]{};
    state_type sources[rows]{};
    std::size_t sources_begin[room + 1]{};

    constexpr transition_index() {
        for (auto const& row : Table::transitions) {
            insert(row.from);
            insert(row.to);
        }
        if constexpr (requires { Table::initial; })
            for (auto s : Table::initial) insert(s);
        if constexpr (requires { Table::terminal; })
            for (auto s : Table::terminal) insert(s);
        std::size_t n = 0;
        std::size_t m = 0;
        for (std::size_t i = 0; i < count; ++i) {
            for (auto const& row : Table::transitions) {
                if (row.from == states[i]) append(targets, targets_begin[i], n, row.to);
                if (row.to == states[i]) append(sources, sources_begin[i], m, row.from);
            }
            targets_begin[i + 1] = n;
            sources_begin[i + 1] = m;
        }
    }

    /// The place of `s` in `states`, or `count`.
    constexpr std::size_t find(state_type s) const noexcept {
        std::size_t i = 0;
        while (i < count && states[i] != s) ++i;
        return i;
    }

  private:
    constexpr void insert(state_type s) {
        if (find(s) != count) return;
        std::size_t i = count++;
        for (; i > 0 && s < states[i - 1]; --i) states[i] = states[i - 1];
        states[i] = s;
    }

    static constexpr void append(state_type (&list)[rows], std::size_t begin, std::size_t& end, state_type s) {
        for (std::size_t i = begin; i < end; ++i)
            if (list[i] == s) return;
        list[end++] = s;
    }
};

template <class Table>
inline constexpr transition_index<Table> index_of_table{};

/// False where a row can never be taken because an earlier one is always taken in its place.
template <class Table>
constexpr bool every_row_can_be_taken() {
    constexpr bool events = !std::is_void_v<typename transition_parts<row_of<Table>>::event_type>;
    auto const rows = std::size(Table::transitions);
    for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = i + 1; j < rows; ++j) {
            auto const& a = Table::transitions[i];
            auto const& b = Table::transitions[j];
            if (a.from != b.from) continue;
            if constexpr (events) {
                if (a.on == b.on && !a.guard) return false;
            } else {
                if (a.to == b.to) return false;
            }
        }
    }
    return true;
}

template <class Table>
constexpr bool names_are_distinct() {
    auto const& index = index_of_table<Table>;
    for (std::size_t i = 0; i < index.count; ++i)
        for (std::size_t j = i + 1; j < index.count; ++j) {
            auto const name = name_in_table<Table>(index.states[i]);
            if (!name.empty() && name == name_in_table<Table>(index.states[j])) return false;
        }
    return true;
}

} // namespace detail

/// A state machine over the enumeration of `Table`, see transition_table. It has no data: every function is static and
/// takes the present state, so one constexpr instance (or just the type) serves any number of lives.
///
/// A table with edges alone is asked with allowed() and walked with go(); a table with events is asked with next() and
/// walked with fire(). Functions that take a context exist where the rows have guards or actions, and only they.
///
/// Complexity: O(states + edges), nothing allocates but texts and errors.
/// Threads:    safe.
template <transition_table Table>
class state_machine {
    using parts = detail::transition_parts<detail::row_of<Table>>;
    static constexpr auto const& index = detail::index_of_table<Table>;

    static_assert(detail::every_row_can_be_taken<Table>(),
                  "ax::state_machine: a row of the transition table is hidden by an earlier one");
    static_assert(detail::names_are_distinct<Table>(), "ax::state_machine: two states have the same name");

  public:
    using state_type = typename parts::state_type;
    using event_type = typename parts::event_type;
    using context_type = typename parts::context_type;
    using row_type = detail::row_of<Table>;

    static constexpr bool has_events = !std::is_void_v<event_type>;
    static constexpr bool has_context = !std::is_same_v<context_type, no_context>;

    /// The rows as they were written down.
    static constexpr std::span<row_type const> edges() noexcept { return Table::transitions; }

    /// Every state of the table, by value.
    static constexpr std::span<state_type const> states() noexcept { return {index.states, index.count}; }

    /// The states that an edge leads to from `s`; none for a value that is no state of the table.
    static constexpr std::span<state_type const> targets(state_type s) noexcept {
        auto const i = index.find(s);
        if (i == index.count) return {};
        return {index.targets + index.targets_begin[i], index.targets_begin[i + 1] - index.targets_begin[i]};
    }

    /// The states from which an edge leads to `s`; none for a value that is no state of the table.
    static constexpr std::span<state_type const> sources(state_type s) noexcept {
        auto const i = index.find(s);
        if (i == index.count) return {};
        return {index.sources + index.sources_begin[i], index.sources_begin[i + 1] - index.sources_begin[i]};
    }

    /// True where `s` occurs in the table. A number that was read from outside may be no state at all.
    static constexpr bool contains(state_type s) noexcept { return index.find(s) != index.count; }

    /// True where `s` counts as an end: declared so by the table, or without an edge out of it.
    static constexpr bool is_terminal(state_type s) noexcept {
        if constexpr (requires { Table::terminal; }) {
            for (auto t : Table::terminal)
                if (t == s) return true;
            return false;
        } else {
            return contains(s) && targets(s).empty();
        }
    }

    /// The name that the table gives, empty where it gives none.
    static constexpr std::string_view name(state_type s) { return detail::name_in_table<Table>(s); }

    /// The reason of the first row from `from` to `to`; empty where there is none.
    static constexpr std::string_view reason(state_type from, state_type to) noexcept {
        for (auto const& row : Table::transitions)
            if (row.from == from && row.to == to) return row.reason;
        return {};
    }

    /// True where the table has an edge from `from` to `to`, whatever its guard says.
    static constexpr bool allowed(state_type from, state_type to) noexcept {
        for (auto const& row : Table::transitions)
            if (row.from == from && row.to == to) return true;
        return false;
    }

    /// True where the table has that edge and its guard lets it be taken now.
    static constexpr bool allowed(state_type from, state_type to, context_type const& context) requires(has_context) {
        for (auto const& row : Table::transitions)
            if (row.from == from && row.to == to && passes(row, context)) return true;
        return false;
    }

    /// The edge from `From` to `To`, as its end. Does not compile where the table has no such edge.
    template <state_type From, state_type To>
    static constexpr state_type go() noexcept requires(!has_events && !has_context) {
        static_assert(allowed(From, To), "ax::state_machine: the transition table has no edge from the first state to "
                                         "the second");
        return To;
    }

    /// The same with the guard and the action of the edge.
    /// @throws ax::error invalid_argument where the guard refuses; what the action throws passes through.
    template <state_type From, state_type To>
    static constexpr state_type go(context_type& context) requires(!has_events && has_context) {
        static_assert(allowed(From, To), "ax::state_machine: the transition table has no edge from the first state to "
                                         "the second");
        return go(From, To, context);
    }

    /// The edge from `from` to `to`, as its end.
    /// @throws ax::error invalid_argument, naming both states and what would be allowed, where there is none.
    static constexpr state_type go(state_type from, state_type to) requires(!has_events && !has_context) {
        if (!allowed(from, to)) no_edge(from, to);
        return to;
    }

    /// The same with the guard and the action of the edge.
    /// @throws ax::error also where the guard refuses; what the action throws passes through, and then the caller has
    ///         no new state.
    static constexpr state_type go(state_type from, state_type to,
                                   context_type& context) requires(!has_events && has_context) {
        for (auto const& row : Table::transitions) {
            if (row.from != from || row.to != to) continue;
            if (!passes(row, context)) refused(from, to);
            if (row.action) row.action(context);
            return to;
        }
        no_edge(from, to);
    }

    /// Where `on` leads to from `from`: the first row for both. Nothing where there is none.
    template <class Event = event_type>
    static constexpr std::optional<state_type> next(state_type from, std::type_identity_t<Event> on) noexcept
        requires(has_events && !has_context) {
        for (auto const& row : Table::transitions)
            if (row.from == from && row.on == on) return row.to;
        return std::nullopt;
    }

    /// Where `on` leads to from `from`: the first row for both whose guard passes. Nothing where there is none.
    template <class Event = event_type>
    static constexpr std::optional<state_type> next(state_type from, std::type_identity_t<Event> on,
                                                    context_type const& context) requires(has_events&& has_context) {
        auto const* row = find(from, on, context);
        return row ? std::optional{row->to} : std::nullopt;
    }

    /// Takes the row that next() names.
    /// @throws ax::error invalid_argument, naming the state and the event, where there is none.
    template <class Event = event_type>
    static constexpr state_type fire(state_type from,
                                     std::type_identity_t<Event> on) requires(has_events && !has_context) {
        auto const to = next(from, on);
        if (!to) no_row(from, on);
        return *to;
    }

    /// Takes the row that next() names and runs its action.
    /// @throws ax::error invalid_argument, naming the state and the event, where there is no row whose guard passes.
    ///         What guard and action throw passes through, and then the caller has no new state.
    template <class Event = event_type>
    static constexpr state_type fire(state_type from, std::type_identity_t<Event> on,
                                     context_type& context) requires(has_events&& has_context) {
        auto const* row = find(from, on, context);
        if (!row) no_row(from, on);
        if (row->action) row->action(context);
        return row->to;
    }

    /// Takes the row for `From` and `On`. Does not compile where the table has none.
    template <state_type From, auto On>
    static constexpr state_type fire() requires(has_events && !has_context) {
        static_assert(answers<On>(From), "ax::state_machine: the transition table has no row for this state and event");
        return fire(From, On);
    }

    /// The same with guards and actions.
    template <state_type From, auto On>
    static constexpr state_type fire(context_type& context) requires(has_events&& has_context) {
        static_assert(answers<On>(From), "ax::state_machine: the transition table has no row for this state and event");
        return fire(From, On, context);
    }

    /// The table as a state diagram for Mermaid, one line a row, each line ended.
    static std::string to_mermaid() {
        std::string text = "stateDiagram-v2\n";
        for (auto s : states())
            if (!is_identifier(name(s))) text += "    state \"" + quoted(display(s)) + "\" as " + identifier(s) + "\n";
        if constexpr (requires { Table::initial; })
            for (auto s : Table::initial) text += "    [*] --> " + identifier(s) + "\n";
        for (auto const& row : Table::transitions) {
            text += "    " + identifier(row.from) + " --> " + identifier(row.to);
            auto const why = label(row);
            if (!why.empty()) text += " : " + escaped(why);
            text += "\n";
        }
        for (auto s : states())
            if (is_terminal(s)) text += "    " + identifier(s) + " --> [*]\n";
        return text;
    }

    /// The table for people, one line a state: `ready -> dispatched, dead (deadline), cancelled`.
    static std::string to_text() {
        std::string text;
        for (auto s : states()) {
            text += display(s);
            if (is_terminal(s)) text += " (terminal)";
            std::string_view between = " -> ";
            for (auto const& row : Table::transitions) {
                if (row.from != s) continue;
                text += between;
                text += display(row.to);
                if (auto const why = label(row); !why.empty()) text += " (" + why + ")";
                between = ", ";
            }
            text += "\n";
        }
        return text;
    }

  private:
    static constexpr bool passes(row_type const& row, context_type const& context) {
        return !row.guard || row.guard(context);
    }

    template <class Event>
    static constexpr row_type const* find(state_type from, Event on, context_type const& context) {
        for (auto const& row : Table::transitions)
            if (row.from == from && row.on == on && passes(row, context)) return &row;
        return nullptr;
    }

    template <auto On>
    static constexpr bool answers(state_type from) noexcept {
        for (auto const& row : Table::transitions)
            if (row.from == from && row.on == On) return true;
        return false;
    }

    template <class Value>
    static std::string display(Value value) {
        auto const name = detail::name_in_table<Table>(value);
        bool known = true;
        if constexpr (std::is_same_v<Value, state_type>) known = contains(value);
        if (known && !name.empty()) return std::string{name};
        std::string number;
        if constexpr (std::is_enum_v<Value>)
            number = std::to_string(+static_cast<std::underlying_type_t<Value>>(value));
        return (std::is_same_v<Value, state_type> ? "state " : "event ") + number;
    }

    static std::string label(row_type const& row) {
        std::string text;
        if constexpr (has_events) text = display(row.on);
        if (!row.reason.empty()) {
            if (!text.empty()) text += ", ";
            text += row.reason;
        }
        return text;
    }

    /// True where Mermaid takes the name as it is: letters, digits and underscores, and no word of its own.
    static constexpr bool is_identifier(std::string_view name) noexcept {
        constexpr std::string_view taken[] = {"as",        "choice", "class", "classdef", "click", "default",
                                              "direction", "end",    "fork",  "hide",     "href",  "join",
                                              "note",      "scale",  "state", "style"};
        for (auto word : taken)
            if (same_word(name, word)) return false;
        for (char c : name)
            if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) return false;
        return !name.empty();
    }

    static constexpr bool same_word(std::string_view name, std::string_view lower) noexcept {
        if (name.size() != lower.size()) return false;
        for (std::size_t i = 0; i < name.size(); ++i) {
            bool const capital = name[i] >= 'A' && name[i] <= 'Z';
            if ((capital ? static_cast<char>(name[i] - 'A' + 'a') : name[i]) != lower[i]) return false;
        }
        return true;
    }

    static std::string identifier(state_type s) {
        if (is_identifier(name(s))) return std::string{name(s)};
        std::size_t const place = index.find(s);
        return "state_" + std::to_string(place);
    }

    static std::string quoted(std::string text) {
        for (auto& c : text)
            if (c == '"' || c == '\n' || c == '\r') c = c == '"' ? '\'' : ' ';
        return text;
    }

    static std::string escaped(std::string const& text) { // Mermaid's own codes for what would end a label
        std::string out;
        for (char c : text) {
            if (c == '#')
                out += "#35;";
            else if (c == ';')
                out += "#59;";
            else if (c == ':')
                out += "#58;";
            else
                out += c == '\n' || c == '\r' ? ' ' : c;
        }
        return out;
    }

    static std::string list(std::span<state_type const> states) {
        std::string text;
        for (auto s : states) text += (text.empty() ? "" : ", ") + display(s);
        return text.empty() ? "none" : text;
    }

    [[noreturn]] static void no_edge(state_type from, state_type to) {
        throw error(errc::invalid_argument, "no edge leads from " + display(from) + " to " + display(to) +
                                                " (allowed: " + list(targets(from)) + ")");
    }

    [[noreturn]] static void refused(state_type from, state_type to) {
        throw error(errc::invalid_argument,
                    "the guard of the edge from " + display(from) + " to " + display(to) + " refused");
    }

    template <class Event>
    [[noreturn]] static void no_row(state_type from, Event on) {
        throw error(errc::invalid_argument, display(on) + " leads nowhere from " + display(from));
    }
};

} // namespace ax
