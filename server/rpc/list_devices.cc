#include <utility>

#include "server/rpc/handlers.h"

namespace tandem::rpc {
namespace {

v1::ListDevicesResponse Devices(const RpcContext& context) {
  v1::ListDevicesResponse response;
  for (v1::Device& device : context.scheduler->ListDevices()) *response.add_devices() = std::move(device);
  return response;
}

}  // namespace

void ListDevices(const RpcContext& context, const v1::ListDevicesRequest&,
                 Reply<v1::ListDevicesResponse> reply) {
  if (context.refresh_gpu == nullptr) {
    reply(Devices(context));
    return;
  }
  // Drivers take their time.
  context.pool->Post([&context, reply = std::move(reply)]() mutable {
    v1::ListDevicesResponse response = Devices(context);
    for (v1::Device& device : *response.mutable_devices()) {
      if (device.has_gpu()) context.refresh_gpu(device.mutable_gpu());
    }
    reply(std::move(response));
  });
}

}  // namespace tandem::rpc
