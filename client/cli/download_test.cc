#include <atomic>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/app_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;

// The job lenet-1 with a model. The daemon sends the model in pieces, and the stream breaks after each piece
// except the last.
class DownloadTest : public AppFixture {
 protected:
  DownloadTest() {
    daemon_.get_job = [this](const v1::GetJobRequest&, v1::Job* job) {
      *job = Job(job_, v1::JOB_STATE_SUCCEEDED);
      *job->add_artifacts() = artifact_;
      return grpc::Status::OK;
    };
    daemon_.read_artifact = [this](const v1::ReadArtifactRequest& request,
                                   grpc::ServerWriter<v1::ReadArtifactResponse>* writer) -> grpc::Status {
      v1::ReadArtifactResponse piece;
      piece.set_offset(request.offset());
      piece.set_size_bytes((size_ > 0 ? size_ : static_cast<int64_t>(content_.size())) +
                           (grows_ ? request.offset() : 0));
      piece.set_data(content_.substr(request.offset(), 6));
      writer->Write(piece);
      ++calls_;
      if (request.offset() + 6 >= static_cast<int64_t>(content_.size())) return grpc::Status::OK;
      return {grpc::StatusCode::UNAVAILABLE, "broken"};
    };
    artifact_.set_name("model.safetensors");
    artifact_.set_size_bytes(content_.size());
    // printf 'hello tandem' | sha256sum
    artifact_.set_sha256("7a0deaf564db6d9fae44c57b6e288e34c9ab876b146e0a60681d7fafbb39faa7");
  }

  std::string job_ = "jobs/lenet-1";
  std::string content_ = "hello tandem";
  v1::Artifact artifact_;
  // The daemon's size of the file. 0: the size of the content.
  int64_t size_ = 0;
  bool grows_ = false;
  std::atomic<int> calls_ = 0;
};

TEST_F(DownloadTest, ResumesVerifiesAndPutsTheFileInPlace) {
  const std::string to = folder_ + "/new/folder";
  EXPECT_EQ(Run({"download", "lenet-1", "--to", to}), 0) << terminal_.err();
  EXPECT_EQ(Read(to + "/model.safetensors"), content_);
  EXPECT_EQ(calls_, 2);
  EXPECT_EQ(terminal_.out(), to + "/model.safetensors  12 B\n");
  EXPECT_FALSE(std::filesystem::exists(to + "/model.safetensors.part"));
  EXPECT_EQ(Run({"download", "lenet-1", "model.safetensors", "--to", to}), 0);
  EXPECT_EQ(calls_, 2);
  EXPECT_THAT(terminal_.out(), HasSubstr("already there"));
}

TEST_F(DownloadTest, OutputThatCannotBeWrittenEndsIt) {
  terminal_.output_status = absl::ResourceExhaustedError("cannot write the output: no space");
  EXPECT_EQ(Run({"download", "lenet-1", "--to", folder_ + "/new"}), 5);
  EXPECT_EQ(terminal_.err(), "tandem: cannot write the output: no space\n");
}

// The job's record does not have the model of a checkpoint, and the daemon alone knows its size.
TEST_F(DownloadTest, AsksForTheModelOfACheckpoint) {
  artifact_.clear_sha256();
  EXPECT_EQ(Run({"download", "lenet-1", "model-12.safetensors", "--to", folder_}), 0) << terminal_.err();
  EXPECT_EQ(Read(folder_ + "/model-12.safetensors"), content_);
  EXPECT_EQ(terminal_.out(), folder_ + "/model-12.safetensors  12 B\n");
  EXPECT_EQ(calls_, 2);
  // A repeated download compares the contents.
  EXPECT_EQ(RunAnew({"download", "lenet-1", "model-12.safetensors", "--to", folder_}), 0) << terminal_.err();
  EXPECT_EQ(terminal_.out(), folder_ + "/model-12.safetensors  12 B  already there\n");
  for (const char* const other : {"hello tandxm", "hello", "hello tandem and more"}) {
    Write("model-12.safetensors", other);
    EXPECT_EQ(RunAnew({"download", "lenet-1", "model-12.safetensors", "--to", folder_}), 2) << other;
    EXPECT_THAT(terminal_.err(), HasSubstr("another file is there"));
    EXPECT_EQ(Read(folder_ + "/model-12.safetensors"), other);
  }
  EXPECT_EQ(RunAnew({"download", "lenet-1", "model-12.safetensors", "--to", folder_, "--force"}), 0);
  EXPECT_EQ(Read(folder_ + "/model-12.safetensors"), content_);
  EXPECT_EQ(RunAnew({"download", "lenet-1", "model-x.safetensors", "--to", folder_}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("has no file `model-x.safetensors`"));
  daemon_.get_job = [](const v1::GetJobRequest&, v1::Job* job) {
    *job = Job("jobs/lenet-1", v1::JOB_STATE_RUNNING);
    return grpc::Status::OK;
  };
  EXPECT_EQ(RunAnew({"download", "lenet-1", "model-13.safetensors", "--to", folder_, "-o", "json"}), 0)
      << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("\"size_bytes\":\"12\""));
  EXPECT_EQ(RunAnew({"download", "lenet-1", "--to", folder_}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("has made no files yet"));
}

TEST_F(DownloadTest, AFolderThatCannotBeEnteredIsSaidToBeThat) {
  std::filesystem::create_symlink("loop", folder_ + "/loop");
  for (const std::string& to : {folder_ + "/loop", folder_ + "/" + std::string(300, 'x')}) {
    EXPECT_EQ(Run({"download", "lenet-1", "--to", to}), 5) << terminal_.err();
    EXPECT_THAT(terminal_.err(), HasSubstr("cannot create the folder " + to));
  }
  EXPECT_EQ(calls_, 0);
}

TEST_F(DownloadTest, ReplacesAnotherFileOnlyWhenTold) {
  const std::string path = Write("model.safetensors", "somebody's work");
  EXPECT_EQ(Run({"download", "lenet-1", "--to", folder_}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("another file is there"));
  EXPECT_EQ(Read(path), "somebody's work");
  EXPECT_EQ(calls_, 0);
  EXPECT_EQ(Run({"download", "lenet-1", "--to", folder_, "--force"}), 0) << terminal_.err();
  EXPECT_EQ(Read(path), content_);
}

TEST_F(DownloadTest, WrongContentIsNotKept) {
  content_ = "hello tandxm";
  EXPECT_EQ(Run({"download", "lenet-1", "--to", folder_}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("has the SHA-256"));
  EXPECT_THAT(terminal_.err(), HasSubstr("it was not kept"));
  content_ = "hello";
  EXPECT_EQ(Run({"download", "lenet-1", "--to", folder_}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("it has 5 bytes, but the job's record has 12"));
  content_ = "hello tandem and more";
  EXPECT_EQ(Run({"download", "lenet-1", "--to", folder_}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("it has more than the 12 bytes"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

// The job lost its worker, which may have written the file again.
TEST_F(DownloadTest, WithoutAChecksumTheDaemonSaysTheSize) {
  artifact_.clear_sha256();
  artifact_.set_size_bytes(12);
  for (const std::string content : {"hello", "hello tandem and more"}) {
    content_ = content;
    EXPECT_EQ(Run({"download", "lenet-1", "--to", folder_, "--force"}), 0) << terminal_.err();
    EXPECT_EQ(Read(folder_ + "/model.safetensors"), content);
    EXPECT_THAT(terminal_.out(), HasSubstr(absl::StrCat("model.safetensors  ", content.size(), " B\n")));
  }
  size_ = 6;
  EXPECT_EQ(Run({"download", "lenet-1", "--to", folder_, "--force"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("it has more than the 6 bytes of the daemon's answer"));
  size_ = 30;
  EXPECT_EQ(Run({"download", "lenet-1", "--to", folder_, "--force"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("it has 21 bytes, but the daemon's answer has 30"));
  // The file grows between two pieces.
  size_ = 0;
  grows_ = true;
  EXPECT_EQ(Run({"download", "lenet-1", "--to", folder_, "--force"}), 2);
  EXPECT_THAT(terminal_.err(),
              HasSubstr("the daemon's file changed from 21 to 27 bytes meanwhile; fetch it again"));
  EXPECT_EQ(Read(folder_ + "/model.safetensors"), content_);
}

TEST_F(DownloadTest, NamesCannotLeadOutOfTheFolder) {
  for (const char* name : {"../x", "/etc/x", "a/../../x", "", ".", "a/", "x\n"}) {
    artifact_.set_name(name);
    EXPECT_EQ(Run({"download", "lenet-1", "--to", folder_}), 2) << name;
    EXPECT_THAT(terminal_.err(), HasSubstr("leads out of the folder"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  artifact_.set_name("model.safetensors");
  job_ = "jobs/../outside";
  EXPECT_EQ(Run({"download", "lenet-1"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("cannot create a folder for the job \"../outside\""));
}

TEST_F(DownloadTest, UnknownFilesAndFoldersThatCannotBe) {
  EXPECT_EQ(Run({"download", "lenet-1", "model.safetensor"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("did you mean `model.safetensors`?"));
  EXPECT_EQ(Run({"download", "lenet-1", "--to", "/proc/nothing"}), 5);
  EXPECT_THAT(terminal_.err(), HasSubstr("cannot create the folder /proc/nothing"));
}

}  // namespace
}  // namespace tandem::cli
