#ifndef TANDEM_ENGINE_BASE_SANITIZER_BUILD_H_
#define TANDEM_ENGINE_BASE_SANITIZER_BUILD_H_

namespace tandem {

// True if this program was built with a sanitizer. Its runtime starts and traces processes and reserves much
// address space.
#if defined(TANDEM_ASAN) || defined(TANDEM_TSAN)
inline constexpr bool kSanitizerBuild = true;
#else
inline constexpr bool kSanitizerBuild = false;
#endif

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_SANITIZER_BUILD_H_
