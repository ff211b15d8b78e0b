// Notices of a last layer that does not fit the loss.

#include <string>

#include "absl/strings/str_cat.h"
#include "engine/base/testing/from_text.h"
#include "engine/training/notices.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

// Returns the notice for a dense layer and then `layers`, in protobuf's text form.
std::string NoticeOf(const std::string& layers, const std::string& loss) {
  return OutputNotice(FromText<v1::Model>(absl::StrCat("layers { name: \"a\" dense { units: 3 } } ", layers)),
                      FromText<v1::Loss>(absl::StrCat(loss, " {}")));
}

constexpr char kSoftmax[] = "layers { name: \"b\" softmax {} }";
constexpr char kLogSoftmax[] = "layers { name: \"b\" log_softmax {} }";
constexpr char kSigmoid[] = "layers { name: \"b\" dense { units: 1 activation: ACTIVATION_SIGMOID } }";
constexpr char kSigmoidLayer[] = "layers { name: \"b\" activation { function: ACTIVATION_SIGMOID } }";
constexpr char kReshape[] = "layers { name: \"c\" reshape { shape: 3 } }";

TEST(OutputNoticeTest, LossesOfLogarithmsNeedALogSoftmax) {
  EXPECT_THAT(NoticeOf("", "negative_log_likelihood"),
              HasSubstr("the last layer, \"a\", is no log_softmax; add a layer log_softmax, or give"));
  EXPECT_THAT(NoticeOf(kSoftmax, "kl_divergence"),
              HasSubstr("\"b\", is no log_softmax; add a layer log_softmax."));
  EXPECT_EQ(NoticeOf(kLogSoftmax, "negative_log_likelihood"), "");
  EXPECT_EQ(NoticeOf(kLogSoftmax, "kl_divergence"), "");
  EXPECT_EQ(NoticeOf(absl::StrCat(kLogSoftmax, kReshape), "negative_log_likelihood"), "");
}

TEST(OutputNoticeTest, LossesOfLogitsTakeNoProbabilities) {
  EXPECT_THAT(NoticeOf(kSoftmax, "softmax_cross_entropy"), HasSubstr("\"b\", is a softmax, too"));
  EXPECT_THAT(NoticeOf(kSigmoid, "binary_cross_entropy_with_logits"),
              HasSubstr("\"b\", computes a sigmoid, too"));
  EXPECT_THAT(NoticeOf(kSigmoidLayer, "binary_cross_entropy_with_logits"),
              HasSubstr("computes a sigmoid, too"));
}

TEST(OutputNoticeTest, OtherNetworksGetNone) {
  for (const char* loss : {"softmax_cross_entropy", "binary_cross_entropy_with_logits", "hinge", "mse"}) {
    EXPECT_EQ(NoticeOf("", loss), "") << loss;
    EXPECT_EQ(NoticeOf(kReshape, loss), "") << loss;
  }
  EXPECT_EQ(NoticeOf(kSigmoid, "mse"), "");
  EXPECT_EQ(NoticeOf(kLogSoftmax, "softmax_cross_entropy"), "");
}

}  // namespace
}  // namespace tandem
