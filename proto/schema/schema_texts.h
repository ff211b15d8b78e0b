#ifndef TANDEM_PROTO_SCHEMA_SCHEMA_TEXTS_H_
#define TANDEM_PROTO_SCHEMA_SCHEMA_TEXTS_H_

#include "absl/strings/string_view.h"

namespace tandem {

// The JSON Schema (draft-07) of job files in YAML or JSON.
absl::string_view JobFileSchema();

// The JSON Schema of sweep files.
absl::string_view SweepFileSchema();

}  // namespace tandem

#endif  // TANDEM_PROTO_SCHEMA_SCHEMA_TEXTS_H_
