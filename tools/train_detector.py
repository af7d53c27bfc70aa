#!/usr/bin/env python3
"""Trains one of the built-in detectors on built-in scenes and exports it as ONNX.

    cargo build --release -p prony-source --example training_frames
    training_frames rgb 60000 1000 data/rgb
    training_frames rgb 300 424242 data/rgb-held-out
    python3 tools/train_detector.py data/rgb data/rgb-held-out builtin-rgb.onnx --seconds 300

Needs PyTorch, numpy and onnx. Training lasts as long as it is told, on a GPU or, for a trial, on a CPU. Frames are
resized and stretched by `training_frames` exactly as at run time; here they are padded with grey and divided by 255.
Hue is never altered: two classes differ in nothing else.
"""

import argparse
import copy
import json
import math
import time
from pathlib import Path

import numpy as np
import onnx
import torch

from detector_loss import loss
from detector_net import SIZE, STRIDES, Detector
from detector_score import mean_ap, suppress

PAD = 114


class Frames:
    """A folder of `training_frames`, resident on the device."""

    def __init__(self, folder, device):
        about = json.loads((folder / "shape.json").read_text())
        self.names = about["names"]
        self.kind = about["kind"]
        shape = about["shape"]
        data = np.fromfile(folder / "frames.bin", np.uint8).reshape(shape)
        self.pixels = torch.from_numpy(data).to(device)
        self.count = shape[0]
        self.top = (SIZE - shape[1]) // 2
        rows = np.fromfile(folder / "boxes.bin", "<f4").reshape(-1, 6)
        rows[:, [3, 5]] += self.top
        frame = rows[:, 0].astype(np.int64)
        slot = np.arange(len(rows)) - np.searchsorted(frame, frame)
        most = int(slot.max()) + 1
        truth = np.zeros((self.count, most, 4), np.float32)
        labels = np.zeros((self.count, most), np.int64)
        real = np.zeros((self.count, most), bool)
        truth[frame, slot], labels[frame, slot], real[frame, slot] = rows[:, 2:], rows[:, 1], True
        self.truth, self.labels, self.real = (torch.from_numpy(x).to(device) for x in (truth, labels, real))

    def batch(self, index, flip=None):
        """Network input [B, 3, SIZE, SIZE] from 0 to 1, and the truth. `flip`: which frames to mirror."""
        pixels = self.pixels[index].permute(0, 3, 1, 2).float()
        x = torch.full((len(index), 3, SIZE, SIZE), float(PAD), device=pixels.device)
        x[:, :, self.top:self.top + pixels.shape[2]] = pixels
        x /= 255
        truth = self.truth[index]
        if flip is not None:
            x = torch.where(flip[:, None, None, None], x.flip(3), x)
            mirrored = torch.stack((SIZE - truth[..., 2], truth[..., 1], SIZE - truth[..., 0], truth[..., 3]), -1)
            truth = torch.where(flip[:, None, None], mirrored, truth)
        return x, truth, self.labels[index], self.real[index]


def train(frames, args, device):
    net = Detector(len(frames.names)).to(device, memory_format=torch.channels_last)
    print(f"{frames.kind}: {sum(p.numel() for p in net.parameters())} weights, {frames.count} frames", flush=True)
    # Norms and biases are not decayed.
    decay = [p for p in net.parameters() if p.ndim > 1]
    plain = [p for p in net.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.02}, {"params": plain, "weight_decay": 0.0}],
                                  lr=args.lr, betas=(0.9, 0.99), fused=device.type == "cuda")
    ema = copy.deepcopy(net).eval()
    for p in ema.parameters():
        p.requires_grad_(False)
    half = device.type == "cuda"
    start, step, told = time.monotonic(), 0, 0.0
    order, at = torch.randperm(frames.count, device=device), 0
    while True:
        passed = (time.monotonic() - start) / args.seconds
        if passed >= 1:
            break
        # Up for the first 2 % of the time, then down a cosine.
        rate = args.lr * min(1, passed / 0.02 + 1e-3) * (0.01 + 0.99 * (1 + math.cos(math.pi * passed)) / 2)
        for group in optimizer.param_groups:
            group["lr"] = rate
        if at + args.batch > frames.count:
            order, at = torch.randperm(frames.count, device=device), 0
        index, at = order[at:at + args.batch], at + args.batch
        flip = torch.rand(len(index), device=device) < 0.5
        x, truth, labels, real = frames.batch(index, flip)
        x = x.contiguous(memory_format=torch.channels_last)
        with torch.autocast(device.type, torch.bfloat16, enabled=half):
            boxes, scores = net.raw(x)
        value = loss(net, boxes, scores, truth, labels, real)
        optimizer.zero_grad(set_to_none=True)
        value.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 10.0)
        optimizer.step()
        step += 1
        keep = 0.9995 * (1 - math.exp(-step / 1000))
        with torch.no_grad():
            now = net.state_dict()
            floats = [(e, now[k]) for k, e in ema.state_dict().items() if e.dtype.is_floating_point]
            torch._foreach_lerp_([e for e, _ in floats], [n for _, n in floats], 1 - keep)
        if device.type == "cuda" and step % 8 == 0:
            torch.cuda.synchronize()  # or the clock above runs ahead of the work
        if passed - told > 0.05:
            told = passed
            print(f"{frames.kind}: {passed * 100:3.0f} %  step {step}  lr {rate:.5f}  loss {value.item():.3f}", flush=True)
    print(f"{frames.kind}: {step} steps, {step * args.batch / frames.count:.1f} passes", flush=True)
    return ema


@torch.no_grad()
def evaluate(net, frames):
    found, truth = [], []
    for first in range(0, frames.count, 50):
        index = torch.arange(first, min(first + 50, frames.count), device=frames.pixels.device)
        x, boxes, labels, real = frames.batch(index)
        for out, b, c, r in zip(net(x).float().cpu().numpy(), boxes, labels, real):
            found.append(suppress(out))
            truth.append(torch.cat((b[r], c[r][:, None].float()), 1).cpu().numpy())
    return mean_ap(found, truth, len(frames.names))


def export(net, frames, path):
    """Opset 17, only the batch axis free, metadata in Ultralytics' vocabulary."""
    x = torch.zeros(1, 3, SIZE, SIZE)
    torch.onnx.export(net.cpu().float(), (x,), str(path), opset_version=17, dynamo=False, do_constant_folding=True,
                      input_names=["images"], output_names=["output0"],
                      dynamic_axes={"images": {0: "batch"}, "output0": {0: "batch"}})
    model = onnx.load(path)
    out = model.graph.output[0].type.tensor_type.shape.dim
    out[1].dim_value, out[2].dim_value = 4 + len(frames.names), sum((SIZE // s) ** 2 for s in STRIDES)
    model.producer_name, model.producer_version = "Prony", ""
    # What the exporter says about its own source lines is of no use to anyone.
    model.doc_string = ""
    for node in model.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    names = {i: name for i, name in enumerate(frames.names)}
    onnx.helper.set_model_props(model, {
        "description": f"Prony builtin-{frames.kind} detector", "author": "Prony", "task": "detect",
        "stride": str(max(STRIDES)), "batch": "1", "imgsz": str([SIZE, SIZE]), "names": str(names),
    })
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    kinds = sorted({node.op_type for node in model.graph.node})
    print(f"{frames.kind}: {path} {path.stat().st_size} bytes, {len(model.graph.node)} nodes: {' '.join(kinds)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="frames to learn from")
    parser.add_argument("held_out", type=Path, help="frames of another seed to score on")
    parser.add_argument("out", type=Path, help="ONNX file to write")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    # Scores are those of the exported arithmetic: full fp32.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    frames, held_out = Frames(args.data, device), Frames(args.held_out, device)
    net = train(frames, args, device).fuse().to(device)
    export(copy.deepcopy(net), frames, args.out)
    total, half = evaluate(net, held_out)
    print(f"{frames.kind}: mAP50-95 {total:.4f}  mAP50 {half:.4f} on {held_out.count} held-out frames", flush=True)


if __name__ == "__main__":
    main()
