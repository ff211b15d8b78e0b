// The #include lines of the source tree must follow the order of the rooms. This includes tests and sources
// that no program uses.
#include <filesystem>
#include <string>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/rooms/room_table.h"
#include "tests/rooms/source_tree.h"

namespace tandem {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kThisFile[] = "tests/rooms/sources_test.cc";

std::filesystem::path Root() {
  const absl::StatusOr<std::filesystem::path> root = SourceRoot(kThisFile);
  EXPECT_TRUE(root.ok()) << root.status();
  return root.ok() ? *root : std::filesystem::path();
}

TEST(SourcesTest, SourcesIncludeInTheHousesOrder) {
  for (const absl::string_view house : {"engine", "server", "client"}) {
    const std::vector<Edge> edges = IncludesBelow(Root(), house);
    EXPECT_THAT(edges, Not(IsEmpty())) << house;
    const std::vector<std::string> wrong = WrongEdges(edges);
    EXPECT_THAT(wrong, IsEmpty()) << absl::StrJoin(wrong, "\n");
  }
}

TEST(SourcesTest, EveryPackageIsInTheTable) {
  for (const absl::string_view house : {"engine", "server", "client"}) {
    const std::vector<std::string> packages = PackagesBelow(Root(), house);
    EXPECT_THAT(packages, Not(IsEmpty())) << house;
    for (const std::string& package : packages) {
      EXPECT_NE(FindRoom(package), nullptr) << package << " is in no room of tests/rooms/room_table.cc";
    }
  }
}

TEST(SourcesTest, IncludesStandForTheirTargets) {
  EXPECT_EQ(LabelOfInclude("engine/graph/op.h"), "//engine/graph:op.h");
  EXPECT_EQ(LabelOfInclude("tandem/v1/job.pb.h"), "//proto:messages");
  EXPECT_EQ(LabelOfInclude("tandem/v1/job_service.grpc.pb.h"), "//proto:services");
  EXPECT_EQ(LabelOfInclude("tandem/internal/v1/worker.pb.h"), "//proto:internal");
  EXPECT_EQ(LabelOfInclude("grpcpp/grpcpp.h"), "//third_party/grpc");
  EXPECT_EQ(LabelOfInclude("vector"), "");
}

}  // namespace
}  // namespace tandem
