#include "tests/rooms/room_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::UnorderedElementsAre;

TEST(RoomTableTest, WhatStandsBelowUsesWhatStandsAbove) {
  EXPECT_EQ(WhyWrong({"//engine/graph:graph", "//engine/tensor:tensor"}), std::nullopt);
  EXPECT_EQ(WhyWrong({"//engine/data/formats:idx", "//engine/base:status_macros"}), std::nullopt);
  EXPECT_EQ(WhyWrong({"//server/rpc:rpc", "//server/jobs:jobs"}), std::nullopt);
  EXPECT_EQ(WhyWrong({"//server/admission:admission", "//engine/layers:layers"}), std::nullopt);
  EXPECT_EQ(WhyWrong({"//server/worker:worker", "//engine/backends/cpu:cpu"}), std::nullopt);
  EXPECT_EQ(WhyWrong({"//client/cli:tandem", "//client/lib:connection"}), std::nullopt);
  EXPECT_EQ(WhyWrong({"//tests/bench:train_bench", "//engine/training:trainer"}), std::nullopt);
  EXPECT_EQ(WhyWrong({"//engine/graph:graph", "//engine/graph:op.h"}), std::nullopt);
  EXPECT_EQ(WhyWrong({"//engine/graph:op.h", "//:engine_users"}), std::nullopt);
}

TEST(RoomTableTest, TheReverseIsWrong) {
  EXPECT_THAT(WhyWrong({"//engine/tensor:tensor", "//engine/graph:graph"}),
              Optional(HasSubstr("engine/graph stands below engine/tensor")));
  EXPECT_THAT(WhyWrong({"//engine/backend:backend", "//engine/backends/cpu:cpu"}),
              Optional(HasSubstr("stands below")));
  EXPECT_THAT(WhyWrong({"//server/store:store", "//server/events:hub"}), Optional(HasSubstr("stands below")));
  EXPECT_THAT(WhyWrong({"//client/lib:lib", "//client/cli:cli"}), Optional(HasSubstr("stands below")));
}

TEST(RoomTableTest, RoomsOfOneRowDoNotKnowEachOther) {
  EXPECT_THAT(WhyWrong({"//engine/layers:layers", "//engine/metrics:metrics"}),
              Optional(HasSubstr("one row")));
  EXPECT_THAT(WhyWrong({"//server/admission:a", "//server/scheduler:s"}), Optional(HasSubstr("one row")));
}

TEST(RoomTableTest, HousesAreHeldApart) {
  EXPECT_NE(WhyWrong({"//client/lib:lib", "//engine/tensor:tensor"}), std::nullopt);
  EXPECT_NE(WhyWrong({"//client/lib:lib", "//engine/base/testing:from_text"}), std::nullopt);
  EXPECT_NE(WhyWrong({"//server/rpc:rpc", "//client/lib:lib"}), std::nullopt);
  EXPECT_NE(WhyWrong({"//engine/training:trainer", "//server/store:store"}), std::nullopt);
  EXPECT_NE(WhyWrong({"//server/daemon:tandemd", "//engine/backends/reference:reference"}), std::nullopt);
  EXPECT_NE(WhyWrong({"//engine/base:base", "//tests/integration:harness"}), std::nullopt);
  EXPECT_NE(WhyWrong({"//proto:messages", "//engine/base:base"}), std::nullopt);
}

TEST(RoomTableTest, ClientsAndReadersOfJobFilesUseTheBase) {
  EXPECT_EQ(WhyWrong({"//client/lib:lib", "//engine/base:sha256"}), std::nullopt);
  EXPECT_EQ(WhyWrong({"//proto/job_file:job_text", "//engine/base:spelling"}), std::nullopt);
  EXPECT_NE(WhyWrong({"//proto/fields:field_place", "//engine/base:spelling"}), std::nullopt);
  EXPECT_NE(WhyWrong({"//proto/job_file:job_text", "//engine/tensor:tensor"}), std::nullopt);
}

TEST(RoomTableTest, MessagesEnterOnlyWhereTheyMay) {
  EXPECT_EQ(WhyWrong({"//engine/layers:layers", "//proto:messages"}), std::nullopt);
  EXPECT_EQ(WhyWrong({"//client/lib:lib", "//proto:services"}), std::nullopt);
  EXPECT_NE(WhyWrong({"//engine/graph:graph", "//proto:messages"}), std::nullopt);
  EXPECT_NE(WhyWrong({"//engine/backends/cpu:cpu", "//proto:messages"}), std::nullopt);
  EXPECT_NE(WhyWrong({"//engine/training:trainer", "//proto:services"}), std::nullopt);
  EXPECT_NE(WhyWrong({"//client/lib:lib", "//proto:internal"}), std::nullopt);
  EXPECT_NE(WhyWrong({"//engine/data:data", "//third_party/grpc:grpc++"}), std::nullopt);
}

TEST(RoomTableTest, ARoomThatNoOneEnteredIsWrong) {
  EXPECT_THAT(WhyWrong({"//engine/magic:magic", "//engine/base:base"}),
              Optional(HasSubstr("no room of the table")));
  EXPECT_THAT(WhyWrong({"//engine/data:data", "//engine/magic:magic"}),
              Optional(HasSubstr("no room of the table")));
}

TEST(RoomTableTest, FindsWrongEdgesInAQuerysGraph) {
  const std::vector<Edge> edges = ParseQueryGraph(R"(digraph mygraph {
  node [shape=box];
"//server/daemon:tandemd"
"//server/daemon:tandemd" -> "//server/rpc:rpc"
  "//server/rpc:rpc" -> "//engine/graph:graph"
  "//engine/graph:graph" -> "//engine/backends/cpu:cpu"
  "//engine/graph:graph" -> "//engine/backends/cpu:cpu"
  "//engine/backends/cpu:cpu" -> "//engine/tensor:tensor"
}
)");
  EXPECT_EQ(edges.size(), 5);
  EXPECT_THAT(WrongEdges(edges), ElementsAre("//engine/graph:graph -> //engine/backends/cpu:cpu: "
                                             "engine/backends/cpu stands below engine/graph"));
  EXPECT_THAT(
      Reachable(edges, "//engine/graph:graph"),
      UnorderedElementsAre("//engine/graph:graph", "//engine/backends/cpu:cpu", "//engine/tensor:tensor"));
  EXPECT_THAT(ParseQueryGraph("no graph"), IsEmpty());
}

}  // namespace
}  // namespace tandem
