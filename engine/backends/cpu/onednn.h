#ifndef TANDEM_ENGINE_BACKENDS_CPU_ONEDNN_H_
#define TANDEM_ENGINE_BACKENDS_CPU_ONEDNN_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "dnnl.hpp"

namespace tandem::cpu {

// Returns oneDNN's CPU engine. Thread-safe.
const dnnl::engine& OneDnnEngine();

// Returns whether oneDNN has Winograd convolutions on this processor.
bool OneDnnHasWinograd();

// Calls `function`, which returns a status, and turns oneDNN's exceptions into INTERNAL.
template <typename Function>
absl::Status CallOneDnn(const Function& function) {
  try {
    return function();
  } catch (const dnnl::error& error) {
    return absl::InternalError(absl::StrCat("oneDNN: ", error.what(), " (status ", error.status, ")"));
  }
}

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_ONEDNN_H_
