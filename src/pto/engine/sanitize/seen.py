"""The accesses to a buffer that still matter, found by the bytes they touch.

An access lies in one bucket: on the level whose buckets are the smallest it fits into, in the one its first
byte is in. Who asks for bytes looks, level by level, into the buckets these lie in and the one before. So a
small access that meets no other costs the same however many there are, and a large one as much as it meets.
"""

from __future__ import annotations

from .touch import Touch

#: Bytes of a bucket of the first level, and how many times larger those of the next are, as shifts.
_FIRST, _TIMES = 6, 4


class Seen:
    """Accesses to one buffer, by place; `latest` are those of the last event that may still grow."""

    __slots__ = ("_count", "_levels", "latest")

    def __init__(self) -> None:
        self._levels: dict[int, dict[int, list[Touch]]] = {}  # by the shift of a level
        self._count = 0
        self.latest: list[Touch] = []

    def __len__(self) -> int:
        return sum(len(bucket) for buckets in self._levels.values() for bucket in buckets.values())

    def meeting(self, low: int, high: int) -> list[Touch]:
        """Accesses between two bytes, gaps not counted, the latest first."""
        found: list[Touch] = []
        for shift, buckets in self._levels.items():
            first, last = (low >> shift) - 1, (high - 1) >> shift
            if last - first < len(buckets):
                near = [buckets[n] for n in range(first, last + 1) if n in buckets]
            elif len(buckets) == 1:  # large accesses lie in few
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
        """An access has more bytes than before."""
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
