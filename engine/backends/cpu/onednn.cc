#include "engine/backends/cpu/onednn.h"

namespace tandem::cpu {

const dnnl::engine& OneDnnEngine() {
  static const dnnl::engine& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

}  // namespace tandem::cpu
