#include "bench/micro/micro_rig.h"

#include <utility>

namespace expanse::bench {

absl::StatusOr<std::unique_ptr<MicroRig>> MicroRig::Open(std::string_view allocator, int threads) {
  sim::Config config;
  config.memory = sim::MemoryMode::kAccounting;
  absl::StatusOr<std::unique_ptr<sim::Simulator>> simulator = sim::Simulator::Create(config);
  if (!simulator.ok()) return simulator.status();
  std::unique_ptr<MicroRig> rig(new MicroRig(*std::move(simulator)));

  const Driver& driver = rig->simulator_->driver();
  absl::Status status = ToStatus(driver, driver.init(0), "cuInit(0)");
  if (!status.ok()) return status;
  abi::Context context = nullptr;
  status = ToStatus(driver, driver.primary_ctx_retain(&context, 0), "cuDevicePrimaryCtxRetain(0)");
  if (!status.ok()) return status;
  rig->retained_ = true;
  status = ToStatus(driver, driver.ctx_set_current(context), "cuCtxSetCurrent");
  if (!status.ok()) return status;
  for (int i = 0; i < threads; ++i) {
    abi::Stream stream = nullptr;
    status = ToStatus(driver, driver.stream_create(&stream, abi::kStreamNonBlocking), "cuStreamCreate(non-blocking)");
    if (!status.ok()) return status;
    rig->streams_.emplace_back(stream);
  }

  absl::StatusOr<std::unique_ptr<BenchAllocator>> created = CreateBenchAllocator(allocator, driver, {});
  if (!created.ok()) return created.status();
  rig->allocator_ = *std::move(created);
  return rig;
}

MicroRig::~MicroRig() {
  allocator_.reset();
  const Driver& driver = simulator_->driver();
  for (const StreamHandle stream : streams_) (void)driver.stream_destroy(static_cast<abi::Stream>(stream.raw()));
  if (retained_) (void)driver.primary_ctx_release(0);
}

}  // namespace expanse::bench
