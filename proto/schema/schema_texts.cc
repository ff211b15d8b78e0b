#include "proto/schema/schema_texts.h"

namespace tandem {
namespace {

// Unsigned: comments may have bytes of 128 and more.
constexpr unsigned char kJob[] = {
#include "proto/schema/job_schema.inc"
};
constexpr unsigned char kSweep[] = {
#include "proto/schema/sweep_schema.inc"
};

// The text of bytes that end with a zero.
template <size_t kSize>
absl::string_view Text(const unsigned char (&bytes)[kSize]) {
  return {reinterpret_cast<const char*>(bytes), kSize - 1};
}

}  // namespace

absl::string_view JobFileSchema() { return Text(kJob); }

absl::string_view SweepFileSchema() { return Text(kSweep); }

}  // namespace tandem
