// The population dynamics of the two-layer CNN, ERM and PDE beside each other, as in pde_nb.theory.explorer.
//
// Functions without a page: explorer.html draws what they compute, and the notebook
// nbs/03_theory/11_explore.ipynb runs them with node beside the Python ones. A setting has the
// names and the units of `explore`; a curve is [of ERM, of PDE]. Sums are taken in numpy's order.
"use strict";

(function (root) {
  const STAGES = 8; // expansions
  const N = 10000; // examples of the training set
  const STEPS = 2500; // computed steps of a run, at most
  const BOUND = 1e5; // of what is drawn; beyond it a run has diverged

  const PAPER = {
    alpha: 0.98, // share of agreeing examples
    beta_c: 0.2, // strength of the core feature
    beta_s: 1.0, // strength of the spurious feature
    sigma_0: 0.1, // standard deviation of the initial weights
    lr: 0.03, // learning rate, in the form that `dampened` says
    gamma: 0.9, // momentum coefficient
    dampened: false, // g ← γg + (1 − γ)∇ instead of g ← γg + ∇
    warmup: null, // iterations; null: as long as the theory says
    expand_by: 100, // examples of each expansion
    seed: 0, // of the initial weights
  };

  const STARTS = {
    "case 1: weak core feature": PAPER,
    "case 2: strong core feature": { ...PAPER, beta_c: 1.0, beta_s: 0.2 },
    "case 1, momentum dampened as in the paper": { ...PAPER, dampened: true },
    "case 1, warm-up too short": { ...PAPER, warmup: 100 },
    "case 1, all examples at once after the warm-up": { ...PAPER, expand_by: 10000 },
    "case 1, learning rate too large": { ...PAPER, lr: 3.0 },
  };

  /** The steps are too long: the message says what to change. */
  class Diverged extends Error {}

  // ---- numbers ------------------------------------------------------------------------------

  /** The nearest whole number, of two the even one, as Python rounds. */
  function roundEven(x) {
    const below = Math.floor(x);
    const rest = x - below;
    if (rest !== 0.5) return rest < 0.5 ? below : below + 1;
    return below % 2 === 0 ? below : below + 1;
  }

  const cube = (x) => x * x * x;
  const sigmoid = (x) => 1 / (1 + Math.exp(-x));
  const softplus = (x) => (x > 0 ? x + Math.log1p(Math.exp(-x)) : Math.log1p(Math.exp(x)));

  const partial = new Float64Array(8);

  /** The sum of the cubes of up to 128 numbers in numpy's order: eight partial sums, then the rest. */
  function sumCubes(x) {
    const whole = x.length - (x.length % 8);
    partial.fill(0);
    for (let i = 0; i < whole; i += 8) for (let k = 0; k < 8; k++) partial[k] += cube(x[i + k]);
    const r = partial;
    let total = r[0] + r[1] + (r[2] + r[3]) + (r[4] + r[5] + (r[6] + r[7]));
    for (let i = whole; i < x.length; i++) total += cube(x[i]);
    return total;
  }

  function largest(x) {
    let top = -Infinity;
    for (const v of x) {
      if (Number.isNaN(v)) return NaN;
      if (v > top) top = v;
    }
    return top;
  }

  // ---- the model ----------------------------------------------------------------------------

  /** F = β³ Σ_j x_j³: what a feature's patch contributes to the output. */
  function featureOutput(x, beta) {
    return cube(beta) * sumCubes(x);
  }

  /** Learning rate of gradient descent without momentum that covers the same way. */
  function plainRate(s) {
    return s.dampened ? s.lr : s.lr / (1 - s.gamma);
  }

  /** Initial alignments of the filters with the core and with the spurious feature. */
  function start(s, draws) {
    const seed = draws[s.seed];
    if (!seed) throw new RangeError(`seed=${s.seed}; use a whole number from 0 to ${draws.length - 1}.`);
    const scale = (x) => Float64Array.from(x, (v) => s.sigma_0 * v);
    return { c: scale(seed.core), s: scale(seed.spurious) };
  }

  /** Sizes of PDE's active set and its shares of agreeing examples, for the warm-up and each expansion. */
  function shares(s) {
    const smallest = Math.max(1, roundEven(((1 - s.alpha) * N) / 2));
    const sizes = [];
    for (let k = 0; k <= STAGES; k++) sizes.push(Math.min(4 * smallest + s.expand_by * k, N));
    return { sizes, alphaHat: sizes.map((size) => 1 - (2 * smallest) / size) };
  }

  /** The largest alignment at which the output is F, for initial alignments x. */
  function level(x, beta, F) {
    const top = largest(x);
    const moved = new Float64Array(x.length);
    const output = (q) => {
      for (let j = 0; j < x.length; j++) moved[j] = x[j] / (1 - (q * x[j]) / top);
      return featureOutput(moved, beta);
    };
    if (output(0) >= F) return top;
    let low = 0;
    let high = 1 - 1e-9;
    for (let i = 0; i < 100; i++) {
      const q = (low + high) / 2;
      if (output(q) >= F) high = q;
      else low = q;
    }
    return top / (1 - low);
  }

  /** Iterations that a balanced warm-up needs to bring the core output to 1, in short steps. */
  function warmupIterations(s, c) {
    const moved = new Float64Array(c.length);
    const output = (u) => {
      for (let j = 0; j < c.length; j++) moved[j] = c[j] / (1 - u * c[j]);
      return featureOutput(moved, s.beta_c);
    };
    let low = 0;
    let high = 1 / largest(c);
    for (let i = 0; i < 100; i++) {
      const u = (low + high) / 2;
      if (output(u) >= 1) high = u;
      else low = u;
    }
    const points = 4000;
    const width = low / points;
    let integral = 0;
    let before = 1 + Math.exp(output(0));
    for (let i = 1; i <= points; i++) {
      const now = 1 + Math.exp(output(i === points ? low : i * width));
      integral += (width * (before + now)) / 2;
      before = now;
    }
    return Math.ceil(integral / (3 * plainRate(s) * cube(s.beta_c)));
  }

  /** Iterations that the core feature needs on a balanced set: full steps and momentum are late. */
  function predictedWarmup(s, draws) {
    const { c } = start(s, draws);
    const late = ((1 + s.gamma) / (1 - s.gamma)) * Math.log(level(c, s.beta_c, 1) / largest(c));
    return Math.ceil(warmupIterations(s, c) + late);
  }

  /** Iterations of the warm-up and after each expansion. */
  function lengths(s, draws) {
    const needed = predictedWarmup(s, draws);
    const warmup = s.warmup === null ? needed : s.warmup;
    const after = Math.floor((Math.max(400, 2 * needed, 2 * warmup) - warmup) / STAGES);
    return [warmup, ...Array(STAGES).fill(Math.max(1, after))];
  }

  // ---- a run --------------------------------------------------------------------------------

  /** One world, ERM or PDE: the alignments and the accumulated gradients. */
  function makeWorld(initial) {
    const zero = () => new Float64Array(initial.c.length);
    return { c: initial.c.slice(), s: initial.s.slice(), gc: zero(), gs: zero() };
  }

  /** Moves one feature's alignments along their gradient, -3 pull x², with dampened momentum. */
  function descend(x, g, pull, lr, gamma) {
    for (let j = 0; j < x.length; j++) {
      const gradient = (1 - gamma) * (-3 * pull * (x[j] * x[j]));
      g[j] = gamma * g[j] + gradient;
      x[j] -= lr * g[j];
    }
  }

  /** One step on the population with a share of agreeing examples: S and D are its mean residuals. */
  function step(world, s, alphaHat, lr, gamma) {
    const Fc = featureOutput(world.c, s.beta_c);
    const Fs = featureOutput(world.s, s.beta_s);
    const agree = alphaHat * sigmoid(-Fc - Fs);
    const conflict = (1 - alphaHat) * sigmoid(-Fc + Fs);
    descend(world.c, world.gc, cube(s.beta_c) * (agree + conflict), lr, gamma);
    descend(world.s, world.gs, cube(s.beta_s) * (agree - conflict), lr, gamma);
  }

  /** Iterations that one computed step stands for: short enough for the stronger feature. */
  function merging(s, total, steps) {
    const short = 0.3 / (plainRate(s) * Math.max(s.beta_c, s.beta_s) ** 2);
    return Math.max(1, Math.min(total / steps, short));
  }

  /** A point of the curves. Throws `Diverged` where the weights have left all bounds. */
  function point(worlds, s, t) {
    const row = {
      t: roundEven(t),
      core: worlds.map((w) => largest(w.c)),
      spurious: worlds.map((w) => largest(w.s)),
      F_c: worlds.map((w) => featureOutput(w.c, s.beta_c)),
      F_s: worlds.map((w) => featureOutput(w.s, s.beta_s)),
    };
    const values = [...row.core, ...row.spurious, ...row.F_c, ...row.F_s];
    if (values.every((v) => Number.isFinite(v) && Math.abs(v) < BOUND)) return row;
    const when = row.t.toLocaleString("en");
    const what = `The steps are too long: the weights leave all bounds within ${when} iterations.`;
    const also = s.dampened || !s.gamma ? "" : ", less momentum, or its dampened form";
    throw new Diverged(`${what} Take a smaller learning rate (now ${s.lr})${also}.`);
  }

  /** Steps to the next point: fewer where an alignment is moving fast. */
  function nextPoints(row, before, m, longest) {
    let change = 0;
    for (const name of ["core", "spurious"]) {
      for (const w of [0, 1]) change = Math.max(change, Math.abs(row[name][w] / before[name][w] - 1));
    }
    if (change > 0.08) return Math.max(1, Math.floor(m / 2));
    if (change < 0.03) return Math.min(longest, 2 * m);
    return m;
  }

  /** ERM and PDE on the population: points, stages as {t, alphaHat}, and iterations per computed step. */
  function rows(s, draws, steps) {
    const initial = start(s, draws);
    const worlds = [makeWorld(initial), makeWorld(initial)];
    const iterations = lengths(s, draws);
    const total = iterations.reduce((a, b) => a + b, 0);
    const merged = merging(s, total, steps);
    const longest = Math.max(1, Math.floor(Math.min(total / merged, steps) / 60));
    const { alphaHat } = shares(s);
    const points = [point(worlds, s, 0)];
    const stages = [];
    let t = 0;
    let m = 1; // steps to the next point
    iterations.forEach((wanted, stage) => {
      stages.push({ t: roundEven(t), alphaHat: alphaHat[stage] });
      const n = Math.min(wanted, steps * merged - t); // the picture ends where merged steps are too many
      let left = Math.ceil(n / merged);
      const ratio = n / Math.max(left, 1);
      const lr = plainRate(s) * ratio;
      const gamma = s.gamma ** ratio;
      while (left > 0) {
        const taken = Math.min(m, left);
        for (let i = 0; i < taken; i++) {
          step(worlds[0], s, s.alpha, lr, gamma);
          step(worlds[1], s, alphaHat[stage], lr, gamma);
        }
        t += taken * ratio;
        left -= taken;
        points.push(point(worlds, s, t));
        m = nextPoints(points[points.length - 1], points[points.length - 2], m, longest);
      }
    });
    return { points, stages, merged, total, warmup: iterations[0] };
  }

  /** The curves of ERM and PDE. Throws `Diverged` where the learning rate is too large. */
  function population(s, draws, steps = STEPS) {
    const run = rows(s, draws, steps);
    const column = (name) => [0, 1].map((w) => run.points.map((p) => p[name][w]));
    const curves = { t: run.points.map((p) => p.t) };
    for (const name of ["core", "spurious", "F_c", "F_s"]) curves[name] = column(name);
    curves.worst_loss = curves.F_c.map((F, w) => F.map((f, i) => softplus(Math.abs(curves.F_s[w][i]) - f)));
    return { ...curves, stages: run.stages, merged: run.merged, total: run.total, warmup: run.warmup };
  }

  // ---- what happened ------------------------------------------------------------------------

  /** The iteration from which the output of a feature is at least 1, for ERM and PDE; null: never. */
  function learned(curves, feature) {
    return curves[feature === "core" ? "F_c" : "F_s"].map((F) => {
      const i = F.findIndex((f) => f >= 1);
      return i < 0 ? null : curves.t[i];
    });
  }

  /** The iteration from which on the worst group is classified rightly to the end; null: it is not. */
  function rightFrom(curves, w) {
    let from = null;
    curves.t.forEach((t, i) => {
      const right = curves.F_c[w][i] > Math.abs(curves.F_s[w][i]);
      if (!right) from = null;
      else if (from === null) from = t;
    });
    return from;
  }

  /** What `sec:implication` says of ERM: 'spurious' or 'core', 'silent' between, 'outside' below ½. */
  function implication(s) {
    if (!(s.alpha > 0.5)) return "outside";
    if (cube(s.beta_c) < cube(s.beta_s) * (2 * s.alpha - 1)) return "spurious";
    return s.beta_c > s.beta_s ? "core" : "silent";
  }

  /** Heights, as strength × alignment, at which the features are learned and the spurious one stops. */
  function levels(s, draws) {
    const initial = start(s, draws);
    return {
      core: s.beta_c * level(initial.c, s.beta_c, 1),
      spurious: s.beta_s * level(initial.s, s.beta_s, 1),
      stop: s.beta_s * level(initial.s, s.beta_s, Math.log(s.alpha / (1 - s.alpha))),
    };
  }

  const explorer = {
    ...{ PAPER, STARTS, Diverged, shares, level, levels, predictedWarmup, lengths },
    ...{ population, learned, rightFrom, implication },
  };
  if (typeof module === "object") module.exports = explorer;
  else root.explorer = explorer;
})(globalThis);
