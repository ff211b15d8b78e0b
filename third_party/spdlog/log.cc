#include "third_party/spdlog/log.h"

#if FMT_VERSION / 10000 == 9
template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>& buffer,
                                            fmt::basic_string_view<char> format,
                                            fmt::basic_format_args<fmt::buffer_context<char>> arguments,
                                            fmt::detail::locale_ref locale);
#endif
