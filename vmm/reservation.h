// A range of device addresses that belongs to us and has no memory behind it until chunks are mapped there.

#ifndef EXPANSE_VMM_RESERVATION_H_
#define EXPANSE_VMM_RESERVATION_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vmm/driver.h"
#include "vmm/units.h"

namespace expanse {

// Owns one reservation. Movable; an empty one owns nothing. The driver table must outlive it. Externally synchronised.
class Reservation {
 public:
  Reservation() = default;
  // `size` is a multiple of `alignment`, which is a power of two and at least the granularity of the memory that will
  // be mapped. Costs no device memory. One driver call. RESOURCE_EXHAUSTED when no such range is left; an answer that
  // is not aligned is given back and INTERNAL.
  [[nodiscard]] static absl::StatusOr<Reservation> Reserve(const Driver& driver, Bytes size, Bytes alignment);
  // Tries `wanted`, then half of it, and so on, rounded up to `alignment`; never less than `at_least`, which is tried
  // last. RESOURCE_EXHAUSTED, listing what was tried, when the driver has no room for any of them; an error that says
  // something else than that ends the attempts at once.
  [[nodiscard]] static absl::StatusOr<Reservation> ReserveWithFallback(const Driver& driver, Bytes wanted,
                                                                       Bytes at_least, Bytes alignment);
  // Gives the range back, insisting once; ignores what the driver answers then: a range with live mappings stays
  // reserved.
  ~Reservation();
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&& other) noexcept;

  // Gives the range back: one driver call. On failure it is still owned. OK if nothing is owned.
  [[nodiscard]] absl::Status Free();
  // Gives up ownership without telling the driver, for a range that holds quarantined mappings: its addresses must
  // never be given to anyone else.
  void Abandon();

  [[nodiscard]] bool empty() const { return range_.size.is_zero(); }
  [[nodiscard]] AddressRange range() const { return range_; }

 private:
  Reservation(const Driver& driver, AddressRange range) : driver_(&driver), range_(range) {}

  const Driver* driver_ = nullptr;
  AddressRange range_;
};

}  // namespace expanse

#endif  // EXPANSE_VMM_RESERVATION_H_
