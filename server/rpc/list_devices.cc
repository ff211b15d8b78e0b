#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/pages.h"
#include "server/rpc/post_for_user.h"

namespace tandem::rpc {
namespace {

v1::ListDevicesResponse Devices(const RpcContext& context, const Page& page) {
  v1::ListDevicesResponse response;
  response.set_next_page_token(
      AddPage(context.scheduler->ListDevices(), 0, page, response.mutable_devices()));
  return response;
}

}  // namespace

void ListDevices(const RpcContext& context, const Caller& caller, const v1::ListDevicesRequest& request,
                 Reply<v1::ListDevicesResponse> reply) {
  const absl::StatusOr<Page> page = PageOf(request);
  if (!page.ok()) return reply(page.status());
  if (context.refresh_gpu == nullptr && context.partitions == nullptr) return reply(Devices(context, *page));
  // Drivers and clusters may be slow.
  PostToLook(context, caller, request, std::move(reply),
             [&context, page = *page,
              is_first = request.page_token().empty()](Reply<v1::ListDevicesResponse> reply) {
               v1::ListDevicesResponse response = Devices(context, page);
               for (v1::Device& device : *response.mutable_devices()) {
                 if (device.has_gpu() && context.refresh_gpu) context.refresh_gpu(device.mutable_gpu());
               }
               if (context.partitions && is_first) {
                 const absl::StatusOr<std::vector<v1::ClusterPartition>> partitions = context.partitions();
                 if (!partitions.ok()) {
                   response.set_partitions_message(std::string(partitions.status().message()));
                 } else {
                   response.mutable_partitions()->Assign(partitions->begin(), partitions->end());
                 }
               }
               reply(std::move(response));
             });
}

}  // namespace tandem::rpc
