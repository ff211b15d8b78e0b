// A user's own data sets, with the real programs: uploading them while programs are killed, showing them,
// training on them and removing them.
#include <signal.h>

#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/data/formats/test_bytes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tandem/v1/dataset_service.grpc.pb.h"
#include "tests/integration/cli.h"
#include "tests/integration/cli_json.h"
#include "tests/integration/daemon_fixture.h"
#include "tests/integration/png_file.h"
#include "tests/integration/processes.h"
#include "tests/integration/scratch_folder.h"

namespace tandem::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kJob[] = R"(
name: houses
dataset: {name: houses}
model:
  input: {shape: [2]}
  layers:
  - dense: {units: 1}
training:
  loss: {mse: {}}
  optimizer: {sgd: {learning_rate: 0.01}}
  global_batch_size: 4
  epochs: %EPOCHS%
)";

// An NPY file of unsigned bytes or, with `labels`, of 64-bit integers 0 and 1 in turn.
std::string Array(int64_t samples, int64_t features, bool labels) {
  std::string elements;
  if (labels) {
    for (int64_t i = 0; i < samples; ++i) elements += Little(i % 2, 8);
    return Npy("<i8", absl::StrCat("(", samples, ",)"), elements);
  }
  std::mt19937_64 random(7);
  while (static_cast<int64_t>(elements.size()) < samples * features) {
    const uint64_t number = random();
    elements.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  return Npy("|u1", absl::StrCat("(", samples, ", ", features, ")"), elements);
}

class DatasetsTest : public DaemonFixture {
 protected:
  DatasetsTest() : DaemonFixture(/*cpu_devices=*/1) {}

  void SetUp() override {
    DaemonFixture::SetUp();
    scratch_.Write("houses.csv",
                   "size,rooms,price\n1,2,3.5\n2,3,5\n3,3,6.5\n4,5,9\n5,6,11\n6,6,12\n7,8,15\n8,9,17\n");
  }

  std::string Job(int epochs) {
    std::string job = kJob;
    job.replace(job.find("%EPOCHS%"), 8, absl::StrCat(epochs));
    return scratch_.Write("job.yaml", job);
  }
  CliResult AddHouses() {
    return cli_.Run({"datasets", "add", "houses", "--csv", scratch_.File("houses.csv"), "--set",
                     "csv.target_columns=price", "--upload", "--description", "Prices of houses."});
  }
  // Returns the received bytes of the incomplete upload.
  int64_t BytesThere() const {
    int64_t bytes = 0;
    std::error_code error;
    for (fs::recursive_directory_iterator entry(daemon_.state_folder() + "/uploads", error), end;
         !error && entry != end; entry.increment(error)) {
      std::error_code ignored;
      if (fs::is_regular_file(entry->path(), ignored))
        bytes += static_cast<int64_t>(fs::file_size(entry->path(), ignored));
    }
    return bytes;
  }

  // Adds the set "large" with two interruptions: first the client is killed, then the daemon. Returns the
  // last client's result. Returns nothing if an upload ended before an interruption; the data set is then
  // removed again.
  std::optional<CliResult> AddWithMishaps(const std::vector<std::string>& command) {
    const auto killed = cli_.Start(command);
    EXPECT_TRUE(WaitUntil([&] { return BytesThere() > kPart || !killed->IsRunning(); }));
    killed->Signal(SIGKILL);
    const int code = killed->Finish().exit_code;
    EXPECT_TRUE(code == 128 + SIGKILL || code == 0) << code;
    const int64_t there = BytesThere();
    if (!absl::StrContains(cli_.Run({"datasets", "uploads"}).out, "no unfinished")) {
      EXPECT_GT(there, kPart);
      const auto run = cli_.Start(command);
      EXPECT_TRUE(WaitUntil([&] { return BytesThere() > there + kPart || !run->IsRunning(); }));
      daemon_.Kill();
      const int64_t kept = BytesThere();
      EXPECT_TRUE(daemon_.Start().ok()) << daemon_.Log();
      CliResult result = run->Finish();
      EXPECT_EQ(result.exit_code, 0) << result << daemon_.Log();
      if (result.exit_code != 0 || absl::StrContains(result.err, "connection lost")) {
        EXPECT_GT(kept, there);
        return result;
      }
    }
    EXPECT_EQ(cli_.Run({"datasets", "remove", "--missing-ok", "large"}).exit_code, 0);
    return std::nullopt;
  }

  static constexpr int64_t kPart = 16 << 20;
};

TEST_F(DatasetsTest, IsAddedShownTrainedOnAndRemoved) {
  const CliResult added = AddHouses();
  ASSERT_EQ(added.exit_code, 0) << added;
  EXPECT_THAT(added.out, HasSubstr("added houses"));
  EXPECT_THAT(added.out, HasSubstr("dataset: {name: houses}"));
  // Again is no harm.
  EXPECT_EQ(AddHouses().exit_code, 0);

  EXPECT_THAT(cli_.Run({"datasets"}).out, HasSubstr("Prices of houses."));
  // It lives on where the daemon is killed.
  daemon_.Kill();
  ASSERT_TRUE(daemon_.Start().ok());
  const nlohmann::json shown = Json(cli_.Run({"datasets", "show", "houses", "-o", "json"}));
  EXPECT_EQ(shown["train_samples"].dump(), "\"8\"") << shown;
  EXPECT_NEAR(shown["mean"][0].get<double>(), 4.5, 1e-6);

  const CliResult trained = cli_.Run({"submit", "--follow", Job(2)});
  EXPECT_EQ(trained.exit_code, 0) << trained;

  // While a job needs it, it stays.
  const std::string job = Cli::SubmittedJob(cli_.Run({"submit", Job(10'000'000)}));
  ASSERT_FALSE(job.empty());
  const CliResult refused = cli_.Run({"datasets", "remove", "houses"});
  EXPECT_EQ(refused.exit_code, 2) << refused;
  EXPECT_THAT(refused.err, HasSubstr(job.substr(5)));
  EXPECT_EQ(cli_.Run({"cancel", job}).exit_code, 0);
  EXPECT_TRUE(WaitUntil([&] { return cli_.Run({"datasets", "remove", "houses"}).exit_code == 0; }));
  EXPECT_EQ(BytesThere(), 0);
  EXPECT_TRUE(fs::exists(scratch_.File("houses.csv")));
  EXPECT_EQ(cli_.Run({"datasets", "show", "houses"}).exit_code, 2);
  EXPECT_EQ(cli_.Run({"datasets", "remove", "houses"}).exit_code, 2);
  EXPECT_EQ(cli_.Run({"datasets", "remove", "--missing-ok", "houses"}).exit_code, 0);
}

TEST_F(DatasetsTest, AFolderOfImagesComesWhole) {
  for (const char* part : {"train", "test"}) {
    for (const char* kind : {"rose", "tulip"}) {
      for (int i = 0; i < 20; ++i) {
        fs::create_directories(scratch_.File(absl::StrCat("flowers/", part, "/", kind)));
        scratch_.Write(absl::StrCat("flowers/", part, "/", kind, "/", i, ".png"),
                       PngFile(4, 4, 1, std::string(16, static_cast<char>(i))));
      }
    }
  }
  // Paths in a file are looked for beside it.
  const std::string spec = scratch_.Write(
      "flowers/spec.yaml", "image_folder: {train: train, validation: test}\nclass_names: [r, t]\n");
  const nlohmann::json added = Json(cli_.Run({"datasets", "add", "flowers", spec, "--upload", "-o", "json"}));
  EXPECT_EQ(added["train_samples"].dump(), "\"40\"") << added;
  EXPECT_EQ(added["validation_samples"].dump(), "\"40\"");
  EXPECT_EQ(added["class_names"].dump(), "[\"r\",\"t\"]");
}

TEST_F(DatasetsTest, AnUploadOutlivesItsClientAndItsDaemon) {
  constexpr int64_t kSamples = 196608, kFeatures = 1024;
  const std::string inputs = scratch_.Write("inputs.npy", Array(kSamples, kFeatures, false));
  const std::string labels = scratch_.Write("labels.npy", Array(kSamples, 1, true));
  const std::vector<std::string> command = {"datasets", "add", "large", "--npy", inputs, labels, "--upload"};

  std::optional<CliResult> result;
  for (int tries = 0; !result.has_value() && tries < 20 && !HasFailure(); ++tries) {
    result = AddWithMishaps(command);
  }
  ASSERT_TRUE(result.has_value()) << "every upload was over before it could be disturbed";
  EXPECT_THAT(result->err, HasSubstr("going on after"));
  EXPECT_THAT(cli_.Run({"datasets", "uploads"}).out, HasSubstr("no unfinished"));
  const nlohmann::json set = Json(cli_.Run({"datasets", "-o", "json"}));
  std::string location;
  for (const nlohmann::json& one : set.is_array() ? set : set["datasets"]) {
    if (one["name"] == "datasets/large") location = one["location"];
  }
  EXPECT_EQ(ReadFile(location + "/inputs.npy"), ReadFile(inputs));
  EXPECT_EQ(ReadFile(location + "/labels.npy"), ReadFile(labels));
}

TEST_F(DatasetsTest, SaysWhatIsWrong) {
  const auto refused = [&](std::vector<std::string> arguments, const std::string& why) {
    arguments.insert(arguments.begin(), {"datasets", "add"});
    const CliResult result = cli_.Run(arguments);
    EXPECT_EQ(result.exit_code, 2) << result;
    EXPECT_THAT(result.err, HasSubstr(why)) << result;
  };
  const std::string houses = scratch_.File("houses.csv");
  ASSERT_EQ(AddHouses().exit_code, 0);
  refused({"houses", "--csv", houses, "--upload"}, "a data set of this name exists");
  refused({"../houses", "--csv", houses, "--upload"}, "small letters");
  refused({"more"}, "--csv");
  refused({"more", "--csv", houses, "--text", houses}, "a data set has one source");
  refused({"more", "--csv", scratch_.File("none.csv"), "--upload"}, "cannot upload the data set");
  refused({"more", "--csv", "none.csv", "--upload"}, "there is no file");
  // The file exists, but the daemon may not read it.
  refused({"more", "--csv", houses}, "--upload");
  refused({"more", "--csv", scratch_.Write("ragged.csv", "a,b\n1,2\n3\n"), "--upload"}, "csv.train");
  refused({"more", "--csv", houses, "--set", "csv.targets_columns=x", "--upload"}, "did you mean");
  // The uploaded bytes wait for a better try.
  EXPECT_THAT(cli_.Run({"datasets", "uploads"}).out, Not(HasSubstr("no unfinished")));
}

// Another client than ours may send anything.
TEST_F(DatasetsTest, DamagedAndMisplacedFilesAreRefused) {
  const auto stub = v1::DatasetService::NewStub(daemon_.NewChannel());
  v1::CreateUploadRequest request;
  request.mutable_upload()->set_manifest_sha256(std::string(32, 'm'));
  request.mutable_upload()->set_files(1);
  request.mutable_upload()->set_bytes(3);
  v1::Upload upload;
  grpc::ClientContext create;
  daemon_.Prepare(create);
  const grpc::Status created = stub->CreateUpload(&create, request, &upload);
  ASSERT_TRUE(created.ok()) << created.error_message();
  const auto send = [&](const std::string& path) {
    v1::UploadFilesRequest piece;
    piece.set_name(upload.name());
    piece.mutable_file()->set_path(path);
    piece.mutable_file()->set_size(3);
    piece.mutable_file()->set_sha256(std::string(32, 'f'));
    piece.set_data("abc");
    grpc::ClientContext context;
    daemon_.Prepare(context);
    v1::Upload answer;
    const auto writer = stub->UploadFiles(&context, &answer);
    writer->Write(piece);
    writer->WritesDone();
    return writer->Finish().error_code();
  };
  EXPECT_EQ(send("a.csv"), grpc::StatusCode::DATA_LOSS);
  for (const char* path : {"../a.csv", "/tmp/a.csv", "a/../../../tandem.db", ""}) {
    EXPECT_EQ(send(path), grpc::StatusCode::INVALID_ARGUMENT) << path;
  }
  EXPECT_EQ(BytesThere(),
            static_cast<int64_t>(fs::file_size(daemon_.state_folder() + "/" + upload.name() + "/upload")));
}

}  // namespace
}  // namespace tandem::testing
