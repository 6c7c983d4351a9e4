// SPDX-License-Identifier: MIT
// Reads the text of an expression into bit masks: one pass, no memory, one small record of what is wrong where.
// Dialects differ in a table of what they allow, not in code of their own.
#pragma once

#include "ax/cron/detail/calendar.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ax {

/// The language that an expression is written in. docs/cron.md compares them.
enum class cron_dialect : std::uint8_t {
    ax,      ///< five to seven fields, the union of what is useful in the others; the default
    crontab, ///< five fields as classic cron reads them
    quartz,  ///< six or seven fields, weekdays from 1, one day field is `?`
    spring,  ///< six fields, both day fields must match
};

/// The fields of an expression, in the order in which they are written.
enum class cron_field : std::uint8_t { second, minute, hour, day, month, weekday, year };

/// "day of month" and the like.
constexpr char const* name_of(cron_field field) noexcept {
    constexpr char const* names[] = {"second", "minute", "hour", "day of month", "month", "day of week", "year"};
    return names[static_cast<std::size_t>(field)];
}

/// "crontab" and the like: the name of the enumerator.
constexpr char const* name_of(cron_dialect which) noexcept {
    constexpr char const* names[] = {"ax", "crontab", "quartz", "spring"};
    return names[static_cast<std::size_t>(which)];
}

/// The dialect with that name, spelt exactly so.
constexpr std::optional<cron_dialect> dialect_named(std::string_view name) noexcept {
    for (auto const which : {cron_dialect::ax, cron_dialect::crontab, cron_dialect::quartz, cron_dialect::spring})
        if (name == name_of(which)) return which;
    return std::nullopt;
}

namespace detail {

/// Fields whose two day fields are both restricted.
enum class both_days : std::uint8_t {
    either,     ///< either matches; `+` asks for both
    star_joins, ///< both match if one of the fields begins with a star, else either
    both,       ///< both match
    exclusive,  ///< refused: one must be `?`
};

struct cron_grammar {
    std::uint8_t fewest_fields, most_fields;
    both_days day_fields;
    bool weekdays_from_one; ///< Sunday is 1, and there is no 0
    bool ranges_wrap;       ///< 22-4 goes on over midnight
    bool start_with_step;   ///< 5/15
    bool far_steps;         ///< a step may exceed the field
    bool question_mark;     ///< in the day fields
    bool letters;           ///< L W #
    bool letters_in_lists;
    bool hashed; ///< H: a value drawn from the name
    bool macros;
    bool macros_any_case;
};

inline constexpr cron_grammar cron_grammars[] = {
    {5, 7, both_days::either, false, true, true, true, true, true, true, true, true, true},
    {5, 5, both_days::star_joins, false, false, false, true, false, false, false, false, true, false},
    {6, 7, both_days::exclusive, true, true, true, false, true, true, true, false, false, false},
    {6, 6, both_days::both, false, false, true, true, true, true, false, false, true, true},
};

inline constexpr cron_grammar const& grammar_of(cron_dialect which) noexcept {
    return cron_grammars[static_cast<std::size_t>(which)];
}

enum class cron_trouble : std::uint8_t {
    none,
    empty_text,
    too_few_fields,
    too_many_fields,
    unknown_macro,
    macro_with_more,
    no_macros,
    no_calendar_macro,
    empty_element,
    unexpected,
    not_a_value,
    out_of_range,
    backward_range,
    open_range,
    step_missing,
    step_zero,
    step_too_far,
    step_without_range,
    no_question_mark,
    no_letters,
    letter_in_list,
    bare_last_weekday,
    bad_nth,
    needs_question_mark,
    bad_plus,
};

struct cron_fault {
    cron_trouble trouble = cron_trouble::none;
    cron_field field = cron_field::second;
    bool in_field = false;
    std::size_t position = 0, length = 0;
};

/// The limits of a field. Weekdays are 0-6 inside, whatever the dialect counts from.
struct field_limits {
    std::uint16_t lowest, highest;
};

constexpr field_limits limits_of(cron_field field, cron_grammar const& grammar) noexcept {
    constexpr field_limits limits[] = {{0, 59}, {0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 7}, {1970, 2199}};
    if (field == cron_field::weekday && grammar.weekdays_from_one) return {1, 7};
    return limits[static_cast<std::size_t>(field)];
}

constexpr bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }
constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }
constexpr bool is_letter(char c) noexcept { return lower(c) >= 'a' && lower(c) <= 'z'; }

constexpr std::uint32_t three_letters(char a, char b, char c) noexcept {
    auto const code = [](char letter) { return static_cast<std::uint32_t>(static_cast<unsigned char>(lower(letter))); };
    return code(a) << 16 | code(b) << 8 | code(c);
}

constexpr std::uint32_t three_letters(char const* name) noexcept { return three_letters(name[0], name[1], name[2]); }

inline constexpr std::uint32_t month_names[] = {three_letters("jan"), three_letters("feb"), three_letters("mar"),
                                                three_letters("apr"), three_letters("may"), three_letters("jun"),
                                                three_letters("jul"), three_letters("aug"), three_letters("sep"),
                                                three_letters("oct"), three_letters("nov"), three_letters("dec")};
inline constexpr std::uint32_t weekday_names[] = {three_letters("sun"), three_letters("mon"), three_letters("tue"),
                                                  three_letters("wed"), three_letters("thu"), three_letters("fri"),
                                                  three_letters("sat")};

/// What was written that is valid and surprising, a bit for each cron_field; for warnings.
struct cron_notes {
    std::uint8_t far_steps = 0;    ///< the step leaves the first value only: */90 minutes
    std::uint8_t uneven_steps = 0; ///< the last stretch is shorter: */7 minutes
    bool both_days_restricted = false;
};

/// A number that depends on the name and the field alone; the same in every process and release.
constexpr std::uint64_t hash_of(std::string_view name, cron_field field) noexcept {
    std::uint64_t h = 0xcbf29ce484222325ULL; // FNV-1a
    for (char const c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    h = (h ^ static_cast<std::uint64_t>(field)) * 0x100000001b3ULL;
    h ^= h >> 32; // its low bits alone are weak
    h *= 0x9e3779b97f4a7c15ULL;
    return h >> 32;
}

/// What a field said that its set of values does not show.
struct field_shape {
    bool free = false;       ///< the whole text is `*` or `?`
    bool question = false;   ///< it is `?`
    bool star_first = false; ///< the text begins with `*`
    bool interval = false;   ///< it holds `*` or `/`
};

class cron_reader {
  public:
    cron_reader(std::string_view text, cron_grammar const& grammar, std::string_view name = {}) noexcept
        : begin_(text.data()), at_(text.data()), end_(text.data() + text.size()), name_(name), grammar_(grammar) {}

    /// Of the last read().
    cron_notes const& notes() const noexcept { return notes_; }

    /// Fills `result`, which must be empty. What it holds after a fault means nothing.
    cron_fault read(cron_fields& result) noexcept {
        fields_ = &result;
        skip_blanks();
        if (at_ != end_ && *at_ == '@') {
            if (read_macro()) finish();
            return fault_;
        }
        auto const count = count_fields();
        if (count < grammar_.fewest_fields || count > grammar_.most_fields) {
            refuse_count(count);
            return fault_;
        }
        result.years = all_years;
        result.seconds = 1;
        auto field = count >= 6 ? cron_field::second : cron_field::minute;
        for (unsigned i = 0; i < count; ++i) {
            if (!read_field(field)) return fault_;
            field = static_cast<cron_field>(static_cast<unsigned>(field) + 1);
            skip_blanks();
        }
        finish();
        return fault_;
    }

  private:
    static constexpr std::array<std::uint64_t, 4> all_years = {~std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0},
                                                               (std::uint64_t{1} << (cron_years - 192)) - 1};

    void skip_blanks() noexcept {
        while (at_ != end_ && is_blank(*at_)) ++at_;
    }

    bool at_separator() const noexcept { return at_ == end_ || *at_ == ',' || is_blank(*at_); }
    bool at_field_end() const noexcept { return at_ == end_ || is_blank(*at_); }

    bool next_is(char c) const noexcept { return at_ != end_ && *at_ == c; }

    /// Any case.
    bool next_is_letter(char c) const noexcept { return at_ != end_ && lower(*at_) == c; }

    bool refuse(cron_trouble trouble, char const* from, char const* to) noexcept {
        fault_ = {trouble, field_, in_field_, static_cast<std::size_t>(from - begin_),
                  static_cast<std::size_t>(to - from)};
        return false;
    }

    /// Refuses the text from `from` to the end of its element.
    bool refuse(cron_trouble trouble, char const* from) noexcept {
        auto const* to = from;
        while (to != end_ && *to != ',' && !is_blank(*to)) ++to;
        return refuse(trouble, from, to);
    }

    unsigned count_fields() const noexcept {
        unsigned count = 0;
        bool blank = true;
        for (auto const* p = at_; p != end_; ++p) {
            bool const b = is_blank(*p);
            count += blank && !b;
            blank = b;
        }
        return count;
    }

    void refuse_count(unsigned count) noexcept {
        if (count == 0) {
            refuse(cron_trouble::empty_text, end_, end_);
        } else if (count < grammar_.fewest_fields) {
            refuse(cron_trouble::too_few_fields, end_, end_);
        } else {
            for (unsigned i = 0; i < grammar_.most_fields; ++i) {
                while (!at_field_end()) ++at_;
                skip_blanks();
            }
            auto const* last = end_;
            while (is_blank(last[-1])) --last;
            refuse(cron_trouble::too_many_fields, at_, last);
        }
    }

    bool read_macro() noexcept {
        auto const* name = at_;
        while (!at_field_end()) ++at_;
        auto const* name_end = at_;
        if (!grammar_.macros) return refuse(cron_trouble::no_macros, name, name_end);
        skip_blanks();
        auto const is = [&](std::string_view macro) {
            if (static_cast<std::size_t>(name_end - name) != macro.size()) return false;
            for (std::size_t i = 0; i < macro.size(); ++i)
                if ((grammar_.macros_any_case ? lower(name[i]) : name[i]) != macro[i]) return false;
            return true;
        };
        if (is("@reboot") || is("@every")) return refuse(cron_trouble::no_calendar_macro, name, name_end);
        auto& f = *fields_;
        f.seconds = f.minutes = 1;
        f.hours = 1;
        f.days = cron_fields::all_days;
        f.months = cron_fields::all_months;
        f.weekdays = cron_fields::all_weekdays;
        f.years = all_years;
        shape_of(cron_field::day).free = shape_of(cron_field::weekday).free = true;
        shape_of(cron_field::day).star_first = shape_of(cron_field::weekday).star_first = true;
        if (is("@hourly")) {
            f.hours = cron_fields::all_hours;
            shape_of(cron_field::hour).interval = true;
        } else if (is("@daily") || is("@midnight")) {
        } else if (is("@weekly")) {
            f.weekdays = 1;
            shape_of(cron_field::weekday) = {};
        } else if (is("@monthly")) {
            f.days = 1;
            shape_of(cron_field::day) = {};
        } else if (is("@yearly") || is("@annually")) {
            f.days = 1;
            f.months = 1U << 1;
            shape_of(cron_field::day) = {};
        } else {
            return refuse(cron_trouble::unknown_macro, name, name_end);
        }
        if (at_ != end_) return refuse(cron_trouble::macro_with_more, at_, end_);
        return true;
    }

    bool read_field(cron_field field) noexcept {
        field_ = field;
        in_field_ = true;
        limits_ = limits_of(field, grammar_);
        shape_ = &shape_of(field);
        start_ = at_;
        if (field == cron_field::weekday) start_of_weekday_ = at_;
        mask_ = 0;
        if (field == cron_field::year) fields_->years = {};
        shape_->star_first = *at_ == '*';
        if (*at_ == '?') {
            if (!read_question_mark()) return false;
        } else {
            if (*at_ == '+' && !read_plus()) return false;
            for (;;) {
                if (!read_element()) return false;
                if (at_field_end()) break;
                ++at_; // the comma
            }
        }
        if (at_ - start_ == 1 && *start_ == '*') shape_->free = true;
        store();
        return true;
    }

    bool read_question_mark() noexcept {
        bool const day_field = field_ == cron_field::day || field_ == cron_field::weekday;
        if (!grammar_.question_mark) return refuse(cron_trouble::unexpected, at_);
        if (!day_field) return refuse(cron_trouble::no_question_mark, at_);
        ++at_;
        if (!at_field_end()) return refuse(cron_trouble::no_question_mark, start_);
        shape_->free = shape_->question = true;
        add(limits_.lowest, limits_.highest, 1);
        return true;
    }

    bool read_plus() noexcept {
        if (field_ != cron_field::weekday || grammar_.day_fields != both_days::either)
            return refuse(cron_trouble::bad_plus, at_);
        ++at_;
        start_ = at_;
        if (at_field_end()) return refuse(cron_trouble::bad_plus, at_ - 1);
        plus_ = true;
        return true;
    }

    void store() noexcept {
        auto& f = *fields_;
        switch (field_) {
        case cron_field::second: f.seconds = mask_; break;
        case cron_field::minute: f.minutes = mask_; break;
        case cron_field::hour: f.hours = static_cast<std::uint32_t>(mask_); break;
        case cron_field::day: f.days = static_cast<std::uint32_t>(mask_ >> 1); break;
        case cron_field::month: f.months = static_cast<std::uint16_t>(mask_); break;
        case cron_field::weekday: f.weekdays = static_cast<std::uint8_t>((mask_ | mask_ >> 7) & 0x7f); break;
        case cron_field::year: break;
        }
    }

    /// How the two day fields go together, and whether the whole is an interval. One meaning gets one form.
    void finish() noexcept {
        auto& f = *fields_;
        if (f.nth_weekdays != 0) f.nth_weekdays &= ~(std::uint64_t{f.weekdays} * 0x810204081ULL);
        if (f.days == cron_fields::all_days) f.days_from_end = f.working_days = f.working_days_from_end = 0;
        auto const& day = shape_of(cron_field::day);
        auto const& weekday = shape_of(cron_field::weekday);
        f.interval = shape_of(cron_field::second).interval || shape_of(cron_field::minute).interval ||
                     shape_of(cron_field::hour).interval;
        switch (grammar_.day_fields) {
        case both_days::either: f.either_day = !day.free && !weekday.free && !plus_; break;
        case both_days::star_joins: f.either_day = !day.star_first && !weekday.star_first; break;
        case both_days::both: f.either_day = false; break;
        case both_days::exclusive:
            f.either_day = false;
            if (day.question == weekday.question) {
                field_ = cron_field::weekday;
                in_field_ = true;
                refuse(cron_trouble::needs_question_mark, start_of_weekday_);
            }
            break;
        }
        notes_.both_days_restricted = !day.free && !weekday.free;
        if (f.either_day && (f.days == cron_fields::all_days || f.weekdays == cron_fields::all_weekdays)) {
            f.either_day = false; // every day
            f.days = cron_fields::all_days;
            f.weekdays = cron_fields::all_weekdays;
            f.nth_weekdays = 0;
            f.days_from_end = f.working_days = f.working_days_from_end = 0;
        }
    }

    bool read_element() noexcept {
        auto const* element = at_;
        if (at_separator()) return refuse(cron_trouble::empty_element, at_, at_);
        unsigned first = limits_.lowest, last = limits_.highest, step = 1;
        bool single = false;
        if (*at_ == '*') {
            ++at_;
            shape_->interval = true;
            if (field_ == cron_field::weekday && !grammar_.weekdays_from_one) last = 6;
        } else if (field_ == cron_field::day && next_is_letter('l')) {
            return read_last_day(element);
        } else if (field_ == cron_field::weekday && next_is_letter('l')) {
            if (!grammar_.weekdays_from_one || !grammar_.letters) return refuse(last_weekday_trouble(), element);
            ++at_;
            if (!at_separator()) return refuse(cron_trouble::unexpected, element);
            first = last = 7; // Saturday
        } else if (next_is_letter('h') && grammar_.hashed) {
            return read_hashed(element);
        } else {
            if (!read_value(first)) return false;
            if (!at_separator() && grammar_value_letter()) return read_letter_after(element, first);
            single = !next_is('-');
            if (single) {
                last = first;
            } else {
                ++at_;
                if (at_separator() || *at_ == '/') return refuse(cron_trouble::open_range, element);
                if (!read_value(last)) return false;
                if (!order_range(element, first, last)) return false;
            }
        }
        if (next_is('/')) {
            shape_->interval = true;
            if (!read_step(element, step)) return false;
            if (single) {
                if (!grammar_.start_with_step) return refuse(cron_trouble::step_without_range, element);
                last = limits_.highest;
                if (field_ == cron_field::weekday && grammar_.ranges_wrap && !grammar_.weekdays_from_one) {
                    last = 6;
                    if (first == 7) first = 0;
                }
            }
        }
        if (!at_separator()) return refuse(cron_trouble::unexpected, element);
        if (step > 1) note_step(first, last, step, single || *element == '*');
        add(first, last, step);
        return true;
    }

    void note_step(unsigned first, unsigned last, unsigned step, bool to_the_end) noexcept {
        auto const bit = static_cast<std::uint8_t>(1U << static_cast<unsigned>(field_));
        if (first + step > last) {
            notes_.far_steps |= bit;
        } else if (to_the_end && field_ != cron_field::year) {
            auto const size = field_ == cron_field::weekday ? 7U : limits_.highest - limits_.lowest + 1U;
            if (size % step != 0) notes_.uneven_steps |= bit;
        }
    }

    cron_trouble last_weekday_trouble() const noexcept {
        return grammar_.letters ? cron_trouble::bare_last_weekday : cron_trouble::no_letters;
    }

    /// Whether the next character can belong to a value: `15W`, `5L`, `FRI#2`.
    bool grammar_value_letter() const noexcept {
        if (field_ == cron_field::day) return next_is_letter('w');
        return field_ == cron_field::weekday && (next_is_letter('l') || next_is('#'));
    }

    bool read_number(unsigned& value) noexcept {
        auto const* p = at_;
        unsigned v = 0;
        for (; p != end_ && is_digit(*p); ++p) {
            v = v * 10 + static_cast<unsigned>(*p - '0');
            if (v > 100'000) v = 100'000; // beyond every limit, and far from an overflow
        }
        if (p == at_) return false;
        at_ = p;
        value = v;
        return true;
    }

    bool read_value(unsigned& value) noexcept {
        auto const* from = at_;
        if (read_number(value)) {
            if (value < limits_.lowest || value > limits_.highest) return refuse(cron_trouble::out_of_range, from, at_);
            return true;
        }
        if (end_ - at_ >= 3 && (field_ == cron_field::month || field_ == cron_field::weekday)) {
            auto const name = three_letters(at_[0], at_[1], at_[2]);
            bool const month = field_ == cron_field::month;
            auto const* names = month ? month_names : weekday_names;
            for (unsigned i = 0, count = month ? 12U : 7U; i < count; ++i) {
                if (name != names[i]) continue;
                at_ += 3;
                if (at_ != end_ && is_letter(*at_) && !(grammar_.letters && next_is_letter('l') && !month)) break;
                value = i + (month || grammar_.weekdays_from_one);
                return true;
            }
        }
        return refuse(cron_trouble::not_a_value, from);
    }

    /// Makes `last` so large that counting up from `first` meets it, or refuses.
    bool order_range(char const* element, unsigned& first, unsigned& last) noexcept {
        bool const from_zero = field_ == cron_field::weekday && !grammar_.weekdays_from_one;
        if (from_zero && first == 7 && last != 7 && grammar_.ranges_wrap) first = 0;
        if (first <= last) return true;
        if (from_zero && last == 0) {
            last = 7; // FRI-SUN
            return true;
        }
        if (!grammar_.ranges_wrap || field_ == cron_field::year) return refuse(cron_trouble::backward_range, element);
        last += from_zero ? 7U : limits_.highest - limits_.lowest + 1U;
        return true;
    }

    bool read_step(char const* element, unsigned& step) noexcept {
        ++at_;
        auto const* from = at_;
        if (at_separator()) return refuse(cron_trouble::step_missing, element);
        if (!read_number(step)) return refuse(cron_trouble::unexpected, element);
        if (step == 0) return refuse(cron_trouble::step_zero, element);
        if (!grammar_.far_steps && step > limits_.highest) return refuse(cron_trouble::step_too_far, from, at_);
        return true;
    }

    /// first, first + step, ... up to last; values above the field go round.
    void add(unsigned first, unsigned last, unsigned step) noexcept {
        if (field_ == cron_field::year) {
            for (auto v = first; v <= last; v += step)
                fields_->years[(v - first_cron_year) >> 6] |= std::uint64_t{1} << ((v - first_cron_year) & 63);
            return;
        }
        if (field_ == cron_field::weekday && grammar_.weekdays_from_one) --first, --last;
        unsigned const lowest = field_ == cron_field::weekday ? 0U : limits_.lowest;
        unsigned const size = field_ == cron_field::weekday ? 7U : limits_.highest - limits_.lowest + 1U;
        if (step == 1 && last < lowest + size) {
            mask_ |= (~std::uint64_t{0} >> (63 - last)) & (~std::uint64_t{0} << first);
            return;
        }
        for (auto v = first; v <= last; v += step) mask_ |= std::uint64_t{1} << (v < lowest + size ? v : v - size);
    }

    /// `H`, `H/15`, `H(0-29)`, `H(0-29)/10`.
    bool read_hashed(char const* element) noexcept {
        ++at_;
        if (field_ == cron_field::year) return refuse(cron_trouble::not_a_value, element);
        unsigned first = limits_.lowest, last = limits_.highest, step = 0;
        if (field_ == cron_field::day) last = 28; // a day that every month has
        if (field_ == cron_field::weekday) last = 6;
        if (next_is('(')) {
            ++at_;
            if (!read_value(first)) return false;
            if (!next_is('-')) return refuse(cron_trouble::unexpected, element);
            ++at_;
            if (!read_value(last)) return false;
            if (!next_is(')')) return refuse(cron_trouble::unexpected, element);
            ++at_;
            if (first > last) return refuse(cron_trouble::backward_range, element);
        }
        if (next_is('/')) {
            shape_->interval = true;
            if (!read_step(element, step)) return false;
        }
        if (!at_separator()) return refuse(cron_trouble::unexpected, element);
        auto const size = last - first + 1;
        auto const hash = hash_of(name_, field_);
        if (step == 0 || step >= size) {
            first += static_cast<unsigned>(hash % size);
            add(first, first, 1);
        } else {
            add(first + static_cast<unsigned>(hash % step), last, step);
        }
        return true;
    }

    // The rules with letters.

    bool letters_allowed(char const* element) noexcept {
        if (!grammar_.letters) return refuse(cron_trouble::no_letters, element);
        if (!grammar_.letters_in_lists && (element != start_ || next_is(',')))
            return refuse(cron_trouble::letter_in_list, element);
        return true;
    }

    /// `L`, `L-n`, `LW`, `L-nW`.
    bool read_last_day(char const* element) noexcept {
        ++at_;
        unsigned before = 0;
        bool const offset = next_is('-');
        if (offset) {
            ++at_;
            auto const* from = at_;
            if (!read_number(before)) return refuse(cron_trouble::unexpected, element);
            if (before > 30) return refuse(cron_trouble::out_of_range, from, at_);
        }
        bool const working = next_is_letter('w');
        if (working) ++at_;
        if (!at_separator())
            return refuse(grammar_.letters ? cron_trouble::unexpected : cron_trouble::no_letters, element);
        if (!letters_allowed(element)) return false;
        if (working && offset && !grammar_.letters_in_lists) return refuse(cron_trouble::unexpected, element);
        (working ? fields_->working_days_from_end : fields_->days_from_end) |= 1U << before;
        return true;
    }

    /// `15W`, `5L`, `5#3`, `5#L`.
    bool read_letter_after(char const* element, unsigned value) noexcept {
        if (!grammar_.letters) return refuse(cron_trouble::no_letters, element);
        if (field_ == cron_field::day) {
            ++at_;
            if (!at_separator()) return refuse(cron_trouble::unexpected, element);
            if (!letters_allowed(element)) return false;
            fields_->working_days |= 1U << (value - 1);
            return true;
        }
        auto const weekday = (grammar_.weekdays_from_one ? value - 1 : value) % 7;
        unsigned nth = 6; // the last one
        if (next_is('#')) {
            ++at_;
            if (next_is_letter('l')) {
                ++at_;
            } else if (!read_number(nth) || nth < 1 || nth > 5) {
                return refuse(cron_trouble::bad_nth, element);
            }
        } else {
            ++at_;
        }
        if (!at_separator()) return refuse(cron_trouble::unexpected, element);
        if (!letters_allowed(element)) return false;
        fields_->nth_weekdays |= std::uint64_t{1} << (7 * (nth - 1) + weekday);
        return true;
    }

    field_shape& shape_of(cron_field field) noexcept { return shapes_[static_cast<std::size_t>(field)]; }

    char const* begin_;
    char const* at_;
    char const* end_;
    char const* start_ = nullptr; ///< of the field
    char const* start_of_weekday_ = nullptr;
    std::string_view name_; ///< for H
    cron_grammar const& grammar_;
    cron_fields* fields_ = nullptr;
    field_shape* shape_ = nullptr;
    std::uint64_t mask_ = 0;
    field_limits limits_{};
    cron_field field_ = cron_field::second;
    bool in_field_ = false;
    bool plus_ = false;
    field_shape shapes_[7]{};
    cron_notes notes_{};
    cron_fault fault_{};
};

inline char const* reason_of(cron_trouble trouble) noexcept {
    switch (trouble) {
    case cron_trouble::none: break;
    case cron_trouble::empty_text: return "the text is empty";
    case cron_trouble::too_few_fields: return "fields are missing";
    case cron_trouble::too_many_fields: return "is more than an expression has";
    case cron_trouble::unknown_macro: return "is no macro";
    case cron_trouble::macro_with_more: return "stands after a macro, which stands alone";
    case cron_trouble::no_macros: return "is a macro, which this dialect does not have";
    case cron_trouble::no_calendar_macro: return "is no calendar expression";
    case cron_trouble::empty_element: return "a value is missing";
    case cron_trouble::unexpected: return "is not understood";
    case cron_trouble::not_a_value: return "is no value of this field";
    case cron_trouble::out_of_range: return "is out of range";
    case cron_trouble::backward_range: return "runs backwards";
    case cron_trouble::open_range: return "is a range without an end";
    case cron_trouble::step_missing: return "has no step after the slash";
    case cron_trouble::step_zero: return "has a step of zero";
    case cron_trouble::step_too_far: return "is a step beyond the field";
    case cron_trouble::step_without_range: return "has a step without a range";
    case cron_trouble::no_question_mark: return "is not understood: a question mark stands alone in a day field";
    case cron_trouble::no_letters: return "is a rule with letters, which this dialect does not have";
    case cron_trouble::letter_in_list: return "is a rule with letters, which stands alone in its field";
    case cron_trouble::bare_last_weekday: return "can be read as Saturday or as the last one";
    case cron_trouble::bad_nth: return "does not say which one of the month";
    case cron_trouble::needs_question_mark: return "does not fit the day of month: exactly one of the two is ?";
    case cron_trouble::bad_plus: return "is not understood: a plus sign stands before the weekdays";
    }
    return "is not understood";
}

inline std::string count_of_fields(cron_grammar const& grammar) {
    std::string text = std::to_string(grammar.fewest_fields);
    if (grammar.most_fields > grammar.fewest_fields) text += " to " + std::to_string(grammar.most_fields);
    return text + " fields";
}

/// What the field takes where `fault` was found.
inline std::string allowed_by(cron_grammar const& grammar, cron_fault const& fault) {
    switch (fault.trouble) {
    case cron_trouble::empty_text:
    case cron_trouble::too_few_fields:
    case cron_trouble::too_many_fields: return count_of_fields(grammar) + (grammar.macros ? " or a macro" : "");
    case cron_trouble::unknown_macro:
    case cron_trouble::no_calendar_macro: return "@yearly @annually @monthly @weekly @daily @midnight @hourly";
    case cron_trouble::no_macros: return count_of_fields(grammar);
    case cron_trouble::macro_with_more: return "nothing";
    case cron_trouble::step_missing:
    case cron_trouble::step_zero: return "a step from 1 on";
    case cron_trouble::step_without_range: return "a step after * or a range, as in */5 or 0-30/5";
    case cron_trouble::bad_nth: return "#1 to #5, #L";
    case cron_trouble::bare_last_weekday: return "6 for Saturday, 5L for the last Friday";
    default: break;
    }
    if (!fault.in_field) return {};
    auto const limits = limits_of(fault.field, grammar);
    auto text = std::to_string(limits.lowest) + "-" + std::to_string(limits.highest);
    if (fault.trouble == cron_trouble::step_too_far) return "1-" + std::to_string(limits.highest);
    if (fault.field == cron_field::month) text += ", JAN-DEC";
    if (fault.field == cron_field::weekday) text += ", SUN-SAT";
    if (fault.trouble != cron_trouble::out_of_range && grammar.letters) {
        if (fault.field == cron_field::day) text += ", L, L-n, LW, nW";
        if (fault.field == cron_field::weekday) text += ", nL, n#k";
    }
    return text;
}

} // namespace detail

} // namespace ax
