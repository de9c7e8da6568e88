"""Everything that needs a GPU, within a time that is given: checks, speed, and Waterbirds at 224 pixels
over five seeds.

    python benchmarks/gpu.py --out FOLDER [--root FOLDER --weights FILE] [--minutes 10]
                             [--parts checks levers waterbirds together accuracy celebA civilcomments]
    python benchmarks/gpu.py --out FOLDER --rehearse

A part begins only if its cost, which is stated in MINUTES, still fits into --minutes; what is left out is
said, and can be had with --parts in another go. The costs are estimates for one H100, not measurements:
the records say what each part took. --root holds the official waterbirds_v1.0 folder and --weights an
ImageNet MobileNetV2; without them `waterbirds` runs on generated pictures, and `accuracy` is left out. No
network is used. Each part writes OUT/PART.json when it ends, `accuracy` after each method, and a part that
fails does not keep the others from running. The exit status is 1 where a part failed, or a check judges
that a fast way does not do what the plain one does.

Needs torch, torchvision and the base packages of pde_nb; `civilcomments` needs transformers, and is left
out without. --rehearse goes through all parts on a CPU with tiny pictures, to find mistakes before GPU
time is spent.
"""

import argparse
import sys
import time
import traceback
import warnings
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pde_nb.algorithm.expansion import Schedule
from pde_nb.benchmarks.fake_data import (
    as_files,
    fake_distilbert,
    fake_pictures,
    fake_texts,
    fake_tokenizer,
)
from pde_nb.benchmarks.levers import LEVERS, lever_rates, take_steps
from pde_nb.benchmarks.usual_loop import seconds_of
from pde_nb.benchmarks.whole_runs import (
    bench_training,
    benchmark_spec,
    device_name,
    duration,
    whole_run_report,
)
from pde_nb.core.files import surroundings
from pde_nb.core.statistics import summary
from pde_nb.core.tables import percent
from pde_nb.methods.base import Method, describe
from pde_nb.methods.group_dro import GroupDRO
from pde_nb.methods.pde import PDE
from pde_nb.methods.registry import method_title
from pde_nb.published.published import read_waterbirds
from pde_nb.records.seals import write_sealed
from pde_nb.runs.record import conclude
from pde_nb.runs.spec import build, built_config, decide
from pde_nb.training.loop import train, train_together

FAST = dict(bf16=True, channels_last=True, graph=True)
PAPER = Schedule(140, 10, 10, n_expansions=16, n_epochs=300)  # of Waterbirds, tab:app-hyper
FLIP = dict(augment=("flip",))
SEEDS = range(5)

# What a part takes on one H100, in minutes: estimated from counts of examples and operations. `accuracy` is
# the sum of its methods.
METHOD_MINUTES = {"erm": 1.0, "group_dro": 1.0, "pde": 0.9, "pde_auto": 1.1}
MINUTES = dict(
    checks=0.7,
    levers=0.8,
    waterbirds=1.5,
    together=0.8,
    accuracy=min(METHOD_MINUTES.values()),  # it begins if one method fits
    celebA=1.8,  # with the default share of the pictures
    civilcomments=1.8,
)

# How far a fast way may be from the plain one. In float32 only sums are taken in another order.
MOST_APART = 1e-3  # of the weights, relative; or ten times what a second plain run is apart
MOST_APART_BF16 = 0.1  # of the loss of an epoch, which bfloat16 rounds to three digits


@dataclass(frozen=True)
class Scale:
    """How large everything is."""

    device: str = "cuda"
    model: str = "resnet50"
    small_model: str = "resnet18"
    size: int = 224  # pixels of a side
    small_size: int = 64
    share: float = 1.0  # of the generated pictures of Waterbirds
    texts_share: float = 1.0  # of the generated comments
    batch: int = 64
    sample: int = 512  # examples on which the usual loop is timed
    steps: int = 20  # of a measurement
    repeats: int = 5  # measurements, of which the median counts
    epochs: int = 4  # of a run that is checked
    pace: float = 1.0  # times the stated minutes


REHEARSAL = Scale(
    device="cpu",
    model="small_cnn",
    small_model="small_cnn",
    size=16,
    small_size=16,
    share=0.1,
    texts_share=0.002,
    batch=16,
    sample=32,
    steps=2,
    repeats=2,
    epochs=2,
    pace=0.05,
)


# ---- common to the parts ----------------------------------------------------------------------


@cache
def pictures(name, size, share):
    """Generated pictures, the same object for the same arguments."""
    return fake_pictures(name, size, share)


def timing_pictures(args):
    """As many pictures as single steps are timed on."""
    return pictures("waterbirds", args.size, 0.2 * args.share)


def run_of(args, data, model, method, **options):
    """A run on the device of this script."""
    options = {"weights": None, "inputs": FLIP, "device": args.device, **options}
    return build(decide(data, model, method, **options), data, bar=False)


def timed_run(args, data, **options):
    """A run of which steps are timed."""
    return run_of(args, data, args.model, Method(1), batch_size=args.batch, lr=1e-4, **options)


# ---- checks: the fast ways beside the plain one -----------------------------------------------


def small_run(args, seed=0, **options):
    """A run that takes seconds."""
    data = pictures("waterbirds", args.small_size, 0.1)
    method = Method(args.epochs)
    return run_of(args, data, args.small_model, method, seed=seed, lr=0.01, batch_size=32, **options)


def distance(a, b):
    """Relative distance of the selected weights of two runs."""
    apart = 0.0
    length = 0.0
    for name, weights in a.best_weights.items():
        other = b.best_weights[name].double()
        apart += float((weights.double() - other).square().sum())
        length += float(other.square().sum())
    return (apart / length) ** 0.5


def not_had(run):
    """What was asked of a run and could not be had, such as a captured forward pass; '' where all was."""
    for lever in ("graph", "compile"):
        if getattr(run.settings, lever):
            return "" if run.forward.how == lever else lever
    return ""


def check_row(args, plain, name, later, noise=0.0, **options):
    """A run made in a faster way beside the plain one: best epoch, curves of the loss, weights, verdict."""
    run = small_run(args, **options)
    run.set_pace(later)
    train(run, bar=False)
    row = dict(
        name=name,
        best_epoch=run.best_epoch,
        best_epoch_plain=plain.best_epoch,
        losses_apart=max(abs(a["loss"] - b["loss"]) for a, b in zip(plain.curve, run.curve)),
        weights_apart=distance(run, plain),
        not_had=not_had(run),
        notes=run.notes,
    )
    return row | dict(verdict=verdict(args, row, noise, bool(options.get("bf16"))))


def verdict(args, row, noise, bf16):
    """'as the plain way', 'differs', or on a GPU 'not had' where a lever was asked for in vain."""
    if row["not_had"] and args.device == "cuda":
        return "not had"
    if bf16:
        return "as the plain way" if row["losses_apart"] <= MOST_APART_BF16 else "differs"
    most = max(MOST_APART, 10 * noise)
    return "as the plain way" if row["weights_apart"] <= most else "differs"


def checks(args):
    """The fast ways beside the plain one, and seeds in turn beside seeds alone."""
    plain = small_run(args)
    plain.set_pace(False)
    train(plain, bar=False)
    again = check_row(args, plain, "plain again", False)
    noise = again["weights_apart"]  # of a device that adds up in any order
    rows = [
        again,
        check_row(args, plain, "not waiting, fused", True, noise),
        check_row(args, plain, "captured", True, noise, graph=True),
        check_row(args, plain, "bfloat16, captured", True, **FAST),
    ]
    alone = [train(small_run(args, seed, graph=True), bar=False) for seed in range(3)]
    in_turn = train_together([small_run(args, seed, graph=True) for seed in range(3)])
    row = dict(
        name="three seeds in turn",
        weights_apart=max(map(distance, in_turn, alone)),
        not_had=not_had(in_turn[0]),
        notes=in_turn[0].notes,
    )
    rows.append(row | dict(verdict=verdict(args, row, noise, False)))
    return dict(rows=rows, failed=[row["name"] for row in rows if row["verdict"] != "as the plain way"])


# ---- speed ------------------------------------------------------------------------------------


def levers(args):
    """Training steps with one lever after the other."""
    data = timing_pictures(args)
    runs = []

    def make(changes):
        runs.append(timed_run(args, data, **changes))
        return runs[-1]

    names = tuple(LEVERS)
    rates = lever_rates(make, names, steps=args.steps, repeats=args.repeats)
    in_vain = {name: not_had(run) for name, run in zip(names, runs) if not_had(run)}
    return dict(rates=rates, not_had=in_vain, notes={n: run.notes for n, run in zip(names, runs)})


def waterbirds(args):
    """The paper's Waterbirds preset to where its best model was, beside the usual loop."""
    if args.root:
        data = read_waterbirds(args.root)
        return beside_usual(args, data, data, dict(FLIP, size=args.size, cache=args.cache))
    data = pictures("waterbirds", args.size, args.share)
    return beside_usual(args, data, as_files(data, args.sample, args.scratch), FLIP)


def celebA(args):
    """The same for CelebA, on generated pictures."""
    data = fake_pictures("celebA", args.size, args.celeba_share)
    return beside_usual(args, data, as_files(data, args.sample, args.scratch), FLIP)


def beside_usual(args, data, files, inputs):
    """Our run and the usual loop.

    In a rehearsal it has a plain schedule: the paper's needs all the data.
    """
    method = None
    if args.rehearse:
        method = PDE(schedule=Schedule(4, 2, 2, n_expansions=2), expansion_lr=0.1)
    spec = benchmark_spec(data, args.model, method, device=args.device, inputs=inputs, **FAST)
    return bench_training(spec, data, files, sample=args.sample, workers=args.workers)


def civilcomments(args):
    """The first epochs of CivilComments' preset, on generated texts."""
    data = fake_texts(args.texts_share)
    network = fake_distilbert()
    method = None
    epochs = 6
    max_tokens = 300
    if args.rehearse:
        network = fake_distilbert(1, 16, 2)
        method = PDE(schedule=Schedule(2, 20, 1, n_expansions=2, empty="skip"), expansion_lr=1.0)
        epochs = None
        max_tokens = 40
    inputs = dict(tokenizer=fake_tokenizer(), max_tokens=max_tokens)
    spec = benchmark_spec(data, network, method, device=args.device, inputs=inputs, bf16=True)
    return bench_training(spec, data, data, epochs, args.sample, args.workers)


def together(args):
    """Pictures per second of several seeds in turn, each in a stream of its own."""
    rates = {}
    spread = {}
    in_vain = {}
    for n in (1, 2, 4, 8):
        seconds, missing = turns_of(args, n)
        times = sorted(args.batch * n * args.steps / one for one in seconds)
        rates[n] = median(times)
        spread[n] = times[0], times[-1]
        if missing:
            in_vain[n] = missing
    return dict(rates=rates, spread=spread, not_had=in_vain)


def turns_of(args, n):
    """Seconds of some measurements of n runs in turn, and what could not be had; the runs are gone after."""
    data = timing_pictures(args)
    runs = [timed_run(args, data, seed=seed, **FAST) for seed in range(n)]
    streams = [new_stream(args) for _ in runs]
    take_turns(runs, streams, 3)
    seconds = [seconds_of(partial(take_turns, runs, streams, args.steps)) for _ in range(args.repeats)]
    missing = not_had(runs[0])
    del runs, streams
    if args.device == "cuda":
        torch.cuda.empty_cache()
    return seconds, missing


def new_stream(args):
    """A stream of the GPU that begins after what is under way; on a CPU a context that does nothing."""
    if args.device != "cuda":
        return nullcontext()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    return torch.cuda.stream(stream)


def take_turns(runs, streams, steps):
    """Steps of several runs, one of each in turn, without waiting for the device."""
    for _ in range(steps):
        for run, stream in zip(runs, streams):
            with stream:
                take_steps(run, 1)


# ---- accuracy ---------------------------------------------------------------------------------


def accuracy(args):
    """Real Waterbirds, an ImageNet MobileNetV2: ERM, GroupDRO, PDE by the paper's schedule and by none.

    What is there is written after each method; one that does not fit into the time is left out.
    """
    methods = {
        "erm": (Method(20), dict(lr=1e-3, weight_decay=1e-4)),
        "group_dro": (GroupDRO(20), dict(lr=1e-3, weight_decay=1e-3)),
        "pde": (PDE(schedule=PAPER, expansion_lr=0.01), dict(lr=1e-2, weight_decay=1e-2)),
        "pde_auto": (PDE(), dict(lr=1e-3, weight_decay=1e-3)),
    }
    if args.rehearse:
        data = pictures("waterbirds", args.size, args.share)
        methods = {"erm": (Method(1), methods["erm"][1]), "pde_auto": (PDE(1), methods["pde_auto"][1])}
    else:
        data = read_waterbirds(args.root)
    result = dict(methods={}, left_out=[])
    for key, (method, settings) in methods.items():
        name = method_title(describe(method))
        if not fits(args, METHOD_MINUTES[key]):
            print(f"{name}: left out, {too_long(args, METHOD_MINUTES[key])}", flush=True)
            result["left_out"].append(name)
            continue
        found = five_seeds(args, data, method, settings)
        result["methods"][name] = found
        mean = percent(found["summary"]["mean"])
        seeds = len(found["worst_group"])
        print(f"{name}: worst group {mean}, {seeds} seeds in {duration(found['seconds'])}", flush=True)
        write_record(args, "accuracy", result)
    return result


def five_seeds(args, data, method, settings):
    """Records of the seeds in turn, the worst group of each in [0, 1], and the seconds of all."""
    start = time.monotonic()
    model = "small_cnn"
    inputs = FLIP
    if not args.rehearse:
        model = "mobilenet_v2"
        inputs = dict(FLIP, size=args.size, cache=args.cache)
    options = dict(weights=args.weights, inputs=inputs, device=args.device)
    batches = dict(batch_size=64, eval_batch=256)
    seeds = SEEDS[:2] if args.rehearse else SEEDS
    specs = [
        decide(data, model, method, seed=seed, **options, **batches, **settings, **FAST) for seed in seeds
    ]
    runs = [build(spec, data, bar=False) for spec in specs]
    configs = [built_config(spec, run) for spec, run in zip(specs, runs)]
    train_together(runs)
    records = [conclude(run, config, []) for run, config in zip(runs, configs)]
    worst_group = [record.figures("test").worst_group for record in records]
    return dict(
        seconds=time.monotonic() - start,
        worst_group=worst_group,
        summary=asdict(summary(worst_group)),
        records=[record.to_dict() for record in records],
    )


# ---- the command ------------------------------------------------------------------------------

PARTS = dict(
    checks=checks,
    levers=levers,
    waterbirds=waterbirds,
    together=together,
    accuracy=accuracy,
    celebA=celebA,
    civilcomments=civilcomments,
)


def parser():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a = p.add_argument
    a("--out", type=Path, required=True, metavar="FOLDER", help="where each part writes its record")
    a("--root", metavar="FOLDER", help="holds the official waterbirds_v1.0 folder")
    a("--weights", metavar="FILE", help="of an ImageNet MobileNetV2")
    a("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="default: all")
    a("--workers", type=int, default=8, help="of the usual loop's loaders")
    a("--celeba-share", type=float, default=0.2, help="of CelebA's pictures; all need 30 GB of memory")
    a("--minutes", type=float, default=10.0, help="that all of it may take; default 10")
    a("--rehearse", action="store_true", help="on a CPU, with tiny pictures")
    return p


def options(argv=None):
    """What was asked for, and the scale of everything."""
    p = parser()
    args = p.parse_args(argv)
    if not args.rehearse and not torch.cuda.is_available():
        p.error("there is no GPU here that torch can use; --rehearse goes through the parts on a CPU.")
    vars(args).update(asdict(REHEARSAL if args.rehearse else Scale()))
    if args.rehearse:
        args.workers = 0
        args.celeba_share = 0.005
        args.root = None
        args.weights = None
    args.deadline = time.monotonic() + 60 * args.minutes
    args.scratch = args.out / "scratch"
    args.scratch.mkdir(parents=True, exist_ok=True)
    args.cache = str(args.scratch / "cache")
    return args


def fits(args, minutes):
    """Whether something of so many stated minutes can still be done in time."""
    return time.monotonic() + 60 * minutes * args.pace <= args.deadline


def too_long(args, minutes):
    """Why something is left out."""
    left = max(0.0, args.deadline - time.monotonic()) / 60
    stated = f"it takes about {minutes * args.pace:.1f} minutes"
    return f"{stated}, and {left:.1f} of --minutes {args.minutes:g} are left"


def reason_against(args, name):
    """Why a part is left out; '' where it is not."""
    if name == "accuracy" and not args.rehearse and not (args.root and args.weights):
        return "it needs --root and --weights"
    if name == "civilcomments" and not find_spec("transformers"):
        return "it needs transformers"
    return "" if fits(args, MINUTES[name]) else too_long(args, MINUTES[name])


def part_text(result):
    """What a part prints at its end."""
    if "usual" in result:
        return whole_run_report(result)
    if "methods" in result:
        return ""  # it has printed each method
    if "rates" in result:
        return "\n".join(rate_line(name, result) for name in result["rates"])
    return "\n".join(map(str, result["rows"]))


def rate_line(name, result):
    """A rate, and what it lacks of its name."""
    missing = result["not_had"].get(name)
    lacks = f"  (without {missing}, which could not be had)" if missing else ""
    return f"{name!s:<20} {result['rates'][name]:10,.1f}/s{lacks}"


def write_record(args, name, result):
    """Write what a part has found so far."""
    seconds = round(time.monotonic() - args.began, 1)
    around = dict(part=name, rehearsal=args.rehearse, seconds_of_part=seconds)
    around |= dict(minutes_stated=MINUTES[name], device=device_name(args.device), surroundings=surroundings())
    write_sealed(args.out / f"{name}.json", result | around)
    return seconds


def run_part(args, name):
    """Run a part, and write its record; the names of checks that failed."""
    args.began = time.monotonic()
    result = PARTS[name](args)
    seconds = write_record(args, name, result)
    print(f"== {name}, {seconds} s\n{part_text(result)}", flush=True)
    return result.get("failed", [])


def main():
    args = options()
    warnings.simplefilter("ignore", UserWarning)
    failed = []
    for name in args.parts:
        why = reason_against(args, name)
        if why:
            print(f"== {name}: left out, {why}", flush=True)
            continue
        try:
            failed += [f"{name} ({check})" for check in run_part(args, name)]
        except Exception:
            traceback.print_exc()
            failed.append(name)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
