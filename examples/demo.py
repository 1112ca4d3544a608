"""A real classifier, how honest it is, and what calibration does for it."""

from calibrant import HistogramBinning, MulticlassToBinary, StructuredScaling, datasets, evaluate


def main() -> None:
    data = datasets.digits_predictions("naive_bayes")
    calibrator = StructuredScaling().fit(data.val_proba, data.val_labels)
    before = evaluate(data.test_labels, data.test_proba)
    after = evaluate(data.test_labels, calibrator.predict_proba(data.test_proba))

    print("Naive Bayes on handwritten digits: 600 rows to calibrate, 600 to judge.\n")
    print(f"{'':19}{'before':>12}{'after':>12}")
    for left, right in zip(str(before).splitlines(), str(after).splitlines(), strict=True):
        print(f"{left}{right.split()[-1]:>12}")
    confidence = data.test_proba.max(axis=1).mean()
    print(f"\nThe model was right in {before.accuracy:.0%} of the cases and said {confidence:.0%} on average.")
    print(f"After structured scaling its log-loss is {after.log_loss:.3f} instead of {before.log_loss:.3f}.")

    binned = MulticlassToBinary(HistogramBinning(points_per_bin=100), notion="confidence")
    print("\nWhat can be guaranteed, whatever the model:")
    print(binned.fit(data.val_proba, data.val_labels).guarantee())


if __name__ == "__main__":
    main()
