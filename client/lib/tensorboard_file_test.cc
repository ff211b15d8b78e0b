#include "client/lib/tensorboard_file.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "gtest/gtest.h"

namespace tandem::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Returns the bytes of a Summary.Value with this tag (field 1) and number (field 2, a float).
std::string Scalar(const std::string& tag, float value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return std::string("\x0a") + static_cast<char>(tag.size()) + tag + "\x15" + bytes;
}

// Returns the bytes of an entry of the map of hyperparameters.
std::string Entry(const std::string& path, const google::protobuf::Value& value) {
  const std::string bytes = value.SerializeAsString();
  return std::string("\x0a") + static_cast<char>(path.size()) + path + "\x12" +
         static_cast<char>(bytes.size()) + bytes;
}
std::string Entry(const std::string& path, double number) {
  google::protobuf::Value value;
  value.set_number_value(number);
  return Entry(path, value);
}
std::string Entry(const std::string& path, const char* text) {
  google::protobuf::Value value;
  value.set_string_value(text);
  return Entry(path, value);
}
std::string Entry(const std::string& path, bool flag) {
  google::protobuf::Value value;
  value.set_bool_value(flag);
  return Entry(path, value);
}

class TensorBoardFileTest : public ::testing::Test {
 protected:
  TensorBoardFileTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tandem-tb-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ + "/events";
    job_.mutable_create_time()->set_seconds(1'000'000);
  }
  ~TensorBoardFileTest() override { std::filesystem::remove_all(folder_); }

  static v1::JobEvent Report(int64_t sequence) {
    v1::JobEvent event;
    event.set_sequence(sequence);
    event.mutable_time()->set_seconds(1'000'000 + sequence);
    event.mutable_progress()->set_step(sequence * 10);
    event.mutable_progress()->mutable_training()->set_loss(1.0 / static_cast<double>(sequence));
    return event;
  }
  std::unique_ptr<TensorBoardFile> Open() {
    absl::StatusOr<std::unique_ptr<TensorBoardFile>> file =
        TensorBoardFile::Open(path_, job_, "    epochs: 3");
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *std::move(file) : nullptr;
  }
  std::string Read() const {
    std::ostringstream content;
    content << std::ifstream(path_, std::ios::binary).rdbuf();
    return content.str();
  }
  void Write(const std::string& content) const { std::ofstream(path_, std::ios::binary) << content; }

  std::string folder_;
  std::string path_;
  v1::Job job_;
};

TEST_F(TensorBoardFileTest, ChecksumsAreCastagnolis) {
  // The check value of CRC-32C, and a vector of RFC 3720.
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
}

TEST_F(TensorBoardFileTest, AFileCutAnywhereContinuesToTheSameBytes) {
  {
    const std::unique_ptr<TensorBoardFile> file = Open();
    for (int i = 1; i <= 3; ++i) ASSERT_TRUE(file->Add(Report(i)).ok());
    ASSERT_TRUE(file->Sync().ok());
  }
  const std::string whole = Read();
  for (size_t size = 0; size <= whole.size(); ++size) {
    Write(whole.substr(0, size));
    const std::unique_ptr<TensorBoardFile> file = Open();
    ASSERT_NE(file, nullptr) << size;
    // The file ignores events that it already holds.
    for (int i = 1; i <= 3; ++i) ASSERT_TRUE(file->Add(Report(i)).ok());
    ASSERT_EQ(file->last_sequence(), 3);
    ASSERT_TRUE(file->Sync().ok());
    ASSERT_EQ(Read(), whole) << size;
  }
}

TEST_F(TensorBoardFileTest, ADamagedRecordAndItsSuccessorsAreWrittenAgain) {
  {
    const std::unique_ptr<TensorBoardFile> file = Open();
    for (int i = 1; i <= 3; ++i) ASSERT_TRUE(file->Add(Report(i)).ok());
  }
  const std::string whole = Read();
  std::string damaged = whole;
  damaged[damaged.size() - 6] ^= 1;
  Write(damaged);
  {
    const std::unique_ptr<TensorBoardFile> file = Open();
    EXPECT_EQ(file->last_sequence(), 2);
    ASSERT_TRUE(file->Add(Report(3)).ok());
  }
  EXPECT_EQ(Read(), whole);
}

TEST_F(TensorBoardFileTest, SomebodysFileStays) {
  Write("somebody's work");
  const absl::Status status = TensorBoardFile::Open(path_, job_, "").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("not an event file of this program"));
  EXPECT_EQ(Read(), "somebody's work");
}

TEST_F(TensorBoardFileTest, TwoWritersDoNotMix) {
  const std::unique_ptr<TensorBoardFile> file = Open();
  EXPECT_TRUE(absl::IsAborted(TensorBoardFile::Open(path_, job_, "").status()));
}

TEST_F(TensorBoardFileTest, AFileThatCannotBeOpenedIsNamed) {
  const absl::Status status = TensorBoardFile::Open(folder_ + "/none/events", job_, "").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot open " + folder_ + "/none/events"));
}

TEST_F(TensorBoardFileTest, AnotherProgramsRecordsStay) {
  {
    const std::unique_ptr<TensorBoardFile> file = Open();
    ASSERT_TRUE(file->Add(Report(2)).ok());
    ASSERT_TRUE(file->Sync().ok());
  }
  const std::string second = Read();
  std::filesystem::remove(path_);
  std::string first;
  {
    const std::unique_ptr<TensorBoardFile> file = Open();
    ASSERT_TRUE(file->Sync().ok());
    const size_t head = Read().size();
    first = second.substr(head);
    ASSERT_TRUE(file->Add(Report(3)).ok());
    ASSERT_TRUE(file->Sync().ok());
  }
  // A file whose events are out of order is no copy of a log.
  Write(Read() + first);
  const absl::Status status = TensorBoardFile::Open(path_, job_, "").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("not an event file of this program"));
}

TEST_F(TensorBoardFileTest, ANewFileHasTheSpecsFieldsAsHyperparameters) {
  v1::JobSpec& spec = *job_.mutable_spec();
  spec.set_name("lenet");
  spec.set_priority(-3);
  spec.add_frozen_layers("conv1");
  spec.add_frozen_layers("conv2");
  spec.mutable_training()->set_epochs(3);
  spec.mutable_training()->set_seed(17);
  spec.mutable_training()->set_drop_last(true);
  spec.mutable_training()->set_precision(v1::PRECISION_BFLOAT16);
  spec.mutable_training()->add_metrics(v1::METRIC_ACCURACY);
  spec.mutable_training()->mutable_optimizer()->mutable_sgd()->set_learning_rate(0.25);
  spec.mutable_model()->add_layers()->mutable_dense()->set_units(10);
  spec.mutable_model()->mutable_input()->add_shape(28);
  Open();
  const std::string content = Read();
  EXPECT_THAT(content, HasSubstr(Entry("name", "lenet")));
  EXPECT_THAT(content, HasSubstr(Entry("priority", -3.0)));
  EXPECT_THAT(content, HasSubstr(Entry("frozen_layers[1]", "conv2")));
  EXPECT_THAT(content, HasSubstr(Entry("training.epochs", 3.0)));
  EXPECT_THAT(content, HasSubstr(Entry("training.seed", 17.0)));
  EXPECT_THAT(content, HasSubstr(Entry("training.drop_last", true)));
  EXPECT_THAT(content, HasSubstr(Entry("training.precision", "PRECISION_BFLOAT16")));
  EXPECT_THAT(content, HasSubstr(Entry("training.metrics[0]", "METRIC_ACCURACY")));
  EXPECT_THAT(content, HasSubstr(Entry("training.optimizer.sgd.learning_rate", 0.25)));
  EXPECT_THAT(content, HasSubstr(Entry("model.layers[0].dense.units", 10.0)));
  EXPECT_THAT(content, HasSubstr(Entry("model.input.shape[0]", 28.0)));
  EXPECT_THAT(content, Not(HasSubstr("training.steps")));
}

TEST_F(TensorBoardFileTest, EpochsAndValidationsHaveTheirScalars) {
  const std::unique_ptr<TensorBoardFile> file = Open();
  v1::JobEvent epoch;
  epoch.set_sequence(1);
  epoch.mutable_epoch()->set_epoch(2);
  epoch.mutable_epoch()->set_step(20);
  epoch.mutable_epoch()->mutable_training()->set_loss(0.5);
  epoch.mutable_epoch()->set_images_per_second(100);
  ASSERT_TRUE(file->Add(epoch).ok());
  ASSERT_TRUE(file->Sync().ok());
  std::string content = Read();
  EXPECT_THAT(content, HasSubstr(Scalar("epoch", 2)));
  EXPECT_THAT(content, HasSubstr(Scalar("epoch_training/loss", 0.5)));
  EXPECT_THAT(content, HasSubstr(Scalar("epoch_images_per_second", 100)));
  EXPECT_THAT(content, Not(HasSubstr("validation/")));
  // An epoch may have its own validation.
  epoch.set_sequence(2);
  epoch.mutable_epoch()->mutable_validation()->set_loss(0.75);
  (*epoch.mutable_epoch()->mutable_validation()->mutable_metrics())["accuracy"] = 0.875;
  ASSERT_TRUE(file->Add(epoch).ok());
  v1::JobEvent validation;
  validation.set_sequence(3);
  validation.mutable_validation()->set_step(30);
  validation.mutable_validation()->mutable_validation()->set_loss(0.25);
  ASSERT_TRUE(file->Add(validation).ok());
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(file->last_sequence(), 3);
  content = Read();
  EXPECT_THAT(content, HasSubstr(Scalar("validation/loss", 0.75)));
  EXPECT_THAT(content, HasSubstr(Scalar("validation/accuracy", 0.875)));
  EXPECT_THAT(content, HasSubstr(Scalar("validation/loss", 0.25)));
}

TEST_F(TensorBoardFileTest, ParametersHaveTheirScalars) {
  const std::unique_ptr<TensorBoardFile> file = Open();
  v1::JobEvent event;
  event.set_sequence(1);
  event.mutable_parameters()->set_step(20);
  v1::ParameterStatistics* const parameter = event.mutable_parameters()->add_parameters();
  parameter->set_name("dense_1.weight");
  parameter->set_mean(0.25);
  parameter->set_standard_deviation(0.5);
  parameter->set_relative_change(0.125);
  ASSERT_TRUE(file->Add(event).ok());
  ASSERT_TRUE(file->Sync().ok());
  const std::string content = Read();
  EXPECT_THAT(content, HasSubstr(Scalar("parameter_mean/dense_1.weight", 0.25)));
  EXPECT_THAT(content, HasSubstr(Scalar("parameter_deviation/dense_1.weight", 0.5)));
  EXPECT_THAT(content, HasSubstr(Scalar("parameter_change/dense_1.weight", 0.125)));
}

TEST_F(TensorBoardFileTest, EventsWithoutScalarsMakeNoRecord) {
  const std::unique_ptr<TensorBoardFile> file = Open();
  const std::string before = Read();
  v1::JobEvent event;
  event.set_sequence(1);
  event.mutable_notice()->set_message("cold");
  ASSERT_TRUE(file->Add(event).ok());
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(Read(), before);
}

}  // namespace
}  // namespace tandem::client
