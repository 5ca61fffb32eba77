// What each step of a scenario must leave behind, whatever failed: books, contents and errors.

#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/faults/scenario.h"

namespace expanse::faults {
namespace {

constexpr Bytes kChunk = MiB(2);

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

}  // namespace expanse::faults
