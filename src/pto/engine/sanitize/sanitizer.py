"""What sanitizers share: where they report to, and the launch they watch."""

from __future__ import annotations

from ..watch import WatchedLaunch, Watcher
from .reports import Reports


class Sanitizer(Watcher):
    """Finds what is wrong with a program although it runs."""

    launch: WatchedLaunch

    def __init__(self, reports: Reports) -> None:
        self.reports = reports

    def launch_started(self, launch: WatchedLaunch) -> None:
        self.launch = launch
