// Faults of a job, its data, a token or a daemon's surroundings. The daemon must refuse each at once with a
// message that names the place, and must leave nothing behind.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/api.h"
#include "tests/integration/cli.h"
#include "tests/integration/daemon_process.h"
#include "tests/integration/idx_files.h"
#include "tests/integration/job_specs.h"
#include "tests/integration/processes.h"
#include "tests/integration/scratch_folder.h"
#include "tests/integration/suite_daemon_fixture.h"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kJob[] = R"(name: bad
dataset:
  synthetic: {shape: [1, 28, 28], classes: 10, train_samples: 256, validation_samples: 64}
model:
  input: {shape: [1, 28, 28]}
  layers:
  - conv2d: {filters: 4, kernel: [5, 5]}
  - name: pool
    max_pool2d: {size: [2, 2]}
  - dense: {units: 10}
training:
  loss: {softmax_cross_entropy: {}}
  optimizer: {sgd: {learning_rate: 0.1}}
  global_batch_size: 32
  epochs: 1
replicas: {count: 2}
)";

// A single daemon for all tests, so that the next test finds the remains of a bad job.
class BadInputTest : public SuiteDaemonFixture {
 protected:
  // No job, no folder of one, no worker; and the daemon answers.
  void TearDown() override {
    ASSERT_TRUE(daemon_->IsRunning()) << daemon_->Log();
    EXPECT_THAT(Api(*daemon_).List(), IsEmpty());
    EXPECT_THAT(daemon_->Workers(), IsEmpty());
    std::error_code error;
    EXPECT_TRUE(std::filesystem::is_empty(scratch_->File("state/jobs"), error) || error);
  }

  // Expects a refused job file: exit code 2, and a message with each of these parts, in any case of letters.
  void ExpectRefused(const std::string& yaml, const std::vector<std::string>& parts,
                     const std::vector<std::string>& more_arguments = {}) {
    std::vector<std::string> arguments = {"submit", scratch_->Write("bad.yaml", yaml)};
    arguments.insert(arguments.end(), more_arguments.begin(), more_arguments.end());
    const CliResult result = cli_.Run(arguments);
    EXPECT_EQ(result.exit_code, 2) << result;
    const std::string message = absl::AsciiStrToLower(result.err);
    for (const std::string& part : parts) EXPECT_THAT(message, HasSubstr(absl::AsciiStrToLower(part)));
  }
  void ExpectSetRefused(const std::string& set, const std::vector<std::string>& parts) {
    SCOPED_TRACE(set);
    ExpectRefused(kJob, parts, {"--set", set});
  }

  // kJob with one text for another, which it must have.
  static std::string With(const std::string& from, const std::string& to) {
    const std::string job = kJob;
    EXPECT_THAT(job, HasSubstr(from));
    return absl::StrReplaceAll(job, {{from, to}});
  }

  // kJob on IDX files of the data folder.
  static std::string OnFiles(const std::string& images, const std::string& labels, int classes = 10) {
    return With("synthetic: {shape: [1, 28, 28], classes: 10, train_samples: 256, validation_samples: 64}",
                absl::StrCat("idx: {train_images: \"", images, "\", train_labels: \"", labels,
                             "\", classes: ", classes, "}"));
  }
};

TEST_F(BadInputTest, UnknownLayer) {
  ExpectRefused(With("- dense: {units: 10}", "- dence: {units: 10}"), {"model.layers[2]", "dence", "dense"});
  ExpectRefused(With("- dense: {units: 10}", "- {}"), {"model.layers[2]"});
}

TEST_F(BadInputTest, YamlTypo) {
  ExpectRefused(With("global_batch_size", "globl_batch_size"),
                {"training", "globl_batch_size", "global_batch_size"});
  ExpectRefused(With("filters: 4", "filtres: 4"), {"model.layers[0].conv2d", "filtres", "filters"});
  ExpectRefused(With("epochs: 1", "epochs: many"), {"training.epochs", "many"});
  ExpectRefused(With("units: 10}", "units: 10, activation: relo}"),
                {"model.layers[2].dense.activation", "relo", "relu"});
  ExpectRefused(With("epochs: 1", "epochs: 1\n  epochs: 2"), {"training.epochs"});
  ExpectRefused("name: [unclosed\n", {"bad.yaml"});
  ExpectRefused("", {"bad.yaml"});
}

// All named pictures arrive, although their names and folders are long.
TEST_F(BadInputTest, ManyBadPictures) {
  const std::string folder = absl::StrCat("pictures-of-", std::string(150, 'x'));
  const std::string name = "/a-class-with-a-long-name/a-picture-of-a-camera-with-a-long-name-";
  for (int i = 10; i < 33; ++i) scratch_->Write(absl::StrCat("data/", folder, name, i, ".jpg"), "no picture");
  std::vector<std::string> parts = {"dataset.image_folder.train", "has bad images, 23 of 23"};
  for (int i = 10; i < 30; ++i) parts.push_back(absl::StrCat("-name-", i, ".jpg is no picture"));
  ExpectRefused(
      With("synthetic: {shape: [1, 28, 28], classes: 10, train_samples: 256, validation_samples: 64}",
           absl::StrCat("image_folder: {train: ", folder, "}")),
      parts);
}

// A user whose quota is one device, and a queue of one job: the job could never run, and a sweep would wait
// with too many.
TEST_F(BadInputTest, MoreThanAUsersQuota) {
  const CliResult token =
      cli_.Run({"tokens", "create", "ann", "--max-devices", "1", "--max-queued-jobs", "1"});
  ASSERT_EQ(token.exit_code, 0) << token;
  Cli ann(*scratch_);
  ann.Use(*daemon_);
  ann.SetEnvironment("TANDEM_TOKEN_FILE", scratch_->Write("ann-token", token.out));
  const std::string job = scratch_->Write("ann.yaml", kJob);
  CliResult refused = ann.Run({"submit", job});
  EXPECT_EQ(refused.exit_code, 2) << refused;
  EXPECT_THAT(refused.err, HasSubstr(": replicas: needs 2 devices"));
  EXPECT_THAT(refused.err, HasSubstr("the quota of \"ann\" is 1"));
  EXPECT_THAT(refused.err, HasSubstr("use fewer replicas"));
  refused = ann.Run({"sweep", job, "--set", "replicas.count=1", "--grid", "training.epochs=1,2"});
  EXPECT_EQ(refused.exit_code, 2) << refused;
  EXPECT_THAT(refused.err, HasSubstr("of at most 1 queued jobs"));
  EXPECT_THAT(refused.err, HasSubstr("cannot queue the 2 jobs of the sweep"));
  EXPECT_EQ(cli_.Run({"tokens", "revoke", "ann"}).exit_code, 0);
}

TEST_F(BadInputTest, ShapesThatDoNotFit) {
  // The network's output against the data's classes.
  ExpectRefused(With("units: 10", "units: 7"), {"dense_1", "7", "10"});
  // The input against the data set's samples: both shapes.
  ExpectRefused(With("input: {shape: [1, 28, 28]}", "input: {shape: [3, 32, 32]}"),
                {"model.input.shape", "[3, 32, 32]", "[1, 28, 28]"});
  // A window larger than its input. The message has the layer, the window and the input's shape.
  ExpectRefused(With("max_pool2d: {size: [2, 2]}", "max_pool2d: {size: [30, 8]}"),
                {"model.layers[1]", "pool", "[30, 8]", "[4, 24, 24]"});
  ExpectRefused(With("kernel: [5, 5]", "kernel: [29, 5]"),
                {"model.layers[0]", "conv2d_1", "29", "[1, 28, 28]"});
  // A convolution on an input that is not an image.
  ExpectRefused(
      With("- dense: {units: 10}", "- flatten: {}\n  - name: late\n    conv2d: {filters: 3, kernel: [3]}"),
      {"model.layers[3]", "late", "[576]"});
  // Groups that do not divide the channels.
  ExpectRefused(With("filters: 4,", "filters: 4, groups: 3,"), {"model.layers[0].conv2d.groups", "3"});
}

TEST_F(BadInputTest, LayersThatDoNotConnect) {
  ExpectRefused(With("- name: pool", "- name: pool\n    inputs: [nowhere]"),
                {"model.layers[1].inputs", "nowhere"});
  ExpectRefused(With("- name: pool", "- name: pool\n    inputs: [pool]"), {"model.layers[1].inputs", "pool"});
  ExpectRefused(With("- dense: {units: 10}", "- name: pool\n    dense: {units: 10}"),
                {"model.layers[2].name", "pool"});
  ExpectRefused(With("- name: pool", "- name: \"../pool\""), {"model.layers[1].name"});
  ExpectRefused(With("- name: pool", "- name: input"), {"model.layers[1].name", "input"});
}

TEST_F(BadInputTest, NegativeSizes) {
  ExpectRefused(With("filters: 4", "filters: -4"), {"model.layers[0].conv2d.filters", "-4"});
  ExpectRefused(With("units: 10", "units: 0"), {"model.layers[2].dense.units"});
  ExpectRefused(With("size: [2, 2]", "size: [-2, 2]"), {"model.layers[1].max_pool2d.size", "-2"});
  ExpectRefused(With("input: {shape: [1, 28, 28]}", "input: {shape: [1, -28, 28]}"),
                {"model.input.shape", "-28"});
  ExpectSetRefused("training.global_batch_size=-1", {"training.global_batch_size", "-1"});
  ExpectSetRefused("training.epochs=-1", {"training.epochs", "-1"});
  ExpectSetRefused("dataset.synthetic.train_samples=-5", {"dataset.synthetic.train_samples", "-5"});
  ExpectSetRefused("dataset.synthetic.classes=-5", {"dataset.synthetic.classes", "-5"});
  ExpectSetRefused("dataset.train_limit=-5", {"dataset.train_limit", "-5"});
  ExpectSetRefused("replicas.count=-1", {"replicas.count", "-1"});
  ExpectSetRefused("replicas.prefetch=65", {"replicas.prefetch", "65", "64"});
  ExpectSetRefused("training.optimizer.sgd.learning_rate=-0.1", {"training.optimizer.sgd.learning_rate"});
  ExpectSetRefused("training.optimizer.sgd.learning_rate=.nan", {"training.optimizer.sgd.learning_rate"});
  ExpectSetRefused("training.report.every_seconds=0.001", {"training.report.every_seconds"});
  ExpectSetRefused("name=\"with space\"", {"name"});
}

TEST_F(BadInputTest, HugeSizes) {
  ExpectRefused(With("units: 10", "units: 9223372036854775807"), {"model.layers[2]"});
  ExpectRefused(With("filters: 4", "filters: 1000000000000"), {"model.layers[0]"});
  ExpectRefused(With("filters: 4", "filters: 50000000"), {"memory"});
  ExpectRefused(With("units: 10", "units: 99999999999999999999"), {"model.layers[2].dense.units"});
  ExpectRefused(With("kernel: [5, 5]", "kernel: [4000000000000000000, 4000000000000000000]"),
                {"model.layers[0]"});
  ExpectRefused(absl::StrReplaceAll(kJob, {{"[1, 28, 28]", "[4000000, 4000000, 4000000]"}}), {"shape"});
  ExpectSetRefused("training.global_batch_size=9223372036854775807", {"training.global_batch_size"});
  ExpectSetRefused("dataset.synthetic.train_samples=9223372036854775807",
                   {"dataset.synthetic.train_samples"});
  ExpectSetRefused("dataset.synthetic.classes=9223372036854775807", {"dataset.synthetic.classes"});
  ExpectSetRefused("replicas.count=2147483647", {"replicas.count", "2"});
  ExpectSetRefused("replicas.count=3", {"replicas.count", "3", "2"});
}

TEST_F(BadInputTest, ABatchSmallerThanTheReplicas) {
  ExpectSetRefused("training.global_batch_size=1", {"training.global_batch_size", "1", "2", "replicas"});
}

TEST_F(BadInputTest, ReplicasThatDoNotGoTogether) {
  ExpectSetRefused("replicas.worker_load=[0, 0]", {"replicas.worker_load", "add up to 0"});
  ExpectSetRefused("replicas.worker_load=[1]", {"replicas.worker_load", "1 entry", "2 replicas"});
  ExpectSetRefused("replicas.worker_load=[1, -1]", {"replicas.worker_load[1]", "-1"});
  ExpectSetRefused("replicas.worker_load=[1, 0.0001]",
                   {"training.global_batch_size", "replicas.worker_load[1]", "gets nothing"});
  ExpectSetRefused("replicas.devices=[cpu:0, cpu:9]", {"replicas.devices[1]", "cpu:9", "cpu:1"});
  ExpectSetRefused("replicas.devices=[cpu:0, cpu:0]", {"replicas.devices[1]", "cpu:0", "again"});
  ExpectSetRefused("replicas.devices=[gpu:0, cpu:0]", {"replicas.devices[1]", "gpu"});
  ExpectSetRefused("replicas.devices=[nonsense]", {"replicas.devices[0]", "nonsense"});
  ExpectSetRefused("replicas.parameter_averaging={every_iterations: 0}",
                   {"replicas.parameter_averaging.every_iterations", "at least 1"});
  ExpectSetRefused("replicas.parameter_averaging.every_iterations=-2",
                   {"replicas.parameter_averaging.every_iterations", "-2"});
}

TEST_F(BadInputTest, UnknownDataset) {
  ExpectRefused(
      With("synthetic: {shape: [1, 28, 28], classes: 10, train_samples: 256, validation_samples: 64}",
           "name: fashion-mnits"),
      {"dataset.name", "fashion-mnits", "fashion-mnist"});
  ExpectRefused(
      With("  synthetic: {shape: [1, 28, 28], classes: 10, train_samples: 256, validation_samples: 64}\n",
           ""),
      {"dataset"});
}

TEST_F(BadInputTest, MissingDataFiles) {
  ExpectRefused(OnFiles("none-images", "none-labels"), {"dataset.idx.train_images", "none-images"});
  scratch_->Write("data/images", IdxFile({64, 28, 28}, 256));
  ExpectRefused(OnFiles("images", "none-labels"), {"dataset.idx.train_labels", "none-labels"});
  std::filesystem::create_directories(scratch_->File("data/folder"));
  ExpectRefused(OnFiles("folder", "folder"), {"dataset.idx.train_images", "folder"});
  ExpectRefused(OnFiles("images", ""), {"dataset.idx.train_labels"});
}

TEST_F(BadInputTest, TruncatedDataFiles) {
  scratch_->Write("data/images", IdxFile({64, 28, 28}, 256));
  scratch_->Write("data/labels", IdxFile({64}, 10));
  scratch_->Write("data/short-images", IdxFile({64, 28, 28}, std::string(64 * 28 * 28 - 1, 'x')));
  scratch_->Write("data/short-labels", IdxFile({64}, std::string(63, '\1')));
  scratch_->Write("data/header", std::string("\0\0\x08\x03\0\0", 6));
  scratch_->Write("data/empty", "");
  ExpectRefused(OnFiles("short-images", "labels"), {"dataset.idx.train_images", "short-images"});
  ExpectRefused(OnFiles("images", "short-labels"), {"dataset.idx.train_labels", "short-labels"});
  ExpectRefused(OnFiles("header", "labels"), {"dataset.idx.train_images"});
  ExpectRefused(OnFiles("empty", "labels"), {"dataset.idx.train_images"});
}

TEST_F(BadInputTest, FilesThatAreNotIdx) {
  scratch_->Write("data/labels", IdxFile({64}, 10));
  scratch_->Write("data/text", "This is a text, and no IDX file; it is long enough to hold a header.");
  scratch_->Write("data/gzip", std::string("\x1f\x8b\x08\x00 this is no gzip stream at all", 34));
  // Said to be larger than any memory.
  scratch_->Write("data/huge", IdxFile({0xffffffff, 0xffffffff, 0xffffffff}, "few"));
  ExpectRefused(OnFiles("text", "labels"), {"dataset.idx.train_images", "IDX"});
  ExpectRefused(OnFiles("gzip", "labels"), {"dataset.idx.train_images"});
  ExpectRefused(OnFiles("huge", "labels"), {"dataset.idx.train_images"});
  ExpectRefused(OnFiles("labels", "labels"), {"dataset.idx.train_images"});
}

TEST_F(BadInputTest, LabelsThatDoNotFit) {
  scratch_->Write("data/images", IdxFile({64, 28, 28}, 256));
  scratch_->Write("data/labels", IdxFile({64}, 20));
  scratch_->Write("data/few-labels", IdxFile({63}, 10));
  ExpectRefused(OnFiles("images", "labels", 10), {"dataset.idx.train_labels", "10"});
  ExpectRefused(OnFiles("images", "few-labels"), {"dataset.idx", "63", "64"});
}

TEST_F(BadInputTest, DataOutsideTheFolders) {
  const std::string secret = scratch_->Write("secret/images", IdxFile({64, 28, 28}, 256));
  scratch_->Write("data/labels", IdxFile({64}, 10));
  ExpectRefused(OnFiles(secret, "labels"), {"dataset.idx.train_images", "folder"});
  ExpectRefused(OnFiles("/etc/shadow", "labels"), {"dataset.idx.train_images", "folder"});
  ExpectRefused(OnFiles("../secret/images", "labels"), {"dataset.idx.train_images", "folder"});
  std::error_code error;
  std::filesystem::create_symlink(secret, scratch_->File("data/link"), error);
  std::filesystem::create_directory_symlink(scratch_->File("secret"), scratch_->File("data/folder-link"),
                                            error);
  ExpectRefused(OnFiles("link", "labels"), {"dataset.idx.train_images", "folder"});
  ExpectRefused(OnFiles("folder-link/images", "labels"), {"dataset.idx.train_images", "folder"});
}

TEST_F(BadInputTest, AWrongToken) {
  const std::string path = scratch_->Write("wrong-token", "0123456789012345678901234567890123456789012\n");
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  Cli wrong(*scratch_);
  wrong.Use(*daemon_);
  wrong.SetEnvironment("TANDEM_TOKEN_FILE", path);
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"list"}, {"submit", scratch_->Write("job.yaml", kJob)}, {"shutdown"}}) {
    const CliResult result = wrong.Run(command);
    EXPECT_EQ(result.exit_code, 2) << result;
    EXPECT_THAT(result.err, HasSubstr("token"));
    EXPECT_THAT(result.err, HasSubstr(path));
  }
  Cli none(*scratch_);
  none.Use(*daemon_);
  none.SetEnvironment("TANDEM_TOKEN_FILE", scratch_->File("no-such-token"));
  const CliResult result = none.Run({"list"});
  EXPECT_EQ(result.exit_code, 2) << result;
  EXPECT_THAT(result.err, HasSubstr("no-such-token"));
}

TEST_F(BadInputTest, ASpecOfFiveMebibytes) {
  std::string yaml = kJob;
  const std::string layer = "  - activation: {function: relu}\n";
  std::string layers;
  while (layers.size() < (5 << 20)) layers += layer;
  yaml = absl::StrReplaceAll(yaml, {{"  - dense: {units: 10}\n", layers + "  - dense: {units: 10}\n"}});
  ExpectRefused(yaml, {});

  // The same without the command's own checks.
  v1::JobSpec spec = SmallJob({});
  spec.mutable_model()->mutable_layers(0)->set_name(std::string(5 << 20, 'n'));
  const grpc::Status status = Api(*daemon_).TryCreate(spec);
  EXPECT_TRUE(status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED ||
              status.error_code() == grpc::StatusCode::INVALID_ARGUMENT)
      << status.error_code() << " " << status.error_message();
}

TEST_F(BadInputTest, APortInUse) {
  const DaemonRun second =
      RunDaemon(*scratch_, {"--state-folder", scratch_->File("other-state"), "--listen", daemon_->address()});
  ASSERT_TRUE(second.exit_code.has_value()) << "it runs on beside the first";
  EXPECT_NE(*second.exit_code, 0);
  EXPECT_THAT(second.output, HasSubstr(daemon_->address()));
  EXPECT_THAT(second.output, HasSubstr("use"));
  EXPECT_FALSE(std::filesystem::exists(scratch_->File("other-state/address")));
}

TEST_F(BadInputTest, AStateFolderThatIsHeld) {
  const DaemonRun third =
      RunDaemon(*scratch_, {"--state-folder", daemon_->state_folder(), "--listen", "127.0.0.1:0"});
  ASSERT_TRUE(third.exit_code.has_value()) << "it runs on beside the first";
  EXPECT_NE(*third.exit_code, 0);
  EXPECT_THAT(third.output, HasSubstr(daemon_->state_folder()));
  EXPECT_THAT(third.output, HasSubstr(absl::StrCat(daemon_->pid())));
  // The first one's files are untouched.
  EXPECT_EQ(absl::StripAsciiWhitespace(ReadFile(daemon_->state_folder() + "/address")), daemon_->address());
  EXPECT_EQ(cli_.Run({"list"}).exit_code, 0);
}

TEST_F(BadInputTest, ADaemonsOwnArguments) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--no-such-flag"}, "no-such-flag"},
      {{"--listen", "nonsense"}, "nonsense"},
      {{"--listen", "0.0.0.0:0"}, "TLS"},
      {{"--cpu-devices", "-1"}, "cpu-devices"},
      {{"--tls-cert", "/nonexistent/cert.pem", "--tls-key", "/nonexistent/key.pem"}, "/nonexistent"},
      {{"--state-folder", "/proc/nowhere"}, "/proc/nowhere"},
  };
  for (const auto& [bad, part] : cases) {
    std::vector<std::string> arguments = bad;
    if (bad[0] != "--state-folder") {
      arguments.insert(arguments.begin(), {"--state-folder", scratch_->File("bad-state")});
    }
    const DaemonRun run = RunDaemon(*scratch_, std::move(arguments));
    EXPECT_TRUE(run.exit_code.has_value() && *run.exit_code != 0)
        << bad[0] << " " << bad.back() << " was taken";
    EXPECT_THAT(run.output, HasSubstr(part)) << bad[0];
  }
}

}  // namespace
}  // namespace tandem::testing
