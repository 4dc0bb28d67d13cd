"""The approved part of a future reservation whose owner has requested a change.

While Google reviews the change, the future reservation has the requested time window and machines. The approved ones,
which also return if the change is declined, are in the last known good state. Source: google-cloud-compute 1.56
(FutureReservationStatus: amendmentStatus, lastKnownGoodState, procurementStatus).
"""

from __future__ import annotations

from typing import Any


def granted(found: Any) -> Any:
    """The part of a future reservation that has the approved time_window and specific_sku_properties."""
    status = found.status
    before = status.last_known_good_state.future_reservation_specs
    in_review = (status.amendment_status, status.procurement_status)
    asked = "AMENDMENT_IN_REVIEW" in in_review or "PENDING_AMENDMENT_APPROVAL" in in_review
    return before if asked and before.time_window.start_time else found
