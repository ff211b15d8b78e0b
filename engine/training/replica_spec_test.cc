#include "engine/training/replica_spec.h"

#include <string>

#include "engine/base/testing/from_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A job with batches of 8 and these replicas, with their defaults.
v1::JobSpec Job(const std::string& replicas) {
  v1::JobSpec spec;
  *spec.mutable_replicas() = FromText<v1::Replicas>(replicas);
  spec.mutable_training()->set_global_batch_size(8);
  spec.mutable_training()->set_accumulation_steps(1);
  FillReplicasDefaults(spec.mutable_replicas());
  return spec;
}

std::vector<FieldViolation> Faults(const v1::JobSpec& spec) {
  FieldViolations violations;
  CheckReplicas(spec, violations);
  return violations.violations();
}

// Expects a single violation, of `field`, with `words`.
void ExpectFault(const std::string& replicas, const std::string& field, const std::string& words) {
  const std::vector<FieldViolation> faults = Faults(Job(replicas));
  ASSERT_EQ(faults.size(), 1) << replicas;
  EXPECT_EQ(faults[0].field, field) << replicas;
  EXPECT_THAT(faults[0].description, HasSubstr(words)) << replicas;
}

TEST(ReplicaSpecTest, NamesOfDevices) {
  EXPECT_EQ(DeviceName(v1::DEVICE_KIND_CPU, 0), "devices/cpu:0");
  EXPECT_EQ(DeviceName(v1::DEVICE_KIND_GPU, 1), "devices/gpu:1");
  EXPECT_EQ(DeviceName(v1::DEVICE_KIND_REFERENCE, 12), "devices/reference:12");
}

TEST(ReplicaSpecTest, Defaults) {
  v1::Replicas replicas = Job("").replicas();
  EXPECT_EQ(replicas.count(), 1);
  EXPECT_EQ(replicas.prefetch(), 2);
  EXPECT_EQ(replicas.replicas_per_device(), 1);
  EXPECT_EQ(replicas.workers(), 1);
  EXPECT_EQ(replicas.all_reduce().bucket_bytes(), 25 << 20);
  EXPECT_EQ(replicas.all_reduce().first_bucket_bytes(), 1 << 20);
  EXPECT_EQ(Job("all_reduce { bucket_bytes: 1000 }").replicas().all_reduce().first_bucket_bytes(), 1000);

  EXPECT_FALSE(replicas.all_reduce().has_compression());
  EXPECT_EQ(Job("all_reduce { compression {} }").replicas().all_reduce().compression().rank(), 4);

  replicas = Job("devices: ['cpu:0', 'devices/cpu:2'] device_kind: DEVICE_KIND_ANY").replicas();
  EXPECT_EQ(replicas.count(), 2);
  EXPECT_EQ(replicas.device_kind(), v1::DEVICE_KIND_CPU);
  EXPECT_THAT(replicas.devices(), ElementsAre("devices/cpu:0", "devices/cpu:2"));
  EXPECT_EQ(Job("worker_load: [1, 1, 0.5]").replicas().count(), 3);
  EXPECT_EQ(Job("devices: 'all'").replicas().devices(0), "all");

  replicas = Job("parameter_averaging { every_iterations: 3 }").replicas();
  EXPECT_FALSE(replicas.has_all_reduce());
  EXPECT_TRUE(replicas.parameter_averaging().average_optimizer_state());
}

TEST(ReplicaSpecTest, ReplicasOfNoLoadAreNotMade) {
  EXPECT_THAT(LoadsOf(Job("worker_load: [1, 0, 0.5]").replicas()), ElementsAre(1, 0.5));
  EXPECT_THAT(LoadsOf(Job("count: 3").replicas()), ElementsAre(1, 1, 1));
  EXPECT_THAT(LargestLoads(Job("worker_load: [1, 0, 2]").replicas()), ElementsAre(2, 1));
  EXPECT_THAT(LargestLoads(Job("count: 3 auto_worker_load: true").replicas()), ElementsAre(1, 0.25, 0.25));
}

TEST(ReplicaSpecTest, WhatIsRightIsTaken) {
  for (const char* replicas :
       {"", "count: 8", "worker_load: [3, 0, 1]", "count: 4 devices: ['cpu:0', 'cpu:1']", "devices: 'all'",
        "count: 16 worker_load: [1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0]",
        "count: 2 parameter_averaging { every_iterations: 1 }", "count: 3 auto_worker_load: true",
        "count: 4 replicas_per_device: 2", "count: 4 workers: 2", "worker_load: [1, 0, 2] workers: 2"}) {
    EXPECT_THAT(Faults(Job(replicas)), IsEmpty()) << replicas;
  }
}

TEST(ReplicaSpecTest, Loads) {
  ExpectFault("worker_load: [1e308]", "replicas.worker_load[0]", "must be 0, or from 1e-06 to 1e+06");
  ExpectFault("worker_load: [1, 1e-300]", "replicas.worker_load[1]", "is 1e-300; it must be 0, or");
  ExpectFault("count: 2 worker_load: [0, 0]", "replicas.worker_load", "add up to 0");
  ExpectFault("count: 3 worker_load: [1, 1]", "replicas.worker_load", "has 2 entries for 3 replicas");
  ExpectFault("worker_load: [1, -1]", "replicas.worker_load[1]", "is -1");
  ExpectFault("worker_load: [nan, 1]", "replicas.worker_load[0]", "is nan");
  ExpectFault("worker_load: [1, 1] auto_worker_load: true", "replicas.auto_worker_load",
              "leave one of them out");
  // A batch has 8 samples.
  ExpectFault("worker_load: [1, 0, 0.01]", "training.global_batch_size",
              "the replica of replicas.worker_load[2], 0.01, gets nothing");
  ExpectFault("count: 9", "training.global_batch_size", "is 8, less than the 9 replicas");
}

TEST(ReplicaSpecTest, Devices) {
  ExpectFault("devices: ['cpu:0', 'cpu:0']", "replicas.devices[1]", "is devices/cpu:0 again");
  ExpectFault("devices: ['cpu0']", "replicas.devices[0]", "is no device");
  // 0x1e and 0x1f separate violations.
  ExpectFault("devices: ['cpu\\036name\\037is wrong']", "replicas.devices[0]",
              "is \"devices/cpu\\x1ename\\x1fis wrong\", which is no device");
  ExpectFault("devices: ['cpu:1', 'gpu:0']", "replicas.devices[1]", "the first is of the kind cpu");
  ExpectFault("devices: ['cpu:1', 'all']", "replicas.devices[1]", "beside others");
  ExpectFault("devices: 'cpu:1' device_kind: DEVICE_KIND_GPU", "replicas.devices[0]", "asks for gpu devices");
  ExpectFault("count: 1 devices: ['cpu:0', 'cpu:1']", "replicas.devices", "are 2 for 1 replica");
  ExpectFault("devices: 'cpu:0' count: 2 replicas_per_device: 2", "replicas.replicas_per_device",
              "count says");
  ExpectFault("replicas_per_device: 17", "replicas.replicas_per_device", "from 1 to 16");
}

TEST(ReplicaSpecTest, Workers) {
  ExpectFault("count: 2 workers: 3", "replicas.workers", "is 3 for 2 replicas");
  ExpectFault("count: 3 workers: 2", "replicas.workers", "divide their number");
  ExpectFault("worker_load: [1, 0, 1, 1] workers: 2", "replicas.workers", "is 2 for 3 replicas");
  ExpectFault("count: 2 workers: -1", "replicas.workers", "is -1");
}

TEST(ReplicaSpecTest, Modes) {
  ExpectFault("parameter_averaging {}", "replicas.parameter_averaging.every_iterations",
              "is 0 or left out; it must be at least 1");
  ExpectFault("parameter_averaging { every_iterations: -3 }", "replicas.parameter_averaging.every_iterations",
              "is -3");
  ExpectFault("all_reduce { bucket_bytes: -1 first_bucket_bytes: 1 }", "replicas.all_reduce.bucket_bytes",
              "is -1");
}

TEST(ReplicaSpecTest, Compression) {
  for (const char* rank : {"-1", "65"}) {
    ExpectFault(absl::StrCat("count: 2 all_reduce { compression { rank: ", rank, " } }"),
                "replicas.all_reduce.compression.rank", "from 1 to 64");
  }
  v1::JobSpec job = Job("count: 2 all_reduce { compression {} }");
  EXPECT_THAT(Faults(job), IsEmpty());
  job.mutable_training()->set_precision(v1::PRECISION_FLOAT16);
  const std::vector<FieldViolation> faults = Faults(job);
  ASSERT_EQ(faults.size(), 1);
  EXPECT_EQ(faults[0].field, "replicas.all_reduce.compression");
  EXPECT_THAT(faults[0].description, HasSubstr("use bfloat16 or float32"));
}

TEST(ReplicaSpecTest, PartsOfASmallShare) {
  v1::JobSpec spec = Job("worker_load: [3, 1]");
  spec.mutable_training()->set_accumulation_steps(3);
  const std::vector<FieldViolation> faults = Faults(spec);
  ASSERT_EQ(faults.size(), 1);
  EXPECT_EQ(faults[0].field, "training.accumulation_steps");
  EXPECT_THAT(faults[0].description, HasSubstr("from 1 to 2"));
}

}  // namespace
}  // namespace tandem
