// SPDX-License-Identifier: MIT
// The least that models ax::storage and ax::clock. Whoever is written against these concepts is instantiated with them,
// which proves that it uses nothing that they do not grant. Compiled and never linked: nothing here is defined.
#pragma once

#include "ax/storage/concept.hpp"
#include "ax/time/clock.hpp"

namespace archetypes {

struct writer_archetype {
    writer_archetype() = delete;
    writer_archetype(writer_archetype const&) = delete;
    writer_archetype& operator=(writer_archetype const&) = delete;
    void operator&() const = delete;

    ax::type_number type(std::string_view);
    std::vector<ax::insertion> insert(std::span<ax::new_task const>, ax::time_point, ax::alarms&);
    ax::claim_answer claim(std::span<ax::claim_request const>, ax::claim_terms const&);
    void start(std::span<ax::start_mark const>, ax::time_point);
    ax::settlement settle(std::span<ax::attempt_end const>, ax::time_point);
    ax::reclaim_answer reclaim(ax::reclaim_terms const&);
    ax::change cancel(ax::task_id, ax::time_point);
    ax::change retry(ax::task_id, ax::time_point);
    ax::change reschedule(ax::task_id, ax::time_point, ax::time_point);
    ax::expiry expire(ax::time_point, std::size_t);
    void pause(ax::type_number, bool);
    ax::schedule_record declare(ax::schedule_record const&, ax::time_point);
    ax::schedule_answer step(ax::schedule_step const&, ax::time_point);
    bool forget(std::string_view);
};

struct storage_archetype {
    using writer = writer_archetype;
    struct durability { // as much of a bool as the concept asks for
        constexpr operator bool() const noexcept { return true; }
    };
    static constexpr durability durable{};

    storage_archetype() = delete;
    storage_archetype(storage_archetype const&) = delete;
    storage_archetype(storage_archetype&&);
    storage_archetype& operator=(storage_archetype const&) = delete;
    storage_archetype& operator=(storage_archetype&&);
    void operator&() const = delete;

    template <class Fn>
    void transact(ax::commit, Fn&& fn) requires std::invocable<Fn&, writer_archetype&> {
        static_cast<void>(fn); // a body, because the types that it is called with have no linkage
    }
    std::optional<ax::task_record> find(ax::task_id) const;
    std::optional<ax::task_record> find_by_key(std::string_view) const;
    std::vector<ax::task_record> list(ax::task_filter const&, ax::time_point) const;
    std::vector<ax::attempt_view> history(ax::task_id) const;
    ax::alarms upcoming(ax::alarm const&, ax::time_point, std::size_t) const;
    std::vector<ax::type_info> types() const;
    std::vector<ax::schedule_record> schedules() const;
};

struct clock_archetype {
    clock_archetype() = delete;
    clock_archetype(clock_archetype const&) = delete;
    clock_archetype& operator=(clock_archetype const&) = delete;
    void operator&() const = delete;

    ax::time_point now() const;
    ax::duration steady() const;
};

static_assert(ax::storage_writer<writer_archetype>);
static_assert(ax::storage<storage_archetype>);
static_assert(ax::clock<clock_archetype>);

} // namespace archetypes
