#ifndef TANDEM_ENGINE_BACKEND_OP_TABLE_H_
#define TANDEM_ENGINE_BACKEND_OP_TABLE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"

namespace tandem {

// The backends that there are.
enum class BackendKind : uint8_t { kReference, kCpu, kCuda };

// "reference", "cpu", "cuda".
absl::string_view ToString(BackendKind backend);

// All kinds of op, in alphabetical order.
absl::Span<const absl::string_view> OpKinds();

// Whether a backend has code for an op. Known here without linking any backend, so that a job can be refused
// before it waits; each backend's conformance test holds it to this.
bool OffersOp(BackendKind backend, absl::string_view op_kind);

// That the backend offers all ops of `graph`. UNIMPLEMENTED, with the op's kind, where it does not.
absl::Status CheckOpsOffered(const Graph& graph, BackendKind backend);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_OP_TABLE_H_
