// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace ax::detail {

/// What a handler in a child process tells its parent while it runs. See child_process.hpp.
/// Threads: safe.
class child_link {
  public:
    child_link() = default;
    child_link(child_link const&) = delete;
    child_link& operator=(child_link const&) = delete;

    virtual void say_log(std::string_view line) = 0;
    virtual void say_progress(double fraction, std::string_view note) = 0;
    /// The handler has taken its stop token: from now on a request to stop reaches it there.
    virtual void say_token_taken() = 0;

  protected:
    ~child_link() = default;
};

} // namespace ax::detail
