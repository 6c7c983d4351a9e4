// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace axctl {

/// The command line makes no sense; the usage helps.
struct usage_error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The words of a command line. Options may stand anywhere: `--count 3` and `--count=3`.
class arguments {
  public:
    arguments(int count, char** values) : words_(values, values + (count > 0 ? count : 0)) {}

    /// Takes the first word; empty where there is none.
    std::string next_word() {
        if (words_.empty()) return {};
        auto word = words_.front();
        words_.erase(words_.begin());
        return word;
    }

    /// Takes the option `name` with its value.
    std::optional<std::string> option(std::string_view name) {
        for (auto at = words_.begin(); at != words_.end(); ++at) {
            if (*at == name) {
                if (at + 1 == words_.end()) throw usage_error(std::string(name) + " needs a value");
                auto value = at[1];
                words_.erase(at, at + 2);
                return value;
            }
            if (at->starts_with(name) && at->size() > name.size() && (*at)[name.size()] == '=') {
                auto value = at->substr(name.size() + 1);
                words_.erase(at);
                return value;
            }
        }
        return std::nullopt;
    }

    std::size_t number(std::string_view name, std::size_t otherwise) {
        auto const text = option(name);
        if (!text) return otherwise;
        std::size_t value = 0;
        auto const [end, failed] = std::from_chars(text->data(), text->data() + text->size(), value);
        if (failed != std::errc{} || end != text->data() + text->size())
            throw usage_error(std::string(name) + " needs a number, not \"" + *text + "\"");
        return value;
    }

    /// Takes the option `name`, which has no value; whether it was there.
    bool flag(std::string_view name) {
        auto const at = std::find(words_.begin(), words_.end(), name);
        if (at == words_.end()) return false;
        words_.erase(at);
        return true;
    }

    /// Takes the one word that must be left.
    std::string only_word(std::string_view what) {
        if (words_.empty()) throw usage_error(std::string(what) + " is missing");
        auto word = next_word();
        nothing_left();
        return word;
    }

    void nothing_left() const {
        if (!words_.empty()) throw usage_error("\"" + words_.front() + "\" is not understood");
    }

  private:
    std::vector<std::string> words_;
};

} // namespace axctl
