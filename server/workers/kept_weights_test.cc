#include "server/workers/kept_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class KeptWeightsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(job_);
    std::ofstream(model_) << "weights";
  }

  TemporaryFolder folder_;
  const std::string job_ = folder_.path() + "/jobs/lenet-1.5-x7k2";
  const std::string model_ = folder_.path() + "/model.safetensors";
};

TEST_F(KeptWeightsTest, LieBesideTheJobsFolders) {
  const std::string path = KeptWeightsPath(job_);
  EXPECT_EQ(path, folder_.path() + "/kept-weights/lenet-1.5-x7k2.safetensors");
  EXPECT_EQ(JobOfKeptWeights(path), "lenet-1.5-x7k2");
  EXPECT_EQ(JobOfKeptWeights(folder_.path() + "/kept-weights/else"), "");
  EXPECT_EQ(KeptWeightsFolder(folder_.path() + "/jobs"), folder_.path() + "/kept-weights");

  EXPECT_EQ(FindKeptWeights(job_), std::nullopt);
  const absl::Status kept = KeepWeights(model_, job_, ::link);
  ASSERT_TRUE(kept.ok()) << kept;
  EXPECT_EQ(FindKeptWeights(job_), path);
  EXPECT_TRUE(std::filesystem::equivalent(path, model_));
  EXPECT_TRUE(std::filesystem::is_empty(job_)) << "a worker may write there";
  struct stat folder;
  ASSERT_EQ(stat((folder_.path() + "/kept-weights").c_str(), &folder), 0);
  EXPECT_EQ(folder.st_mode & 0777, 0700);
}

TEST_F(KeptWeightsTest, AnUploadedFileWithoutASecondNameIsCopied) {
  const auto refuse = [](const char*, const char*) { return errno = EXDEV, -1; };
  const absl::Status kept = KeepUploadedWeights(model_, job_, refuse);
  ASSERT_TRUE(kept.ok()) << kept;
  EXPECT_FALSE(std::filesystem::equivalent(KeptWeightsPath(job_), model_));
  std::ifstream copy(KeptWeightsPath(job_));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(copy), {}), "weights");
  // Any other error is returned.
  const auto fail = [](const char*, const char*) { return errno = ENOSPC, -1; };
  EXPECT_EQ(KeepUploadedWeights(model_, folder_.path() + "/jobs/b", fail).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(FindKeptWeights(folder_.path() + "/jobs/b"), std::nullopt);
}

TEST_F(KeptWeightsTest, NothingButFilesIsKept) {
  std::filesystem::create_directory(KeptWeightsFolder(folder_.path() + "/jobs"));
  std::filesystem::create_symlink(model_, KeptWeightsPath(job_));
  EXPECT_EQ(FindKeptWeights(job_), std::nullopt);
  std::filesystem::remove(KeptWeightsPath(job_));
  std::filesystem::remove(model_);
  for (const bool is_link : {false, true}) {
    if (is_link) {
      std::filesystem::remove(model_);
      std::filesystem::create_symlink(folder_.path(), model_);
    } else {
      std::filesystem::create_directory(model_);
    }
    const absl::Status kept = KeepWeights(model_, job_, ::link);
    EXPECT_EQ(kept.code(), absl::StatusCode::kFailedPrecondition) << kept;
    EXPECT_THAT(std::string(kept.message()), HasSubstr(model_));
    EXPECT_EQ(FindKeptWeights(job_), std::nullopt);
  }
}

TEST_F(KeptWeightsTest, WhatCannotBeLinkedIsToldFromWhatFails) {
  for (const int error : {EXDEV, EOPNOTSUPP, EPERM, EMLINK}) {
    const auto refuse = [error](const char*, const char*) { return errno = error, -1; };
    const absl::Status status = KeepWeights(model_, job_, refuse);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  }
  for (const int error : {ENOSPC, EACCES, EROFS, ENOENT, EIO, EDQUOT}) {
    const auto fail = [error](const char*, const char*) { return errno = error, -1; };
    const absl::Status status = KeepWeights(model_, job_, fail);
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.code(), absl::StatusCode::kUnimplemented) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(model_), HasSubstr(KeptWeightsPath(job_))));
  }
  EXPECT_EQ(FindKeptWeights(job_), std::nullopt);
}

TEST_F(KeptWeightsTest, AreOfUseWhileTheJobMayBeginAnew) {
  for (const v1::JobState state :
       {v1::JOB_STATE_QUEUED, v1::JOB_STATE_STARTING, v1::JOB_STATE_RUNNING, v1::JOB_STATE_PAUSING,
        v1::JOB_STATE_PAUSED, v1::JOB_STATE_CANCELLING, v1::JOB_STATE_PREEMPTING, v1::JOB_STATE_FAILED}) {
    v1::Job job;
    job.set_state(state);
    EXPECT_TRUE(MayNeedKeptWeights(job)) << v1::JobState_Name(state);
  }
  for (const v1::JobState state : {v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_CANCELLED}) {
    v1::Job job;
    job.set_state(state);
    EXPECT_FALSE(MayNeedKeptWeights(job)) << v1::JobState_Name(state);
  }
}

}  // namespace
}  // namespace tandem
