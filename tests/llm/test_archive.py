"""Archives that try to exhaust memory or to write outside of a folder: one line each."""

from __future__ import annotations

import json
import zipfile
import zlib

import pytest

from llm_logs import inspect_sample, refused, write_inspect, zstd_archive

pytest.importorskip("pyarrow")


def header():
    return json.dumps({"version": 2, "eval": {"task": "t"}}).encode()


@pytest.mark.parametrize(
    "name", ["../evil.json", "/etc/evil.json", "a/../../evil.json", "C:/x.json"]
)
def test_members_outside_of_the_archive(tmp_path, name):
    path = tmp_path / "log.eval"
    path.write_bytes(zstd_archive({"header.json": header(), name: b"{}"}))
    refused(path, "member outside the archive")


def test_member_that_promises_a_billion_bytes(tmp_path):
    path = tmp_path / "log.eval"
    contents = {"header.json": header(), "samples/1_epoch_1.json": b"{}"}
    path.write_bytes(zstd_archive(contents, promised={"samples/1_epoch_1.json": 10**9}))
    refused(path, "declares 1,000,000,000 bytes")


@pytest.mark.parametrize("method", ["zstd", "deflate"])
def test_archive_that_expands_a_thousandfold(tmp_path, method):
    path = tmp_path / "log.eval"
    bomb = b'{"id": "' + b"0" * 2**25 + b'"}'
    contents = {"header.json": header(), "samples/1_epoch_1.json": bomb}
    if method == "zstd":
        path.write_bytes(zstd_archive(contents))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in contents.items():
                archive.writestr(name, content)
    refused(path, "expands to more than 250 times its size")


def test_member_that_is_larger_than_promised(tmp_path):
    path = tmp_path / "log.eval"
    contents = {"header.json": header(), "samples/1_epoch_1.json": b'{"id": 1}' * 1000}
    path.write_bytes(zstd_archive(contents, promised={"samples/1_epoch_1.json": 9}))
    refused(path, "does not have the 9 bytes that the archive declares")


def test_damaged_archives(tmp_path):
    sample = inspect_sample(1, {"score": "C", "confidence": 50})
    path = write_inspect(tmp_path / "log.eval", [sample])
    content = bytearray(path.read_bytes())
    content[content.index(b"samples/") + 40] ^= 0xFF
    path.write_bytes(bytes(content))
    refused(path, r"member 'samples/1_epoch_1.json' (cannot be decompressed|is damaged)")
    path.write_bytes(b"PK\x03\x04 this is no archive")
    refused(path, "not a readable zip archive")
    write_inspect(path, [sample], header=False)
    refused(path, "no member 'header.json'")


def test_checksum_is_verified(tmp_path):
    path = tmp_path / "log.eval"
    raw = zstd_archive({"header.json": header()})
    path.write_bytes(raw.replace(zlib.crc32(header()).to_bytes(4, "little"), b"\0\0\0\0"))
    refused(path, "checksum is wrong")
