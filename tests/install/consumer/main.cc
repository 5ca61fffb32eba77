// The smallest program that uses the library: one allocation on whatever driver libcuda.so.1 is.

#include <expanse/core/allocator.h>

#include <cstdio>

int main() {
  auto driver = expanse::LoadCudaDriver();
  if (!driver.ok()) {
    std::fprintf(stderr, "%s\n", driver.status().ToString().c_str());
    return 1;
  }
  auto allocator = expanse::Allocator::Create(*driver, {});
  if (!allocator.ok()) {
    std::fprintf(stderr, "%s\n", allocator.status().ToString().c_str());
    return 1;
  }
  const expanse::StreamHandle stream;
  auto block = (*allocator)->Allocate(expanse::MiB(64), stream);
  if (!block.ok() || (*allocator)->GetStats().live.current != expanse::MiB(64)) return 1;
  return (*allocator)->Free(*block).ok() ? 0 : 1;
}
