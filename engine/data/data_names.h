#ifndef TANDEM_ENGINE_DATA_DATA_NAMES_H_
#define TANDEM_ENGINE_DATA_DATA_NAMES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tandem/v1/table.pb.h"

namespace tandem {

// The names by which a model knows its data. Another data set is matched to the model by these names, never
// by position. An empty list means that the model's data gave no names.
struct DataNames {
  // A table's feature columns, in the order of a sample's numbers.
  std::vector<std::string> features = {};
  // A table's target columns, in the order of a target's numbers.
  std::vector<std::string> targets = {};
  // Classes by label, or characters by token.
  std::vector<std::string> classes = {};

  // Whether the network's first layer is the model's. If not, any columns fit.
  bool matches_inputs = true;
  // Whether the network's outputs are the model's. If not, any classes fit.
  bool matches_outputs = true;
  // Data with classes or targets that the model does not know keep their own, and a notice lists the mapping.
  // Otherwise such data are refused.
  bool takes_other_outputs = false;

  // How the model's table was prepared. A model of another table, or of other data, has none: its tables must
  // be numbers.
  std::optional<v1::TablePreparation> preparation = std::nullopt;

  bool empty() const { return features.empty() && targets.empty() && classes.empty(); }
};

// Returns the labels in the order in which settings count classes: first `labels`, the labels of the data's
// own classes, then all other labels below `classes`. Empty if that is 0, 1, 2 and so on.
std::vector<int32_t> ClassLabels(std::vector<int32_t> labels, int64_t classes);
// As above, for data whose own classes are `own`. `classes` has each of them, in the order of the labels.
std::vector<int32_t> ClassLabels(const std::vector<std::string>& own,
                                 const std::vector<std::string>& classes);

// For messages: "'cat', 'dog'", with at most 20 names.
std::string ListNames(const std::vector<std::string>& names);

// A name as UTF-8. Text that is not UTF-8 is read as ISO 8859-1, so that a name is the same in both
// encodings.
std::string NameToUtf8(absl::string_view name);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_DATA_NAMES_H_
