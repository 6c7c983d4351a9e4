// SPDX-License-Identifier: MIT
// The first program: an order is closed two seconds from now, even if the process is killed meanwhile.
#include <ax/ax.hpp>

#include <iostream>
#include <semaphore>

using namespace std::chrono_literals;

struct close_order {
    int order_id = 0;
    NLOHMANN_DEFINE_TYPE_INTRUSIVE_WITH_DEFAULT(close_order, order_id)
};
inline constexpr ax::task_type<close_order> closing{"close-order"};

int main() {
    std::binary_semaphore ran{0};
    ax::sqlite_scheduler tasks{ax::sqlite_storage{"shop.db"}};
    tasks.on(closing,
             [&](close_order const& order, ax::context& ctx) { // to throw would mean: failed, try again later
                 std::cout << "order " << order.order_id << ": closed by attempt " << ctx.attempt() << std::endl;
                 ran.release();
             },
             {.retry = ax::retry::exponential(1min).cap(30min).jitter(0.1).attempts(5), .timeout = 10s});
    tasks.start();

    auto const order = tasks.submit(closing, {42}, {.key = "close-42", .delay = 2s});
    if (order.outcome == ax::submit_outcome::inserted)
        std::cout << "order 42: stored, will be closed in two seconds" << std::endl;
    else // the key keeps the task that has it: a second start submits nothing anew
        std::cout << "order 42: known already, " << ax::to_string(order.state) << std::endl;

    if (!ax::is_terminal(order.state)) ran.acquire();
    tasks.stop(10s);
    std::cout << "order 42: " << ax::to_string(tasks.find(order.id)->state) << std::endl;
}
