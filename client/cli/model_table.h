#ifndef TANDEM_CLIENT_CLI_MODEL_TABLE_H_
#define TANDEM_CLIENT_CLI_MODEL_TABLE_H_

#include <string>

#include "client/cli/style.h"
#include "tandem/v1/model_description.pb.h"

namespace tandem::cli {

// Returns a number of operations: "12,345", or in powers of 1000 from a million: "1.82 G".
std::string FormatOperations(int64_t operations);

// Returns a network as a table of its layers, with totals below. With `wide`, also lists each layer's inputs.
std::string ModelTable(const v1::ModelDescription& description, bool wide, const Style& style);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_MODEL_TABLE_H_
