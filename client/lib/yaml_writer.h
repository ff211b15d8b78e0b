#ifndef TANDEM_CLIENT_LIB_YAML_WRITER_H_
#define TANDEM_CLIENT_LIB_YAML_WRITER_H_

#include "proto/job_file/yaml_writer.h"

namespace tandem::client {

// For the dashboard.
using tandem::ToYaml;

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_YAML_WRITER_H_
