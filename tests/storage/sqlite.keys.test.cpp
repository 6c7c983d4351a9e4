// SPDX-License-Identifier: MIT
#include "ax/storage/sqlite.hpp"

#include "conformance/keys.hpp"
#include "storage/sqlite_fixture.hpp"

TEST_CASE("sqlite_storage does with a key that is taken what the submit says", "[storage][sqlite]") {
    conformance::key_policies<sqlite_fixture>();
}

TEST_CASE("sqlite_storage replaces a holder or puts it off or passes its key on", "[storage][sqlite]") {
    conformance::key_conflicts<sqlite_fixture>();
}

TEST_CASE("sqlite_storage holds a key for as long as its scope says", "[storage][sqlite]") {
    conformance::key_scopes<sqlite_fixture>();
}

TEST_CASE("sqlite_storage forgets that a task had a key when its row goes", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    ax::task_id id{};
    {
        ax::sqlite_storage store{path};
        store.transact(ax::commit::durable, [&](ax::sqlite_storage::writer& w) {
            ax::new_task task;
            task.type = w.type("probe");
            task.key = "k";
            task.key_scope = ax::key_scope::active;
            ax::alarms due;
            id = w.insert({&task, 1}, conformance::t0, due).at(0).id;
            w.cancel(id, conformance::t0);
        });
        CHECK(store.find_by_key("k")->id == id);
    }
    ax::detail::sqlite_connection db{path};
    auto const count = [&] {
        auto const statement = db.prepare("SELECT count(*) FROM ax_former_key");
        ax::detail::sqlite_run row(db, statement.get());
        return row.next() ? row.number(0) : -1;
    };
    CHECK(count() == 1);
    db.execute("DELETE FROM ax_task WHERE id = 1");
    CHECK(count() == 0);
}
