"""Export calibrators and their classifiers to one ONNX file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # no stubs
from onnx import TensorProto, compose, helper
from onnx.checker import ValidationError
from onnx.shape_inference import InferenceError

from calibrant import __version__
from calibrant._output.files import written_aside
from calibrant.export._average import Average
from calibrant.export._onnx import LEAST_OPSET, OURS, as_model, input_names, metadata
from calibrant.export._program import Program

_FLOATS = (TensorProto.DOUBLE, TensorProto.FLOAT)

_DEFAULT_OPSET = 17

_OUTPUTS = ["probabilities", "label"]

# onnx reads names that are not valid UTF-8 as bytes, which raise a TypeError later.
_INVALID = (DecodeError, ValidationError, InferenceError, RuntimeError, TypeError)

_NAME_PARTS = {"proba": "prob", "logits": "logit", "log_proba": "prob"}
"""Part of the name of a classifier output, by the kind of scores.

Outputs for logits and log-probabilities also contain "log".
"""


def write_model(
    average: Average,
    path: str | os.PathLike[str],
    opset: int,
    dtype: str,
    models: Sequence[str | os.PathLike[str]],
    output: str | None,
) -> None:
    """Write the ONNX model of a program, or of classifiers and their programs, after a check."""
    if models:
        with _valid_classifiers():
            classifiers = [onnx.load(Path(file)) for file in models]
            model = join_models(average, classifiers, output, dtype)
            onnx.checker.check_model(model, full_check=True)
    else:
        model = as_model(average, opset, dtype)
        onnx.checker.check_model(model, full_check=True)
    with written_aside(path) as aside:
        aside.write_bytes(model.SerializeToString())


@contextmanager
def _valid_classifiers() -> Iterator[None]:
    """Replace errors that onnx raises for invalid classifiers by a short message."""
    try:
        yield
    except _INVALID as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(
            f"The classifier is not a valid ONNX model ({reason}). Convert the classifier again, "
            f"and check the new file with onnx.checker.check_model(path, full_check=True)."
        ) from error


def join_models(
    average: Average, classifiers: Sequence[Any], output: str | None, dtype: str
) -> Any:
    """Return one model that runs each classifier and its program, and averages the results."""
    programs = average.programs
    outputs = [_scores_output(*pair, output) for pair in zip(classifiers, programs, strict=True)]
    _check_alike(classifiers)
    named = [entry.name for entry in programs[0].outputs]
    _check_names(classifiers[0], [*_OUTPUTS, *named])
    joint = as_model(average, _opset(classifiers[0]), dtype, [kind for _, kind in outputs])
    joint.ir_version = classifiers[0].ir_version
    joint = compose.add_prefix(
        joint, OURS, rename_outputs=False, rename_nodes=False, rename_edges=False
    )
    features = _features(classifiers[0])
    for j, (classifier, (name, _)) in enumerate(zip(classifiers, outputs, strict=True)):
        prefix = f"classifier_{j}_"
        joint = compose.merge_models(
            compose.add_prefix(classifier, prefix),
            joint,
            io_map=[(prefix + name, OURS + input_names(len(programs))[j])],
            outputs=[*_OUTPUTS, *named],
            producer_name="calibrant",
            producer_version=__version__,
        )
    _share_inputs(joint.graph, features, len(classifiers))
    helper.set_model_props(joint, metadata(average))
    return joint


def _share_inputs(graph: Any, features: Sequence[Any], n_classifiers: int) -> None:
    """Connect all classifiers to the same inputs, under their original names."""
    names = [(f"classifier_{j}_{f.name}", f.name) for j in range(n_classifiers) for f in features]
    copies = [helper.make_node("Identity", [name], [copy]) for copy, name in names]
    nodes = [*copies, *graph.node]
    del graph.node[:], graph.input[:]
    graph.node.extend(nodes)
    graph.input.extend(features)


def _features(classifier: Any) -> list[Any]:
    """Return the inputs of a classifier, without the constants that old files list as inputs."""
    constants = {value.name for value in classifier.graph.initializer}
    return [value for value in classifier.graph.input if value.name not in constants]


def _opset(classifier: Any) -> int:
    """Return the operator set of a classifier, or a default if only tree operators are declared."""
    versions = [entry.version for entry in classifier.opset_import if not entry.domain]
    opset = versions[0] if versions else _DEFAULT_OPSET
    if opset < LEAST_OPSET:
        raise ValueError(
            f"The classifier uses operator set {opset}, but at least {LEAST_OPSET} is required. "
            "Convert the model with onnx.version_converter.convert_version(model, 17)."
        )
    return int(opset)


def _check_alike(classifiers: Sequence[Any]) -> None:
    """Raise if classifiers have different inputs or operator sets."""
    first = classifiers[0]
    for other in classifiers[1:]:
        if _features(other) != _features(first):
            raise ValueError(
                "The classifiers have different inputs. Convert all classifiers with the same "
                "names and types of inputs."
            )
        if other.ir_version != first.ir_version or _opset(other) != _opset(first):
            raise ValueError(
                "The classifiers have different operator sets. Convert all classifiers with the "
                "same target_opset."
            )


def _check_names(classifier: Any, outputs: Sequence[str]) -> None:
    """Raise if an input has the name of an output of the joined model."""
    clashes = [value.name for value in _features(classifier) if value.name in outputs]
    if clashes:
        raise ValueError(
            f"The classifier has an input named {clashes[0]!r}, but the joined model has an output "
            'with the same name. Rename the input, for example initial_types=[("features", ...)].'
        )


def _scores_output(classifier: Any, program: Program, output: str | None) -> tuple[str, int]:
    """Return the name and element type of the classifier output with the scores to calibrate."""
    outputs = {value.name: value.type for value in classifier.graph.output}
    if output is None:
        output = _guess_output(list(outputs), program.inputs)
    if output not in outputs:
        raise ValueError(
            f"The classifier has no output {output!r}. Pass one of {', '.join(outputs)}."
        )
    if not outputs[output].HasField("tensor_type"):
        raise ValueError(
            f"Output {output!r} of the classifier is a list of dictionaries (ZipMap). Convert "
            f"the classifier with options={{'zipmap': False}}."
        )
    kind = outputs[output].tensor_type
    if kind.elem_type not in _FLOATS:
        raise ValueError(
            f"Output {output!r} of the classifier does not contain floating-point numbers. Pass "
            "output=NAME with the name of the scores."
        )
    dims = [dim.dim_value for dim in kind.shape.dim]
    if len(dims) == 2 and dims[1] and dims[1] != program.n_classes:
        raise ValueError(
            f"Output {output!r} has {dims[1]} columns, but the calibrator has {program.n_classes} "
            "classes. Pass output=NAME with the name of an output that has one column per class."
        )
    return output, int(kind.elem_type)


def _guess_output(outputs: Sequence[str], inputs: str) -> str:
    """Return the first output whose name matches the inputs of a program.

    If no name matches, return the first output whose name contains none of "prob", "log" and
    "label".
    """
    is_log = inputs != "proba"
    first = [
        n for n in outputs if _NAME_PARTS[inputs] in n.lower() and ("log" in n.lower()) == is_log
    ]
    neutral = [
        n for n in outputs if not any(word in n.lower() for word in ("prob", "log", "label"))
    ]
    if not [*first, *neutral]:
        raise ValueError(
            f"The calibrator needs {inputs}, but no output name of the classifier indicates this "
            f"type of scores. Pass output=NAME with one of {', '.join(outputs)}."
        )
    return [*first, *neutral][0]
