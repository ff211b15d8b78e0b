#ifndef TANDEM_CLIENT_LIB_MAIN_METRIC_H_
#define TANDEM_CLIENT_LIB_MAIN_METRIC_H_

#include <string>

#include "tandem/v1/event.pb.h"

namespace tandem::client {

// Returns the metric for a single column or curve: "accuracy" if present, otherwise the first by name, or "".
std::string MainMetric(const v1::Evaluation& evaluation);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_MAIN_METRIC_H_
