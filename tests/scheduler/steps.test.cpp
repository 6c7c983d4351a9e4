// SPDX-License-Identifier: MIT
// context::step(): what is done once stays done.
#include "ax/scheduler/context.hpp"

#include "scheduler/support.hpp"

#include <map>
#include <set>
#include <thread>

namespace {

using namespace test;

ax::handler_options often() { return {.retry = ax::retry::fixed(1s).attempts(10)}; }

} // namespace

TEST_CASE("a later attempt gets the value of a finished step, and does not call it", "[scheduler][once]") {
    bench b;
    int charged = 0;
    int mailed = 0;
    std::vector<std::string> receipts;
    b->on(
        probe,
        [&](ax::context& ctx) {
            auto const receipt = ctx.step("charge", [&] { return "receipt-" + std::to_string(++charged); });
            receipts.push_back(receipt);
            ctx.step("mail", [&] {
                if (++mailed < 3) throw std::runtime_error("no mail today");
            });
        },
        often());
    auto const id = b->submit(probe).id;
    b.run_for(1min);
    CHECK(b.state(id) == task_state::succeeded);
    CHECK(charged == 1);
    CHECK(mailed == 3);
    CHECK(receipts == std::vector<std::string>{"receipt-1", "receipt-1", "receipt-1"});
    CHECK(b->steps(id) == std::vector<ax::kept_step>{{"charge", "\"receipt-1\""}, {"mail", "null"}});
    CHECK(b->history(id).at(0).error == "no mail today");
}

TEST_CASE("a finished step outlives a crash, an interruption and a retry by hand", "[scheduler][once]") {
    bench b;
    int calls = 0;
    bool give_up = true;
    auto const prepare = [&](simulated& tasks) {
        tasks.on(probe, [&](ax::context& ctx) {
            ctx.step("charge", [&] { ++calls; });
            if (give_up) throw ax::give_up{"for now"};
        });
    };
    SECTION("a crash") {
        give_up = false;
        auto const id = b->submit(probe).id;
        auto const claimed = claim_elsewhere(b.store, id, b.now());
        b.store.transact(ax::commit::durable,
                         [&](store_type::writer& w) { CHECK(w.keep_step(id, claimed.fence, "charge", "null")); });
        b.restart(prepare);
        b.run_for(10s);
        CHECK(b.state(id) == task_state::succeeded);
        CHECK(calls == 0);
    }
    SECTION("a repair that took the count of attempts back") {
        give_up = false;
        auto const id = b->submit(probe).id;
        auto const claimed = claim_elsewhere(b.store, id, b.now(), false, 0); // in flight, and no node has claimed it
        b.store.transact(ax::commit::durable,
                         [&](store_type::writer& w) { CHECK(w.keep_step(id, claimed.fence, "charge", "null")); });
        auto found = b->verify({.repair = true});
        REQUIRE(found.size() == 1);
        CHECK(found[0].repaired);
        CHECK(b.get(id).attempts == 0);
        b.restart(prepare);
        b.run_for(10s);
        CHECK(b.state(id) == task_state::succeeded);
        CHECK(b.get(id).attempts == 1);
        CHECK(calls == 0);
    }
    SECTION("a retry by hand") {
        prepare(*b);
        auto const id = b->submit(probe).id;
        b.poll();
        CHECK(b.state(id) == task_state::dead);
        give_up = false;
        CHECK(b->retry(id) == change_outcome::done);
        b.poll();
        CHECK(b.state(id) == task_state::succeeded);
        CHECK(calls == 1);
    }
}

TEST_CASE("a step gives back any value that JSON can hold", "[scheduler][once]") {
    bench b;
    std::vector<std::string> seen;
    b->on(
        probe,
        [&](ax::context& ctx) {
            auto const number = ctx.step("number", [] { return 0.1 + 0.2; });
            auto const text = ctx.step("text", [] { return std::string{"\xC3\xA9\"\n"}; });
            auto const what = ctx.step("what", [] { return parcel{7, "fragile"}; });
            auto const many = ctx.step("many", [] { return std::map<std::string, int>{{"a", 1}}; });
            auto const json = ctx.step("json", [] { return nlohmann::json{{"x", nullptr}}; });
            auto const truth = ctx.step("truth", [] { return true; });
            std::string const held = "by reference";
            ctx.step("reference", [&]() -> std::string const& { return held; });
            CHECK(number == 0.1 + 0.2);
            CHECK(text == "\xC3\xA9\"\n");
            CHECK(what.number == 7);
            CHECK(what.note == "fragile");
            CHECK(many.at("a") == 1);
            CHECK(json.at("x").is_null());
            CHECK(truth);
            seen.push_back("all");
            if (seen.size() == 1) throw std::runtime_error("again");
        },
        often());
    auto const id = b->submit(probe).id;
    b.run_for(10s);
    CHECK(b.state(id) == task_state::succeeded);
    CHECK(seen.size() == 2);
}

TEST_CASE("a step that throws can be tried again, in the same attempt too", "[scheduler][once]") {
    bench b;
    int calls = 0;
    int value = 0;
    b->on(probe, [&](ax::context& ctx) {
        for (int tries = 0;; ++tries) try {
                value = ctx.step("flaky", [&] {
                    if (++calls < 3) throw std::runtime_error("not yet");
                    return calls;
                });
                break;
            } catch (std::runtime_error const&) {
                if (tries == 5) throw;
            }
    });
    auto const id = b->submit(probe).id;
    b.poll();
    CHECK(b.state(id) == task_state::succeeded);
    CHECK(value == 3);
}

TEST_CASE("steps may lie in steps", "[scheduler][once]") {
    bench b;
    int inner = 0;
    int outer = 0;
    b->on(
        probe,
        [&](ax::context& ctx) {
            ctx.step("outer", [&] {
                ctx.step("inner", [&] { ++inner; });
                if (++outer == 1) throw std::runtime_error("between");
            });
        },
        often());
    auto const id = b->submit(probe).id;
    b.run_for(10s);
    CHECK(b.state(id) == task_state::succeeded);
    CHECK(inner == 1);
    CHECK(outer == 2);
}

TEST_CASE("a name stands for one step of an attempt", "[scheduler][once]") {
    bench b;
    int calls = 0;
    SECTION("a loop under one name fails instead of doing its first round only") {
        b->on(probe, [&](ax::context& ctx) {
            for (int i = 0; i != 3; ++i) ctx.step("charge", [&] { ++calls; });
        });
    }
    SECTION("also where the value is an earlier attempt's") {
        b->on(
            probe,
            [&](ax::context& ctx) {
                ctx.step("charge", [&] { ++calls; });
                if (ctx.attempt() == 1) throw std::runtime_error("once");
                ctx.step("charge", [&] { ++calls; });
            },
            often());
    }
    SECTION("also within itself") {
        b->on(probe, [&](ax::context& ctx) {
            ++calls;
            ctx.step("charge", [&] { ctx.step("charge", [] {}); });
        });
    }
    auto const id = b->submit(probe).id;
    b.run_for(2s);
    CHECK(calls == 1);
    CHECK(contains(b.get(id).last_error, "step \"charge\" of task 1 was used before in this attempt"));
}

TEST_CASE("a step is refused with a reason", "[scheduler][once]") {
    ax::options chosen;
    chosen.payload_limit = 100;
    bench b{chosen};
    std::string reason;
    SECTION("an empty name") {
        b->on(probe, [&](ax::context& ctx) { ctx.step("", [] {}); });
        reason = "step name is empty";
    }
    SECTION("a name too long") {
        b->on(probe, [&](ax::context& ctx) { ctx.step(std::string(256, 'x'), [] {}); });
        reason = "has 256 bytes, at most 255 are allowed";
    }
    SECTION("a name that is no text") {
        b->on(probe, [&](ax::context& ctx) { ctx.step("a\xFF", [] {}); });
        reason = "is not valid UTF-8 at offset 1";
    }
    SECTION("a value too large") {
        b->on(probe, [&](ax::context& ctx) { ctx.step("report", [] { return std::string(99, 'x'); }); });
        reason = "value of step \"report\" has 101 bytes, at most 100 are allowed";
    }
    SECTION("a value that JSON cannot hold") {
        b->on(probe, [&](ax::context& ctx) { ctx.step("report", [] { return std::string("\xFF"); }); });
        reason = "value of step \"report\": ";
    }
    auto const id = b->submit(probe).id;
    b.poll();
    CHECK(b.state(id) == task_state::failed);
    CHECK(contains(b.get(id).last_error, reason));
    CHECK(contains(b.get(id).last_error, "invalid argument"));
    CHECK(b->steps(id).empty());
}

TEST_CASE("a value of the largest size is kept", "[scheduler][once]") {
    ax::options chosen;
    chosen.payload_limit = 100;
    bench b{chosen};
    b->on(probe, [&](ax::context& ctx) { ctx.step("report", [] { return std::string(98, 'x'); }); });
    auto const id = b->submit(probe).id;
    b.poll();
    CHECK(b.state(id) == task_state::succeeded);
}

TEST_CASE("a stored value that is of another type fails the attempt and names the step", "[scheduler][once]") {
    bench b;
    int calls = 0;
    b->on(
        probe,
        [&](ax::context& ctx) {
            if (ctx.attempt() == 1) {
                ctx.step("charge", [] { return std::string("text"); });
                throw std::runtime_error("once");
            }
            ctx.step("charge", [&] { return ++calls; });
        },
        often());
    auto const id = b->submit(probe).id;
    b.run_for(2s);
    CHECK(calls == 0);
    CHECK(contains(b.get(id).last_error, "step \"charge\" of task 1 kept a value that cannot be read"));
    CHECK(contains(b.get(id).last_error, "stored data is corrupt"));
}

TEST_CASE("a first attempt reads no steps, and each step is one commit", "[scheduler][once]") {
    bench b;
    std::size_t reads = 0;
    std::size_t commits = 0;
    bool fail = true;
    b->on(
        probe,
        [&](ax::context& ctx) {
            b.store.hooks().before_read = [&] { ++reads; };
            auto const before = b.store.transacts();
            ctx.step("a", [] {});
            ctx.step("b", [] {});
            commits = b.store.transacts() - before;
            b.store.hooks().before_read = {};
            if (fail) throw std::runtime_error("once");
        },
        often());
    b->submit(probe);
    b.poll();
    CHECK(reads == 0);
    CHECK(commits == 2);
    fail = false;
    b.run_for(2s);
    CHECK(reads == 1);
    CHECK(commits == 0);
}

TEST_CASE("an attempt that has lost its task keeps no step and is void", "[scheduler][once]") {
    hosted_bench b;
    std::optional<ax::errc> code;
    bool mine = true;
    bool asked = false;
    b.tasks.on(probe, [&](ax::context& ctx) {
        auto const token = ctx.stop_token();
        ax::reclaim_terms const terms{ax::node_id{0xBEEF}, 3, b.clock.now()};
        b.store.transact(ax::commit::durable, [&](store_type::writer& w) { w.reclaim(terms); });
        claim_elsewhere(b.store, ctx.task().id, b.clock.now());
        try {
            ctx.step("charge", [] { return 7; });
        } catch (ax::error const& e) {
            code = e.kind();
            mine = ctx.still_mine();
            asked = token.stop_requested();
            throw;
        }
    });
    auto const id = b.tasks.submit(probe).id;
    b.settle();
    CHECK(code == ax::errc::not_mine);
    CHECK_FALSE(mine);
    CHECK(asked);
    CHECK(b.tasks.steps(id).empty());
    CHECK(b.state(id) == task_state::dispatched); // the other's
    CHECK(b.events.back() == ax::event_kind::refused);
}

TEST_CASE("a step whose value cannot be stored fails the attempt", "[scheduler][once]") {
    bench b;
    int calls = 0;
    b->on(
        probe,
        [&](ax::context& ctx) {
            b.store.hooks().before_keep_step = [&] {
                b.store.hooks().before_keep_step = {};
                throw ax::error{ax::errc::unavailable, "the disk is away"};
            };
            if (ctx.attempt() > 1) b.store.hooks().before_keep_step = {};
            ctx.step("charge", [&] { ++calls; });
        },
        often());
    auto const id = b->submit(probe).id;
    b.poll();
    CHECK(contains(b.get(id).last_error, "the disk is away"));
    b.run_for(5s);
    CHECK(b.state(id) == task_state::succeeded);
    CHECK(calls == 2);
}

TEST_CASE("a handler's own threads may have steps of their own at the same time", "[scheduler][once][threads]") {
    bench b;
    std::atomic<int> calls{0};
    b->on(
        probe,
        [&](ax::context& ctx) {
            std::vector<std::thread> threads;
            std::atomic<int> sum{0};
            for (int i = 0; i != 8; ++i)
                threads.emplace_back([&, i] {
                    sum += ctx.step("part-" + std::to_string(i), [&] {
                        ++calls;
                        return i;
                    });
                });
            for (auto& thread : threads) thread.join();
            CHECK(sum == 28);
            if (ctx.attempt() == 1) throw std::runtime_error("once");
        },
        often());
    auto const id = b->submit(probe).id;
    b.run_for(5s);
    CHECK(b.state(id) == task_state::succeeded);
    CHECK(calls == 8);
    CHECK(b->steps(id).size() == 8);
}
