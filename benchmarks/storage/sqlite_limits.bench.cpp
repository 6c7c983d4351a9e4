// SPDX-License-Identifier: MIT
// What a claim costs that others wait behind: the same whether one waits or 100,000. The time of the first size of a
// function, in the same run, is the baseline of the others; plain tasks, which wait for nothing, are that of all.
#include "ax/storage/sqlite.hpp"

#include "workplace.hpp"

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using writer = ax::sqlite_storage::writer;
constexpr ax::time_point t0{ax::duration{1'767'225'600'000}};

class line {
  public:
    line() {
        store_.emplace(place_.file());
        store_->transact(ax::commit::lazy, [&](writer& w) { task_.type = w.type("probe"); });
        task_.payload = std::string(60, 'x');
        task_.run_at = t0;
    }

    void limit(std::string const& tag) {
        task_.tags = {tag};
        store_->transact(ax::commit::lazy, [&](writer& w) { w.limit_tag(tag, {1, {}}, t0); });
    }
    void route(std::string const& key) { task_.route_key = key; }

    /// `count` tasks, the first of them in flight and the others behind it.
    void fill(std::size_t count) {
        for (std::size_t done = 0; done != count;) {
            auto const n = (std::min)(count - done, std::size_t{10'000});
            done += n;
            std::vector<ax::claim_request> requests;
            store_->transact(ax::commit::lazy, [&](writer& w) {
                ax::alarms due;
                requests.clear();
                for (auto const& each : w.insert(std::vector<ax::new_task>(n, task_), t0, due))
                    requests.push_back({each.id, false});
                auto const answer = w.claim(requests, {ax::node_id{7}, t0, t0, 0});
                for (auto const& task : answer.claimed) held_.push_back({task.id, task.fence});
            });
        }
    }

    /// One comes, one ends, the next one is claimed; one commit.
    void turn() {
        store_->transact(ax::commit::lazy, [&](writer& w) {
            ax::alarms due;
            auto const added = w.insert({&task_, 1}, t0, due);
            ax::claim_request const last{added[0].id, false};
            claim(w, last); // behind the others it waits
            ax::attempt_end end;
            end.id = held_.back().id;
            end.fence = held_.back().fence;
            end.started = end.ended = t0;
            held_.pop_back();
            for (auto const& next : w.settle({&end, 1}, t0).due) claim(w, {next.id, false});
        });
        if (held_.size() != 1) std::abort();
    }

  private:
    struct holder {
        ax::task_id id;
        ax::fence_token fence;
    };

    void claim(writer& w, ax::claim_request const& request) {
        for (auto const& task : w.claim({&request, 1}, {ax::node_id{7}, t0, t0, 0}).claimed)
            held_.push_back({task.id, task.fence});
    }

    bench::workplace place_;
    std::optional<ax::sqlite_storage> store_;
    ax::new_task task_;
    std::vector<holder> held_;
};

void plain(benchmark::State& state) {
    line all;
    all.fill(1);
    for (auto _ : state) all.turn();
}
BENCHMARK(plain);

void behind_one_limit(benchmark::State& state) {
    line all;
    all.limit("tenant-7");
    all.fill(static_cast<std::size_t>(state.range(0)));
    for (auto _ : state) all.turn();
}
BENCHMARK(behind_one_limit)->Arg(2)->Arg(1'000)->Arg(100'000);

void behind_one_route_key(benchmark::State& state) {
    line all;
    all.route("account-7");
    all.fill(static_cast<std::size_t>(state.range(0)));
    for (auto _ : state) all.turn();
}
BENCHMARK(behind_one_route_key)->Arg(2)->Arg(1'000)->Arg(100'000);

} // namespace
