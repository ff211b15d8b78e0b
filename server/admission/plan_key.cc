#include "server/admission/plan_key.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tandem {

using google::protobuf::FieldDescriptor;

std::string PlanKey(const v1::JobSpec& spec, const DatasetInfo& data) {
  v1::JobSpec key = spec;
  key.clear_name();
  key.mutable_training()->clear_seed();
  // Clears the learning rate of any optimizer.
  v1::Optimizer* const optimizer = key.mutable_training()->mutable_optimizer();
  std::vector<const FieldDescriptor*> set;
  optimizer->GetReflection()->ListFields(*optimizer, &set);
  for (const FieldDescriptor* field : set) {
    if (field->is_repeated() || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    google::protobuf::Message* const kind = optimizer->GetReflection()->MutableMessage(optimizer, field);
    const FieldDescriptor* const rate = kind->GetDescriptor()->FindFieldByName("learning_rate");
    if (rate != nullptr) kind->GetReflection()->ClearField(kind, rate);
  }
  std::string columns;
  for (const v1::EmbeddedColumn& column : data.category_columns) {
    absl::StrAppend(&columns, column.first_input(), ",", column.inputs(), ",", column.name().size(), ",",
                    column.name(), ",");
  }
  const std::string labels = absl::StrJoin(data.class_labels, ",");
  const auto extents = [](const Shape& shape) { return absl::StrJoin(shape.extents(), ","); };
  return absl::StrCat(extents(data.shape), ";", extents(data.target_shape), ";", data.classes, ";",
                      data.train_samples, ";", data.validation_samples, ";", data.memory_bytes, ";",
                      static_cast<int>(data.sample_type), ";", static_cast<int>(data.target_type), ";",
                      data.mixes_classes, ";", data.one_label, ";", columns, ";", labels, ";",
                      key.SerializeAsString());
}

}  // namespace tandem
