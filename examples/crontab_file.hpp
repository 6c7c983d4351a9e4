// SPDX-License-Identifier: MIT
// Reads a crontab file: settings, schedules and commands, and every line that is none of them, with line, column and
// reason. One wrong line does not hide the rest. What the lines mean:
//
//   # a comment                         only where it is the first character of a line
//   NAME=value                          a setting for the jobs below; blanks around = are dropped, quotes too
//   CRON_TZ=Europe/Berlin               a setting that the schedules below follow
//   30 2 * * mon-fri  command           five fields, then the command to the end of the line
//   @daily  command                     a macro, lower case; @reboot is no time and has no schedule
//   30 2 * * *  user  command           in a table with a user column
//   0 1 * * *  cat%first%second         the first bare % ends the command, the rest is its input; \% is a plain %
//
// There are no continuation lines and no comments after a command.
#pragma once

#include <ax/cron/cron.hpp>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace crontab {

enum class table {
    personal,    ///< fields, command: what `crontab -e` edits
    user_column, ///< fields, user, command: /etc/crontab and /etc/cron.d
};

struct setting {
    std::size_t line = 0;
    std::string name, value;
};

struct entry {
    std::size_t line = 0;
    std::string schedule;         ///< as it stands there: "*/5 * * * *", "@reboot"
    std::optional<ax::cron> when; ///< empty: once, when the reader of the file starts (@reboot)
    std::string user;             ///< empty in a personal table
    std::string command;
    std::optional<std::string> input;               ///< its lines, parted by newlines; none: the command reads nothing
    std::map<std::string, std::string> environment; ///< the settings above
};

struct problem {
    std::size_t line = 0, column = 0; ///< from 1 on; columns count bytes
    std::string reason;

    /// `jobs.crontab:12:3: hour: ...`, as compilers write it.
    std::string message(std::string const& file) const {
        return file + ":" + std::to_string(line) + ":" + std::to_string(column) + ": " + reason;
    }
};

struct file {
    std::vector<setting> settings;
    std::vector<entry> entries;
    std::vector<problem> problems;
    std::size_t lines = 0, comments = 0, blanks = 0;
};

class reader {
  public:
    reader(table kind, ax::time_zone zone) : kind_(kind), home_(zone), zone_(zone) {}

    file read(std::string_view text) {
        if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3); // a byte-order mark
        while (!text.empty()) {
            auto const end = text.find('\n');
            auto line = text.substr(0, end);
            text.remove_prefix(end == text.npos ? text.size() : end + 1);
            if (line.ends_with('\r')) line.remove_suffix(1);
            ++result_.lines;
            read_line(line);
        }
        return std::move(result_);
    }

  private:
    static constexpr std::string_view blank_characters = " \t";

    static std::size_t skip_blanks(std::string_view line, std::size_t at) {
        return (std::min)(line.find_first_not_of(blank_characters, at), line.size());
    }

    static std::size_t skip_word(std::string_view line, std::size_t at) {
        return (std::min)(line.find_first_of(blank_characters, at), line.size());
    }

    void refuse(std::size_t at, std::string reason) {
        result_.problems.push_back({result_.lines, at + 1, std::move(reason)});
    }

    void read_line(std::string_view line) {
        auto const start = skip_blanks(line, 0);
        if (start == line.size()) {
            ++result_.blanks;
        } else if (line[start] == '#') {
            ++result_.comments;
        } else if (auto const nul = line.find('\0'); nul != line.npos) {
            refuse(nul, "a zero byte");
        } else if (!read_setting(line, start)) {
            read_entry(line, start);
        }
    }

    /// The end of the name that stands at `at`, or `at` where there is none. Quotes belong to it.
    static std::size_t end_of_name(std::string_view line, std::size_t at) {
        if (line[at] == '"' || line[at] == '\'') {
            auto const close = line.find(line[at], at + 1);
            return close == line.npos || close == at + 1 ? at : close + 1;
        }
        auto end = at;
        auto const letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; };
        while (end < line.size() && (letter(line[end]) || (end > at && line[end] >= '0' && line[end] <= '9'))) ++end;
        return end;
    }

    /// False where the line is none: a job's first field is never followed by an equals sign.
    bool read_setting(std::string_view line, std::size_t start) {
        auto const name_end = end_of_name(line, start);
        auto const equals = skip_blanks(line, name_end);
        if (name_end == start || equals == line.size() || line[equals] != '=') return false;
        auto name = line.substr(start, name_end - start);
        if (name.front() == '"' || name.front() == '\'') name = name.substr(1, name.size() - 2);

        auto const value_start = skip_blanks(line, equals + 1);
        auto value = line.substr(value_start);
        value = value.substr(0, value.find_last_not_of(blank_characters) + 1);
        if (!value.empty() && (value.front() == '"' || value.front() == '\'')) {
            auto const close = value.find(value.front(), 1);
            if (close == value.npos) return refuse(value_start, "a quote that is not closed"), true;
            if (close + 1 != value.size()) return refuse(value_start + close + 1, "text after the closing quote"), true;
            value = value.substr(1, close - 1);
        }
        if (name == "CRON_TZ") {
            zone_ = std::nullopt; // until it is known: no job runs by the clock of another place
            try {
                zone_ = value.empty() ? home_ : ax::time_zone{value};
            } catch (ax::error const&) {
                return refuse(value_start, "CRON_TZ is no name of a time zone"), true;
            }
        }
        environment_[std::string(name)] = value;
        result_.settings.push_back({result_.lines, std::string(name), std::string(value)});
        return true;
    }

    void read_entry(std::string_view line, std::size_t start) {
        auto end = skip_word(line, start);
        if (line[start] != '@')
            for (int field = 1; field < 5; ++field) end = skip_word(line, skip_blanks(line, end));
        auto const schedule = line.substr(start, end - start);
        bool const at_start = schedule == "@reboot";
        if (!at_start) {
            if (auto const wrong = ax::cron_expression::check(schedule, ax::cron_dialect::crontab)) {
                auto reason = wrong->message();
                reason = reason.substr(reason.find_first_of(",:") + 2); // the column is that of the line, not its own
                return refuse(start + wrong->column - 1, reason);
            }
            if (!zone_) return refuse(start, "the time zone of this job is unknown: see CRON_TZ above");
        }

        entry job;
        job.line = result_.lines;
        job.schedule = schedule;
        auto at = skip_blanks(line, end);
        if (kind_ == table::user_column) {
            auto const user_end = skip_word(line, at);
            if (at == user_end) return refuse(at, "the user is missing");
            job.user = line.substr(at, user_end - at);
            at = skip_blanks(line, user_end);
        }
        if (at == line.size()) return refuse(at, "the command is missing");
        split_command(line.substr(at), job);
        if (!at_start) job.when.emplace(job.schedule, *zone_, ax::cron_dialect::crontab);
        job.environment = environment_;
        result_.entries.push_back(std::move(job));
    }

    static void split_command(std::string_view text, entry& job) {
        auto* part = &job.command;
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == '%') {
                *part += '%';
                ++i;
            } else if (text[i] != '%') {
                *part += text[i];
            } else if (job.input) {
                *part += '\n';
            } else {
                part = &job.input.emplace();
            }
        }
    }

    table kind_;
    ax::time_zone home_;
    std::optional<ax::time_zone> zone_;
    std::map<std::string, std::string> environment_;
    file result_;
};

/// Reads the text of a file.
/// @param zone  The zone of jobs above the first CRON_TZ.
inline file read(std::string_view text, table kind = table::personal, ax::time_zone zone = {}) {
    return reader(kind, zone).read(text);
}

/// Reads the file at `path`. Throws std::runtime_error where it cannot be read.
inline file read_file(std::string const& path, table kind = table::personal, ax::time_zone zone = {}) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error("cannot read " + path);
    std::string const text(std::istreambuf_iterator<char>(in), {});
    return read(text, kind, zone);
}

} // namespace crontab
