#include "server/scheduler/gpu_error_watch.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "engine/base/clock.h"

namespace tandem {
namespace {

// "GPU has fallen off the bus."
constexpr int64_t kFallenOffTheBus = 79;

}  // namespace

GpuErrorWatch::GpuErrorWatch(const Nvml* nvml, std::vector<NvmlHandle> gpus, OnError on_error,
                             Options options)
    : nvml_(nvml),
      on_error_(std::move(on_error)),
      options_(options),
      gpus_(std::move(gpus)),
      is_lost_(gpus_.size(), false) {
  thread_ = std::thread([this] { Run(); });
}

GpuErrorWatch::~GpuErrorWatch() {
  {
    MutexLock lock(&mutex_);
    ends_ = true;
  }
  thread_.join();
}

bool GpuErrorWatch::Ends() const {
  MutexLock lock(&mutex_);
  return ends_;
}

void GpuErrorWatch::Run() {
  while (!Ends()) {
    std::vector<NvmlHandle> answering;
    for (size_t i = 0; i < gpus_.size(); ++i) {
      if (!is_lost_[i]) answering.push_back(gpus_[i]);
    }
    if (!answering.empty()) {
      const absl::StatusOr<std::unique_ptr<Nvml::ErrorEvents>> events = nvml_->ListenForErrors(answering);
      // The driver is too old, or the GPUs report no errors. If a GPU is lost, it may report errors when it
      // returns.
      if (absl::IsUnimplemented(events.status()) && answering.size() == gpus_.size()) return;
      if (events.ok()) Listen(**events);
    }
    if (Ends()) return;
    FindLost();
    MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&ends_), options_.retry);
  }
}

void GpuErrorWatch::Listen(const Nvml::ErrorEvents& events) {
  const absl::Duration begin = Clock::Real()->Elapsed();
  while (!Ends()) {
    // Ask again for the GPUs that could not be registered.
    if (!events.is_whole() && Clock::Real()->Elapsed() - begin >= options_.retry) return;
    const absl::StatusOr<std::optional<Nvml::ErrorEvents::Error>> error = events.Await(options_.wait);
    if (!error.ok()) return;
    if (!error->has_value()) continue;
    const auto found = std::find(gpus_.begin(), gpus_.end(), (*error)->gpu);
    if (found != gpus_.end()) on_error_(static_cast<int>(found - gpus_.begin()), (*error)->xid);
  }
}

void GpuErrorWatch::FindLost() {
  for (size_t i = 0; i < gpus_.size(); ++i) {
    v1::GpuStatus status;
    const bool was_lost = is_lost_[i];
    is_lost_[i] = !nvml_->Refresh(gpus_[i], &status).ok();
    if (is_lost_[i] && !was_lost) on_error_(static_cast<int>(i), kFallenOffTheBus);
  }
}

}  // namespace tandem
