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
}

} // namespace archetypes
