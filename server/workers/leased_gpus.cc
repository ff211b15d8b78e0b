#include "server/workers/leased_gpus.h"

#include <algorithm>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/workers/job_folder.h"
#include "server/workers/launch_file.h"

namespace tandem {

void RenameLeasedGpus(const std::vector<v1::Device>& devices, v1::Job* job) {
  const auto is_gpu = [](const std::string& name) { return absl::StartsWith(name, "devices/gpu:"); };
  if (std::none_of(job->devices().begin(), job->devices().end(), is_gpu)) return;
  const absl::StatusOr<internal::v1::WorkerLaunch> launch =
      ReadLaunchFile(JobFolder(job->folder()), job->attempt());
  if (!launch.ok()) return;
  for (std::string& name : *job->mutable_devices()) {
    const auto started =
        std::find_if(launch->devices().begin(), launch->devices().end(),
                     [&name](const v1::Device& device) { return device.name() == name && device.has_gpu(); });
    if (started == launch->devices().end()) continue;
    const auto now = std::find_if(devices.begin(), devices.end(), [&started](const v1::Device& device) {
      return device.gpu().uuid() == started->gpu().uuid();
    });
    name = now == devices.end() ? absl::StrCat("devices/", started->gpu().uuid()) : now->name();
  }
}

}  // namespace tandem
