#!/usr/bin/env python3
"""Writes crates/vision/tests/golden/: what OpenCV and Ultralytics make of seeded images and tensors.

Needs numpy, opencv-python-headless, torch, torchvision and ultralytics. Images are not stored: the Rust test makes the
same bytes from the same integer hash (`noise`). Run it from anywhere; it overwrites the files.
"""

import json
import sys
from pathlib import Path

import cv2
import numpy as np
import torch
import torchvision  # noqa: F401  (Ultralytics uses its nms only when it is imported)
import ultralytics
from ultralytics.data.augment import LetterBox
from ultralytics.nn.modules.block import DFL
from ultralytics.utils.nms import non_max_suppression
from ultralytics.utils.ops import scale_boxes, xywh2xyxy
from ultralytics.utils.tal import dist2bbox, make_anchors

OUT = Path(__file__).resolve().parents[2] / "crates/vision/tests/golden"

# name, source width and height, target width and height, grey
LETTERBOXES = [
    ("down", 97, 61, 64, 64, False),
    ("portrait", 61, 97, 64, 64, False),
    ("halved", 128, 72, 64, 64, False),
    ("third", 192, 108, 64, 64, False),
    ("width-halved-only", 128, 71, 64, 64, False),
    ("up", 20, 30, 96, 96, False),
    ("doubled", 31, 17, 62, 62, False),
    ("same", 64, 48, 64, 64, False),
    ("one-row", 97, 1, 64, 64, False),
    ("one-column", 1, 40, 64, 64, False),
    ("one-pixel", 1, 1, 8, 8, False),
    ("wide-target", 33, 47, 65, 33, False),
    ("vga", 320, 240, 224, 224, False),
    ("grey-down", 97, 61, 64, 64, True),
    ("grey-halved", 96, 128, 48, 64, True),
    ("grey-up", 15, 11, 64, 64, True),
]


def noise(count, seed):
    """Bytes that the Rust test makes too."""
    i = np.arange(count, dtype=np.uint32) + np.uint32(seed)
    h = i * np.uint32(747796405) + np.uint32(2891336453)
    h = (h ^ (h >> np.uint32(15))) * np.uint32(277803737)
    return ((h ^ (h >> np.uint32(13))) >> np.uint32(24)).astype(np.uint8)


def letterboxes():
    index = []
    for seed, (name, sw, sh, dw, dh, grey) in enumerate(LETTERBOXES, start=1):
        channels = 1 if grey else 3
        image = noise(sw * sh * channels, seed * 1_000_003).reshape(sh, sw, channels)
        bgr = np.repeat(image, 3, axis=2) if grey else image
        box = LetterBox(new_shape=(dh, dw), auto=False, scaleup=True, center=True)
        params = box.get_params({"img": bgr})
        rgb = np.ascontiguousarray(box(image=bgr)[..., ::-1])
        assert rgb.shape == (dh, dw, 3)
        np.save(OUT / f"letterbox_{name}.npy", rgb[..., 0] if grey else rgb)
        sides = [params[k] for k in ("left", "top", "right", "bottom")]
        index.append(dict(name=name, seed=seed * 1_000_003, src=[sw, sh], dst=[dw, dh], grey=grey,
                          scaled=list(params["new_unpad"]), pad=sides))
    return index


def scene(rng, classes, anchors, size, objects=14):
    """Boxes around a few objects plus background, and class probabilities, as a trained head would give them."""
    centre = rng.uniform(0.1 * size, 0.9 * size, (objects, 2))
    extent = rng.uniform(0.08 * size, 0.4 * size, (objects, 2))
    label = rng.integers(0, classes, objects)
    owner = rng.integers(0, objects, anchors)
    near = rng.random(anchors) < 0.35
    spread = np.where(near, 0.06, 0.5)[:, None]
    xy = centre[owner] + rng.normal(0, 1, (anchors, 2)) * spread * extent[owner]
    wh = extent[owner] * np.exp(rng.normal(0, 1, (anchors, 2)) * spread * 0.6)
    scores = rng.beta(0.3, 60, (anchors, classes))
    scores[np.arange(anchors), label[owner]] = np.where(near, rng.beta(2, 2, anchors), rng.beta(0.5, 30, anchors))
    return np.concatenate([xy, wh], 1).astype(np.float32), scores.astype(np.float32)


def logit(p):
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return np.log(p / (1 - p)).astype(np.float32)


SIZE = 160
ANCHORS = 20 * 20 + 10 * 10 + 5 * 5


def expected(prediction, conf, iou, max_det, src, end2end=False, multi_label=False):
    kept = non_max_suppression(prediction.clone(), conf, iou, max_det=max_det, end2end=end2end,
                               multi_label=multi_label)[0]
    return back(kept, src)


def back(kept, src):
    kept = kept.clone()
    kept[:, :4] = scale_boxes((SIZE, SIZE), kept[:, :4], (src[1], src[0]))
    return [[round(float(v), 5) for v in row] for row in kept]


def dense_cases(name, head, tensor, prediction, cases, **more):
    np.save(OUT / f"{name}.npy", tensor)
    for conf, iou, max_det, src in SETTINGS:
        boxes = expected(torch.from_numpy(prediction), conf, iou, max_det, src, **more)
        cases.append(dict(file=name, head=head, conf=conf, iou=iou, max_det=max_det, src=src, boxes=boxes))
    # As validation does it: every class of an anchor that is sure enough.
    for conf, iou, max_det, src in [] if more else [(0.001, 0.7, 300, [117, 213]), (0.05, 0.7, 1000, [213, 117])]:
        boxes = expected(torch.from_numpy(prediction), conf, iou, max_det, src, multi_label=True)
        cases.append(dict(file=name, head=head, conf=conf, iou=iou, max_det=max_det, src=src, boxes=boxes,
                          multi_label=True))


SETTINGS = [
    (0.25, 0.45, 300, [213, 117]),
    (0.001, 0.7, 300, [117, 213]),
    (0.25, 0.7, 5, [160, 160]),
]


def decodings():
    rng = np.random.default_rng(20)
    cases = []

    boxes, scores = scene(rng, 80, ANCHORS, SIZE)
    dense = np.concatenate([boxes, scores], 1).T[None].copy()
    dense_cases("dense", "dense", dense, dense, cases)

    boxes, scores = scene(rng, 6, ANCHORS, SIZE)
    raw = np.concatenate([boxes, logit(scores)], 1).T[None].copy()
    activated = raw.copy()
    activated[:, 4:] = torch.sigmoid(torch.from_numpy(raw[:, 4:])).numpy()
    dense_cases("logits", "dense", raw, activated, cases)

    # v5: the plain reference multiplies objectness in and is then a dense head.
    boxes, scores = scene(rng, 6, 3 * ANCHORS, SIZE)
    objectness = rng.uniform(0.5, 1, (len(boxes), 1)).astype(np.float32)
    v5 = np.concatenate([boxes, objectness, scores], 1)[None].copy()
    multiplied = np.concatenate([boxes, scores * objectness], 1).T[None].copy()
    dense_cases("objectness", "objectness", v5, multiplied, cases)

    # Raw DFL through Ultralytics' own layers.
    _, scores = scene(rng, 6, ANCHORS, SIZE)
    peaks = rng.uniform(0.5, 6, (ANCHORS, 4))
    bins = -((np.arange(16)[None, None] - peaks[..., None]) ** 2) + rng.normal(0, 0.5, (ANCHORS, 4, 16))
    dfl = np.concatenate([bins.reshape(ANCHORS, 64), logit(scores)], 1).astype(np.float32).T[None].copy()
    feats = [torch.zeros(1, 1, SIZE // s, SIZE // s) for s in (8, 16, 32)]
    points, strides = (t.transpose(0, 1) for t in make_anchors(feats, [8, 16, 32], 0.5))
    distances = DFL(16)(torch.from_numpy(dfl[:, :64]))
    decoded = dist2bbox(distances, points.unsqueeze(0), xywh=True, dim=1) * strides
    prediction = torch.cat([decoded, torch.from_numpy(dfl[:, 64:]).sigmoid()], 1).detach().numpy()
    dense_cases("dfl", "dfl", dfl, prediction, cases)

    boxes, scores = scene(rng, 80, 300, SIZE)
    order = np.argsort(-scores.max(1), kind="stable")
    corners = xywh2xyxy(torch.from_numpy(boxes)).numpy()
    final = np.concatenate([corners, scores.max(1)[:, None], scores.argmax(1)[:, None]], 1)[order]
    final = final.astype(np.float32)[None].copy()
    dense_cases("end2end", "end2end", final, final, cases, end2end=True)

    # RT-DETR: best class, threshold, sort; boxes are fractions of the network's input.
    boxes, scores = scene(rng, 6, 300, SIZE)
    queries = np.concatenate([boxes / np.float32(SIZE), scores], 1).astype(np.float32)[None].copy()
    np.save(OUT / "rtdetr.npy", queries)
    for conf, iou, max_det, src in SETTINGS:
        q = torch.from_numpy(queries[0])
        best, label = q[:, 4:].max(1, keepdim=True)
        rows = torch.cat([xywh2xyxy(q[:, :4]) * SIZE, best, label.float()], 1)[best[:, 0] > conf]
        rows = rows[rows[:, 4].argsort(descending=True, stable=True)][:max_det]
        cases.append(dict(file="rtdetr", head="rtdetr", conf=conf, iou=iou, max_det=max_det, src=src,
                          boxes=back(rows, src)))
    return cases


def main():
    cv2.setNumThreads(1)
    torch.set_num_threads(1)
    OUT.mkdir(parents=True, exist_ok=True)
    versions = dict(opencv=cv2.__version__, torch=torch.__version__, torchvision=torchvision.__version__,
                    ultralytics=ultralytics.__version__, numpy=np.__version__)
    index = dict(made_with=versions, letterboxes=letterboxes(), decodings=decodings())
    (OUT / "index.json").write_text(json.dumps(index) + "\n")
    for case in index["decodings"]:
        print(case["file"], case["conf"], case["iou"], len(case["boxes"]), file=sys.stderr)


if __name__ == "__main__":
    main()
