#ifndef TANDEM_SERVER_WORKERS_SANITIZER_BUILD_H_
#define TANDEM_SERVER_WORKERS_SANITIZER_BUILD_H_

namespace tandem {

// True if this program was built with a sanitizer. Its runtime starts and traces processes and reserves much
// address space.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitizerBuild = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
inline constexpr bool kSanitizerBuild = true;
#else
inline constexpr bool kSanitizerBuild = false;
#endif
#else
inline constexpr bool kSanitizerBuild = false;
#endif

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_SANITIZER_BUILD_H_
