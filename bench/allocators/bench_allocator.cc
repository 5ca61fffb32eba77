#include "bench/allocators/bench_allocator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/allocators/caching_allocator.h"
#include "bench/allocators/device_context.h"
#include "bench/allocators/expanse_adapter.h"
#include "bench/allocators/naive_allocator.h"
#include "bench/allocators/per_stream_segments.h"
#include "bench/allocators/pytorch_rules.h"

namespace expanse::bench {
namespace {

using Created = absl::StatusOr<std::unique_ptr<BenchAllocator>>;

Created CreateExpanse(std::unique_ptr<DeviceContext> context, const BenchAllocatorOptions& options) {
  return ExpanseAdapter::Create(std::move(context), options);
}

Created CreateNaive(std::unique_ptr<DeviceContext> context, const BenchAllocatorOptions& options) {
  return std::make_unique<NaiveAllocator>(std::move(context), options.limit);
}

Created CreateCaching(std::unique_ptr<DeviceContext> context, const BenchAllocatorOptions& options) {
  return std::make_unique<CachingAllocator>(std::move(context), options.limit);
}

Created CreatePreallocated(std::unique_ptr<DeviceContext> context, const BenchAllocatorOptions& options) {
  const Bytes usable =
      options.limit.has_value() ? std::min(*options.limit, context->total_memory()) : context->total_memory();
  auto allocator = std::make_unique<CachingAllocator>(std::move(context), options.limit);
  // Where 0.9 of the device is too little for a segment of that size, there is no first block.
  const Bytes share = RoundDown(usable / 10 * 9, MiB(2));
  if (!options.prealloc.has_value() && share < pytorch::kMinOwnSegment) return allocator;
  absl::Status status = allocator->Preallocate(options.prealloc.value_or(share));
  if (!status.ok()) return status;
  return allocator;
}

Created CreatePerStreamSegments(std::unique_ptr<DeviceContext> context, const BenchAllocatorOptions& options) {
  return std::make_unique<PerStreamSegments>(std::move(context), options.device, options.limit);
}

struct Entry {
  std::string_view name;
  Created (*create)(std::unique_ptr<DeviceContext> context, const BenchAllocatorOptions& options);
};

constexpr Entry kAllocators[] = {
    {"expanse", CreateExpanse},
    {"naive", CreateNaive},
    {"caching", CreateCaching},
    {"preallocated", CreatePreallocated},
    {"per-stream-segments", CreatePerStreamSegments},
};

}  // namespace

absl::Status BenchAllocator::Mark(std::string_view) { return absl::OkStatus(); }

absl::StatusOr<std::string> BenchAllocator::Recording() const {
  return absl::UnimplementedError("this allocator records nothing");
}

std::vector<std::string_view> BenchAllocatorNames() {
  std::vector<std::string_view> names;
  for (const Entry& entry : kAllocators) names.push_back(entry.name);
  return names;
}

absl::StatusOr<std::unique_ptr<BenchAllocator>> CreateBenchAllocator(std::string_view name, const Driver& driver,
                                                                     const BenchAllocatorOptions& options) {
  if (name == "driver-pool") {
    return absl::UnimplementedError(
        "driver-pool needs cuMemAllocAsync and its pools, which the simulated driver does not have");
  }
  for (const Entry& entry : kAllocators) {
    if (entry.name != name) continue;
    auto context = DeviceContext::Create(driver, options.device);
    if (!context.ok()) return context.status();
    return entry.create(*std::move(context), options);
  }
  std::string known;
  for (const Entry& entry : kAllocators) absl::StrAppend(&known, std::string(entry.name), ", ");
  return absl::NotFoundError(
      absl::StrCat("no allocator is called \"", std::string(name), "\"; there are ", known, "driver-pool"));
}

}  // namespace expanse::bench
