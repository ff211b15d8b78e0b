#include "server/admission/admission.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/env.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/tensor/tensor.h"
#include "engine/training/training_state.h"
#include "server/admission/idx_files.h"
#include "server/admission/read_dataset.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAre;

constexpr char kGood[] = R"(
  name: "shapes"
  dataset { name: "shapes" }
  model {
    input { shape: [1, 4, 4] }
    layers { conv2d { filters: 2 kernel: [3, 3] } }
    layers { max_pool2d { size: [2, 2] } }
    layers { dense { units: 3 } }
  }
  training {
    loss { softmax_cross_entropy {} }
    optimizer { sgd { learning_rate: 0.1 } }
    global_batch_size: 6
    epochs: 1
  }
  replicas { count: 2 }
)";

std::vector<v1::Device> Devices(int cpu, int reference) {
  std::vector<v1::Device> devices;
  for (int i = 0; i < cpu + reference; ++i) {
    v1::Device device;
    device.set_kind(i < cpu ? v1::DEVICE_KIND_CPU : v1::DEVICE_KIND_REFERENCE);
    device.set_memory_bytes(int64_t{1} << 30);
    device.add_precisions(i < cpu ? v1::PRECISION_FLOAT32 : v1::PRECISION_FLOAT64);
    devices.push_back(device);
  }
  return devices;
}

class AdmissionTest : public ::testing::Test {
 protected:
  AdmissionTest() { WriteNamedSet(data_ + "/shapes"); }

  static v1::JobSpec Good() {
    v1::JobSpec spec;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kGood, &spec));
    return spec;
  }

  absl::Status Refused(const v1::JobSpec& spec) const {
    const absl::Status status = admission_.Admit(spec).status();
    EXPECT_FALSE(status.ok());
    return status;
  }

  std::vector<std::string> FieldsOf(const v1::JobSpec& spec) const {
    const absl::Status status = Refused(spec);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_EQ(GetReason(status), "INVALID_SPEC");
    std::vector<std::string> fields;
    for (const FieldViolation& violation : GetFieldViolations(status)) fields.push_back(violation.field);
    return fields;
  }

  const std::string data_ = FreshFolder();
  LocalDatasetReader reader_;
  const DatasetCatalog catalog_{{data_}, &reader_};
  const WeightsFinder weights_{&catalog_, [](const std::string&) { return absl::NotFoundError(""); }};
  const SpecAdmission admission_{&catalog_, &weights_, Devices(2, 1)};
};

TEST_F(AdmissionTest, ACheckpointFitsAndLeavesSomethingToTrain) {
  const auto weight = [](std::initializer_list<int64_t> shape) {
    return SafetensorsEntry{.dtype = DType::kFloat32, .shape = Shape(shape)};
  };
  SafetensorsHeader checkpoint;
  checkpoint.tensors = {{"shared/conv2d_1.weight", weight({2, 1, 3, 3})},
                        {"shared/conv2d_1.bias", weight({2})},
                        {"shared/dense_1.weight", weight({3, 2})},
                        {"shared/dense_1.bias", weight({3})}};
  // Three epochs of 16 steps. An epoch of 12 samples has two steps.
  TrainingState state;
  state.step = 48;
  state.steps_per_epoch = 16;
  checkpoint.metadata["state"] = ToJson(state);
  v1::JobSpec spec = Good();
  spec.mutable_training()->set_epochs(4);
  absl::StatusOr<AdmittedJob> job = admission_.Admit(spec);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_TRUE(admission_.CheckCheckpoint(*job, checkpoint).ok())
      << admission_.CheckCheckpoint(*job, checkpoint);
  job->spec.mutable_training()->set_epochs(3);
  const absl::Status nothing = admission_.CheckCheckpoint(*job, checkpoint);
  EXPECT_EQ(GetReason(nothing), "NOTHING_TO_TRAIN") << nothing;
  EXPECT_THAT(std::string(nothing.message()), HasSubstr("spec.training.epochs: is 3"));
  checkpoint.tensors.erase("shared/dense_1.bias");
  EXPECT_EQ(GetReason(admission_.CheckCheckpoint(*job, checkpoint)), "INVALID_SPEC");
}

// A job on the table "animals.csv".
class AnimalsTest : public AdmissionTest {
 protected:
  v1::JobSpec Animals(const std::string& table) const {
    std::ofstream(data_ + "/animals.csv") << table;
    v1::JobSpec spec = Good();
    spec.mutable_dataset()->Clear();
    spec.mutable_dataset()->mutable_csv()->set_train("animals.csv");
    spec.mutable_model()->mutable_input()->clear_shape();
    spec.mutable_model()->mutable_input()->add_shape(2);
    spec.mutable_model()->clear_layers();
    spec.mutable_model()->add_layers()->mutable_dense()->set_units(3);
    spec.mutable_training()->set_global_batch_size(2);
    spec.mutable_replicas()->set_count(1);
    return spec;
  }
};

TEST_F(AnimalsTest, DataOfAForkAreMatchedToItsModel) {
  const DataNames names = {.features = {"a", "b"}, .targets = {"kind"}, .classes = {"bird", "cat", "dog"}};
  // Two of the three classes, and columns in another order.
  const v1::JobSpec part = Animals("kind,b,a,more\ncat,1,2,?\ndog,3,4,?\n");
  const absl::StatusOr<AdmittedJob> admitted = admission_.AdmitMatched(part, names);
  EXPECT_TRUE(admitted.ok()) << admitted.status();
  EXPECT_FALSE(admission_.Admit(part).ok()) << "by itself it has two classes";

  const auto fault = [&](const std::string& table) {
    const std::vector<FieldViolation> found =
        GetFieldViolations(admission_.AdmitMatched(Animals(table), names).status());
    return found.empty() ? "" : absl::StrCat(found[0].field, ": ", found[0].description);
  };
  EXPECT_THAT(fault("a,b,kind\n1,2,cat\n3,4,elk\n"),
              AllOf(HasSubstr("spec.dataset.csv.train: "), HasSubstr("row 3, column 'kind' is 'elk'")));
  EXPECT_THAT(fault("a,c,kind\n1,2,cat\n3,4,dog\n"),
              AllOf(HasSubstr("spec.dataset.csv.feature_columns: "), HasSubstr("has no column 'b'")));
}

// Facts that were matched to one model are not reused for another model.
TEST_F(AnimalsTest, DataAreMatchedToEachModel) {
  const v1::JobSpec spec = Animals("a,b,kind\n1,2,cat\n3,4,dog\n");
  const DataNames knows = {.features = {"a", "b"}, .targets = {"kind"}, .classes = {"bird", "cat", "dog"}};
  DataNames not_dog = knows;
  not_dog.classes = {"ant", "bird", "cat"};
  EXPECT_TRUE(admission_.AdmitMatched(spec, knows).ok());
  EXPECT_FALSE(admission_.AdmitMatched(spec, not_dog).ok());
  EXPECT_FALSE(admission_.Admit(spec).ok());
  EXPECT_TRUE(admission_.AdmitMatched(spec, knows).ok());
}

TEST_F(AnimalsTest, DataOfInitialWeightsAreMatchedToTheirModel) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, shape] : {std::pair("dense_1.weight", Shape({4, 2})),
                                    {"dense_1.bias", Shape({4})},
                                    {"dense_2.weight", Shape({3, 4})},
                                    {"dense_2.bias", Shape({3})}}) {
    tensors.push_back({name, Tensor(DType::kFloat32, shape)});
  }
  const absl::Status written = WriteSafetensors(Env::Real(), data_ + "/animals.safetensors", tensors,
                                                {{"framework", "tandem"},
                                                 {"samples", "floats"},
                                                 {"feature_names", R"(["a", "b"])"},
                                                 {"target_names", R"(["kind"])"},
                                                 {"class_names", R"(["bird", "cat", "dog"])"}});
  ASSERT_TRUE(written.ok()) << written;
  const auto admit = [&](const std::string& table, bool anew = false) {
    v1::JobSpec spec = Animals(table);
    spec.clear_model();
    spec.mutable_model()->mutable_template_()->mutable_mlp()->add_units(4);
    spec.mutable_initial_weights()->set_file("animals.safetensors");
    if (anew) spec.mutable_initial_weights()->add_except_layers("dense_2");
    return admission_.Admit(spec);
  };
  // The template has the model's three outputs, although the table has two classes.
  absl::StatusOr<AdmittedJob> job = admit("kind,b,a\ncat,1,2\ndog,3,4\n");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->spec.model().layers().rbegin()->dense().units(), 3);
  // With its own output layer, the table's last column is the target.
  job = admit("b,a,kind\n1,2,cat\n3,4,elk\n", /*anew=*/true);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->spec.model().layers().rbegin()->dense().units(), 2);
  const absl::Status ambiguous = admit("kind,b,a\ncat,1,2\nelk,3,4\n", /*anew=*/true).status();
  EXPECT_THAT(std::string(ambiguous.message()), HasSubstr("'a', which is a feature of the model"));
  const std::vector<FieldViolation> found =
      GetFieldViolations(admit("a,c,kind\n1,2,cat\n3,4,dog\n").status());
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].field, "spec.dataset.csv.feature_columns");
}

// A table whose column "city" has so many categories.
std::string CityTable(int cities, const std::string& names = "city,size,kind") {
  std::string table = absl::StrCat(names, "\n");
  for (int i = 0; i < 2 * cities; ++i) {
    const std::string city = absl::StrCat("c", i % cities), size = absl::StrCat(i);
    absl::StrAppend(&table,
                    names == "city,size,kind" ? absl::StrCat(city, ",", size) : absl::StrCat(size, ",", city),
                    ",", i % 3 == 0 ? "cat" : "dog", "\n");
  }
  return table;
}

class CitiesTest : public AnimalsTest {
 protected:
  // A job whose first layer embeds the table's cities.
  v1::JobSpec Cities(const std::string& table) const {
    v1::JobSpec spec = Animals(table);
    spec.mutable_model()->clear_input();
    spec.mutable_model()->clear_layers();
    spec.mutable_model()->add_layers()->mutable_embed_categories();
    spec.mutable_model()->add_layers()->mutable_dense()->set_units(2);
    return spec;
  }
};

TEST_F(CitiesTest, EmbedCategoriesTakesTheColumnsOfTheTable) {
  const absl::StatusOr<AdmittedJob> job = admission_.Admit(Cities(CityTable(12)));
  ASSERT_TRUE(job.ok()) << job.status();
  const v1::Model& model = job->spec.model();
  EXPECT_THAT(model.input().shape(), ElementsAre(14));
  const v1::EmbedCategories& embed = model.layers(0).embed_categories();
  EXPECT_EQ(embed.above(), 10);
  ASSERT_EQ(embed.columns_size(), 1);
  EXPECT_EQ(embed.columns(0).name(), "city");
  EXPECT_EQ(embed.columns(0).first_input(), 0);
  EXPECT_EQ(embed.columns(0).inputs(), 13);
  EXPECT_EQ(embed.columns(0).dimension(), 7);
  // An admitted spec is admitted again unchanged.
  const absl::StatusOr<AdmittedJob> again = admission_.Admit(job->spec);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->spec.SerializeAsString(), job->spec.SerializeAsString());

  v1::JobSpec of_template = Cities(CityTable(12));
  of_template.clear_model();
  of_template.mutable_model()->mutable_template_()->mutable_mlp()->mutable_embed_categories();
  const absl::StatusOr<AdmittedJob> expanded = admission_.Admit(of_template);
  ASSERT_TRUE(expanded.ok()) << expanded.status();
  EXPECT_EQ(expanded->spec.model().layers(0).SerializeAsString(), model.layers(0).SerializeAsString());
}

TEST_F(CitiesTest, EmbedCategoriesIsRefusedForOtherDataAndColumns) {
  const auto fault = [&](const v1::JobSpec& spec) {
    const std::vector<FieldViolation> found = GetFieldViolations(Refused(spec));
    EXPECT_EQ(found.size(), 1);
    return found.empty() ? "" : absl::StrCat(found[0].field, ": ", found[0].description);
  };
  EXPECT_THAT(fault(Cities(CityTable(7))),
              AllOf(HasSubstr("spec.model.layers[0].embed_categories: "), HasSubstr("'city', has 8")));
  EXPECT_THAT(
      fault(Cities("a,b,kind\n1,2,cat\n3,4,dog\n")),
      AllOf(HasSubstr("spec.model.layers[0].embed_categories: "), HasSubstr("the data set has none")));
  v1::JobSpec pictures = Cities(CityTable(12));
  *pictures.mutable_dataset() = Good().dataset();
  EXPECT_THAT(fault(pictures), HasSubstr("spec.model.layers[0].embed_categories: "));
  v1::JobSpec late = Cities(CityTable(12));
  late.mutable_model()->mutable_layers()->SwapElements(0, 1);
  late.mutable_model()->mutable_input()->add_shape(14);
  EXPECT_THAT(fault(late), AllOf(HasSubstr("spec.model.layers[1].embed_categories: "),
                                 HasSubstr("must be the model's first layer")));
  // The table's error is the only error.
  v1::JobSpec missing = Cities(CityTable(12));
  missing.mutable_dataset()->mutable_csv()->set_train("none.csv");
  EXPECT_THAT(fault(missing), HasSubstr("spec.dataset.csv.train: "));
  // Columns of a table that has changed.
  const absl::StatusOr<AdmittedJob> job = admission_.Admit(Cities(CityTable(12)));
  ASSERT_TRUE(job.ok()) << job.status();
  v1::JobSpec stored = job->spec;
  Cities(CityTable(12, "size,city,kind"));
  EXPECT_THAT(fault(stored), AllOf(HasSubstr("spec.model.layers[0].embed_categories.columns[0]: "),
                                   HasSubstr("has 13 inputs from input 1; leave columns out")));
  stored.mutable_dataset()->mutable_csv()->set_train("none.csv");
  EXPECT_THAT(fault(stored), HasSubstr("spec.dataset.csv.train: "));
}

TEST_F(CitiesTest, ColumnsOfInitialWeightsAreThoseOfTheirModel) {
  // The model knows 11 cities. Its embedding has 6 numbers.
  std::vector<std::string> cities;
  for (int i = 0; i < 11; ++i) cities.push_back(absl::StrCat("\"c", i, "\""));
  std::vector<NamedTensor> tensors;
  for (const auto& [name, shape] : {std::pair("embed_categories_1.city.weight", Shape({6, 12})),
                                    {"dense_1.weight", Shape({2, 7})},
                                    {"dense_1.bias", Shape({2})}}) {
    tensors.push_back({name, Tensor(DType::kFloat32, shape)});
  }
  const absl::Status written = WriteSafetensors(
      Env::Real(), data_ + "/cities.safetensors", tensors,
      {{"framework", "tandem"},
       {"samples", "floats"},
       {"feature_names", R"(["size", "city"])"},
       {"target_names", R"(["kind"])"},
       {"class_names", R"(["cat", "dog"])"},
       {"table_preparation",
        absl::StrCat(
            R"({"columns": [{"name": "size", "kind": "COLUMN_KIND_NUMBER", "numbers": [{"deviation": 1}]},
                        {"name": "city", "kind": "COLUMN_KIND_CATEGORY", "category_inputs": 11, "categories": [)",
            absl::StrJoin(cities, ","), "]}]}")}});
  ASSERT_TRUE(written.ok()) << written;
  v1::JobSpec spec = Cities(CityTable(20));
  spec.mutable_initial_weights()->set_file("cities.safetensors");
  const auto column = [&] {
    const absl::StatusOr<AdmittedJob> job = admission_.Admit(spec);
    if (!job.ok()) return job.status().ToString();
    const v1::EmbeddedColumn& first = job->spec.model().layers(0).embed_categories().columns(0);
    return absl::StrCat(first.name(), " ", first.first_input(), " ", first.inputs(), " ", first.dimension());
  };
  EXPECT_EQ(column(), "city 1 12 6");
  // A first layer that begins anew takes the columns of its own table.
  spec.mutable_initial_weights()->add_except_layers("embed_categories_1");
  spec.mutable_model()->mutable_layers(0)->mutable_embed_categories()->set_dimension(6);
  EXPECT_EQ(column(), "city 0 21 6");
}

TEST_F(AnimalsTest, ScaledTargetsNeedALossThatTakesThem) {
  v1::JobSpec spec = Animals("a,b,y\n1,2,0.25\n3,4,0.75\n");
  spec.mutable_dataset()->mutable_csv()->set_target_scaling(v1::NUMBER_SCALING_STANDARD);
  spec.mutable_model()->mutable_layers(0)->mutable_dense()->set_units(1);
  spec.mutable_training()->clear_metrics();
  spec.mutable_training()->mutable_loss()->mutable_huber();
  const absl::StatusOr<AdmittedJob> job = admission_.Admit(spec);
  ASSERT_TRUE(job.ok()) << job.status();
  for (const bool is_divergence : {true, false}) {
    if (is_divergence) spec.mutable_training()->mutable_loss()->mutable_kl_divergence();
    if (!is_divergence) spec.mutable_training()->mutable_loss()->mutable_binary_cross_entropy_with_logits();
    EXPECT_THAT(FieldsOf(spec), ElementsAre("spec.dataset.csv.target_scaling"));
  }
}

TEST_F(AnimalsTest, OneClassIsRefusedOnce) {
  v1::JobSpec spec = Animals("a,b,kind\n1,2,cat\n3,4,cat\n");
  spec.mutable_model()->mutable_layers(0)->mutable_dense()->set_units(1);
  const std::vector<FieldViolation> found = GetFieldViolations(Refused(spec));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].field, "spec.dataset");
  EXPECT_THAT(
      found[0].description,
      HasSubstr("has training samples of one class, 'cat', so that there is nothing to learn; the column "
                "'kind' is alike in all 2 rows"));
}

TEST_F(AdmissionTest, TakesAGoodJobAndFillsInDefaults) {
  const absl::StatusOr<AdmittedJob> job = admission_.Admit(Good());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->spec.model().layers(0).name(), "conv2d_1");
  EXPECT_EQ(job->spec.model().layers(2).name(), "dense_1");
  EXPECT_TRUE(job->spec.training().shuffle());
  EXPECT_EQ(job->spec.dataset().name(), "shapes");
  EXPECT_FALSE(job->spec.dataset().has_idx());
  EXPECT_GT(job->planned_memory_bytes, 0);
}

// Most jobs of a sweep share a plan. Fields outside the plan are still checked for each job.
TEST_F(AdmissionTest, JobsThatDifferInLittleAreCheckedEachForItself) {
  const absl::StatusOr<AdmittedJob> first = admission_.Admit(Good());
  ASSERT_TRUE(first.ok()) << first.status();
  v1::JobSpec spec = Good();
  spec.mutable_training()->mutable_optimizer()->mutable_sgd()->set_learning_rate(0.2);
  const absl::StatusOr<AdmittedJob> second = admission_.Admit(spec);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->spec.training().optimizer().sgd().learning_rate(), 0.2);
  EXPECT_EQ(second->planned_memory_bytes, first->planned_memory_bytes);
  EXPECT_EQ(second->planned_operations, first->planned_operations);
  spec.mutable_training()->mutable_optimizer()->mutable_sgd()->set_learning_rate(-1);
  EXPECT_THAT(FieldsOf(spec), ElementsAre("spec.training.optimizer.sgd.learning_rate"));
  spec = Good();
  spec.mutable_training()->set_epochs(2);
  const absl::StatusOr<AdmittedJob> longer = admission_.Admit(spec);
  ASSERT_TRUE(longer.ok()) << longer.status();
  EXPECT_EQ(longer->planned_operations, 2 * first->planned_operations);
}

TEST_F(AdmissionTest, ExpandsTemplatesForTheData) {
  v1::JobSpec spec = Good();
  spec.mutable_model()->Clear();
  spec.mutable_model()->mutable_template_()->mutable_mlp()->add_units(5);
  const absl::StatusOr<AdmittedJob> job = admission_.Admit(spec);
  ASSERT_TRUE(job.ok()) << job.status();
  const v1::Model& model = job->spec.model();
  EXPECT_FALSE(model.has_template_());
  EXPECT_EQ(model.name(), "mlp");
  EXPECT_THAT(model.input().shape(), ElementsAre(1, 4, 4));
  ASSERT_EQ(model.layers_size(), 2);
  EXPECT_EQ(model.layers(0).name(), "dense_1");
  EXPECT_EQ(model.layers(1).dense().units(), 3);
  // An admitted spec is admitted again unchanged.
  const absl::StatusOr<AdmittedJob> again = admission_.Admit(job->spec);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->spec.SerializeAsString(), job->spec.SerializeAsString());

  spec.mutable_model()->mutable_template_()->mutable_mlp()->add_units(-1);
  spec.mutable_dataset()->set_name("shaeps");
  EXPECT_THAT(FieldsOf(spec), ElementsAre("spec.dataset.name", "spec.model.template.mlp.units[1]"));
}

TEST_F(AdmissionTest, StatisticsOfAllSamplesAreForNetworksThatHaveSome) {
  v1::JobSpec spec = Good();
  spec.mutable_training()->set_batch_norm_statistics(v1::BATCH_NORM_STATISTICS_POPULATION);
  EXPECT_THAT(FieldsOf(spec), ElementsAre("spec.training.batch_norm_statistics"));
  v1::Residual& block = *spec.mutable_model()->mutable_layers()->Add()->mutable_residual();
  block.add_layers()->mutable_batch_norm();
  spec.mutable_model()->mutable_layers()->SwapElements(2, 3);
  const absl::StatusOr<AdmittedJob> with = admission_.Admit(spec);
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ(with->spec.training().batch_norm_statistics(), v1::BATCH_NORM_STATISTICS_POPULATION);
  spec.mutable_training()->clear_batch_norm_statistics();
  EXPECT_GT(with->planned_memory_bytes, admission_.Admit(spec)->planned_memory_bytes);
  spec.mutable_training()->set_batch_norm_statistics(v1::BATCH_NORM_STATISTICS_POPULATION);
  spec.mutable_training()->mutable_best_model()->set_export_best(true);
  EXPECT_THAT(FieldsOf(spec), ElementsAre("spec.training.best_model.export_best"));
}

TEST_F(AdmissionTest, ChecksInitialWeightsAndFrozenLayers) {
  const auto with = [](const std::string& more) {
    v1::JobSpec spec;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(absl::StrCat(kGood, more), &spec));
    return spec;
  };
  EXPECT_THAT(FieldsOf(with("initial_weights { artifact { job: 'jobs/none' } }")),
              ElementsAre("spec.initial_weights.artifact.job"));
  EXPECT_THAT(FieldsOf(with("initial_weights { file: 'none' }")), ElementsAre("spec.initial_weights.file"));
  std::ofstream(data_ + "/no.safetensors") << "no";
  EXPECT_THAT(FieldsOf(with("initial_weights { file: 'no.safetensors' }")),
              ElementsAre("spec.initial_weights.file"));
  EXPECT_THAT(FieldsOf(with("initial_weights { file: 'none' layers: 'x' } frozen_layers: 'y'")),
              ElementsAre("spec.initial_weights.layers[0]", "spec.frozen_layers[0]"));
  EXPECT_TRUE(admission_.Admit(with("frozen_layers: 'conv2d_1'")).ok());
}

// Only the order of the samples counts, 4 bytes each, in the memory that CPU devices share.
TEST_F(AdmissionTest, DataInMemoryCountsOnceForAllReplicas) {
  v1::JobSpec spec = Good();
  spec.clear_dataset();
  v1::SyntheticSource* synthetic = spec.mutable_dataset()->mutable_synthetic();
  for (const int64_t extent : spec.model().input().shape()) synthetic->add_shape(extent);
  synthetic->set_classes(spec.model().layers().rbegin()->dense().units());
  synthetic->set_train_samples(1000);
  const auto planned = [&](int replicas) {
    spec.mutable_replicas()->set_count(replicas);
    const absl::StatusOr<AdmittedJob> job = admission_.Admit(spec);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? job->planned_memory_bytes : 0;
  };
  const int64_t small_alone = planned(1);
  const int64_t small_shared = planned(2);
  synthetic->set_train_samples(1000 + 6000000);
  EXPECT_EQ(planned(1) - small_alone, 4 * 6000000);
  EXPECT_EQ(planned(2) - small_shared, 4 * 6000000 / 2);
  // The order takes 1 GiB, too much for one device.
  synthetic->set_train_samples(int64_t{1} << 28);
  EXPECT_GT(planned(2), int64_t{1} << 29);
  spec.mutable_replicas()->set_count(1);
  EXPECT_EQ(GetReason(Refused(spec)), "TOO_LITTLE_MEMORY");
}

TEST_F(AdmissionTest, SamplesLieOnTheGpuWhereTheyFit) {
  v1::Device device;
  device.set_kind(v1::DEVICE_KIND_GPU);
  device.set_memory_bytes(int64_t{1} << 30);
  device.add_precisions(v1::PRECISION_FLOAT32);
  const SpecAdmission admission(&catalog_, &weights_, {device});
  v1::JobSpec spec = Good();
  spec.mutable_replicas()->set_count(1);
  spec.clear_dataset();
  v1::SyntheticSource* synthetic = spec.mutable_dataset()->mutable_synthetic();
  for (const int64_t extent : spec.model().input().shape()) synthetic->add_shape(extent);
  synthetic->set_classes(spec.model().layers().rbegin()->dense().units());
  synthetic->set_train_samples(1000000);
  const absl::StatusOr<AdmittedJob> fits = admission.Admit(spec);
  ASSERT_TRUE(fits.ok()) << fits.status();
  EXPECT_FALSE(fits->spec.has_gpu());
  EXPECT_GT(fits->planned_memory_bytes, 1000000 * (16 + 4));

  synthetic->set_train_samples(100000000);
  const absl::StatusOr<AdmittedJob> large = admission.Admit(spec);
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_EQ(large->spec.gpu().data(), v1::GpuOptions::DATA_PLACEMENT_HOST_MEMORY);
  EXPECT_LT(large->planned_memory_bytes, fits->planned_memory_bytes);
  spec.mutable_gpu()->set_data(v1::GpuOptions::DATA_PLACEMENT_GPU_MEMORY);
  EXPECT_EQ(GetReason(admission.Admit(spec).status()), "TOO_LITTLE_MEMORY");
}

TEST_F(AdmissionTest, NamesTheFieldOfEachMistake) {
  const auto with = [](auto change) {
    v1::JobSpec spec = Good();
    change(spec);
    return spec;
  };
  EXPECT_THAT(FieldsOf(with([](auto& s) { s.set_name("no blanks"); })), ElementsAre("spec.name"));
  EXPECT_THAT(FieldsOf(with([](auto& s) { s.clear_dataset(); })), ElementsAre("spec.dataset"));
  EXPECT_THAT(FieldsOf(with([](auto& s) { s.mutable_dataset()->clear_name(); })),
              ElementsAre("spec.dataset"));
  EXPECT_THAT(FieldsOf(with([](auto& s) { s.mutable_dataset()->set_name("shaeps"); })),
              ElementsAre("spec.dataset.name"));
  EXPECT_THAT(FieldsOf(with([](auto& s) { s.mutable_model()->mutable_layers(0)->clear_kind(); })),
              Contains(HasSubstr("spec.model.layers[0]")));
  EXPECT_THAT(FieldsOf(with([](auto& s) {
                s.mutable_model()->mutable_layers(0)->mutable_conv2d()->set_kernel(0, -3);
              })),
              ElementsAre("spec.model.layers[0].conv2d.kernel[0]"));
  EXPECT_THAT(FieldsOf(with([](auto& s) {
                s.mutable_model()->mutable_layers(0)->mutable_conv2d()->set_filters(int64_t{1} << 60);
              })),
              ElementsAre("spec.model.layers[0].conv2d.filters"));
  EXPECT_THAT(FieldsOf(with([](auto& s) { s.mutable_model()->mutable_input()->set_shape(1, 5); })),
              Contains("spec.model.input.shape"));
  EXPECT_THAT(FieldsOf(with([](auto& s) { s.mutable_model()->mutable_layers(1)->add_inputs("nowhere"); })),
              ElementsAre("spec.model.layers[1].inputs[0]"));
  EXPECT_THAT(FieldsOf(with([](auto& s) { s.mutable_training()->set_epochs(-1); })),
              ElementsAre("spec.training.epochs"));
  EXPECT_THAT(FieldsOf(with([](auto& s) {
                s.mutable_training()->mutable_optimizer()->mutable_sgd()->set_learning_rate(-0.1);
              })),
              Contains(HasSubstr("spec.training.optimizer")));
  EXPECT_THAT(FieldsOf(with([](auto& s) { s.mutable_replicas()->set_count(-2); })),
              ElementsAre("spec.replicas.count"));
  EXPECT_THAT(FieldsOf(with([](auto& s) { s.mutable_training()->set_global_batch_size(1); })),
              ElementsAre("spec.training.global_batch_size"));
}

TEST_F(AdmissionTest, ShapesThatDoNotFitAreSaidWithTheLayer) {
  v1::JobSpec spec = Good();
  spec.mutable_model()->mutable_layers(0)->mutable_conv2d()->set_kernel(0, 9);
  const absl::Status status = Refused(spec);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("conv2d_1"), HasSubstr("[1, 4, 4]")));
  v1::JobSpec outputs = Good();
  outputs.mutable_model()->mutable_layers(2)->mutable_dense()->set_units(7);
  EXPECT_THAT(
      std::string(Refused(outputs).message()),
      AllOf(HasSubstr("spec.model.layers[2]"), HasSubstr("dense_1"), HasSubstr("[7]"), HasSubstr("[3]")));
}

TEST_F(AdmissionTest, FindsAllMistakesAtOnce) {
  v1::JobSpec spec = Good();
  spec.mutable_dataset()->set_name("none");
  spec.mutable_model()->mutable_layers(0)->mutable_conv2d()->set_filters(-1);
  spec.mutable_training()->set_epochs(0);
  spec.mutable_training()->mutable_optimizer()->clear_kind();
  EXPECT_THAT(FieldsOf(spec), UnorderedElementsAre("spec.dataset.name", "spec.model.layers[0].conv2d.filters",
                                                   "spec.training.epochs", "spec.training.optimizer"));
}

TEST_F(AdmissionTest, AnEmptySpecIsRefusedByItsFields) {
  EXPECT_THAT(FieldsOf(v1::JobSpec()), IsSupersetOf({"spec.dataset", "spec.model.input.shape",
                                                     "spec.model.layers", "spec.training.epochs"}));
  v1::JobSpec without_data = Good();
  without_data.clear_dataset();
  without_data.mutable_model()->mutable_layers()->RemoveLast();
  without_data.mutable_training()->set_epochs(-1);
  EXPECT_THAT(FieldsOf(without_data), UnorderedElementsAre("spec.dataset", "spec.training.epochs"));
}

TEST_F(AdmissionTest, BadFilesAreBlamedOnTheNameOrTheField) {
  WriteIdx(data_ + "/shapes/train-labels-idx1-ubyte", {11}, std::string(11, '\x02'));
  EXPECT_THAT(FieldsOf(Good()), ElementsAre("spec.dataset.name"));

  v1::JobSpec spec = Good();
  spec.mutable_dataset()->clear_name();
  v1::IdxSource* idx = spec.mutable_dataset()->mutable_idx();
  idx->set_train_images("shapes/train-images-idx3-ubyte");
  idx->set_train_labels("labels");
  EXPECT_THAT(FieldsOf(spec), ElementsAre("spec.dataset.idx.train_labels"));  // missing
  WriteIdx(data_ + "/labels", {12}, "three");
  EXPECT_THAT(FieldsOf(spec), ElementsAre("spec.dataset.idx.train_labels"));  // truncated
  std::ofstream(data_ + "/labels") << "this is no IDX file";
  EXPECT_THAT(FieldsOf(spec), ElementsAre("spec.dataset.idx.train_labels"));
  WriteIdx(data_ + "/labels", {12}, std::string(12, '\x07'));
  idx->set_classes(3);
  const absl::Status out_of_range = Refused(spec);
  EXPECT_THAT(GetFieldViolations(out_of_range),
              Contains(AllOf(Field(&FieldViolation::field, "spec.dataset.idx.train_labels"),
                             Field(&FieldViolation::description, HasSubstr("7")))));
}

// Nothing is known of unreadable data, so only the data set gets blamed.
TEST_F(AdmissionTest, OfDataThatCannotBeReadTheDataAloneIsBlamed) {
  const auto fields = [&](const std::string& data_and_model, const std::string& training) {
    v1::JobSpec spec;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat(data_and_model,
                     "training { global_batch_size: 2 epochs: 1 optimizer { sgd { learning_rate: 1 } } ",
                     training, "}"),
        &spec));
    return FieldsOf(spec);
  };
  const std::string table =
      "dataset { csv { train: 'none.csv' } } model { input { shape: 3 } layers { dense { units: 2 } } }";
  EXPECT_THAT(fields(table, "loss { mse {} } metrics: METRIC_RMSE early_stopping { patience: 1 }"),
              ElementsAre("spec.dataset.csv.train"));
  EXPECT_THAT(fields(table,
                     "loss { softmax_cross_entropy {} } metrics: METRIC_F1 "
                     "early_stopping { patience: 1 metric: 'f1' }"),
              ElementsAre("spec.dataset.csv.train"));
  EXPECT_THAT(fields("dataset { text { train: 'none.txt' sequence_length: 3 } }"
                     "model { input { shape: 3 } layers { embedding { vocabulary_size: 5 dimension: 2 } }"
                     "        layers { dense { units: 5 per_position: true } } }",
                     "loss { softmax_cross_entropy {} } metrics: METRIC_PERPLEXITY"),
              ElementsAre("spec.dataset.text.train"));
}

TEST_F(AdmissionTest, RefusesWhatCouldNeverRun) {
  v1::JobSpec many = Good();
  many.mutable_replicas()->set_count(3);
  const absl::Status too_few = Refused(many);
  EXPECT_EQ(too_few.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(GetReason(too_few), "TOO_FEW_DEVICES");
  EXPECT_THAT(std::string(too_few.message()), AllOf(HasSubstr("spec.replicas.count"), HasSubstr("has 2")));

  v1::JobSpec reference = Good();
  reference.mutable_replicas()->set_device_kind(v1::DEVICE_KIND_REFERENCE);
  EXPECT_EQ(Refused(reference).code(), absl::StatusCode::kFailedPrecondition);
  reference.mutable_replicas()->set_count(1);
  EXPECT_TRUE(admission_.Admit(reference).ok());
  v1::JobSpec gpu = Good();
  gpu.mutable_replicas()->set_device_kind(v1::DEVICE_KIND_GPU);
  EXPECT_EQ(Refused(gpu).code(), absl::StatusCode::kFailedPrecondition);

  v1::JobSpec large = Good();
  large.mutable_model()->mutable_layers(1)->Clear();
  large.mutable_model()->mutable_layers(1)->mutable_dense()->set_units(50'000'000);
  const absl::Status too_large = Refused(large);
  EXPECT_EQ(GetReason(too_large), "TOO_LITTLE_MEMORY") << too_large;
}

TEST_F(AdmissionTest, PrecisionMustBeOneOfTheDevices) {
  const auto with = [](v1::Precision precision, v1::DeviceKind kind) {
    v1::JobSpec spec = Good();
    spec.mutable_replicas()->set_count(1);
    spec.mutable_replicas()->set_device_kind(kind);
    spec.mutable_training()->set_precision(precision);
    return spec;
  };
  EXPECT_TRUE(admission_.Admit(with(v1::PRECISION_FLOAT32, v1::DEVICE_KIND_UNSPECIFIED)).ok());
  EXPECT_TRUE(admission_.Admit(with(v1::PRECISION_UNSPECIFIED, v1::DEVICE_KIND_REFERENCE)).ok());
  EXPECT_TRUE(admission_.Admit(with(v1::PRECISION_FLOAT64, v1::DEVICE_KIND_REFERENCE)).ok());
  for (const v1::Precision precision :
       {v1::PRECISION_BFLOAT16, v1::PRECISION_FLOAT16, v1::PRECISION_FLOAT64}) {
    const absl::Status refused = Refused(with(precision, v1::DEVICE_KIND_CPU));
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(GetReason(refused), "PRECISION_NOT_OFFERED");
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr("spec.training.precision"), HasSubstr(v1::Precision_Name(precision)),
                      HasSubstr("PRECISION_FLOAT32")));
  }
  EXPECT_EQ(GetReason(Refused(with(v1::PRECISION_FLOAT32, v1::DEVICE_KIND_REFERENCE))),
            "PRECISION_NOT_OFFERED");
  v1::JobSpec scaled = with(v1::PRECISION_FLOAT32, v1::DEVICE_KIND_CPU);
  scaled.mutable_training()->mutable_loss_scaling()->set_growth_factor(1);
  EXPECT_THAT(FieldsOf(scaled),
              UnorderedElementsAre("spec.training.loss_scaling", "spec.training.loss_scaling.growth_factor"));
  EXPECT_THAT(FieldsOf(with(static_cast<v1::Precision>(77), v1::DEVICE_KIND_CPU)),
              ElementsAre("spec.training.precision"));
}

}  // namespace
}  // namespace tandem
