#include <ax/ax.hpp>

int main() { return ax::error{ax::errc::locked, "shop.db"}.transient() ? 1 : 0; }
