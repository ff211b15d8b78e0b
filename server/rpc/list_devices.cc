#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/post_for_user.h"

namespace tandem::rpc {
namespace {

v1::ListDevicesResponse Devices(const RpcContext& context) {
  v1::ListDevicesResponse response;
  for (v1::Device& device : context.scheduler->ListDevices()) *response.add_devices() = std::move(device);
  return response;
}

}  // namespace

void ListDevices(const RpcContext& context, const Caller& caller, const v1::ListDevicesRequest& request,
                 Reply<v1::ListDevicesResponse> reply) {
  if (context.refresh_gpu == nullptr) {
    reply(Devices(context));
    return;
  }
  // Drivers take their time.
  PostToLook(context, caller, request, std::move(reply), [&context](Reply<v1::ListDevicesResponse> reply) {
    v1::ListDevicesResponse response = Devices(context);
    for (v1::Device& device : *response.mutable_devices()) {
      if (device.has_gpu()) context.refresh_gpu(device.mutable_gpu());
    }
    reply(std::move(response));
  });
}

}  // namespace tandem::rpc
