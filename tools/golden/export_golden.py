#!/usr/bin/env python3
"""Makes the checkpoints and outputs that `crates/forge/tests/export.rs` holds `prony export` against.

Four small detectors that have, between them, every module of the supported families: random weights of our own, in the
form in which Ultralytics saves them. Weights are -1/8, 0 or 1/8 so that the files can be packed small. The expected
outputs are those of the PyTorch model in float64; `golden.json` says how far its own float32 run is from them, boxes and
scores apart.

usage: export_golden.py [FOLDER]      needs torch and ultralytics (8.4.190 was used)
"""

import datetime
import json
import sys
import zipfile
from pathlib import Path

import numpy
import torch
from ultralytics.nn.tasks import DetectionModel

SIDE = 64
OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2] / "crates/forge/tests/golden"

STEM = [[-1, 1, "Conv", [8, 3, 2]], [-1, 1, "Conv", [16, 3, 2]]]
MODELS = {
    # YOLOv5u and v8: three levels, distances as distributions, C2 of the P6 models.
    "classic": dict(reg_max=4, head=[], backbone=STEM + [
        [-1, 2, "C2f", [16, True]], [-1, 1, "Conv", [16, 3, 2]], [-1, 2, "C3", [16, True]],
        [-1, 1, "Conv", [24, 3, 2]], [-1, 1, "C2", [24, False]], [-1, 1, "Conv", [24, 3, 2]], [-1, 1, "SPPF", [24, 5]],
        [-1, 1, "nn.Upsample", ["None", 2, "nearest"]], [[-1, 6], 1, "Concat", [1]], [-1, 1, "C2f", [24, False]],
        [[4, 11, 8], 1, "Detect", ["nc"]],
    ]),
    # YOLOv9 with the parts that only its largest model has.
    "rep": dict(reg_max=4, head=[], backbone=STEM + [
        [-1, 1, "ELAN1", [16, 16, 8]], [-1, 1, "AConv", [16]], [-1, 1, "RepNCSPELAN4", [16, 16, 8, 1]],
        [-1, 1, "ADown", [24]], [-1, 1, "RepNCSPELAN4", [24, 16, 8, 2]], [-1, 1, "ADown", [24]],
        [-1, 1, "SPPELAN", [24, 8]], [4, 1, "CBLinear", [[8]]], [6, 1, "CBLinear", [[8, 16]]],
        [8, 1, "CBLinear", [[8, 16, 24]]], [0, 1, "Conv", [16, 3, 2]], [-1, 1, "Conv", [16, 3, 2]],
        [[10, 11, -1], 1, "CBFuse", [[1, 1]]], [-1, 1, "Conv", [24, 3, 2]], [[11, -1], 1, "CBFuse", [[2]]],
        [[14, 16], 1, "Detect", ["nc"]],
    ]),
    # YOLOv10.
    "ten": dict(reg_max=4, head=[], backbone=STEM + [
        [-1, 1, "SCDown", [16, 3, 2]], [-1, 1, "C2fCIB", [16, True, True]], [-1, 1, "SCDown", [128, 3, 2]],
        [-1, 1, "PSA", [128]], [-1, 1, "C2fCIB", [16, True]], [[3, 6], 1, "v10Detect", ["nc"]],
    ]),
    # YOLO11, 12 and 26: the last one's head, distances as numbers, each object once.
    "attention": dict(reg_max=1, end2end=True, head=[], backbone=STEM + [
        [-1, 1, "C3k2", [16, False, 0.25]], [-1, 1, "Conv", [16, 3, 2]], [-1, 1, "C3k2", [16, True]],
        [-1, 1, "Conv", [64, 1, 1]], [-1, 1, "A2C2f", [64, True, 4, True, 1.2]], [-1, 1, "A2C2f", [64, False, -1]],
        [-1, 1, "Conv", [128, 3, 2]], [-1, 1, "C2PSA", [128]], [-1, 1, "C3k2", [128, True, 0.5, True]],
        [[7, 10], 1, "Detect", ["nc"]],
    ]),
}


def coarse(tensor):
    return (tensor * 16).round().clamp(-48, 48) / 16


def randomise(model):
    for name, parameter in model.named_parameters():
        if name.endswith("dfl.conv.weight"):
            continue
        if parameter.dim() > 1:
            parameter.data = torch.randint_like(parameter, -1, 2) / 8
        elif name.endswith("gamma"):
            parameter.data = coarse(torch.empty_like(parameter).uniform_(0.3, 1))
        elif name.endswith("bias"):
            parameter.data = coarse(torch.randn_like(parameter) * 0.3)
        else:
            parameter.data = coarse(torch.empty_like(parameter).uniform_(0.7, 1.3))
    norms = [module for module in model.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 0.5
    model.train()
    with torch.no_grad():
        for _ in range(4):
            model(torch.rand(4, 3, SIDE, SIDE))
    for norm in norms:
        norm.momentum = 0.03
        norm.running_mean += torch.randn_like(norm.running_mean) * 0.1 * norm.running_var.sqrt()
        norm.running_var *= torch.empty_like(norm.running_var).uniform_(0.7, 1.4)
    model.eval()


def pack(path):
    """The same members, compressed: torch stores them as they are, and pads them."""
    with zipfile.ZipFile(path) as stored:
        members = [(name, stored.read(name)) for name in stored.namelist()]
    keep = [(name, data) for name, data in members if name.split("/", 1)[1] == "data.pkl" or "/data/" in name
            or name.endswith(("/version", "/byteorder"))]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for name, data in keep:
            name = "g/" + name.split("/", 1)[1]
            packed.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED, 9)


def image():
    """A picture that the test makes again by the same formula."""
    numbers = numpy.arange(3 * SIDE * SIDE, dtype=numpy.int64)
    return ((numbers * 7919 % 1009) / 1009).astype(numpy.float32).reshape(1, 3, SIDE, SIDE)


def run(model, once, double):
    head = model.model[-1]
    head.end2end, head.shape = once, None
    model = model.double() if double else model.float()
    with torch.no_grad():
        output = model(torch.from_numpy(image()).to(torch.float64 if double else torch.float32))
    output = output[0] if isinstance(output, (list, tuple)) else output
    return output.double().numpy()


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    floors = {}
    for seed, (name, parts) in enumerate(MODELS.items()):
        torch.manual_seed(seed)
        model = DetectionModel(dict(nc=3, depth_multiple=1.0, width_multiple=1.0, **parts), ch=3, verbose=False)
        model.names = {0: "person", 1: "driver's", 2: "6\" nail"}
        model.args = {"imgsz": SIDE}
        randomise(model)
        model.half()
        for parameter in model.parameters():
            parameter.requires_grad = False
        path = OUT / f"{name}.pt"
        torch.save({"date": datetime.datetime(2026, 11, 15).isoformat(), "version": "8.4.190", "epoch": -1,
                    "model": model, "ema": None, "train_args": {"imgsz": SIDE}}, path)
        pack(path)
        model.float()
        heads = [False] + [True] * (getattr(model.model[-1], "one2one_cv2", None) is not None)
        for once in heads:
            truth, single = run(model, once, True), run(model, once, False)
            key = f"{name}.{'once' if once else 'many'}"
            numpy.save(OUT / f"{key}.npy", truth.astype(numpy.float32))
            gap = numpy.abs(truth - single)
            boxes, scores = (gap[..., :4], gap[..., 4:5]) if once else (gap[:, :4], gap[:, 4:])
            floors[key] = dict(boxes=float(boxes.max()), scores=float(scores.max()))
            print(key, truth.shape, floors[key], path.stat().st_size)
    (OUT / "golden.json").write_text(json.dumps(floors, indent=1) + "\n")


if __name__ == "__main__":
    main()
