#ifndef TANDEM_ENGINE_BACKENDS_CPU_ONEDNN_STEP_H_
#define TANDEM_ENGINE_BACKENDS_CPU_ONEDNN_STEP_H_

#include <string>
#include <vector>

#include "dnnl.hpp"
#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

// An argument of a primitive: DNNL_ARG_*, its layout and its place.
struct OneDnnArgument {
  int argument;
  dnnl::memory::desc desc;
  Region region;
};

// Returns a step that executes a primitive. Its argument map is built once, so regions must not be inputs.
Step OneDnnStep(std::string name, dnnl::primitive primitive, std::vector<OneDnnArgument> reads,
                std::vector<OneDnnArgument> writes);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_ONEDNN_STEP_H_
