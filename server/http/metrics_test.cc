#include "server/http/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/http/daemon_gauges.h"
#include "server/http/device_metrics.h"
#include "server/http/job_metrics.h"
#include "server/http/process_metrics.h"
#include "server/http/security_gauges.h"
#include "server/http/service_metrics.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::JobEvent EventAt(const std::string& job, int64_t seconds) {
  v1::JobEvent event;
  event.set_job(job);
  event.mutable_time()->set_seconds(seconds);
  return event;
}

v1::JobEvent Change(const std::string& job, int64_t seconds, v1::JobState from, v1::JobState to,
                    v1::StateReason reason = v1::STATE_REASON_UNSPECIFIED) {
  v1::JobEvent event = EventAt(job, seconds);
  event.mutable_state_change()->set_from(from);
  event.mutable_state_change()->set_to(to);
  event.mutable_state_change()->set_reason(reason);
  return event;
}

class MetricsTest : public testing::Test {
 protected:
  // Submits and starts a job, and reports an epoch.
  void Run(const std::string& job) {
    jobs_.OnEvent(Change(job, 100, v1::JOB_STATE_UNSPECIFIED, v1::JOB_STATE_QUEUED));
    jobs_.OnEvent(Change(job, 130, v1::JOB_STATE_QUEUED, v1::JOB_STATE_STARTING));
    jobs_.OnEvent(Change(job, 131, v1::JOB_STATE_STARTING, v1::JOB_STATE_RUNNING));
    v1::JobEvent progress = EventAt(job, 140);
    progress.mutable_progress()->set_images_per_second(1500);
    progress.mutable_progress()->set_step(25);
    progress.mutable_progress()->set_steps(100);
    progress.mutable_progress()->mutable_training()->set_samples(3000);
    jobs_.OnEvent(progress);
    v1::JobEvent epoch = EventAt(job, 150);
    epoch.mutable_epoch()->set_training_seconds(10);
    for (int i = 0; i < 2; ++i) {
      v1::ReplicaShare& replica = *epoch.mutable_epoch()->add_replicas();
      replica.set_data_wait_seconds(1 + i);
      replica.set_reduce_seconds(2);
    }
    jobs_.OnEvent(epoch);
    v1::JobEvent checkpoint = EventAt(job, 151);
    checkpoint.mutable_checkpoint()->set_seconds(0.5);
    jobs_.OnEvent(checkpoint);
  }
  std::string Text() const { return metrics_.Page().body; }

  Metrics metrics_;
  JobMetrics jobs_{&metrics_};
  ServiceMetrics service_{&metrics_};
};

TEST_F(MetricsTest, AJobsWay) {
  Run("jobs/a");
  std::string text = Text();
  for (const char* line :
       {"tandem_jobs{state=\"running\"} 1\n", "tandem_jobs{state=\"queued\"} 0\n",
        "tandem_jobs_created_total 1\n", "tandem_job_queue_wait_seconds_sum 30\n",
        "tandem_job_images_per_second{job=\"a\"} 1500\n", "tandem_images_per_second 1500\n",
        "tandem_images_total 3000\n", "tandem_job_progress_ratio{job=\"a\"} 0.25\n",
        "tandem_job_last_report_timestamp_seconds{job=\"a\"} 140\n",
        "tandem_job_data_wait_ratio{job=\"a\"} 0.15\n", "tandem_job_all_reduce_ratio{job=\"a\"} 0.2\n",
        "tandem_replica_training_seconds_total 20\n", "tandem_replica_data_wait_seconds_total 3\n",
        "tandem_replica_all_reduce_seconds_total 4\n", "tandem_checkpoints_total 1\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  // After its end, no series of the job remains.
  jobs_.OnEvent(
      Change("jobs/a", 200, v1::JOB_STATE_RUNNING, v1::JOB_STATE_FAILED, v1::STATE_REASON_WORKER_LOST));
  text = Text();
  EXPECT_THAT(text, Not(HasSubstr("job=\"a\"")));
  for (const char* line : {"tandem_images_per_second 0\n", "tandem_jobs{state=\"failed\"} 1\n",
                           "tandem_jobs_ended_total{reason=\"worker_lost\",state=\"failed\"} 1\n",
                           "tandem_worker_losses_total 1\n", "tandem_job_restarts_total 0\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  v1::Job job;
  job.set_name("jobs/a");
  job.set_state(v1::JOB_STATE_FAILED);
  jobs_.OnDeleted(job);
  EXPECT_THAT(Text(), HasSubstr("tandem_jobs{state=\"failed\"} 0\n"));
}

TEST_F(MetricsTest, ARestartOfAJob) {
  Run("jobs/a");
  jobs_.OnEvent(
      Change("jobs/a", 200, v1::JOB_STATE_RUNNING, v1::JOB_STATE_QUEUED, v1::STATE_REASON_RESTARTING));
  jobs_.OnEvent(Change("jobs/a", 210, v1::JOB_STATE_QUEUED, v1::JOB_STATE_STARTING));
  const std::string text = Text();
  for (const char* line :
       {"tandem_worker_losses_total 1\n", "tandem_job_restarts_total 1\n",
        "tandem_job_queue_wait_seconds_count 2\n", "tandem_job_queue_wait_seconds_sum 40\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST_F(MetricsTest, TheDelayOfARestartIsNoWaitForDevices) {
  Run("jobs/a");
  jobs_.OnEvent(
      Change("jobs/a", 200, v1::JOB_STATE_RUNNING, v1::JOB_STATE_QUEUED, v1::STATE_REASON_RESTARTING));
  v1::Job job;
  job.set_name("jobs/a");
  job.set_state(v1::JOB_STATE_QUEUED);
  job.mutable_restart_time()->set_seconds(208);
  jobs_.OnMoved(job);
  jobs_.OnEvent(Change("jobs/a", 210, v1::JOB_STATE_QUEUED, v1::JOB_STATE_STARTING));
  EXPECT_THAT(Text(), HasSubstr("tandem_job_queue_wait_seconds_sum 32\n"));
}

TEST_F(MetricsTest, WhatAnEarlierDaemonLeft) {
  v1::Job queued;
  queued.set_name("jobs/a");
  queued.set_state(v1::JOB_STATE_QUEUED);
  queued.mutable_create_time()->set_seconds(60);
  jobs_.Restore({{v1::JOB_STATE_QUEUED, 1}, {v1::JOB_STATE_SUCCEEDED, 100000}}, {queued});
  jobs_.OnEvent(Change("jobs/a", 100, v1::JOB_STATE_QUEUED, v1::JOB_STATE_STARTING));
  const std::string text = Text();
  for (const char* line :
       {"tandem_jobs{state=\"queued\"} 0\n", "tandem_jobs{state=\"starting\"} 1\n",
        "tandem_jobs{state=\"succeeded\"} 100000\n", "tandem_job_queue_wait_seconds_sum 40\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST_F(MetricsTest, NumbersThatAreNoneDoNoHarm) {
  v1::JobEvent progress = EventAt("jobs/a", 1);
  progress.mutable_progress()->set_images_per_second(std::numeric_limits<double>::quiet_NaN());
  progress.mutable_progress()->mutable_training()->set_samples(-4);
  jobs_.OnEvent(progress);
  EXPECT_THAT(Text(), HasSubstr("tandem_images_per_second 0\n"));
  EXPECT_THAT(Text(), HasSubstr("tandem_images_total 0\n"));
}

TEST_F(MetricsTest, CallsAndCommits) {
  service_.OnCallStarted("CreateJob");
  service_.OnCallStarted("WatchJob");
  service_.OnCallEnded("CreateJob", absl::StatusCode::kInvalidArgument, absl::Milliseconds(3), false);
  service_.OnCommit(absl::Milliseconds(2), 5, absl::OkStatus());
  service_.OnCommit(absl::Milliseconds(2), 1, absl::ResourceExhaustedError("full"));
  const std::string text = Text();
  for (const char* line :
       {"tandem_rpc_calls_in_flight{method=\"CreateJob\"} 0\n",
        "tandem_rpc_calls_in_flight{method=\"WatchJob\"} 1\n",
        "tandem_rpc_calls_total{code=\"INVALID_ARGUMENT\",method=\"CreateJob\"} 1\n",
        "tandem_rpc_call_seconds_count{method=\"CreateJob\"} 1\n", "tandem_store_commit_seconds_count 2\n",
        "tandem_store_writes_total 6\n", "tandem_store_commit_failures_total 1\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  service_.OnCallEnded("WatchJob", absl::StatusCode::kOk, absl::Hours(3), true);
  EXPECT_THAT(Text(), Not(HasSubstr("tandem_rpc_call_seconds_count{method=\"WatchJob\"}")));
}

TEST_F(MetricsTest, ADriverThatHangsIsNotAskedAgain) {
  FakeClock clock(absl::FromUnixSeconds(1000));
  int asked = 0;
  const DeviceMetrics* self = nullptr;
  DeviceMetrics devices(
      [&] {
        ++asked;
        // During this collection, a second collection gets the known values.
        if (asked == 2) {
          EXPECT_EQ(self->Collect().front().metric.size(), 3);
        }
        v1::Device device;
        device.set_name("devices/cpu:0");
        device.set_state(v1::DEVICE_STATE_ACTIVE);
        return std::vector<v1::Device>{device};
      },
      &clock);
  self = &devices;
  devices.Collect();
  devices.Collect();
  EXPECT_EQ(asked, 1);
  clock.Advance(absl::Seconds(2));
  devices.Collect();
  EXPECT_EQ(asked, 2);
}

// Returns "name type" of all exported metrics.
std::set<std::string> Exported(const std::string& page) {
  std::set<std::string> names;
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    if (absl::ConsumePrefix(&line, "# TYPE ")) names.insert(std::string(line));
  }
  return names;
}

// Returns "name type" of all rows of the table: "| `name` | type | ...".
std::set<std::string> Documented() {
  const char* const sources = getenv("TEST_SRCDIR");
  std::ifstream file(absl::StrCat(sources == nullptr ? "" : sources, "/tandem/server/http/METRICS.md"));
  EXPECT_TRUE(file.good());
  std::set<std::string> names;
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "| `")) continue;
    const std::vector<std::string> cells = absl::StrSplit(line, '|');
    const std::string name(absl::StripSuffix(absl::StripPrefix(cells[1], " `"), "` "));
    names.insert(absl::StrCat(name, " ", absl::StripAsciiWhitespace(cells[2])));
  }
  return names;
}

TEST_F(MetricsTest, AllThatIsExportedIsInTheTableAndTheOtherWayRound) {
  Run("jobs/a");
  Run("jobs/b");
  jobs_.OnEvent(
      Change("jobs/b", 200, v1::JOB_STATE_RUNNING, v1::JOB_STATE_SUCCEEDED, v1::STATE_REASON_COMPLETED));
  service_.OnCallStarted("GetJob");
  service_.OnCallEnded("GetJob", absl::StatusCode::kOk, absl::Milliseconds(1), false);
  v1::Device device;
  device.set_name("devices/gpu:0");
  device.set_state(v1::DEVICE_STATE_EXCLUDED);
  v1::GpuStatus& gpu = *device.mutable_gpu();
  gpu.set_utilization_percent(50);
  gpu.set_used_memory_bytes(1);
  gpu.set_temperature_celsius(40);
  gpu.set_power_watts(1);
  gpu.set_power_limit_watts(2);
  gpu.set_ecc_corrected_errors(0);
  gpu.set_ecc_uncorrected_errors(0);
  gpu.mutable_last_error()->set_xid(79);
  const DeviceMetrics devices([&] { return std::vector<v1::Device>{device}; });
  metrics_.Add(&devices);
  const ProcessMetrics process(13);
  metrics_.Add(&process);
  DaemonGauges gauges;
  gauges.ready = [] { return true; };
  gauges.cache_bytes = gauges.upload_bytes = [] { return 7.0; };
  gauges.backup_age = [] { return absl::Hours(2); };
  gauges.state_folder = "/";
  gauges.certificate_expiry = [] { return absl::FromUnixSeconds(2000000000); };
  AddDaemonGauges(gauges, &metrics_);
  AddSecurityGauges([] { return AuditLog::State{.lost = 3}; },
                    [] { return TlsReloader::State{.failing = true, .valid_until = {}}; }, &metrics_);

  const std::string page = Text();
  EXPECT_EQ(Exported(page), Documented());
  EXPECT_THAT(page, HasSubstr("tandem_audit_lost_records 3\n"));
  EXPECT_THAT(page, HasSubstr("tandem_tls_files_failing 1\n"));
  EXPECT_THAT(page, HasSubstr("tandem_device_state{device=\"gpu:0\",state=\"excluded\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("tandem_device_state{device=\"gpu:0\",state=\"active\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("tandem_gpu_utilization_ratio{device=\"gpu:0\"} 0.5\n"));
  EXPECT_THAT(page, HasSubstr("tandem_ready 1\n"));
  EXPECT_THAT(page, HasSubstr("tandem_newest_backup_age_seconds 7200\n"));
  EXPECT_THAT(page, HasSubstr("tandem_build_info{cuda=\"13\",version=\""));
  EXPECT_THAT(page, HasSubstr("tandem_tls_certificate_expiry_timestamp_seconds 2000000000\n"));
  // Prometheus's conventions: exactly the counters' names end in "_total".
  for (const std::string& entry : Exported(page)) {
    const std::pair<std::string, std::string> name_type = absl::StrSplit(entry, ' ');
    EXPECT_EQ(absl::EndsWith(name_type.first, "_total"), name_type.second == "counter") << entry;
  }
}

}  // namespace
}  // namespace tandem
