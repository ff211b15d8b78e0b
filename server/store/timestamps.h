#ifndef TANDEM_SERVER_STORE_TIMESTAMPS_H_
#define TANDEM_SERVER_STORE_TIMESTAMPS_H_

#include "absl/time/time.h"
#include "google/protobuf/timestamp.pb.h"

namespace tandem {

// Returns the time as records have it, in whole microseconds.
google::protobuf::Timestamp TimestampOf(absl::Time time);

// Returns the timestamp's time.
absl::Time TimeOf(const google::protobuf::Timestamp& timestamp);

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_TIMESTAMPS_H_
