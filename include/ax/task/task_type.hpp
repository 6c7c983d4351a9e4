// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/error.hpp"
#include "ax/core/text.hpp"

#include <nlohmann/json.hpp>

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

namespace ax {

/// The payload of a task type that has none.
struct no_payload {
    friend bool operator==(no_payload, no_payload) = default;
};

/// Names a kind of task and fixes the type of its payload: the one place where submitter and handler agree.
///
///     inline constexpr ax::task_type<close_order> closing{"close-order"};
///     inline constexpr ax::task_type<> probe{"probe"};
///
/// The name is stored with every task; the text must live as long as the task_type.
template <class Payload = no_payload>
struct task_type {
    std::string_view name;

    using payload_type = Payload;

    explicit constexpr task_type(std::string_view type_name) noexcept : name(type_name) {}
};

namespace detail {

/// A value as the store keeps it: JSON text.
/// @param what  What it is, for the message.
/// Errors: invalid_argument where it cannot be written as JSON (bad UTF-8 in a string).
template <class Value>
std::string encode(Value const& value, std::string_view what) {
    try {
        return nlohmann::json(value).dump();
    } catch (nlohmann::json::exception const& e) {
        throw error(errc::invalid_argument, std::string(what) + ": " + bounded_text(e.what(), 200));
    }
}

/// A payload as the store keeps it; empty where the type has none.
template <class Payload>
std::string encode_payload(Payload const& payload, std::string_view type_name) {
    if constexpr (std::same_as<Payload, no_payload>)
        return {};
    else
        return encode(payload, "payload of task type \"" + std::string(type_name) + '"');
}

/// The stored text as a payload. Errors: corrupt, with what the JSON parser says.
template <class Payload>
Payload decode_payload([[maybe_unused]] std::string_view text, [[maybe_unused]] std::string_view type_name) {
    if constexpr (std::same_as<Payload, no_payload>) {
        return {};
    } else {
        // nlohmann::json takes it for the end of the text, and passes over what is behind it.
        if (auto const nul = text.find('\0'); nul != text.npos)
            throw error(errc::corrupt, "payload of task type \"" + std::string(type_name) +
                                           "\": a NUL byte at offset " + std::to_string(nul));
        try {
            return nlohmann::json::parse(text.begin(), text.end()).template get<Payload>();
        } catch (nlohmann::json::exception const& e) {
            throw error(errc::corrupt,
                        "payload of task type \"" + std::string(type_name) + "\": " + bounded_text(e.what(), 200));
        }
    }
}

} // namespace detail

} // namespace ax
