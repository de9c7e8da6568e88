"""Everything that needs a GPU, in under ten minutes on one H100: checks, speed, and Waterbirds at 224
pixels over five seeds.

    python benchmarks/gpu.py --out FOLDER [--root FOLDER --weights FILE] [--parts checks levers
    waterbirds together accuracy celebA civilcomments]
    python benchmarks/gpu.py --out FOLDER --rehearse

--root holds the official waterbirds_v1.0 folder and --weights an ImageNet MobileNetV2; without them
`waterbirds` runs on
generated pictures and `accuracy` is left out. No network is used. Each part writes OUT/PART.json when
it ends, and a part
that fails does not keep the others from running. Needs torch, torchvision and the base packages of
pde_nb; neither nbdev nor
wilds. --rehearse goes through all parts on a CPU with tiny pictures, to find mistakes before GPU time
is spent.
"""

import argparse
import sys
import time
import traceback
import warnings
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pde_nb.algorithm.expansion import Schedule
from pde_nb.benchmarks.whole_runs import (
    LEVERS,
    as_files,
    bench_train_table,
    bench_training,
    clocked,
    device_name,
    fake_distilbert,
    fake_pictures,
    fake_texts,
    fake_tokenizer,
    lever_rates,
    some_steps,
)
from pde_nb.core.files import surroundings, write_json
from pde_nb.core.statistics import summary
from pde_nb.methods.base import Method
from pde_nb.methods.group_dro import GroupDRO
from pde_nb.methods.pde import PDE
from pde_nb.methods.pde import PDE
from pde_nb.sources.published import read_waterbirds
from pde_nb.training.fit import Report, conclude, prepare
from pde_nb.training.loop import train, train_together

FAST = dict(bf16=True, channels_last=True, graph=True)
PAPER = Schedule(140, 10, 10, n_expansions=16, n_epochs=300)  # of Waterbirds, tab:app-hyper
FLIP = dict(augment=("flip",))


@cache
def pictures(name, size, share):
    """Generated pictures, made once."""
    return fake_pictures(name, size, share)


def make(args, model, data, method, seed=0, weights=None, inputs=FLIP, **changes):
    """A run and its config on the device of this script."""
    return prepare(
        model,
        data,
        method,
        weights=weights,
        seed=seed,
        device=args.device,
        changes=changes,
        inputs=inputs,
        bar=False,
    )


def small_run(args, seed=0, **changes):
    """A run that takes seconds."""
    return make(
        args,
        args.small_model,
        pictures("waterbirds", args.small_size, 0.1),
        Method(4),
        seed,
        lr=0.01,
        batch_size=32,
        **changes,
    )[0]


def apart(a, b):
    """Relative distance of the selected weights of two runs."""
    pairs = [(a.best_weights[k].double(), b.best_weights[k].double()) for k in a.best_weights]
    return float(
        sum((x - y).square().sum() for x, y in pairs) ** 0.5 / sum(y.square().sum() for _, y in pairs) ** 0.5
    )


def checks(args):
    """The fast ways beside the plain one: best epoch, curves of the loss, weights."""
    rows, plain = [], small_run(args)
    plain.set_pace(False)
    train(plain, bar=False)
    for name, changes, later in (
        ("plain again", {}, False),
        ("not waiting, fused", {}, True),
        ("captured", dict(graph=True), True),
        ("bfloat16, captured", FAST, True),
    ):
        run = small_run(args, **changes)
        run.set_pace(later)
        train(run, bar=False)
        losses = max(abs(a["loss"] - b["loss"]) for a, b in zip(plain.curve, run.curve))
        rows.append(
            dict(
                name=name,
                best_epoch=run.best_epoch,
                best_epoch_plain=plain.best_epoch,
                losses_apart=losses,
                weights_apart=apart(run, plain),
                notes=run.notes,
            )
        )
    alone = [train(small_run(args, s, graph=True), bar=False) for s in range(3)]
    together = train_together([small_run(args, s, graph=True) for s in range(3)])
    rows.append(
        dict(
            name="three seeds in turn",
            weights_apart=max(map(apart, together, alone)),
            notes=together[0].notes,
        )
    )
    return dict(rows=rows)


def levers(args):
    """Training steps with one lever after the other."""
    data = pictures("waterbirds", args.size, 0.2 * args.share)
    return dict(
        rates=lever_rates(
            lambda changes: make(
                args, args.model, data, Method(1), batch_size=args.batch, lr=1e-4, **changes
            )[0],
            tuple(LEVERS),
            steps=20,
            repeats=5,
        )
    )


def waterbirds(args):
    """The paper's Waterbirds preset to where its best model was, beside the usual loop."""
    if args.root:
        data = read_waterbirds(args.root)
        return beside(args, data, data, dict(FLIP, size=args.size, cache=args.cache))
    data = pictures("waterbirds", args.size, args.share)
    return beside(args, data, as_files(data, args.sample, args.scratch), FLIP)


def celebA(args):
    """The same for CelebA, on generated pictures."""
    data = fake_pictures("celebA", args.size, args.celeba_share)
    return beside(args, data, as_files(data, args.sample, args.scratch), FLIP)


def beside(args, data, files, inputs):
    """Our run and the usual loop; in a rehearsal with a plain schedule, since the paper's needs all the data."""
    method = PDE(None, Schedule(4, 2, 2, n_expansions=2), 0.1) if args.rehearse else None
    return bench_training(
        data,
        files,
        args.model,
        method,
        sample=args.sample,
        workers=args.workers,
        device=args.device,
        inputs=inputs,
        **FAST,
    )


def civilcomments(args):
    """The first epochs of CivilComments' preset, on generated texts."""
    texts, network = (
        fake_texts(args.texts_share),
        fake_distilbert(1, 16, 2) if args.rehearse else fake_distilbert(),
    )
    inputs = dict(tokenizer=fake_tokenizer(), max_tokens=40 if args.rehearse else 300)
    method = PDE(None, Schedule(2, 20, 1, n_expansions=2, empty="skip"), 1.0) if args.rehearse else None
    return bench_training(
        texts,
        texts,
        network,
        method,
        epochs=None if args.rehearse else 6,
        sample=args.sample,
        workers=args.workers,
        device=args.device,
        inputs=inputs,
        bf16=True,
    )


def together(args):
    """Pictures per second of several seeds in turn, each in a stream of its own."""
    data, rates = pictures("waterbirds", args.size, 0.2 * args.share), {}
    for n in (1, 2, 4, 8):
        runs = [
            make(args, args.model, data, Method(1), s, batch_size=args.batch, lr=1e-4, **FAST)[0]
            for s in range(n)
        ]
        streams = [
            torch.cuda.stream(torch.cuda.Stream()) if args.device == "cuda" else nullcontext() for _ in runs
        ]

        def turns(steps):
            for _ in range(steps):
                for run, stream in zip(runs, streams):
                    with stream:
                        some_steps(run, 1)

        turns(3)
        rates[n] = args.batch * n * 20 / clocked(lambda: turns(20))
    return dict(rates=rates)


def accuracy(args):
    """Real Waterbirds, an ImageNet MobileNetV2: ERM, GroupDRO, PDE by the paper's schedule and by none, the seeds in turn."""
    data, rows = (
        pictures("waterbirds", args.size, args.share) if args.rehearse else read_waterbirds(args.root),
        {},
    )
    methods = dict(
        erm=(Method(20), 1e-3, 1e-4),
        group_dro=(GroupDRO(20), 1e-3, 1e-3),
        pde=(PDE(None, PAPER, 0.01), 1e-2, 1e-2),
        pde_auto=(PDE(), 1e-3, 1e-3),
    )
    if args.rehearse:
        methods = dict(erm=(Method(1), 1e-3, 1e-4), pde_auto=(PDE(3), 1e-3, 1e-3))
    for name, (method, lr, decay) in methods.items():
        start, changes = (
            time.monotonic(),
            dict(lr=lr, weight_decay=decay, batch_size=64, eval_batch=256, **FAST),
        )
        made = [
            make(
                args,
                "small_cnn" if args.rehearse else "mobilenet_v2",
                data,
                method,
                s,
                args.weights,
                FLIP if args.rehearse else dict(FLIP, size=args.size, cache=args.cache),
                **changes,
            )
            for s in range(5)
        ]
        runs = train_together([run for run, _ in made])
        records = [conclude(run, config, []).record for run, (_, config) in zip(runs, made)]
        worst = [100 * Report(r).figures("test")["worst_group"] for r in records]
        rows[name] = dict(
            seconds=time.monotonic() - start, worst=worst, summary=summary(worst), records=records
        )
        print(
            f"{name}: worst group {summary(worst)['mean']:.1f}, five seeds in {rows[name]['seconds']:.0f} s",
            flush=True,
        )
    return dict(methods=rows)


PARTS = dict(
    checks=checks,
    levers=levers,
    waterbirds=waterbirds,
    together=together,
    accuracy=accuracy,
    celebA=celebA,
    civilcomments=civilcomments,
)


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("--root")
    p.add_argument("--weights")
    p.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    p.add_argument("--workers", type=int, default=8, help="of the usual loop's loaders")
    p.add_argument(
        "--celeba-share", type=float, default=1.0, help="of CelebA's pictures; all need 30 GB of memory"
    )
    p.add_argument("--rehearse", action="store_true")
    args = p.parse_args()
    if not args.rehearse and not torch.cuda.is_available():
        p.error("there is no GPU here that torch can use; --rehearse goes through the parts on a CPU.")
    (
        args.device,
        args.model,
        args.small_model,
        args.size,
        args.small_size,
        args.share,
        args.batch,
        args.sample,
    ) = "cuda", "resnet50", "resnet18", 224, 64, 1.0, 64, 512
    args.texts_share = 1.0
    if args.rehearse:
        (
            args.device,
            args.model,
            args.small_model,
            args.size,
            args.small_size,
            args.share,
            args.batch,
            args.sample,
        ) = "cpu", "small_cnn", "small_cnn", 16, 16, 0.1, 16, 32
        args.workers, args.celeba_share, args.texts_share = 0, 0.005, 0.002
        args.root = args.weights = None
    args.scratch = args.out / "scratch"
    args.scratch.mkdir(parents=True, exist_ok=True)
    args.cache = str(args.scratch / "cache")
    return args


def main():
    args = options()
    warnings.simplefilter("ignore", UserWarning)
    failed = []
    for name in args.parts:
        start = time.monotonic()
        if name == "accuracy" and not args.rehearse and not (args.root and args.weights):
            print("== accuracy: left out, it needs --root and --weights")
            continue
        try:
            result = PARTS[name](args)
        except Exception:
            traceback.print_exc()
            failed.append(name)
            continue
        seconds = round(time.monotonic() - start, 1)
        write_json(
            args.out / f"{name}.json",
            dict(
                result,
                part=name,
                rehearsal=args.rehearse,
                seconds_of_part=seconds,
                device=device_name(args.device),
                surroundings=surroundings(),
            ),
        )
        shown = (
            bench_train_table(result)
            if "usual" in result
            else ""
            if name == "accuracy"
            else "\n".join(map(str, result.get("rows") or result["rates"].items()))
        )
        print(f"== {name}, {seconds} s\n{shown}", flush=True)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
