#include "engine/backends/cpu/remembered.h"

#include "absl/strings/str_cat.h"
#include "dnnl.hpp"

namespace tandem::cpu {

AlgorithmMemory& Remembered() {
  static AlgorithmMemory& remembered = *AlgorithmMemory::InFileOf("TANDEM_CPU_ALGORITHMS").release();
  return remembered;
}

std::string MachineText(const Lowering& lowering) {
  const dnnl_version_t* version = dnnl_version();
  return absl::StrCat("onednn-", version->major, ".", version->minor, ".", version->patch, " isa-",
                      static_cast<int>(dnnl::get_effective_cpu_isa()), " threads-", lowering.team().threads(),
                      " ", ToString(lowering.compute()));
}

}  // namespace tandem::cpu
