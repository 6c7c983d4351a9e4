// SPDX-License-Identifier: MIT
#include "durable/raw_pipeline.hpp"
#include "durable/side.hpp"

#include <cstdlib>
#include <utility>

namespace bench {

namespace {

class raw_side final : public side {
  public:
    raw_side(settings const& s, std::string const& file, handler work, counter done)
        : pipeline_(
              file, s.workers, s.power_loss, std::string(100, 'x'), [work = std::move(work)] { work(0); },
              std::move(done)) {}
    void submit(std::vector<task> const& tasks) override { pipeline_.submit(tasks); }

  private:
    raw_pipeline pipeline_;
};

} // namespace

std::unique_ptr<side> make_raw(settings const& s, std::string const& file, handler work, counter done) {
    return std::make_unique<raw_side>(s, file, std::move(work), std::move(done));
}

void take_first(settings const& s, std::string const& file) {
    bool ran = false;
    raw_pipeline again(file, s.workers, s.power_loss, {}, [&] { ran = true; }, {});
    if (!again.take_first(wall_us() / 1000) || !ran) std::abort();
}

} // namespace bench
