// reject: has no row for this state and event
// SPDX-License-Identifier: MIT
#include "ax/state/state_machine.hpp"

enum class lamp { off, on };
enum class press { on, off };

struct lamp_table {
    static constexpr ax::transition<lamp, press> transitions[] = {
        {lamp::off, press::on, lamp::on},
        {lamp::on, press::off, lamp::off},
    };
};

int main() {
    using lamps = ax::state_machine<lamp_table>;
#ifdef AX_REJECT
    constexpr auto after = lamps::fire<lamp::off, press::off>();
#else
    constexpr auto after = lamps::fire<lamp::off, press::on>();
#endif
    return after == lamp::on ? 0 : 1;
}
