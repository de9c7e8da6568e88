"""A loop of a dozen lines that trains any method on points in the plane, and its picture; for demonstrations.

There is no validation, so the last model is the result; real training is `pde_nb.training`.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from pde_nb.algorithm.groups import Groups, make_groups
from pde_nb.core.checks import two_features
from pde_nb.core.tables import CLASS_MARKS, CLASSES, SMALL, new_figure
from pde_nb.methods.base import Batch, Method
from pde_nb.methods.jtt import FirstStageResult


@dataclass(frozen=True, eq=False)
class Points:
    "Points in the plane of a core and a spurious feature."

    x: Float[Tensor, "n 2"]
    y: Int[Tensor, " n"]  # classes, 0 or 1
    groups: Groups  # of class and attribute


def make_points(**options) -> Points:  # see `two_features`
    "Points, by default 2,000 whose spurious feature is easier and agrees with the label in 95 %."
    x, y, a = two_features(**options)
    return Points(torch.tensor(x), torch.as_tensor(y), make_groups(y, a))


@dataclass(frozen=True, eq=False)
class OnPoints:
    "What a method came to on points."

    model: nn.Module
    beside: list[nn.Module]  # networks of the method's own
    method: Method  # bound to the points
    notes: list[str]  # of the method


def train_on_points(method: Method, points: Points, seed: int = 0) -> OnPoints:
    "Train a small network as a method says, to its last epoch."
    m = method.begin(points.groups, seed)
    ids = torch.as_tensor(points.groups.ids)
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
    nets = [net, *m.attach(net)]
    notes = learn_from_first(m, net, points, seed) if m.first() else []
    step = torch.optim.SGD(nn.ModuleList(nets).parameters(), 0.02, 0.9)
    epoch = 0
    while not m.pacing.finished(epoch):
        step.param_groups[0]["lr"] = 0.02 * m.pacing.at(epoch).lr_factor
        for at in torch.as_tensor(m.order(epoch)).split(64):
            scores, *others = (f(points.x[at]) for f in nets)
            loss = m.batch_loss(Batch(points.x[at], points.y[at], ids[at], at, scores, tuple(others)))
            step.zero_grad()
            loss.backward()
            step.step()
        epoch += 1
    return OnPoints(net, nets[1:], m, notes)


def learn_from_first(m: Method, net: nn.Module, points: Points, seed: int) -> list[str]:
    "Train the first stage of a method, and let the method take what it came to; its notes."
    one = train_on_points(m.first()[0], points, seed).model
    return m.after_first(FirstStageResult(one, points.y.numpy(), one(points.x).detach().numpy()), net)


def classify_with(net: nn.Module):
    "A function from (n, 2) points to the classes that a network says."
    return lambda x: net(torch.as_tensor(x, dtype=torch.float32)).argmax(1).numpy()


def group_accuracies(net: nn.Module, points: Points) -> Float[np.ndarray, " groups"]:
    "The accuracy of each group, in [0, 1]."
    right = classify_with(net)(points.x) == points.y.numpy()
    return np.array([right[points.groups.ids == g].mean() for g in range(points.groups.n_groups)])


def fig_plane(classifiers: dict, x, y):
    "What classifiers say: regions, and points that have a black edge where they are told wrongly."
    x, y = np.asarray(x, float), np.asarray(y)
    fig, axes = new_figure(len(classifiers), 2.7, 2.5)
    u, v = np.meshgrid(*np.linspace(x.min(0) - 0.3, x.max(0) + 0.3, 200).T)
    for ax, (title, classify) in zip(axes, classifiers.items()):
        regions = np.reshape(classify(np.c_[u.ravel(), v.ravel()]), u.shape)
        ax.contourf(u, v, regions, levels=[-0.5, 0.5, 1.5], colors=CLASSES[:2], alpha=0.2)
        edges = np.where(classify(x) == y, "none", "black")
        for k, mark in enumerate(CLASS_MARKS[:2]):
            of = y == k
            ax.scatter(*x[of].T, color=CLASSES[k], marker=mark, s=12, lw=0.9, edgecolors=edges[of])
        ax.set(xlabel="core feature", xticks=[], yticks=[])
        ax.set_title(title, fontsize=SMALL + 1)
    axes[0].set_ylabel("spurious feature")
    return fig


def fig_methods(nets: dict[str, nn.Module], test: Points, shown: int = 300):
    "What networks say in the plane, one beside the other, with the worst group of each above it."
    titles = {f"{name}: {100 * group_accuracies(net, test).min():.0f} %": net for name, net in nets.items()}
    classifiers = {title: classify_with(net) for title, net in titles.items()}
    return fig_plane(classifiers, test.x[:shown], test.y[:shown])


def print_groups(nets: dict[str, nn.Module], test: Points):
    "Print the accuracy of each group, the worst and the mean over groups, in percent."
    width = max(map(len, nets))
    for name, net in nets.items():
        found = 100 * group_accuracies(net, test)
        groups = ", ".join(f"{value:5.1f}" for value in found)
        print(f"{name:{width}}  groups {groups}; worst {found.min():.1f} %, mean {found.mean():.1f} %")
