// SPDX-License-Identifier: MIT
// A JSON document of definitions while it is read: its values by kind, and every fault with the path (a JSON pointer)
// of what is wrong. What a section holds, its own reader knows.
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/core/error.hpp"
#include "ax/core/text.hpp"
#include "ax/retry/retry_policy.hpp"
#include "ax/scheduler/detail/definition_text.hpp"
#include "ax/scheduler/detail/submission.hpp"
#include "ax/scheduler/payload_template.hpp"
#include "ax/task/limit.hpp"
#include "ax/task/record.hpp"
#include "ax/time/time_point.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

/// The values of priority_class, as documents name them.
inline constexpr std::string_view priority_names[] = {
    to_string(priority_class::critical), to_string(priority_class::high), to_string(priority_class::normal),
    to_string(priority_class::low)};

/// What is wrong, and where.
struct definition_fault {
    std::string path; ///< a JSON pointer
    std::string reason;
};

/// @tparam Json  nlohmann::json, as a name by which a unit that reads no definitions does not pay for this code.
template <class Json>
class definition_page {
  public:
    using words = std::initializer_list<std::string_view>;
    using name_map = dependent<std::map<std::string, std::size_t, std::less<>>, Json>;

    static constexpr std::size_t deepest = 64;
    static constexpr std::size_t most_errors = 100;

    /// Parses `text`; members that stand twice in their object are faults, since only one of them would count.
    /// Nothing where it is no JSON, which is a fault.
    std::optional<Json> parse(std::string_view text) {
        struct level {
            bool object;
            std::set<std::string> names;
            std::string step; ///< what leads to the present member
            std::size_t index = 0;
        };
        struct too_deep {};
        // Json takes it for the end of the text, and passes over what is behind it.
        if (auto const nul = text.find('\0'); nul != text.npos) {
            fail({}, "is no JSON: there is a NUL byte at offset " + std::to_string(nul));
            return std::nullopt;
        }
        std::vector<level> levels;
        using event = typename Json::parse_event_t;
        auto const enter_member = [&] {
            if (!levels.empty() && !levels.back().object) levels.back().step = std::to_string(levels.back().index++);
        };
        auto const look = [&](int, event what, Json& parsed) {
            if (what == event::object_start || what == event::array_start) {
                enter_member();
                if (levels.size() == deepest) throw too_deep{};
                levels.push_back({what == event::object_start, {}, {}});
            } else if (what == event::object_end || what == event::array_end) {
                levels.pop_back();
            } else if (what == event::value) {
                enter_member();
            } else if (what == event::key) {
                auto const& name = parsed.template get_ref<std::string const&>();
                levels.back().step = name;
                if (!levels.back().names.insert(name).second) {
                    std::string path;
                    for (auto const& l : levels) path = below(path, l.step);
                    fail(path, "stands twice in its object");
                }
            }
            return true;
        };
        try {
            return Json::parse(text.begin(), text.end(), look);
        } catch (too_deep const&) {
            fail({}, "is nested more than " + std::to_string(deepest) + " deep");
        } catch (typename Json::exception const& e) { // "[json.exception...] parse error at line 2, column 5: ..."
            std::string_view const what = e.what();
            auto const end = what.find("] ");
            fail({}, "is no JSON: " + bounded_text(what.substr(end == what.npos ? 0 : end + 2), 200));
        }
        return std::nullopt;
    }

    dependent<std::vector<definition_fault>, Json> const& faults() const noexcept { return faults_; }
    std::size_t fault_count() const noexcept { return faults_.size(); }

    // ------------------------------------------------------------ values of several sections

    std::optional<ax::retry::policy> retry_of(Json const& value, std::string const& path) {
        if (value.is_string()) {
            if (is_one_of(string(value), path, {"none"})) return ax::retry::none();
            return std::nullopt;
        }
        if (!value.is_object()) {
            wrong_kind(value, path, R"("none", or an object such as {"exponential": "1m", "attempts": 5})");
            return std::nullopt;
        }
        if (!check_members(value, path,
                           {"fixed", "exponential", "list", "factor", "cap", "jitter", "attempts", "total"}))
            return std::nullopt;
        std::optional<ax::retry::policy> made;
        auto const* fixed = member(value, "fixed");
        auto const* exponential = member(value, "exponential");
        auto const* list = member(value, "list");
        if ((fixed != nullptr) + (exponential != nullptr) + (list != nullptr) != 1) {
            fail(path, "needs one of fixed, exponential, list");
        } else if (fixed) {
            if (auto const delay = length(*fixed, path + "/fixed", duration{0})) made = ax::retry::fixed(*delay);
        } else if (exponential) {
            if (auto const delay = length(*exponential, path + "/exponential", duration{0}))
                made = ax::retry::exponential(*delay);
        } else {
            made = retry_list_of(*list, path + "/list");
        }
        if (!made) return made;
        auto const refine = [&](std::string_view key, auto const& read_value, auto const& apply) {
            auto const* said = member(value, key);
            if (!said) return;
            auto const place = below(path, key);
            if (auto const argument = read_value(*said, place)) attempt(place, [&] { made = apply(*argument); });
        };
        auto const a_length = [this](Json const& v, std::string const& p) { return length(v, p); };
        auto const a_number = [this](Json const& v, std::string const& p) { return number_of(v, p); };
        auto const a_count = [this](Json const& v, std::string const& p) {
            bool const all = v.is_string() && string(v) == "unlimited";
            return all ? std::optional{ax::retry::unlimited} : count_of(v, p);
        };
        refine("factor", a_number, [&](double x) { return made->factor(x); });
        refine("cap", a_length, [&](duration d) { return made->cap(d); });
        refine("jitter", a_number, [&](double x) { return made->jitter(x); });
        refine("attempts", a_count, [&](std::size_t n) { return made->attempts(n); });
        refine("total", a_length, [&](duration d) { return made->total(d); });
        return made;
    }

    std::optional<ax::retry::policy> retry_list_of(Json const& value, std::string const& path) {
        if (!value.is_array()) {
            wrong_kind(value, path, "a list of lengths of time");
            return std::nullopt;
        }
        if (value.empty() || value.size() > ax::retry::longest_list) {
            fail(path, "has " + std::to_string(value.size()) + " delays: 1 to " +
                           std::to_string(ax::retry::longest_list) + " are needed");
            return std::nullopt;
        }
        std::string text = "list"; // the policy's own text form: the maker takes only lists that a compiler has seen
        bool sound = true;
        for (std::size_t i = 0; i != value.size(); ++i) {
            auto const delay = length(value[i], below(path, std::to_string(i)), duration{0});
            sound = sound && delay;
            if (delay) text += " " + std::to_string(delay->count());
        }
        if (!sound) return std::nullopt;
        return ax::retry::parse(text);
    }

    std::vector<std::string> tags_of(Json const& value, std::string const& path) {
        std::vector<std::string> tags;
        if (!value.is_array()) {
            wrong_kind(value, path, "a list of texts");
            return tags;
        }
        if (value.size() > most_tags)
            fail(path, "has " + std::to_string(value.size()) + " tags: at most " + std::to_string(most_tags) +
                           " are allowed");
        for (std::size_t i = 0; i != value.size(); ++i)
            tags.push_back(text_of(value[i], below(path, std::to_string(i)), longest_name));
        std::sort(tags.begin(), tags.end());
        tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
        return tags;
    }

    /// @param is_template  Whether its strings may hold placeholders.
    std::string payload_of(Json const& value, std::string const& path, bool is_template) {
        auto const before = fault_count();
        check_payload(value, path, is_template);
        return fault_count() == before ? value.dump() : std::string{};
    }

    void check_payload(Json const& value, std::string const& path, bool is_template, std::size_t depth = 1) {
        if (depth > deepest) return fail(path, "is nested more than " + std::to_string(deepest) + " deep");
        if (value.is_string()) {
            check_string(string(value), path, is_template);
        } else if (value.is_object()) {
            for (auto const& item : value.items()) {
                check_string(item.key(), below(path, item.key()), is_template);
                check_payload(item.value(), below(path, item.key()), is_template, depth + 1);
            }
        } else if (value.is_array()) {
            for (std::size_t i = 0; i != value.size(); ++i)
                check_payload(value[i], below(path, std::to_string(i)), is_template, depth + 1);
        } else if (value.is_binary() || value.is_discarded()) {
            fail(path, "cannot be written as JSON");
        }
    }

    void check_string(std::string const& text, std::string const& path, bool is_template) {
        if (auto const at = first_bad_byte(text); at != text.npos && text[at] != '\0')
            return fail(path, "is not valid UTF-8 at offset " + std::to_string(at));
        if (!is_template) return;
        if (auto const fault = payload_template::check_string(text)) fail(path, fault->message());
    }

    /// The name of a task type that a caller may use.
    std::string type_of(Json const& value, std::string const& path) {
        auto const name = text_of(value, path, longest_name);
        bool const good = name.empty() || attempt(path, [&] { check_type_name(name); });
        return good ? name : std::string{};
    }

    // ------------------------------------------------------------ members of any kind

    /// A name that no other of its kind has.
    /// @param place  The how-manieth of its list it is.
    std::string name_of(Json const& one, std::string const& path, name_map& taken, std::size_t place) {
        std::string name;
        if (auto const* value = member(one, "name"))
            name = text_of(*value, path + "/name", longest_name);
        else
            fail(path + "/name", "is missing");
        if (name.empty()) return name;
        auto const [before, is_new] = taken.emplace(name, place);
        if (!is_new)
            fail(path + "/name",
                 quoted(name) + " is the name of number " + std::to_string(before->second) + " already");
        return name;
    }

    /// A text that is not empty; empty where it was none.
    std::string text_of(Json const& value, std::string const& path, std::size_t limit) {
        if (!value.is_string()) {
            wrong_kind(value, path, "a text");
            return {};
        }
        bool const good = attempt(path, [&] { check_text(string(value), "text", limit, false); });
        return good ? string(value) : std::string{};
    }

    std::optional<time_span> length_of(Json const& one, std::string const& path, std::string_view key) {
        auto const* value = member(one, key);
        if (!value) return std::nullopt;
        auto const found = length(*value, below(path, key));
        if (!found) return std::nullopt;
        return time_span{*found};
    }

    std::optional<duration> length(Json const& value, std::string const& path, duration least = duration{1}) {
        constexpr auto allowed = "a length of time, as \"90s\", \"15m\", \"1h30m\", \"1d\"";
        if (!value.is_string()) {
            wrong_kind(value, path, allowed);
            return std::nullopt;
        }
        auto const found = duration_of(string(value));
        if (!found)
            fail(path, quoted(string(value)) + " is no length of time; allowed: numbers with w, d, h, m, s or ms, the "
                                               "larger first, as 1h30m; at most 36525d");
        else if (*found < least)
            fail(path, "is nothing: at least 1ms is needed");
        else
            return found;
        return std::nullopt;
    }

    std::optional<std::size_t> count_of(Json const& value, std::string const& path) {
        if (!value.is_number_integer()) {
            wrong_kind(value, path, "a whole number");
        } else if (value.is_number_unsigned() ? value.template get<std::uint64_t>() == 0
                                              : value.template get<std::int64_t>() <= 0) {
            fail(path, value.dump() + " is out of range: at least 1 is needed");
        } else {
            return value.template get<std::size_t>();
        }
        return std::nullopt;
    }

    std::optional<double> number_of(Json const& value, std::string const& path) {
        if (value.is_number()) return value.template get<double>();
        wrong_kind(value, path, "a number");
        return std::nullopt;
    }

    std::optional<priority_class> priority_of(Json const& one, std::string const& path) {
        auto const word = word_of(one, path, "priority", priority_names);
        for (std::size_t i = 0; i != std::size(priority_names); ++i)
            if (word == priority_names[i]) return static_cast<priority_class>(i);
        return std::nullopt;
    }

    /// The value of a member that is one of some words; empty where there is no such member or it is none of them.
    template <class Words>
    std::string word_of(Json const& one, std::string const& path, std::string_view key, Words const& allowed) {
        auto const* value = member(one, key);
        if (!value) return {};
        auto const place = below(path, key);
        if (!value->is_string()) return wrong_kind(*value, place, joined(allowed)), std::string{};
        return is_one_of(string(*value), place, allowed) ? string(*value) : std::string{};
    }
    std::string word_of(Json const& one, std::string const& path, std::string_view key, words allowed) {
        return word_of<words>(one, path, key, allowed);
    }

    template <class Words>
    bool is_one_of(std::string const& word, std::string const& path, Words const& allowed) {
        for (std::string_view const candidate : allowed)
            if (word == candidate) return true;
        return fail_word(path, quoted(word) + " is unknown", word, allowed);
    }
    bool is_one_of(std::string const& word, std::string const& path, words allowed) {
        return is_one_of<words>(word, path, allowed);
    }

    bool check_members(Json const& one, std::string const& path, words allowed) {
        bool good = true;
        for (auto const& item : one.items()) {
            if (std::find(allowed.begin(), allowed.end(), item.key()) == allowed.end())
                good = fail_word(below(path, item.key()), "is unknown here", item.key(), allowed);
        }
        return good;
    }

    /// Calls `action(element, path, place)` for each element of a list, which may be missing.
    template <class Action>
    void each(Json const& one, std::string const& path, std::string_view key, Action action) {
        auto const* list = member(one, key);
        if (!list) return;
        auto const place = below(path, key);
        if (!list->is_array()) {
            wrong_kind(*list, place, "a list");
            return;
        }
        for (std::size_t i = 0; i != list->size(); ++i) action((*list)[i], below(place, std::to_string(i)), i);
    }

    static Json const* member(Json const& one, std::string_view key) {
        auto const found = one.find(key);
        return found == one.end() ? nullptr : &*found;
    }

    static std::string const& string(Json const& value) { return value.template get_ref<std::string const&>(); }

    // ------------------------------------------------------------ faults

    /// Returns false.
    template <class Words>
    bool fail_word(std::string const& path, std::string reason, std::string_view word, Words const& allowed) {
        auto const meant = nearest_word(word, allowed);
        reason += meant.empty() ? "; allowed: " : "; did you mean \"" + std::string(meant) + "\"? Allowed: ";
        fail(path, reason + joined(allowed));
        return false;
    }

    bool is_object(Json const& value, std::string const& path) {
        return value.is_object() || wrong_kind(value, path, "an object");
    }

    /// Returns false.
    bool wrong_kind(Json const& value, std::string const& path, std::string const& wanted) {
        fail(path, std::string("is ") + (value.is_null() ? "null" : kind_name(value)) + "; allowed: " + wanted);
        return false;
    }

    static char const* kind_name(Json const& value) {
        return value.is_string()    ? "a text"
               : value.is_number()  ? "a number"
               : value.is_boolean() ? "true or false"
               : value.is_object()  ? "an object"
               : value.is_array()   ? "a list"
                                    : "of no kind that JSON has";
    }

    /// Makes the refusal of a part a fault of the document. Returns whether there was none.
    template <class Action>
    bool attempt(std::string const& path, Action action) {
        try {
            action();
            return true;
        } catch (error const& e) {
            std::string_view reason = e.what();
            auto const code = ": " + e.code().message();
            if (reason.ends_with(code)) reason.remove_suffix(code.size());
            fail(path, std::string(reason));
            return false;
        }
    }

    void fail(std::string const& path, std::string const& reason) {
        if (faults_.size() < most_errors)
            faults_.push_back({bounded_text(path, 500), bounded_text(reason, 1'000)});
        else if (faults_.size() == most_errors)
            faults_.push_back({{}, "has more faults than the " + std::to_string(most_errors) + " told"});
    }

    /// The path of a member: RFC 6901.
    static std::string below(std::string const& path, std::string_view step) {
        auto result = path + '/';
        for (char const c : step) c == '~' ? result += "~0" : c == '/' ? result += "~1" : result += c;
        return result;
    }

    static std::string quoted(std::string_view text) { return '"' + bounded_text(text, 80) + '"'; }

    template <class Words>
    static std::string joined(Words const& words) {
        std::string text;
        for (std::string_view const word : words) text.append(text.empty() ? "" : ", ").append(word);
        return text;
    }

  private:
    dependent<std::vector<definition_fault>, Json> faults_;
};

} // namespace ax::detail
