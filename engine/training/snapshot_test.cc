#include "engine/training/snapshot.h"

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

Snapshot TwoReplicas() {
  Snapshot snapshot(2);
  snapshot[0].parameters.emplace_back("a.weight", Tensor::Of<double>(Shape({2}), {1, 2}));
  snapshot[0].parameters.emplace_back("b.weight", Tensor::Of<double>(Shape({1}), {3}));
  snapshot[0].optimizer_state.emplace_back("ema/a.weight", Tensor::Of<double>(Shape({2}), {10, 20}));
  snapshot[0].optimizer_state.emplace_back("momentum/a.weight", Tensor::Of<double>(Shape({2}), {5, 6}));
  snapshot[0].statistics.emplace_back("n.running_mean", Tensor::Of<float>(Shape({1}), {1}));
  snapshot[1].statistics.emplace_back("n.running_mean", Tensor::Of<float>(Shape({1}), {4}));
  return snapshot;
}

TEST(SnapshotTest, EachReplicaGetsItsPartOfACheckpoint) {
  std::map<std::string, Tensor> checkpoint;
  for (auto& [name, tensor] : CheckpointTensors(TwoReplicas())) checkpoint.emplace(name, std::move(tensor));
  EXPECT_EQ(checkpoint.size(), 6);
  for (const int rank : {0, 1}) {
    const std::map<std::string, const Tensor*> own = TensorsOfReplica(checkpoint, rank);
    ASSERT_EQ(own.size(), 5);
    EXPECT_THAT(own.at("a.weight")->data<double>(), ElementsAre(1, 2));
    EXPECT_THAT(own.at("momentum/a.weight")->data<double>(), ElementsAre(5, 6));
    EXPECT_THAT(own.at("n.running_mean")->data<float>(), ElementsAre(rank == 0 ? 1 : 4));
  }
  EXPECT_EQ(TensorsOfReplica(checkpoint, 2).size(), 4);
}

TEST(SnapshotTest, AModelHasParametersAndMeanStatistics) {
  const absl::StatusOr<std::vector<NamedTensor>> model =
      ModelTensors(TwoReplicas(), /*averaged=*/false, {0.5, 0.5});
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->size(), 3);
  EXPECT_EQ((*model)[0].first, "a.weight");
  EXPECT_THAT((*model)[0].second.data<float>(), ElementsAre(1, 2));
  EXPECT_EQ((*model)[2].first, "n.running_mean");
  EXPECT_THAT((*model)[2].second.data<float>(), ElementsAre(2.5f));
}

TEST(SnapshotTest, AveragesTakeTheirParametersPlaces) {
  const absl::StatusOr<std::vector<NamedTensor>> model =
      ModelTensors(TwoReplicas(), /*averaged=*/true, {0.5, 0.5});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)[0].first, "a.weight");
  EXPECT_THAT((*model)[0].second.data<float>(), ElementsAre(10, 20));
  // Without an average, the value itself.
  EXPECT_THAT((*model)[1].second.data<float>(), ElementsAre(3));
}

TEST(SnapshotTest, ReplicasThatAreApartAreWholeAndAveraged) {
  Snapshot snapshot = TwoReplicas();
  snapshot[1].parameters.emplace_back("a.weight", Tensor::Of<double>(Shape({2}), {5, 2}));
  snapshot[1].parameters.emplace_back("b.weight", Tensor::Of<double>(Shape({1}), {7}));
  const absl::StatusOr<std::vector<NamedTensor>> model =
      ModelTensors(snapshot, /*averaged=*/false, {0.75, 0.25});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT((*model)[0].second.data<float>(), ElementsAre(2, 2));
  EXPECT_THAT((*model)[1].second.data<float>(), ElementsAre(4));
  EXPECT_THAT((*model)[2].second.data<float>(), ElementsAre(1.75f));

  std::map<std::string, Tensor> checkpoint;
  for (auto& [name, tensor] : CheckpointTensors(snapshot)) checkpoint.emplace(name, std::move(tensor));
  EXPECT_EQ(TensorsOfReplica(checkpoint, 1).at("b.weight")->data<double>()[0], 7);
  EXPECT_EQ(TensorsOfReplica(checkpoint, 1).at("momentum/a.weight")->data<double>()[0], 5);
  // For any number of other replicas.
  const std::map<std::string, Tensor> mean = AverageCheckpoint(std::move(checkpoint), {0.5, 0.5});
  for (const int rank : {0, 5}) {
    const std::map<std::string, const Tensor*> own = TensorsOfReplica(mean, rank);
    ASSERT_EQ(own.size(), 5);
    EXPECT_THAT(own.at("a.weight")->data<double>(), ElementsAre(3, 2));
    EXPECT_THAT(own.at("momentum/a.weight")->data<double>(), ElementsAre(5, 6));
    EXPECT_THAT(own.at("n.running_mean")->data<float>(), ElementsAre(2.5f));
  }
}

// In float32, (0.1 + 0.1 + 0.1) / 3 is not 0.1. A batch_norm with sync has equal statistics in all replicas.
TEST(SnapshotTest, AVariableThatIsEqualInAllReplicasKeepsItsBits) {
  std::map<std::string, Tensor> checkpoint;
  for (const char* rank : {"0", "1", "2"}) {
    checkpoint.emplace(absl::StrCat("replica/", rank, "/a.weight"),
                       Tensor::Of<float>(Shape({2}), {0.1f, 1.1f}));
  }
  for (const std::vector<double>& shares :
       {std::vector<double>(3, 1.0 / 3), std::vector<double>{0.5, 0.2, 0.3}}) {
    const std::map<std::string, Tensor> means = MeansOf({"a.weight"}, checkpoint, shares);
    ASSERT_EQ(means.size(), 1);
    EXPECT_THAT(means.at("shared/a.weight").data<float>(), ElementsAre(0.1f, 1.1f));
  }
}

TEST(SnapshotTest, ParametersMustBeFinite) {
  Snapshot snapshot = TwoReplicas();
  EXPECT_TRUE(CheckFinite(snapshot[0], 7).ok());
  snapshot[0].parameters[1].second.data<double>()[0] = std::nan("");
  const absl::Status status = CheckFinite(snapshot[0], 7);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("\"b.weight\" is not finite after step 7"));
}

}  // namespace
}  // namespace tandem
