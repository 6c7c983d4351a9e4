// SPDX-License-Identifier: MIT
// reject: a good reason
#ifdef AX_REJECT
static_assert(false, "some words");
#endif
