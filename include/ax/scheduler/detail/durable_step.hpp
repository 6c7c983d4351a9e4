// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/core/error.hpp"
#include "ax/core/text.hpp"
#include "ax/scheduler/detail/attempt_store.hpp"
#include "ax/scheduler/detail/submission.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace ax::detail {

/// One step of an attempt, from the question whether it is done to its stored value. A name is taken for as long as
/// this object lives, and for good once the step is done.
template <class Attempt>
class durable_step {
    using string = dependent<std::string, Attempt>;

  public:
    /// @throws error invalid_argument where the name is none, or taken.
    durable_step(Attempt& attempt, std::string_view name, std::size_t value_limit)
        : attempt_(attempt), name_(name), value_limit_(value_limit) {
        check_text(name, "step name", longest_name, false);
        if (attempt.store == nullptr) throw error(errc::invalid_argument, text("there is no storage"));
        // A first attempt has nothing behind it. One that a repair has taken back counts as an interruption only.
        if (attempt.record.attempts > 1 || attempt.record.interruptions > 0) read_earlier();
        std::lock_guard const guard{attempt.text_mutex};
        auto& taken = attempt.steps_taken;
        if (std::find(taken.begin(), taken.end(), name_) != taken.end())
            throw error(errc::invalid_argument,
                        text("was used before in this attempt; give each step a name of its own"));
        taken.push_back(name_);
    }

    durable_step(durable_step const&) = delete;
    durable_step& operator=(durable_step const&) = delete;

    ~durable_step() {
        if (done_) return;
        std::lock_guard const guard{attempt_.text_mutex};
        auto& taken = attempt_.steps_taken;
        taken.erase(std::find(taken.begin(), taken.end(), name_));
    }

    /// Whether an earlier attempt has finished it.
    bool is_kept() {
        std::lock_guard const guard{attempt_.text_mutex};
        for (auto const& one : attempt_.steps_before)
            if (one.name == name_) {
                kept_ = one.value;
                done_ = true;
            }
        return done_;
    }

    /// The value of an earlier attempt. @throws error corrupt where it is no `Value`.
    template <class Value>
    Value value() const {
        try {
            return nlohmann::json::parse(kept_.begin(), kept_.end()).template get<Value>();
        } catch (nlohmann::json::exception const& e) {
            throw error(errc::corrupt, text("kept a value that cannot be read: " + bounded_text(e.what(), 200)));
        }
    }

    /// @throws error invalid_argument where the value is too large; not_mine; what the storage throws.
    void keep(string const& value) {
        check_size(value, "value of step \"" + name_ + '"', value_limit_);
        auto const& record = attempt_.record;
        if (!attempt_.store->keep_step(record.id, record.fence, name_, value)) {
            attempt_.lose();
            throw error(errc::not_mine, text("is not kept: the task has been claimed again"));
        }
        done_ = true;
    }

  private:
    string text(string const& what) const {
        return "step \"" + name_ + "\" of task " + std::to_string(to_number(attempt_.record.id)) + ' ' + what;
    }

    void read_earlier() {
        {
            std::lock_guard const guard{attempt_.text_mutex};
            if (attempt_.steps_read) return;
        }
        auto earlier = attempt_.store->steps(attempt_.record.id);
        std::lock_guard const guard{attempt_.text_mutex};
        if (attempt_.steps_read) return; // another thread of the handler has been quicker
        attempt_.steps_before = std::move(earlier);
        attempt_.steps_read = true;
    }

    Attempt& attempt_;
    string name_;
    std::size_t value_limit_;
    string kept_;
    bool done_ = false;
};

} // namespace ax::detail
