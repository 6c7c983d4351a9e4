// SPDX-License-Identifier: MIT
#pragma once

namespace ax::detail {

/// T as a name that depends on the template parameter `On`. A compiler checks what a template says of plain types where
/// it reads the template, and instantiates for that every std::vector of them; of dependent ones it does so where the
/// template is used. A header full of templates costs its includer about half as much for it.
template <class T, class On>
struct dependent_type {
    using type = T;
};

template <class T, class On>
using dependent = typename dependent_type<T, On>::type;

} // namespace ax::detail
