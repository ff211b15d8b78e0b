// Tests the daemon when a GPU, or a worker on a GPU, fails. A fake library replaces NVML, and a script
// replaces the worker.

#include <grpcpp/client_context.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tandem/v1/daemon_service.grpc.pb.h"
#include "tests/integration/api.h"
#include "tests/integration/daemon_process.h"
#include "tests/integration/job_specs.h"
#include "tests/integration/processes.h"
#include "tests/integration/scratch_folder.h"
#include "tests/integration/watcher.h"

namespace tandem::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kMachine[] =
    "driver 580.95.05\ncuda 13000\n"
    "gpu uuid=GPU-a;name=NVIDIA H200;cc=9.0;memory=150754820096;used=0;events=1\n"
    "gpu uuid=GPU-b;name=NVIDIA H200;cc=9.0;memory=150754820096;used=0;events=1\n";

// The check of gpu:1 fails. Training fails like a CUDA fault, or never ends if the file "hangs" exists.
constexpr char kWorker[] = R"(#!/bin/sh
if [ "$1" = --probe ]; then
  [ "$2" = devices/gpu:0 ] && exit 0
  echo "what was written into memory came back changed" >&2
  exit 6
fi
[ -e "$(dirname "$0")/hangs" ] && exec sleep 600
exit 6
)";

class GpuFaultsTest : public ::testing::Test {
 protected:
  GpuFaultsTest() {
    Machine(kMachine);
    const std::string worker = scratch_.Write("worker.sh", kWorker);
    chmod(worker.c_str(), 0700);
    DaemonProcess::Options options;
    options.state_folder = scratch_.File("state");
    options.extra_arguments = {"--worker-program", worker};
    options.environment = {
        {"CUDA_VISIBLE_DEVICES", "0,1"},
        {"TANDEM_FAKE_NVML", scratch_.File("machine")},
        {"TANDEM_NVML", std::filesystem::absolute("server/scheduler/testing/libfake-nvml.so").string()}};
    daemon_ = std::make_unique<DaemonProcess>(options);
  }

  void SetUp() override {
    const absl::Status started = daemon_->Start();
    ASSERT_TRUE(started.ok()) << started;
  }

  // Renames a complete file, so that no reader sees a part.
  void Machine(const std::string& text) {
    const std::string written = scratch_.Write("machine.new", text);
    ASSERT_EQ(std::rename(written.c_str(), scratch_.File("machine").c_str()), 0);
  }

  std::string Train(const std::string& gpu) {
    v1::JobSpec spec = SmallJob({});
    spec.mutable_replicas()->add_devices(gpu);
    spec.set_max_restarts(0);
    return Api(*daemon_).Create(spec).name();
  }

  v1::Device Find(const std::string& name) {
    for (v1::Device& device : Api(*daemon_).Devices()) {
      if (device.name() == name) return device;
    }
    ADD_FAILURE() << "no " << name;
    return {};
  }

  template <typename Condition>
  v1::Device Await(const std::string& name, const Condition& condition) {
    v1::Device device;
    const auto holds = [&] {
      device = Find(name);
      return condition(device);
    };
    EXPECT_TRUE(WaitUntil(holds, absl::Minutes(1))) << device.ShortDebugString() << "\n" << daemon_->Log();
    return device;
  }

  ScratchFolder scratch_;
  std::unique_ptr<DaemonProcess> daemon_;
};

TEST_F(GpuFaultsTest, AGpuIsCheckedAfterAWorkerFailedOnIt) {
  for (const char* gpu : {"gpu:0", "gpu:1"}) {
    const v1::Job job = Api(*daemon_).WaitFor(Train(gpu), v1::JOB_STATE_FAILED);
    EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  }
  const auto is_free = [](const v1::Device& device) { return device.jobs().empty() && device.faults() > 0; };
  const v1::Device passed = Await("devices/gpu:0", is_free);
  EXPECT_EQ(passed.state(), v1::DEVICE_STATE_ACTIVE) << passed.state_message();
  EXPECT_EQ(passed.faults(), 1);
  const v1::Device failed = Await("devices/gpu:1", is_free);
  EXPECT_EQ(failed.state(), v1::DEVICE_STATE_EXCLUDED);
  EXPECT_THAT(failed.state_message(),
              AllOf(HasSubstr("came back changed"), HasSubstr("tandem devices resume gpu:1")));
}

TEST_F(GpuFaultsTest, AnErrorOfHardwareExcludesTheGpuAndItsJobsHearOfIt) {
  scratch_.Write("hangs", "");
  const std::string job = Train("gpu:0");
  Await("devices/gpu:0", [](const v1::Device& device) { return !device.jobs().empty(); });
  // The daemon only reports an error that a program caused.
  Machine(absl::StrCat(kMachine, "xid 1 31 a\n"));
  const v1::Device other =
      Await("devices/gpu:1", [](const v1::Device& device) { return device.gpu().has_last_error(); });
  EXPECT_EQ(other.gpu().last_error().xid(), 31);
  EXPECT_EQ(other.state(), v1::DEVICE_STATE_ACTIVE);

  Machine(absl::StrCat(kMachine, "xid 1 31 a\nxid 0 94 a\n"));
  const v1::Device device = Await(
      "devices/gpu:0", [](const v1::Device& found) { return found.state() == v1::DEVICE_STATE_EXCLUDED; });
  EXPECT_THAT(device.state_message(), AllOf(HasSubstr("XID 94"), HasSubstr("tandem devices resume gpu:0")));
  EXPECT_EQ(device.gpu().last_error().xid(), 94);
  EXPECT_FALSE(device.jobs().empty()) << "the job goes on";

  const Watcher watcher(*daemon_, job);
  std::string notices;
  const auto is_told = [&] {
    notices.clear();
    for (const v1::JobEvent& event : watcher.events()) absl::StrAppend(&notices, event.notice().message());
    return !notices.empty();
  };
  EXPECT_TRUE(WaitUntil(is_told, absl::Minutes(1)));
  EXPECT_THAT(notices, AllOf(HasSubstr("devices/gpu:0"), HasSubstr("XID 94")));

  const auto stub = v1::DaemonService::NewStub(daemon_->NewChannel());
  grpc::ClientContext context;
  daemon_->Prepare(context);
  v1::ResumeDeviceRequest request;
  request.set_name("devices/gpu:0");
  v1::Device resumed;
  const grpc::Status status = stub->ResumeDevice(&context, request, &resumed);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(resumed.state(), v1::DEVICE_STATE_ACTIVE);
}

}  // namespace
}  // namespace tandem::testing
