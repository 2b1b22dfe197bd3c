"""Locks on open files among the processes of this machine; they end with their process.

They are advisory: only who asks for the lock of a file waits for it. Windows locks ranges of bytes
and does not let others read them, so there the lock is a byte beyond the end of the file.
"""

import sys
import time

PAUSE = 0.05
# The position of the byte that stands for the whole file on Windows, whose C library knows no
# higher one for locks.
BEYOND = 2**31 - 2

if sys.platform == "win32":
    import msvcrt
    import os

    def _change_lock(handle: int, mode: int) -> None:
        before = os.lseek(handle, 0, os.SEEK_CUR)
        os.lseek(handle, BEYOND, os.SEEK_SET)
        try:
            msvcrt.locking(handle, mode, 1)
        finally:
            os.lseek(handle, before, os.SEEK_SET)

    def try_lock(handle: int) -> bool:
        """Take the lock of an open file if nobody has it; False if somebody does."""
        try:
            _change_lock(handle, msvcrt.LK_NBLCK)
        except PermissionError:
            return False
        return True

    def wait_for_lock(handle: int) -> None:
        """Take the lock of an open file, however long that takes."""
        while not try_lock(handle):
            time.sleep(PAUSE)

    def has_lock(handle: int) -> bool:
        """Check whether a process has the lock."""
        if not try_lock(handle):
            return True
        unlock(handle)
        return False

    def unlock(handle: int) -> None:
        """Give the lock back before the file is closed."""
        _change_lock(handle, msvcrt.LK_UNLCK)

else:
    import fcntl

    def try_lock(handle: int) -> bool:
        """Take the lock of an open file if nobody has it; False if somebody does."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def wait_for_lock(handle: int) -> None:
        """Take the lock of an open file, however long that takes."""
        fcntl.flock(handle, fcntl.LOCK_EX)

    def has_lock(handle: int) -> bool:
        """Check whether a process has the lock; any number of readers may ask at once."""
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False

    def unlock(handle: int) -> None:
        """Give the lock back before the file is closed."""
        fcntl.flock(handle, fcntl.LOCK_UN)
