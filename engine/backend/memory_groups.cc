#include "engine/backend/memory_groups.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace tandem {
namespace {

struct Group {
  int64_t MemoryGroups::*bytes;
  const char* name;
};

constexpr Group kGroups[] = {
    {&MemoryGroups::parameters, "parameters"}, {&MemoryGroups::optimizer_state, "optimizer state"},
    {&MemoryGroups::statistics, "statistics"}, {&MemoryGroups::activations, "activations"},
    {&MemoryGroups::workspace, "workspace"},   {&MemoryGroups::data, "data"},
};

}  // namespace

int64_t MemoryGroups::total() const {
  int64_t total = 0;
  for (const Group& group : kGroups) total += this->*group.bytes;
  return total;
}

int64_t MemoryGroups::*MemoryGroups::GroupOf(VariableKind kind) {
  switch (kind) {
    case VariableKind::kParameter:
      return &MemoryGroups::parameters;
    case VariableKind::kOptimizerState:
    case VariableKind::kResidual:
      return &MemoryGroups::optimizer_state;
    case VariableKind::kStatistic:
      return &MemoryGroups::statistics;
    case VariableKind::kMeter:
      break;
  }
  return &MemoryGroups::data;
}

const char* MemoryGroups::NameOf(int64_t MemoryGroups::*group) {
  for (const Group& one : kGroups) {
    if (one.bytes == group) return one.name;
  }
  return "";
}

std::string MemoryGroups::ToString() const {
  std::vector<Group> groups(std::begin(kGroups), std::end(kGroups));
  std::stable_sort(groups.begin(), groups.end(),
                   [this](const Group& a, const Group& b) { return this->*a.bytes > this->*b.bytes; });
  groups.erase(std::remove_if(groups.begin(), groups.end(),
                              [this](const Group& group) { return this->*group.bytes == 0; }),
               groups.end());
  return absl::StrJoin(groups, ", ", [this](std::string* out, const Group& group) {
    absl::StrAppend(out, group.name, " ", MebibytesOf(this->*group.bytes));
  });
}

std::string MebibytesOf(int64_t bytes) {
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace tandem
