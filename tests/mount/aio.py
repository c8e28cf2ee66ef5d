# SPDX-License-Identifier: LGPL-2.1-or-later
"""Asynchronous direct writes, by the kernel's own interface (io_submit)."""

import ctypes
import mmap
import os

SYS_IO_SETUP, SYS_IO_DESTROY, SYS_IO_GETEVENTS, SYS_IO_SUBMIT = 206, 207, 208, 209  # x86-64
IOCB_CMD_PWRITE = 1

_libc = ctypes.CDLL(None, use_errno=True)


class Request(ctypes.Structure):
    """struct iocb"""
    _fields_ = [("data", ctypes.c_uint64), ("key", ctypes.c_uint32), ("rw_flags", ctypes.c_int32),
                ("opcode", ctypes.c_uint16), ("priority", ctypes.c_int16), ("file", ctypes.c_uint32),
                ("buffer", ctypes.c_uint64), ("size", ctypes.c_uint64), ("offset", ctypes.c_int64),
                ("reserved", ctypes.c_uint64), ("flags", ctypes.c_uint32), ("event_file", ctypes.c_uint32)]


class Event(ctypes.Structure):
    """struct io_event"""
    _fields_ = [("data", ctypes.c_uint64), ("request", ctypes.c_uint64), ("result", ctypes.c_int64),
                ("result2", ctypes.c_int64)]


def _call(number, *arguments):
    result = _libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


class Writer:
    """Writes what is in `memory` to a file that is open with O_DIRECT: all parts at once."""

    def __init__(self, size, parts):
        self._part, self._parts = size // parts, parts
        self.memory = mmap.mmap(-1, size)
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self._context = ctypes.c_uint64(0)
        _call(SYS_IO_SETUP, ctypes.c_uint(parts), ctypes.byref(self._context))

    def write(self, file, offset=0):
        assert all(result == self._part for result in self.try_to_write(file, offset))

    def try_to_write(self, file, offset=0):
        """What became of each part, in any order: how many bytes, or an errno below 0."""
        requests = [Request(opcode=IOCB_CMD_PWRITE, file=file, buffer=self._address + begin, size=self._part,
                            offset=offset + begin) for begin in range(0, self._parts * self._part, self._part)]
        pointers = (ctypes.POINTER(Request) * self._parts)(*map(ctypes.pointer, requests))
        events = (Event * self._parts)()
        assert _call(SYS_IO_SUBMIT, self._context, ctypes.c_long(self._parts), pointers) == self._parts
        _call(SYS_IO_GETEVENTS, self._context, ctypes.c_long(self._parts), ctypes.c_long(self._parts), events, None)
        return [event.result for event in events]

    def close(self):
        _call(SYS_IO_DESTROY, self._context)
