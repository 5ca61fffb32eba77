// The scenario of tenants: pools with a limit and deterministic ones, pins, and pools that are retired.

#include <utility>

#include "gtest/gtest.h"
#include "tests/faults/scenario.h"

namespace expanse::faults {

void Scenario::CreatePool(char name, std::optional<Bytes> limit, bool deterministic) {
  Step("create a pool", absl::StatusCode::kOk, [&]() -> absl::Status {
    PoolOptions options;
    options.name = name;
    options.limit = limit;
    options.deterministic = deterministic;
    const absl::StatusOr<PoolId> pool = allocator_->CreatePool(options);
    if (pool.ok()) pools_[name] = *pool;
    return pool.status();
  });
}

void Scenario::TrimPool(char pool, Bytes target) {
  const auto it = pools_.find(pool);
  if (it == pools_.end()) return;  // it could not be had, in a broken context
  Step("trim a pool", absl::StatusCode::kOk, [&] { return allocator_->TrimPool(it->second, target).status(); });
}

void Scenario::RetirePool(char pool) {
  const auto it = pools_.find(pool);
  if (it == pools_.end()) return;
  const PoolId id = it->second;
  pools_.erase(it);
  Step("retire a pool", absl::StatusCode::kOk, [&] {
    const absl::Status status = allocator_->RetirePool(id);
    EXPECT_EQ(status, absl::OkStatus()) << "whatever the driver refuses";
    return status;
  });
}

void Scenario::Pin(char name, Bytes offset, Bytes length) {
  const auto it = live_.find(name);
  if (it == live_.end()) return;
  pinned_.push_back({it->second.begin + offset, length});
  Step("pin", absl::StatusCode::kOk, [&] { return allocator_->Pin(pinned_.back().begin, length); });
}

void Scenario::UnpinAll() {
  for (const AddressRange range : std::exchange(pinned_, {})) {
    Step("unpin", absl::StatusCode::kOk, [&] { return allocator_->Unpin(range.begin, range.size); });
  }
}

void Scenario::RunTenants() {
  CreatePool('p', MiB(24), /*deterministic=*/false);
  CreatePool('q', std::nullopt, /*deterministic=*/true);
  Allocate('a', MiB(10), 0, 'p');
  Allocate('b', MiB(12), 1, 'q');
  Allocate('c', MiB(9) + Bytes(512), 1, 'q');
  Allocate('d', MiB(20), 2);
  Pin('a', MiB(3), MiB(2));
  // What lies at a place that is wanted again is waited for.
  Work('b', 1, false);
  Work('b', 2, false);
  RecordUse('b', 2);
  Free('b');
  Allocate('e', MiB(11), 1, 'q');
  // At its limit a pool waits for its own work, and moves its own chunks.
  Allocate('f', MiB(12), 0, 'p');
  Work('f', 0, true);
  Free('f');
  Allocate('g', MiB(14), 1, 'p');
  AllocateInVain(MiB(8), 2, 'p');
  // Pinned memory stays when all else goes to others.
  Free('a');
  Work('e', 1, true);
  Free('e');
  TrimPool('q', MiB(12));
  Trim(MiB(30));
  Allocate('h', MiB(36), 0);
  UnpinAll();
  // Places whose memory is gone are filled again.
  Allocate('i', MiB(11), 1, 'q');
  // Pools that end, with live blocks and with work on them.
  RetirePool('p');
  Free('g');
  Work('i', 1, true);
  Work('c', 1, true);
  Free('i');
  RetirePool('q');
  Free('c', 2);
  Free('d');
  CreatePool('r', std::nullopt, /*deterministic=*/true);
  Allocate('j', MiB(50), 2, 'r');
  Work('j', 2, true);
  Free('j');
  RetirePool('r');
  Free('h');
  Allocate('k', MiB(90), 1);
  Free('k');
}

}  // namespace expanse::faults
