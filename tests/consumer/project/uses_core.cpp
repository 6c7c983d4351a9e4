#include <ax/time/time_point.hpp>
#include <ax/version.hpp>

int main() { return ax::time_point{} == ax::time_point{} ? 0 : 1; }
