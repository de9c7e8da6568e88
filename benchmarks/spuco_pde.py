"""PDE on an array of pixels: pde_nb beside the package spuco, the same examples in the same order, the
same settings, in one process.

    python benchmarks/spuco_pde.py --data FILE.npz --label NAME --attribute NAME --out FILE.json
    [--epochs 20]

spuco is not installed with pde_nb: pip install spuco. Its own PDE class trains; only the positions that
each epoch shows are
handed to it, since its own draw differs. Its examples are ready tensors, so that no decoding counts
against it.
"""

import argparse
import contextlib
import io
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import torch
from torch.utils.data import Dataset

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pde_nb.benchmarks.whole_runs import clocked
from pde_nb.cli.train import open_data
from pde_nb.core.files import surroundings, write_json
from pde_nb.methods.pde import PDE
from pde_nb.methods.schedules import default_schedule
from pde_nb.networks.vision import import_torchvision
from pde_nb.training.fit import DEFAULTS, prepare
from pde_nb.training.loop import own_randomness


class Ready(Dataset):
    """Rows of a source as tensors that are made beforehand."""

    def __init__(self, run, rows):
        self.x, self.y = run.source.batch(rows), torch.as_tensor(run.data.y[rows])
        self.labels = self.y.numpy()

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def partition(groups):
    """Positions by (class, attribute), as spuco wants them."""
    cells = list(zip(*(torch.cartesian_prod(*(torch.arange(n) for n in groups.shape)).T.tolist())))
    return {cell: (groups.ids == g).nonzero()[0].tolist() for g, cell in enumerate(cells) if groups.counts[g]}


def theirs(run, orders, settings, evaluate):
    """spuco's PDE, ready to train on these orders."""
    import_torchvision()  # also where its compiled operators are missing
    from spuco.evaluate import Evaluator
    from spuco.robust_train import PDE as SpucoPDE

    class Given(SpucoPDE):
        """spuco's PDE with the positions of each epoch handed to it."""

        def train_epoch(self, epoch):
            self.trainer.sampler.indices = orders[epoch].tolist()
            return self.trainer.train_epoch(epoch)

    optimiser = torch.optim.SGD(
        run.model.parameters(), settings.lr, settings.momentum, weight_decay=settings.weight_decay
    )
    schedule, groups = run.method.schedule, partition(run.data.groups("train"))
    judge = None
    if evaluate:
        val, cells = Ready(run, run.val_rows), partition(run.data.evaluation("val"))
        judge = Evaluator(val, cells, {k: len(v) for k, v in cells.items()}, settings.eval_batch, run.model)
    pde = Given(
        run.model,
        Ready(run, run.train_rows),
        settings.batch_size,
        optimiser,
        len(orders),
        groups,
        val_evaluator=judge,
        warmup_epochs=schedule.warmup_epochs,
        expansion_size=10**9,
        expansion_interval=10**9,
        gamma=run.method.expansion_lr,
    )
    pde.trainer.sampler.shuffle = False
    return pde


def ours(run, evaluate):
    """Our loop, with the weights after the last epoch; without evaluation only its steps."""
    with own_randomness(run):
        while not run.finished:
            run.model.train()
            left = run.steps()
            for i, rows in enumerate(left):
                run.train_step(rows, len(left) - i)
            if evaluate:
                run.end_epoch()
            else:
                run.go_to(run.epoch + 1, 0, 0.0)
    return run


def quietly(f):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return f()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", required=True)
    p.add_argument("--label", required=True)
    p.add_argument("--attribute", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--epochs", type=int, default=20)
    args = p.parse_args()
    warnings.simplefilter("ignore")
    data = open_data(args.data, label=args.label, attribute=[args.attribute])
    schedule, settings = (
        default_schedule(data.groups("train"), warmup_epochs=args.epochs // 2),
        replace(DEFAULTS["pixels"], channels_last=False),
    )
    method = PDE(args.epochs, schedule, 0.1)

    def make():
        return prepare(
            "small_cnn",
            data,
            method,
            weights=None,
            device="cpu",
            changes=dict(channels_last=False),
            bar=False,
        )[0]

    began = make().method
    orders = [began.order(e) for e in range(args.epochs)]
    seconds, weights = {}, {}
    for evaluate in (False, True):
        a, b = make(), make()
        other = quietly(lambda: theirs(a, orders, settings, evaluate))
        name = "training and validation" if evaluate else "training"
        seconds[name] = dict(
            spuco=clocked(lambda: quietly(other.train)), ours=clocked(lambda: ours(b, evaluate))
        )
        weights[name] = max(
            float((x - y).norm() / y.norm().clamp_min(1e-12))
            for x, y in zip(a.model.state_dict().values(), b.model.state_dict().values())
        )
        print(
            f"{name}: spuco {seconds[name]['spuco']:.1f} s, pde_nb {seconds[name]['ours']:.1f} s, "
            f"{seconds[name]['spuco'] / seconds[name]['ours']:.1f}×; weights apart by "
            f"{weights[name]:.1e}",
            flush=True,
        )
    shown = sum(map(len, orders))
    write_json(
        args.out,
        dict(
            bench="spuco",
            data=data.name,
            epochs=args.epochs,
            shown=shown,
            n_val=len(data.rows("val")),
            threads=torch.get_num_threads(),
            seconds=seconds,
            weights_apart=weights,
            surroundings=surroundings(),
        ),
    )


if __name__ == "__main__":
    main()
