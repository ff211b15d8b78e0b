#include "proto/fields/field_value.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/message_differencer.h"
#include "tandem/v1/job.pb.h"

namespace tandem {
namespace {

using google::protobuf::Value;

std::string Hint(absl::string_view name, const std::vector<std::string>& known) {
  return absl::StrCat("not `", name, "` but `", known.front(), "`");
}

v1::JobSpec Spec() {
  v1::JobSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(model {
             layers { conv2d { filters: 4 kernel: 3 } }
             layers { dense { units: 10 } }
           }
           training {
             epochs: 2
             optimizer { sgd { learning_rate: 0.1 } }
           })pb",
      &spec));
  return spec;
}

// Sets the field at "path" to a JSON value.
absl::Status Set(const std::string& path, const std::string& json, v1::JobSpec* spec) {
  Value value;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &value).ok()) << json;
  const absl::StatusOr<FieldPlace> place = FindField(path, &Hint, spec);
  return place.ok() ? SetFieldValue(*place, value) : place.status();
}

std::string Get(const std::string& path, v1::JobSpec spec) {
  const absl::StatusOr<FieldPlace> place = FindField(path, &Hint, &spec);
  if (!place.ok()) return std::string(place.status().message());
  const absl::StatusOr<Value> value = GetFieldValue(*place);
  if (!value.ok()) return std::string(value.status().message());
  return ToJsonText(*value).value();
}

TEST(FieldValue, IsSetWhateverItsType) {
  v1::JobSpec spec = Spec();
  ASSERT_TRUE(Set("training.epochs", "7", &spec).ok());
  ASSERT_TRUE(Set("training.optimizer.adam.learning_rate", "0.001", &spec).ok());
  ASSERT_TRUE(Set("model.layers[0].conv2d.kernel", "[5, 3]", &spec).ok());
  ASSERT_TRUE(Set("model.layers[0].conv2d.kernel[1]", "1", &spec).ok());
  ASSERT_TRUE(Set("model.layers[1]", R"({"dense": {"units": 3}})", &spec).ok());
  ASSERT_TRUE(Set("preemptible", "true", &spec).ok());
  ASSERT_TRUE(Set("name", R"("a b")", &spec).ok());
  ASSERT_TRUE(Set("training.best_model.mode", R"("PLATEAU_MODE_MAX")", &spec).ok());
  EXPECT_EQ(spec.training().epochs(), 7);
  EXPECT_FALSE(spec.training().optimizer().has_sgd());
  EXPECT_EQ(spec.training().optimizer().adam().learning_rate(), 0.001);
  ASSERT_EQ(spec.model().layers(0).conv2d().kernel_size(), 2);
  EXPECT_EQ(spec.model().layers(0).conv2d().kernel(0), 5);
  EXPECT_EQ(spec.model().layers(0).conv2d().kernel(1), 1);
  ASSERT_EQ(spec.model().layers_size(), 2);
  EXPECT_EQ(spec.model().layers(1).dense().units(), 3);
  EXPECT_TRUE(spec.preemptible());
  EXPECT_EQ(spec.name(), "a b");
  EXPECT_EQ(spec.training().best_model().mode(), v1::PLATEAU_MODE_MAX);
}

TEST(FieldValue, ComesBackAsItWasSet) {
  for (const auto& [path, json] :
       {std::pair("training.epochs", "7"), std::pair("training.epochs", "0"),
        std::pair("training.optimizer.adam.learning_rate", "0.001"),
        std::pair("model.layers[0].conv2d.kernel", "[5,3]"),
        std::pair("model.layers[0].conv2d.kernel[0]", "9"),
        std::pair("model.layers[1]", R"({"dense":{"units":"3"}})"), std::pair("preemptible", "false"),
        std::pair("training.best_model.mode", R"("PLATEAU_MODE_MIN")")}) {
    v1::JobSpec spec = Spec();
    ASSERT_TRUE(Set(path, json, &spec).ok()) << path;
    EXPECT_EQ(Get(path, spec), json) << path;
  }
}

TEST(FieldValue, WhatIsNoneIsRefused) {
  for (const auto& [path, json, message] :
       {std::tuple("training.epochs", "1.5", "is 1.5; it must be a whole number"),
        std::tuple("training.epochs", R"("many")", "is \"many\"; it must be a whole number"),
        std::tuple("training.epochs", "[1]", "is [1]; it must be a whole number"),
        std::tuple("training.epochs", "null", "has no value"),
        std::tuple("model.layers[0].conv2d.kernel", "3",
                   "is 3; it must be a list, of which each element is a whole number"),
        std::tuple("model.layers[0].conv2d.kernle", "3",
                   "model.layers[0].conv2d.kernle: unknown field; not `kernle` but `filters`"),
        std::tuple("model.layers[5].dense.units", "3",
                   "model.layers[5]: the list has 2 elements, of which the last is [1]"),
        std::tuple("model.layers.dense.units", "3",
                   "model.layers: is a list; name an element, such as model.layers[0]"),
        std::tuple("training.epochs.more", "3", "training.epochs: has no fields of its own"),
        std::tuple("training.epochs[0]", "3", "training.epochs: is no list"),
        std::tuple("training..epochs", "3",
                   "`training..epochs` is no path of a field: want one such as "
                   "model.layers[0].conv2d.filters")}) {
    v1::JobSpec spec = Spec();
    const absl::Status status = Set(path, json, &spec);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << path;
    EXPECT_EQ(status.message(), message);
  }
}

}  // namespace
}  // namespace tandem
