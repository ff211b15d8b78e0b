#include <atomic>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/app_fixture.h"
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
class DatasetCommandsTest : public AppFixture {
 protected:
  DatasetCommandsTest() {
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
  EXPECT_THAT(terminal_.err(),
              HasSubstr("inputs.npy alone: a data set has an array of inputs and an array of targets"));
  EXPECT_THAT(terminal_.err(), HasSubstr("--npy INPUTS TARGETS"));
  EXPECT_EQ(Run({"datasets", "add", "a", "data.npz"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("data.npz: its arrays of inputs and targets are not named"));
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

TEST_F(DatasetCommandsTest, PacksPicturesIntoShardsAndUploadsThem) {
  const std::string png = "\x89PNG\r\n\x1A\n";
  for (int i = 0; i < 5; ++i) {
    Write(absl::StrCat("flowers/train/rose/", i, ".PNG"), absl::StrCat(png, "rose", i));
    Write(absl::StrCat("flowers/train/aster/deep/", i, ".b.png"), absl::StrCat(png, "aster", i));
  }
  Write("flowers/train/rose/notes.txt", "x");
  Write("flowers/train/outside.png", png);
  Write("flowers/valid/rose/1.png", png);
  Write("flowers/test/rose/1.png", png);
  const std::string shards = folder_ + "/shards";
  // A sample takes 2,048 bytes, so a shard has two.
  ASSERT_EQ(Run({"datasets", "pack", folder_ + "/flowers", shards, "--shard-size", "3000"}), 0)
      << terminal_.err();
  EXPECT_THAT(terminal_.out(),
              HasSubstr("packed 10 training and 1 validation pictures of 2 classes into 6 shards"));
  EXPECT_THAT(terminal_.err(), HasSubstr("flowers/test is left out"));
  EXPECT_THAT(terminal_.err(), HasSubstr("skipped 2 files that are no picture in the folder of a class"));
  ASSERT_EQ(Run({"datasets", "add", "flowers", shards + "/dataset.json", "--upload"}), 0) << terminal_.err();
  ASSERT_EQ(created_.size(), 1);
  const v1::DatasetSpec& spec = created_[0].dataset().spec();
  EXPECT_EQ(spec.webdataset().train(), "train-{000000..000004}.tar");
  EXPECT_EQ(spec.webdataset().validation(), "validation-000000.tar");
  EXPECT_EQ(spec.webdataset().classes(), 2);
  EXPECT_THAT(spec.class_names(), ElementsAre("aster", "rose"));
  ASSERT_EQ(contents_.size(), 6);
  // Each picture is followed by its label. The classes are mixed.
  std::string labels;
  std::multiset<std::string> pictures;
  for (const auto& [name, tar] : contents_) {
    if (name[0] != 't') continue;
    ASSERT_EQ(tar.size(), 5 * 1024) << name;
    for (const size_t at : {0, 2048}) {
      EXPECT_EQ(tar.substr(at + 9, 5), std::string(".png\0", 5));
      EXPECT_EQ(tar.substr(at + 1024, 14), tar.substr(at, 9) + ".cls" + std::string(1, '\0'));
      labels += tar[at + 1536];
      pictures.insert(tar.substr(at + 512, 12) + tar[at + 1536]);
      EXPECT_EQ(tar.substr(at + 520, 4) == "rose", tar[at + 1536] == '1');
    }
  }
  EXPECT_EQ(pictures.size(), 10);
  EXPECT_NE(labels, "0000011111");
  // The same folder gives the same shards.
  ASSERT_EQ(Run({"datasets", "pack", folder_ + "/flowers", folder_ + "/again", "--shard-size", "3000"}), 0);
  std::ifstream again(folder_ + "/again/train-000003.tar", std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(again), {}), contents_["train-000003.tar"]);

  EXPECT_EQ(Run({"datasets", "pack", folder_ + "/flowers", shards}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("shards: it is not empty; give a new folder"));
  EXPECT_EQ(Run({"datasets", "pack", folder_ + "/none", folder_ + "/other"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("none: it is no folder"));
  EXPECT_EQ(Run({"datasets", "pack", folder_ + "/flowers", folder_ + "/other", "--shard-size", "0"}), 2);
  Write("flowers/valid/tulip/1.png", png);
  EXPECT_EQ(Run({"datasets", "pack", folder_ + "/flowers", folder_ + "/other"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("valid/tulip: the training part has no class of this name"));
  Write("texts/rose/1.png", "no picture");
  EXPECT_EQ(Run({"datasets", "pack", folder_ + "/texts", folder_ + "/other"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("rose/1.png: its content is no picture"));
}

TEST_F(DatasetCommandsTest, UploadsShardsOfAPattern) {
  for (const char* name : {"set/a/0.tar", "set/b/0.tar", "set/b/1.tar"}) Write(name, name);
  ASSERT_EQ(Run({"datasets", "add", "x", "--webdataset", folder_ + "/set/{a/0,b/0}.tar", "--upload"}), 0)
      << terminal_.err();
  EXPECT_THAT(contents_, ElementsAre(Pair("a/0.tar", "set/a/0.tar"), Pair("b/0.tar", "set/b/0.tar")));
  EXPECT_EQ(created_[0].dataset().spec().webdataset().train(), "{a/0,b/0}.tar");
  EXPECT_EQ(Run({"datasets", "add", "x", "--webdataset", folder_ + "/set/{a,b}/1.tar", "--upload"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("set/a/1.tar: cannot be read"));
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
  std::atomic<bool> reads = false;
  // The daemon's handler outlives this test's body.
  const auto left = std::make_shared<std::atomic<bool>>(false);
  daemon_.create_dataset = [&reads, left](const v1::CreateDatasetRequest& request, v1::Dataset*) {
    if (request.validate_only()) return grpc::Status::OK;
    reads = true;
    for (int i = 0; i < 600 && !*left; ++i) absl::SleepFor(absl::Milliseconds(100));
    return grpc::Status::OK;
  };
  terminal_.interactive = true;
  terminal_.interrupt = [&](const std::string&) { return reads.load(); };
  const absl::Time begin = absl::Now();
  const int code = Run({"datasets", "add", "houses", "--csv", Write("train.csv", "a,b\n1,2\n"), "--upload"});
  EXPECT_LT(absl::Now() - begin, absl::Seconds(30)) << "it waited for the daemon";
  *left = true;
  EXPECT_EQ(code, 130);
  EXPECT_THAT(terminal_.out(), HasSubstr("the daemon reads the data, which may take a while"));
  EXPECT_THAT(terminal_.err(),
              HasSubstr("the daemon may still add the data set; `tandem datasets` shows it"));
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
  // Its files were lost.
  known_[0].set_problem("the daemon can read no such file");
  EXPECT_EQ(Run({"datasets", "add", "houses", "--csv", csv, "--upload"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("cannot use the data set houses: the daemon can read no such file; "
                                         "remove it (`tandem datasets remove houses`) and add it again\n"));
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

TEST_F(DatasetCommandsTest, TheListTellsWhatIsKnown) {
  EXPECT_EQ(Run({"datasets", "list"}), 0);
  EXPECT_THAT(terminal_.out(), HasSubstr("no data sets; add one with `tandem datasets add`"));
  v1::Dataset houses;
  houses.set_name("datasets/houses");
  houses.mutable_spec()->mutable_csv()->set_train("houses.csv");
  houses.add_shape(3);
  houses.set_train_samples(1200);
  houses.set_location("/data/houses");
  houses.mutable_create_time()->set_seconds(absl::ToUnixSeconds(terminal_.Now()) - 120);
  v1::Dataset broken;
  broken.set_name("datasets/broken");
  broken.set_problem("its file is gone");
  known_ = {houses, broken};
  EXPECT_EQ(Run({"datasets", "-o", "wide"}), 0);
  EXPECT_THAT(terminal_.out(), HasSubstr("/data/houses"));
  EXPECT_THAT(terminal_.out(), HasSubstr("csv, added 2 min ago"));
  EXPECT_THAT(terminal_.out(), HasSubstr("cannot be used: its file is gone"));
}

TEST_F(DatasetCommandsTest, ShowTellsASetsFacts) {
  daemon_.get_dataset = [this](const v1::GetDatasetRequest& request, v1::Dataset* dataset) -> grpc::Status {
    if (request.name() == "prices") {
      dataset->set_name("datasets/prices");
      dataset->set_target_kind(v1::TARGET_KIND_VALUES);
      dataset->add_target_shape(2);
      dataset->set_problem("its file is gone");
      return grpc::Status::OK;
    }
    if (request.name() != "digits") return {grpc::StatusCode::NOT_FOUND, "no data set " + request.name()};
    dataset->set_name("datasets/digits");
    dataset->set_description("Digits.");
    dataset->mutable_spec()->mutable_csv()->set_train("digits.csv");
    dataset->set_location("/data/digits");
    dataset->set_user("ann");
    dataset->set_size_bytes(2'000'000);
    dataset->mutable_create_time()->set_seconds(absl::ToUnixSeconds(terminal_.Now()));
    for (const int extent : {1, 8, 8}) dataset->add_shape(extent);
    dataset->set_train_samples(1500);
    dataset->set_validation_samples(297);
    dataset->set_classes(2);
    dataset->add_mean(0.25);
    dataset->add_standard_deviation(0.5);
    for (const int count : {700, 800}) dataset->add_class_counts(count);
    dataset->add_class_names("zero");
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"datasets", "show", "digits"}), 0) << terminal_.err();
  EXPECT_EQ("\n" + terminal_.out(), R"(
data set    digits
about       Digits.
source      csv
location    /data/digits
owner       ann
uploaded    2.0 MB
added       1970-01-12 13:46:40
shape       1x8x8
training    1,500 samples
validation  297 samples
mean        0.2500
deviation   0.5000
classes     2

CLASS  TRAINING SAMPLES  NAME
    0               700  zero
    1               800
)");
  EXPECT_EQ(Run({"datasets", "show", "prices"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("problem     cannot be used: its file is gone\n"));
  EXPECT_THAT(terminal_.out(), HasSubstr("targets     values of shape 2\n"));
  EXPECT_NE(Run({"datasets", "show", "none"}), 0);
  EXPECT_THAT(terminal_.err(), HasSubstr("no data set none"));
}

// A daemon that fetches a set in three calls.
class DatasetFetchTest : public DatasetCommandsTest {
 protected:
  DatasetFetchTest() {
    daemon_.fetch_dataset = [this](const v1::FetchDatasetRequest& request, v1::Dataset* dataset) {
      dataset->set_name("datasets/" + request.name());
      const int call = ++calls_;
      if (call < 3) {
        dataset->set_state(v1::DATASET_STATE_FETCHING);
        dataset->mutable_fetch()->set_bytes_done(call * 10'000'000);
        dataset->mutable_fetch()->set_bytes_total(40'000'000);
        dataset->mutable_fetch()->set_files_done(call);
        dataset->mutable_fetch()->set_files_total(4);
      } else {
        dataset->set_train_samples(60000);
        dataset->set_validation_samples(10000);
        dataset->set_location("/data/mnist");
      }
      return grpc::Status::OK;
    };
  }

  std::atomic<int> calls_ = 0;
};

TEST_F(DatasetFetchTest, AFileGetsALineNowAndThen) {
  EXPECT_EQ(Run({"datasets", "fetch", "mnist"}), 0) << terminal_.err();
  // The fake terminal's clock stands still.
  EXPECT_EQ(terminal_.err(), "the daemon fetches the data: 10.0 MB of 40.0 MB, 1 of 4 files\n");
  EXPECT_EQ(terminal_.out(),
            "mnist is ready: 60,000 training and 10,000 validation samples in /data/mnist\n");
}

TEST_F(DatasetFetchTest, ATerminalShowsABarAndErasesIt) {
  terminal_.interactive = true;
  EXPECT_EQ(Run({"datasets", "fetch", "mnist"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("the daemon fetches the data: 20.0 MB of 40.0 MB, 2 of 4 files"));
  EXPECT_THAT(terminal_.Screen(),
              ElementsAre("mnist is ready: 60,000 training and 10,000 validation samples in /data/mnist"));
}

TEST_F(DatasetFetchTest, CtrlCLeavesTheFetchToTheDaemon) {
  terminal_.interrupt = [](const std::string&) { return true; };
  EXPECT_EQ(Run({"datasets", "fetch", "mnist"}), 130);
  EXPECT_EQ(calls_, 1);
  EXPECT_THAT(terminal_.err(), HasSubstr("tandem datasets fetch mnist\n"));
  EXPECT_EQ(terminal_.out(), "");
}

TEST_F(DatasetFetchTest, ErrorsAndJsonArePassedOn) {
  calls_ = 2;
  EXPECT_EQ(Run({"datasets", "fetch", "mnist", "-o", "json"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("\"datasets/mnist\""));
  daemon_.fetch_dataset = [](const v1::FetchDatasetRequest&, v1::Dataset*) {
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such public set");
  };
  EXPECT_NE(Run({"datasets", "fetch", "nothing"}), 0);
  EXPECT_THAT(terminal_.err(), HasSubstr("no such public set"));
}

TEST_F(DatasetCommandsTest, UploadsAreListedAndRemoved) {
  std::vector<std::string> removed;
  std::vector<v1::Upload> there;
  daemon_.list_uploads = [&](const v1::ListUploadsRequest&, v1::ListUploadsResponse* response) {
    for (const v1::Upload& upload : there) *response->add_uploads() = upload;
    return grpc::Status::OK;
  };
  daemon_.delete_upload = [&](const v1::DeleteUploadRequest& request) -> grpc::Status {
    if (request.name() == "uploads/none") return {grpc::StatusCode::NOT_FOUND, "no upload none"};
    removed.push_back(request.name());
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"datasets", "uploads"}), 0) << terminal_.err();
  EXPECT_EQ(terminal_.out(), "no unfinished uploads\n");
  v1::Upload& upload = there.emplace_back();
  const int64_t now = absl::ToUnixSeconds(terminal_.Now());
  upload.set_name("uploads/u1");
  upload.set_user("ann");
  upload.set_files(1234);
  upload.set_bytes(2'000'000);
  upload.set_bytes_received(1'000'000);
  upload.mutable_create_time()->set_seconds(now - 180);
  upload.mutable_expire_time()->set_seconds(now + 2 * 24 * 60 * 60);
  // A restored database does not know when this upload expires.
  there.push_back(upload);
  there.back().set_name("uploads/u2");
  there.back().clear_expire_time();
  const std::map<std::string, std::string> environment = terminal_.environment;
  terminal_ = FakeTerminal();
  terminal_.environment = environment;
  EXPECT_EQ(Run({"datasets", "uploads"}), 0) << terminal_.err();
  EXPECT_EQ("\n" + terminal_.out(), R"(
UPLOAD  USER  FILES    SIZE   THERE  BEGUN      KEPT FOR
u1      ann   1,234  2.0 MB  1.0 MB  3 min ago  2 d
u2      ann   1,234  2.0 MB  1.0 MB  3 min ago  ever: from before the database was restored
)");
  EXPECT_EQ(Run({"datasets", "uploads", "-o", "json"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("\"uploads/u2\""));
  EXPECT_NE(Run({"datasets", "uploads", "--remove", "u1", "--remove", "none", "--remove", "uploads/u2"}), 0);
  EXPECT_THAT(removed, ElementsAre("uploads/u1", "uploads/u2"));
  EXPECT_THAT(terminal_.err(), HasSubstr("no upload none"));
  EXPECT_THAT(terminal_.out(), HasSubstr("u1 removed\nuploads/u2 removed\n"));
}

}  // namespace
}  // namespace tandem::cli
