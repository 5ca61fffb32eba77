// Deterministic pools: the same requests get the same addresses, whatever else happens.

#include <chrono>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/allocator_fixture.h"

namespace expanse {
namespace {

using std::chrono::microseconds;
using ::testing::HasSubstr;

// One request of a program.
struct Request {
  bool allocate = false;
  Bytes size;                // to allocate
  size_t stream = 0;         // to allocate for
  size_t victim = 0;         // to free: the position among the live blocks
  std::optional<size_t> by;  // the stream that used it last, if not its own
};

// Ends with nothing live.
std::vector<Request> RandomProgram(uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Request> program;
  size_t live = 0;
  for (int i = 0; i < 120 || live > 0; ++i) {
    Request request;
    request.allocate = live == 0 || (i < 120 && live < 7 && random() % 5 < 3);
    if (request.allocate) {
      request.size = random() % 2 == 0 ? Bytes(1 + random() % KiB(200).count()) : Bytes(1 + random() % MiB(4).count());
      request.stream = random() % 3;
      ++live;
    } else {
      request.victim = random() % live--;
      if (random() % 3 == 0) request.by = random() % 3;
    }
    program.push_back(request);
  }
  return program;
}

class AllocatorDeterministic : public AllocatorTest {
 protected:
  void StartWith(Growth growth, std::optional<Bytes> limit) {
    AllocatorOptions options;
    options.growth = growth;
    options.limit = limit;
    Start(SmallDevice(), options);
    for (int i = 0; i < 3; ++i) NewStream();
  }
  PoolId NewPool(std::optional<Bytes> limit = std::nullopt) {
    PoolOptions options;
    options.name = "steps";
    options.deterministic = true;
    options.limit = limit;
    const absl::StatusOr<PoolId> pool = allocator_->CreatePool(options);
    EXPECT_TRUE(pool.ok()) << pool.status();
    Check();
    return pool.value_or(PoolId());
  }
  DeviceAddress BaseOf(PoolId pool) { return allocator_->GetPoolStats(pool)->addresses.begin; }
  DeviceAddress AllocIn(PoolId pool, Bytes size, StreamHandle stream = StreamHandle()) {
    const absl::StatusOr<DeviceAddress> address = allocator_->Allocate(size, stream, pool);
    EXPECT_TRUE(address.ok()) << address.status();
    Check();
    return address.value_or(DeviceAddress());
  }
  // Runs the program in the pool while `disturb` is called between its requests; work of random duration is queued on
  // every block. Returns where blocks were placed, relative to the base.
  template <typename Disturb>
  std::vector<Bytes> Run(const std::vector<Request>& program, PoolId pool, uint32_t seed, Disturb disturb) {
    std::mt19937 random(seed);
    struct Live {
      AddressRange range;
      size_t stream;
    };
    std::vector<Live> live;
    std::vector<Bytes> places;
    for (const Request& request : program) {
      if (HasFailure()) break;
      disturb(random);
      const microseconds duration(random() % 400);
      if (request.allocate) {
        const DeviceAddress address = AllocIn(pool, request.size, streams_[request.stream]);
        places.push_back(address - BaseOf(pool));
        live.push_back(Live{{address, request.size}, request.stream});
        EXPECT_TRUE(sim_->IsMapped(live.back().range));
        Launch(streams_[request.stream], duration, address, request.size);
        continue;
      }
      const Live victim = live[request.victim];
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(request.victim));
      if (request.by && *request.by != victim.stream) {
        OrderAfter(streams_[*request.by], streams_[victim.stream]);
        Launch(streams_[*request.by], duration, victim.range.begin, victim.range.size);
        Free(victim.range.begin, streams_[*request.by]);
      } else {
        Free(victim.range.begin);
      }
    }
    return places;
  }
};

// What others do to an allocator: requests in the default pool that leave little memory, trims, and time that passes.
class Traffic {
 public:
  Traffic(Allocator& allocator, sim::Simulator& simulator, StreamHandle stream, Bytes most)
      : allocator_(allocator), simulator_(simulator), stream_(stream), most_(most) {}
  void operator()(std::mt19937& random) {
    const uint32_t choice = random() % 40;
    if (choice == 0) {
      ASSERT_TRUE(allocator_.Trim(Bytes(random() % MiB(48).count())).ok());
    } else if (choice < 4) {
      simulator_.Advance(microseconds(random() % 1500));
    } else if (choice < 24) {
      Allocate(Bytes(1 + random() % MiB(9).count()));
    } else if (!blocks_.empty()) {
      held_ -= blocks_.front().size;
      ASSERT_EQ(allocator_.Free(blocks_.front().begin), absl::OkStatus());
      blocks_.erase(blocks_.begin());
    }
  }

 private:
  void Allocate(Bytes size) {
    if (held_ + size > most_) return;
    const absl::StatusOr<DeviceAddress> address = allocator_.Allocate(size, stream_);
    if (!address.ok()) return;
    blocks_.push_back({*address, size});
    held_ += size;
  }

  Allocator& allocator_;
  sim::Simulator& simulator_;
  const StreamHandle stream_;
  const Bytes most_;
  Bytes held_;
  std::vector<AddressRange> blocks_;
};

class DeterministicPrograms : public AllocatorDeterministic,
                              public ::testing::WithParamInterface<std::tuple<uint32_t, Growth>> {
 protected:
  [[nodiscard]] uint32_t seed() const { return std::get<0>(GetParam()); }
  [[nodiscard]] Growth growth() const { return std::get<1>(GetParam()); }
};

TEST_P(DeterministicPrograms, GetTheSameAddressesWhateverElseHappens) {
  const std::vector<Request> program = RandomProgram(seed());
  StartWith(growth(), std::nullopt);
  PoolId pool = NewPool();
  const std::vector<Bytes> alone = Run(program, pool, 1, [](std::mt19937&) {});
  EXPECT_GT(alone.size(), 40u);
  EXPECT_EQ(Run(program, pool, 2, [](std::mt19937&) {}), alone) << "the next step, with other durations";

  const Bytes needed = stats().reserved.peak;
  TearDown();
  streams_.clear();
  sim_.reset();
  // Little memory, which others want too: chunks of the pool are moved to them and back.
  StartWith(growth(), needed + MiB(12));
  Traffic traffic(*allocator_, *sim_, NewStream(), MiB(10));
  pool = NewPool();
  for (uint32_t step = 0; step < 6; ++step) {
    ASSERT_EQ(Run(program, pool, 10 + step, std::ref(traffic)), alone) << "step " << step;
  }
  EXPECT_GT(stats().chunks_moved, 4u);
  // And in a new pool.
  ASSERT_EQ(allocator_->RetirePool(pool), absl::OkStatus());
  Check();
  const PoolId next = NewPool();
  EXPECT_EQ(Run(program, next, 30, std::ref(traffic)), alone) << "in a new pool";
}

INSTANTIATE_TEST_SUITE_P(Seeds, DeterministicPrograms,
                         ::testing::Combine(::testing::Range(0u, 6u),
                                            ::testing::Values(Growth::kLazy, Growth::kFrugal)));

TEST_F(AllocatorDeterministic, BlocksOfAllSizesLieFromTheBaseOn) {
  Start();
  const PoolId pool = NewPool();
  EXPECT_EQ(AllocIn(pool, Bytes(1)), BaseOf(pool));
  EXPECT_EQ(AllocIn(pool, MiB(5)), BaseOf(pool) + Bytes(512));
  EXPECT_EQ(allocator_->GetPoolStats(pool)->addresses.size, MiB(512));
  EXPECT_EQ(stats().address_space.current, MiB(1024));
}

TEST_F(AllocatorDeterministic, APlaceWhoseMemoryWasTrimmedIsFilledAgain) {
  Start();
  const PoolId pool = NewPool();
  const DeviceAddress a = AllocIn(pool, MiB(8));
  const DeviceAddress b = AllocIn(pool, MiB(8));
  Free(a);
  ASSERT_TRUE(allocator_->TrimPool(pool, MiB(8)).ok());
  EXPECT_FALSE(sim_->IsMapped({a, MiB(8)}));
  EXPECT_EQ(AllocIn(pool, MiB(8)), a) << "though there is a mapped place nowhere, and room behind b";
  Free(b);
}

TEST_F(AllocatorDeterministic, WhatAnotherStreamStillUsesIsWaitedForAtItsPlace) {
  Start();
  const PoolId pool = NewPool();
  const StreamHandle own = NewStream();
  const StreamHandle other = NewStream();
  const DeviceAddress a = AllocIn(pool, MiB(8), own);
  AllocIn(pool, MiB(8), own);
  RecordUse(a, other);
  Launch(other, microseconds(300), a, MiB(8));
  Free(a);
  const sim::VirtualTime before = sim_->now();
  EXPECT_EQ(AllocIn(pool, MiB(3), own), a);
  EXPECT_EQ(sim_->now() - before, microseconds(300));
  EXPECT_EQ(AllocIn(pool, MiB(5), own), a + MiB(3));
  EXPECT_EQ(sim_->now() - before, microseconds(300)) << "once is enough";
}

TEST_F(AllocatorDeterministic, AWaitThatTheDriverRefusesFailsTheRequestAndChangesNothing) {
  Start();
  const PoolId pool = NewPool();
  const StreamHandle other = NewStream();
  const DeviceAddress a = AllocIn(pool, MiB(8));
  RecordUse(a, other);
  Launch(other, microseconds(300), a, MiB(8));
  Free(a);
  sim_->FailNthCall(EntryPoint::event_synchronize, 1, abi::kUnknown);
  const absl::Status failed = allocator_->Allocate(MiB(8), StreamHandle(), pool).status();
  EXPECT_THAT(std::string(failed.message()), HasSubstr("cuEventSynchronize"));
  Check();
  EXPECT_EQ(AllocIn(pool, MiB(8)), a);
}

TEST_F(AllocatorDeterministic, RequestsThatFailLeaveNoTrace) {
  Start();
  const PoolId pool = NewPool(MiB(16));
  const DeviceAddress a = AllocIn(pool, MiB(8));
  const absl::Status full = allocator_->Allocate(MiB(12), StreamHandle(), pool).status();
  EXPECT_THAT(std::string(full.message()), HasSubstr("would help: a higher limit of pool 1 (steps)"));
  Check();
  EXPECT_EQ(AllocIn(pool, MiB(8)), a + MiB(8));
}

TEST_F(AllocatorDeterministic, StreamsBeyondItsAddressesAreRefusedClearly) {
  Start();
  const PoolId pool = NewPool();
  absl::Status refused;
  int streams = 0;
  while (refused.ok() && streams < 1000) {
    const absl::StatusOr<DeviceAddress> address = allocator_->Allocate(KiB(1), NewStream(), pool);
    refused = address.status();
    if (address.ok()) Free(*address);
    ++streams;
  }
  EXPECT_GT(streams, 20);
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("pool 1 (steps) is deterministic and has used up its addresses"));
  Check();
}

TEST_F(AllocatorDeterministic, ItsAddressesAreGivenBackWhenItIsRetired) {
  Start();
  const Bytes before = stats().address_space.current;
  for (int i = 0; i < 5; ++i) {
    const PoolId pool = NewPool();
    const DeviceAddress a = AllocIn(pool, MiB(8), NewStream());
    const DeviceAddress b = AllocIn(pool, MiB(8));
    Free(a);
    ASSERT_EQ(allocator_->RetirePool(pool), absl::OkStatus());
    Check();
    EXPECT_EQ(stats().address_space.current, before * 2) << "a block is live";
    Free(b);
    EXPECT_EQ(stats().address_space.current, before);
  }
}

TEST_F(AllocatorDeterministic, APoolForWhichNoAddressesAreLeftIsNotMade) {
  Start();
  sim_->FailNthCall(EntryPoint::mem_address_reserve, 1, abi::kUnknown);
  PoolOptions options;
  options.deterministic = true;
  EXPECT_FALSE(allocator_->CreatePool(options).ok());
  Check();
  EXPECT_TRUE(absl::IsFailedPrecondition(allocator_->GetPoolStats(PoolId(1)).status()));
  AllocIn(NewPool(), MiB(1));
}

}  // namespace
}  // namespace expanse
