// SPDX-License-Identifier: MIT
#pragma once

#include "ax/storage/concept.hpp"
#include "ax/storage/detail/limit_state.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

/// What each task of a type needs of a limit.
struct memory_need {
    limit_number number{};
    std::int64_t amount = 1;
};

/// What an attempt in flight holds of a limit.
struct memory_hold {
    limit_number number{};
    std::int64_t amount = 1;
    std::int64_t token = 0; ///< the number of the token it took; 0: none
};

/// The limits of a memory_storage, who needs and who holds them, and how to undo what was done to them.
class memory_limits {
  public:
    std::map<limit_number, limit_state> const& all() const noexcept { return limits_; }

    limit_state const* find(limit_number number) const {
        auto const found = limits_.find(number);
        return found == limits_.end() ? nullptr : &found->second;
    }

    limit_state const* find(limit_kind kind, std::string_view name) const {
        for (auto const& [number, state] : limits_) // they are few, and this is the plain one of the storages
            if (state.kind == kind && state.name == name) return &state;
        return nullptr;
    }

    limit_state const& add(limit_kind kind, std::string_view name) {
        limit_state made;
        made.number = limit_number{limits_.empty() ? 1 : static_cast<std::uint32_t>(limits_.rbegin()->first) + 1};
        made.kind = kind;
        made.name = name;
        limit_log_.push_back({made.number, std::nullopt});
        return limits_.emplace(made.number, made).first->second;
    }

    template <class Modify>
    void change(limit_number number, Modify&& modify) {
        auto& state = limits_.at(number);
        limit_log_.push_back({number, state});
        modify(state);
    }

    void erase(limit_number number) {
        limit_log_.push_back({number, limits_.at(number)});
        limits_.erase(number);
    }

    std::vector<memory_need> needs(type_number type) const {
        auto const found = needs_.find(type);
        return found == needs_.end() ? std::vector<memory_need>{} : found->second;
    }

    /// @param needs  By number.
    void set_needs(type_number type, std::vector<memory_need> needs) {
        need_log_.emplace_back(type, std::exchange(needs_[type], std::move(needs)));
        if (needs_[type].empty()) needs_.erase(type);
    }

    /// A limit that is gone is needed by nobody.
    void drop_need(limit_number number) {
        auto const before = needs_;
        for (auto const& [type, needs] : before) {
            std::vector<memory_need> left;
            for (auto const& need : needs)
                if (need.number != number) left.push_back(need);
            if (left.size() != needs.size()) set_needs(type, std::move(left));
        }
    }

    std::map<task_id, std::vector<memory_hold>> const& holds() const noexcept { return holds_; }

    void set_holds(task_id id, std::vector<memory_hold> holds) {
        hold_log_.emplace_back(id, std::exchange(holds_[id], std::move(holds)));
        if (holds_[id].empty()) holds_.erase(id);
    }

    /// Limits of which something may have changed for those that wait.
    void touch(limit_number number) {
        if (number != limit_number{}) touched_.insert(number);
    }
    std::optional<limit_number> take_touched() {
        if (touched_.empty()) return std::nullopt;
        return touched_.extract(touched_.begin()).value();
    }

    struct mark_type {
        std::size_t limits = 0;
        std::size_t needs = 0;
        std::size_t holds = 0;
    };
    mark_type mark() const noexcept { return {limit_log_.size(), need_log_.size(), hold_log_.size()}; }

    void commit() noexcept {
        limit_log_.clear();
        need_log_.clear();
        hold_log_.clear();
        touched_.clear();
    }

    void undo(mark_type since) {
        touched_.clear();
        for (; limit_log_.size() > since.limits; limit_log_.pop_back()) {
            auto& [number, before] = limit_log_.back();
            if (before)
                limits_.insert_or_assign(number, std::move(*before));
            else
                limits_.erase(number);
        }
        for (; need_log_.size() > since.needs; need_log_.pop_back()) {
            auto& [type, before] = need_log_.back();
            if (before.empty())
                needs_.erase(type);
            else
                needs_[type] = std::move(before);
        }
        for (; hold_log_.size() > since.holds; hold_log_.pop_back()) {
            auto& [id, before] = hold_log_.back();
            if (before.empty())
                holds_.erase(id);
            else
                holds_[id] = std::move(before);
        }
    }

  private:
    std::map<limit_number, limit_state> limits_;
    std::map<type_number, std::vector<memory_need>> needs_;
    std::map<task_id, std::vector<memory_hold>> holds_;
    std::set<limit_number> touched_;

    std::vector<std::pair<limit_number, std::optional<limit_state>>> limit_log_; ///< none: the limit was added
    std::vector<std::pair<type_number, std::vector<memory_need>>> need_log_;
    std::vector<std::pair<task_id, std::vector<memory_hold>>> hold_log_;
};

} // namespace ax::detail
