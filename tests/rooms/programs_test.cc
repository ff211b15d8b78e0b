// The dependencies of all shipped programs, from a genquery of Bazel, must follow the order of the rooms.
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/rooms/room_table.h"

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<Edge> ProgramEdges() {
  std::ifstream file("tests/rooms/program_edges");
  std::ostringstream text;
  text << file.rdbuf();
  return ParseQueryGraph(text.str());
}

TEST(ProgramsTest, ProgramsDependInTheHousesOrder) {
  const std::vector<Edge> edges = ProgramEdges();
  ASSERT_GT(edges.size(), 100) << "the query gave no graph";
  const std::vector<std::string> wrong = WrongEdges(edges);
  EXPECT_THAT(wrong, IsEmpty()) << absl::StrJoin(wrong, "\n");
}

TEST(ProgramsTest, DaemonReachesNoBackend) {
  const std::vector<std::string> reached = Reachable(ProgramEdges(), "//server/daemon:tandemd");
  ASSERT_GT(reached.size(), 20);
  for (const std::string& label : reached) {
    EXPECT_FALSE(absl::StartsWith(label, "//engine/backends/")) << "tandemd reaches " << label;
    EXPECT_FALSE(absl::StartsWith(label, "//third_party/cuda")) << "tandemd reaches " << label;
  }
}

// Files that users sent are decoded by a process that may fail.
TEST(ProgramsTest, DaemonReadsNoDataSet) {
  constexpr char kReader[] = "//server/admission:read_dataset";
  EXPECT_THAT(Reachable(ProgramEdges(), "//server/daemon:tandemd"), Not(Contains(kReader)));
  EXPECT_THAT(Reachable(ProgramEdges(), "//server/worker:tandem-worker"), Contains(kReader));
}

TEST(ProgramsTest, WorkerHasTheCpuBackend) {
  EXPECT_THAT(Reachable(ProgramEdges(), "//server/worker:tandem-worker"),
              Contains(StartsWith("//engine/backends/cpu:")));
}

TEST(ProgramsTest, ClientSeesTheApiAlone) {
  const std::vector<std::string> reached = Reachable(ProgramEdges(), "//client/cli:tandem");
  ASSERT_GT(reached.size(), 10);
  for (const std::string& label : reached) {
    const absl::string_view package = PackageOf(label);
    EXPECT_TRUE(package.empty() || !absl::StartsWith(label, "//") || absl::StartsWith(package, "client/") ||
                package == "engine/base" || package == "proto" || absl::StartsWith(package, "proto/") ||
                absl::StartsWith(package, "third_party"))
        << "the command reaches " << label;
    EXPECT_NE(label, "//proto:internal");
  }
}

}  // namespace
}  // namespace tandem
