// SPDX-License-Identifier: MIT
// reject: a good reason
#ifdef AX_REJECT
static_assert(false, "a good reason");
#endif
