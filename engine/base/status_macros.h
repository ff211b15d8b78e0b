#ifndef TANDEM_ENGINE_BASE_STATUS_MACROS_H_
#define TANDEM_ENGINE_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the function if `expression`, an absl::Status, is an error.
#define TANDEM_RETURN_IF_ERROR(expression)                                                    \
  do {                                                                                        \
    if (absl::Status tandem_status = (expression); !tandem_status.ok()) return tandem_status; \
  } while (false)

#define TANDEM_STATUS_CONCAT_INNER(a, b) a##b
#define TANDEM_STATUS_CONCAT(a, b) TANDEM_STATUS_CONCAT_INNER(a, b)

// Assigns the value of `expression`, an absl::StatusOr, to `target`. `target` may declare a variable. If
// `expression` is an error, returns the error from the function.
#define TANDEM_ASSIGN_OR_RETURN(target, expression) \
  TANDEM_ASSIGN_OR_RETURN_INNER(TANDEM_STATUS_CONCAT(tandem_status_or_, __LINE__), target, expression)
#define TANDEM_ASSIGN_OR_RETURN_INNER(status_or, target, expression) \
  auto status_or = (expression);                                     \
  if (!status_or.ok()) return std::move(status_or).status();         \
  target = *std::move(status_or)

#endif  // TANDEM_ENGINE_BASE_STATUS_MACROS_H_
