#include "server/datasets/upload_folder.h"

#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/datasets/full_disk_env.h"
#include "server/datasets/sample_upload.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

class UploadFolderTest : public ::testing::Test {
 protected:
  void Create(const SampleUpload& sample) {
    auto created = UploadFolder::Create(&env_, Folder(), sample.Declaration());
    ASSERT_TRUE(created.ok()) << created.status();
    upload_ = *std::move(created);
  }
  // Opens the folder like the daemon after a killed daemon.
  void Reopen() {
    upload_.reset();
    auto opened = UploadFolder::Open(&env_, Folder());
    ASSERT_TRUE(opened.ok()) << opened.status();
    upload_ = *std::move(opened);
  }
  std::string Folder() const { return folder_.path() + "/u"; }
  void ExpectFiles(const SampleUpload& sample) {
    EXPECT_TRUE(upload_->whole());
    for (const auto& [path, content] : sample.files()) {
      std::ifstream file(UploadFolder::FilesFolder(Folder()) + "/" + path);
      std::stringstream read;
      read << file.rdbuf();
      EXPECT_EQ(read.str(), content) << path;
    }
  }

  const TemporaryFolder folder_;
  FullDiskEnv env_;
  std::unique_ptr<UploadFolder> upload_;
};

SampleUpload Flowers() {
  return SampleUpload({{"train/rose/1.png", "a rose is a rose"},
                       {"train/rose/2.png", ""},
                       {"train/tulip/1.png", "0123456789"},
                       {"train-labels", "x"}});
}

TEST_F(UploadFolderTest, TakesFilesIn) {
  const SampleUpload sample = Flowers();
  Create(sample);
  for (const v1::UploadFilesRequest& piece : sample.Pieces(upload_->Progress())) {
    ASSERT_TRUE(upload_->Take(piece).ok());
  }
  EXPECT_FALSE(upload_->whole());
  ASSERT_TRUE(upload_->Sync().ok());
  ExpectFiles(sample);
  EXPECT_EQ(upload_->Progress().files_received(), 4);
  EXPECT_EQ(upload_->Progress().bytes_received(), upload_->Progress().bytes());
  Reopen();
  ExpectFiles(sample);
}

// After a break at any piece, synced or not, the upload continues at its reported position.
TEST_F(UploadFolderTest, GoesOnAfterEveryCut) {
  const SampleUpload sample = Flowers();
  const size_t pieces = sample.Pieces(sample.Declaration()).size();
  for (const bool syncs : {true, false}) {
    for (const bool reopens : {true, false}) {
      for (size_t cut = 0; cut <= pieces; ++cut) {
        SCOPED_TRACE(absl::StrCat(syncs, reopens, " cut after ", cut));
        std::filesystem::remove_all(Folder());
        Create(sample);
        const auto before = sample.Pieces(upload_->Progress());
        for (size_t i = 0; i < cut; ++i) ASSERT_TRUE(upload_->Take(before[i]).ok());
        if (syncs) {
          ASSERT_TRUE(upload_->Sync().ok());
        }
        if (reopens) {
          Reopen();
        } else {
          // Another call finds the same upload, and syncs to report its position.
          ASSERT_TRUE(upload_->Sync().ok());
        }
        for (const v1::UploadFilesRequest& piece : sample.Pieces(upload_->Progress())) {
          const absl::Status taken = upload_->Take(piece);
          ASSERT_TRUE(taken.ok()) << taken;
        }
        ASSERT_TRUE(upload_->Sync().ok());
        ExpectFiles(sample);
      }
    }
  }
}

TEST_F(UploadFolderTest, AHalfWrittenLineCountsForNothing) {
  const SampleUpload sample = Flowers();
  Create(sample);
  const auto pieces = sample.Pieces(upload_->Progress(), 100);
  ASSERT_TRUE(upload_->Take(pieces[0]).ok());
  ASSERT_TRUE(upload_->Take(pieces[1]).ok());
  ASSERT_TRUE(upload_->Sync().ok());
  const std::string received = Folder() + "/received";
  std::filesystem::resize_file(received, std::filesystem::file_size(received) - 3);
  Reopen();
  EXPECT_EQ(upload_->Progress().files_received(), 1);
  for (const v1::UploadFilesRequest& piece : sample.Pieces(upload_->Progress())) {
    ASSERT_TRUE(upload_->Take(piece).ok());
  }
  ASSERT_TRUE(upload_->Sync().ok());
  ExpectFiles(sample);
}

TEST_F(UploadFolderTest, RefusesADamagedFileAndTakesItAnew) {
  const SampleUpload sample = Flowers();
  Create(sample);
  auto pieces = sample.Pieces(upload_->Progress(), 100);
  pieces[0].mutable_data()->back() ^= 1;
  const absl::Status status = upload_->Take(pieces[0]);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("train-labels"));
  EXPECT_EQ(upload_->Progress().next_offset(), 0);
  for (const v1::UploadFilesRequest& piece : sample.Pieces(upload_->Progress())) {
    ASSERT_TRUE(upload_->Take(piece).ok());
  }
  ASSERT_TRUE(upload_->Sync().ok());
  ExpectFiles(sample);
}

TEST_F(UploadFolderTest, RefusesWhatWasNotDeclared) {
  const SampleUpload sample({{"a", "123"}, {"b", "456"}});
  const auto field = [](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  const SampleUpload bad({{"../a", "123"},
                          {"a/../../b", "123"},
                          {"/etc/x", "123"},
                          {"long", "1234567"},
                          {"a", "12"},
                          {"a/b", "1"},
                          {"b", "456"},
                          {"c", ""}});
  Create(sample);
  v1::UploadFilesRequest piece;
  for (const char* path : {"../a", "a/../../b", "/etc/x"}) {
    *piece.mutable_file() = bad.Header(path);
    EXPECT_THAT(field(upload_->Take(piece)), HasSubstr("file.path"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/a"));
  *piece.mutable_file() = bad.Header("long");
  EXPECT_THAT(field(upload_->Take(piece)), HasSubstr("file.size"));
  *piece.mutable_file() = sample.Header("a");
  piece.mutable_file()->set_sha256("short");
  EXPECT_THAT(field(upload_->Take(piece)), HasSubstr("file.sha256"));
  piece.Clear();
  piece.set_data("1");
  EXPECT_THAT(field(upload_->Take(piece)), HasSubstr("file"));
  // More bytes than the file has.
  *piece.mutable_file() = sample.Header("a");
  piece.set_data("1234");
  EXPECT_THAT(field(upload_->Take(piece)), HasSubstr("beyond"));
  piece.set_data(std::string(kMaxUploadPiece + 1, 'x'));
  EXPECT_THAT(field(upload_->Take(piece)), HasSubstr("data"));
  // An offset that is not the upload's position.
  *piece.mutable_file() = sample.Header("a", 2);
  piece.set_data("3");
  EXPECT_EQ(upload_->Take(piece).code(), absl::StatusCode::kAborted);
  *piece.mutable_file() = sample.Header("a");
  piece.set_data("123");
  ASSERT_TRUE(upload_->Take(piece).ok());
  // The same file again, a path below a file, and one file too many.
  EXPECT_THAT(field(upload_->Take(piece)), HasSubstr("order"));
  *piece.mutable_file() = bad.Header("a/b");
  piece.set_data("1");
  EXPECT_THAT(field(upload_->Take(piece)), HasSubstr("'a' is already a file"));
  *piece.mutable_file() = sample.Header("b");
  piece.set_data("456");
  ASSERT_TRUE(upload_->Take(piece).ok());
  *piece.mutable_file() = bad.Header("c");
  piece.set_data("");
  EXPECT_THAT(field(upload_->Take(piece)), HasSubstr("is one file more"));
}

// Each folder takes a block of the disk and is not declared.
TEST_F(UploadFolderTest, FoldersAreLimitedByFiles) {
  std::map<std::string, std::string> files;
  const std::string deep = "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/";
  for (const char* top : {"a", "b", "c"}) files[top + deep + "x"] = "";
  files["b" + deep + "y"] = "";
  files["b-/x"] = "";
  const SampleUpload sample(std::move(files));
  // 16 of a, 16 of b, one of b-: three of 36 are left.
  for (const bool reopens : {false, true}) {
    std::filesystem::remove_all(Folder());
    Create(sample);
    std::vector<absl::Status> taken;
    for (const v1::UploadFilesRequest& piece : sample.Pieces(upload_->Progress())) {
      taken.push_back(upload_->Take(piece));
      if (!reopens || !taken.back().ok()) continue;
      ASSERT_TRUE(upload_->Sync().ok());
      Reopen();
    }
    ASSERT_EQ(taken.size(), 5);
    for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(taken[i].ok()) << taken[i];
    EXPECT_EQ(taken[4].code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(taken[4].message()),
                HasSubstr("in folder 49 of the upload; an upload of 5 files may have at most 36 folders"));
    EXPECT_FALSE(std::filesystem::exists(UploadFolder::FilesFolder(Folder()) + "/c"));
  }
}

TEST_F(UploadFolderTest, RefusesOtherFilesThanDeclared) {
  const SampleUpload declared({{"a", "123"}, {"b", "456"}});
  const SampleUpload other({{"a", "123"}, {"b", "457"}});
  Create(declared);
  for (const v1::UploadFilesRequest& piece : other.Pieces(upload_->Progress())) {
    ASSERT_TRUE(upload_->Take(piece).ok());
  }
  EXPECT_EQ(upload_->Sync().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(upload_->whole());
}

// If the disk fills up at any moment, the received bytes stay, and the upload continues as soon as the disk
// has room.
TEST_F(UploadFolderTest, AFullDiskLosesNothing) {
  const SampleUpload sample = Flowers();
  for (int64_t room = 0; room < 400; room += 23) {
    SCOPED_TRACE(room);
    std::filesystem::remove_all(Folder());
    env_.left = int64_t{1} << 40;
    Create(sample);
    env_.left = room;
    absl::Status status;
    for (const v1::UploadFilesRequest& piece : sample.Pieces(upload_->Progress())) {
      status = upload_->Take(piece);
      if (!status.ok()) break;
    }
    if (status.ok()) status = upload_->Sync();
    if (!status.ok()) {
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    }
    env_.left = int64_t{1} << 40;
    if (room % 2 == 0) Reopen();
    ASSERT_TRUE(upload_->Sync().ok());
    for (const v1::UploadFilesRequest& piece : sample.Pieces(upload_->Progress())) {
      const absl::Status taken = upload_->Take(piece);
      ASSERT_TRUE(taken.ok()) << taken;
    }
    ASSERT_TRUE(upload_->Sync().ok());
    ExpectFiles(sample);
  }
}

TEST_F(UploadFolderTest, ManySmallFilesAreDurableInBatches) {
  std::map<std::string, std::string> files;
  for (int i = 0; i < 300; ++i) files[absl::StrCat("f", i % 7, "/", i)] = absl::StrCat("file ", i);
  const SampleUpload sample(files);
  Create(sample);
  for (const v1::UploadFilesRequest& piece : sample.Pieces(upload_->Progress(), 100)) {
    ASSERT_TRUE(upload_->Take(piece).ok());
  }
  EXPECT_EQ(upload_->Progress().files_received(), 256);
  ASSERT_TRUE(upload_->Sync().ok());
  ExpectFiles(sample);
}

// A daemon opens its uploads at its start.
TEST_F(UploadFolderTest, OpeningAnUploadTakesLittleMemory) {
  v1::Upload declared = Flowers().Declaration();
  declared.set_files(1000000);
  ASSERT_TRUE(UploadFolder::Create(&env_, Folder(), declared).ok());
  // 100 MB.
  constexpr int kFiles = 100000;
  {
    std::ofstream received(Folder() + "/received");
    const std::string folder(220, 'a');
    for (int i = 0; i < kFiles; ++i) {
      received << std::string(64, '0') << " 1 " << folder << "/" << folder << "/" << folder << "/" << folder
               << absl::StrFormat("/%040d\n", i);
    }
  }
  rusage before = {}, after = {};
  ASSERT_EQ(getrusage(RUSAGE_SELF, &before), 0);
  Reopen();
  ASSERT_EQ(getrusage(RUSAGE_SELF, &after), 0);
  EXPECT_EQ(upload_->Progress().files_received(), kFiles);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 50 << 10) << "in KiB";
}

TEST_F(UploadFolderTest, AFolderWithoutAnUploadIsNone) {
  EXPECT_EQ(UploadFolder::Open(&env_, Folder()).status().code(), absl::StatusCode::kNotFound);
  Create(Flowers());
  std::ofstream(Folder() + "/received") << "nonsense\n";
  EXPECT_EQ(UploadFolder::Open(&env_, Folder()).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace tandem
