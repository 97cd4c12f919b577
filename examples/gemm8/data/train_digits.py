#!/usr/bin/env python3
"""Train the demo's digit classifier and write its weights, digits-mlp.txt.

    python3 train_digits.py                    train and write digits-mlp.txt
    python3 train_digits.py --check            re-evaluate digits-mlp.txt
    python3 train_digits.py --cross-validate   five-fold estimate from the training rows

The network is 64 -> 32 -> 16 in int8, of which the first 10 outputs are the
classes; the engine works in multiples of 16, so columns 10..15 are all zero.
Training uses the first 900 rows of optdigits.csv only.  The other 897 rows are
held out: they are read once, after training, to count how many come out right.

The only dependency is numpy.  The seed is fixed and numpy is kept to one
thread, so two runs on one machine write identical files.  Another processor or
numpy build may round differently and end at slightly different weights.
"""

import argparse
import os
import sys

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"  # read when numpy is imported
import numpy as np  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "optdigits.csv")
WEIGHTS = os.path.join(HERE, "digits-mlp.txt")
TRAIN_ROWS, HELD_OUT_ROWS = 900, 897
PIXELS, HIDDEN, CLASSES, OUTPUTS = 64, 32, 10, 16
RECORDS = (  # of the weights file: title, rows and columns, largest magnitude
    (f"layer1.weights {PIXELS} {HIDDEN}", (PIXELS, HIDDEN), 127),
    (f"layer1.bias {HIDDEN}", (1, HIDDEN), 2**31 - 1),
    ("layer1.shift 1", (1, 1), 31),
    (f"layer2.weights {HIDDEN} {OUTPUTS}", (HIDDEN, OUTPUTS), 127),
    (f"layer2.bias {OUTPUTS}", (1, OUTPUTS), 2**31 - 1))

# Chosen by cross-validation inside the training rows (--cross-validate).
SEED = 1
FLOAT_EPOCHS, INT8_EPOCHS, BATCH = 400, 150, 50
RATE, DECAY, AVERAGE, SMOOTHING = 4e-3, 0.05, 0.995, 0.05
SHIFT, WARP, GAIN, NOISE = 0.4, 0.1, 0.1, 0.5  # of the images, see augment
PIXEL_SCALE = 8.0  # pixels are centred and divided by this for training


def matmul(a, b, bias, shift=None, relu=False):
    """One pass of the engine, exactly: int8 in, int8 out, or int32 with no shift."""
    acc = a.astype(np.int64) @ b.astype(np.int64) + bias.astype(np.int64)
    acc = acc.astype(np.int32)  # keeps the low 32 bits: wrapping arithmetic
    if relu:
        acc = np.maximum(acc, 0)
    if shift is None:
        return acc
    half = 1 << (shift - 1) if shift > 0 else 0
    return np.clip((acc.astype(np.int64) + half) >> shift, -128, 127).astype(np.int8)


def reference(pixels, net):
    """The class of each row of pixels; of equal scores the first wins."""
    w1, b1, shift, w2, b2 = net
    hidden = matmul(pixels.astype(np.int8), w1, b1, shift, relu=True)
    return matmul(hidden, w2, b2)[:, :CLASSES].argmax(axis=1)


def augment(images, rng):
    """Each image moved, bent, dimmed and made noisy a little; still 0..16."""
    n = len(images)
    padded = np.zeros((n, 12, 12))
    padded[:, 2:10, 2:10] = images.reshape(n, 8, 8)
    grid = np.stack(np.meshgrid(np.arange(8), np.arange(8), indexing="ij"))
    bend = np.eye(2) + rng.uniform(-WARP, WARP, (n, 2, 2))
    at = bend @ (grid.reshape(2, PIXELS) - 3.5) + 5.5 + rng.uniform(-SHIFT, SHIFT, (n, 2, 1))
    at = np.clip(at, 0, 10.999)
    whole = at.astype(int)
    (y, x), (v, u) = whole.swapaxes(0, 1), (at - whole).swapaxes(0, 1)
    k = np.arange(n)[:, None]
    out = (padded[k, y, x] * (1 - v) + padded[k, y + 1, x] * v) * (1 - u)
    out += (padded[k, y, x + 1] * (1 - v) + padded[k, y + 1, x + 1] * v) * u
    noise = rng.normal(0, NOISE, out.shape) * (out > 0)
    return np.clip(np.rint(out * rng.uniform(1 - GAIN, 1 + GAIN, (n, 1)) + noise), 0, 16)


def quantise(params, mean, scale1, scale2, shift):
    """The network in integers, still held as floats and 10 outputs wide.

    Training sees (pixel - mean) / PIXEL_SCALE; both are folded into the bias.
    """
    w1 = np.clip(np.rint(params[0] * scale1), -127, 127)
    b1 = np.rint(params[1] * scale1 * PIXEL_SCALE - mean @ w1)
    w2 = np.clip(np.rint(params[2] * scale2), -127, 127)
    b2 = np.rint(params[3] * scale2 * scale1 * PIXEL_SCALE / 2**shift)
    return w1, b1, w2, b2


def train(pixels, labels):
    """First in floating point, then with the integer forward pass in the loop."""
    rng = np.random.default_rng(SEED)
    n = len(pixels)
    mean = pixels.mean(axis=0)
    target = np.full((n, CLASSES), SMOOTHING / CLASSES)
    target[np.arange(n), labels] += 1 - SMOOTHING
    params = [rng.normal(0, 0.125, (PIXELS, HIDDEN)), np.zeros(HIDDEN),
              rng.normal(0, 0.25, (HIDDEN, CLASSES)), np.zeros(CLASSES)]
    average = [p.copy() for p in params]
    first, second = ([np.zeros_like(p) for p in params] for _ in range(2))  # for Adam
    step, steps = 0, (FLOAT_EPOCHS + INT8_EPOCHS) * (n // BATCH)

    for epoch in range(FLOAT_EPOCHS + INT8_EPOCHS):
        if epoch == FLOAT_EPOCHS:  # fix the scales, go on from the averaged weights
            params = [p.copy() for p in average]
            scale1, scale2 = (127 / np.abs(params[i]).max() for i in (0, 2))
            largest = ((pixels - mean) / PIXEL_SCALE @ params[0] + params[1]).max(axis=1)
            range1 = np.percentile(largest, 99.5) * scale1 * PIXEL_SCALE
            shift = max(0, int(np.ceil(np.log2(range1 / 127))))
            unit = 2**shift / (scale1 * PIXEL_SCALE)  # the value of 1 of the int8 hidden layer
        images, order = augment(pixels, rng), rng.permutation(n)
        for start in range(0, n - BATCH + 1, BATCH):
            rows = order[start:start + BATCH]
            x = (images[rows] - mean) / PIXEL_SCALE
            if epoch < FLOAT_EPOCHS:
                acc = x @ params[0] + params[1]
                hidden, live, w2, b2 = np.maximum(acc, 0), acc > 0, params[2], params[3]
            else:  # gradients pass the rounding unchanged and stop at the limits
                w1, b1, w2, b2 = quantise(params, mean, scale1, scale2, shift)
                acc = np.floor((images[rows] @ w1 + b1) / 2**shift + 0.5)
                hidden, live = np.clip(acc, 0, 127) * unit, (acc > 0) & (acc <= 127)
                w2, b2 = w2 / scale2, b2 * unit / scale2
            score = hidden @ w2 + b2
            chance = np.exp(score - score.max(axis=1, keepdims=True))
            chance /= chance.sum(axis=1, keepdims=True)
            d2 = (chance - target[rows]) / BATCH
            d1 = d2 @ w2.T * live
            step += 1
            rate = RATE * 0.5 * (1 + np.cos(np.pi * step / steps))
            for i, grad in enumerate((x.T @ d1, d1.sum(0), hidden.T @ d2, d2.sum(0))):
                first[i] += 0.1 * (grad - first[i])
                second[i] += 0.01 * (grad**2 - second[i])
                move = first[i] / (1 - 0.9**step) / (np.sqrt(second[i] / (1 - 0.99**step)) + 1e-8)
                decay = DECAY if i in (0, 2) else 0  # for the weights, not the biases
                params[i] -= rate * (move + decay * params[i])
                average[i] += (1 - AVERAGE) * (params[i] - average[i])

    w1, b1, w2, b2 = quantise(average, mean, scale1, scale2, shift)
    wide = OUTPUTS - CLASSES
    return (w1.astype(np.int8), b1.astype(np.int32), shift,
            np.pad(w2, ((0, 0), (0, wide))).astype(np.int8), np.pad(b2, (0, wide)).astype(np.int32))


def write(path, net, train_correct, held_out_correct):
    with open(path, "w", encoding="ascii", newline="\n") as out:
        out.write(f"""\
# Weights of an int8 network that tells handwritten digits apart, 8x8 pixels of 0..16.
# 64 -> 32 (ReLU, rounding right shift to int8) -> 16 (int32 scores; 10 classes, then zeros).
# Written by train_digits.py from the first 900 rows of optdigits.csv; the other 897 are held out.
# Data: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine
# Learning Repository, 1998, https://doi.org/10.24432/C50P49, CC BY 4.0.
# Each record is a name and its size, then its rows; weights are inputs x outputs, row by row.
# train-correct: {train_correct} of {TRAIN_ROWS}
# held-out-correct: {held_out_correct} of {HELD_OUT_ROWS}
""")
        for (title, shape, _), values in zip(RECORDS, net):
            rows = np.reshape(values, shape).tolist()
            out.write(title + "\n" + "".join(" ".join(map(str, row)) + "\n" for row in rows))


def read(path):
    """The network of a weights file, and the held-out line of its header."""
    with open(path, encoding="ascii") as file:
        lines = file.read().splitlines()
    claim = [line for line in lines if line.startswith("# held-out-correct:")]
    net, lines = [], iter([line for line in lines if not line.startswith("#")])
    for title, (rows, cols), limit in RECORDS:
        found = next(lines, "")
        table = [[int(word) for word in next(lines, "").split()] for _ in range(rows)]
        if found != title or any(len(row) != cols for row in table) or np.abs(table).max() > limit:
            sys.exit(f"{path}: '{title}' is not there, or not of that size and range")
        net.append(np.array(table if rows > 1 else table[0]))
    net[2] = int(net[2][0])
    if net[2] < 0 or next(lines, None) or net[3][:, CLASSES:].any() or net[4][CLASSES:].any():
        sys.exit(f"{path}: a negative shift, a padding output, or lines after the last record")
    return net, claim


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="re-evaluate the weights file")
    parser.add_argument("--cross-validate", action="store_true", help="in the training rows")
    args = parser.parse_args()
    data = np.loadtxt(DATA, delimiter=",", dtype=np.int64)
    assert data.shape == (TRAIN_ROWS + HELD_OUT_ROWS, PIXELS + 1), "not the 1797 rows"
    pixels, labels = data[:TRAIN_ROWS, :PIXELS], data[:TRAIN_ROWS, PIXELS]

    if args.cross_validate:
        fold = np.arange(TRAIN_ROWS) * 5 // TRAIN_ROWS
        good = [int((reference(pixels[fold == f], train(pixels[fold != f], labels[fold != f]))
                     == labels[fold == f]).sum()) for f in range(5)]
        print(f"cross-validated: {sum(good)} of {TRAIN_ROWS} {good}")
        return

    net, claim = read(WEIGHTS) if args.check else (train(pixels, labels), None)
    right = reference(data[:, :PIXELS], net) == data[:, PIXELS]
    good, held = int(right[:TRAIN_ROWS].sum()), int(right[TRAIN_ROWS:].sum())
    print(f"train:    {good} of {TRAIN_ROWS} ({100 * good / TRAIN_ROWS:.2f} %)")
    print(f"held out: {held} of {HELD_OUT_ROWS} ({100 * held / HELD_OUT_ROWS:.2f} %)")
    if not args.check:
        write(WEIGHTS, net, good, held)
    elif claim != [f"# held-out-correct: {held} of {HELD_OUT_ROWS}"]:
        sys.exit(f"{WEIGHTS}: the header says {claim}")


if __name__ == "__main__":
    main()
