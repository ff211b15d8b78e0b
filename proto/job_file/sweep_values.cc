#include "proto/job_file/sweep_values.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/fields/field_value.h"
#include "proto/job_file/field_setting.h"

namespace tandem {
namespace {

using Values = google::protobuf::RepeatedPtrField<google::protobuf::Value>;

// `where` is the path of the list.
std::optional<SweepValueProblem> Convert(const std::string& field, const v1::JobSpec& base,
                                         const std::string& where, Values* values) {
  for (int i = 0; i < values->size(); ++i) {
    const absl::StatusOr<std::string> text = ToJsonText(values->Get(i));
    absl::Status status = text.status();
    if (status.ok()) {
      v1::JobSpec changed = base;
      status = SetField(field, *text, &changed, values->Mutable(i));
    }
    if (!status.ok()) {
      return SweepValueProblem{absl::StrCat(where, "[", i, "]"), std::string(status.message())};
    }
  }
  return std::nullopt;
}

}  // namespace

size_t CountSweepValues(const v1::Sweep& sweep) {
  size_t count = 0;
  for (const v1::SweepGridField& field : sweep.grid()) count += field.values_size();
  for (const v1::SweepRandomField& field : sweep.random().fields()) count += field.choice().values_size();
  return count;
}

std::optional<SweepValueProblem> ConvertSweepValues(v1::Sweep* sweep) {
  for (int i = 0; i < sweep->grid_size(); ++i) {
    v1::SweepGridField* field = sweep->mutable_grid(i);
    auto problem =
        Convert(field->field(), sweep->base(), absl::StrCat("grid[", i, "].values"), field->mutable_values());
    if (problem.has_value()) return problem;
  }
  for (int i = 0; i < sweep->random().fields_size(); ++i) {
    v1::SweepRandomField* field = sweep->mutable_random()->mutable_fields(i);
    if (!field->has_choice()) continue;
    auto problem =
        Convert(field->field(), sweep->base(), absl::StrCat("random.fields[", i, "].choice.values"),
                field->mutable_choice()->mutable_values());
    if (problem.has_value()) return problem;
  }
  return std::nullopt;
}

}  // namespace tandem
