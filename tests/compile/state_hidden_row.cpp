// reject: a row of the transition table is hidden by an earlier one
// SPDX-License-Identifier: MIT
#include "ax/state/state_machine.hpp"

enum class lamp { off, on };

struct lamp_table {
    static constexpr ax::transition<lamp> transitions[] = {
        {lamp::off, lamp::on},
        {lamp::on, lamp::off},
#ifdef AX_REJECT
        {lamp::off, lamp::on, "again"},
#endif
    };
};

int main() { return ax::state_machine<lamp_table>::allowed(lamp::off, lamp::on) ? 0 : 1; }
