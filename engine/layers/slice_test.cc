// Slices of samples: the numbers that each slice keeps. layer_kinds_test.cc has the shapes and the refusals.

#include <memory>
#include <string>
#include <vector>

#include "engine/backend/op_cases.h"
#include "engine/backends/reference/reference_device.h"
#include "engine/base/testing/from_text.h"
#include "engine/layers/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

// Returns the outputs of a network for two samples of shape [2, 3]: 0 to 5, and 10 to 15.
std::vector<double> Outputs(const std::string& layers) {
  v1::Model model = FromText<v1::Model>("input { shape: [2, 3] } " + layers);
  FillModelDefaults(&model);
  EXPECT_TRUE(CheckModel(model).ok()) << CheckModel(model).status();
  CaseGraph g(DType::kFloat64);
  const ValueId input = g.graph().AddInput("x", DType::kFloat64, Shape({2, 2, 3}));
  g.inputs().push_back(Tensor::Of<double>({2, 2, 3}, {0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15}));
  const absl::StatusOr<Network> network = BuildModel(model, input, g.dtype(), /*training=*/true, g.graph());
  EXPECT_TRUE(network.ok()) << network.status();
  g.graph().MarkOutput(network->output);
  const std::unique_ptr<Device> device = CreateReferenceDevice();
  const absl::StatusOr<RunResult> result = RunCaseOn(*device, g);
  EXPECT_TRUE(result.ok()) << result.status();
  return {result->outputs[0].data<double>().begin(), result->outputs[0].data<double>().end()};
}

TEST(SliceTest, KeepsTheIndicesFromItsStart) {
  EXPECT_THAT(Outputs("layers { slice { start: 1 } }"), ElementsAre(3, 4, 5, 13, 14, 15));
  EXPECT_THAT(Outputs("layers { slice { size: 1 } }"), ElementsAre(0, 1, 2, 10, 11, 12));
  EXPECT_THAT(Outputs("layers { slice { axis: -1 start: 1 size: 1 } }"), ElementsAre(1, 4, 11, 14));
  EXPECT_THAT(Outputs("layers { slice { axis: 1 start: 2 } }"), ElementsAre(2, 5, 12, 15));
}

TEST(SliceTest, SeveralSlicesOfTheInputAreSeveralInputs) {
  EXPECT_THAT(Outputs(R"(layers { name: "flat" flatten {} }
                         layers { name: "first" slice { size: 4 } }
                         layers { name: "picture" reshape { shape: [2, 2] } }
                         layers { name: "row" slice { start: 4 } inputs: "flat" }
                         layers { name: "column" reshape { shape: [2, 1] } }
                         layers { concat { axis: 1 } inputs: ["picture", "column"] })"),
              ElementsAre(0, 1, 4, 2, 3, 5, 10, 11, 14, 12, 13, 15));
}

}  // namespace
}  // namespace tandem
