"use strict";
(function () {
  const report = JSON.parse(document.getElementById("report-data").textContent);
  const charts = {};

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const percent = (value) => (100 * value).toFixed(1) + " %";
  const className = (column) => report.classes[column];

  /* Error bars of points that have `low` and `high`: Chart.js has none of its own. */
  const whiskers = {
    id: "whiskers",
    beforeDatasetsDraw(chart) {
      chart.data.datasets.forEach((set, index) => {
        if (!set.whiskers || !chart.isDatasetVisible(index)) return;
        const context = chart.ctx;
        context.save();
        context.strokeStyle = set.borderColor;
        context.globalAlpha = 0.6;
        context.lineWidth = 1.5;
        set.data.forEach((point) => {
          const x = chart.scales.x.getPixelForValue(point.x);
          context.beginPath();
          context.moveTo(x, chart.scales.y.getPixelForValue(point.low));
          context.lineTo(x, chart.scales.y.getPixelForValue(point.high));
          context.stroke();
        });
        context.restore();
      });
    },
  };

  function axis(title, options) {
    return Object.assign(
      { title: { display: true, text: title, color: color("soft") }, ticks: { color: color("soft") }, grid: { color: color("line") } },
      options
    );
  }

  function base(extra) {
    return Object.assign(
      {
        responsive: true,
        maintainAspectRatio: false,
        animation: false,
        plugins: { legend: { labels: { color: color("ink"), usePointStyle: true, boxWidth: 9, boxHeight: 9, padding: 14 } } },
      },
      extra
    );
  }

  function draw(id, config) {
    if (charts[id]) charts[id].destroy();
    charts[id] = new Chart(document.getElementById(id), config);
  }

  function points(curve) {
    return curve.score.map((score, i) => ({
      x: score, y: curve.frequency[i], low: curve.low[i], high: curve.high[i], count: curve.count[i],
    }));
  }

  function series(label, curve, name, shape) {
    return {
      label, data: points(curve), whiskers: true, borderColor: color(name), backgroundColor: color(name),
      pointStyle: shape, pointRadius: 5, pointHoverRadius: 8, borderWidth: 2, tension: 0,
    };
  }

  function drawReliability(chosen) {
    const diagonal = {
      label: "honest", data: [{ x: 0, y: 0 }, { x: 1, y: 1 }], borderColor: color("soft"), borderDash: [6, 5],
      borderWidth: 1.5, pointRadius: 0, pointHoverRadius: 0, pointStyle: "line",
    };
    const options = base({
      interaction: { mode: "nearest", intersect: false },
      scales: {
        x: axis("reported probability", { type: "linear", min: 0, max: 1 }),
        y: axis("how often it came true", { type: "linear", min: 0, max: 1 }),
      },
    });
    options.plugins.tooltip = {
      filter: (item) => item.dataset.whiskers,
      callbacks: {
        label: (item) => item.dataset.label + ": said " + percent(item.raw.x) + ", came true " + percent(item.raw.y),
        afterLabel: (item) =>
          "95 % interval " + percent(item.raw.low) + " to " + percent(item.raw.high) + ", " + item.raw.count + " rows",
      },
    };
    const datasets = [series("before", chosen.before, "before", "rectRot"), series("after", chosen.after, "after", "circle"), diagonal];
    draw("chart-reliability", { type: "line", data: { datasets }, options, plugins: [whiskers] });
  }

  function drawCounts(chosen) {
    /* Side by side: a little to the left and to the right of where they belong. */
    const bars = (label, curve, name, shift) => ({
      label, data: curve.score.map((score, i) => ({ x: score + shift, y: curve.count[i], mean: score })),
      backgroundColor: color(name), borderColor: color(name), barThickness: 6, grouped: false, pointStyle: label === "before" ? "rectRot" : "circle",
    });
    const options = base({
      scales: {
        x: axis("reported probability", { type: "linear", min: -0.02, max: 1.02, offset: false, ticks: { color: color("soft"), stepSize: 0.2, includeBounds: false } }),
        y: axis("rows", { beginAtZero: true }),
      },
    });
    options.plugins.tooltip = { callbacks: { title: (items) => "mean " + percent(items[0].raw.mean) } };
    const datasets = [bars("before", chosen.before, "before", -0.008), bars("after", chosen.after, "after", 0.008)];
    draw("chart-counts", { type: "bar", data: { datasets }, options });
  }

  function drawKs() {
    const line = (label, values, name, dash) => ({
      label, data: values.map((value, i) => ({ x: report.ks.share[i], y: value })), borderColor: color(name),
      backgroundColor: color(name), borderWidth: 2, borderDash: dash, pointRadius: 0, pointHoverRadius: 5, tension: 0,
    });
    const options = base({
      interaction: { mode: "index", intersect: false },
      scales: {
        x: axis("share of rows, least sure first", { type: "linear", min: 0, max: 1 }),
        y: axis("outcomes minus confidences", {}),
      },
    });
    options.plugins.tooltip = {
      callbacks: {
        title: (items) => "the " + percent(items[0].raw.x) + " least sure rows",
        label: (item) => item.dataset.label + ": " + item.raw.y.toFixed(4),
      },
    };
    const datasets = [line("before", report.ks.before, "before", []), line("after", report.ks.after, "after", [])];
    draw("chart-ks", { type: "line", data: { datasets }, options });
  }

  function drawDecomposition() {
    const parts = report.decomposition;
    const bar = (label, place, name) => ({
      label, data: [parts.before[place], parts.after[place]], backgroundColor: color(name), stack: "loss", pointStyle: "rect",
    });
    const options = base({
      indexAxis: "y",
      scales: { x: axis("log-loss", { stacked: true }), y: axis("", { stacked: true, title: { display: false } }) },
    });
    options.plugins.tooltip = { callbacks: { label: (item) => item.dataset.label + ": " + item.raw.toFixed(5) } };
    const datasets = [bar("calibration (can be mended)", 0, "before"), bar("refinement (what is left)", 1, "after")];
    draw("chart-decomposition", { type: "bar", data: { labels: ["before", "after"], datasets }, options });
  }

  function fillTable(chosen) {
    const body = document.querySelector("#table-reliability tbody");
    body.replaceChildren();
    for (const when of ["before", "after"]) {
      const curve = chosen[when];
      curve.score.forEach((score, i) => {
        const row = body.insertRow();
        const cells = [when, percent(score), percent(curve.frequency[i]), percent(curve.low[i]) + " to " + percent(curve.high[i]), curve.count[i]];
        cells.forEach((text, place) => {
          const cell = row.insertCell();
          cell.textContent = text;
          if (place) cell.className = "number";
        });
      });
    }
  }

  const choice = document.getElementById("class-choice");

  function notion() {
    return document.querySelector("input[name=notion]:checked").value;
  }

  function fillClasses() {
    const own = report.reliability.filter((one) => one.notion === notion() && one.column !== null);
    choice.replaceChildren();
    own.forEach((one) => {
      const option = document.createElement("option");
      option.value = one.column;
      option.textContent = className(one.column);
      choice.append(option);
    });
    choice.parentElement.hidden = own.length === 0;
  }

  function show() {
    const chosen = report.reliability.find(
      (one) => one.notion === notion() && (one.column === null || String(one.column) === choice.value)
    );
    if (!chosen) return;
    drawReliability(chosen);
    drawCounts(chosen);
    fillTable(chosen);
    document.getElementById("caption-reliability").textContent = chosen.question;
    document.getElementById("chart-reliability").setAttribute("aria-label", "Reliability diagram. " + chosen.question);
    document.getElementById("chart-counts").setAttribute("aria-label", "Rows by reported probability. " + chosen.question);
  }

  function drawAll() {
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    show();
    drawKs();
    drawDecomposition();
  }

  function sortBy(heading) {
    const table = heading.closest("table");
    const place = heading.cellIndex;
    const order = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    const key = (row) => row.cells[place].dataset.value || row.cells[place].textContent;
    const compare = (a, b) => {
      const [x, y] = [key(a), key(b)];
      const numbers = x !== "" && y !== "" && !isNaN(x) && !isNaN(y);
      return order * (numbers ? x - y : x.localeCompare(y, undefined, { numeric: true }));
    };
    const rows = Array.from(table.tBodies[0].rows).sort(compare);
    table.tBodies[0].append(...rows);
    for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", order === 1 ? "ascending" : "descending");
  }

  document.querySelectorAll("th button").forEach((button) => {
    button.addEventListener("click", () => sortBy(button.closest("th")));
  });
  document.querySelectorAll("input[name=notion]").forEach((input) => {
    input.addEventListener("change", () => { fillClasses(); show(); });
  });
  choice.addEventListener("change", show);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  addEventListener("beforeprint", drawAll);
  addEventListener("afterprint", drawAll);
  fillClasses();
  drawAll();
})();
