// SPDX-License-Identifier: MIT
// What a task of a workflow costs the storage beyond a plain one: stored in one transaction with all others, and taken
// through its life in commits of at most 256. Plain tasks go the same way and are the baseline.
#include "ax/storage/sqlite.hpp"

#include "workplace.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

using writer = ax::sqlite_storage::writer;
constexpr ax::time_point t0{ax::duration{1'767'225'600'000}};

enum class shape { plain, chain, fan, layers };

class bench_store {
  public:
    bench_store() {
        store_.emplace(place_.file());
        store_->transact(ax::commit::lazy, [&](writer& w) {
            task_.type = w.type("probe");
            head_.type = w.type("ax:workflow");
        });
        task_.payload = std::string(60, 'x');
        task_.run_at = head_.run_at = t0;
    }

    void make(shape form, std::size_t size) {
        plain_.assign(form == shape::plain ? size : 0, task_);
        auto const plan = std::make_shared<ax::workflow_plan>();
        plan->name = "bench";
        for (std::uint32_t i = 0; form != shape::plain && i != size; ++i) {
            ax::new_member one;
            one.task = task_;
            one.name = "task " + std::to_string(i);
            constexpr std::uint32_t width = 10;
            if (form == shape::chain && i > 0) one.after = {i - 1};
            if (form == shape::fan && i > 0 && i + 1 < size) one.after = {0};
            if (form == shape::fan && i + 1 == size)
                for (std::uint32_t p = 1; p + 1 < size; ++p) one.after.push_back(p);
            if (form == shape::layers && i >= width) // each hangs on three of the layer before
                for (std::uint32_t p = 0; p != 3; ++p) one.after.push_back(i / width * width - width + (i + p) % width);
            plan->members.push_back(std::move(one));
        }
        head_.workflow = plan;
    }

    void insert() {
        store_->transact(ax::commit::lazy, [&](writer& w) {
            due_.clear();
            if (plain_.empty())
                w.insert({&head_, 1}, t0, due_);
            else
                w.insert(plain_, t0, due_);
        });
    }

    /// All that there is, in commits of at most 256 that claim, start and settle.
    std::size_t run() {
        std::size_t done = 0;
        std::size_t next = 0;
        auto waiting = std::move(due_);
        while (next != waiting.size()) {
            auto const end = (std::min)(waiting.size(), next + 256);
            store_->transact(ax::commit::lazy, [&](writer& w) {
                std::vector<ax::claim_request> requests;
                for (auto i = next; i != end; ++i) requests.push_back({waiting[i].id, false});
                auto const answer = w.claim(requests, {ax::node_id{7}, t0, t0, 0});
                std::vector<ax::start_mark> starts;
                std::vector<ax::attempt_end> ends;
                for (auto const& task : answer.claimed) {
                    starts.push_back({task.id, task.fence, t0});
                    auto& one = ends.emplace_back();
                    one.id = task.id;
                    one.fence = task.fence;
                    one.started = one.ended = t0;
                }
                w.start(starts, t0);
                auto const settled = w.settle(ends, t0);
                waiting.insert(waiting.end(), settled.due.begin(), settled.due.end());
                done += ends.size();
            });
            next = end;
        }
        return done;
    }

  private:
    bench::workplace place_;
    std::optional<ax::sqlite_storage> store_;
    ax::new_task task_;
    ax::new_task head_;
    std::vector<ax::new_task> plain_;
    ax::alarms due_;
};

void insert(benchmark::State& state, shape form) {
    auto const size = static_cast<std::size_t>(state.range(0));
    std::size_t tasks = 0;
    for (auto _ : state) {
        state.PauseTiming();
        {
            bench_store all;
            all.make(form, size);
            state.ResumeTiming();
            all.insert();
            state.PauseTiming();
        }
        tasks += size;
        state.ResumeTiming();
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(tasks));
}

void live(benchmark::State& state, shape form) {
    auto const size = static_cast<std::size_t>(state.range(0));
    std::size_t tasks = 0;
    for (auto _ : state) {
        state.PauseTiming();
        {
            bench_store all;
            all.make(form, size);
            all.insert();
            state.ResumeTiming();
            auto const done = all.run();
            state.PauseTiming();
            if (done != size) std::abort();
            tasks += done;
        }
        state.ResumeTiming();
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(tasks));
}

#define AX_WORKFLOW_BENCH(what, form)                                                                                  \
    BENCHMARK_CAPTURE(what, form, shape::form)->Arg(1'000)->Arg(10'000)->Unit(benchmark::kMillisecond)
AX_WORKFLOW_BENCH(insert, plain);
AX_WORKFLOW_BENCH(insert, chain);
AX_WORKFLOW_BENCH(insert, fan);
AX_WORKFLOW_BENCH(insert, layers);
AX_WORKFLOW_BENCH(live, plain);
AX_WORKFLOW_BENCH(live, chain);
AX_WORKFLOW_BENCH(live, fan);
AX_WORKFLOW_BENCH(live, layers);

} // namespace
