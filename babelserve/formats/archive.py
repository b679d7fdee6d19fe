"""ZIP archives of which some members are replaced; everything else comes back byte for byte, in the same order.

Python's zipfile reads them. It cannot write a member that it has not unpacked, so an archive is written here, of the
old one's bytes. https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
"""

import io
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from babelserve.formats.document import BadFile

# Unpacked, of all members that are read. Half of it would refuse manuals of a thousand pages, and with twice as much an
# archive of 200 kB could take two minutes to look through.
MAX_BYTES = 32 * 2**20
_LOCAL, _CENTRAL, _END = struct.Struct("<4s5H3L2H"), struct.Struct("<4s6H3L5H2L"), struct.Struct("<4s4H2LH")
_OFFSET = 16  # of the fields of the central directory: where the member is
_HAS_DESCRIPTOR, _IS_ENCRYPTED = 0x8, 0x1  # flags
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # Office puts an encrypted archive into a file of this old kind
_IN_EXTRA = 0xFFFFFFFF  # a size that stands in the extra field of ZIP64


class Archive:
    """An archive that has been looked through.

    Args:
        data: all of it.

    Attributes:
        names: of its members.

    Raises:
        BadFile: it is no archive, or damaged, or of a kind that is not written here (ZIP64, split, prefixed).
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        if data.startswith(_OLD_OFFICE):
            raise BadFile("is encrypted, or of a program older than Office 2007: save it anew, without a password")
        try:
            self._file = zipfile.ZipFile(io.BytesIO(data))
            self._end = data.rfind(b"PK\5\6")  # as zipfile has found it: what follows is a comment
            self._directory = _END.unpack_from(data, self._end)[6]
            if not data.startswith((b"PK\1\2", b"PK\5\6"), self._directory):
                raise BadFile("is a ZIP archive of a kind that is not supported")
            self._entries = self._directory_entries()
        except (zipfile.BadZipFile, ValueError, struct.error, NotImplementedError) as error:
            raise BadFile(f"is no ZIP archive, or a damaged one: {error}") from error
        members = self._file.infolist()
        self.names = [member.filename for member in members]
        starts = [*sorted(member.header_offset for member in members), self._directory]
        self._ends = dict(pairwise(starts))
        if [fields[_OFFSET] for _, fields in self._entries] != [member.header_offset for member in members]:
            raise BadFile("is a ZIP archive of a kind that is not supported")
        if len(set(starts)) != len(starts) or len(set(self.names)) != len(self.names):
            raise BadFile("has two members in one place, or of one name")
        if any(self._ends[member.header_offset] - member.header_offset < member.compress_size for member in members):
            raise BadFile("has members that overlap")

    def read(self, names: Iterable[str]) -> dict[str, bytes]:
        """Unpacks members.

        Args:
            names: of members. A name that the archive does not have is left out.

        Raises:
            BadFile: they are larger than `MAX_BYTES` together, encrypted, damaged, or packed in an unusual way.
        """
        known = set(self.names)
        members = [self._file.getinfo(name) for name in names if name in known]
        if (num_bytes := sum(member.file_size for member in members)) > MAX_BYTES:
            raise BadFile(f"has {num_bytes} bytes of text when it is unpacked; the limit is {MAX_BYTES}")
        for member in members:
            if member.flag_bits & _IS_ENCRYPTED:
                raise BadFile("is encrypted")
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise BadFile(f"has {member.filename} packed by method {member.compress_type}, which is not supported")
        try:
            return {member.filename: self._file.read(member) for member in members}
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, struct.error, NotImplementedError) as error:
            raise BadFile(f"is damaged: {error}") from error

    def replaced(self, files: Mapping[str, bytes]) -> bytes:
        """Returns the archive with other contents for some members, packed as the old ones are."""
        new = {self._file.getinfo(name).header_offset: content for name, content in files.items()}
        out = bytearray(self._data[: min(self._ends, default=self._directory)])
        moved: dict[int, int] = {}
        packed: dict[int, bytes] = {}
        for start, end in self._ends.items():
            moved[start] = len(out)
            if start not in new:
                out += self._data[start:end]
                continue
            fields = list(_LOCAL.unpack_from(self._data, start))
            packed[start] = _deflated(new[start]) if fields[3] == zipfile.ZIP_DEFLATED else new[start]
            rest = start + _LOCAL.size
            name = self._data[rest : rest + fields[9]]
            extra = self._data[rest + fields[9] : rest + fields[9] + fields[10]]
            if fields[7] == _IN_EXTRA:
                extra = b""  # it has the old sizes
            fields[2] &= ~_HAS_DESCRIPTOR
            fields[6:] = [*_sums(new[start], packed[start]), len(name), len(extra)]
            out += _LOCAL.pack(*fields) + name + extra + packed[start]
        directory = len(out)
        for position, entry in self._entries:
            fields = list(entry)
            start = fields[_OFFSET]
            fields[_OFFSET] = moved[start]
            if start in new:
                fields[3] &= ~_HAS_DESCRIPTOR
                fields[7:10] = _sums(new[start], packed[start])
            rest = position + _CENTRAL.size
            out += _CENTRAL.pack(*fields) + self._data[rest : rest + sum(fields[10:13])]
        last = list(_END.unpack_from(self._data, self._end))
        last[5:7] = [len(out) - directory, directory]
        return bytes(out + _END.pack(*last) + self._data[self._end + _END.size :])

    def _directory_entries(self) -> list[tuple[int, tuple[Any, ...]]]:
        """Position and fields of each entry of the archive's directory."""
        entries = []
        position = self._directory
        for _ in self._file.infolist():
            fields = _CENTRAL.unpack_from(self._data, position)
            entries.append((position, fields))
            position += _CENTRAL.size + sum(fields[10:13])  # with name, extra and comment
        return entries


def _deflated(content: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(content) + packer.flush()


def _sums(content: bytes, packed: bytes) -> list[int]:
    return [zlib.crc32(content), len(packed), len(content)]
