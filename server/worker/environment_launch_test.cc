#include "server/worker/environment_launch.h"

#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using internal::v1::WorkerLaunch;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kJob[] = R"(
  dataset { synthetic { shape: [4] classes: 2 train_samples: 16 } }
  model { input { shape: [4] } layers { dense { units: 2 } } }
  training {
    loss { softmax_cross_entropy {} }
    optimizer { sgd { learning_rate: 0.1 } }
    global_batch_size: 8
    epochs: 1
  }
)";

class EnvironmentLaunchTest : public testing::Test {
 protected:
  // Launches the job plus an addition in this environment.
  absl::StatusOr<WorkerLaunch> Launch(const std::map<std::string, std::string>& environment,
                                      const std::string& more = "", const std::string& name = "job.textproto",
                                      const std::string& job = kJob) {
    EnvironmentLaunchOptions options;
    options.job_file = testing::TempDir() + "/" + name;
    std::ofstream(options.job_file) << job << more;
    options.output_folder = "/tmp/output";
    options.threads = 1;
    return LaunchFromEnvironment(options, [&](const char* variable) -> std::optional<std::string> {
      const auto found = environment.find(variable);
      if (found == environment.end()) return std::nullopt;
      return found->second;
    });
  }

  std::string Refused(const std::map<std::string, std::string>& environment, const std::string& more = "") {
    const absl::StatusOr<WorkerLaunch> launch = Launch(environment, more);
    EXPECT_EQ(launch.status().code(), absl::StatusCode::kInvalidArgument) << launch.status();
    return std::string(launch.status().message());
  }
};

std::vector<std::string> DevicesOf(const WorkerLaunch& launch) {
  std::vector<std::string> names;
  for (const v1::Device& device : launch.devices()) names.push_back(device.name());
  return names;
}

TEST_F(EnvironmentLaunchTest, NoVariablesIsOneWorker) {
  const absl::StatusOr<WorkerLaunch> launch = Launch({});
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_FALSE(launch->has_group());
  EXPECT_THAT(DevicesOf(*launch), ElementsAre("devices/cpu:0"));
  EXPECT_EQ(launch->devices(0).threads(), 1);
  EXPECT_EQ(launch->job_folder(), "/tmp/output");
}

TEST_F(EnvironmentLaunchTest, BesideTorchrunsOwnStore) {
  const absl::StatusOr<WorkerLaunch> launch = Launch({{"RANK", "0"},
                                                      {"WORLD_SIZE", "2"},
                                                      {"MASTER_ADDR", "node0"},
                                                      {"MASTER_PORT", "29500"},
                                                      {"TORCHELASTIC_USE_AGENT_STORE", "True"}},
                                                     "replicas { count: 2 }");
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->group().address(), "node0:29501");
}

TEST_F(EnvironmentLaunchTest, TorchrunsVariables) {
  const absl::StatusOr<WorkerLaunch> launch =
      Launch({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}},
             "replicas { count: 4 }");
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->group().worker(), 1);
  EXPECT_EQ(launch->group().workers(), 2);
  EXPECT_EQ(launch->group().address(), "node0:29500");
  EXPECT_EQ(launch->spec().replicas().workers(), 2);
  EXPECT_EQ(launch->devices_size(), 4);
}

TEST_F(EnvironmentLaunchTest, SlurmsVariablesAndGpus) {
  const absl::StatusOr<WorkerLaunch> launch = Launch({{"SLURM_PROCID", "3"},
                                                      {"SLURM_NTASKS", "4"},
                                                      {"SLURM_LOCALID", "1"},
                                                      {"MASTER_ADDR", "fd00::1"},
                                                      {"MASTER_PORT", "1"}},
                                                     "replicas { device_kind: DEVICE_KIND_GPU }");
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->group().worker(), 3);
  EXPECT_EQ(launch->group().address(), "[fd00::1]:1");
  ASSERT_EQ(launch->devices_size(), 4);
  EXPECT_EQ(launch->devices(3).name(), "devices/gpu:1");
}

TEST_F(EnvironmentLaunchTest, GpusThatAreATasksOwnOrTheHosts) {
  struct Case {
    const char* visible;  // Null if all of the host's GPUs are visible.
    int replicas_each;
    std::vector<std::string> own;  // The GPUs of the second task on its host.
  };
  for (const Case& c : {Case{nullptr, 1, {"devices/gpu:1"}}, Case{"0,1", 1, {"devices/gpu:1"}},
                        Case{"0", 1, {"devices/gpu:0"}}, Case{"GPU-8a5b", 1, {"devices/gpu:0"}},
                        Case{"2,3", 2, {"devices/gpu:0", "devices/gpu:1"}},
                        Case{"0,1,2,3", 2, {"devices/gpu:2", "devices/gpu:3"}}}) {
    SCOPED_TRACE(c.visible == nullptr ? "all" : c.visible);
    std::map<std::string, std::string> environment = {{"SLURM_PROCID", "1"},
                                                      {"SLURM_NTASKS", "2"},
                                                      {"SLURM_LOCALID", "1"},
                                                      {"MASTER_ADDR", "node0"},
                                                      {"MASTER_PORT", "1"}};
    if (c.visible != nullptr) environment["CUDA_VISIBLE_DEVICES"] = c.visible;
    const absl::StatusOr<WorkerLaunch> launch =
        Launch(environment,
               absl::StrCat("replicas { device_kind: DEVICE_KIND_GPU count: ", 2 * c.replicas_each, " }"));
    ASSERT_TRUE(launch.ok()) << launch.status();
    const std::vector<std::string> names = DevicesOf(*launch);
    EXPECT_EQ(std::vector<std::string>(names.begin() + c.replicas_each, names.end()), c.own);
  }
}

TEST_F(EnvironmentLaunchTest, JobsInJson) {
  const absl::StatusOr<WorkerLaunch> launch =
      Launch({}, "", "job.json",
             R"({"dataset": {"synthetic": {"shape": [4], "classes": 2, "train_samples": 16}},
                 "model": {"input": {"shape": [4]}, "layers": [{"dense": {"units": 2}}]},
                 "training": {"loss": {"softmax_cross_entropy": {}}, "epochs": 1, "global_batch_size": 8,
                              "optimizer": {"sgd": {"learning_rate": 0.1}}}})");
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->spec().training().global_batch_size(), 8);
}

// `tandem validate -o json` prints the job with all defaults.
TEST_F(EnvironmentLaunchTest, AJobAsTheCommandLinePrintsIt) {
  const char* const printed =
      R"({"spec": {"dataset": {"synthetic": {"shape": [4], "classes": 2, "train_samples": 16}},
                   "model": {"input": {"shape": [4]}, "layers": [{"dense": {"units": 2}}]},
                   "training": {"loss": {"softmax_cross_entropy": {}}, "epochs": 1, "global_batch_size": 8,
                                "optimizer": {"sgd": {"learning_rate": 0.1}}},
                   "replicas": {"count": 1, "workers": 1}}, "planned_memory_bytes": "12"})";
  const std::map<std::string, std::string> two = {
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "1"}};
  for (const char* name : {"job.json", "job"}) {
    const absl::StatusOr<WorkerLaunch> launch = Launch(two, "", name, printed);
    ASSERT_TRUE(launch.ok()) << launch.status();
    EXPECT_EQ(launch->spec().training().global_batch_size(), 8);
    EXPECT_EQ(launch->group().workers(), 2);
    EXPECT_EQ(launch->spec().replicas().count(), 2);
  }
}

TEST_F(EnvironmentLaunchTest, FilesThatAreNoJobs) {
  const auto refused = [&](const char* name, const char* content) {
    return std::string(Launch({}, "", name, content).status().message());
  };
  EXPECT_THAT(refused("job.yaml", "name: lenet\n"), HasSubstr("tandem validate FILE -o json > job.json"));
  EXPECT_THAT(refused("job.txt", "name: \"lenet\"\nreplicas:\n  count: 2\n"), HasSubstr("job.txt:3:3: "));
  EXPECT_THAT(refused("job.txt", "name: \"lenet\"\nreplicas:\n  count: 2\n"),
              HasSubstr("tandem validate FILE -o json > job.json"));
  EXPECT_THAT(refused("job.txt", "{\"nam\": 1}"), HasSubstr("as a job in JSON: "));
}

TEST_F(EnvironmentLaunchTest, WhatIsWrong) {
  EXPECT_THAT(Refused({{"WORLD_SIZE", "2"}, {"RANK", "2"}}),
              HasSubstr("RANK is '2'; it must be from 0 to 1"));
  EXPECT_THAT(Refused({{"WORLD_SIZE", "two"}}), HasSubstr("WORLD_SIZE is 'two'"));
  EXPECT_THAT(Refused({{"WORLD_SIZE", "0"}}), HasSubstr("WORLD_SIZE is '0'"));
  EXPECT_THAT(Refused({{"WORLD_SIZE", "2"}, {"RANK", "0"}, {"MASTER_PORT", "1"}}),
              HasSubstr("no MASTER_ADDR"));
  EXPECT_THAT(Refused({{"WORLD_SIZE", "2"}, {"RANK", "0"}, {"MASTER_ADDR", "a"}}),
              HasSubstr("no MASTER_PORT"));
  EXPECT_THAT(Refused({{"WORLD_SIZE", "2"}, {"RANK", "0"}}, "replicas { count: 3 }"),
              HasSubstr("is 2 for 3 replicas"));
  EXPECT_THAT(Refused({{"WORLD_SIZE", "2"}, {"RANK", "0"}}, "replicas { count: 3 workers: 3 }"),
              HasSubstr("leave it out"));
  // Without ranks, several workers would all be the first.
  EXPECT_THAT(Refused({{"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}}),
              HasSubstr("set RANK to a different number from 0 to 1"));
  EXPECT_THAT(Refused({}, "nonsense"), HasSubstr("as a job in text format"));
}

}  // namespace
}  // namespace tandem
