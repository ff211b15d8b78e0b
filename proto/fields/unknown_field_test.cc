#include "proto/fields/unknown_field.h"

#include "gtest/gtest.h"
#include "tandem/v1/job.pb.h"

namespace tandem {
namespace {

void AddUnknown(google::protobuf::Message* message, int number) {
  message->GetReflection()->MutableUnknownFields(message)->AddVarint(number, 1);
}

TEST(UnknownFieldTest, FindsItAtAnyDepth) {
  v1::Job job;
  EXPECT_EQ(FindUnknownField(job), std::nullopt);
  v1::JobSpec& spec = *job.mutable_spec();
  spec.set_name("a");
  spec.mutable_model()->add_layers()->mutable_dense()->set_units(3);
  v1::Layer& layer = *spec.mutable_model()->add_layers();
  EXPECT_EQ(FindUnknownField(job), std::nullopt);
  AddUnknown(layer.mutable_dense(), 99);
  EXPECT_EQ(FindUnknownField(job), "spec.model.layers[1].dense.99");
  AddUnknown(&spec, 1234);
  EXPECT_EQ(FindUnknownField(job), "spec.1234");
  AddUnknown(&job, 5678);
  EXPECT_EQ(FindUnknownField(job), "5678");
}

}  // namespace
}  // namespace tandem
