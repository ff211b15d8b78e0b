#include "client/lib/upload_plan.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::client {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class UploadPlanTest : public ::testing::Test {
 protected:
  UploadPlanTest() {
    std::string pattern = ::testing::TempDir() + "/plan-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~UploadPlanTest() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& content) {
    fs::create_directories(fs::path(folder_ + "/" + name).parent_path());
    std::ofstream(folder_ + "/" + name) << content;
  }
  static v1::DatasetSpec Csv(const std::string& train, const std::string& validation = "") {
    v1::DatasetSpec spec;
    spec.mutable_csv()->set_train(train);
    spec.mutable_csv()->set_validation(validation);
    return spec;
  }
  static std::vector<std::string> Paths(const UploadPlan& plan) {
    std::vector<std::string> paths;
    for (const LocalFile& file : plan.files) paths.push_back(file.path);
    return paths;
  }
  std::string Error(v1::DatasetSpec spec) {
    const absl::Status status = PlanUpload(folder_, &spec).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }

  std::string folder_;
};

TEST_F(UploadPlanTest, PathsAreThoseBelowWhatIsCommon) {
  Write("data/a/train.csv", "12345");
  Write("data/b/test.csv", "678");
  v1::DatasetSpec spec = Csv("data/a/train.csv", folder_ + "/data/b/../b/test.csv");
  absl::StatusOr<UploadPlan> plan = PlanUpload(folder_, &spec);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(Paths(*plan), ElementsAre("a/train.csv", "b/test.csv"));
  EXPECT_EQ(spec.csv().train(), "a/train.csv");
  EXPECT_EQ(spec.csv().validation(), "b/test.csv");
  EXPECT_EQ(plan->bytes, 8);
  ASSERT_TRUE(ComputeDigests([](int64_t) { return true; }, &*plan).ok());
  // From printf '12345' | sha256sum, and so on.
  EXPECT_EQ(absl::BytesToHexString(plan->files[0].sha256),
            "5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5");
  EXPECT_EQ(plan->manifest_sha256.size(), 32);
  // A single file keeps only its name.
  spec = Csv("data/a/train.csv");
  plan = PlanUpload(folder_, &spec);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(Paths(*plan), ElementsAre("train.csv"));
}

TEST_F(UploadPlanTest, FoldersComeWhole) {
  Write("flowers/train/rose/1.png", "1");
  Write("flowers/train/rose/.cache/2.png", "2");
  Write("flowers/train/.hidden", "3");
  Write("flowers/train-2/x.png", "4");
  Write("flowers/test/tulip/deep/5.png", "5");
  v1::DatasetSpec spec;
  spec.mutable_image_folder()->set_train("flowers/train/");
  spec.mutable_image_folder()->set_validation("flowers/test");
  const absl::StatusOr<UploadPlan> plan = PlanUpload(folder_, &spec);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(Paths(*plan), ElementsAre("test/tulip/deep/5.png", "train/rose/1.png"));
  EXPECT_EQ(spec.image_folder().train(), "train");
  EXPECT_EQ(spec.image_folder().validation(), "test");
}

TEST_F(UploadPlanTest, LeavesTheDaemonWhatIsItsOwn) {
  Write("train.csv", "1");
  v1::DatasetSpec spec = Csv("train.csv", "https://example.org/test.csv");
  ASSERT_TRUE(PlanUpload(folder_, &spec).ok());
  EXPECT_EQ(spec.csv().validation(), "https://example.org/test.csv");
  spec = Csv("train.csv", "/no/such/place/test.csv");
  ASSERT_TRUE(PlanUpload(folder_, &spec).ok());
  EXPECT_EQ(spec.csv().validation(), "/no/such/place/test.csv");
  Write("0.tar", "1");
  Write("1.tar", "2");
  v1::DatasetSpec shards;
  shards.mutable_webdataset()->set_train("{0..1}.tar");
  shards.mutable_webdataset()->set_validation("/no/such/place/{0..1}.tar");
  const absl::StatusOr<UploadPlan> plan = PlanUpload(folder_, &shards);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(Paths(*plan), ElementsAre("0.tar", "1.tar"));
  EXPECT_EQ(shards.webdataset().train(), "{0..1}.tar");
  EXPECT_EQ(shards.webdataset().validation(), "/no/such/place/{0..1}.tar");
}

TEST_F(UploadPlanTest, OneFileHasItsName) {
  Write("deep/model.safetensors", "12345");
  const absl::StatusOr<UploadPlan> plan = PlanFileUpload(folder_ + "/deep/../deep/model.safetensors");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(Paths(*plan), ElementsAre("model.safetensors"));
  EXPECT_TRUE(fs::equivalent(plan->files[0].local, folder_ + "/deep/model.safetensors"));
  EXPECT_EQ(plan->bytes, 5);
  for (const std::string& path : {folder_ + "/deep", folder_ + "/none", std::string()}) {
    const absl::Status status = PlanFileUpload(path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("there is no file " + path));
  }
}

TEST_F(UploadPlanTest, SaysWhatIsWrong) {
  Write("train.csv", "1");
  fs::create_directories(folder_ + "/empty");
  Write(std::string("bad/\xff.png"), "1");
  EXPECT_THAT(Error(Csv("train.csv", "none.csv")), HasSubstr("csv.validation: there is no file or folder"));
  EXPECT_THAT(Error(Csv("https://example.org/a.csv")), HasSubstr("it names no file of this machine"));
  EXPECT_THAT(Error(Csv("empty")), HasSubstr("its folders are empty"));
  EXPECT_THAT(Error(Csv("bad")), HasSubstr("is not UTF-8"));
  EXPECT_THAT(Error(v1::DatasetSpec()), HasSubstr("it names no file of this machine"));
  v1::DatasetSpec shards;
  shards.mutable_webdataset()->set_train("{0..1.tar");
  EXPECT_THAT(Error(shards), HasSubstr("webdataset.train: is '"));
  shards.mutable_webdataset()->set_train("{0..1}.tar");
  EXPECT_THAT(Error(shards), HasSubstr("0.tar: cannot be read"));
  v1::DatasetSpec spec = Csv("train.csv");
  absl::StatusOr<UploadPlan> plan = PlanUpload(folder_, &spec);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(ComputeDigests([](int64_t) { return false; }, &*plan).code(), absl::StatusCode::kCancelled);
  Write("train.csv", "longer");
  EXPECT_EQ(ComputeDigests([](int64_t) { return true; }, &*plan).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(UploadPlanTest, KnowsThePathsOfEverySource) {
  // The client would send a source without files if it forgot the source's paths.
  const google::protobuf::OneofDescriptor* sources = v1::DatasetSpec::descriptor()->FindOneofByName("source");
  for (int i = 0; i < sources->field_count(); ++i) {
    v1::DatasetSpec spec;
    google::protobuf::Message* source = spec.GetReflection()->MutableMessage(&spec, sources->field(i));
    int strings = 0;
    for (int j = 0; j < source->GetDescriptor()->field_count(); ++j) {
      const google::protobuf::FieldDescriptor* field = source->GetDescriptor()->field(j);
      const bool path = field->name().starts_with("train") || field->name().starts_with("validation") ||
                        field->name() == "path";
      if (!path || field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_INT64) continue;
      ++strings;
      if (field->is_repeated()) {
        source->GetReflection()->AddString(source, field, "x");
      } else if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING) {
        source->GetReflection()->SetString(source, field, "x");
      } else {
        google::protobuf::Message* array = source->GetReflection()->MutableMessage(source, field);
        array->GetReflection()->SetString(array, array->GetDescriptor()->FindFieldByName("path"), "x");
      }
    }
    EXPECT_EQ(SourcePaths(&spec).size(), strings) << sources->field(i)->name();
  }
}

}  // namespace
}  // namespace tandem::client
