#include "server/http/device_metrics.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/strip.h"
#include "server/http/job_metrics.h"
#include "server/http/metrics.h"

namespace tandem {
namespace {

constexpr absl::Duration kFresh = absl::Seconds(1);

}  // namespace

DeviceMetrics::DeviceMetrics(std::function<std::vector<v1::Device>()> devices, const Clock* clock)
    : devices_(std::move(devices)), clock_(clock) {}

std::vector<v1::Device> DeviceMetrics::Devices() const {
  {
    MutexLock lock(&mutex_);
    if (asking_ || clock_->Elapsed() - known_since_ < kFresh) return known_;
    asking_ = true;
  }
  std::vector<v1::Device> devices = devices_();
  MutexLock lock(&mutex_);
  asking_ = false;
  known_since_ = clock_->Elapsed();
  known_ = devices;
  return devices;
}

std::vector<prometheus::MetricFamily> DeviceMetrics::Collect() const {
  GaugeFamily state("tandem_device_state", "1 for the current state of a device, 0 for the others.");
  GaugeFamily leased("tandem_device_leased_ratio", "Share of a device that jobs hold.");
  GaugeFamily jobs("tandem_device_jobs", "Number of jobs that hold a device or a part of it.");
  GaugeFamily memory("tandem_device_memory_bytes", "Memory of a device for jobs.");
  GaugeFamily planned("tandem_device_planned_memory_bytes", "Memory of a device that jobs reserved.");
  GaugeFamily faults("tandem_device_faults", "Crashes of workers on a device since it was last resumed.");
  GaugeFamily utilization("tandem_gpu_utilization_ratio",
                          "Share of the last moments in which a GPU was busy.");
  GaugeFamily used("tandem_gpu_used_memory_bytes", "Memory of a GPU in use by all programs.");
  GaugeFamily total("tandem_gpu_memory_bytes", "Total memory of a GPU.");
  GaugeFamily temperature("tandem_gpu_temperature_celsius", "Temperature of a GPU's chip.");
  GaugeFamily power("tandem_gpu_power_watts", "Power that a GPU uses now.");
  GaugeFamily power_limit("tandem_gpu_power_limit_watts", "Power limit of a GPU.");
  GaugeFamily ecc("tandem_gpu_ecc_errors_total", "Errors of a GPU's memory since its driver was loaded.",
                  prometheus::MetricType::Counter);
  GaugeFamily xid("tandem_gpu_last_error_xid", "Number (XID) of the newest error that the driver reported.");
  GaugeFamily xid_time("tandem_gpu_last_error_timestamp_seconds", "When the driver reported that error.");
  for (const v1::Device& device : Devices()) {
    const std::string name(absl::StripPrefix(device.name(), "devices/"));
    const std::map<std::string, std::string> labels = {{"device", name}};
    for (const v1::DeviceState one :
         {v1::DEVICE_STATE_ACTIVE, v1::DEVICE_STATE_DRAINED, v1::DEVICE_STATE_EXCLUDED}) {
      state.Add({{"device", name}, {"state", LabelOf(v1::DeviceState_Name(one), "DEVICE_STATE_")}},
                device.state() == one ? 1 : 0);
    }
    leased.Add(labels, device.leased_share());
    jobs.Add(labels, device.jobs_size());
    memory.Add(labels, static_cast<double>(device.memory_bytes()));
    planned.Add(labels, static_cast<double>(device.leased_memory_bytes()));
    faults.Add(labels, device.faults());
    if (!device.has_gpu()) continue;
    const v1::GpuStatus& gpu = device.gpu();
    total.Add(labels, static_cast<double>(gpu.total_memory_bytes()));
    if (gpu.has_utilization_percent()) utilization.Add(labels, gpu.utilization_percent() / 100.0);
    if (gpu.has_used_memory_bytes()) used.Add(labels, static_cast<double>(gpu.used_memory_bytes()));
    if (gpu.has_temperature_celsius()) temperature.Add(labels, gpu.temperature_celsius());
    if (gpu.has_power_watts()) power.Add(labels, gpu.power_watts());
    if (gpu.has_power_limit_watts()) power_limit.Add(labels, gpu.power_limit_watts());
    if (gpu.has_ecc_corrected_errors()) {
      ecc.Add({{"device", name}, {"kind", "corrected"}}, static_cast<double>(gpu.ecc_corrected_errors()));
    }
    if (gpu.has_ecc_uncorrected_errors()) {
      ecc.Add({{"device", name}, {"kind", "uncorrected"}}, static_cast<double>(gpu.ecc_uncorrected_errors()));
    }
    if (gpu.has_last_error()) {
      xid.Add(labels, static_cast<double>(gpu.last_error().xid()));
      xid_time.Add(labels, static_cast<double>(gpu.last_error().time().seconds()));
    }
  }
  std::vector<prometheus::MetricFamily> families;
  for (GaugeFamily* family : {&state, &leased, &jobs, &memory, &planned, &faults, &utilization, &used, &total,
                              &temperature, &power, &power_limit, &ecc, &xid, &xid_time}) {
    std::move(*family).MoveTo(&families);
  }
  return families;
}

}  // namespace tandem
