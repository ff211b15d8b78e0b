#include "client/lib/sweep_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/fields/field_value.h"

namespace tandem::client {
namespace {

using ::testing::HasSubstr;

constexpr char kJob[] = R"(
name: small
model:
  input: {shape: [4]}
  layers:
  - conv2d: {filters: 4, kernel: 3}
  - dense: {units: 2}
training: {epochs: 2}
)";

v1::Sweep Base() {
  absl::StatusOr<SweepFile> file = ParseSweepFile(kJob, "job.yaml");
  EXPECT_TRUE(file.ok()) << file.status();
  return file->sweep;
}

// Returns the values in JSON, in order.
template <typename Values>
std::vector<std::string> Texts(const Values& values) {
  std::vector<std::string> texts;
  for (const auto& value : values) texts.push_back(ToJsonText(value).value_or("?"));
  return texts;
}

TEST(SweepFile, AJobIsTheBaseOfOne) {
  const absl::StatusOr<SweepFile> file = ParseSweepFile(kJob, "job.yaml");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->is_job);
  EXPECT_EQ(file->sweep.base().training().epochs(), 2);
  EXPECT_EQ(DescribeField(file->file, "spec.training.epochs"), "job.yaml:8:12: training.epochs");
}

TEST(SweepFile, TheExampleIsRead) {
  const absl::StatusOr<SweepFile> file = ReadSweepFile("deploy/examples/sweeps/learning-rate.yaml");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE(file->is_job);
  EXPECT_EQ(file->sweep.base().name(), "small");
  ASSERT_EQ(file->sweep.grid_size(), 2);
  EXPECT_EQ(Texts(file->sweep.grid(0).values()), (std::vector<std::string>{"0.1", "0.01", "0.001"}));
  EXPECT_EQ(Texts(file->sweep.grid(1).values()), (std::vector<std::string>{"8", "32"}));
  EXPECT_EQ(file->sweep.max_running(), 2);
  EXPECT_EQ(file->sweep.objective().metric(), "accuracy");
}

TEST(SweepFile, ValuesAreReadAsInAJobFile) {
  const absl::StatusOr<SweepFile> file = ParseSweepFile(R"(
base:
  model:
    layers:
    - conv2d: {filters: 4, kernel: 3}
random:
  samples: 3
  fields:
  - field: model.layers[0].conv2d.activation
    choice: {values: [relu, tanh]}
  - field: model.layers[0].conv2d.kernel
    choice: {values: [3, [5, 3]]}
  - field: training.optimizer.adam.beta1
    uniform: {min: 0, max: 0.9}
)",
                                                        "sweep.yaml");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(Texts(file->sweep.random().fields(0).choice().values()),
            (std::vector<std::string>{"\"ACTIVATION_RELU\"", "\"ACTIVATION_TANH\""}));
  EXPECT_EQ(Texts(file->sweep.random().fields(1).choice().values()),
            (std::vector<std::string>{"[3]", "[5,3]"}));
}

// Values in a sweep file have the form of job files and of --grid.
TEST(SweepFile, ValuesKeepWhatIsWritten) {
  const absl::StatusOr<SweepFile> file = ParseSweepFile(R"(
base: {model: {layers: [dense: {units: 2}]}}
grid:
- field: training.seed
  values: [9007199254740993, 18446744073709551615, 1e3, 7]
- field: name
  values: [007, 1e3, 1.10, 1.1, no, true]
- field: training.optimizer
  values: [{sgd: {learning_rate: .5}}, adam]
- field: training.shuffle
  values: [true, false]
)",
                                                        "sweep.yaml");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->sweep.grid_size(), 4);
  EXPECT_EQ(Texts(file->sweep.grid(0).values()),
            (std::vector<std::string>{"\"9007199254740993\"", "\"18446744073709551615\"", "1000", "7"}));
  EXPECT_EQ(Texts(file->sweep.grid(1).values()),
            (std::vector<std::string>{"\"007\"", "\"1e3\"", "\"1.10\"", "\"1.1\"", "\"no\"", "\"true\""}));
  EXPECT_EQ(Texts(file->sweep.grid(2).values()),
            (std::vector<std::string>{R"({"sgd":{"learning_rate":0.5}})", R"({"adam":{}})"}));
  EXPECT_EQ(Texts(file->sweep.grid(3).values()), (std::vector<std::string>{"true", "false"}));
}

TEST(SweepFile, SaysWhatIsWrong) {
  const auto message = [](const std::string& content) {
    return std::string(ParseSweepFile(content, "sweep.yaml").status().message());
  };
  EXPECT_THAT(message("base: {training: {epocs: 1}}\n"),
              HasSubstr("sweep.yaml:1:19: base.training.epocs: unknown field; did you mean `epochs`?"));
  EXPECT_THAT(message("base: {name: a}\ngrid:\n- field: training.epochs\n  values: [1.5]\n"),
              HasSubstr("sweep.yaml: grid[0].values[0]: training.epochs: want a whole number"));
  EXPECT_THAT(message("base: {name: a}\ngrid:\n- field: training.optimizer\n"
                      "  values: [{sgd: {learning_rate: 1, learning_rate: 2}}]\n"),
              HasSubstr("sweep.yaml:4:37: grid[0].values[0].sgd.learning_rate: given twice"));
  EXPECT_THAT(message("base: {name: a}\ngird: []\n"), HasSubstr("gird: unknown field; did you mean `grid`?"));
  EXPECT_EQ(message("base: {name: a}\nname: b\nstate: ACTIVE\nuser: ann\n"),
            "sweep.yaml:2:1: name: only the daemon sets this field; did you mean `display_name`?\n"
            "sweep.yaml:3:1: state: only the daemon sets this field; leave it out\n"
            "sweep.yaml:4:1: user: only the daemon sets this field; leave it out");
  EXPECT_EQ(message("base: {name: a}\nquux: 1\n"),
            "sweep.yaml:2:1: quux: unknown field; known here: display_name, base, grid, random, pruning, "
            "max_running, "
            "objective");
}

TEST(AddGrid, ValuesAreYaml) {
  v1::Sweep sweep = Base();
  ASSERT_TRUE(AddGrid("training.optimizer.adam.learning_rate=0.1, 1e-2", &sweep).ok());
  ASSERT_TRUE(AddGrid("model.layers[0].conv2d.kernel=[3,3],5", &sweep).ok());
  ASSERT_TRUE(AddGrid("model.layers[0].conv2d.activation=relu,tanh", &sweep).ok());
  ASSERT_TRUE(AddGrid("name=\"a, b\",c", &sweep).ok());
  ASSERT_EQ(sweep.grid_size(), 4);
  EXPECT_EQ(Texts(sweep.grid(0).values()), (std::vector<std::string>{"0.1", "0.01"}));
  EXPECT_EQ(Texts(sweep.grid(1).values()), (std::vector<std::string>{"[3,3]", "[5]"}));
  EXPECT_EQ(Texts(sweep.grid(2).values()),
            (std::vector<std::string>{"\"ACTIVATION_RELU\"", "\"ACTIVATION_TANH\""}));
  EXPECT_EQ(Texts(sweep.grid(3).values()), (std::vector<std::string>{"\"a, b\"", "\"c\""}));
  EXPECT_EQ(sweep.base().name(), "small");
  for (const char* wrong : {"training.epochs", "training.epochs=", "training.epocs=1", "training.epochs=1.5",
                            "model.layers[7].dense.units=1", "training.epochs=[1"}) {
    EXPECT_EQ(AddGrid(wrong, &sweep).code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
  EXPECT_EQ(sweep.grid_size(), 4);
}

TEST(AddRandom, TakesDistributions) {
  v1::Sweep sweep = Base();
  ASSERT_TRUE(AddRandom("training.optimizer.adam.learning_rate=log_uniform(1e-4, 0.1)", &sweep).ok());
  ASSERT_TRUE(AddRandom("training.optimizer.adam.beta1=uniform(0.8,1)", &sweep).ok());
  ASSERT_TRUE(AddRandom("model.layers[1].dense.units=integer(4,64)", &sweep).ok());
  ASSERT_TRUE(AddRandom("model.layers[0].conv2d.kernel=choice([3,3],[5,5])", &sweep).ok());
  ASSERT_EQ(sweep.random().fields_size(), 4);
  EXPECT_EQ(sweep.random().fields(0).log_uniform().min(), 1e-4);
  EXPECT_EQ(sweep.random().fields(1).uniform().max(), 1);
  EXPECT_EQ(sweep.random().fields(2).integer().max(), 64);
  EXPECT_EQ(sweep.random().fields(3).choice().values_size(), 2);
  for (const char* wrong : {"training.epochs=7", "training.epochs=normal(0,1)", "training.epochs=integer(1)",
                            "training.epochs=integer(1,x)", "training.epocs=integer(1,2)",
                            "training.epochs=uniform(0,1", "training.epochs=choice()"}) {
    EXPECT_EQ(AddRandom(wrong, &sweep).code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

}  // namespace
}  // namespace tandem::client
