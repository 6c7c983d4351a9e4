// SPDX-License-Identifier: MIT
// The rows of `durable`, a file for each group of them.
#pragma once

#include "durable/side.hpp"

#include <cstddef>
#include <string>

namespace bench {

/// One thread, one task a call: the median time of a call, in microseconds.
figures submit_one(settings const& s, make_side const& make);
/// A thousand a call, due later, in tasks a second; with keys they lie anywhere in their index.
figures submit_bulk(settings const& s, make_side const& make, bool keys);
/// Eight threads, one task a call: tasks a second.
figures submit_threads(settings const& s, make_side const& make);

/// Delayed tasks over ten minutes: seconds to store them, and memory above an empty scheduler.
row preload(settings const& s);
/// From opening a file in which `size` tasks wait to the first that runs: seconds.
row restart(settings const& s, std::string name, double size);
/// A million that wait for hours: the share of a core that waiting takes.
row idle(settings const& s);

/// 10,000 tasks due over ten seconds, also while all cores compute.
void lateness(settings const& s, report& out, bool busy);

/// One-minute schedules that all fire in the same minute: occurrences created, run and recorded, a second.
row schedules(settings const& s);
/// One workflow in layers of a hundred, each task behind three of the layer before: tasks a second.
row workflow(settings const& s);

} // namespace bench
