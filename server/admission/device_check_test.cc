#include "server/admission/device_check.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/training/replica_spec.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// 1 MiB each.
std::vector<v1::Device> Devices(int gpu, int cpu) {
  std::vector<v1::Device> devices;
  for (int i = 0; i < gpu + cpu; ++i) {
    v1::Device& device = devices.emplace_back();
    device.set_kind(i < gpu ? v1::DEVICE_KIND_GPU : v1::DEVICE_KIND_CPU);
    device.set_name(absl::StrCat("devices/", i < gpu ? "gpu:" : "cpu:", i < gpu ? i : i - gpu));
    device.set_memory_bytes(1 << 20);
    device.add_precisions(v1::PRECISION_FLOAT32);
  }
  return devices;
}

const std::vector<v1::DeviceKind> kGpuFirst = {v1::DEVICE_KIND_GPU, v1::DEVICE_KIND_CPU};

v1::JobSpec Job(const std::string& replicas, const DeviceCheck& check) {
  v1::JobSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(replicas, spec.mutable_replicas())) << replicas;
  const absl::Status resolved = check.ResolveAll(spec.mutable_replicas());
  EXPECT_TRUE(resolved.ok()) << resolved;
  FillReplicasDefaults(spec.mutable_replicas());
  return spec;
}

JobPlan Plan(int64_t replica_bytes) {
  JobPlan plan;
  plan.replica_memory_bytes = replica_bytes;
  return plan;
}

TEST(DeviceCheckTest, AGpusMemoryIsLimitedByTheJob) {
  const DeviceCheck check(Devices(1, 1), kGpuFirst);
  JobPlan plan = Plan(1000);
  plan.memory.activations = 700;
  plan.memory.parameters = 300;
  v1::JobSpec spec = Job("", check);
  spec.mutable_gpu()->set_memory_limit_bytes(999);
  const absl::Status refused = check.Check(plan, &spec).status();
  EXPECT_EQ(GetReason(refused), "TOO_LITTLE_MEMORY");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("spec.gpu.memory_limit_bytes: is 999"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("(activations 0.0 MiB, parameters 0.0 MiB)"));
  spec.mutable_gpu()->set_memory_limit_bytes(1000);
  EXPECT_TRUE(check.Check(plan, &spec).ok());
  // GPU limits say nothing about other devices.
  v1::JobSpec cpu = Job("device_kind: DEVICE_KIND_CPU", check);
  cpu.mutable_gpu()->set_memory_limit_bytes(1);
  EXPECT_TRUE(check.Check(plan, &cpu).ok());
}

TEST(DeviceCheckTest, TheOwnersLimitsOfGpusHold) {
  const DeviceCheck check(Devices(1, 1), kGpuFirst, {.memory_bytes = 5000, .workspace_bytes = 70});
  const auto filled = [&](const std::string& replicas, int64_t memory, int64_t workspace) {
    v1::JobSpec spec = Job(replicas, check);
    spec.mutable_gpu()->set_memory_limit_bytes(memory);
    spec.mutable_gpu()->set_workspace_limit_bytes(workspace);
    const absl::Status status = check.FillGpuLimits(&spec);
    return status.ok()
               ? absl::StrCat(spec.gpu().memory_limit_bytes(), " ", spec.gpu().workspace_limit_bytes())
               : std::string(status.message());
  };
  EXPECT_EQ(filled("", 0, 0), "5000 70");
  EXPECT_EQ(filled("", 4000, 80), "4000 80");
  EXPECT_THAT(filled("", 5001, 0), HasSubstr("it must be at most 5000 bytes"));
  EXPECT_EQ(filled("device_kind: DEVICE_KIND_CPU", 0, 0), "0 0");
}

TEST(DeviceCheckTest, PriorityIsWords) {
  EXPECT_THAT(*ParseDevicePriority(""), ElementsAre(v1::DEVICE_KIND_GPU, v1::DEVICE_KIND_CPU));
  EXPECT_THAT(*ParseDevicePriority(" CPU, gpu"), ElementsAre(v1::DEVICE_KIND_CPU, v1::DEVICE_KIND_GPU));
  EXPECT_THAT(*ParseDevicePriority("cpu"), ElementsAre(v1::DEVICE_KIND_CPU));
  EXPECT_THAT(std::string(ParseDevicePriority("gpu,tpu").status().message()),
              HasSubstr("\"tpu\" is neither"));
  EXPECT_THAT(std::string(ParseDevicePriority("cpu,cpu").status().message()), HasSubstr("is given twice"));
}

TEST(DeviceCheckTest, TheKindIsTheFirstWithEnoughDevices) {
  const auto kind = [](const std::string& replicas, std::vector<v1::DeviceKind> priority) {
    const DeviceCheck check(Devices(1, 2), std::move(priority));
    v1::JobSpec spec = Job(replicas, check);
    const absl::StatusOr<int64_t> bytes = check.Check(Plan(1000), &spec);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return spec.replicas().device_kind();
  };
  EXPECT_EQ(kind("", kGpuFirst), v1::DEVICE_KIND_GPU);
  EXPECT_EQ(kind("device_kind: DEVICE_KIND_ANY", kGpuFirst), v1::DEVICE_KIND_GPU);
  EXPECT_EQ(kind("count: 2", kGpuFirst), v1::DEVICE_KIND_CPU);
  EXPECT_EQ(kind("count: 2 replicas_per_device: 2", kGpuFirst), v1::DEVICE_KIND_GPU);
  // A replica without load needs no device.
  EXPECT_EQ(kind("worker_load: [0, 1]", kGpuFirst), v1::DEVICE_KIND_GPU);
  EXPECT_EQ(kind("", {v1::DEVICE_KIND_CPU, v1::DEVICE_KIND_GPU}), v1::DEVICE_KIND_CPU);
  EXPECT_EQ(kind("device_kind: DEVICE_KIND_GPU", {v1::DEVICE_KIND_CPU}), v1::DEVICE_KIND_GPU);
  EXPECT_EQ(kind("devices: 'cpu:1'", kGpuFirst), v1::DEVICE_KIND_CPU);
}

TEST(DeviceCheckTest, GpusOfferTheirPrecisionsOpsAndMemory) {
  std::vector<v1::Device> devices = Devices(2, 1);
  devices[0].add_precisions(v1::PRECISION_BFLOAT16);
  devices[1].add_precisions(v1::PRECISION_BFLOAT16);
  const DeviceCheck check(devices, kGpuFirst);
  const auto verdict = [&check](v1::Precision precision, const JobPlan& plan) {
    v1::JobSpec spec = Job("count: 2", check);
    spec.mutable_training()->set_precision(precision);
    const absl::StatusOr<int64_t> bytes = check.Check(plan, &spec);
    EXPECT_TRUE(!bytes.ok() || spec.replicas().device_kind() == v1::DEVICE_KIND_GPU);
    return bytes;
  };
  JobPlan plan = Plan(1 << 20);
  plan.ops = {"conv2d", "batch_norm", "sgd"};
  // Host memory does not count as GPU memory.
  plan.host_memory_bytes = 1 << 20;
  EXPECT_EQ(*verdict(v1::PRECISION_UNSPECIFIED, plan), 1 << 20);
  EXPECT_EQ(*verdict(v1::PRECISION_FLOAT32, plan), 1 << 20);
  EXPECT_EQ(*verdict(v1::PRECISION_BFLOAT16, plan), 1 << 20);

  const absl::Status half = verdict(v1::PRECISION_FLOAT16, plan).status();
  EXPECT_EQ(GetReason(half), "PRECISION_NOT_OFFERED");
  EXPECT_THAT(std::string(half.message()),
              AllOf(HasSubstr("spec.training.precision: GPU devices"), HasSubstr("PRECISION_FLOAT16"),
                    HasSubstr("use one of PRECISION_FLOAT32, PRECISION_BFLOAT16")));
  EXPECT_EQ(GetReason(verdict(v1::PRECISION_FLOAT64, plan).status()), "PRECISION_NOT_OFFERED");
  EXPECT_EQ(GetReason(verdict(v1::PRECISION_FLOAT32, Plan((1 << 20) + 1)).status()), "TOO_LITTLE_MEMORY");
  plan.ops.push_back("no_such_op");
  const absl::Status op = verdict(v1::PRECISION_FLOAT32, plan).status();
  EXPECT_EQ(GetReason(op), "OP_NOT_OFFERED");
  EXPECT_THAT(std::string(op.message()), AllOf(HasSubstr("GPU devices"), HasSubstr("no_such_op")));
}

TEST(DeviceCheckTest, AllIsTheNamesOfAll) {
  const DeviceCheck check(Devices(0, 3), kGpuFirst);
  const v1::JobSpec spec = Job("devices: 'all'", check);
  EXPECT_THAT(spec.replicas().devices(), ElementsAre("devices/cpu:0", "devices/cpu:1", "devices/cpu:2"));
  EXPECT_EQ(spec.replicas().count(), 3);
  EXPECT_EQ(spec.replicas().device_kind(), v1::DEVICE_KIND_CPU);
  const v1::JobSpec shared = Job("devices: 'all' replicas_per_device: 2", check);
  EXPECT_EQ(shared.replicas().count(), 6);
  EXPECT_EQ(shared.replicas().replicas_per_device(), 1);
  for (const int each : {-1, 17, 2000000000}) {
    v1::Replicas many;
    many.add_devices("all");
    many.set_replicas_per_device(each);
    const std::vector<FieldViolation> violations = GetFieldViolations(check.ResolveAll(&many));
    EXPECT_EQ(violations,
              std::vector<FieldViolation>(
                  {{"replicas_per_device", absl::StrCat("is ", each, "; it must be from 1 to 16")}}));
  }
  v1::Replicas none;
  none.add_devices("all");
  none.set_device_kind(v1::DEVICE_KIND_GPU);
  EXPECT_THAT(GetFieldViolations(check.ResolveAll(&none)),
              ElementsAre(testing::Field(&FieldViolation::field, "devices")));
}

TEST(DeviceCheckTest, NamedDevicesMustBeThere) {
  const DeviceCheck check(Devices(0, 2), kGpuFirst);
  v1::JobSpec spec = Job("devices: ['cpu:1', 'cpu:7']", check);
  const absl::Status status = check.Check(Plan(1000), &spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(GetReason(status), "NO_SUCH_DEVICE");
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("spec.replicas.devices[1]"),
                                                   HasSubstr("devices/cpu:7"), HasSubstr("devices/cpu:0")));
}

TEST(DeviceCheckTest, ReplicasThatShareADeviceNeedItsMemoryTogether) {
  const DeviceCheck check(Devices(0, 2), kGpuFirst);
  v1::JobSpec fits = Job("count: 4 replicas_per_device: 2", check);
  EXPECT_EQ(*check.Check(Plan(500'000), &fits), 500'000);
  for (const char* replicas : {"count: 4 replicas_per_device: 2", "count: 3 devices: ['cpu:0', 'cpu:1']"}) {
    v1::JobSpec spec = Job(replicas, check);
    const absl::Status status = check.Check(Plan(600'000), &spec).status();
    EXPECT_EQ(GetReason(status), "TOO_LITTLE_MEMORY") << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("the 2 replicas that share a device"));
  }
  v1::JobSpec many = Job("count: 5 replicas_per_device: 2", check);
  const absl::Status too_many = check.Check(Plan(1000), &many).status();
  EXPECT_EQ(GetReason(too_many), "TOO_FEW_DEVICES");
  EXPECT_THAT(std::string(too_many.message()), HasSubstr("at most 4"));
}

}  // namespace
}  // namespace tandem
