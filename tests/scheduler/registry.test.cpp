// SPDX-License-Identifier: MIT
#include "ax/scheduler/registry.hpp"

#include "scheduler/support.hpp"

namespace {

std::vector<std::string> seen;

} // namespace

AX_TASK(registered_parcel, test::parcel, p, ctx) {
    seen.push_back("parcel " + std::to_string(p.number) + " attempt " + std::to_string(ctx.attempt()));
}

AX_TASK(registered_probe, ax::no_payload, nothing, ctx) { seen.push_back("probe " + std::string(ctx.payload())); }

AX_CRON(registered_nightly, "0 0 2 * * *", ctx) { seen.push_back("nightly " + std::string(ctx.task().schedule)); }

using namespace test;

TEST_CASE("handlers and schedules declared at namespace scope are adopted by one call", "[scheduler][registry]") {
    seen.clear();
    bench b;
    CHECK(b->adopt_registered() == 3);
    b->submit(registered_parcel, {5, ""});
    b->submit(registered_probe);
    b.poll();
    CHECK(seen.size() == 2);
    CHECK(std::count(seen.begin(), seen.end(), "parcel 5 attempt 1") == 1);
    CHECK(std::count(seen.begin(), seen.end(), "probe ") == 1);
    seen.clear();
    b.run_for(48h);
    CHECK(seen == std::vector<std::string>{"nightly registered_nightly", "nightly registered_nightly"});
    CHECK(b->schedules().size() == 1);
    CHECK(b->adopt_registered() == 0); // they have their handlers
}

TEST_CASE("another file names a registered task type by its word", "[scheduler][registry]") {
    seen.clear();
    bench b;
    b->adopt_registered();
    b->submit(ax::task_type<parcel>{"registered_parcel"}, {6, ""});
    b.poll();
    CHECK(seen == std::vector<std::string>{"parcel 6 attempt 1"});
}

TEST_CASE("registered handlers serve a new scheduler on the same store, and its schedule is the same one",
          "[scheduler][registry]") {
    seen.clear();
    bench b;
    b->adopt_registered();
    b.run_for(1h);
    auto const next = b->schedules().at(0).next;
    b.restart([](simulated& tasks) { tasks.adopt_registered(); });
    CHECK(b->schedules().at(0).next == next);
    b.run_for(2h);
    CHECK(seen.size() == 1);
}
