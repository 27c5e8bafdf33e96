"""A second user of the machine: a process of this one that has given up its rights, which takes root."""

from __future__ import annotations

import codecs
import os
import tempfile
from collections.abc import Callable
from functools import cache

import pytest

OTHER_USER = 54321
needs_second_user = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as a second user")


@cache
def shared_folder() -> str:
    """Return a folder of temporary files that both users can reach: that of this user may lie in a closed folder."""
    if os.geteuid() != 0:
        return tempfile.gettempdir()
    for folder in (tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm"):
        if _acting(lambda folder=folder: os.rmdir(tempfile.mkdtemp(dir=folder)), OTHER_USER)() == "None":
            return folder
    pytest.skip("a second user can make files in no folder of temporary files")


def acting(does: Callable[[], object], user: int = OTHER_USER) -> Callable[[], str]:
    """Start a process of a user that runs a function; return a function that waits for the result: as text,
    or the name of the exception."""
    folder = shared_folder()

    def acts() -> object:
        tempfile.tempdir = folder
        return does()

    return _acting(acts, user)


def _acting(does: Callable[[], object], user: int) -> Callable[[], str]:
    codecs.lookup("ascii")  # the other user may not be able to read the files of Python
    here, there = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            if user != os.geteuid():
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
            said = str(does())
        except BaseException as problem:
            said = type(problem).__name__
        os.write(there, said.encode())
        os._exit(0)
    os.close(there)

    def wait() -> str:
        with os.fdopen(here) as pipe:
            said = pipe.read()
        os.waitpid(process, 0)
        return said

    return wait


def as_other_user(does: Callable[[], object]) -> str:
    return acting(does)()
