"""The library beside the usual way of doing the same, both timed in turn in one process: ratios, no promises.

    python benchmarks/run.py all                        # everything, some minutes on one core
    python benchmarks/run.py synthetic prediction       # some parts
    python benchmarks/run.py waterbirds --root FOLDER   # the official pictures; without --root a made-up set
    python benchmarks/run.py all --quick                # tiny sizes, to see that it works
    python benchmarks/run.py all --device cuda --out FILE

Parts: synthetic (steps and a whole run of the paper's experiment), small (a whole run on a table), waterbirds
(a whole run on picture files), texts (a whole run on texts), prediction (rows of a trained model beside the
bare network). The usual way is what most repositories of the field do: a DataLoader that makes each example
when it is asked for, and validation and test after every epoch. Where both compute the same, that is checked
before a ratio is printed. Times are medians of repeats, with the lowest and highest ratio of a repeat; the
clock is that of the processor on a CPU, so that other programs do not count, and that of the wall on a GPU.
"""

import argparse
import sys
import tempfile
import time
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
import torch
from PIL import Image
from threadpoolctl import threadpool_limits
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, default_collate

from pde_nb.algorithm.metrics import count_correct
from pde_nb.core.environment import import_torchvision, surroundings
from pde_nb.core.seals import write_sealed
from pde_nb.data.batches import IMAGENET
from pde_nb.data.dataset import from_arrays
from pde_nb.data.encoding import encode
from pde_nb.data.examples import Pictures, Texts
from pde_nb.data.inputs import Preparation, make_source
from pde_nb.data.published import read_published
from pde_nb.data.tables import example_table, from_table
from pde_nb.methods.pde import PDE, default_schedule
from pde_nb.networks.models import make_model
from pde_nb.prediction.predictor import Predictor
from pde_nb.prediction.rows import new_rows
from pde_nb.theory.data_model import DataModel, dense_patches, draw_features, draw_sample
from pde_nb.theory.experiment import CASES, SYNTHETIC_PRESETS, Run, after_warmup, warm_up
from pde_nb.theory.network import after, descent, structured
from pde_nb.training.settings import keep_memory
from pde_nb.training.spec import build, decide
from pde_nb.training.trainer import classes_of, train


def rows_of(what, ways, repeats, clock):
    """A row for each way but the usual one, all timed in turn after one call of each."""
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
    usual, rows = found.pop("usual"), []
    for name, seconds in found.items():
        ratios = sorted(a / b for a, b in zip(usual, seconds))
        ends = dict(ratio=median(ratios), low=ratios[0], high=ratios[-1])
        label = what if name == "pde_nb" else f"{what}, {name}"
        rows.append(dict(what=label, usual=median(usual), ours=median(seconds), **ends))
    return rows


class ConvNet(torch.nn.Conv1d):
    """The network as PyTorch is usually written: strided Conv1d, cube, two heads, cross-entropy, SGD."""

    def __init__(self, preset):
        super().__init__(1, preset.n_filters, preset.dim, stride=preset.dim)
        for parameter in self.parameters():
            parameter.data *= 0.1
        self.opt = torch.optim.SGD(self.parameters(), lr=0.03, momentum=0.9)

    def logits(self, x):
        z = (self(x[:, None]) ** 3).sum(2)
        half = z.shape[1] // 2
        return torch.stack([z[:, half:].sum(1), z[:, :half].sum(1)], 1)

    def step(self, x, y):
        loss = cross_entropy(self.logits(x), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

    def filters(self):
        """As one head of (J, d + 1): the second one enters with a minus."""
        W = torch.cat([self.weight[:, 0], self.bias[:, None]], 1).detach().numpy().copy()
        W[len(W) // 2 :] *= -1
        return W


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
    return torch.stack(x).flatten(1), (torch.cat(y) > 0).long()


def synthetic_steps(n, calls, repeats, clock):
    """A step of gradient descent with momentum; the weights of both ways are compared first."""
    preset, rng = SYNTHETIC_PRESETS["released"], np.random.default_rng(0)
    sample, net = draw_sample(DataModel(sigma_p=preset.sigma_p), n, rng), ConvNet(preset)
    x, y = torch.from_numpy(dense_patches(sample, rng)).flatten(1), torch.from_numpy(sample.y > 0).long()
    W, data = net.filters(), structured(sample, True)
    net.step(x, y)
    apart = np.abs(net.filters() - after(1, descent(W, data.gradient, 0.03, 0.9))[0]).max()
    assert apart < 1e-5, f"the two ways are {apart:.1e} apart after a step"
    ways = {"usual": lambda: [net.step(x, y) for _ in range(calls)]}
    ways["pde_nb"] = lambda: after(calls, descent(W, data.gradient, 0.03, 0.9))
    return rows_of(f"synthetic, step on {n:,} examples", ways, repeats, clock)


def usual_experiment(preset, sizes):
    """The released schedule the usual way: data, warm-up, expansions, and the test accuracy after each."""
    model = DataModel(sigma_p=preset.sigma_p, **CASES[1])
    features = draw_features(model.dim, np.random.default_rng(0), np.float32)
    (x, y), test = (draw_by_loop(model, n, features) for n in (preset.n_train, preset.n_test))
    net = ConvNet(preset)
    for k, n in enumerate(sizes):
        for _ in range(preset.expand_every if k else preset.warmup_iterations):
            net.step(x[:n], y[:n])
        with torch.no_grad():
            float((net.logits(test[0]).argmax(1) == test[1]).float().mean())


def our_experiment(preset):
    start = Run(preset, 1, 0)
    after_warmup(warm_up(start), False, start.sizes[1:], preset.expand_every)


def bench_synthetic(args):
    preset = SYNTHETIC_PRESETS["released"]
    if args.quick:
        preset = replace(preset, n_train=2000, n_test=100, warmup_iterations=5, expand_every=2)
    small = replace(preset, n_balanced=4, n_valid=4)
    sizes = Run(preset, 1, 0).sizes
    ways = dict(usual=partial(usual_experiment, preset, sizes), pde_nb=partial(our_experiment, small))
    with threadpool_limits(1):
        rows = synthetic_steps(300 if args.quick else 10_000, 24, args.repeats, args.clock)
        rows += synthetic_steps(464, 64, args.repeats, args.clock)
        return rows + rows_of("synthetic, whole run", ways, max(1, args.repeats // 2), args.clock)


def usual_run(run, make, device):
    """The epochs of a run the usual way: a new loader for each, and validation and test in full after it."""
    model, y = run.model, run.data.y
    optimiser = torch.optim.SGD(model.parameters(), lr=run.settings.lr, momentum=0.9)

    def batches(rows, size, shuffle=False):
        """Batches of (input, label), each example made into numbers when it is asked for."""
        made = partial(map, lambda row: (make(row), int(y[row])))
        loader = DataLoader(rows, size, shuffle, collate_fn=lambda part: default_collate([*made(part)]))
        for x, labels in loader:
            on = {k: v.to(device) for k, v in x.items()} if isinstance(x, dict) else x.to(device)
            yield on, labels.to(device)

    for epoch in range(run.method.pacing.n_epochs):
        model.train()
        for x, labels in batches(run.train_rows[run.method.order(epoch)], run.settings.batch_size, True):
            loss = cross_entropy(model(x), labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            loss.item()
        model.eval()
        with torch.no_grad():
            for rows in (run.val_rows, run.data.rows("test")):
                for x, _ in batches(rows, run.eval_batch):
                    model(x).argmax(1).cpu()


def whole_run(what, args, data, model, make, epochs, inputs, batch, repeats):
    """A whole run of PDE with a fixed schedule, beside the same epochs made the usual way."""
    schedule = default_schedule(data.groups("train"), max(1, epochs // 2), epochs // 4)
    how = dict(inputs=inputs, batch_size=batch, device=args.device, bf16=args.bf16)
    spec = decide(data, model, PDE(schedule=schedule), weights=None, **how)

    def ours():
        run = train(build(spec, data, bar=False), bar=False)
        rows = data.rows("test")
        count_correct(classes_of(run.outputs(rows)), data.y[rows], data.evaluation("test"))

    def usual():
        usual_run(build(spec, data, bar=False), make, args.device)

    return rows_of(what, dict(usual=usual, pde_nb=ours), repeats, args.clock)


def bench_small(args):
    with tempfile.TemporaryDirectory() as folder:
        data = from_table(example_table(Path(folder, "loans.csv")), "granted", "district")
    columns = make_source(data, progress=False).batch(np.arange(len(data)))
    epochs = 4 if args.quick else 40
    name = "small table, whole run"
    return whole_run(name, args, data, "mlp", columns.__getitem__, epochs, {}, 64, args.repeats)


def made_up(name, y, a, inputs, shares):
    """Data of one attribute with made-up inputs; shares of training, validation and test as published."""
    split = np.repeat([0, 1, 2], np.diff([0, *(len(y) * np.cumsum(shares)).round().astype(int)]))
    data = from_arrays(np.zeros((len(y), 1), np.float32), y, {"place": a}, split, name=name)
    return replace(data, inputs=inputs)


def fake_pictures(folder, size, n):
    """JPEG files of noise: brightness is the label, a tint the attribute, which mostly agrees with it."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    a = np.where(rng.random(n) < 0.9, y, 1 - y)
    names = np.array([f"{i:05}.jpg" for i in range(n)], object)
    for i, name in enumerate(names):
        squares = rng.integers(0, 160, (size // 8, size // 8, 3), dtype=np.uint8)
        x = squares.repeat(8, 0).repeat(8, 1) + np.uint8(40 * y[i])
        x[..., 0] += np.uint8(40 * a[i])
        Image.fromarray(x).save(Path(folder, name), quality=90)
    return made_up("made-up pictures", y, a, Pictures(Path(folder), names), (0.4, 0.1, 0.5))


def bench_waterbirds(args):
    size, n = (32, 60) if args.quick else (96, 1200)
    mean, deviation = (torch.tensor(moment)[:, None, None] for moment in IMAGENET)

    def make(row):
        image = Image.open(Path(data.inputs.root) / data.inputs.files[row]).convert("RGB")
        image = image.resize((size, size), Image.Resampling.BILINEAR)
        x = torch.from_numpy(np.array(image)).float().div(255).permute(2, 0, 1)
        return (x - mean) / deviation

    with tempfile.TemporaryDirectory() as folder:
        if args.root:
            data = read_published("waterbirds", args.root)
            kept = np.isin(np.arange(len(data)), np.random.default_rng(0).permutation(len(data))[:n])
            data = replace(data, split=np.where(kept, data.split, -1).astype(np.int8))
        else:
            data = fake_pictures(folder, size, n)
        model, epochs = ("small_cnn", 2) if args.quick else ("mobilenet_v2", 8)
        where = dict(size=size, cache=Path(folder, "cache"))
        what = f"{'Waterbirds' if args.root else 'picture files'}, whole run"
        return whole_run(what, args, data, model, make, epochs, where, 64, max(1, args.repeats // 3))


def bench_texts(args):
    import_torchvision()  # what some builds of torch need before transformers is imported
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import DistilBertConfig, DistilBertForSequenceClassification, PreTrainedTokenizerFast

    from pde_nb.networks.text import TextClassifier

    longest, n, dim = (40, 64, 32) if args.quick else (200, 600, 128)
    words = np.array([f"w{i}" for i in range(2000)])
    codes = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words])}
    pieces = Tokenizer(models.WordLevel(codes, unk_token="[UNK]"))
    pieces.pre_tokenizer = pre_tokenizers.Whitespace()
    special = dict(pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=pieces, **special, model_max_length=512)
    config = DistilBertConfig(n_layers=2, dim=dim, hidden_dim=4 * dim, n_heads=2, num_labels=2)
    torch.manual_seed(0)
    network = TextClassifier(DistilBertForSequenceClassification(config))
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(np.log(longest / 5), 0.9, n), 1, longest).astype(int)
    texts = np.array([" ".join(words[rng.integers(0, len(words), k)]) for k in lengths], object)
    data = made_up("made-up texts", np.arange(n) % 2, np.arange(n) // 2 % 2, Texts(texts), (0.6, 0.1, 0.3))

    def make(row):
        how = dict(padding="max_length", truncation=True, max_length=longest, return_tensors="pt")
        return {name: value[0] for name, value in tokenizer(texts[row], **how).items()}

    inputs = dict(tokenizer=tokenizer, max_tokens=longest)
    epochs, repeats = (2, 1) if args.quick else (6, max(1, args.repeats // 2))
    return whole_run("texts, whole run", args, data, network, make, epochs, inputs, 16, repeats)


def bench_prediction(args):
    """Rows of a table in a file, beside the bare network on batches that are ready."""
    n = 2_000 if args.quick else 200_000
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"number{k}": rng.normal(50, 20, n).round(2) for k in range(5)})
    frame["town"] = np.array(["Ulm", "Bonn", "Jena"], object)[rng.integers(0, 3, n)]
    data = from_table(frame[:2000].assign(y=np.arange(2000) % 2, a=np.arange(2000) // 2 % 2), "y", "a")
    source = make_source(data, progress=False)
    network = make_model("mlp", weights=None, n_classes=2, kind=data.inputs.kind, shape=source.shape)
    predictor = Predictor(network.eval(), Preparation.learn(data, source))
    pieces = new_rows(frame, predictor.preparation, batch=predictor.batch)
    read = [encode(predictor.preparation.codes, piece.inputs.columns) for piece in pieces]
    encoded = torch.from_numpy(np.concatenate(read))

    def bare():
        with torch.no_grad():
            return [network(batch).argmax(1) for batch in encoded.split(predictor.batch)]

    assert torch.equal(torch.cat(bare()), torch.from_numpy(predictor.predict_proba(frame)).argmax(1))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.csv")
        frame.to_csv(path, index=False)
        ways = dict(usual=lambda: (pd.read_csv(path), bare()), pde_nb=lambda: predictor.predict_proba(path))
        what = f"prediction, a file of {n:,} rows beside pandas and the bare network"
        return rows_of(what, ways, args.repeats, args.clock)


PARTS = dict(synthetic=bench_synthetic, small=bench_small, waterbirds=bench_waterbirds)
PARTS |= dict(texts=bench_texts, prediction=bench_prediction)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=(*PARTS, "all"), help="what to time")
    parser.add_argument("--repeats", type=int, default=9, help="≥ 1; default 9")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it works")
    parser.add_argument("--root", help="folder that holds waterbirds_v1.0")
    parser.add_argument("--device", default="cpu", help="of whole runs; default cpu")
    parser.add_argument("--bf16", action="store_true", help="time ours in bfloat16")
    parser.add_argument("--out", type=Path, help="also write the figures to this JSON file")
    args = parser.parse_args()
    args.repeats = 1 if args.quick else args.repeats
    args.clock = time.process_time if args.device == "cpu" else time.perf_counter
    torch.set_num_threads(1)
    keep_memory()  # as `pde train` does; of both ways
    warnings.simplefilter("ignore", UserWarning)
    rows = []
    for part in PARTS if "all" in args.parts else dict.fromkeys(args.parts):
        print(f"{part} …", file=sys.stderr, flush=True)
        rows += PARTS[part](args)
    about = surroundings()
    print(pd.DataFrame(rows).to_string(index=False, float_format="{:.4g}".format))
    print(f"{about['processor']}, {args.device}, one thread; torch {about['versions']['torch']}; seconds")
    if args.out:
        how = dict(repeats=args.repeats, device=args.device, quick=args.quick)
        write_sealed(args.out, dict(rows=rows, **how, surroundings=about))


if __name__ == "__main__":
    main()
