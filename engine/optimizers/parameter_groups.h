#ifndef TANDEM_ENGINE_OPTIMIZERS_PARAMETER_GROUPS_H_
#define TANDEM_ENGINE_OPTIMIZERS_PARAMETER_GROUPS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/base/field_violations.h"
#include "engine/graph/graph.h"
#include "tandem/v1/training.pb.h"

namespace tandem {

// Returns whether `name` matches `pattern`: '*' matches any characters, '?' a single character.
bool MatchesName(absl::string_view pattern, absl::string_view name);

// Adds the mistakes in the groups that show without parameters. Fields are relative to the Optimizer.
void CheckParameterGroups(const v1::Optimizer& optimizer, FieldViolations& violations);

// Checks that each name of the groups, and of muon.adamw_names, matches a variable of `parameters`.
// INVALID_ARGUMENT with the wrong fields.
absl::Status CheckNames(const v1::Optimizer& optimizer, absl::Span<const ValueId> parameters,
                        const Graph& graph);

// Returns the first group with the parameter, or null.
const v1::ParameterGroup* FindGroup(const v1::Optimizer& optimizer, const Value& parameter);

}  // namespace tandem

#endif  // TANDEM_ENGINE_OPTIMIZERS_PARAMETER_GROUPS_H_
