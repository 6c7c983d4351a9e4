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
    bool ask_to_stop(ax::task_id);
    bool keep_step(ax::task_id, ax::fence_token, std::string_view, std::string_view);
    ax::prune_answer prune(ax::prune_terms const&, std::size_t);
    bool compact();
    void note(std::string_view, std::string_view);
    void repair(std::span<ax::finding>, ax::time_point, ax::alarms&);
    ax::alarms limit_type(ax::type_number, ax::limit const&, std::vector<ax::resource_need> const&, ax::time_point);
    ax::alarms limit_tag(std::string_view, ax::limit const&, ax::time_point);
    ax::alarms set_resource(std::string_view, std::size_t, ax::time_point);
    ax::change mark_succeeded(ax::task_id, ax::time_point);
    ax::change rerun(ax::task_id, ax::rerun_scope, ax::time_point);
    ax::change pause_workflow(ax::task_id, bool, ax::time_point);
    ax::change set_aside(ax::task_id, ax::time_point);
    ax::change release(ax::task_id, ax::priority_class, ax::time_point);
    ax::backfill_record begin_backfill(ax::backfill_record const&, ax::time_point);
    ax::backfill_answer fill(ax::backfill_step const&, ax::time_point);
    bool drop_backfill(std::uint64_t);
    void end_waits(std::string_view, bool, ax::time_point, ax::alarms&);
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
    std::vector<ax::obstacle> obstacles(ax::task_id) const;
    std::vector<ax::task_id> asked_to_stop() const;
    ax::alarms upcoming(ax::alarm const&, ax::time_point, std::size_t) const;
    std::vector<ax::type_info> types() const;
    std::vector<ax::schedule_record> schedules() const;
    std::vector<ax::kept_step> steps(ax::task_id) const;
    std::vector<ax::task_count> counts() const;
    std::string note(std::string_view) const;
    std::vector<ax::finding> verify() const;
    ax::waiting_page waiting(ax::limit_number, std::size_t, ax::time_point) const;
    std::vector<ax::limit_info> limits() const;
    std::optional<ax::workflow_record> workflow(ax::task_id) const;
    std::vector<ax::member_record> members(ax::task_id, std::string_view, std::size_t) const;
    std::vector<ax::parent_record> parents(ax::task_id) const;
    std::optional<ax::task_record> occurrence(std::string_view, ax::time_point) const;
    std::vector<ax::task_record> aside(std::string_view, ax::time_point, ax::time_point, std::size_t) const;
    std::vector<ax::backfill_record> backfills() const;
    ax::skip_log skips(std::string_view) const;
};

/// Of a database that is reached through something else than SQLite's connections.
struct transactional_archetype : storage_archetype {
    struct host_connection {
        host_connection() = delete;
        host_connection(host_connection const&) = default;
    };
    ax::guest_insertion insert_in(host_connection, std::string_view, ax::new_task&, ax::time_point, ax::alarms&);
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
static_assert(ax::transactional_storage<transactional_archetype>);
static_assert(!ax::transactional_storage<storage_archetype>);
static_assert(ax::clock<clock_archetype>);

} // namespace archetypes
