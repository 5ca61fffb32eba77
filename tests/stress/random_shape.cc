#include "tests/stress/random_shape.h"

#include <chrono>

#include "vmm/sim/simulator.h"

namespace expanse::stress {
namespace {

void DrawSmall(Choices& choices, RandomShape& shape) {
  shape.slot = choices.Below(4) == 0 ? MiB(2) : KiB(256);
  shape.total = shape.memory = shape.slot * (48 + choices.Below(80));
  shape.options.chunk_size = shape.slot;
}

void DrawHuge(Choices& choices, RandomShape& shape) {
  shape.slot = MiB(2);
  shape.total = GiB(32) * (1 << choices.Below(3));
  shape.memory = shape.slot * (300 + choices.Below(400));
  shape.checked_every = 256;
}

}  // namespace

RandomShape RandomShape::Draw(Choices& choices) {
  RandomShape shape;
  if (choices.Below(2) == 0) {
    DrawSmall(choices, shape);
  } else {
    DrawHuge(choices, shape);
  }
  constexpr Growth kGrowths[] = {Growth::kBalanced, Growth::kBalanced, Growth::kLazy, Growth::kFrugal};
  shape.options.growth = kGrowths[choices.Below(4)];
  switch (choices.Below(8)) {
    case 0:
      shape.options.limit = shape.memory * 3 / 4;
      break;
    case 1:
      shape.options.limit_fraction = 0.75;
      break;
    default:
      break;
  }
  if (choices.Below(4) == 0) shape.options.record_events = 500;
  shape.options.address_space_multiple = 1 << choices.Below(4);
  shape.streams = 1 + choices.Below(8);
  shape.per_thread_stream = choices.Below(2) == 0;
  shape.frees_when_asked = choices.Below(4) == 0;
  shape.vetoes = choices.Below(2) == 0;
  shape.neighbour = choices.Below(2) == 0;
  shape.device_gives_back_late = choices.Below(4) == 0;
  if (choices.Below(3) == 0) shape.options.trim_after = std::chrono::microseconds(1 + choices.Below(20'000));
  if (choices.Below(4) == 0) shape.addresses = shape.total * (1 + choices.Below(4));
  if (choices.Below(4) == 0) shape.handles = shape.memory / shape.slot * (2 + choices.Below(4)) / 4;
  shape.background = choices.Below(2) == 0;
  return shape;
}

ShapeBudgets::ShapeBudgets(const RandomShape& shape) : before_(GetProcessBudgets()) {
  if (shape.addresses) (void)SetProcessAddressBudget(before_.addresses_taken + *shape.addresses);
  if (shape.handles) (void)SetProcessHandleBudget(before_.handles_taken + *shape.handles);
}

ShapeBudgets::~ShapeBudgets() {
  (void)SetProcessAddressBudget(before_.addresses_limit);
  (void)SetProcessHandleBudget(before_.handles_limit);
}

AllocatorOptions RandomShape::OptionsOn(StressDevice& device) const {
  AllocatorOptions on_device = options;
  on_device.clock = [&device] { return device.simulator().now(); };
  return on_device;
}

absl::StatusOr<std::unique_ptr<StressDevice>> RandomShape::OpenDevice() const {
  sim::Config config;
  config.devices[0].total_memory = total;
  config.devices[0].granularity = slot;
  config.poison = false;  // blocks are filled here, and filling whole chunks takes most of the time
  config.quirks.release_lag = device_gives_back_late;
  absl::StatusOr<std::unique_ptr<StressDevice>> device = StressDevice::Open(config);
  if (device.ok()) (*device)->simulator().SetTakenByOthers(DeviceOrdinal(), total - memory);
  return device;
}

}  // namespace expanse::stress
