// SPDX-License-Identifier: MIT
// Any bytes as what a store may hold for a scheduler to read: the payload of a task, the template of a schedule's, a
// retry policy, a recurrence, the terms of a schedule. Nothing but ax::error is thrown, and what is taken comes back.
#include "ax/scheduler/payload_template.hpp"
#include "ax/scheduler/schedule.hpp"
#include "ax/task/task_type.hpp"

#include "ax/core/text.hpp"
#include "ax/retry/retry_policy.hpp"
#include "ax/scheduler/detail/schedule_terms.hpp"

#include "fuzz/fuzzing.hpp"
#include "support/instants.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

using fuzzing::require;

namespace {

struct place {
    double latitude = 0;
    std::vector<std::string> names;
    NLOHMANN_DEFINE_TYPE_INTRUSIVE_WITH_DEFAULT(place, latitude, names)
};

struct order {
    std::int64_t number = 0;
    std::uint8_t count = 0;
    bool paid = false;
    std::string note;
    std::vector<place> places;
    std::map<std::string, std::vector<int>> tables;
    NLOHMANN_DEFINE_TYPE_INTRUSIVE_WITH_DEFAULT(order, number, count, paid, note, places, tables)
};

template <class Payload>
void read_payload(std::string_view text) {
    std::optional<Payload> read;
    try {
        read = ax::detail::decode_payload<Payload>(text, "order");
    } catch (ax::error const& e) {
        require(e.kind() == ax::errc::corrupt, "what does not parse is corrupt");
        require(ax::detail::first_bad_byte(e.what()) == std::string_view::npos, "an error is clean text");
        return;
    }
    std::string written;
    try {
        written = ax::detail::encode_payload(*read, "order");
    } catch (ax::error const&) { // text that JSON cannot hold, or a number that it has not
        return;
    }
    auto const again = ax::detail::decode_payload<Payload>(written, "order");
    require(ax::detail::encode_payload(again, "order") == written, "a payload comes back");
}

void read_template(std::string_view text) {
    using ax::payload_template;
    auto const fault = payload_template::check(text);
    if (fault) {
        require(!fault->message().empty(), "a fault has a message");
        return;
    }
    auto const read = payload_template::parse(text);
    for (auto const* zone : {"UTC", "Europe/Berlin", "Pacific/Apia"})
        for (auto const at : {test::t0, ax::earliest_time, ax::latest_time}) {
            auto const made = read.render(at, std::nullopt, at, ax::time_zone{zone});
            require(text.empty() || nlohmann::json::accept(made), "what a template makes is JSON");
        }
}

/// `parse` takes the text or throws an ax::error; `write` gives a text that `parse` takes and writes alike.
template <class Parse, class Write>
void read_text(std::string_view text, Parse&& parse, Write&& write) {
    std::string written;
    try {
        written = write(parse(text));
    } catch (ax::error const& e) {
        require(e.what()[0] != '\0', "an error says something");
        return;
    }
    require(std::string(write(parse(written))) == written, "what was written is read alike");
}

void read_retry(std::string_view text) {
    read_text(text, ax::retry::parse, [](ax::retry::policy const& p) { return to_text(p); });
    try {
        auto const policy = ax::retry::parse(text);
        std::mt19937_64 random{1};
        for (std::size_t failures : {1UL, 2UL, 17UL, 70'000UL, ~0UL})
            if (auto const delay = policy.next_delay({.failures = failures, .elapsed = {}}, random))
                require(*delay >= ax::duration{1}, "a retry is later");
    } catch (ax::error const&) {
    }
}

} // namespace

/// The first byte chooses what the rest is read as.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* bytes, std::size_t size) {
    if (size == 0) return 0;
    std::vector<char> const exact(bytes + 1, bytes + size); // a buffer of its own: a read beyond its end is seen
    std::string_view const text(exact.data(), exact.size());
    switch (bytes[0] & 7) {
    case 0: read_payload<order>(text); break;
    case 1: read_payload<std::map<std::string, place>>(text); break;
    case 2: read_payload<nlohmann::json>(text); break;
    case 3: read_template(text); break;
    case 4: read_retry(text); break;
    case 5:
        read_text(text, ax::detail::basic_recurrence<ax::cron>::parse,
                  [](auto const& recurrence) { return recurrence.spec(); });
        break;
    case 6:
        read_text(text, ax::detail::basic_schedule_terms<std::string>::parse,
                  [](auto const& terms) { return terms.text(); });
        break;
    default: {
        auto const cut = ax::detail::bounded_text(text, size / 2);
        require(cut.size() <= size / 2, "a cut text is no longer than it may be");
        require(ax::detail::first_bad_byte(cut) == std::string_view::npos, "a cut text is clean");
        break;
    }
    }
    return 0;
}
