"""Tables, sentences and pictures of the page on real data, one run each; from the records in results/real."""

from pathlib import Path

from evidence import TASKS
from evidence_pictures import draw_course

from pde_nb.comparison.trials import Trial
from pde_nb.core.statistics import wilson_interval
from pde_nb.core.style import COLOURS, SMALL, Row, fig_rows, new_figure
from pde_nb.core.tables import Table, percent
from pde_nb.runs.record import RunRecord

FOLDER = Path(__file__).resolve().parents[2] / "results" / "real"
METHODS = {  # task → its records
    "waterbirds": ("erm", "subsample", "group_dro", "pde", "pde-fixed"),
    "sick": ("erm", "subsample", "group_dro", "pde"),
    "adult": ("erm", "subsample", "group_dro", "pde"),
    "coloured_mnist": ("erm", "subsample", "group_dro", "pde"),
}
TITLES = {
    "erm": "ERM",
    "subsample": "Subsample",
    "group_dro": "GroupDRO",
    "pde": "PDE",
    "pde-fixed": "PDE by hand",
}


def read_run(task: str, method: str) -> RunRecord:
    "The record of a run."
    return RunRecord.read(FOLDER / f"{task}-{method}.json")


def accuracy_table(task: str) -> Table:
    "Accuracies of all methods on one task, in percent; the test set's worst group with its 95 % interval."
    rows = []
    for method in METHODS[task]:
        record = read_run(task, method)
        val, test = record.figures("val"), record.figures("test")
        ends = [percent(end, mark="") for end in (test.worst_group_low, test.worst_group_high)]
        worst = f"{percent(test.worst_group, mark='')} [{', '.join(ends)}]"
        others = (test.average, test.adjusted_average, val.worst_group)
        rows.append((TITLES[method], worst, *(percent(figure, mark="") for figure in others)))
    head = ("method", "worst group, test", "average", "adjusted average", "worst group, validation")
    return Table(head, tuple(rows))


def cost_table(task: str) -> Table:
    "When each method was at its best, and what it cost."
    rows = []
    for method in METHODS[task]:
        record = read_run(task, method)
        curve = record.curve
        looked_at = sum(entry["evaluated"] for entry in curve) / (len(curve) * record.counts("val").n)
        passes = f"{curve[record.best_epoch]['passes']:.2f} of {curve[-1]['passes']:.2f}"
        epochs = f"{record.best_epoch} of {len(curve)}"
        minutes = f"{record.seconds / 60:.1f}"
        rows.append((TITLES[method], epochs, passes, percent(looked_at, 0), minutes))
    head = ("method", "best epoch", "best after, passes", "validation looked at", "minutes")
    return Table(head, tuple(rows))


def fig_methods(task: str):
    "Worst group and average of each method on the test set, with the 95 % intervals of one run."
    worst, average = [], []
    for method in METHODS[task]:
        record = read_run(task, method)
        test, counts = record.figures("test"), record.counts("test")
        low, high = wilson_interval(counts.n_correct, counts.n)
        figures = (test.worst_group, test.worst_group_low, test.worst_group_high)
        worst.append(percent_row(TITLES[method], *figures, method == "pde"))
        average.append(percent_row(TITLES[method], test.average, low, high, method == "pde"))
    fig = fig_rows({"worst group": worst, "average": average}, "right on the test set, %")
    for ax in fig.axes:
        ax.set_xlim(-2, 102)
    return fig


def percent_row(name: str, figure: float, low: float, high: float, subject: bool) -> Row:
    "A row of shares, in percent."
    return Row(name, 100 * figure, 100 * min(low, figure), 100 * max(high, figure), subject)


def fig_runs(task: str, methods: tuple[str, ...]):
    "Worst group on validation along some runs; dotted lines begin a stage, a ring is the selected epoch."
    fig, axes = new_figure(len(methods), 3.1)
    for ax, method in zip(axes, methods):
        trial = Trial.of_run(read_run(task, method))
        draw_course(ax, trial, steps_back=False)
        best = trial.curve[trial.best_epoch]
        ring = dict(ms=11, mfc="none", mec=COLOURS["average"], mew=1.4, label="selected")
        ax.plot(best["passes"], 100 * best["val_worst_group_at_most"], "o", **ring)
        ax.set(xlabel="passes over the training set", ylabel="worst group, validation, %")
        ax.set_title(TITLES[method], fontsize=SMALL + 1)
    names = axes[0].get_legend_handles_labels()
    fig.legend(*names, loc="outside lower center", ncols=4, fontsize=SMALL, frameon=False)
    return fig


def state_text(entry: dict) -> str:
    "Validation's worst group and average after an epoch."
    average = sum(entry["correct"]) / sum(entry["counted"])
    return f"{percent(entry['val_worst_group'])} (average {percent(average)})"


def expansion_text(task: str, method: str = "pde") -> str:
    "What the expansion changed on validation."
    best = [entry for entry in read_run(task, method).curve if entry["best"]]
    warm = [entry for entry in best if entry["stage"] == 0][-1]
    after = [entry for entry in best if entry["stage"] > 0]
    end = "no epoch of the expansion was better"
    if after:
        end = f"the expansion came to {state_text(after[-1])}"
    title = TITLES[method]
    return f"{title}: the worst group on validation was {state_text(warm)} at the best of the warm-up; {end}."


def about_text(task: str) -> str:
    "Network, size and machine of a task."
    record = read_run(task, "pde")
    config, place = record.config, record.surroundings
    return (
        f"{config['model']}, weights {config['weights']}, {record.n_train:,} training examples; "
        f"{place['processor']}, {place['cores']} cores, torch {config['torch']}, seed {config['seed']}."
    )


def gain_sentences() -> list[str]:
    "The worst group of plain training and of PDE, task by task; one run each, so nothing is ranked."
    sentences = []
    for task in METHODS:
        erm, pde = (percent(read_run(task, m).figures().worst_group) for m in ("erm", "pde"))
        sentences.append(f"{TASKS[task]}: {erm} with ERM, {pde} with PDE.")
    return sentences
