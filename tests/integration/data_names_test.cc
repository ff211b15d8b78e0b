// A model that meets data again, with the real programs: in an evaluation, a prediction, a fork, initial
// weights and a resume. Names decide which column or class is which. All expected values are computed by
// hand.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "engine/data/formats/test_bytes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/integration/api.h"
#include "tests/integration/cli.h"
#include "tests/integration/cli_json.h"
#include "tests/integration/daemon_process.h"
#include "tests/integration/png_file.h"
#include "tests/integration/processes.h"
#include "tests/integration/scratch_folder.h"
#include "tests/integration/suite_daemon_fixture.h"

namespace tandem::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kRows = 40;
int A(int row) { return row * 7 % 11 - 5; }
int B(int row) { return row * 3 % 8 - 3; }
int Y(int row) { return 3 * A(row) - 5 * B(row); }

// Returns rows of y = 3a - 5b with columns in the given order. Other columns hold text.
std::string Rows(const std::vector<std::string>& columns, const std::string& delimiter = ",",
                 bool header = true) {
  std::string text = header ? absl::StrCat(absl::StrJoin(columns, delimiter), "\n") : "";
  for (int row = 0; row < kRows; ++row) {
    std::vector<std::string> cells;
    for (const std::string& name : columns) {
      const bool is_a = name == "a" || name == "0", is_b = name == "b" || name == "1";
      const bool is_y = name == "y" || name == "2";
      cells.push_back(is_a   ? absl::StrCat(A(row))
                      : is_b ? absl::StrCat(B(row))
                      : is_y ? absl::StrCat(Y(row))
                             : "text");
    }
    absl::StrAppend(&text, absl::StrJoin(cells, delimiter), "\n");
  }
  return text;
}

// Each step uses all rows. A network with a single layer learns the weights 3 and -5.
constexpr char kExact[] = R"(
model: {input: {shape: [2]}, layers: [{dense: {units: 1}}]}
training: {loss: {mse: {}}, optimizer: {sgd: {learning_rate: 0.04}}, global_batch_size: 40, epochs: 400, seed: 1}
checkpoints: {every_epochs: 400}
)";

class DataNamesTest : public SuiteDaemonFixture {
 protected:
  static void WriteData(const std::string& name, const std::string& content) {
    scratch_->Write("data/" + name, content);
  }
  CliResult Submit(const std::string& yaml) {
    return cli_.Run({"submit", scratch_->Write("job.yaml", yaml), "--follow"}, absl::Minutes(4));
  }
  CliResult EvaluateOn(const std::string& job, const std::string& dataset) {
    return cli_.Run(
        {"evaluate", job, "--dataset", scratch_->Write("dataset.yaml", dataset + "\n"), "-o", "json"});
  }
  static void ExpectRefused(const CliResult& result, const std::vector<std::string>& parts) {
    EXPECT_EQ(result.exit_code, 2) << result;
    for (const std::string& part : parts) EXPECT_THAT(result.err, HasSubstr(part));
  }
  void ExpectInvalid(const std::string& yaml, const std::vector<std::string>& parts) {
    ExpectRefused(cli_.Run({"validate", scratch_->Write("bad.yaml", yaml)}), parts);
  }
};

TEST_F(DataNamesTest, ColumnsOfATable) {
  WriteData("rows.csv", Rows({"a", "b", "y"}));
  WriteData("swapped.csv", Rows({"b", "a", "y"}));
  WriteData("more.csv", Rows({"y", "note", "b", "a"}));
  WriteData("other.csv", Rows({"a", "c", "y"}));
  const std::string job = cli_.Train(absl::StrCat("dataset: {csv: {train: rows.csv}}", kExact));
  // If columns were matched by position, the loss of the swapped columns would be 64 times the mean of (a -
  // b)^2.
  for (const char* table : {"rows.csv", "swapped.csv", "more.csv"}) {
    SCOPED_TRACE(table);
    EXPECT_LT(Json(EvaluateOn(job, absl::StrCat("csv: {train: ", table, "}"))).value("loss", 1.0), 1e-8);
  }
  ExpectRefused(EvaluateOn(job, "csv: {train: other.csv}"), {"csv.feature_columns", "no column 'b'", "'c'"});

  // A fork keeps the learned weights.
  const auto fork = [&](const std::string& table) {
    return cli_.Run({"fork", job, "--set", absl::StrCat("dataset.csv.train=", table), "--set",
                     "training.epochs=401", "--follow"},
                    absl::Minutes(4));
  };
  const CliResult forked = fork("more.csv");
  ASSERT_EQ(forked.exit_code, 0) << forked;
  EXPECT_LT(Api(*daemon_).Get(Cli::SubmittedJob(forked)).last_epoch().training().loss(), 1e-8);
  ExpectRefused(fork("other.csv"), {"no column 'b'", "a feature of the model"});

  // So does a job that begins with the weights.
  const auto begin = [&](const std::string& table) {
    return absl::StrCat("dataset: {csv: {train: ", table, "}}\ninitial_weights: {artifact: {job: ", job, "}}",
                        absl::StrReplaceAll(kExact, {{"epochs: 400, seed", "epochs: 1, seed"}}));
  };
  const std::string second = cli_.Train(begin("swapped.csv"));
  EXPECT_LT(Api(*daemon_).Get(second).last_epoch().training().loss(), 1e-8);
  ExpectInvalid(begin("other.csv"), {"no column 'b'", "a feature of the model"});

  // Validation tables have columns in an order of their own.
  const std::string third =
      cli_.Train(absl::StrCat("dataset: {csv: {train: rows.csv, validation: more.csv}}", kExact));
  EXPECT_LT(Api(*daemon_).Get(third).last_epoch().validation().loss(), 1e-8);
}

TEST_F(DataNamesTest, PredictionsReadATableAsTraining) {
  const auto expect = [&](const std::string& dataset, const std::string& table) {
    SCOPED_TRACE(dataset);
    WriteData("own.csv", table);
    const std::string job =
        cli_.Train(absl::StrCat("dataset: {csv: {train: own.csv, ", dataset, "}}", kExact));
    const nlohmann::json rows =
        Json(cli_.Run({"predict", job, scratch_->File("data/own.csv"), "--outputs", "-o", "json"}));
    ASSERT_EQ(rows.size(), kRows);
    for (int row = 0; row < kRows; ++row) {
      EXPECT_NEAR(rows[row]["outputs"][0].get<double>(), Y(row), 1e-3) << row;
    }
  };
  expect("delimiter: ';'", Rows({"a", "b", "y"}, ";"));
  expect("delimiter: '\\t'", Rows({"a", "b", "y"}, "\t"));
  // Names that are numbers, as pandas writes them.
  expect("target_columns: ['2']", Rows({"0", "1", "2"}));
  expect("header: false", Rows({"a", "b", "y"}, ",", /*header=*/false));
}

TEST_F(DataNamesTest, PredictionsForADataSet) {
  WriteData("rows.csv", Rows({"a", "b", "y"}));
  WriteData("swapped.csv", Rows({"b", "a", "y"}));
  const std::string job = cli_.Train(absl::StrCat("dataset: {csv: {train: rows.csv}}", kExact));
  for (const bool own : {true, false}) {
    SCOPED_TRACE(own);
    std::vector<std::string> command = {"predict", job, "--split", "training", "-o", "json"};
    if (!own) {
      command.insert(command.end(),
                     {"--dataset", scratch_->Write("swapped.yaml", "csv: {train: swapped.csv}\n")});
    }
    const nlohmann::json rows = Json(cli_.Run(command));
    ASSERT_EQ(rows.size(), kRows);
    for (int row = 0; row < kRows; ++row) {
      EXPECT_EQ(rows[row]["targets"][0].get<double>(), Y(row)) << row;
      EXPECT_NEAR(rows[row]["outputs"][0].get<double>(), Y(row), 1e-3) << row;
    }
  }
  ExpectRefused(cli_.Run({"predict", job, "--split", "validation"}), {"split: ", "no validation samples"});
  WriteData("other.csv", Rows({"a", "c", "y"}));
  ExpectRefused(
      cli_.Run({"predict", job, "--dataset", scratch_->Write("other.yaml", "csv: {train: other.csv}\n")}),
      {"csv.feature_columns", "no column 'b'", "'c'"});
}

// A number of a town, and of its row.
int Level(int town) { return town * 17 % 23; }

// Returns rows of y = Level(town) + a, with columns in the given order.
std::string Towns(const std::vector<std::string>& columns, int towns = 40) {
  std::string text = absl::StrCat(absl::StrJoin(columns, ","), "\n");
  for (int row = 0; row < 4 * towns; ++row) {
    std::vector<std::string> cells;
    for (const std::string& name : columns) {
      cells.push_back(name == "town" ? absl::StrCat("t", row % towns)
                      : name == "a"  ? absl::StrCat(A(row))
                                     : absl::StrCat(Level(row % towns) + A(row)));
    }
    absl::StrAppend(&text, absl::StrJoin(cells, ","), "\n");
  }
  return text;
}

constexpr char kEmbedded[] = R"(
model: {layers: [{embed_categories: {}}, {dense: {units: 1}}]}
training: {loss: {mse: {}}, optimizer: {adam: {learning_rate: 0.02}}, global_batch_size: 40, epochs: 200, seed: 1}
checkpoints: {every_epochs: 200}
)";

TEST_F(DataNamesTest, CategoriesOfATableAreEmbedded) {
  WriteData("towns.csv", Towns({"town", "a", "y"}));
  WriteData("turned.csv", Towns({"a", "town", "y"}));
  WriteData("rows.csv", Rows({"a", "b", "y"}));
  const std::string job = cli_.Train(absl::StrCat("dataset: {csv: {train: towns.csv}}", kEmbedded));
  Api api(*daemon_);
  const v1::JobSpec spec = api.Get(job).spec();
  ASSERT_EQ(spec.model().input().shape_size(), 1);
  EXPECT_EQ(spec.model().input().shape(0), 42);
  ASSERT_EQ(spec.model().layers(0).embed_categories().columns_size(), 1);
  const v1::EmbeddedColumn& column = spec.model().layers(0).embed_categories().columns(0);
  EXPECT_EQ(column.name(), "town");
  // 40 towns, and an input for others.
  EXPECT_EQ(column.inputs(), 41);
  EXPECT_EQ(column.dimension(), 21);
  const nlohmann::json described = Json(cli_.Run({"describe", "--model", job, "-o", "json"}));
  EXPECT_EQ(described.value("parameters", ""), absl::StrCat(21 * 41 + 22 + 1));

  // Raw rows, also of towns that the training never saw.
  const std::string raw = scratch_->Write("raw.csv", "a,town\n0,t0\n2,t7\n-3,t39\n1,nowhere\n1,elsewhere\n");
  const nlohmann::json rows = Json(cli_.Run({"predict", job, raw, "--outputs", "-o", "json"}));
  ASSERT_EQ(rows.size(), 5u);
  const auto output = [&](int row) { return rows[row]["outputs"][0].get<double>(); };
  EXPECT_NEAR(output(0), Level(0), 0.3);
  EXPECT_NEAR(output(1), Level(7) + 2, 0.3);
  EXPECT_NEAR(output(2), Level(39) - 3, 0.3);
  EXPECT_EQ(output(3), output(4));
  EXPECT_GT(output(3), 0);
  EXPECT_LT(output(3), 24);

  // Columns in another order are matched by name.
  EXPECT_LT(Json(EvaluateOn(job, "csv: {train: turned.csv}")).value("loss", 1.0), 0.05);
  const CliResult forked = cli_.Run(
      {"fork", job, "--set", "dataset.csv.train=turned.csv", "--set", "training.epochs=201", "--follow"},
      absl::Minutes(4));
  ASSERT_EQ(forked.exit_code, 0) << forked;
  EXPECT_LT(api.Get(Cli::SubmittedJob(forked)).last_epoch().training().loss(), 0.05);
  // So they are for a job that begins with the weights. Fewer towns change nothing.
  WriteData("few.csv", Towns({"a", "town", "y"}, 5));
  const auto begin = [&](const std::string& weights, const std::string& rest) {
    return absl::StrCat("dataset: {csv: {train: few.csv}}\ninitial_weights: {artifact: {job: ", job, "}",
                        weights, "}",
                        absl::StrReplaceAll(kEmbedded, {{"epochs: 200, seed", "epochs: 1, seed"}}), rest);
  };
  const std::string second = cli_.Train(begin("", "frozen_layers: [embed_categories_1]\n"));
  EXPECT_LT(api.Get(second).last_epoch().training().loss(), 0.5);
  EXPECT_EQ(api.Get(second).spec().model().layers(0).embed_categories().columns(0).inputs(), 41);
  // A first layer that begins anew takes the columns of the job's own table: 5 towns are too few.
  ExpectInvalid(begin(", except_layers: [embed_categories_1]", ""),
                {"model.layers[0].embed_categories", "'town', has 6"});

  ExpectInvalid(absl::StrCat("dataset: {csv: {train: few.csv}}", kEmbedded),
                {"model.layers[0].embed_categories", "more than 10 inputs", "'town', has 6"});
  ExpectInvalid(absl::StrCat("dataset: {csv: {train: rows.csv}}", kEmbedded),
                {"model.layers[0].embed_categories", "needs a table with a column of categories"});
  ExpectInvalid(
      absl::StrCat("dataset: {csv: {train: towns.csv}}",
                   absl::StrReplaceAll(kEmbedded, {{"{embed_categories: {}}, {dense: {units: 1}}",
                                                    "{dense: {units: 1}}, {embed_categories: {}}"},
                                                   {"model: {", "model: {input: {shape: [42]}, "}})),
      {"model.layers[1].embed_categories", "must be the model's first layer"});
}

// Pictures of one brightness each.
void WriteImages(const std::string& folder, const std::vector<std::pair<std::string, char>>& classes) {
  for (const auto& [name, pixel] : classes) {
    std::filesystem::create_directories(folder + "/" + name);
    for (int i = 0; i < 4; ++i) {
      std::ofstream(absl::StrCat(folder, "/", name, "/", i, ".png"), std::ios::binary)
          << PngFile(4, 4, 1, std::string(16, static_cast<char>(pixel + i)));
    }
  }
}

TEST_F(DataNamesTest, ClassesOfImages) {
  const std::string data = scratch_->File("data");
  WriteImages(data + "/animals", {{"bird", '\x05'}, {"cat", '\x78'}, {"dog", '\xf0'}});
  WriteImages(data + "/part", {{"cat", '\x78'}, {"dog", '\xf0'}});
  WriteImages(data + "/unknown", {{"cat", '\x78'}, {"dog", '\xf0'}, {"elk", '\x05'}});
  constexpr char kRest[] = R"(
model: {input: {shape: [1, 4, 4]}, layers: [{dense: {units: 16, activation: relu}}, {dense: {units: 3}}]}
training: {loss: {softmax_cross_entropy: {}}, optimizer: {adam: {learning_rate: 0.02}}, global_batch_size: 12, epochs: 200, seed: 1}
checkpoints: {every_epochs: 200}
)";
  const std::string job = cli_.Train(absl::StrCat("dataset: {image_folder: {train: animals}}", kRest));
  const auto accuracy = [&](const std::string& folder) {
    return Json(EvaluateOn(job, absl::StrCat("image_folder: {train: ", folder, "}")))["metrics"].value(
        "accuracy", -1.0);
  };
  ASSERT_EQ(accuracy("animals"), 1);
  // If classes were matched by position, a cat would be a bird, and a dog a cat.
  EXPECT_EQ(accuracy("part"), 1);
  ExpectRefused(EvaluateOn(job, "image_folder: {train: unknown}"),
                {"image_folder.train", "'elk'", "does not know", "'bird', 'cat', 'dog'"});
  const auto fork = [&](const std::string& folder) {
    return cli_.Run({"fork", job, "--set", absl::StrCat("dataset.image_folder.train=", folder), "--set",
                     "training.epochs=201", "--follow"},
                    absl::Minutes(4));
  };
  ExpectRefused(fork("unknown"), {"'elk'", "does not know"});
  const CliResult forked = fork("part");
  EXPECT_EQ(forked.exit_code, 0) << forked;
  EXPECT_EQ(Api(*daemon_).Get(Cli::SubmittedJob(forked)).last_epoch().training().metrics().at("accuracy"), 1);
  // A new job may mean new classes: a notice says which output is which.
  const CliResult other = Submit(
      absl::StrCat("dataset: {image_folder: {train: unknown}}\ninitial_weights: {artifact: {job: ", job, "}}",
                   absl::StrReplaceAll(kRest, {{"epochs: 200, seed", "epochs: 1, seed"}})));
  EXPECT_EQ(other.exit_code, 0) << other;
  EXPECT_THAT(absl::StrCat(other.out, other.err),
              HasSubstr("0 was 'bird' and is 'cat', 1 was 'cat' and is 'dog', 2 was 'dog' and is 'elk'"));
}

TEST_F(DataNamesTest, CharactersOfAText) {
  const auto repeat = [](const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  WriteData("text.txt", repeat("abcde", 60));
  WriteData("part.txt", repeat("bd", 60));
  WriteData("unknown.txt", repeat("bcdf", 60));
  const std::string job = cli_.Train(R"(
dataset: {text: {train: text.txt, sequence_length: 3}}
model: {input: {shape: [3]}, layers: [{embedding: {vocabulary_size: 5, dimension: 8}}, {dense: {units: 5, per_position: true}}]}
training: {loss: {softmax_cross_entropy: {}}, optimizer: {adam: {learning_rate: 0.05}}, global_batch_size: 99, epochs: 200, seed: 1}
checkpoints: {every_epochs: 200}
)");
  const auto accuracy = [&](const std::string& file) {
    return Json(EvaluateOn(job, absl::StrCat("text: {train: ", file, ", sequence_length: 3}")))["metrics"]
        .value("accuracy", -1.0);
  };
  ASSERT_EQ(accuracy("text.txt"), 1);
  // The model predicts c after b, and e after d. If characters were matched by position, b would be a and d
  // would be b, and half of the answers would be right.
  EXPECT_EQ(accuracy("part.txt"), 0);
  ExpectRefused(EvaluateOn(job, "text: {train: unknown.txt, sequence_length: 3}"),
                {"text.train", "'f'", "which the model does not have"});
}

TEST_F(DataNamesTest, DataThatChangedBeforeAResume) {
  WriteData("changing.csv", Rows({"a", "b", "y"}));
  const CliResult submitted = cli_.Run(
      {"submit",
       scratch_->Write("job.yaml", absl::StrCat("dataset: {csv: {train: changing.csv}}",
                                                absl::StrReplaceAll(
                                                    kExact, {{"epochs: 400, seed", "epochs: 100000000, seed"},
                                                             {"every_epochs: 400", "every_minutes: 30"}})))});
  ASSERT_EQ(submitted.exit_code, 0) << submitted;
  const std::string job = Cli::SubmittedJob(submitted);
  Api api(*daemon_);
  ASSERT_TRUE(WaitUntil([&] { return api.Get(job).progress().step() > 0; }));
  const auto pause = [&] {
    EXPECT_EQ(cli_.Run({"pause", job}).exit_code, 0);
    EXPECT_EQ(api.WaitFor(job, v1::JOB_STATE_PAUSED).state(), v1::JOB_STATE_PAUSED);
  };
  pause();
  // Writes the same content again.
  WriteData("changing.csv", Rows({"a", "b", "y"}));
  EXPECT_EQ(cli_.Run({"resume", job}).exit_code, 0);
  ASSERT_EQ(api.WaitFor(job, v1::JOB_STATE_RUNNING).state(), v1::JOB_STATE_RUNNING);
  pause();
  WriteData("changing.csv", absl::StrReplaceAll(Rows({"a", "b", "y"}), {{"-1", "-2"}}));
  const CliResult refused = cli_.Run({"resume", job});
  ExpectRefused(refused, {"the content of dataset.csv.train", "changing.csv",
                          "changed since the checkpoint of step", "--accept-changed-data"});
  EXPECT_EQ(api.Get(job).state(), v1::JOB_STATE_PAUSED);
  EXPECT_EQ(cli_.Run({"resume", job, "--accept-changed-data"}).exit_code, 0);
  ASSERT_EQ(api.WaitFor(job, v1::JOB_STATE_RUNNING).state(), v1::JOB_STATE_RUNNING);
  EXPECT_TRUE(WaitUntil([&] {
    return absl::StrContains(cli_.Run({"logs", job}).out, "The data changed since the checkpoint of step");
  }));
  api.Cancel(job);
  api.WaitFor(job, v1::JOB_STATE_CANCELLED);
}

TEST_F(DataNamesTest, AForkWithoutValidationShowsNone) {
  WriteData("rows.csv", Rows({"a", "b", "y"}));
  const std::string job =
      cli_.Train(absl::StrCat("dataset: {csv: {train: rows.csv, validation: rows.csv}}", kExact));
  Api api(*daemon_);
  v1::JobSpec spec = api.Get(job).spec();
  spec.mutable_dataset()->mutable_csv()->clear_validation();
  spec.mutable_training()->set_epochs(402);
  const std::string fork = api.Fork(job, -1, &spec).name();
  const v1::Job ended = api.WaitFor(fork, v1::JOB_STATE_SUCCEEDED);
  EXPECT_FALSE(ended.summary().has_validation());
  EXPECT_FALSE(ended.best().validation());
  EXPECT_GT(ended.best().step(), 400);
  EXPECT_THAT(cli_.Run({"describe", fork}).out,
              AllOf(HasSubstr("training loss"), Not(HasSubstr("validation loss"))));
}

TEST_F(DataNamesTest, DataThatAreNotSoundAreRefused) {
  const auto table = [&](const std::string& content, const std::string& model = "") {
    WriteData("bad.csv", content);
    return absl::StrCat("dataset: {csv: {train: bad.csv}}", model.empty() ? kExact : model);
  };
  ExpectInvalid(table("a,b,y,\n1,2,3,\n4,5,6,\n"),
                {"bad.csv: row 2, column '' is empty", "remove the delimiter"});
  ExpectInvalid(table("a,b,y\n1,2,3\n4,5,\n"), {"bad.csv: row 3, column 'y' is empty", "fill it in"});
  ExpectInvalid(table("a,b,y\n1,2,3\n4,5,6.5\n1,1,4o\n"),
                {"bad.csv: row 4, column 'y' is '4o', which is no number", "2 other rows"});
  ExpectInvalid(table("a,b,kind\n1,2,cat\n4,5,cat\n"), {"dataset", "one class, 'cat'", "'kind'"});

  const std::string data = scratch_->File("data");
  WriteImages(data + "/flowers/flowers", {{"daisy", '\x05'}, {"rose", '\x78'}});
  constexpr char kResnet[] = R"(
model: {template: {resnet18: {width: 8}}}
training: {loss: {softmax_cross_entropy: {}}, optimizer: {adam: {}}, global_batch_size: 2, epochs: 1}
)";
  ExpectInvalid(absl::StrCat("dataset: {image_folder: {train: flowers}}", kResnet),
                {"one class, 'flowers'", "give image_folder.train: ", "flowers/flowers"});

  // Numbers alone: a notice says that the first row is taken for names.
  WriteData("numbers.csv", Rows({"a", "b", "y"}, ",", /*header=*/false));
  const CliResult numbers =
      Submit(absl::StrCat("dataset: {csv: {train: numbers.csv}}",
                          absl::StrReplaceAll(kExact, {{"epochs: 400, seed", "epochs: 1, seed"}})));
  EXPECT_EQ(numbers.exit_code, 0) << numbers;
  EXPECT_THAT(absl::StrCat(numbers.out, numbers.err),
              AllOf(HasSubstr("names columns by numbers"), HasSubstr("csv.header: false")));

  // [samples, height, width, channels].
  WriteData("x.npy", Npy("|u1", "(2, 32, 32, 3)", std::string(2 * 32 * 32 * 3, 'a')));
  WriteData("y.npy", Npy("|u1", "(2,)", std::string("\x00\x01", 2)));
  ExpectInvalid(
      absl::StrCat("dataset: {npy: {train_inputs: {path: x.npy}, train_targets: {path: y.npy}}}", kResnet),
      {"model.template.resnet18", "[32, 32, 3]", "[height, width, channels]", "npy.layout: nhwc"});
}

}  // namespace
}  // namespace tandem::testing
