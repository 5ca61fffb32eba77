// Ledger and Counters: sums and texts.

#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vmm/sim/simulator.h"

namespace expanse::sim {

bool Ledger::Balanced() const {
  return (reservations | mappings | handles | allocations | classic_allocations | contexts | streams | events |
          descriptors) == 0 &&
         physical_bytes.is_zero() && address_bytes.is_zero();
}

std::string Ledger::ToString() const {
  if (Balanced()) return "nothing is alive";
  std::string text;
  for (const auto& [count, what] :
       {std::pair(reservations, "reservations"), std::pair(mappings, "mappings"),
        std::pair(handles, "handle references"), std::pair(allocations, "allocations"),
        std::pair(classic_allocations, "classic allocations"), std::pair(contexts, "context references"),
        std::pair(streams, "streams"), std::pair(events, "events"), std::pair(descriptors, "descriptors")}) {
    if (count != 0) absl::StrAppend(&text, text.empty() ? "" : ", ", count, " ", what);
  }
  return absl::StrCat(text, text.empty() ? "" : ", ", expanse::ToString(physical_bytes), " committed, ",
                      expanse::ToString(address_bytes), " of addresses");
}

uint64_t Counters::TotalCalls() const { return std::accumulate(calls.begin(), calls.end(), uint64_t{0}); }

VirtualTime Counters::TotalModelled() const { return std::accumulate(modelled.begin(), modelled.end(), VirtualTime()); }

}  // namespace expanse::sim
