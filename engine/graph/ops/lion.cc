#include "engine/graph/ops/lion.h"

#include "absl/strings/str_cat.h"

namespace tandem {

std::string LionOp::attributes() const {
  return absl::StrCat("beta1=", settings.beta1, " beta2=", settings.beta2,
                      " weight_decay=", settings.weight_decay);
}

std::vector<absl::string_view> LionOp::states() const { return {"momentum"}; }

std::string LionOp::Fault() const {
  return FirstFault({FaultOfShare("beta1", settings.beta1), FaultOfShare("beta2", settings.beta2),
                     FaultOfNonNegative("weight_decay", settings.weight_decay)});
}

double LionOp::FlopsPerElement() const { return 9 + (settings.weight_decay != 0 ? 2 : 0); }

}  // namespace tandem
