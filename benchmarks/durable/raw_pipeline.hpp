// SPDX-License-Identifier: MIT
// The raw limit: the fastest pipeline of durable tasks on SQLite that a hand can write, and nothing more.
//
// One table whose ids rise with time, a partial index of what is due later, prepared statements, group commit: the
// first caller in commits for all who came meanwhile, outcomes and submits in the same transaction. What is due at once
// is inserted as claimed (it is known to be so after a crash, and its row enters no index); what is due later is
// claimed a batch in one commit. Finished rows are kept. No fences, attempts, retries, types, limits, history or
// errors: a failing statement ends the program.
#pragma once

#include "durable/task.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace bench {

/// A connection whose failures end the program: a benchmark that went on would measure nothing.
class raw_database {
  public:
    raw_database(std::string const& file, bool power_loss) {
        check(sqlite3_open(file.c_str(), &db_));
        run("PRAGMA journal_mode = WAL");
        run(power_loss ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
        run("PRAGMA cache_size = -131072");
        run("PRAGMA wal_autocheckpoint = 20000");
        run("PRAGMA secure_delete = OFF");
        run("PRAGMA temp_store = MEMORY");
    }
    raw_database(raw_database const&) = delete;
    raw_database& operator=(raw_database const&) = delete;
    ~raw_database() {
        for (auto* statement : statements_) sqlite3_finalize(statement);
        sqlite3_close(db_);
    }

    void run(char const* sql) { check(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr)); }

    sqlite3_stmt* prepare(char const* sql) {
        sqlite3_stmt* made = nullptr;
        check(sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT, &made, nullptr));
        statements_.push_back(made);
        return made;
    }

    /// Runs a statement that gives no row, and makes it ready for the next.
    void step(sqlite3_stmt* statement) {
        if (sqlite3_step(statement) != SQLITE_DONE) check(sqlite3_errcode(db_));
        sqlite3_reset(statement);
    }

  private:
    void check(int code) const {
        if (code == SQLITE_OK) return;
        std::cerr << "raw pipeline: " << sqlite3_errmsg(db_) << '\n';
        std::abort();
    }

    sqlite3* db_ = nullptr;
    std::vector<sqlite3_stmt*> statements_;
};

class raw_pipeline {
  public:
    /// @param done  Called after each commit that recorded successes, with their number.
    raw_pipeline(std::string const& file, std::size_t workers, bool power_loss, std::string payload,
                 std::function<void()> handler, std::function<void(std::size_t)> done)
        : db_(file, power_loss), worker_count_(workers), payload_(std::move(payload)), handler_(std::move(handler)),
          done_(std::move(done)) {
        db_.run("CREATE TABLE IF NOT EXISTS task (id INTEGER PRIMARY KEY, state INTEGER NOT NULL, run_at INTEGER NOT "
                "NULL, created INTEGER NOT NULL, finished INTEGER, key TEXT, payload BLOB);"
                "CREATE INDEX IF NOT EXISTS due ON task (run_at) WHERE state = 0;"
                "CREATE UNIQUE INDEX IF NOT EXISTS key ON task (key) WHERE key IS NOT NULL;");
        begin_ = db_.prepare("BEGIN IMMEDIATE");
        commit_ = db_.prepare("COMMIT");
        insert_ =
            db_.prepare("INSERT INTO task (id, state, run_at, created, key, payload) VALUES (?1, ?2, ?3, ?4, ?5, ?6)");
        finish_ = db_.prepare("UPDATE task SET state = 2, finished = ?2 WHERE id = ?1");
        claim_ = db_.prepare("UPDATE task SET state = 1 WHERE id = ?1");
        first_due_ = db_.prepare(
            "SELECT id, run_at, payload FROM task WHERE state = 0 AND run_at <= ?1 ORDER BY run_at LIMIT 1");
        auto* const last = db_.prepare("SELECT max(id) FROM task");
        if (sqlite3_step(last) == SQLITE_ROW) next_id_ = sqlite3_column_int64(last, 0) + 1;
        sqlite3_reset(last);
        for (std::size_t i = 0; i != workers; ++i) workers_.emplace_back([this] { work(); });
        storage_ = std::thread([this] { store_outcomes(); });
    }

    raw_pipeline(raw_pipeline const&) = delete;
    raw_pipeline& operator=(raw_pipeline const&) = delete;

    /// Waits until all that was submitted for now has run and is recorded.
    ~raw_pipeline() {
        {
            std::unique_lock lock(mutex_);
            idle_.wait(lock, [this] { return in_flight_ == 0 && !committing_; });
            quit_ = true;
        }
        outcomes_come_.notify_all();
        {
            std::scoped_lock const lock(work_mutex_);
            no_more_work_ = true;
        }
        work_comes_.notify_all();
        storage_.join();
        for (auto& one : workers_) one.join();
    }

    /// Stores `tasks`; when this returns, they are committed.
    void submit(std::vector<task> const& tasks) {
        submit_call mine{&tasks, false};
        std::unique_lock lock(mutex_);
        submits_.push_back(&mine);
        while (!mine.stored) {
            if (!committing_)
                commit_round(lock);
            else
                stored_.wait(lock);
        }
    }

    /// The first task that is due at `now`, claimed durably; whether there was one. For the benchmark of a start.
    bool take_first(std::int64_t now) {
        sqlite3_bind_int64(first_due_, 1, now);
        if (sqlite3_step(first_due_) != SQLITE_ROW) return false;
        auto const id = sqlite3_column_int64(first_due_, 0);
        sqlite3_reset(first_due_);
        db_.step(begin_);
        sqlite3_bind_int64(claim_, 1, id);
        db_.step(claim_);
        db_.step(commit_);
        handler_();
        return true;
    }

  private:
    struct submit_call {
        std::vector<task> const* tasks;
        bool stored;
    };

    /// Commits all that waits, as the one who commits; `lock` is held before and after, not meanwhile.
    void commit_round(std::unique_lock<std::mutex>& lock) {
        committing_ = true;
        auto const calls = std::exchange(submits_, {});
        auto ended = std::exchange(outcomes_, std::move(spare_));
        lock.unlock();

        auto const now =
            std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
                .count();
        std::vector<std::int64_t> ready;
        db_.step(begin_);
        for (auto const* call : calls) {
            for (auto const& one : *call->tasks) {
                bool const at_once = one.run_at <= now;
                sqlite3_bind_int64(insert_, 1, next_id_);
                sqlite3_bind_int64(insert_, 2, at_once ? 1 : 0);
                sqlite3_bind_int64(insert_, 3, at_once ? now : one.run_at);
                sqlite3_bind_int64(insert_, 4, now);
                if (one.key.empty())
                    sqlite3_bind_null(insert_, 5);
                else
                    sqlite3_bind_text(insert_, 5, one.key.data(), static_cast<int>(one.key.size()), SQLITE_STATIC);
                sqlite3_bind_blob(insert_, 6, payload_.data(), static_cast<int>(payload_.size()), SQLITE_STATIC);
                db_.step(insert_);
                if (at_once) ready.push_back(next_id_);
                ++next_id_;
            }
        }
        std::ranges::sort(ended); // neighbours in the table are written together
        for (auto const id : ended) {
            sqlite3_bind_int64(finish_, 1, id);
            sqlite3_bind_int64(finish_, 2, now);
            db_.step(finish_);
        }
        db_.step(commit_);

        if (!ready.empty()) hand_over(ready);
        if (!ended.empty() && done_) done_(ended.size());
        lock.lock();
        for (auto* call : calls) call->stored = true;
        in_flight_ += ready.size();
        in_flight_ -= ended.size();
        ended.clear();
        spare_ = std::move(ended);
        committing_ = false;
        if (!calls.empty() || !submits_.empty()) stored_.notify_all();
        if (!outcomes_.empty()) outcomes_come_.notify_one();
        if (in_flight_ == 0) idle_.notify_all();
    }

    void hand_over(std::vector<std::int64_t> const& ids) {
        {
            std::scoped_lock const lock(work_mutex_);
            ready_.insert(ready_.end(), ids.begin(), ids.end());
        }
        ids.size() == 1 ? work_comes_.notify_one() : work_comes_.notify_all();
    }

    void work() {
        std::vector<std::int64_t> mine;
        std::unique_lock lock(work_mutex_);
        for (;;) {
            work_comes_.wait(lock, [this] { return no_more_work_ || taken_ != ready_.size(); });
            if (taken_ == ready_.size()) return;
            // A fair share of what there is, so that the other workers have theirs and the lock is rarely taken.
            auto const most = (ready_.size() - taken_) / worker_count_ + 1;
            auto const count = (std::min<std::size_t>)(most, 256);
            mine.assign(ready_.begin() + static_cast<std::ptrdiff_t>(taken_),
                        ready_.begin() + static_cast<std::ptrdiff_t>(taken_ + count));
            taken_ += count;
            if (taken_ == ready_.size()) {
                ready_.clear();
                taken_ = 0;
            }
            lock.unlock();
            for ([[maybe_unused]] auto const id : mine) handler_();
            {
                std::scoped_lock const outcomes(mutex_);
                bool const first = outcomes_.empty();
                outcomes_.insert(outcomes_.end(), mine.begin(), mine.end());
                if (first && !committing_) outcomes_come_.notify_one();
            }
            lock.lock();
        }
    }

    void store_outcomes() {
        std::unique_lock lock(mutex_);
        for (;;) {
            outcomes_come_.wait(lock, [this] { return quit_ || (!outcomes_.empty() && !committing_); });
            if (quit_) return;
            commit_round(lock);
        }
    }

    raw_database db_;
    std::size_t const worker_count_;
    std::string const payload_;
    std::function<void()> const handler_;
    std::function<void(std::size_t)> const done_;
    sqlite3_stmt* begin_ = nullptr;
    sqlite3_stmt* commit_ = nullptr;
    sqlite3_stmt* insert_ = nullptr;
    sqlite3_stmt* finish_ = nullptr;
    sqlite3_stmt* claim_ = nullptr;
    sqlite3_stmt* first_due_ = nullptr;
    std::int64_t next_id_ = 1; ///< of whoever commits

    std::mutex mutex_;
    std::condition_variable stored_;
    std::condition_variable outcomes_come_;
    std::condition_variable idle_;
    std::vector<submit_call*> submits_;
    std::vector<std::int64_t> outcomes_;
    std::vector<std::int64_t> spare_; ///< an empty one whose memory is kept
    std::size_t in_flight_ = 0;
    bool committing_ = false;
    bool quit_ = false;

    std::mutex work_mutex_;
    std::condition_variable work_comes_;
    std::vector<std::int64_t> ready_;
    std::size_t taken_ = 0; ///< of ready_
    bool no_more_work_ = false;
    std::vector<std::thread> workers_;
    std::thread storage_;
};

} // namespace bench
