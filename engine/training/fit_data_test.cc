#include "engine/training/fit_data.h"

#include <string>
#include <vector>

#include "engine/base/field_violations.h"
#include "engine/base/testing/from_text.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

// Returns the source that a job with this network and loss makes of `npy`.
v1::NpySource Fitted(const std::string& model, const std::string& loss, const std::string& npy = "") {
  v1::JobSpec spec;
  *spec.mutable_model() = FromText<v1::Model>(model);
  *spec.mutable_training()->mutable_loss() = FromText<v1::Loss>(loss);
  return FitData(spec, FromText<v1::DatasetSpec>("npy { " + npy + " }")).npy();
}

TEST(FitDataTest, TheLossDecidesAboutTargets) {
  const std::string mlp = "template { mlp { units: 4 } }";
  EXPECT_EQ(Fitted(mlp, "softmax_cross_entropy {}").targets(), v1::TARGET_KIND_CLASS);
  EXPECT_EQ(Fitted(mlp, "mse {}").targets(), v1::TARGET_KIND_VALUES);
  EXPECT_EQ(Fitted(mlp, "binary_cross_entropy_with_logits {}").targets(), v1::TARGET_KIND_UNSPECIFIED);
  EXPECT_EQ(Fitted(mlp, "mse {}", "targets: TARGET_KIND_CLASS").targets(), v1::TARGET_KIND_CLASS);
  EXPECT_EQ(Fitted(mlp, "softmax_cross_entropy { ignore_index: -100 }").ignore_index(), -100);
  EXPECT_FALSE(Fitted(mlp, "softmax_cross_entropy { ignore_index: 1 }").has_ignore_index());
  EXPECT_FALSE(Fitted(mlp, "softmax_cross_entropy {}").has_ignore_index());
}

TEST(FitDataTest, TheNetworkDecidesAboutInputs) {
  const std::string loss = "softmax_cross_entropy {}";
  EXPECT_EQ(Fitted("template { mlp {} }", loss).inputs(), v1::SAMPLE_KIND_UNSPECIFIED);
  EXPECT_EQ(Fitted("template { mlp {} }", loss).layout(), v1::ARRAY_LAYOUT_UNSPECIFIED);
  EXPECT_EQ(Fitted("template { lenet {} }", loss).layout(), v1::ARRAY_LAYOUT_NCHW);
  EXPECT_EQ(Fitted("template { lenet {} }", loss, "layout: ARRAY_LAYOUT_NHWC").layout(),
            v1::ARRAY_LAYOUT_NHWC);
  EXPECT_EQ(Fitted("input { shape: [1, 8, 8] }", loss).layout(), v1::ARRAY_LAYOUT_NCHW);
  const v1::NpySource tokens =
      Fitted("input { shape: 8 } layers { embedding { vocabulary_size: 5 dimension: 3 } }", loss);
  EXPECT_EQ(tokens.inputs(), v1::SAMPLE_KIND_TOKENS);
  EXPECT_EQ(tokens.targets(), v1::TARGET_KIND_UNSPECIFIED);
  EXPECT_EQ(Fitted("template { mini_gpt {} }", loss).inputs(), v1::SAMPLE_KIND_TOKENS);
}

TEST(FitDataTest, OtherSourcesStay) {
  v1::JobSpec spec;
  *spec.mutable_model() = FromText<v1::Model>("template { lenet {} }");
  const auto csv = FromText<v1::DatasetSpec>("csv { train: 'a.csv' }");
  EXPECT_EQ(FitData(spec, csv).SerializeAsString(), csv.SerializeAsString());
}

TEST(FitDataTest, TheLossDecidesWhetherTargetsMayBeScaled) {
  const auto scaling = [](const std::string& loss, const std::string& csv = "") {
    v1::JobSpec spec;
    *spec.mutable_training()->mutable_loss() = FromText<v1::Loss>(loss);
    return FitData(spec, FromText<v1::DatasetSpec>("csv { " + csv + " }")).csv().target_scaling();
  };
  EXPECT_EQ(scaling("mse {}"), v1::NUMBER_SCALING_UNSPECIFIED);
  EXPECT_EQ(scaling("kl_divergence {}"), v1::NUMBER_SCALING_NONE);
  EXPECT_EQ(scaling("kl_divergence {}", "target_scaling: NUMBER_SCALING_STANDARD"),
            v1::NUMBER_SCALING_STANDARD);
}

TEST(FitDataTest, ALossThatTakesNoScaledTargetsRefusesThem) {
  const auto check = [](const std::string& loss, const std::string& csv) {
    v1::JobSpec spec;
    *spec.mutable_training()->mutable_loss() = FromText<v1::Loss>(loss);
    return CheckDataChoices(spec, FromText<v1::DatasetSpec>("csv { " + csv + " }"));
  };
  const std::string standard = "target_scaling: NUMBER_SCALING_STANDARD";
  EXPECT_TRUE(check("huber {}", standard).ok());
  EXPECT_TRUE(check("", standard).ok()) << "a missing loss is another error";
  EXPECT_TRUE(check("kl_divergence {}", "").ok());
  EXPECT_TRUE(check("kl_divergence {}", "target_scaling: NUMBER_SCALING_NONE").ok());
  for (const std::string loss :
       {"kl_divergence {}", "binary_cross_entropy_with_logits {}", "cosine_embedding {}"}) {
    const std::vector<FieldViolation> found = GetFieldViolations(check(loss, standard));
    ASSERT_EQ(found.size(), 1u) << loss;
    EXPECT_EQ(found[0].field, "csv.target_scaling");
  }
}

}  // namespace
}  // namespace tandem
