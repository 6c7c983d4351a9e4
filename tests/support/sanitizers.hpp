// SPDX-License-Identifier: MIT
// AX_TEST_SANITIZED is 1 where the address or the thread sanitizer is at work, else 0.
//
// Under them no test forks a process with several threads and goes on in the child: their allocators (those of Clang 14
// and GCC 12) do not take their locks for a fork, as that of the C library does, and now and then the child waits for
// one that a thread of its parent had held.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define AX_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define AX_TEST_SANITIZED 1
#endif
#endif
#if !defined(AX_TEST_SANITIZED)
#define AX_TEST_SANITIZED 0
#endif
