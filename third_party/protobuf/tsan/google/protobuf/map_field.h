// Under the thread sanitizer this header gives every map field two counters more, which the system's
// library, built without it, knows nothing of: both would look for a map's members in other places.
// So it is read here as that library was built.
#pragma GCC system_header
#pragma push_macro("__SANITIZE_THREAD__")
#undef __SANITIZE_THREAD__
#include_next <google/protobuf/map_field.h>
#pragma pop_macro("__SANITIZE_THREAD__")
