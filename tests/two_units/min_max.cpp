// SPDX-License-Identifier: MIT
// A system header that defines min and max as macros comes before ours, as windows.h does. The standard's own headers
// and those of the libraries would not survive that, so they come first.
#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include <cctz/time_zone.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#define min(a, b) (((a) < (b)) ? (a) : (b))
#define max(a, b) (((a) > (b)) ? (a) : (b))

#include "forwards.hpp"

int least_of_own_macros();
int least_of_own_macros() { return min(1, 2) + max(1, 2) - 3; }
