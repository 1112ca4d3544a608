"""Programs of several classifiers: one for each classifier, and one for their average."""

from __future__ import annotations

from typing import NamedTuple

from calibrant._validation import check_fitted
from calibrant.classifier import CalibratedClassifier
from calibrant.classifier._ensemble import AveragedResponse
from calibrant.export._emit import emit, finish, program, program_of_odds
from calibrant.export._program import Builder, Program
from calibrant.export._values import Value, stack


class Average(NamedTuple):
    """The programs of several classifiers, and the weights of their results.

    If ``last`` is not None, it transforms the weighted average of the results.
    """

    programs: tuple[Program, ...]
    weights: tuple[float, ...]
    last: Program | None = None

    @property
    def all_programs(self) -> list[Program]:
        """The programs in the order in which they run."""
        return [*self.programs, *filter(None, [self.last])]


def average_of(classifier: CalibratedClassifier) -> Average:
    """The programs of a fitted classifier."""
    check_fitted(classifier)
    (scorer, *others) = classifier._scorers
    if not others and isinstance(scorer, AveragedResponse):
        member = _member_program(classifier, scorer)
        n_members = len(scorer.responses)
        last = _last_program(classifier, scorer)
        return Average((member,) * n_members, tuple(scorer.weights.tolist()), last)
    is_odds = classifier.inputs_ == "logits" and len(classifier.classes_) == 2
    write = program_of_odds if is_odds else program
    programs = tuple(write(calibrator) for calibrator in classifier.calibrators_)
    return Average(programs, (1.0 / len(programs),) * len(programs))


def _member_program(classifier: CalibratedClassifier, scorer: AveragedResponse) -> Program:
    """The program that turns the scores of one classifier of an ensemble into probabilities."""
    scores, inputs = Value(Builder(len(classifier.classes_)), 0), scorer.responses[0].inputs
    if inputs == "proba":
        return finish(classifier.calibrator_, scores.normalize(), inputs)
    if scores.width == 2:  # converters write log-odds z as the columns (0, z) or (-z, z)
        scores = stack([scores.fill(0.0), scores.column(1)])
    proba = (scores / scorer.temperature).apply("softmax")
    return finish(classifier.calibrator_, proba, inputs)


def _last_program(classifier: CalibratedClassifier, scorer: AveragedResponse) -> Program:
    """The program that calibrates the average of an ensemble."""
    average = Value(Builder(len(classifier.classes_)), 0)
    is_zero = 1.0 - (average > average.fill(0.0))
    others = 1.0 - is_zero.sum() * scorer.least
    proba = emit(classifier.calibrator_, average * others + is_zero * scorer.least)
    if classifier.temperature_ != 1.0:
        proba = (proba.apply("log") / classifier.temperature_).apply("softmax")
    return finish(classifier.calibrator_, proba, "proba")
