// Headers of sources that call or serve the API.

#include <grpcpp/grpcpp.h>

#include "tandem/v1/daemon_service.grpc.pb.h"
#include "tandem/v1/dataset_service.grpc.pb.h"
#include "tandem/v1/job_service.grpc.pb.h"
#include "tandem/v1/model_service.grpc.pb.h"
#include "tandem/v1/sweep_service.grpc.pb.h"
#include "third_party/precompiled/sources/messages.h"
