// SPDX-License-Identifier: MIT
// order_timeouts once more, with everything in one database: the shop's orders, the tasks that close them, and the
// ledger of what was closed. However often it is killed, no order is lost and none is closed twice:
//
//   exactly_once FILE SHOP.DB          places the orders of FILE (see orders_file.hpp) that the shop does not have yet,
//                                      and closes each when its time is over; ends when all are closed
//   exactly_once --check FILE SHOP.DB  afterwards: was every order closed exactly once?
//
// The instants of a file lie in the past. So it is moved as a whole: its first order is due a second after the first
// start. Compare with order_timeouts, whose ledger is a file of its own: there a kill between the line in the ledger
// and the record of success makes an order run again, and the ledger has it twice.
#include "orders_file.hpp"

#include <ax/ax.hpp>

#include <sqlite3.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <semaphore>
#include <string>
#include <vector>

using namespace std::chrono_literals;

namespace {

struct close_order {
    std::string id;
    NLOHMANN_DEFINE_TYPE_INTRUSIVE_WITH_DEFAULT(close_order, id)
};
inline constexpr ax::task_type<close_order> closing{"close-order"};

/// Runs SQL with texts in the places of ?1, ?2, ... and returns the first number of its first row.
std::int64_t run(sqlite3* db, char const* sql, std::vector<std::string> const& texts = {}) {
    sqlite3_stmt* statement = nullptr;
    int code = sqlite3_prepare_v2(db, sql, -1, &statement, nullptr);
    for (std::size_t i = 0; i != texts.size() && code == SQLITE_OK; ++i)
        code = sqlite3_bind_text(statement, static_cast<int>(i + 1), texts[i].c_str(), -1, SQLITE_TRANSIENT);
    if (code == SQLITE_OK) code = sqlite3_step(statement);
    auto const number = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        throw std::runtime_error(std::string(sql) + ": " + sqlite3_errmsg(db));
    return number;
}

/// The shop's own connection. Its ledger would take an order twice: nothing but the transaction keeps it from that.
struct shop {
    sqlite3* db = nullptr;

    explicit shop(std::string const& path) {
        if (sqlite3_open(path.c_str(), &db) != SQLITE_OK) throw std::runtime_error("cannot open " + path);
        sqlite3_busy_timeout(db, 5'000);
        run(db, "PRAGMA wal_autocheckpoint = 0"); // the store sees to that
        run(db, "CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, due INTEGER)");
        run(db, "CREATE TABLE IF NOT EXISTS ledger (order_id TEXT, attempt INTEGER)");
        run(db, "CREATE TABLE IF NOT EXISTS starts (first_due INTEGER)");
    }
    shop(shop const&) = delete;
    shop& operator=(shop const&) = delete;
    ~shop() { sqlite3_close(db); }
};

int run_shop(std::vector<orders::order> const& all, std::string const& path) {
    std::counting_semaphore<> ended{0};
    ax::sqlite_scheduler tasks{ax::sqlite_storage{path}};
    shop const mine{path};

    tasks.on(closing, [](close_order const& order, ax::context& ctx) {
        // This much runs at least once; what follows is committed with the record of this attempt's success.
        ctx.commit_with([id = order.id, attempt = std::to_string(ctx.attempt())](sqlite3* db) {
            run(db, "INSERT INTO ledger VALUES (?1, ?2)", {id, attempt});
        });
    });
    tasks.observe([&](ax::event const& e) {
        if (e.kind == ax::event_kind::reported) ended.release();
    });

    auto first_due = (ax::time_point::max)();
    for (auto const& order : all) first_due = (std::min)(first_due, order.due());
    run(mine.db, "INSERT INTO starts VALUES (?1)", {std::to_string((ax::now() + 1s).time_since_epoch().count())});
    ax::time_point const first{ax::duration{run(mine.db, "SELECT first_due FROM starts ORDER BY rowid LIMIT 1")}};
    tasks.start();

    // An order and its task are placed in one transaction: both are there, or none. No key is needed.
    std::vector<ax::submitted_in> placed;
    for (auto const& order : all) {
        auto const due = first + (order.due() - first_due);
        if (run(mine.db, "SELECT count(*) FROM orders WHERE id = ?1", {order.id}) != 0) continue;
        if (placed.empty()) run(mine.db, "BEGIN IMMEDIATE");
        run(mine.db, "INSERT INTO orders VALUES (?1, ?2)", {order.id, std::to_string(due.time_since_epoch().count())});
        placed.push_back(tasks.submit_in(mine.db, closing, {order.id}, {.run_at = due}));
        if (placed.size() % 50 != 0 && &order != &all.back()) continue;
        run(mine.db, "COMMIT");
        for (auto& task : placed) task.committed();
        placed.clear();
    }
    if (sqlite3_get_autocommit(mine.db) == 0) run(mine.db, "COMMIT");
    for (auto& task : placed) task.committed();

    while (run(mine.db, "SELECT count(*) FROM ledger") < static_cast<std::int64_t>(all.size()))
        (void)ended.try_acquire_for(50ms);
    tasks.stop(10s);
    return 0;
}

int check(std::vector<orders::order> const& all, std::string const& path) {
    shop const mine{path};
    std::size_t lost = 0;
    std::size_t repeated = 0;
    for (auto const& order : all) {
        auto const times = run(mine.db, "SELECT count(*) FROM ledger WHERE order_id = ?1", {order.id});
        if (times == 0) ++lost;
        if (times > 1) ++repeated;
    }
    auto const lines = static_cast<std::size_t>(run(mine.db, "SELECT count(*) FROM ledger"));
    auto const again = run(mine.db, "SELECT count(*) FROM ledger WHERE attempt > 1");
    std::printf("%zu orders, %zu lines in the ledger: %zu never closed, %zu closed twice\n", all.size(), lines, lost,
                repeated);
    std::printf("starts of the program: %lld; orders that a kill made run again: %lld\n",
                static_cast<long long>(run(mine.db, "SELECT count(*) FROM starts")), static_cast<long long>(again));
    bool const well = lost == 0 && repeated == 0 && lines == all.size();
    std::puts(well ? "check: passed" : "check: FAILED");
    return well ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
    std::vector<std::string> words(argv + 1, argv + argc);
    bool const checks = !words.empty() && words.front() == "--check";
    if (checks) words.erase(words.begin());
    if (words.size() != 2) return std::fputs("usage: exactly_once [--check] FILE SHOP.DB\n", stderr), 2;
    try {
        auto const all = orders::load(words[0]);
        if (!all) return 2;
        return checks ? check(*all, words[1]) : run_shop(*all, words[1]);
    } catch (std::exception const& e) {
        std::fprintf(stderr, "exactly_once: %s\n", e.what());
        return 1;
    }
}
