// reject: two states have the same name
// SPDX-License-Identifier: MIT
#include "ax/state/state_machine.hpp"

enum class lamp { off, on };

struct lamp_table {
    static constexpr ax::transition<lamp> transitions[] = {{lamp::off, lamp::on}};
    static constexpr std::string_view name(lamp l) {
#ifdef AX_REJECT
        return l == lamp::off || l == lamp::on ? "on" : "";
#else
        return l == lamp::off ? "off" : "on";
#endif
    }
};

int main() { return ax::state_machine<lamp_table>::allowed(lamp::off, lamp::on) ? 0 : 1; }
