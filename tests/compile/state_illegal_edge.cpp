// reject: no edge from the first state to the second
// SPDX-License-Identifier: MIT
#include "ax/state/state_machine.hpp"

enum class light { red, green, yellow };

struct light_table {
    static constexpr ax::transition<light> transitions[] = {
        {light::red, light::green},
        {light::green, light::yellow},
        {light::yellow, light::red},
    };
};

int main() {
    using lights = ax::state_machine<light_table>;
#ifdef AX_REJECT
    constexpr auto after = lights::go<light::green, light::red>();
#else
    constexpr auto after = lights::go<light::green, light::yellow>();
#endif
    return after == light::yellow ? 0 : 1;
}
