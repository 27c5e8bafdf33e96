"""The base class of sanitizers: it has their reports and the launch that they watch."""

from __future__ import annotations

from ..watch import WatchedLaunch, Watcher
from .reports import Reports


class Sanitizer(Watcher):
    """A watcher that reports errors of a program that nevertheless runs."""

    launch: WatchedLaunch

    def __init__(self, reports: Reports) -> None:
        self.reports = reports

    def launch_started(self, launch: WatchedLaunch) -> None:
        self.launch = launch
