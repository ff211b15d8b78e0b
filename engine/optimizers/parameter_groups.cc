#include "engine/optimizers/parameter_groups.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace tandem {

bool MatchesName(absl::string_view pattern, absl::string_view name) {
  // The place to retry if the text after the last '*' does not match: one character later.
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
  // The cost is names times parameters, so the number of names is limited.
  constexpr int kMaxNames = 1024;
  int names = optimizer.muon().adamw_names_size();
  for (const v1::ParameterGroup& group : optimizer.groups()) names += 1 + group.names_size();
  if (names > kMaxNames) {
    violations.Add("groups",
                   absl::StrCat("are ", optimizer.groups_size(), ", and with their names ", names,
                                "; at most ", kMaxNames, " are taken: '*' in a name stands for many"));
    return;
  }
  for (int i = 0; i < optimizer.groups_size(); ++i) {
    const v1::ParameterGroup& group = optimizer.groups(i);
    const std::string field = absl::StrCat("groups[", i, "]");
    if (group.names().empty() && !group.biases_and_norms()) {
      violations.Add(field, "has no parameters; give names or biases_and_norms");
    }
    if (!group.has_weight_decay() && !group.has_learning_rate_factor() && !group.frozen()) {
      violations.Add(field,
                     "says nothing of its parameters; give weight_decay, learning_rate_factor or frozen");
    }
    CheckAtLeastZero(field + ".weight_decay", group.weight_decay(), violations);
    CheckAtLeastZero(field + ".learning_rate_factor", group.learning_rate_factor(), violations);
  }
}

absl::Status CheckNames(const v1::Optimizer& optimizer, absl::Span<const ValueId> parameters,
                        const Graph& graph) {
  FieldViolations violations;
  const auto check = [&](const std::string& field, const auto& patterns) {
    for (int i = 0; i < patterns.size(); ++i) {
      const bool known = std::any_of(parameters.begin(), parameters.end(), [&](ValueId id) {
        return MatchesName(patterns[i], graph.value(id).name);
      });
      if (known) continue;
      violations.Add(absl::StrCat(field, "[", i, "]"),
                     absl::StrCat("\"", patterns[i], "\" matches no parameter; the first is called \"",
                                  parameters.empty() ? "" : graph.value(parameters[0]).name, "\""));
    }
  };
  for (int i = 0; i < optimizer.groups_size(); ++i) {
    check(absl::StrCat("groups[", i, "].names"), optimizer.groups(i).names());
  }
  check("muon.adamw_names", optimizer.muon().adamw_names());
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
