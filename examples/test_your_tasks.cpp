// SPDX-License-Identifier: MIT
// A month of a shop's tasks in a bad world, within seconds: the process crashes, commits fail or lose their replies,
// clocks jump. test_your_tasks [SEED] [MONTHS] [NODES] says what it found; a seed that fails is run again with the same
// end. With several nodes, some are down or stand still while the others go on.
#include <ax/testing/simulation.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;

struct order {
    int number = 0;
    NLOHMANN_DEFINE_TYPE_INTRUSIVE(order, number)
};

constexpr ax::task_type<order> charge{"charge"};
constexpr ax::task_type<order> ship{"ship"};
constexpr ax::task_type<> report{"report"};

/// A month from one seed. Returns whether all was well.
bool month(std::uint64_t seed, std::size_t nodes) {
    ax::testing::simulation<> sim{{.seed = seed, .nodes = nodes}};
    std::set<int> charged; // what the card company knows: it outlives our process
    std::set<int> shipped;
    int placed = 0;
    int reports = 0;

    sim.at_start([&](auto& tasks) { // the same lines as in main()
        tasks.on(charge,
                 [&](order const& o, ax::context& ctx) {
                     sim.work(2s);
                     if (sim.by_chance(0.1)) throw std::runtime_error("the card company does not answer");
                     charged.insert(o.number); // by its number: to charge it twice is to charge it once
                     ctx.submit(ship, o, {.key = "ship-" + std::to_string(o.number)});
                 },
                 {.retry = ax::retry::fixed(10min).attempts(50)});
        tasks.on(ship, [&](order const& o) {
            if (!charged.contains(o.number)) sim.judge().fault("order " + std::to_string(o.number) + " went unpaid");
            shipped.insert(o.number);
        });
        tasks.on(report, [&] { ++reports; });
        tasks.schedule("nightly", ax::cron{"0 3 * * *"}, report);
    });
    sim.each(1h, [&](auto& tasks) {
        int const number = placed + 1;
        tasks.submit(charge, {number}, {.key = "charge-" + std::to_string(number)});
        placed = number; // where the submit has thrown, the same one is asked again
    });

    sim.run_for(24h * 30);
    sim.settle(24h);

    for (int number = 1; number <= placed; ++number)
        if (!shipped.contains(number)) sim.judge().fault("order " + std::to_string(number) + " was not shipped");
    std::printf("seed %llu: %d orders, %zu shipped, %d reports, %zu processes, %s\n",
                static_cast<unsigned long long>(seed), placed, shipped.size(), reports, sim.starts(),
                sim.sound() ? "all is well" : "FAILED");
    if (!sim.sound()) std::puts(sim.report().c_str());
    return sim.sound();
}

int main(int argc, char** argv) {
    auto const seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
    auto const months = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
    std::size_t const nodes = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
    bool well = true;
    for (auto i = seed; i != seed + months; ++i) well = month(i, nodes) && well;
    return well ? 0 : 1;
}
