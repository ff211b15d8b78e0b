#include "server/scheduler/fifo_gang_policy.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace tandem {
namespace {

bool Suits(const v1::Device& device, v1::DeviceKind kind, const WaitingJob& job) {
  return device.kind() == kind && device.memory_bytes() >= job.memory_bytes;
}

int CountSuitable(const std::vector<v1::Device>& devices, v1::DeviceKind kind, const WaitingJob& job) {
  return static_cast<int>(std::count_if(devices.begin(), devices.end(),
                                        [&](const v1::Device& device) { return Suits(device, kind, job); }));
}

// What UNSPECIFIED means on this machine.
v1::DeviceKind KindFor(const std::vector<v1::Device>& devices, const WaitingJob& job) {
  if (job.device_kind != v1::DEVICE_KIND_UNSPECIFIED) return job.device_kind;
  return CountSuitable(devices, v1::DEVICE_KIND_GPU, job) >= job.replicas ? v1::DEVICE_KIND_GPU
                                                                          : v1::DEVICE_KIND_CPU;
}

// "2 CPU devices with 1.5 GiB each".
std::string Needs(const WaitingJob& job, v1::DeviceKind kind) {
  std::string text =
      absl::StrCat(job.replicas, " ", absl::StripPrefix(v1::DeviceKind_Name(kind), "DEVICE_KIND_"),
                   job.replicas == 1 ? " device" : " devices");
  if (job.memory_bytes > 0) {
    absl::StrAppend(&text, absl::StrFormat(" with %.2f GiB of memory", job.memory_bytes / double{1 << 30}),
                    job.replicas == 1 ? "" : " each");
  }
  return text;
}

v1::Waiting Waits(v1::Waiting::Reason reason, std::string message, int position) {
  v1::Waiting waiting;
  waiting.set_reason(reason);
  waiting.set_message(std::move(message));
  waiting.set_position(position);
  return waiting;
}

}  // namespace

Decision FifoGangPolicy::Decide(const Snapshot& snapshot) const {
  Decision decision;
  std::vector<v1::Device> devices = snapshot.devices;
  // The job that waits for devices, and so holds up the others.
  std::string first;
  for (const WaitingJob& job : snapshot.queue) {
    const int position = static_cast<int>(decision.waiting.size()) + 1;
    const v1::DeviceKind kind = KindFor(devices, job);
    const int suitable = CountSuitable(devices, kind, job);
    if (suitable < job.replicas) {
      decision.waiting[job.id] =
          Waits(v1::Waiting::REASON_DEVICES_MISSING,
                absl::StrCat("Needs ", Needs(job, kind), "; this daemon has ", suitable, "."), position);
      continue;
    }
    if (!first.empty()) {
      decision.waiting[job.id] = Waits(
          v1::Waiting::REASON_BEHIND_OTHERS,
          absl::StrCat("Number ", position, " in the queue; \"jobs/", first, "\" goes first."), position);
      continue;
    }
    std::vector<v1::Device*> free;
    for (v1::Device& device : devices) {
      if (Suits(device, kind, job) && device.job().empty()) free.push_back(&device);
    }
    if (static_cast<int>(free.size()) < job.replicas) {
      decision.waiting[job.id] = Waits(
          v1::Waiting::REASON_DEVICES_BUSY,
          absl::StrCat("Needs ", Needs(job, kind), "; ", free.size(), " of ", suitable, " free."), position);
      first = job.id;
      continue;
    }
    Placement& placement = decision.placements.emplace_back();
    placement.job_id = job.id;
    for (int rank = 0; rank < job.replicas; ++rank) {
      placement.devices.push_back(free[rank]->name());
      free[rank]->set_job(absl::StrCat("jobs/", job.id));
    }
  }
  return decision;
}

}  // namespace tandem
