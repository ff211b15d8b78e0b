#include "engine/training/replica_spec.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "engine/data/dealing.h"

namespace tandem {
namespace {

constexpr int kMaxReplicas = 1024;
constexpr int kMaxPrefetch = 64;
constexpr int64_t kBucketBytes = int64_t{25} << 20;
constexpr int64_t kFirstBucketBytes = int64_t{1} << 20;
constexpr int kDefaultRank = 4;
constexpr int kMaxRank = 64;
constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max();
constexpr char kDevices[] = "devices/";
constexpr std::pair<const char*, v1::DeviceKind> kKinds[] = {
    {"cpu", v1::DEVICE_KIND_CPU}, {"gpu", v1::DEVICE_KIND_GPU}, {"reference", v1::DEVICE_KIND_REFERENCE}};

bool TakesAll(const v1::Replicas& replicas) {
  return replicas.devices_size() == 1 && replicas.devices(0) == kAllDevices;
}

// Returns the kind in "devices/cpu:0", or nothing if it is no device's name.
absl::optional<v1::DeviceKind> KindOf(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, kDevices)) return absl::nullopt;
  for (const auto& [word, kind] : kKinds) {
    absl::string_view index = name;
    uint32_t number = 0;
    if (absl::ConsumePrefix(&index, word) && absl::ConsumePrefix(&index, ":") && !index.empty() &&
        std::all_of(index.begin(), index.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
        absl::SimpleAtoi(index, &number)) {
      return kind;
    }
  }
  return absl::nullopt;
}

absl::string_view WordFor(v1::DeviceKind wanted) {
  for (const auto& [word, kind] : kKinds) {
    if (kind == wanted) return word;
  }
  return "other";
}

void CheckRange(absl::string_view field, int64_t value, int64_t least, int64_t most,
                FieldViolations& violations) {
  if (value >= least && value <= most) return;
  violations.Add(absl::StrCat("replicas.", field),
                 absl::StrCat("is ", value, "; it must be from ", least, " to ", most));
}

void CheckDevices(const v1::Replicas& replicas, FieldViolations& violations) {
  if (TakesAll(replicas) || replicas.devices().empty()) return;
  std::set<std::string> seen;
  absl::optional<v1::DeviceKind> first;
  for (int i = 0; i < replicas.devices_size(); ++i) {
    const std::string& name = replicas.devices(i);
    const std::string field = absl::StrCat("replicas.devices[", i, "]");
    const absl::optional<v1::DeviceKind> kind = KindOf(name);
    if (absl::StripPrefix(name, kDevices) == kAllDevices) {
      violations.Add(field, "is \"all\" beside others; give \"all\" alone, or names");
    } else if (!kind.has_value()) {
      violations.Add(field, absl::StrCat("is \"", absl::CHexEscape(name.substr(0, 200)),
                                         "\", which is no device; they are called such as \"cpu:0\""));
    } else if (!seen.insert(name).second) {
      violations.Add(field, absl::StrCat("is ", name,
                                         " again; name each device once: replicas beyond their "
                                         "number share them"));
    } else if (!first.has_value()) {
      first = kind;
      if (!IsAnyKind(replicas.device_kind()) && *kind != replicas.device_kind()) {
        violations.Add(field, absl::StrCat("is ", name, ", but device_kind asks for ",
                                           WordFor(replicas.device_kind()), " devices"));
      }
    } else if (*kind != *first) {
      violations.Add(field, absl::StrCat("is ", name, ", but the first is of the kind ", WordFor(*first),
                                         "; the replicas of a job are on devices of one kind"));
    }
  }
  if (replicas.devices_size() > replicas.count()) {
    violations.Add("replicas.devices",
                   absl::StrCat("are ", replicas.devices_size(), " for ", replicas.count(),
                                replicas.count() == 1 ? " replica" : " replicas",
                                "; name fewer, or ask for at least as many replicas"));
  }
  if (replicas.replicas_per_device() > 1) {
    violations.Add(
        "replicas.replicas_per_device",
        "is for devices that the daemon chooses; where they are named, count says how many replicas "
        "share them");
  }
}

// The bounds of a replica's load: wider than any two devices differ, and far from loss of precision.
constexpr double kLeastLoad = 1e-6;
constexpr double kMostLoad = 1e6;

// Returns whether samples can be dealt by the loads.
bool CheckLoads(const v1::Replicas& replicas, FieldViolations& violations) {
  const auto& loads = replicas.worker_load();
  if (loads.empty()) return true;
  bool sound = true;
  const auto refuse = [&](const std::string& field, std::string why) {
    violations.Add(field, std::move(why));
    sound = false;
  };
  if (replicas.auto_worker_load()) {
    refuse("replicas.auto_worker_load", "is true, but worker_load is given too; leave one of them out");
  }
  if (loads.size() != replicas.count()) {
    refuse("replicas.worker_load",
           absl::StrCat("has ", loads.size(), loads.size() == 1 ? " entry" : " entries", " for ",
                        replicas.count(), replicas.count() == 1 ? " replica" : " replicas",
                        "; give one for each"));
  }
  double sum = 0;
  for (int i = 0; i < loads.size(); ++i) {
    if (!(loads[i] == 0 || (loads[i] >= kLeastLoad && loads[i] <= kMostLoad))) {
      refuse(absl::StrCat("replicas.worker_load[", i, "]"),
             absl::StrCat("is ", loads[i], "; it must be 0, or from ", kLeastLoad, " to ", kMostLoad));
    } else {
      sum += loads[i];
    }
  }
  if (sound && !(sum > 0)) {
    refuse("replicas.worker_load", absl::StrCat("add up to ", sum, "; at least one must be above 0"));
  }
  return sound;
}

void CheckWorkers(const v1::Replicas& replicas, FieldViolations& violations) {
  const int workers = replicas.workers();
  const int count = static_cast<int>(LoadsOf(replicas).size());
  if (workers < 1 || workers > count || count % workers != 0) {
    violations.Add("replicas.workers",
                   absl::StrCat("is ", workers, " for ", count, count == 1 ? " replica" : " replicas",
                                "; each worker has as many of them, so it must be at least 1 and divide "
                                "their number, those of load 0 left out"));
  }
}

// Checks that each replica gets samples of a whole batch, and enough for its parts.
void CheckBatch(const v1::JobSpec& spec, FieldViolations& violations) {
  const v1::Training& training = spec.training();
  const int64_t batch = training.global_batch_size();
  if (batch < 1 || batch > kMaxCount) return;
  const std::vector<double> loads = LoadsOf(spec.replicas());
  const int64_t count = static_cast<int64_t>(loads.size());
  if (batch < count) {
    violations.Add("training.global_batch_size",
                   absl::StrCat("is ", batch, ", less than the ", count,
                                " replicas; give at least one sample a replica"));
    return;
  }
  const std::vector<int64_t> shares = DealSamples(batch, loads);
  const auto least = std::min_element(shares.begin(), shares.end());
  if (*least == 0) {
    // The position among all loads, including loads of 0.
    int at = static_cast<int>(least - shares.begin());
    int rank = 0;
    while (!(spec.replicas().worker_load(rank) > 0) || at-- > 0) ++rank;
    violations.Add(
        "training.global_batch_size",
        absl::StrCat("is ", batch, ", of which the replica of replicas.worker_load[", rank, "], ",
                     spec.replicas().worker_load(rank),
                     ", gets nothing; use a larger batch, or a load of 0 to leave that replica out"));
    return;
  }
  if (training.accumulation_steps() > *least) {
    violations.Add("training.accumulation_steps",
                   absl::StrCat("is ", training.accumulation_steps(), "; it must be from 1 to ", *least,
                                ", the samples of a replica's share of a batch"));
  }
}

void CheckMode(const v1::JobSpec& spec, FieldViolations& violations) {
  const v1::Replicas& replicas = spec.replicas();
  if (replicas.has_parameter_averaging()) {
    const int64_t every = replicas.parameter_averaging().every_iterations();
    if (every == 0) {
      violations.Add("replicas.parameter_averaging.every_iterations",
                     "is 0 or left out; it must be at least 1");
    } else {
      CheckRange("parameter_averaging.every_iterations", every, 1, kMaxCount, violations);
    }
    return;
  }
  CheckRange("all_reduce.bucket_bytes", replicas.all_reduce().bucket_bytes(), 1,
             std::numeric_limits<int64_t>::max(), violations);
  CheckRange("all_reduce.first_bucket_bytes", replicas.all_reduce().first_bucket_bytes(), 1,
             std::numeric_limits<int64_t>::max(), violations);
  if (!replicas.all_reduce().has_compression()) return;
  CheckRange("all_reduce.compression.rank", replicas.all_reduce().compression().rank(), 1, kMaxRank,
             violations);
  if (spec.training().precision() == v1::PRECISION_FLOAT16) {
    violations.Add("replicas.all_reduce.compression",
                   "is given, but with training.precision float16 the scale of the loss changes from step to "
                   "step, so that old errors would have a wrong scale; use bfloat16 or float32, or leave it "
                   "out");
  }
}

}  // namespace

bool IsAnyKind(v1::DeviceKind kind) {
  return kind == v1::DEVICE_KIND_UNSPECIFIED || kind == v1::DEVICE_KIND_ANY;
}

std::string DeviceName(v1::DeviceKind kind, int index) {
  return absl::StrCat(kDevices, WordFor(kind), ":", index);
}

void FillReplicasDefaults(v1::Replicas* replicas) {
  if (!TakesAll(*replicas)) {
    for (std::string& name : *replicas->mutable_devices()) {
      if (!absl::StartsWith(name, kDevices)) name = absl::StrCat(kDevices, name);
    }
  }
  if (replicas->count() == 0) {
    replicas->set_count(
        std::max({1, TakesAll(*replicas) ? 1 : replicas->devices_size(), replicas->worker_load_size()}));
  }
  if (replicas->device_kind() == v1::DEVICE_KIND_ANY) replicas->set_device_kind(v1::DEVICE_KIND_UNSPECIFIED);
  if (IsAnyKind(replicas->device_kind()) && !replicas->devices().empty()) {
    replicas->set_device_kind(KindOf(replicas->devices(0)).value_or(v1::DEVICE_KIND_UNSPECIFIED));
  }
  if (replicas->replicas_per_device() == 0) replicas->set_replicas_per_device(1);
  if (replicas->workers() == 0) replicas->set_workers(1);
  if (!replicas->has_prefetch()) replicas->set_prefetch(2);
  if (replicas->has_parameter_averaging()) {
    v1::ParameterAveraging* averaging = replicas->mutable_parameter_averaging();
    if (!averaging->has_average_optimizer_state()) averaging->set_average_optimizer_state(true);
    return;
  }
  v1::AllReduce* all_reduce = replicas->mutable_all_reduce();
  if (all_reduce->bucket_bytes() == 0) all_reduce->set_bucket_bytes(kBucketBytes);
  if (all_reduce->first_bucket_bytes() == 0) {
    all_reduce->set_first_bucket_bytes(std::min(kFirstBucketBytes, all_reduce->bucket_bytes()));
  }
  if (all_reduce->has_compression() && all_reduce->compression().rank() == 0) {
    all_reduce->mutable_compression()->set_rank(kDefaultRank);
  }
}

std::vector<double> LoadsOf(const v1::Replicas& replicas) {
  std::vector<double> loads;
  for (const double load : replicas.worker_load()) {
    if (load > 0) loads.push_back(load);
  }
  if (loads.empty()) loads.assign(std::clamp(replicas.count(), 1, kMaxReplicas), 1.0);
  return loads;
}

void SettleLoads(const std::vector<double>& loads, v1::Replicas* replicas) {
  if (!replicas->auto_worker_load()) return;
  replicas->set_auto_worker_load(false);
  replicas->mutable_worker_load()->Assign(loads.begin(), loads.end());
}

std::vector<std::string> UsedDevices(const v1::Replicas& replicas) {
  const size_t count = std::min<size_t>(replicas.devices_size(), LoadsOf(replicas).size());
  if (replicas.worker_load().empty()) {
    return {replicas.devices().begin(), replicas.devices().begin() + static_cast<std::ptrdiff_t>(count)};
  }
  std::vector<std::string> used;
  for (int rank = 0; rank < replicas.worker_load_size() && used.size() < count; ++rank) {
    if (!(replicas.worker_load(rank) > 0)) continue;
    const std::string& device = replicas.devices(rank % replicas.devices_size());
    if (std::find(used.begin(), used.end(), device) == used.end()) used.push_back(device);
  }
  return used;
}

int DeviceCountOf(const v1::Replicas& replicas) {
  if (!replicas.devices().empty()) return static_cast<int>(UsedDevices(replicas).size());
  const int each = std::max(1, replicas.replicas_per_device());
  return (static_cast<int>(LoadsOf(replicas).size()) + each - 1) / each;
}

std::vector<double> LargestLoads(const v1::Replicas& replicas) {
  std::vector<double> loads = LoadsOf(replicas);
  std::sort(loads.begin(), loads.end(), std::greater<>());
  if (replicas.auto_worker_load()) std::fill(loads.begin() + 1, loads.end(), kLeastMeasuredLoad);
  return loads;
}

void CheckReplicas(const v1::JobSpec& spec, FieldViolations& violations) {
  const v1::Replicas& replicas = spec.replicas();
  if (!v1::DeviceKind_IsValid(replicas.device_kind())) {
    violations.Add("replicas.device_kind", absl::StrCat("is ", static_cast<int>(replicas.device_kind()),
                                                        ", which is no kind of device"));
  }
  CheckRange("count", replicas.count(), 1, kMaxReplicas, violations);
  CheckRange("prefetch", replicas.prefetch(), 0, kMaxPrefetch, violations);
  CheckRange("replicas_per_device", replicas.replicas_per_device(), 1, kMaxReplicasPerDevice, violations);
  CheckMode(spec, violations);
  const bool counted = replicas.count() >= 1 && replicas.count() <= kMaxReplicas;
  if (!counted) return;
  CheckDevices(replicas, violations);
  if (!CheckLoads(replicas, violations)) return;
  CheckWorkers(replicas, violations);
  CheckBatch(spec, violations);
}

}  // namespace tandem
