"""Zip files of a few uncompressed members. Reading does not trust the file."""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import BinaryIO

from marginwise._files.values import Part

MOST_MEMBERS = 1024  # an estimator has a few dozen, a pipeline several for each transformer
MOST_DIRECTORY = MOST_MEMBERS * 256  # bytes
NAME = re.compile(r"\w+(\.\w+)*", re.ASCII)

_END = struct.Struct("<4s4H2LH")  # end of central directory
ENDING = _END.size
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64 = b"PK\x06\x07"
_LOCAL = struct.Struct("<4s22x2H")


def write_members(members: Mapping[str, list[Part]], handle: BinaryIO) -> None:
    """Write members, each passed in parts; equal content gives equal bytes."""
    try:
        with zipfile.ZipFile(handle, "w", zipfile.ZIP_STORED) as archive:
            for name, parts in members.items():
                info = zipfile.ZipInfo(name)
                info.file_size = sum(memoryview(part).nbytes for part in parts)
                with archive.open(info, "w") as member:
                    for part in parts:
                        member.write(part)
    except ValueError as error:
        raise _interrupt_behind(error) or error from None


def _interrupt_behind(error: BaseException) -> KeyboardInterrupt | None:
    """Return the KeyboardInterrupt that caused an error on closing an incomplete archive."""
    cause = error.__context__
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__context__
    return cause


def read_members(data: bytes) -> dict[str, memoryview]:
    """Return the members of an archive by name, as views of its bytes.

    Raises ValueError (or an error of `zipfile`) unless the archive could be one of `write_members`:
    a few uncompressed members with plain, distinct names and valid checksums.
    """
    _check_directory(data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
    if sum(member.file_size for member in members) > len(data):
        raise ValueError("its members are larger than the file")
    found: dict[str, memoryview] = {}
    for member in members:
        name = member.orig_filename
        if not NAME.fullmatch(name) or name in found:
            raise ValueError(f"unexpected member {name!r:.80}")
        found[name] = _content(data, member)
    return found


def check_ending(tail: bytes) -> None:
    """Raise ValueError unless the last `ENDING` bytes of a file end a plain zip file."""
    if len(tail) < ENDING or tail[:4] != b"PK\x05\x06":
        raise ValueError("it is not a zip file, or is truncated")


def _check_directory(data: bytes) -> None:
    """Limit the size of the list of members, which `zipfile` reads completely."""
    check_ending(data[-ENDING:])
    _, _, _, _, count, size, _, comment = _END.unpack(data[-_END.size :])
    start = len(data) - _END.size - 20
    if start >= 0 and data[start : start + 4] == _LOCATOR64:
        if len(data) <= zipfile.ZIP64_LIMIT:
            raise ValueError("it is not a plain zip file")
        fields = _END64.unpack(data[start - _END64.size : start])
        count, size = fields[7], fields[8]
    if comment or count > MOST_MEMBERS or size > MOST_DIRECTORY:
        raise ValueError("its list of members is too long")


def _content(data: bytes, member: zipfile.ZipInfo) -> memoryview:
    """Return the bytes of a member, checked against both of its headers."""
    name, size = member.orig_filename, member.file_size
    if member.compress_type != zipfile.ZIP_STORED or member.compress_size != size:
        raise ValueError(f"member {name} is compressed")
    if member.flag_bits:
        raise ValueError(f"member {name} is encrypted or encoded")
    signature, name_size, extra_size = _LOCAL.unpack_from(data, member.header_offset)
    named = member.header_offset + _LOCAL.size
    start = named + name_size + extra_size
    if signature != b"PK\x03\x04" or data[named : named + name_size] != name.encode():
        raise ValueError(f"member {name} is not where the list of members says")
    content = memoryview(data)[start : start + size]
    if len(content) != size or zlib.crc32(content) != member.CRC:
        raise ValueError(f"member {name} is damaged")
    return content
