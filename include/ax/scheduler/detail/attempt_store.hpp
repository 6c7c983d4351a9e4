// SPDX-License-Identifier: MIT
#pragma once

#include "ax/storage/concept.hpp"

#include <concepts>
#include <string_view>
#include <vector>

namespace ax::detail {

/// What a running handler may ask of its scheduler's storage, whatever that is.
/// Threads: safe.
class attempt_store {
  public:
    attempt_store() = default;
    attempt_store(attempt_store const&) = delete;
    attempt_store& operator=(attempt_store const&) = delete;

    /// Whether a handler's writes through a connection of SQLite can join a commit.
    virtual bool takes_sqlite() const noexcept = 0;
    virtual std::vector<kept_step> steps(task_id id) const = 0;
    virtual bool keep_step(task_id id, fence_token fence, std::string_view name, std::string_view value) = 0;
    virtual std::vector<parent_record> parents(task_id id) const = 0;

  protected:
    ~attempt_store() = default;
};

template <storage Storage>
class attempt_store_of final : public attempt_store {
  public:
    /// @param kind  What each kept step survives.
    attempt_store_of(Storage& store, commit kind) : store_(store), kind_(kind) {}

    bool takes_sqlite() const noexcept override {
        if constexpr (transactional_storage<Storage>)
            return std::same_as<typename Storage::host_connection, sqlite3*>;
        else
            return false;
    }

    std::vector<kept_step> steps(task_id id) const override { return store_.steps(id); }

    std::vector<parent_record> parents(task_id id) const override { return store_.parents(id); }

    bool keep_step(task_id id, fence_token fence, std::string_view name, std::string_view value) override {
        bool kept = false;
        store_.transact(kind_, [&](typename Storage::writer& w) { kept = w.keep_step(id, fence, name, value); });
        return kept;
    }

  private:
    Storage& store_;
    commit const kind_;
};

} // namespace ax::detail
