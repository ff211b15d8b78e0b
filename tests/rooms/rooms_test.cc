// Holds the order of the rooms in two ways. Bazel's own graph of the programs (a genquery) sees every library
// that is shipped, new ones by themselves. The #include lines of the source tree also see tests and what no
// program uses yet.
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/rooms/room_table.h"
#include "tests/rooms/source_tree.h"

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kThisFile[] = "tests/rooms/rooms_test.cc";

std::vector<Edge> ProgramEdges() {
  std::ifstream file("tests/rooms/program_edges");
  std::ostringstream text;
  text << file.rdbuf();
  return ParseQueryGraph(text.str());
}

std::filesystem::path Root() {
  const absl::StatusOr<std::filesystem::path> root = SourceRoot(kThisFile);
  EXPECT_TRUE(root.ok()) << root.status();
  return root.ok() ? *root : std::filesystem::path();
}

TEST(RoomsTest, ProgramsDependInTheHousesOrder) {
  const std::vector<Edge> edges = ProgramEdges();
  ASSERT_GT(edges.size(), 100) << "the query gave no graph";
  const std::vector<std::string> wrong = WrongEdges(edges);
  EXPECT_THAT(wrong, IsEmpty()) << absl::StrJoin(wrong, "\n");
}

TEST(RoomsTest, DaemonReachesNoBackend) {
  const std::vector<std::string> reached = Reachable(ProgramEdges(), "//server/daemon:tandemd");
  ASSERT_GT(reached.size(), 20);
  for (const std::string& label : reached) {
    EXPECT_FALSE(absl::StartsWith(label, "//engine/backends/")) << "tandemd reaches " << label;
    EXPECT_FALSE(absl::StartsWith(label, "//third_party/cuda")) << "tandemd reaches " << label;
  }
}

TEST(RoomsTest, WorkerHasTheCpuBackend) {
  EXPECT_THAT(Reachable(ProgramEdges(), "//server/worker:tandem-worker"),
              Contains(::testing::StartsWith("//engine/backends/cpu:")));
}

TEST(RoomsTest, ClientSeesTheApiAlone) {
  const std::vector<std::string> reached = Reachable(ProgramEdges(), "//client/cli:tandem");
  ASSERT_GT(reached.size(), 10);
  for (const std::string& label : reached) {
    const absl::string_view package = PackageOf(label);
    EXPECT_TRUE(package.empty() || !absl::StartsWith(label, "//") || absl::StartsWith(package, "client/") ||
                package == "proto" || absl::StartsWith(package, "third_party"))
        << "the command reaches " << label;
    EXPECT_NE(label, "//proto:internal");
  }
}

TEST(RoomsTest, SourcesIncludeInTheHousesOrder) {
  for (const absl::string_view house : {"engine", "server", "client"}) {
    const std::vector<Edge> edges = IncludesBelow(Root(), house);
    EXPECT_THAT(edges, Not(IsEmpty())) << house;
    const std::vector<std::string> wrong = WrongEdges(edges);
    EXPECT_THAT(wrong, IsEmpty()) << absl::StrJoin(wrong, "\n");
  }
}

TEST(RoomsTest, EveryPackageIsInTheTable) {
  for (const absl::string_view house : {"engine", "server", "client"}) {
    const std::vector<std::string> packages = PackagesBelow(Root(), house);
    EXPECT_THAT(packages, Not(IsEmpty())) << house;
    for (const std::string& package : packages) {
      EXPECT_NE(FindRoom(package), nullptr) << package << " is in no room of tests/rooms/room_table.cc";
    }
  }
}

TEST(RoomsTest, IncludesStandForTheirTargets) {
  EXPECT_EQ(LabelOfInclude("engine/graph/op.h"), "//engine/graph:op.h");
  EXPECT_EQ(LabelOfInclude("tandem/v1/job.pb.h"), "//proto:messages");
  EXPECT_EQ(LabelOfInclude("tandem/v1/job_service.grpc.pb.h"), "//proto:services");
  EXPECT_EQ(LabelOfInclude("tandem/internal/v1/worker.pb.h"), "//proto:internal");
  EXPECT_EQ(LabelOfInclude("grpcpp/grpcpp.h"), "//third_party/grpc");
  EXPECT_EQ(LabelOfInclude("vector"), "");
}

}  // namespace
}  // namespace tandem
