"""Writers of evaluation logs in the formats of the tools, for tests."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from pathlib import Path

import pytest

from calibrant import llm

LETTERS = "ABCDEFGHIJ"


def lm_eval_line(doc_id, sums, target, *, filter_="none", texts=None, context="Q?", **metrics):
    """A line of version 0.4.13: numbers as text, arguments as a dictionary."""
    texts = [f"option {LETTERS[i]}" for i in range(len(sums))] if texts is None else texts
    return {
        "doc_id": doc_id,
        "doc": {"question": context},
        "target": str(target),
        "arguments": {
            f"gen_args_{i}": {"arg_0": context, "arg_1": f" {text}"} for i, text in enumerate(texts)
        },
        "resps": [[[str(value), "False"]] for value in sums],
        "filtered_resps": [[str(value), "False"] for value in sums],
        "filter": filter_,
        "metrics": list(metrics),
        "doc_hash": "0" * 64,
        "prompt_hash": "0" * 64,
        "target_hash": "0" * 64,
        **metrics,
    }


def old_lm_eval_line(doc_id, sums, target, **metrics):
    """A line of version 0.4.0: numbers, and arguments as a list of pairs."""
    return {
        "doc_id": doc_id,
        "doc": {},
        "target": target,
        "arguments": [["Q?", f" option {LETTERS[i]}"] for i in range(len(sums))],
        "resps": [[[value, False]] for value in sums],
        "filtered_resps": [[value, False] for value in sums],
        **metrics,
    }


def write_lines(path: Path, lines, end="\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(line) for line in lines) + end, encoding="utf-8")
    return path


def token(text, logprob, top=()):
    entries = [{"token": t, "logprob": v} for t, v in top]
    return {"token": text, "logprob": logprob, "top_logprobs": entries}


def inspect_sample(id_, value, *, epoch=1, choices=None, target="A", tokens=None, metadata=None):
    choice = {"message": {"role": "assistant", "content": "an answer"}}
    if tokens is not None:
        choice["logprobs"] = {"content": tokens}
    return {
        "id": id_,
        "epoch": epoch,
        "input": "Q?",
        "choices": choices,
        "target": target,
        "output": {"model": "m", "choices": [choice]},
        "scores": {"judge": {"value": value, "answer": "A", "metadata": metadata or {}}},
    }


def write_inspect(path: Path, samples, *, task="hle", method="zstd", header=True) -> Path:
    """An archive as Inspect writes it; zstd members have two frames."""
    members = {"_journal/start.json": {"version": 2}}
    members |= {f"samples/{s['id']}_epoch_{s['epoch']}.json": s for s in samples}
    members["summaries.json"] = []
    if header:
        members["header.json"] = {"version": 2, "status": "success", "eval": {"task": task}}
    contents = {name: json.dumps(value).encode() for name, value in members.items()}
    if method == "zstd":
        path.write_bytes(zstd_archive(contents))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in contents.items():
                archive.writestr(name, content)
    return path


def zstd_archive(contents, promised=None) -> bytes:
    """A zip archive with compression method 93, which `zipfile` cannot write."""
    import pyarrow

    codec, out, directory = pyarrow.Codec("zstd"), io.BytesIO(), io.BytesIO()
    for name, content in contents.items():
        half = len(content) // 2
        frames = [content[:half], content[half:]] if half else [content]
        data = b"".join(codec.compress(frame).to_pybytes() for frame in frames)
        size = (promised or {}).get(name, len(content))
        fields = (20, 0, 93, 0, 33, zlib.crc32(content), len(data), size, len(name), 0)
        start = out.tell()
        out.write(b"PK\x03\x04" + struct.pack("<HHHHHIIIHH", *fields) + name.encode() + data)
        directory.write(b"PK\x01\x02" + struct.pack("<H", 20) + struct.pack("<HHHHHIIIHH", *fields))
        directory.write(struct.pack("<HHHII", 0, 0, 0, 0, start) + name.encode())
    place, entries = out.tell(), directory.getvalue()
    n = len(contents)
    tail = struct.pack("<HHHHIIH", 0, 0, n, n, len(entries), place, 0)
    return out.getvalue() + entries + b"PK\x05\x06" + tail


def helm_instance(id_, exact_match, max_prob=None, perturbation=None):
    stats = [{"name": {"name": "exact_match", "split": "test"}, "count": 1, "mean": exact_match}]
    if max_prob is not None:
        stats.append({"name": {"name": "max_prob", "split": "test"}, "count": 1, "mean": max_prob})
    entry = {"instance_id": id_, "train_trial_index": 0, "stats": stats}
    return entry | ({"perturbation": perturbation} if perturbation else {})


def write_helm(folder: Path, instances, *, name="mmlu:subject=anatomy,model=m", own=None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "per_instance_stats.json").write_text(json.dumps(instances))
    (folder / "run_spec.json").write_text(json.dumps({"name": name}))
    stats = [{"name": {"name": key}, "mean": value} for key, value in (own or {}).items()]
    (folder / "stats.json").write_text(json.dumps(stats))
    return folder


def batch_line(custom_id, tokens, content="A"):
    choice = {"index": 0, "message": {"role": "assistant", "content": content}}
    choice["logprobs"] = None if tokens is None else {"content": tokens}
    body = {"id": "x", "object": "chat.completion", "choices": [choice]}
    return {"id": "b", "custom_id": custom_id, "response": {"status_code": 200, "body": body}}


def refused(path, match):
    """`read` raises one line, and writes nothing."""
    before = sorted(path.parent.rglob("*"))
    with pytest.raises(ValueError, match=match) as error:
        llm.read(path)
    assert "\n" not in str(error.value)
    assert sorted(path.parent.rglob("*")) == before
