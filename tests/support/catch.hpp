// SPDX-License-Identifier: MIT
// Catch2 as this machine has it: version 3 from package managers, 2.13 on Debian 12.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
