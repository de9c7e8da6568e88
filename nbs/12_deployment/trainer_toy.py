"""A toy for the tests of the Trainer, which import it; several processes run it by themselves.

torchrun --nproc_per_node 2 trainer_toy.py FOLDER   # what each process showed and came to, into FOLDER
"""

import logging
import sys

import numpy as np
import torch
from datasets import Dataset

from pde_nb.algorithm.expansion import Schedule
from pde_nb.algorithm.groups import make_groups
from pde_nb.core.checks import quiet
from pde_nb.hf import RobustTrainer

from transformers import (  # isort: skip
    BertConfig,
    BertForSequenceClassification,
    PrinterCallback,
    TrainingArguments,
)
from transformers.utils.logging import disable_progress_bar  # isort: skip


def made_up(n, agree, seed):
    "Sentences of numbers: a word that mostly says the label, one that says the attribute, and the row."
    rng = np.random.default_rng(seed)
    label = rng.integers(2, size=n)
    negation = np.where(rng.random(n) < agree, label, 1 - label)
    row = np.arange(n)
    said = np.where(rng.random(n) < 0.95, label, 1 - label)
    words = np.stack([2 + said + 2 * rng.integers(2, size=n), 6 + negation, 10 + row // 20, 10 + row % 20], 1)
    mask = np.ones_like(words)
    return Dataset.from_dict(
        dict(input_ids=words.tolist(), attention_mask=mask.tolist(), label=label, negation=negation)
    )


def rows_of(input_ids):
    "Which rows a batch shows."
    return (20 * (input_ids[:, 2] - 10) + input_ids[:, 3] - 10).tolist()


def small_model(dropout=0.1):
    "A transformer of one layer with random weights."
    torch.manual_seed(0)
    sizes = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    off = dict(hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
    return BertForSequenceClassification(BertConfig(vocab_size=40, max_position_embeddings=8, **sizes, **off))


class Watched(RobustTrainer):
    "Notes which examples each part of a step shows, and at which learning rate."

    def training_step(self, model, inputs, *more, **others):
        rate = self.optimizer.param_groups[0]["lr"]
        self.shown = [
            *getattr(self, "shown", []),
            (self.state.global_step, rate, rows_of(inputs["input_ids"])),
        ]
        return super().training_step(model, inputs, *more, **others)


logging.getLogger("transformers").setLevel(logging.ERROR)
disable_progress_bar()
train, valid = made_up(160, 0.85, seed=0), made_up(40, 0.5, seed=1)
columns = ("label", "negation")
groups = make_groups(train["label"], train["negation"], names=columns)
schedule = Schedule(warmup_epochs=2, expand_by=23, expand_every=1, n_expansions=3)
usual = dict(
    num_train_epochs=1,
    per_device_train_batch_size=8,
    learning_rate=3e-3,
    lr_scheduler_type="constant",
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
    dataloader_pin_memory=False,
    save_strategy="no",
    logging_strategy="no",
)
best = dict(
    eval_strategy="epoch",
    save_strategy="epoch",
    load_best_model_at_end=True,
    metric_for_best_model="worst_group",
    save_total_limit=2,
    learning_rate=4e-4,
)


def make(folder="run", method="pde", kind=Watched, **changes):
    "A trainer of the toy; `changes` of its arguments, or of TrainingArguments."
    own = ("schedule", "groups", "eval_groups", "eval_dataset", "train_dataset", "callbacks")
    own += ("data_collator", "compute_metrics", "optimizers", "model", "model_init", "compute_loss_func")
    mine = {name: changes.pop(name) for name in own if name in changes}
    if method == "pde" and "schedule" not in mine:
        mine["schedule"] = schedule
    if "model_init" not in mine:
        mine.setdefault("model", small_model())
    args = TrainingArguments(folder, **{**usual, **changes})
    given = dict(train_dataset=train, eval_dataset=valid, groups=columns, method=method)
    with quiet():
        trainer = kind(args=args, **{**given, **mine})
    trainer.remove_callback(PrinterCallback)
    return trainer


def rows(trainer):
    "What was shown, part after part."
    return [shown for _, _, shown in trainer.shown]


def weights(trainer):
    "All weights of the model."
    return torch.cat([p.detach().flatten() for p in trainer.model.parameters()])


if __name__ == "__main__":
    torch.set_num_threads(1)
    still = dict(per_device_train_batch_size=4, max_grad_norm=0.0)
    trainer = make(sys.argv[1] + "/run", model=small_model(dropout=0), **still)
    trainer.train()
    said = dict(shown=rows(trainer), weights=weights(trainer))
    torch.save(said, f"{sys.argv[1]}/process-{trainer.args.process_index}.pt")
    torch.distributed.destroy_process_group()
