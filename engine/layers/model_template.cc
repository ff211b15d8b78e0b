#include "engine/layers/model_template.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/initializers/initializer.h"
#include "engine/layers/embed_categories.h"
#include "engine/layers/model.h"
#include "engine/layers/templates/templates.h"

namespace tandem {
namespace {

using Kind = v1::ModelTemplate::KindCase;

constexpr int kMaxModelNameLength = 64;
constexpr int64_t kMaxOutputs = std::numeric_limits<int32_t>::max();
constexpr ResnetDepth kResnet18 = {{2, 2, 2, 2}, false};
constexpr ResnetDepth kResnet34 = {{3, 4, 6, 3}, false};
constexpr ResnetDepth kResnet50 = {{3, 4, 6, 3}, true};

bool TakesImages(Kind kind) {
  return kind != Kind::kMlp && kind != Kind::kMiniGpt && kind != Kind::KIND_NOT_SET;
}

void Expand(const v1::ModelTemplate& from, const TemplateData& data, v1::Model& model,
            FieldViolations& violations) {
  switch (from.kind_case()) {
    case Kind::kLenet:
      return ExpandLenet(from.lenet(), data, model, violations);
    case Kind::kMlp:
      return ExpandMlp(from.mlp(), data, model, violations);
    case Kind::kResnet18:
      return ExpandResnet(from.resnet18(), kResnet18, data, model, violations);
    case Kind::kResnet34:
      return ExpandResnet(from.resnet34(), kResnet34, data, model, violations);
    case Kind::kResnet50:
      return ExpandResnet(from.resnet50(), kResnet50, data, model, violations);
    case Kind::kVgg11:
      return ExpandVgg11(from.vgg11(), data, model, violations);
    case Kind::kMatlabCifar:
      return ExpandMatlabCifar(from.matlab_cifar(), data, model, violations);
    case Kind::kMiniGpt:
      return ExpandMiniGpt(from.mini_gpt(), data, model, violations);
    case Kind::KIND_NOT_SET:
      return;
  }
}

void SetInput(const Shape& sample, v1::Model& model) {
  model.mutable_input()->clear_shape();
  for (const int64_t extent : sample.extents()) model.mutable_input()->add_shape(extent);
}

// Returns whether the model's first layer takes its columns from the data.
bool TakesColumns(const v1::Model& model) {
  return !model.layers().empty() && model.layers(0).has_embed_categories() &&
         model.layers(0).embed_categories().columns().empty();
}

// Gives the first layer its columns, if it takes columns from the data. The error has no field, and leaves
// the model unchanged.
absl::Status GiveColumns(const TemplateData& data, v1::Model& model) {
  if (!TakesColumns(model)) return absl::OkStatus();
  if (!data.category_columns.has_value()) {
    return absl::InvalidArgumentError(
        "takes the columns of a table, but no table is given; give the job's data set too");
  }
  return TakeColumns(*data.category_columns, model.mutable_layers(0)->mutable_embed_categories());
}

}  // namespace

bool TakesCategoryColumns(const v1::Model& model) {
  const v1::MlpTemplate& mlp = model.template_().mlp();
  return TakesColumns(model) || (mlp.has_embed_categories() && mlp.embed_categories().columns().empty());
}

absl::string_view TemplateName(const v1::ModelTemplate& model_template) {
  const auto* const field =
      v1::ModelTemplate::descriptor()->FindFieldByNumber(static_cast<int>(model_template.kind_case()));
  return field == nullptr ? absl::string_view() : absl::string_view(field->name());
}

TemplateData CustomaryData(const v1::ModelTemplate& model_template) {
  switch (model_template.kind_case()) {
    case Kind::kResnet18:
    case Kind::kResnet34:
    case Kind::kResnet50:
    case Kind::kVgg11:
      return {.sample = Shape({3, 224, 224}), .outputs = 1000};
    case Kind::kMatlabCifar:
      return {.sample = Shape({3, 32, 32}), .outputs = 10};
    case Kind::kMiniGpt:
      return {.sample = Shape({128}), .outputs = 256};
    default:
      return {.sample = Shape({1, 28, 28}), .outputs = 10};
  }
}

bool TakesImages(const v1::ModelTemplate& model_template) { return TakesImages(model_template.kind_case()); }

bool LooksChannelsLast(const Shape& sample) {
  // Smaller sides belong to features rather than pictures.
  constexpr int64_t kLeastSide = 8;
  return sample.rank() == 3 && sample[0] >= kLeastSide && sample[1] >= kLeastSide &&
         (sample[2] == 1 || sample[2] == 3 || sample[2] == 4);
}

absl::Status ExpandTemplate(const TemplateData& data, v1::Model* model) {
  if (!model->has_template_()) {
    if (!TakesColumns(*model)) return absl::OkStatus();
    if (const absl::Status given = GiveColumns(data, *model); !given.ok()) {
      return FieldError("layers[0].embed_categories", given.message());
    }
    if (!model->has_input()) SetInput(data.sample, *model);
    return absl::OkStatus();
  }
  const v1::ModelTemplate& from = model->template_();
  const std::string name(TemplateName(from));
  FieldViolations violations;
  if (name.empty()) violations.Add("template", "names no network; give one, such as lenet or resnet18");
  if (!model->layers().empty()) {
    violations.Add("layers", "are given beside a template; give one of the two");
  }
  if (model->name().size() > kMaxModelNameLength) {
    violations.Add("name", absl::StrCat("may have at most ", kMaxModelNameLength, " characters"));
  }
  if (model->has_weight_initializer()) {
    violations.AddAll("weight_initializer", CheckInitializer(model->weight_initializer()));
  }
  TemplateData wanted = data;
  if (model->has_input()) wanted.sample = InputShapeOf(*model);
  if (from.classes() != 0) wanted.outputs = from.classes();
  if (wanted.outputs < 1 || wanted.outputs > kMaxOutputs) {
    violations.Add("template.classes",
                   absl::StrCat("is ", wanted.outputs, "; it must be from 1 to ", kMaxOutputs));
  }
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  const std::string field = absl::StrCat("template.", name);
  if (TakesImages(from.kind_case()) && wanted.sample.rank() != 3) {
    return FieldError(field, absl::StrCat("takes images [channels, height, width], but samples are ",
                                          wanted.sample.ToString(), "; use mlp or give layers"));
  }
  if (TakesImages(from.kind_case()) && !model->has_input() && LooksChannelsLast(wanted.sample)) {
    const Shape& sample = wanted.sample;
    return FieldError(
        field, absl::StrCat("takes images [channels, height, width], but samples are ", sample.ToString(),
                            ", which looks like [height, width, channels]; give dataset.npy.layout: nhwc, or "
                            "model.input.shape: ",
                            sample.ToString(), " if there are ", sample[0], " channels"));
  }

  if (from.has_mini_gpt() && wanted.sample.rank() != 1) {
    return FieldError(field, absl::StrCat("takes sequences of tokens [length], but samples are ",
                                          wanted.sample.ToString(), "; give layers"));
  }

  v1::Model expanded = *model;
  expanded.clear_template_();
  if (expanded.name().empty()) expanded.set_name(name);
  SetInput(wanted.sample, expanded);
  FieldViolations numbers;
  Expand(from, wanted, expanded, numbers);
  if (model->has_weight_initializer()) {
    SetWeightInitializers(model->weight_initializer(), /*replaces=*/true, expanded.mutable_layers());
  }
  violations.AddAll(field, numbers.ToStatus());
  if (violations.empty()) {
    violations.AddAll(absl::StrCat(field, ".embed_categories"), GiveColumns(data, expanded));
  }
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());

  v1::Model filled = expanded;
  FillModelDefaults(&filled);
  const absl::Status status = CheckModel(filled).status();
  // The author of a template does not know these layers, so the fields become those of the template.
  for (const FieldViolation& violation : GetFieldViolations(status)) {
    violations.Add(
        field, absl::StrCat("does not take samples ", wanted.sample.ToString(), ": ", violation.description));
  }
  if (!status.ok() && violations.empty()) return status;
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  *model = std::move(expanded);
  return absl::OkStatus();
}

}  // namespace tandem
