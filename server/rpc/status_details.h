#ifndef TANDEM_SERVER_RPC_STATUS_DETAILS_H_
#define TANDEM_SERVER_RPC_STATUS_DETAILS_H_

#include <google/protobuf/any.pb.h>
#include <grpcpp/support/status.h>
#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace tandem {

// For tests: returns all details of a call's error.
inline google::rpc::Status DetailsOf(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  return details;
}

// For tests: returns the detail of this type, such as google::rpc::ErrorInfo; empty if there is none.
template <typename Detail>
Detail DetailOf(const grpc::Status& status) {
  const google::rpc::Status details = DetailsOf(status);
  Detail found;
  for (const google::protobuf::Any& detail : details.details()) {
    if (detail.Is<Detail>()) detail.UnpackTo(&found);
  }
  return found;
}

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_STATUS_DETAILS_H_
