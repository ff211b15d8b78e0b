#include "proto/job_file/foreign_names.h"

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "proto/job_file/job_text.h"
#include "tandem/v1/job.pb.h"

namespace tandem {
namespace {

// Returns the hint for the only problem of a job file: the text after "unknown field; ".
std::string Hint(const std::string& yaml) {
  v1::JobSpec spec;
  FieldPositions positions;
  const std::vector<ReadProblem> problems = ReadYamlJob(yaml, &spec, &positions);
  if (problems.size() != 1) return "not one problem";
  return problems[0].text.substr(problems[0].text.rfind("; ") + 2);
}

TEST(ForeignNamesTest, EveryPathNamesAField) {
  for (const ForeignName& row : ForeignNames()) {
    const google::protobuf::Descriptor* type = v1::JobSpec::descriptor();
    for (const std::string& part : std::vector<std::string>(absl::StrSplit(row.path, '.'))) {
      ASSERT_NE(type, nullptr) << row.path;
      const size_t bracket = part.find('[');
      const google::protobuf::FieldDescriptor* const field = type->FindFieldByName(part.substr(0, bracket));
      ASSERT_NE(field, nullptr) << row.path << " has no " << part;
      EXPECT_TRUE(field->is_repeated() || bracket == std::string::npos) << row.path;
      type = field->message_type();
    }
  }
}

TEST(ForeignNamesTest, NamesAreWrittenAsTheyAreCompared) {
  for (const ForeignName& row : ForeignNames()) {
    for (const std::string& name : std::vector<std::string>(absl::StrSplit(row.names, ' '))) {
      EXPECT_FALSE(name.empty()) << row.path;
      for (const char c : name) EXPECT_TRUE(absl::ascii_islower(c) || absl::ascii_isdigit(c)) << name;
    }
  }
}

TEST(ForeignNamesTest, FindsTheFieldFromItsPlace) {
  EXPECT_EQ(Hint("lr: 0.1"), "did you mean `training.optimizer.sgd.learning_rate`?");
  EXPECT_EQ(Hint("training: {lr: 0.1}"), "did you mean `optimizer.sgd.learning_rate`?");
  EXPECT_EQ(Hint("training: {optimizer: {learning_rate: 0.1}}"), "did you mean `sgd.learning_rate`?");
  EXPECT_EQ(Hint("training: {optimizer: {adam: {lr: 0.1}}}"), "did you mean `learning_rate`?");
  EXPECT_EQ(Hint("dataset: {batch_size: 32}"), "did you mean `training.global_batch_size`?");
  EXPECT_EQ(Hint("epochs: 3"), "did you mean `training.epochs`?");
}

// Spelling alone finds other fields for these names.
TEST(ForeignNamesTest, MeaningIsPreferredToSpelling) {
  EXPECT_EQ(Hint("model: {layers: [{avg_pool2d: {}}]}"), "did you mean `average_pool2d`?");
  EXPECT_EQ(Hint("model: {layers: [{max_pool2d: {kernel: 2}}]}"), "did you mean `size`?");
  EXPECT_EQ(Hint("training: {optimizer: {sgdm: {}}}"), "did you mean `momentum`?");
  EXPECT_EQ(Hint("training: {loss: l2}"), "did you mean `mse`?");
  EXPECT_EQ(Hint("training: {schedule: {step: {}}}"), "did you mean `piecewise`?");
  EXPECT_EQ(Hint("training: {ValidationPatience: 3}"), "did you mean `early_stopping.patience`?");
  EXPECT_EQ(Hint("training: {optimizer: {sgd: {momentum: 0.9}}}"), "known here: learning_rate, weight_decay");
}

TEST(ForeignNamesTest, KnowsTheNamesOfDeeplearning4jMatlabAndMxnet) {
  EXPECT_EQ(Hint("replicas: {averagingFrequency: 3}"),
            "did you mean `parameter_averaging.every_iterations`?");
  EXPECT_EQ(Hint("replicas: {parameter_averaging: {averageUpdaters: true}}"),
            "did you mean `average_optimizer_state`?");
  EXPECT_EQ(Hint("training: {MiniBatchSize: 128}"), "did you mean `global_batch_size`?");
  EXPECT_EQ(Hint("training: {L2Regularization: 0.1}"), "did you mean `optimizer.sgd.weight_decay`?");
  EXPECT_EQ(Hint("training: {optimizer: nag}"), "did you mean `nesterov`?");
  EXPECT_EQ(Hint("replicas: {num_gpus: 2}"), "did you mean `count`?");
  EXPECT_EQ(Hint("model: {layers: [{conv2d: {nOut: 2}}]}"), "did you mean `filters`?");
  EXPECT_EQ(Hint("model: {layers: [{dense: {nOut: 2}}]}"), "did you mean `units`?");
}

TEST(ForeignNamesTest, OtherNamesGetSpellingHints) {
  EXPECT_EQ(Hint("training: {epoch: 3}"), "did you mean `epochs`?");
  EXPECT_EQ(FieldHint("zzzz", {"epochs", "seed"}), "known here: epochs, seed");
}

}  // namespace
}  // namespace tandem
