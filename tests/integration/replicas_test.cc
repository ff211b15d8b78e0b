// Replicas on devices as a job asks for them, through the real programs.

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/api.h"
#include "tests/integration/daemon_fixture.h"
#include "tests/integration/job_specs.h"

namespace tandem::testing {
namespace {

using ::testing::ElementsAre;

class ReplicasTest : public DaemonFixture {
 protected:
  v1::Job Train(const v1::JobSpec& spec) {
    Api api(daemon_);
    return api.WaitFor(api.Create(spec).name(), v1::JOB_STATE_SUCCEEDED);
  }
};

TEST_F(ReplicasTest, ThreeOnTwoDevicesAreAveragedNowAndThen) {
  v1::JobSpec spec = SmallJob({.replicas = 3});
  spec.mutable_replicas()->add_devices("cpu:1");
  spec.mutable_replicas()->add_devices("cpu:0");
  spec.mutable_replicas()->mutable_parameter_averaging()->set_every_iterations(3);
  const v1::Job job = Train(spec);
  EXPECT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED) << job.message();
  EXPECT_THAT(job.devices(), ElementsAre("devices/cpu:1", "devices/cpu:0", "devices/cpu:1"));
  // 8 steps in each of two epochs.
  EXPECT_EQ(job.last_epoch().averagings(), 6);
  EXPECT_EQ(job.last_epoch().replicas_size(), 3);
}

TEST_F(ReplicasTest, AllDevicesAndOneOfNoLoad) {
  v1::JobSpec spec = SmallJob({});
  spec.mutable_replicas()->clear_count();
  spec.mutable_replicas()->add_devices("all");
  v1::Job job = Train(spec);
  EXPECT_THAT(job.devices(), ElementsAre("devices/cpu:0", "devices/cpu:1"));
  EXPECT_EQ(job.spec().replicas().device_kind(), v1::DEVICE_KIND_CPU);

  spec.mutable_replicas()->add_worker_load(0);
  spec.mutable_replicas()->add_worker_load(1);
  job = Train(spec);
  EXPECT_THAT(job.devices(), ElementsAre("devices/cpu:1"));
  EXPECT_EQ(job.last_epoch().replicas_size(), 1);
}

}  // namespace
}  // namespace tandem::testing
