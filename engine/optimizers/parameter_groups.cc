#include "engine/optimizers/parameter_groups.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"

namespace tandem {

bool MatchesName(absl::string_view pattern, absl::string_view name) {
  // Where to go on when what follows the last '*' does not fit: one character later.
  size_t star = absl::string_view::npos;
  size_t retry = 0;
  size_t p = 0;
  size_t n = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      n = ++retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

void CheckParameterGroups(const v1::Optimizer& optimizer, FieldViolations& violations) {
  for (int i = 0; i < optimizer.groups_size(); ++i) {
    const v1::ParameterGroup& group = optimizer.groups(i);
    const std::string field = absl::StrCat("groups[", i, "]");
    if (group.names().empty() && !group.biases_and_norms()) {
      violations.Add(field, "has no parameters; give names or biases_and_norms");
    }
    if (group.has_learning_rate_factor() || group.frozen()) {
      violations.Add(field, "learning_rate_factor and frozen are not available yet; leave them out");
    }
    if (!group.has_weight_decay()) {
      violations.Add(absl::StrCat(field, ".weight_decay"), "is required");
    } else if (!(group.weight_decay() >= 0 && std::isfinite(group.weight_decay()))) {
      violations.Add(absl::StrCat(field, ".weight_decay"),
                     absl::StrCat("is ", group.weight_decay(), "; it must be finite and at least 0"));
    }
  }
}

absl::Status CheckGroupNames(const v1::Optimizer& optimizer, absl::Span<const ValueId> parameters,
                             const Graph& graph) {
  FieldViolations violations;
  for (int i = 0; i < optimizer.groups_size(); ++i) {
    for (int j = 0; j < optimizer.groups(i).names_size(); ++j) {
      const std::string& pattern = optimizer.groups(i).names(j);
      const bool known = std::any_of(parameters.begin(), parameters.end(),
                                     [&](ValueId id) { return MatchesName(pattern, graph.value(id).name); });
      if (known) continue;
      violations.Add(absl::StrCat("groups[", i, "].names[", j, "]"),
                     absl::StrCat("\"", pattern, "\" matches no parameter; the first is called \"",
                                  parameters.empty() ? "" : graph.value(parameters[0]).name, "\""));
    }
  }
  return violations.ToStatus();
}

const v1::ParameterGroup* FindGroup(const v1::Optimizer& optimizer, const Value& parameter) {
  for (const v1::ParameterGroup& group : optimizer.groups()) {
    if (group.biases_and_norms() && parameter.shape.rank() < 2) return &group;
    for (const std::string& pattern : group.names()) {
      if (MatchesName(pattern, parameter.name)) return &group;
    }
  }
  return nullptr;
}

}  // namespace tandem
