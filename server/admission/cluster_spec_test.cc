#include "server/admission/cluster_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/base/field_violations.h"

namespace tandem {
namespace {

using testing::HasSubstr;

class ClusterSpecTest : public testing::Test {
 protected:
  ClusterSpecTest() { slurm_ = spec_.mutable_cluster()->mutable_slurm(); }

  // Expects that a single field is wrong.
  void ExpectWrong(const std::string& field, const std::string& text) {
    v1::JobSpec spec = spec_;
    const std::vector<FieldViolation> violations = GetFieldViolations(FillCluster(rules_, &spec));
    ASSERT_EQ(violations.size(), 1);
    EXPECT_EQ(violations[0].field, field);
    EXPECT_THAT(violations[0].description, HasSubstr(text));
  }

  ClusterRules rules_ = {.has_slurm = true, .allowed_arguments = {"constraint"}};
  v1::JobSpec spec_;
  v1::SlurmCluster* slurm_;
};

TEST_F(ClusterSpecTest, ChangesNothingWithoutACluster) {
  v1::JobSpec spec;
  ASSERT_TRUE(FillCluster(ClusterRules(), &spec).ok());
  EXPECT_EQ(spec.ByteSizeLong(), 0);
}

TEST_F(ClusterSpecTest, OneReplicaOnOneNodeIsTheDefault) {
  ASSERT_TRUE(FillCluster(rules_, &spec_).ok());
  EXPECT_EQ(slurm_->nodes(), 1);
  EXPECT_EQ(slurm_->cpus_per_task(), 1);
  EXPECT_EQ(spec_.replicas().workers(), 1);
  EXPECT_EQ(spec_.replicas().count(), 1);
  EXPECT_EQ(spec_.replicas().device_kind(), v1::DEVICE_KIND_CPU);
}

TEST_F(ClusterSpecTest, SpreadsReplicasOverNodes) {
  spec_.mutable_replicas()->set_count(3);
  ASSERT_TRUE(FillCluster(rules_, &spec_).ok());
  EXPECT_EQ(slurm_->nodes(), 3);
  EXPECT_EQ(spec_.replicas().workers(), 3);
}

TEST_F(ClusterSpecTest, EachNodeGetsAWorkerWithAReplica) {
  slurm_->set_nodes(4);
  ASSERT_TRUE(FillCluster(rules_, &spec_).ok());
  EXPECT_EQ(spec_.replicas().workers(), 4);
  EXPECT_EQ(spec_.replicas().count(), 4);
}

TEST_F(ClusterSpecTest, GpusFollowFromTheReplicas) {
  slurm_->set_nodes(2);
  spec_.mutable_replicas()->set_count(8);
  spec_.mutable_replicas()->set_device_kind(v1::DEVICE_KIND_GPU);
  ASSERT_TRUE(FillCluster(rules_, &spec_).ok());
  EXPECT_EQ(slurm_->gpus_per_node(), 4);
  EXPECT_EQ(slurm_->cpus_per_task(), 4);
  // A job with its defaults is the same again.
  v1::JobSpec again = spec_;
  ASSERT_TRUE(FillCluster(rules_, &again).ok());
  EXPECT_EQ(again.SerializeAsString(), spec_.SerializeAsString());
}

TEST_F(ClusterSpecTest, NamesEachWrongField) {
  slurm_->set_nodes(3);
  spec_.mutable_replicas()->set_workers(4);
  ExpectWrong("cluster.slurm.nodes", "must divide the number of workers, 4");
  spec_.mutable_replicas()->clear_workers();
  slurm_->set_nodes(-1);
  ExpectWrong("cluster.slurm.nodes", "must be from 1 to 1024");
  slurm_->set_nodes(4);
  spec_.mutable_replicas()->set_count(2);
  ExpectWrong("cluster.slurm.nodes",
              "is 4, and the job has 2 replicas; each node needs a replica: set replicas.count to 4 or more");
  slurm_->set_nodes(3);
  spec_.mutable_replicas()->set_count(4);
  ExpectWrong("cluster.slurm.nodes",
              "is 3, and the job has 4 replicas; each node has the same number of replicas: ask for a number "
              "of nodes that divides 4");
  spec_.mutable_replicas()->clear_count();
  slurm_->clear_nodes();
  for (const double seconds : {5.0, 179.0, -1.0, 4e7, std::nan("")}) {
    slurm_->set_time_limit_seconds(seconds);
    ExpectWrong("cluster.slurm.time_limit_seconds", "; must be from 180 (3 minutes) to 31536000 (a year)");
  }
  slurm_->set_time_limit_seconds(120);
  ExpectWrong("cluster.slurm.time_limit_seconds", "is 120; must be");
  slurm_->clear_time_limit_seconds();
  spec_.mutable_replicas()->add_devices("cpu:0");
  ExpectWrong("replicas.devices", "leave it out");
  spec_.mutable_replicas()->clear_devices();
  slurm_->set_nodes(1);
  slurm_->set_gpus_per_node(1);
  spec_.mutable_replicas()->set_count(2);
  ExpectWrong("cluster.slurm.gpus_per_node", "has 2 replicas");
}

// CheckReplicas then refuses replicas.workers, the field that the user set.
TEST_F(ClusterSpecTest, BlamesNoFieldThatTheUserDidNotSet) {
  spec_.mutable_replicas()->set_count(2);
  spec_.mutable_replicas()->set_workers(4);
  const absl::Status status = FillCluster(rules_, &spec_);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(spec_.replicas().workers(), 4);
  EXPECT_EQ(spec_.replicas().count(), 2);
}

TEST_F(ClusterSpecTest, AllowsTheAdministratorsArgumentsAlone) {
  slurm_->add_extra_arguments("--constraint=fast");
  v1::JobSpec spec = spec_;
  EXPECT_TRUE(FillCluster(rules_, &spec).ok());
  slurm_->add_extra_arguments("--uid=0");
  ExpectWrong("cluster.slurm.extra_arguments[1]", "allows --constraint");
  // 0x1e and 0x1f separate violations.
  slurm_->mutable_extra_arguments(1)->assign("--uid\x1ename\x1fis wrong");
  ExpectWrong("cluster.slurm.extra_arguments[1]", "is \"--uid\\x1ename\\x1fis wrong\", and this");
  slurm_->mutable_extra_arguments(1)->assign("constraint=fast");
  ExpectWrong("cluster.slurm.extra_arguments[1]", "allows --constraint");
}

TEST_F(ClusterSpecTest, ADaemonWithoutAClusterRefuses) {
  rules_.has_slurm = false;
  ExpectWrong("cluster.slurm", "has no cluster");
}

TEST_F(ClusterSpecTest, EachClusterHasItsKind) {
  rules_ = {.ssh_hosts = 2};
  ExpectWrong("cluster.slurm", "use cluster.ssh");
  rules_ = {.has_slurm = true};
  spec_.mutable_cluster()->mutable_ssh();
  ExpectWrong("cluster.ssh", "use cluster.slurm");
  rules_ = {};
  ExpectWrong("cluster.ssh", "has no cluster; start it with --ssh-host");
  spec_.mutable_cluster()->Clear();
  ExpectWrong("cluster", "must name a kind of cluster: slurm or ssh");
  EXPECT_EQ(ClusterField(spec_.cluster()), "cluster.slurm");
  spec_.mutable_cluster()->mutable_ssh();
  EXPECT_EQ(ClusterField(spec_.cluster()), "cluster.ssh");
}

class SshSpecTest : public ClusterSpecTest {
 protected:
  SshSpecTest() {
    rules_ = {.ssh_hosts = 4};
    ssh_ = spec_.mutable_cluster()->mutable_ssh();
  }

  // Returns the default number of hosts for a number of replicas.
  int NodesFor(int replicas) {
    v1::JobSpec spec = spec_;
    spec.mutable_replicas()->set_count(replicas);
    EXPECT_TRUE(FillCluster(rules_, &spec).ok());
    EXPECT_EQ(spec.replicas().workers(), spec.cluster().ssh().nodes());
    return spec.cluster().ssh().nodes();
  }

  v1::SshCluster* ssh_;
};

TEST_F(SshSpecTest, SpreadsReplicasOverTheHostsThatExist) {
  EXPECT_EQ(NodesFor(1), 1);
  EXPECT_EQ(NodesFor(3), 3);
  EXPECT_EQ(NodesFor(5), 1);
  EXPECT_EQ(NodesFor(6), 3);
  EXPECT_EQ(NodesFor(32), 4);
}

TEST_F(SshSpecTest, FillsInWorkersAndCores) {
  ssh_->set_nodes(2);
  spec_.mutable_replicas()->set_count(8);
  ASSERT_TRUE(FillCluster(rules_, &spec_).ok());
  EXPECT_EQ(spec_.replicas().workers(), 2);
  EXPECT_EQ(spec_.replicas().device_kind(), v1::DEVICE_KIND_CPU);
  EXPECT_EQ(ssh_->cpus_per_task(), 4);
  v1::JobSpec again = spec_;
  ASSERT_TRUE(FillCluster(rules_, &again).ok());
  EXPECT_EQ(again.SerializeAsString(), spec_.SerializeAsString());
}

TEST_F(SshSpecTest, WorkersOfOneHost) {
  spec_.mutable_replicas()->set_workers(6);
  ASSERT_TRUE(FillCluster(rules_, &spec_).ok());
  EXPECT_EQ(ssh_->nodes(), 3);
  EXPECT_EQ(spec_.replicas().count(), 6);
}

TEST_F(SshSpecTest, RefusesWrongNumbers) {
  ssh_->set_nodes(-1);
  ExpectWrong("cluster.ssh.nodes", "must be from 1 to 1024");
  ssh_->set_nodes(2);
  spec_.mutable_replicas()->set_count(3);
  ExpectWrong("cluster.ssh.nodes", "each node has the same number of replicas");
  spec_.mutable_replicas()->set_count(4);
  ssh_->set_cpus_per_task(2000);
  ExpectWrong("cluster.ssh.cpus_per_task", "must be from 1 to 1024");
  ssh_->set_cpus_per_task(0);
  spec_.mutable_replicas()->set_replicas_per_device(2);
  ExpectWrong("replicas.replicas_per_device", "on a cluster each replica has its own device");
}

}  // namespace
}  // namespace tandem
