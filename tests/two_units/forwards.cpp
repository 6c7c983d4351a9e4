// SPDX-License-Identifier: MIT
#include "forwards.hpp"

std::error_category const* category_seen_backwards();
int sum_of_own_globals();
int least_of_own_macros();

// Inline state is one object in the whole program, whichever unit looks at it.
int main() {
    bool const one_category = &ax::error_category() == category_seen_backwards();
    return one_category && sum_of_own_globals() == 3 && least_of_own_macros() == 0 ? 0 : 1;
}
