// Admission of jobs on tables: names of columns and classes, embedded categories, scaled targets.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/env.h"
#include "engine/base/field_violations.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/tensor/tensor.h"
#include "server/admission/admission_fixture.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A job on the table "animals.csv".
class AnimalsTest : public AdmissionFixture {
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

}  // namespace
}  // namespace tandem
