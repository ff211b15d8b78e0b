#include <utility>

#include "server/rpc/handlers.h"

namespace tandem::rpc {

void ListDevices(const RpcContext& context, const v1::ListDevicesRequest&,
                 Reply<v1::ListDevicesResponse> reply) {
  v1::ListDevicesResponse response;
  for (v1::Device& device : context.scheduler->ListDevices()) *response.add_devices() = std::move(device);
  reply(std::move(response));
}

}  // namespace tandem::rpc
