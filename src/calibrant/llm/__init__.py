"""Calibration of language models: from evaluation logs to calibrated answers.

`read` reads the logs of evaluation tools and returns one `Run` per task. `evaluate` tabulates the
calibration of the runs. `OptionCalibration` calibrates the options of multiple-choice questions.
`AnswerCalibration` calibrates open answers by their stated confidences and other features.
`pass_rate` uses human labels to correct the pass rate of a grader model. Scores of options are
`calibrant.OptionScores`. `find_answer_threshold` finds the confidence above which few answers are
wrong. `summarize` and `write_report` write a page about all tasks. `parse_confidence` parses
confidences that are stated in words.
"""

from calibrant.llm._answer_calibration import AnswerCalibration
from calibrant.llm._evaluate import RunsEvaluation, TaskEvaluation, evaluate
from calibrant.llm._grader import PassRate, pass_rate
from calibrant.llm._option_calibration import OptionCalibration
from calibrant.llm._read import read
from calibrant.llm._report import RunsReport, summarize, write_report
from calibrant.llm._run import Run, Runs
from calibrant.llm._stated import parse_confidence
from calibrant.llm._threshold import AnswerThreshold, find_answer_threshold

__all__ = [
    "AnswerCalibration",
    "AnswerThreshold",
    "OptionCalibration",
    "PassRate",
    "Run",
    "Runs",
    "RunsEvaluation",
    "RunsReport",
    "TaskEvaluation",
    "evaluate",
    "find_answer_threshold",
    "parse_confidence",
    "pass_rate",
    "read",
    "summarize",
    "write_report",
]
