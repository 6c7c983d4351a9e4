// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <vector>

namespace ax::detail {

/// A set of ids in one sorted block. Ids mostly come in rising order, so insert() mostly appends.
template <class Id>
class id_set {
  public:
    bool contains(Id id) const {
        auto const at = std::lower_bound(ids_.begin(), ids_.end(), id);
        return at != ids_.end() && *at == id;
    }

    void insert(Id id) {
        auto const at = std::lower_bound(ids_.begin(), ids_.end(), id);
        if (at == ids_.end() || *at != id) ids_.insert(at, id);
    }

    /// Returns whether it was there.
    bool erase(Id id) {
        auto const at = std::lower_bound(ids_.begin(), ids_.end(), id);
        if (at == ids_.end() || *at != id) return false;
        ids_.erase(at);
        return true;
    }

    void clear() noexcept { ids_.clear(); }

  private:
    std::vector<Id> ids_;
};

} // namespace ax::detail
