// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/error.hpp"
#include "ax/core/random.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

namespace ax::testing {

/// What may befall one call of a storage.
enum class fault : std::uint8_t {
    none,
    busy,         ///< refused: nothing is written, error unavailable
    full,         ///< refused: nothing is written, error disk_full
    lost_request, ///< nothing is written, and nobody can say so: error outcome_unknown
    lost_reply,   ///< it is written, and nobody can say so: error outcome_unknown
    redone,       ///< the transaction is rolled back and made again; the caller notices nothing
    late,         ///< it takes its time
    crash_before, ///< the process ends, and nothing is written
    crash_after   ///< it is written, and then the process ends
};
inline constexpr std::size_t fault_kinds = 9;

constexpr char const* to_string(fault what) noexcept {
    switch (what) {
    case fault::none: return "none";
    case fault::busy: return "busy";
    case fault::full: return "full";
    case fault::lost_request: return "lost request";
    case fault::lost_reply: return "lost reply";
    case fault::redone: return "redone";
    case fault::late: return "late";
    case fault::crash_before: return "crash before";
    case fault::crash_after: return "crash after";
    }
    return "?";
}

/// Says what befalls which call: by chance, from a seed, and where a test has written it down.
///
///     ax::testing::fault_plan plan{42};
///     plan.rate(fault::busy, 0.01).rate(fault::lost_reply, 0.005);   // of commits; reads are only ever busy or late
///     plan.at("settle", 2, fault::crash_after);                      // the second commit that settles
///
/// Calls are known by their names in ax::storage: the writer's verbs ("claim", "settle", ...), the reads ("find",
/// "upcoming", ...), and "commit", which comes once with each transaction.
/// Threads: one at a time.
class fault_plan {
  public:
    fault_plan() = default;
    explicit fault_plan(std::uint64_t seed) : random_(seed) {}

    /// @param share  Of all commits, 0 to 1; for busy and late also of all reads.
    /// Errors: invalid_argument where it is neither, or all shares add up to more than 1; nothing is changed.
    fault_plan& rate(fault what, double share) {
        auto shares = shares_;
        shares[static_cast<std::size_t>(what)] = share;
        if (!(share >= 0) || std::accumulate(shares.begin(), shares.end(), 0.0) > 1 + 1e-9)
            throw error(errc::invalid_argument,
                        "a share of " + std::to_string(share) + " of commits: from 0 to 1 together");
        shares_ = shares;
        return *this;
    }

    /// The n-th call of that name from now on, 1 for the next one. Comes once, also while the plan is off.
    /// Errors: invalid_argument for the 0th.
    fault_plan& at(std::string_view call, std::size_t n, fault what) {
        if (n == 0) throw error(errc::invalid_argument, "the next call is number 1, and there is no number 0");
        scripted_[{std::string(call), calls(call) + n}] = what;
        return *this;
    }

    /// Whether anything happens by chance.
    void on(bool yes) noexcept { on_ = yes; }

    /// What befalls the call that is being made.
    fault next(std::string_view call, bool read) {
        auto known = calls_.find(call);
        if (known == calls_.end()) known = calls_.try_emplace(std::string(call), 0).first;
        auto const number = ++known->second;
        auto what = fault::none;
        auto const found =
            scripted_.empty() ? scripted_.end() : scripted_.find({known->first, number}); // a call costs no memory
        if (found != scripted_.end()) {
            what = found->second;
            scripted_.erase(found);
        } else if (on_ && (read || call == "commit")) {
            what = draw(read);
        }
        ++happened_[static_cast<std::size_t>(what)];
        return what;
    }

    /// How often a call of that name has been made.
    std::size_t calls(std::string_view call) const {
        auto const found = calls_.find(call);
        return found == calls_.end() ? 0 : found->second;
    }

    /// How often a fault of that kind has come.
    std::size_t happened(fault what) const noexcept { return happened_[static_cast<std::size_t>(what)]; }

  private:
    fault draw(bool read) {
        auto at = static_cast<double>(random_() >> 11U) * 0x1p-53;
        for (std::size_t i = 1; i != fault_kinds; ++i) {
            auto const what = static_cast<fault>(i);
            if (read && what != fault::busy && what != fault::late) continue;
            if (at < shares_[i]) return what;
            at -= shares_[i];
        }
        return fault::none;
    }

    splitmix64 random_{1};
    std::array<double, fault_kinds> shares_{};
    std::map<std::pair<std::string, std::size_t>, fault> scripted_;
    std::map<std::string, std::size_t, std::less<>> calls_;
    std::array<std::size_t, fault_kinds> happened_{};
    bool on_ = true;
};

} // namespace ax::testing
