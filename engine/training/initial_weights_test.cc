#include "engine/training/initial_weights.h"

#include <sys/resource.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/env.h"
#include "engine/base/field_violations.h"
#include "engine/base/testing/from_text.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/layers/model.h"
#include "engine/tensor/half.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

v1::JobSpec Spec(const std::string& weights) {
  v1::JobSpec spec = FromText<v1::JobSpec>(weights + R"(
    model {
      input { shape: [2] }
      layers { dense { units: 3 } }
      layers { batch_norm {} }
      layers { name: "head" dense { units: 2 use_bias: false } }
    })");
  FillModelDefaults(spec.mutable_model());
  return spec;
}

// Returns a float32 tensor in another type.
Tensor Stored(const Tensor& tensor, DType dtype) {
  if (dtype != DType::kFloat16 && dtype != DType::kBFloat16) return tensor.CastTo(dtype);
  Tensor stored(dtype, tensor.shape());
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const float value = tensor.data<float>()[i];
    if (dtype == DType::kFloat16) {
      stored.data<Float16>()[i] = Float16(value);
    } else {
      stored.data<BFloat16>()[i] = BFloat16(value);
    }
  }
  return stored;
}

// Writes a file for the network above, with a head for `classes`.
std::string WriteModel(int64_t classes, DType dtype = DType::kFloat32) {
  std::vector<NamedTensor> tensors;
  const auto add = [&](const std::string& name, Shape shape) {
    Tensor tensor(DType::kFloat32, std::move(shape));
    for (int64_t i = 0; i < tensor.elements(); ++i) tensor.data<float>()[i] = static_cast<float>(i) + 0.5f;
    tensors.emplace_back(name, Stored(tensor, dtype));
  };
  add("dense_1.weight", Shape({3, 2}));
  add("dense_1.bias", Shape({3}));
  for (const char* name : {"weight", "bias", "running_mean", "running_var"}) {
    add(std::string("batch_norm_1.") + name, Shape({3}));
  }
  add("head.weight", Shape({classes, 3}));
  const std::string path = testing::TempDir() + "/model.safetensors";
  EXPECT_TRUE(WriteSafetensors(Env::Real(), path, tensors, {}).ok());
  return path;
}

FieldViolation Fault(const absl::Status& status) {
  const std::vector<FieldViolation> found = GetFieldViolations(status);
  EXPECT_EQ(found.size(), 1u) << status;
  return found.empty() ? FieldViolation() : found[0];
}

std::vector<std::string> Names(const std::map<std::string, Tensor>& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(tensor.dtype(), DType::kFloat32);
    names.push_back(name);
  }
  return names;
}

TEST(InitialWeightsTest, LoadsTheWholeModel) {
  const v1::JobSpec spec = Spec("initial_weights { file: 'a' }");
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    const std::string path = WriteModel(2, dtype);
    EXPECT_TRUE(CheckWeightsFile(spec, path).ok());
    const auto read = ReadInitialWeights(spec, path);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_THAT(Names(*read),
                ElementsAre("batch_norm_1.bias", "batch_norm_1.running_mean", "batch_norm_1.running_var",
                            "batch_norm_1.weight", "dense_1.bias", "dense_1.weight", "head.weight"));
    EXPECT_THAT(read->at("head.weight").data<float>(), ElementsAre(0.5f, 1.5f, 2.5f, 3.5f, 4.5f, 5.5f));
  }
}

TEST(InitialWeightsTest, LoadsSomeLayers) {
  const std::string path = WriteModel(7);
  const auto all_but_head =
      ReadInitialWeights(Spec("initial_weights { file: 'a' except_layers: 'head' }"), path);
  ASSERT_TRUE(all_but_head.ok()) << all_but_head.status();
  EXPECT_EQ(all_but_head->size(), 6u);
  const auto one = ReadInitialWeights(Spec("initial_weights { file: 'a' layers: 'dense_*' }"), path);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_THAT(Names(*one), ElementsAre("dense_1.bias", "dense_1.weight"));
}

TEST(InitialWeightsTest, NamesBothShapesWhereTheyDiffer) {
  const std::string path = WriteModel(7);
  const v1::JobSpec spec = Spec("initial_weights { artifact { job: 'jobs/a' } }");
  for (const absl::Status& status : {CheckWeightsFile(spec, path), ReadInitialWeights(spec, path).status()}) {
    const FieldViolation fault = Fault(status);
    EXPECT_EQ(fault.field, "initial_weights.artifact");
    EXPECT_THAT(fault.description, HasSubstr("head.weight is [7, 3] there and [2, 3] in this network"));
    EXPECT_THAT(fault.description, HasSubstr("except_layers"));
  }
}

TEST(InitialWeightsTest, NamesWhatIsMissing) {
  const std::string path = WriteModel(2);
  v1::JobSpec spec = Spec("initial_weights { file: 'a' }");
  spec.mutable_model()->mutable_layers(0)->set_name("body");
  const FieldViolation fault = Fault(CheckWeightsFile(spec, path));
  EXPECT_EQ(fault.field, "initial_weights.file");
  EXPECT_THAT(fault.description, HasSubstr("model.safetensors: it has no body.weight, body.bias"));
  // The nearest names have the same shape.
  EXPECT_THAT(fault.description, HasSubstr("the file's nearest names are dense_1.weight [3, 2], "));
}

// Writes a file of `bytes` with the tensor "dense_1.weight" at its end, and a hole before it for other
// tensors.
std::string WriteLarge(int64_t bytes, const std::string& other_type) {
  const std::string path = testing::TempDir() + "/large.safetensors";
  std::string header =
      absl::StrCat("{\"huge\":{\"dtype\":\"", other_type, "\",\"shape\":[", bytes, "],\"data_offsets\":[0,",
                   bytes, "]},\"dense_1.weight\":{\"dtype\":\"BF16\",\"shape\":[3,2],\"data_offsets\":[",
                   bytes, ",", bytes + 12, "]}}");
  const uint64_t length = header.size();
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(&length), sizeof(length));
  file << header;
  file.seekp(bytes, std::ios::cur);
  for (int i = 0; i < 6; ++i) file << std::string("\x80\x3f", 2);  // 1 in bfloat16.
  return path;
}

TEST(InitialWeightsTest, ReadsNoMoreThanItNeeds) {
  v1::JobSpec spec = Spec("initial_weights { file: 'a' layers: 'dense_1' }");
  spec.mutable_model()->mutable_layers(0)->mutable_dense()->set_use_bias(false);
  for (const char* type : {"U8", "F8_E4M3"}) {
    const std::string path = WriteLarge(int64_t{4} << 30, type);
    rusage before, after;
    ASSERT_EQ(::getrusage(RUSAGE_SELF, &before), 0);
    const auto read = ReadInitialWeights(spec, path);
    ASSERT_EQ(::getrusage(RUSAGE_SELF, &after), 0);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_THAT(read->at("dense_1.weight").data<float>(), ElementsAre(1, 1, 1, 1, 1, 1));
    EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 << 10);  // KiB.
    EXPECT_EQ(std::remove(path.c_str()), 0);
  }
}

TEST(InitialWeightsTest, NamesATypeThatCannotBeLoaded) {
  const std::string path = WriteLarge(6, "F8_E4M3");
  v1::JobSpec spec = Spec("initial_weights { file: 'a' layers: 'huge' }");
  v1::Layer* const dense = spec.mutable_model()->mutable_layers(0);
  dense->set_name("huge");
  dense->mutable_dense()->set_use_bias(false);
  std::ifstream stream(path, std::ios::binary);
  std::string content((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  content.replace(content.find("\"huge\":"), 7, "\"huge.weight\":");
  const uint64_t length = content.find("}}") + 2 - 8;
  content.replace(0, 8, std::string(reinterpret_cast<const char*>(&length), 8));
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
  EXPECT_THAT(Fault(CheckWeightsFile(spec, path)).description,
              HasSubstr("huge.weight is F8_E4M3 there; F64, F32, F16 and BF16 can be loaded"));
}

TEST(InitialWeightsTest, RefusesWhatIsCutShortOrNotThere) {
  const v1::JobSpec spec = Spec("initial_weights { file: 'a' }");
  const std::string path = WriteModel(2);
  std::ifstream file(path, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content.substr(0, content.size() - 5);
  for (const absl::Status& status : {CheckWeightsFile(spec, path), ReadInitialWeights(spec, path).status()}) {
    const FieldViolation fault = Fault(status);
    EXPECT_EQ(fault.field, "initial_weights.file");
    EXPECT_THAT(fault.description, HasSubstr("cut short"));
  }
  EXPECT_THAT(Fault(CheckWeightsFile(spec, "/nonexistent")).description, HasSubstr("/nonexistent"));
}

TEST(InitialWeightsTest, AUrlIsNoArtifact) {
  FieldViolations violations;
  CheckInitialWeights(Spec("initial_weights { artifact { job: 'https://example.com/a' } }"), violations);
  const FieldViolation fault = Fault(violations.ToStatus());
  EXPECT_EQ(fault.field, "initial_weights.artifact.job");
  EXPECT_THAT(fault.description, HasSubstr("give the URL as initial_weights.file"));
}

TEST(InitialWeightsTest, ChecksWhatNeedsNoFile) {
  const auto faults = [](const std::string& weights) {
    FieldViolations violations;
    CheckInitialWeights(Spec(weights), violations);
    std::vector<std::string> fields;
    for (const FieldViolation& violation : violations.violations()) fields.push_back(violation.field);
    return fields;
  };
  EXPECT_THAT(faults(""), ElementsAre());
  EXPECT_THAT(faults("initial_weights { file: 'a' }"), ElementsAre());
  EXPECT_THAT(faults("initial_weights {}"), ElementsAre("initial_weights"));
  EXPECT_THAT(faults("initial_weights { file: '' }"), ElementsAre("initial_weights.file"));
  EXPECT_THAT(faults("initial_weights { artifact { job: 'a' } }"),
              ElementsAre("initial_weights.artifact.job"));
  EXPECT_THAT(faults("initial_weights { file: 'a' layers: ['head', 'tail'] except_layers: 'neck' }"),
              ElementsAre("initial_weights.layers[1]", "initial_weights.except_layers[0]"));
  EXPECT_THAT(faults("initial_weights { file: 'a' except_layers: '*' }"), ElementsAre("initial_weights"));
}

TEST(InitialWeightsTest, ReadsAJobsModel) {
  const v1::JobSpec spec = Spec("");
  const auto read = ReadModelWeights(spec.model(), WriteModel(2));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->size(), 7u);
  EXPECT_EQ(ReadModelWeights(spec.model(), WriteModel(3)).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace tandem
