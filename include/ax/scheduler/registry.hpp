// SPDX-License-Identifier: MIT
// Handlers declared at namespace scope, wherever they are, and taken in by one call of scheduler::adopt_registered():
//
//     AX_TASK(close_order_task, close_order, order, ctx) { ... order.order_id ... }
//     AX_CRON(nightly_report, "0 2 * * *", ctx) { ... }
//
// Each stands in one source file. AX_TASK also defines the task type `close_order_task`, whose name is that word, so
// that the rest of the file can submit it; another file names it by `ax::task_type<close_order>{"close_order_task"}`.
#pragma once

#include "ax/scheduler/context.hpp"
#include "ax/task/task_type.hpp"

#include <string>
#include <string_view>

namespace ax {

namespace detail {

/// One declaration. They form a list through their own members, so that nothing is allocated before main() and nothing
/// is destroyed at unload.
struct registered_handler {
    using function = void (*)(context&, std::string_view);

    std::string_view name;
    function call;
    std::string_view cron; ///< empty: none
    registered_handler const* next;

    static registered_handler const*& first() noexcept {
        static registered_handler const* head = nullptr;
        return head;
    }

    registered_handler(std::string_view task_name, function handler, std::string_view expression) noexcept
        : name(task_name), call(handler), cron(expression), next(first()) {
        first() = this;
    }
    registered_handler(registered_handler const&) = delete;
    registered_handler& operator=(registered_handler const&) = delete;
};

} // namespace detail

} // namespace ax

/// Declares a task type and its handler: AX_TASK(name, Payload, payload, ctx) { body }.
#define AX_TASK(name_, Payload_, payload_, ctx_)                                                                       \
    [[maybe_unused]] static constexpr ax::task_type<Payload_> name_{#name_};                                           \
    static void ax_task_##name_([[maybe_unused]] Payload_ const& payload_, [[maybe_unused]] ax::context& ctx_);        \
    static ax::detail::registered_handler const ax_registered_##name_{                                                 \
        #name_,                                                                                                        \
        [](ax::context& ax_context, std::string_view ax_text) {                                                        \
            ax_task_##name_(ax::detail::decode_payload<Payload_>(ax_text, #name_), ax_context);                        \
        },                                                                                                             \
        {}};                                                                                                           \
    static void ax_task_##name_([[maybe_unused]] Payload_ const& payload_, [[maybe_unused]] ax::context& ctx_)

/// Declares a task type without payload, its handler, and a schedule of the same name in UTC:
/// AX_CRON(name, "0 2 * * *", ctx) { body }.
#define AX_CRON(name_, expression_, ctx_)                                                                              \
    [[maybe_unused]] static constexpr ax::task_type<> name_{#name_};                                                   \
    static void ax_task_##name_([[maybe_unused]] ax::context& ctx_);                                                   \
    static ax::detail::registered_handler const ax_registered_##name_{                                                 \
        #name_, [](ax::context& ax_context, std::string_view) { ax_task_##name_(ax_context); }, expression_};          \
    static void ax_task_##name_([[maybe_unused]] ax::context& ctx_)
