#!/usr/bin/env python3
"""Golden figures for crates/judge: what pycocotools makes of small sets with crowds, ties and every odd box.

The sets are made here and in coco/golden_tests.rs by the same arithmetic, so that the file holds figures alone.

Usage: python3 coco_golden.py OUT_FOLDER   (needs numpy and pycocotools; OUT_FOLDER is crates/judge/tests/golden)
"""

import contextlib
import io
import json
import sys
from pathlib import Path

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

# seed, images, classes (numbers), objects an image, boxes an object, false boxes an image, side in steps,
# crowds in 100 objects, levels of scores, number of the first object, places across, quarter pixels of a step.
CASES = {
    "mixed": (1, 60, [1, 2, 5, 90], 8, 3, 6, 900, 8, 997, 1, 2000, 1),
    "ties": (2, 40, [1, 2, 3], 6, 4, 8, 500, 10, 4, 1, 2000, 1),
    "all scores equal": (3, 25, [7, 3], 6, 4, 6, 500, 10, 1, 1, 2000, 1),
    "crowds": (4, 40, [1, 2], 6, 4, 6, 700, 60, 64, 1, 2000, 1),
    "all crowds": (5, 12, [1, 2], 4, 3, 3, 400, 100, 64, 1, 2000, 1),
    "small boxes, some of no size": (6, 40, [1, 2, 3], 10, 3, 6, 24, 5, 64, 1, 2000, 1),
    "large boxes": (7, 30, [4, 1], 5, 3, 4, 3000, 5, 200, 1, 2000, 1),
    "an object with number 0": (8, 20, [1, 2], 4, 3, 2, 500, 5, 64, 0, 2000, 1),
    "more than a hundred boxes": (9, 4, [1, 2, 3], 60, 12, 700, 300, 5, 300, 1, 2000, 1),
    "no boxes": (10, 10, [1, 2], 4, 0, 0, 500, 5, 10, 1, 2000, 1),
    "no objects": (11, 10, [1, 2], 0, 0, 5, 500, 0, 10, 1, 2000, 1),
    "classes nobody uses": (12, 15, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 2, 2, 2, 500, 5, 20, 1, 2000, 1),
    "one image": (17, 1, [1], 12, 3, 12, 600, 10, 8, 1, 2000, 1),
    "larger": (14, 400, [1, 2, 3, 4, 5, 6, 7, 8], 10, 4, 20, 1200, 3, 1000, 1, 2000, 1),
    "objects upon each other": (18, 300, [1, 2], 8, 2, 12, 9, 5, 500, 1, 3, 20),
    "objects upon each other, small and large": (19, 60, [1, 2, 3], 14, 4, 4, 9, 10, 20, 1, 5, 64),
}
MASK = (1 << 64) - 1


class Random:
    """SplitMix64."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return ((z ^ (z >> 31)) >> 33) % n


def made(seed, images, classes, objects, copies, strays, side, crowds, levels, first, spread, step):
    """Images are listed out of order, and the last class has no object unless it is the only one."""
    random = Random(seed)
    used = max(1, len(classes) - 1)
    numbers = [i * 7919 % 10007 for i in range(images)]
    truths, found = [], []
    for image in numbers:
        for _ in range(random.below(objects + 1)):
            x, y = random.below(spread) * step / 4, random.below(spread) * step / 4
            w, h = random.below(side) * step / 4, random.below(side) * step / 4
            category = classes[random.below(used)]
            crowd = int(random.below(100) < crowds)
            area = w * h * (50 + random.below(51)) / 100
            truths.append(dict(id=first + len(truths), image_id=image, category_id=category, bbox=[x, y, w, h],
                               area=area, iscrowd=crowd))
            for _ in range(random.below(copies + 1)):
                box, of = [x, y, w, h], category
                kind = random.below(5)
                if kind == 1:  # a part of the width: overlaps of 0.50, 0.55, … as near as doubles come
                    box[2] = w * (10 + random.below(11)) / 20
                elif kind == 2:  # shifted
                    box[0] += (random.below(41) - 20) * w / 64
                    box[1] += (random.below(41) - 20) * h / 64
                elif kind == 3:  # of any class
                    of = classes[random.below(len(classes))]
                elif kind == 4:  # larger or smaller
                    box[2], box[3] = w * (12 + random.below(9)) / 16, h * (12 + random.below(9)) / 16
                found.append(dict(image_id=image, category_id=of, bbox=box, score=random.below(levels) / levels))
        for _ in range(random.below(strays + 1)):
            box = [random.below(n) * step / 4 for n in (spread, spread, side, side)]
            found.append(dict(image_id=image, category_id=classes[random.below(len(classes))], bbox=box,
                              score=random.below(levels) / levels))
    return numbers, truths, found


def known(value):
    return None if value == -1 else float(value)


def judged(numbers, classes, truths, found):
    truth, result = COCO(), COCO()
    images = [dict(id=number) for number in numbers]
    categories = [dict(id=number, name=f"class {number}") for number in classes]
    truth.dataset = dict(images=images, categories=categories, annotations=truths)
    truth.createIndex()
    if found:
        result = truth.loadRes([dict(row) for row in found])
    else:  # loadRes cannot take none
        result.dataset = dict(images=images, categories=categories, annotations=[])
        result.createIndex()
    evaluation = COCOeval(truth, result, "bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    precision = evaluation.eval["precision"][:, :, :, 0, 2]
    classes = [[known(precision[:, :, k].mean()), known(precision[0, :, k].mean())] for k in range(len(classes))]
    there = [k for k in range(len(classes)) if precision[0, 0, k] > -1]
    curve = precision[5][:, there].mean(axis=1)[::10].tolist() if there else []
    return [known(v) for v in evaluation.stats], classes, curve


def main():
    cases = []
    for name, parameters in CASES.items():
        numbers, truths, found = made(*parameters)
        # Shows that the other side made the same set.
        check = sum(sum(row["bbox"]) * (1 + row["score"]) for row in found) + sum(row["area"] for row in truths)
        with contextlib.redirect_stdout(io.StringIO()):
            stats, classes, curve = judged(numbers, parameters[2], truths, found)
        cases.append(dict(name=name, parameters=parameters, objects=len(truths), boxes=len(found), check=check,
                          stats=stats, classes=classes, curve_75=curve))
        print(f"{name}: {len(truths)} objects, {len(found)} boxes, {stats[0]}")
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    rows = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    (out / "coco.json").write_text(f'{{"numpy":"{np.__version__}","cases":[\n{rows}\n]}}\n')


if __name__ == "__main__":
    main()
