// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

namespace ax {

namespace detail {

/// The least that an executor has to take: it can be moved and called, and nothing else.
struct executable {
    executable(executable&&) noexcept;
    executable& operator=(executable&&) noexcept;
    executable(executable const&) = delete;
    executable& operator=(executable const&) = delete;
    ~executable();
    void operator()();
};

} // namespace detail

/// Runs pieces of work somewhere: on threads of its own, in the loop of a host, or on the spot.
///
///  1. execute(f) takes any `f` that can be moved and called with nothing. It returns before, during or after the call.
///  2. It calls `f` once and then destroys it. A hand-over that is refused ends with an exception, and `f` is destroyed
///     without a call. What was taken is called even if the executor is told to stop, unless its documentation says
///     that it drops work; dropped work is destroyed.
///  3. What happened before execute() was called is visible to `f`.
///  4. execute() may be called by several threads at once, and from within `f`.
///
/// In return `f` lets no exception out; what becomes of one is the executor's own affair.
template <class E>
concept executor = requires(E& e, detail::executable f) {
    e.execute(std::move(f));
};

/// Calls each piece of work at once, on the thread that hands it over: for tests and for hosts with one thread.
///
/// Work that hands over more work nests on the stack, so a long chain should go to another executor. What work throws
/// passes through.
///
/// Threads: safe.
struct inline_executor {
    template <class F>
    void execute(F f) const {
        f();
    }
};

static_assert(executor<inline_executor>);

} // namespace ax
