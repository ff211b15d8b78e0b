#ifndef TANDEM_TESTS_INTEGRATION_CLI_JSON_H_
#define TANDEM_TESTS_INTEGRATION_CLI_JSON_H_

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/integration/cli.h"

namespace tandem::testing {

// Returns the value that a run of `tandem` printed as JSON. Expects the exit code 0 and valid JSON.
inline nlohmann::json Json(const CliResult& result) {
  EXPECT_EQ(result.exit_code, 0) << result;
  nlohmann::json json = nlohmann::json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(json.is_discarded()) << result;
  return json;
}

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_INTEGRATION_CLI_JSON_H_
