#!/usr/bin/env python3
"""Golden shapes for crates/model: what every tensor of real exports is shaped like when ONNX Runtime executes them.

Each file is a graph without its weights, names shortened; its value_info are the shapes that were seen. Where
onnx.shape_inference knows a shape too, it must be the same, or this script stops.

Usage: python3 shape_golden.py OUT_FOLDER   (needs ultralytics, torchvision, onnx and onnxruntime; weights are random;
OUT_FOLDER is crates/model/tests/golden/shapes; the Q/DQ files are made of crates/model/assets/builtin-rgb.onnx)
"""

import contextlib
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import torch
import torchvision
from onnx import TensorProto, helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static
from ultralytics import RTDETR, YOLO

SIZE = [160, 192]
FEW = 64
# name, yaml, what the exporter is told
ULTRALYTICS = {
    "yolov5n-dynamic": ("yolov5n.yaml", {"dynamic": True, "simplify": False}),
    "yolov8n": ("yolov8n.yaml", {}),
    "yolo11n-seg-dynamic": ("yolo11n-seg.yaml", {"dynamic": True, "simplify": False}),
    "yolov10n": ("yolov10n.yaml", {"simplify": False}),
    "yolo12n-dynamic": ("yolo12n.yaml", {"dynamic": True}),
    "yolo26n-dynamic": ("yolo26n.yaml", {"dynamic": True, "simplify": False}),
    "yolov8n-rtdetr": ("yolov8n-rtdetr.yaml", {"simplify": False, "opset": 17}),
}
TORCHVISION = {"resnet18": torchvision.models.resnet18, "mobilenet_v3_small": torchvision.models.mobilenet_v3_small}
BUILTIN = Path(__file__).parents[2] / "crates/model/assets/builtin-rgb.onnx"


def exports(folder):
    for name, (yaml, options) in ULTRALYTICS.items():
        model = (RTDETR if "rtdetr" in yaml else YOLO)(yaml)
        path = model.export(format="onnx", imgsz=SIZE if "rtdetr" not in yaml else 192, **options)
        yield name, onnx.load(path)
    for name, make in TORCHVISION.items():
        path = folder / f"{name}.onnx"
        axes = {"images": {0: "batch"}}
        torch.onnx.export(make().eval(), torch.zeros(1, 3, *SIZE), path, input_names=["images"], dynamic_axes=axes,
                          opset_version=17, dynamo=False)
        yield name, onnx.load(path)
    for name, kind in {"builtin-qdq": QuantFormat.QDQ, "builtin-qoperator": QuantFormat.QOperator}.items():
        path = folder / f"{name}.onnx"
        quantize_static(BUILTIN, path, Noise(), quant_format=kind, per_channel=True)
        yield name, onnx.load(path)


class Noise(CalibrationDataReader):
    def __init__(self):
        side = [axis.dim_value or 1 for axis in onnx.load(BUILTIN).graph.input[0].type.tensor_type.shape.dim]
        name = onnx.load(BUILTIN).graph.input[0].name
        rng = np.random.default_rng(7)
        self.batches = iter([{name: rng.random(side, dtype=np.float32)} for _ in range(2)])

    def get_next(self):
        return next(self.batches, None)


def seen(model, batch):
    """Shape and type of every result, by running it all."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    del model.graph.value_info[:]
    had = {value.name for value in model.graph.output}
    names = [name for node in model.graph.node for name in node.output if name]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in had)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds = {}
    for value in session.get_inputs():
        given = [axis if isinstance(axis, int) else None for axis in value.shape]
        shape = [axis or default for axis, default in zip(given, [batch, 3, *SIZE])]
        feeds[value.name] = np.random.default_rng(7).random(shape, dtype=np.float32)
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds)))


def agree(model, results, free):
    """Whether onnx.shape_inference has nothing else to say."""
    if free:
        return
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    for value in inferred.graph.value_info:
        axes = [axis.dim_value if axis.HasField("dim_value") else None for axis in value.type.tensor_type.shape.dim]
        if value.name in results and None not in axes:
            assert axes == list(results[value.name].shape), (value.name, axes, results[value.name].shape)


def skeleton(model, results):
    short, graph = {"": ""}, model.graph
    rename = lambda name: short.setdefault(name, f"t{len(short)}")
    for tensor in graph.initializer:
        tensor.name = rename(tensor.name)
        if np.prod(tensor.dims) > FEW:
            kept = TensorProto(name=tensor.name, dims=tensor.dims, data_type=tensor.data_type, data_location=1)
            tensor.CopyFrom(kept)
    for node in graph.node:
        node.input[:] = map(rename, node.input)
        node.output[:] = map(rename, node.output)
        node.ClearField("name")
        node.ClearField("doc_string")
        node.ClearField("metadata_props")
        for attribute in node.attribute:
            if attribute.HasField("t") and np.prod(attribute.t.dims) > FEW:
                attribute.t.CopyFrom(TensorProto(dims=attribute.t.dims, data_type=attribute.t.data_type, data_location=1))
    for value in list(graph.input) + list(graph.output):
        value.name = rename(value.name)
    # What comes out must not be known beforehand.
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")
    del graph.value_info[:]
    for name, result in results.items():
        kind = helper.np_dtype_to_tensor_dtype(result.dtype)
        graph.value_info.append(helper.make_tensor_value_info(short[name], kind, result.shape))
    for field in ["metadata_props", "functions", "doc_string", "producer_name", "producer_version"]:
        model.ClearField(field)
    graph.name = "skeleton"
    return model


def main():
    out = Path(sys.argv[1]).absolute()
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(7)
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        for name, model in exports(Path(scratch)):
            free = any(axis.dim_param for value in model.graph.input for axis in value.type.tensor_type.shape.dim)
            results = seen(model, 2 if free else 1)
            agree(model, results, free)
            (out / f"{name}.onnx").write_bytes(skeleton(model, results).SerializeToString())
            print(name, len(results), "tensors,", os.path.getsize(out / f"{name}.onnx"), "bytes")


if __name__ == "__main__":
    main()
