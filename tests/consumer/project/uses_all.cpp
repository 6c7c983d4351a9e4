#if __has_include(<ax/ax.hpp>)
#include <ax/ax.hpp>
#else
#include <ax/core/error.hpp>
#endif

int main() { return ax::error{ax::errc::locked, "shop.db"}.transient() ? 1 : 0; }
