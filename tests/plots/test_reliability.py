from __future__ import annotations

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from scipy.special import softmax

import notion_names
from calibrant import MulticlassToBinary, PlattScaling, TemperatureScaling
from calibrant._output.numbers import format_number
from calibrant.binary import HistogramBinning
from calibrant.binning import merge_small_bins
from calibrant.datasets import digits_predictions, draw_labels, noisy_simplex, two_label_example
from calibrant.inference import calibration_band
from calibrant.metrics import calibration_curve, expected_calibration_error
from calibrant.plots import ReliabilityDisplay
from calibrant.plots._style import WIDEST
from calibrant.plots.reliability import OVERLAY


@pytest.fixture(scope="module")
def data():
    return noisy_simplex(500, 4, 0.4, rng=3)


def points(ax):
    """Places of all points, solid ones first."""
    drawn = [c for c in ax.collections if isinstance(c, PathCollection)]
    return np.concatenate([np.asarray(c.get_offsets()) for c in drawn])


def places(table, claim=0):
    """Mean score and frequency of the occupied bins."""
    used = table.weight[claim] > 0
    return np.column_stack([table.mean_score[claim, used], table.mean_outcome[claim, used]])


def in_order(offsets):
    return offsets[np.argsort(offsets[:, 0], kind="stable")]


def test_points_lie_at_mean_score_and_frequency_of_the_given_bins(data):
    display = ReliabilityDisplay.from_predictions(data.labels, data.proba, n_bins=10).plot()
    table = calibration_curve(data.labels, data.proba, n_bins=10)
    np.testing.assert_allclose(in_order(points(display.axes_[0])), places(table))


def test_the_default_merges_bins_with_few_rows_and_keeps_the_error():
    data = digits_predictions()
    display = ReliabilityDisplay.from_predictions(data.test_labels, data.test_proba).plot()
    drawn = places(merge_small_bins(display.table))
    assert len(drawn) == 2  # 22 of 600 rows, and the other 578
    np.testing.assert_allclose(in_order(points(display.axes_[0])), drawn)
    assert display.error == expected_calibration_error(data.test_labels, data.test_proba)


def test_bins_with_few_rows_are_hollow_and_no_line_joins_points():
    data = digits_predictions()
    display = ReliabilityDisplay.from_predictions(data.test_labels, data.test_proba, n_bins=15)
    main = display.plot().axes_[0]
    solid, hollow = (c for c in main.collections if isinstance(c, PathCollection))
    rows = display.table.weight[0][display.table.weight[0] > 0]
    assert len(hollow.get_offsets()) == (rows < np.sqrt(600)).sum()
    assert len(hollow.get_facecolor()) == 0
    assert len(solid.get_facecolor()) == 1
    assert [len(line.get_xdata()) for line in main.lines] == [2]  # the diagonal


def test_the_area_of_a_point_grows_with_its_rows(data):
    display = ReliabilityDisplay.from_predictions(data.labels, data.proba, n_bins=5).plot()
    rows = display.table.weight[0][display.table.weight[0] >= np.sqrt(500)]
    solid = next(c for c in display.axes_[0].collections if isinstance(c, PathCollection))
    assert np.corrcoef(rows, solid.get_sizes())[0, 1] == pytest.approx(1)


def bars(ax):
    """(left, bottom, width, height) of the bars of each container."""
    return [
        [(p.get_x(), p.get_y(), p.get_width(), p.get_height()) for p in c] for c in ax.containers
    ]


def test_the_histogram_holds_the_shares_of_the_rows(data):
    display = ReliabilityDisplay.from_predictions(data.labels, data.proba, n_bins=10).plot()
    table = calibration_curve(data.labels, data.proba, n_bins=10)
    (shares,) = bars(display.axes_[1])
    np.testing.assert_allclose([b[3] for b in shares], table.weight[0][table.weight[0] > 0] / 500)
    assert sum(b[3] for b in shares) == pytest.approx(1)


def test_lines_in_the_histogram_are_mean_score_and_accuracy(data):
    display = ReliabilityDisplay.from_predictions(data.labels, data.proba).plot()
    top = data.proba.max(axis=1)
    drawn = [line.get_xdata()[0] for line in display.axes_[1].lines]
    np.testing.assert_allclose(
        drawn, [top.mean(), (data.proba.argmax(axis=1) == data.labels).mean()]
    )


@pytest.mark.parametrize("notion", notion_names.WITH_PAIRS)
def test_every_notion_is_drawn_with_its_error_in_the_title(notion, data):
    display = ReliabilityDisplay.from_predictions(data.labels, data.proba, notion=notion).plot()
    error = expected_calibration_error(data.labels, data.proba, notion=notion)
    assert display.error == pytest.approx(error, abs=1e-15)
    title = display.figure_.get_suptitle() or display.axes_[0].get_title(loc="left")
    assert f"ECE {format_number(error)}" in title


def test_points_stand_for_bins_made_from_the_data(data):
    display = ReliabilityDisplay.from_predictions(
        data.labels, data.proba, strategy="quantile", n_bins=8
    ).plot()
    table = calibration_curve(data.labels, data.proba, strategy="quantile", n_bins=8)
    np.testing.assert_allclose(in_order(points(display.axes_[0])), places(table))


def test_before_and_after_are_two_series_of_their_own_tables(data):
    calibrated = TemperatureScaling().fit(data.proba, data.labels).predict_proba(data.proba)
    display = ReliabilityDisplay.from_predictions(
        data.labels, calibrated, before=data.proba, n_bins=15
    ).plot()
    both = [places(calibration_curve(data.labels, proba)) for proba in (data.proba, calibrated)]
    np.testing.assert_allclose(
        in_order(points(display.axes_[0])), in_order(np.concatenate(both)), atol=1e-12
    )
    assert display.before_error == pytest.approx(
        expected_calibration_error(data.labels, data.proba)
    )


def test_the_histogram_mirrors_the_shares_before_and_after(data):
    calibrated = TemperatureScaling().fit(data.proba, data.labels).predict_proba(data.proba)
    display = ReliabilityDisplay.from_predictions(
        data.labels, calibrated, before=data.proba, n_bins=7
    ).plot()
    drawn = bars(display.axes_[1])
    for heights, sign, proba in zip(drawn, (1, -1), (data.proba, calibrated), strict=True):
        weight = calibration_curve(data.labels, proba, n_bins=7).weight[0]
        shares = sign * weight[weight > 0] / 500
        np.testing.assert_allclose([bar[3] for bar in heights], shares)


def test_the_class_wise_grid_has_an_axes_per_class_in_order(data):
    display = ReliabilityDisplay.from_predictions(
        data.labels, data.proba, notion="class-wise"
    ).plot()
    assert [ax.get_title(loc="left").split(":")[0] for ax in display.axes_] == [
        f"class {k}" for k in range(4)
    ]


def test_of_many_classes_the_worst_are_drawn_first(rng):
    proba = rng.dirichlet(np.full(100, 0.1), 2000)
    y = draw_labels(proba, rng=rng)
    wrong = proba.copy()
    wrong[:, [17, 42]] = wrong[:, [42, 17]]
    display = ReliabilityDisplay.from_predictions(y, wrong, notion="class-wise").plot(max_claims=6)
    assert len(display.axes_) == 6
    assert {ax.get_title(loc="left").split(":")[0] for ax in display.axes_[:2]} == {
        "class 17",
        "class 42",
    }
    assert "6 largest errors of 100" in display.figure_.get_suptitle()


def test_claim_errors_are_those_of_single_classes(data):
    display = ReliabilityDisplay.from_predictions(data.labels, data.proba, notion="class-wise")
    single = [
        expected_calibration_error(data.labels, data.proba, notion=f"class-{k}") for k in range(4)
    ]
    np.testing.assert_allclose(display.claim_errors, single)


def test_stars_and_pluses_of_the_two_label_example():
    example = two_label_example()
    display = ReliabilityDisplay.from_predictions(
        example.labels, example.proba, notion="top-label", n_bins=10
    )
    np.testing.assert_allclose(display.stars[6], [0.6, 0.6])
    np.testing.assert_allclose(display.pluses[6], [0.6, 0.2])
    assert np.isnan(display.stars[[0, 9]]).all()


def test_stars_are_the_confidence_diagram_and_pluses_the_mean_gap_on_its_side(data):
    display = ReliabilityDisplay.from_predictions(data.labels, data.proba, notion="top-label")
    table = calibration_curve(data.labels, data.proba)
    np.testing.assert_allclose(
        display.stars, np.column_stack([table.mean_score[0], table.mean_outcome[0]])
    )
    used = table.weight[0] > 0
    offset = (display.pluses - display.stars)[used, 1] * np.sign(
        display.stars[used, 1] - display.stars[used, 0]
    )
    assert (offset >= -1e-12).all()
    share = table.weight[0, used] / 500
    assert share @ np.abs(display.pluses[used, 1] - display.pluses[used, 0]) == pytest.approx(
        display.error
    )


def test_the_top_label_figure_draws_stars_pluses_and_class_points(data):
    display = ReliabilityDisplay.from_predictions(
        data.labels, data.proba, notion="top-label", n_bins=10
    )
    display.plot(details=(5, 7))
    overview, points, counts = display.axes_[:3]
    stars, pluses = overview.collections[1], overview.collections[2]
    np.testing.assert_allclose(np.asarray(stars.get_offsets()), display.stars)
    np.testing.assert_allclose(np.asarray(pluses.get_offsets()), display.pluses)
    table = display.table
    shown = table.weight[:, 5] > 0
    expected = np.column_stack([table.mean_score[shown, 5], table.mean_outcome[shown, 5]])
    np.testing.assert_allclose(points.collections[1].get_offsets(), expected)
    np.testing.assert_allclose([p.get_width() for p in counts.patches], table.weight[shown, 5])


def test_details_outside_the_bins_are_rejected(data):
    display = ReliabilityDisplay.from_predictions(
        data.labels, data.proba, notion="top-label", n_bins=5
    )
    with pytest.raises(ValueError, match="a bin of details must be one of 0, 1, 2, 3, 4, got 5"):
        display.plot(details=(5,))


def test_top_label_of_resnet50_with_ten_bins_is_the_published_figure(real_data):
    data = real_data("cifar10_resnet50_gupta")
    proba = softmax(data["test_logits"].astype(np.float64), axis=1)
    y = data["test_labels"].ravel()
    display = ReliabilityDisplay.from_predictions(y, proba, notion="top-label", n_bins=10)
    # Gupta & Ramdas, section 2.1: bin 6 has confidence 0.545 and lies nearly on the diagonal, yet
    # the accuracy is about 0.2 where their class 1 (column 0) is predicted and about 0.9 for class
    # 8 (column 7)
    np.testing.assert_allclose(display.stars[5], [0.5453, 0.5564], atol=1e-4)
    assert display.table.mean_outcome[0, 5] == pytest.approx(2 / 9)
    assert display.table.mean_outcome[7, 5] == pytest.approx(7 / 8)
    # nearly 92 % of the points are in the last bin, where class 4 (column 3) is off by about 0.05
    assert display.table.weight.sum(axis=0)[9] / 10_000 == pytest.approx(0.92, abs=0.005)
    assert display.table.gap[3, 9] == pytest.approx(0.05, abs=0.005)
    assert display.details == (5, 9)


def test_densenet40_before_and_after_temperature_scaling_has_the_published_errors(real_data):
    data = real_data("cifar10_densenet40_kull_sample")
    calibrator = TemperatureScaling(inputs="logits").fit(data["val_logits"], data["val_labels"])
    before = softmax(data["test_logits"].astype(np.float64), axis=1)
    after = calibrator.predict_proba(data["test_logits"])
    display = ReliabilityDisplay.from_predictions(data["test_labels"], after, before=before)
    assert display.before_error == pytest.approx(0.0550, abs=5e-5)  # published with four digits
    assert display.error == pytest.approx(0.00946, abs=5e-6)  # published with five


def test_a_fitted_binning_calibrator_gives_the_bins():
    data = digits_predictions()
    reduction = MulticlassToBinary(HistogramBinning(points_per_bin=20), notion="confidence").fit(
        data.val_proba, data.val_labels
    )
    display = ReliabilityDisplay.from_predictions(
        data.test_labels, data.test_proba, bins=reduction
    ).plot()
    assert display.table.n_bins == reduction.bins_.n_bins


def test_reported_labels_are_judged():
    data = digits_predictions()
    reduction = MulticlassToBinary(PlattScaling(), notion="top-label").fit(
        data.val_proba, data.val_labels
    )
    label, score = reduction.predict_top(data.test_proba)
    options = {"notion": "top-label", "y_pred": label, "classes": data.class_names}
    display = ReliabilityDisplay.from_predictions(data.test_labels, score, **options)
    assert display.error == expected_calibration_error(data.test_labels, score, **options)


def test_string_classes_name_the_axes(data):
    names = np.array(["ant", "bee", "cat", "dog"])
    options = {"notion": "class-wise", "classes": names}
    display = ReliabilityDisplay.from_predictions(names[data.labels], data.proba, **options).plot()
    assert display.names == ("class ant", "class bee", "class cat", "class dog")


def test_a_band_counts_the_effective_rows(data):
    weight = np.ones(500)
    weight[:100] = 2
    twice = np.concatenate([np.arange(500), np.arange(100)])
    one = ReliabilityDisplay.from_predictions(data.labels, data.proba, sample_weight=weight)
    other = ReliabilityDisplay.from_predictions(data.labels[twice], data.proba[twice])
    np.testing.assert_allclose(one.table.mean_outcome, other.table.mean_outcome)
    wider = np.nansum(one.band[1] - one.band[0]) - np.nansum(other.band[1] - other.band[0])
    assert wider > 0
    same = ReliabilityDisplay.from_predictions(
        data.labels, data.proba, sample_weight=np.full(500, 0.002)
    )
    plain = ReliabilityDisplay.from_predictions(data.labels, data.proba)
    np.testing.assert_allclose(same.band, plain.band)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"band": "normal"},
            "band must be one of 'binomial', 'resampling', 'simultaneous', None, got 'normal'",
        ),
        (
            {"curve": "isotonic", "notion": "class-wise"},
            "curve='isotonic' needs one claim, but notion 'class-wise' has 4",
        ),
        ({"level": 1.0}, "level must lie between 0 and 1, .*got 1.0"),
        (
            {"band": "resampling", "n_resamples": 0},
            "n_resamples must be an integer of at least 1, got 0",
        ),
    ],
)
def test_bad_options_are_rejected(options, message, data):
    with pytest.raises(ValueError, match=message):
        ReliabilityDisplay.from_predictions(data.labels, data.proba, **options)


def test_a_resampled_band_of_reported_labels_is_that_of_their_scores(data):
    options = {"notion": "confidence", "band": "resampling", "n_resamples": 50, "rng": 0}
    whole = ReliabilityDisplay.from_predictions(data.labels, data.proba, **options)
    reported = ReliabilityDisplay.from_predictions(
        data.labels, data.proba.max(axis=1), y_pred=data.proba.argmax(axis=1), **options
    )
    np.testing.assert_array_equal(reported.band, whole.band)


def test_a_table_alone_makes_a_display(data):
    table = calibration_curve(data.labels, data.proba, notion="class-wise")
    display = ReliabilityDisplay(table, "class-wise").plot()
    assert display.error == expected_calibration_error(data.labels, data.proba, notion="class-wise")


@pytest.fixture
def two_models():
    data = digits_predictions()
    scaled = TemperatureScaling().fit(data.val_proba, data.val_labels)
    return data.test_labels, data.test_proba, scaled


def test_named_models_lie_over_each_other_in_one_axes(two_models):
    y, proba, scaled = two_models
    ax = Figure().add_subplot()
    first = ReliabilityDisplay.from_predictions(y, proba, name="raw", ax=ax)
    second = ReliabilityDisplay.from_estimator(scaled, proba, y, name="scaled", ax=ax)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == [
        f"raw (ECE {format_number(first.error)})",
        f"scaled (ECE {format_number(second.error)})",
    ]
    assert len(ax.figure.axes) == 1
    drawn = [line for line in ax.lines if line.get_gid() == OVERLAY]
    assert drawn[0].get_color() != drawn[1].get_color()
    assert sum(line.get_label().startswith("_") for line in ax.lines) == 1  # one diagonal


def test_a_line_takes_the_keywords_of_matplotlib(two_models):
    y, proba, _ = two_models
    display = ReliabilityDisplay.from_predictions(y, proba, name="raw")
    display.plot(Figure().add_subplot(), line_kw={"color": "#ff0000", "linewidth": 3})
    (line,) = [line for line in display.axes_[0].lines if line.get_gid() == OVERLAY]
    assert (line.get_color(), line.get_linewidth()) == ("#ff0000", 3)
    with pytest.raises(ValueError, match="line_kw requires a display with a name"):
        ReliabilityDisplay.from_predictions(y, proba).plot(line_kw={})


def test_a_named_display_of_several_claims_is_rejected(two_models):
    y, proba, _ = two_models
    display = ReliabilityDisplay.from_predictions(y, proba, notion="class-wise", name="raw")
    with pytest.raises(ValueError, match="A display with a name draws one line"):
        display.plot(Figure().add_subplot())


def test_an_estimator_is_drawn_by_what_it_predicts(two_models):
    y, proba, scaled = two_models
    drawn = ReliabilityDisplay.from_estimator(scaled, proba, y)
    assert drawn.error == ReliabilityDisplay.from_predictions(y, scaled.predict_proba(proba)).error


def test_neighbouring_displays_keep_their_legends_within_their_axes(two_models):
    y, proba, _ = two_models
    figure = Figure(figsize=(9, 5))
    figure.canvas.draw()
    for ax in figure.subplots(1, 2):
        main = ReliabilityDisplay.from_predictions(y, proba).plot(ax).axes_[0]
        figure.canvas.draw()
        legend, frame = main.get_legend().get_window_extent(), main.get_window_extent()
        assert frame.x0 <= legend.x0 <= legend.x1 <= frame.x1
        assert frame.y0 <= legend.y0 <= legend.y1 <= frame.y1


def test_a_simultaneous_band_is_that_of_the_calibration_curve(data):
    display = ReliabilityDisplay.from_predictions(data.labels, data.proba, band="simultaneous")
    table = display.drawn
    used = table.weight[0] > 0
    curve = calibration_band(data.labels, data.proba, level=0.9)
    expected = curve(table.score[0, used] / table.weight[0, used])
    np.testing.assert_allclose([end[0, used] for end in display.band], expected)
    assert display.plot()._handles[-1].get_label() == "90% confidence band"


def test_panels_are_in_at_most_four_columns_and_names_do_not_touch(rng):
    proba = rng.dirichlet(np.full(10, 0.5), 400)
    names = np.array([f"a long name {k}" for k in range(10)])
    y = names[draw_labels(proba, rng=rng)]
    display = ReliabilityDisplay.from_predictions(y, proba, notion="class-wise", classes=names)
    axes = display.plot().axes_
    assert axes[0].get_subplotspec().get_gridspec().ncols == 4
    assert display.figure_.get_figwidth() <= WIDEST
    assert all("\n" in ax.get_title(loc="left") for ax in axes)


def test_markers_at_the_corners_are_within_the_axes(data):
    main = ReliabilityDisplay.from_predictions(data.labels, data.proba).plot().axes_[0]
    for low, high in (main.get_xlim(), main.get_ylim()):
        assert low < 0 < 1 < high


def test_the_legend_covers_no_diagram_that_leaves_space_for_it(data):
    display = ReliabilityDisplay.from_predictions(data.labels, data.proba)
    for layout, is_inside in (("constrained", False), (None, True)):
        ax = Figure(figsize=(8, 4), layout=layout).subplots(1, 2)[0]
        main = display.plot(ax).axes_[0]
        assert (main.get_legend() is not None) is is_inside
