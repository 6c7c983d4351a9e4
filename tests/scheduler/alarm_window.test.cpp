// SPDX-License-Identifier: MIT
// The memory of ids: bounded, and never so full that a lane is not served.
#include "ax/scheduler/detail/alarm_window.hpp"

#include "support/catch.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

using ax::detail::lane_state;

namespace {

constexpr ax::time_point start{1'767'225'600'000ms};
constexpr std::array<bool, ax::priority_classes> all_classes{true, true, true, true};

using window_type = ax::detail::alarm_window<lane_state>;

struct lanes_bench {
    window_type window{start, 5min, 100, {50, 25, 15, 10}};
    std::array<lane_state, 3> lanes{};
    std::uint64_t last_id = 0;

    lanes_bench() {
        for (std::size_t i = 0; i != lanes.size(); ++i) {
            lanes[i].lane = ax::make_lane(ax::type_number{static_cast<std::uint32_t>(i + 1)}, ax::priority::normal);
            window.set_runnable(lanes[i], true);
        }
    }
    ax::alarm next(lane_state const& lane, ax::duration after) {
        return {ax::task_id{++last_id}, lane.lane, start + after};
    }
    /// Reads the lane's next page from `rows`, which are in order, as a storage does. Returns how many it got.
    std::size_t read(lane_state& lane, std::vector<ax::alarm> const& rows, ax::time_point now = start) {
        auto const request = window.next_page(lane, now);
        REQUIRE(request.has_value());
        std::vector<ax::alarm> page;
        std::optional<ax::time_point> beyond;
        for (auto const& a : rows) {
            if (std::pair{a.run_at, a.id} <= std::pair{request->after.run_at, request->after.id}) continue;
            if (a.run_at > request->until) {
                if (page.size() < request->limit) beyond = a.run_at;
                break;
            }
            if (page.size() == request->limit) break;
            page.push_back(a);
        }
        window.loaded(*request, page, beyond, now);
        return page.size();
    }
    /// What comes due by `now`, in order.
    std::vector<ax::task_id> drain(ax::time_point now) {
        window.turn(now);
        std::vector<ax::task_id> ids;
        while (auto const task = window.draw(all_classes)) ids.push_back(task->id);
        return ids;
    }
};

} // namespace

TEST_CASE("alarm_window that is full of one lane has room for every other", "[scheduler][memory]") {
    lanes_bench b;
    auto& [flood, second, third] = b.lanes;
    for (auto& lane : b.lanes) b.read(lane, {});
    for (int i = 0; i != 1'000; ++i) b.window.arm(flood, b.next(flood, 10s), start);
    CHECK(flood.in_memory == 100);
    for (int i = 0; i != 1'000; ++i) b.window.arm(second, b.next(second, 5s), start);
    CHECK(second.in_memory == window_type::reserve);
    b.window.arm(third, b.next(third, 1s), start);
    CHECK(third.in_memory == 1);
    CHECK(b.window.size() == 100 + window_type::reserve + 1); // the bound: `most`, and the reserve for each lane
    CHECK(b.drain(start + 1s) == std::vector{ax::task_id{2'001}});
}

TEST_CASE("alarm_window that is full reads a page for a lane that has little", "[scheduler][memory]") {
    lanes_bench b;
    auto& [flood, second, third] = b.lanes;
    b.read(flood, {});
    for (int i = 0; i != 1'000; ++i) b.window.arm(flood, b.next(flood, 10s), start);
    std::vector<ax::alarm> rows;
    for (int i = 0; i != 500; ++i) rows.push_back(b.next(second, 2s + i * 1ms));
    CHECK(b.read(second, rows) == window_type::reserve);
    CHECK(second.in_memory == window_type::reserve);
    CHECK_FALSE(b.window.next_page(second, start).has_value()); // it has enough for now
    CHECK_FALSE(b.window.next_read(second).has_value());
    // All of it comes, in order, however full the memory stays.
    std::vector<ax::task_id> seen;
    for (int ms = 2'000; ms <= 2'499; ++ms) {
        for (auto const id : b.drain(start + ms * 1ms)) seen.push_back(id);
        if (second.in_memory < window_type::reserve / 2 && seen.size() + second.in_memory < rows.size())
            b.read(second, rows, start + ms * 1ms);
    }
    REQUIRE(seen.size() == rows.size());
    for (std::size_t i = 0; i != seen.size(); ++i) CHECK(seen[i] == rows[i].id);
    CHECK(flood.in_memory == 100);
}

TEST_CASE("alarm_window forgets nothing of what it had no room for", "[scheduler][memory]") {
    lanes_bench b;
    auto& flood = b.lanes[0];
    std::vector<ax::alarm> rows;
    b.read(flood, rows);
    int const count = GENERATE(101, 1'000); // one too many, and many
    CAPTURE(count);
    for (int i = 0; i != count; ++i) {
        rows.push_back(b.next(flood, 1s + i * 1ms));
        b.window.arm(flood, rows.back(), start);
    }
    CHECK(b.window.size() == 100);
    std::vector<ax::task_id> seen;
    for (int ms = 1'000; ms <= 2'000; ++ms) {
        auto const now = start + ms * 1ms;
        for (auto const id : b.drain(now)) seen.push_back(id);
        auto const read_at = b.window.next_read(flood);
        if (read_at && *read_at <= now) b.read(flood, rows, now);
    }
    REQUIRE(seen.size() == rows.size());
    for (std::size_t i = 0; i != seen.size(); ++i) CHECK(seen[i] == rows[i].id);
}

TEST_CASE("alarm_window in which a lane is taken out gives nothing of it, and has its room again",
          "[scheduler][memory]") {
    lanes_bench b;
    auto& [first, second, third] = b.lanes;
    for (auto& lane : b.lanes) b.read(lane, {});
    b.window.arm(first, b.next(first, 0s), start);
    b.window.arm(second, b.next(second, 0s), start);
    b.window.arm(first, b.next(first, 1s), start);
    b.window.set_runnable(first, false);
    b.window.arm(first, b.next(first, 0s), start);
    CHECK(b.drain(start + 1s) == std::vector{ax::task_id{2}});
    CHECK(first.in_memory == 0);
    CHECK(b.window.size() == 0);
    CHECK_FALSE(b.window.next_page(first, start).has_value());
}
