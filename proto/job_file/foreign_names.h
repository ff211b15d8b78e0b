#ifndef TANDEM_PROTO_JOB_FILE_FOREIGN_NAMES_H_
#define TANDEM_PROTO_JOB_FILE_FOREIGN_NAMES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tandem {

// Names of other systems (PyTorch, Keras, Deeplearning4j, DJL, MATLAB, MXNet), and the field of a job with
// the same meaning. A field's own name shows the field's place to a person who wrote the name elsewhere in
// the job.
struct ForeignName {
  // Words with a space between them, in lower case and without '_' and '-': "lr learningrate".
  absl::string_view names;
  // A path in JobSpec: "training.optimizer.sgd.learning_rate". Its list indices are examples.
  absl::string_view path;
};

// Returns the table. If a name is in several rows, an earlier row is preferred.
const std::vector<ForeignName>& ForeignNames();

// Returns the rest of a path in ForeignNames that begins with one of `names`: for "lr" and the optimizers'
// names, "sgd.learning_rate". Returns "" if there is none. Ignores case, '_' and '-'.
std::string NameForForeign(absl::string_view typed, const std::vector<std::string>& names);

// Returns a hint for a name of a job that is not in `names`, the names that are known at its place. The hint
// is the field for a name of another system, else a near name, else the names.
std::string FieldHint(absl::string_view typed, const std::vector<std::string>& names);

}  // namespace tandem

#endif  // TANDEM_PROTO_JOB_FILE_FOREIGN_NAMES_H_
