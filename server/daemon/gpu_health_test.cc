#include "server/daemon/gpu_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "engine/base/mutex.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two GPUs and a CPU. The job of "gpu:0" is named "gpu:0", and so on.
class GpuHealthTest : public ::testing::Test {
 protected:
  // `script` replaces the worker's check, and `driver` the driver's answer.
  void Begin(const std::string& script, std::function<absl::Status(const std::string& uuid)> driver) {
    const std::string program = absl::StrCat(::testing::TempDir(), "/probe.sh");
    std::ofstream(program) << "#!/bin/sh\n" << script << "\n";
    chmod(program.c_str(), 0700);
    GpuHealth::Parts parts;
    parts.devices = [this] { return devices_; };
    parts.ask_driver = [driver = std::move(driver)](v1::GpuStatus* status, absl::Duration) {
      return driver(status->uuid());
    };
    parts.exclude = [this](const std::string& device, const std::string& message) {
      Note(absl::StrCat("excluded ", device, ": ", message));
    };
    parts.release_lease = [this](const std::string& job_id, int32_t attempt) {
      Note(absl::StrCat("released ", job_id, "/", attempt));
    };
    parts.tell = [this](const std::string& job_id, const std::string& text) {
      Note(absl::StrCat("told ", job_id, ": ", text));
    };
    health_ = std::make_unique<GpuHealth>(
        GpuProber::Options{.worker_program = program, .gpu_uuids = {"GPU-0", "GPU-1"}}, std::move(parts));
  }
  void SetUp() override {
    for (const char* const name : {"gpu:0", "gpu:1", "cpu:0"}) {
      v1::Device& device = devices_.emplace_back();
      device.set_name(absl::StrCat("devices/", name));
      device.set_state(v1::DEVICE_STATE_ACTIVE);
      device.add_jobs(absl::StrCat("jobs/", name));
    }
    for (int i = 0; i < 2; ++i) {
      devices_[i].set_kind(v1::DEVICE_KIND_GPU);
      devices_[i].set_index(i);
      devices_[i].mutable_gpu()->set_uuid(absl::StrCat("GPU-", i));
    }
  }
  void Note(std::string what) {
    MutexLock lock(&mutex_);
    happened_.push_back(std::move(what));
  }
  std::vector<std::string> Happened() {
    MutexLock lock(&mutex_);
    return happened_;
  }
  // Returns the events as soon as `count` happened.
  std::vector<std::string> Await(size_t count) {
    MutexLock lock(&mutex_);
    const auto all = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return happened_.size() >= count; };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&all), absl::Minutes(2)));
    return happened_;
  }

  std::vector<v1::Device> devices_;
  Mutex mutex_;
  std::vector<std::string> happened_ ABSL_GUARDED_BY(mutex_);
  // Its thread uses the other members.
  std::unique_ptr<GpuHealth> health_;
};

TEST_F(GpuHealthTest, ADriverThatHangsHoldsUpOnlyChecks) {
  absl::Notification asked, answers;
  Begin("exit 0", [&](const std::string& uuid) -> absl::Status {
    if (uuid != "GPU-0") return absl::OkStatus();
    if (!asked.HasBeenNotified()) asked.Notify();
    answers.WaitForNotification();
    return absl::UnavailableError("the driver did not answer within 30s");
  });
  // The caller is the supervisor's only thread, and must not block.
  health_->OnCrash("gpu:0", 1);
  asked.WaitForNotification();
  health_->OnCrash("gpu:1", 1);
  health_->OnCrash("cpu:0", 1);
  EXPECT_THAT(Happened(), ElementsAre("released cpu:0/1")) << "it has no GPU";
  answers.Notify();
  EXPECT_THAT(
      Await(4),
      ElementsAre(
          "released cpu:0/1",
          AllOf(HasSubstr("excluded devices/gpu:0: The worker of \"jobs/gpu:0\" failed on it, and its "
                          "driver now says: the driver did not answer within 30s. See dmesg."),
                HasSubstr("tandem devices resume gpu:0")),
          "released gpu:0/1", "released gpu:1/1"));
}

TEST_F(GpuHealthTest, WhatIsKnownOfAGpuIsSaidBeforeTheNextIsAsked) {
  devices_[1].add_jobs("jobs/gpu:0");
  std::vector<std::string> before;
  Begin("exit 6", [&](const std::string& uuid) {
    if (uuid == "GPU-1") before = Happened();
    return absl::OkStatus();
  });
  health_->OnCrash("gpu:0", 2);
  EXPECT_THAT(Await(3), ElementsAre(HasSubstr("excluded devices/gpu:0"), HasSubstr("excluded devices/gpu:1"),
                                    "released gpu:0/2"));
  EXPECT_THAT(before, ElementsAre(HasSubstr("excluded devices/gpu:0")));
}

TEST_F(GpuHealthTest, WhatIsOutOfServiceOrNotAskedAnyMoreKeepsNoLease) {
  Begin("exit 6", [](const std::string&) { return absl::CancelledError("the daemon is shutting down"); });
  devices_[0].set_state(v1::DEVICE_STATE_EXCLUDED);
  health_->OnCrash("gpu:0", 1);
  EXPECT_THAT(Happened(), ElementsAre("released gpu:0/1"));
  health_->OnCrash("gpu:1", 1);
  EXPECT_THAT(Await(2), ElementsAre("released gpu:0/1", "released gpu:1/1"));
  health_->Stop();
  health_->OnCrash("gpu:1", 2);
  EXPECT_EQ(Happened().back(), "released gpu:1/2");
}

TEST_F(GpuHealthTest, AnErrorOfHardwareIsToldToTheJobsOfItsGpu) {
  Begin("exit 0", [](const std::string&) { return absl::OkStatus(); });
  GpuMonitor::Error error;
  error.uuid = "GPU-1";
  error.error.set_xid(31);
  health_->OnDriverError(error);
  EXPECT_TRUE(Happened().empty()) << "a program's fault";
  error.error.set_xid(94);
  error.is_of_hardware = true;
  health_->OnDriverError(error);
  EXPECT_THAT(Happened(),
              ElementsAre(HasSubstr("excluded devices/gpu:1: Its driver reported XID 94"),
                          AllOf(HasSubstr("told gpu:1: "), HasSubstr("XID 94"), HasSubstr("may be wrong"))));
}

}  // namespace
}  // namespace tandem
