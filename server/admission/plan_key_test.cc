#include "server/admission/plan_key.h"

#include <string>

#include "gtest/gtest.h"

namespace tandem {
namespace {

TEST(PlanKeyTest, LeavesOutWhatThePlanDoesNotDependOn) {
  v1::JobSpec spec;
  spec.set_name("a");
  spec.mutable_training()->set_epochs(3);
  spec.mutable_training()->mutable_optimizer()->mutable_adam()->set_learning_rate(0.1);
  DatasetInfo data;
  data.train_samples = 100;
  const std::string key = PlanKey(spec, data);
  v1::JobSpec same = spec;
  same.set_name("b");
  same.mutable_training()->set_seed(7);
  same.mutable_training()->mutable_optimizer()->mutable_adam()->set_learning_rate(0.2);
  EXPECT_EQ(PlanKey(same, data), key);
  v1::JobSpec longer = spec;
  longer.mutable_training()->set_epochs(4);
  EXPECT_NE(PlanKey(longer, data), key);
  v1::JobSpec other = spec;
  other.mutable_training()->mutable_optimizer()->mutable_sgd()->set_learning_rate(0.1);
  EXPECT_NE(PlanKey(other, data), key);
  other.mutable_training()->mutable_optimizer()->mutable_adam()->set_beta1(0.5);
  EXPECT_NE(PlanKey(other, data), key);
  data.train_samples = 101;
  EXPECT_NE(PlanKey(spec, data), key);
  data.train_samples = 100;
  EXPECT_EQ(PlanKey(spec, data), key);
  // The model's columns must be those of the data.
  v1::EmbeddedColumn column;
  column.set_name("a");
  column.set_inputs(12);
  data.category_columns = {column};
  EXPECT_NE(PlanKey(spec, data), key);
  const std::string with_column = PlanKey(spec, data);
  data.category_columns[0].set_first_input(1);
  EXPECT_NE(PlanKey(spec, data), with_column);
  data.category_columns.clear();
  EXPECT_EQ(PlanKey(spec, data), key);
  // A loss may not fit this order of classes.
  data.class_labels = {1, 0};
  EXPECT_NE(PlanKey(spec, data), key);
  data.class_labels.clear();
  // CheckJob refuses such data.
  data.one_label = true;
  EXPECT_NE(PlanKey(spec, data), key);
}

}  // namespace
}  // namespace tandem
