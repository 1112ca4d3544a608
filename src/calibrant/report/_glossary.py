"""Terms of a report and their explanations, for all metrics, tests and columns."""

from __future__ import annotations

from calibrant.report._content import (
    CLASS_COLUMNS,
    CURVE_COLUMNS,
    GUARANTEE_COLUMNS,
    METRIC_COLUMNS,
    TEST_COLUMNS,
    Report,
)
from calibrant.report._risk_content import RISK_COLUMNS

MEASURES = {
    "accuracy": "Share of rows whose predicted class is the true class.",
    "log_loss": "Mean of -log(predicted probability of the true class). Lower is better.",
    "brier_score": "Mean squared difference between the predicted probabilities and the true "
    "class, summed over classes. Lower is better.",
    "confidence-l2": "Root mean squared difference between confidence and accuracy in bins, "
    "corrected for sampling noise. 0 is perfect.",
    "class-wise-l2": "Root mean squared difference between the probability of a class and its "
    "frequency in bins, over all classes, corrected for sampling noise. 0 is perfect.",
    "top-label-l2": "Root mean squared difference between confidence and accuracy in bins of each "
    "predicted class, corrected for sampling noise. 0 is perfect.",
    "conf_ece": "Expected calibration error: mean absolute difference between confidence and "
    "accuracy in bins, weighted by rows. 0 is perfect, but sampling noise makes the error "
    "positive.",
    "cw_ece": "Expected calibration error of the probability of each class, averaged over classes. "
    "Sampling noise makes the error positive.",
    "tl_ece": "Expected calibration error of the confidence among the rows of each predicted "
    "class, averaged over rows. Sampling noise makes the error positive.",
    "mce": "Maximum calibration error: largest absolute difference between confidence and accuracy "
    "in any bin. A bin with few rows can determine the maximum.",
    "ks": "Largest absolute value of the cumulative difference between confidence and correctness, "
    "with rows ordered by confidence. The error is computed without bins.",
    "confidence_on_errors": "Mean confidence on incorrect predictions.",
    "doubt_on_correct": "Mean of 1 - confidence on correct predictions.",
    "averaged_two_bin_error": "A threshold of the probability of a class divides all rows into "
    "two bins. The error is the squared calibration error of the bins, averaged over thresholds "
    "and classes. The true "
    "probabilities minimize this error in expectation.",
    "cutoff_calibration_error": "Upper bound on the increase in mean benefit per row from changing "
    "the confidence threshold, if benefits lie between 0 and 1. Sampling noise makes the error "
    "positive.",
}
"""Explanations of measures by the name of the metric."""

TESTS = {
    "conf_ece": "Compares the ECE of the confidence with its values in simulations in which each "
    "prediction is correct with a probability equal to its confidence.",
    "cw_ece": "Compares the class-wise ECE with its values for simulated labels that are drawn "
    "from the predicted probabilities.",
    "tl_ece": "Compares the top-label ECE with its values in simulations in which each prediction "
    "is correct with a probability equal to its confidence.",
    "predicted-class": "Compares mean confidence and accuracy for each predicted class. The "
    "statistic is the largest difference, in units of its standard error.",
    "kernel": "Tests all probabilities of a row at once with a kernel calibration error. The "
    "statistic is unbiased, so its value can be negative.",
}
"""Explanations of tests by their name."""

_BINARY_GAP = (
    " In binary problems, the gap is the mean predicted probability of the second class minus the "
    "frequency of this class."
)

COLUMNS = {
    "Measure": "Name of the measure.",
    "Before": "Value for the original probabilities.",
    "After": "Value for the calibrated probabilities of held-out rows.",
    "Note": "Explanation of the value and of its 95% confidence interval (CI).",
    "Stage": "Before or after calibration.",
    "Mean probability": "Mean predicted probability of the rows in a bin.",
    "Observed frequency": "Share of the rows in a bin that belong to the class, or whose "
    "prediction is correct.",
    "Lower": "Lower end of the 95% confidence interval.",
    "Upper": "Upper end of the 95% confidence interval.",
    "Rows": "Number of rows, or the sum of the weights of the rows.",
    "Class": "Class label of a score column.",
    "Predicted rows": "Number of rows for which the class has the highest probability.",
    "Class-wise ECE before": "ECE of the probability of this class, before calibration.",
    "Class-wise ECE after": "ECE of the probability of this class, after calibration.",
    "Top-label ECE before": "ECE of the confidence in rows predicted as this class, before "
    "calibration.",
    "Top-label ECE after": "ECE of the confidence in rows predicted as this class, after "
    "calibration.",
    "Test": "Test of the hypothesis that the probabilities are calibrated.",
    "Statistic before": "Test statistic of the original probabilities.",
    "Expected before": "Mean of the statistic if the original probabilities were calibrated.",
    "Statistic after": "Test statistic of the calibrated probabilities.",
    "Expected after": "Mean of the statistic if the calibrated probabilities had no remaining "
    "miscalibration.",
    "p-value before": "Probability of a statistic at least this large if the original "
    "probabilities were calibrated. The p-value is adjusted for the number of tests (Holm).",
    "p-value after": "Probability of a statistic at least this large if the calibrated "
    "probabilities had no remaining miscalibration. The p-value is adjusted for the number of "
    "tests (Holm).",
    "Null hypothesis": "Hypothesis that a test with a small p-value rejects. The p-value of a test "
    "is exact, conservative, asymptotic (valid for many rows) or heuristic. A conservative p-value "
    "is valid for any number of rows.",
    "Error rate of answers": "Guaranteed maximum share of wrong predictions among the answered "
    "rows.",
    "Answered before": "Largest share of rows that can be answered with this guaranteed maximum "
    "error rate, before calibration. The rows with the highest confidence are answered.",
    "Answered after": "Largest share of rows that can be answered with this guaranteed maximum "
    "error rate, after calibration. The rows with the highest confidence are answered.",
    "Predicted class": "Class that the calibrator with the guarantee predicts.",
    "Probability": "Probability that the calibrator with the guarantee reports for this class.",
    "Group": "Values of the columns that define the groups.",
    "Accuracy": "Share of rows whose predicted class is the true class. The table of groups shows "
    "the accuracy after calibration.",
    "Gap before": "Mean confidence minus accuracy in the group, before calibration." + _BINARY_GAP,
    "Gap after": "Mean confidence minus accuracy in the group, after calibration." + _BINARY_GAP,
    "Finding after": "Whether the confidence interval of the gap after calibration excludes 0.",
    "Base calibrator": "Calibrator whose predictions are averaged.",
    "Weight": "Weight of a base calibrator in the average.",
    "Out-of-fold log-loss": "Log-loss of a base calibrator on the calibration rows, computed by "
    "cross-validation.",
    "Factor": "Factor of the log-probability of the class.",
    "Offset": "Number that is added to the scaled log-probability of the class.",
    "Intercept": "Number that is added to the transformed log-probability of the class.",
    "c": "Intercept of the class in the canonical form of Dirichlet calibration.",
}
"""Explanations of columns by their label."""

GENERAL = {
    "Confidence": "Highest predicted probability of a row.",
    "Held-out rows": "Rows that were not used to fit the calibrator that predicts them.",
    "Cross-fitting": "The rows are split into folds, and each fold is predicted by a calibrator "
    "that was fitted on the other folds.",
    "Calibration (of log-loss)": "Part of the log-loss that a cross-fitted calibrator (structured "
    "scaling) removes. Sampling noise can make this part negative.",
    "Refinement": "Part of the log-loss that remains after the cross-fitted calibrator "
    "(structured scaling).",
    "95% CI": "95% confidence interval.",
}
"""Terms that every report uses."""


def glossary(report: Report) -> tuple[tuple[str, str], ...]:
    """Return the terms of a report with their explanations, in the order of its sections."""
    terms = dict(GENERAL)
    terms |= {row.title: MEASURES[row.name] for row in report.metrics}
    terms |= {test.title: TESTS[test.name] for test in report.tests}
    terms |= {label: COLUMNS[label] for label in column_labels(report)}
    return tuple(terms.items())


def column_labels(report: Report) -> tuple[str, ...]:
    """Return the labels of all table columns of a report, except labels with class names."""
    labels = [*METRIC_COLUMNS, *CURVE_COLUMNS, *CLASS_COLUMNS]
    labels += [] if report.groups is None else report.groups.header
    labels += [] if report.selective is None else RISK_COLUMNS
    labels += TEST_COLUMNS
    labels += [] if report.guarantee is None else GUARANTEE_COLUMNS
    for table in report.map.tables:
        # Matrices have a column per class between the first and the last column.
        labels += [label for label in table.header if label in COLUMNS]
    return tuple(dict.fromkeys(labels))
