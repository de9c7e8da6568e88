"""Golden values: what the library computes, as digests, to compare before and after a change of its form.

    python tools/golden.py write FILE [--only NAME ...]     # make the runs and write their digests
    python tools/golden.py check FILE [--only NAME ...]     # make them again and name every one that differs

The runs: every method on the example table of loans, PDE with both kinds of schedule on small pictures and on
texts with a tiny network, two seeds of the synthetic experiment, the claims of the theory, the plans of five
schedules. A digest is the SHA-256 of the selected weights, of the ledger (which example was shown when), of
the counts of right predictions and the curve, or of the figures. They hold for one machine and one version of
torch: write the file before a change, and check it after. The exit status of `check` is 1 where a value
differs.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
METHODS = (
    *("erm", "subsample", "reweighting", "resampling", "group_dro", "pde", "pde_balanced"),
    *("jtt", "lff", "eiil", "dfr", "dfr_tr"),
)
HAND = "--schedule fixed --set warmup_epochs=6 expand_by=30 expand_every=2 n_expansions=5".split()
LOANS = ["--data", str(ROOT / "examples" / "loans.csv"), "--label", "granted", "--attribute", "district"]
FIGURES = ("val", "test")
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
WORDS = "[PAD] [UNK] [CLS] [SEP] a no bird on land water in the".split()


def digest(*parts):
    """SHA-256 of texts and bytes, the first 16 hexadecimal digits."""
    state = hashlib.sha256()
    for part in parts:
        state.update(part if isinstance(part, bytes) else part.encode())
        state.update(b"\0")
    return state.hexdigest()[:16]


def as_text(value):
    return json.dumps(value, sort_keys=True)


def run(code, *args, folder):
    """Run Python code of this checkout in a fresh process of one thread; its standard output."""
    quiet = {"PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}
    how = dict(cwd=folder, env={**os.environ, **ONE_THREAD, **quiet}, capture_output=True, text=True)
    done = subprocess.run([sys.executable, "-c", code, *args], **how, encoding="utf-8")
    if done.returncode:
        raise SystemExit(f"{' '.join(args)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def command(word, *args, folder):
    """Run a command of `pde`."""
    return run("from pde_nb.cli.app import pde; pde()", word, *args, folder=folder)


# ---- what is read of a run ---------------------------------------------------------------------


def of_run(folder):
    """The digests of a run folder: weights, ledger, and the counts with the course of the run."""
    record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    counts = [[split, *(record["splits"][split][key] for key in ("correct", "total"))] for split in FIGURES]
    course = [[epoch["passes"], epoch.get("lr")] for epoch in record["curve"]]
    digests = {
        "weights": digest((folder / "model.safetensors").read_bytes()),
        "counts": digest(as_text([counts, record["best_epoch"], course])),
    }
    if (folder / "ledger.csv").exists():
        digests["ledger"] = digest((folder / "ledger.csv").read_bytes())
    if (folder / "first").exists():
        digests["first weights"] = digest((folder / "first" / "model.safetensors").read_bytes())
    return digests


def trained(folder, name, *args):
    """Train with `pde train` into the folder `name`, and digest it."""
    command("train", *args, "--out", str(folder / name), folder=folder)
    return of_run(folder / name)


# ---- data made here ----------------------------------------------------------------------------


PICTURES = """
import numpy as np
rng = np.random.default_rng(7)
n = 600
y = rng.integers(2, size=n)
colour = np.where(rng.random(n) < .9, y, 1 - y)
split = np.repeat([0, 1, 2], [360, 120, 120])
x = rng.integers(90, size=(n, 3, 12, 12)).astype(np.uint8)
x[np.arange(n), colour] += 90
x[:, :, 2:6, 2:6] += (40 * y[:, None, None, None]).astype(np.uint8)
np.savez('pictures.npz', x=x, y=y, colour=colour, split=split)
"""

TEXTS = """
import csv, sys
import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, PreTrainedTokenizerFast
words = sys.argv[1:]
pieces = Tokenizer(models.WordPiece({w: i for i, w in enumerate(words)}, unk_token='[UNK]'))
pieces.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
special = [('[CLS]', 2), ('[SEP]', 3)]
pieces.post_processor = processors.TemplateProcessing(
    single='[CLS] $A [SEP]', pair='[CLS] $A [SEP] $B:1 [SEP]:1', special_tokens=special)
PreTrainedTokenizerFast(
    tokenizer_object=pieces, pad_token='[PAD]', unk_token='[UNK]', cls_token='[CLS]', sep_token='[SEP]',
    model_max_length=40, model_input_names=['input_ids', 'token_type_ids', 'attention_mask'],
).save_pretrained('tiny')
BertConfig(vocab_size=len(words), max_position_embeddings=40, hidden_size=16, num_hidden_layers=2,
           num_attention_heads=2, intermediate_size=24, num_labels=2).save_pretrained('tiny')
rng = np.random.default_rng(3)
with open('texts.csv', 'w', newline='') as file:
    table = csv.writer(file)
    table.writerow(['text', 'bird', 'place', 'split'])
    for i in range(400):
        y = int(rng.integers(2))
        water = y if rng.random() < .85 else 1 - y
        text = ['a' if y else 'no', 'bird', 'in' if water else 'on', 'the', 'water' if water else 'land']
        extra = rng.choice(['a', 'the', 'on', 'in'], size=rng.integers(1, 6)).tolist()
        split = 'train' if i < 240 else 'val' if i < 320 else 'test'
        table.writerow([' '.join(text + extra), y, ('land', 'water')[water], split])
"""

PLANS = """
import hashlib, json, warnings
import numpy as np
from pde_nb.algorithm.expansion import Schedule, expansion_plan
from pde_nb.algorithm.groups import make_groups
warnings.simplefilter('ignore')
rng = np.random.default_rng(11)
y = rng.integers(2, size=3000)
groups = make_groups(y, np.where(rng.random(3000) < .9, y, 1 - y))
schedules = {
    'groups': Schedule(5, 50, 2, n_expansions=7),
    'uniform': Schedule(3, 40, 1, draw='uniform', cap=30),
    'replacement': Schedule(4, 25, 3, n_expansions=12, draw='replacement'),
    'class redrawn': Schedule(16, 50, 10, n_expansions=3, draw='redrawn'),
    'listed': Schedule(2, (10, 20, 300), 2),
}
out = {}
for name, schedule in schedules.items():
    plan = expansion_plan(groups, schedule, seed=5)
    parts = [np.asarray(a, np.int64).tobytes() for a in (plan.order, plan.starts, plan.stops)]
    out[name] = hashlib.sha256(b'|'.join(parts)).hexdigest()[:16]
print(json.dumps(out))
"""


# ---- the cases -----------------------------------------------------------------------------------


def loans(method):
    return lambda folder: trained(folder, f"loans-{method}", *LOANS, "--method", method)


def fixed_schedule(folder):
    return trained(folder, "loans-fixed", *LOANS, "--method", "pde", *HAND)


def pictures(name, *settings):
    data = ["--data", "pictures.npz", "--label", "y", "--attribute", "colour", "--model", "small_cnn"]

    def case(folder):
        if not (folder / "pictures.npz").exists():
            run(PICTURES, folder=folder)
        return trained(folder, f"pictures-{name}", *data, "--weights", "none", "--method", "pde", *settings)

    return case


def texts(name, *settings):
    data = ["--data", "texts.csv", "--label", "bird", "--attribute", "place", "--text", "text"]
    data += ["--model", "tiny", "--weights", "none"]

    def case(folder):
        if not (folder / "texts.csv").exists():
            run(TEXTS, *WORDS, folder=folder)
        return trained(folder, f"texts-{name}", *data, "--method", "pde", *settings)

    return case


def synthetic(folder):
    command("reproduce", *"tab:synthetic --seeds 2 --jobs 2 --out synthetic".split(), folder=folder)
    rows = json.loads((folder / "synthetic" / "record.json").read_text(encoding="utf-8"))["rows"]
    kept = [[row["method"], row["seed"], row["counts"], row["warmup"]] for row in rows]
    return {"counts": digest(as_text(kept))}


def theory(folder):
    command("reproduce", "claims", "--json", "theory.json", "--jobs", "2", folder=folder)
    claims = json.loads((folder / "theory.json").read_text(encoding="utf-8"))["claims"]
    kept = [[claim["label"], claim["printed"], round(claim["margin"], 10)] for claim in claims]
    return {"claims": digest(as_text(kept))}


def plans(folder):
    return json.loads(run(PLANS, folder=folder))


CASES = {
    "plans": plans,
    **{f"loans {method}": loans(method) for method in METHODS},
    "loans pde fixed schedule": fixed_schedule,
    "pictures pde": pictures("auto"),
    "pictures pde fixed schedule": pictures("fixed", *HAND),
    "texts pde": texts("auto", "--epochs", "12"),
    "texts pde fixed schedule": texts("fixed", *HAND),
    "synthetic": synthetic,
    "theory": theory,
}


# ---- the command -----------------------------------------------------------------------------------


def measured(names):
    """The digests of the cases, each printed when it is there."""
    with tempfile.TemporaryDirectory() as name:
        found = {}
        for case in names:
            found[case] = CASES[case](Path(name))
            print(
                f"{case:<24} {'  '.join(f'{key} {value}' for key, value in found[case].items())}", flush=True
            )
    return found


def differences(before, after):
    """A line for each value that differs, or that one side lacks."""
    for case, values in after.items():
        known = before.get(case, {})
        for key in sorted(known.keys() | values.keys()):
            if known.get(key) != values.get(key):
                yield f"{case}: {key} was {known.get(key)}, and is {values.get(key)}"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "action", choices=("write", "check"), help="write the values, or compare with written ones"
    )
    parser.add_argument("file", type=Path, help="JSON file of the values")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=tuple(CASES), help="some of the cases")
    options = parser.parse_args()
    if options.action == "check" and not options.file.exists():
        parser.error(f"{options.file} is not there: write it first, from the state to compare with")
    found = measured(options.only or CASES)
    if options.action == "write":
        options.file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        return 0
    lines = list(differences(json.loads(options.file.read_text(encoding="utf-8")), found))
    print("\n".join(lines) or f"all {len(found)} cases are equal")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
