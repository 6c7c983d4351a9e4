// SPDX-License-Identifier: MIT
#pragma once

#include "ax/storage/sqlite.hpp"

#include "disk/watched_vfs.hpp"
#include "storage/sqlite_fixture.hpp"
#include "support/instants.hpp"

#include <sqlite3.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace disk {

using writer = ax::sqlite_storage::writer;
using test::t0;
inline constexpr ax::node_id node{0xA1};

/// How often a test is to be repeated: AX_DISK_ROUNDS in the environment multiplies what it does by itself.
inline std::size_t rounds(std::size_t usual) {
    auto const* const wanted = std::getenv("AX_DISK_ROUNDS");
    return wanted != nullptr ? usual * std::stoul(wanted) : usual;
}

inline ax::sqlite_settings settings_on(watched_vfs const& vfs) {
    ax::sqlite_settings settings;
    settings.vfs = vfs.name();
    settings.cache_bytes = 1 << 20;
    settings.readers = 1;
    return settings;
}

inline ax::task_id add(ax::sqlite_storage& store, std::string payload = {}, std::string key = {},
                       ax::commit kind = ax::commit::durable) {
    ax::task_id id{};
    store.transact(kind, [&](writer& w) {
        ax::new_task made;
        made.type = w.type("probe");
        made.payload = payload;
        made.key = key;
        ax::alarms due;
        id = w.insert({&made, 1}, t0, due).at(0).id;
    });
    return id;
}

/// All that is kept of tasks, as one text.
inline std::string digest(ax::sqlite_storage const& store) {
    std::string all;
    ax::task_filter filter;
    filter.limit = 100'000;
    for (auto const& task : store.list(filter, t0)) {
        all += std::to_string(to_number(task.id)) + ' ' + task.key + ' ' + std::string(ax::to_string(task.state)) +
               ' ' + std::to_string(to_number(task.fence)) + ' ' + std::to_string(task.attempts) + ' ' +
               std::to_string(std::hash<std::string>{}(task.payload)) + '\n';
        if (task.state == ax::task_state::succeeded || task.state == ax::task_state::failed)
            all += std::to_string(store.history(task.id).size()) + '\n';
    }
    return all;
}

/// What SQLite and ax find wrong with a store; empty: nothing.
inline std::string complaints(ax::sqlite_storage& store) {
    std::string all;
    store.transact(ax::commit::lazy, [&](writer& w) {
        all.clear();
        sqlite3_exec(
            w.handle(), "PRAGMA integrity_check",
            [](void* to, int, char** values, char**) {
                if (std::string_view(values[0]) != "ok")
                    *static_cast<std::string*>(to) += std::string(values[0]) + '\n';
                return 0;
            },
            &all, nullptr);
    });
    for (auto const& one : store.verify()) all += one.kind + ": " + one.text + '\n';
    return all;
}

} // namespace disk
