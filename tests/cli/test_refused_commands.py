"""Commands that contradict themselves: one line with what was expected, status 2, no folder.

One example of each rule. That flags, files and Python refuse a setting by the same line is held by
test_wrong_settings.py.
"""

import pytest

BEGINNINGS = {
    "sst": "--mode single --task sst --encoder tiny",
    "sts": "--mode single --task sts --encoder tiny",
    "qqp2": "--mode single --task qqp --encoder tiny --qqp-loss with-contrastive",
    "at-vectors": "--mode single --task qqp --qqp-loss with-contrastive --gradients representation",
    "all": "--mode multitask --encoder tiny",
    "first": "--mode multitask --encoder tiny --schedule first-then-joint",
    "pretrain": "--mode pretrain --encoder tiny",
    "superloss": "--mode pretrain --encoder tiny --objective superloss",
    "own-text": "--mode pretrain --encoder tiny --text x --objective",
    "lacon": "--mode single --task sst --encoder tiny --objective lacon --label-terms",
    "probe": "--mode probe --encoder tiny",
    "bilstm": "--mode bilstm --tasks sst --output x",
}
MODES_AND_FLAGS = [
    ("", "--mode: expected one of single, multitask"),
    ("--mode", "--mode: expected one argument"),
    ("--mode nope", "--mode: expected one of single, multitask"),
    ("sst stray", "unrecognized arguments: stray"),
    ("sst --output", "--output: expected one argument"),
    ("sst --epoch 3", "--epoch"),
    ("sst --sampling annealed", "unrecognized arguments: --sampling"),
    ("pretrain --objective simcse --sst-head hidden", "unrecognized arguments: --sst-head"),
    ("sst --resume --overwrite", "resume and --overwrite: expected at most one"),
    ("--mode pareto --resume", "a sweep always resumes"),
    ("--mode pareto --dry-run", "--dry-run: expected --mode multitask"),
    ("--mode pareto --tasks sst", "--tasks: expected two or three, found sst"),
    ("--mode pareto --combiner sum", "--combiner: expected one of epo, linear, pareto-mtl, found"),
    ("all --pcgrad --combiner sum", "expected one combiner"),
    ("sst --device gpu", "--device: expected auto, cpu, cuda or cuda:N, found 'gpu'"),
]
VALUES = [
    ("sst --epochs=", "--epochs: expected a whole number from 1 to 1000000, found ''"),
    ("sst --lr=-inf", "--lr: expected a number above 0 and at most 1000000, found -inf"),
    ("sst --warmup=nan", "--warmup: expected a number from 0 to 1, found nan"),
    ("sst --seed 4294967296", "4294967295, found 4294967296"),
    ("sst --precision fp16", "--precision: expected one of fp32, bf16, found 'fp16'"),
    ("sst --sst-head nope", "--sst-head: expected one of hidden, softmax, found 'nope'"),
    ("all --sampling nope", "--sampling: expected one of round-robin, hybrid, annealed"),
    ("all --limit 0", "limit: expected"),
    ("all --limit 1.5", "limit: expected"),
    ("all --limit =3", "limit: expected"),
    ("all --limit cola=3", "limit: expected one of sst, qqp, sts, found 'cola'"),
    ("all --limit 3 4", "limit: expected one for all tasks, found several"),
    ("sst --smart-weight qqp=1", "--smart-weight: expected one of sst, found 'qqp'"),
    ("sst --smart-weight sst=1 sst=0", "expected one for sst, found several"),
    ("sst --smart-weight =2", "by task, found '=2'"),
    ("sst --r-drop-weight sst=x", "expected a number from 0 to 1000000, found 'x'"),
    ("bilstm --max-tokens 2", "--max-tokens: expected a whole number"),
]
TASKS = [
    ("--mode single", "--task: expected one, found none"),
    ("probe", "--task: expected one, found none"),
    ("--mode single --task nope", "expected one of sst, qqp, sts, "),
    ("--mode single --task ../sst", "expected the name of a task, or an own task NAME=FILE:"),
    ("--mode single --task nope", "or an own task NAME=FILE:type=...,text=...,label=..., found"),
    ("--mode single --task sst=x.csv:type=similarity", "this one is reserved"),
    ("all --tasks", "--tasks: expected at least one argument"),
    ("all --tasks sst nope", "'nope'"),
    ("all --tasks sst qqp sst", "expected each task once, found sst twice"),
    ("all --tasks sst --task sst", "--tasks: expected each task once"),
    ("sst --sts-head cosine", "--sts-head: expected sts among the tasks, found sst"),
    ("sst --pair joint", "--pair: expected qqp or mrpc or rte or qnli"),
    ("probe --task sts", "--task: expected a task with classes, found sts"),
    ("sts --objective ls", "--objective ls: expected a task with classes, found sts"),
    ("sts --per-class", "--per-class: expected a task with classes, found sts"),
    ("all --protocol few-shot --shots 9", "tasks with classes, found sts"),
    ("sst --protocol few-shot", "--protocol few-shot: expected shots, found none"),
    ("sst --shots 3", "--shots: expected protocol few-shot or capped"),
    ("bilstm --vectors v --embedding-size 3", "--embedding-size: expected at most one"),
]
MIXING = [
    ("sst --pcgrad", "--combiner pcgrad: expected two objectives or more, found sst"),
    ("sst --objective epo --pcgrad", "--combiner pcgrad: expected two objectives or more"),
    ("all --freeze-encoder --pcgrad", "pcgrad: expected a shared encoder, found freeze_encoder"),
    ("all --pcgrad --batches-per-step 1", "found schedule joint with batches_pe"),
    ("all --schedule individual --batches-per-step 2", "expected 1 with schedule individual"),
    ("all --temperature 2", "--temperature: expected sampling temperature, found"),
    ("all --sampling temperature --temperature 0.5", "expected a number from 1"),
    ("all --first-task sst", "--first-task: expected sampling hybrid or schedule"),
    ("first --first-task cola", "--first-task: expected one of sst, qqp, sts, found 'co"),
    ("first --first-epochs 3", "--first-epochs: expected fewer than epochs 3, found 3"),
    ("first --sampling hybrid", "--sampling hybrid and --schedule first-then-joint: exp"),
    ("first --tasks sst", "--schedule first-then-joint: expected two tasks or mor"),
    ("all --sampling hybrid --tasks sts", "expected two tasks or more, found sts"),
    ("all --cones 3", "--cones: expected combiner pareto-mtl, found 3"),
    ("all --pcgrad --preference 1 1 1", "--preference: expected combiner epo or"),
    ("all --combiner epo --preference 1 2", "expected 3 numbers, for sst, qqp, sts, found 2"),
    ("all --combiner epo --preference 1 0 2", "expected numbers above 0 for combiner epo, found"),
    ("all --combiner epo --preference 1 nan 2", "expected a number from 0"),
    ("all --combiner linear --preference 0 0 0", "expected at least one number above 0"),
    ("all --gradients representation", "expected one task with several objectives"),
    ("at-vectors --micro-batch 2", "expected at most one"),
    (
        "all --tasks qqp --qqp-loss with-contrastive --gradients representation "
        "--batches-per-step 2",
        "expected --batches-per-step 1, found 2",
    ),
    ("qqp2 --pair joint", "--pair joint: expected neither head nor loss with it"),
    ("sst --keep last --patience 2", "expected at most one"),
    ("sst --probe-epochs 3", "--probe-epochs: expected fewer than epochs 3, found 3"),
    ("sst --probe-epochs 1 --freeze-encoder", "expected at most one"),
    ("sst --smart-steps 2", "--smart-steps: expected a --smart-weight above 0, found 2"),
    ("sst --smart-weight 0 --smart-norm l2", "--smart-norm: expected a --smart-weight"),
    ("sst --r-drop-weight 1 --freeze-encoder", "expected at most one"),
    (
        "sst --smart-weight 1 --smart-variant projected --smart-radius 1e-5 --precision bf16",
        "--smart-radius: expected 0.0039 or more with precision bf16",
    ),
]
OBJECTIVES = [
    ("sst --scl-weight 0.5", "expected objective scl or ls or epo or cl, found"),
    ("sst --objective scl --scl-weight 1", "expected a number below 1"),
    ("sst --objective scl --scl-preference 0.5", "--scl-preference: expected objective ls or epo"),
    ("sst --objective epo --scl-preference 0", "between 0 and 1 for EPO"),
    ("sst --objective ls --freeze-encoder", "--objective ls and --freeze-encoder: expected at"),
    ("sst --objective cl --probe-epochs 1", "--objective cl and --probe-epochs: expected at most"),
    ("sst --objective scl --smart-weight 1", "--objective scl and --smart-weight"),
    ("all --objective ls --qqp-loss with-contrastive", "--objective ls and loss of qqp: expected"),
    ("sst --label-heads 2", "--label-heads: expected objective lacon or lacon-fusion"),
    ("lacon icl --label-spread 1", "--label-spread: expected ler among --label-terms, found 1.0"),
    ("lacon lcl --label-heads 2", "--label-heads: expected icl among --label-terms, found 2"),
    ("lacon ler", "found only ler, which trains no encoder"),
    ("lacon lcl --batch-size 1", "--batch-size: expected 2 or more without icl among"),
    ("lacon icl --sst-head softmax", "--sst-head: expected another objective than lacon"),
    ("sst --objective leam --pooling max", "--pooling: expected another objective"),
    ("sst --objective projection --projection-layers 0", "--projection-layers: expected 1 or more"),
    ("qqp2 --objective leam", "--objective leam and loss of qqp: expected at most one"),
    (
        "--mode single --task mrpc --objective leam",
        "--objective leam: expected single texts or pair joint, found mrpc",
    ),
]
PRETRAINING = [
    ("pretrain", "--objective: expected one of simcse, nli, pairs"),
    ("pretrain --objective pairs --tasks sst", "--tasks: expected qqp or sts with obj"),
    ("pretrain --objective nli", "--nli: expected a file with objective nli, found none"),
    ("pretrain --objective simcse --nli x", "--nli: expected objective nli, found 'x'"),
    ("pretrain --objective nli --nli x --tasks sst", "--tasks: expected none"),
    ("pretrain --objective pairs --batch-size 1", "--batch-size: expected 2 or more"),
    ("pretrain --objective simcse --freeze-encoder", "mode pretrain: expected neither"),
    ("pretrain --objective simcse --head-lr 1", "--head-lr: expected projection or --projection"),
    ("pretrain --objective pairs --margin 1", "--margin: expected objective triplet or class-tri"),
    ("pretrain --objective triplet --contrast-temperature 1", "expected objective simcse or"),
    ("pretrain --objective simcse --text-column x", "--text-column: expected text, f"),
    ("own-text simcse --tasks sst", "expected none with text"),
    ("own-text supcon", "--text: expected objective simcse or pairs"),
    ("own-text pairs", "--text-column: expected two"),
    ("own-text simcse --text-column a b", "--text-column: expected one"),
    ("own-text pairs --text-column a a", "--text-column: expected two, found a twice"),
    ("pretrain --objective simcse --tasks trec --classes 2", "--classes: expected an objective of"),
    ("pretrain --objective simcse --drop-leaks", "--drop-leaks: expected an objective of classes"),
    ("pretrain --objective simcse --projection-head linear", "expected an objective of classes"),
    ("pretrain --objective supcon --positives 3", "--positives: expected objective superloss"),
    ("superloss --tasks sts", "--objective superloss: expected tasks with classes"),
    ("superloss --tasks rte", "superloss: expected single texts or pair joint, found rte"),
    ("superloss --projection", "--projection: expected objective simcse or nli or"),
    ("superloss --hard-top-k 3 --hard-threshold 0", "--hard-top-k and --hard-threshold: expe"),
    ("superloss --hard-top-fraction 0", "--hard-top-fraction: expected a number above 0"),
    ("superloss --hard-after 1", "--hard-after: expected --hard-top-k, --hard-threshold"),
    (
        "superloss --hard-top-k 2 --hard-after 3 --epochs 3",
        "--hard-after: expected fewer than epochs 3, found 3",
    ),
]


@pytest.mark.parametrize(
    ("command", "expected"), MODES_AND_FLAGS + VALUES + TASKS + MIXING + OBJECTIVES + PRETRAINING
)
def test_a_wrong_command_is_refused_with_what_was_expected(
    command, expected, refused, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    beginning, *rest = command.split(" ")
    argv = [*BEGINNINGS.get(beginning, beginning).split(), *rest]
    assert expected in refused(2, *argv)
    assert not list(tmp_path.iterdir())
