// SPDX-License-Identifier: MIT
// Where tasks wait for limits. A line is of one lane and of some tags, those at whose limits its tasks have been
// refused, and it stands at one limit. What keeps all of a line back is known of the line: what its type needs, and the
// limits of its tags. So where one of these is full, the line as a whole goes to stand there, in one step however long
// it is. A task changes its line only where it is refused at a limit of which its line knows nothing, which happens
// once for each of its tags.
#pragma once

#include "ax/storage/concept.hpp"
#include "ax/storage/detail/limit_state.hpp"

#include <cassert>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ax::detail {

/// A place in an order by time: ties go to the earlier id.
using memory_place = std::pair<time_point, task_id>;

struct memory_line {
    lane_id lane{};
    std::vector<std::string> tags; ///< sorted
    limit_number at{};
};

class memory_lines {
  public:
    /// By the place of their first.
    using by_head = std::set<std::pair<memory_place, line_number>>;

    std::map<line_number, memory_line> const& all() const noexcept { return lines_; }

    memory_line const* find(line_number number) const {
        auto const found = lines_.find(number);
        return found == lines_.end() ? nullptr : &found->second;
    }

    /// @return  0 where there is none.
    line_number find(lane_id lane, std::vector<std::string> const& tags) const {
        auto const found = numbers_.find({lane, tags});
        return found == numbers_.end() ? line_number{} : found->second;
    }

    line_number open(memory_line line) {
        auto const number = line_number{lines_.empty() ? 1 : static_cast<std::int64_t>(lines_.rbegin()->first) + 1};
        log_.emplace_back(number, std::nullopt);
        set(number, std::move(line));
        return number;
    }

    void move(line_number number, limit_number to) {
        auto line = lines_.at(number);
        log_.emplace_back(number, line);
        line.at = to;
        set(number, std::move(line));
    }

    void close(line_number number) {
        assert(!places_.contains(number));
        log_.emplace_back(number, lines_.at(number));
        erase(number);
    }

    /// Who stands in a line, in order; null where nobody does.
    std::set<memory_place> const* places(line_number number) const {
        auto const found = places_.find(number);
        return found == places_.end() ? nullptr : &found->second.tasks;
    }

    /// The lines that stand at each limit, by lane. Nothing in it is empty.
    std::map<limit_number, std::map<lane_id, by_head>> const& heads() const noexcept { return heads_; }

    by_head const* heads(limit_number at, lane_id lane) const {
        auto const found = heads_.find(at);
        if (found == heads_.end()) return nullptr;
        auto const line = found->second.find(lane);
        return line == found->second.end() ? nullptr : &line->second;
    }

    // ---- the index of who stands where: a function of the records ----

    void enter(line_number number, memory_place place) {
        places_[number].tasks.insert(place);
        order(number);
    }

    void leave(line_number number, memory_place place) {
        places_[number].tasks.erase(place);
        order(number);
    }

    /// Forgets who stands where.
    void clear() {
        places_.clear();
        heads_.clear();
    }

    // ---- transactions ----

    std::size_t mark() const noexcept { return log_.size(); }
    void commit() noexcept { log_.clear(); }
    void undo(std::size_t since) {
        for (; log_.size() > since; log_.pop_back()) {
            auto& [number, before] = log_.back();
            if (before)
                set(number, std::move(*before));
            else
                erase(number);
        }
    }

  private:
    struct standing {
        std::set<memory_place> tasks;
        std::optional<std::pair<limit_number, lane_id>> entered; ///< where it is among the heads
        memory_place head{};
    };

    void set(line_number number, memory_line line) {
        numbers_.insert_or_assign({line.lane, line.tags}, number);
        lines_.insert_or_assign(number, std::move(line));
        order(number);
    }

    void erase(line_number number) {
        auto const found = lines_.find(number);
        numbers_.erase({found->second.lane, found->second.tags});
        lines_.erase(found);
        order(number);
    }

    /// Sees to it that a line is among the heads by what is so now.
    void order(line_number number) {
        auto const found = places_.find(number);
        if (found == places_.end()) return;
        auto& here = found->second;
        if (here.entered) {
            auto const [at, lane] = *here.entered;
            auto& lanes = heads_[at];
            lanes[lane].erase({here.head, number});
            if (lanes[lane].empty()) lanes.erase(lane);
            if (lanes.empty()) heads_.erase(at);
            here.entered.reset();
        }
        if (here.tasks.empty()) {
            places_.erase(found);
            return;
        }
        auto const* const line = find(number);
        if (line == nullptr) return; // in the middle of being undone
        here.head = *here.tasks.begin();
        here.entered = {line->at, line->lane};
        heads_[line->at][line->lane].emplace(here.head, number);
    }

    std::map<line_number, memory_line> lines_;
    std::map<std::pair<lane_id, std::vector<std::string>>, line_number> numbers_;
    std::map<line_number, standing> places_;
    std::map<limit_number, std::map<lane_id, by_head>> heads_;
    std::vector<std::pair<line_number, std::optional<memory_line>>> log_; ///< none: the line was opened
};

} // namespace ax::detail
