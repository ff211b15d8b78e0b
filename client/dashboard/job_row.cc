#include "client/dashboard/job_row.h"

#include <google/protobuf/util/time_util.h>

#include <cmath>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "client/lib/main_metric.h"
#include "engine/base/measure_direction.h"
#include "proto/job_file/enum_names.h"

namespace tandem::dashboard {
namespace {

using google::protobuf::util::TimeUtil;
using nlohmann::json;

double SecondsOf(const google::protobuf::Timestamp& time) {
  return static_cast<double>(TimeUtil::TimestampToMilliseconds(time)) / 1000;
}

// JSON has no number for NaN and infinity.
json Number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

}  // namespace

json JobRow(const v1::Job& job, const std::deque<double>& losses, double now) {
  json row = {{"name", job.name()},
              {"display_name", job.spec().name()},
              {"user", job.user()},
              {"state", absl::AsciiStrToUpper(ShortEnumName(job.state()))},
              {"message", job.message()},
              {"priority", job.priority()},
              {"create_time", SecondsOf(job.create_time())}};
  if (job.reason() != v1::STATE_REASON_UNSPECIFIED) row["reason"] = ShortEnumName(job.reason());
  if (!job.sweep().empty()) row["sweep"] = job.sweep();
  if (job.has_start_time()) row["start_time"] = SecondsOf(job.start_time());
  if (job.has_end_time()) row["end_time"] = SecondsOf(job.end_time());
  if (job.run_seconds() > 0) row["run_seconds"] = job.run_seconds();
  for (const std::string& device : job.devices())
    row["devices"].push_back(std::string(absl::StripPrefix(device, "devices/")));

  const v1::Progress& progress = job.progress();
  const v1::EpochSummary& epoch = job.last_epoch();
  // A report of the same step comes before each epoch. An attempt may begin at a step before the last epoch.
  const bool epoch_is_newer = !job.has_progress() || epoch.step() == progress.step();
  if (job.has_progress() || job.has_last_epoch()) {
    row["epoch"] = epoch_is_newer ? epoch.epoch() : progress.epoch();
    row["epochs"] = epoch_is_newer ? epoch.epochs() : progress.epochs();
    row["step"] = epoch_is_newer ? epoch.step() : progress.step();
    row["rate"] = Number(epoch_is_newer ? epoch.images_per_second() : progress.images_per_second());
  }
  if (progress.steps() > 0) row["steps"] = progress.steps();
  const v1::Evaluation* newest = nullptr;
  if (job.has_progress()) newest = &progress.training();
  if (job.has_last_epoch()) newest = epoch.has_validation() ? &epoch.validation() : &epoch.training();
  // Validations may come between the ends of epochs, and after the last epoch.
  if (job.summary().has_validation()) newest = &job.summary().validation();
  // The values of jobs without a validation cannot be compared with those of other jobs.
  if (newest != nullptr) {
    if (newest == &progress.training() || newest == &epoch.training()) row["of_training"] = true;
    row["loss"] = Number(newest->loss());
    if (const std::string metric = client::MainMetric(*newest); !metric.empty()) {
      row["metric"] = metric;
      row["value"] = Number(newest->metrics().at(metric));
      if (IsBetterIfSmaller(metric)) row["smaller_is_better"] = true;
    }
  }
  if (job.state() == v1::JOB_STATE_RUNNING && job.has_start_time() && progress.step() > 0 &&
      progress.steps() > progress.step()) {
    // The steps before this attempt are unknown, so the rate of samples is better if it is known.
    const double rate = progress.images_per_second();
    const double batch = static_cast<double>(job.spec().training().global_batch_size());
    const double left = static_cast<double>(progress.steps() - progress.step());
    const double elapsed = now - SecondsOf(job.start_time());
    row["seconds_left"] = Number(
        rate > 0 && batch > 0 ? left * batch / rate : left * elapsed / static_cast<double>(progress.step()));
  }
  for (const double loss : losses) row["spark"].push_back(Number(loss));
  return row;
}

}  // namespace tandem::dashboard
