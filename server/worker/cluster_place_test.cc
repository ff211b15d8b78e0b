#include "server/worker/cluster_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace tandem {
namespace {

using testing::HasSubstr;

FindVariable Variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
}

internal::v1::WorkerLaunch LaunchOf(int workers, int replicas, v1::DeviceKind kind) {
  internal::v1::WorkerLaunch launch;
  for (int i = 0; i < replicas; ++i) launch.add_devices()->set_kind(kind);
  if (workers > 1) launch.mutable_group()->set_workers(workers);
  return launch;
}

TEST(ClusterPlaceTest, TakesItsNumberAndTheGpusOfItsNode) {
  internal::v1::WorkerLaunch launch = LaunchOf(4, 8, v1::DEVICE_KIND_GPU);
  ASSERT_TRUE(
      TakePlaceInCluster(Variables({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "3"}, {"SLURM_LOCALID", "1"}}),
                         "10.0.0.2", &launch)
          .ok());
  EXPECT_EQ(launch.group().worker(), 3);
  EXPECT_EQ(launch.group().host(), "10.0.0.2");
  EXPECT_EQ(launch.devices(6).name(), "devices/gpu:2");
  EXPECT_EQ(launch.devices(7).name(), "devices/gpu:3");
}

TEST(ClusterPlaceTest, AWorkerAloneIsInNoGroup) {
  internal::v1::WorkerLaunch launch = LaunchOf(1, 2, v1::DEVICE_KIND_CPU);
  ASSERT_TRUE(
      TakePlaceInCluster(Variables({{"SLURM_NTASKS", "1"}, {"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}}),
                         "10.0.0.2", &launch)
          .ok());
  EXPECT_FALSE(launch.has_group());
}

TEST(ClusterPlaceTest, RefusesAnotherNumberOfWorkersAndMissingVariables) {
  internal::v1::WorkerLaunch launch = LaunchOf(2, 2, v1::DEVICE_KIND_CPU);
  const absl::Status more = TakePlaceInCluster(
      Variables({{"SLURM_NTASKS", "3"}, {"SLURM_PROCID", "2"}, {"SLURM_LOCALID", "0"}}), "10.0.0.2", &launch);
  EXPECT_EQ(more.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(more.message()), HasSubstr("the job has 2 workers"));
  const absl::Status none = TakePlaceInCluster(Variables({{"SLURM_NTASKS", "2"}}), "10.0.0.2", &launch);
  EXPECT_THAT(std::string(none.message()), HasSubstr("SLURM_PROCID is not set"));
}

TEST(ClusterPlaceTest, OnHostsBySshTheScriptTellsThePlace) {
  internal::v1::WorkerLaunch launch = LaunchOf(2, 4, v1::DEVICE_KIND_GPU);
  launch.mutable_cluster()->mutable_ssh();
  // The host may itself be in a step of Slurm.
  const auto variables = [](const std::string& rank) {
    return Variables({{"WORLD_SIZE", "2"}, {"RANK", rank}, {"LOCAL_RANK", "0"}, {"SLURM_PROCID", "7"}});
  };
  ASSERT_TRUE(TakePlaceInCluster(variables("1"), "10.0.0.2", &launch).ok());
  EXPECT_EQ(launch.group().worker(), 1);
  EXPECT_EQ(launch.devices(2).name(), "devices/gpu:0");
  EXPECT_EQ(launch.devices(3).name(), "devices/gpu:1");
  const absl::Status wrong = TakePlaceInCluster(variables("x"), "10.0.0.2", &launch);
  EXPECT_THAT(std::string(wrong.message()), HasSubstr("RANK is \"x\"; the script of a task must start"));
}

TEST(ClusterPlaceTest, TellsTheTimeLimitFromAPreemption) {
  v1::Cluster slurm;
  slurm.mutable_slurm();
  EXPECT_EQ(EndOfSignal(slurm, SIGUSR1).reason, v1::STATE_REASON_CLUSTER_TIME_LIMIT);
  EXPECT_EQ(EndOfSignal(slurm, SIGUSR1).message, "Slurm ended the attempt at its time limit.");
  EXPECT_EQ(EndOfSignal(slurm, SIGTERM).reason, v1::STATE_REASON_CLUSTER_PREEMPTED);
  EXPECT_THAT(EndOfSignal(slurm, SIGTERM).message, HasSubstr("another job needed the nodes"));
  v1::Cluster ssh;
  ssh.mutable_ssh();
  EXPECT_THAT(EndOfSignal(ssh, SIGTERM).message, HasSubstr("another of its workers failed, or a person"));
}

TEST(ClusterPlaceTest, FindsTheAddressOnTheRoute) {
  EXPECT_EQ(AddressTowards("ipv4:127.0.0.1:7448").value(), "127.0.0.1");
  EXPECT_EQ(AddressTowards("unix:/tmp/socket").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(AddressTowards("ipv4:login:7448").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(AddressTowards("ipv4:127.0.0.1").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tandem
