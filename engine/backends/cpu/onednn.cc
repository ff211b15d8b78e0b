#include "engine/backends/cpu/onednn.h"

namespace tandem::cpu {

const dnnl::engine& OneDnnEngine() {
  static const dnnl::engine& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

bool OneDnnHasWinograd() {
  const int isa = static_cast<int>(dnnl::get_effective_cpu_isa());
  const int needed = static_cast<int>(dnnl::cpu_isa::avx512_core);
  return (isa & needed) == needed;
}

}  // namespace tandem::cpu
