"""The library beside the usual way of doing the same, both timed in turn in one process: ratios, no promises.

    python benchmarks/run.py all                        # everything, some minutes on one core
    python benchmarks/run.py synthetic prediction       # some parts
    python benchmarks/run.py waterbirds --root FOLDER   # the official pictures; without --root a made-up set
    python benchmarks/run.py all --quick                # tiny sizes, to see that it works
    python benchmarks/run.py all --device cuda --out FILE

Parts: synthetic (steps and a whole run of the paper's experiment), small (a whole run on a table), waterbirds
(a whole run on picture files), texts (a whole run on texts), prediction (rows of a trained model beside the
bare network), selection (validation looked at in full and as far as is needed). The usual way is what most
repositories of the field do: a DataLoader that makes each example when it is asked for, and validation and
test after every epoch. Where both compute the same, that is checked before a ratio is printed. Times are
medians of repeats, with the lowest and highest ratio of a repeat; the clock is that of the processor on a
CPU, so that other programs do not count, and that of the wall on a GPU.
"""

import argparse
import sys
import tempfile
import time
import warnings
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import numpy as np
import torch
from PIL import Image
from threadpoolctl import threadpool_limits
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset

from pde_nb.algorithm.metrics import count_correct
from pde_nb.core.environment import import_torchvision, surroundings
from pde_nb.inputs.batches import IMAGENET
from pde_nb.inputs.inputs import make_source
from pde_nb.inputs.preparation import Preparation
from pde_nb.methods.pde import PDE, default_schedule
from pde_nb.networks.models import make_model
from pde_nb.prediction.predictor import Predictor
from pde_nb.prediction.rows import new_rows
from pde_nb.published.published import PUBLISHED, read_published
from pde_nb.records.seals import write_sealed
from pde_nb.runs.spec import build, decide
from pde_nb.sources.data import from_arrays
from pde_nb.sources.examples import Pictures, Texts
from pde_nb.sources.tables import example_table, from_table
from pde_nb.theory.data_model import DataModel, dense_patches, draw_features, draw_sample
from pde_nb.theory.experiment import CASES, SYNTHETIC_PRESETS, after_warmup, draw_world, warm_up
from pde_nb.theory.network import descend, structured
from pde_nb.training.trainer import train

# ---- timing --------------------------------------------------------------------------------------


def seconds_in_turn(ways, repeats, clock):
    """Seconds of each way, a list of repeats, measured one after the other after one call of each."""
    for way in ways.values():
        way()
    found = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            before = clock()
            way()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            found[name].append(clock() - before)
    return found


def rows_of(what, found, usual="usual"):
    """A row for each way but the usual one."""
    rows = []
    for name, seconds in found.items():
        if name != usual:
            ratios = sorted(a / b for a, b in zip(found[usual], seconds))
            label = f"{what}, {name}" if name != "pde_nb" else what
            ends = dict(ratio=median(ratios), low=ratios[0], high=ratios[-1])
            rows.append(dict(what=label, usual=median(found[usual]), ours=median(seconds), **ends))
    return rows


# ---- the synthetic experiment ----------------------------------------------------------------------


FORMS = {"pde_nb": False, "compiled": True} if find_spec("numba") else {"pde_nb": False}  # of our steps


class ConvNet:
    """The network as PyTorch is usually written: strided Conv1d, cube, cross-entropy, SGD."""

    def __init__(self, W, dim, lr, gamma):
        self.half = half = len(W) // 2
        self.conv = torch.nn.Conv1d(1, len(W), dim, stride=dim)
        sign = np.repeat([1, -1], [half, len(W) - half])[:, None]  # the second head enters with a minus
        with torch.no_grad():
            self.conv.weight.copy_(torch.from_numpy((sign * W)[:, None, :dim]))
            self.conv.bias.copy_(
                torch.from_numpy((sign * W)[:, dim]) if W.shape[1] > dim else torch.zeros(len(W))
            )
        self.conv.bias.requires_grad_(W.shape[1] > dim)
        self.opt = torch.optim.SGD(
            [p for p in self.conv.parameters() if p.requires_grad], lr=lr, momentum=gamma
        )

    def load(self, patches, y):
        x = torch.from_numpy(np.ascontiguousarray(patches).reshape(len(y), 1, -1))
        return x, torch.from_numpy((np.asarray(y) > 0).astype(np.int64))

    def logits(self, x):
        z = (self.conv(x) ** 3).sum(2)
        return torch.stack([z[:, self.half :].sum(1), z[:, : self.half].sum(1)], 1)

    def step(self, x, target):
        loss = cross_entropy(self.logits(x), target)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

    def weights(self):
        half = self.half
        sign = torch.tensor([1.0] * half + [-1.0] * (len(self.conv.weight) - half))[:, None]
        return (sign * self.conv.weight.detach()[:, 0]).numpy()


def draw_by_loop(model, n, features):
    """Examples one by one in PyTorch, patches shuffled: the usual loop. Patches (n, P, d) and labels ±1."""
    v_c, v_s = map(torch.from_numpy, features)
    x, y = [], []
    for _ in range(n):
        label = 2 * torch.randint(0, 2, (1,)) - 1
        a = label if torch.rand(1) < model.alpha else -label
        noise = [torch.randn(model.dim) * model.sigma_p / model.dim**0.5 for _ in range(model.n_patches - 2)]
        patches = torch.stack([model.beta_c * label * v_c, model.beta_s * a * v_s, *noise])
        x.append(patches[torch.randperm(model.n_patches)])
        y.append(label)
    return torch.stack(x).numpy(), torch.cat(y).numpy()


def synthetic_steps(n, biases, calls, repeats, clock):
    """A step of gradient descent with momentum; the weights of both ways are compared first."""
    preset = SYNTHETIC_PRESETS["released" if biases else "paper"]
    rng = np.random.default_rng(0)
    sample = draw_sample(DataModel(sigma_p=preset.sigma_p), n, rng)
    width = preset.dim + biases
    W = (0.1 * rng.standard_normal((preset.n_filters, width))).astype(np.float32)
    net = ConvNet(W, preset.dim, 0.03, 0.9)
    x, target = net.load(dense_patches(sample, rng), sample.y)
    ways = {"usual": lambda: [net.step(x, target) for _ in range(calls)]}
    for name, fast in FORMS.items():
        ways[name] = partial(descend, W, structured(sample, biases, fast), calls, 0.03, 0.9)
    net.step(x, target)
    ours, _ = descend(W, structured(sample, biases), 1, 0.03, 0.9)
    apart = np.abs(net.weights() - ours[:, : preset.dim]).max()
    assert apart < 1e-5, f"the two ways are {apart:.1e} apart after a step"
    return rows_of(f"synthetic, step on {n:,} examples", seconds_in_turn(ways, repeats, clock))


def usual_experiment(preset, sizes):
    """The released schedule the usual way: data, warm-up, expansions, and the test accuracy after each."""
    rng = np.random.default_rng(0)
    model = DataModel(sigma_p=preset.sigma_p, **CASES[1])
    features = draw_features(model.dim, rng, np.float32)
    (x, y), test = (draw_by_loop(model, n, features) for n in (preset.n_train, preset.n_test))
    W = preset.init_scale * rng.uniform(-1, 1, (preset.n_filters, preset.dim + 1)).astype(np.float32)
    net = ConvNet(W, preset.dim, preset.lr, preset.gamma)
    test = net.load(*test)
    for k, n in enumerate(sizes):
        data = net.load(x[:n], y[:n])
        for _ in range(preset.expand_every if k else preset.warmup_iterations):
            net.step(*data)
        with torch.no_grad():
            float((net.logits(test[0]).argmax(1) == test[1]).float().mean())


def our_experiment(preset, fast):
    world = draw_world(preset, 1, 0, fast)
    after_warmup(world, warm_up(world), False, world.sizes[1:], preset.expand_every)


def bench_synthetic(args):
    preset = SYNTHETIC_PRESETS["released"]
    if args.quick:
        preset = replace(preset, n_train=2000, n_test=100, warmup_iterations=5, expand_every=2)
    small = replace(preset, n_balanced=4, n_valid=4)
    sizes = draw_world(preset, 1, 0).sizes
    ways = {"usual": partial(usual_experiment, preset, sizes)}
    ways |= {name: partial(our_experiment, small, fast) for name, fast in FORMS.items()}
    with threadpool_limits(1):
        rows = synthetic_steps(300 if args.quick else 10_000, True, 24, args.repeats, args.clock)
        rows += synthetic_steps(464, True, 64, args.repeats, args.clock)
        rows += rows_of(
            "synthetic, whole run", seconds_in_turn(ways, max(1, args.repeats // 2), args.clock), "usual"
        )
    return rows


# ---- the usual loop --------------------------------------------------------------------------------


class Items(Dataset):
    """Examples, each made into numbers when it is asked for: (input, label, group)."""

    def __init__(self, data, rows, size=None, tokenizer=None, columns=None):
        self.data, self.rows, self.size, self.tokenizer, self.columns = (
            data,
            np.asarray(rows),
            size,
            tokenizer,
            columns,
        )

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        return self.input(row), int(self.data.y[row]), int(self.data.train_groups.ids[row])

    def input(self, row):
        inputs = self.data.inputs
        if self.columns is not None:
            return torch.from_numpy(self.columns[row])
        if self.tokenizer is not None:
            how = dict(padding="max_length", truncation=True, max_length=self.size, return_tensors="pt")
            return {name: value[0] for name, value in self.tokenizer(str(inputs.first[row]), **how).items()}
        image = Image.open(Path(inputs.root) / inputs.files[row]).convert("RGB")
        if image.size != (self.size, self.size):
            image = image.resize((self.size, self.size), Image.Resampling.BILINEAR)
        x = torch.from_numpy(np.array(image)).float().div(255).permute(2, 0, 1)
        mean, deviation = (torch.tensor(moment)[:, None, None] for moment in IMAGENET)
        return (x - mean) / deviation


def usual_run(run, items, device):
    """The epochs of a run the usual way: a new loader for each, and validation and test in full after it."""
    model = run.model.train()
    optimiser = torch.optim.SGD(model.parameters(), lr=run.settings.lr, momentum=0.9)
    on = partial(to_device, device=device)
    for epoch in range(run.n_epochs):
        model.train()
        rows = run.train_rows[run.method.order(epoch)]
        for x, y, _ in DataLoader(items(rows), batch_size=run.settings.batch_size, shuffle=True):
            loss = cross_entropy(model(on(x)), y.to(device))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            loss.item()
        model.eval()
        with torch.no_grad():
            for rows in (run.val_rows, run.data.rows("test")):
                for x, _, _ in DataLoader(items(rows), batch_size=run.settings.eval_batch):
                    model(on(x)).argmax(1).cpu()


def to_device(x, device):
    return {k: v.to(device) for k, v in x.items()} if isinstance(x, dict) else x.to(device)


def whole_run(what, args, data, model, items, epochs, inputs, batch, repeats):
    """A whole run of PDE with a fixed schedule, beside the same epochs made the usual way."""
    schedule = default_schedule(data.groups("train"), max(1, epochs // 2), epochs // 4)
    spec = decide(
        data,
        model,
        PDE(schedule=schedule),
        weights=None,
        inputs=inputs,
        batch_size=batch,
        device=args.device,
        **({args.lever: True} if args.lever else {}),
    )

    def ours():
        run = train(build(spec, data, bar=False), bar=False)
        rows = data.rows("test")
        count_correct(run.classes(rows), data.y[rows], data.evaluation("test"))

    def usual():
        usual_run(build(spec, data, bar=False), items, args.device)

    return rows_of(what, seconds_in_turn(dict(usual=usual, pde_nb=ours), repeats, args.clock))


# ---- data ------------------------------------------------------------------------------------------


def fake_pictures(folder, size, share):
    """JPEG files of noise with the counts of Waterbirds: brightness is the label, a tint the background."""
    counts = np.maximum(2, np.round(share * np.array(PUBLISHED["waterbirds"]))).astype(int)
    cell = np.repeat(np.arange(12), counts.ravel())
    y, a, split = cell % 4 // 2, cell % 2, cell // 4
    rng = np.random.default_rng(0)
    names = np.array([f"{i:05}.jpg" for i in range(len(y))], object)
    for i, name in enumerate(names):
        squares = rng.integers(0, 160, (-(-size // 8), -(-size // 8), 3), dtype=np.uint8)
        x = squares.repeat(8, 0).repeat(8, 1)[:size, :size] + np.uint8(40 * y[i])
        x[..., 0] += np.uint8(40 * a[i])
        Image.fromarray(x).save(Path(folder, name), quality=90)
    data = from_arrays(
        np.zeros((len(y), 1), np.float32), y, {"background": a}, split, name="made-up pictures"
    )
    return replace(data, inputs=Pictures(Path(folder), names))


WORDS = tuple(f"w{i}" for i in range(2000))


def fake_texts(n, longest):
    """Texts of random words, the number of them lognormal."""
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(np.log(longest / 5), 0.9, n), 1, longest).astype(int)
    texts = np.array([" ".join(np.array(WORDS)[rng.integers(0, len(WORDS), k)]) for k in lengths], object)
    y, a = np.arange(n) % 2, np.arange(n) // 2 % 2
    split = np.repeat([0, 1, 2], [n - 2 * (n // 4), n // 4, n // 4])
    data = from_arrays(np.zeros((n, 1), np.float32), y, {"place": a}, split, name="made-up texts")
    return replace(data, inputs=Texts(texts))


def word_tokenizer():
    """A tokenizer that knows the words of `fake_texts`."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    codes = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(codes, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = dict(pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]")
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special, model_max_length=512)


def small_distilbert(quick):
    """A classifier of the shape of DistilBERT, smaller, with random weights."""
    import_torchvision()  # what some builds of torch need before transformers is imported
    from transformers import DistilBertConfig, DistilBertForSequenceClassification

    from pde_nb.networks.text import TextClassifier

    dim = 32 if quick else 128
    config = DistilBertConfig(n_layers=2, dim=dim, hidden_dim=4 * dim, n_heads=2, num_labels=2)
    torch.manual_seed(0)
    return TextClassifier(DistilBertForSequenceClassification(config))


# ---- whole runs ------------------------------------------------------------------------------------


def bench_small(args):
    with tempfile.TemporaryDirectory() as folder:
        data = from_table(example_table(Path(folder, "loans.csv")), "granted", "district")
    source = make_source(data, progress=False)
    columns = source.batch(np.arange(len(data))).numpy()
    items = partial(Items, data, columns=columns)
    epochs = 4 if args.quick else 40
    return whole_run("small table, whole run", args, data, "mlp", items, epochs, {}, 64, args.repeats)


def bench_waterbirds(args):
    size = 32 if args.quick else 96
    with tempfile.TemporaryDirectory() as folder:
        if args.root:
            data = read_published("waterbirds", args.root)
            kept = np.random.default_rng(0).permutation(len(data))[: 60 if args.quick else 1200]
            split = np.full(len(data), -1, np.int8)
            split[kept] = data.split[kept]
            data = replace(data, split=split)
        else:
            data = fake_pictures(folder, size, 0.005 if args.quick else 0.1)
        model = "small_cnn" if args.quick else "mobilenet_v2"
        items = partial(Items, data, size=size)
        epochs = 2 if args.quick else 8
        where = dict(size=size, cache=Path(folder, "cache"))
        what = f"{'Waterbirds' if args.root else 'picture files'}, whole run"
        return whole_run(what, args, data, model, items, epochs, where, 64, max(1, args.repeats // 3))


def bench_texts(args):
    longest = 40 if args.quick else 200
    data = fake_texts(64 if args.quick else 600, longest)
    tokenizer = word_tokenizer()
    items = partial(Items, data, size=longest, tokenizer=tokenizer)
    inputs = dict(tokenizer=tokenizer, max_tokens=longest)
    epochs, repeats = (2, 1) if args.quick else (6, max(1, args.repeats // 2))
    network = small_distilbert(args.quick)
    return whole_run("texts, whole run", args, data, network, items, epochs, inputs, 16, repeats)


# ---- prediction and selection ------------------------------------------------------------------------


def bench_prediction(args):
    """Rows of a table in a file, beside the bare network on batches that are ready."""
    import pandas as pd

    n = 2_000 if args.quick else 200_000
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"number{k}": rng.normal(50, 20, n).round(2) for k in range(5)})
    frame["town"] = np.array(["Ulm", "Bonn", "Jena"], object)[rng.integers(0, 3, n)]
    data = from_table(frame[:2000].assign(y=np.arange(2000) % 2, a=np.arange(2000) // 2 % 2), "y", "a")
    source = make_source(data, progress=False)
    network = make_model("mlp", weights=None, n_classes=2, kind=data.inputs.kind, shape=source.shape)
    predictor = Predictor(network.eval(), Preparation.learn(data, source))
    batches = []
    for piece in new_rows(frame, predictor.preparation, batch=predictor.batch):
        made = predictor.source(piece)
        at = range(0, len(piece), predictor.batch)
        batches += [made.batch(np.arange(i, min(i + predictor.batch, len(piece)))) for i in at]

    def bare():
        with torch.no_grad():
            return [network(batch).argmax(1) for batch in batches]

    assert torch.equal(torch.cat(bare()), torch.from_numpy(predictor.predict_proba(frame)).argmax(1))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.csv")
        frame.to_csv(path, index=False)
        ways = {
            "usual": lambda: (pd.read_csv(path), bare()),
            "pde_nb": lambda: predictor.predict_proba(path),
        }
        found = seconds_in_turn(ways, args.repeats, args.clock)
    return rows_of(f"prediction, a file of {n:,} rows beside pandas and the bare network", found)


def bench_selection(args):
    """Validation looked at as far as is needed, beside all of it: the same epoch and the same weights."""
    rng = np.random.default_rng(0)
    n = 2_000 if args.quick else 12_000
    y, place = rng.integers(0, 2, n), rng.integers(0, 2, n)
    x = rng.standard_normal((n, 64)).astype(np.float32)
    x[:, 0] += 0.8 * (2 * y - 1)
    x[:, 1] += 2 * (2 * place - 1)
    split = np.repeat([0, 1, 2], [n // 4, n // 2, n - n // 4 - n // 2])
    data = from_arrays(x, y, {"place": place}, split, name="features")
    kept = {}

    def run(evaluate):
        spec = decide(
            data, "mlp", "erm", epochs=4 if args.quick else 40, evaluate=evaluate, device=args.device
        )
        kept[evaluate] = train(build(spec, data, bar=False), bar=False)

    ways = {"usual": partial(run, "full"), "pde_nb": partial(run, "pruned")}
    found = seconds_in_turn(ways, args.repeats, args.clock)
    full, pruned = kept["full"], kept["pruned"]
    assert full.best_epoch == pruned.best_epoch
    assert all(torch.equal(a, pruned.best_weights[name]) for name, a in full.best_weights.items())
    rows = rows_of("selection, run with pruned validation beside full", found)
    looked = [sum(entry["evaluated"] for entry in one.curve) for one in (full, pruned)]
    return [*rows, dict(what="selection, rows of validation looked at", usual=looked[0], ours=looked[1],
                        ratio=looked[0] / looked[1], low=None, high=None)]  # fmt: skip


# ---- the command -------------------------------------------------------------------------------------

PARTS = {
    "synthetic": bench_synthetic,
    "small": bench_small,
    "waterbirds": bench_waterbirds,
    "texts": bench_texts,
    "prediction": bench_prediction,
    "selection": bench_selection,
}


def table_text(rows):
    head = f"{'what':<72} {'usual':>10} {'pde_nb':>10} {'ratio':>7}  lowest–highest"
    lines = [head]
    for row in rows:
        ends = "" if row["low"] is None else f"{row['low']:.1f}–{row['high']:.1f}"
        unit = "s" if row["low"] is not None else ""
        usual, ours = (f"{row[key]:.4g}{unit}" for key in ("usual", "ours"))
        lines.append(f"{row['what']:<72} {usual:>10} {ours:>10} {row['ratio']:>6.1f}×  {ends}")
    return "\n".join(lines)


def main():
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("parts", nargs="+", choices=(*PARTS, "all"), help="what to time")
    parser.add_argument("--repeats", type=int, default=9, help="of each measurement, ≥ 1; default 9")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it works")
    parser.add_argument("--root", help="folder that holds waterbirds_v1.0")
    parser.add_argument("--device", default="cpu", help="of whole runs; default cpu")
    levers = "bf16", "channels_last", "compile"
    parser.add_argument("--lever", choices=levers, help="a setting that ours is timed with")
    parser.add_argument("--out", type=Path, help="also write the figures to this JSON file")
    args = parser.parse_args()
    if args.repeats < 1:
        parser.error(f"--repeats {args.repeats}: give at least 1")
    args.repeats = 1 if args.quick else args.repeats
    args.clock = time.process_time if args.device == "cpu" else time.perf_counter
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UserWarning)
    rows = []
    for part in PARTS if "all" in args.parts else dict.fromkeys(args.parts):
        print(f"{part} …", file=sys.stderr, flush=True)
        rows += PARTS[part](args)
    about = surroundings()
    print(table_text(rows))
    versions = about["versions"]
    print(f"{about['processor']}, {args.device}, one thread; torch {versions['torch']}")
    if args.out:
        record = dict(
            rows=rows, repeats=args.repeats, device=args.device, quick=args.quick, surroundings=about
        )
        write_sealed(args.out, record)


if __name__ == "__main__":
    main()
