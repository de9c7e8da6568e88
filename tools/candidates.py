"""Changes of PDE that were tried, each a method outside the library, made by its public extension points.

What each is worth is judged by the protocol of nbs/13_experiments/20_better.ipynb; tools/better.py runs
them. Their tests are in nbs/13_experiments/21_better_tests.ipynb.
"""

from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from pde_nb.algorithm.groups import balanced_subset, partition
from pde_nb.algorithm.pacing import Pace
from pde_nb.algorithm.rounds import geometric_plan, passing
from pde_nb.core.arguments import number
from pde_nb.methods.base import Batch, First, epoch_rng
from pde_nb.methods.dfr import (
    Candidate,
    DFRTrain,
    Embedded,
    as_head,
    check_ends_in_head,
    judged,
    moments,
    put_head,
    ranking,
)
from pde_nb.methods.group_dro import batch_group_losses
from pde_nb.methods.pde import PDE, BalancedPDE
from pde_nb.networks.heads import head_name


@dataclass
class AveragePDE(PDE):
    """PDE whose model is an average of the weights of the last rounds; validation judges the average.

    The network that is trained is one beside the model, and trains on. Before each of its steps the model's
    weights take a share of its weights, so that the average reaches back `window` rounds; at the beginning
    of a run, half of what was shown. The step before an evaluation is not in it yet. Normalisation
    statistics are those that the average has on the training batches. A stage begins from both networks
    as they were at the best round, or (`goes_on` 'average') from the average.
    """

    window: float = 5.0  # rounds that the average reaches back, > 0
    goes_on: str = "running"  # with which network a stage begins: the 'running' one, or the 'average'

    name = "pde_average"
    schedules = ("auto",)

    def check(self, groups):
        super().check(groups)
        number("window", self.window, 0, above=True)
        if self.goes_on not in ("running", "average"):
            raise ValueError(f"goes_on={self.goes_on!r}; use 'running' or 'average'.")

    def setup(self):
        super().setup()
        self.shown = 0  # examples that the average has seen
        self.kept = None  # weights that the next stage begins with

    def attach(self, model):
        self.model = model
        self.running = deepcopy(model)
        model.requires_grad_(False)
        return [self.running]

    def batch_loss(self, batch: Batch):
        self.take_in(len(batch.y))
        return super().batch_loss(replace(batch, scores=batch.beside[0], beside=()))

    @torch.no_grad()
    def take_in(self, n: int):
        "Move the average towards the running network, by the share of a batch of so many examples."
        self.shown += n
        reach = min(self.window * self.pacing.round_size, self.shown / 2)
        for mean, now in zip(self.model.parameters(), self.running.parameters(), strict=True):
            mean.lerp_(now, min(1.0, n / reach))

    def after_epoch(self, epoch, val_worst_group, best):
        if best:
            network = self.model if self.goes_on == "average" else self.running
            self.kept = {name: t.detach().clone() for name, t in network.state_dict().items()}
        begins = super().after_epoch(epoch, val_worst_group, best)
        if begins:
            self.running.load_state_dict(self.kept)
        return begins

    def state_dict(self):
        return {**super().state_dict(), "shown": self.shown, "kept": self.kept}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.shown, self.kept = state["shown"], state["kept"]


@dataclass
class MomentumDrawsPDE(PDE):
    """PDE with several draws whose expansion begins with the mean of their momentum, not with none.

    The state of the optimiser at the best round of each draw is kept; their mean is put into the optimiser
    before the first step of every stage that begins from the average."""

    draws: int = 5
    soup: str | None = "all"

    name = "pde_draws_momentum"
    schedules = ("auto",)

    def setup(self):
        super().setup()
        self.optimiser = None
        self.of_best = None  # state of the optimiser at the best round of the running draw
        self.of_draws = []  # the same of all draws that are over
        self.puts = False  # whether the next step begins with their mean

    def attach(self, model):
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        register_optimizer_step_pre_hook(self.before_step)
        return super().attach(model)

    def before_step(self, optimiser, args, kwargs):
        "Hear which optimiser is the run's, and give it the mean where a stage begins."
        if optimiser.param_groups[0]["params"][0] is not self.parameters[0]:
            return  # of another run
        self.optimiser = optimiser
        if self.puts:
            for k, p in enumerate(self.parameters):
                optimiser.state[p] = mean_state([state[k] for state in self.of_draws])
            self.puts = False

    def after_epoch(self, epoch, val_worst_group, best):
        warms_up = self.draw(epoch) is not None and not self.averages_draws(epoch)
        if warms_up and best:
            self.of_best = [clones(self.optimiser.state[p]) for p in self.parameters]
        begins = super().after_epoch(epoch, val_worst_group, best)
        if warms_up and begins:
            self.of_draws.append(self.of_best)
        if best and self.draw(epoch) is None:
            self.of_draws = []  # the best state has a momentum of its own
        if begins and self.draw(epoch + 1) is None:
            self.puts = bool(self.of_draws)
        return begins

    def state_dict(self):
        own = {"of_best": self.of_best, "of_draws": self.of_draws, "puts": self.puts}
        return {**super().state_dict(), **own}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.of_best, self.of_draws = state["of_best"], state["of_draws"]
        self.puts = state["puts"]


def clones(state: dict) -> dict:
    "What an optimiser keeps of a parameter, as it is now."
    return {name: v.clone() for name, v in state.items() if isinstance(v, torch.Tensor)}


def mean_state(states: list[dict]) -> dict:
    "The mean of what an optimiser kept of a parameter in several draws."
    return {name: torch.stack([state[name] for state in states]).mean(0) for name in states[0]}


@dataclass
class GroupDROPDE(BalancedPDE):
    """PDE whose expansions have the loss of GroupDRO. Weights over groups begin uniform after the warm-up,
    and where a stage begins from the best state they are those of that state too."""

    eta: float = 0.01  # step size of the weights, > 0
    by: str = "group"  # rounds after the warm-up draw every 'group' equally often, or 'none': every example

    name = "pde_group_dro"

    def check(self, groups):
        super().check(groups)
        number("eta", self.eta, 0, above=True)
        if self.by not in ("group", "none"):
            raise ValueError(f"by={self.by!r}; draw by 'group' or 'none'.")

    def setup(self):
        super().setup()
        there = torch.as_tensor(self.groups.counts > 0)
        self.q = there.float() / there.sum()
        self.best_q = self.q
        self.now = 0  # the running epoch

    def order(self, epoch):
        return PDE.order(self, epoch) if self.by == "none" else super().order(epoch)

    def loss(self, losses, groups):
        if self.stage(self.now) == 0:
            return super().loss(losses, groups)
        mean, _ = batch_group_losses(losses, groups, len(self.q))
        self.q = self.q.to(losses.device) * torch.exp(self.eta * mean.detach())
        self.q = self.q / self.q.sum()
        return (self.q * mean).sum()

    def after_epoch(self, epoch, val_worst_group, best):
        if best:
            self.best_q = self.q
        begins = super().after_epoch(epoch, val_worst_group, best)
        self.now = epoch + 1
        if begins:
            self.q = self.best_q
        return begins

    def state_dict(self):
        return {**super().state_dict(), "q": self.q, "best_q": self.best_q, "now": self.now}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.q, self.best_q = state["q"], state["best_q"]
        self.now = state["now"]


@dataclass
class RedrawPDE(PDE):
    """PDE whose stages after the warm-up draw their rows of each group anew, as many as the plan has of it;
    a group that is in the set whole stays so. There is no ledger: a row may enter and leave."""

    name = "pde_redraw"
    schedules = ("auto",)

    def active(self, epoch):
        plan = super().active(epoch)
        began = self.pacing.at(epoch).began
        if began == 0:
            return plan
        sizes = np.bincount(self.groups.ids[plan], minlength=self.groups.n_groups)
        rng = epoch_rng(self.seed, began, 4)
        parts = [rng.permutation(rows)[:n] for rows, n in zip(partition(self.groups), sizes)]
        return np.sort(np.concatenate(parts))

    def order(self, epoch):
        began, size = self.pacing.at(epoch).began, self.pacing.round_size
        if began == 0:
            return super().order(epoch)

        def shuffle(p: int) -> np.random.Generator:
            return epoch_rng(self.seed, began, 2, p)

        return passing(self.active(epoch), (epoch - began) * size, size, shuffle)

    def ledger(self, epochs=None):
        return None


class SlowBody:
    "Makes each step of an optimiser a fraction of itself in all layers of a network but the last."

    def __init__(self, network: nn.Module, factor: float):
        head = {id(p) for p in network.get_submodule(head_name(network)).parameters()}
        self.body = [p for p in network.parameters() if p.requires_grad and id(p) not in head]
        self.factor = factor
        self.before = None  # the weights before a step that is not shortened yet
        network.register_forward_pre_hook(self.shorten)
        network.register_state_dict_pre_hook(self.shorten)

    def expect_step(self):
        "To be called before a step of the optimiser."
        self.before = [p.detach().clone() for p in self.body]

    @torch.no_grad()
    def shorten(self, *_):
        "Shorten the step that was made, before anybody looks at the weights."
        if self.before is not None:
            for p, was in zip(self.body, self.before, strict=True):
                p.copy_(was.lerp(p, self.factor))
        self.before = None


@dataclass
class BodyLRPDE(PDE):
    "PDE in which all layers but the last learn at a fraction of the learning rate, whatever the optimiser."

    body_lr: float = 0.1  # that fraction, > 0

    name = "pde_body_lr"
    schedules = ("auto",)

    def check(self, groups):
        super().check(groups)
        number("body_lr", self.body_lr, 0, above=True)

    def attach(self, model):
        beside = super().attach(model)
        self.slow_body = SlowBody(beside[0] if beside else model, self.body_lr)
        return beside

    def batch_loss(self, batch: Batch):
        self.slow_body.expect_step()
        return super().batch_loss(batch)


@dataclass
class RefitPDE(DFRTrain):
    """PDE, and then the last layer is fitted again, by the regression of DFR: to the warm-up set, or to the
    mean over `subsets` balanced sets. Its strength is chosen on validation, as DFR-Tr has it.
    With `checked` PDE's own last layer stays unless the new one is better on validation."""

    subsets: int = 1  # 1: the warm-up set itself
    checked: bool = False

    name = "pde_refit"

    def first(self):
        return PDE(epochs=self.epochs), {}

    def within(self, passes, groups, n_val=0):
        return replace(self, epochs=PDE().within(passes, groups, n_val).epochs)

    def sets(self) -> list[np.ndarray]:
        "The positions that the last layer is fitted to."
        if self.subsets == 1:
            return [geometric_plan(self.groups, Pace().growth, self.seed).active(0)]
        rng = np.random.default_rng([self.seed, 5])
        return [balanced_subset(self.groups, rng, None, "skip") for _ in range(self.subsets)]

    def after_first(self, first: First, model):
        train, val = (Embedded(*first.embedded(split)) for split in ("train", "val"))
        n_classes, sets = first.scores.shape[1], self.sets()
        mean, scale = moments(train.x)
        fitted = []
        for C in self.strengths:
            fits = [self.fit(Candidate(C), train, at, n_classes, mean, scale) for at in sets]
            weight, bias = (np.mean(part, 0) for part in zip(*fits))
            found = judged(Candidate(C), weight, bias, val, mean, scale)
            fitted.append((found, weight, bias))
        best = ranking([found for found, *_ in fitted])[0]
        weight, bias = next(rest for found, *rest in fitted if found is best)
        model.load_state_dict(first.model.state_dict())
        check_ends_in_head(first, train.x)
        head = model.get_submodule(head_name(model))
        own = (head.weight.detach().cpu().double().numpy(), head.bias.detach().cpu().double().numpy())
        nothing = np.zeros(train.x.shape[1]), np.ones(train.x.shape[1])
        before = judged(Candidate(0), *own, val, *nothing)
        if self.checked and before.score() >= best.score():
            return ["the last layer of PDE stays: none that was fitted is better on validation"]
        put_head(model, *as_head(weight, bias, mean, scale))
        self.used = np.unique(np.concatenate(sets))
        figures = f"{100 * before.worst_group:.1f} to {100 * best.worst_group:.1f} %"
        return [f"the last layer was fitted again with C = {best.C:g}: on validation from {figures}"]
