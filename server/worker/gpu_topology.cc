#include "server/worker/gpu_topology.h"

#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace tandem {
namespace {

std::string ShortName(const std::string& name) { return std::string(absl::StripPrefix(name, "devices/")); }

// Returns for example "18 NVLinks, peer access, numa node".
std::string Describe(const v1::GpuLink& link) {
  std::vector<std::string> parts;
  if (link.nvlinks() > 0) {
    parts.push_back(absl::StrCat(link.nvlinks(), link.nvlinks() == 1 ? " NVLink" : " NVLinks"));
  }
  parts.emplace_back(link.peer_access() ? "peer access" : "no peer access");
  if (link.path() != v1::GpuLink::PATH_UNSPECIFIED) {
    const std::string path = v1::GpuLink::Path_Name(link.path());
    parts.push_back(
        absl::AsciiStrToLower(absl::StrReplaceAll(absl::StripPrefix(path, "PATH_"), {{"_", " "}})));
  }
  return absl::StrJoin(parts, ", ");
}

}  // namespace

std::string DescribeGpuTopology(const std::vector<v1::Device>& devices) {
  std::set<std::string> names;
  for (const v1::Device& device : devices) names.insert(device.name());
  std::vector<std::string> pairs;
  std::set<std::string> seen;
  for (const v1::Device& device : devices) {
    // Replicas may share a GPU.
    if (!seen.insert(device.name()).second) continue;
    for (const v1::GpuLink& link : device.gpu().links()) {
      if (names.count(link.device()) == 0 || seen.count(link.device()) > 0) continue;
      pairs.push_back(
          absl::StrCat(ShortName(device.name()), " and ", ShortName(link.device()), ": ", Describe(link)));
    }
  }
  return absl::StrJoin(pairs, "; ");
}

}  // namespace tandem
