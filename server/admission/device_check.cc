#include "server/admission/device_check.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/backend/memory_groups.h"
#include "engine/backend/op_table.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/training/replica_spec.h"

namespace tandem {
namespace {

absl::string_view KindName(v1::DeviceKind kind) {
  switch (kind) {
    case v1::DEVICE_KIND_GPU:
      return "GPU";
    case v1::DEVICE_KIND_REFERENCE:
      return "reference";
    default:
      return "CPU";
  }
}

BackendKind BackendOf(v1::DeviceKind kind) {
  switch (kind) {
    case v1::DEVICE_KIND_GPU:
      return BackendKind::kCuda;
    case v1::DEVICE_KIND_REFERENCE:
      return BackendKind::kReference;
    default:
      return BackendKind::kCpu;
  }
}

}  // namespace

absl::StatusOr<std::vector<v1::DeviceKind>> ParseDevicePriority(absl::string_view text) {
  if (absl::StripAsciiWhitespace(text).empty()) return ParseDevicePriority("gpu,cpu");
  std::vector<v1::DeviceKind> kinds;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::string word = absl::AsciiStrToLower(absl::StripAsciiWhitespace(part));
    const v1::DeviceKind kind = word == "gpu"   ? v1::DEVICE_KIND_GPU
                                : word == "cpu" ? v1::DEVICE_KIND_CPU
                                                : v1::DEVICE_KIND_UNSPECIFIED;
    if (kind == v1::DEVICE_KIND_UNSPECIFIED) {
      return absl::InvalidArgumentError(absl::StrCat("\"", word, "\" is neither \"gpu\" nor \"cpu\""));
    }
    if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) {
      return absl::InvalidArgumentError(absl::StrCat("\"", word, "\" is given twice"));
    }
    kinds.push_back(kind);
  }
  return kinds;
}

DeviceCheck::DeviceCheck(std::vector<v1::Device> devices, std::vector<v1::DeviceKind> priority,
                         GpuLimits gpu_limits)
    : devices_(std::move(devices)), priority_(std::move(priority)), gpu_limits_(gpu_limits) {}

absl::Status DeviceCheck::FillGpuLimits(v1::JobSpec* spec) const {
  if (KindFor(spec->replicas()) != v1::DEVICE_KIND_GPU) return absl::OkStatus();
  const int64_t wanted = spec->gpu().memory_limit_bytes();
  if (gpu_limits_.memory_bytes > 0 && wanted > gpu_limits_.memory_bytes) {
    return FieldError("memory_limit_bytes",
                      absl::StrCat("is ", wanted, "; it must be at most ", gpu_limits_.memory_bytes,
                                   " bytes, the daemon's limit for a replica (--gpu-memory-limit)"));
  }
  if (gpu_limits_.memory_bytes > 0 && wanted == 0) {
    spec->mutable_gpu()->set_memory_limit_bytes(gpu_limits_.memory_bytes);
  }
  if (gpu_limits_.workspace_bytes > 0 && spec->gpu().workspace_limit_bytes() == 0) {
    spec->mutable_gpu()->set_workspace_limit_bytes(gpu_limits_.workspace_bytes);
  }
  return absl::OkStatus();
}

int DeviceCheck::Count(v1::DeviceKind kind) const {
  return static_cast<int>(std::count_if(devices_.begin(), devices_.end(),
                                        [kind](const v1::Device& device) { return device.kind() == kind; }));
}

v1::DeviceKind DeviceCheck::KindFor(const v1::Replicas& replicas) const {
  if (!IsAnyKind(replicas.device_kind())) return replicas.device_kind();
  for (const v1::DeviceKind kind : priority_) {
    if (Count(kind) >= DeviceCountOf(replicas)) return kind;
  }
  return priority_.back();
}

absl::Status DeviceCheck::ResolveAll(v1::Replicas* replicas) const {
  if (replicas->devices_size() != 1 || replicas->devices(0) != kAllDevices) return absl::OkStatus();
  v1::DeviceKind kind = replicas->device_kind();
  if (IsAnyKind(kind)) {
    const auto has = [this](v1::DeviceKind one) { return Count(one) > 0; };
    const auto first = std::find_if(priority_.begin(), priority_.end(), has);
    kind = first == priority_.end() ? priority_.back() : *first;
  }
  if (Count(kind) == 0) {
    return FieldError("devices", absl::StrCat("is \"all\", but this daemon has no ", KindName(kind),
                                              " devices; use another device_kind"));
  }
  // The count is a product, and CheckReplicas sees only the count.
  if (replicas->replicas_per_device() < 0 || replicas->replicas_per_device() > kMaxReplicasPerDevice) {
    return FieldError("replicas_per_device", absl::StrCat("is ", replicas->replicas_per_device(),
                                                          "; it must be from 1 to ", kMaxReplicasPerDevice));
  }
  replicas->clear_devices();
  for (const v1::Device& device : devices_) {
    if (device.kind() == kind) replicas->add_devices(device.name());
  }
  if (replicas->count() == 0 && replicas->worker_load().empty()) {
    replicas->set_count(replicas->devices_size() * std::max(1, replicas->replicas_per_device()));
  }
  // The count now includes replicas_per_device.
  replicas->clear_replicas_per_device();
  return absl::OkStatus();
}

absl::Status DeviceCheck::CheckOps(const JobPlan& plan, v1::DeviceKind kind) {
  for (const std::string& op : plan.ops) {
    if (OffersOp(BackendOf(kind), op)) continue;
    return WithReason(absl::FailedPreconditionError(absl::StrCat(
                          "spec.replicas.device_kind: cannot run this network on ", KindName(kind),
                          " devices: they do not offer the op '", op, "'; use another device_kind")),
                      "OP_NOT_OFFERED");
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> DeviceCheck::Check(const JobPlan& plan, v1::JobSpec* spec) const {
  v1::Replicas* replicas = spec->mutable_replicas();
  const v1::DeviceKind kind = KindFor(*replicas);
  TANDEM_RETURN_IF_ERROR(replicas->devices().empty() ? CheckNumber(*replicas, kind) : CheckNames(*replicas));
  // Check the precision first: a precision may add ops to the plan.
  TANDEM_RETURN_IF_ERROR(CheckPrecision(spec->training().precision(), kind));
  TANDEM_RETURN_IF_ERROR(CheckOps(plan, kind));
  int64_t memory_bytes = plan.replica_memory_bytes;
  // These kinds of device share the host's memory, so each device pays its part of the job's host memory.
  const int64_t count = static_cast<int64_t>(LoadsOf(*replicas).size());
  if (kind != v1::DEVICE_KIND_GPU) memory_bytes += (plan.host_memory_bytes + count - 1) / count;
  const int64_t limit = spec->gpu().memory_limit_bytes();
  const std::string groups = plan.memory.ToString();
  const std::string what_for = groups.empty() ? "" : absl::StrCat(" (", groups, ")");
  if (kind == v1::DEVICE_KIND_GPU && limit > 0 && memory_bytes > limit) {
    return WithReason(absl::FailedPreconditionError(absl::StrCat(
                          "spec.gpu.memory_limit_bytes: is ", limit, " (", MebibytesOf(limit),
                          "), but a replica needs ", MebibytesOf(memory_bytes), what_for,
                          "; raise the limit, or use a smaller global_batch_size, more replicas, a smaller "
                          "network, or a smaller gpu.workspace_limit_bytes")),
                      "TOO_LITTLE_MEMORY");
  }
  TANDEM_RETURN_IF_ERROR(CheckMemory(*replicas, kind, memory_bytes, what_for));
  replicas->set_device_kind(kind);
  return memory_bytes;
}

absl::Status DeviceCheck::CheckNumber(const v1::Replicas& replicas, v1::DeviceKind kind) const {
  const int available = Count(kind);
  if (DeviceCountOf(replicas) <= available) return absl::OkStatus();
  const int wanted = static_cast<int>(LoadsOf(replicas).size());
  return WithReason(
      absl::FailedPreconditionError(absl::StrFormat(
          "spec.replicas.count: needs %s devices for %d replica%s, but this daemon has %d%s; use %sanother "
          "device_kind, or start the daemon with more devices",
          KindName(kind), wanted, wanted == 1 ? "" : "s", available,
          replicas.replicas_per_device() > 1 ? absl::StrCat(", for ", replicas.replicas_per_device(), " each")
                                             : "",
          // If the machine has no device of this kind, a smaller count does not help.
          available == 0 ? ""
                         : absl::StrCat("at most ", available * replicas.replicas_per_device(),
                                        ", a larger replicas_per_device, "))),
      "TOO_FEW_DEVICES");
}

absl::Status DeviceCheck::CheckNames(const v1::Replicas& replicas) const {
  std::vector<std::string> known;
  for (const v1::Device& device : devices_) known.push_back(device.name());
  for (int i = 0; i < replicas.devices_size(); ++i) {
    if (std::find(known.begin(), known.end(), replicas.devices(i)) != known.end()) continue;
    return WithReason(absl::FailedPreconditionError(absl::StrCat(
                          "spec.replicas.devices[", i, "]: is ", replicas.devices(i),
                          ", which this daemon does not have; it has ", absl::StrJoin(known, ", "))),
                      "NO_SUCH_DEVICE");
  }
  return absl::OkStatus();
}

absl::Status DeviceCheck::CheckMemory(const v1::Replicas& replicas, v1::DeviceKind kind,
                                      int64_t replica_bytes, const std::string& what_for) const {
  const int wanted = DeviceCountOf(replicas);
  const int64_t count = static_cast<int64_t>(LoadsOf(replicas).size());
  const int64_t on_each = (count + wanted - 1) / wanted;
  const int64_t memory_bytes = on_each * replica_bytes;
  const std::vector<std::string> named = UsedDevices(replicas);
  int64_t largest = 0;
  int fitting = 0;
  for (const v1::Device& device : devices_) {
    const bool counts = named.empty() ? device.kind() == kind
                                      : std::find(named.begin(), named.end(), device.name()) != named.end();
    if (!counts) continue;
    largest = std::max(largest, device.memory_bytes());
    if (device.memory_bytes() >= memory_bytes) ++fitting;
  }
  if (fitting >= wanted) return absl::OkStatus();
  const std::string who =
      on_each == 1 ? absl::StrCat("each of ", count, count == 1 ? " replica needs " : " replicas needs ")
                   : absl::StrCat("the ", on_each, " replicas that share a device need ");
  return WithReason(
      absl::FailedPreconditionError(absl::StrCat(
          "spec: ", who, MebibytesOf(memory_bytes), " of memory", on_each == 1 ? what_for : "", ", but ",
          fitting, " of ", named.empty() ? "the daemon's " : "the named ", KindName(kind),
          fitting == 1 ? " devices has" : " devices have", " that much (the largest has ",
          MebibytesOf(largest), ")", "; use a smaller global_batch_size, more replicas",
          on_each == 1 ? "" : " on more devices",
          ", a smaller network or data set, or start the daemon with more memory for each device")),
      "TOO_LITTLE_MEMORY");
}

absl::Status DeviceCheck::CheckPrecision(v1::Precision precision, v1::DeviceKind kind) const {
  if (precision == v1::PRECISION_UNSPECIFIED) return absl::OkStatus();
  std::set<v1::Precision> offered;
  for (const v1::Device& device : devices_) {
    if (device.kind() != kind) continue;
    for (const int one : device.precisions()) offered.insert(static_cast<v1::Precision>(one));
  }
  if (offered.count(precision) > 0) return absl::OkStatus();
  std::vector<std::string> names;
  for (const v1::Precision one : offered) names.push_back(v1::Precision_Name(one));
  std::string why;
  if (precision == v1::PRECISION_BFLOAT16 && kind == v1::DEVICE_KIND_CPU) {
    why = ", because this processor lacks the instructions for it (AVX512_BF16)";
  } else if (precision == v1::PRECISION_FLOAT16 && kind != v1::DEVICE_KIND_GPU) {
    why = ", because only GPUs do";
  }
  return WithReason(absl::FailedPreconditionError(absl::StrCat(
                        "spec.training.precision: ", KindName(kind), " devices here cannot compute in ",
                        v1::Precision_Name(precision), why, "; use one of ", absl::StrJoin(names, ", "),
                        ", another device_kind, or leave precision out")),
                    "PRECISION_NOT_OFFERED");
}

}  // namespace tandem
