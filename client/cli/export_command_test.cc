// Exported models, with a daemon that gives the test's answers.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "client/cli/app_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;

class ExportCommandTest : public AppFixture {
 protected:
  ExportCommandTest() {
    daemon_.get_job = [](const v1::GetJobRequest&, v1::Job* job) {
      job->set_name("jobs/lenet-1");
      return grpc::Status::OK;
    };
  }
};

TEST_F(ExportCommandTest, ExportsAModel) {
  v1::ExportModelRequest asked;
  bool fails = false;
  daemon_.export_model = [&](const v1::ExportModelRequest& request,
                             grpc::ServerWriter<v1::ExportModelResponse>* writer) {
    asked = request;
    v1::ExportModelResponse response;
    for (const char* part : {"on", "nx"}) {
      response.set_data(part);
      writer->Write(response);
      if (fails) return grpc::Status(grpc::StatusCode::DATA_LOSS, "the model is damaged");
    }
    return grpc::Status::OK;
  };
  const std::string path = folder_ + "/model.onnx";
  EXPECT_EQ(RunAnew({"export", "lenet-1", path, "--artifact", "best.safetensors"}), 0) << terminal_.err();
  EXPECT_EQ(asked.name(), "jobs/lenet-1");
  EXPECT_EQ(asked.artifact(), "best.safetensors");
  EXPECT_EQ(terminal_.out(), path + "  4 B\n");
  const auto content = [&] {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  };
  EXPECT_EQ(content(), "onnx");
  EXPECT_EQ(RunAnew({"export", "lenet-1", path, "--force", "-o", "json"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("\"size_bytes\":\"4\""));
  EXPECT_EQ(RunAnew({"export", "lenet-1", path}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("another file is there; --force replaces it, or name another file"));
  fails = true;
  EXPECT_EQ(RunAnew({"export", "lenet-1", path, "--force"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("the model is damaged"));
  EXPECT_EQ(content(), "onnx");
  fails = false;
  EXPECT_NE(RunAnew({"export", "lenet-1", folder_ + "/none/model.onnx"}), 0);
  EXPECT_THAT(terminal_.err(), HasSubstr(folder_ + "/none"));
  // Neither a folder nor a device is replaced. The model is not asked for.
  asked.Clear();
  EXPECT_EQ(RunAnew({"export", "lenet-1", folder_, "--force"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr(folder_ + ": it is not a regular file; name another file"));
  EXPECT_EQ(asked.name(), "");
}

TEST_F(ExportCommandTest, ExportsToRegularFilesAlone) {
  int calls = 0;
  daemon_.export_model = [&](const v1::ExportModelRequest&,
                             grpc::ServerWriter<v1::ExportModelResponse>* writer) {
    ++calls;
    v1::ExportModelResponse response;
    response.set_data("onnx");
    writer->Write(response);
    return grpc::Status::OK;
  };
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {folder_, pipe}) {
    for (const bool force : {false, true}) {
      std::vector<std::string> words = {"export", "lenet-1", path};
      if (force) words.emplace_back("--force");
      EXPECT_EQ(RunAnew(words), 2) << path;
      EXPECT_THAT(terminal_.err(), HasSubstr("it is not a regular file; name another file"));
    }
  }
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_EQ(calls, 0);
  // The unfinished file leads to a full disk.
  std::filesystem::create_symlink("/dev/full", folder_ + "/model.onnx.tmp");
  EXPECT_EQ(RunAnew({"export", "lenet-1", folder_ + "/model.onnx"}), 5);
  EXPECT_THAT(terminal_.err(), HasSubstr("No space left on device"));
}

}  // namespace
}  // namespace tandem::cli
