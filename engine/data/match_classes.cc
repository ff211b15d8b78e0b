#include "engine/data/match_classes.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

constexpr size_t kShownPairs = 20;

class RelabelledDataset final : public Dataset {
 public:
  RelabelledDataset(std::unique_ptr<const Dataset> whole, bool samples_too, std::vector<int32_t> labels)
      : whole_(std::move(whole)), samples_too_(samples_too), labels_(std::move(labels)) {}

  int64_t size() const override { return whole_->size(); }
  int64_t sample_bytes() const override { return whole_->sample_bytes(); }
  int64_t target_bytes() const override { return whole_->target_bytes(); }
  absl::Status Gather(absl::Span<const uint32_t> indices, void* samples, void* targets) const override {
    TANDEM_RETURN_IF_ERROR(whole_->Gather(indices, samples, targets));
    const auto count = static_cast<int64_t>(indices.size());
    Map(targets, count * target_bytes());
    if (samples_too_) Map(samples, count * sample_bytes());
    return absl::OkStatus();
  }

  absl::Status GatherTargets(absl::Span<const uint32_t> indices, void* targets) const override {
    TANDEM_RETURN_IF_ERROR(whole_->GatherTargets(indices, targets));
    Map(targets, static_cast<int64_t>(indices.size()) * target_bytes());
    return absl::OkStatus();
  }

 private:
  void Map(void* data, int64_t bytes) const {
    auto* const labels = static_cast<int32_t*>(data);
    const int64_t count = bytes / static_cast<int64_t>(sizeof(int32_t));
    for (int64_t i = 0; i < count; ++i) {
      if (labels[i] >= 0) labels[i] = labels_[labels[i]];
    }
  }

  const std::unique_ptr<const Dataset> whole_;
  const bool samples_too_;
  const std::vector<int32_t> labels_;
};

// Returns the field of the source that makes labels from names.
const char* NamingField(const v1::DatasetSpec& spec) {
  if (spec.has_image_folder()) return "image_folder.train";
  if (spec.has_csv()) return "csv.train";
  return spec.has_text() ? "text.train" : "class_names";
}

// Returns the labels of names that are numbers from 0, such as folders "0" to "9". Empty if any name is
// something else.
std::vector<int32_t> NumbersOf(const std::vector<std::string>& names) {
  std::vector<int32_t> numbers;
  for (const std::string& name : names) {
    int32_t number = 0;
    if (!absl::SimpleAtoi(name, &number) || number < 0 || absl::StrCat(number) != name) return {};
    numbers.push_back(number);
  }
  return numbers;
}

// Keeps labels by position. Adds a notice with the old and the new meaning of each output.
void TakeOtherClasses(const DataNames& model, DatasetInfo& info) {
  std::string pairs;
  const size_t count = std::min({model.classes.size(), info.class_names.size(), kShownPairs});
  for (size_t i = 0; i < count; ++i) {
    absl::StrAppend(&pairs, i == 0 ? "" : ", ", i, " was ", ListNames({model.classes[i]}), " and is ",
                    ListNames({info.class_names[i]}));
  }
  if (info.class_names.size() > count) absl::StrAppend(&pairs, ", ...");
  info.notices.push_back(
      absl::StrCat("The data have other classes than the model whose last layer is loaded. Outputs are taken "
                   "by position: ",
                   pairs, ". To begin that layer anew, name it in initial_weights.except_layers."));
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> MatchClasses(const v1::DatasetSpec& spec, const DataNames& model,
                                                  DatasetInfo& info) {
  std::vector<int32_t> labels;
  const bool tokens = info.target_type == TargetKind::kTokens;
  if (!model.matches_outputs || info.target_type == TargetKind::kValues) return labels;
  if (info.class_names == model.classes) return labels;
  if (info.class_names.empty() && !tokens && !NumbersOf(model.classes).empty()) {
    // The labels name the classes.
    for (int64_t label = 0; label < info.classes; ++label) info.class_names.push_back(absl::StrCat(label));
    if (info.class_names == model.classes) return labels;
  }
  if (info.class_names.empty()) {
    if (spec.has_text()) {
      return FieldError("text.tokens",
                        absl::StrCat("are bytes, but the model's are characters: ", ListNames(model.classes),
                                     "; give TEXT_TOKENS_CHARACTERS"));
    }
    info.notices.push_back(absl::StrCat("The data do not name their ", tokens ? "tokens" : "classes",
                                        ", so that they are matched to the model's by number: 0 is ",
                                        ListNames({model.classes[0]}),
                                        ". To match by name, give class_names in the order of the labels."));
    if (info.classes < static_cast<int64_t>(model.classes.size())) {
      info.classes = static_cast<int64_t>(model.classes.size());
    }
    if (info.classes == static_cast<int64_t>(model.classes.size())) info.class_names = model.classes;
    return labels;
  }
  if (model.classes.empty()) {
    // Names given for numbers do not change the meaning of the numbers.
    if (spec.class_names_size() > 0 || !info.labels_follow_names) return labels;
    if (spec.has_text()) {
      return FieldError("text.tokens",
                        "are characters, but the model's tokens have no names; give TEXT_TOKENS_BYTES");
    }
    labels = NumbersOf(info.class_names);
    if (labels.empty()) {
      if (model.takes_other_outputs) return labels;
      return FieldError(NamingField(spec),
                        absl::StrCat("has the classes ", ListNames(info.class_names),
                                     ", but the model's classes have no names; to match them by position, "
                                     "give class_names in this order"));
    }
    const int32_t largest = *std::max_element(labels.begin(), labels.end());
    info.classes = std::max<int64_t>(info.classes, int64_t{1} + largest);
    info.class_names.clear();
    return labels;
  }
  absl::flat_hash_map<absl::string_view, int32_t> known;
  std::vector<std::string> unknown;
  for (size_t i = 0; i < model.classes.size(); ++i) {
    if (known.emplace(model.classes[i], static_cast<int32_t>(i)).second) continue;
    return FieldError("class_names", absl::StrCat("cannot be matched: the model has several classes ",
                                                  ListNames({model.classes[i]})));
  }
  for (const std::string& name : info.class_names) {
    const auto found = known.find(name);
    if (found == known.end()) {
      unknown.push_back(name);
    } else {
      labels.push_back(found->second);
    }
  }
  if (!unknown.empty() && model.takes_other_outputs && !tokens) {
    TakeOtherClasses(model, info);
    return std::vector<int32_t>();
  }
  if (!unknown.empty()) {
    return FieldError(spec.class_names_size() > 0 ? "class_names" : NamingField(spec),
                      absl::StrCat("has the ", tokens ? "character " : "class ", ListNames(unknown),
                                   ", which the model does not know; it knows ", ListNames(model.classes),
                                   "; leave such samples out, or rename what is misspelt"));
  }
  info.class_names = model.classes;
  info.classes = static_cast<int64_t>(model.classes.size());
  return labels;
}

std::unique_ptr<const Dataset> Relabel(std::unique_ptr<const Dataset> whole, const DatasetInfo& info,
                                       const std::vector<int32_t>& labels) {
  if (whole == nullptr || labels.empty()) return whole;
  return std::make_unique<RelabelledDataset>(std::move(whole), info.sample_type == SampleType::kTokens,
                                             labels);
}

}  // namespace tandem
