#include "tests/faults/scenario.h"

#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace expanse::faults {
namespace {

using std::chrono::microseconds;

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

uint64_t WordAt(uint64_t seed, Bytes offset) { return (seed << 40) ^ (offset.count() * 0x9E37'79B9'7F4A'7C15); }

// Where words are written and checked: both ends, and both sides of every chunk boundary.
std::vector<Bytes> WordsOf(AddressRange range) {
  constexpr Bytes kWord(8);
  std::vector<Bytes> offsets{Bytes()};
  const DeviceAddress first(RoundUp(Bytes(range.begin.value() + 1), kChunk).count());
  for (DeviceAddress boundary = first; boundary < range.end(); boundary += kChunk) {
    if (boundary - range.begin >= kWord) offsets.push_back(boundary - range.begin - kWord);
    if (range.end() - boundary >= kWord) offsets.push_back(boundary - range.begin);
  }
  offsets.push_back(RoundDown(range.size, kWord) - kWord);
  return offsets;
}

absl::StatusCode CodeOf(abi::Result result) {
  switch (result) {
    case abi::kOutOfMemory:
      return absl::StatusCode::kResourceExhausted;
    case abi::kInvalidValue:
      return absl::StatusCode::kInvalidArgument;
    default:
      return absl::StatusCode::kInternal;
  }
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

// Whoever reads the message must see which call failed and how, or that memory ran out and why.
void Scenario::CheckFailure(const absl::Status& status) const {
  const EntryPoint failed = calls_[fault_.at - 1].entry_point;
  // An attribute that is an invalid value is one that the driver does not know.
  if (failed == EntryPoint::device_get_attribute && absl::IsUnimplemented(status)) return;
  const std::string message(status.message());
  EXPECT_TRUE(absl::StrContains(message, absl::StrCat("(", static_cast<int>(fault_.result), ")")) ||
              absl::StrContains(message, "out of memory: asked for"))
      << status;
  if (sticky_) return;
  const bool is_shortage = absl::IsResourceExhausted(status) &&
                           (fault_.result == abi::kOutOfMemory || failed == EntryPoint::mem_address_reserve ||
                            peer_ != nullptr);  // what a peer is refused it cannot give
  if (!is_shortage) {
    EXPECT_EQ(status.code(), CodeOf(fault_.result)) << status;
    EXPECT_TRUE(absl::StrContains(message, std::string(SymbolName(failed)))) << status;
  }
}

void Scenario::CheckState() {
  ASSERT_EQ(sim_->CheckInvariants(), absl::OkStatus());
  if (allocator_ == nullptr) return;
  ASSERT_EQ(allocator_->CheckInvariants(), absl::OkStatus());
  const Stats stats = allocator_->GetStats();
  Stats of_peer;
  if (peer_ != nullptr) {
    ASSERT_EQ(peer_->CheckInvariants(), absl::OkStatus());
    of_peer = peer_->GetStats();
  }
  EXPECT_EQ(stats.reserved.current + of_peer.reserved.current + left_by_create_.physical_bytes,
            sim_->committed(DeviceOrdinal(0)));
  const Bytes addresses = stats.address_space.current + of_peer.address_space.current + left_by_create_.address_bytes;
  if (fault_.sticky || fault_.persistent) {
    ASSERT_GE(sim_->ledger().address_bytes, addresses + kept_addresses_);
    kept_addresses_ = sim_->ledger().address_bytes - addresses;
  }
  EXPECT_EQ(addresses + kept_addresses_, sim_->ledger().address_bytes);
  for (const AddressRange& range : pinned_) EXPECT_TRUE(sim_->IsMapped(range)) << range;
  EXPECT_EQ(stats.live_blocks, live_.size());
  Bytes live;
  for (const auto& [name, block] : live_) {
    live += block.size;
    const AddressRange range{block.begin, block.size};
    EXPECT_TRUE(sim_->IsMapped(range)) << name;
    for (const AddressRange& lost : quarantined_) EXPECT_FALSE(range.Overlaps(lost)) << name;
    for (const auto& [other_name, other] : live_) {
      EXPECT_FALSE(name != other_name && range.Overlaps({other.begin, other.size})) << name << other_name;
    }
    CheckContents(block);
  }
  EXPECT_EQ(stats.live.current, live);
  // A chunk is lost only to a failed undo, or where giving it back is what failed.
  const bool may_lose = undo_hit_ || (hit_ && calls_[fault_.at - 1].entry_point == EntryPoint::mem_release);
  if (!fault_.persistent && !broke_) {
    EXPECT_LE(stats.chunks_quarantined, may_lose ? 1u : 0u);
  }
  if (undo_hit_) {
    const uint64_t lost = stats.chunks_quarantined + of_peer.chunks_quarantined + lost_by_peer_;
    EXPECT_LE(lost, 1u);
    // A chunk that was created only to see whether the device has that much is released by whoever insists.
    EXPECT_TRUE(lost == 1 || settings_.steps == Steps::kLadder);
  }
}

void Scenario::Write(const Block& block) const {
  if (settings_.memory != sim::MemoryMode::kReal) return;
  for (const Bytes offset : WordsOf({block.begin, block.size})) {
    const uint64_t word = WordAt(block.seed, offset);
    std::memcpy((block.begin + offset).ptr(), &word, sizeof(word));
  }
}

void Scenario::CheckContents(const Block& block) const {
  if (settings_.memory != sim::MemoryMode::kReal) return;
  for (const Bytes offset : WordsOf({block.begin, block.size})) {
    uint64_t word = 0;
    std::memcpy(&word, (block.begin + offset).ptr(), sizeof(word));
    ASSERT_EQ(word, WordAt(block.seed, offset)) << "at " << ToString(offset) << " of " << ToString(block.begin);
  }
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
    if (allocator.ok()) allocator_ = *std::move(allocator);
    // What was begun is undone at once, unless the driver goes on refusing.
    if (!allocator.ok()) left_by_create_ = sim_->ledger();
    if (!sticky_ && !fault_.persistent) {
      EXPECT_TRUE(left_by_create_.physical_bytes.is_zero() && left_by_create_.address_bytes.is_zero())
          << left_by_create_.ToString();
      EXPECT_LE(left_by_create_.contexts, 1u) << "the test's own";
    }
    return allocator.status();
  });
}

std::optional<PoolId> Scenario::Find(std::optional<char> pool) const {
  if (!pool) return PoolId();
  const auto it = pools_.find(*pool);
  if (it == pools_.end()) return std::nullopt;
  return it->second;
}

void Scenario::Allocate(char name, Bytes size, int stream, std::optional<char> pool) {
  const std::optional<PoolId> from = Find(pool);
  if (!from) return;
  Step("allocate", absl::StatusCode::kOk, [&]() -> absl::Status {
    const absl::StatusOr<DeviceAddress> address = allocator_->Allocate(size, StreamHandle(streams_[stream]), *from);
    if (!address.ok()) return address.status();
    const Block block{*address, size, ++seed_};
    live_[name] = block;
    Write(block);
    return absl::OkStatus();
  });
}

void Scenario::AllocateInVain(Bytes size, int stream, std::optional<char> pool) {
  const std::optional<PoolId> from = Find(pool);
  if (!from) return;
  Step("allocate more than there is", absl::StatusCode::kResourceExhausted,
       [&] { return allocator_->Allocate(size, StreamHandle(streams_[stream]), *from).status(); });
}

void Scenario::Free(char name, std::optional<int> stream) {
  const auto it = live_.find(name);
  if (it == live_.end()) return;  // it could not be had, in a broken context
  const Block block = it->second;
  live_.erase(it);
  Step("free", absl::StatusCode::kOk, [&] {
    const absl::Status status =
        stream ? allocator_->Free(block.begin, StreamHandle(streams_[*stream])) : allocator_->Free(block.begin);
    EXPECT_EQ(status, absl::OkStatus()) << "whatever the driver refuses";
    return status;
  });
}

void Scenario::RecordUse(char name, int stream) {
  const auto it = live_.find(name);
  if (it == live_.end()) return;
  Step("record use", absl::StatusCode::kOk,
       [&] { return allocator_->RecordUse(it->second.begin, StreamHandle(streams_[stream])); });
}

void Scenario::Trim(Bytes target) {
  Step("trim", absl::StatusCode::kOk, [&] { return allocator_->Trim(target).status(); });
}

void Scenario::DestroyStream(int stream) {
  Step("destroy a stream", absl::StatusCode::kOk,
       [&] { return allocator_->OnStreamDestroyed(StreamHandle(streams_[stream])); });
  if (sim_->driver().stream_destroy(streams_[stream]) == abi::kSuccess) streams_[stream] = nullptr;
}

void Scenario::Work(char name, int stream, bool writes) {
  const auto it = live_.find(name);
  if (it == live_.end() || sticky_) return;
  const sim::Access access{{it->second.begin, it->second.size}, writes};
  EXPECT_EQ(sim_->Launch(StreamHandle(streams_[stream]), microseconds(100), {access}), abi::kSuccess);
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

void Scenario::RunGrowth() {
  // Cold growth, in both size classes.
  Allocate('a', MiB(12), 0);
  Allocate('b', KiB(700), 0);
  Allocate('c', MiB(20), 1);
  Allocate('d', MiB(9) + Bytes(512), 1);
  Allocate('e', MiB(10), 2);
  Allocate('f', MiB(16), 0);
  Allocate('g', MiB(6), 1);
  Work('a', 0, false);
  Work('a', 1, false);
  Work('c', 1, false);
  Work('c', 2, false);
  Work('e', 2, true);
  Work('f', 0, true);
  // Frees that other streams hold up.
  RecordUse('c', 2);
  Free('c');
  Free('a', 1);
  // At the limit: what is pending must be waited for and moved out of two streams' segments.
  Allocate('h', MiB(30), 2);
  Work('h', 2, true);
  // Frees on the block's own stream, whose work is not complete; the next request is larger than what they leave there.
  Work('d', 1, true);
  Free('d');
  Free('f');
  Allocate('i', MiB(34), 0);
  Work('i', 0, true);
  Work('g', 1, true);
  // The memory of a stream that goes away serves others.
  Free('h', 1);
  DestroyStream(1);
  Trim(MiB(60));
  Free('g');
  Allocate('j', MiB(40), 2);
  AllocateInVain(MiB(90), 0);
  Work('j', 2, true);
  Free('j');
  AllocateInVain(MiB(51), 0);  // which is known only after waiting
  Free('i');
  Trim(MiB(30));
  Trim(Bytes());
  // Growth after a trim.
  Allocate('k', MiB(44), 0);
  Work('k', 0, true);
  Free('k', 2);
  Free('e');
  Allocate('l', MiB(70), 2);
  Free('b');
  Free('l');
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
