// SPDX-License-Identifier: MIT
// reject: error
static_assert(false, "never right");
