#ifndef TANDEM_THIRD_PARTY_SPDLOG_LOG_H_
#define TANDEM_THIRD_PARTY_SPDLOG_LOG_H_

// spdlog. A source that logs includes this header instead of <spdlog/spdlog.h>, and compiles three seconds
// faster.

#include <spdlog/spdlog.h>

#if FMT_VERSION / 10000 == 9
// log.cc compiles this function. Without the declaration, each source that logs compiles its own copy. The
// copy in libfmt has g++'s symbol; clang expects another symbol.
extern template void fmt::detail::vformat_to<char>(
    fmt::detail::buffer<char>& buffer, fmt::basic_string_view<char> format,
    fmt::basic_format_args<fmt::buffer_context<char>> arguments, fmt::detail::locale_ref locale);
#endif

#endif  // TANDEM_THIRD_PARTY_SPDLOG_LOG_H_
