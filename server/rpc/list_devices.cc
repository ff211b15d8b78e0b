#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/pages.h"
#include "server/rpc/post_for.h"

namespace tandem::rpc {
namespace {

v1::ListDevicesResponse Devices(const Page& page, const Scheduler* scheduler) {
  v1::ListDevicesResponse response;
  response.set_next_page_token(AddPage(scheduler->ListDevices(), 0, page, response.mutable_devices()));
  return response;
}

}  // namespace

void ListDevices(const Caller& caller, const v1::ListDevicesRequest& request,
                 Reply<v1::ListDevicesResponse> reply, const Scheduler* scheduler,
                 std::function<void(v1::GpuStatus*)> refresh_gpu,
                 std::function<absl::StatusOr<std::vector<v1::ClusterPartition>>()> partitions,
                 FairPool* pool) {
  const absl::StatusOr<Page> page = PageOf(request);
  if (!page.ok()) return reply(page.status());
  if (refresh_gpu == nullptr && partitions == nullptr) return reply(Devices(*page, scheduler));
  // Drivers and clusters may be slow.
  PostFor(pool, caller, request, std::move(reply),
          [scheduler, refresh_gpu = std::move(refresh_gpu), partitions = std::move(partitions), page = *page,
           is_first = request.page_token().empty()](Reply<v1::ListDevicesResponse> reply) {
            v1::ListDevicesResponse response = Devices(page, scheduler);
            for (v1::Device& device : *response.mutable_devices()) {
              if (device.has_gpu() && refresh_gpu) refresh_gpu(device.mutable_gpu());
            }
            if (partitions && is_first) {
              const absl::StatusOr<std::vector<v1::ClusterPartition>> found = partitions();
              if (!found.ok()) {
                response.set_partitions_message(std::string(found.status().message()));
              } else {
                response.mutable_partitions()->Assign(found->begin(), found->end());
              }
            }
            reply(std::move(response));
          });
}

}  // namespace tandem::rpc
