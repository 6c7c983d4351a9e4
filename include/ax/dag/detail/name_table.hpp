// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ax::detail {

/// Unique names of some of the vertices of a graph: all text in one block, open addressing over it, so that a hundred
/// thousand names cost a few vectors and no node of memory each.
class name_table {
  public:
    static constexpr std::uint32_t none = 0xFFFF'FFFF;

    /// The vertex of that name, or none.
    std::uint32_t find(std::string_view name) const noexcept {
        return slots_.empty() ? none : vertex_in(slots_[slot_of(name)]);
    }

    /// The name of a vertex; empty where it has none.
    std::string_view name_of(std::uint32_t vertex) const noexcept {
        return vertex < entry_of_.size() && entry_of_[vertex] != 0 ? text_of(entry_of_[vertex]) : std::string_view{};
    }

    /// `name` must not be in the table, nor the vertex or any after it have a name. Nothing changes where memory ends.
    void insert(std::string_view name, std::uint32_t vertex) {
        if (2 * (entries_.size() + 1) > slots_.size()) grow();
        if (entries_.size() == entries_.capacity()) entries_.reserve(entries_.size() < 8 ? 16 : 2 * entries_.size());
        entry_of_.resize(std::size_t{vertex} + 1);
        auto const begin = text_.size();
        text_.append(name);
        auto const slot = slot_of(name);
        entries_.push_back({begin, name.size(), vertex});
        slots_[slot] = entry_of_[vertex] = static_cast<std::uint32_t>(entries_.size());
    }

  private:
    struct entry {
        std::size_t begin;
        std::size_t length;
        std::uint32_t vertex;
    };

    std::string_view text_of(std::uint32_t number) const noexcept {
        auto const& e = entries_[number - 1];
        return std::string_view{text_}.substr(e.begin, e.length);
    }

    std::uint32_t vertex_in(std::uint32_t number) const noexcept {
        return number == 0 ? none : entries_[number - 1].vertex;
    }

    /// Where the name is, or where it would go. There is always a free slot.
    std::size_t slot_of(std::string_view name) const noexcept {
        auto const mask = slots_.size() - 1;
        auto slot = std::hash<std::string_view>{}(name)&mask;
        while (slots_[slot] != 0 && text_of(slots_[slot]) != name) slot = (slot + 1) & mask;
        return slot;
    }

    void grow() {
        std::vector<std::uint32_t> larger(slots_.empty() ? 16 : 2 * slots_.size());
        slots_.swap(larger);
        for (std::uint32_t number = 1; number <= entries_.size(); ++number) slots_[slot_of(text_of(number))] = number;
    }

    std::string text_;
    std::vector<entry> entries_;
    std::vector<std::uint32_t> slots_;    ///< a power of two; number of an entry from 1, or 0
    std::vector<std::uint32_t> entry_of_; ///< by vertex; likewise
};

} // namespace ax::detail
