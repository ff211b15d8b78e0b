#ifndef TANDEM_ENGINE_DATA_FORMATS_CSV_TARGETS_H_
#define TANDEM_ENGINE_DATA_FORMATS_CSV_TARGETS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/data/dataset.h"
#include "engine/data/formats/csv_table.h"

namespace tandem {

// Gathers the training table's targets until their kind is known.
class TrainingTargets {
 public:
  // `classes` is the number that the source gives, or 0. `kind` is the kind that the source gives; targets
  // that are classes have a single column. `known` has the model's names and must outlive this object.
  TrainingTargets(int64_t classes, v1::TargetKind kind, const std::vector<std::string>& known)
      : classes_(classes),
        keeps_names_(kind != v1::TARGET_KIND_VALUES),
        are_classes_(kind == v1::TARGET_KIND_CLASS),
        known_(known.begin(), known.end()) {}

  void Add(const CsvTable& table, int64_t row, size_t column, absl::string_view text);

  // Return the INVALID_ARGUMENT of the first target that breaks a rule, or OK. The rules:
  // no target is empty,
  const absl::Status& empty_status() const { return empty_status_; }
  // numbers are not mixed with text (the error names the first target of the rarer kind),
  absl::Status mixed_status() const;
  // numbers have no marks between thousands,
  const absl::Status& marks_status() const { return marks_status_; }
  // all targets are values,
  const absl::Status& value_status() const { return value_status_; }
  // all targets are numbers of classes,
  const absl::Status& number_status() const { return number_status_; }
  // the model knows all targets by name (OK without a model).
  const absl::Status& known_status() const { return known_status_; }

  bool are_mixed() const { return numbers_.count > 0 && texts_.count > 0; }
  bool all_numbers() const { return value_status_.ok(); }
  // Returns whether the model knows any target.
  bool knows_any() const { return knows_any_; }
  // Returns the number of classes, if targets are their numbers: the source's, or the largest target + 1.
  int64_t classes() const { return classes_ > 0 ? classes_ : int64_t{1} + largest_; }
  // Returns whether all targets have the same class.
  bool one_label() const {
    return number_status_.ok() ? smallest_ == largest_ : keeps_names_ && names_.size() == 1;
  }
  // Returns a notice if the targets of `table` are labels, and many classes up to the largest label have no
  // sample, otherwise "". Labels from 0 with gaps need no notice, if at least half of the classes have
  // samples. Labels above 0 count from 1 or are names, and leave outputs that never train. No notice if there
  // are too many labels to count, or a single one.
  std::string LabelsNotice(const CsvTable& table) const;
  // Returns a notice if the values of `table` are so large that a network reaches them slowly, otherwise "".
  // The root mean square of all rows decides.
  std::string ScaleNotice(const CsvTable& table) const;
  // Returns the names of the classes. If all targets are numbers of classes, the names are in the order of
  // the numbers, otherwise in alphabetical order. A number is a name only if the source gives the kind class,
  // or if the model knows the name. INVALID_ARGUMENT if there are too many names.
  absl::StatusOr<std::vector<std::string>> Names(const CsvTable& table) const;

 private:
  const int64_t classes_;
  bool keeps_names_;  // False if targets cannot name classes: they are values, or there are too many names.
  // Numbers may be names of classes, among texts.
  const bool are_classes_;
  absl::flat_hash_set<std::string> names_;
  size_t names_bytes_ = 0;
  const absl::flat_hash_set<absl::string_view> known_;
  bool knows_any_ = false;
  absl::Status known_status_;
  double sum_of_squares_ = 0;  // Of the numbers.
  int32_t largest_ = 0;
  int32_t smallest_ = std::numeric_limits<int32_t>::max();
  // The number of targets of a kind, and the first.
  struct Seen {
    int64_t count = 0;
    std::string place;
  };
  Seen numbers_;
  Seen texts_;
  absl::Status empty_status_;
  absl::Status marks_status_;
  absl::Status value_status_;
  absl::Status number_status_;
};

// Converts targets to numbers, as `info` says. Values are scaled as its preparation says. `info` must outlive
// this object.
class TargetReader {
 public:
  explicit TargetReader(const DatasetInfo& info) : info_(info) {
    for (size_t i = 0; i < info.class_names.size(); ++i) {
      numbers_.emplace(info.class_names[i], static_cast<int32_t>(i));
    }
  }

  // Appends the target: int32 or float32.
  absl::Status Read(const CsvTable& table, int64_t row, size_t column, absl::string_view text,
                    std::vector<uint8_t>* bytes) const;

 private:
  const DatasetInfo& info_;
  absl::flat_hash_map<absl::string_view, int32_t> numbers_;
};

// Reads a number that is finite as a float. INVALID_ARGUMENT with the place, and `advice` at the end.
absl::StatusOr<double> CsvNumber(const CsvTable& table, int64_t row, size_t column, absl::string_view text,
                                 absl::string_view advice);

// Appends the bytes of `value`.
template <typename T>
void AppendBytes(T value, std::vector<uint8_t>* bytes) {
  const auto* begin = reinterpret_cast<const uint8_t*>(&value);
  bytes->insert(bytes->end(), begin, begin + sizeof value);
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_CSV_TARGETS_H_
