// SPDX-License-Identifier: MIT
int options = 1;
int storage = 2;

#include "forwards.hpp"

int sum_of_own_globals();
int sum_of_own_globals() { return options + storage; }
