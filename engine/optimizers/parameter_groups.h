#ifndef TANDEM_ENGINE_OPTIMIZERS_PARAMETER_GROUPS_H_
#define TANDEM_ENGINE_OPTIMIZERS_PARAMETER_GROUPS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/base/field_violations.h"
#include "engine/graph/graph.h"
#include "tandem/v1/training.pb.h"

namespace tandem {

// Whether `name` is `pattern`, in which '*' stands for any characters and '?' for one.
bool MatchesName(absl::string_view pattern, absl::string_view name);

// Adds what is wrong with the groups for themselves; fields are relative to the Optimizer.
void CheckParameterGroups(const v1::Optimizer& optimizer, FieldViolations& violations);

// That each name of the groups, and of muon.adamw_names, matches one of the variables `parameters`.
// INVALID_ARGUMENT with the fields.
absl::Status CheckNames(const v1::Optimizer& optimizer, absl::Span<const ValueId> parameters,
                        const Graph& graph);

// The first group that has the parameter; null where none has.
const v1::ParameterGroup* FindGroup(const v1::Optimizer& optimizer, const Value& parameter);

}  // namespace tandem

#endif  // TANDEM_ENGINE_OPTIMIZERS_PARAMETER_GROUPS_H_
