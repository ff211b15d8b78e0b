#include "server/clusters/ssh/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

Host HostOf(const std::string& name, int cores, int gpus) {
  Host host;
  host.name = name;
  host.cores = cores;
  host.gpus = gpus;
  return host;
}

HostTask TaskOf(int rank, int cores, std::vector<int> gpus) {
  HostTask task;
  task.job_id = "other";
  task.attempt = 1;
  task.rank = rank;
  task.workers = 2;
  task.cores = cores;
  task.gpus = std::move(gpus);
  return task;
}

TEST(HostTest, TasksHoldCoresAndGpus) {
  Host host = HostOf("a", 8, 4);
  host.tasks = {TaskOf(0, 3, {1, 2}), TaskOf(1, 3, {1, 2})};
  EXPECT_EQ(host.FreeCores(), 2);
  EXPECT_THAT(host.FreeGpus(), ElementsAre(0, 3));
  // A hostile worker may claim any number.
  host.tasks.push_back(TaskOf(0, std::numeric_limits<int>::max(), {}));
  host.tasks.push_back(TaskOf(1, std::numeric_limits<int>::max(), {}));
  EXPECT_EQ(host.FreeCores(), 0);
}

TEST(HostTest, ChoosesTheFullestHostsThatHaveEnough) {
  std::vector<Host> hosts = {HostOf("empty", 8, 4), HostOf("small", 8, 1), HostOf("partly", 8, 4)};
  hosts[2].tasks = {TaskOf(0, 1, {0, 1})};
  EXPECT_THAT(*ChooseHosts(hosts, {.nodes = 1, .gpus_per_node = 2}), ElementsAre(Pair(2, ElementsAre(2, 3))));
  EXPECT_THAT(*ChooseHosts(hosts, {.nodes = 2, .gpus_per_node = 2}),
              ElementsAre(Pair(0, ElementsAre(0, 1)), Pair(2, ElementsAre(2, 3))));
  EXPECT_FALSE(ChooseHosts(hosts, {.nodes = 3, .gpus_per_node = 2}).has_value());
  // Without GPUs, the host with the fewest GPUs.
  EXPECT_THAT(*ChooseHosts(hosts, {.nodes = 1}), ElementsAre(Pair(1, IsEmpty())));
}

TEST(HostTest, ChoosesNoHostWithoutCoresOrAnAnswer) {
  std::vector<Host> hosts = {HostOf("a", 4, 0), HostOf("b", 8, 0)};
  const HostNeed need = {.nodes = 1, .tasks_per_node = 2, .cores_per_task = 3};
  EXPECT_THAT(*ChooseHosts(hosts, need), ElementsAre(Pair(1, IsEmpty())));
  hosts[1].fault = "cannot reach host b";
  EXPECT_FALSE(ChooseHosts(hosts, need).has_value());
  EXPECT_EQ(DescribeShortage(hosts, need),
            "it needs 1 host with 6 cores, and too few are free; cannot reach host b");
  EXPECT_EQ(CountLargeEnough(hosts, need), 1);
  // A host whose size is unknown may be large enough.
  hosts[0].cores = 0;
  EXPECT_EQ(CountLargeEnough(hosts, need), 2);
}

TEST(HostTest, AMachineWithTwoNamesCountsOnce) {
  std::vector<Host> hosts = {HostOf("a", 4, 1), HostOf("b", 4, 1), HostOf("c", 4, 1), HostOf("d", 4, 1)};
  hosts[0].machine = hosts[2].machine = "m";
  hosts[1].machine = "other";
  FindSameMachines(&hosts);
  EXPECT_EQ(hosts[0].same_as, "");
  EXPECT_EQ(hosts[2].same_as, "a");
  // Nothing is known of d's machine.
  EXPECT_EQ(CountLargeEnough(hosts, {.nodes = 1}), 3);
  EXPECT_TRUE(ChooseHosts(hosts, {.nodes = 3}).has_value());
  EXPECT_FALSE(ChooseHosts(hosts, {.nodes = 4}).has_value());
  EXPECT_EQ(DescribeShortage(hosts, {.nodes = 4}),
            "it needs 4 hosts with 1 core each, and too few are free; host c is the same machine as host a; "
            "remove one of the two --ssh-host");
  // After its restart, the second name is another machine.
  hosts[2].machine = "new";
  FindSameMachines(&hosts);
  EXPECT_EQ(hosts[2].same_as, "");
}

TEST(HostTest, DescribesNeeds) {
  EXPECT_EQ(DescribeNeed({.nodes = 2, .tasks_per_node = 1, .cores_per_task = 4, .gpus_per_node = 1}),
            "2 hosts with 4 cores and 1 GPU each");
}

TEST(HostTest, NamesAreNoOptions) {
  for (const char* const name : {"gpu1", "user@gpu1", "10.0.0.2", "ssh://user@gpu1:2222", "[::1]"}) {
    EXPECT_EQ(FaultOfHostName(name), "") << name;
  }
  for (const char* const name : {"", "-oProxyCommand=x", "a b", "a,b", "a;b", "a\nb", "gpü"}) {
    EXPECT_THAT(FaultOfHostName(name), HasSubstr("must be a host for ssh")) << name;
  }
}

}  // namespace
}  // namespace tandem
