// SPDX-License-Identifier: MIT
#include "durable/scheduler.hpp"
#include "durable/side.hpp"

#include <utility>

namespace bench {

namespace {

class ax_side final : public side {
  public:
    ax_side(std::string const& file, ax::options const& o, handler work, counter done, bool stopped)
        : tasks_(ax::sqlite_storage{file}, o), work_(std::move(work)), done_(std::move(done)) {
        tasks_.on(probing,
                  [this](probe const&, ax::context& ctx) { work_(ctx.scheduled_at().time_since_epoch().count()); });
        tasks_.observe([this](ax::event const& e) {
            if (e.kind == ax::event_kind::reported) done_(1);
        });
        if (!stopped) tasks_.start();
    }

    void submit(std::vector<task> const& tasks) override {
        auto const how = [](task const& one) {
            ax::submit_options o;
            if (one.run_at != 0) o.run_at = ax::time_point{ax::duration{one.run_at}};
            o.key = one.key;
            return o;
        };
        if (tasks.size() == 1) {
            tasks_.submit(probing, sample, how(tasks.front()));
            return;
        }
        std::vector<probe> const payloads(tasks.size(), sample);
        std::size_t next = 0;
        tasks_.submit_all(probing, payloads, [&](probe const&) { return how(tasks[next++]); });
    }

    void start() override { tasks_.start(); }

  private:
    ax::sqlite_scheduler tasks_;
    handler work_;
    counter done_;
};

} // namespace

std::unique_ptr<side> make_ax(settings const& s, std::string const& file, handler work, counter done,
                              options_of_ax const& how) {
    auto o = with(s);
    if (how.workers) o.workers = *how.workers;
    if (how.claimed) o.claimed_ahead = o.claimed_peak = *how.claimed;
    if (how.read_ahead) o.read_ahead = *how.read_ahead;
    if (how.keep_all) o.retention = {ax::forever, ax::forever, (std::numeric_limits<std::size_t>::max)()};
    return std::make_unique<ax_side>(file, o, std::move(work), std::move(done), how.stopped);
}

} // namespace bench
