// SPDX-License-Identifier: MIT
#pragma once

#define AX_VERSION_MAJOR 0
#define AX_VERSION_MINOR 1
#define AX_VERSION_PATCH 0
#define AX_VERSION_STRING "0.1.0"
