// A trained model, with the real programs: showing its layers, measuring it, predicting files, and starting
// another job from its weights.
#include <signal.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/data/formats/test_bytes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/integration/api.h"
#include "tests/integration/cli.h"
#include "tests/integration/cli_json.h"
#include "tests/integration/daemon_process.h"
#include "tests/integration/job_specs.h"
#include "tests/integration/png_file.h"
#include "tests/integration/processes.h"
#include "tests/integration/scratch_folder.h"
#include "tests/integration/suite_daemon_fixture.h"
#include "tests/integration/watcher.h"

namespace tandem::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kFashionMnist[] = "/usr/share/datasets/fashion-mnist";

// The content of a gzip file after its first `skip` bytes.
std::string Unzip(const std::string& path, size_t skip) {
  gzFile file = gzopen(path.c_str(), "rb");
  EXPECT_NE(file, nullptr) << path;
  if (file == nullptr) return "";
  std::string content;
  char buffer[1 << 16];
  for (int count = 0; (count = gzread(file, buffer, sizeof(buffer))) > 0;) content.append(buffer, count);
  gzclose(file);
  return content.substr(skip);
}

// A single daemon for all tests. Its data folders are Debian's and the tests' own.
class ModelUseTest : public SuiteDaemonFixture {
 protected:
  static void SetUpTestSuite() {
    StartDaemon({"--data-folder", "/usr/share/datasets", "--model-workers", "1", "--model-idle-time", "2s"});
  }
  void TearDown() override {
    ASSERT_TRUE(daemon_->IsRunning()) << daemon_->Log();
    // Model workers end with their calls, or after the idle time.
    EXPECT_TRUE(WaitUntil([] { return daemon_->Workers().empty(); })) << daemon_->Log();
  }

  void ExpectRefused(const std::vector<std::string>& arguments, const std::vector<std::string>& parts) {
    const CliResult result = cli_.Run(arguments);
    EXPECT_EQ(result.exit_code, 2) << absl::StrCat(arguments[0], " ") << result;
    for (const std::string& part : parts) EXPECT_THAT(result.err, HasSubstr(part));
  }

  // Expects `evaluate` to give the result of the job's own last validation.
  void ExpectAgreement(const std::string& job) {
    const v1::Evaluation validation = Api(*daemon_).Get(job).last_epoch().validation();
    const nlohmann::json evaluation = Json(cli_.Run({"evaluate", job, "-o", "json"}));
    EXPECT_EQ(evaluation.value("loss", 0.0), validation.loss());
    EXPECT_EQ(evaluation["metrics"].value("accuracy", 0.0), validation.metrics().at("accuracy"));
    EXPECT_EQ(evaluation.value("samples", ""), absl::StrCat(validation.samples()));
  }

  // Returns the validation of each epoch of an ended job.
  static std::vector<v1::Evaluation> ValidationsOf(const std::string& job) {
    std::vector<v1::Evaluation> validations;
    for (const v1::JobEvent& event : ReadEvents(*daemon_, job)) {
      if (event.has_epoch()) validations.push_back(event.epoch().validation());
    }
    return validations;
  }

  SafetensorsContents Model(const std::string& job) {
    absl::StatusOr<SafetensorsContents> contents =
        ReadSafetensors(daemon_->JobFolder(job) + "/model.safetensors");
    EXPECT_TRUE(contents.ok()) << contents.status();
    return contents.ok() ? *std::move(contents) : SafetensorsContents();
  }

  // Expects the model of a stopped job to have the parameters of the job's newest checkpoint, which is of its
  // last step. The model can be downloaded and evaluated, and jobs can start from it.
  void ExpectStoppedModel(const std::string& job) {
    Api api(*daemon_);
    const v1::Job stopped = api.Get(job);
    const int64_t step = stopped.summary().steps();
    EXPECT_GT(step, 0) << stopped.DebugString();
    EXPECT_EQ(stopped.last_checkpoint().step(), step);
    EXPECT_THAT(api.Checkpoints(job), Contains(step));
    const absl::StatusOr<SafetensorsContents> checkpoint =
        ReadSafetensors(absl::StrCat(daemon_->JobFolder(job), "/checkpoint-", step, ".safetensors"));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    const SafetensorsContents model = Model(job);
    EXPECT_THAT(model.tensors, SizeIs(6));
    for (const auto& [name, tensor] : model.tensors) {
      const Tensor* const kept = checkpoint->Find("shared/" + name);
      ASSERT_NE(kept, nullptr) << name;
      EXPECT_THAT(tensor.data<float>(), ElementsAreArray(kept->data<float>())) << name;
    }

    const std::string folder =
        scratch_->File(absl::StrCat("fetched-", stopped.attempt(), "-", job.substr(5)));
    const CliResult fetched = cli_.Run({"download", job, "--to", folder});
    EXPECT_EQ(fetched.exit_code, 0) << fetched;
    EXPECT_EQ(ReadFile(folder + "/model.safetensors"),
              ReadFile(daemon_->JobFolder(job) + "/model.safetensors"));
    const nlohmann::json evaluation = Json(cli_.Run({"evaluate", job, "-o", "json"}));
    if (!IsTerminal(stopped.state())) return;
    // Steps with a tiny rate change nothing, so the validation after them measures the model.
    v1::JobSpec next = LongJob(100);
    // A replica's share of a batch decides how its loss is rounded.
    *next.mutable_replicas() = stopped.spec().replicas();
    next.mutable_training()->mutable_optimizer()->mutable_sgd()->set_learning_rate(1e-30);
    next.mutable_initial_weights()->mutable_artifact()->set_job(job);
    const std::string second = api.CreateAndAwait(next, v1::JOB_STATE_SUCCEEDED);
    EXPECT_EQ(api.Get(second).last_epoch().validation().loss(), evaluation.value("loss", 0.0));
  }

  // A job that was created from the spec and has taken some steps.
  std::string TrainSome(const v1::JobSpec& spec) {
    Api api(*daemon_);
    const std::string job = api.Create(spec).name();
    EXPECT_TRUE(WaitUntil([&] { return api.Get(job).progress().step() >= 3; })) << daemon_->Log();
    return job;
  }

  static std::string SmallWith(const std::string& from, const std::string& to) {
    const std::string job = SmallJobYaml({});
    EXPECT_THAT(job, HasSubstr(from));
    return absl::StrReplaceAll(job, {{from, to}});
  }
};

TEST_F(ModelUseTest, DescribesEveryTemplate) {
  for (const char* name :
       {"lenet", "mlp", "resnet18", "resnet34", "resnet50", "vgg11", "matlab_cifar", "mini_gpt"}) {
    const nlohmann::json described = Json(cli_.Run({"describe", "--model", name, "-o", "json"}));
    EXPECT_EQ(described["model"].value("name", ""), name);
    EXPECT_FALSE(described["layers"].empty()) << name;
    EXPECT_NE(described.value("operations", "0"), "0") << name;
    EXPECT_NE(described.value("training_memory_bytes", "0"), "0") << name;
  }
  const CliResult table = cli_.Run({"describe", "--model", "lenet", "--dataset", "fashion-mnist"});
  EXPECT_EQ(table.exit_code, 0) << table;
  EXPECT_THAT(table.out, HasSubstr("431,080"));
  EXPECT_THAT(table.out, HasSubstr("20x24x24"));
  ExpectRefused({"describe", "--model", "resnet18", "--set", "model.template.resnet18.width=-1"},
                {"model.template.resnet18.width", "is -1"});
}

TEST_F(ModelUseTest, AJobOfATemplateHasItsLayers) {
  const std::string yaml = SmallWith(
      "  input: {shape: [1, 8, 8]}\n  layers:\n  - dense: {units: 16, activation: relu}\n"
      "  - dense: {units: 4}\n",
      "  template: {mlp: {units: [6]}}\n");
  const std::string job = cli_.Train(yaml);
  const v1::Model model = Api(*daemon_).Get(job).spec().model();
  EXPECT_FALSE(model.has_template_());
  EXPECT_EQ(model.name(), "mlp");
  EXPECT_THAT(model.input().shape(), ElementsAre(1, 8, 8));
  ASSERT_EQ(model.layers_size(), 2);
  EXPECT_EQ(model.layers(1).dense().units(), 4);
  const nlohmann::json described = Json(cli_.Run({"describe", "--model", job, "-o", "json"}));
  EXPECT_EQ(described.value("parameters", ""), absl::StrCat(6 * 65 + 4 * 7));
}

TEST_F(ModelUseTest, EvaluationAgreesWithTheLastValidation) {
  for (const int replicas : {1, 2}) ExpectAgreement(cli_.Train(SmallJobYaml({.replicas = replicas})));
}

TEST_F(ModelUseTest, PredictsImagesOfEachClass) {
  const std::string job = cli_.Train(FashionMnistYaml(6000, 1000, 2, 2));
  ExpectAgreement(job);
  const std::string images = Unzip(absl::StrCat(kFashionMnist, "/t10k-images-idx3-ubyte.gz"), 16);
  const std::string labels = Unzip(absl::StrCat(kFashionMnist, "/t10k-labels-idx1-ubyte.gz"), 8);
  ASSERT_EQ(images.size(), 784 * labels.size());
  std::vector<std::string> command = {"predict", job, "-o", "json"};
  std::vector<int> classes;
  std::vector<int> counts(10, 0);
  for (size_t i = 0; i < labels.size() && classes.size() < 100; ++i) {
    const int label = labels[i];
    if (counts[label] == 10) continue;
    const absl::string_view grey = absl::string_view(images).substr(784 * i, 784);
    std::string pixels(grey);
    // Every second image has three equal channels, which the daemon converts to grey.
    const bool colours = counts[label]++ % 2 == 1;
    if (colours) {
      pixels.clear();
      for (const char pixel : grey) pixels.append(3, pixel);
    }
    classes.push_back(label);
    command.push_back(
        scratch_->Write(absl::StrCat(classes.size(), ".png"), PngFile(28, 28, colours ? 3 : 1, pixels)));
  }
  ASSERT_EQ(classes.size(), 100u);
  const nlohmann::json predictions = Json(cli_.Run(command));
  ASSERT_EQ(predictions.size(), 100u);
  int right = 0;
  for (size_t i = 0; i < classes.size(); ++i) {
    const nlohmann::json& prediction = predictions[i];
    EXPECT_EQ(prediction.value("input", ""), command[4 + i]);
    ASSERT_EQ(prediction["classes"].size(), 5u);
    const nlohmann::json& first = prediction["classes"][0];
    if (std::stoi(first.value("index", "0")) == classes[i]) ++right;
    EXPECT_GE(first.value("probability", 0.0), prediction["classes"][1].value("probability", 0.0));
    EXPECT_NE(first.value("name", ""), "");
  }
  // The accuracy of the job, with a margin because a hundred files are few.
  EXPECT_GT(right, 65);

  const CliResult table = cli_.Run({"predict", job, command[4], "--top-k", "2"});
  EXPECT_EQ(table.exit_code, 0) << table;
  EXPECT_THAT(table.out, HasSubstr("PROBABILITY"));

  // A picture of another size is resized. A truncated picture and a file that is no picture are refused.
  const std::string whole = ReadFile(command[4]);
  const std::string cut = scratch_->Write("cut.png", whole.substr(0, whole.size() / 2));
  const std::string wide = scratch_->Write("wide.png", PngFile(28, 30, 1, std::string(28 * 30, 'x')));
  const std::string text = scratch_->Write("text.png", "\x89PNG\r\n\x1A\n but no more");
  const CliResult resized = cli_.Run({"predict", job, wide});
  EXPECT_EQ(resized.exit_code, 0) << resized;
  ExpectRefused({"predict", job, command[4], cut, wide, text}, {cut + ": ", text + ": "});
}

TEST_F(ModelUseTest, PredictsArraysAndTables) {
  const std::string job = cli_.Train(SmallJobYaml({}));
  std::string csv;
  for (int row = 0; row < 3; ++row) {
    for (int i = 0; i < 64; ++i) absl::StrAppend(&csv, i == 0 ? "" : ",", (row * 37 + i * 3) % 256);
    csv += "\n";
  }
  const nlohmann::json rows =
      Json(cli_.Run({"predict", job, scratch_->Write("rows.csv", csv), "-o", "json"}));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[2].value("sample", ""), "2");
  EXPECT_EQ(rows[0]["classes"].size(), 4u);

  const std::string two = scratch_->Write("two.npy", Npy("|u1", "(2, 1, 8, 8)", std::string(128, 'a')));
  EXPECT_EQ(Json(cli_.Run({"predict", job, two, "-o", "json"})).size(), 2u);
  const std::string one = scratch_->Write("one.npy", Npy("|u1", "(1, 8, 8)", std::string(64, 'a')));
  EXPECT_EQ(Json(cli_.Run({"predict", job, one, "-o", "json"})).size(), 1u);

  // The process of the first prediction still has the model.
  EXPECT_EQ(Json(cli_.Run({"predict", job, scratch_->File("rows.csv"), "-o", "json"})), rows);

  const std::string wrong_type =
      scratch_->Write("complex.npy", Npy("<c8", "(1, 8, 8)", std::string(512, 'a')));
  ExpectRefused({"predict", job, wrong_type}, {wrong_type + ": "});
  const std::string wrong_shape = scratch_->Write("shape.npy", Npy("|u1", "(2, 7)", std::string(14, 'a')));
  ExpectRefused({"predict", job, wrong_shape}, {wrong_shape + ": ", "[2, 7]", "[1, 8, 8]"});
  const std::string ragged = scratch_->Write("ragged.csv", csv + "1,2,3\n");
  ExpectRefused({"predict", job, ragged}, {ragged + ": ", "row 4"});
}

TEST_F(ModelUseTest, FineTunesFromAJob) {
  const std::string first = cli_.Train(SmallJobYaml({}));
  const std::string yaml =
      absl::StrCat(SmallWith("units: 4}", "units: 3}"), "initial_weights: {artifact: {job: ", first,
                   "}, except_layers: [dense_2]}\nfrozen_layers: [dense_1]\n");
  const std::string second = cli_.Train(absl::StrReplaceAll(yaml, {{"classes: 4", "classes: 3"}}));
  const SafetensorsContents before = Model(first);
  const SafetensorsContents after = Model(second);
  for (const char* name : {"dense_1.weight", "dense_1.bias"}) {
    ASSERT_NE(after.Find(name), nullptr);
    EXPECT_THAT(after.Find(name)->data<float>(),
                ::testing::ElementsAreArray(before.Find(name)->data<float>()))
        << name;
  }
  ASSERT_NE(after.Find("dense_2.weight"), nullptr);
  EXPECT_EQ(after.Find("dense_2.weight")->shape()[0], 3);

  // No parameter is trained, so the model equals its initial weights.
  const std::string whole =
      absl::StrCat(SmallJobYaml({.epochs = 1}), "initial_weights: {artifact: {job: ", first, "}}\n");
  const std::string third = cli_.Train(whole, {"--set", "training.optimizer.sgd.learning_rate=1e-30"});
  EXPECT_THAT(Model(third).Find("dense_2.weight")->data<float>(),
              ::testing::ElementsAreArray(before.Find("dense_2.weight")->data<float>()));
  // The kept copy of the first job's weights is no longer needed.
  const std::string kept = scratch_->File("state/kept-weights");
  EXPECT_TRUE(WaitUntil([&] { return std::filesystem::is_empty(kept); }));
}

// The header is valid, and so are the numbers. Only the digest differs.
TEST_F(ModelUseTest, AModelWithChangedBytesIsRefused) {
  const std::string job = cli_.Train(SmallJobYaml({}));
  const std::string path = daemon_->JobFolder(job) + "/model.safetensors";
  const std::string good_copy = scratch_->File("good.safetensors");
  std::filesystem::copy_file(path, good_copy);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-200, std::ios::end) << std::string(200, '>');
  file.close();
  ExpectRefused({"evaluate", job}, {"model.safetensors", "SHA-256 begins with", "good copy"});
  ExpectRefused({"predict", job, scratch_->Write("some.csv", "1\n")}, {"model.safetensors", "SHA-256"});

  const std::string yaml = absl::StrCat(SmallJobYaml({}), "initial_weights: {artifact: {job: ", job, "}}\n");
  const CliResult result =
      cli_.Run({"submit", scratch_->Write("damaged.yaml", yaml), "--follow"}, absl::Minutes(4));
  EXPECT_EQ(result.exit_code, 1) << result;
  const v1::Job second = Api(*daemon_).Get(Cli::SubmittedJob(result));
  EXPECT_EQ(second.reason(), v1::STATE_REASON_DATA_ERROR);
  EXPECT_THAT(second.message(), HasSubstr("SHA-256 begins with"));
  EXPECT_EQ(second.attempt(), 1);

  // The good copy is another file than the sandbox of an earlier prediction allows.
  const std::string sample = scratch_->Write("one.npy", Npy("|u1", "(1, 8, 8)", std::string(64, 'a')));
  ExpectRefused({"predict", job, sample}, {"model.safetensors", "SHA-256"});
  std::filesystem::rename(good_copy, path);
  const CliResult predicted = cli_.Run({"predict", job, sample});
  EXPECT_EQ(predicted.exit_code, 0) << predicted;
}

TEST_F(ModelUseTest, BeginsWithAFile) {
  const std::string first = cli_.Train(SmallJobYaml({}));
  const std::string model = ReadFile(daemon_->JobFolder(first) + "/model.safetensors");
  scratch_->Write("data/weights.safetensors", model);
  scratch_->Write("data/cut.safetensors", model.substr(0, model.size() - 100));
  cli_.Train(
      absl::StrCat(SmallJobYaml({}), "initial_weights: {file: weights.safetensors, layers: ['dense_*']}\n"));

  const auto refuse = [&](const std::string& weights, const std::vector<std::string>& parts) {
    ExpectRefused({"validate", scratch_->Write("bad.yaml", SmallJobYaml({}) + weights)}, parts);
  };
  refuse("initial_weights: {file: cut.safetensors}\n",
         {"initial_weights.file", "cut.safetensors", "cut short"});
  refuse("initial_weights: {file: none.safetensors}\n", {"initial_weights.file", "none.safetensors"});
  refuse("initial_weights: {file: /etc/passwd}\n", {"initial_weights.file", "data folder"});
  refuse("initial_weights: {file: weights.safetensors, layers: [conv2d_1]}\n",
         {"initial_weights.layers[0]", "conv2d_1", "dense_1"});
  refuse("frozen_layers: [dense_3]\n", {"frozen_layers[0]", "dense_3", "dense_1"});
  refuse("initial_weights: {artifact: {job: jobs/none}}\n", {"initial_weights.artifact.job", "no such job"});
  refuse(absl::StrCat("initial_weights: {artifact: {job: ", first, ", artifact: best}}\n"),
         {"initial_weights.artifact", "model.safetensors"});
  ExpectRefused(
      {"validate", scratch_->Write("bad.yaml", SmallWith("units: 16", "units: 17") +
                                                   "initial_weights: {file: weights.safetensors}\n")},
      {"[16, 64]", "[17, 64]", "except_layers"});
}

// As a user of another machine begins with torchvision's weights: the file is in no data folder.
TEST_F(ModelUseTest, BeginsWithAnUploadedFile) {
  const std::string first = cli_.Train(SmallJobYaml({}));
  const std::string model = ReadFile(daemon_->JobFolder(first) + "/model.safetensors");
  scratch_->Write("data/weights.safetensors", model);
  const std::string here = scratch_->Write("here/weights.safetensors", model);
  const std::string plain = SmallJobYaml({});
  const std::string by_file =
      cli_.Train(absl::StrCat(plain, "initial_weights: {file: weights.safetensors}\n"));

  // Both CPU devices are taken, so the job waits while the upload is removed and the daemon restarts.
  const std::string file = scratch_->Write("plain.yaml", plain);
  const CliResult long_one =
      cli_.Run({"submit", file, "--set", "training.epochs=1000000", "--set", "replicas.count=2"});
  ASSERT_EQ(long_one.exit_code, 0) << long_one;
  const CliResult submitted = cli_.Run({"submit", file, "--weights", here});
  ASSERT_EQ(submitted.exit_code, 0) << submitted;
  const std::string second = Cli::SubmittedJob(submitted);
  Api api(*daemon_);
  const std::string uploaded = api.Get(second).spec().initial_weights().file();
  ASSERT_THAT(uploaded, ::testing::StartsWith("uploads/"));
  const std::string upload = uploaded.substr(0, uploaded.rfind('/'));
  const CliResult removed = cli_.Run({"datasets", "uploads", "--remove", upload});
  ASSERT_EQ(removed.exit_code, 0) << removed;
  EXPECT_TRUE(WaitUntil([&] { return !std::filesystem::exists(scratch_->File("state/" + upload)); }));
  ExpectRefused(
      {"validate",
       scratch_->Write("bad.yaml", absl::StrCat(plain, "initial_weights: {file: ", uploaded, "}\n"))},
      {"initial_weights.file", "there is no such upload"});
  daemon_->Kill();
  const absl::Status restarted = daemon_->Start();
  ASSERT_TRUE(restarted.ok()) << restarted;
  ASSERT_EQ(api.Get(second).state(), v1::JOB_STATE_QUEUED);
  const std::string kept = absl::StrCat(scratch_->File("state/kept-weights/"),
                                        second.substr(second.find('/') + 1), ".safetensors");
  EXPECT_EQ(ReadFile(kept), model);
  ASSERT_EQ(cli_.Run({"cancel", Cli::SubmittedJob(long_one)}).exit_code, 0);
  const CliResult followed = cli_.Run({"watch", second}, absl::Minutes(4));
  EXPECT_EQ(followed.exit_code, 0) << followed;
  const SafetensorsContents expected = Model(by_file), actual = Model(second), beginning = Model(first);
  for (const char* name : {"dense_1.weight", "dense_2.bias"}) {
    ASSERT_NE(actual.Find(name), nullptr);
    EXPECT_THAT(actual.Find(name)->data<float>(),
                ::testing::ElementsAreArray(expected.Find(name)->data<float>()))
        << name;
    EXPECT_THAT(actual.Find(name)->data<float>(),
                ::testing::Not(::testing::ElementsAreArray(beginning.Find(name)->data<float>())))
        << name;
  }
  // A fork starts from its checkpoint, without the file.
  const CliResult forked =
      cli_.Run({"fork", second, "--set", "training.epochs=9", "--follow"}, absl::Minutes(4));
  EXPECT_EQ(forked.exit_code, 0) << forked;
  EXPECT_TRUE(WaitUntil([&] { return !std::filesystem::exists(kept); }));
}

TEST_F(ModelUseTest, NamesWhatIsWrongWithAnEvaluation) {
  const std::string job = cli_.Train(SmallJobYaml({}));
  ExpectRefused({"evaluate", job, "--dataset", "fashion-mnist"}, {"[1, 28, 28]", "[1, 8, 8]"});
  ExpectRefused({"evaluate", job, "--dataset", "fashion-minst"}, {"fashion-mnist"});
  const std::string other = scratch_->Write(
      "other.yaml", "synthetic: {shape: [1, 8, 8], classes: 5, train_samples: 8, validation_samples: 8}\n");
  ExpectRefused({"evaluate", job, "--dataset", other}, {"5 classes"});
  ExpectRefused({"evaluate", job, "--artifact", "none"}, {"none", "model.safetensors"});

  Api api(*daemon_);
  const std::string running = api.CreateAndAwait(LongJob(1000000), v1::JOB_STATE_RUNNING);
  const CliResult early = cli_.Run({"evaluate", running});
  EXPECT_NE(early.exit_code, 0);
  EXPECT_THAT(early.err, HasSubstr(": it has none yet"));
  api.Cancel(running);
  api.WaitFor(running, v1::JOB_STATE_CANCELLED);
}

TEST_F(ModelUseTest, ACancelledJobsModelIsUsedLikeAnyOther) {
  for (const int workers : {1, 2}) {
    v1::JobSpec spec = LongJob(1'000'000);
    spec.mutable_replicas()->set_count(workers);
    if (workers > 1) spec.mutable_replicas()->set_workers(workers);
    const std::string job = TrainSome(spec);
    const auto follower = cli_.Start({"watch", job});
    EXPECT_EQ(cli_.Run({"cancel", job}).exit_code, 0);
    const CliResult followed = follower->Finish();
    EXPECT_EQ(followed.exit_code, 3) << followed;
    EXPECT_THAT(followed.out, HasSubstr("its model can be downloaded"));
    EXPECT_THAT(followed.out, HasSubstr("made model.safetensors"));
    ExpectStoppedModel(job);
  }
}

TEST_F(ModelUseTest, AJobOutOfTimeKeepsItsCheckpointAndItsModel) {
  v1::JobSpec spec = LongJob(1'000'000);
  // From the start of its worker on, which takes longer on a busy machine.
  spec.set_time_limit_seconds(10);
  const std::string job = TrainSome(spec);
  const v1::Job ended = Api(*daemon_).WaitFor(job, v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(ended.state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(ended.reason(), v1::STATE_REASON_TIME_LIMIT_EXCEEDED);
  EXPECT_THAT(ended.message(), HasSubstr(absl::StrCat("Stopped after step ", ended.summary().steps())));
  ExpectStoppedModel(job);
}

TEST_F(ModelUseTest, APausedJobsModelIsItsUntilItTrainsOn) {
  Api api(*daemon_);
  const std::string job = TrainSome(LongJob(1'000'000));
  api.Pause(job);
  EXPECT_EQ(api.WaitFor(job, v1::JOB_STATE_PAUSED).state(), v1::JOB_STATE_PAUSED);
  ExpectStoppedModel(job);
  const std::string sample = scratch_->Write("one.npy", Npy("|u1", "(1, 28, 28)", std::string(784, 'a')));
  const nlohmann::json prediction = Json(cli_.Run({"predict", job, sample, "--outputs", "-o", "json"}));
  api.Resume(job);
  EXPECT_EQ(api.WaitFor(job, v1::JOB_STATE_RUNNING).state(), v1::JOB_STATE_RUNNING);
  ExpectRefused({"evaluate", job}, {": it has none yet"});
  api.Pause(job);
  EXPECT_EQ(api.WaitFor(job, v1::JOB_STATE_PAUSED).state(), v1::JOB_STATE_PAUSED);
  const std::string checkpoint =
      absl::StrCat("model-", api.Get(job).last_checkpoint().step(), ".safetensors");
  const nlohmann::json later = Json(cli_.Run({"predict", job, sample, "--outputs", "-o", "json"}));
  EXPECT_NE(later, prediction);
  EXPECT_EQ(later,
            Json(cli_.Run({"predict", job, sample, "--outputs", "--artifact", checkpoint, "-o", "json"})));
  EXPECT_EQ(api.Cancel(job).state(), v1::JOB_STATE_CANCELLED);
  ExpectStoppedModel(job);
}

// Each checkpoint's model can be evaluated, asked and downloaded. Its evaluation is the validation of its
// epoch.
TEST_F(ModelUseTest, ACheckpointIsUsedAsAModel) {
  Api api(*daemon_);
  for (const int replicas : {1, 2}) {
    const std::string job =
        cli_.Train(absl::StrCat(SmallWith("  layers:\n", "  layers:\n  - batch_norm: {}\n"),
                                "checkpoints: {keep_last: 2}\n"),
                   {"--set", absl::StrCat("replicas.count=", replicas), "--set", "training.epochs=3", "--set",
                    "training.weight_average={decay: 0.5}"});
    const std::vector<int64_t> steps = api.Checkpoints(job);
    EXPECT_THAT(steps, ElementsAre(24, 16));
    const std::vector<v1::Evaluation> measured = ValidationsOf(job);
    ASSERT_THAT(measured, SizeIs(3));
    EXPECT_NE(measured[2].loss(), measured[1].loss());
    const std::string sample = scratch_->Write("one.npy", Npy("|u1", "(1, 8, 8)", std::string(64, 'a')));
    const std::string folder = scratch_->File(absl::StrCat("checkpoints-", replicas));
    for (size_t i = 0; i < steps.size(); ++i) {
      const std::string model = absl::StrCat("model-", steps[i], ".safetensors");
      const nlohmann::json evaluation = Json(cli_.Run({"evaluate", job, "--artifact", model, "-o", "json"}));
      const v1::Evaluation& validation = measured[measured.size() - 1 - i];
      EXPECT_EQ(evaluation.value("loss", 0.0), validation.loss()) << model;
      EXPECT_EQ(evaluation["metrics"].value("accuracy", 0.0), validation.metrics().at("accuracy")) << model;
      const CliResult predicted = cli_.Run({"predict", job, sample, "--artifact", model});
      EXPECT_EQ(predicted.exit_code, 0) << predicted;
      const CliResult fetched = cli_.Run({"download", job, model, "--to", folder});
      EXPECT_EQ(fetched.exit_code, 0) << fetched;
    }
    // The last model is the job's, byte for byte. The other model has its names, and other weights.
    EXPECT_EQ(ReadFile(folder + "/model-24.safetensors"),
              ReadFile(daemon_->JobFolder(job) + "/model.safetensors"));
    const absl::StatusOr<SafetensorsContents> earlier = ReadSafetensors(folder + "/model-16.safetensors");
    ASSERT_TRUE(earlier.ok()) << earlier.status();
    const SafetensorsContents last = Model(job);
    EXPECT_EQ(earlier->metadata, last.metadata);
    ASSERT_EQ(earlier->tensors.size(), last.tensors.size());
    for (const auto& [name, tensor] : last.tensors) {
      ASSERT_NE(earlier->Find(name), nullptr) << name;
      EXPECT_EQ(earlier->Find(name)->shape(), tensor.shape()) << name;
      EXPECT_THAT(earlier->Find(name)->data<float>(), Not(ElementsAreArray(tensor.data<float>()))) << name;
    }
    ExpectRefused({"evaluate", job, "--artifact", "model-8.safetensors"},
                  {"no checkpoint of step 8; give one of the steps 24, 16"});
    ExpectRefused({"download", job, "model-8.safetensors", "--to", folder}, {"no checkpoint of step 8"});
    ExpectRefused(
        {"validate",
         scratch_->Write("bad.yaml", absl::StrCat(SmallJobYaml({}), "initial_weights: {artifact: {job: ", job,
                                                  ", artifact: model-16.safetensors}}\n"))},
        {"initial_weights.artifact.artifact", "is the model of a checkpoint"});

    const std::string path = daemon_->JobFolder(job) + "/checkpoint-16.safetensors";
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-8, std::ios::end) << std::string(8, '>');
    file.close();
    for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
             {"evaluate", job, "--artifact", "model-16.safetensors"},
             {"predict", job, sample, "--artifact", "model-16.safetensors"},
             {"download", job, "model-16.safetensors", "--to", folder, "--force"}}) {
      ExpectRefused(command, {"checkpoint-16.safetensors cannot be used", "was changed"});
    }
    EXPECT_EQ(ReadSafetensors(folder + "/model-16.safetensors")->metadata, last.metadata);
  }
}

TEST_F(ModelUseTest, ARunningJobsCheckpointIsUsedAsAModel) {
  Api api(*daemon_);
  v1::JobSpec spec = LongJob(1'000'000);
  // Keeps the first checkpoint for thousands of steps.
  spec.mutable_checkpoints()->set_every_steps(200);
  spec.mutable_checkpoints()->set_keep_last(100);
  const std::string job = api.Create(spec).name();
  EXPECT_TRUE(WaitUntil([&] { return !api.Checkpoints(job).empty(); })) << daemon_->Log();
  const std::string name = absl::StrCat("model-", api.Checkpoints(job).back(), ".safetensors");
  ExpectRefused({"evaluate", job}, {"it has none yet", "the model of its newest checkpoint, model-"});
  const std::string folder = scratch_->File("running");
  const nlohmann::json evaluation = Json(cli_.Run({"evaluate", job, "--artifact", name, "-o", "json"}));
  const CliResult fetched = cli_.Run({"download", job, name, "--to", folder});
  EXPECT_EQ(fetched.exit_code, 0) << fetched;
  EXPECT_EQ(api.Get(job).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(api.Cancel(job).state(), v1::JOB_STATE_CANCELLING);
  api.WaitFor(job, v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(Json(cli_.Run({"evaluate", job, "--artifact", name, "-o", "json"})), evaluation);
  const CliResult again = cli_.Run({"download", job, name, "--to", scratch_->File("cancelled")});
  EXPECT_EQ(again.exit_code, 0) << again;
  EXPECT_EQ(ReadFile(absl::StrCat(folder, "/", name)),
            ReadFile(scratch_->File(absl::StrCat("cancelled/", name))));
}

TEST_F(ModelUseTest, AFailedJobsCheckpointIsUsedAsAModel) {
  Api api(*daemon_);
  // From the second epoch on, the rate is too large.
  v1::JobSpec spec = SmallJob({.epochs = 3});
  v1::Schedule& schedule = *spec.mutable_training()->mutable_schedule();
  schedule.set_unit(v1::SCHEDULE_UNIT_EPOCHS);
  schedule.mutable_piecewise_constant()->add_boundaries(1);
  for (const double factor : {1.0, 1e30}) schedule.mutable_piecewise_constant()->add_factors(factor);
  const std::string job = api.CreateAndAwait(spec, v1::JOB_STATE_FAILED);
  ExpectRefused({"evaluate", job}, {"ended without a model", "used as model-8.safetensors"});
  const nlohmann::json evaluation =
      Json(cli_.Run({"evaluate", job, "--artifact", "model-8.safetensors", "-o", "json"}));
  EXPECT_EQ(evaluation.value("loss", 0.0), ValidationsOf(job).at(0).loss());
  const CliResult fetched =
      cli_.Run({"download", job, "model-8.safetensors", "--to", scratch_->File("failed")});
  EXPECT_EQ(fetched.exit_code, 0) << fetched;
  const absl::StatusOr<SafetensorsContents> model =
      ReadSafetensors(scratch_->File("failed/model-8.safetensors"));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(model->tensors, SizeIs(4));
}

TEST_F(ModelUseTest, CallsWaitForEachOtherAndEndWithTheirClients) {
  const std::string job = cli_.Train(SmallJobYaml({}));
  // Large enough to last; only one runs at once.
  const std::string large = scratch_->Write(
      "large.yaml",
      "synthetic: {shape: [1, 8, 8], classes: 4, train_samples: 8, validation_samples: 4000000}\n");
  const auto first = cli_.Start({"evaluate", job, "--dataset", large, "--batch-size", "1"});
  ASSERT_TRUE(WaitUntil([] { return daemon_->Workers().size() == 1; })) << daemon_->Log();
  const auto second = cli_.Start({"evaluate", job, "-o", "json"});
  first->Signal(SIGINT);
  EXPECT_EQ(first->Finish().exit_code, 130);
  const CliResult finished = second->Finish();
  EXPECT_EQ(finished.exit_code, 0) << finished;
}

}  // namespace
}  // namespace tandem::testing
