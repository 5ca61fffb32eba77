// Every driver call of a short scenario fails in turn.

#include <string>
#include <vector>

#include "tests/conformance/conformance_test.h"

namespace expanse {
namespace {

class FaultsConformance : public ConformanceTest {
 protected:
  void SetUp() override {
    ConformanceTest::SetUp();
    if (simulator() == nullptr) GTEST_SKIP() << "faults need the simulated driver";
    if (device_->has_contents()) GTEST_SKIP() << "faults are the same where only books are kept, and faster";
  }

  // Requests, uses on another stream, frees, and a shortage that makes the allocator give memory back. Whatever fails
  // must say so with a status and leave the books right; what could not be freed stays in `live_`.
  void RunScenario(StreamHandle other) {
    const AddressRange small = Try(KiB(100), StreamHandle());
    const AddressRange large = Try(MiB(70), StreamHandle());
    const AddressRange shared = Try(MiB(30), StreamHandle());
    if (!shared.size.is_zero() && allocator_->RecordUse(shared.begin, other).ok()) TryFree(shared, StreamHandle());
    TryFree(large, StreamHandle());
    const AddressRange far = Try(MiB(50), other);
    const AddressRange huge = Try(MiB(180), StreamHandle());  // not without memory that the others left
    TryFree(far, other);
    TryFree(huge, StreamHandle());
    TryFree(small, other);
  }

  AddressRange Try(Bytes size, StreamHandle stream) {
    auto address = allocator_->Allocate(size, stream);
    if (address.ok()) {
      live_[address->value()] = {*address, size};
    } else {
      EXPECT_FALSE(address.status().message().empty());
    }
    Check();
    return address.ok() ? AddressRange{*address, size} : AddressRange{};
  }

  // A block that could not be freed is still live.
  void TryFree(AddressRange block, StreamHandle stream) {
    if (live_.count(block.begin.value()) == 0) return;
    const absl::Status status = allocator_->Free(block.begin, stream);
    if (status.ok()) {
      live_.erase(block.begin.value());
    } else {
      EXPECT_FALSE(absl::IsInvalidArgument(status) && injected_ != abi::kInvalidValue) << status;
    }
    Check();
  }

  // Fails the n-th call after creation; returns whether the scenario came as far as that.
  bool RunWithFault(uint64_t n) {
    const StreamHandle other = device_->NewStream();
    device_->Synchronize();  // on `late`, what the round before gave back is away until then
    Create();
    const uint64_t before = simulator()->FailableCalls();
    simulator()->FailNthCallOfAny(n, injected_);
    RunScenario(other);
    const bool reached = simulator()->FailableCalls() - before >= n;
    simulator()->ClearFaults();
    Check();
    while (!live_.empty()) Free(live_.begin()->second, StreamHandle());
    device_->Synchronize();
    Free(Allocate(MiB(40)));
    allocator_.reset();
    ExpectNothingHeld();
    device_->DestroyStream(other);
    return reached;
  }

  // Apart from what the test itself has.
  void ExpectNothingHeld() {
    const sim::Ledger ledger = simulator()->ledger();
    EXPECT_EQ(ledger.physical_bytes, Bytes());
    EXPECT_EQ(ledger.reservations, 0);
    EXPECT_EQ(ledger.handles, 0);
    EXPECT_EQ(ledger.events, 0);
    EXPECT_EQ(ledger.contexts, 1);
  }

  abi::Result injected_ = abi::kUnknown;
};

TEST_P(FaultsConformance, EveryFailedCallIsReportedAndNothingIsLost) {
  for (abi::Result result : {abi::kOutOfMemory, abi::kInvalidValue, abi::kUnknown, abi::kIllegalAddress}) {
    injected_ = result;
    uint64_t n = 1;
    while (true) {
      SCOPED_TRACE("result " + std::to_string(result) + ", call " + std::to_string(n));
      ASSERT_LT(n, 5000);
      if (!RunWithFault(n) || HasFailure()) break;
      ++n;
    }
    EXPECT_GT(n, 5) << "the scenario made fewer calls than it must";
    if (HasFailure()) break;
  }
}

TEST_P(FaultsConformance, AFailedCreationLeavesNothing) {
  for (uint64_t n = 1;; ++n) {
    SCOPED_TRACE("call " + std::to_string(n));
    ASSERT_LT(n, 100);
    simulator()->FailNthCallOfAny(n, abi::kUnknown);
    auto allocator = bench::CreateBenchAllocator(allocator_name(), device_->driver(), Options());
    simulator()->ClearFaults();
    if (allocator.ok()) break;
    const std::string message(allocator.status().message());
    // Having no addresses is a shortage, whatever the driver calls it.
    EXPECT_TRUE(absl::IsInternal(allocator.status()) || absl::IsResourceExhausted(allocator.status())) << message;
    ExpectNothingHeld();
    ASSERT_FALSE(HasFailure());
    device_->Close();
    device_.reset();
    ConformanceTest::SetUp();
  }
}

EXPANSE_INSTANTIATE_CONFORMANCE(FaultsConformance);

}  // namespace
}  // namespace expanse
