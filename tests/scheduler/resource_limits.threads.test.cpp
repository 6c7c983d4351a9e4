// SPDX-License-Identifier: MIT
// Limits while many threads submit and many workers end: a race here would let one too many in, or forget one.
#include "scheduler/support.hpp"

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

using namespace test;

namespace {

/// How many are inside at once, and the most that ever were.
struct crowd {
    std::atomic<int> inside{0};
    std::atomic<int> most{0};

    void visit() {
        auto const now = ++inside;
        for (auto seen = most.load(); seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::yield();
        --inside;
    }
};

} // namespace

TEST_CASE("with many threads no limit is exceeded, and nobody is left behind", "[scheduler][limits][threads]") {
    constexpr int callers = 4;
    constexpr int each = 100;
    crowd of_type;
    crowd of_tag;
    crowd of_resource;
    std::latch all_done{3 * callers * each};
    ax::scheduler tasks{ax::memory_storage{}, ax::options{.workers = 8}};
    tasks.set_resource("gpu", 3);
    tasks.limit_tag("eu", {.concurrency = 2});
    ax::task_type<> const tagged{"tagged"};
    tasks.on(probe, [&] { of_type.visit(), all_done.count_down(); }, {.concurrency = 2});
    tasks.on(other, [&] { of_resource.visit(), all_done.count_down(); }, {.resources = {{"gpu", 1}}});
    tasks.on(tagged, [&] { of_tag.visit(), all_done.count_down(); });
    tasks.start();
    {
        std::latch go{callers};
        std::vector<std::jthread> threads;
        for (int t = 0; t != callers; ++t)
            threads.emplace_back([&] {
                go.arrive_and_wait();
                for (int i = 0; i != each; ++i) {
                    tasks.submit(probe);
                    tasks.submit(other);
                    tasks.submit(tagged, {}, {.tags = {"eu"}});
                }
            });
    }
    all_done.wait(); // each has run
    tasks.stop(60s);
    CHECK(of_type.most <= 2);
    CHECK(of_tag.most <= 2);
    CHECK(of_resource.most <= 3);
    CHECK(tasks.verify().empty());
    CHECK(tasks.list({.state = task_state::ready}).empty());
}
