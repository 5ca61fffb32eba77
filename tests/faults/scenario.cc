#include "tests/faults/scenario.h"

#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace expanse::faults {
namespace {

constexpr Bytes kChunk = MiB(2);
// Of 64 chunks that the device has the allocator may hold 48, a tight fit for the steps below.
constexpr Bytes kDeviceMemory = MiB(128);
constexpr Bytes kLimit = MiB(96);

sim::Config MakeConfig(const Settings& settings) {
  sim::Config config;
  config.devices[0].total_memory = kDeviceMemory;
  config.memory = settings.memory;
  config.quirks = settings.quirks;
  config.costs = sim::CostModel::Free();
  config.poison = false;  // contents of live blocks are what is checked, and filling takes most of the time
  return config;
}

}  // namespace

Scenario::Scenario(const Settings& settings, const Fault& fault) : settings_(settings), fault_(fault) {
  auto simulator = sim::Simulator::Create(MakeConfig(settings));
  EXPECT_TRUE(simulator.ok()) << simulator.status();
  sim_ = *std::move(simulator);
  const Driver& driver = sim_->driver();
  EXPECT_EQ(driver.init(0), abi::kSuccess);
  EXPECT_EQ(driver.primary_ctx_retain(&context_, 0), abi::kSuccess);
  EXPECT_EQ(driver.ctx_set_current(context_), abi::kSuccess);
  for (abi::Stream& stream : streams_) {
    EXPECT_EQ(driver.stream_create(&stream, abi::kStreamNonBlocking), abi::kSuccess);
  }
  hooked_ = std::make_unique<HookedDriver>(driver, [this](const DriverCall& call) { OnCall(call); });
}

Scenario::~Scenario() {
  peer_.reset();
  allocator_.reset();
  hooked_.reset();
}

void Scenario::OnCall(const DriverCall& call) {
  if (!counting_) return;
  calls_.push_back(call);
  if (!armed_ || fault_.at == 0) return;
  const uint64_t number = calls_.size();
  const bool again = fault_.persistent && hit_ && call.entry_point == calls_[fault_.at - 1].entry_point;
  if (number == fault_.at || again) {
    hit_ = true;
    undo_armed_ = fault_.undo_too && !destroying_;
    if (fault_.sticky) {
      sticky_ = broke_ = true;
      sim_->MakeSticky(fault_.result);
    } else {
      sim_->FailNthCall(call.entry_point, 1, fault_.result);
    }
    return;
  }
  const bool undo = call.entry_point == EntryPoint::mem_unmap || call.entry_point == EntryPoint::mem_release;
  if (undo_armed_ && undo) {
    undo_armed_ = false;
    // Opening the device has no place to keep what is lost, so it undoes everything or tries again.
    if (allocator_ != nullptr) {
      undo_hit_ = true;
      if (call.entry_point == EntryPoint::mem_unmap) quarantined_.push_back(call.range);
    }
    sim_->FailNthCall(call.entry_point, 1, fault_.result);
  }
}

void Scenario::EndFault() {
  armed_ = undo_armed_ = false;
  sim_->ClearFaults();
}

void Scenario::Step(const char* what, absl::StatusCode expected, const std::function<absl::Status()>& step) {
  if (::testing::Test::HasFailure()) return;
  SCOPED_TRACE(absl::StrCat("step ", step_, ": ", what));
  if (before_step) before_step(step_);
  ++step_;
  const bool hit_before = hit_;
  absl::Status status = step();
  CheckState();
  if (relieve && status.code() != expected) {
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    relieve();
    status = step();
    CheckState();
  } else if (hit_ && (!hit_before || sticky_)) {
    if (status.code() != expected) CheckFailure(status);
    EndFault();
    if (sticky_) return;
    if (status.code() != expected) {
      status = step();
      CheckState();
    }
  }
  // Memory that the driver refuses to take back again and again is lost, and may be missing now.
  if (fault_.persistent && absl::IsResourceExhausted(status) && allocator_->GetStats().chunks_quarantined > 1) return;
  // Those who climb the ladder need all that the limit gives, so that one lost chunk is missing.
  if (undo_hit_ && settings_.steps == Steps::kLadder && absl::IsResourceExhausted(status)) return;
  EXPECT_EQ(status.code(), expected) << status;
}

void Scenario::Create() {
  AllocatorOptions options;
  options.limit = kLimit;
  options.growth = settings_.growth;
  if (settings_.steps == Steps::kGiveBack) {
    options.trim_after = std::chrono::seconds(8);
    options.clock = [this] { return clock_; };
  }
  Step("create", absl::StatusCode::kOk, [&] {
    auto allocator = Allocator::Create(hooked_->driver(), options);
    const absl::Status status = allocator.status();
    if (status.ok()) allocator_ = *std::move(allocator);
    // What was begun is undone at once, unless the driver goes on refusing.
    if (!status.ok()) left_by_create_ = sim_->ledger();
    if (!sticky_ && !fault_.persistent) {
      EXPECT_TRUE(left_by_create_.physical_bytes.is_zero() && left_by_create_.address_bytes.is_zero())
          << left_by_create_.ToString();
      EXPECT_LE(left_by_create_.contexts, 1u) << "the test's own";
    }
    return status;
  });
}

std::optional<PoolId> Scenario::Find(std::optional<char> pool) const {
  if (!pool) return PoolId();
  const auto it = pools_.find(*pool);
  if (it == pools_.end()) return std::nullopt;
  return it->second;
}

void Scenario::Run() {
  Create();
  if (allocator_ == nullptr) return;  // the context broke meanwhile; nothing more can be said
  switch (settings_.steps) {
    case Steps::kGrowth:
      RunGrowth();
      break;
    case Steps::kTenants:
      RunTenants();
      break;
    case Steps::kGiveBack:
      RunGiveBack();
      break;
    case Steps::kLadder:
      RunLadder();
      break;
  }
  Finish();
}

void Scenario::Mend() {
  if (!sticky_) return;
  sticky_ = false;
  sim_->ResetStickyError();
}

void Scenario::Finish() {
  if (::testing::Test::HasFailure()) return;
  Mend();
  DestroyPeer();
  EXPECT_EQ(sim_->driver().ctx_synchronize(), abi::kSuccess);
  // Memory of a destroyed stream whose last event could not be recorded is known complete only after a wait for the
  // whole context. Trimming never waits, but a request for all that is not lost does.
  const Bytes lost = kChunk * allocator_->GetStats().chunks_quarantined;
  if (broke_ && lost < kLimit) {
    Allocate('n', kLimit - lost, 0);
    Free('n');
  }
  Trim(Bytes());
  if (sticky_) {
    Mend();
    Trim(Bytes());
  }
  const Stats stats = allocator_->GetStats();
  EXPECT_EQ(stats.reserved.current, kChunk * stats.chunks_quarantined) << "all that is not lost is given back";
  EXPECT_EQ(stats.pending.current, Bytes());

  // Something for the destructor to wait for, unmap and release.
  if (!broke_) Allocate('m', MiB(8), 0);
  Mend();
  Work('m', 0, true);
  last_stats_ = allocator_->GetStats();
  last_stats_.chunks_quarantined += lost_by_peer_;
  const bool hit_before = hit_;
  destroying_ = true;
  allocator_.reset();
  EndFault();
  const bool hit_in_destructor = hit_ && !hit_before;
  // Whatever was refused, no work lost its memory. A sticky error has ended the work, though the simulated clock still
  // has it in its queue.
  if (!fault_.sticky) {
    for (const sim::Hazard& hazard : sim_->hazards()) ADD_FAILURE() << hazard.description;
  }
  // What is refused twice stays with the driver.
  if (hit_in_destructor && (fault_.sticky || fault_.persistent)) return;
  Mend();
  for (abi::Stream stream : streams_) {
    if (stream != nullptr) {
      EXPECT_EQ(sim_->driver().stream_destroy(stream), abi::kSuccess);
    }
  }
  EXPECT_EQ(sim_->driver().primary_ctx_release(0), abi::kSuccess);
  // What the destructor is refused once it asks for once more, so that no single fault leaves anything behind.
  const sim::Ledger ledger = sim_->ledger();
  EXPECT_EQ(ledger.physical_bytes, left_by_create_.physical_bytes) << ledger.ToString();
  EXPECT_EQ(ledger.address_bytes, left_by_create_.address_bytes + kept_addresses_) << ledger.ToString();
  if (left_by_create_.physical_bytes.is_zero() && ledger.address_bytes.is_zero()) {
    EXPECT_TRUE(ledger.Balanced()) << ledger.ToString();
  }
  EXPECT_EQ(sim_->CheckInvariants(), absl::OkStatus());
}

}  // namespace expanse::faults
