// SPDX-License-Identifier: MIT
// The least that models a transition table, and near misses. Compiled and never linked.
#include "ax/state/state_machine.hpp"

namespace {

enum class light { red, green };

struct table_archetype {
    table_archetype() = delete;
    static constexpr ax::transition<light> transitions[] = {{light::red, light::green}};
};
static_assert(ax::transition_table<table_archetype>);

struct table_without_transitions {};
static_assert(!ax::transition_table<table_without_transitions>);

struct table_of_numbers {
    static constexpr ax::transition<int> transitions[] = {{1, 2}};
};
static_assert(!ax::transition_table<table_of_numbers>); // a state is an enumerator

struct own_row {
    light from;
    light to;
};
struct table_of_other_rows {
    static constexpr own_row transitions[] = {{light::red, light::green}};
};
static_assert(!ax::transition_table<table_of_other_rows>);
static_assert(!ax::transition_table<light>);

} // namespace

template class ax::state_machine<table_archetype>;
