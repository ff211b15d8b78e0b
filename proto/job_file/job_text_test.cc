#include "proto/job_file/job_text.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

std::vector<ReadProblem> Read(const std::string& text) {
  v1::JobSpec spec;
  FieldPositions positions;
  return ReadYamlJob(text, &spec, &positions);
}

TEST(JobTextTest, ReadsShortForms) {
  v1::JobSpec spec;
  FieldPositions positions;
  const std::vector<ReadProblem> problems =
      ReadYamlJob("model: {layers: [{dense: {units: 3, activation: relu}}]}", &spec, &positions);
  ASSERT_TRUE(problems.empty()) << problems[0].text;
  EXPECT_EQ(spec.model().layers(0).dense().activation(), v1::ACTIVATION_RELU);
  EXPECT_EQ(positions["model.layers[0].dense.units"].column, 27);
}

TEST(JobTextTest, PlacesProblems) {
  const std::vector<ReadProblem> problems = Read("name: a\nmodel:\n  layers:\n  - max_pol2d: {}\n");
  ASSERT_EQ(problems.size(), 1);
  EXPECT_EQ(problems[0].position.line, 4);
  EXPECT_EQ(problems[0].position.column, 5);
  EXPECT_EQ(problems[0].path, "model.layers[0].max_pol2d");
  EXPECT_THAT(problems[0].text, HasSubstr("did you mean `max_pool2d`?"));
}

TEST(JobTextTest, BoundsTheBytesThatAliasesRepeat) {
  std::string text = absl::StrCat("dataset: {class_names: [&long ", std::string(100'000, 'x'));
  for (int i = 0; i < 50'000; ++i) text += ", *long";
  const std::vector<ReadProblem> problems = Read(text + "]}");
  ASSERT_EQ(problems.size(), 1);
  EXPECT_THAT(problems[0].text, HasSubstr("more than 4194304 bytes of values"));
}

TEST(JobTextTest, BoundsKeysAndValues) {
  std::string text = "replicas: {devices: [a";
  for (int i = 0; i < 100'000; ++i) text += ",a";
  const std::vector<ReadProblem> problems = Read(text + "]}");
  ASSERT_EQ(problems.size(), 1);
  EXPECT_THAT(problems[0].text, HasSubstr("more than 80000 keys and values"));
}

TEST(JobTextTest, StopsAfterTheProblemsThatItTells) {
  // Computing spelling hints for all names of a large file would take seconds.
  std::string text;
  for (int i = 0; i < 20; ++i) absl::StrAppend(&text, "epochs", i, ": 1\n");
  v1::JobSpec spec;
  FieldPositions positions;
  EXPECT_EQ(ReadYamlJob(text + "name: a\nreplica: {}\n", &spec, &positions).size(), 20);
  EXPECT_EQ(spec.name(), "");
}

}  // namespace
}  // namespace tandem
