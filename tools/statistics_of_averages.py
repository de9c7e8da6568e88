"""Average networks of several draws: with the mean of their normalisation statistics, or with new ones.

    python tools/statistics_of_averages.py --root FOLDER [--seeds 3] [--out results/averages.json]

FOLDER of --root is that of tools/evidence.py; the pictures are those of Waterbirds with 128 pixels and the
network its MobileNetV2, whose batch normalisation keeps a mean and a variance of every channel. From one
start, three networks are trained on three balanced draws, 14 epochs each; their weights are averaged. The
average is judged on validation and test with the mean of the three networks' statistics, and with those of
one pass of the averaged network over all training pictures, over the rows of the draws, and over as many
pictures of each group. Each seed is kept in a file beside the record until all are done.
"""

import argparse
import json
import sys
import warnings
from copy import deepcopy
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))

from evidence import TASKS, open_task, say

from pde_nb.core.files import surroundings
from pde_nb.methods.subsample import Subsample
from pde_nb.networks.average import copy_weights, mean_weights
from pde_nb.networks.models import make_model
from pde_nb.records.seals import write_sealed
from pde_nb.runs.fit import robust_fit
from pde_nb.training.outputs import predict

ROOT = Path(__file__).resolve().parents[1]
DRAWS = 3
EPOCHS = 14  # of each draw
RATE = 1e-3
BATCH = 64


def draw_seed(seed: int, draw: int) -> int:
    """The seed of a draw: the balanced set and the order of its rows follow from it."""
    return 100 * seed + draw


def worst_group(run, model, split: str) -> list[int]:
    """Right and all of the worst group of a split."""
    rows = run.data.rows(split)
    said = np.asarray(predict(model, run.source, rows, run.settings.eval_batch))
    groups = run.data.evaluation(split)
    right = said == run.data.y[rows]
    found = [(int(right[groups.ids == g].sum()), int((groups.ids == g).sum())) for g in np.unique(groups.ids)]
    return list(min(found, key=lambda pair: pair[0] / pair[1]))


@torch.no_grad()
def estimate_again(model, run, rows):
    """Statistics of every normalisation layer anew: the mean over batches of these rows, each row once."""
    layers = [m for m in model.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    usual = [layer.momentum for layer in layers]
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # a mean over all batches
    model.train()
    order = np.random.default_rng(0).permutation(rows)
    for batch in np.array_split(order, max(1, len(order) // BATCH)):
        model(run.source.batch(batch))
    for layer, momentum in zip(layers, usual):
        layer.momentum = momentum
    return model.eval()


def balanced_rows(run, n: int, rng) -> np.ndarray:
    """As many training rows of each group, drawn with replacement where a group has fewer."""
    rows, groups = run.data.rows("train"), run.data.groups("train")
    parts = [rows[groups.ids == g] for g in range(groups.n_groups)]
    return np.concatenate([rng.choice(part, n, replace=len(part) < n) for part in parts])


def run_seed(seed: int, data, root: Path) -> dict:
    """The networks of a seed and what their average came to."""
    task = TASKS["waterbirds"]
    shapes = dict(n_classes=data.n_classes, kind="pictures", shape=(3, 128, 128))
    start = make_model(task.model, **shapes, weights=str(root / task.weights), seed=seed)
    fits = []
    for draw in range(DRAWS):
        common = dict(inputs=task.inputs, device="cpu", bar=False, **task.settings)
        method = Subsample(epochs=EPOCHS)
        fits.append(robust_fit(deepcopy(start), data, method, seed=draw_seed(seed, draw), lr=RATE, **common))
    run = fits[0].run
    trained = np.concatenate([fit.run.train_rows[fit.run.method.active(0)] for fit in fits])
    mean = deepcopy(fits[0].model)
    mean.load_state_dict(mean_weights([copy_weights(fit.model) for fit in fits]))
    mean.eval()
    networks = {f"draw {i}": fit.model for i, fit in enumerate(fits)} | {"mean of statistics": mean}
    sets = {
        "all training rows": run.train_rows,
        "rows of the draws": np.unique(trained),
        "balanced rows": balanced_rows(run, 400, np.random.default_rng(seed)),
    }
    for name, rows in sets.items():
        networks[name] = estimate_again(deepcopy(mean), run, rows)
    found = {}
    for name, model in networks.items():
        found[name] = {split: worst_group(run, model, split) for split in ("val", "test")}
        shares = [f"{split} {100 * right / n:.1f}" for split, (right, n) in found[name].items()]
        say(f"seed {seed}, {name}: {', '.join(shares)}")
    return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, required=True, help="the folder with the prepared data")
    parser.add_argument("--seeds", type=int, default=3, help="how many, from 0 on")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "averages.json")
    args = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    data = open_task(TASKS["waterbirds"], args.root)
    seeds = {}
    for seed in range(args.seeds):
        kept = args.out.with_name(f"{args.out.stem}-seed{seed}.json")
        if not kept.exists():
            kept.write_text(json.dumps(run_seed(seed, data, args.root)), encoding="utf-8")
        seeds[str(seed)] = json.loads(kept.read_text(encoding="utf-8"))
    settings = dict(draws=DRAWS, epochs=EPOCHS, lr=RATE, batch_size=BATCH, model="mobilenet_v2", size=128)
    write_sealed(args.out, dict(surroundings=surroundings(), settings=settings, seeds=seeds))


if __name__ == "__main__":
    main()
