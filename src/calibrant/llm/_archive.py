"""Read members of zip archives within limits, without writing them to disk.

Inspect compresses with zstd (method 93), which Python's `zipfile` cannot decompress before Python
3.14. pyarrow can decompress zstd, and the command line already depends on pyarrow.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from calibrant.llm._files import MOST_BYTES

_ZSTD = 93
_MOST_EXPANSION = 250
"""Largest ratio of content to archive. Transcripts are compressed by a factor of 5 to 50. Archives
that are made to exhaust the memory are compressed by a factor of a thousand or more."""

_SMALL_CONTENT = 2**24
"""Up to this number of bytes (16 MB), the ratio is not limited, because a few hundred equal samples
are compressed by more than the limit."""

_CHUNK = 2**20

_AGAIN = "Copy or download the file again."
"""Fix for a damaged archive."""


def is_archive(path: Path) -> bool:
    """Return whether a file begins like a zip archive."""
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


class Archive:
    """A zip archive whose members are read one at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._size, self._read = path.stat().st_size, 0
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, ValueError, OSError) as error:
            raise ValueError(f"{path} is not a readable zip archive: {error}. {_AGAIN}") from None
        for info in self._zip.infolist():
            self._check_member(info)

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def _check_member(self, info: zipfile.ZipInfo) -> None:
        name = PurePosixPath(info.filename.replace("\\", "/"))
        if name.is_absolute() or ".." in name.parts or ":" in name.parts[0]:
            raise ValueError(
                f"{self.path} has a member outside the archive, {info.filename!r}, so it is "
                "not an evaluation log."
            )
        if info.file_size > MOST_BYTES:
            raise ValueError(
                f"Member {info.filename!r} of {self.path} declares {info.file_size:,} bytes, but "
                f"at most {MOST_BYTES:,} bytes are read."
            )
        if info.flag_bits & 0x1:
            raise ValueError(
                f"Member {info.filename!r} of {self.path} is encrypted. Write the archive without "
                "encryption."
            )

    def names(self, folder: str = "") -> Iterator[str]:
        """Iterate over the names of the JSON members of a folder."""
        for info in self._zip.infolist():
            if info.filename.startswith(folder) and info.filename.endswith(".json"):
                yield info.filename

    def __contains__(self, name: str) -> bool:
        return name in self._zip.NameToInfo

    def read(self, name: str) -> bytes:
        """Return the content of a member, and raise if it is damaged or larger than declared."""
        info = self._zip.NameToInfo[name]
        place = f"{self.path}, member {name!r}"
        try:
            content = self._unzip(info) if info.compress_type == _ZSTD else self._inflate(info)
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError) as error:
            raise ValueError(f"{place} cannot be decompressed: {error}. {_AGAIN}") from None
        _check_content(content, info, place)
        self._read += len(content)
        if self._read > max(_SMALL_CONTENT, _MOST_EXPANSION * self._size):
            raise ValueError(
                f"{self.path} expands to more than {_MOST_EXPANSION} times its size, but "
                "evaluation logs never expand so much."
            )
        return content

    def _inflate(self, info: zipfile.ZipInfo) -> bytes:
        with self._zip.open(info) as file:
            return file.read(info.file_size + 1)

    def _unzip(self, info: zipfile.ZipInfo) -> bytes:
        """Decompress a zstd member, which may consist of several frames."""
        try:
            import pyarrow
        except ImportError:
            raise ImportError(
                f"{self.path} is compressed with zstd. Reading this file needs the package "
                'pyarrow, which is not installed. Run pip install "calibrant[parquet]".'
            ) from None
        raw = io.BytesIO(self._raw(info))
        parts, size = [], 0
        with pyarrow.CompressedInputStream(raw, "zstd") as stream:
            # One byte more than declared is enough to detect a wrong size.
            while size <= info.file_size and (part := stream.read(_CHUNK)):
                parts.append(part)
                size += len(part)
        return b"".join(parts)

    def _raw(self, info: zipfile.ZipInfo) -> bytes:
        """Return the compressed bytes of a member, which follow its header."""
        with self.path.open("rb") as file:
            file.seek(info.header_offset)
            header = file.read(30)
            if len(header) < 30 or header[:4] != b"PK\x03\x04":
                raise zipfile.BadZipFile("its local header is missing")
            name, extra = struct.unpack("<HH", header[26:30])
            file.seek(name + extra, io.SEEK_CUR)
            return file.read(info.compress_size)


def _check_content(content: bytes, info: zipfile.ZipInfo, place: str) -> None:
    """Raise if the size or the checksum of a member differs from its entry in the archive."""
    if len(content) != info.file_size:
        raise ValueError(
            f"{place} does not have the {info.file_size:,} bytes that the archive declares. "
            f"{_AGAIN}"
        )
    if zlib.crc32(content) != info.CRC:
        raise ValueError(f"{place} is damaged, because its checksum is wrong. {_AGAIN}")
