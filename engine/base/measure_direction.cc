#include "engine/base/measure_direction.h"

namespace tandem {

bool IsBetterIfSmaller(absl::string_view measure) {
  return measure == "loss" || measure == "mae" || measure == "rmse" || measure == "perplexity";
}

}  // namespace tandem
