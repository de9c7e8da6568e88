"""PDE on an array of pixels: pde_nb beside the package spuco, the same examples in the same order, the
same settings, in one process.

    python benchmarks/spuco_pde.py --data FILE.npz --label NAME --attribute NAME --out FILE.json
                                   [--epochs 20]

spuco is not installed with pde_nb: pip install spuco. Its own PDE class trains; only the positions that
each epoch shows are handed to it, since its own draw differs. Its examples are ready tensors, so that no
decoding counts against it.
"""

import argparse
import contextlib
import io
import sys
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import torch
from torch.utils.data import Dataset

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pde_nb.core.environment import import_torchvision, surroundings
from pde_nb.core.seals import writable_folder, write_sealed
from pde_nb.data.published import open_data
from pde_nb.methods.pde import PDE, default_schedule
from pde_nb.training.ranks import generators_kept
from pde_nb.training.spec import build, decide


class ReadyTensors(Dataset):
    """Rows of a source as tensors that are made beforehand."""

    def __init__(self, run, rows):
        self.x = run.source.batch(rows)
        self.y = torch.as_tensor(run.data.y[rows])
        self.labels = self.y.numpy()

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def partition(groups):
    """Positions by (class, attribute), as spuco wants them."""
    cells = torch.cartesian_prod(*(torch.arange(n) for n in groups.shape)).tolist()
    found = {}
    for g, cell in enumerate(cells):
        if groups.counts[g]:
            found[tuple(cell)] = (groups.ids == g).nonzero()[0].tolist()
    return found


def spuco_trainer(run, orders, evaluate):
    """spuco's PDE, ready to train the network of a run on these orders; with its validation, or without."""
    import_torchvision()  # also where its compiled operators are missing
    from spuco.evaluate import Evaluator
    from spuco.robust_train import PDE as SpucoPDE

    class OrderedPDE(SpucoPDE):
        def train_epoch(self, epoch):
            self.trainer.sampler.indices = orders[epoch].tolist()
            return self.trainer.train_epoch(epoch)

    s, evaluator = run.settings, None
    optimiser = torch.optim.SGD(run.model.parameters(), s.lr, s.momentum, weight_decay=s.weight_decay)
    if evaluate:
        cells = partition(run.data.evaluation("val"))
        sizes = {cell: len(rows) for cell, rows in cells.items()}
        evaluator = Evaluator(ReadyTensors(run, run.val_rows), cells, sizes, s.eval_batch, run.model)
    pde = OrderedPDE(
        *(run.model, ReadyTensors(run, run.train_rows), s.batch_size, optimiser, len(orders)),
        partition(run.data.groups("train")),
        val_evaluator=evaluator,
        warmup_epochs=run.method.schedule.warmup_epochs,
        expansion_size=10**9,
        expansion_interval=10**9,
        gamma=run.method.expansion_lr,
    )
    pde.trainer.sampler.shuffle = False
    return pde


def train_ours(run, evaluate):
    """Our loop, with the weights after the last epoch; without evaluation only its steps."""
    with generators_kept(run.device):
        while not run.finished:
            run.model.train()
            left = run.steps()
            for i, rows in enumerate(left):
                run.train_step(rows)
            if evaluate:
                run.end_epoch()
            else:
                run.go_to(run.epoch + 1, 0, 0.0)


def new_run(data, epochs):
    """A run of PDE with a plain schedule on pixels."""
    schedule = default_schedule(data.groups("train"), warmup_epochs=epochs // 2)
    method = PDE(epochs, schedule, expansion_lr=0.1)
    spec = decide(data, "small_cnn", method, weights=None, device="cpu", channels_last=False)
    return build(spec, data, bar=False)


def weights_apart(a, b):
    """The largest relative distance of a tensor of two networks."""
    pairs = zip(a.state_dict().values(), b.state_dict().values())
    return max(float((x - y).norm() / y.norm().clamp_min(1e-12)) for x, y in pairs)


def compare(data, epochs, orders, evaluate):
    """Seconds of both, and how far apart their weights end."""
    theirs, ours = (new_run(data, epochs) for _ in range(2))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        trainer = spuco_trainer(theirs, orders, evaluate)
        begun = time.perf_counter()
        trainer.train()
        trained = time.perf_counter()
        train_ours(ours, evaluate)
    seconds = dict(spuco=trained - begun, ours=time.perf_counter() - trained)
    return seconds, weights_apart(theirs.model, ours.model)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", required=True, metavar="FILE.npz", help="arrays, the pixels as x")
    p.add_argument("--label", required=True, metavar="NAME", help="array of the label")
    p.add_argument("--attribute", required=True, metavar="NAME", help="array that may be spurious")
    p.add_argument("--out", required=True, metavar="FILE.json", help="where the record is written")
    p.add_argument("--epochs", type=int, default=20, help="half of them warm-up; default 20")
    args = p.parse_args()
    if find_spec("spuco") is None:
        p.error("the package spuco is not installed: pip install spuco.")
    writable_folder(Path(args.out).parent)
    warnings.simplefilter("ignore")
    data = open_data(args.data, label=args.label, attribute=[args.attribute])
    method = new_run(data, args.epochs).method
    orders = [method.order(epoch) for epoch in range(args.epochs)]
    record = dict(bench="spuco", data=data.name, epochs=args.epochs, shown=sum(map(len, orders)))
    record |= dict(n_val=len(data.rows("val")), threads=torch.get_num_threads(), seconds={}, weights_apart={})
    for name, evaluate in (("training", False), ("training and validation", True)):
        seconds, apart = compare(data, args.epochs, orders, evaluate)
        record["seconds"][name], record["weights_apart"][name] = seconds, apart
        ratio = seconds["spuco"] / seconds["ours"]
        print(
            f"{name}: spuco {seconds['spuco']:.1f} s, pde_nb {seconds['ours']:.1f} s, {ratio:.1f}×; ", end=""
        )
        print(f"weights apart by {apart:.1e}", flush=True)
    write_sealed(args.out, dict(record, surroundings=surroundings()))


if __name__ == "__main__":
    main()
