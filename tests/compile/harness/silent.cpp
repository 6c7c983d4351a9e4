// SPDX-License-Identifier: MIT
#ifdef AX_REJECT
static_assert(false, "some words");
#endif
