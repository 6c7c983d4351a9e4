// SPDX-License-Identifier: MIT
#include "ax/scheduler/context.hpp"

#include "support/catch.hpp"

#include <stop_token>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

using namespace std::chrono_literals;

namespace {

constexpr ax::time_point noon{1'767'268'800'000ms};
inline constexpr ax::task_type<std::string> letter{"letter"};
inline constexpr ax::task_type<> plain{"plain"};

static_assert(!std::is_copy_constructible_v<ax::context> && !std::is_copy_assignable_v<ax::context>);

/// An attempt as a worker has it in hands, and what its handler sees of it.
struct attempt_bench {
    ax::detail::claimed_attempt attempt;
    ax::context ctx{attempt, noon, 100};

    attempt_bench() {
        attempt.record.id = ax::task_id{7};
        attempt.record.attempts = 3;
        attempt.record.fence = ax::fence_token{11};
        attempt.record.run_at = noon - 5s;
        attempt.record.payload = R"("text")";
    }
};

ax::errc kind_of_failure(auto&& call) {
    try {
        call();
    } catch (ax::error const& e) {
        return e.kind();
    }
    FAIL("no ax::error was thrown");
    return {};
}

} // namespace

TEST_CASE("a context tells of its attempt what was claimed", "[scheduler][context]") {
    attempt_bench b;
    CHECK(b.ctx.task().id == ax::task_id{7});
    CHECK(b.ctx.attempt() == 3);
    CHECK(b.ctx.fence() == ax::fence_token{11});
    CHECK(b.ctx.payload() == R"("text")");
    CHECK(b.ctx.scheduled_at() == noon - 5s);
    b.attempt.record.scheduled_at = noon - 1h; // a schedule's nominal instant goes before
    CHECK(b.ctx.scheduled_at() == noon - 1h);
}

TEST_CASE("a stop token that was never taken is known not to have been", "[scheduler][context]") {
    attempt_bench b;
    b.attempt.request_stop(ax::detail::stop_reason::timed_out);
    CHECK_FALSE(b.attempt.token_taken.load());
    auto const token = b.ctx.stop_token();
    CHECK(b.attempt.token_taken.load());
    CHECK(token.stop_requested());
}

TEST_CASE("an attempt is its own until its lease is lost, whatever else asks it to stop", "[scheduler][context]") {
    using ax::detail::stop_reason;
    for (auto const why :
         {stop_reason::cancelled, stop_reason::timed_out, stop_reason::deadline, stop_reason::stopping}) {
        attempt_bench b;
        CHECK(b.ctx.still_mine());
        b.attempt.request_stop(why);
        CHECK(b.ctx.still_mine());
    }
    attempt_bench b;
    b.attempt.request_stop(stop_reason::lease_lost);
    CHECK_FALSE(b.ctx.still_mine());
}

TEST_CASE("the log takes lines up to its limit, and counts those that it leaves out", "[scheduler][context]") {
    attempt_bench b;
    b.ctx.log("one");
    b.ctx.log("two {}", 2);
    b.ctx.log("braces {}"); // a text alone is no format
    CHECK(b.attempt.log == "one\ntwo 2\nbraces {}\n");
    auto const left = ax::log_limit - b.attempt.log.size();
    b.ctx.log(std::string(left, 'x')); // with its line end one byte too long
    CHECK(b.attempt.log_dropped == 1);
    b.ctx.log(std::string(left - 1, 'x'));
    CHECK(b.attempt.log.size() == ax::log_limit);
    b.ctx.log("");
    CHECK(b.attempt.log_dropped == 2);
    CHECK(b.attempt.log.size() == ax::log_limit);
}

TEST_CASE("progress keeps the latest, with a note of bounded, clean text", "[scheduler][context]") {
    attempt_bench b;
    b.ctx.progress(0.25, "first");
    b.ctx.progress(0.5);
    CHECK(b.attempt.progress == 0.5);
    CHECK(b.attempt.progress_note.empty());
    b.ctx.progress(1, std::string(5'000, 'n') + "\xFF");
    CHECK(b.attempt.progress_note.size() == ax::longest_key);
}

TEST_CASE("a follow-up is checked when it is given, and what is refused is none", "[scheduler][context]") {
    attempt_bench b;
    b.ctx.submit(letter, "hello", {.key = "k", .run_at = noon + 3h});
    b.ctx.submit(plain, {}, {.delay = 15min});
    REQUIRE(b.attempt.follow_ups.size() == 2);
    CHECK(b.attempt.follow_ups[0].type == "letter");
    CHECK(b.attempt.follow_ups[0].task.payload == R"("hello")");
    CHECK(b.attempt.follow_ups[0].task.key == "k");
    CHECK(b.attempt.follow_ups[0].task.run_at == noon + 3h);
    CHECK(b.attempt.follow_ups[1].type == "plain");
    CHECK(b.attempt.follow_ups[1].task.delay == 15min); // counts from the commit of the success
    CHECK(kind_of_failure([&] { b.ctx.submit(plain, {}, {.delay = -1s}); }) == ax::errc::invalid_argument);
    CHECK(kind_of_failure([&] { b.ctx.submit(letter, std::string(200, 'x')); }) == ax::errc::invalid_argument);
    CHECK(kind_of_failure([&] { b.ctx.submit(plain, {}, {.run_at = noon, .delay = 1s}); }) == ax::errc::invalid_argument);
    CHECK(kind_of_failure([&] { b.ctx.submit(plain, {}, {.delay = ax::latest_time - noon + 1ms}); }) ==
          ax::errc::invalid_argument);
    CHECK(b.attempt.follow_ups.size() == 2);
}

TEST_CASE("a result that is refused leaves the one before", "[scheduler][context]") {
    attempt_bench b;
    b.ctx.result({{"a", 1}});
    CHECK(b.attempt.result == R"({"a":1})");
    CHECK(kind_of_failure([&] { b.ctx.result(std::string(200, 'x')); }) == ax::errc::invalid_argument);
    CHECK(kind_of_failure([&] { b.ctx.result(std::string("\xFF")); }) == ax::errc::invalid_argument);
    CHECK(b.attempt.result == R"({"a":1})");
    b.ctx.result(2);
    CHECK(b.attempt.result == "2");
}

TEST_CASE("a context may be shared with threads while its handler runs", "[scheduler][context][threads]") {
    attempt_bench b;
    {
        std::vector<std::jthread> helpers;
        for (int t = 0; t != 4; ++t)
            helpers.emplace_back([&b, t] {
                for (int i = 0; i != 100; ++i) {
                    b.ctx.log("line of {}", t);
                    b.ctx.progress(i / 100.0, "note");
                    b.ctx.submit(plain, {});
                    b.ctx.result(i);
                    if (b.ctx.stop_token().stop_requested()) return;
                }
            });
    }
    std::size_t lines = 0;
    for (char const c : b.attempt.log) lines += c == '\n';
    CHECK(lines == 400);
    CHECK(b.attempt.log.size() == 400 * std::string("line of 0\n").size());
    CHECK(b.attempt.follow_ups.size() == 400);
}
