#ifndef TANDEM_ENGINE_BACKEND_OP_TABLE_H_
#define TANDEM_ENGINE_BACKEND_OP_TABLE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"

namespace tandem {

// All backends.
enum class BackendKind : uint8_t { kReference, kCpu, kCuda };

// Returns "reference", "cpu" or "cuda".
absl::string_view ToString(BackendKind backend);

// Returns all kinds of op, in alphabetical order.
absl::Span<const absl::string_view> OpKinds();

// Returns whether a backend has code for an op. No backend need be linked, so a job can be refused before it
// waits. The conformance test of each backend checks this table.
bool OffersOp(BackendKind backend, absl::string_view op_kind);

// Checks that the backend offers all ops of `graph`. UNIMPLEMENTED, with the op's kind, if it does not.
absl::Status CheckOpsOffered(const Graph& graph, BackendKind backend);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_OP_TABLE_H_
