// SPDX-License-Identifier: MIT
// reject: error
static_assert(true, "never wrong");
