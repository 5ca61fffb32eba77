// The allocator with any options, given any sequence of calls: none fails but for lack of memory, contents stay, no
// hazard occurs, invariants hold, and in the end everything is given back.

#include <memory>

#include "absl/status/status.h"
#include "tests/fuzz/fuzz_support.h"
#include "tests/stress/choices.h"
#include "tests/stress/random_operations.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace fuzz = expanse::fuzz;
  namespace stress = expanse::stress;
  stress::ByteChoices choices(data, size);
  stress::RandomShape shape = stress::RandomShape::Draw(choices);
  shape.background = false;  // the same input does the same each time
  const stress::ShapeBudgets budgets(shape);
  auto device = shape.OpenDevice();
  fuzz::Require(device.ok(), device.status().message());
  auto allocator = expanse::Allocator::Create((*device)->driver(), shape.OptionsOn(**device));
  fuzz::Require(allocator.ok(), allocator.status().message());
  absl::Status status;
  {
    stress::RandomOperations program(**device, **allocator, shape, choices);
    status = program.Run(size);
    if (status.ok()) status = program.End();
  }
  fuzz::Require(status.ok(), status.message());
  allocator->reset();
  status = (*device)->Close();
  fuzz::Require(status.ok(), status.message());
  return 0;
}
