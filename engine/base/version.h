#ifndef TANDEM_ENGINE_BASE_VERSION_H_
#define TANDEM_ENGINE_BASE_VERSION_H_

namespace tandem {

// The version of the whole project (https://semver.org). CHANGELOG.md lists the changes.
inline constexpr char kVersion[] = "0.1.0";

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_VERSION_H_
