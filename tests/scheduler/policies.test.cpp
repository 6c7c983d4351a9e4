// SPDX-License-Identifier: MIT
#include "ax/scheduler/policies.hpp"

#include "support/catch.hpp"

#include <chrono>
#include <string>

using namespace std::chrono_literals;

namespace {

ax::errc kind_of(auto&& call) {
    try {
        call();
    } catch (ax::error const& e) {
        return e.kind();
    }
    return {};
}

} // namespace

TEST_CASE("a misfire policy goes through its text and back", "[scheduler]") {
    for (auto const& p : {ax::misfire::skip, ax::misfire::run_once, ax::misfire::run_all(1),
                          ax::misfire::run_all(ax::misfire::most_run_all), ax::misfire::within(1ms),
                          ax::misfire::within(ax::duration::max())}) {
        CAPTURE(to_text(p));
        CHECK(ax::misfire::parse(to_text(p)) == p);
    }
    CHECK(to_text(ax::misfire::skip) == "skip"); // what stores hold: never to change
    CHECK(to_text(ax::misfire::run_once) == "run_once");
    CHECK(to_text(ax::misfire::run_all(100)) == "run_all 100");
    CHECK(to_text(ax::misfire::within(10min)) == "within 600000");
}

TEST_CASE("misfire policies are equal where kind and number are", "[scheduler]") {
    CHECK(ax::misfire_policy{} == ax::misfire::run_once);
    CHECK(ax::misfire::run_all(3) == ax::misfire::run_all(3));
    CHECK_FALSE(ax::misfire::run_all(3) == ax::misfire::run_all(4));
    CHECK_FALSE(ax::misfire::run_all(1) == ax::misfire::within(1ms));
    CHECK_FALSE(ax::misfire::skip == ax::misfire::run_once);
}

TEST_CASE("a misfire policy that makes no sense is refused by name", "[scheduler]") {
    CHECK_THROWS_WITH(ax::misfire::run_all(0), Catch::Matchers::Contains("run_all(0)"));
    CHECK_THROWS_WITH(ax::misfire::run_all(10'001), Catch::Matchers::Contains("run_all(10001)"));
    CHECK_THROWS_WITH(ax::misfire::within(0s), Catch::Matchers::Contains("within(0 ms)"));
    CHECK_THROWS_WITH(ax::misfire::within(-1s), Catch::Matchers::Contains("within(-1000 ms)"));
    CHECK(kind_of([] { (void)ax::misfire::run_all(0); }) == ax::errc::invalid_argument);
    CHECK(kind_of([] { (void)ax::misfire::within(0s); }) == ax::errc::invalid_argument);
    CHECK(kind_of([] { (void)ax::misfire_policy{ax::misfire_policy::action::run_all}; }) == ax::errc::invalid_argument);
    CHECK(ax::misfire::within(1us) == ax::misfire::within(1ms)); // rounded up, as all lengths of time
}

TEST_CASE("a text that is no misfire policy is corrupt", "[scheduler]") {
    for (std::string const text :
         {"", "Skip", "skip ", "run_all", "run_all ", "run_all 0", "run_all -1", "run_all 10001", "run_all 5x",
          "run_all 5 6", "within", "within 0", "within 1e3", "never", "run_once 1", "within 99999999999999999999"}) {
        CAPTURE(text);
        CHECK(kind_of([&] { (void)ax::misfire::parse(text); }) == ax::errc::corrupt);
    }
}

TEST_CASE("an overlap policy goes through its text and back", "[scheduler]") {
    using namespace ax::overlap;
    std::string all;
    for (auto const p : {allow, skip, queue_one, queue_all, cancel_running, replace_running}) {
        CHECK(ax::overlap::parse(to_text(p)) == p);
        all += std::string(to_text(p)) + ' ';
    }
    CHECK(all == "allow skip queue_one queue_all cancel_running replace_running ");
    for (std::string const text : {"", "SKIP", "queue", "queue_one "}) {
        CAPTURE(text);
        CHECK(kind_of([&] { (void)ax::overlap::parse(text); }) == ax::errc::corrupt);
    }
}

TEST_CASE("schedule options are written in their order, and each has a default", "[scheduler]") {
    ax::schedule_options const plain;
    CHECK(plain.misfire == ax::misfire::run_once);
    CHECK(plain.overlap == ax::overlap::skip);
    CHECK(plain.spread.value() == 0ms);
    CHECK_FALSE(plain.depends_on_past);

    ax::schedule_options const chosen{.misfire = ax::misfire::within(10min),
                                      .overlap = ax::overlap::queue_one,
                                      .spread = 30s,
                                      .priority = ax::priority::high,
                                      .retry = ax::retry::fixed(1s),
                                      .tags = {"nightly"},
                                      .depends_on_past = true};
    CHECK(chosen.misfire.late_by() == 10min);
    CHECK_NOTHROW(ax::detail::check_schedule_options("s", chosen));
}

TEST_CASE("a negative spread is refused, with the schedule's name", "[scheduler]") {
    auto const check = [] { ax::detail::check_schedule_options("nightly", ax::schedule_options{.spread = -1s}); };
    CHECK_THROWS_WITH(check(), Catch::Matchers::Contains("spread") && Catch::Matchers::Contains("nightly"));
    CHECK(kind_of(check) == ax::errc::invalid_argument);
}

// A bad constant does not compile; a good one costs nothing.
static_assert(ax::misfire::run_all(5).most() == 5);
static_assert(ax::misfire::within(std::chrono::minutes{1}).late_by() == std::chrono::minutes{1});
