// SPDX-License-Identifier: MIT
// The scheduler needs nothing of a storage, a clock and an executor but what their concepts grant. Compiled, never
// linked.
#include "ax/scheduler/scheduler.hpp"

#include "archetypes/storage_archetype.hpp"

namespace archetypes {

struct executor_archetype {
    executor_archetype() = delete;
    executor_archetype(executor_archetype const&) = delete;
    executor_archetype& operator=(executor_archetype const&) = delete;
    void operator&() const = delete;

    template <class F>
    void execute(F f) requires std::invocable<F&> {
        static_cast<void>(f); // a body, because the types that it is called with have no linkage
    }
};

} // namespace archetypes

template class ax::detail::engine<archetypes::storage_archetype, archetypes::clock_archetype>;
template class ax::scheduler<archetypes::storage_archetype, archetypes::clock_archetype>;
template class ax::scheduler<archetypes::storage_archetype, archetypes::clock_archetype,
                             archetypes::executor_archetype>;

template class ax::scheduler<archetypes::transactional_archetype, archetypes::clock_archetype>;

namespace archetypes { // with linkage: nothing here is called

using tasks = ax::scheduler<storage_archetype, clock_archetype>;

void use_the_templates(tasks& s, ax::task_type<> const& plain, ax::task_type<int> const& numbered) {
    s.on(plain, [] {});
    s.on(numbered, [](int, ax::context& ctx) { ctx.submit(ax::task_type<int>{"next"}, 1); });
    s.submit(plain);
    s.submit_all(numbered, std::vector<int>{1, 2});
    s.schedule("s", ax::every{std::chrono::seconds{1}}, numbered, 1);
    s.pause(plain);
    s.resume(plain);
    s.on(ax::task_type<>{"own"}, [](ax::context& ctx) {
        ctx.commit_with([](sqlite3*) {});
        ctx.step("nothing", [] {});
        return ctx.step("number", [] { return 1; });
    });
}

void use_the_host(ax::scheduler<transactional_archetype, clock_archetype>& s, ax::task_type<int> const& numbered,
                  transactional_archetype::host_connection host) {
    ax::submitted_in answer = s.submit_in(host, numbered, 1, {.key = "k"});
    answer.committed();
}

template <class Tasks>
concept submits_in_the_host = requires(Tasks& s, ax::task_type<> const& plain, sqlite3* db) {
    s.submit_in(db, plain);
};
static_assert(!submits_in_the_host<tasks>);

} // namespace archetypes
