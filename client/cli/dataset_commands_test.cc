#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/app.h"
#include "client/cli/fake_terminal.h"
#include "client/lib/fake_daemon.h"
#include "engine/base/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

// Commands on data sets, with a daemon that keeps the test's requests.
class DatasetCommandsTest : public ::testing::Test {
 protected:
  DatasetCommandsTest() {
    std::string pattern = ::testing::TempDir() + "/tandem-sets-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    terminal_.environment["XDG_STATE_HOME"] = folder_;
    terminal_.environment["TANDEM_ADDRESS"] = daemon_.address();
    daemon_.list_datasets = [this](v1::ListDatasetsResponse* response) {
      for (const v1::Dataset& dataset : known_) *response->add_datasets() = dataset;
      return grpc::Status::OK;
    };
    daemon_.create_dataset = [this](const v1::CreateDatasetRequest& request, v1::Dataset* response) {
      if (request.validate_only() && request.dataset_id() == "Bad") {
        return client::BadRequestStatus("wrong", {{"dataset_id", "is 'Bad'"}});
      }
      if (!request.validate_only()) created_.push_back(request);
      *response = request.dataset();
      response->set_name("datasets/" + request.dataset_id());
      response->set_train_samples(1234);
      return grpc::Status::OK;
    };
    daemon_.create_upload = [this](const v1::CreateUploadRequest& request, v1::Upload* response) {
      upload_.set_name("uploads/u1");
      upload_.set_files(request.upload().files());
      upload_.set_bytes(request.upload().bytes());
      upload_.set_manifest_sha256(request.upload().manifest_sha256());
      *response = upload_;
      return grpc::Status::OK;
    };
    daemon_.upload_files = [this](grpc::ServerReader<v1::UploadFilesRequest>* reader, v1::Upload* response) {
      v1::UploadFilesRequest piece;
      std::string path;
      while (reader->Read(&piece)) {
        if (piece.has_file()) {
          path = piece.file().path();
          upload_.set_files_received(upload_.files_received() + 1);
        }
        contents_[path] += piece.data();
        if (cut_after_ >= 0 && static_cast<int>(contents_[path].size()) >= cut_after_) {
          // The daemon stops after it has received the start of the next file.
          cut_after_ = -1;
          upload_.set_files_received(upload_.files_received() - 1);
          upload_.set_next_offset(static_cast<int64_t>(contents_[path].size()));
          upload_.set_bytes_received(upload_.next_offset());
          return grpc::Status(grpc::StatusCode::UNAVAILABLE, "killed");
        }
      }
      *response = upload_;
      return grpc::Status::OK;
    };
  }
  ~DatasetCommandsTest() override { std::filesystem::remove_all(folder_); }

  int Run(const std::vector<std::string>& arguments) { return RunCommand(arguments, terminal_); }
  std::string Write(const std::string& name, const std::string& content) {
    const std::string path = folder_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  std::string folder_;
  client::FakeDaemon daemon_;
  FakeTerminal terminal_;
  std::vector<v1::Dataset> known_;
  std::vector<v1::CreateDatasetRequest> created_;
  v1::Upload upload_;
  std::map<std::string, std::string> contents_;
  int cut_after_ = -1;
};

TEST_F(DatasetCommandsTest, AddsWhatTheDaemonHas) {
  ASSERT_EQ(Run({"datasets", "add", "houses", "--csv", "a.csv", "--validation", "b.csv", "--set",
                 "csv.target_columns=price", "--description", "Prices."}),
            0)
      << terminal_.err();
  ASSERT_EQ(created_.size(), 1);
  EXPECT_EQ(created_[0].dataset_id(), "houses");
  EXPECT_EQ(created_[0].dataset().description(), "Prices.");
  EXPECT_EQ(created_[0].dataset().spec().csv().train(), "a.csv");
  EXPECT_EQ(created_[0].dataset().spec().csv().validation(), "b.csv");
  EXPECT_EQ(created_[0].dataset().spec().csv().target_columns(0), "price");
  EXPECT_THAT(terminal_.out(), HasSubstr("added houses"));
  EXPECT_THAT(terminal_.out(), HasSubstr("1,234"));
  // The same command makes the same request, and another command another request.
  EXPECT_EQ(Run({"datasets", "add", "houses", "--csv", "a.csv"}), 0);
  EXPECT_EQ(Run({"datasets", "add", "houses", "--csv", "a.csv"}), 0);
  EXPECT_NE(created_[0].request_id(), created_[1].request_id());
  EXPECT_EQ(created_[1].request_id(), created_[2].request_id());
}

TEST_F(DatasetCommandsTest, OneArrayIsNoData) {
  EXPECT_EQ(Run({"datasets", "add", "a", Write("inputs.npy", std::string(2 << 20, 'x')), "--upload"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("inputs.npy: a data set has two arrays"));
  EXPECT_THAT(terminal_.err(), HasSubstr("--npy INPUTS TARGETS"));
  EXPECT_EQ(Run({"datasets", "add", "a", "data.npz"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("data.npz: say which of its arrays are inputs and targets"));
  // Runs the command that the message suggests.
  EXPECT_EQ(Run({"datasets", "add", "a", "--npy", "data.npz", "data.npz", "--set",
                 "npy.train_inputs.member=x", "--set", "npy.train_targets.member=y"}),
            0)
      << terminal_.err();
  ASSERT_EQ(created_.size(), 1);
  EXPECT_EQ(created_[0].dataset().spec().npy().train_targets().member(), "y");
}

TEST_F(DatasetCommandsTest, GuessesTheFormatOfData) {
  Write("flowers/train/rose/1.png", "1");
  Write("flowers/test/rose/2.png", "2");
  Write("parts/Training/rose/1.png", "1");
  Write("parts/valid/rose/2.png", "2");
  Write("plain/rose/1.png", "1");
  ASSERT_EQ(Run({"datasets", "add", "a", "houses.csv", "--validation", "more.csv"}), 0) << terminal_.err();
  ASSERT_EQ(Run({"datasets", "add", "b", "book.txt.gz", "--set", "text.sequence_length=8"}), 0);
  ASSERT_EQ(Run({"datasets", "add", "c", folder_ + "/flowers", "--upload"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.err(),
              HasSubstr("the test part " + folder_ + "/flowers/test is left out; --validation "));
  ASSERT_EQ(Run({"datasets", "add", "d", folder_ + "/plain"}), 0) << terminal_.err();
  ASSERT_EQ(Run({"datasets", "add", "e", folder_ + "/parts"}), 0) << terminal_.err();
  EXPECT_EQ(std::vector<std::string>(absl::StrSplit(terminal_.err(), "the test part")).size(), 2)
      << "only flowers has a test part: " << terminal_.err();
  ASSERT_EQ(Run({"datasets", "add", "f", "flowers.tar.gz"}), 0) << terminal_.err();
  ASSERT_EQ(Run({"datasets", "add", "g", "houses.csv.zip"}), 0) << terminal_.err();
  ASSERT_EQ(created_.size(), 7);
  EXPECT_EQ(created_[5].dataset().spec().image_folder().train(), "flowers.tar.gz");
  EXPECT_EQ(created_[6].dataset().spec().csv().train(), "houses.csv.zip");
  EXPECT_EQ(created_[0].dataset().spec().csv().train(), "houses.csv");
  EXPECT_EQ(created_[0].dataset().spec().csv().validation(), "more.csv");
  EXPECT_EQ(created_[1].dataset().spec().text().sequence_length(), 8);
  EXPECT_EQ(created_[2].dataset().spec().image_folder().train(), "train");
  // A test part is never validated with unasked.
  EXPECT_EQ(created_[2].dataset().spec().image_folder().validation(), "");
  EXPECT_EQ(created_[4].dataset().spec().image_folder().train(), folder_ + "/parts/Training");
  EXPECT_EQ(created_[4].dataset().spec().image_folder().validation(), folder_ + "/parts/valid");
  EXPECT_EQ(created_[3].dataset().spec().image_folder().train(), folder_ + "/plain");
}

TEST_F(DatasetCommandsTest, UploadsAndGoesOnAfterABreak) {
  const std::string large(700'000, 'x');
  Write("set/train.csv", large);
  Write("set/test.csv", "");
  const std::string spec = Write("set/spec.yaml", "csv: {train: train.csv, validation: test.csv}\n");
  cut_after_ = 300'000;
  ASSERT_EQ(Run({"datasets", "add", "houses", spec, "--upload"}), 0) << terminal_.err();
  EXPECT_THAT(contents_, ElementsAre(Pair("test.csv", ""), Pair("train.csv", large)));
  ASSERT_EQ(created_.size(), 1);
  EXPECT_EQ(created_[0].upload(), "uploads/u1");
  EXPECT_EQ(created_[0].dataset().spec().csv().train(), "train.csv");
  EXPECT_THAT(terminal_.err(), HasSubstr("2 files"));
  EXPECT_THAT(terminal_.err(), HasSubstr("connection lost"));
}

// The upload catches Ctrl-C. Ctrl-C must also work during the daemon's reading, which follows.
TEST_F(DatasetCommandsTest, CtrlCEndsTheWaitForTheDaemon) {
  std::atomic<bool> reads = false, left = false;
  daemon_.create_dataset = [&](const v1::CreateDatasetRequest& request, v1::Dataset*) {
    if (request.validate_only()) return grpc::Status::OK;
    reads = true;
    for (int i = 0; i < 600 && !left; ++i) absl::SleepFor(absl::Milliseconds(100));
    return grpc::Status::OK;
  };
  terminal_.interactive = true;
  terminal_.interrupt = [&](const std::string&) { return reads.load(); };
  const absl::Time begin = absl::Now();
  const int code = Run({"datasets", "add", "houses", "--csv", Write("train.csv", "a,b\n1,2\n"), "--upload"});
  EXPECT_LT(absl::Now() - begin, absl::Seconds(30)) << "it waited for the daemon";
  left = true;
  EXPECT_EQ(code, 130);
  EXPECT_THAT(terminal_.out(), HasSubstr("the daemon reads the data, which may take a while"));
  EXPECT_THAT(terminal_.err(), HasSubstr("the daemon may still add it, which `tandem datasets` shows"));
}

TEST_F(DatasetCommandsTest, ANameThatIsTakenCostsNoUpload) {
  const std::string csv = Write("train.csv", "a,b\n1,2\n");
  known_.emplace_back().set_name("datasets/houses");
  known_[0].set_origin(v1::DATASET_ORIGIN_REGISTERED);
  EXPECT_EQ(Run({"datasets", "add", "houses", "--csv", csv, "--upload"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("tandem datasets remove houses"));
  // It is the same set: an earlier answer was lost.
  Sha256 manifest;
  manifest.Add(Sha256Of("a,b\n1,2\n").value() + "  train.csv\n");
  known_[0].set_manifest_sha256(manifest.FinishBytes().value());
  known_[0].mutable_spec()->mutable_csv()->set_train("train.csv");
  EXPECT_EQ(Run({"datasets", "add", "houses", "--csv", csv, "--upload"}), 0) << terminal_.err();
  EXPECT_THAT(contents_, IsEmpty());
  EXPECT_THAT(created_, IsEmpty());
}

TEST_F(DatasetCommandsTest, ANameThatIsNoneCostsNoUpload) {
  EXPECT_EQ(Run({"datasets", "add", "Bad", "--csv", Write("train.csv", "a,b\n1,2\n"), "--upload"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("the name: is 'Bad'\n"));
  EXPECT_THAT(contents_, IsEmpty());
  EXPECT_THAT(created_, IsEmpty());
}

TEST_F(DatasetCommandsTest, SaysWhatTheDaemonFoundWrong) {
  const std::string csv = Write("train.csv", "a,b\n1,2\n");
  daemon_.create_dataset = [](const v1::CreateDatasetRequest&, v1::Dataset*) {
    return client::BadRequestStatus(
        "wrong", {{"dataset.spec.csv.train", "is not inside a data folder"}, {"dataset_id", "is 'X'"}});
  };
  EXPECT_EQ(Run({"datasets", "add", "X", "--csv", csv}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("csv.train: is not inside a data folder\n"));
  EXPECT_THAT(terminal_.err(), HasSubstr("the name: is 'X'\n"));
  EXPECT_THAT(terminal_.err(), HasSubstr("--upload sends the files"));
}

TEST_F(DatasetCommandsTest, AdvisesToUploadOnlyIfPathsAreAtFault) {
  const std::string csv = Write("train.csv", "a,b\n1,2\n");
  daemon_.create_dataset = [](const v1::CreateDatasetRequest&, v1::Dataset*) {
    return client::BadRequestStatus("wrong", {{"dataset.spec.csv.train", "row 2 is empty"}});
  };
  EXPECT_EQ(Run({"datasets", "add", "x", "--csv", csv}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("csv.train: row 2 is empty\n"));
  EXPECT_THAT(terminal_.err(), Not(HasSubstr("--upload")));
}

TEST_F(DatasetCommandsTest, KnowsTheKindByTheEnding) {
  for (const char* name : {"houses.CSV", "houses.tsv", "houses.csv.zst"}) {
    contents_.clear();
    ASSERT_EQ(Run({"datasets", "add", "houses", Write(name, "a\tb\n1\t2\n"), "--upload"}), 0)
        << terminal_.err();
  }
  EXPECT_EQ(Run({"datasets", "add", "x", Write("model.pt", "PK"), "--upload"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("model.pt: cannot tell the kind of data by this file's ending"));
}

TEST_F(DatasetCommandsTest, RemovesSeveral) {
  std::vector<std::string> removed;
  daemon_.delete_dataset = [&](const v1::DeleteDatasetRequest& request) -> grpc::Status {
    if (request.name() == "used") return {grpc::StatusCode::FAILED_PRECONDITION, "jobs use it: lenet-1"};
    removed.push_back(request.name());
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"datasets", "remove", "a", "used", "b"}), 2);
  EXPECT_EQ(Run({"datasets", "rm", "c"}), 0);
  EXPECT_THAT(removed, ElementsAre("a", "b", "c"));
  EXPECT_THAT(terminal_.err(), HasSubstr("lenet-1"));
  EXPECT_THAT(terminal_.out(), HasSubstr("b removed"));
}

}  // namespace
}  // namespace tandem::cli
