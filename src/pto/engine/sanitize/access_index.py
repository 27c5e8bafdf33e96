"""An index of earlier accesses to a buffer, by the bytes that they touch.

The index has levels, with larger buckets on each next level. An access lies in one bucket: on the first level
whose buckets are as large as the access, in the bucket of its first byte. A search looks on each level into
the buckets of its bytes and the bucket before them. The cost of a small search is independent of the number
of accesses; a large search costs as much as it finds.
"""

from __future__ import annotations

from .race_access import Touch

#: The size of a bucket of the first level, and the factor from one level to the next, as shifts.
_FIRST, _TIMES = 6, 4


class AccessIndex:
    """The accesses to one buffer, by address. `latest` are the accesses of the last event; their bounds may
    still grow.
    """

    __slots__ = ("_count", "_levels", "latest")

    def __init__(self) -> None:
        self._levels: dict[int, dict[int, list[Touch]]] = {}  # by the shift of a level
        self._count = 0
        self.latest: list[Touch] = []

    def __len__(self) -> int:
        return sum(len(bucket) for buckets in self._levels.values() for bucket in buckets.values())

    def meeting(self, low: int, high: int) -> list[Touch]:
        """Return the accesses whose bounds overlap a range of bytes, the latest first."""
        found: list[Touch] = []
        for shift, buckets in self._levels.items():
            first, last = (low >> shift) - 1, (high - 1) >> shift
            if last - first < len(buckets):
                near = [buckets[n] for n in range(first, last + 1) if n in buckets]
            elif len(buckets) == 1:  # large accesses lie in few buckets
                near = buckets.values()
            else:
                near = [bucket for n, bucket in buckets.items() if first <= n <= last]
            for bucket in near:
                for old in bucket:
                    if old.high > low and old.low < high:
                        found.append(old)
        if len(found) > 1:
            found.sort(key=_number, reverse=True)
        return found

    def add(self, new: Touch) -> None:
        self._count += 1
        new.number = self._count
        self._put(new)

    def _put(self, touch: Touch) -> None:
        shift = _FIRST
        while touch.high - touch.low > 1 << shift:
            shift += _TIMES
        at = touch.low >> shift
        touch.bucket = shift, at
        level = self._levels.get(shift)
        if level is None:
            level = self._levels[shift] = {}
        bucket = level.get(at)
        if bucket is None:
            level[at] = [touch]
        else:
            bucket.append(touch)

    def grown(self, touch: Touch) -> None:
        """Move an access to its bucket after its bounds have grown."""
        assert touch.bucket is not None
        shift, at = touch.bucket
        if touch.low >> shift != at or touch.high - touch.low > 1 << shift:
            self.drop(touch)
            self._put(touch)

    def drop(self, touch: Touch) -> None:
        assert touch.bucket is not None
        shift, at = touch.bucket
        buckets = self._levels[shift]
        bucket = buckets[at]
        bucket.remove(touch)
        touch.bucket = None
        if not bucket:
            del buckets[at]


def _number(touch: Touch) -> int:
    return touch.number
