from __future__ import annotations

import os
import signal

import pytest

from pto.signals import deferred


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name)
def test_a_signal_waits_until_a_process_is_known(number: signal.Signals) -> None:
    before = signal.signal(number, signal.default_int_handler)
    done = False
    try:
        with pytest.raises(KeyboardInterrupt), deferred():
            os.kill(os.getpid(), number)
            done = True
        assert done and signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)
