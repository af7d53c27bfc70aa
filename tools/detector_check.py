#!/usr/bin/env python3
"""Scores an exported detector the long way round: data set on disk, OpenCV, ONNX Runtime, pycocotools.

    cargo run --release -p prony-source --example synth -- rgb 300 99 data/check
    python3 tools/detector_check.py data/check crates/model/assets/builtin-rgb.onnx

Shares nothing with training but the suppression of doubles, so it would notice frames prepared differently.
"""

import sys
from pathlib import Path

import cv2
import numpy as np
import onnxruntime
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from detector_score import suppress

SIZE, PAD = 320, 114


def stretch(heat):
    """16-bit counts to three equal channels: 1st to 99th percentile onto 0 to 255."""
    below = np.bincount(heat.ravel(), minlength=1 << 16).cumsum()
    low, high = int((below * 100 > heat.size).argmax()), int((below * 100 >= 99 * heat.size).argmax())
    grey = (heat.astype(np.int64) - low) * 255 / max(high - low, 1)
    return np.repeat(np.clip(np.floor(grey + 0.5), 0, 255).astype(np.uint8)[..., None], 3, 2)


def letterbox(image):
    """The network's input, the scale, and the left and top margin."""
    height, width = image.shape[:2]
    scale = min(SIZE / height, SIZE / width)
    w, h = round(width * scale), round(height * scale)
    if (w, h) != (width, height):
        image = cv2.resize(image, (w, h), interpolation=cv2.INTER_LINEAR)
    left, top = round((SIZE - w) / 2 - 0.1), round((SIZE - h) / 2 - 0.1)
    canvas = np.full((SIZE, SIZE, 3), PAD, np.uint8)
    canvas[top:top + h, left:left + w] = image
    return canvas.transpose(2, 0, 1)[None].astype(np.float32) / 255, scale, left, top


def main():
    folder, model = Path(sys.argv[1]), sys.argv[2]
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    coco = COCO(str(folder / "annotations/instances.json"))
    found = []
    for number, entry in coco.imgs.items():
        image = cv2.imread(str(folder / "images" / entry["file_name"]), cv2.IMREAD_UNCHANGED)
        image = stretch(image) if image.dtype == np.uint16 else np.ascontiguousarray(image[..., ::-1])
        x, scale, left, top = letterbox(image)
        for x1, y1, x2, y2, score, class_ in suppress(session.run(None, {"images": x})[0][0]):
            x1, x2 = np.clip([(x1 - left) / scale, (x2 - left) / scale], 0, entry["width"])
            y1, y2 = np.clip([(y1 - top) / scale, (y2 - top) / scale], 0, entry["height"])
            box = [float(v) for v in (x1, y1, x2 - x1, y2 - y1)]
            found.append({"image_id": number, "category_id": int(class_) + 1, "bbox": box, "score": float(score)})
    scorer = COCOeval(coco, coco.loadRes(found), "bbox")
    scorer.evaluate()
    scorer.accumulate()
    scorer.summarize()


if __name__ == "__main__":
    main()
