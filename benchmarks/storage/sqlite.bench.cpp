// SPDX-License-Identifier: MIT
// What a durable task costs in SQLite, beside the same rows in the obvious table: a random unique text key, a full
// index on state and time, and a statement of its own for each step.
#include "ax/storage/sqlite.hpp"

#include "workplace.hpp"

#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

using writer = ax::sqlite_storage::writer;
constexpr ax::time_point t0{ax::duration{1'767'225'600'000}};

/// A store on top of a backlog of future tasks.
struct bench_store {
    explicit bench_store(std::size_t backlog) {
        store.transact(ax::commit::lazy, [&](writer& w) { type = w.type("probe"); });
        std::mt19937_64 random(1);
        for (std::size_t done = 0; done < backlog; done += 10'000) {
            auto tasks = make(10'000);
            for (auto& task : tasks) task.run_at = t0 + std::chrono::seconds{3'600 + random() % 36'000};
            insert(tasks, ax::commit::lazy);
        }
    }

    std::vector<ax::new_task> make(std::size_t count) const {
        ax::new_task task;
        task.type = type;
        task.payload = std::string(60, 'x');
        task.run_at = t0;
        return std::vector<ax::new_task>(count, task);
    }
    std::vector<ax::insertion> insert(std::vector<ax::new_task> const& tasks, ax::commit kind) {
        std::vector<ax::insertion> answer;
        ax::alarms due;
        store.transact(kind, [&](writer& w) {
            due.clear();
            answer = w.insert(tasks, t0, due);
        });
        return answer;
    }

    bench::workplace place;
    ax::sqlite_storage store{place.file()};
    ax::type_number type{};
};

void insert_durable(benchmark::State& state) {
    bench_store b(0);
    auto const tasks = b.make(static_cast<std::size_t>(state.range(0)));
    for (auto _ : state) b.insert(tasks, ax::commit::durable);
    state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(insert_durable)->Arg(1)->Arg(1'000)->UseRealTime();

/// Insert and settle durably, claim and start lazily, as the scheduler does.
void live(bench_store& b, std::vector<ax::new_task> const& tasks) {
    std::vector<ax::claim_request> requests;
    for (auto const& each : b.insert(tasks, ax::commit::durable)) requests.push_back({each.id, false});
    ax::claim_answer answer;
    b.store.transact(ax::commit::lazy, [&](writer& w) { answer = w.claim(requests, {ax::node_id{7}, t0, t0, 0}); });
    std::vector<ax::start_mark> starts;
    std::vector<ax::attempt_end> ends;
    for (auto const& task : answer.claimed) {
        starts.push_back({task.id, task.fence, t0});
        ends.emplace_back();
        ends.back().id = task.id;
        ends.back().fence = task.fence;
        ends.back().started = ends.back().ended = t0;
    }
    b.store.transact(ax::commit::lazy, [&](writer& w) { w.start(starts, t0); });
    b.store.transact(ax::commit::durable, [&](writer& w) { w.settle(ends, t0); });
}

void whole_life(benchmark::State& state) {
    bench_store b(static_cast<std::size_t>(state.range(1)));
    auto const tasks = b.make(static_cast<std::size_t>(state.range(0)));
    for (auto _ : state) live(b, tasks);
    state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(whole_life)->ArgsProduct({{1, 100, 500}, {0, 1'000'000}})->UseRealTime();

/// Keys that lie anywhere in their index, as hashes and order numbers of several sources do.
void give_keys(std::vector<ax::new_task>& tasks, std::mt19937_64& random) {
    for (auto& task : tasks) task.key = "order-" + std::to_string(random());
}

/// 1,000 tasks with keys in one commit, on top of 200,000; by processor time. Beside it the same without keys.
void insert_keyed(benchmark::State& state) {
    bench_store b(0);
    std::mt19937_64 random(1);
    auto tasks = b.make(1'000);
    bool const with_keys = state.range(0) != 0;
    for (int i = 0; i != 200; ++i) {
        if (with_keys) give_keys(tasks, random);
        b.insert(tasks, ax::commit::lazy);
    }
    for (auto _ : state) {
        if (with_keys) {
            state.PauseTiming();
            give_keys(tasks, random);
            state.ResumeTiming();
        }
        b.insert(tasks, ax::commit::lazy);
    }
    state.SetItemsProcessed(state.iterations() * 1'000);
}
BENCHMARK(insert_keyed)->Arg(0)->Arg(1)->Iterations(200);

/// The whole life of tasks whose key is held while they are kept (0), or until they end (1); by processor time.
void keyed_life(benchmark::State& state) {
    bench_store b(200'000);
    std::mt19937_64 random(1);
    auto tasks = b.make(500);
    for (auto& task : tasks) task.key_scope = static_cast<ax::key_scoping>(state.range(0));
    for (auto _ : state) {
        state.PauseTiming();
        give_keys(tasks, random);
        state.ResumeTiming();
        live(b, tasks);
    }
    state.SetItemsProcessed(state.iterations() * 500);
}
BENCHMARK(keyed_life)->Arg(0)->Arg(1)->Iterations(200);

/// Each of 1,000 tasks meets a holder that waits: kept, replaced, put off.
void meet_holder(benchmark::State& state) {
    bench_store b(0);
    std::mt19937_64 random(1);
    auto tasks = b.make(1'000);
    give_keys(tasks, random);
    b.insert(tasks, ax::commit::lazy);
    for (auto& task : tasks) task.on_conflict = ax::conflict_policy{static_cast<ax::conflict_action>(state.range(0))};
    for (auto _ : state) b.insert(tasks, ax::commit::lazy);
    state.SetItemsProcessed(state.iterations() * 1'000);
}
BENCHMARK(meet_holder)->Arg(0)->Arg(2)->Arg(3);

/// The baseline.
void whole_life_obvious_table(benchmark::State& state) {
    bench::workplace place;
    ax::detail::sqlite_connection db{place.file()};
    db.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536; "
               "PRAGMA wal_autocheckpoint = 20000;"
               "CREATE TABLE task (id TEXT PRIMARY KEY, state TEXT, run_at INT, attempts INT, payload TEXT, ended INT);"
               "CREATE INDEX task_state ON task (state, run_at)");
    auto const insert = db.prepare("INSERT INTO task VALUES (?1, 'ready', ?2, 0, ?3, NULL)");
    auto const claim = db.prepare("UPDATE task SET state = 'claimed', attempts = attempts + 1 WHERE id = ?1");
    auto const start = db.prepare("UPDATE task SET state = 'running' WHERE id = ?1");
    auto const settle = db.prepare("UPDATE task SET state = 'done', ended = ?2 WHERE id = ?1");
    std::mt19937_64 random(1);
    std::string const payload(60, 'x');
    auto const fill = [&](std::vector<std::string> const& ids, ax::time_point when) {
        db.execute("BEGIN IMMEDIATE");
        for (auto const& id : ids) ax::detail::sqlite_run(db, insert.get(), {id, when, payload}).finish();
        db.execute("COMMIT");
    };
    auto const new_ids = [&](std::int64_t count) {
        std::vector<std::string> ids;
        for (std::int64_t i = 0; i < count; ++i)
            ids.push_back(std::to_string(random()) + "-" + std::to_string(random()));
        return ids;
    };
    for (std::int64_t done = 0; done < state.range(1); done += 10'000)
        fill(new_ids(10'000), t0 + std::chrono::hours{1});
    auto const each = [&](std::vector<std::string> const& ids, sqlite3_stmt* statement, bool timed) {
        db.execute("BEGIN IMMEDIATE");
        for (auto const& id : ids) {
            if (timed)
                ax::detail::sqlite_run(db, statement, {id, t0}).finish();
            else
                ax::detail::sqlite_run(db, statement, {id}).finish();
        }
        db.execute("COMMIT");
    };
    for (auto _ : state) {
        auto const ids = new_ids(state.range(0));
        fill(ids, t0);
        each(ids, claim.get(), false);
        each(ids, start.get(), false);
        each(ids, settle.get(), true);
    }
    state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(whole_life_obvious_table)->ArgsProduct({{1, 100, 500}, {0, 1'000'000}})->UseRealTime();

void upcoming(benchmark::State& state) {
    bench_store b(100'000);
    ax::alarm after{{}, ax::make_lane(b.type, ax::priority_class::normal), {}};
    for (auto _ : state) {
        auto const page = b.store.upcoming(after, ax::latest_time, 1'000);
        after = page.size() == 1'000 ? page.back() : ax::alarm{{}, after.lane, {}};
        benchmark::DoNotOptimize(page.data());
    }
    state.SetItemsProcessed(state.iterations() * 1'000);
}
BENCHMARK(upcoming);

/// One batch of the clean-up: how long a claim may have to wait for it.
void prune(benchmark::State& state) {
    bench_store b(0);
    auto const tasks = b.make(1'000);
    for (int i = 0; i != 40; ++i) {
        auto const answers = b.insert(tasks, ax::commit::lazy);
        b.store.transact(ax::commit::lazy, [&](writer& w) {
            for (auto const& one : answers) w.cancel(one.id, t0);
        });
    }
    ax::prune_terms terms;
    terms.type = b.type;
    terms.ended_by = t0;
    std::int64_t pruned = 0;
    for (auto _ : state)
        b.store.transact(ax::commit::lazy, [&](writer& w) {
            auto const answer = w.prune(terms, 200);
            pruned += static_cast<std::int64_t>(answer.pruned);
            terms.after = answer.after;
        });
    state.SetItemsProcessed(pruned);
}
BENCHMARK(prune)->Iterations(190)->UseRealTime();

/// What stays and is only passed over.
void prune_nothing(benchmark::State& state) {
    bench_store b(0);
    auto const tasks = b.make(1'000);
    for (int i = 0; i != 40; ++i) {
        auto const answers = b.insert(tasks, ax::commit::lazy);
        b.store.transact(ax::commit::lazy, [&](writer& w) {
            for (auto const& one : answers) w.cancel(one.id, t0 + std::chrono::hours{1});
        });
    }
    ax::prune_terms terms;
    terms.type = b.type;
    terms.ended_by = t0;
    for (auto _ : state)
        b.store.transact(ax::commit::lazy, [&](writer& w) {
            auto const answer = w.prune(terms, 200);
            terms.after = answer.more ? answer.after : ax::task_id{};
        });
    state.SetItemsProcessed(state.iterations() * 1'000);
}
BENCHMARK(prune_nothing)->UseRealTime();

/// Counts of a million tasks.
void counts(benchmark::State& state) {
    bench_store b(static_cast<std::size_t>(state.range(0)));
    for (auto _ : state) benchmark::DoNotOptimize(b.store.counts().data());
}
BENCHMARK(counts)->Arg(10'000)->Arg(1'000'000);

/// The search for impossible states.
void verify(benchmark::State& state) {
    bench_store b(100'000);
    for (auto _ : state) benchmark::DoNotOptimize(b.store.verify().data());
    state.SetItemsProcessed(state.iterations() * 100'000);
}
BENCHMARK(verify);

} // namespace
