// SPDX-License-Identifier: MIT
#include "forwards.hpp"

std::error_category const* category_seen_backwards();
int sum_of_own_globals();

// Inline state is one object in the whole program, whichever unit looks at it.
int main() { return &ax::error_category() == category_seen_backwards() && sum_of_own_globals() == 3 ? 0 : 1; }
