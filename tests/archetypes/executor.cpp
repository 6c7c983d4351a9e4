// SPDX-License-Identifier: MIT
// The least that models ax::executor, and what lacks one thing. Compiled, never linked.
#include "ax/dispatch/executor.hpp"
#include "ax/core/unique_function.hpp"

namespace {

struct executor_archetype {
    executor_archetype() = delete;
    executor_archetype(executor_archetype const&) = delete;
    executor_archetype& operator=(executor_archetype const&) = delete;
    ~executor_archetype() = delete;
    void execute(ax::unique_function<void()>);
};
static_assert(ax::executor<executor_archetype>);

// The answer is not looked at.
struct answering_executor {
    bool execute(ax::unique_function<void()>);
};
static_assert(ax::executor<answering_executor>);

struct executor_without_execute {
    void post(ax::unique_function<void()>);
};
static_assert(!ax::executor<executor_without_execute>);

// Work need not be copyable. (A parameter of type std::function is no near miss: its constructor accepts what it then
// fails to compile.)
struct executor_that_copies {
    template <class F>
    void execute(F const& f) requires(requires { F(f); });
};
static_assert(!ax::executor<executor_that_copies>);

// Work is handed over, not lent.
struct executor_that_borrows {
    template <class F>
    void execute(F& f);
};
static_assert(!ax::executor<executor_that_borrows>);

struct executor_with_arguments {
    void execute(ax::unique_function<void()>, int priority);
};
static_assert(!ax::executor<executor_with_arguments>);

static_assert(!ax::executor<int>);

} // namespace
