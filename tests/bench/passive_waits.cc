#include "tests/bench/passive_waits.h"

#include <unistd.h>

#include <cstdlib>

namespace tandem {

void WaitPassively(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  ::setenv("OMP_WAIT_POLICY", "passive", 1);
  ::execv("/proc/self/exe", argv);
}

}  // namespace tandem
