// Under the thread sanitizer, this header would give every map field two more counters. The system's library
// was built without the sanitizer and would look for a map's members at other offsets. So the header is read
// as the library was built.
#pragma GCC system_header
#pragma push_macro("__SANITIZE_THREAD__")
#undef __SANITIZE_THREAD__
#include_next <google/protobuf/map_field.h>
#pragma pop_macro("__SANITIZE_THREAD__")
