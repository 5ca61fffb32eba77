// The fixture of the conformance suite: every allocator on every device.

#ifndef EXPANSE_TESTS_CONFORMANCE_CONFORMANCE_TEST_H_
#define EXPANSE_TESTS_CONFORMANCE_CONFORMANCE_TEST_H_

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/allocators/bench_allocator.h"
#include "gtest/gtest.h"
#include "tests/conformance/conformance_device.h"
#include "vmm/units.h"

namespace expanse {

// A test's parameter is (allocator, device). At the end of each test no hazard may have happened, and once the
// allocator and the device's own things are gone the driver must have everything back.
class ConformanceTest : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  void SetUp() override;
  void TearDown() override;

  // What the suite asks of all allocators unless a test says otherwise: a first block that leaves other streams room.
  [[nodiscard]] static bench::BenchAllocatorOptions Options();
  void Create(const bench::BenchAllocatorOptions& options = Options());

  [[nodiscard]] std::string allocator_name() const { return std::get<0>(GetParam()); }
  [[nodiscard]] std::string device_name() const { return std::get<1>(GetParam()); }
  [[nodiscard]] sim::Simulator* simulator() const { return device_->simulator(); }
  // Blocks begin at multiples of this. cuMemAlloc promises no more, the others cut blocks at multiples of 512.
  [[nodiscard]] uint64_t alignment() const { return allocator_name() == "naive" ? 256 : 512; }

  // A served request; its range is checked against those of all live blocks, and its alignment.
  AddressRange Allocate(Bytes size, StreamHandle stream = StreamHandle());
  void Free(AddressRange block, StreamHandle stream = StreamHandle());
  void ExpectOutOfMemory(Bytes size, StreamHandle stream = StreamHandle());
  void RecordUse(AddressRange block, StreamHandle stream);
  // Invariants, and what the figures must always satisfy.
  void Check();

  // Work that takes so long and writes the block; simulated devices only.
  void Work(StreamHandle stream, AddressRange block, std::chrono::milliseconds duration);

  std::unique_ptr<ConformanceDevice> device_;
  std::unique_ptr<bench::BenchAllocator> allocator_;
  std::map<uint64_t, AddressRange> live_;  // by address
};

// For INSTANTIATE_TEST_SUITE_P.
[[nodiscard]] std::vector<std::string> AllAllocators();
[[nodiscard]] std::string ConformanceName(const testing::TestParamInfo<std::tuple<std::string, std::string>>& info);

#define EXPANSE_INSTANTIATE_CONFORMANCE(Suite)                                                                         \
  INSTANTIATE_TEST_SUITE_P(                                                                                            \
      All, Suite, testing::Combine(testing::ValuesIn(AllAllocators()), testing::ValuesIn(ConformanceDevice::Names())), \
      ConformanceName)

}  // namespace expanse

#endif  // EXPANSE_TESTS_CONFORMANCE_CONFORMANCE_TEST_H_
