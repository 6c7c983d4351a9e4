// SPDX-License-Identifier: MIT
// What a durable task costs in SQLite, beside the same rows in the obvious table: a random unique text key, a full
// index on state and time, and a statement of its own for each step.
#include "ax/storage/sqlite.hpp"

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

using writer = ax::sqlite_storage::writer;
constexpr ax::time_point t0{ax::duration{1'767'225'600'000}};

/// A directory of its own below AX_BENCH_DIR (or the temporary one): the disk is what is measured.
class workplace {
  public:
    workplace() {
        auto const* const chosen = std::getenv("AX_BENCH_DIR");
        auto const root = chosen == nullptr ? std::filesystem::temp_directory_path() : std::filesystem::path{chosen};
        auto pattern = (root / "ax-bench-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) std::abort();
        path_ = pattern;
    }
    ~workplace() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    std::string file() const { return (path_ / "store.db").string(); }

  private:
    std::filesystem::path path_;
};

/// A store on top of a backlog of future tasks.
struct bench {
    explicit bench(std::size_t backlog) {
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

    workplace place;
    ax::sqlite_storage store{place.file()};
    ax::type_number type{};
};

void insert_durable(benchmark::State& state) {
    bench b(0);
    auto const tasks = b.make(static_cast<std::size_t>(state.range(0)));
    for (auto _ : state) b.insert(tasks, ax::commit::durable);
    state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(insert_durable)->Arg(1)->Arg(1'000)->UseRealTime();

/// Insert and settle durably, claim and start lazily, as the scheduler does.
void whole_life(benchmark::State& state) {
    bench b(static_cast<std::size_t>(state.range(1)));
    auto const tasks = b.make(static_cast<std::size_t>(state.range(0)));
    for (auto _ : state) {
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
    state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(whole_life)->ArgsProduct({{1, 100, 500}, {0, 1'000'000}})->UseRealTime();

/// The baseline.
void whole_life_obvious_table(benchmark::State& state) {
    workplace place;
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
    bench b(100'000);
    ax::alarm after{{}, ax::make_lane(b.type, ax::priority_class::normal), {}};
    for (auto _ : state) {
        auto const page = b.store.upcoming(after, ax::latest_time, 1'000);
        after = page.size() == 1'000 ? page.back() : ax::alarm{{}, after.lane, {}};
        benchmark::DoNotOptimize(page.data());
    }
    state.SetItemsProcessed(state.iterations() * 1'000);
}
BENCHMARK(upcoming);

} // namespace
