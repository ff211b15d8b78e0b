#ifndef TANDEM_CLIENT_CLI_MODEL_TABLE_H_
#define TANDEM_CLIENT_CLI_MODEL_TABLE_H_

#include <string>

#include "client/cli/style.h"
#include "tandem/v1/model_description.pb.h"

namespace tandem::cli {

// "1.82 G", "12,345": operations, in powers of 1000 from a million on.
std::string FormatOperations(int64_t operations);

// A network as a table of its layers, with the totals below. With `wide`, also what each layer reads.
std::string ModelTable(const v1::ModelDescription& description, bool wide, const Style& style);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_MODEL_TABLE_H_
