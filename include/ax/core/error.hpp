// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

#if !defined(__cpp_exceptions)
#error "ax needs exceptions: failures are thrown. Build without -fno-exceptions."
#endif

namespace ax {

/// What a failed call means for its caller. Every exception that `ax` throws is an ax::error with one of these codes.
enum class errc {
    invalid_argument = 1, ///< fix the call; retrying cannot help
    unavailable,          ///< the storage is busy or out of reach and nothing was written; retry later
    outcome_unknown,      ///< the connection was lost during commit; read back before retrying
    corrupt,              ///< stored data does not parse; a person has to look
    stopped,              ///< the scheduler has been stopped; nothing was stored
    queue_full,           ///< the queue is full and the caller may not wait for room (it runs inside a handler)
    disk_full,            ///< no room on the disk; nothing was written, retry when there is room
    newer_schema,         ///< the store was written by a newer version of ax; nothing was changed
    not_a_store,          ///< the file is no database, or not one of ax; nothing was changed
    locked,               ///< another process (or another object in this one) owns the store
    not_mine,             ///< the attempt has lost its task; nothing was stored, and nothing it reports will be
};

namespace detail {

class error_category_type final : public std::error_category {
  public:
    char const* name() const noexcept override { return "ax"; }

    std::string message(int code) const override {
        switch (static_cast<errc>(code)) {
        case errc::invalid_argument: return "invalid argument";
        case errc::unavailable: return "storage unavailable";
        case errc::outcome_unknown: return "outcome unknown";
        case errc::corrupt: return "stored data is corrupt";
        case errc::stopped: return "scheduler stopped";
        case errc::queue_full: return "queue full";
        case errc::disk_full: return "disk full";
        case errc::newer_schema: return "store of a newer version";
        case errc::not_a_store: return "not a store";
        case errc::locked: return "store locked";
        case errc::not_mine: return "task lost to another attempt";
        }
        return "unknown error";
    }
};

} // namespace detail

/// The category of errc. Threads: safe.
inline std::error_category const& error_category() noexcept {
    static detail::error_category_type const category; // trivial members only: nothing to destroy at unload
    return category;
}

inline std::error_code make_error_code(errc code) noexcept { return {static_cast<int>(code), error_category()}; }

/// A call that could not do what it promises. what() reads "<detail>: <meaning of the code>".
class error : public std::system_error {
  public:
    /// @param code    What the caller can do about it.
    /// @param detail  Names the thing that is wrong (the key, the path, the value), in one line.
    error(errc code, std::string const& detail) : std::system_error(make_error_code(code), detail) {}

    /// The code as the enumeration.
    errc kind() const noexcept { return static_cast<errc>(code().value()); }

    /// True where the same call may succeed later without being changed.
    bool transient() const noexcept {
        return kind() == errc::unavailable || kind() == errc::disk_full || kind() == errc::queue_full;
    }
};

} // namespace ax

template <>
struct std::is_error_code_enum<ax::errc> : std::true_type {};
