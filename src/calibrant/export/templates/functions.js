// Functions of exported ES modules: one per operation, and functions that several of them call.
// An exported module contains only the functions that it needs, without the comments above them.

// Compensated sum (Neumaier), because JavaScript has no exact sum.
function total(row) {
  let sum = 0, lost = 0;
  for (const x of row) {
    const next = sum + x;
    lost += Math.abs(sum) >= Math.abs(x) ? (sum - next) + x : (x - next) + sum;
    sum = next;
  }
  return sum + lost;
}

function place(edges, x, right) {
  let low = 0, high = edges.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (edges[middle] < x || (right && edges[middle] === x)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function entry(row, k) {
  return row.length === 1 ? row[0] : row[k];
}

function finite(row, eps) {
  if (!row.includes(-Infinity)) return row;
  const largest = Math.max(...row);
  const sum = total(row.map(x => Math.exp(x - largest)));
  const floor = largest + Math.log(sum) + Math.log(eps);
  const least = Math.min(floor, ...row.filter(x => x > -Infinity));
  return row.map(x => x === -Infinity ? least : x);
}

function clip(row, low, high) {
  return row.map(x => Math.min(Math.max(x, low), high));
}

function admit(row, low, high, slack) {
  return row.map(x => x >= low - slack && x <= high + slack ? Math.min(Math.max(x, low), high) : NaN);
}

function coalesce(row, other) {
  return row.map((x, k) => Number.isNaN(x) ? entry(other, k) : x);
}

function log(row) {
  return row.map(Math.log);
}

function log_odds(row) {
  return row.map(x => Math.log(x) - Math.log1p(-x));
}

function log_expit(row) {
  return row.map(x => Math.min(x, 0) - Math.log1p(Math.exp(-Math.abs(x))));
}

function expit(row) {
  return row.map(x => {
    const small = Math.exp(-Math.abs(x));
    return (x >= 0 ? 1 : small) / (1 + small);
  });
}

function divide(row, by) {
  return row.map(x => x / by);
}

function scale(row, factor, offset) {
  return row.map((x, k) => x * entry(factor, k) + entry(offset, k));
}

function affine(row, coef, offset) {
  return coef.map((line, j) => total(line.map((c, k) => c * row[k])) + offset[j]);
}

function center(row) {
  const mean = total(row) / row.length;
  return row.map(x => x - mean);
}

function softmax(row) {
  const largest = Math.max(...row);
  const powers = row.map(x => Math.exp(x - largest));
  const sum = total(powers);
  return powers.map(x => x / sum);
}

function log_softmax(row) {
  const largest = Math.max(...row);
  const shifted = row.map(x => x - largest);
  const sum = Math.log(total(shifted.map(Math.exp)));
  return shifted.map(x => x - sum);
}

function log_sum_exp(row) {
  const largest = Math.max(...row);
  return [largest + Math.log(total(row.map(x => Math.exp(x - largest))))];
}

function sum(row) {
  return [total(row)];
}

function normalize(row, empty) {
  const all = total(row);
  return row.map(x => all > 0 ? x / all : empty);
}

function add(row, other) {
  return row.map((x, k) => x + entry(other, k));
}

function multiply(row, other) {
  return row.map((x, k) => x * entry(other, k));
}

function quotient(row, other) {
  return row.map((x, k) => x / entry(other, k));
}

function mix(rows, weights, constant) {
  return rows[0].map((_, k) => rows.reduce((sum, row, i) => sum + weights[i] * row[k], constant));
}

function step(row, edges, values, right) {
  return row.map(x => values[place(edges, x, right)]);
}

function interpolate(row, points, starts, heights, slopes) {
  return row.map(x => {
    const j = place(points, x, true);
    return slopes[j] * (x - starts[j]) + heights[j];
  });
}

function bumps(row, centers, heights, width) {
  return row.map(x => total(centers.map((c, j) => {
    const far = (x - c) / width;
    return heights[j] * Math.exp(-0.5 * far * far);
  })));
}

function top(row, count) {
  return row.map((_, k) => k).sort((a, b) => row[b] - row[a] || a - b).slice(0, count);
}

function columns(row, chosen) {
  return chosen.map(k => row[k]);
}

function stack(rows) {
  return rows.flat();
}

function constant(row, values) {
  return values;
}

function take(row, label) {
  return label.map(k => row[k]);
}

function put(row, label, values) {
  const out = [...row];
  label.forEach((k, place) => { out[k] = entry(values, place); });
  return out;
}
