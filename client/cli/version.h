#ifndef TANDEM_CLIENT_CLI_VERSION_H_
#define TANDEM_CLIENT_CLI_VERSION_H_

namespace tandem::cli {

// The program's version.
inline constexpr char kVersion[] = "0.1.0";

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_VERSION_H_
