// SPDX-License-Identifier: MIT
// What runs and when stands in a JSON document, which an operator changes without a compiler; the code has the
// handlers. This one is a text here; a program reads it from a file.
#include <ax/ax.hpp>

#include <chrono>
#include <iostream>
#include <semaphore>
#include <string>

using namespace std::chrono_literals;

struct customer {
    int id = 0;
    std::string day;
    NLOHMANN_DEFINE_TYPE_INTRUSIVE_WITH_DEFAULT(customer, id, day)
};
inline constexpr ax::task_type<customer> open_account{"open-account"};
inline constexpr ax::task_type<customer> send_sms{"send-sms"};
inline constexpr ax::task_type<customer> welcome{"welcome"};
inline constexpr ax::task_type<customer> report{"report"};

constexpr auto document = R"({
    "task_types": [
        {"name": "send-sms", "owner": "messaging", "retry": {"fixed": "20ms", "attempts": 2}, "timeout": "10s"}
    ],
    "workflows": [
        {"name": "register", "tasks": [
            {"name": "account", "type": "open-account", "payload": {"id": 7}},
            {"name": "sms", "type": "send-sms", "payload": {"id": 7}, "after": ["account"]},
            {"name": "done", "type": "welcome", "payload": {"id": 7}, "after": ["account", "sms"], "when": "all_done"}]}
    ],
    "schedules": [
        {"name": "nightly", "cron": "0 3 * * *", "zone": "Europe/Berlin", "type": "report",
         "payload": {"day": "{{ds - 1d}}"}, "spread": "15m", "misfire": {"within": "6h"}}
    ]
})";

int main() {
    ax::sqlite_scheduler tasks{ax::sqlite_storage{"definitions.db"}};
    for (auto const& each : tasks.declare(document).schedules) // at each start: what is as it was stays as it is
        std::cout << each.name << (each.outcome == ax::declare_outcome::created ? ": created\n" : ": as before\n");

    std::binary_semaphore ended{0};
    tasks.on(open_account, [](customer const& c) { std::cout << "account " << c.id << std::endl; });
    tasks.on(send_sms, [](customer const&, ax::context& ctx) { // twice, as the document says
        std::cout << "sms, attempt " << ctx.attempt() << ": no answer" << std::endl;
        throw std::runtime_error("no answer");
    });
    tasks.on(welcome, [&](customer const& c) {
        std::cout << "welcome, " << c.id << std::endl;
        ended.release();
    });
    tasks.on(report, [](customer const& c) { std::cout << "report of " << c.day << std::endl; });
    tasks.start();

    auto const answer = tasks.submit(tasks.workflow_named("register"), {.key = "register-7"});
    if (answer.outcome == ax::submit_outcome::inserted) ended.acquire();
    tasks.stop(10s);
    std::cout << "register-7: " << ax::to_string(tasks.find(answer.id)->state) << std::endl;
}
